"""Hinge loss ``f(u) = max(0, 1 - u)`` of support vector machines."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from privfit.estimators.losses.base import Floats
from privfit.estimators.losses.piecewise import PiecewiseLoss

__all__ = ["HingeLoss"]


class HingeLoss(PiecewiseLoss):
    """``f(u) = max(0, 1 - u)``, u the margin ``y x'theta``.

    Examples
    --------
    >>> HingeLoss().value([-1.0, 3.0])
    array([2., 0.])
    """

    kinks = (1.0,)
    jumps = ((1.0, 1, 1.0),)
    left = (1.0, -1.0)

    def derivative(self, u: ArrayLike, order: int = 1) -> Floats:
        """See `IndexLoss.derivative`."""
        r = np.asarray(u, float)
        return np.asarray((np.maximum(0.0, 1.0 - r), -1.0 * (r < 1.0))[order] if order < 2 else 0.0 * r, np.float64)
