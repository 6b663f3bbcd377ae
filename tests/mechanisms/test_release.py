"""Releases: schema, memory, randomness, forks, pickles."""

import pickle
import struct
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
)

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


PEOPLE = [f"shown-{i:02}" for i in range(20)] + [f"hidden-{i:02}" for i in range(20)]
WIDE = {"x": np.zeros(40), "name": PEOPLE}
ARROW = pa.dictionary(pa.int32(), pa.string())
SLICES = {
    "pyarrow": pa.table(WIDE).slice(0, 20),
    "pyarrow dictionary": pa.table({**WIDE, "name": pa.array(PEOPLE).dictionary_encode()}).slice(0, 20),
    "polars": pl.DataFrame(WIDE)[:20],
    "polars categorical": pl.DataFrame(WIDE, schema_overrides={"name": pl.Categorical})[:20],
    "pandas": pd.DataFrame(WIDE)[:20],
    "pandas object": pd.DataFrame(WIDE).astype({"name": object})[:20],
    "pandas categorical": pd.DataFrame(WIDE).astype({"name": "category"})[:20],
    "pandas arrow": pd.DataFrame({**WIDE, "name": pd.array(PEOPLE, dtype="string[pyarrow]")})[:20],
    "pandas arrow dictionary": pd.DataFrame({**WIDE, "name": pd.array(PEOPLE, dtype=pd.ArrowDtype(ARROW))})[:20],
    "numpy": np.array(list(zip(*WIDE.values(), strict=True)), dtype=object)[:20],
}


@pytest.mark.parametrize("kind", SLICES)
def test_public_columns_bring_nothing_from_rows_that_are_not_released(kind, tmp_path):
    # A slice of an Arrow table pickles all of its parent, a categorical carries the labels of every row it ever had.
    if kind == "numpy":
        out = release(SLICES[kind], {0: Gaussian(1.0)}, Box({0: (0, 1)}), public=[1])
        names = list(out.frame[:, 1])
    else:
        out = release(SLICES[kind], Gaussian(1.0), Box({"x": (0, 1)}), public=["name"])
        names = out.frame["name"].to_pylist() if out.kind == "pyarrow" else list(out.frame["name"])
    assert names == PEOPLE[:20]
    assert b"shown-07" in pickle.dumps(out) and b"hidden-" not in pickle.dumps(out)
    out.save(tmp_path / "r.parquet")
    stored = (tmp_path / "r.parquet").read_bytes()
    assert b"hidden-" not in stored and b"shown-" in stored
