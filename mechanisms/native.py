"""Frames people use as Arrow tables of their cells, and back: numpy, pandas, polars and pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["from_arrow", "nested_afresh", "only_cells", "to_arrow"]


def to_arrow(frame: Any, kind: str, names: Sequence[str]) -> Any:
    """Return the cells of a released frame as an Arrow table.

    Parameters
    ----------
    frame : table or ndarray
    kind : {"numpy", "pandas", "polars", "pyarrow"}
    names : sequence of str
        What the columns are called in a file.

    Returns
    -------
    pyarrow.Table

    Raises
    ------
    ValueError
        If a public column mixes types, so that no file can hold it.

    Examples
    --------
    >>> to_arrow(np.array([1.0, 2.0]), "numpy", ["x"]).column_names
    ['x']
    """
    import pyarrow as pa

    if kind == "pyarrow":
        return frame
    if kind == "polars":
        return frame.to_arrow().rename_columns(list(names))
    if kind == "pandas":
        columns = [frame.iloc[:, j] for j in range(frame.shape[1])]
    else:
        table = frame[:, None] if frame.ndim == 1 else frame
        columns = [table[:, j].tolist() if table.dtype == object else table[:, j].copy() for j in range(len(names))]
    return pa.table([_column(name, cells) for name, cells in zip(names, columns, strict=True)], names=list(names))


def _column(name: str, cells: Any) -> Any:
    import pyarrow as pa

    try:
        column: Any = pa.array(cells, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        column = None
    if column is None:
        # said outside of the handler: Arrow's message quotes a cell
        raise ValueError(f"public column {name!r} has cells that no single Arrow type holds; convert it first.")
    return column


def only_cells(column: Any) -> Any:
    """Return a column's cells in fresh memory: no categories that do not occur, nothing under missing cells.

    Parameters
    ----------
    column : pyarrow.ChunkedArray

    Examples
    --------
    >>> import pyarrow as pa
    >>> cut = pa.chunked_array([pa.array(["a", "secret"]).dictionary_encode()]).slice(0, 1)
    >>> only_cells(cut).chunk(0).dictionary.to_pylist()
    ['a']
    """
    import pyarrow as pa

    type_ = column.type
    if pa.types.is_dictionary(type_):
        return column.cast(type_.value_type).dictionary_encode()
    if pa.types.is_nested(type_) or pa.types.is_run_end_encoded(type_) or str(type_).endswith("_view"):
        # a dictionary inside keeps all its labels, and views the memory they look into: cell by cell
        return pa.chunked_array([pa.array(column.to_pylist(), type=type_)])
    return column.take(np.arange(len(column)))


def nested_afresh(native: Any, kind: str) -> Any:
    """Return a column of lists or structs, or of views of text, without the cells of rows that are not in it.

    Parameters
    ----------
    native : pandas.Series or polars.Series
    kind : {"pandas", "polars"}

    Examples
    --------
    >>> import polars
    >>> nested_afresh(polars.Series([[1], [2]]).head(1), "polars").to_list()
    [[1]]
    """
    if kind == "polars":
        import polars

        if not native.dtype.is_nested():
            return native
        return polars.Series(native.name, only_cells(_chunked(native.to_arrow()))).cast(native.dtype)
    import pandas as pd

    if not isinstance(native.dtype, pd.ArrowDtype):
        return native
    cells = only_cells(_chunked(native.array))
    # a dictionary is left to _labels_that_occur, which knows how pandas compares them
    same = cells.type == native.dtype.pyarrow_dtype
    return pd.Series(pd.arrays.ArrowExtensionArray(cells), name=native.name) if same else native


def _chunked(values: Any) -> Any:
    import pyarrow as pa

    array = values if isinstance(values, (pa.Array, pa.ChunkedArray)) else pa.array(values)
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def from_arrow(table: Any, kind: str, names: Sequence[Any], flat: bool = False) -> Any:
    """Return an Arrow table without metadata as a frame of some kind.

    Parameters
    ----------
    table : pyarrow.Table
    kind : {"numpy", "pandas", "polars", "pyarrow"}
    names : sequence of str or int
        Names of the columns, for pandas.
    flat : bool
        Whether an array has shape (n,).

    Returns
    -------
    table or ndarray

    Examples
    --------
    >>> import pyarrow as pa
    >>> from_arrow(pa.table({"x": [1.0, 2.0]}), "numpy", ["x"], flat=True)
    array([1., 2.])
    """
    if kind == "pyarrow":
        return table
    if kind == "polars":
        import polars

        return polars.from_arrow(table)
    if kind == "pandas":
        return _pandas(table, names)
    cells = [column.to_numpy() for column in table.columns]
    numeric = all(column.dtype.kind in "biuf" for column in cells)
    columns = [column.astype(np.float64 if numeric else object) for column in cells]
    return columns[0] if flat else np.column_stack(columns)


def _pandas(table: Any, names: Sequence[Any]) -> Any:
    import pandas as pd
    import pyarrow as pa

    frame = table.to_pandas()
    for position, column in enumerate(table.columns):
        if pa.types.is_integer(column.type) and column.null_count:
            # as floats, whole numbers beyond 2^53 would not be what was released
            dtype = pd.api.types.pandas_dtype(str(column.type).replace("int", "Int").replace("uI", "UI"))
            frame.isetitem(position, column.to_pandas(types_mapper=lambda _, dtype=dtype: dtype))
    frame.columns = list(names)
    return frame
