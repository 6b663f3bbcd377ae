"""Fully adaptive composition: the next mechanism AND its parameters may depend on earlier outputs.

The composition theorems behind `compose` allow outputs to influence later queries, but every curve must be
fixed in advance. Somebody who looks at a noisy answer and then decides how much more to spend is outside them:
quoting the curves that happened to be used is no guarantee, because spending can stop the moment the outputs
are revealing. A privacy filter fixes the total in advance and refuses what would pass it; what it guarantees is
the TOTAL, not the part that happens to be spent. A privacy odometer has no total and gives a running bound that
holds at all times at once. Both use only theorems stated for adaptive parameters (see
`privfit.accounting.adaptive_rules`); zero-inflated curves and sampler slack are charged apart (`charges`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from privfit.accounting.base import TradeOffCurve
from privfit.accounting.charges import Charge
from privfit.accounting.filter_plan import BudgetExceeded, FilterPlan, plan_filter
from privfit.accounting.odometer import PrivacyOdometer
from privfit.accounting.single import Single
from privfit.accounting.targets import Target

__all__ = ["BudgetExceeded", "PrivacyFilter", "PrivacyOdometer"]


class PrivacyFilter(Single):
    """A budget that holds although mechanisms and their parameters are chosen by looking at earlier outputs.

    Ask before each release. What is let through, however it was chosen, meets the target as a whole. A refusal
    costs nothing: a smaller request may follow. A filter lives in the memory of one process, where threads may
    share it; it cannot be copied, pickled or used in a forked child, because two copies would spend the budget
    twice. To share one between processes or to survive a restart use ``Ledger(target, path, adaptive=...)``: a
    filter that was handed to a ledger is spent there, and refuses to be asked itself.

    Parameters
    ----------
    target : Target or TradeOffCurve
        `Budget`, `GDP`, `Advantage`, `ErrorRates`, or a curve to stay above.
    method : {"auto", "gdp", "basic", "rdp", "zcdp"}
        Theorem used, fixed in advance: "gdp" sums mu squared (best for Gaussian noise), "basic" sums epsilon,
        "rdp" sums Renyi divergences of one order, "zcdp" sums rho (best for many releases under pure DP).
        "auto" is "basic" for ``Budget(epsilon, 0)`` and "gdp" otherwise.
    leak : float, optional
        Part of the target reserved for releases that disclose their input with some probability: zero-inflated
        noise, (epsilon, delta) guarantees, tails. In [0, 1); by default all of delta for method "basic", else 0.
    slack : float, optional
        Part reserved for samplers that miss their law, as total variation. By default a millionth of the
        target's delta (or advantage, or error rate).
    order : float, optional
        Order of method "rdp", > 1; the best one for Gaussian noise by default.

    Raises
    ------
    ValueError, TypeError
        If the method has no total that meets the target, or a parameter is outside its range.

    Examples
    --------
    >>> import privfit.accounting as pa
    >>> budget = PrivacyFilter(pa.GDP(1.0))
    >>> charge = budget.ask(pa.gaussian(0.6))
    >>> budget.can_ask(pa.gaussian(0.8)), budget.can_ask(pa.gaussian(0.81))
    (True, False)
    >>> round(budget.left, 9)
    0.8
    """

    _twice = "two copies would spend the budget twice; use Ledger(target, path, adaptive=...), which can be shared."

    def __init__(
        self,
        target: Target | TradeOffCurve,
        method: str = "auto",
        *,
        leak: float | None = None,
        slack: float | None = None,
        order: float | None = None,
    ) -> None:
        super().__init__()
        self.plan = plan_filter(target, method, leak, slack, order)
        self.releases = 0
        self._spent = Charge()
        self._handed_over = False

    def __repr__(self) -> str:
        unit = self.plan.rule.unit
        if self._handed_over:
            return f"PrivacyFilter({self.plan.target!r}, spent in a ledger)"
        return f"PrivacyFilter({self.plan.target!r}, {unit} spent {self.spent:.6g} of {self.plan.limit:.6g})"

    def ask(self, curve: TradeOffCurve, leak: float = 0.0) -> Charge:
        """Charge a release, or refuse it and change nothing. Ask before the output exists.

        Parameters
        ----------
        curve : TradeOffCurve
            Guarantee of the next mechanism given everything released so far.
        leak : float
            Extra disclosure under which the curve is charged, taken from the filter's reserve: it makes curves
            without a finite cost affordable (heavy tails under "gdp", Gaussian noise under "basic").

        Returns
        -------
        Charge

        Raises
        ------
        BudgetExceeded
            If the total would pass the limit.
        RuntimeError
            In a forked child, or if the filter was handed to a ledger.

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> PrivacyFilter(pa.GDP(1.0)).ask(pa.gaussian(2.0))
        Traceback (most recent call last):
        ...
        privfit.accounting.filter_plan.BudgetExceeded: the release costs mu = 2, but 1 of 1 is left; add more noise.
        """
        charge = self.plan.charge(curve, leak)
        with self._ours():
            total = self._spent + charge
            if self.plan.room(total) < 0:
                raise BudgetExceeded(self.plan.refusal(self._spent, charge))
            self._spent = total
            self.releases += 1
        return charge

    def can_ask(self, curve: TradeOffCurve, leak: float = 0.0) -> bool:
        """Whether `ask` would let the release through; nothing is charged.

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> PrivacyFilter(pa.Budget(1.0, 0.0)).can_ask(pa.laplace(0.5))
        True
        """
        charge = self.plan.charge(curve, leak)
        with self._ours():
            return self.plan.room(self._spent + charge) >= 0

    @contextmanager
    def _ours(self) -> Iterator[None]:
        """Alone with a budget that is this filter's to spend."""
        with self._alone():
            if self._handed_over:
                raise RuntimeError("this filter was handed to a Ledger, which spends its budget; ask ledger.spend.")
            yield

    def _hand_over(self) -> FilterPlan:
        """Give the whole budget away, once."""
        with self._alone():
            if self.releases or self._handed_over:
                raise ValueError(
                    "adaptive must be an unused PrivacyFilter, got one that is spent from; build a new one."
                )
            self._handed_over = True
            return self.plan

    @property
    def spent(self) -> float:
        """Total so far in the unit of the method: epsilon, mu (root of the sum of squares) or rho.

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> PrivacyFilter(pa.GDP(1.0)).spent
        0.0
        """
        return self.plan.rule.total(float(self._spent.cost))

    @property
    def left(self) -> float:
        """Largest cost of one more release, in the same unit; 0 if the budget was handed to a ledger.

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> PrivacyFilter(pa.GDP(1.0)).left
        1.0
        """
        return 0.0 if self._handed_over else self.plan.left(self._spent)

    def guarantee(self) -> TradeOffCurve:
        """The curve of everything the filter will ever let through; it does not shrink to what is spent.

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> PrivacyFilter(pa.GDP(0.5)).guarantee()
        GaussianCurve(mu=0.5)
        """
        return self.plan.guarantee
