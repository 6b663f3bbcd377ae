"""No value of a table can make a release fail, warn, or leave the grid."""

import warnings

import numpy as np
import pandas as pd
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


def check(data, law, domain):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = np.asarray(release(data, law, domain).frame, dtype=float)
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
    check(pd.DataFrame(x, columns=["a", "b"], dtype=object), make(1.0), domain)


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
