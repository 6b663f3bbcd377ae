r"""Noise for predictions: moments of a noise part, and draws that all mechanisms share.

Every part is ``sqrt(W) N(0, Sigma)`` with its own W per record: 1 for Gaussian noise, Gamma(k)/k for shape k, and
zero with probability delta0, else exponential, for zero-inflated noise. The same normal and uniform numbers make
the noise of every mechanism (common random numbers), so that their order does not depend on luck. With

    E W = m,   E W^2 = kappa m^2     (kappa: 1, 1 + 1/k, 2/(1 - delta0)),

the covariance of a part is ``m Sigma`` and its fourth moments are kappa times those of a normal vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.operators import Part
from privfit.estimators.symbols import Factor, Heat, Identity, Power, Resolvent

__all__ = ["CommonNumbers", "mixing_moments"]

Floats = NDArray[np.float64]


def mixing_moments(factor: Factor) -> tuple[float, float]:
    """Return ``(E W, E W^2 / (E W)^2)`` of the noise that an inverse operator belongs to.

    Parameters
    ----------
    factor : Factor

    Raises
    ------
    TypeError
        For an operator that is not registered here.

    Examples
    --------
    >>> mixing_moments(Power(2)), mixing_moments(Resolvent(0.5))
    ((1.0, 1.5), (0.5, 4.0))
    """
    if isinstance(factor, Power):
        return 1.0, 1.0 + 1.0 / factor.shape
    if isinstance(factor, Resolvent):
        return 1.0 - factor.delta0, 2.0 / (1.0 - factor.delta0)
    if isinstance(factor, Heat):
        return 1.0, 1.0
    if isinstance(factor, Identity):
        return 0.0, 1.0
    raise TypeError(f"planning has no noise for the operator {type(factor).__name__}. Plan with another law.")


@dataclass(frozen=True, eq=False)
class CommonNumbers:
    """Normal and uniform numbers from which the noise of every mechanism is made.

    Attributes
    ----------
    normal : ndarray, shape (m, d + 1)
        One per coordinate, response last.
    uniform : ndarray, shape (m, d + 2)
        One per part, and a last one for labels.

    Examples
    --------
    >>> CommonNumbers.draw(3, 2, 0).noise([Part(Heat(), np.array([1.0, 0.0, 0.0]))]).shape
    (3, 3)
    """

    normal: Floats
    uniform: Floats

    @classmethod
    def draw(cls, rows: int, dim: int, random_state: int) -> CommonNumbers:
        """Draw numbers for `rows` records of `dim` columns and a response."""
        rng = np.random.default_rng(random_state)
        return cls(rng.standard_normal((rows, dim + 1)), rng.random((rows, dim + 2)))

    def noise(self, parts: Sequence[Part]) -> Floats:
        """Return noise of all parts together, shape (m, d + 1)."""
        total = np.zeros_like(self.normal)
        for place, part in enumerate(parts):
            radius = np.sqrt(_mixing(part.factor, self.uniform[:, place]))
            for j in np.flatnonzero(part.variances):
                total[:, j] += np.sqrt(part.variances[j]) * radius * self.normal[:, j]
        return total

    def flipped(self, labels: Floats, keep: float) -> Floats:
        """Return 0/1 labels after a randomised response that keeps each with probability `keep`."""
        return np.where(self.uniform[:, -1] < keep, labels, 1.0 - labels)


def _mixing(factor: Factor, uniform: Floats) -> Floats:
    """W of every record, by inversion."""
    if isinstance(factor, Power) and factor.shape > 1:
        from scipy.special import gammainccinv

        return np.asarray(gammainccinv(factor.shape, uniform) / factor.shape, float)
    if isinstance(factor, Power):
        return -np.log1p(-uniform)
    if isinstance(factor, Resolvent):
        d = factor.delta0
        left = np.clip((1.0 - uniform) / (1.0 - d), 1e-300, 1.0)  # the largest uniforms are exact records
        return np.where(uniform < d, 0.0, -np.log(left))
    return np.full(uniform.size, mixing_moments(factor)[0])
