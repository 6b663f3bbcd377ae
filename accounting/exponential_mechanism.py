"""Mechanisms of bounded range eta: the exponential mechanism, report-noisy-max with Gumbel noise.

The loss varies by at most eta over the outputs: L in [t - eta, t] for some t in [0, eta] that depends on the
two inputs (Durfee & Rogers 2019). Under P the ratio R = e^L has mean 1 and ``delta(eps) = E (R - e^eps)+`` is the
mean of a convex function, so for a given t the worst law of R sits on the two ends, the losses t and t - eta
(generalised randomised response; Dong, Durfee & Rogers 2020):

    Q[L = t] = (1 - e^(t - eta)) / (1 - e^-eta)

The profile is largest at t = (eta + eps)/2, and everything is elementary:

    delta(eps) = (1 - e^((eps - eta)/2))^2 / (1 - e^-eta)        for |eps| <= eta
    alpha(t)   = e^(-(t + eta)/2) (1 - e^((t - eta)/2)) / (1 - e^-eta),      beta(t) = alpha(-t)
    f(alpha)   = (1 - alpha) / (1 + (e^eta - 1) alpha)

a hyperbola, its own inverse. ``advantage = tanh(eta/4)`` against ``tanh(eta/2)`` for pure eta-DP.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.base import SIGN, Bound, Precision, TradeOffCurve, check_scale

__all__ = ["BoundedRangeCurve", "exponential_mechanism"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BoundedRangeCurve(TradeOffCurve):
    """The worst curve of bounded range eta (see `exponential_mechanism`)."""

    eta: float
    precision = Precision(relative=1e-14, absolute=0.0)

    def __post_init__(self) -> None:
        hint = "It is the bounded range, 2 * rate * sensitivity of the score."
        object.__setattr__(self, "eta", check_scale("epsilon", self.eta, hint))

    @property
    def max_loss(self) -> float:
        """The pure-DP parameter eta."""
        return self.eta

    def _error_rates(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        return self._alpha(log_ratio), self._alpha(-log_ratio)

    def _alpha(self, t: Floats) -> Floats:
        inside = np.clip(t, -self.eta, self.eta)
        return np.exp(-(inside + self.eta) / 2) * np.expm1((inside - self.eta) / 2) / np.expm1(-self.eta)

    def _delta(self, epsilon: Floats) -> Floats:
        inside = np.clip(epsilon, -self.eta, self.eta)
        value = np.expm1((inside - self.eta) / 2) ** 2 / -np.expm1(-self.eta)
        return np.where(epsilon < -self.eta, -np.expm1(np.minimum(epsilon, 0.0)), value)

    def _log_delta(self, epsilon: Floats) -> Floats:
        value = self._delta(epsilon)
        with np.errstate(divide="ignore"):
            near = 2 * np.log(np.maximum(self.eta - epsilon, 0.0) / 2) - np.log(-np.expm1(-self.eta))
            return np.where(value < 1e-250, near, np.log(value))

    def _epsilon(self, delta: Floats, bound: Bound) -> Floats:
        rounding = SIGN[bound] * 4e-16 * self.eta
        with np.errstate(divide="ignore"):
            value = self.eta + 2 * np.log1p(-np.minimum(np.sqrt(delta * -np.expm1(-self.eta)), 1.0)) + rounding
        return np.clip(value, 0.0, self.eta)

    def _curve(self, alpha: Floats) -> Floats:
        with np.errstate(divide="ignore", over="ignore"):
            growth = np.exp(self.eta + np.log(alpha) + np.log(-np.expm1(-self.eta)))
        return (1 - alpha) / (1 + growth)


def exponential_mechanism(epsilon: float) -> BoundedRangeCurve:
    """Exact worst-case trade-off curve of the exponential mechanism, and of any mechanism of bounded range.

    It is the largest curve below every mechanism of this range, on every pair of inputs and for any set of
    outputs.

    Parameters
    ----------
    epsilon : float
        Bounded range eta > 0. An output r drawn with weight ``exp(rate * score(x, r))`` has range
        ``2 * rate * Delta``, where Delta bounds ``|score(x, r) - score(x', r)|``: the textbook weight
        ``exp(epsilon * score / (2 Delta))`` has range epsilon, its usual pure-DP parameter. Where all scores
        move in the same direction (a monotonic score) the range is ``rate * Delta``, half of that.

    Returns
    -------
    BoundedRangeCurve

    Raises
    ------
    ValueError, TypeError
        If epsilon is not a positive finite number.

    Examples
    --------
    >>> curve = exponential_mechanism(1.0)
    >>> curve.epsilon(0.0), round(curve.advantage, 6), round(curve.curve(0.1), 6)
    (1.0, 0.244919, 0.768031)
    """
    return BoundedRangeCurve(epsilon)
