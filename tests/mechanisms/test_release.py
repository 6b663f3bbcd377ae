"""Releases: schema, memory, randomness, forks, pickles."""

import pickle
import struct
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privfit.mechanisms import (
    Ball,
    Box,
    Categories,
    Gaussian,
    Laplace,
    Product,
    RandomizedResponse,
    SymmetricLaplace,
    ZeroInflatedLaplace,
    release,
    releasing,
)
from privfit.mechanisms.blocks import BLOCK_ROWS, release_block, release_part

BOX = Box({"age": (17, 90), "hours": (0, 100)})
LABELS = Categories({"income": ["<=50K", ">50K"]})
LAW = {("age", "hours"): ZeroInflatedLaplace([20.0, 30.0], 0.1), "income": RandomizedResponse(1.0)}
FRAME = pd.DataFrame(
    {
        "age": [20, 30, 99],
        "state": pd.Categorical(["x", "y", "x"]),
        "income": [">50K", "<=50K", None],
        "hours": [1.0, 2.0, np.nan],
    },
    index=[5, 6, 7],
)
KINDS = {
    "pandas": FRAME,
    "polars": pl.from_pandas(FRAME),
    "pyarrow": pa.Table.from_pandas(FRAME, preserve_index=False),
}


@pytest.mark.parametrize("kind", KINDS)
def test_parts_keep_the_order_and_kind_of_the_table(kind):
    out = release(KINDS[kind], LAW, (BOX, LABELS), public=["state"])
    names = out.frame.column_names if kind == "pyarrow" else list(out.frame.columns)
    assert names == ["age", "state", "income", "hours"] and type(out.frame) is type(KINDS[kind])
    assert out.columns == ("age", "income", "hours") and out.public == ("state",)
    assert isinstance(out.law, Product) and out.domain == (BOX, LABELS) and out.kind == kind
    assert list(out.frame["state"].to_pylist() if kind == "pyarrow" else out.frame["state"]) == [
        "x",
        "y",
        "x",
    ]


def test_pandas_output_has_a_new_index_and_no_attributes():
    frame = FRAME.copy()
    frame.attrs["note"] = "secret"
    frame["state"].attrs["note"] = "secret"
    out = release(frame, LAW, (BOX, LABELS), public=["state"]).frame
    assert isinstance(out.index, pd.RangeIndex) and list(out.index) == [0, 1, 2] and out.attrs == {}
    assert out["age"].dtype == out["hours"].dtype == np.float64
    assert out["state"].dtype == frame["state"].dtype and out["state"].attrs == {}


def test_memory_is_fresh():
    x = np.zeros((10, 2))
    out = release(x, Gaussian(1.0), Box({"a": (0, 1), "b": (0, 1)})).frame
    assert out.base is None and not np.shares_memory(out, x) and (x == 0).all()
    flat = release(np.zeros(10), Gaussian(1.0), Box({"a": (0, 1)})).frame
    assert flat.shape == (10,) and flat.base is None
    frame = pd.DataFrame({"a": np.zeros(4), "p": np.ones(4)})
    made = release(frame, Gaussian(1.0), Box({"a": (0, 1)}), public=["p"]).frame
    made.loc[0, "p"] = 7.0
    assert frame.loc[0, "p"] == 1.0


def test_array_columns_by_position_or_in_declared_order():
    x = np.column_stack([np.full(3, 5.0), np.arange(3.0), np.full(3, 7.0)])
    out = release(x, {0: Gaussian(1e-9), 2: Gaussian(1e-9)}, Box({0: (0, 9), 2: (0, 9)}), public=[1])
    np.testing.assert_allclose(out.frame, x, atol=1e-7)
    assert out.columns == (0, 2) and out.public == (1,)
    named = release(x, Gaussian(1e-9), Box({"a": (0, 9), "b": (0, 9), "c": (0, 9)}))
    np.testing.assert_allclose(named.frame, x, atol=1e-7)
    assert named.columns == ("a", "b", "c")
    with pytest.raises(ValueError, match="data must have 2 columns"):
        release(x, Gaussian(1.0), Box({"a": (0, 9), "b": (0, 9)}))


def test_columns_with_integer_names():
    frame = pd.DataFrame(np.zeros((3, 2)))
    out = release(frame, Gaussian(1.0), Box({1: (0, 1), 0: (0, 1)})).frame
    assert list(out.columns) == [0, 1]


def test_law_scales_follow_the_domains_order_not_the_tables():
    frame = pd.DataFrame({"b": np.zeros(500), "a": np.zeros(500)})
    out = release(frame, Laplace([1e-6, 1e3]), Box({"a": (0, 1), "b": (0, 1)})).frame
    assert out["a"].abs().max() < 1e-3 and out["b"].abs().max() > 1e3


