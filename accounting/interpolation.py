"""Smooth functions that are costly to evaluate, as piecewise Chebyshev interpolants made on demand.

An interval is halved until the last coefficients of its interpolant are below the tolerance; for an analytic
function the error of the interpolant is then of that order (Trefethen, "Approximation Theory and
Approximation Practice", theorem 8.2).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.polynomial.chebyshev import chebval
from numpy.typing import NDArray

__all__ = ["Interpolant"]

Floats = NDArray[np.float64]
DEGREE = 32
LAST = 4  # coefficients that must be negligible
DEPTH = 10

_NODES = np.cos(np.pi * (np.arange(DEGREE + 1)[::-1] + 0.5) / (DEGREE + 1))
_TRANSFORM = np.cos(np.outer(np.arange(DEGREE + 1), np.arccos(_NODES))) * (2.0 / (DEGREE + 1))
_TRANSFORM[0] *= 0.5


class Interpolant:
    """Interpolant of a function with several values on the unit intervals [n, n + 1).

    Parameters
    ----------
    function : callable
        Maps an array of shape (m,) to an array of shape (k, m).
    tolerance : float
        Of the last coefficients, absolute.

    Examples
    --------
    >>> sine = Interpolant(lambda x: np.sin(x)[None], 1e-15)
    >>> bool(np.allclose(sine(np.array([0.3, 5.7])), np.sin([0.3, 5.7]), rtol=1e-14))
    True
    """

    def __init__(self, function: Callable[[Floats], Floats], tolerance: float) -> None:
        self._function, self._tolerance = function, tolerance
        self._pieces: dict[int, tuple[Floats, list[Floats]]] = {}

    def __call__(self, x: Floats) -> Floats:
        """Values at x of shape (m,); shape (k, m)."""
        unit = np.floor(x).astype(int)
        parts = []
        for n in np.unique(unit):
            here = np.flatnonzero(unit == n)
            starts, coefficients = self._piece(int(n))
            cell = np.searchsorted(starts, x[here], side="right") - 1
            for i in np.unique(cell):
                at = here[cell == i]
                end = starts[i + 1] if i + 1 < len(starts) else n + 1.0
                local = 2 * (x[at] - starts[i]) / (end - starts[i]) - 1
                parts.append((at, chebval(local, coefficients[i].T)))
        result = np.empty((parts[0][1].shape[0] if parts else 1, x.size))
        for at, values in parts:
            result[:, at] = values
        return result

    def _piece(self, n: int) -> tuple[Floats, list[Floats]]:
        if n not in self._pieces:
            cells = self._split(float(n), n + 1.0, 0)
            self._pieces[n] = np.array([low for low, _ in cells]), [c for _, c in cells]
        return self._pieces[n]

    def _split(self, low: float, high: float, depth: int) -> list[tuple[float, Floats]]:
        values = self._function(low + (high - low) * 0.5 * (1 + _NODES))
        coefficients = values @ _TRANSFORM.T
        # rounding noise does not fall when an interval is split: it is accepted the more readily the deeper
        if depth == DEPTH or np.abs(coefficients[:, -LAST:]).max() <= self._tolerance * 4.0**depth:
            return [(low, coefficients)]
        middle = 0.5 * (low + high)
        return self._split(low, middle, depth + 1) + self._split(middle, high, depth + 1)
