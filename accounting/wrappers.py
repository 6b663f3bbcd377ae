"""Curves made from other curves: zero inflation, numerical slack, and the worst of several.

zero inflation   noise is exactly 0 with probability delta0:
f(alpha) = (1 - delta0) base(alpha / (1 - delta0)),   delta = delta0 + (1 - delta0) delta_base
slack            the sampler misses its law by at most eta in total variation:
f(alpha) = base(alpha + eta) - eta,                   delta <= delta_base + (1 + e^eps) eta
worst of several the largest convex function below all: delta(eps) = max_i delta_i(eps); at slope -e^t it
touches the curve that attains the maximum, so its error rates are that curve's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.base import Precision, TradeOffCurve, check_curve
from privfit.accounting.roots import bisect_decreasing
from privfit.accounting.validation import check_number

__all__ = ["MinimumCurve", "SlackCurve", "ZeroInflatedCurve", "minimum", "shifted", "zero_inflated"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ZeroInflatedCurve(TradeOffCurve):
    """A curve whose noise vanishes with probability delta0 (see `zero_inflated`)."""

    base: TradeOffCurve
    delta0: float

    def __post_init__(self) -> None:
        check_curve(self.base)
        value = check_number("delta0", self.delta0, 0.0, 1.0, high_open=True)
        object.__setattr__(self, "delta0", value)

    @property
    def precision(self) -> Precision:
        """That of the base curve."""
        return self.base.precision

    @property
    def max_loss(self) -> float:
        """That of the base curve."""
        return self.base.max_loss

    @property
    def infinite_mass(self) -> float:
        """Mass of certain disclosure: at least delta0."""
        return self.delta0 + (1 - self.delta0) * self.base.infinite_mass

    def _error_rates(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        alpha, beta = self.base._error_rates(log_ratio)
        # the atom has loss -inf under P and +inf under Q
        return (1 - self.delta0) * alpha + self.delta0 * np.isneginf(log_ratio), (
            1 - self.delta0
        ) * beta + self.delta0 * np.isposinf(log_ratio)

    def _delta(self, epsilon: Floats) -> Floats:
        return self.delta0 + (1 - self.delta0) * self.base._delta(epsilon)

    def _curve(self, alpha: Floats) -> Floats:
        inner = np.minimum(alpha / (1 - self.delta0), 1.0)
        return (1 - self.delta0) * self.base._curve(inner)

    def reversed(self) -> TradeOffCurve:
        """Zero inflation of the reversed base."""
        base = self.base.reversed()
        return self if base is self.base else ZeroInflatedCurve(base, self.delta0)


def zero_inflated(curve: TradeOffCurve, delta0: float) -> TradeOffCurve:
    """Curve of a mechanism that adds no noise at all with probability `delta0` (Lu, Chen & Qiu).

    Parameters
    ----------
    curve : TradeOffCurve
        Curve of the noise that is added otherwise.
    delta0 : float
        Probability of releasing the record unchanged, in [0, 1); 0 returns the curve itself.

    Returns
    -------
    TradeOffCurve

    Raises
    ------
    ValueError, TypeError
        If delta0 is outside [0, 1) or `curve` is not a curve.

    Examples
    --------
    >>> from privfit.accounting.gaussian import gaussian
    >>> round(zero_inflated(gaussian(1.0), 0.05).delta(float("inf")), 12)
    0.05
    """
    made = ZeroInflatedCurve(curve, delta0)
    return curve if made.delta0 == 0.0 else made


@dataclass(frozen=True)
class SlackCurve(TradeOffCurve):
    """A curve lowered by the total variation error eta of a sampler (see `shifted`)."""

    base: TradeOffCurve
    eta: float

    def __post_init__(self) -> None:
        check_curve(self.base)
        object.__setattr__(self, "eta", check_number("eta", self.eta, 0.0, 0.5))

    @property
    def precision(self) -> Precision:
        """That of the base curve."""
        return self.base.precision

    @cached_property
    def infinite_mass(self) -> float:
        """What a test that never rejects under P can still detect: 1 - f(0), the least value of the lines there.

        Every t gives an upper bound ``delta(t) + (1 + e^t) eta``; the smallest is where ``alpha(t) = eta``.
        """
        base = self.base
        if self.eta == 0.0:
            return base.infinite_mass
        with np.errstate(over="ignore"):
            ends = bisect_decreasing(
                lambda t, level: base._error_rates(t)[0] - level,
                np.asarray(self.eta),
                -base.reversed().max_loss,
                base.max_loss,
            )
            t = np.array(ends)
            lines = base._delta(t) + self.eta * (1 + np.exp(t))
        return float(min(np.nanmin(lines), 1.0))

    def _error_rates(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        # the supporting line at slope -e^t moves with the curve; beyond the axes the corner takes its place
        alpha, beta = self.base._error_rates(log_ratio)
        top, bottom = alpha <= self.eta, beta <= self.eta
        alpha, beta = np.maximum(alpha - self.eta, 0.0), np.maximum(beta - self.eta, 0.0)
        if np.any(top):
            beta = np.where(top, np.minimum(beta, 1.0 - self.infinite_mass), beta)
        if np.any(bottom):
            alpha = np.where(bottom, np.minimum(alpha, self._foot), alpha)
        return alpha, beta

    @cached_property
    def _foot(self) -> float:
        """Where the lowered curve meets the axis beta = 0."""
        return max(float(self.base.reversed()._curve(np.asarray(self.eta))) - self.eta, 0.0)

    def _delta(self, epsilon: Floats) -> Floats:
        """The supporting line moves down by eta (1 + e^eps) unless it meets an axis first."""
        alpha, beta = self.base._error_rates(epsilon)
        with np.errstate(over="ignore"):
            value = self.base._delta(epsilon) + self.eta * (1 + np.exp(np.minimum(epsilon, 709.0)))
        top, bottom = alpha <= self.eta, beta <= self.eta
        if np.any(top):
            value = np.where(top, np.minimum(value, self.infinite_mass), value)
        if np.any(bottom):
            at_foot = 1 - np.exp(np.minimum(epsilon, 709.0)) * self._foot
            value = np.where(bottom, np.minimum(value, at_foot), value)
        return np.clip(value, 0.0, 1.0)

    def _curve(self, alpha: Floats) -> Floats:
        inner = np.minimum(alpha + self.eta, 1.0)
        return np.maximum(self.base._curve(inner) - self.eta, 0.0)

    def reversed(self) -> TradeOffCurve:
        """Slack of the reversed base."""
        base = self.base.reversed()
        return self if base is self.base else SlackCurve(base, self.eta)


def shifted(curve: TradeOffCurve, eta: float) -> TradeOffCurve:
    """Curve of a mechanism sampled with total variation error at most `eta` from its stated law.

    Both hypotheses move by eta, so ``f(alpha) = base(alpha + eta) - eta`` and
    ``delta(eps) = base.delta(eps) + (1 + e^eps) eta`` (up to the axes).

    Parameters
    ----------
    curve : TradeOffCurve
        Curve of the stated law.
    eta : float
        Total variation error, in [0, 0.5]; 0 returns the curve itself.

    Returns
    -------
    TradeOffCurve

    Raises
    ------
    ValueError, TypeError
        If eta is outside its range or `curve` is not a curve.

    Examples
    --------
    >>> from privfit.accounting.laplace import laplace
    >>> round(shifted(laplace(1.0), 1e-9).delta(1.0) * 1e9, 4)
    3.7183
    """
    made = SlackCurve(curve, eta)
    return curve if made.eta == 0.0 else made


@dataclass(frozen=True)
class MinimumCurve(TradeOffCurve):
    """The largest trade-off function below several (see `minimum`)."""

    curves: tuple[TradeOffCurve, ...]

    def __post_init__(self) -> None:
        if not self.curves:
            raise ValueError("curves must hold at least one curve.")
        object.__setattr__(self, "curves", tuple(check_curve(c, "curves") for c in self.curves))

    @property
    def precision(self) -> Precision:
        """The worst of the parts."""
        parts = [c.precision for c in self.curves]
        return Precision(max(p.relative for p in parts), max(p.absolute for p in parts))

    @property
    def max_loss(self) -> float:
        """Largest of the parts."""
        return max(c.max_loss for c in self.curves)

    @property
    def infinite_mass(self) -> float:
        """Largest of the parts."""
        return max(c.infinite_mass for c in self.curves)

    def _error_rates(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        rates = [c._error_rates(log_ratio) for c in self.curves]
        worst = np.argmax([c._delta(log_ratio) for c in self.curves], axis=0)[None]
        alpha = np.take_along_axis(np.array([r[0] for r in rates]), worst, axis=0)[0]
        beta = np.take_along_axis(np.array([r[1] for r in rates]), worst, axis=0)[0]
        return alpha, beta

    def _delta(self, epsilon: Floats) -> Floats:
        return np.max([c._delta(epsilon) for c in self.curves], axis=0)

    def _log_delta(self, epsilon: Floats) -> Floats:
        return np.max([c._log_delta(epsilon) for c in self.curves], axis=0)

    def _curve(self, alpha: Floats) -> Floats:
        """Supremum over t of 1 - delta(t) - e^t alpha: exact, with the segments between two curves."""
        low, high = bisect_decreasing(lambda t, a: self._error_rates(t)[0] - a, alpha, lower=-800.0, upper=800.0)
        best = np.maximum(self._support_line(low, alpha), self._support_line(high, alpha))
        return np.minimum(best, np.min([c._curve(alpha) for c in self.curves], axis=0))

    def reversed(self) -> TradeOffCurve:
        """Minimum of the reversed curves."""
        turned = tuple(c.reversed() for c in self.curves)
        return self if all(a is b for a, b in zip(turned, self.curves, strict=True)) else MinimumCurve(turned)


def minimum(*curves: TradeOffCurve) -> TradeOffCurve:
    """The guarantee that holds when any one of several mechanisms may be the one attacked.

    Parameters
    ----------
    *curves : TradeOffCurve
        At least one. If one of them lies below all others the result behaves like it.

    Returns
    -------
    TradeOffCurve
        The convex hull of the pointwise minimum; its profile is the largest of the profiles.

    Raises
    ------
    ValueError, TypeError
        If there is no curve, or something is not a curve.

    Examples
    --------
    >>> from privfit.accounting.gaussian import gaussian
    >>> from privfit.accounting.laplace import laplace
    >>> worst = minimum(gaussian(1.0), laplace(1.2))
    >>> round(worst.delta(0.0), 9) == round(laplace(1.2).delta(0.0), 9)
    True
    """
    made = MinimumCurve(curves)
    distinct = tuple(dict.fromkeys(made.curves))
    return distinct[0] if len(distinct) == 1 else MinimumCurve(distinct)
