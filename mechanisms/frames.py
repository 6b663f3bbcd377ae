"""Tables in, the same kind out: numpy arrays directly, pandas, polars and pyarrow through narwhals.

A column is read by its declared type and its declared encoding, never by its values, so that reading cannot fail on
one person's cell: a column that the encoding cannot read is a schema error, a cell that it does not know is missing.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.categories import Categories
from privfit.mechanisms.cells import Cells, array_cells, check_names, frame_cells
from privfit.mechanisms.columns import Column, as_columns
from privfit.mechanisms.encoding import NUMBERS, Encoding, label_families, label_step
from privfit.mechanisms.labels import Label, longest
from privfit.mechanisms.native import nested_afresh, only_cells

__all__ = ["Table", "read_table"]

_CONVERT = {
    ("pandas", "number"): 'pandas.to_numeric(column, errors="coerce")',
    ("pandas", "date"): 'pandas.to_datetime(column, errors="coerce", utc=True)',
    ("polars", "number"): "polars.Series(column.to_list(), dtype=polars.Float64, strict=False)",
    ("polars", "date"): "polars.Series(column.to_list(), dtype=polars.Datetime, strict=False)",
}


def _labels_that_occur(native: Any, kind: str) -> Any:
    """Return a categorical column without the labels of rows that are not in it."""
    if kind == "pandas" and hasattr(native, "cat") and hasattr(native.cat, "remove_unused_categories"):
        return native.cat.remove_unused_categories()
    if kind == "pandas":
        return native.astype(object)
    import polars

    # The categories of an Enum belong to its type; those of a Categorical are the ones that occur.
    return native.cast(polars.String).cast(polars.Categorical)


def _without_hidden(native: Any) -> Any:
    """Return a pandas column whose missing cells have no value left under the mask."""
    if native.dtype.kind not in "biuf" or not hasattr(native.dtype, "numpy_dtype"):
        return native
    missing = native.isna()
    # setting a cell to missing marks it, and leaves what is there: so 0 has to be there first
    native = native.fillna(native.dtype.type(0))
    native[missing] = None
    return native


class Table:
    """A table whose columns are read as numpy arrays and which can be rebuilt from columns.

    Parameters
    ----------
    array : ndarray
    names : tuple of str or int
        Names of the columns, in order.
    """

    kind = "numpy"

    def __init__(self, array: NDArray[Any], names: tuple[Column, ...]) -> None:
        self.names = names
        self.rows = len(array)
        self._flat = array.ndim == 1
        self._array = array[:, None] if self._flat else array

    def cells(self, domain: Any) -> list[NDArray[Any]]:
        """Return the columns of one part of a domain, as `release_part` takes them.

        Parameters
        ----------
        domain : Box, Ball or Categories

        Returns
        -------
        list of ndarray of shape (rows,)
            Numbers by the declared encodings, or the labels of Categories.

        Raises
        ------
        TypeError
            If a column has a type that its encoding cannot read. Never because of a cell.
        """
        if isinstance(domain, Categories):
            return [self.labels(c, own) for c, own in zip(domain.columns, domain.labels, strict=True)]
        return [self.numbers(c, own) for c, own in zip(domain.columns, domain.encoding, strict=True)]

    def numbers(self, column: Column, encoding: Encoding = NUMBERS) -> NDArray[Any]:
        """Return a column of numbers by an encoding, shape (rows,), any real dtype, missing as nan."""
        family, dtype, cells = self._cells(column, longest(getattr(encoding, "labels", None)))
        if family == "object" and encoding.kind != "labels":
            self._check_objects(column, dtype, encoding.kind)
        if family not in encoding.reads:
            wanted = {"number": "real numbers", "date": "dates"}.get(encoding.kind, "the labels of its encoding")
            raise TypeError(
                f"column {column!r} must hold {wanted}, got {family}s (dtype {dtype}). {encoding.next_step(family)}"
            )
        return cells if family == "missing" else encoding.read(cells)

    def labels(self, column: Column, labels: tuple[Label, ...] | None = None) -> NDArray[Any]:
        """Return a column of labels, shape (rows,), any dtype.

        With `labels`, of a type that can hold them, and good for no more than `label_codes` of these labels.
        """
        family, dtype, cells = self._cells(column, longest(labels))
        if labels is not None and family not in label_families(labels):
            raise TypeError(
                f"column {column!r} must hold the declared labels, got {family}s (dtype {dtype}). {label_step(labels)}"
            )
        return cells

    def public(self, column: Column) -> Any:
        """Return a copy of a column whose cells are published unchanged, and of nothing else."""
        values = self._array[:, self.names.index(column)].copy()
        # As objects, numpy would turn dates of fine units into integers.
        return np.array([*values, None], dtype=object)[:-1].copy() if values.dtype.kind == "M" else values

    def without_rows(self) -> Table:
        """Return the table's schema alone: the same kind and columns, no rows."""
        return _Schema(self._array[:0], self.names)

    def _check_objects(self, column: Column, dtype: str, kind: str) -> None:
        """Raise if a table of this kind has no columns of objects where numbers or dates are wanted."""

    def _cells(self, column: Column, most: int | None) -> Cells:
        return array_cells(self._array[:, self.names.index(column)], f"column {column!r}")

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


