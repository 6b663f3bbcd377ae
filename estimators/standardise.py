r"""Standard coordinates of a fit: columns centred and scaled by the released ones.

``x = m + d z`` and ``y = m_y + d_y v`` turn ``y = b_0 + x'b`` into ``v = t_0 + z't`` with
``b_j = d_y t_j / d_j`` and ``b_0 = m_y + d_y t_0 - m'b``: a linear map, applied to estimates and covariances
alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Coordinates"]

Floats = NDArray[np.float64]
_ROWS = 4096


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
        peak = np.maximum(np.abs(x.max(axis=0)), np.abs(x.min(axis=0)))
        unit = np.where(peak > 0, peak, 1.0)
        mean = (np.ones(x.shape[0]) / x.shape[0]) @ x
        centre = mean if intercept else np.zeros(x.shape[1])
        squares = np.zeros(x.shape[1])
        for start in range(0, x.shape[0], _ROWS):
            block = (x[start : start + _ROWS] - centre) / unit
            squares += np.einsum("ij,ij->j", block, block)
        spread = np.sqrt(squares / x.shape[0])
        flat = spread <= 1e-12
        scale = np.where(flat, 1.0, spread) * unit
        if response is None:
            return cls(centre, scale, 0.0, 1.0, intercept, flat)
        level = float(response.mean()) if intercept else 0.0
        size = float(np.abs(response).max(initial=0.0)) or 1.0
        width = float(np.sqrt(np.mean(((response - level) / size) ** 2)))
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
