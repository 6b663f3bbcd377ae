"""Random tables: cells change nothing but the released values.

`plain` says in a few lines of its own what a cell stands for. A release under a known key of the table as it came
must equal the release of what its cells stand for, so that no cell raises, warns, moves a bound or leaves the grid.
"""

import itertools
import math
import warnings
from datetime import date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfit.mechanisms import (
    Ball,
    Box,
    Categories,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    RandomizedResponse,
    SymmetricLaplace,
    ZeroInflatedLaplace,
    blocks,
    release,
)

thorough = settings(max_examples=200, deadline=None)


@pytest.fixture(scope="module", autouse=True)
def small_blocks():
    """Blocks of four rows: quick to draw, and small tables reach over the end of one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "block_rows", lambda dim: 4)
        yield


NASTY = [math.nan, math.inf, -math.inf, -0.0, 5e-324, -5e-324, 1e308, -1e308, 2.0**53, -(2.0**53), 2.0**53 + 2, 0.1]
FLOATS = st.sampled_from(NASTY) | st.floats(-2, 2) | st.floats()
BOX = Box({"a": (-1, 1), "b": (0, 0.1)}, fill={"a": 0.25})
SPANS = ((-1.0, 1.0, 0.25), (0.0, 0.1, 0.05))
LAWS = [
    Gaussian([1.0, 0.1]),
    Laplace(1.0),
    DiscreteLaplace([1.0, 0.3]),
    SymmetricLaplace(1e-3),
    SymmetricLaplace(1.0, shape=3),
    ZeroInflatedLaplace(1.0, 0.3),
    Gaussian(1e140),
]
laws, roundings = st.sampled_from(LAWS), st.sampled_from(["nearest", "stochastic"])
seeds = st.integers(0, 2**32)


def plain(value, span):
    """What a cell stands for: a real number inside its interval."""
    low, high, fill = span
    try:
        number = float(value) if isinstance(value, (bool, int, float, np.number, np.bool_)) else math.nan
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    return fill if math.isnan(number) else min(max(number, low), high)


def values_of(frame):
    if isinstance(frame, pa.Table):
        return np.column_stack([column.to_numpy() for column in frame.columns])
    return np.asarray(frame, dtype=np.float64)


def told(data, call):
    """What a call returns that warns of nothing but an array's dtype, in one and the same sentence."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        out = call()
    texts = [str(w.message) for w in caught]
    assert texts == [OBJECTS] * (isinstance(data, np.ndarray) and data.dtype == object)
    return out


OBJECTS = (
    "the array has dtype object: a cell that is no number (or no date, where dates are declared) counts as missing, "
    "text like '1' too. Pass an array of numbers or dates; or a data frame, whose columns are told apart by their "
    "types."
)


def check(data, cells, law, seed, rounding, domain=BOX, spans=SPANS):
    """A table like `data`, whose two columns hold `cells`, is released like the numbers that they stand for."""
    clean = np.array([[plain(v, span) for v, span in zip(row, spans, strict=True)] for row in cells])
    clean = clean.reshape(len(cells), len(spans))
    out = told(data, lambda: release(data, law, domain, rng=seed, rounding=rounding))
    wanted = told(clean, lambda: release(clean, law, domain, rng=seed, rounding=rounding))
    assert type(out.frame) is type(data) and out.frame.shape == data.shape and out.n_rows == len(cells)
    assert out.law is law and out.domain is domain and repr(out) == repr(wanted).replace("numpy", out.kind)
    y = values_of(out.frame).reshape(clean.shape)
    np.testing.assert_array_equal(y, wanted.frame)
    steps = y / law.grid(len(spans))
    assert (steps == np.rint(steps)).all() and not np.signbit(y[y == 0]).any()
    # 64-bit words end somewhere: the reach of the noise is known beforehand.
    assert (np.abs(y) <= 1 + 130 * law.scales(len(spans))).all()
    return out


rows = st.lists(st.tuples(FLOATS, FLOATS), max_size=5)


