"""Private tables in files, read a few rows at a time: Parquet, a folder of Parquet files, Arrow IPC.

What a file is must not change while it is released, because two states of a table under one key reveal their
difference. A file counts as unchanged while its size, its time of modification and the bytes at its ends (a Parquet
or Arrow file ends with its table of contents) are the same; a change that leaves all of these alone is not seen.
Row groups are decoded from the front, a bounded piece at a time, so that one of any size fits in memory.
"""

from __future__ import annotations

import hashlib
import os
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

from privfit.mechanisms.formats import SUFFIXES
from privfit.mechanisms.frames import read_table

__all__ = ["Reader", "Source", "SourceFile", "open_source"]

_BATCH_ROWS = 65_536
_BUFFER = 1 << 20
_END = 1 << 16


@dataclass(frozen=True)
class SourceFile:
    """One file of a table: its identity, and the rows of its row groups or record batches."""

    path: Path
    size: int
    modified: int
    digest: str
    groups: tuple[int, ...]

    def check_unchanged(self) -> None:
        """Raise ValueError unless size and time of modification are what they were."""
        try:
            now = os.stat(self.path)
            same = (now.st_size, now.st_mtime_ns) == (self.size, self.modified)
        except FileNotFoundError:
            same = False
        if not same:
            raise ValueError(
                f"{self.path} was changed while it was being released. The same key on changed data would reveal the "
                "change: put the file back as it was, or give this release up and begin another one."
            )


@dataclass(frozen=True)
class Source:
    """A table in one file or several (see `open_source`).

    Attributes
    ----------
    path : Path
    files : tuple of SourceFile
    schema : pyarrow.Schema
        Without metadata.
    """

    path: Path
    files: tuple[SourceFile, ...]
    schema: Any

    @cached_property
    def groups(self) -> list[tuple[int, int]]:
        """File and position in it, of every row group that has rows."""
        return [(k, g) for k, file in enumerate(self.files) for g, rows in enumerate(file.groups) if rows]

    @cached_property
    def starts(self) -> list[int]:
        """Number of the first row of every row group, and the number of rows at the end."""
        return [0, *accumulate(self.files[k].groups[g] for k, g in self.groups)]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.starts[-1]

    def group_of(self, row: int) -> int:
        """Return which row group a row is in."""
        return bisect_right(self.starts, row) - 1

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells this table from others and from itself after a change; plain JSON values."""
        known = [(file.path.name, file.size, file.modified, file.digest, file.groups) for file in self.files]
        return {"rows": self.rows, "digest": hashlib.blake2b(repr(known).encode(), digest_size=16).hexdigest()}


def open_source(path: Any) -> Source:
    """Look at the schema and the extent of a table in files, and at none of its cells.

    Parameters
    ----------
    path : str or path
        A Parquet file, an Arrow IPC file, or a folder of Parquet files with one schema, which count in the order of
        their names (numbers in them by value).

    Returns
    -------
    Source

    Raises
    ------
    FileNotFoundError
        If there is nothing at `path`.
    ValueError
        If it is no table of these kinds.

    Examples
    --------
    >>> import tempfile, pyarrow, pyarrow.parquet
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pyarrow.parquet.write_table(pyarrow.table({"x": [1.0, 2.0, 3.0]}), folder + "/x.parquet")
    ...     source = open_source(folder + "/x.parquet")
    ...     Reader(source, ["x"]).read(1, 2)["x"].to_pylist()
    [2.0, 3.0]
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"source: there is no {path}.")
    found = [_open_file(child) for child in (_members(path) if path.is_dir() else [path])]
    schema = found[0][1]
    for file, other in found[1:]:
        if other != schema:
            raise ValueError(
                f"source: {file.path.name} has other columns or types than {found[0][0].path.name}; write the files "
                "with one schema."
            )
    read_table(schema.empty_table(), ())
    return Source(path, tuple(file for file, _ in found), schema)


def _members(folder: Path) -> list[Path]:
    children = [child for child in folder.iterdir() if not child.name.startswith((".", "_"))]
    foreign = [child.name for child in children if _format(child) != "parquet" or child.is_dir()]
    if foreign or not children:
        what = f"also {min(foreign)}" if foreign else "nothing"
        raise ValueError(f"source: a folder must hold Parquet files alone, got {what} in {folder}.")
    return sorted(children, key=lambda child: [(len(d), d, t) for t, d in re.findall(r"(\D*)(\d*)", child.name)])


def _format(path: Path) -> str:
    return SUFFIXES.get(path.suffix.lower(), "")


