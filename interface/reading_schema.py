"""What the schema of a private table must be like, before any cell of it is read.

Nothing a cell holds may end up in a message, nor may the names of columns that were not asked for: without a header
line they are the first person's cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = [
    "ARROW",
    "PARQUET",
    "check_columns",
    "check_private_schema",
    "streams",
    "text_column",
    "typed_labels",
    "wanted_columns",
]

Names = Sequence[str]

PARQUET, ARROW = (".parquet", ".pq"), (".arrow", ".feather")


def check_private_schema(
    path: Path,
    schema: Any,
    numeric: Sequence[str],
    labels: Mapping[str, Sequence[str]],
    public: Sequence[str],
    dates: Sequence[str] = (),
) -> tuple[dict[str, list[Any]], list[str]]:
    """Check what `read_private_table` checks, of a table whose rows are read later.

    Parameters
    ----------
    path : Path
        For messages.
    schema : pyarrow.Schema
    numeric, labels, public, dates
        See `read_private_table`.

    Returns
    -------
    labels, unused
        See `read_private_table`.

    Examples
    --------
    >>> import pyarrow
    >>> schema = pyarrow.schema({"age": pyarrow.int8(), "old": pyarrow.bool_(), "name": pyarrow.string()})
    >>> check_private_schema(Path("in.parquet"), schema, ["age"], {"old": ["true", "false"]}, [])
    ({'old': [True, False]}, ['name'])
    """
    unused = check_columns(path, schema.names, wanted_columns(numeric, labels, public))
    return typed_labels(schema, numeric, dates, labels), unused


def streams(path: Path) -> bool:
    """Return whether a table is stored in a way that can be read a few rows at a time.

    Examples
    --------
    >>> streams(Path("in.csv")), streams(Path("in.parquet"))
    (False, True)
    """
    if path.suffix.lower() in ARROW and path.is_file():
        with path.open("rb") as file:
            # Files and streams of Arrow IPC have the same names; only files begin with this mark.
            return file.read(6) == b"ARROW1"
    return path.is_dir() or path.suffix.lower() in PARQUET


def wanted_columns(numeric: Sequence[str], labels: Mapping[str, Any], public: Sequence[str]) -> list[str]:
    """Return the names of all columns to be read, each of them once.

    Examples
    --------
    >>> wanted_columns(["age"], {"income": ["low", "high"]}, [])
    ['age', 'income']
    """
    wanted = [*numeric, *labels, *public]
    twice = sorted({name for name in wanted if wanted.count(name) > 1})
    if twice:
        raise ValueError(f"name each column once, got {', '.join(twice)} more than once.")
    return wanted


def check_columns(path: Path, names: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Return the columns that are left out, after a check that those that are wanted are there once.

    Examples
    --------
    >>> check_columns(Path("in.csv"), ["age", "name"], ["age"])
    ['name']
    """
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


def typed_labels(schema: Any, numeric: Names, dates: Names, labels: Mapping[str, Names]) -> dict[str, list[Any]]:
    """Return declared labels in the types of their columns, after a check that numbers and dates are no text."""
    import pyarrow as pa

    for name in numeric:
        kind = schema.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            raise text_column(name, "dates" if name in dates else "numbers")
    kinds = {name: schema.field(name).type for name in labels}
    return {name: _labels_of(name, values, kinds[name]) for name, values in labels.items()}


def text_column(name: str, wanted: str = "numbers") -> ValueError:
    """Return the error that a column of numbers or dates holds text.

    Examples
    --------
    >>> str(text_column("day", "dates"))[:28]
    "column 'day' holds text that"
    """
    if wanted == "dates":
        return ValueError(
            f"column {name!r} holds text that is no date; write dates as 2020-12-31 (ISO 8601), and leave the cells "
            "that hold none empty."
        )
    return ValueError(
        f"column {name!r} holds text, not numbers; release it as --label {name}:LABEL,LABEL,..., or, if its labels "
        f"have an order, as --ordered {name}:LABEL,LABEL,...; if it is meant to hold numbers, leave the cells that "
        "hold none empty."
    )


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
            raise ValueError(f"column {name!r} holds integers, so --label (or --ordered) must list integers.") from None
    if pa.types.is_boolean(kind) or pa.types.is_floating(kind):
        raise ValueError(f"column {name!r} has type {kind}; its labels cannot be {', '.join(values)}.")
    return list(values)
