"""Releasing what is new in a table that grows: every record once, each wave in a part of its own.

Waves of different records do not add up (parallel composition): a record is protected by the release of its own part
alone, whatever happened in the others. That the parts are disjoint is what the holder's `RecordBook` sees to.

    the book, in a transaction:   which ids are new?  they belong to this part now
        the ledger, on the disk:  is there room in this part?  the release is spent
    the book is on the disk
    noise is drawn; the release leaves

Whatever dies where, nothing has left that is not in both files: before the book is on the disk a second try finds the
same records and spends again; after it they count as released, although nobody may have seen them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from privfit.mechanisms.cells import check_names
from privfit.mechanisms.charging import spending
from privfit.mechanisms.columns import Column
from privfit.mechanisms.frames import read_table
from privfit.mechanisms.plan import plan_release
from privfit.mechanisms.record_book import RecordBook
from privfit.mechanisms.releasing import Release, release
from privfit.mechanisms.rows import pick_rows

if TYPE_CHECKING:
    from privfit.accounting import Ledger

__all__ = ["NothingNewWarning", "release_new"]


class NothingNewWarning(UserWarning):
    """All records of the table were released before: the release is empty, and nothing was spent.

    Examples
    --------
    >>> issubclass(NothingNewWarning, UserWarning)
    True
    """


def release_new(
    data: Any,
    law: Any,
    domain: Any,
    *,
    ids: Any,
    book: RecordBook,
    ledger: Ledger,
    part: str,
    label: str = "",
    public: Iterable[Column] | None = None,
    rounding: str = "nearest",
    protect: str = "record",
) -> Release:
    """Release the rows whose ids were never released before, and note them in the book and in the ledger.

    Take a new name of `part` for every wave: records of one part add up, even where they are different ones.

    The number of rows of the result is the number of new records, and nothing hides it: somebody who knows who joined
    since the last wave knows that their rows are among these. What the rows hold is protected as ever. The ids decide
    which rows are released and which errors are raised, and may: the guarantee compares tables with the same records
    (ids) that differ in what one of them holds.

    Parameters
    ----------
    data : ndarray, or pandas, polars or pyarrow table
        One row per person, old rows and new.
    law, domain, public, rounding
        As for `privfit.release`.
    ids : str, or sequence, ndarray, or pandas, polars or pyarrow column
        Integers or text, one per row, distinct; or the name of a column of `data`, which is not released.
    book : RecordBook
        The holder's memory of released records.
    ledger : Ledger
        Of the same records; with a path, to survive the process.
    part : str
        Name of this wave, for instance "2026-11".
    label, protect
        As for `privfit.release`.

    Returns
    -------
    Release
        The new rows in the order of `data`; without rows if nothing is new.

    Raises
    ------
    BudgetExceeded
        If the ledger refuses: nothing is released or noted.
    TypeError, ValueError
        If parameters, schema and ids do not fit together; nothing is spent then.

    Warns
    -----
    NothingNewWarning
        If no record is new; the ledger is not charged.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from privfit.accounting import GDP, Ledger
    >>> from privfit.mechanisms import Box, Gaussian
    >>> folder = tempfile.mkdtemp()
    >>> book = RecordBook(os.path.join(folder, "records.book"))
    >>> ledger = Ledger(GDP(0.5), os.path.join(folder, "study.jsonl"))
    >>> both = {"ids": ["ann", "bob"], "book": book, "ledger": ledger}
    >>> law, domain = Gaussian(2.0), Box({"x": (0, 1)})
    >>> release_new(np.array([[0.2], [0.9]]), law, domain, **both, part="2026-10")
    Release(2 rows, numpy, law=Gaussian(scale=2.0))
    >>> both["ids"] = ["ann", "bob", "eve"]
    >>> release_new(np.array([[0.2], [0.9], [0.4]]), law, domain, **both, part="2026-11")
    Release(1 rows, numpy, law=Gaussian(scale=2.0))
    >>> ledger.guarantee()
    GaussianCurve(mu=0.5)
    """
    if not isinstance(book, RecordBook):
        raise TypeError(f"book must be a RecordBook, got {type(book).__name__}; make one with RecordBook(path).")
    if ledger is None:
        raise TypeError("ledger must be a privfit.Ledger, got None: without one nobody counts what the waves spend.")
    plan = plan_release(law, domain, public, rounding)
    own, table = _ids_and_table(data, ids)
    read = read_table(table, plan.columns)
    if len(own) != read.rows:
        raise ValueError(f"ids must have one id for each of the {read.rows} rows of data, got {len(own)}.")
    plan.check_schema(read)
    with ExitStack() as spent:
        with book.adding(own, part) as new:
            entry = spending(plan, ledger, label, part, protect)
            if new.any():
                spent.enter_context(entry)
        done = release(pick_rows(table, new), law, domain, plan.public, rounding=rounding)
    if not new.any():
        warnings.warn(
            "no record is new: all of them were released before. The release is empty; the ledger was not charged.",
            NothingNewWarning,
            stacklevel=2,
        )
    return done


def _ids_and_table(data: Any, ids: Any) -> tuple[Any, Any]:
    """The column of ids, and the table without it."""
    if not isinstance(ids, str):
        return (ids if hasattr(ids, "__len__") else list(ids)), data
    import narwhals as nw

    check_names(data)
    frame = nw.from_native(data, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame) or ids not in frame.columns:
        raise ValueError(f"ids must name a column of data or hold the ids, got the name {ids!r} that data has not.")
    return frame.get_column(ids).to_native(), frame.drop(ids).to_native()
