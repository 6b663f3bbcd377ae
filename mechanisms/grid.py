r"""Rounding to a grid: Y = g (X + round(f + V)) with x/g = X + f exactly and V = Z/g.

A float x + Z betrays x in its low bits (Mironov 2012). Here every output is a multiple of the declared grid
g = 2^(floor(log2 scale) - 10), the same for all inputs: x/g splits exactly into an integer and a fraction,
and rounding the sum is post-processing of the stated continuous law. Exact while |x|/g < 2^52. Rounding is to
the nearest point, or stochastic: up with probability the fraction, which keeps the mean of every value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from privfit.mechanisms.keystream import Words

__all__ = ["ROUNDINGS", "Rounder", "add_noise", "check_grid", "flush", "grid_of", "nearest", "stochastic"]

Floats = NDArray[np.float64]

Rounder = Callable[[Floats], None]
"""Rounds an array to integers in place."""


def grid_of(scales: Floats, bits: int = 10) -> Floats:
    """Return the grid of each coordinate: a power of two with scale/g in [2^bits, 2^(bits + 1)).

    Examples
    --------
    >>> grid_of(np.array([1.0, 1.5, 1024.0]))
    array([9.765625e-04, 9.765625e-04, 1.000000e+00])
    """
    return np.asarray(np.ldexp(1.0, np.frexp(scales)[1] - (bits + 1)), dtype=np.float64)


def nearest(words: Words) -> Rounder:
    """Return rounding to the nearest integer; draws no words.

    Examples
    --------
    >>> x = np.array([0.25, 0.75])
    >>> nearest(None)(x)
    >>> x
    array([0., 1.])
    """

    def round_(values: Floats) -> None:
        np.rint(values, out=values)

    return round_


def stochastic(words: Words) -> Rounder:
    """Return unbiased rounding: up with probability the fraction, by one uniform word per value.

    Examples
    --------
    >>> from privfit.mechanisms.keystream import block_words
    >>> x = np.full(10_000, 0.25)
    >>> stochastic(block_words(bytes(32), 0, 0))(x)
    >>> bool(abs(x.mean() - 0.25) < 0.02)
    True
    """

    def round_(values: Floats) -> None:
        # rint(v + U - 1/2) is above floor(v) with probability v - floor(v).
        uniform = words(len(values)).astype(np.float64)
        uniform += 0.5
        uniform *= 2.0**-64
        uniform -= 0.5
        values += uniform
        np.rint(values, out=values)

    return round_


_MAGNITUDE = np.int64(2**63 - 1)

ROUNDINGS: dict[str, Callable[[Words], Rounder]] = {"nearest": nearest, "stochastic": stochastic}
"""How values may be rounded to the grid; each takes a block's source of words."""


def check_grid(scales: Floats, grid: Floats, domain: Any) -> None:
    """Raise if a domain does not fit on the grids of a law.

    Parameters
    ----------
    scales, grid : ndarray of shape (dim,)
    domain : Box or Ball

    Raises
    ------
    ValueError
        If some |bound| is 2^52 grid steps or more, so that sums would not be exact.

    Examples
    --------
    >>> from privfit.mechanisms import Box
    >>> check_grid(np.array([2.0]), np.array([2.0**-9]), Box({"age": (17, 90)}))
    """
    for column, scale, step, size in zip(domain.columns, scales, grid, domain.magnitude, strict=True):
        if not size < step * 2.0**52:
            raise ValueError(
                f"scale {scale:g} is too small for column {column!r}, whose bounds reach {size:g}: "
                f"bounds must be below {2.0**52 * step / scale:.3g} times the scale. Raise the scale or move "
                "the column's origin."
            )


def flush(x: Floats, least: float) -> None:
    """Set what is smaller than `least` in absolute value, and nan, to zero in place.

    Arithmetic on subnormal numbers takes longer on many processors, which would show in the time; so this works on
    the bits.

    Parameters
    ----------
    x : ndarray, contiguous
    least : float
        Positive and normal.

    Examples
    --------
    >>> x = np.array([5e-324, -1e-310, 1.0, np.nan, np.inf])
    >>> flush(x, 1e-300)
    >>> x
    array([ 0.,  0.,  1.,  0., inf])
    """
    bits = x.view(np.int64)
    size = bits & _MAGNITUDE
    kept = (size >= np.float64(least).view(np.int64)) & (size <= np.float64(np.inf).view(np.int64))
    bits &= -kept.astype(np.int64)


def add_noise(x: Floats, noise: Iterable[Floats], scales: Floats, grid: Floats, round_: Rounder) -> None:
    """Replace x, shape (dim, rows) and inside the domain, by grid points of x + scale * noise in place.

    Parameters
    ----------
    x : ndarray of shape (dim, rows)
        Overwritten.
    noise : iterable of dim arrays of shape (rows,)
        Unit noise; each is overwritten before the next is asked for.
    scales, grid : ndarray of shape (dim,)
    round_ : callable
        Rounds a row of grid steps to integers in place.

    Examples
    --------
    >>> x = np.array([[0.25, 0.5]])
    >>> add_noise(x, [np.array([0.0, 1.0])], np.array([1024.0]), np.array([1.0]), nearest(None))
    >>> x
    array([[   0., 1024.]])
    """
    steps, inverse = scales / grid, 1.0 / grid
    whole = np.empty(x.shape[1])
    for j, unit in enumerate(noise):
        row = x[j]
        row *= inverse[j]
        np.floor(row, out=whole)
        row -= whole
        unit *= steps[j]
        row += unit
        round_(row)
        row += whole
        row *= grid[j]
        # -0.0 would tell the sign of a hidden value: adding 0.0 makes it 0.0.
        row += 0.0
