"""Targets, and the smallest noise that meets one.

``calibrate(family, target)`` needs only a map from a noise scale to a curve that gets more private as the
scale grows. The scale is bracketed by doubling from 1, refined by bisection on its logarithm with secant
steps, and the answer is the end of the last interval that meets the target, so it is on the safe side:
a scale smaller by the stated relative tolerance fails.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privfit.accounting.base import TradeOffCurve
from privfit.accounting.gaussian import GaussianCurve
from privfit.accounting.validation import check_number

__all__ = ["GDP", "Advantage", "Budget", "ErrorRates", "Target", "as_target", "calibrate"]


class Target(ABC):
    """A privacy requirement; `slack` is positive when a curve meets it with room to spare."""

    @abstractmethod
    def slack(self, curve: TradeOffCurve) -> float:
        """A continuous measure that is >= 0 exactly when the curve meets the target, on the safe side."""

    def met_by(self, curve: TradeOffCurve) -> bool:
        """Whether the curve meets the target, judged on the safe side of every numerical error.

        Parameters
        ----------
        curve : TradeOffCurve

        Returns
        -------
        bool

        Examples
        --------
        >>> from privfit.accounting.gaussian import gaussian
        >>> Budget(1.0, 1e-5).met_by(gaussian(0.1)), Budget(1.0, 1e-5).met_by(gaussian(1.0))
        (True, False)
        """
        return self.slack(curve) >= 0


@dataclass(frozen=True)
class Budget(Target):
    """(epsilon, delta)-differential privacy.

    Parameters
    ----------
    epsilon : float
        At least 0, in nats.
    delta : float
        In [0, 1); 0 asks for pure DP.

    Examples
    --------
    >>> Budget(1.0, 1e-5)
    Budget(epsilon=1.0, delta=1e-05)
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_number("epsilon", self.epsilon, 0.0))
        hint = "A delta of 1 or more allows everything; ask for less than 1 / (number of records)."
        object.__setattr__(self, "delta", check_number("delta", self.delta, 0.0, 1.0, high_open=True, hint=hint))
        if self.epsilon == 0 and self.delta == 0:
            raise ValueError("epsilon and delta must not both be 0: no finite noise hides everything; raise one.")

    def slack(self, curve: TradeOffCurve) -> float:
        """Log of delta over the curve's delta at epsilon (upper bound)."""
        if self.delta == 0:
            return self.epsilon - curve.epsilon(0.0) if curve.epsilon(0.0) < math.inf else -math.inf
        if curve.delta(self.epsilon) > 1e-290:
            return math.log(self.delta) - math.log(curve.delta(self.epsilon))
        return math.log(self.delta) - (curve.log_delta(self.epsilon) + math.log1p(curve.precision.relative))


@dataclass(frozen=True)
class GDP(Target):
    """mu-Gaussian differential privacy: a curve above ``G_mu``.

    Parameters
    ----------
    mu : float
        Greater than 0.

    Examples
    --------
    >>> from privfit.accounting.gaussian import gaussian
    >>> GDP(1.0).met_by(gaussian(0.99))
    True
    """

    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", check_number("mu", self.mu, 0.0, low_open=True))

    def slack(self, curve: TradeOffCurve) -> float:
        """Log of mu over the curve's own mu."""
        own = curve.mu if isinstance(curve, GaussianCurve) else curve.gdp()
        return math.log(self.mu / own) if 0 < own < math.inf else (-math.inf if own else math.inf)


@dataclass(frozen=True)
class Advantage(Target):
    """Bound on the advantage (true-positive minus false-positive rate) of any membership test.

    Parameters
    ----------
    value : float
        In (0, 1).

    Examples
    --------
    >>> from privfit.accounting.laplace import laplace
    >>> Advantage(0.5).met_by(laplace(1.0))
    True
    """

    value: float

    def __post_init__(self) -> None:
        value = check_number("value", self.value, 0.0, 1.0, low_open=True, high_open=True)
        object.__setattr__(self, "value", value)

    def slack(self, curve: TradeOffCurve) -> float:
        """Log of the bound over the curve's advantage (upper bound)."""
        return math.log(self.value / curve.advantage) if curve.advantage > 0 else math.inf