LAYOUTS = {
    "C": np.array,
    "Fortran": np.asfortranarray,
    "strided": lambda x: np.repeat(np.repeat(x, 2, axis=0), 2, axis=1)[::2, ::2],
    "reversed": lambda x: x[::-1].copy()[::-1],
    "objects": lambda x: x.astype(object),
}


@thorough
@given(
    rows,
    st.sampled_from([np.float64, np.float32, np.float16, np.longdouble, ">f8"]),
    st.sampled_from(sorted(LAYOUTS)),
    st.booleans(),
    laws,
    seeds,
    roundings,
)
def test_floats_of_every_layout(cells, dtype, layout, writeable, law, seed, rounding):
    with np.errstate(all="ignore"):
        x = LAYOUTS[layout](np.array(cells, dtype=np.float64).reshape(len(cells), 2).astype(dtype))
    x.flags.writeable = writeable
    before = x.tobytes()
    out = check(x, x.tolist(), law, seed, rounding)
    assert out.frame.base is None and not np.shares_memory(out.frame, x) and x.tobytes() == before


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint32", "uint64", "bool", ">i4"]


@thorough
@given(st.data(), st.sampled_from(INTEGERS), laws, seeds, roundings)
def test_integers_and_booleans(data, dtype, law, seed, rounding):
    kind = np.dtype(dtype)
    low, high = (0, 1) if kind.kind == "b" else (np.iinfo(kind).min, np.iinfo(kind).max)
    cell = st.integers(low, high) | st.sampled_from([low, high, 0, 1])
    cells = data.draw(st.lists(st.tuples(cell, cell), max_size=5))
    check(np.array(cells, dtype=kind).reshape(len(cells), 2), cells, law, seed, rounding)


class Hostile:
    """A cell that raises at every touch."""

    def _refuse(self, *args):
        raise RuntimeError("a cell was touched")

    __float__ = __eq__ = __bool__ = __len__ = __iter__ = __array__ = __index__ = __str__ = __repr__ = _refuse
    __hash__ = None


ODD = st.sampled_from([None, pd.NA, pd.NaT, "1", "", b"1", 1j, (), [1.0], {}, Ellipsis, date(2020, 1, 1), 10**400])
CELLS = FLOATS | st.booleans() | st.integers() | ODD | st.builds(Hostile) | st.builds(np.float32, st.floats(width=32))


@thorough
@given(st.lists(st.tuples(CELLS, CELLS), max_size=5), st.booleans(), laws, seeds, roundings)
def test_objects(cells, framed, law, seed, rounding):
    x = np.empty((len(cells), 2), dtype=object)
    for i, j in itertools.product(range(len(cells)), range(2)):
        x[i, j] = cells[i][j]
    if not framed:
        check(x, cells, law, seed, rounding)
        return
    frame = pd.DataFrame({"a": pd.Series(x[:, 0]), "b": pd.Series(x[:, 1])}, dtype=object)
    with pytest.raises(TypeError) as caught:
        release(frame, law, BOX, rng=seed, rounding=rounding)
    assert str(caught.value) == (
        "column 'a' has dtype object, which may hold anything; it must hold numbers by its type. Convert it first: "
        'pandas.to_numeric(column, errors="coerce"). If it holds labels, declare them.'
    )


def columns_of(cells):
    return dict(zip("ab", zip(*cells, strict=True) if cells else ((), ()), strict=True))


def gaps_of(cells):
    return {c: [None if v is None or math.isnan(v) else v for v in own] for c, own in columns_of(cells).items()}


PANDAS = ["float64", "Float64", "Float32", "double[pyarrow]"]
FRAMES = {
    **{dtype: lambda c, d=dtype: pd.DataFrame({k: pd.Series(v, dtype=d) for k, v in c.items()}) for dtype in PANDAS},
    "arrow": lambda c: pa.table({k: pa.array(v, pa.float64()) for k, v in c.items()}),
    "arrow 32": lambda c: pa.table({k: pa.array(v, pa.float32()) for k, v in c.items()}),
    "polars": lambda c: pl.DataFrame({k: pl.Series(v, dtype=pl.Float64) for k, v in c.items()}),
    "polars 32": lambda c: pl.DataFrame({k: pl.Series(v, dtype=pl.Float32) for k, v in c.items()}),
}

