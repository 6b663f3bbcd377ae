r"""Check loss ``rho_tau(r) = r (tau - 1[r < 0])`` and its convolution with a logistic kernel.

Smoothing with bandwidth h: ``rho_h(r) = tau r + h log(1 + e^{-r/h})``, a rescaled logistic loss, so every
exact inverse that the logistic loss has applies to it. It is minimised in expectation by the quantile of
``r + h Logistic``: a bias of order h^2 (Wang, Stefanski & Zhu 2012 smooth the same kink for normal and
Laplace errors).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from privfit.accounting.validation import check_number
from privfit.estimators.losses.base import Floats
from privfit.estimators.losses.piecewise import PiecewiseLoss
from privfit.estimators.losses.smoothed import SmoothedLoss

__all__ = ["CheckLoss", "SmoothedCheckLoss"]


class CheckLoss(PiecewiseLoss):
    """``rho_tau(r) = r (tau - 1[r < 0])``, minimised in expectation by the tau-quantile.

    Parameters
    ----------
    quantile : float
        tau in (0, 1).

    Examples
    --------
    >>> CheckLoss(0.25).value([-2.0, 2.0])
    array([1.5, 0.5])
    """

    kinks = (0.0,)
    jumps = ((0.0, 1, 1.0),)

    def __init__(self, quantile: float = 0.5) -> None:
        self.quantile = check_number("quantile", quantile, 0.0, 1.0, low_open=True, high_open=True)
        self.left = (0.0, self.quantile - 1.0)

    @property
    def said(self) -> str:
        """What messages call this loss."""
        return f"the check loss of the quantile {self.quantile:g}"

    def derivative(self, u: ArrayLike, order: int = 1) -> Floats:
        """See `IndexLoss.derivative`."""
        r = np.asarray(u, float)
        slope = self.quantile - (r < 0)
        return np.asarray((r * slope, slope + 0.0 * r)[order] if order < 2 else np.zeros_like(r), float)


class SmoothedCheckLoss(SmoothedLoss):
    """``rho_h(r) = tau r + h log(1 + e^{-r/h})``: the check loss averaged over ``h Logistic``.

    Parameters
    ----------
    quantile : float
        tau in (0, 1).
    bandwidth : float
        h > 0, in units of r.
    order : {2, 4}
        Order of the bias in h. 2: the logistic kernel itself (a convex loss). 4: ``(1 - (pi h)^2 D^2 / 6)``
        applied to it, which removes the h^2 term (the logistic variance is ``(pi h)^2 / 3``).

    Examples
    --------
    >>> SmoothedCheckLoss(0.5, 1e-3).value([2.0])
    array([1.])
    """

    def __init__(self, quantile: float, bandwidth: float, order: int = 2) -> None:
        super().__init__(CheckLoss(quantile), bandwidth, order)
        self.quantile = float(quantile)
