"""Rectifier ``f(u) = max(0, u)``."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from privfit.estimators.losses.base import Floats
from privfit.estimators.losses.piecewise import PiecewiseLoss

__all__ = ["ReluLoss"]


class ReluLoss(PiecewiseLoss):
    """``f(u) = max(0, u)``.

    Examples
    --------
    >>> ReluLoss().value([-1.0, 3.0])
    array([0., 3.])
    """

    kinks = (0.0,)
    jumps = ((0.0, 1, 1.0),)

    def derivative(self, u: ArrayLike, order: int = 1) -> Floats:
        """See `IndexLoss.derivative`."""
        r = np.asarray(u, float)
        return np.asarray((np.maximum(0.0, r), r > 0.0)[order] if order < 2 else 0.0 * r, np.float64)
