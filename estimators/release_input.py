"""What a releasing step of a pipeline reads of its input: the schema and, for simulations only, a digest.

scikit-learn's own validation answers bad input by printing it; here types and shapes alone decide, so that no
message holds a cell and no cell can raise.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from privfit.mechanisms.categories import Categories
from privfit.mechanisms.cells import check_names
from privfit.mechanisms.frames import read_table
from privfit.mechanisms.plan import Plan

__all__ = ["dense_table", "seeded_source"]

SEED_WORDS = 8  # of 32 bits, from a digest of the table


def dense_table(X: Any) -> Any:
    """Return X as an array or a table of two dimensions with at least one row and column.

    Parameters
    ----------
    X : array_like, or pandas, polars or pyarrow table

    Returns
    -------
    ndarray or table
        A table as it is.

    Raises
    ------
    TypeError, ValueError
        For sparse, complex or ragged input and for wrong shapes, in the words scikit-learn's checks ask for.

    Examples
    --------
    >>> dense_table([[1, 2]]).shape
    (1, 2)
    """
    import narwhals as nw
    from scipy.sparse import issparse

    if issparse(X):
        raise TypeError("X must be dense: sparse data is not supported, since noise is never 0. Use X.toarray().")
    check_names(X)
    table = X if nw.dependencies.is_into_dataframe(X) else _as_array(X)
    if isinstance(table, np.ndarray) and table.dtype.kind == "c":
        raise ValueError("X must hold real numbers: Complex data not supported. Release real and imaginary parts.")
    if len(table.shape) != 2:
        raise ValueError(
            f"Expected 2D array, got {len(table.shape)}D array for X. Reshape your data: X.reshape(-1, 1) for "
            "one column, X.reshape(1, -1) for one record."
        )
    for size, what in zip(table.shape, ("sample(s)", "feature(s)"), strict=True):
        if size == 0:
            raise ValueError(f"Found array with 0 {what} (shape={table.shape}) while a minimum of 1 is required.")
    return table


def seeded_source(seed: int, table: Any, plan: Plan) -> np.random.Generator:
    """Return the source of a simulated release: a function of the seed and of the cells that get noise.

    Were it a function of the seed alone, training and test rows, and all folds, would share their noise row by
    row. Real releases never look at a cell to choose their noise.

    Parameters
    ----------
    seed : int
    table : ndarray or table
    plan : Plan

    Returns
    -------
    Generator

    Raises
    ------
    TypeError, ValueError
        If the table does not have the columns of the plan.

    Examples
    --------
    >>> from privfit.mechanisms import Box, Gaussian
    >>> from privfit.mechanisms.plan import plan_release
    >>> plan = plan_release(Gaussian(1.0), Box({0: (0, 1)}))
    >>> one, two = (seeded_source(7, np.array([[x]]), plan).integers(2**62) for x in (0.25, 0.5))
    >>> bool(one == two)
    False
    """
    cells = read_table(table, plan.columns)
    plan.order(cells.names)
    digest = hashlib.blake2b(digest_size=4 * SEED_WORDS)
    for _, _, part in plan.parts:
        for column in cells.cells(part):
            if isinstance(part, Categories):
                digest.update(np.ascontiguousarray(part.encode(column)).data)
            else:
                values = column.astype(np.float64)
                digest.update(np.where(np.isnan(values), np.nan, values + 0.0).data)
    return np.random.default_rng([seed, *np.frombuffer(digest.digest(), dtype="<u4").tolist()])


def _as_array(X: Any) -> Any:
    if isinstance(X, np.ndarray):
        return X
    try:
        return np.asarray(X)
    except ValueError:
        raise ValueError("X must have rows of one length. Check for a missing cell.") from None
