"""Dtypes: the released values depend on the numbers in a table, not on how they are stored."""

import linecache
import pickle
import re
import warnings
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privfit.accounting import GDP, Ledger
from privfit.mechanisms import (
    Box,
    Categories,
    Gaussian,
    RandomizedResponse,
    RecordBook,
    load_release,
    release,
    release_new,
)

# what every array of objects is told; see test_arrays_of_objects_are_told_once_by_their_type
pytestmark = pytest.mark.filterwarnings("ignore:the array has dtype object:UserWarning")

BOX = Box({"a": (-10, 10)}, fill={"a": 5})
# So little noise that every cell can be recognised.
LAW = Gaussian(1e-6)
CELLS = [0, 1, 3]


def released(data):
    frame = release(data, LAW, BOX).frame
    column = frame if isinstance(frame, np.ndarray) else np.asarray(frame["a"])
    return np.rint(column.ravel().astype(float)).tolist()


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u4", "i8", "u8", "f2", "f4", "f8", ">f8", ">i4", object, "g"])
def test_numpy_dtypes(dtype):
    assert released(np.array(CELLS, dtype=dtype)[:, None]) == [0, 1, 3]
    assert released(np.array(CELLS, dtype=dtype)) == [0, 1, 3]


WIDTHS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
DECIMALS = [Decimal(0), Decimal(1), Decimal(3), None]


def number_tables():
    """The numbers 0, 1, 3 and a missing one, in every type that has one."""
    cells = [*CELLS, None]
    nan = [*CELLS, np.nan]
    for width in [*WIDTHS, "float", "double"]:
        yield f"pandas {width}[pyarrow]", pd.DataFrame({"a": pd.array(cells, dtype=f"{width}[pyarrow]")})
        yield f"arrow {width}", pa.table({"a": pa.array(cells, type=pa.type_for_alias(width))})
    for width in ["Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64"]:
        yield f"pandas {width}", pd.DataFrame({"a": pd.array(cells, dtype=width)})
        yield f"polars {width}", pl.DataFrame({"a": pl.Series(cells, dtype=getattr(pl, width))})
    yield "polars Int128", pl.DataFrame({"a": pl.Series(cells, dtype=pl.Int128)})
    for width in ["f2", "f4", "f8"]:
        yield f"numpy {width}", np.array(nan, dtype=width)
        yield f"pandas {width}", pd.DataFrame({"a": pd.Series(nan, dtype=width)})
        yield f"pandas Sparse {width}", pd.DataFrame({"a": pd.arrays.SparseArray(np.array(nan, dtype=width))})
    half = [None if c is None else np.float16(c) for c in cells]
    yield "arrow half float", pa.table({"a": pa.array(half, pa.float16())})
    for kind in (pa.decimal32(9, 2), pa.decimal64(18, 2), pa.decimal128(38, 5), pa.decimal256(76, 9)):
        yield f"arrow {kind}", pa.table({"a": pa.array(DECIMALS, kind)})
    yield "pandas decimal", pd.DataFrame({"a": pd.array(DECIMALS, dtype=pd.ArrowDtype(pa.decimal128(9, 2)))})
    yield "polars decimal", pl.DataFrame({"a": pl.Series(DECIMALS, dtype=pl.Decimal(12, 3))})
    yield "objects decimal", np.array(DECIMALS, dtype=object)
    yield "pandas categorical of numbers", pd.DataFrame({"a": pd.Categorical(cells)})
    yield "arrow dictionary", pa.table({"a": pa.array(cells).dictionary_encode()})
    yield "arrow chunked", pa.table({"a": pa.chunked_array([cells[:1], cells[1:1], cells[1:]])})


@pytest.mark.parametrize("table", [pytest.param(t, id=n) for n, t in number_tables()])
def test_numbers_of_every_type(table):
    assert released(table) == [0, 1, 3, 5]
    assert released(table[:0]) == []
    assert released(table[:1]) == [0]


@pytest.mark.parametrize("width", WIDTHS)
def test_pandas_and_numpy_integers_without_missing_cells(width):
    for table in (pd.DataFrame({"a": np.array(CELLS, width)}), pd.DataFrame({"a": pd.arrays.SparseArray(CELLS)})):
        assert released(table) == CELLS
    assert released(np.asfortranarray(np.array([CELLS, CELLS], width))[:1].T) == CELLS


