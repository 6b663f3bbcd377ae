"""Columns of arrays and data frames as numpy arrays, told apart by their types alone.

The type of a column is schema; what its cells hold can neither make reading fail nor change what an error says.
Families: "number", "boolean", "date", "text", "object" (anything, cell by cell) and "missing" (a column of the type
null). Cells arrive as real numbers with nan, datetime64 with NaT, or objects with None for what is missing. Text that
is only compared with labels arrives cut to one code unit more than the longest of them, the same work for every cell;
what is missing is then a cell that equals no label.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Cells", "array_cells", "check_names", "frame_cells"]

Cells = tuple[str, str, NDArray[Any]]
"""Family, name of the type, cells."""

_FAMILIES = {"b": "boolean", "i": "number", "u": "number", "f": "number", "M": "date", "U": "text", "O": "object"}
_STEPS = {
    "m": 'Divide durations by a unit first, for instance column / numpy.timedelta64(1, "h").',
    "duration": "Turn durations into numbers first, for instance their total hours.",
    "time": "Turn times of the day into numbers first, for instance seconds since midnight.",
    "period": "Turn periods into dates first, for instance by column.dt.to_timestamp().",
    "interval": "Turn intervals into numbers first, for instance their midpoints.",
    "c": "Release the real and the imaginary part as two columns.",
    "S": "Decode bytes to text first, for instance by numpy.char.decode.",
    "V": "Turn a structured array into a data frame first, for instance by pandas.DataFrame(data).",
}


def _unreadable(what: str, dtype: Any, step: str) -> TypeError:
    own = _STEPS.get(step, "Convert it to numbers, dates or text, or leave it out.")
    return TypeError(f"{what} must hold real numbers, dates or labels, got dtype {dtype}. {own}")


def array_cells(values: NDArray[Any], what: str) -> Cells:
    """Return the family and the cells of a numpy array, or raise TypeError.

    Parameters
    ----------
    values : ndarray
    what : str
        What it is, for the message.

    Examples
    --------
    >>> array_cells(np.array(["a", "b"]), "column 'x'")[0]
    'text'
    """
    if values.dtype.kind == "T":
        return "text", "string", values.astype(object)
    # the width of text is the length of its longest cell, which is nobody's business
    name = {"U": "str", "S": "bytes"}.get(values.dtype.kind, "structured" if values.dtype.names else str(values.dtype))
    if values.dtype.kind not in _FAMILIES:
        raise _unreadable(what, name, values.dtype.kind)
    return _FAMILIES[values.dtype.kind], name, values


def frame_cells(native: Any, kind: str, column: Any, most: int | None = None) -> Cells:
    """Return the family and the cells of a column of a data frame, or raise TypeError.

    Parameters
    ----------
    native : pandas.Series, polars.Series or pyarrow.ChunkedArray
    kind : {"pandas", "polars", "pyarrow"}
    column : str or int
        Its name, for the message.
    most : int, optional
        Code units of UTF-8 in the longest label, if text is only compared with labels.

    Examples
    --------
    >>> import pyarrow
    >>> family, dtype, cells = frame_cells(pyarrow.chunked_array([[1, None]]), "pyarrow", "x")
    >>> family, dtype, cells
    ('number', 'int64', array([ 1., nan]))
    """
    what = f"column {column!r}"
    if kind == "pandas":
        return _pandas_cells(native, what, most)
    if kind == "polars":
        return _polars_cells(native, what, most)
    return _arrow_cells(native, what, most)


def _pandas_cells(series: Any, what: str, most: int | None) -> Cells:
    import pandas as pd

    dtype = series.dtype
    if isinstance(dtype, pd.SparseDtype):
        return array_cells(np.asarray(series.sparse.to_dense().to_numpy()), what)
    if isinstance(dtype, np.dtype):
        return array_cells(series.to_numpy(), what)
    if isinstance(dtype, pd.ArrowDtype) or (isinstance(dtype, pd.StringDtype) and dtype.storage == "pyarrow"):
        import pyarrow as pa

        return _arrow_cells(pa.array(series.array), what, most)
    if isinstance(dtype, pd.CategoricalDtype):
        # with its type: of objects that are all text, pandas would make text
        categories = pd.Series(dtype.categories, dtype=dtype.categories.dtype)
        family, _, labels = _pandas_cells(categories, what, most=None)
        if family == "text" and most:
            table = np.array([*labels, "\U0010ffff" * (most + 1)], dtype=f"U{most + 1}")
        else:
            table = np.empty(len(labels) + 1, dtype=object)
            table[:-1] = labels if family != "date" else list(labels)
        # The code of a missing cell, -1, picks what stands at the end.
        return family, f"categorical of {dtype.categories.dtype}", table[series.cat.codes.to_numpy()]
    if isinstance(dtype, pd.StringDtype):
        return "text", "string", series.to_numpy(dtype=object)
    if isinstance(dtype, pd.DatetimeTZDtype):
        return "date", str(dtype), series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
    if isinstance(dtype, (pd.PeriodDtype, pd.IntervalDtype)):
        raise _unreadable(what, dtype, "period" if isinstance(dtype, pd.PeriodDtype) else "interval")
    if getattr(dtype, "kind", "O") in "biuf":
        family = "boolean" if dtype.kind == "b" else "number"
        return family, str(dtype), series.to_numpy(dtype=np.float64, na_value=np.nan)
    raise _unreadable(what, dtype, "")


def _polars_cells(series: Any, what: str, most: int | None) -> Cells:
    import polars as pl

    if series.dtype == pl.Object:
        return "object", "Object", series.to_numpy()
    if series.dtype.is_integer():
        # Its own cast: Arrow has no integers of 128 bits.
        return "number", str(series.dtype), series.cast(pl.Float64).fill_null(np.nan).to_numpy()
    return _arrow_cells(series.to_arrow(), what, most)


def _arrow_cells(array: Any, what: str, most: int | None) -> Cells:
    import pyarrow as pa
    from pyarrow import types

    cells = array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
    kind = cells.type
    if types.is_dictionary(kind):
        family, _, values = _arrow_cells(cells.cast(kind.value_type), what, most)
        return family, f"dictionary of {kind.value_type}", values
    if types.is_null(kind):
        return "missing", "null", np.full(len(cells), np.nan)
    if types.is_boolean(kind):
        return "boolean", "bool", _arrow_numbers(cells.cast(pa.uint8()))
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number", str(kind), _arrow_numbers(cells)
    if types.is_date(kind) or types.is_timestamp(kind):
        return "date", str(kind), _arrow_dates(cells)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text", str(kind), _arrow_text(cells, most) if most else cells.to_numpy()
    name = "duration" if types.is_duration(kind) else "time" if types.is_time(kind) else ""
    raise _unreadable(what, "bytes" if types.is_binary(kind) or types.is_large_binary(kind) else kind, name)


def _arrow_numbers(cells: Any) -> NDArray[np.float64]:
    import pyarrow as pa

    # Unsafe, because the safe cast refuses integers above 2^53, with the person's value in its message.
    return np.asarray(cells.cast(pa.float64(), safe=False).fill_null(np.nan).to_numpy(), dtype=np.float64)


def _arrow_text(cells: Any, most: int) -> NDArray[np.bytes_]:
    """Return the first most + 1 bytes of every cell, padded with 0; a missing one is of bytes that UTF-8 has not."""
    import pyarrow as pa

    wide, done = np.empty((len(cells), most + 1), dtype=np.uint8), 0
    for chunk in cells.cast(pa.large_string()).chunks:
        if not len(chunk):
            continue
        _, ends, data = chunk.buffers()
        ends = np.frombuffer(ends, dtype=np.int64)[chunk.offset : chunk.offset + len(chunk) + 1]
        # One byte at least, to read where no cell has any.
        units = np.frombuffer(data if data is not None and data.size else b"\0", dtype=np.uint8)
        start, length, missing = ends[:-1], np.diff(ends), chunk.is_null().to_numpy(zero_copy_only=False)
        for j, own in enumerate(wide[done : done + len(chunk)].T):
            found = units[np.minimum(start + j, len(units) - 1)]
            own[:] = np.where(missing, 255, np.where(j < length, found, 0))
        done += len(chunk)
    return wide.view(f"S{most + 1}")[:, 0]


def _arrow_dates(cells: Any) -> NDArray[Any]:
    import pyarrow as pa
    from pyarrow import types

    kind = cells.type
    if types.is_date32(kind):
        unit, cells = "D", cells.cast(pa.int32())
    else:
        unit = "ms" if types.is_date64(kind) else kind.unit
    # With a time zone, Arrow counts from 1970 in UTC; the smallest integer is NaT.
    counts = cells.cast(pa.int64()).fill_null(np.iinfo(np.int64).min).to_numpy()
    return np.asarray(counts.view(f"datetime64[{unit}]"))


def check_names(data: Any) -> None:
    """Raise unless the columns of a pandas or pyarrow table have one name each, a string or an integer.

    Parameters
    ----------
    data : object
        A table; of other kinds than these two, which let any names through, nothing is looked at.

    Raises
    ------
    TypeError
        If a name is no string or integer (a tuple of several levels, a date).
    ValueError
        If columns share a name; says how many, since names may be somebody's cells.

    Examples
    --------
    >>> import pyarrow
    >>> check_names(pyarrow.table({"a": [1], "b": [2]}))
    """
    attribute = {"pandas": "columns", "pyarrow": "column_names"}.get(type(data).__module__.partition(".")[0])
    names = getattr(data, attribute, None) if attribute else None
    if names is None:
        return
    names = list(names)
    for name in names:
        if isinstance(name, (bool, np.bool_)) or not isinstance(name, (str, int, np.integer)):
            raise TypeError(
                f"the table's column names must be strings or integers, got {type(name).__name__}. Give every column "
                "a name of its own, for instance data.columns = [...]."
            )
    repeated = len(names) - len(set(names))
    if repeated:
        raise ValueError(
            f"the table's column names must be distinct, got {repeated} that repeat an earlier one. Rename them, or "
            "drop the columns that you do not release."
        )
