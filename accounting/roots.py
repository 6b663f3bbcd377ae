"""Roots: of many monotone functions at once, without brackets from the caller, and of one expensive function.

A decreasing function is bracketed by doubling from 1 and bisected until the two ends are neighbouring
floats (or their gap is below 4 ulp), so that both ends can be used: one lies on each side of the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["bisect_decreasing", "chandrupatla"]

Floats = NDArray[np.float64]


def bisect_decreasing(
    function: Callable[[Floats, Floats], Floats],
    target: Floats,
    lower: float = -math.inf,
    upper: float = math.inf,
    steps: int = 200,
) -> tuple[Floats, Floats]:
    """Ends low <= high of a tiny interval in which ``function(x, target)`` changes from > 0 to <= 0.

    Parameters
    ----------
    function : callable
        Vectorised, decreasing in its first argument.
    target : array
        One entry for every equation; passed back as the second argument.
    lower, upper : float
        Ends of the search interval; may be infinite. Where the function is <= 0 at a finite `lower`, both
        ends are `lower`; where it is > 0 at a finite `upper`, both are `upper`.
    steps : int
        Largest number of bisections.

    Returns
    -------
    low, high : array
        ``function(low) > 0 >= function(high)`` wherever the root is inside.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = bisect_decreasing(lambda x, t: t - x**3, np.array([8.0]))
    >>> bool(np.allclose([low, high], 2.0, rtol=1e-14))
    True
    """
    target = np.asarray(target, dtype=np.float64)
    shape = target.shape
    t = target.ravel()
    low, high = _bracket(function, t, lower, upper)
    active = high > low
    for _ in range(steps):
        middle = _between(low, high)
        active &= (middle > low) & (middle < high) & (high - low > 4e-16 * np.maximum(np.abs(low), np.abs(high)))
        if not active.any():
            break
        value = np.full(t.shape, np.nan)
        value[active] = function(middle[active], t[active])
        up = active & (value > 0)
        low = np.where(up, middle, low)
        high = np.where(active & ~up, middle, high)
    return low.reshape(shape), high.reshape(shape)


def chandrupatla(function: Callable[[float], float], low: float, high: float, tolerance: float) -> float:
    """Root of one function between two points where its signs differ (Chandrupatla 1997).

    Inverse quadratic interpolation where the last three points allow it, bisection otherwise. Meant for functions
    of which every evaluation counts.

    Parameters
    ----------
    function : callable
    low, high : float
    tolerance : float
        Absolute tolerance of the root.

    Returns
    -------
    float

    Examples
    --------
    >>> round(chandrupatla(lambda x: x**3 - 2, 1.0, 2.0, 1e-12), 10)
    1.2599210499
    """
    b, a = low, high
    fb, fa = function(b), function(a)
    share = 0.5 if fa == fb else min(max(fb / (fb - fa), 0.05), 0.95)  # the first step is a secant step
    share = 1 - share
    for _ in range(200):
        x = a + share * (b - a)
        value = function(x)
        if (value < 0) == (fa < 0):
            c, fc = a, fa
        else:
            c, b, fc, fb = b, a, fb, fa
        a, fa = x, value
        best = a if abs(fa) < abs(fb) else b
        limit = tolerance / abs(b - a)
        if limit > 0.5 or value == 0:
            return best
        position, height = (a - b) / (c - b), (fa - fb) / (fc - fb)
        share = 0.5
        if height * height < position and (1 - height) ** 2 < 1 - position:
            share = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        share = min(max(share, limit), 1 - limit)
    return best


def _between(low: Floats, high: Floats) -> Floats:
    """Middle of the interval: geometric where it spans orders of magnitude, arithmetic otherwise."""
    wide = (low > 0) & (high / 4 > low)
    with np.errstate(invalid="ignore"):
        geometric = np.sqrt(np.where(wide, low, 1.0)) * np.sqrt(np.where(wide, high, 1.0))
    return np.where(wide, geometric, low + 0.5 * (high - low))


def _bracket(
    function: Callable[[Floats, Floats], Floats], t: Floats, lower: float, upper: float
) -> tuple[Floats, Floats]:
    low = np.full(t.shape, lower if math.isfinite(lower) else -1.0)
    high = np.full(t.shape, upper if math.isfinite(upper) else 1.0)
    if math.isfinite(lower) and not math.isfinite(upper):
        high = np.maximum(high, low + 1.0)
    if math.isfinite(upper) and not math.isfinite(lower):
        low = np.minimum(low, high - 1.0)
    if math.isfinite(lower):
        early = function(low, t) <= 0
        high = np.where(early, low, high)
    else:
        low = _expand(function, t, low, sign=1.0)
    if math.isfinite(upper):
        late = (high > low) & (function(high, t) > 0)
        low = np.where(late, high, low)
    else:
        grow = high > low
        if grow.any():
            high[grow] = _expand(function, t[grow], high[grow], sign=-1.0)
    return low, high


def _expand(function: Callable[[Floats, Floats], Floats], t: Floats, x: Floats, sign: float) -> Floats:
    """Move x away from zero by doubling until ``sign * function(x) >= 0``."""
    x = x.copy()
    for _ in range(1100):
        value = function(x, t)
        wrong = value <= 0 if sign > 0 else value > 0
        if not wrong.any():
            break
        step = np.maximum(np.abs(x), 1.0) * -sign
        with np.errstate(over="ignore"):
            x = np.where(wrong, np.clip(x + step, -1e308, 1e308), x)
        if np.all(np.abs(x[wrong]) >= 1e308):
            break
    return x
