r"""Standard coordinates of a fit: columns centred and scaled by the released ones.

``x = m + d z`` and ``y = m_y + d_y v`` turn ``y = b_0 + x'b`` into ``v = t_0 + z't`` with
``b_j = d_y t_j / d_j`` and ``b_0 = m_y + d_y t_0 - m'b``: a linear map, applied to estimates and covariances
alike. Centres and scales come from one pass over blocks, whose means and squares are joined by the update of Chan,
Golub & LeVeque (1983).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Coordinates", "Spreads"]

Floats = NDArray[np.float64]
_ROWS = 4096


class Spreads:
    """Number, means, largest absolute values and centred squares of columns; those of two groups of records add up.

    Squares are kept in units of the largest value, so that they neither overflow nor vanish.

    Examples
    --------
    >>> one = Spreads.of([np.array([[0.0], [2.0]])])
    >>> one.plus(Spreads.of([np.array([[4.0]])])).deviation
    array([1.63299316])
    """

    def __init__(self, size: int) -> None:
        self.n, self.mean, self.peak, self.squares = 0, np.zeros(size), np.zeros(size), np.zeros(size)

    @classmethod
    def of(cls, tables: Iterable[Floats]) -> Spreads | None:
        """Take the columns of tables of shape (m, size), block by block; None if there are none."""
        out: Spreads | None = None
        for table in tables:
            out = out or cls(table.shape[1])
            for start in range(0, len(table), _ROWS):
                block = np.array(table[start : start + _ROWS].T, np.float64, order="C")  # sums along memory are fast
                own = cls(table.shape[1])
                own.n = block.shape[1]
                own.peak = np.maximum(block.max(axis=1), -block.min(axis=1))
                own.mean = block @ np.full(own.n, 1.0 / own.n)
                block -= own.mean[:, None]
                block /= _unit(own.peak)[:, None]
                own.squares = np.einsum("ij,ij->i", block, block)
                out.plus(own)
        return out

    def plus(self, other: Spreads) -> Spreads:
        """Add the records that follow."""
        n, peak = self.n + other.n, np.maximum(self.peak, other.peak)
        unit = _unit(peak)
        gap = (other.mean - self.mean) / unit
        old, new = (np.square(_unit(own.peak) / unit) * own.squares for own in (self, other))
        self.squares = old + new + gap**2 * (self.n * other.n / max(n, 1))
        self.mean = other.mean if not self.n else self.mean + (other.mean - self.mean) * (other.n / max(n, 1))
        self.n, self.peak = n, peak
        return self

    @property
    def relative(self) -> Floats:
        """Standard deviations over the largest absolute values (1 for a column of zeros)."""
        return np.asarray(np.sqrt(self.squares / max(self.n, 1)), float)

    @property
    def deviation(self) -> Floats:
        """Standard deviations."""
        return self.relative * _unit(self.peak)

    def about_zero(self) -> Floats:
        """Root mean squares over the largest absolute values."""
        return np.asarray(np.sqrt(self.squares / max(self.n, 1) + (self.mean / _unit(self.peak)) ** 2), float)


def _unit(peak: Floats) -> Floats:
    return np.where(peak > 0, peak, 1.0)


@dataclass(frozen=True)
class Coordinates:
    """Centres and scales of the columns and of the response.

    Examples
    --------
    >>> c = Coordinates.of(np.array([[0.0], [2.0]]), None, True)
    >>> c.design(np.array([[0.0], [2.0]]))
    array([[ 1.,  1.],
           [-1.,  1.]])
    """

    centre: Floats
    scale: Floats
    response_centre: float
    response_scale: float
    intercept: bool
    flat: NDArray[np.bool_]

    @classmethod
    def of(cls, x: Floats, response: Floats | None, intercept: bool) -> Coordinates:
        """Read centres and scales off the released columns (no centring without an intercept)."""
        spreads = Spreads.of([x])
        assert spreads is not None
        return cls.of_spreads(spreads, None if response is None else Spreads.of([response[:, None]]), intercept)

    @classmethod
    def of_spreads(cls, columns: Spreads, response: Spreads | None, intercept: bool) -> Coordinates:
        """Read centres and scales off what a pass over the records found.

        Parameters
        ----------
        columns : Spreads
        response : Spreads of one column, or None
        intercept : bool
        """
        unit = _unit(columns.peak)
        spread = columns.relative if intercept else columns.about_zero()
        flat = spread <= 1e-12
        scale = np.where(flat, 1.0, spread) * unit
        centre = columns.mean if intercept else np.zeros(unit.size)
        if response is None:
            return cls(centre, scale, 0.0, 1.0, intercept, flat)
        level = float(response.mean[0]) if intercept else 0.0
        width = float((response.relative if intercept else response.about_zero())[0])
        size = float(_unit(response.peak)[0])
        return cls(centre, scale, level, width * size if width > 1e-14 else size, intercept, flat)

    def design(self, x: Floats, sign: float = 1.0) -> Floats:
        """Feature-major standardised design, intercept first, shape (p, n)."""
        lead = int(self.intercept)
        out = np.empty((x.shape[1] + lead, x.shape[0]))
        out[:lead] = sign
        factor = sign / self.scale
        for start in range(0, x.shape[0], _ROWS):
            stop = min(start + _ROWS, x.shape[0])
            block = out[lead:, start:stop]
            block[...] = x[start:stop].T
            block -= self.centre[:, None]
            block *= factor[:, None]
        out[lead:][self.flat] = 0.0  # what centring a constant leaves is rounding
        return out

    def response(self, y: Floats) -> Floats:
        """Standardised response."""
        return np.asarray((y - self.response_centre) / self.response_scale, float)

    @property
    def matrix(self) -> Floats:
        """Map from standard to original coefficients, shape (p, p)."""
        slopes = self.response_scale / self.scale
        if not self.intercept:
            return np.diag(slopes)
        out = np.diag(np.concatenate([[self.response_scale], slopes]))
        out[0, 1:] = -self.centre * slopes
        return out

    def original(self, theta: Floats) -> Floats:
        """Coefficients in the units of the data, intercept first."""
        out = self.matrix @ theta
        if self.intercept:
            out[0] += self.response_centre
        return np.asarray(out, float)

    def covariance(self, standard: Floats) -> Floats:
        """Covariance in the units of the data; infinite variances stay, and spread to the intercept."""
        lost = ~np.isfinite(np.diag(standard))
        finite = np.where(np.isfinite(standard), standard, 0.0)
        out = self.matrix @ finite @ self.matrix.T
        if lost.any():
            reached = np.zeros(lost.size, bool)
            reached[lost] = True
            if self.intercept and (lost[1:] & (self.centre != 0.0)).any():
                reached[0] = True
            out[reached, :] = 0.0
            out[:, reached] = 0.0
            out[reached, reached] = np.inf
        return np.asarray((out + out.T) / 2.0, float)
