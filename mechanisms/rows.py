"""Some rows of a table, of the kind that came in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["choose_rows", "pick_rows"]


def pick_rows(table: Any, mask: NDArray[np.bool_]) -> Any:
    """Return the rows of a numpy, pandas, polars or pyarrow table where a mask is true.

    Examples
    --------
    >>> pick_rows(np.array([[1.0], [2.0]]), np.array([False, True]))
    array([[2.]])
    """
    if isinstance(table, np.ndarray):
        return table[mask]
    import narwhals as nw

    return nw.from_native(table, eager_only=True)[np.flatnonzero(mask)].to_native()


def choose_rows(frame: Any, rows: Any, count: int) -> tuple[Any, int]:
    """Return the rows of a released table where a user's mask is true, and how many they are.

    Raises
    ------
    TypeError, ValueError
        If the mask is not true or false once for each of the `count` rows, or never true.

    Examples
    --------
    >>> choose_rows(np.array([[1.0], [2.0]]), [False, True], 2)
    (array([[2.]]), 1)
    """
    mask = np.asarray(rows)
    if mask.dtype != bool:
        raise TypeError(
            f"rows must be true or false for each of the {count:,} rows, got values of dtype {mask.dtype}. Compare a "
            "public column, for example rows=release.frame['region'] == 'north'; positions are not taken."
        )
    if mask.shape != (count,):
        raise ValueError(f"rows must have shape ({count},), one entry per row of the release, got {mask.shape}.")
    own: Any = getattr(rows, "index", None)
    wanted = getattr(frame, "index", None)
    if hasattr(own, "equals") and not (own.equals(wanted) if wanted is not None else _counts(own)):
        raise ValueError(
            "rows must have the index of release.frame, got a pandas Series with another one (sorted, sampled or of "
            "another table). Make it from release.frame, or pass rows.to_numpy() if its order is that of the rows."
        )
    kept = int(np.count_nonzero(mask))
    if kept == 0:
        raise ValueError(f"rows must be true for at least one of the {count:,} rows, got none.")
    chosen = pick_rows(frame, mask)
    return (chosen.reset_index(drop=True) if hasattr(chosen, "reset_index") else chosen), kept


def _counts(index: Any) -> bool:
    """Whether a pandas index numbers the rows from 0."""
    return bool(np.array_equal(np.asarray(index), np.arange(len(index))))
