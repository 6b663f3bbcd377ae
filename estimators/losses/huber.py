"""Huber loss: ``u^2 / 2`` for ``|u| <= h``, ``h |u| - h^2 / 2`` beyond: ``f''`` is two steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from privfit.accounting.validation import check_number
from privfit.estimators.losses.base import Floats
from privfit.estimators.losses.piecewise import PiecewiseLoss

__all__ = ["HuberLoss"]


class HuberLoss(PiecewiseLoss):
    """``u^2 / 2`` inside ``[-h, h]``, linear outside.

    Parameters
    ----------
    threshold : float
        h > 0, in units of u (1.345 standard deviations is the usual choice).

    Examples
    --------
    >>> HuberLoss(1.0).value([0.5, 3.0])
    array([0.125, 2.5  ])
    """

    def __init__(self, threshold: float = 1.345) -> None:
        self.threshold = check_number("threshold", threshold, 0.0, low_open=True)
        self.kinks = (-self.threshold, self.threshold)
        self.jumps = ((-self.threshold, 2, 1.0), (self.threshold, 2, -1.0))
        self.left = (-0.5 * self.threshold**2, -self.threshold)

    def derivative(self, u: ArrayLike, order: int = 1) -> Floats:
        """See `IndexLoss.derivative`."""
        r, h = np.asarray(u, float), self.threshold
        if order == 0:
            return np.asarray(np.where(np.abs(r) <= h, r * r / 2, h * np.abs(r) - h * h / 2), np.float64)
        if order == 1:
            return np.asarray(np.clip(r, -h, h), np.float64)
        return np.asarray(np.abs(r) <= h if order == 2 else 0.0 * r, np.float64)
