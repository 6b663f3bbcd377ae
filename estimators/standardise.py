r"""Standard coordinates of a fit: columns centred and scaled by the released ones.

``x = m + d z`` and ``y = m_y + d_y v`` turn ``y = b_0 + x'b`` into ``v = t_0 + z't`` with
``b_j = d_y t_j / d_j`` and ``b_0 = m_y + d_y t_0 - m'b``: a linear map, applied to estimates and covariances
alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Coordinates"]

Floats = NDArray[np.float64]
_ROWS = 4096
Blocks = Callable[[], Iterator[tuple[Floats, Floats | None]]]


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
        return cls.of_blocks(lambda: iter([(x, response)]), len(x), intercept)

    @classmethod
    def of_blocks(cls, read: Blocks, n: int, intercept: bool) -> Coordinates:
        """Read centres and scales off `n` records that come in blocks, in two passes.

        Parameters
        ----------
        read : callable
            Returns an iterator of (columns, response or None), anew for each pass.
        n : int
        intercept : bool
        """
        peak, mean = np.zeros(1), np.zeros(1)
        size, level, labelled = 0.0, 0.0, True
        for x, response in read():
            peak = np.maximum(peak, np.maximum(x.max(axis=0, initial=-np.inf), -x.min(axis=0, initial=np.inf)))
            mean = mean + (np.ones(len(x)) / n) @ x
            if response is not None:
                labelled = False
                level += float(response.mean()) * (len(x) / n) if len(x) else 0.0
                size = max(size, float(np.abs(response).max(initial=0.0)))
        unit, size = np.where(peak > 0, peak, 1.0), size or 1.0
        centre, level = (mean, level) if intercept else (np.zeros(mean.size), 0.0)
        squares, residual = np.zeros(mean.size), 0.0
        for x, response in read():
            for start in range(0, len(x), _ROWS):
                block = (x[start : start + _ROWS] - centre) / unit
                squares += np.einsum("ij,ij->j", block, block)
            if response is not None:
                residual += float(np.sum(((response - level) / size) ** 2))
        spread = np.sqrt(squares / n)
        flat = spread <= 1e-12
        scale = np.where(flat, 1.0, spread) * unit
        if labelled:
            return cls(centre, scale, 0.0, 1.0, intercept, flat)
        width = float(np.sqrt(residual / n))
        return cls(centre, scale, level, width * size if width > 1e-14 else size, intercept, flat)

    def design(self, x: Floats, sign: float = 1.0) -> Floats:
        """Feature-major standardised design, intercept first, shape (p, n)."""
        lead = int(self.intercept)
        out = np.empty((x.shape[1] + lead, x.shape[0]))
        out[:lead] = sign
        factor = sign / self.scale
        for start in range(0, x.shape[0], _ROWS):
            stop = min(start + _ROWS, x.shape[0])
            np.multiply((x[start:stop] - self.centre).T, factor[:, None], out=out[lead:, start:stop])
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
