"""A ledger: spend a privacy budget release by release, and never more than there is.

Order matters. The release is recorded first, on the disk if the ledger has a file, and only then made: a crash
in between wastes budget, the opposite order would lose a release that somebody has seen.

    ledger = Ledger(Budget(1.0, 1e-5), "study.jsonl")
    with ledger.reserve(curve, "age, by ZIL"):      # refused here, or written down here
        publish(mechanism(data))                    # only now does anything leave

The target is judged on the composed curve, on the safe side of every numerical error.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from privfit.accounting.accounts import Account, CurveAccount, FilterAccount, refusal
from privfit.accounting.adaptive import PrivacyFilter
from privfit.accounting.base import TradeOffCurve
from privfit.accounting.filter_plan import BudgetExceeded, FilterPlan, plan_filter
from privfit.accounting.journal import Journal
from privfit.accounting.ledger_format import (
    KIND,
    Entry,
    check_header,
    entry_of,
    filter_of,
    header_of,
    new_entry,
    record_of,
    target_of,
)
from privfit.accounting.ledger_view import LedgerView
from privfit.accounting.targets import Target, as_target

__all__ = ["BudgetExceeded", "Entry", "Ledger"]


class Ledger(LedgerView):
    """Releases made so far, what they guarantee together, and what is left of a target.

    A plain ledger composes curves: outputs may influence which of the planned releases is made next, but every
    release's parameters must be fixed without looking at outputs. If noise is chosen after looking (spend more
    because the first answer was unclear), pass ``adaptive=True``: refusals then follow a privacy filter, whose
    guarantee is that of the whole target from the start (see `privfit.accounting.adaptive`).

    A curve of P against Q that differs from its `reversed` counts in both directions: what is composed is
    `symmetrized` of it (filters charge the worse direction), what is recorded is the curve as it was given.

    Releases about disjoint groups of records (``part=``) do not add up across groups: the guarantee is the
    worst group's. Neighbouring inputs differ in one record; the part of a record must be fixed in advance, and
    each record must be in one part only.

    With a path every spend is one line of a JSON-lines file, written under a lock and flushed before `spend`
    returns; any number of processes may share it. Lines are chained by checksums, so that edits are noticed;
    `checksum`, noted elsewhere, also reveals a cut end. Reading never changes a ledger. Instances may be used
    from several threads; one with a path survives fork and pickle, one in memory refuses both, because two
    copies would spend the budget twice.

    Parameters
    ----------
    target : Target or TradeOffCurve
        `Budget`, `GDP`, `Advantage`, `ErrorRates`, or a curve to stay above. Fixed for the ledger's life.
    path : path-like, optional
        The file; created if it does not exist. By default the ledger lives in memory.
    adaptive : bool or PrivacyFilter
        True for a filter with default settings, or an unused `PrivacyFilter` for the same target. The ledger takes
        its budget over: asking the filter itself, or giving it to another ledger, is an error from then on.

    Raises
    ------
    ValueError, TypeError
        If the file belongs to another target, is damaged or is no ledger, or a parameter is wrong.

    Examples
    --------
    >>> import privfit.accounting as pa
    >>> ledger = Ledger(pa.Budget(1.0, 1e-5))
    >>> entry = ledger.spend(pa.gaussian(0.2), "mean of age")
    >>> ledger.how_many(pa.gaussian(0.1))
    3
    >>> round(ledger.remaining(lambda sigma: pa.gaussian(1 / sigma)), 4)
    5.6032
    """

    def __init__(
        self,
        target: Target | TradeOffCurve,
        path: str | os.PathLike[str] | None = None,
        *,
        adaptive: bool | PrivacyFilter = False,
    ) -> None:
        wanted = as_target(target)
        plan = _plan(wanted, adaptive)
        start: Account = FilterAccount(plan) if plan else CurveAccount(wanted)
        journal = None
        if path is not None:
            header = header_of(target, plan)
            journal = Journal(path, KIND)
            check_header(journal.create(header), header, journal.path)
        if isinstance(adaptive, PrivacyFilter):
            adaptive._hand_over()
        super().__init__(wanted, start, journal)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Ledger:
        """Open an existing file with the target it was made for.

        Parameters
        ----------
        path : path-like

        Returns
        -------
        Ledger

        Raises
        ------
        FileNotFoundError, ValueError
            If there is no such file, or it is no ledger or damaged.

        Examples
        --------
        >>> import os, tempfile
        >>> import privfit.accounting as pa
        >>> path = os.path.join(tempfile.mkdtemp(), "study.jsonl")
        >>> entry = Ledger(pa.GDP(1.0), path).spend(pa.gaussian(0.5), "first")
        >>> Ledger.open(path).guarantee()
        GaussianCurve(mu=0.5)
        """
        header = Journal(path, KIND).read()[0]
        return cls(target_of(header), path, adaptive=filter_of(header) or False)

    def __reduce__(self) -> Any:
        if self._journal is None:
            raise TypeError("a ledger in memory cannot be copied: both would spend one budget; give it a path.")
        return Ledger.open, (self._journal.path,)

    def spend(self, curve: TradeOffCurve, label: str = "", part: str | None = None, *, leak: float = 0.0) -> Entry:
        """Record a release, or refuse it and record nothing. Release only after this returns.

        Parameters
        ----------
        curve : TradeOffCurve
            What the release guarantees.
        label : str
            A name for it (printable, at most 200 characters); never data.
        part : str, optional
            The group of records it is about; None means all of them.
        leak : float
            For adaptive ledgers: extra disclosure under which the curve is charged (see `PrivacyFilter.ask`).

        Returns
        -------
        Entry

        Raises
        ------
        BudgetExceeded
            If the total would break the target.
        ValueError, TypeError
            If a parameter is wrong or the file is damaged.

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> ledger = Ledger(pa.GDP(1.0))
        >>> ledger.spend(pa.gaussian(0.5), "mean of age", part="hospital A").label
        'mean of age'
        """
        entry = new_entry(curve, label, part, leak)
        with self._current(writing=True):
            after = self._accounts.extended(curve, part, entry.leak)
            if not after.room() >= 0:
                what = f"release {label!r}" + (f" about {part!r}" if part is not None else "")
                raise BudgetExceeded(refusal(self._accounts, self.target, what, curve, part, entry.leak))
            if self._journal is not None:
                record = record_of(entry)
                # what cannot be read back must not be written: it would make the ledger unreadable
                entry_of(json.loads(json.dumps(record, allow_nan=False)))
                self._journal.append(record)
            self._accounts = after
            self._entries.append(entry)
            return entry

    @contextmanager
    def reserve(
        self, curve: TradeOffCurve, label: str = "", part: str | None = None, *, leak: float = 0.0
    ) -> Iterator[Entry]:
        """Record a release, then run the block that makes it; the entry stays if the block fails.

        An output may have been seen before the failure, so that the budget counts as spent.

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> ledger = Ledger(pa.GDP(1.0))
        >>> with ledger.reserve(pa.gaussian(0.5), "noisy count") as entry:
        ...     len(ledger.entries)
        1
        """
        entry = self.spend(curve, label, part, leak=leak)
        try:
            yield entry
        except BaseException as error:
            error.add_note(f"The release {label!r} stays in the ledger: something may have left before this error.")
            raise


def _plan(target: Target, adaptive: bool | PrivacyFilter) -> FilterPlan | None:
    if isinstance(adaptive, bool):
        return plan_filter(target) if adaptive else None
    if not isinstance(adaptive, PrivacyFilter):
        raise TypeError(f"adaptive must be True, False or a PrivacyFilter, got {type(adaptive).__name__}.")
    if adaptive.plan.target != target:
        raise ValueError("adaptive must be an unused PrivacyFilter for the ledger's own target; build a new one.")
    return adaptive.plan
