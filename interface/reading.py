"""Reading the private table of ``privfit release``: CSV, Parquet or Arrow IPC in, an Arrow table out.

Nothing a cell holds may end up in a message. A CSV file has no schema, so a column has the type that all its
cells share: numbers or dates, with cells that are empty or say that nothing is known (`MISSING`), or else text.
Text where numbers or dates are declared is refused by that type, as in a Parquet file or a data frame; read as
numbers it would be released as nothing but noise around the middle of the range. The form of a CSV file (quotation
marks in pairs on every line, rows of equal length) is checked in full before anything is read: a quotation mark
without its partner would swallow the rows below it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from privfit.reading_schema import ARROW, PARQUET, check_columns, streams, text_column, typed_labels, wanted_columns

__all__ = ["read_private_table"]

Names = Sequence[str]
Found = tuple[Any, dict[str, list[Any]], list[str]]

MISSING = ("", "?", "-", ".", "na", "n/a", "#n/a", "nan", "null", "none")


def read_private_table(
    path: Path,
    numeric: Sequence[str],
    labels: Mapping[str, Sequence[str]],
    public: Sequence[str],
    dates: Sequence[str] = (),
) -> tuple[Any, dict[str, list[Any]], list[str]]:
    r"""Read the named columns of a file.

    Parameters
    ----------
    path : Path
        A file that ends in .csv, .parquet or .pq, or .arrow or .feather (Arrow IPC, as a file or a stream).
    numeric : sequence of str
        Columns of numbers, or of dates.
    labels : mapping
        ``{column: labels as text}``.
    public : sequence of str
        Columns that are published unchanged.
    dates : sequence of str
        Those of `numeric` that hold dates: ISO 8601 in a CSV file (2020-12-31, 2020-12-31T23:59:59+01:00).

    Returns
    -------
    table : pyarrow.Table
    labels : dict
        The labels in the type of the file's column.
    unused : list of str
        Columns of the file that were not asked for.

    Raises
    ------
    ValueError
        If the file is no table of that kind or has no rows, a column is not there, a column of numbers or dates
        holds text, or labels do not fit their column.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "in.csv"
    ...     _ = path.write_text("age,income,name\n30,low,A\n?,high,B\n")
    ...     table, labels, unused = read_private_table(path, ["age"], {"income": ["low", "high"]}, [])
    >>> table["age"].to_pylist(), unused
    ([30.0, nan], ['name'])
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    wanted = wanted_columns(numeric, labels, public)
    suffix = path.suffix.lower()
    if suffix == ".csv":
        table, typed, unused = _read_csv(path, numeric, dates, labels, wanted)
    elif suffix in (*PARQUET, *ARROW):
        table, typed, unused = _read_typed(path, numeric, dates, labels, wanted)
    else:
        raise ValueError(f"the table must be a .csv, .parquet, .arrow or .feather file, got {path.name!r}.")
    if not table.num_rows:
        raise ValueError(f"{path.name} has columns and no rows: there is nothing to release.")
    return table, typed, unused


def _read_csv(path: Path, numeric: Names, dates: Names, labels: Mapping[str, Names], wanted: Names) -> Found:
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv as arrow_csv

    unreadable = f"{path.name} is no CSV table in UTF-8 with one header line and rows of equal length"
    readable = True
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(_whole_lines(file, unreadable), strict=True)
            names = next(rows, [])
            unused = check_columns(path, names, wanted)
            _check_rows(rows, len(names), unreadable)
    except (UnicodeDecodeError, csv.Error):
        readable = False
    if not readable:
        # Said outside of the handler: the messages may repeat what they could not read, also as a context.
        raise ValueError(f"{unreadable}.")
    # Everything is read as text: guessing types, or failing to, would depend on single cells.
    options = arrow_csv.ConvertOptions(
        include_columns=list(wanted),
        column_types={name: pa.string() for name in wanted},
        strings_can_be_null=True,
    )
    try:
        table = arrow_csv.read_csv(path, convert_options=options)
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        readable = False
    if not readable:
        # Arrow's message repeats the row.
        raise ValueError(f"{unreadable}.")
    columns = {}
    for name in wanted:
        text = pc.utf8_trim_whitespace(table[name])
        if name in dates:
            columns[name] = _dates(name, text)
        elif name in numeric:
            columns[name] = pa.array(_numbers(name, text))
        else:
            columns[name] = text if name in labels else _typed(text)
    return pa.table(columns), {name: list(values) for name, values in labels.items()}, unused