def test_parts_give_the_coordinates_of_each_law():
    frame = pd.DataFrame({"b": [0.0], "a": [0.0]})
    law = Laplace([1.0, 2.0])
    assert release(frame, law, Box({"a": (0, 1), "b": (0, 1)})).parts == {("a", "b"): law}
    several = {"b": Gaussian(1.0), "a": Laplace(3.0)}
    parts = release(frame, several, Box({"a": (0, 1), "b": (0, 1)})).parts
    assert parts == {("b",): Gaussian(1.0), ("a",): Laplace(3.0)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("law", "domain", "public", "message"),
    [
        ({"age": Gaussian(1.0)}, BOX, ["state"], "no law releases: 'income', 'hours'"),
        ({"weight": Gaussian(1.0)}, Box({"weight": (0, 1)}), None, "no column 'weight'"),
        (LAW, (BOX, LABELS), ["state", "age"], "distinct, got age"),
        (LAW, (BOX, LABELS), ["state", "zip"], "no column 'zip'"),
        (LAW, BOX, None, "the domain declares"),
        (Gaussian(1.0), (BOX, LABELS), None, "domain has 2 parts"),
    ],
)
def test_schema_errors(kind, law, domain, public, message):
    with pytest.raises(ValueError, match=message):
        release(KINDS[kind], law, domain, public=public)


@pytest.mark.parametrize(
    "data", [[[1.0]], {"age": [1]}, 3.0, None, "x", pl.LazyFrame({"a": [0.0]}), pd.Series([1.0], name="a")]
)
def test_other_objects_are_refused(data):
    with pytest.raises(TypeError, match="data must be"):
        release(data, Gaussian(1.0), Box({"a": (0, 1)}))


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (np.zeros((2, 1), complex), TypeError),
        (np.zeros((2, 1), "datetime64[s]"), TypeError),
        (np.zeros((2, 1, 1)), ValueError),
        (np.zeros(()), ValueError),
        (np.ma.masked_array([[1.0]], [[True]]), TypeError),
        (np.array([["a"]]), TypeError),
        (pd.DataFrame({"a": ["x"]}).astype("category"), TypeError),
        (pd.DataFrame({"a": pd.to_datetime(["2020-01-01"])}), TypeError),
        (pl.DataFrame({"a": ["x"]}), TypeError),
        (pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), ValueError),
        (pd.DataFrame([[1.0]], columns=pd.MultiIndex.from_tuples([("a", "b")])), TypeError),
        (pd.DataFrame([[1.0]], columns=[1.5]), TypeError),
    ],
)
def test_schemas_that_are_refused(data, error):
    with pytest.raises(error):
        release(data, Gaussian(1.0), Box({"a": (0, 1)}))


def test_parameters_that_are_refused():
    x = np.zeros((2, 1))
    with pytest.raises(TypeError, match="law must be a law"):
        release(x, "gaussian", Box({"a": (0, 1)}))
    with pytest.raises(TypeError, match="non-empty mapping"):
        release(x, {}, Box({"a": (0, 1)}))
    with pytest.raises(TypeError, match="domain must be"):
        release(x, Gaussian(1.0), None)
    with pytest.raises(ValueError, match="scale must be one number or 1 numbers"):
        release(x, Gaussian([1.0, 2.0]), Box({"a": (0, 1)}))


def test_ball_release_stays_centred_and_projects():
    x = np.full((50_000, 2), 30.0)
    out = release(x, SymmetricLaplace(0.5), Ball(1.0, 2), rng=0).frame
    np.testing.assert_allclose(out.mean(axis=0), np.sqrt([0.5, 0.5]), atol=5 * 0.5 / np.sqrt(50_000))


def test_two_releases_differ_and_two_equal_rows_get_different_noise():
    x = np.zeros((100_000, 2))
    box = Box({"a": (0, 1), "b": (0, 1)})
    for law in (Gaussian(1.0), Laplace(1.0), SymmetricLaplace(1.0, shape=2)):
        first, second = (release(x, law, box).frame for _ in range(2))
        assert (first == second).mean() < 0.01
        # Values repeat on the grid, pairs hardly ever: at 1e5 rows of ~1e7 cells.
        assert len(np.unique(first, axis=0)) > 0.98 * len(first)


def test_blocks_differ_from_each_other():
    x = np.zeros((3 * BLOCK_ROWS, 1))
    out = release(x, Gaussian(1.0), Box({"a": (0, 1)})).frame.reshape(3, BLOCK_ROWS)
    assert all((out[i] == out[j]).mean() < 0.01 for i in range(3) for j in range(i))


