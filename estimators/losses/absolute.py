"""Absolute loss ``f(u) = |u|``, twice the check loss at the median."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from privfit.estimators.losses.base import Floats
from privfit.estimators.losses.piecewise import PiecewiseLoss

__all__ = ["AbsoluteLoss"]


class AbsoluteLoss(PiecewiseLoss):
    """``f(u) = |u|``.

    Examples
    --------
    >>> AbsoluteLoss().value([-2.0])
    array([2.])
    """

    kinks = (0.0,)
    jumps = ((0.0, 1, 2.0),)
    left = (0.0, -1.0)

    def derivative(self, u: ArrayLike, order: int = 1) -> Floats:
        """See `IndexLoss.derivative`."""
        r = np.asarray(u, float)
        return (np.abs(r), np.sign(r))[order] if order < 2 else np.zeros_like(r)
