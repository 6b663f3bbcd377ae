"""The grid is exact: checked in rational arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privfit.mechanisms import Ball, Box, Gaussian, release
from privfit.mechanisms.grid import add_noise, check_grid, flush, grid_of, nearest


@given(st.floats(2.0**-500, 2.0**500))
def test_grids_are_powers_of_two_just_below_a_thousandth_of_the_scale(scale):
    (g,) = grid_of(np.array([scale]))
    assert math.frexp(g)[0] == 0.5
    assert 2**10 <= Fraction(scale) / Fraction(g) < 2**11


@given(st.floats(-1e6, 1e6), st.floats(-50, 50), st.floats(2.0**-10, 2.0**10))
def test_output_is_the_sum_rounded_to_the_grid(x, unit, scale):
    scales = np.array([scale])
    grid = grid_of(scales)
    y = np.array([[x]])
    add_noise(y, [np.array([unit])], scales, grid, nearest(None))
    g, exact = Fraction(grid[0]), Fraction(x) + Fraction(scale) * Fraction(unit)
    steps = Fraction(y[0, 0]) / g
    assert steps.denominator == 1
    # Half a step, and the rounding of f + V whose size is at most 50 * 2^11.
    assert abs(steps - exact / g) <= Fraction(1, 2) + Fraction(1, 2**34)
    assert not (y[0, 0] == 0 and np.signbit(y[0, 0]))


@pytest.mark.parametrize("x", [0.3, -0.3, 1 / 3, 0.7, -1.0])
def test_zero_noise_moves_at_most_half_a_step(x):
    y = np.array([[x]])
    add_noise(y, [np.array([0.0])], np.array([1.0]), np.array([2.0**-10]), nearest(None))
    assert abs(y[0, 0] - x) <= 2.0**-11


def test_each_coordinate_has_the_grid_of_its_scale():
    x = np.full((2000, 2), 1 / 3)
    y = release(x, Gaussian([1.0, 3000.0]), Box({0: (0, 1), 1: (0, 1)})).frame
    assert (np.mod(y[:, 0], 2.0**-10) == 0).all() and (np.mod(y[:, 1], 2.0) == 0).all()
    assert (np.mod(y[:, 0], 2.0**-9) != 0).any() and (np.mod(y[:, 1], 4.0) != 0).any()


def test_domains_that_do_not_fit_the_grid_are_refused_whatever_the_data():
    box = Box({"x": (2**52, 2**52 + 1)})
    for data in (np.zeros((2, 1)), np.full((2, 1), np.nan), np.zeros((0, 1))):
        with pytest.raises(ValueError, match="too small for column 'x'"):
            release(data, Gaussian(1.0), box)
    check_grid(np.array([2.0**11]), np.array([2.0]), box)
    with pytest.raises(ValueError, match="too small"):
        check_grid(np.array([1e-13]), np.array([2.0**-54]), Ball(1.0, 1))


def test_flush_zeroes_what_is_smaller_and_nothing_else():
    rng = np.random.default_rng(3)
    x = rng.normal(size=10_000) * 10.0 ** rng.uniform(-320, 300, 10_000)
    x[:4] = [np.nan, np.inf, -np.inf, -0.0]
    for least in (2.0**-1021, 1e-200, 1.0):
        out = x.copy()
        flush(out, least)
        kept = np.abs(x) >= least
        assert (out[kept] == x[kept]).all() and (out[~kept] == 0).all()
        assert kept.any() and not kept.all()
