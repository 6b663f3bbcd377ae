"""Accounts that releases are added to: one total for everybody, one for each group of records.

Groups (parts) are disjoint sets of records, such as hospitals. A record of part p has seen the common releases
and those about p, so its total is ``compose(common, part p)``; the guarantee of the whole is the worst part.
This is parallel composition, and it needs that the part of a record is fixed and public: neighbouring inputs
differ in one record that is in the same part in both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from privfit.accounting.base import TradeOffCurve
from privfit.accounting.calibration import calibrate
from privfit.accounting.charges import Charge
from privfit.accounting.composition import compose, self_compose
from privfit.accounting.discrete import approximate_dp
from privfit.accounting.filter_plan import FilterPlan
from privfit.accounting.gaussian import gaussian
from privfit.accounting.laplace import laplace
from privfit.accounting.symmetrized import symmetrized
from privfit.accounting.targets import GDP, Budget, ErrorRates, Target
from privfit.accounting.wrappers import minimum

__all__ = [
    "Account",
    "Accounts",
    "CurveAccount",
    "FilterAccount",
    "Room",
    "how_many",
    "measured",
    "refusal",
    "spent_so_far",
    "would_fit",
]

MOST = 10**12  # releases counted by `how_many`
PRACTICALLY_NOTHING = 1e-3  # mu or epsilon of a release that says as good as nothing


class Account(Protocol):
    """What one group of records has been charged."""

    def extended(self, curve: TradeOffCurve, leak: float, times: int) -> Account:
        """The account after `times` more releases of a curve."""

    def room(self) -> float:
        """Positive or zero exactly when the target holds, and continuous in the curve."""

    def guarantee(self) -> TradeOffCurve:
        """The curve that holds now."""


@dataclass(frozen=True)
class CurveAccount:
    """The composed curve of releases whose parameters were fixed in advance, each in both directions of its pair."""

    target: Target
    curve: TradeOffCurve | None = None

    def extended(self, curve: TradeOffCurve, leak: float, times: int) -> CurveAccount:
        """Compose; leaks belong to filters."""
        if leak:
            raise ValueError(f"leak must be 0 without adaptive=True, got {leak!r}; the curve itself is composed.")
        both = symmetrized(curve)  # the neighbour that lacks the record is protected as well
        more = both if times == 1 else self_compose(both, times)
        return CurveAccount(self.target, more if self.curve is None else compose(self.curve, more))

    def room(self) -> float:
        """Slack of the target."""
        return math.inf if self.curve is None else self.target.slack(self.curve)

    def guarantee(self) -> TradeOffCurve:
        """The composed curve; perfect privacy before the first release."""
        return approximate_dp(0.0) if self.curve is None else self.curve


@dataclass(frozen=True)
class FilterAccount:
    """Charges under a theorem that allows parameters to be chosen adaptively."""

    plan: FilterPlan
    spent: Charge = field(default_factory=Charge)

    def extended(self, curve: TradeOffCurve, leak: float, times: int) -> FilterAccount:
        """Add the charge."""
        return FilterAccount(self.plan, self.spent + self.plan.charge(curve, leak) * times)

    def room(self) -> float:
        """Room of the filter."""
        return self.plan.room(self.spent)

    def guarantee(self) -> TradeOffCurve:
        """That of the filter's limit: what happens to be spent is no guarantee."""
        return self.plan.guarantee


@dataclass(frozen=True)
class Accounts:
    """An account for every part, and under None the one that has the common releases only.

    Examples
    --------
    >>> import privfit.accounting as pa
    >>> start = Accounts({None: CurveAccount(pa.GDP(1.0))})
    >>> after = start.extended(pa.gaussian(0.6), "north").extended(pa.gaussian(0.8), "south")
    >>> round(after.guarantee().gdp(), 4)
    0.8
    """

    accounts: dict[str | None, Account]
    changed: tuple[str | None, ...] = ()

    def extended(self, curve: TradeOffCurve, part: str | None = None, leak: float = 0.0, times: int = 1) -> Accounts:
        """The accounts after `times` more releases about one part, or about everybody (None)."""
        touched = tuple(self.accounts) if part is None else (part,)
        common = self.accounts[None]
        new = {name: self.accounts.get(name, common).extended(curve, leak, times) for name in touched}
        return Accounts(self.accounts | new, touched)

    def room(self) -> float:
        """Smallest room of the accounts that the last release touched: the others were accepted before."""
        smallest = min((self.accounts[name].room() for name in self.changed), default=math.inf)
        first = self.accounts[None]
        if isinstance(first, CurveAccount) and isinstance(first.target, ErrorRates) and len(self.accounts) > 1:
            # the worst of two curves is their convex minimum: it may pass below a point that both are above
            return min(smallest, first.target.slack(self.guarantee()))
        return smallest

    def guarantee(self) -> TradeOffCurve:
        """The worst of the parts."""
        parts = [account for name, account in self.accounts.items() if name is not None]
        return minimum(*(account.guarantee() for account in parts or [self.accounts[None]]))


