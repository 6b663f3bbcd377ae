"""The composition theorems that hold when mechanisms and parameters depend on earlier outputs.

Stopping before the stated sum passes its limit guarantees, whatever rule chose the mechanisms:

    basic  sum eps_i   <= eps     eps-DP       Rogers, Roth, Ullman & Vadhan 2016, section 3
    gdp    sum mu_i^2  <= mu^2    mu-GDP       Smith & Thakurta 2022; Koskela, Tobaben & Honkela 2023
    rdp    sum rho_i   <= rho     (order, rho)-RDP, one order fixed in advance    Feldman & Zrnic 2021
    zcdp   sum rho_i   <= rho     rho-zCDP     Feldman & Zrnic 2021; Whitehouse et al. 2023

Composing the curves themselves and stopping at a target curve is NOT on the list: that filter is invalid in
general (Tran, Koskela, Raisa & Honkela 2026). Nor is minimising over RDP orders after the fact. For a budget,
(order, rho)-RDP gives ``delta = exp((a - 1)(rho - eps)) (1 - 1/a)^a / (a - 1)`` at a = order (Canonne, Kamath &
Steinke 2020, proposition 12), which is solved for rho.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from privfit.accounting.base import TradeOffCurve
from privfit.accounting.calibration import calibrate
from privfit.accounting.charges import both_ways, leaky_mu
from privfit.accounting.discrete import approximate_dp
from privfit.accounting.gaussian import gaussian
from privfit.accounting.targets import GDP, Budget, Target
from privfit.accounting.validation import check_choice, check_number
from privfit.accounting.wrappers import shifted, zero_inflated

__all__ = ["METHODS", "Rule", "make_rule", "pure_epsilon", "slack_cost", "without_leak"]


class Rule(ABC):
    """One theorem: what a curve costs, and the largest total that meets a target."""

    name: ClassVar[str]
    unit: ClassVar[str]

    @abstractmethod
    def cost(self, core: TradeOffCurve, leak: float) -> float:
        """Additive cost of a curve above ``zero_inflated(core of this cost, leak)``; inf if there is none."""

    @abstractmethod
    def limit(self, target: Target, leak: float, slack: float) -> float:
        """The largest `total` that meets the target once leak and slack are spent."""

    @abstractmethod
    def guarantee(self, target: Target, total: float, leak: float, slack: float) -> TradeOffCurve:
        """The curve of the whole adaptive process at this total."""

    def total(self, cost: float) -> float:
        """A summed cost in the unit people know (mu rather than its square)."""
        return cost

    def cost_of_total(self, total: float) -> float:
        """The inverse of `total`."""
        return total


def _lowered(curve: TradeOffCurve, leak: float, slack: float) -> TradeOffCurve:
    return shifted(zero_inflated(curve, leak), slack)


def pure_epsilon(core: TradeOffCurve, leak: float) -> float:
    """Smallest eps for which the core is (eps, leak)-DP in both directions.

    Examples
    --------
    >>> pure_epsilon(approximate_dp(0.5), 0.0)
    0.5
    """
    return max(turned.epsilon(leak) for turned in both_ways(core))


@dataclass(frozen=True)
class _Basic(Rule):
    name = "basic"
    unit = "epsilon"

    def cost(self, core: TradeOffCurve, leak: float) -> float:
        return pure_epsilon(core, leak)

    def limit(self, target: Target, leak: float, slack: float) -> float:
        if isinstance(target, Budget):
            return target.epsilon
        if isinstance(target, GDP):
            from scipy.special import log_ndtr

            # convex G_mu stays below the two segments of f_eps if it does at the corner (1, 1) / (1 + e^eps)
            return (1 - 1e-14) * float(log_ndtr(target.mu / 2) - log_ndtr(-target.mu / 2))
        return (1 - 1e-14) / calibrate(lambda s: _lowered(approximate_dp(1 / s), leak, slack), target, rtol=1e-12)

    def guarantee(self, target: Target, total: float, leak: float, slack: float) -> TradeOffCurve:
        return _lowered(approximate_dp(total), leak, slack)


@dataclass(frozen=True)
class _Gaussian(Rule):
    name = "gdp"
    unit = "mu"

    def cost(self, core: TradeOffCurve, leak: float) -> float:
        if leak > 0:
            return self.cost_of_total(leaky_mu(core, leak))
        return self.cost_of_total(max(turned.gdp() for turned in both_ways(core)))

    def total(self, cost: float) -> float:
        return math.sqrt(cost)

    def cost_of_total(self, total: float) -> float:
        return total**2

    def limit(self, target: Target, leak: float, slack: float) -> float:
        if isinstance(target, GDP):
            return target.mu
        # the last bits of 1 / scale must not carry the curve past the target
        if isinstance(target, Budget) and target.delta > 0:
            clean = Budget(target.epsilon, math.exp(_clean_budget(target, leak, slack, self.name)[1]))
            return (1 - 1e-14) / calibrate(lambda s: gaussian(1 / s), clean, rtol=1e-12)
        return (1 - 1e-14) / calibrate(lambda s: _lowered(gaussian(1 / s), leak, slack), target, rtol=1e-12)

    def guarantee(self, target: Target, total: float, leak: float, slack: float) -> TradeOffCurve:
        return _lowered(gaussian(total), leak, slack)


@dataclass(frozen=True)
class _Renyi(Rule):
    order: float
    name = "rdp"
    unit = "rho"

    def cost(self, core: TradeOffCurve, leak: float) -> float:
        from privfit.accounting.renyi import rdp

        return float(rdp(without_leak(core, leak), self.order))

    def limit(self, target: Target, leak: float, slack: float) -> float:
        return _rdp_limit(self.order, *_clean_budget(target, leak, slack, self.name))

    def guarantee(self, target: Target, total: float, leak: float, slack: float) -> TradeOffCurve:
        return _quoted(target)


@dataclass(frozen=True)
class _Concentrated(Rule):
    name = "zcdp"
    unit = "rho"

    def cost(self, core: TradeOffCurve, leak: float) -> float:
        from privfit.accounting.zcdp import zcdp

        return float(zcdp(without_leak(core, leak)))

    def limit(self, target: Target, leak: float, slack: float) -> float:
        epsilon, log_delta = _clean_budget(target, leak, slack, self.name)
        order = _best_order(epsilon, log_delta)
        return _rdp_limit(order, epsilon, log_delta) / order

    def guarantee(self, target: Target, total: float, leak: float, slack: float) -> TradeOffCurve:
        return _quoted(target)


def slack_cost(budget: Budget, slack: float) -> float:
    """What a total variation error of a sampler adds to delta at the budget's epsilon.

    Examples
    --------
    >>> slack_cost(Budget(0.0, 0.1), 0.01)
    0.02
    """
    if slack == 0:
        return 0.0
    return (1 + math.exp(budget.epsilon)) * slack if budget.epsilon < 700 else math.inf


def without_leak(core: TradeOffCurve, leak: float) -> TradeOffCurve:
    """A curve g with ``core >= zero_inflated(g, leak)``: (eps, leak)-DP is eps-DP with a leak.

    Examples
    --------
    >>> without_leak(gaussian(1.0), 1e-5).max_loss == gaussian(1.0).epsilon(1e-5)
    True
    """
    return core if leak == 0 else approximate_dp(pure_epsilon(core, leak))


def _quoted(target: Target) -> TradeOffCurve:
    assert isinstance(target, Budget)
    return approximate_dp(target.epsilon, target.delta)


def _clean_budget(target: Target, leak: float, slack: float, method: str) -> tuple[float, float]:
    """(epsilon, log delta) that is left for the process without leaks and slack."""
    if not isinstance(target, Budget) or target.delta == 0:
        raise ValueError(
            f"method {method!r} serves Budget(epsilon, delta) with delta > 0, got {target!r}; "
            "use method='gdp', or method='basic' for pure DP."
        )
    if leak == slack == 0:
        return target.epsilon, math.log(target.delta)
    # below the rounding of the curves that are put together again
    left = target.delta * (1 - 4e-12) - leak - slack_cost(target, slack)
    if left <= 0:
        raise ValueError(f"leak={leak:g} and slack={slack:g} use up delta = {target.delta:g}; reserve less.")
    return target.epsilon, math.log(left) - math.log1p(-leak)


def _log_factor(order: float) -> float:
    """Log of (1 - 1/a)^a / (a - 1)."""
    return order * math.log1p(-1 / order) - math.log(order - 1)


def _rdp_limit(order: float, epsilon: float, log_delta: float) -> float:
    """The rho at which (order, rho)-RDP gives exactly (epsilon, delta); at most 0 where none does."""
    return epsilon + (log_delta - _log_factor(order)) / (order - 1)


def _best_order(epsilon: float, log_delta: float) -> float:
    """The order at which Gaussian noise gets the largest limit: it maximises rho / order."""
    from scipy.optimize import minimize_scalar

    def worse(x: float) -> float:
        order = 1 + math.exp(x)
        return -_rdp_limit(order, epsilon, log_delta) / order

    start = min(range(-10, 41), key=worse)
    found = minimize_scalar(worse, bounds=(start - 1, start + 1), method="bounded", options={"xatol": 1e-10})
    return 1 + math.exp(float(found.x))


METHODS = ("basic", "gdp", "rdp", "zcdp")


def make_rule(method: str, target: Target, leak: float, slack: float, order: float | None) -> Rule:
    """The rule of a method; "auto" is "basic" for pure DP and "gdp" for everything else.

    Parameters
    ----------
    method : {"auto", "basic", "gdp", "rdp", "zcdp"}
    target : Target
    leak, slack : float
        What is reserved for leaks and slack.
    order : float, optional
        Order of "rdp", > 1; by default the best one for Gaussian noise.

    Returns
    -------
    Rule

    Raises
    ------
    ValueError, TypeError
        If the method is unknown or an order is given to a method that has none.

    Examples
    --------
    >>> make_rule("auto", Budget(1.0, 0.0), 0.0, 0.0, None).name
    'basic'
    """
    check_choice("method", method, ("auto", *METHODS))
    if method == "auto":
        method = "basic" if isinstance(target, Budget) and target.delta == 0 else "gdp"
    if order is not None and method != "rdp":
        raise ValueError(f"order must be None unless method is 'rdp', got {order!r} with method {method!r}.")
    if method == "rdp":
        if order is None:
            order = _best_order(*_clean_budget(target, leak, slack, method))
        return _Renyi(check_number("order", order, 1.0, low_open=True))
    rules: dict[str, Rule] = {"basic": _Basic(), "gdp": _Gaussian(), "zcdp": _Concentrated()}
    return rules[method]
