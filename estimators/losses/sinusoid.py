"""Sine and cosine losses of frequency w: eigenfunctions of D^2 with eigenvalue ``-w^2``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from privfit.accounting.validation import check_number
from privfit.estimators.losses.base import Floats, IndexLoss, Kernel, Request

__all__ = ["CosineLoss", "SineLoss"]


class SineLoss(IndexLoss):
    """``f(u) = sin(w u)``; exact under every noise law.

    Parameters
    ----------
    frequency : float
        w > 0, radians per unit of u.

    Examples
    --------
    >>> SineLoss(2.0).value([0.0])
    array([0.])
    """

    _phase = 0.0

    def __init__(self, frequency: float = 1.0) -> None:
        self.frequency = check_number("frequency", frequency, 0.0, low_open=True)

    def derivative(self, u: ArrayLike, order: int = 1) -> Floats:
        """See `IndexLoss.derivative`."""
        w = self.frequency
        return np.asarray(w**order * np.sin(w * np.asarray(u, float) + self._phase + order * np.pi / 2), float)

    def compile(self, requests: Sequence[Request]) -> Kernel:
        """See `IndexLoss.compile`: one factor per request."""
        factors = [(symbol.at(-(self.frequency**2)), order) for symbol, order in requests]
        return lambda u: [factor * self.derivative(u, order) for factor, order in factors]


class CosineLoss(SineLoss):
    """``f(u) = cos(w u)``.

    Examples
    --------
    >>> CosineLoss(2.0).value([0.0])
    array([1.])
    """

    _phase = np.pi / 2
