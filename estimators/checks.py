"""Checks of data handed to an estimator: clear errors that never repeat a value of the data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

__all__ = ["LARGEST", "check_random_state", "named_columns", "read_columns", "read_columns_and_response"]

Floats = NDArray[np.float64]
LARGEST = 1e100
"""Largest absolute value whose square and fourth power are safe to sum."""


def read_columns(estimator: Any, X: Any, *, reset: bool = True) -> Floats:
    """Return X as float64 of shape (n, d), or raise.

    Parameters
    ----------
    estimator : BaseEstimator
        Learns the number and names of columns if `reset`.
    X : array_like or data frame
    reset : bool
        False at prediction time: columns must be those of the fit.

    Returns
    -------
    ndarray, shape (n, d)

    Raises
    ------
    ValueError, TypeError
        For complex, non-numeric, missing, infinite or huge values, and wrong shapes.

    Examples
    --------
    >>> from privfit.estimators import Mean
    >>> read_columns(Mean(), [[1, 2]])
    array([[1., 2.]])
    """
    _precheck("X", X, 2)
    try:
        array = validate_data(estimator, X, dtype=np.float64, reset=reset)
    except (ValueError, TypeError) as error:
        raise _without_values("X", error, X) from None
    _check_size("X", array)
    return np.asarray(array, np.float64)


def read_columns_and_response(estimator: Any, X: Any, y: Any, *, label: bool, reset: bool = True) -> tuple[Floats, Any]:
    """Return X as float64 of shape (n, d) and y of shape (n,): numbers, or class labels as they are.

    Raises
    ------
    ValueError, TypeError
        As `read_columns`, and for a y of another length or shape.

    Examples
    --------
    >>> from privfit.estimators import LinearRegression
    >>> read_columns_and_response(LinearRegression(), [[1], [2]], [3, 4], label=False)[1]
    array([3., 4.])
    """
    _precheck("X", X, 2)
    _precheck("y", y, 1)
    try:
        array, response = validate_data(estimator, X, y, dtype=np.float64, y_numeric=not label, reset=reset)
        if not label:
            response = np.asarray(response, np.float64)
    except (ValueError, TypeError) as error:
        raise _without_values("X and y", error, X) from None
    _check_size("X", array)
    if not label:
        _check_size("y", response)
    return np.asarray(array, np.float64), response


def check_random_state(value: Any) -> None:
    """Refuse a `random_state` that is not None, an integer >= 0 or a numpy Generator.

    Raises
    ------
    TypeError, ValueError

    Examples
    --------
    >>> check_random_state(0)
    """
    if value is None or isinstance(value, np.random.Generator):
        return
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"random_state must be None, an integer >= 0 or a numpy Generator, got {type(value).__name__}.")
    if value < 0:
        raise ValueError(f"random_state must be an integer >= 0, got {value}.")


def _precheck(name: str, value: Any, ndim: int) -> None:
    """Catch what scikit-learn would answer by printing the data."""
    if value is None or hasattr(value, "tocsr"):
        return
    if isinstance(value, (list, tuple)):
        try:
            value = np.asarray(value)
        except ValueError:
            raise ValueError(f"{name} must have rows of one length. Check for a missing cell.") from None
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if getattr(dtype, "kind", "") == "c":
        raise ValueError(f"{name} must hold real numbers: Complex data not supported. Take its real part.")
    if ndim == 2 and shape is not None and len(shape) < 2:
        raise ValueError(
            f"Expected 2D array, got {len(shape)}D array for {name}. Reshape your data: "
            f"{name}.reshape(-1, 1) for one column, {name}.reshape(1, -1) for one record."
        )


def _without_values(name: str, error: Exception, X: Any) -> Exception:
    text = str(error)
    if "contains NaN" in text or "contains infinity" in text:
        where = "y" if "Input y contains" in text else "X" if "Input X contains" in text else name
        what = "NaN" if "contains NaN" in text else "infinity or a value too large"
        return ValueError(
            f"Input {where} contains {what}. Drop these records or impute the values, before the release if "
            "you make it."
        )
    if "could not convert" in text:
        return _TextError(_text_columns(X))
    return error


class _TextError(ValueError):
    """Columns of text among the features, by name or position."""

    def __init__(self, columns: list[Any]) -> None:
        super().__init__(_text_message(columns))
        self.columns = columns


@contextmanager
def named_columns(names: Sequence[Any]) -> Iterator[None]:
    """Name the columns that an error within has found by their positions.

    Examples
    --------
    >>> from privfit.estimators import Mean
    >>> with named_columns(["age", "city"]):
    ...     read_columns(Mean(), [[1, "a"]])
    Traceback (most recent call last):
        ...
    ValueError: X must hold numbers, got text in the column 'city'. Leave it out (features=...
    """
    try:
        yield
    except _TextError as error:
        known = [names[c] if isinstance(c, int) and c < len(names) else c for c in error.columns]
        raise ValueError(_text_message(known)) from None


def _text_message(columns: list[Any]) -> str:
    if not columns:
        return (
            "y must hold numbers, got text. Model class labels with LogisticRegression or LinearSVC, and shares of "
            "labels with Mean."
        )
    shown = ", ".join(map(repr, columns[:8])) + (", ..." if len(columns) > 8 else "")
    return (
        f"X must hold numbers, got text in the column{'s' if len(columns) > 1 else ''} {shown}. Leave it out "
        "(features= chooses columns of a release, --features on the command line), or encode it: "
        'from_formula("y ~ a + C(b)", release, model) for columns without noise, codes before the release for others.'
    )


def _text_columns(X: Any) -> list[Any]:
    """Names (of a frame) or positions of the columns that do not turn into numbers."""
    names = getattr(X, "column_names", getattr(X, "columns", None))  # pyarrow, else pandas and polars
    if names is None:
        table = np.asarray(X, object)
        columns: list[tuple[Any, Any]] = list(enumerate(table.T)) if table.ndim == 2 else []
    else:
        columns = [(name, X[name]) for name in names]
    return [name for name, column in columns if not _numeric(column)]


def _numeric(column: Any) -> bool:
    try:
        np.asarray(column).astype(np.float64)
    except (ValueError, TypeError):
        return False
    return True


def _check_size(name: str, array: Floats) -> None:
    if array.size and max(array.max(), -array.min()) > LARGEST:
        raise ValueError(
            f"{name} must hold numbers of absolute value <= {LARGEST:g}. Rescale the column, and its noise, first."
        )
