"""Exponential loss ``f(u) = e^u`` (the rate of a Poisson model): ``G(D^2) e^u = G(1) e^u``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from privfit.estimators.losses.base import Floats, IndexLoss, Kernel, Request

__all__ = ["ExponentialLoss"]

_LARGEST = 300.0  # a search may try a step that far: the loss is then huge, not infinite


class ExponentialLoss(IndexLoss):
    """``f(u) = e^u``. ``E e^{2 noise}``, hence a finite variance, needs s^2 < 1/2, under noise of shape k s^2 < k/2.

    Examples
    --------
    >>> ExponentialLoss().value([0.0])
    array([1.])
    """

    max_variance = 0.5

    def derivative(self, u: ArrayLike, order: int = 1) -> Floats:
        """See `IndexLoss.derivative`."""
        return np.asarray(np.exp(np.asarray(u, float)), float)

    def compile(self, requests: Sequence[Request]) -> Kernel:
        """See `IndexLoss.compile`: one factor per request."""
        factors = [symbol.at(1.0) for symbol, _ in requests]

        def kernel(u: Floats) -> list[Floats]:
            rate = np.exp(np.minimum(u, _LARGEST))
            return [factor * rate for factor in factors]

        return kernel
