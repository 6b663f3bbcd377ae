"""Laplace mechanism in one dimension: scale b, sensitivity Delta, a = Delta / b.

The loss is a clipped to [-a, a] of a linear function, with atoms at both ends:

    alpha(t) = e^(-(t + a)/2) / 2,   beta(t) = e^((t - a)/2) / 2     for -a <= t < a
    f(alpha) = 1 - e^a alpha  (alpha <= e^-a / 2),   e^-a / (4 alpha)  (to 1/2),   e^-a (1 - alpha)  after
    delta(eps) = 1 - exp((eps - a) / 2)   for eps <= a          (Dong, Roth & Su 2022, proposition A.6)

The same curve is the exact worst case of independent Laplace noise on d numbers with l1 sensitivity Delta. For
any log-concave noise the curve f_a of a shift by a is ``1 - f_a = F(F^-1(.) + a)``, so the maps 1 - f_a compose:
``1 - f_{a+b} = (1 - f_a) o (1 - f_b)``. A shift by (a_1, ..., a_d) is a chain of shifts of one coordinate, and a
chain is never easier to detect than this composition says (group privacy): its curve is at least f_{a_1 + ... + a_d},
with equality when only one coordinate moves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.base import SIGN, Bound, Precision, TradeOffCurve, check_scale

__all__ = ["LaplaceCurve", "laplace"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LaplaceCurve(TradeOffCurve):
    """The Laplace curve with loss in [-a, a] (see `laplace`)."""

    a: float
    precision = Precision(relative=1e-14, absolute=0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "a", check_scale("epsilon", self.a, "It is sensitivity / b."))

    @property
    def max_loss(self) -> float:
        """The pure-DP parameter a = sensitivity / b."""
        return self.a

    def _error_rates(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        t, a = log_ratio, self.a
        inside = np.clip(t, -a, a)
        alpha = np.where(t < -a, 1.0, np.where(t < a, 0.5 * np.exp(-(inside + a) / 2), 0.0))
        beta = np.where(t < -a, 0.0, np.where(t < a, 0.5 * np.exp((inside - a) / 2), 1.0))
        return alpha, beta

    def _delta(self, epsilon: Floats) -> Floats:
        with np.errstate(over="ignore"):
            low = -np.expm1(np.minimum(epsilon, 0.0))
        inside = -np.expm1(np.minimum(epsilon - self.a, 0.0) / 2)
        return np.where(epsilon < -self.a, low, inside)

    def _epsilon(self, delta: Floats, bound: Bound) -> Floats:
        rounding = SIGN[bound] * 4e-16 * self.a
        with np.errstate(divide="ignore"):
            value = self.a + 2 * np.log1p(-delta) + rounding
        return np.clip(value, 0.0, self.a)

    def _curve(self, alpha: Floats) -> Floats:
        cut = 0.5 * np.exp(-self.a)
        middle = np.exp(-self.a) / (4 * np.maximum(alpha, max(cut, 1e-320)))
        return np.where(
            alpha <= cut,
            1 - np.exp(self.a + np.log(np.maximum(alpha, 1e-320))) * (alpha > 0),
            np.where(alpha <= 0.5, middle, np.exp(-self.a) * (1 - alpha)),
        )


def laplace(epsilon: float) -> LaplaceCurve:
    """Trade-off curve of the Laplace mechanism: one number, or several under l1 sensitivity.

    Parameters
    ----------
    epsilon : float
        Sensitivity divided by the noise's scale b, > 0: the pure-DP parameter. For independent noise of scale b
        on every coordinate of a vector, the largest l1 distance of two inputs divided by b.

    Returns
    -------
    LaplaceCurve

    Raises
    ------
    ValueError, TypeError
        If epsilon is not a positive finite number.

    Examples
    --------
    >>> laplace(1.0).epsilon(0.0), round(laplace(1.0).delta(0.5), 6)
    (1.0, 0.221199)
    """
    return LaplaceCurve(epsilon)
