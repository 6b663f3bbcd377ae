"""Clipped square ``f(u) = min(u^2, h^2)``: the squared score of the Huber loss, whose mean gives a robust scale."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from privfit.accounting.validation import check_number
from privfit.estimators.losses.base import Floats
from privfit.estimators.losses.piecewise import PiecewiseLoss

__all__ = ["ClippedSquareLoss"]


class ClippedSquareLoss(PiecewiseLoss):
    """``f(u) = min(u^2, h^2)``.

    Parameters
    ----------
    threshold : float
        h > 0, in units of u.

    Examples
    --------
    >>> ClippedSquareLoss(2.0).value([1.0, 5.0])
    array([1., 4.])
    """

    def __init__(self, threshold: float) -> None:
        h = self.threshold = check_number("threshold", threshold, 0.0, low_open=True)
        self.kinks = (-h, h)
        self.jumps = ((-h, 1, -2.0 * h), (-h, 2, 2.0), (h, 1, -2.0 * h), (h, 2, -2.0))
        self.left = (h * h,)

    def derivative(self, u: ArrayLike, order: int = 1) -> Floats:
        """See `IndexLoss.derivative`."""
        r, h = np.asarray(u, float), self.threshold
        inside = np.abs(r) <= h
        if order == 0:
            return np.asarray(np.minimum(r * r, h * h), np.float64)
        return np.asarray(inside * (2.0 * r if order == 1 else 2.0 if order == 2 else 0.0), np.float64)
