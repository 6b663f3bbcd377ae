"""Released tables as Arrow tables, and Arrow tables as the frames people use; Parquet files of them.

Whatever a frame library says about a table beside its cells (an index, attributes, the categories of rows
that are not there) is left behind: a file holds cells, and the record of the law.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from privfit.mechanisms.atomic import replacing
from privfit.mechanisms.categories import Categories
from privfit.mechanisms.digests import PART_ROWS

if TYPE_CHECKING:
    from privfit.mechanisms.law_record import Header

__all__ = ["canonical", "parquet_options", "type_names", "write_parquet"]


def type_names(table: Any) -> tuple[str, ...]:
    """Return the Arrow types of a table's columns as strings.

    Examples
    --------
    >>> import pyarrow as pa
    >>> type_names(pa.table({"x": [1.0], "s": ["a"]}))
    ('double', 'string')
    """
    return tuple(str(type_) for type_ in table.schema.types)


def canonical(table: Any, header: Header) -> Any:
    """Return a released table as it is saved: float64, labels of the declared type, and no metadata.

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
    labels = {str(c): part for columns, _, part in header.plan.parts if isinstance(part, Categories) for c in columns}
    noisy = set(map(str, header.columns))
    fields, columns = [], []
    for name, column in zip(header.texts, table.columns, strict=True):
        if name in labels:
            column = _labels(name, column, labels[name])
        elif name in noisy and column.type != pa.float64():
            raise ValueError(f"column {name!r} must be float64, the type of released numbers, got {column.type}.")
        columns.append(column)
        fields.append(pa.field(name, column.type))
    return pa.table(columns, schema=pa.schema(fields))


def _labels(name: str, column: Any, domain: Categories) -> Any:
    import pyarrow as pa

    label = domain.labels[0][0]
    wanted = pa.string() if isinstance(label, str) else pa.bool_() if isinstance(label, bool) else pa.int64()
    if isinstance(label, str) and (pa.types.is_large_string(column.type) or column.type == pa.string()):
        return column
    kind = pa.types
    if kind.is_null(column.type) or (isinstance(label, str) and "string" in str(column.type)):
        return column.cast(wanted)
    if column.type != wanted:
        raise ValueError(f"column {name!r} must be {wanted}, the type of its declared labels, got {column.type}.")
    return column


def parquet_options(header: Header) -> dict[str, Any]:
    """Return how a release is written as Parquet: no dictionaries for noise, and page checksums.

    Parameters
    ----------
    header : Header

    Returns
    -------
    dict
        Keywords of `pyarrow.parquet.ParquetWriter`.
    """
    numbers = set(header.record["grid"])
    return {
        "use_dictionary": [name for name in header.texts if name not in numbers],
        "compression": "snappy",
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
