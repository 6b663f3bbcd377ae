"""The probability of a spherical cap, P[cos(angle) > 1 - r], for a uniform direction in R^d and 0 <= r <= 1.

With ``x = r (2 - r) = 1 - (1 - r)^2`` and ``a = (d - 1)/2`` it is half an incomplete beta function,

    P = I_x(a, 1/2) / 2 = x^a e^g(r),      g = -log(2 a B(a, 1/2)) + log( sqrt(1-x) F(a + 1/2, 1; a + 1; x) )

(DLMF 8.17.8). g is smooth on [0, 1] and small for every d: it is tabulated once for every dimension by quintics on
cells of width proportional to d^(-1/2). The logarithm of P is exact where P itself would underflow.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["log_cap_probability"]

Floats = NDArray[np.float64]
DEGREE = 5


def log_cap_probability(dim: int, reach: Floats) -> Floats:
    """Log P[cos(angle) > 1 - reach] for a uniform direction in R^dim.

    Parameters
    ----------
    dim : int
    reach : array
        In [0, 1].

    Returns
    -------
    array

    Examples
    --------
    >>> value = np.exp(log_cap_probability(3, np.array([0.0, 0.3, 1.0])))     # Archimedes: half the reach
    >>> [round(float(v), 12) for v in value]
    [0.0, 0.15, 0.5]
    """
    with np.errstate(divide="ignore"):
        if dim == 1:
            return np.where(reach > 0, math.log(0.5), -np.inf)
        if dim == 3:
            return np.log(0.5 * reach)
        table = _table(dim)
        position = reach * table.shape[1]
        cell = np.minimum(position.astype(np.intp), table.shape[1] - 1)
        x = position - cell
        c = table.take(cell, axis=1)
        smooth = c[0] + x * (c[1] + x * (c[2] + x * (c[3] + x * (c[4] + x * c[5]))))
        logarithm = np.log(reach * (2 - reach))
        if dim > 100:  # so that rounding is not multiplied by a where the cap is nearly a half-sphere
            logarithm = np.where(reach > 0.5, np.log1p(-np.square(1 - reach)), logarithm)
        return (dim - 1) / 2 * logarithm + smooth


@lru_cache(maxsize=32)
def _table(dim: int) -> Floats:
    """Coefficients of g in the variable x in [0, 1] of every cell, by interpolation at Chebyshev points."""
    cells = max(40, math.ceil(24 * math.sqrt(dim)))
    points = 0.5 - 0.5 * np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))
    reach = (np.arange(cells) + points[:, None]) / cells
    centred = np.linalg.solve(np.vander(2 * points - 1, increasing=True), _smooth_part(dim, reach))
    # from the centred variable 2x - 1 to x
    shift = np.array([[math.comb(j, i) * 2.0**i * (-1.0) ** (j - i) for j in range(6)] for i in range(6)])
    return np.ascontiguousarray(shift @ centred)


def _smooth_part(dim: int, reach: Floats) -> Floats:
    """The function g at any reach in (0, 1)."""
    from scipy.special import betaincc, betaln

    a = (dim - 1) / 2
    square = reach * (2 - reach)
    value = np.empty_like(reach)
    # the incomplete beta function from its accurate side, unless it is tiny
    plain = (square > 0.5) & (a * np.log(square) > -500.0)
    value[plain] = np.log(0.5 * betaincc(0.5, a, np.square(1 - reach[plain]))) - a * np.log(square[plain])
    x = square[~plain]
    total = term = np.ones_like(x)
    n = 0
    while np.any(term > 1e-17 * total):
        term = term * x * ((a + 0.5 + n) / (a + 1 + n))
        total = total + term
        n += 1
    value[~plain] = 0.5 * np.log1p(-x) + np.log(total) - math.log(2 * a) - betaln(a, 0.5)
    return value