INDEXES = [
    pd.MultiIndex.from_product([["person-1", "person-2"], [0, 1, 2]], names=["who", "visit"]),
    pd.Index(["same"] * 6),
    pd.date_range("2020-01-01", periods=6),
    pd.CategoricalIndex(list("uvwuvw")),
]
singles = st.none() | st.sampled_from([v for v in NASTY if abs(v) != 1e308]) | st.floats(width=32)


@thorough
@given(
    st.lists(st.tuples(singles, singles), max_size=5),
    st.sampled_from(sorted(FRAMES)),
    st.sampled_from(INDEXES),
    laws,
    seeds,
)
def test_data_frames_with_missing_values(cells, kind, index, law, seed):
    frame = FRAMES[kind](gaps_of(cells))
    if isinstance(frame, pd.DataFrame):
        frame.index = index[: len(cells)]
        frame.attrs = {"source": "people"}
    single = "32" in kind
    stored = [[v if v is None or not single else float(np.float32(v)) for v in row] for row in cells]
    out = check(frame, stored, law, seed, "nearest").frame
    if isinstance(out, pd.DataFrame):
        assert isinstance(out.index, pd.RangeIndex) and out.attrs == {} and set(out.dtypes) == {np.dtype("f8")}


whole = st.none() | st.integers(-(2**63), 2**63 - 1) | st.sampled_from([2**53, 2**53 + 1, 0, 1, -1])
WHOLE = {
    "Int64": lambda c: pd.DataFrame({k: pd.array(v, dtype="Int64") for k, v in c.items()}),
    "pandas arrow": lambda c: pd.DataFrame({k: pd.array(v, dtype="int64[pyarrow]") for k, v in c.items()}),
    "arrow": lambda c: pa.table({k: pa.array(v, pa.int64()) for k, v in c.items()}),
    "polars": lambda c: pl.DataFrame({k: pl.Series(v, dtype=pl.Int64) for k, v in c.items()}),
}


@pytest.mark.slow
@thorough
@given(st.lists(st.tuples(whole, whole), max_size=5), st.sampled_from(sorted(WHOLE)), laws, seeds, roundings)
def test_nullable_integers(cells, kind, law, seed, rounding):
    check(WHOLE[kind](columns_of(cells)), cells, law, seed, rounding)


@pytest.mark.slow
@thorough
@given(st.lists(FLOATS, min_size=1, max_size=4), st.lists(st.integers(-1, 3), max_size=5), laws, seeds)
def test_categoricals_of_numbers(labels, codes, law, seed):
    known = list(dict.fromkeys(v for v in labels if not math.isnan(v)))
    codes = [c if c < len(known) else -1 for c in codes]
    cells = [(math.nan if c < 0 else known[c], 0.05) for c in codes]
    column = pd.Categorical.from_codes(codes, pd.Index(known, dtype=float))
    check(pd.DataFrame({"a": column, "b": [0.05] * len(codes)}), cells, law, seed, "nearest")


DAY = date(1970, 1, 1)
BORN = Box({"d": (date(1900, 1, 1), date(2000, 12, 31))}, fill={"d": date(1950, 6, 1)})
BORN_SPAN = tuple(float((d - DAY).days) for d in (date(1900, 1, 1), date(2000, 12, 31), date(1950, 6, 1)))
DATES = st.none() | st.dates() | st.sampled_from([date.min, date.max, date(1900, 1, 1), date(1899, 12, 31)])


def moments(cells):
    return [None if d is None else datetime(d.year, d.month, d.day) for d in cells]


CALENDARS = {
    "numpy": lambda d: np.array(d, dtype="datetime64[D]")[:, None],
    "pandas": lambda d: pd.DataFrame({"d": pd.Series(moments(d), dtype="datetime64[s]")}),
    "objects": lambda d: np.array(d, dtype=object)[:, None],
    "arrow": lambda d: pa.table({"d": pa.array(d, pa.date32())}),
    "polars": lambda d: pl.DataFrame({"d": pl.Series(d, dtype=pl.Date)}),
}
DATE_LAWS = st.sampled_from([Gaussian(700.0), DiscreteLaplace(30.0)])


