r"""Confidence regions: the ellipsoid ``(b - b^)' C^-1 (b - b^) <= r^2`` of values that a Wald test does not reject.

``r^2`` is the quantile of chi-squared with m degrees of freedom (m times that of F with (m, G - 1) for G clusters),
the volume ``pi^{m/2} / Gamma(m/2 + 1) r^m sqrt(det C)``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.accounting.validation import check_array, check_integer, check_number
from privfit.estimators.inference import full_rank

__all__ = ["ConfidenceRegion"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ConfidenceRegion:
    """An ellipsoid around estimates.

    Attributes
    ----------
    centre : ndarray, shape (m,)
    covariance : ndarray, shape (m, m)
    radius : float
        In standard deviations.
    level : float

    Examples
    --------
    >>> region = ConfidenceRegion.of(np.zeros(2), np.eye(2), 0.95)
    >>> region.contains([[2.4, 0.0], [2.5, 0.0]])
    array([ True, False])
    """

    centre: Floats
    covariance: Floats
    radius: float
    level: float

    @classmethod
    def of(cls, centre: Floats, covariance: Floats, level: float, freedom: float = np.inf) -> ConfidenceRegion:
        """Return the region of the given coverage.

        Parameters
        ----------
        centre : ndarray, shape (m,)
        covariance : ndarray, shape (m, m)
        level : float
            Coverage in (0, 1).
        freedom : float
            Degrees of freedom of the covariance.

        Raises
        ------
        ValueError
            If the covariance is infinite or singular.
        """
        from scipy.special import fdtri, gammaincinv

        wanted = check_number("level", level, 0.0, 1.0, low_open=True, high_open=True)
        if not np.isfinite(covariance).all():
            raise ValueError("contrasts must involve identified coefficients only: a standard error is infinite.")
        if not full_rank(covariance):
            raise ValueError("contrasts must have independent rows with positive variances; drop some.")
        m = centre.size
        square = 2.0 * gammaincinv(m / 2.0, wanted) if np.isinf(freedom) else m * fdtri(m, freedom, wanted)
        return cls(centre, covariance, float(np.sqrt(square)), wanted)

    def contains(self, points: ArrayLike) -> NDArray[np.bool_]:
        """Whether each point is in the region.

        Parameters
        ----------
        points : array_like, shape (..., m)

        Returns
        -------
        ndarray of bool, shape (...)

        Raises
        ------
        ValueError
            If the points have another number of coordinates.
        """
        given = check_array("points", points)
        if given.ndim == 0 or given.shape[-1] != self.centre.size:
            raise ValueError(f"points must have {self.centre.size} coordinates, got shape {given.shape}.")
        root = np.linalg.cholesky(self.covariance)
        gap = np.linalg.solve(root, (given - self.centre).reshape(-1, self.centre.size).T)
        return np.asarray((gap**2).sum(axis=0) <= self.radius**2, bool).reshape(given.shape[:-1])

    @property
    def volume(self) -> float:
        """Volume in the units of the parameters."""
        from scipy.special import gammaln

        m = self.centre.size
        log_ball = 0.5 * m * np.log(np.pi) - gammaln(0.5 * m + 1.0)
        return float(np.exp(log_ball + m * np.log(self.radius) + 0.5 * np.linalg.slogdet(self.covariance)[1]))

    def boundary(self, points: int = 200) -> Floats:
        """Points on the boundary of a region in the plane, shape (points, 2), the last equal to the first.

        Parameters
        ----------
        points : int

        Raises
        ------
        ValueError
            If the region is not in the plane.
        """
        count = check_integer("points", points, 4)
        if self.centre.size != 2:
            raise ValueError(
                f"boundary draws regions of 2 coefficients, got {self.centre.size}. Choose two by contrasts=."
            )
        angle = np.linspace(0.0, 2.0 * np.pi, count)
        circle = np.stack([np.cos(angle), np.sin(angle)])
        return np.asarray(self.centre + self.radius * (np.linalg.cholesky(self.covariance) @ circle).T, float)
