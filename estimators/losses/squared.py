"""Squared loss ``f(u) = u^2 / 2``; the correction subtracts half the variance that the noise adds."""

from __future__ import annotations

from privfit.estimators.losses.polynomial import PolynomialLoss

__all__ = ["SquaredLoss"]


class SquaredLoss(PolynomialLoss):
    """``f(u) = u^2 / 2`` (half the squared residual, so that the Hessian is the Gram matrix).

    Examples
    --------
    >>> SquaredLoss().value([3.0])
    array([4.5])
    """

    def __init__(self) -> None:
        super().__init__([0.0, 0.0, 0.5])
