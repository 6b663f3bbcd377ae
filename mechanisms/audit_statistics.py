r"""Tests with a false-alarm probability that is at most what is stated, for every sample size.

Each says "alarm" with probability <= level if its null hypothesis holds; the hypotheses are sets, so that what is
known only between two numbers (rounding to a grid, a sampler's slack) costs power and never the level:

    count ~ Binomial(n, p), p in [low, high]         exact tails, P(count >= c) = I_p(c, n - c + 1)
    probability behind a count                       Clopper & Pearson (1934) limits, the same function inverted
    sample of Z, seen to within h                    sup |F_n - F| <= sqrt(log(2/level)/(2n))  (Massart 1990), and
                                                     F(x - h) - band <= share seen up to x <= F(x + h) + band
    mean of n bounded values, variance known         Bernstein: P(|mean - mu| >= e) <= 2 e^(-n e^2/(2 v + 2 M e/3))
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Finding", "band_test", "count_test", "excess_test", "lower_limit", "mean_test", "upper_limit"]

Floats = NDArray[np.float64]
EDGES = 300


@dataclass(frozen=True)
class Finding:
    """What a test saw, the largest value that raises no alarm, and whether it raises one."""

    statistic: float
    bound: float
    alarm: bool


def lower_limit(count: int, size: int, level: float) -> float:
    """Return a number that the probability behind `count` of `size` is below with probability <= `level`.

    Examples
    --------
    >>> round(lower_limit(50, 100, 0.025), 4), lower_limit(0, 100, 0.025)
    (0.3983, 0.0)
    """
    from scipy.special import betaincinv

    return float(betaincinv(count, size - count + 1, level)) if count > 0 else 0.0


def upper_limit(count: int, size: int, level: float) -> float:
    """Return a number that the probability behind `count` of `size` is above with probability <= `level`.

    Examples
    --------
    >>> round(upper_limit(50, 100, 0.025), 4), upper_limit(100, 100, 0.025)
    (0.6017, 1.0)
    """
    return 1.0 - lower_limit(size - count, size, level)


def _critical(size: int, p: float, level: float) -> int:
    """Smallest c with P(Binomial(size, p) >= c) <= level; size + 1 if there is none."""
    from scipy.special import betainc

    low, high = 0, size + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if betainc(middle, size - middle + 1, min(p, 1.0)) <= level else (middle, high)
    return high


def excess_test(count: int, size: int, p: float, level: float) -> Finding:
    """Test that a count is Binomial(size, p) or smaller.

    Examples
    --------
    >>> excess_test(60, 100, 0.5, 0.05).alarm, excess_test(57, 100, 0.5, 0.05).alarm
    (True, False)
    """
    critical = _critical(size, p, level)
    return Finding(count / size - p, (critical - 1) / size - p, count >= critical)


def count_test(count: int, size: int, low: float, high: float, level: float) -> Finding:
    """Test that a count is Binomial(size, p), or a sum of independent trials, with p in [low, high].

    Examples
    --------
    >>> count_test(61, 100, 0.5, 0.5, 0.05).alarm, count_test(60, 100, 0.5, 0.5, 0.05).alarm
    (True, False)
    """
    over = excess_test(count, size, high, level / 2)
    under = excess_test(size - count, size, 1.0 - low, level / 2)
    return over if over.statistic >= under.statistic else under


def band_test(
    values: Floats, cdf: Callable[[Floats], Floats], blur: float, slack: float, level: float
) -> Finding:
    """Test that `values` are within `blur` of independent draws from `cdf`, up to `slack` in total variation.

    Parameters
    ----------
    values : ndarray of shape (n,)
    cdf : callable
    blur, slack : float
    level : float

    Examples
    --------
    >>> uniform = lambda x: np.clip(x, 0.0, 1.0)
    >>> sample = (np.arange(1000) + 0.5) / 1000
    >>> [band_test(v, uniform, 0.0, 0.0, 1e-6).alarm for v in (sample, sample**1.4)]
    [False, True]
    """
    ordered = np.sort(values)
    size = len(ordered)
    # The largest distance over all x bounds that over any choice of x, also one that depends on the sample.
    edges = np.unique(ordered[np.linspace(0, size - 1, min(EDGES, size)).astype(int)])
    seen = np.searchsorted(ordered, edges, side="right") / size
    distance = max(float(np.max(seen - cdf(edges + blur))), float(np.max(cdf(edges - blur) - seen)))
    band = math.sqrt(math.log(2.0 / level) / (2 * size)) + slack
    # not (distance <= band): what is not a number raises an alarm, too
    return Finding(distance, band, not distance <= band)


def mean_test(values: Floats, mean: float, variance: float, bias: float, slack: float, level: float) -> Finding:
    """Test the mean of independent values in [-1, 1], seen to within `bias`, whose variance is known.

    Examples
    --------
    >>> coins = np.tile([1.0, -1.0], 500)
    >>> mean_test(coins, 0.0, 1.0, 0.0, 0.0, 1e-6).alarm, mean_test(coins, 0.3, 0.91, 0.0, 0.0, 1e-6).alarm
    (False, True)
    """
    size, reach = len(values), 1.0 + abs(mean)
    log_level = math.log(2.0 / level)
    linear = reach * log_level / 3
    spread = max(variance, 0.0) + 4 * slack
    allowed = (linear + math.sqrt(linear**2 + 2 * size * spread * log_level)) / size + bias + 2 * slack
    distance = abs(float(values.mean()) - mean)
    return Finding(distance, allowed, not distance <= allowed)
