"""Tilted convolutions: certified values against direct sums, whatever the window."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy.signal import lfilter

import privfit.accounting as pa
from privfit.accounting.convolution import Table, Window, _decayed_sum, _fast_length, _scan
from privfit.accounting.lattice import aligned


@pytest.mark.parametrize("ratio", [1.0, 1 - 1e-5, 0.99, 0.3, 1e-5, 1e-20])
@pytest.mark.parametrize("size", [1, 2, 7, 1000, 4097])
def test_scan_is_the_recursion(ratio, size):
    x = np.random.default_rng(size).random(size) * np.exp(-0.01 * np.arange(size))
    expected = lfilter([1.0], [1.0, -ratio], x[::-1])[::-1]
    assert np.allclose(_scan(x, ratio), expected, rtol=1e-11, atol=0)
    brute = [sum(x[j] * ratio ** (j - i) for j in range(i + 1, size)) for i in range(min(size, 3))]
    assert np.allclose(_decayed_sum(x, ratio)[:3], brute, rtol=1e-11, atol=0)


@pytest.mark.parametrize("size", [1, 2, 17, 1000, 65537, 1_000_001])
def test_lengths_are_fast_and_long_enough(size):
    length = _fast_length(size)
    assert size <= length <= max(1.2 * size, size + 2)
    for factor in (2, 3, 5):
        while length % factor == 0:
            length //= factor
    assert length == 1


def response_table(theta, low, high, k=30):
    """Window with Chernoff slopes of about two standard deviations of the tilted sum."""
    eps = 0.5
    h = aligned(0.1, eps)
    deviation = eps * math.sqrt(k) / math.cosh(eps * (0.5 - theta))
    slope = 4 / deviation
    return Table((pa.randomized_response(eps),), (k,), Window(h, theta, low, high, ((eps, eps),), slope, slope)), eps


def exact_delta(eps, k, at):
    mp.mp.dps = 50
    truth = 1 / (1 + mp.exp(-mp.mpf(eps)))
    total = mp.mpf(0)
    for j in range(k + 1):
        loss = mp.mpf(eps) * (2 * j - k)
        if loss > at:
            total += mp.binomial(k, j) * truth**j * (1 - truth) ** (k - j) * (1 - mp.exp(mp.mpf(at) - loss))
    return float(total)


@pytest.mark.parametrize("theta", [0.0, -0.5, -3.0, 0.2, 0.5])
def test_every_tilt_gives_certified_bounds(theta):
    table, eps = response_table(theta, -19.0, 19.0)
    for at in (0.0, 1.3, 4.0, 9.7, 14.2):
        truth = exact_delta(eps, 30, at)
        low, high = (float(table.read(np.array([at]), side)[0][0]) for side in ("lower", "upper"))
        assert low <= truth <= high
        if theta <= 0 and abs(at - 30 * eps * math.tanh(eps / 2 - eps * theta)) < 4:
            assert high - low < 1e-6 * truth


def test_mass_that_wraps_around_is_in_the_error():
    """A window that holds only part of the law: wide bounds, but bounds."""
    truth = exact_delta(0.5, 30, 2.0)
    width = []
    for high in (19.0, 9.0, 6.0):
        table, _ = response_table(0.0, -19.0, high)
        low, up = (float(table.read(np.array([2.0]), side)[0][0]) for side in ("lower", "upper"))
        assert low <= truth <= up
        width.append(up - low)
    assert width[0] < 1e-6
    assert width[0] < width[1] <= width[2]


def test_tail_far_below_rounding_keeps_its_digits():
    """delta near the largest loss of 200 responses: 1e-60 by fifty digits."""
    eps, k, at = 0.5, 200, 97.3
    truth = exact_delta(eps, k, at)
    assert truth < 1e-37
    table, _ = response_table(-3.4, 78.0, 121.0, k)
    low, high = (float(table.read(np.array([at]), side)[0][0]) for side in ("lower", "upper"))
    assert low <= truth <= high
    assert high - low < 1e-5 * truth


@pytest.mark.parametrize("mu", [45.0, 60.0, 1000.0])
def test_laws_that_do_not_meet_within_reach_have_vacuous_bounds(mu):
    pair = pa.laplace(1.0).compose(pa.gaussian(mu))
    for epsilon in (0.0, 8.0, 100.0, 1000.0, 1e6):
        lower, upper = (pair.delta(epsilon, bound=side) for side in ("lower", "upper"))
        # the pair discloses no less than the Gaussian mechanism alone
        assert 0.0 <= lower <= upper <= 1.0 and upper >= pa.gaussian(mu).delta(epsilon)
