"""The holder's private memory of which records were released, and in which part.

Releases about disjoint groups of records do not add up, but only as long as the groups are disjoint. The book keeps
every record id that was ever released as a keyed digest, BLAKE2b under a random key of the book, together with its
one part. It is an SQLite file that only grows: what a call notes is there entirely or not at all, however the process
dies, and several processes may share it.

The book stays with the holder. Its key lies in it, so whoever can read it can test whether an id is in it; the file
is readable by its owner alone. A book that is lost or replaced by an older copy takes released records for new.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.ledger_format import check_place
from privfit.mechanisms.record_file import add, begin, connected, look_up, part_number
from privfit.mechanisms.record_ids import read_ids

__all__ = ["RecordBook"]


class RecordBook:
    """Which records, by id, were released in which part.

    Ids are integers or text, the same for the book's whole life, and compared exactly: "a1" and "A1 " are two
    people; only the ways in which Unicode stores one accented letter are not told apart. A record's part is that of
    its first release; ids are hashed and looked up one by one, in the same way whether they are known or not.

    Parameters
    ----------
    path : path-like
        The file; created, readable by its owner alone, if it does not exist (`open` never creates one).

    Raises
    ------
    ValueError, TypeError
        If there is something else at the path, it is damaged, or others may read it.

    Examples
    --------
    >>> import os, tempfile
    >>> book = RecordBook(os.path.join(tempfile.mkdtemp(), "records.book"))
    >>> book.note(["ann", "bob"], "2026-10")
    2
    >>> book.new(["bob", "eve"])
    array([False,  True])
    >>> book.parts()
    {'2026-10': 2}
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = _file_path(path)
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        self._check_private()
        with connected(self.path) as file:
            begin(file)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open a book that exists.

        Parameters
        ----------
        path : path-like

        Returns
        -------
        RecordBook

        Raises
        ------
        FileNotFoundError, ValueError
            If there is no such file, or it is no record book.

        Examples
        --------
        >>> RecordBook.open("nowhere.book")
        Traceback (most recent call last):
            ...
        FileNotFoundError: there is no record book at 'nowhere.book'; check the path: an empty book takes all for new.
        """
        if not os.path.exists(_file_path(path)):
            raise FileNotFoundError(
                f"there is no record book at {os.fsdecode(path)!r}; check the path: an empty book takes all for new."
            )
        return cls(path)

    def new(self, ids: Any) -> NDArray[np.bool_]:
        """Return which rows were never released, by their ids.

        Parameters
        ----------
        ids : sequence, ndarray, or pandas, polars or pyarrow column
            Integers or text, one per row, distinct.

        Returns
        -------
        ndarray of shape (n,), bool

        Raises
        ------
        TypeError, ValueError
            If ids are missing, repeated, or of another type than those in the book. No message holds an id.
        """
        kind, cells = read_ids(ids)
        with connected(self.path) as file:
            return np.array([part is None for part in look_up(file, kind, cells)[1]], dtype=bool)

    def note(self, ids: Any, part: str) -> int:
        """Note that these records are about to be released in a part; it is on the disk when this returns.

        For a further release of records of one part: those that the book does not know join the part.

        Parameters
        ----------
        ids : sequence, ndarray, or pandas, polars or pyarrow column
        part : str
            Printable, at most 200 characters; the ledger's name of the group.

        Returns
        -------
        int
            How many were new.

        Raises
        ------
        ValueError
            If some of them belong to another part; nothing is noted then.
        TypeError, ValueError
            As `new`.
        """
        name, (kind, cells) = _check_part(part), read_ids(ids)
        with self._writing() as file:
            found, places = look_up(file, kind, cells)
            number = part_number(file, name)
            elsewhere = sum(place is not None and place != number for place in places)
            if elsewhere:
                raise ValueError(
                    f"part must be the one these records are in, got {elsewhere} of {len(places)} records of other "
                    "parts: a record in two parts is protected by both together, which the ledger would not count. "
                    "Release them under their own part, or release only the new ones."
                )
            return add(file, kind, found, places, number)

    @contextmanager
    def adding(self, ids: Any, part: str) -> Iterator[NDArray[np.bool_]]:
        """Claim the new ones among some records for a part, for the duration of a ``with`` block.

        They are in the book, on the disk, when the block ends, and not at all if it raises or the process dies in
        it. Inside, the release is written in the ledger; only after it may noise be drawn. Other writers wait.

        Parameters
        ----------
        ids : sequence, ndarray, or pandas, polars or pyarrow column
        part : str

        Yields
        ------
        ndarray of shape (n,), bool
            Which rows are new.

        Raises
        ------
        TypeError, ValueError
            As `new`.

        Examples
        --------
        >>> import os, tempfile
        >>> book = RecordBook(os.path.join(tempfile.mkdtemp(), "records.book"))
        >>> with book.adding([1, 2], "first wave") as new:
        ...     new
        array([ True,  True])
        """
        name, (kind, cells) = _check_part(part), read_ids(ids)
        with self._writing() as file:
            found, places = look_up(file, kind, cells)
            new = np.array([place is None for place in places], dtype=bool)
            if new.any():
                add(file, kind, found, places, part_number(file, name))
            yield new

    def parts(self) -> dict[str, int]:
        """Return the number of records in every part, in the order of their first release.

        Returns
        -------
        dict of str to int
        """
        query = "SELECT name, COUNT(digest) FROM parts LEFT JOIN records ON part = number GROUP BY number"
        with connected(self.path) as file:
            return {str(name): int(count) for name, count in file.execute(query)}

    def __repr__(self) -> str:
        counts = self.parts()
        return f"RecordBook({os.path.basename(self.path)}, {sum(counts.values())} records in {len(counts)} parts)"

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with connected(self.path) as file:
            file.execute("BEGIN IMMEDIATE")
            try:
                yield file
            except BaseException:
                if file.in_transaction:
                    file.execute("ROLLBACK")
                raise
            file.execute("COMMIT")

    def _check_private(self) -> None:
        if sys.platform != "win32" and os.stat(self.path).st_mode & 0o077:
            raise ValueError(
                f"{self.path} must be readable by its owner alone, since it tells who was released; run chmod 600."
            )


def _check_part(part: Any) -> str:
    if not isinstance(part, str) or not part:
        raise TypeError(f"part must be the name of a group of records, such as '2026-11', got {type(part).__name__}.")
    check_place(part, 0.0)
    return part


def _file_path(path: Any) -> str:
    try:
        text = os.fsdecode(path)
    except TypeError:
        raise TypeError(f"path must be text or path-like, got {type(path).__name__}; name a file.") from None
    if not text or "\0" in text or (os.path.exists(text) and not os.path.isfile(text)):
        raise ValueError(f"path must be that of a regular file, got {text!r}; name one, such as 'records.book'.")
    return os.path.abspath(text)