@thorough
@given(st.lists(DATES, max_size=5), st.sampled_from(sorted(CALENDARS)), DATE_LAWS, seeds, roundings)
def test_dates(cells, kind, law, seed, rounding):
    days = [math.nan if d is None else float((d - DAY).days) for d in cells]
    clean = np.array([[plain(v, BORN_SPAN)] for v in days]).reshape(len(days), 1)
    table = CALENDARS[kind](cells)
    out = told(table, lambda: release(table, law, BORN, rng=seed, rounding=rounding))
    wanted = release(clean, law, BORN, rng=seed, rounding=rounding).frame
    np.testing.assert_array_equal(values_of(out.frame).reshape(clean.shape), wanted)


LABELS = [["a", "b", "c"], [0, 1], [True, False], ["", "nan", "None"]]


@thorough
@given(st.lists(CELLS | st.sampled_from(["a", "b", "nan", "None"]), max_size=6), st.sampled_from(LABELS), seeds)
def test_labels(cells, labels, seed):
    x = np.empty((len(cells), 1), dtype=object)
    for i, cell in enumerate(cells):
        x[i, 0] = cell
    text = isinstance(labels[0], str)

    def known(cell):
        if isinstance(cell, str) if text else isinstance(cell, (bool, int, float, np.number, np.bool_)):
            return next((label for label in labels if cell == label), labels[0])
        return labels[0]

    clean = np.array([[known(cell)] for cell in cells], dtype=object).reshape(len(cells), 1)
    law, domain = RandomizedResponse(1.0, len(labels)), Categories({"l": labels})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out, wanted = (release(data, law, domain, rng=seed).frame for data in (x, clean))
    assert out.shape == x.shape and out.tolist() == wanted.tolist()
    assert set(out.ravel()) <= set(labels)


@pytest.mark.slow
@thorough
@given(st.lists(FLOATS, max_size=6), laws, seeds, st.booleans())
def test_one_column_and_one_dimension(cells, law, seed, flat):
    law = type(law).from_dict({**law.to_dict(), "scale": 1.0})
    x = np.array(cells, dtype=float)
    box = Box({"a": (-1, 1)}, fill={"a": 0.25})
    check(x if flat else x[:, None], [(v,) for v in cells], law, seed, "nearest", box, SPANS[:1])


@pytest.mark.slow
@thorough
@given(st.lists(st.tuples(FLOATS, FLOATS, FLOATS), max_size=5), laws, seeds, st.sampled_from([1e-3, 1.0, 1e6]))
def test_balls(cells, law, seed, radius):
    if isinstance(law, DiscreteLaplace):
        law = Laplace(1.0)
    law = type(law).from_dict({**law.to_dict(), "scale": max(1.0, radius / 1e3)})
    x = np.array(cells, dtype=float).reshape(len(cells), 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = release(x, law, Ball(radius, 3), rng=seed).frame
    noise = release(np.zeros_like(x), law, Ball(radius, 3), rng=seed).frame
    # What is left when the noise is taken off lies in the ball, up to the two roundings, in the record's direction.
    inside = y - noise
    assert (np.linalg.norm(inside, axis=1) <= radius + 2 * np.sqrt(3) * law.grid(1)[0]).all()
    for row, middle in zip(x, inside, strict=True):
        size = math.hypot(*row) if np.isfinite(row).all() else math.inf
        if size < radius * 0.999:
            np.testing.assert_allclose(middle, row, rtol=0, atol=2 * law.grid(1)[0])


def test_a_report_depends_on_the_number_of_rows_alone():
    nasty = np.array(list(itertools.product(NASTY, NASTY)))
    texts = {release(x, DiscreteLaplace(1.0), BOX).report() for x in (nasty, np.zeros_like(nasty), nasty[::-1])}
    assert len(texts) == 1