def _whole_lines(lines: Iterable[str], unreadable: str) -> Iterator[str]:
    """Pass lines on; raise at the first whose quotation marks do not come in pairs."""
    for number, line in enumerate(lines, 1):
        if line.count('"') % 2:
            raise ValueError(
                f"{unreadable}: line {number} has a quotation mark without its partner. Keep every quoted cell on one "
                "line, and double the quotation marks inside it."
            )
        yield line


def _check_rows(rows: Any, width: int, unreadable: str) -> None:
    for row in rows:
        # An empty line is no row.
        if row and len(row) != width:
            raise ValueError(
                f"{unreadable}: line {rows.line_num} has {len(row)} cells, the header line {width}. Quote the cells "
                "that hold a comma."
            )


def _known(text: Any) -> Any:
    """Cells of text, null where nothing is known."""
    import pyarrow as pa
    import pyarrow.compute as pc

    missing = pc.is_in(pc.utf8_lower(text), value_set=pa.array(MISSING))
    return pc.if_else(missing, pa.scalar(None, pa.string()), text)


def _dates(name: str, text: Any) -> Any:
    """Times of a column of text, null where a cell is missing; days if some have a time zone."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from privfit.mechanisms.days import cell_days

    text = _known(text)
    try:
        return pc.cast(text, pa.timestamp("us"))
    except pa.ArrowInvalid:
        pass  # Arrow reads no column in which only some cells have a time zone.
    moments = _read_each(text, lambda cell: None if cell is None else datetime.fromisoformat(cell))
    if moments is None:
        raise text_column(name, "dates")
    return pa.array([float("nan") if moment is None else cell_days(moment) for moment in moments], pa.float64())


def _numbers(name: str, text: Any) -> Any:
    """Numbers of a column of text, nan where a cell is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = _known(text)
    try:
        return np.asarray(pc.cast(text, pa.float64()).fill_null(float("nan")).to_numpy(), dtype=float)
    except pa.ArrowInvalid:
        pass  # Python reads some forms that Arrow does not, such as +5.
    numbers = _read_each(text, lambda cell: float("nan" if cell is None else cell))
    if numbers is None:
        raise text_column(name)
    return np.array(numbers, dtype=float)


def _read_each(text: Any, read: Callable[[Any], Any]) -> list[Any] | None:
    """Read cell by cell; None if one cannot be read: Python's message, which repeats it, must not be a context."""
    try:
        return [read(cell) for cell in text.to_pylist()]
    except ValueError:
        return None


def _typed(text: Any) -> Any:
    """Numbers if the whole public column holds numbers, else text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for kind in (pa.int64(), pa.float64()):
        try:
            return pc.cast(text, kind)
        except pa.ArrowInvalid:
            continue
    return text


def _read_typed(path: Path, numeric: Names, dates: Names, labels: Mapping[str, Names], wanted: Names) -> Found:
    import pyarrow as pa

    parquet = path.suffix.lower() in PARQUET
    try:
        found, unused = (_parquet_columns if parquet else _arrow_columns)(path, wanted)
        table = found.replace_schema_metadata(None)
    except (pa.ArrowException, OSError):
        table = None
    if table is None:
        # A damaged file may be repeated in the message.
        raise ValueError(f"{path.name} is no {'Parquet' if parquet else 'Arrow IPC'} file, or a damaged one.")
    return table, typed_labels(table.schema, numeric, dates, labels), unused


def _parquet_columns(path: Path, wanted: Sequence[str]) -> tuple[Any, list[str]]:
    import pyarrow.parquet as pq

    unused = check_columns(path, pq.read_schema(path).names, wanted)
    return pq.read_table(path, columns=list(wanted)), unused


def _arrow_columns(path: Path, wanted: Sequence[str]) -> tuple[Any, list[str]]:
    import pyarrow as pa
    from pyarrow import ipc

    open_ = ipc.open_file if streams(path) else ipc.open_stream
    with pa.OSFile(str(path)) as source, open_(source) as reader:
        names = reader.schema.names
        unused = check_columns(path, names, wanted)
    fields = ipc.IpcReadOptions(included_fields=[names.index(name) for name in wanted])
    with pa.OSFile(str(path)) as source, open_(source, options=fields) as reader:
        return reader.read_all().select(list(wanted)), unused
