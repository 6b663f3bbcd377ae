"""Digests of a table's contents that do not depend on how Arrow happens to lay the table out.

A table is cut into pieces of PART_ROWS rows, counted from its start, and each piece has one digest over its columns:
their names and types, where they are missing, and the values that are there in one dense buffer. Hence the pieces of
a long file can be digested by several processes, and checked one at a time when the file is read. SHA-256, because
processors have instructions for it: twice as fast as BLAKE2b where it was measured.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["PART_ROWS", "content_digests", "pieces"]

PART_ROWS = 262_144
"""Rows of a piece: of a digest, of a row group, and of a part of a partitioned release."""

_LARGE = 2**31


def pieces(rows: int) -> int:
    """Return the number of pieces of a table of `rows` rows; a table without rows is one piece.

    Examples
    --------
    >>> pieces(0), pieces(262_144), pieces(262_145)
    (1, 1, 2)
    """
    return max(1, -(-rows // PART_ROWS))


def content_digests(table: Any) -> tuple[str, ...]:
    """Return the digest of every piece of a table, in order.

    Parameters
    ----------
    table : pyarrow.Table
        It begins where a piece of the whole begins; its chunks, offsets and dictionaries do not matter.

    Returns
    -------
    tuple of str
        32 hexadecimal digits each.

    Raises
    ------
    TypeError
        If a column has an Arrow type without a canonical form, such as a union.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"x": [1.0, 2.0, 3.0]})
    >>> cut = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    >>> content_digests(cut) == content_digests(table)
    True
    """
    return tuple(_digest(table.slice(k * PART_ROWS, PART_ROWS)) for k in range(pieces(table.num_rows)))


def _digest(piece: Any) -> str:
    import pyarrow as pa

    hashed = hashlib.sha256()
    update: Update = hashed.update
    _number(update, piece.num_rows)
    for name, column in zip(piece.column_names, piece.columns, strict=True):
        _text(update, name)
        plain = pa.types.is_float64(column.type) and column.null_count == 0
        if plain and not any(_has_nan(chunk.to_numpy()) for chunk in column.chunks):
            _text(update, "double")
            _number(update, -1)
            for chunk in column.chunks:
                update(np.ascontiguousarray(chunk.to_numpy()).view(np.uint8))
        else:
            _feed(update, _joined(column))
    return hashed.hexdigest()[:32]


def _joined(column: Any) -> Any:
    """Return a chunked array as one array."""
    import pyarrow as pa

    large = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
    if column.nbytes >= _LARGE and column.type in large:
        # the offsets of one array of strings end at 2 GiB
        column = column.cast(large[column.type])
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


Update = Callable[[Any], None]


def _has_nan(values: Any) -> bool:
    # the minimum is nan if anything is, without a temporary array
    return len(values) > 0 and bool(np.isnan(values.min()))


def _number(update: Update, value: int) -> None:
    update(value.to_bytes(8, "little", signed=True))


def _text(update: Update, text: str) -> None:
    data = text.encode()
    _number(update, len(data))
    update(data)


def _feed(update: Update, array: Any) -> None:
    """Feed an array: type, which cells are missing, and the others in a dense canonical form."""
    import pyarrow as pa

    array = _decoded(array)
    if pa.types.is_null(array.type):
        _text(update, "null")
        return
    missing = array.null_count
    _text(update, _tag(array.type))
    _number(update, missing or -1)
    if missing:
        update(np.packbits(array.is_valid().to_numpy(zero_copy_only=False)))
        array = array.drop_null()
    _dense(update, array)


def _decoded(array: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = pa.types
    while True:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        elif kind.is_dictionary(array.type):
            array = array.dictionary_decode()
        elif kind.is_run_end_encoded(array.type):
            array = pc.run_end_decode(array)
        elif kind.is_map(array.type):
            array = array.cast(pa.list_(pa.struct([("key", array.type.key_type), ("value", array.type.item_type)])))
        elif str(array.type) in ("string_view", "binary_view"):
            array = array.cast(pa.large_string() if "string" in str(array.type) else pa.large_binary())
        else:
            return array


def _tag(type_: Any) -> str:
    """Return a name that types with the same canonical form share."""
    import pyarrow as pa

    kind = pa.types
    if kind.is_string(type_) or kind.is_large_string(type_):
        return "string"
    if kind.is_binary(type_) or kind.is_large_binary(type_):
        return "binary"
    if kind.is_list(type_) or kind.is_large_list(type_):
        return "list"
    if kind.is_fixed_size_list(type_):
        return f"list[{type_.list_size}]"
    if kind.is_struct(type_):
        return f"struct[{type_.num_fields}]"
    return str(type_)


def _dense(update: Update, array: Any) -> None:
    """Feed the cells of an array without missing ones."""
    import pyarrow as pa

    kind, type_ = pa.types, array.type
    if kind.is_boolean(type_):
        update(np.packbits(array.to_numpy(zero_copy_only=False)))
    elif kind.is_floating(type_):
        values = np.array(array.to_numpy(zero_copy_only=False))
        values[np.isnan(values)] = np.nan
        update(values.view(np.uint8))
    elif kind.is_primitive(type_) or kind.is_decimal(type_) or kind.is_fixed_size_binary(type_):
        width = type_.bit_width // 8
        update(_buffer(array, 1)[array.offset * width : (array.offset + len(array)) * width])
    elif _tag(type_) in ("string", "binary"):
        ends = _ends(array, kind.is_large_string(type_) or kind.is_large_binary(type_))
        update(np.diff(ends).view(np.uint8))
        update(_buffer(array, 2)[ends[0] : ends[-1]])
    elif _tag(type_) == "list":
        update(np.diff(_ends(array, kind.is_large_list(type_))).view(np.uint8))
        _feed(update, array.flatten())
    elif kind.is_fixed_size_list(type_):
        _feed(update, array.flatten())
    elif kind.is_struct(type_):
        for field, child in zip(type_, array.flatten(), strict=True):
            _text(update, field.name)
            _feed(update, child)
    else:
        raise TypeError(f"a column of Arrow type {type_} has no canonical form; convert it to strings or numbers.")


def _buffer(array: Any, number: int) -> Any:
    buffer = array.buffers()[number]
    return np.frombuffer(buffer, np.uint8) if buffer is not None else np.empty(0, np.uint8)


def _ends(array: Any, large: bool) -> Any:
    """Return the offsets of the cells of a list or string array as int64, shape (n + 1,)."""
    offsets = _buffer(array, 1).view(np.int64 if large else np.int32)
    cut = offsets[array.offset : array.offset + len(array) + 1].astype(np.int64)
    return cut if len(cut) else np.zeros(1, np.int64)
