"""Roots of many decreasing functions inside known brackets, fast where they are smooth.

Chords and bisection in turn: a smooth function needs about ten evaluations, one with jumps is bisected down to
neighbouring floats.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["chord_decreasing", "chord_epsilon"]

Floats = NDArray[np.float64]


def chord_decreasing(
    function: Callable[[Floats], Floats], low: Floats, high: Floats, tolerance: float = 1e-10, width: float = 4e-16
) -> tuple[Floats, Floats]:
    """Ends low <= high between which the function passes zero.

    Parameters
    ----------
    function : callable
        Vectorised and decreasing; infinite values are allowed.
    low, high : array of shape (n,)
        Brackets. Where the function has one sign only, both ends are the end nearer to zero.
    tolerance : float
        Size of the function that counts as zero; both ends are then the same point.
    width : float
        Size of the bracket, relative to its ends, that counts as closed.

    Returns
    -------
    low, high : array of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> low, high = chord_decreasing(lambda x: 2.0 - np.exp(x), np.array([0.0]), np.array([5.0]))
    >>> bool(abs(low[0] - np.log(2.0)) < 1e-10)
    True
    """
    low, high = low.copy(), high.copy()
    at_low, at_high = function(low), function(high)
    low, high = np.where(at_high > 0, high, low), np.where(at_low <= 0, low, high)
    for step in range(150):
        open_ = (high > low) & (high - low > width * np.maximum(np.abs(low), np.abs(high)))
        if not open_.any():
            break
        middle = low + 0.5 * (high - low)
        if step % 2:
            with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
                chord = low + (high - low) * (at_low / (at_low - at_high))
            middle = np.where((chord > low) & (chord < high), chord, middle)
        value = function(np.where(open_, middle, high))
        hit = open_ & (np.abs(value) <= tolerance)
        up, down = (open_ & (value > 0)) | hit, (open_ & ~(value > 0)) | hit
        low, at_low = np.where(up, middle, low), np.where(up, value, at_low)
        high, at_high = np.where(down, middle, high), np.where(down, value, at_high)
    return low, high


def chord_epsilon(
    log_delta: Callable[[Floats], Floats], delta: Floats, slack: float, mass: float, top: float
) -> tuple[Floats, Floats]:
    """Neighbouring epsilons between which a profile passes delta, for profiles that are dear to evaluate.

    Parameters
    ----------
    log_delta : callable
        Decreasing logarithm of the profile.
    delta : array
        Targets in [0, 1].
    slack : float
        Added to the logarithm: positive for an answer on the safe side.
    mass : float
        Limit of the profile; targets below it have no finite epsilon.
    top : float
        Largest loss, may be infinite.

    Returns
    -------
    low, high : array
        The profile with slack is above delta at `low` and not above it at `high`.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = chord_epsilon(lambda e: -e, np.array([0.5]), 0.0, 0.0, np.inf)
    >>> bool(low[0] <= np.log(2.0) <= high[0] <= low[0] + 1e-12)
    True
    """
    flat = delta.ravel()
    with np.errstate(divide="ignore"):
        target = np.log(flat) - slack
    reachable = flat > mass * np.exp(slack) if mass > 0 else (flat > 0) | np.isfinite(top)
    low, high = np.full(flat.shape, np.inf), np.full(flat.shape, np.inf)
    if reachable.any():
        goal = np.maximum(target[reachable], -1e300)
        end = top if np.isfinite(top) else 1.0
        while not np.isfinite(top) and end < 1e300 and log_delta(np.array([end]))[0] > goal.min():
            end *= 4.0
        start = np.zeros(goal.shape)
        ends = chord_decreasing(lambda e: log_delta(e) - goal, start, np.full(goal.shape, end), 0.0, 1e-12)
        low[reachable], high[reachable] = ends
    return low.reshape(delta.shape), high.reshape(delta.shape)
