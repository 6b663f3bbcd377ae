r"""Kinked losses averaged over a narrow logistic kernel, so that every exact inverse applies to them.

A piecewise loss is its polynomial on the left plus one-sided powers at its kinks, ``c (u - k)_+^j / j!``. Averaged
over ``h Logistic`` these are ``c h^j F_j((u - k) / h)`` with ``F_1(v) = log(1 + e^v)``, ``F_0 = F_1'`` and
``F_2(v) = -Li_2(-e^v)``, ``F_2' = F_1``: operators on them are operators on the logistic loss, one derivative up or
down (``G F_2 = c F_2 + R F_0`` with ``G(z) = c + z R(z)``). The kernel of order 4, ``1 - (pi h)^2 D^2 / 6`` times the
logistic one, has no h^2 bias. (Wang, Stefanski & Zhu 2012 smooth the check loss for normal and Laplace errors.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from privfit.accounting.validation import check_choice, check_number
from privfit.estimators.losses.base import Floats, IndexLoss, Kernel, Request
from privfit.estimators.losses.logistic import LogisticLoss
from privfit.estimators.losses.piecewise import PiecewiseLoss
from privfit.estimators.losses.polynomial import PolynomialLoss
from privfit.estimators.symbols import Symbol

__all__ = ["SmoothedLoss"]


class SmoothedLoss(IndexLoss):
    """A piecewise loss averaged over a logistic kernel of bandwidth h.

    Parameters
    ----------
    loss : PiecewiseLoss
    bandwidth : float
        h > 0, in units of u.
    order : {2, 4}
        Order of the bias in h. 2: the logistic kernel itself, a density: convex losses stay convex.

    Examples
    --------
    >>> from privfit.estimators.losses import HingeLoss
    >>> SmoothedLoss(HingeLoss(), 1e-3).value([-1.0, 3.0]).round(9) + 0.0
    array([2., 0.])
    """

    def __init__(self, loss: PiecewiseLoss, bandwidth: float, order: int = 4) -> None:
        self.loss = loss
        self.bandwidth = check_number("bandwidth", bandwidth, 0.0, low_open=True)
        self.order = int(check_choice("order", order, (2, 4)))
        half = (np.pi * self.bandwidth) ** 2 / 6.0  # half the variance of the logistic kernel
        self._sharpen = Symbol((1.0,) if self.order == 2 else (1.0, -half))
        self._on_polynomial = Symbol((1.0, half) if self.order == 2 else (1.0,))
        self._logistic, self._left = LogisticLoss(), PolynomialLoss(loss.left)

    @property
    def said(self) -> str:
        """What messages call this loss: smoothing is the library's own doing."""
        return self.loss.said

    def derivative(self, u: ArrayLike, order: int = 1) -> Floats:
        """See `IndexLoss.derivative`."""
        r = np.asarray(u, float)
        return self.compile([(Symbol(), order)])(np.atleast_1d(r))[0].reshape(r.shape)

    def compile(self, requests: Sequence[Request]) -> Kernel:
        """See `IndexLoss.compile`: one compiled kernel per order of jump, taken at every kink."""
        h = self.bandwidth
        for symbol, _ in requests:
            if symbol.heat:
                self._require_polynomial(symbol)
        moved = [((symbol * self._sharpen).rescaled(h), order) for symbol, order in requests]
        polynomial = self._left.compile([(symbol * self._on_polynomial, order) for symbol, order in requests])
        curved = [order < self._left.coefficients.size for _, order in requests]
        kernels = {jump: self._one_sided(jump, moved) for _, jump, _ in self.loss.jumps}

        def kernel(u: Floats) -> list[Floats]:
            answers = polynomial(u) if any(curved) else [np.zeros_like(u) for _ in requests]
            for kink, jump, size in self.loss.jumps:
                for place, found in enumerate(kernels[jump]((u - kink) / h)):
                    found *= size * h ** (jump - requests[place][1])
                    answers[place] += found
            return answers

        return kernel

    def _one_sided(self, jump: int, requests: Sequence[Request]) -> Kernel:
        """Kernel of ``F_jump``: ``D^m F_jump`` is the logistic loss's derivative of order ``m + 1 - jump``."""
        inner, constants = [], []
        for symbol, order in requests:
            wanted = order + 1 - jump
            constant, rest = symbol.split() if wanted < 0 else (0.0, symbol)
            inner.append((rest, 1 if wanted < 0 else wanted))
            constants.append(constant)
        compiled = self._logistic.compile(inner)

        def kernel(v: Floats) -> list[Floats]:
            answers = compiled(v)
            for place, constant in enumerate(constants):
                if constant:
                    answers[place] = answers[place] + constant * _squared_ramp(v)
            return answers

        return kernel


def _squared_ramp(v: Floats) -> Floats:
    """Return ``F_2(v) = -Li_2(-e^v)``, about ``v^2 / 2 + pi^2 / 6`` on the right."""
    from scipy.special import spence

    tail = spence(1.0 + np.exp(-np.abs(v)))  # Li_2(-e^-|v|)
    return np.asarray(np.where(v > 0, 0.5 * v * v + np.pi**2 / 6.0 + tail, -tail), float)