def test_integers_beyond_2_to_the_53_in_every_library():
    cells = [0, 2**53 + 1, 2**63 + 12345, 2**64 - 1]
    law, box = Gaussian(2.0**24), Box({"a": (0, 2.0**64)})
    tables = [
        np.array(cells, dtype=np.uint64),
        np.array(cells, dtype=object),
        pd.DataFrame({"a": np.array(cells, dtype=np.uint64)}),
        pd.DataFrame({"a": pd.array(cells, dtype="UInt64")}),
        pd.DataFrame({"a": pd.array(cells, dtype="uint64[pyarrow]")}),
        pl.DataFrame({"a": pl.Series(cells, dtype=pl.UInt64)}),
        pl.DataFrame({"a": pl.Series(cells, dtype=pl.Int128)}),
        pa.table({"a": pa.array(cells, pa.uint64())}),
    ]
    for table in tables:
        frame = release(table, law, box).frame
        values = frame if isinstance(frame, np.ndarray) else np.asarray(frame["a"])
        np.testing.assert_allclose(values.astype(float), [float(c) for c in cells], atol=8 * 2.0**24)


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: np.array([1 + 1j]), "real and the imaginary part as two columns"),
        (lambda: np.array([1], dtype="m8[s]"), "Divide durations by a unit"),
        (lambda: np.array([b"x"]), "Decode bytes"),
        (lambda: np.array([(1,)], dtype=[("a", int)]), r"dtype structured\. Turn a structured array into a data frame"),
        (lambda: np.ma.masked_array([1.0], [True]), r"masked one\. Use"),
        (lambda: pd.DataFrame({"a": [1 + 1j]}), "real and the imaginary part"),
        (lambda: pd.DataFrame({"a": pd.to_timedelta([1], unit="s")}), "Divide durations by a unit"),
        (lambda: pd.DataFrame({"a": pd.period_range("2000", periods=1)}), r"column.dt.to_timestamp\(\)"),
        (lambda: pd.DataFrame({"a": pd.interval_range(0, 1)}), "midpoints"),
        (lambda: pd.DataFrame({"a": pd.array([1], dtype="duration[s][pyarrow]")}), "total hours"),
        (lambda: pd.DataFrame({"a": pd.Categorical(pd.to_timedelta([1]))}), "Divide durations by a unit"),
        (lambda: pl.DataFrame({"a": [timedelta(1)]}), "total hours"),
        (lambda: pl.DataFrame({"a": [time(1)]}), "seconds since midnight"),
        (lambda: pl.DataFrame({"a": [[77]]}), "Convert it to numbers"),
        (lambda: pl.DataFrame({"a": [b"x"]}), "dtype bytes"),
        (lambda: pa.table({"a": [{"x": 77}]}), "Convert it to numbers"),
        (lambda: pa.table({"a": pa.array([1], pa.time32("s"))}), "seconds since midnight"),
        (lambda: pa.table({"a": pa.array([1], pa.duration("s"))}), "total hours"),
    ],
)
@pytest.mark.parametrize("domain", [BOX, Categories({"a": [0, 1]})], ids=["number", "label"])
def test_types_that_nothing_can_be_read_from(make, words, domain):
    law = LAW if domain is BOX else RandomizedResponse(1.0)
    with pytest.raises(TypeError, match=words) as caught:
        release(make(), law, domain)
    with pytest.raises(TypeError) as empty:
        release(make()[:0], law, domain)
    # whatever the cells are
    assert str(empty.value) == str(caught.value) and "77" not in str(caught.value)


class Column:
    """A name of a column that is no string."""


