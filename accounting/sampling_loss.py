"""How subsampling moves the privacy loss: ``e^t = 1 - r + r e^g``, g the loss of the mechanism, r the rate.

The smallest loss is ``-m`` with ``m = -log(1 - r)``. Near it the distance ``t + m`` decides everything, so m
is kept as the sum of two doubles.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["LossMap"]

Floats = NDArray[np.float64]


class LossMap:
    """The increasing map between losses of a mechanism and of its subsample, for one rate in (0, 1).

    Examples
    --------
    >>> import numpy as np
    >>> losses = LossMap(0.25)
    >>> bool(np.isclose(losses.outer(float(losses.inner(np.array(0.1)))), 0.1, rtol=1e-14))
    True
    """

    def __init__(self, rate: float) -> None:
        import mpmath

        self.rate = rate
        with mpmath.workdps(50):
            exact = -mpmath.log1p(-mpmath.mpf(rate))
            self._high = float(exact)
            self._low = float(exact - self._high)
        self.top = math.nextafter(self._high, math.inf) if self._low > 0 else self._high

    def gap(self, t: Floats) -> Floats:
        """Distance of t to the smallest loss -m."""
        return (t + self._high) + self._low

    def inner(self, t: Floats) -> Floats:
        """``g = log(1 + (e^t - 1)/r)``: loss of the base where the subsample has loss t; -inf below -m."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            gap = np.maximum(self.gap(t), 0.0)
            ratio = np.expm1(t) / self.rate
            low = np.log(-np.expm1(-gap) * np.exp(t) / self.rate)
            large = t + np.log(-np.expm1(-t)) - math.log(self.rate) + np.log1p(1 / ratio)
            value = np.where(ratio < -0.5, low, np.log1p(np.maximum(ratio, -0.5)))
            return np.where(np.isposinf(t), np.inf, np.where(ratio > 1e8, large, value))

    def outer(self, loss: float) -> float:
        """``log(1 - r + r e^loss)`` for a loss >= 0, rounded up."""
        if loss < 1.0:
            return math.log1p(self.rate * math.expm1(loss)) * (1 + 1e-15)
        return (loss + math.log(self.rate + (1 - self.rate) * math.exp(-loss))) * (1 + 1e-15)
