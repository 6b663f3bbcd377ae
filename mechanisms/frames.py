"""Tables in, the same kind out: numpy arrays directly, pandas, polars and pyarrow through narwhals.

A column is read by its declared type, never by its values, so that reading cannot fail on one person's cell:
numbers and booleans as they are, object cells that are no numbers as missing; other types are a schema error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.columns import Column, as_columns

__all__ = ["Table", "read_table"]


def _is_number(value: Any) -> bool:
    from decimal import Decimal

    return isinstance(value, (bool, int, float, np.number, np.bool_, Decimal)) and not isinstance(
        value, np.complexfloating
    )


def _object_number(value: Any) -> float:
    if not _is_number(value):
        return np.nan
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf
    except (ValueError, TypeError):
        return np.nan


def _numbers(values: NDArray[Any], column: Column) -> NDArray[Any]:
    """Return an array that casts to float64: real dtypes unchanged, objects number by number."""
    if values.dtype.kind in "biuf":
        return values
    if values.dtype.kind == "O":
        return np.array([_object_number(v) for v in values], dtype=np.float64).reshape(len(values))
    raise TypeError(
        f"column {column!r} must hold real numbers, got dtype {values.dtype}. Convert it to numbers, declare "
        "its labels with Categories, or leave it out."
    )


def _labels_that_occur(native: Any, kind: str) -> Any:
    """Return a categorical column without the labels of rows that are not in it."""
    if kind == "pyarrow":
        return native.cast(native.type.value_type).dictionary_encode()
    if kind == "pandas" and hasattr(native, "cat") and hasattr(native.cat, "remove_unused_categories"):
        return native.cat.remove_unused_categories()
    if kind == "pandas":
        return native.astype(object)
    return native


class Table:
    """A table whose columns are read as numpy arrays and which can be rebuilt from columns.

    Parameters
    ----------
    names : tuple of str or int
        Names of the columns, in order.
    rows : int
    """

    kind = "numpy"

    def __init__(self, array: NDArray[Any], names: tuple[Column, ...]) -> None:
        self.names = names
        self.rows = len(array)
        self._flat = array.ndim == 1
        self._array = array[:, None] if self._flat else array

    def numbers(self, column: Column) -> NDArray[Any]:
        """Return a column of numbers, shape (rows,), missing as nan."""
        return _numbers(self._array[:, self.names.index(column)], column)

    def labels(self, column: Column) -> NDArray[Any]:
        """Return a column of labels, shape (rows,), any dtype."""
        return self._array[:, self.names.index(column)]

    def public(self, column: Column) -> Any:
        """Return a copy of a column whose cells are published unchanged, and of nothing else."""
        return self._array[:, self.names.index(column)].copy()

    def build(self, columns: dict[Column, Any]) -> Any:
        """Return a new table of this kind from columns in order."""
        numeric = all(np.asarray(values).dtype.kind in "biuf" for values in columns.values())
        out = np.empty((self.rows, len(columns)), dtype=np.float64 if numeric else object)
        if self._flat:
            (values,) = columns.values()
            return np.array(values, dtype=out.dtype)
        # A few rows at a time, so that both sides of the transposition stay in the cache.
        for start in range(0, self.rows, 1024):
            for j, values in enumerate(columns.values()):
                out[start : start + 1024, j] = values[start : start + 1024]
        return out


class _Frame(Table):
    """A pandas, polars or pyarrow table behind narwhals."""

    def __init__(self, frame: Any, kind: str) -> None:
        self.kind = kind
        self.names = as_columns("the table's column names", frame.columns)
        self.rows = len(frame)
        self._frame = frame

    def numbers(self, column: Column) -> NDArray[Any]:
        import narwhals as nw

        series = self._frame.get_column(column)
        if str(getattr(series.to_native(), "dtype", "")) == "object":
            # narwhals would look at the cells to name the type.
            return _numbers(np.asarray(series.to_numpy(), dtype=object), column)
        if series.dtype.is_integer() and "128" not in str(series.dtype):
            # Not by a cast: Arrow refuses integers above 2^53, with the person's value in the message. Only
            # polars has 128 bits, which its cast takes and numpy does not know.
            missing = series.is_null().to_numpy()
            values = np.asarray(series.fill_null(0).to_numpy()).astype(np.float64)
            values[missing] = np.nan
            return values
        if series.dtype.is_numeric() or series.dtype == nw.Boolean:
            values = series.cast(nw.Float64).fill_null(float("nan")).to_numpy()
            return _numbers(np.asarray(values, dtype=np.float64), column)
        if series.dtype in (nw.Object, nw.Unknown):
            return _numbers(np.asarray(series.to_numpy(), dtype=object), column)
        raise TypeError(
            f"column {column!r} must hold real numbers, got dtype {series.dtype}. Convert it to numbers, "
            "declare its labels with Categories, or leave it out."
        )

    def labels(self, column: Column) -> NDArray[Any]:
        import narwhals as nw

        series = self._frame.get_column(column)
        if self.kind != "pandas" and series.dtype in (nw.Categorical, nw.Enum):
            series = series.cast(nw.String)
        return np.asarray(series.to_numpy())

    def public(self, column: Column) -> Any:
        import narwhals as nw

        # Rows are picked out, because a slice keeps (and pickles) the memory of the table it was cut from.
        series = self._frame.get_column(column)[np.arange(self.rows)]
        native = series.to_native()
        if self.kind == "pandas":
            native = native.reset_index(drop=True)
            native.attrs = {}
        return _labels_that_occur(native, self.kind) if series.dtype == nw.Categorical else native

    def build(self, columns: dict[Column, Any]) -> Any:
        import narwhals as nw

        namespace = nw.get_native_namespace(self._frame)
        # A list lets every library choose its own string type for labels.
        cells = {
            name: values.tolist() if isinstance(values, np.ndarray) and values.dtype == object else values
            for name, values in columns.items()
        }
        return namespace.table(cells) if self.kind == "pyarrow" else namespace.DataFrame(cells)


def read_table(data: Any, names: Sequence[Column]) -> Table:
    """Wrap a table, checking only what its schema says.

    Parameters
    ----------
    data : ndarray, or pandas, polars or pyarrow table
        An array's columns are called by their positions, or in order by `names` if these are strings.
    names : sequence of str or int
        Columns of the law and the public columns.

    Returns
    -------
    Table

    Raises
    ------
    TypeError
        If `data` is no table of numbers or labels.
    ValueError
        If an array has the wrong shape for `names`.

    Examples
    --------
    >>> read_table(np.zeros((3, 2)), ("age", "hours")).names
    ('age', 'hours')
    """
    if isinstance(data, np.ndarray):
        return _read_array(data, names)
    import narwhals as nw

    frame = nw.from_native(data, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        raise TypeError(
            "data must be a numpy array or an eager pandas, polars or pyarrow table, "
            f"got {type(data).__name__}. "
            "Collect a lazy table first; turn a series into a one-column table."
        )
    kind = str(frame.implementation.name).lower()
    if kind not in ("pandas", "polars", "pyarrow"):
        raise TypeError(f"data must be a pandas, polars or pyarrow table, got one of {kind}. Convert it first.")
    return _Frame(frame, kind)


def _read_array(data: NDArray[Any], names: Sequence[Column]) -> Table:
    if isinstance(data, np.ma.MaskedArray):
        raise TypeError("data must be a plain array, got a masked one. Use data.astype(float).filled(np.nan).")
    data = np.asarray(data)
    if data.ndim not in (1, 2):
        raise ValueError(f"data must be an array of shape (n, columns), got {data.ndim} dimensions.")
    if data.dtype.kind not in "biufOUT":
        raise TypeError(f"data must hold real numbers or labels, got dtype {data.dtype}.")
    width = 1 if data.ndim == 1 else data.shape[1]
    if all(isinstance(name, int) for name in names):
        return Table(data, tuple(range(width)))
    if len(names) != width:
        raise ValueError(
            f"data must have {len(names)} columns, {list(names)} in this order, got {width}. "
            "Use integer positions in the domain to release some columns of an array."
        )
    return Table(data, tuple(names))
