"""Binomial tails against exact arithmetic."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from privfit.accounting.binomial import binomial_log_pmf, upper_tail_ratio


@pytest.mark.parametrize("n", [0, 1, 2, 7, 40])
@pytest.mark.parametrize("p", [0.5, 0.03, 0.999])
def test_small_cases_in_exact_fractions(n, p):
    x = np.arange(n + 1)
    exact = [math.comb(n, k) * Fraction(p) ** k * (1 - Fraction(p)) ** (n - k) for k in range(n + 1)]
    assert np.allclose(np.exp(binomial_log_pmf(x, n, p, 1 - p)), [float(e) for e in exact], rtol=3e-13, atol=0)


@pytest.mark.parametrize(("n", "p"), [(10**4, 0.3), (10**6, 0.5), (10**8, 0.36787944), (10**8, 1e-7)])
def test_large_cases_against_mpmath(n, p):
    sd = math.sqrt(n * p * (1 - p))
    with mp.workdps(50):
        for z in (-30, -3, 0, 1, 10, 37):
            x = min(max(int(n * p + z * sd), 0), n)
            exact = (
                mp.loggamma(n + 1)
                - mp.loggamma(x + 1)
                - mp.loggamma(n - x + 1)
                + x * mp.log(mp.mpf(p))
                + (n - x) * mp.log1p(-mp.mpf(p))
            )
            assert abs(float(binomial_log_pmf(x, n, p, 1 - p) - exact)) < 1e-15 * (50 + abs(z) * (abs(z) + sd))


@pytest.mark.parametrize("c", [1, 2, 9, 300, 10**5, 10**7])
def test_tail_ratio_by_summation(c):
    for z in (0.0, 0.5, 1.9, 2.1, 5.0, 20.0, 35.0):
        b = min(math.ceil(c / 2 + z * math.sqrt(c) / 2), c)
        j = np.arange(b, min(c, b + 40 * math.isqrt(c) + 40))
        with np.errstate(divide="ignore"):
            logs = np.concatenate([[0.0], np.cumsum(np.log1p(-(2 * j - c + 1) / (j + 1)))])
        exact = math.fsum(np.exp(logs))
        value = upper_tail_ratio(np.array([float(b)]), np.array([float(c)]))[0]
        assert value == pytest.approx(exact, rel=1e-13 + 1e-15 * math.sqrt(c) + 1e-14 * (c > 10**6) * 100)


def test_the_whole_distribution():
    assert upper_tail_ratio(np.array([0.0]), np.array([6.0]))[0] == pytest.approx(64.0, rel=1e-14)
