"""Released tables as Arrow tables and the files of them: Parquet, Arrow IPC, and CSV with its law beside it.

Whatever a frame library says about a table beside its cells (an index, attributes, the categories of rows
that are not there) is left behind: a file holds cells, and the record of the law.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privfit.mechanisms.atomic import replacing
from privfit.mechanisms.categories import Categories
from privfit.mechanisms.digests import PART_ROWS
from privfit.mechanisms.native import only_cells

if TYPE_CHECKING:
    from privfit.mechanisms.law_record import Header

__all__ = [
    "LAW_SUFFIX",
    "SUFFIXES",
    "canonical",
    "csv_table",
    "csv_types",
    "format_name",
    "parquet_options",
    "plain_type",
    "released_types",
    "type_names",
    "write_arrow",
    "write_csv",
    "write_parquet",
]

SUFFIXES = {
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow", ".csv": "csv",
}  # fmt: skip
"""The format of a file by how its name ends."""

LAW_SUFFIX = ".law.json"
"""What is added to the name of a CSV file to name the file of its law."""

_LABELS = {type(None): ("double",), str: ("string", "large_string"), bool: ("bool",), int: ("int64",)}
"""Arrow types of released columns by the type of their declared labels, if any."""

_NAMES = {"parquet": "Parquet", "arrow": "Arrow IPC", "csv": "CSV"}


def format_name(path: Path) -> str:
    """Return what a file is by its name, for messages.

    Examples
    --------
    >>> format_name(Path("release.feather"))
    'Arrow IPC'
    """
    return _NAMES.get(SUFFIXES.get(path.suffix.lower(), ""), "Parquet, Arrow IPC or CSV")


def plain_type(name: str) -> str:
    """Return the name of an Arrow type without what Parquet calls the entries of a map, and Arrow IPC does not.

    Examples
    --------
    >>> plain_type("map<string, int64 ('entries')>")
    'map<string, int64>'
    """
    return re.sub(r" \('[^']*'\)>", ">", name) if "map<" in name else name


def type_names(table: Any) -> tuple[str, ...]:
    """Return the Arrow types of a table's columns as strings.

    Examples
    --------
    >>> import pyarrow as pa
    >>> type_names(pa.table({"x": [1.0], "s": ["a"]}))
    ('double', 'string')
    """
    return tuple(plain_type(str(type_)) for type_ in table.schema.types)


def canonical(table: Any, header: Header) -> Any:
    """Return a released table as it is saved: float64, labels of the declared type, no metadata, only cells.

    Parameters
    ----------
    table : pyarrow.Table
    header : Header

    Returns
    -------
    pyarrow.Table

    Raises
    ------
    ValueError
        If the columns are not those of the header, in order, with the types of released columns.
    """
    import pyarrow as pa

    if tuple(table.column_names) != header.texts:
        raise ValueError(
            f"table must have the columns {list(header.texts)} in this order, got {len(table.column_names)} "
            "that are not; build it from what Plan.release_rows returned."
        )
    allowed = released_types(header)
    fields, columns = [], []
    for name, column in zip(header.texts, table.columns, strict=True):
        if name not in allowed:
            column = _kept(name, column)
        elif str(column.type) not in allowed[name]:
            # an empty column of strings may come without a type, and polars has a string type of its own
            if not (pa.types.is_null(column.type) or (str(column.type) == "string_view" and "string" in allowed[name])):
                raise ValueError(
                    f"column {name!r} must be {allowed[name][0]}, the type of its released values, got {column.type}."
                )
            column = column.cast(pa.type_for_alias(allowed[name][0]))
        columns.append(column)
        fields.append(pa.field(name, column.type))
    return pa.table(columns, schema=pa.schema(fields))


def _kept(name: str, column: Any) -> Any:
    """Return the cells of a public column in a type that a Parquet file gives back as it was."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        for _ in range(2):
            sink = pa.BufferOutputStream()
            pq.write_table(pa.table({name: pa.array([], column.type)}), sink)
            column = column.cast(pq.read_schema(pa.BufferReader(sink.getvalue())).field(0).type)
        column = only_cells(column)
    except (pa.ArrowException, TypeError, ValueError):
        column = None
    if column is None:
        # said outside of the handler: Arrow's message quotes a cell
        raise ValueError(f"public column {name!r} is of a type that no Parquet file holds; convert it first.")
    return column


