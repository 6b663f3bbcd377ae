"""Privacy requirements that noise can be calibrated to.

A target measures by how much a curve meets it (`Target.slack`), on the safe side of every numerical error.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from privfit.accounting.base import MIRROR, TradeOffCurve
from privfit.accounting.gaussian import GaussianCurve
from privfit.accounting.symmetrized import symmetrized
from privfit.accounting.validation import check_number

__all__ = ["GDP", "Advantage", "Budget", "ErrorRates", "Target", "as_target"]


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
        curve = symmetrized(curve)
        if self.delta == 0:
            return self.epsilon - curve.epsilon(0.0) if curve.epsilon(0.0) < math.inf else -math.inf
        # what curve.delta computes, without its checks of the argument
        side = curve._on(MIRROR["upper"])
        upper = float(side._shift(side._delta(np.asarray(self.epsilon)), "upper"))
        if upper > 1e-290:
            room = math.log(self.delta) - math.log(min(upper, 1.0))
            return max(room, 0.0) if upper <= self.delta else min(room, -1e-16)  # rounding must not decide
        return math.log(self.delta) - curve.log_delta(self.epsilon, bound="upper")


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
        return math.log(self.mu) - math.log(own) if 0 < own < math.inf else (-math.inf if own else math.inf)


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
        curve = symmetrized(curve)
        return float(curve.curve(self.fpr)) / self.fnr - 1


@dataclass(frozen=True)
class _Dominate(Target):
    """Lie above a whole curve."""

    curve: TradeOffCurve

    def slack(self, curve: TradeOffCurve) -> float:
        """Least log-ratio of the profiles, of the largest losses and of the masses of certain disclosure."""
        pairs = [(self.curve, curve)]
        if self.curve.reversed() is not self.curve or curve.reversed() is not curve:
            pairs.append((self.curve.reversed(), curve.reversed()))
        return min(_room(wanted._on("upper"), own._on("lower")) for wanted, own in pairs)


def _room(wanted: TradeOffCurve, own: TradeOffCurve) -> float:
    """How far the profile of `own`, from above, stays below that of `wanted`, on one side of a pair."""
    room = _log_ratio(wanted.infinite_mass, own.infinite_mass)
    grid = np.union1d(wanted._comparison_grid(), own._comparison_grid())
    if wanted.infinite_mass == 0.0:  # pure DP: from the target's largest loss on nothing may be left
        room = min(room, _log_ratio(wanted.max_loss, own.max_loss))
        grid = grid[grid < wanted.max_loss]
    log_wanted, log_own = wanted._log_delta(grid), own._log_delta(grid)
    # the atom of certain disclosure has no numerical error
    loose = 1.0 if own.infinite_mass == 0.0 else np.clip(-np.expm1(math.log(own.infinite_mass) - log_own), 0.0, 1.0)
    log_own = log_own + np.log1p(own.precision.relative * loose)
    # what is lost in the error of one of the two is not compared
    live = log_own > math.log(max(wanted.precision.absolute, own.precision.absolute, 1e-300))
    return min(room, float(np.min((log_wanted - log_own)[live], initial=math.inf)))


def _log_ratio(wanted: float, own: float) -> float:
    """Log of wanted / own, where both may be zero or infinite."""
    if own == wanted:
        return 0.0 if 0 < own < math.inf else math.inf
    if own == 0 or wanted == math.inf:
        return math.inf
    return -math.inf if wanted == 0 or own == math.inf else math.log(wanted / own)


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
