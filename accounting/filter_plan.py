"""What a privacy filter fixes in advance: a target, one theorem, and reserves for leaks and slack."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from privfit.accounting.adaptive_rules import METHODS, Rule, make_rule, slack_cost
from privfit.accounting.base import TradeOffCurve
from privfit.accounting.charges import Charge, charge_of, exact
from privfit.accounting.targets import GDP, Advantage, Budget, ErrorRates, Target, as_target
from privfit.accounting.validation import check_choice, check_number

__all__ = ["BudgetExceeded", "FilterPlan", "plan_filter"]


class BudgetExceeded(ValueError):  # noqa: N818
    """A release was refused because the total would break the target; nothing was recorded.

    Examples
    --------
    >>> issubclass(BudgetExceeded, ValueError)
    True
    """


@dataclass(frozen=True)
class FilterPlan:
    """What a filter fixes in advance: a target, a theorem and two reserves (see `plan_filter`)."""

    target: Target
    rule: Rule
    leak: float
    slack: float

    @cached_property
    def limit(self) -> float:
        """The largest total, in the unit of the rule: epsilon, mu or rho."""
        try:
            limit = self.rule.limit(self.target, self.leak, self.slack)
        except ValueError as error:
            raise ValueError(
                f"method {self.rule.name!r} has no total that meets {self.target!r} with leak={self.leak:g} and "
                f"slack={self.slack:g}; loosen the target, reserve less, or choose another method. ({error})"
            ) from error
        if not limit > 0:
            raise ValueError(
                f"method {self.rule.name!r} has no positive total for {self.target!r}; use method='gdp' or 'basic'."
            )
        return limit

    @cached_property
    def guarantee(self) -> TradeOffCurve:
        """The curve of everything the filter will ever let through."""
        return self.rule.guarantee(self.target, self.limit, self.leak, self.slack)

    def charge(self, curve: TradeOffCurve, leak: float = 0.0) -> Charge:
        """What a release costs; infinite where no theorem covers its curve.

        Parameters
        ----------
        curve : TradeOffCurve
        leak : float
            Extra probability of disclosure under which the curve is charged, in [0, 1).

        Returns
        -------
        Charge
        """
        return charge_of(self.rule.cost, curve, leak)

    def room(self, spent: Charge) -> float:
        """Log of the limit over the total, for the tightest of the three costs: >= 0 exactly when all fit.

        Parameters
        ----------
        spent : Charge

        Returns
        -------
        float
        """
        pairs = (
            (self.limit, self.rule.total(float(spent.cost))),
            (-math.log1p(-self.leak), float(spent.leak)),
            (self.slack, float(spent.slack)),
        )
        return min(_log_ratio(limit, used) for limit, used in pairs)

    def left(self, spent: Charge) -> float:
        """What remains of the main cost, as the total of one more release."""
        limit = exact(self.rule.cost_of_total(self.limit))
        return self.rule.total(max(float(limit - spent.cost), 0.0))

    def refusal(self, spent: Charge, charge: Charge) -> str:
        """Say what was asked, what is left and what to do, for a release that does not fit."""
        unit, reserve = self.rule.unit, -math.log1p(-self.leak)
        total = spent + charge
        if math.isinf(float(charge.cost)):
            return (
                f"no finite {unit} covers this release under method {self.rule.name!r}; charge it with leak=... on a "
                "filter that reserves leak=..., use noise with a lighter tail, or another method."
            )
        if isinstance(self.target, GDP) and (charge.slack or charge.leak):
            return (
                "no mu covers the sampler slack or certain disclosure of this release; set a Budget(epsilon, delta) "
                "instead of a GDP target."
            )
        if float(total.slack) > self.slack:
            return (
                f"the release has sampler slack {float(charge.slack):.3g} and {float(spent.slack):.3g} of the reserve "
                f"{self.slack:.3g} is spent; build the filter with a larger slack=..., or sample more exactly."
            )
        if float(total.leak) > reserve:
            asked, used = (-math.expm1(-float(c.leak)) for c in (charge, spent))
            return (
                f"the release discloses its input with probability {asked:.3g} and {used:.3g} of the reserve "
                f"{self.leak:.3g} is spent; build the filter with a larger leak=..., or lower delta0."
            )
        return (
            f"the release costs {unit} = {self.rule.total(float(charge.cost)):.6g}, but {self.left(spent):.6g} of "
            f"{self.limit:.6g} is left; add more noise."
        )


def plan_filter(
    target: Target | TradeOffCurve,
    method: str = "auto",
    leak: float | None = None,
    slack: float | None = None,
    order: float | None = None,
) -> FilterPlan:
    """Check the parameters of a filter and fill in the defaults (see `PrivacyFilter`).

    Returns
    -------
    FilterPlan

    Examples
    --------
    >>> plan_filter(Budget(1.0, 0.0)).limit
    1.0
    """
    wanted = as_target(target)
    check_choice("method", method, ("auto", *METHODS))
    eta = _default_slack(wanted) if slack is None else check_number("slack", slack, 0.0, 0.5)
    whole = wanted.delta - slack_cost(wanted, eta) if isinstance(wanted, Budget) else 0.0
    default = whole if method == "basic" and whole > 0 else 0.0
    reserve = default if leak is None else check_number("leak", leak, 0.0, 1.0, high_open=True)
    if isinstance(wanted, Budget) and (reserve > whole or (reserve == whole > 0 and method != "basic")):
        raise ValueError(
            f"leak + (1 + e^epsilon) slack must be below delta = {wanted.delta:g}, got leak={reserve:g} and "
            f"slack={eta:g}; reserve less of the target."
        )
    if isinstance(wanted, GDP) and (reserve or eta):
        raise ValueError(
            f"leak and slack must be 0 for {wanted!r}, got leak={reserve:g} and slack={eta:g}: no mu covers certain "
            "disclosure; set a Budget(epsilon, delta) instead."
        )
    plan = FilterPlan(wanted, make_rule(method, wanted, reserve, eta, order), reserve, eta)
    _ = plan.limit
    return plan


def _default_slack(target: Target) -> float:
    """A millionth of the target: room for samplers that miss their law by 1e-15, at no visible cost."""
    if isinstance(target, Budget):
        return 1e-6 * target.delta / slack_cost(target, 1.0)
    if isinstance(target, Advantage):
        return 1e-6 * target.value
    if isinstance(target, ErrorRates):
        return 1e-6 * min(target.fpr, target.fnr)
    return 0.0


def _log_ratio(limit: float, used: float) -> float:
    if used == 0.0:
        return math.inf
    if limit == 0.0 or math.isinf(used):
        return -math.inf
    # the logarithm of two neighbouring floats may be the same: the comparison decides
    return max(math.log(limit / used), 0.0) if used <= limit else min(math.log(limit / used), -1e-16)