@pytest.mark.parametrize(
    "names, error, words",
    [
        (["a", "a"], ValueError, "column names must be distinct, got 1 that repeat"),
        ([0, 0], ValueError, "must be distinct"),
        (pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")]), TypeError, "got tuple. Give every column a name"),
        ([date(2000, 1, 1), date(2001, 1, 1)], TypeError, "strings or integers, got date"),
        (pd.to_datetime(["2000-01-01", "2001-01-01"]), TypeError, "got Timestamp"),
        ([1.5, "a"], TypeError, "got float"),
        ([True, False], TypeError, "got bool"),
        ([None, "a"], TypeError, "got NoneType|got float"),
        ([Column(), "a"], TypeError, "got Column"),
    ],
)
def test_names_of_pandas_columns(names, error, words):
    with pytest.raises(error, match=words) as caught:
        release(pd.DataFrame([[77, 88]], columns=names), LAW, Box({"a": (0, 1), "b": (0, 1)}))
    assert "77" not in str(caught.value) and "2000" not in str(caught.value)


def test_repeated_names_of_arrow_columns():
    table = pa.table([pa.array([77]), pa.array([88]), pa.array([99])], names=["a", "b", "a"])
    with pytest.raises(ValueError, match="must be distinct, got 1 that repeat"):
        release(table, LAW, BOX)


def test_integer_names_of_pandas_columns():
    box = Box({0: (0, 10), 1: (0, 10)})
    out = release(pd.DataFrame([[1.0, 2.0]], columns=np.array([0, 1])), LAW, box).frame
    assert out.columns.tolist() == [0, 1] and np.rint(out.to_numpy()).tolist() == [[1, 2]]


def test_row_index_of_several_levels_is_dropped():
    index = pd.MultiIndex.from_tuples([("SECRET", 1), ("SECRET", 2)], names=["who", "when"])
    out = release(pd.DataFrame({"a": [1.0, 3.0], "p": [7, 8]}, index=index), LAW, BOX, public=["p"]).frame
    assert out.index.equals(pd.RangeIndex(2)) and out.columns.tolist() == ["a", "p"]
    assert b"SECRET" not in pickle.dumps(out)


@pytest.mark.parametrize("ordered", [False, True])
def test_public_categoricals_lose_the_labels_of_rows_that_are_not_there(ordered):
    kind = pd.CategoricalDtype(["x", "y", "SECRET"], ordered=ordered)
    frame = pd.DataFrame({"a": [1.0, 3.0], "p": pd.Series(["x", "y"], dtype=kind)})
    tables = [frame, pa.Table.from_pandas(frame), pl.DataFrame({"a": [1.0, 3.0], "p": ["x", "y"]})]
    whole = pl.DataFrame({"a": [1.0, 3.0, 4.0], "p": ["x", "y", "SECRET"]}, schema_overrides={"p": pl.Categorical})
    for table in [*tables, whole.head(2)]:
        out = release(table, LAW, BOX, public=["p"]).frame
        assert [str(p) for p in out["p"]] == ["x", "y"]
        assert b"SECRET" not in pickle.dumps(out)


def test_public_dates_of_an_array_stay_dates():
    days = np.array(["2000-01-01", "NaT"], dtype="M8[ns]")
    x = np.stack([np.array([5, 7]).view("M8[ns]"), days], axis=1)
    # any law will do: only the public column is looked at
    domain = Box({0: (date(1970, 1, 1), date(1970, 1, 11))})
    out = release(x, LAW, domain, public=[1]).frame
    assert out.dtype == object and out[0, 1] == days[0] and np.isnat(out[1, 1])


def test_booleans_are_numbers():
    assert released(np.array([[False], [True]])) == [0, 1]
    assert released(pd.DataFrame({"a": [False, True]})) == [0, 1]
    assert released(pl.DataFrame({"a": [False, True, None]})) == [0, 1, 5]
    assert released(pd.DataFrame({"a": pd.array([False, True, None], dtype="boolean")})) == [0, 1, 5]
    assert released(pd.DataFrame({"a": pd.array([False, True, None], dtype="bool[pyarrow]")})) == [0, 1, 5]
    assert released(pd.DataFrame({"a": pd.Categorical([False, True, None])})) == [0, 1, 5]
    assert released(pa.table({"a": [False, True, None]})) == [0, 1, 5]
    assert released(np.array([False, True, None, np.True_], dtype=object)) == [0, 1, 5, 1]


@pytest.mark.parametrize(
    "dtype",
    ["Int8", "Int64", "UInt8", "Float32", "Float64", "int64[pyarrow]", "double[pyarrow]", "float32"],
)
def test_pandas_dtypes_with_missing_cells(dtype):
    cells = [*CELLS, np.nan if dtype == "float32" else None]
    assert released(pd.DataFrame({"a": pd.Series(cells, dtype=dtype)})) == [0, 1, 3, 5]


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt64, pl.Float32, pl.Float64, pl.Decimal(10, 2)])
def test_polars_dtypes_with_missing_cells(dtype):
    assert released(pl.DataFrame({"a": pl.Series([*CELLS, None], dtype=dtype)})) == [0, 1, 3, 5]


@pytest.mark.parametrize("kind", [pa.int16(), pa.float32(), pa.float64()])
def test_arrow_tables_with_missing_cells(kind):
    assert released(pa.table({"a": pa.array([*CELLS, None], type=kind)})) == [0, 1, 3, 5]


