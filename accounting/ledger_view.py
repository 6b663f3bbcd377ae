"""Reading a ledger: what is in it, what it guarantees, what is left. Nothing here changes it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from privfit.accounting.accounts import Account, Accounts, Room, how_many, spent_so_far, would_fit
from privfit.accounting.base import TradeOffCurve
from privfit.accounting.calibration import calibrate
from privfit.accounting.filter_plan import BudgetExceeded
from privfit.accounting.journal import Journal
from privfit.accounting.ledger_format import KIND, Entry, check_place, line_of, new_entry, summary_of
from privfit.accounting.targets import Target

__all__ = ["LedgerView"]


class LedgerView:
    """The reading half of `Ledger`, which see."""

    def __init__(self, target: Target, start: Account, journal: Journal | None) -> None:
        self.target = target
        self._journal = journal
        self._start = start
        self._begin()
        self._born = self._process = os.getpid()
        self._mutex = threading.RLock()

    @contextmanager
    def _current(self, *, writing: bool = False) -> Iterator[None]:
        """Alone among threads (and processes, for writing), with everything that others have recorded."""
        if self._process != os.getpid():
            # a lock that another thread held during the fork would never be released in the child
            self._process, self._mutex = os.getpid(), threading.RLock()
        if writing and self._journal is None and self._born != self._process:
            raise RuntimeError(
                "this ledger lives in the memory of the process that made it: a forked copy would spend the budget "
                "twice; give it a path."
            )
        with self._mutex:
            if self._journal is None:
                yield
                return
            try:
                if writing:
                    with self._journal.writing() as news:
                        self._absorb(news)
                        yield
                else:
                    self._absorb(self._journal.read())
                    yield
            except BudgetExceeded:
                raise
            except BaseException:
                # interrupted anywhere between file and memory: the file decides, from its first line
                self._journal = self._journal.renewed()
                self._begin()
                raise

    def _begin(self) -> None:
        self._entries: list[Entry] = []
        self._notes: list[str] = []
        self._headed = False
        self._accounts = Accounts({None: self._start})

    def _absorb(self, records: list[dict[str, Any]]) -> None:
        for record in records:
            if record.get("kind") == KIND and not self._headed:
                self._headed = True  # `check_header` has seen it
                continue
            line = line_of(record)
            if isinstance(line, str):
                self._notes.append(line)
            else:
                self._accounts = self._accounts.extended(line.curve, line.part, line.leak)
                self._entries.append(line)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Everything recorded so far, oldest first.

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> from privfit.accounting.ledger import Ledger
        >>> Ledger(pa.GDP(1.0)).entries
        ()
        """
        with self._current():
            return tuple(self._entries)

    @property
    def checksum(self) -> str:
        """Checksum of the file's last line (empty in memory).

        Noted elsewhere, it proves later that nothing was cut off: see `contains`.

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> from privfit.accounting.ledger import Ledger
        >>> Ledger(pa.GDP(1.0)).checksum
        ''
        """
        with self._current():
            return self._journal.checksum if self._journal else ""

    def contains(self, checksum: str) -> bool:
        """Verify the whole file anew, and say whether a line with this checksum is in it.

        Parameters
        ----------
        checksum : str
            What `checksum` gave at some earlier time.

        Returns
        -------
        bool

        Raises
        ------
        ValueError
            If the file was changed.

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> from privfit.accounting.ledger import Ledger
        >>> Ledger(pa.GDP(1.0)).contains("0" * 64)
        False
        """
        if self._journal is None:
            return False
        fresh = Journal(self._journal.path, self._journal.kind)
        fresh.read()
        return checksum in fresh.checksums

    def guarantee(self) -> TradeOffCurve:
        """What all releases so far guarantee together: the worst part.

        For an adaptive ledger this is the guarantee of the whole target from the start.

        Returns
        -------
        TradeOffCurve

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> from privfit.accounting.ledger import Ledger
        >>> Ledger(pa.GDP(1.0)).guarantee().advantage
        0.0
        """
        with self._current():
            return self._accounts.guarantee()

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon for which everything so far is (epsilon, delta)-DP, on the safe side.

        Parameters
        ----------
        delta : float
            In [0, 1].

        Returns
        -------
        float

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> from privfit.accounting.ledger import Ledger
        >>> ledger = Ledger(pa.Budget(1.0, 0.0))
        >>> entry = ledger.spend(pa.laplace(0.25), "count")
        >>> ledger.epsilon(0.0), ledger.epsilon(0.0)
        (0.25, 0.25)
        """
        return self.guarantee().epsilon(delta)

    def can_spend(self, curve: TradeOffCurve, part: str | None = None, *, leak: float = 0.0) -> bool:
        """Whether `spend` would record the release; nothing is recorded.

        Parameters
        ----------
        curve, part, leak
            As for `Ledger.spend`.

        Returns
        -------
        bool

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> from privfit.accounting.ledger import Ledger
        >>> Ledger(pa.GDP(1.0)).can_spend(pa.gaussian(1.5))
        False
        """
        entry = new_entry(curve, "", part, leak)
        with self._current():
            return self._accounts.extended(curve, part, entry.leak).room() >= 0

    def remaining(
        self, family: Callable[[float], TradeOffCurve], part: str | None = None, *, leak: float = 0.0
    ) -> float:
        """Smallest noise scale of a mechanism family whose release still fits.

        Parameters
        ----------
        family : callable
            Maps a noise scale to a curve, as for `calibrate`.
        part : str, optional
            The group of records it would be about.
        leak : float
            As for `Ledger.spend`.

        Returns
        -------
        float

        Raises
        ------
        BudgetExceeded
            If no scale fits.

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> from privfit.accounting.ledger import Ledger
        >>> ledger = Ledger(pa.GDP(1.0))
        >>> entry = ledger.spend(pa.gaussian(0.6), "first")
        >>> round(ledger.remaining(lambda sigma: pa.gaussian(1 / sigma)), 6)
        1.25
        """
        extra = check_place(part, leak)
        with self._current():
            room = Room(self._accounts, part, extra, self.target)
        try:
            return calibrate(family, room)
        except ValueError as error:
            if "no noise scale up to" not in str(error):
                raise
            raise BudgetExceeded(f"no release of this family fits what is left of {self.target!r}: {error}") from error

    def how_many(self, curve: TradeOffCurve, part: str | None = None, *, leak: float = 0.0) -> int:
        """Number of further releases of one curve that fit (at most 10^12).

        Parameters
        ----------
        curve, part, leak
            As for `Ledger.spend`.

        Returns
        -------
        int

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> from privfit.accounting.ledger import Ledger
        >>> Ledger(pa.GDP(1.0)).how_many(pa.gaussian(0.25))
        16
        """
        entry = new_entry(curve, "", part, leak)
        with self._current():
            accounts = self._accounts
        return how_many(accounts, curve, part, entry.leak)

    def summary(self) -> str:
        """A table of the entries, the guarantee so far and what is left.

        Returns
        -------
        str

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> from privfit.accounting.ledger import Ledger
        >>> print(Ledger(pa.GDP(1.0)).summary())
        Ledger for GDP(mu=1.0)
        0 releases; so far mu = 0
        what would fit: one more Gaussian release with mu <= 1
        """
        with self._current():
            accounts, entries, notes = self._accounts, list(self._entries), list(self._notes)
        left = would_fit(Room(accounts, None, 0.0, self.target))
        return summary_of(self.target, entries, notes, spent_so_far(accounts, self.target), left)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        where = "in memory" if self._journal is None else os.path.basename(self._journal.path)
        return f"Ledger({self.target!r}, {where}, {len(self.entries)} releases)"
