"""Reading a release a piece at a time: every piece is checked against the law and the record when it is read.

A release may be longer than memory; fitting needs sums over its rows only. A reader knows the law, the domain and
the number of rows before it reads one, and yields releases of at most `PART_ROWS` rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privfit.accounting.validation import check_choice
from privfit.mechanisms.columns import Column
from privfit.mechanisms.digests import pieces
from privfit.mechanisms.domains import Domain
from privfit.mechanisms.law import Law
from privfit.mechanisms.law_record import KINDS, MANIFEST, Header, part_name
from privfit.mechanisms.native import from_arrow
from privfit.mechanisms.piece_checks import check_first, check_piece
from privfit.mechanisms.record_checks import Record, UnknownFormatError, read_record
from privfit.mechanisms.releasing import Release
from privfit.mechanisms.stored import Stored, open_stored

__all__ = ["ReleaseReader", "open_release"]


@dataclass(frozen=True, repr=False)
class ReleaseReader:
    """A saved release, read in pieces (see `open_release`).

    ``len(reader)`` is the number of pieces; iterating yields them in order as `Release`s, each checked.

    Attributes
    ----------
    path : Path
    record : Record
        What the file, or the manifest, says.
    kind : str
        What the pieces' frames are.
    """

    path: Path
    record: Record
    kind: str

    @property
    def header(self) -> Header:
        """What all files of the release have in common."""
        return self.record.header

    @property
    def law(self) -> Law:
        """One law, or a Product."""
        return self.header.plan.law

    @property
    def domain(self) -> Domain | tuple[Domain, ...]:
        """The declared domain."""
        return self.header.plan.domain

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns with noise, in the order of the table."""
        return self.header.columns

    @property
    def public(self) -> tuple[Column, ...]:
        """Columns published unchanged."""
        return self.header.public

    @property
    def names(self) -> tuple[Column, ...]:
        """All columns, in the order of the table."""
        return self.header.names

    @property
    def rounding(self) -> str:
        """How values went to the grid."""
        return self.header.plan.rounding

    @property
    def secure(self) -> bool:
        """False if the noise came from a reproducible source."""
        return self.header.secure

    @property
    def n_rows(self) -> int:
        """Rows of the whole release."""
        return self.record.n_rows

    def __repr__(self) -> str:
        return f"ReleaseReader({self.n_rows} rows in {len(self)} pieces, law={self.law!r})"

    def __len__(self) -> int:
        return sum(pieces(rows) for rows, _ in self.record.parts) if self.record.parts else pieces(self.n_rows)

    def __iter__(self) -> Iterator[Release]:
        return (self.release(table) for table in self.tables())

    def tables(self) -> Iterator[Any]:
        """Yield the pieces as checked Arrow tables without metadata."""
        with naming(self.path):
            self._check_folder()
        if not self.record.parts:
            yield from _pieces(self.path, self.record, open_stored(self.path))
        for number in range(len(self.record.parts)):
            yield from self.part(number)

    def part(self, number: int) -> Iterator[Any]:
        """Yield the pieces of one file of a release in parts, as `tables` does of all."""
        path = self.path / part_name(number)
        stored = open_stored(path)
        with naming(path):
            part = self._part(stored, number)
        yield from _pieces(path, part, stored)

    def release(self, table: Any) -> Release:
        """Return an Arrow table that `tables` yielded, or several of them together, as a release."""
        header = self.header
        return Release(
            frame=from_arrow(table, self.kind, header.names, header.flat),
            law=self.law,
            domain=self.domain,
            columns=self.columns,
            public=self.public,
            n_rows=table.num_rows,
            kind=self.kind,
            secure=self.secure,
            names=self.names,
            rounding=self.rounding,
        )

    def _check_folder(self) -> None:
        if not self.record.parts:
            return
        there = {child.name for child in self.path.glob("part-*")}
        wanted = {part_name(number) for number in range(len(self.record.parts))}
        if wanted - there:
            raise ValueError(f"{min(wanted - there)} is missing.")
        if there - wanted:
            raise ValueError(f"{min(there - wanted)} is no part of it.")

    def _part(self, stored: Stored, number: int) -> Record:
        record = read_record(stored.text if stored.text is not None else b"null")
        rows, digests = self.record.parts[number]
        if record.header.release_id != self.header.release_id:
            raise ValueError("it is a part of another release.")
        if record.part != number:
            raise ValueError(f"it holds part {record.part} of the release: parts were copied or swapped.")
        if record.header != self.header or record.types != self.record.types:
            raise ValueError("its law or its columns are not those of the other parts.")
        if (record.n_rows, record.digests) != (rows, digests):
            raise ValueError("its rows are not those that the manifest lists.")
        return record


def open_release(path: Any, kind: str | None = None) -> ReleaseReader:
    """Open a saved release for reading in pieces, in bounded memory.

    Parameters
    ----------
    path : str or path
        A file or a folder that `Release.save` or a streaming release wrote.
    kind : {"numpy", "pandas", "polars", "pyarrow"}, optional
        What the pieces become; by default the kind that was released.

    Returns
    -------
    ReleaseReader

    Raises
    ------
    FileNotFoundError
        If there is nothing at `path`.
    ValueError
        If it carries no law, or one that does not fit together. What a piece holds is checked when it is read.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from privfit.mechanisms import Box, Gaussian, release
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     release(np.zeros((3, 1)), Gaussian(1.0), Box({"x": (0, 1)})).save(folder + "/x.parquet")
    ...     reader = open_release(folder + "/x.parquet")
    ...     len(reader), [piece.n_rows for piece in reader]
    (1, [3])
    """
    place = Path(path)
    if kind is not None:
        check_choice("kind", kind, KINDS)
    if place.is_dir():
        if not (place / MANIFEST).is_file():
            raise ValueError(
                f"{place} holds no {MANIFEST}: it is no release, or its writing has not ended. Let it end, or "
                "write it again."
            )
        with naming(place):
            record = read_record((place / MANIFEST).read_bytes(), manifest=True)
    else:
        text = open_stored(place).text
        if text is None:
            raise ValueError(f"{place} carries no law, so no correction can be chosen; pass what Release.save wrote.")
        with naming(place):
            record = read_record(text)
        if record.part is not None:
            raise ValueError(f"{place} is part {record.part} of a release in parts; pass its folder, {place.parent}.")
    return ReleaseReader(place, record, kind or record.header.kind)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put the path in front of what a check in the block finds; Arrow's own words, which quote cells, are dropped."""
    import pyarrow as pa

    broken = False
    try:
        yield
    except UnknownFormatError as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    except (pa.ArrowException, MemoryError, RecursionError):
        broken = True
    except (ValueError, TypeError, ArithmeticError) as error:
        raise ValueError(f"{path} was changed after it was saved: {error}") from error
    if broken:
        raise ValueError(f"{path} was changed after it was saved: its columns cannot be read.")


def _pieces(path: Path, record: Record, stored: Stored) -> Iterator[Any]:
    """Yield the checked pieces of one file."""
    if record.first_format:
        import pyarrow as pa

        tables = list(stored.pieces(record.header.texts, record.types))
        whole = pa.concat_tables(tables)
        with naming(path):
            check_first(record, whole)
        yield from tables
        return
    seen = rows = 0
    for table in stored.pieces(record.header.texts, record.types):
        with naming(path):
            check_piece(record, table, seen)
        seen, rows = seen + 1, rows + table.num_rows
        yield table
    with naming(path):
        if rows != record.n_rows:
            raise ValueError("its rows are not as many as were saved.")