def _open_file(path: Path) -> tuple[SourceFile, Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    before, readable = os.stat(path), True
    try:
        if _format(path) == "parquet":
            with pq.ParquetFile(path) as parquet:
                contents = parquet.metadata
                groups = tuple(contents.row_group(k).num_rows for k in range(contents.num_row_groups))
                schema = parquet.schema_arrow
        elif _format(path) == "arrow":
            with pa.memory_map(str(path)) as mapped:
                schema = pa.ipc.open_file(mapped).schema
                # One column tells the number of rows.
                first = pa.ipc.open_file(mapped, options=pa.ipc.IpcReadOptions(included_fields=[0]))
                groups = tuple(first.get_batch(k).num_rows for k in range(first.num_record_batches))
        else:
            raise ValueError(
                "source must be a Parquet file (.parquet), an Arrow IPC file (.arrow, .feather) or a folder of "
                f"Parquet files, got {path.name!r}."
            )
    except (pa.ArrowException, OSError):
        readable = False
    if not readable:
        # said outside of the handler: Arrow's own words may quote what it found
        raise ValueError(f"source: {path} cannot be read as what its name says.")
    file = SourceFile(path, before.st_size, before.st_mtime_ns, _ends_digest(path), groups)
    file.check_unchanged()
    return file, schema.remove_metadata()


def _ends_digest(path: Path) -> str:
    with path.open("rb") as stream:
        digest = hashlib.blake2b(stream.read(_END), digest_size=16)
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - _END))
        digest.update(stream.read())
    return digest.hexdigest()


class Reader:
    """Reads runs of rows, cheaply when they follow one another.

    Parameters
    ----------
    source : Source
    columns : sequence of str
    """

    def __init__(self, source: Source, columns: Sequence[str]) -> None:
        self._source = source
        self._columns = list(columns)
        self._row = 0
        self._rest: Any = None
        self._batches: Iterator[tuple[SourceFile, Any]] | None = None

    def read(self, first: int, rows: int) -> Any:
        """Return some consecutive rows.

        Parameters
        ----------
        first, rows : int

        Returns
        -------
        pyarrow.Table

        Raises
        ------
        ValueError
            If the file has changed, or is damaged.
        """
        import pyarrow as pa

        source = self._source
        if rows == 0:
            return source.schema.empty_table().select(self._columns)
        start = source.starts[source.group_of(first)]
        if self._batches is None or not start <= self._row <= first:
            self.close()
            self._row, self._batches = start, self._from(source.group_of(first))
        taken: list[Any] = []
        touched: dict[Path, SourceFile] = {}
        while self._row < first + rows:
            if self._rest is None:
                file, self._rest = next(self._batches)
                touched[file.path] = file
            skipped = min(max(first - self._row, 0), self._rest.num_rows)
            batch = self._rest.slice(skipped, first + rows - self._row - skipped)
            left = self._rest.num_rows - skipped - batch.num_rows
            self._rest = self._rest.slice(skipped + batch.num_rows) if left else None
            self._row += skipped + batch.num_rows
            if batch.num_rows:
                taken.append(batch)
        for file in touched.values():
            file.check_unchanged()
        return pa.Table.from_batches(taken).select(self._columns)

    @property
    def is_inside(self) -> bool:
        """Whether the next row is inside a row group, so that to read it with another reader would cost more."""
        starts = self._source.starts
        return self._batches is not None and starts[bisect_right(starts, self._row) - 1] != self._row

    def close(self) -> None:
        """Close the file and forget the rows that were decoded and not asked for."""
        if self._batches is not None:
            self._batches.close()  # type: ignore[attr-defined]
        self._batches = self._rest = None

    def _from(self, group: int) -> Iterator[tuple[SourceFile, Any]]:
        """Yield batches from the beginning of a row group to the end of the table."""
        import pyarrow as pa

        source, number = self._source, group
        while number < len(source.groups):
            k = source.groups[number][0]
            file = source.files[k]
            file.check_unchanged()
            own = [g for j, g in source.groups[number:] if j == k]
            sound = True
            try:
                for batch in self._batches_of(file, own):
                    yield file, batch
            except (pa.ArrowException, OSError):
                sound = False
            if not sound:
                # said outside of the handler, as above
                raise ValueError(f"source: {file.path} is damaged; check where it came from.")
            number += len(own)

    def _batches_of(self, file: SourceFile, groups: list[int]) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if _format(file.path) == "arrow":
            fields = [self._source.schema.get_field_index(name) for name in self._columns]
            with pa.memory_map(str(file.path)) as mapped:
                contents = pa.ipc.open_file(mapped, options=pa.ipc.IpcReadOptions(included_fields=fields))
                for group in groups:
                    yield contents.get_batch(group)
            return
        # A buffer size makes Arrow read column chunks by pages instead of whole.
        with pq.ParquetFile(file.path, buffer_size=_BUFFER, pre_buffer=False) as parquet:
            yield from parquet.iter_batches(_BATCH_ROWS, groups, self._columns, use_threads=False)
