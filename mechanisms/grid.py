r"""Rounding to a grid: Y = g (X + rint(f + V)) with x/g = X + f exactly and V = Z/g.

A float x + Z betrays x in its low bits (Mironov 2012). Here every output is a multiple of the declared grid
g = 2^(floor(log2 scale) - 10), the same for all inputs: x/g splits exactly into an integer and a fraction,
and rounding the sum is post-processing of the stated continuous law. Exact while |x|/g < 2^52.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["add_noise", "check_grid", "grid_of"]

Floats = NDArray[np.float64]


def grid_of(scales: Floats) -> Floats:
    """Return the grid of each coordinate: a power of two with scale/g in [2^10, 2^11).

    Examples
    --------
    >>> grid_of(np.array([1.0, 1.5, 1024.0]))
    array([9.765625e-04, 9.765625e-04, 1.000000e+00])
    """
    return np.asarray(np.ldexp(1.0, np.frexp(scales)[1] - 11), dtype=np.float64)


def check_grid(scales: Floats, domain: Any) -> Floats:
    """Return the grids of a law's scales on a domain, or raise if the domain does not fit on them.

    Parameters
    ----------
    scales : ndarray of shape (dim,)
    domain : Box or Ball

    Returns
    -------
    ndarray of shape (dim,)

    Raises
    ------
    ValueError
        If some |bound| is 2^52 grid steps or more, so that sums would not be exact.

    Examples
    --------
    >>> from privfit.mechanisms import Box
    >>> check_grid(np.array([2.0]), Box({"age": (17, 90)}))
    array([0.00195312])
    """
    grid = grid_of(scales)
    for column, scale, step, size in zip(domain.columns, scales, grid, domain.magnitude, strict=True):
        if not size < step * 2.0**52:
            raise ValueError(
                f"scale {scale:g} is too small for column {column!r}, whose bounds reach {size:g}: "
                "bounds must be below 2^42 times the scale. Raise the scale or move the column's origin."
            )
    return grid


def add_noise(x: Floats, noise: Iterable[Floats], scales: Floats, grid: Floats) -> None:
    """Replace x, shape (dim, rows) and inside the domain, by grid points of x + scale * noise in place.

    Parameters
    ----------
    x : ndarray of shape (dim, rows)
        Overwritten.
    noise : iterable of dim arrays of shape (rows,)
        Unit noise; each is overwritten before the next is asked for.
    scales, grid : ndarray of shape (dim,)

    Examples
    --------
    >>> x = np.array([[0.25, 0.5]])
    >>> add_noise(x, [np.array([0.0, 1.0])], np.array([1024.0]), np.array([1.0]))
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
        np.rint(row, out=row)
        row += whole
        row *= grid[j]
        # -0.0 would tell the sign of a hidden value: adding 0.0 makes it 0.0.
        row += 0.0