def test_object_cells_that_are_no_numbers_count_as_missing():
    cells = [
        1,
        2.25,
        "3",
        None,
        pd.NA,
        [4],
        {},
        Decimal("-7"),
        10**400,
        -(10**400),
        1j,
        np.int8(4),
        np.nan,
        object(),
    ]
    wanted = [1, 2, 5, 5, 5, 5, 5, -7, 10, -10, 5, 4, 5, 5]
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    assert released(array[:, None]) == wanted


BORN = Box({"a": (date(1900, 1, 1), date(2020, 12, 31))}, fill={"a": date(1950, 1, 1)})
DATES = [date(1970, 1, 2), None, date(1969, 12, 31)]
OBJECTS = {
    "pandas": lambda cells: pd.DataFrame({"a": pd.Series(cells, dtype=object)}),
    "pandas categorical": lambda cells: pd.DataFrame(
        {"a": pd.Categorical(cells, categories=pd.Index([c for c in cells if c is not None], dtype=object))}
    ),
    "polars": lambda cells: pl.DataFrame({"a": pl.Series(cells, dtype=pl.Object)}),
}


class Hostile:
    """A cell that cannot be read."""

    __float__ = __int__ = __bool__ = lambda self: 1 / 0


def refusal(table, domain):
    with pytest.raises(TypeError) as caught:
        release(table, LAW, domain)
    assert caught.value.__context__ is None and caught.value.__cause__ is None
    return str(caught.value)


@pytest.mark.parametrize("kind", OBJECTS)
@pytest.mark.parametrize("domain, wanted", [(BOX, "numbers"), (BORN, "dates")], ids=["number", "date"])
def test_object_columns_of_frames_are_refused_whatever_they_hold(kind, domain, wanted):
    make = OBJECTS[kind]
    first = refusal(make([]), domain)
    assert re.match(f"column 'a' has dtype .*, which may hold anything; it must hold {wanted} by its type. Conv", first)
    for cells in ([1.0, 2.0], [None, None], ["SECRET", "1"], [Hostile(), 3], DECIMALS, DATES, [10**400, -0.0]):
        assert refusal(make(cells), domain) == first


@pytest.mark.parametrize("kind", OBJECTS)
@pytest.mark.parametrize(
    "domain, cells, wanted",
    [(BOX, DECIMALS, [0, 1, 3, 5]), (BOX, [3, None, 1.0], [3, 5, 1]), (BORN, DATES, [1, -7305, -1])],
)
def test_object_columns_can_be_released_after_the_next_step(kind, domain, cells, wanted):
    table = OBJECTS[kind](cells)
    step = re.search(r"Convert it first: (.*\))\. If", refusal(table, domain))[1]
    column = eval(step, {"pandas": pd, "polars": pl}, {"column": table["a"]})
    frame = release(type(table)({"a": column}), LAW, domain).frame
    assert np.rint(frame["a"].to_numpy()).tolist() == wanted


def test_the_next_step_for_dates_keeps_times_with_and_without_a_zone():
    zones = [datetime(1970, 1, 2, tzinfo=UTC), datetime(1970, 1, 3), date(1970, 1, 4), None]
    table = OBJECTS["pandas"](zones)
    assert 'pandas.to_datetime(column, errors="coerce", utc=True)' in refusal(table, BORN)
    moments = pd.to_datetime(table["a"], errors="coerce", utc=True)
    assert np.rint(release(pd.DataFrame({"a": moments}), LAW, BORN).frame["a"]).tolist() == [1, 2, 3, -7305]


def test_object_columns_that_are_no_labels_are_refused_beside_other_columns():
    frame = pd.DataFrame({"l": pd.Series(["no", "yes"], dtype=object), "a": pd.Series([1, 2], dtype=object)})
    law = {"a": LAW, "l": RandomizedResponse(1.0)}
    with pytest.raises(TypeError, match="column 'a' has dtype object"):
        release(frame, law, (BOX, Categories({"l": ["no", "yes"]})))
    # labels by an encoding and public columns may be objects
    grade = Box({"l": (0, 1)}, encoding={"l": {"no": 0, "yes": 1}})
    assert np.rint(release(frame, LAW, grade, public=["a"]).frame["l"]).tolist() == [0, 1]


