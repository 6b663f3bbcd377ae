"""Indicator ``f(u) = 1[a <= u <= b]``: a step up and a step down of f itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from privfit.accounting.validation import check_number
from privfit.estimators.losses.base import Floats
from privfit.estimators.losses.piecewise import PiecewiseLoss

__all__ = ["IndicatorLoss"]


class IndicatorLoss(PiecewiseLoss):
    """``f(u) = 1[lower <= u <= upper]``.

    Parameters
    ----------
    lower, upper : float
        Ends of the interval, lower < upper.

    Examples
    --------
    >>> IndicatorLoss(0.0, 1.0).value([0.5, 2.0])
    array([1., 0.])
    """

    def __init__(self, lower: float, upper: float) -> None:
        self.lower = check_number("lower", lower)
        self.upper = check_number("upper", upper, self.lower, low_open=True, hint="Swap the ends.")
        self.kinks = (self.lower, self.upper)
        self.jumps = ((self.lower, 0, 1.0), (self.upper, 0, -1.0))

    def derivative(self, u: ArrayLike, order: int = 1) -> Floats:
        """See `IndexLoss.derivative`."""
        r = np.asarray(u, float)
        return np.asarray((r >= self.lower) & (r <= self.upper) if order == 0 else 0.0 * r, np.float64)
