"""The SQLite file of a record book: its tables, and what is asked of them.

Every call opens a connection of its own, so that threads, forks and copies share nothing; a writer keeps other
writers out until it commits, and what it has not committed is not there after a crash.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from privfit.mechanisms.record_ids import digests

__all__ = ["add", "begin", "connected", "look_up", "part_number"]

APPLICATION = 0x70666262  # tells SQLite files apart
VERSION = 1
WAIT = 600.0  # seconds for another process to finish
SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE parts (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE records (digest BLOB PRIMARY KEY, part INTEGER NOT NULL REFERENCES parts) WITHOUT ROWID;
CREATE TRIGGER kept BEFORE DELETE ON records BEGIN SELECT RAISE(ABORT, 'the book only grows'); END;
CREATE TRIGGER fixed BEFORE UPDATE ON records BEGIN SELECT RAISE(ABORT, 'the book only grows'); END;
"""


@contextmanager
def connected(path: str) -> Iterator[sqlite3.Connection]:
    """Open the file for the duration of a ``with`` block; errors hold no id.

    Raises
    ------
    OSError
        If the file is gone, or somebody else has been writing for ten minutes.
    ValueError
        If it is no database or damaged.
    """
    try:
        # mode=rw: a file that was removed must not come back empty
        file = sqlite3.connect(f"file:{quote(path)}?mode=rw", uri=True, timeout=WAIT, isolation_level=None)
        try:
            file.execute("PRAGMA synchronous = EXTRA")
            file.execute("PRAGMA temp_store = MEMORY")
            yield file
        finally:
            file.close()
    except sqlite3.OperationalError as error:
        raise OSError(f"{path} could not be read or written: {error}.") from None
    except sqlite3.DatabaseError as error:
        raise ValueError(f"{path} is no record book, or it is damaged: {error}. Restore it.") from None


def begin(file: sqlite3.Connection) -> None:
    """Lay out a new file; refuse one that is something else."""
    if _empty(file):
        file.execute("BEGIN IMMEDIATE")
        if _empty(file):  # nobody was faster
            for statement in SCHEMA.strip().split("\n"):
                file.execute(statement)
            file.execute("INSERT INTO facts VALUES ('key', ?)", (secrets.token_bytes(32),))
            file.execute(f"PRAGMA application_id = {APPLICATION}")
            file.execute(f"PRAGMA user_version = {VERSION}")
        file.execute("COMMIT")
    (application,), (version,) = (file.execute(f"PRAGMA {p}").fetchone() for p in ("application_id", "user_version"))
    if application != APPLICATION:
        raise ValueError("the file at path is a database, but no record book; check the path.")
    if version != VERSION:
        raise ValueError(f"the record book has version {version}, and this privfit reads {VERSION}; use a newer one.")


def _empty(file: sqlite3.Connection) -> bool:
    return not file.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]


def look_up(file: sqlite3.Connection, kind: str, ids: list[Any]) -> tuple[list[bytes], list[int | None]]:
    """Digests of some ids, and the number of the part of each, None if it is not in the book."""
    facts = dict(file.execute("SELECT name, value FROM facts"))
    known = facts.get("ids", kind)
    if kind and kind != known:
        raise TypeError(
            f"ids must be {known}, as those in the book, got {kind}: the same person would count as new. Convert them."
        )
    found = digests(ids, facts["key"])
    file.execute("CREATE TEMP TABLE asked (row INTEGER PRIMARY KEY, digest BLOB)")
    file.executemany("INSERT INTO asked (digest) VALUES (?)", ((digest,) for digest in found))
    rows = file.execute("SELECT part FROM asked LEFT JOIN records USING (digest) ORDER BY row")
    return found, [part for (part,) in rows]


def part_number(file: sqlite3.Connection, name: str) -> int:
    """Return the number of a part, a new one if it has none."""
    file.execute("INSERT OR IGNORE INTO parts (name) VALUES (?)", (name,))
    return int(file.execute("SELECT number FROM parts WHERE name = ?", (name,)).fetchone()[0])


def add(file: sqlite3.Connection, kind: str, found: list[bytes], places: list[int | None], number: int) -> int:
    """Put what is not yet in the book into a part, and return how many records that were."""
    fresh = sorted(digest for digest, place in zip(found, places, strict=True) if place is None)
    if fresh:
        file.execute("INSERT OR IGNORE INTO facts VALUES ('ids', ?)", (kind,))
        file.executemany("INSERT INTO records VALUES (?, ?)", ((digest, number) for digest in fresh))
    return len(fresh)