class _Schema(Table):
    """The schema of an array: a release looks at it once, so what is to be said of it is said here."""

    def cells(self, domain: Any) -> list[NDArray[Any]]:
        wanted = () if isinstance(domain, Categories) else domain.encoding
        if self._array.dtype.kind == "O" and any(own.kind != "labels" for own in wanted):
            warnings.warn(
                "the array has dtype object: a cell that is no number (or no date, where dates are declared) counts "
                "as missing, text like '1' too. Pass an array of numbers or dates; or a data frame, whose columns are "
                "told apart by their types.",
                UserWarning,
                stacklevel=_user_level(),
            )
        return super().cells(domain)


def _user_level() -> int:
    """Return the stacklevel of the first caller outside of this package."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "privfit":
        frame, level = frame.f_back, level + 1
    return level


class _Frame(Table):
    """A pandas, polars or pyarrow table behind narwhals."""

    def __init__(self, frame: Any, kind: str) -> None:
        self.kind = kind
        self.names = as_columns("the table's column names", frame.columns)
        self.rows = len(frame)
        self._frame = frame

    def _check_objects(self, column: Column, dtype: str, kind: str) -> None:
        # In a column of objects whole columns of text would count as missing, without a word.
        raise TypeError(
            f"column {column!r} has dtype {dtype}, which may hold anything; it must hold {kind}s by its type. Convert "
            f"it first: {_CONVERT[self.kind, kind]}. If it holds labels, declare them."
        )

    def without_rows(self) -> Table:
        return _Frame(self._frame.head(0), self.kind)

    def _cells(self, column: Column, most: int | None) -> Cells:
        return frame_cells(self._frame.get_column(column).to_native(), self.kind, column, most)

    def public(self, column: Column) -> Any:
        import narwhals as nw

        if self.kind == "pyarrow":
            return only_cells(self._frame.get_column(column).to_native())
        # Rows are picked out, because a slice keeps (and pickles) the memory of the table it was cut from.
        series = self._frame.get_column(column)[np.arange(self.rows)]
        native = nested_afresh(series.to_native(), self.kind)
        if self.kind == "pandas":
            native = _without_hidden(native.reset_index(drop=True))
            native.attrs = {}
        return _labels_that_occur(native, self.kind) if series.dtype in (nw.Categorical, nw.Enum) else native

    def build(self, columns: dict[Column, Any]) -> Any:
        import narwhals as nw

        namespace = nw.get_native_namespace(self._frame)
        texts = {
            "pyarrow": lambda labels: namespace.array(labels, namespace.string()),
            "polars": lambda labels: namespace.Series(labels, dtype=namespace.String),
            "pandas": lambda labels: namespace.Series(labels, dtype="str"),  # the string type of its version
        }
        cells = {
            # the only arrays of objects are labels of text; naming their type keeps it in a table without rows
            name: texts[self.kind](values.tolist())
            if isinstance(values, np.ndarray) and values.dtype == object
            else values
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
        If `data` is no table of numbers, dates or labels, or a column name is no string or position.
    ValueError
        If an array has the wrong shape for `names`, or two columns share a name.

    Examples
    --------
    >>> read_table(np.zeros((3, 2)), ("age", "hours")).names
    ('age', 'hours')
    """
    if isinstance(data, np.ndarray):
        return _read_array(data, names)
    import narwhals as nw

    check_names(data)
    frame = nw.from_native(data, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        raise TypeError(
            "data must be a numpy array or an eager pandas, polars or pyarrow table, "
            f"got {type(data).__name__}. "
            "Collect a lazy table first, or use release_file or release_dask; turn a series into a one-column table."
        )
    kind = str(frame.implementation.name).lower()
    if kind not in ("pandas", "polars", "pyarrow"):
        raise TypeError(f"data must be a pandas, polars or pyarrow table, got one of {kind}. Convert it first.")
    return _Frame(frame, kind)


def _read_array(data: NDArray[Any], names: Sequence[Column]) -> Table:
    if isinstance(data, np.ma.MaskedArray):
        raise TypeError("data must be a plain array, got a masked one. Use data.astype(float).filled(np.nan).")
    data = np.asarray(data)
    array_cells(np.empty(0, data.dtype), "data")
    if data.ndim not in (1, 2):
        raise ValueError(f"data must be an array of shape (n, columns), got {data.ndim} dimensions.")
    width = 1 if data.ndim == 1 else data.shape[1]
    if all(isinstance(name, int) for name in names):
        return Table(data, tuple(range(width)))
    if len(names) != width:
        raise ValueError(
            f"data must have {len(names)} columns, {list(names)} in this order, got {width}. "
            "Use integer positions in the domain to release some columns of an array."
        )
    return Table(data, tuple(names))