@dataclass(frozen=True)
class Room(Target):
    """The requirement that a release fits next to what is spent: what `calibrate` solves for."""

    accounts: Accounts
    part: str | None
    leak: float
    target: Target

    def slack(self, curve: TradeOffCurve) -> float:
        """Room that is left after the release."""
        return self.accounts.extended(curve, self.part, self.leak).room()

    def __repr__(self) -> str:
        return f"what is left of {self.target!r}"


def refusal(accounts: Accounts, target: Target, what: str, curve: TradeOffCurve, part: str | None, leak: float) -> str:
    """Say what was asked, what is left and what would fit."""
    account = accounts.accounts.get(part, accounts.accounts[None])
    if isinstance(account, FilterAccount):
        return f"{what} refused: {account.plan.refusal(account.spent, account.plan.charge(curve, leak))}"
    before, after = accounts.guarantee(), accounts.extended(curve, part).guarantee()
    return (
        f"{what} refused, nothing was recorded: so far {measured(target, before)}, with it {measured(target, after)}, "
        f"target {target!r}. What would fit: {would_fit(Room(accounts, part, 0.0, target))}."
    )


def how_many(accounts: Accounts, curve: TradeOffCurve, part: str | None, leak: float) -> int:
    """Largest number of further releases of a curve with room, by doubling and bisection."""

    def fits(times: int) -> bool:
        return accounts.extended(curve, part, leak, times).room() >= 0

    high = 1
    while high <= MOST and fits(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return min(low, MOST)


def would_fit(room: Room) -> str:
    """The largest further release that fits, as Gaussian noise or else as Laplace noise."""
    families: tuple[tuple[str, Callable[[float], TradeOffCurve]], ...] = (
        ("Gaussian release with mu", lambda scale: gaussian(1 / scale)),
        ("Laplace release with epsilon", lambda scale: laplace(1 / scale)),
    )
    for name, family in families:
        try:
            scale = calibrate(family, room, rtol=1e-4)
        except ValueError:
            continue
        if 1 / scale < PRACTICALLY_NOTHING:
            return "practically nothing: the budget is spent"
        return f"one more {name} <= {1 / scale:.6g}"
    return "nothing more"


def spent_so_far(accounts: Accounts, target: Target) -> str:
    """What a summary says about the releases so far."""
    filters = [account for account in accounts.accounts.values() if isinstance(account, FilterAccount)]
    if not filters:
        return measured(target, accounts.guarantee())
    rule, limit = filters[0].plan.rule, filters[0].plan.limit
    spent = max(rule.total(float(account.spent.cost)) for account in filters)
    return f"{rule.unit} = {spent:.6g} of {limit:.6g} spent; adaptive: what is guaranteed is the whole target"


def measured(target: Target, curve: TradeOffCurve) -> str:
    """The number of a curve that its target limits, in words.

    Examples
    --------
    >>> from privfit.accounting.gaussian import gaussian
    >>> measured(Budget(1.0, 1e-5), gaussian(0.1))
    'epsilon = 0.340669 at delta = 1e-05'
    """
    if isinstance(target, Budget):
        return f"epsilon = {curve.epsilon(target.delta):.6g} at delta = {target.delta:g}"
    if isinstance(target, GDP):
        return f"mu = {curve.gdp():.6g}"
    if isinstance(target, ErrorRates):
        return f"false-negative rate >= {curve.curve(target.fpr):.6g} at false-positive rate {target.fpr:g}"
    return f"advantage = {curve.advantage:.6g}"