@dataclass(frozen=True)
class ErrorRates(Target):
    """No attack may have both a false-positive rate below `fpr` and a false-negative rate below `fnr`.

    Parameters
    ----------
    fpr, fnr : float
        A point that must lie on or below the curve; each in (0, 1) with ``fpr + fnr < 1``.

    Examples
    --------
    >>> from privfit.accounting.gaussian import gaussian
    >>> ErrorRates(0.05, 0.8).met_by(gaussian(0.5))
    True
    """

    fpr: float
    fnr: float

    def __post_init__(self) -> None:
        for name in ("fpr", "fnr"):
            value = check_number(name, getattr(self, name), 0.0, 1.0, low_open=True, high_open=True)
            object.__setattr__(self, name, value)
        if self.fpr + self.fnr >= 1:
            raise ValueError(
                f"fpr + fnr must be < 1, got {self.fpr + self.fnr:g}: even perfect privacy lies on the line "
                "fpr + fnr = 1; lower one of them."
            )

    def slack(self, curve: TradeOffCurve) -> float:
        """Height of the curve above the point, relative to it (lower bound)."""
        return float(curve.curve(self.fpr)) / self.fnr - 1


@dataclass(frozen=True)
class _Dominate(Target):
    """Lie above a whole curve."""

    curve: TradeOffCurve

    def slack(self, curve: TradeOffCurve) -> float:
        """Largest log-ratio of the profiles (negative where the curve falls below the target)."""
        grid = np.union1d(self.curve._comparison_grid(), curve._comparison_grid())
        wanted, own = (
            self.curve._log_delta(grid),
            curve._log_delta(grid) + math.log1p(curve.precision.relative),
        )
        live = own > -690.0
        return float(np.min((wanted - own)[live])) if live.any() else math.inf


def as_target(target: Target | TradeOffCurve) -> Target:
    """A target as it is, or the requirement to lie above a curve.

    Examples
    --------
    >>> as_target(Budget(1.0, 1e-5))
    Budget(epsilon=1.0, delta=1e-05)
    """
    if isinstance(target, Target):
        return target
    if isinstance(target, TradeOffCurve):
        return _Dominate(target)
    raise TypeError(
        "target must be Budget, GDP, Advantage, ErrorRates or a trade-off curve, "
        f"got {type(target).__name__}; for example Budget(epsilon=1.0, delta=1e-5)."
    )


def calibrate(
    family: Callable[[float], TradeOffCurve],
    target: Target | TradeOffCurve,
    rtol: float = 1e-9,
    start: float = 1.0,
) -> float:
    """Smallest noise scale whose curve meets the target, on the safe side.

    Parameters
    ----------
    family : callable
        Maps a noise scale > 0 to a curve that is more private the larger the scale.
    target : Target or TradeOffCurve
        `Budget`, `GDP`, `Advantage`, `ErrorRates`, or a curve to lie above.
    rtol : float
        Relative tolerance of the scale: the answer meets the target, ``answer * (1 - rtol)`` does not.
    start : float
        First scale that is tried; any positive number works, a good guess saves a few evaluations.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If no scale up to 1e12 meets the target, or every scale down to 1e-12 does.

    Examples
    --------
    >>> from privfit.accounting.gaussian import gaussian
    >>> round(calibrate(lambda sigma: gaussian(1 / sigma), Budget(1.0, 1e-5)), 6)
    3.730632
    """
    from scipy.optimize import brentq

    wanted = as_target(target)
    tolerance = check_number("rtol", rtol, 1e-13, 0.1)
    first = math.log(check_number("start", start, 0.0, low_open=True))
    known: dict[float, float] = {}

    def slack(x: float) -> float:
        if x not in known:
            known[x] = wanted.slack(family(math.exp(x)))
        return known[x]

    low, high = _bracket(slack, first, wanted)
    brentq(lambda x: min(max(slack(x), -1e3), 1e3), low, high, xtol=0.2 * tolerance, rtol=1e-15)
    for _ in range(100):
        # Brent's method leaves points near the root: the closest on either side are the answer's interval
        low = max(x for x, value in known.items() if value < 0)
        high = min(x for x, value in known.items() if value >= 0)
        if high - low <= tolerance:
            break
        at_low = abs(known[low]) < abs(known[high])
        step = min(0.9 * tolerance, 0.5 * (high - low))
        slack(low + step if at_low else high - step)
    return math.exp(high)


def _bracket(slack: Callable[[float], float], first: float, wanted: Target) -> tuple[float, float]:
    limit = 12 * math.log(10)
    step = math.log(2) if slack(first) < 0 else -math.log(2)
    x = first
    while (slack(x + step) < 0) == (step > 0):
        x += step
        step *= 1.6
        if abs(x - first) > limit:
            if step > 0:
                raise ValueError(
                    f"no noise scale up to {math.exp(x):.0e} meets {wanted}; loosen the target (a larger epsilon or "
                    "delta) or change the mechanism (this one may have a floor, such as delta0 >= delta)."
                )
            raise ValueError(f"every noise scale down to {math.exp(x):.0e} meets {wanted}; no noise is needed.")
    return (x, x + step) if step > 0 else (x + step, x)
