r"""Check loss ``rho_tau(r) = r (tau - 1[r < 0])`` and its convolution with a logistic kernel.

Smoothing with bandwidth h: ``rho_h(r) = tau r + h log(1 + e^{-r/h})``, a rescaled logistic loss, so every
exact inverse that the logistic loss has applies to it. It is minimised in expectation by the quantile of
``r + h Logistic``: a bias of order h^2 (Wang, Stefanski & Zhu 2012 smooth the same kink for normal and
Laplace errors).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from privfit.accounting.validation import check_choice, check_number
from privfit.estimators.losses.base import Floats, IndexLoss, Kernel, Request
from privfit.estimators.losses.logistic import LogisticLoss
from privfit.estimators.losses.piecewise import PiecewiseLoss
from privfit.estimators.symbols import Symbol

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

    def derivative(self, u: ArrayLike, order: int = 1) -> Floats:
        """See `IndexLoss.derivative`."""
        r = np.asarray(u, float)
        slope = self.quantile - (r < 0)
        return np.asarray((r * slope, slope + 0.0 * r)[order] if order < 2 else np.zeros_like(r), float)


class SmoothedCheckLoss(IndexLoss):
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
        self.quantile = check_number("quantile", quantile, 0.0, 1.0, low_open=True, high_open=True)
        self.bandwidth = check_number("bandwidth", bandwidth, 0.0, low_open=True)
        self.order = int(check_choice("order", order, (2, 4)))
        self._sharpen = Symbol((1.0,) if self.order == 2 else (1.0, -((np.pi * self.bandwidth) ** 2) / 6.0))
        self._logistic = LogisticLoss()

    def derivative(self, u: ArrayLike, order: int = 1) -> Floats:
        """See `IndexLoss.derivative`."""
        r = np.asarray(u, float)
        return self.compile([(Symbol(), order)])(np.atleast_1d(r))[0].reshape(r.shape)

    def compile(self, requests: Sequence[Request]) -> Kernel:
        """See `IndexLoss.compile`: the logistic kernel in the variable ``v = r / h``."""
        h = self.bandwidth
        inner = self._logistic.compile([((symbol * self._sharpen).rescaled(h), order) for symbol, order in requests])
        constants = [symbol.numerator[0] for symbol, _ in requests]

        def kernel(u: Floats) -> list[Floats]:
            answers = inner(u / h)
            for place, ((_, order), constant) in enumerate(zip(requests, constants, strict=True)):
                answers[place] *= h ** (1 - order)
                if constant and order < 2:
                    answers[place] += constant * self._line(u, order)
            return answers

        return kernel

    def _line(self, r: Floats, order: int) -> Floats | float:
        """Return the linear part: softplus(-v) = softplus(v) - v."""
        if order > 1:
            return 0.0
        slope = self.quantile - 1.0
        return slope * r if order == 0 else slope