def released_types(header: Header) -> dict[str, tuple[str, ...]]:
    """Return the Arrow types that each column with noise may have in a file.

    Parameters
    ----------
    header : Header

    Returns
    -------
    dict
        ``{name: types}``; public columns may have any.
    """
    types: dict[str, tuple[str, ...]] = {}
    for columns, _, part in header.plan.parts:
        for position, column in enumerate(columns):
            label = part.labels[position][0] if isinstance(part, Categories) else None
            types[str(column)] = _LABELS[type(label)]
    return types


def parquet_options(header: Header) -> dict[str, Any]:
    """Return how a release is written as Parquet: grid values byte by byte, labels by dictionary, page checksums.

    A grid value has few significant bits. With the bytes of equal weight side by side, lz4 stores it in about 3
    bytes, for any domain; dictionaries take 2 at best, and 5 where the domain is wide beside the scale.

    Parameters
    ----------
    header : Header

    Returns
    -------
    dict
        Keywords of `pyarrow.parquet.ParquetWriter`.
    """
    numbers = set(header.grid)
    return {
        "use_byte_stream_split": [name for name in header.texts if name in numbers],
        "use_dictionary": [name for name in header.texts if name not in numbers],
        "compression": "lz4",
        "write_page_checksum": True,
    }


def write_parquet(path: Path, table: Any, header: Header, metadata: dict[bytes, bytes]) -> None:
    """Write a canonical table and its record as Parquet, whole or not at all.

    Parameters
    ----------
    path : Path
    table : pyarrow.Table
        From `canonical`.
    header : Header
    metadata : dict
        From `Header.metadata`.
    """
    import pyarrow.parquet as pq

    with replacing(path) as temporary:
        whole = table.replace_schema_metadata(metadata)
        pq.write_table(whole, temporary, row_group_size=PART_ROWS, **parquet_options(header))


def write_arrow(path: Path, table: Any, metadata: dict[bytes, bytes]) -> None:
    """Write a canonical table and its record as an Arrow IPC file, whole or not at all (see `write_parquet`)."""
    import pyarrow as pa

    with replacing(path) as temporary:
        # an IPC file keeps one dictionary per column
        whole = table.unify_dictionaries().combine_chunks().replace_schema_metadata(metadata)
        with pa.OSFile(str(temporary), "wb") as sink, pa.ipc.new_file(sink, whole.schema) as writer:
            writer.write_table(whole, max_chunksize=PART_ROWS)


def write_csv(path: Path, table: Any, metadata: dict[bytes, bytes]) -> None:
    """Write a table from `csv_table` as CSV, and its record beside it.

    The law is renamed last: a reader finds the pair, or nothing it would accept.
    """
    import pyarrow.csv as pc

    law = path.with_name(path.name + LAW_SUFFIX)
    with replacing(law) as record, replacing(path) as temporary:
        pc.write_csv(table, temporary)
        (text,) = metadata.values()
        record.write_bytes(text)


def csv_types() -> dict[str, Any]:
    """Return the Arrow types that CSV text carries without loss, by their names."""
    import pyarrow as pa

    types = [pa.bool_(), pa.string(), pa.large_string(), pa.float32(), pa.float64(), pa.date32(), pa.null()]
    types += [getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)]
    types += [pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")]
    return {str(type_): type_ for type_ in types}


def csv_table(table: Any) -> Any:
    """Return a canonical table with types that CSV text carries without loss; categories become strings.

    Raises
    ------
    ValueError
        If a public column has another type.
    """
    import pyarrow as pa

    known = csv_types()
    for position, field in enumerate(table.schema):
        column, type_ = table.column(position), field.type
        if pa.types.is_dictionary(type_):
            type_ = type_.value_type
        if "string_view" in str(type_):
            type_ = pa.large_string()
        if str(type_) not in known:
            raise ValueError(f"column {field.name!r} has type {type_}, which CSV does not carry; save as .parquet.")
        if type_ != field.type:
            table = table.set_column(position, field.name, column.cast(type_))
    return table
