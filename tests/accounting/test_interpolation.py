"""Piecewise Chebyshev interpolants."""

import numpy as np
import pytest

from privfit.accounting.interpolation import Interpolant


def test_values_agree_with_the_function_over_many_units():
    table = Interpolant(lambda x: np.array([np.exp(-x), np.sin(9 * x)]), 1e-14)
    x = np.linspace(-3.7, 12.2, 1001)
    assert np.allclose(table(x), [np.exp(-x), np.sin(9 * x)], rtol=1e-11, atol=1e-12)


def test_intervals_are_split_where_it_is_needed():
    calls = []

    def peak(x):
        calls.append(x.size)
        return (1 / (1 + (20 * (x - 0.3)) ** 2))[None]

    table = Interpolant(peak, 1e-12)
    x = np.linspace(0, 0.999, 400)
    assert np.allclose(table(x), peak(x), atol=1e-10)
    assert len(calls) > 8
    count = len(calls)
    table(x)
    assert len(calls) == count  # nothing is computed twice


def test_nothing_asked_nothing_computed():
    assert Interpolant(lambda x: x[None], 1e-12)(np.zeros(0)).shape[1] == 0


def test_a_jump_ends_at_the_largest_depth():
    table = Interpolant(lambda x: (x > 0.31).astype(float)[None], 1e-12)
    assert table(np.array([0.2, 0.9]))[0] == pytest.approx([0.0, 1.0], abs=1e-9)
