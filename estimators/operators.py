r"""From a noise law to its inverse operator: one registered function per law.

A law over some columns gives `Part` objects: a symbol `Factor` and the noise variance of each column, so that
the index ``u = a'x`` has ``q = (1/2) sum_j a_j^2 variance_j`` and the corrected loss is ``G(D^2; q) f``. New
laws register here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.symbols import Factor, Heat, Identity, Power, Resolvent
from privfit.mechanisms import (
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Law,
    RandomizedResponse,
    SymmetricLaplace,
    ZeroInflatedLaplace,
)

__all__ = ["Part", "additive_parts", "keep_probability"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Part:
    """One independent noise part.

    Attributes
    ----------
    factor : Factor
        Its inverse operator as a function of q.
    variances : ndarray
        Diagonal of the law's Sigma, in the square of each coordinate's unit; see `covariance`.
    moments_only : bool
        The factor has the variance of the noise, but inverts it on polynomials up to degree 3 only.

    Examples
    --------
    >>> Part(Power(1), np.array([0.5])).variances
    array([0.5])
    """

    factor: Factor
    variances: Floats
    moments_only: bool = False

    @property
    def share(self) -> float:
        """Variance of the noise as a share of Sigma: 1 - delta0 under zero inflation, else 1."""
        return -2.0 * float(self.factor(0.5, 0).series(1)[1])  # G = 1 - (variance / 2) D^2 + ...

    @property
    def covariance(self) -> Floats:
        """Variance of the noise of each coordinate."""
        return np.asarray(self.share * self.variances, float)


@singledispatch
def additive_parts(law: Law, dim: int) -> list[Part]:
    """Return the independent parts of an additive law over `dim` coordinates.

    Raises
    ------
    TypeError
        If the law has no registered inverse operator.

    Examples
    --------
    >>> [part.variances.tolist() for part in additive_parts(Laplace(1.0), 2)]
    [[2.0, 0.0], [0.0, 2.0]]
    """
    raise TypeError(
        f"noise must be an additive law for these columns, got {type(law).__name__}. Use Gaussian, Laplace, "
        "SymmetricLaplace or ZeroInflatedLaplace for numbers, RandomizedResponse for a label only."
    )


@additive_parts.register
def _(law: SymmetricLaplace, dim: int) -> list[Part]:
    return [Part(Power(int(law.shape)), law.scales(dim) ** 2)]


@additive_parts.register
def _(law: ZeroInflatedLaplace, dim: int) -> list[Part]:
    delta0 = float(law.delta0)
    factor: Factor = Resolvent(delta0) if delta0 > 0.0 else Power(1)
    return [Part(factor if delta0 < 1.0 else Identity(), law.scales(dim) ** 2)]


@additive_parts.register
def _(law: Gaussian, dim: int) -> list[Part]:
    return [Part(Heat(), law.scales(dim) ** 2)]


@additive_parts.register
def _(law: Laplace, dim: int) -> list[Part]:
    return [Part(Power(1), row) for row in np.diag(2.0 * law.scales(dim) ** 2)]


@additive_parts.register
def _(law: DiscreteLaplace, dim: int) -> list[Part]:
    # Its inverse on the index is a difference operator with steps grid_j a_j, beside D^2 on low polynomials.
    variances = np.broadcast_to(law.variance, law.scales(dim).shape)
    return [Part(Power(1), row, moments_only=True) for row in np.diag(variances)]


@singledispatch
def keep_probability(law: Law) -> float:
    """Return the probability that a label is released as it is.

    Raises
    ------
    TypeError
        If the law is not a randomised response.

    Examples
    --------
    >>> round(keep_probability(RandomizedResponse(1.0)), 4)
    0.7311
    """
    raise TypeError(
        f"noise of a class label must be RandomizedResponse, got {type(law).__name__}. Numbers added "
        "to a label make it no label; release it with RandomizedResponse(epsilon). For a numeric response use "
        "LinearRegression or QuantileRegression."
    )


@keep_probability.register
def _(law: RandomizedResponse) -> float:
    return float(law.keep_probability)  # above 1/2 for every epsilon the law admits