@pytest.mark.parametrize("domain", [BOX, BORN], ids=["number", "date"])
@pytest.mark.parametrize(
    "cells", [[], [1, 2], ["SECRET", None], [Hostile()]], ids=["none", "numbers", "text", "hostile"]
)
def test_arrays_of_objects_are_told_once_by_their_type(domain, cells):
    array = np.empty((len(cells), 1), dtype=object)
    array[:, 0] = cells
    calls = [
        lambda: release(array, LAW, domain),
        lambda: LAW.release(array, domain),
        lambda: release(array[:, 0], LAW, domain=domain),
    ]
    texts = set()
    for call in calls:
        with pytest.warns(UserWarning, match="array has dtype object: a cell that is no number .* missing") as caught:
            call()
        (warned,) = caught
        # the user's own line
        assert warned.filename == __file__ and "release(array" in linecache.getline(__file__, warned.lineno)
        texts.add(str(warned.message))
    assert len(texts) == 1 and "SECRET" not in texts.pop()


def test_the_warning_of_release_new_is_the_users_line(tmp_path):
    array = np.array([[1], [None]], dtype=object)
    where = {"ids": [1, 2], "book": RecordBook(tmp_path / "b.book"), "ledger": Ledger(GDP(1e9), tmp_path / "l.jsonl")}
    with pytest.warns(UserWarning, match="dtype object") as caught:
        release_new(array, LAW, BOX, **where, part="one")
    assert {w.filename for w in caught} == {__file__}


def test_arrays_of_objects_that_hold_labels_are_told_nothing():
    array = np.array([["no"], [None]], dtype=object)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        release(array, RandomizedResponse(1.0), Categories({"l": ["no", "yes"]}))
        release(array, LAW, Box({"l": (0, 1)}, encoding={"l": {"no": 0, "yes": 1}}))


@pytest.mark.parametrize("order", ["C", "F"])
def test_layouts(order):
    x = np.array(np.arange(12.0).reshape(4, 3) - 5, order=order)
    x.flags.writeable = False
    box = Box(dict.fromkeys(range(3), (-10, 10)))
    np.testing.assert_allclose(release(x, LAW, box).frame, x, atol=1e-4)
    np.testing.assert_allclose(release(x[::-2, ::-1], LAW, box).frame, x[::-2, ::-1], atol=1e-4)


def test_label_columns_of_every_type():
    law, box = RandomizedResponse(100.0), Categories({"l": ["no", "yes"]}, fill={"l": "yes"})
    cells, wanted = ["no", "yes", None, "maybe"], ["no", "yes", "yes", "yes"]
    tables = [
        pd.DataFrame({"l": cells}),
        pd.DataFrame({"l": pd.Series(cells, dtype=object)}),
        pd.DataFrame({"l": pd.Categorical(cells)}),
        pd.DataFrame({"l": pd.Series(cells, dtype="string")}),
        pl.DataFrame({"l": cells}),
        pl.DataFrame({"l": pl.Series(cells, dtype=pl.Categorical)}),
        pl.DataFrame({"l": pl.Series(cells, dtype=pl.Enum(["maybe", "no", "yes"]))}),
        np.array(cells, dtype=object)[:, None],
        np.array(["no", "yes", "", "maybe"])[:, None],
    ]
    for table in tables:
        frame = release(table, law, box).frame
        assert list(frame[:, 0] if isinstance(frame, np.ndarray) else frame["l"]) == wanted


def test_numeric_labels_in_an_array_stay_numbers():
    x = np.column_stack([np.zeros(4), [0, 1, 1, np.nan]])
    law = {0: LAW, 1: RandomizedResponse(100.0)}
    out = release(x, law, (Box({0: (-1, 1)}), Categories({1: [0, 1]}))).frame
    assert out.dtype == np.float64 and out[:, 1].tolist() == [0, 1, 1, 0]
    nullable = pd.DataFrame({"l": pd.array([0, 1, None], dtype="Int64")})
    labels = release(nullable, RandomizedResponse(100.0), Categories({"l": [0, 1]}, {"l": 1})).frame
    assert labels["l"].tolist() == [0, 1, 1]


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_labels_keep_their_type_in_a_table_without_rows(kind, tmp_path):
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[kind]
    law, domain = RandomizedResponse(1.0), Categories({"l": ["a", "b"]})
    full = make({"l": ["a", "b"]})
    done = release(full[:0] if kind != "pyarrow" else full.slice(0, 0), law, domain)
    done.save(tmp_path / "empty.parquet")
    for frame in (done.frame, load_release(tmp_path / "empty.parquet").frame):
        more = release(full, law, domain).frame
        schema = "dtypes" if kind == "pandas" else "schema"
        assert list(getattr(frame, schema)) == list(getattr(more, schema))
