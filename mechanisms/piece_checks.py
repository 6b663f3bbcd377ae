"""Checking the rows of a saved release against its record: schema, grid, labels, digest, each with its own error."""

from __future__ import annotations

from typing import Any

import numpy as np

from privfit.mechanisms.categories import Categories
from privfit.mechanisms.digests import PART_ROWS, content_digests
from privfit.mechanisms.first_format import first_checksum
from privfit.mechanisms.formats import plain_type, released_types, type_names
from privfit.mechanisms.law_record import Header
from privfit.mechanisms.record_checks import Record

__all__ = ["check_first", "check_piece"]


def check_piece(record: Record, table: Any, number: int) -> None:
    """Raise ValueError unless the rows of a piece are those that the record of its file describes.

    Parameters
    ----------
    record : Record
    table : pyarrow.Table
    number : int
        Position of the piece in the file.
    """
    if number >= len(record.digests):
        raise ValueError("its rows are more than were saved.")
    _check_schema(record, table)
    _check_cells(record.header, table)
    if content_digests(table) != (record.digests[number],):
        first = number * PART_ROWS
        raise ValueError(f"the checksum of rows {first} to {first + table.num_rows - 1} does not fit.")


def check_first(record: Record, table: Any) -> None:
    """Raise ValueError unless all rows of a file of the first format are those that its record describes."""
    if table.num_rows != record.n_rows:
        raise ValueError("its columns or rows are not those that were saved.")
    _check_schema(record, table)
    _check_cells(record.header, table)
    if record.seal != first_checksum(record.raw, table):
        raise ValueError("its checksum does not fit.")


def _check_schema(record: Record, table: Any) -> None:
    if tuple(table.column_names) != record.header.texts:
        raise ValueError("its columns are not those that were saved.")
    saved = None if record.types is None else tuple(map(plain_type, record.types))
    if saved is not None and type_names(table) != saved:
        odd = next(j for j, own in enumerate(type_names(table)) if own != saved[j])
        raise ValueError(f"column {record.header.texts[odd]!r} has not the type that was saved.")
    for name, allowed in released_types(record.header).items():
        if str(table[name].type) not in allowed:
            raise ValueError(f"column {name!r} must have type {allowed[0]}.")


def _check_cells(header: Header, table: Any) -> None:
    """Check that numbers lie on the grid of their law and labels are declared ones."""
    for columns, _, part in header.plan.parts:
        for position, column in enumerate(columns):
            cells = table[str(column)]
            if isinstance(part, Categories):
                if not set(cells.unique().to_pylist()) <= set(part.labels[position]):
                    raise ValueError(f"column {column!r} holds labels that were not declared.")
                continue
            steps = cells.to_numpy() / header.grid[str(column)]
            if not (np.isfinite(steps).all() and (steps == np.rint(steps)).all()):
                raise ValueError(f"column {column!r} holds values that are not on the grid of its law.")
