"""Squared hinge loss ``f(u) = max(0, 1 - u)^2``: ``f''`` is one step."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from privfit.estimators.losses.base import Floats
from privfit.estimators.losses.piecewise import PiecewiseLoss

__all__ = ["SquaredHingeLoss"]


class SquaredHingeLoss(PiecewiseLoss):
    """``f(u) = max(0, 1 - u)^2``, u the margin ``y x'theta``.

    Examples
    --------
    >>> SquaredHingeLoss().value([-1.0, 3.0])
    array([4., 0.])
    """

    kinks = (1.0,)
    jumps = ((1.0, 2, -2.0),)
    left = (1.0, -2.0, 1.0)

    def derivative(self, u: ArrayLike, order: int = 1) -> Floats:
        """See `IndexLoss.derivative`."""
        gap = np.maximum(0.0, 1.0 - np.asarray(u, float))
        return np.asarray((gap**2, -2.0 * gap, 2.0 * (gap > 0.0))[order] if order < 3 else 0.0 * gap, np.float64)
