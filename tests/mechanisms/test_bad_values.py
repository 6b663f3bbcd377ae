"""No value of a table can make a release fail, warn, or leave the grid."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from privfit.mechanisms import (
    Ball,
    Box,
    Categories,
    Gaussian,
    Laplace,
    RandomizedResponse,
    SymmetricLaplace,
    ZeroInflatedLaplace,
    release,
)
from privfit.mechanisms.grid import grid_of

NASTY = [np.nan, np.inf, -np.inf, -0.0, 5e-324, -5e-324, 1e308, -1e308, 2.0**53, -(2.0**53), 1e-300, 0.1]
FLOATS = st.sampled_from(NASTY) | st.floats(allow_nan=True, allow_infinity=True)
CELLS = FLOATS | st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.binary(max_size=3)
LAWS = st.sampled_from([Gaussian, Laplace, SymmetricLaplace, lambda s: ZeroInflatedLaplace(s, 0.3)])
SCALES = st.sampled_from([1e-9, 0.3, 1.0, 1000.0, 1e140])
DOMAINS = st.sampled_from([Box({"a": (-1, 1), "b": (0, 0.1)}), Ball(0.7, 2, ["a", "b"])])
DTYPES = st.sampled_from([np.float64, np.float32, np.float16, np.int64, np.int8, np.uint64, np.bool_])


def table_to_array(frame):
    return np.column_stack([c.to_numpy() for c in frame.columns]) if isinstance(frame, pa.Table) else frame


def check(data, law, domain):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # by its dtype alone, see test_frames
        warnings.filterwarnings("ignore", "the array has dtype object")
        out = np.asarray(table_to_array(release(data, law, domain).frame), dtype=float)
    assert out.shape == data.shape and np.isfinite(out).all()
    assert not np.signbit(out[out == 0]).any()
    steps = out / grid_of(law.scales(2))
    assert (steps == np.rint(steps)).all()


@settings(max_examples=150, deadline=None)
@given(arrays(np.float64, st.tuples(st.integers(0, 6), st.just(2)), elements=FLOATS), LAWS, SCALES, DOMAINS)
def test_floats(x, make, scale, domain):
    check(x, make(scale), domain)
    check(np.asfortranarray(x), make(scale), domain)
    check(pd.DataFrame(x, columns=["a", "b"]), make(scale), domain)


@settings(max_examples=60, deadline=None)
@given(st.data(), DTYPES, LAWS, SCALES, DOMAINS)
def test_other_numbers(data, dtype, make, scale, domain):
    x = data.draw(arrays(dtype, (4, 2)))
    x.flags.writeable = False
    check(x, make(scale), domain)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS), max_size=5), LAWS, DOMAINS)
def test_objects(rows, make, domain):
    x = np.empty((len(rows), 2), dtype=object)
    for i, row in enumerate(rows):
        x[i, 0], x[i, 1] = row
    check(x, make(1.0), domain)
    frame = pd.DataFrame(x, columns=["a", "b"], dtype=object)
    with pytest.raises(TypeError, match="column 'a' has dtype object, which may hold anything"):
        release(frame, make(1.0), domain)


@settings(max_examples=60, deadline=None)
@given(st.lists(CELLS, max_size=6), st.sampled_from([["a", "b", "c"], [0, 1], [True, False]]))
def test_labels(cells, labels):
    x = np.empty((len(cells), 1), dtype=object)
    for i, cell in enumerate(cells):
        x[i, 0] = cell
    law = RandomizedResponse(1.0, len(labels))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = release(x, law, Categories({"l": labels})).frame
    assert out.shape == x.shape and set(out.ravel().tolist()) <= set(labels)


def test_constant_columns_and_values_outside_are_ordinary():
    box = Box({"a": (0, 1), "b": (0, 1)})
    inside = release(np.ones((10, 2)), Gaussian(1.0), box, rng=3).frame
    outside = release(np.full((10, 2), np.inf), Gaussian(1.0), box, rng=3).frame
    np.testing.assert_array_equal(inside, outside)


WIDE = [2**53 + 1, -(2**62) - 1]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.none() | st.sampled_from(WIDE) | st.integers(-(2**63), 2**63 - 1), max_size=5), LAWS)
def test_integers_that_no_float_holds(cells, make):
    # Arrow's own cast to float raises on these, with the cell in the message.
    frames = [
        pa.table({"a": pa.array(cells, pa.int64()), "b": pa.array([1] * len(cells), pa.int8())}),
        pd.DataFrame({c: pd.array(cells, dtype="int64[pyarrow]") for c in "ab"}),
        pd.DataFrame({c: pd.array(cells, dtype="Int64") for c in "ab"}),
        pl.DataFrame({c: pl.Series(cells, dtype=pl.Int64) for c in "ab"}),
    ]
    for frame in frames:
        check(frame, make(1.0), Box({"a": (-1, 1), "b": (0, 1e12)}))


def test_wide_integers_keep_their_values_and_missing_ones_are_filled():
    box = Box({"a": (0, 2.0**64)}, fill={"a": 2.0**40})
    for array in (pa.array([None, 2**64 - 1, 5], pa.uint64()), pa.array([None, 2**63 - 1, 5], pa.int64())):
        out = release(pa.table({"a": array}), Gaussian(2.0**24), box).frame["a"].to_pylist()
        np.testing.assert_allclose(out, [2.0**40, array[1].as_py(), 5], rtol=1e-12, atol=2.0**30)


def test_integers_of_128_bits():
    frame = pl.DataFrame({"a": pl.Series([10**30, -(10**30), None], dtype=pl.Int128), "b": [1, 2, 3]})
    check(frame, Gaussian(1.0), Box({"a": (-1, 1), "b": (0, 1)}))


def test_matrices_are_arrays():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        x = np.matrix([[0.0, 1.0], [1.0, 0.0]])
    check(x, Gaussian(1.0), Box({"a": (-1, 1), "b": (0, 1)}))