def test_recomputed_blocks_are_byte_identical_in_any_order():
    rows = 2 * BLOCK_ROWS + 17
    columns = [np.linspace(0, 1, rows), np.linspace(1, 0, rows)]
    box, law, master = Box({"a": (0, 1), "b": (0, 1)}), ZeroInflatedLaplace([1.0, 2.0], 0.1), bytes(range(32))
    whole = np.empty((2, rows))
    release_part(law, box, columns, list(whole), master, 4)
    pieces = np.empty((2, rows))
    for block in (2, 0, 1, 0, 2):
        cut = slice(block * BLOCK_ROWS, min((block + 1) * BLOCK_ROWS, rows))
        release_block(law, box, [c[cut] for c in columns], [p[cut] for p in pieces], master, 4, block)
    assert whole.tobytes() == pieces.tobytes()


def test_parts_of_a_product_have_independent_noise():
    x = np.zeros((20_000, 2))
    law = {0: Gaussian(1.0), 1: Gaussian(1.0)}
    out = release(x, law, Box({0: (0, 1), 1: (0, 1)}), rng=5).frame
    assert abs(np.corrcoef(out.T)[0, 1]) < 5 / np.sqrt(20_000)


def test_rng_reproduces_and_marks_the_release():
    x, box = np.zeros((100, 1)), Box({"a": (0, 1)})
    one, two, three = (release(x, Gaussian(1.0), box, rng=seed) for seed in (1, 1, 2))
    assert (one.frame == two.frame).all() and (one.frame != three.frame).any()
    assert not one.secure and "secure=False" in repr(one)
    assert release(x, Gaussian(1.0), box).secure


def test_numpys_global_generator_has_no_influence():
    x, box = np.zeros((100, 1)), Box({"a": (0, 1)})
    outs = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        outs.append(release(x, Gaussian(1.0), box).frame)
    assert (outs[0] != outs[1]).any()


FORK = """
import os, sys
import numpy as np
from privfit.mechanisms import Box, ZeroInflatedLaplace
law, box, x = ZeroInflatedLaplace(1.0, 0.01), Box({"a": (0, 1), "b": (0, 1)}), np.zeros((4, 2))
law.release(x, box)                                   # a draw before the fork
for _ in range(3):
    if os.fork() == 0:
        print(law.release(x, box).frame.tobytes().hex(), flush=True)
        os._exit(0)
for _ in range(3):
    os.wait()
print(law.release(x, box).frame.tobytes().hex(), flush=True)
"""


def test_forked_workers_draw_different_noise():
    out = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True)
    lines = out.stdout.split()
    assert len(lines) == 4 and len(set(lines)) == 4


def test_repr_and_pickle_hold_none_of_the_data():
    private = 54_321.123456789
    x = np.full((3, 2), private)
    out = release(x, Laplace(1e4), Box({"a": (0, 1e5), "b": (0, 1e5)}))
    stored = pickle.dumps(out)
    assert struct.pack("<d", private) not in stored and b"54321.12" not in stored
    again = pickle.loads(stored)
    assert (again.frame == out.frame).all() and again.law == out.law
    text = repr(out) + str(out) + repr(out.law) + repr(out.domain)
    assert not any(str(value) in text for value in out.frame.ravel())


def test_errors_hold_none_of_the_data():
    frame = pd.DataFrame({"a": [1.5, 2.5], "secret": ["cell-one", "cell-two"]})
    for law, domain in (
        (Gaussian(1.0), Box({"a": (0, 1)})),
        (Gaussian(1.0), Box({"a": (0, 1), "secret": (0, 1)})),
        ({"secret": RandomizedResponse(1.0)}, Categories({"secret": ["x", "y"]})),
    ):
        with pytest.raises((ValueError, TypeError)) as info:
            release(frame, law, domain)
        assert "cell-" not in str(info.value) and "1.5" not in str(info.value)


def test_the_master_key_does_not_outlive_the_call(monkeypatch):
    key = np.random.default_rng(9).bytes(32)
    monkeypatch.setattr(releasing, "fresh_master", lambda: key)
    before = sys.getrefcount(key)
    out = release(np.zeros((5, 1)), Gaussian(1.0), Box({"a": (0, 1)}))
    assert sys.getrefcount(key) == before and key not in pickle.dumps(out)


def test_empty_and_one_row_tables():
    box = Box({"a": (0, 1)})
    for rows in (0, 1):
        assert release(np.zeros((rows, 1)), Gaussian(1.0), box).frame.shape == (rows, 1)
        assert len(release(pd.DataFrame({"a": np.zeros(rows)}), Gaussian(1.0), box).frame) == rows
        assert len(release(pl.DataFrame({"a": np.zeros(rows)}), Gaussian(1.0), box).frame) == rows


def test_warnings_stay_silent_on_every_cell():
    x = np.array([[np.nan, np.inf], [-np.inf, 1e308], [-1e308, 5e-324]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for domain in (Box({"a": (0, 1), "b": (-1, 1)}), Ball(1.0, 2, ["a", "b"])):
            for law in (Gaussian(1.0), SymmetricLaplace(2.0**-300), Laplace(2.0**300)):
                if law.scale == 2.0**-300:
                    continue
                assert np.isfinite(release(x, law, domain).frame).all()
