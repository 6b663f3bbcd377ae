"""Reading the private table of ``privfit release``: CSV or Parquet in, an Arrow table out.

Nothing a cell holds may end up in a message. A CSV file has no schema, so a column has the type that all its
cells share: numbers, with cells that are empty or say that nothing is known (`MISSING`), or else text. Text
where numbers are declared is refused by that type, as in a Parquet file or a data frame; read as numbers it
would be released as nothing but noise around the middle of the range.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["read_private_table"]

MISSING = ("", "?", "-", ".", "na", "n/a", "#n/a", "nan", "null", "none")


def read_private_table(
    path: Path, numeric: Sequence[str], labels: Mapping[str, Sequence[str]], public: Sequence[str]
) -> tuple[Any, dict[str, list[Any]], list[str]]:
    r"""Read the named columns of a file.

    Parameters
    ----------
    path : Path
        A file that ends in .csv or .parquet.
    numeric : sequence of str
        Columns of numbers.
    labels : mapping
        ``{column: labels as text}``.
    public : sequence of str
        Columns that are published unchanged.

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
        If the file is no table of that kind, a column is not there, a column of numbers holds text, or labels do
        not fit their column.
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
    wanted = [*numeric, *labels, *public]
    twice = sorted({name for name in wanted if wanted.count(name) > 1})
    if twice:
        raise ValueError(f"name each column once, got {', '.join(twice)} more than once.")
    suffix = path.suffix.lower()
    if suffix == ".csv":
        return _read_csv(path, numeric, labels, wanted)
    if suffix in (".parquet", ".pq"):
        return _read_parquet(path, numeric, labels, wanted)
    raise ValueError(f"the table must be a .csv or .parquet file, got {path.name!r}.")


def _check_columns(path: Path, names: Sequence[str], wanted: Sequence[str]) -> list[str]:
    missing = [repr(name) for name in wanted if name not in names]
    if missing:
        # without a header line the names found would be the first person's cells: they are not repeated
        raise ValueError(
            f"{path.name} has no column {', '.join(missing)} among its {len(names)}; compare the names with its "
            "header line, and make sure that it has one."
        )
    repeated = sorted({name for name in wanted if list(names).count(name) > 1})
    if repeated:
        raise ValueError(f"{path.name} has more than one column {', '.join(repeated)}; rename them.")
    return [name for name in names if name not in wanted]


def _read_csv(
    path: Path, numeric: Sequence[str], labels: Mapping[str, Sequence[str]], wanted: Sequence[str]
) -> tuple[Any, dict[str, list[Any]], list[str]]:
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv as arrow_csv

    unreadable = f"{path.name} is no CSV table in UTF-8 with one header line and rows of equal length."
    try:
        with path.open(newline="", encoding="utf-8-sig") as lines:
            names = next(csv.reader(lines), [])
    except UnicodeDecodeError:
        raise ValueError(unreadable) from None
    unused = _check_columns(path, names, wanted)
    # Everything is read as text: guessing types, or failing to, would depend on single cells.
    options = arrow_csv.ConvertOptions(
        include_columns=list(wanted),
        column_types={name: pa.string() for name in wanted},
        strings_can_be_null=True,
    )
    try:
        table = arrow_csv.read_csv(path, convert_options=options)
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        # Arrow's message repeats the row.
        raise ValueError(unreadable) from None
    columns = {}
    for name in wanted:
        text = pc.utf8_trim_whitespace(table[name])
        if name in numeric:
            columns[name] = pa.array(_numbers(name, text))
        else:
            columns[name] = text if name in labels else _typed(text)
    return pa.table(columns), {name: list(values) for name, values in labels.items()}, unused


def _numbers(name: str, text: Any) -> Any:
    """Numbers of a column of text, nan where a cell is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    missing = pc.is_in(pc.utf8_lower(text), value_set=pa.array(MISSING))
    text = pc.if_else(missing, pa.scalar(None, pa.string()), text)
    try:
        return np.asarray(pc.cast(text, pa.float64()).fill_null(float("nan")).to_numpy(), dtype=float)
    except pa.ArrowInvalid:
        pass  # Python reads some forms that Arrow does not, such as +5.
    try:
        return np.array([float("nan" if cell is None else cell) for cell in text.to_pylist()], dtype=float)
    except ValueError:
        # Python's message repeats the cell.
        raise _text_column(name) from None


def _text_column(name: str) -> ValueError:
    return ValueError(
        f"column {name!r} holds text, not numbers; release it as --label {name}:LABEL,LABEL,... "
        "or, if it is meant to hold numbers, leave the cells that hold none empty."
    )


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


def _read_parquet(
    path: Path, numeric: Sequence[str], labels: Mapping[str, Sequence[str]], wanted: Sequence[str]
) -> tuple[Any, dict[str, list[Any]], list[str]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names = pq.read_schema(path).names
        unused = _check_columns(path, names, wanted)
        table = pq.read_table(path, columns=list(wanted)).replace_schema_metadata(None)
    except pa.ArrowInvalid:
        raise ValueError(f"{path.name} is no Parquet file.") from None
    for name in numeric:
        kind = table.schema.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            raise _text_column(name)
    kinds = {name: table.schema.field(name).type for name in labels}
    return table, {name: _labels_of(name, values, kinds[name]) for name, values in labels.items()}, unused


def _labels_of(name: str, values: Sequence[str], kind: Any) -> list[Any]:
    """Declared labels in the type of their column."""
    import pyarrow as pa

    words = {"true": True, "false": False}
    if pa.types.is_boolean(kind) and all(value.lower() in words for value in values):
        return [words[value.lower()] for value in values]
    if pa.types.is_integer(kind):
        try:
            return [int(value) for value in values]
        except ValueError:
            raise ValueError(f"column {name!r} holds integers, so its --label must list integers.") from None
    if pa.types.is_boolean(kind) or pa.types.is_floating(kind):
        raise ValueError(f"column {name!r} has type {kind}; its --label cannot be {', '.join(values)}.")
    return list(values)
