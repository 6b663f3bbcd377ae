"""Subsets of a release: the rows asked for, of every kind of table, with the law; nothing else is taken for rows."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privfit.mechanisms import Box, Laplace, load_release, release

X = np.arange(12.0).reshape(6, 2)
MASK = np.array([False, True, True, False, False, True])
BOX = Box({"a": (0, 10)})


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame(X, columns=["a", "b"], index=list("uvwxyz")),
        pl.DataFrame(X, schema=["a", "b"]),
        pa.table({"a": X[:, 0], "b": X[:, 1]}),
    ],
    ids=["pandas", "polars", "pyarrow"],
)
@pytest.mark.parametrize("as_mask", [np.asarray, pd.Series, pl.Series, list], ids=["numpy", "pandas", "polars", "list"])
def test_the_rows_asked_for_with_their_law(table, as_mask, tmp_path):
    out = release(table, Laplace(3.0), BOX, public=["b"])
    part = out.subset(as_mask(MASK))
    assert type(part.frame) is type(table) and part.n_rows == 3
    assert np.array_equal(np.asarray(part.frame["a"]), np.asarray(out.frame["a"])[MASK])
    assert np.array_equal(np.asarray(part.frame["b"]), X[MASK, 1])
    assert part.law == out.law and part.columns == out.columns and out.n_rows == 6
    part.save(tmp_path / "part.parquet")
    again = load_release(tmp_path / "part.parquet")
    assert again.n_rows == 3 and again.law == out.law


def test_arrays():
    out = release(X, Laplace(3.0), Box({0: (0, 10)}), public=[1])
    assert np.array_equal(out.subset(MASK).frame, out.frame[MASK])


@pytest.mark.parametrize(
    "rows, error, words",
    [
        ([0, 2, 2], TypeError, "rows must be true or false for each of the 6 rows, got values of dtype int64"),
        (slice(0, 2), TypeError, "rows must be true or false"),
        ("a", TypeError, "rows must be true or false"),
        ([True] * 5, ValueError, r"rows must have shape \(6,\)"),
        (np.ones((6, 1), bool), ValueError, r"rows must have shape \(6,\)"),
        ([False] * 6, ValueError, "at least one of the 6 rows"),
    ],
)
def test_what_is_no_mask(rows, error, words):
    with pytest.raises(error, match=words):
        release(X, Laplace(3.0), Box({0: (0, 10)}), public=[1]).subset(rows)


def test_a_series_of_another_order_is_refused():
    frame = pd.DataFrame(X, columns=["a", "b"])
    for table in (frame, pl.DataFrame(X, schema=["a", "b"]), pa.table({"a": X[:, 0], "b": X[:, 1]})):
        out = release(table, Laplace(3.0), BOX, public=["b"])
        mask = pd.Series(MASK)
        assert out.subset(mask).n_rows == 3
        with pytest.raises(ValueError, match="rows must have the index"):
            out.subset(mask.iloc[::-1])
        assert out.subset(mask.iloc[::-1].to_numpy()).n_rows == 3


def test_all_rows_are_a_copy():
    out = release(X, Laplace(3.0), Box({0: (0, 10)}), public=[1])
    assert not np.shares_memory(out.subset(np.ones(6, bool)).frame, out.frame)
