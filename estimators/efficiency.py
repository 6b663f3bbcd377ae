r"""What privacy cost, from the release alone.

The raw-data fit would have covariance ``V^-1 A_oracle V^-1 / n``. Its V is the expectation of the corrected
Hessian, and ``A_oracle`` follows from V (logistic: information equality ``A_oracle = V``; least squares:
``sigma^2 V`` with the corrected residual variance; quantiles: ``tau (1 - tau) E xx'`` with the corrected Gram
matrix); where it is known well enough, ``A_oracle`` is estimated without such an assumption (`squared_score`), and the
report says which was used. A fit without noise is the raw-data fit: factor 1 and n effective records, by definition.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["RIDGE", "Efficiency", "compare", "unavailable", "unchanged"]

Floats = NDArray[np.float64]
NO_NOISE = "no noise"
NOT_ESTIMATED = "not estimated"
"""How an assumption begins that says why there is no estimate for the raw data."""
RIDGE = f"{NOT_ESTIMATED}: the stabilising ridge shrank this fit, so its standard errors do not compare"
INFINITE = f"{NOT_ESTIMATED}: a standard error on the release is infinite"
INDEFINITE = (
    f"{NOT_ESTIMATED}: the estimate of the raw-data covariance is not positive definite, so the noise, or too few "
    "clusters, hide it"
)
SINGULAR = (
    f"{NOT_ESTIMATED}: the covariance on the release is singular, as it is with fewer clusters than coefficients"
)


@dataclass(frozen=True)
class Efficiency:
    """Growth of the standard errors against the same model fitted to the raw data.

    Attributes
    ----------
    factors : ndarray, shape (p,)
        Standard error on the release over that on the raw data, per coefficient; inf if not available.
    overall : float
        Geometric mean over directions (the root of the ratio of generalised variances): by how much the joint
        confidence region grew in each. Directions without noise count, so it may be below every factor.
    n : int
        Records in the release.
    n_effective : float
        ``n / overall^2``: the number of raw records that would estimate as well.
    assumption : str
        How the raw-data covariance was estimated.

    Examples
    --------
    >>> compare(4 * np.eye(2), np.eye(2), 100, "example").n_effective
    25.0
    """

    factors: Floats
    overall: float
    n: int
    n_effective: float
    assumption: str

    def __str__(self) -> str:
        if self.assumption == NO_NOISE:
            return "no noise: standard errors are those of the raw data"
        if not np.isfinite(self.overall):
            why = self.assumption if self.assumption.startswith(NOT_ESTIMATED) else "see warnings"
            return f"standard errors against raw data: not available ({why})"
        low, high = f"{self.factors.min():.3g}", f"{self.factors.max():.3g}"
        grew = high if low == high else f"{low} to {high}"
        jointly = "" if self.factors.size == 1 else f"jointly (a factor {self.overall:.3g} per direction) "
        return (
            f"standard errors grew by a factor of {grew}; "
            f"{jointly}{self.n:,} released records are worth {self.n_effective:,.0f} raw ones"
        )


def unchanged(size: int, n: int) -> Efficiency:
    """Return the efficiency of a fit without noise: every factor is exactly 1.

    Parameters
    ----------
    size : int
        Number of coefficients.
    n : int
        Records.

    Examples
    --------
    >>> str(unchanged(2, 50))
    'no noise: standard errors are those of the raw data'
    """
    return Efficiency(np.ones(size), 1.0, n, float(n), NO_NOISE)


def unavailable(size: int, n: int, assumption: str) -> Efficiency:
    """Return the efficiency of a fit whose standard errors are missing or not to be trusted.

    Parameters
    ----------
    size : int
        Number of coefficients.
    n : int
        Records.
    assumption : str
        Stated in the report.

    Examples
    --------
    >>> str(unavailable(2, 50, "example"))
    'standard errors against raw data: not available (see warnings)'
    """
    return Efficiency(np.full(size, np.inf), np.inf, n, 0.0, assumption)


def compare(covariance: Floats, oracle: Floats, n: int, assumption: str) -> Efficiency:
    """Compare two covariance matrices of the same coefficients.

    Parameters
    ----------
    covariance, oracle : ndarray, shape (p, p)
        On the release, and estimated for the raw data.
    n : int
        Records.
    assumption : str
        Stated in the report; where there is no comparison, the reason takes its place.

    Examples
    --------
    >>> compare(np.diag([4.0, 1.0]), np.eye(2), 10, "example").factors
    array([2., 1.])
    """
    spread, raw = np.diag(covariance), np.diag(oracle)
    if assumption.startswith(NOT_ESTIMATED):
        return unavailable(spread.size, n, assumption)
    if not np.isfinite(spread).all():
        return unavailable(spread.size, n, INFINITE)
    (sign, log_oracle), (own, log_own) = np.linalg.slogdet(oracle), np.linalg.slogdet(covariance)
    if not (np.isfinite(raw).all() and raw.min(initial=1.0) > 0 and sign > 0):
        return unavailable(spread.size, n, INDEFINITE)
    if not own > 0:
        return unavailable(spread.size, n, SINGULAR)
    overall = float(np.exp((log_own - log_oracle) / (2 * spread.size)))
    return Efficiency(np.sqrt(spread / raw), overall, n, n / overall**2, assumption)
