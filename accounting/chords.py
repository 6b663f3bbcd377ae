"""Roots of many decreasing functions inside known brackets, fast where they are smooth.

Chords and bisection in turn: a smooth function needs about ten evaluations, one with jumps is bisected down to
neighbouring floats.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["chord_decreasing"]

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
