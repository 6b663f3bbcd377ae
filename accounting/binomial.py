"""Binomial probabilities with relative accuracy far into the tails and for millions of trials.

log pmf      saddle-point form: Stirling errors and deviances, no difference of large logarithms (Loader 2000)
P[X >= b] / P[X = b]   for X ~ Bin(c, 1/2): Gauss's continued fraction of the incomplete beta function
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["binomial_log_pmf", "upper_tail_ratio"]

Floats = NDArray[np.float64]


def _stirling_error(n: Floats) -> Floats:
    """Logarithm of n! minus Stirling's formula."""
    from scipy.special import gammaln

    m = np.maximum(n, 1.0)
    series = (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / (1188 * m**2)) / m**2) / m**2) / m**2) / m
    small = np.minimum(m, 16.0)
    direct = gammaln(small + 1) - (small + 0.5) * np.log(small) + small - 0.5 * math.log(2 * math.pi)
    return np.where(m > 15.5, series, direct)


def _deviance(x: Floats, mean: Floats) -> Floats:
    """Value of x log(x / mean) + mean - x, by a series where the difference cancels."""
    d = (x - mean) / (x + mean)
    total = (x - mean) * d
    term = 2 * x * d
    near = np.abs(d) < 0.1
    square = np.where(near, d * d, 0.0)
    for j in range(1, 12):
        term = term * square
        total = total + term / (2 * j + 1)
    return np.where(near, total, x * np.log(np.maximum(x, 1e-300) / mean) + mean - x)


def binomial_log_pmf(x: Any, n: Any, p: float, q: float) -> Floats:
    """Log probability of x successes in n trials.

    Parameters
    ----------
    x, n : array
        Whole numbers with 0 <= x <= n, broadcast together.
    p, q : float
        Probabilities of success and failure; both are given so that neither loses digits.

    Returns
    -------
    array

    Examples
    --------
    >>> round(float(np.exp(binomial_log_pmf(3, 5, 0.5, 0.5))), 12)
    0.3125
    """
    x, n = np.broadcast_arrays(np.asarray(x, float), np.asarray(n, float))
    inner = np.clip(x, 1.0, np.maximum(n - 1.0, 1.0))
    rest = np.maximum(n - inner, 1.0)
    value = _stirling_error(n) - _stirling_error(inner) - _stirling_error(rest)
    value = value - _deviance(inner, n * p + 1e-300) - _deviance(rest, n * q + 1e-300)
    value = value + 0.5 * np.log(np.maximum(n, 1.0) / (2 * math.pi * inner * rest))
    with np.errstate(divide="ignore", invalid="ignore"):
        # log of the larger probability from the smaller one, which has all its digits
        log_p, log_q = (np.log(p), np.log1p(-p)) if p < 0.5 else (np.log1p(-q), np.log(q))
        none, every = np.where(n > 0, n * log_q, 0.0), np.where(n > 0, n * log_p, 0.0)
    return np.where(x == 0, none, np.where(x == n, every, value))


def upper_tail_ratio(b: Floats, c: Floats) -> Floats:
    """P[X >= b] / P[X = b] for X ~ Bin(c, 1/2), for c/2 <= b <= c.

    Parameters
    ----------
    b, c : array of shape (n,)

    Returns
    -------
    array of shape (n,)

    Examples
    --------
    >>> float(upper_tail_ratio(np.array([4.0]), np.array([5.0]))[0]).__round__(12)
    1.2
    """
    from scipy.special import betainc

    ratio = np.ones(b.shape)
    # a distance of one standard deviation: closer to the middle the fraction converges slowly
    far = (2 * b - c) ** 2 > c
    if far.any():
        ratio[far] = _continued_fraction(b[far], c[far] - b[far] + 1)
    near = ~far & (b > 0)
    if near.any():
        tail = np.log(betainc(b[near], c[near] - b[near] + 1, 0.5))
        ratio[near] = np.exp(tail - binomial_log_pmf(b[near], c[near], 0.5, 0.5))
    first = b <= 0
    ratio[first] = np.exp(c[first] * math.log(2.0))
    return ratio


def _continued_fraction(a: Floats, b: Floats) -> Floats:
    """Half the continued fraction of I_{1/2}(a, b), by Lentz's method."""
    c = np.ones(a.shape)
    d = 1 / (1 - 0.5 * (a + b) / (a + 1))
    value = d.copy()
    # its denominators nearly cancel: no step gets below the rounding of a ratio as large as sqrt(trials)
    enough = 1e-15 + 1e-16 * math.sqrt(float((a + b).max()))
    for m in range(1, 2000):
        even = 0.5 * m * (b - m) / ((a - 1 + 2 * m) * (a + 2 * m))
        d, c = 1 / (1 + even * d), 1 + even / c
        value = value * (d * c)
        odd = -0.5 * (a + m) * (a + b + m) / ((a + 2 * m) * (a + 1 + 2 * m))
        d, c = 1 / (1 + odd * d), 1 + odd / c
        step = d * c
        value = value * step
        if np.all(np.abs(step - 1) < enough):
            break
    return 0.5 * value
