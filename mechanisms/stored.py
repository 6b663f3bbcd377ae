"""Opening the files that a release may be in, by what they are: the record's text, the schema, and batches of rows.

Nothing of a file is believed: Arrow's own errors, which may quote cells, are replaced by one sentence, and what has
been read is validated before it is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privfit.mechanisms.digests import PART_ROWS
from privfit.mechanisms.formats import LAW_SUFFIX, SUFFIXES, csv_types, format_name
from privfit.mechanisms.law_record import KEY

__all__ = ["Stored", "open_stored"]


@dataclass(frozen=True)
class Stored:
    """A file that may be a release.

    Attributes
    ----------
    path : Path
    text : bytes or None
        The record, if there is one.
    batches : callable
        Takes the names and Arrow types the record gives; yields record batches of at most `PART_ROWS` rows.
    """

    path: Path
    text: bytes | None
    batches: Callable[[tuple[str, ...], tuple[str, ...] | None], Iterator[Any]]

    def pieces(self, names: tuple[str, ...], types: tuple[str, ...] | None) -> Iterator[Any]:
        """Yield tables of `PART_ROWS` rows without metadata, the last one shorter; no rows are one empty piece."""
        import pyarrow as pa

        waiting: list[Any] = []
        rows, first = 0, True
        for batch in self.batches(names, types):
            waiting.append(batch)
            rows += batch.num_rows
            if rows >= PART_ROWS:
                table = pa.Table.from_batches(waiting)
                yield table.slice(0, PART_ROWS).replace_schema_metadata(None)
                waiting, rows, first = table.slice(PART_ROWS).to_batches(), rows - PART_ROWS, False
        if rows or first:
            yield pa.Table.from_batches(waiting).replace_schema_metadata(None)


def open_stored(path: Path) -> Stored:
    """Open a Parquet, Arrow IPC or CSV file.

    Parameters
    ----------
    path : Path

    Returns
    -------
    Stored

    Raises
    ------
    FileNotFoundError
        If there is no such file, or a CSV file without its law.
    ValueError
        If it is no file of a known kind, or a damaged one.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}; pass what Release.save wrote.")
    with path.open("rb") as file:
        magic = file.read(6)
    if magic[:4] == b"PAR1":
        return _parquet(path)
    if magic == b"ARROW1":
        return _arrow(path)
    if SUFFIXES.get(path.suffix.lower()) == "csv":
        return _csv(path)
    raise damaged(path)


def damaged(path: Path) -> ValueError:
    """Return the error for a file that cannot be read as what it is."""
    return ValueError(f"{path} is no {format_name(path)} file, or a damaged one; pass what Release.save wrote.")


def _guarded(path: Path, rows: Iterator[Any]) -> Iterator[Any]:
    """Yield validated batches; any error of Arrow becomes one that quotes nothing."""
    while True:
        try:
            batch = next(rows, None)
            if batch is not None:
                batch.validate(full=True)
            broken = False
        except _arrow_errors():
            broken = True
        if broken:
            raise damaged(path)
        if batch is None:
            return
        for start in range(0, max(batch.num_rows, 1), PART_ROWS):
            yield batch.slice(start, PART_ROWS)


def _arrow_errors() -> tuple[type[BaseException], ...]:
    import pyarrow as pa

    return (
        pa.ArrowException, OSError, ValueError, TypeError, KeyError, IndexError, OverflowError, MemoryError,
        NotImplementedError, RecursionError,
    )  # fmt: skip


def _empty(schema: Any) -> Any:
    """Return a batch without rows, so that a file without rows has a schema too."""
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([pa.array([], type=type_) for type_ in schema.types], schema=schema)


def _parquet(path: Path) -> Stored:
    import pyarrow.parquet as pq

    def open_file() -> Any:
        # with pre_buffer, the default, all of the file comes into memory, ahead of the batches
        return pq.ParquetFile(path, page_checksum_verification=True, pre_buffer=False)

    def rows() -> Iterator[Any]:
        with open_file() as file:
            yield _empty(file.schema_arrow)
            yield from file.iter_batches(batch_size=PART_ROWS)

    try:
        with open_file() as file:
            text = (file.metadata.metadata or {}).get(KEY)
            broken = False
    except _arrow_errors():
        broken = True
    if broken:
        raise damaged(path)
    return Stored(path, text, lambda names, types: _guarded(path, rows()))


def _arrow(path: Path) -> Stored:
    import pyarrow as pa

    def rows() -> Iterator[Any]:
        # read into memory of our own: a mapped file could change, or end, under the table's feet
        with pa.OSFile(str(path)) as source, pa.ipc.open_file(source) as file:
            yield _empty(file.schema)
            for number in range(file.num_record_batches):
                yield file.get_batch(number)

    try:
        with pa.OSFile(str(path)) as source, pa.ipc.open_file(source) as file:
            text = (file.schema.metadata or {}).get(KEY)
            broken = False
    except _arrow_errors():
        broken = True
    if broken:
        raise damaged(path)
    return Stored(path, text, lambda names, types: _guarded(path, rows()))


def _csv(path: Path) -> Stored:
    law = path.with_name(path.name + LAW_SUFFIX)
    if not law.is_file():
        raise ValueError(
            f"{path} carries no law, so no correction can be chosen: {law.name} must lie beside it. Keep the two "
            "files together as Release.save wrote them."
        )

    def rows(names: tuple[str, ...], types: tuple[str, ...]) -> Iterator[Any]:
        import pyarrow.csv as pc

        found = csv_types()
        convert = pc.ConvertOptions(
            column_types={name: found[own] for name, own in zip(names, types, strict=True)},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        parse, read = pc.ParseOptions(newlines_in_values=True), pc.ReadOptions(use_threads=False)
        with pc.open_csv(path, read, parse, convert) as reader:
            yield _empty(reader.schema)
            yield from reader

    return Stored(path, law.read_bytes(), lambda names, types: _guarded(path, rows(names, types or ())))

