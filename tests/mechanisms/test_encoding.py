"""Encodings: dates are days, labels are declared numbers, whatever holds them; no cell can raise."""

import json
import math
import pickle
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privfit.mechanisms import Box, Gaussian, release
from privfit.mechanisms.days import array_days, cell_days, days_to_datetimes
from privfit.mechanisms.domains import domain_from_dict, find_domain
from privfit.mechanisms.encoding import Dates, Labels, Numbers, encoding_from_dict

# what every array of objects is told, see test_frames
pytestmark = pytest.mark.filterwarnings("ignore:the array has dtype object:UserWarning")

# So little noise that every cell can be recognised.
LAW = Gaussian(1e-6)
BORN = Box({"a": (date(1900, 1, 1), date(2020, 12, 31))}, fill={"a": date(1950, 1, 1)})
GRADE = Box({"a": (-1, 4)}, fill={"a": 3.5}, encoding={"a": {"low": 0, "mid": 1, "high": 4}})
FILL = (date(1950, 1, 1) - date(1970, 1, 1)).days
CELLS = [datetime(1999, 12, 31), datetime(1901, 2, 3), None, datetime(1700, 1, 1), datetime(2100, 1, 1)]
DAYS = [10956, -25169, FILL, -25567, 18627]  # counted by `date -d ... +%s`; the last two are clipped


def released(data, domain=BORN, law=LAW):
    frame = release(data, law, domain).frame
    column = frame if isinstance(frame, np.ndarray) else np.asarray(frame["a"])
    return column.ravel().astype(float)


def date_tables():
    plain = [None if c is None else c.date() for c in CELLS]
    for unit in ("D", "h", "m", "s", "ms", "us", "ns"):
        yield f"numpy {unit}", np.array(CELLS, dtype=f"datetime64[{unit}]")
    yield "numpy other byte order", np.array(CELLS, dtype=">M8[s]")[:, None]
    yield "numpy strided", np.repeat(np.array(CELLS, dtype="M8[us]"), 2)[::2]
    for unit in ("s", "ms", "us", "ns"):
        series = pd.Series(np.array(CELLS, dtype=f"datetime64[{unit}]"))
        yield f"pandas {unit}", pd.DataFrame({"a": series})
        yield f"pandas {unit} UTC", pd.DataFrame({"a": series.dt.tz_localize("UTC")})
        far = series.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
        yield f"pandas {unit} Tokyo", pd.DataFrame({"a": far})
        arrow = pa.array(CELLS, pa.timestamp("us")).cast(pa.timestamp(unit))
        yield f"arrow {unit}", pa.table({"a": arrow})
        yield f"arrow {unit} Tokyo", pa.table({"a": arrow.cast(pa.timestamp(unit, "Asia/Tokyo"))})
    for kind in (pa.date32(), pa.date64()):
        yield f"arrow {kind}", pa.table({"a": pa.array(plain, kind)})
        yield f"pandas {kind}", pd.DataFrame({"a": pd.array(plain, dtype=pd.ArrowDtype(kind))})
    yield "pandas arrow", pd.DataFrame({"a": pd.array(CELLS, dtype="timestamp[us][pyarrow]")})
    yield "pandas categorical", pd.DataFrame({"a": pd.Categorical(pd.Series(np.array(CELLS, dtype="M8[s]")))})
    yield "arrow chunked", pa.table({"a": pa.chunked_array([[plain[0]], plain[1:]])})
    yield "polars date", pl.DataFrame({"a": plain})
    for unit in ("ms", "us", "ns"):
        series = pl.Series(CELLS, dtype=pl.Datetime("us")).cast(pl.Datetime(unit))
        yield f"polars {unit}", pl.DataFrame({"a": series})
        yield f"polars {unit} zone", pl.DataFrame({"a": series.dt.replace_time_zone("UTC")})
    stamps = [None if c is None else pd.Timestamp(c) for c in CELLS]
    for name, cells in (("datetime", CELLS), ("date", plain), ("Timestamp", stamps)):
        yield f"objects {name}", np.array(cells, dtype=object)
    days = [10956.0, -25169.0, np.nan, -1e9, 1e9]
    yield "days", np.array(days)
    yield "days, nullable", pd.DataFrame({"a": pd.array([10956, -25169, None, -(10**9), 10**9], dtype="Int64")})


@pytest.mark.parametrize("table", [pytest.param(t, id=n) for n, t in date_tables()])
def test_dates_of_every_type_are_released_as_days(table):
    # five noises of 1e-6, and half a grid step of 2^-31
    np.testing.assert_allclose(released(table), DAYS, atol=1e-5)


@given(st.datetimes(min_value=datetime(1690, 1, 1), max_value=datetime(2250, 1, 1)))
def test_days_are_the_nearest_float_to_the_exact_quotient(moment):
    exact = Fraction((moment - datetime(1970, 1, 1)) // timedelta(microseconds=1), 86400 * 10**6)
    unit_error = Fraction(math.ulp(float(exact))) / 2
    found = [cell_days(moment), array_days(np.array([moment], dtype="M8[us]"))[0]]
    found.append(array_days(np.array([moment], dtype="M8[ns]"))[0])
    # nanoseconds are rounded once more, by at most 512 of them
    for days, slack in zip(found, (0, 0, Fraction(512, 86400 * 10**9)), strict=True):
        assert abs(Fraction(float(days)) - exact) <= unit_error + slack


@given(st.dates())
def test_whole_days_are_exact_in_every_unit(day):
    wanted = (day - date(1970, 1, 1)).days
    for unit in ("D", "h", "m", "s", "ms", "us"):
        assert array_days(np.array([day], dtype=f"M8[{unit}]"))[0] == wanted
    assert cell_days(day) == wanted


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"])
@pytest.mark.parametrize("count", [1, 7])
def test_extreme_counts_of_every_unit_are_days_in_order(unit, count):
    limits = np.array([-(2**63) + 1, -1, 0, 1, 2**63 - 1, -(2**63)]).view(f"M8[{count}{unit}]")
    days = array_days(limits)
    assert (np.diff(days[:5]) > 0).all() and np.isfinite(days[:5]).all() and np.isnan(days[5])
    step = days[3] if unit not in ("Y", "M") else {"Y": 365.0, "M": 31.0}[unit]
    seconds = {"W": 604800, "D": 86400, "h": 3600, "m": 60, "s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
    if unit in seconds:
        assert step == pytest.approx(count * seconds[unit] / 86400, rel=1e-15)
    elif count == 1 and unit in ("Y", "M"):
        assert days[3] == step


def test_time_zones_are_the_moment_and_none_is_utc():
    tokyo = timezone(timedelta(hours=9))
    assert cell_days(datetime(1970, 1, 1, 9, tzinfo=tokyo)) == 0
    assert cell_days(datetime(1970, 1, 1, 9)) == 0.375
    # the moment in UTC lies before the year 1
    assert cell_days(datetime(1, 1, 1, tzinfo=tokyo)) == cell_days(date(1, 1, 1)) - 0.375
    assert Box({"a": (datetime(1970, 1, 1, 9, tzinfo=tokyo), datetime(1970, 1, 2, tzinfo=UTC))}).intervals == ((0, 1),)


class EvilZone(tzinfo):
    def utcoffset(self, when):
        raise RuntimeError("SECRET")


class Evil:
    def __getattribute__(self, name):
        raise RuntimeError("SECRET")

    __eq__ = __hash__ = __float__ = __int__ = __bool__ = __len__ = __getattribute__


class EvilMeta(type):
    def __hash__(cls):
        raise RuntimeError("SECRET")

    __eq__ = __hash__


class EvilKind(metaclass=EvilMeta):
    pass


class EvilText(str):
    __eq__ = __hash__ = lambda *_: 1 / 0


class EvilFloat(float):
    __float__ = __eq__ = __hash__ = lambda *_: 1 / 0


class EvilDate(date):
    toordinal = __eq__ = lambda *_: 1 / 0


EVIL = [
    Evil(),
    EvilKind(),
    EvilText("low"),
    EvilFloat(1.0),
    EvilDate(2000, 1, 1),
    datetime(2000, 1, 1, tzinfo=EvilZone()),
    Decimal("sNaN"),
    Decimal("NaN"),
    pd.NaT,
    pd.NA,
    np.datetime64("NaT"),
    np.datetime64("NaT", "s"),
    np.timedelta64(3, "D"),
    timedelta(3),
    complex(1, 1),
    np.complex128(1),
    [1],
    {},
    b"low",
    np.bytes_(b"low"),
    np.array([1.0]),
    float("nan"),
    "\ud800",
    pd.Interval(0, 1),
    pd.Period("2000"),
]


@pytest.mark.parametrize("domain, fill", [(BORN, FILL), (GRADE, 3.5), (Box({"a": (0, 1)}, {"a": 0.5}), 0.5)])
def test_no_cell_of_an_object_column_raises_or_counts_as_more_than_missing(domain, fill):
    cells = np.empty(len(EVIL), dtype=object)
    for row, cell in enumerate(EVIL):
        cells[row] = cell
    np.testing.assert_allclose(released(cells, domain), np.full(len(EVIL), float(fill)), atol=1e-5)
    frame = pd.DataFrame({"a": pd.Series(cells, dtype=object)})
    if domain is GRADE:
        np.testing.assert_allclose(released(frame, domain), np.full(len(EVIL), float(fill)), atol=1e-5)
        return
    with pytest.raises(TypeError, match="column 'a' has dtype object, which may hold anything") as caught:
        released(frame, domain)
    with pytest.raises(TypeError) as empty:
        released(frame[:0], domain)
    assert str(caught.value) == str(empty.value)


def test_objects_of_one_column_may_be_of_many_kinds():
    cells = np.empty(6, dtype=object)
    cells[:] = [np.datetime64(5, "D"), pd.Timestamp("1970-01-02", tz="UTC"), date(1970, 1, 3), 4, np.float32(6.5), True]
    # a boolean is no day
    np.testing.assert_allclose(released(cells), [5, 1, 2, 4, 6.5, FILL], atol=1e-5)


LABEL_CELLS = ["low", "high", None, "mid", "else", "lo", "lower", ""]
LABEL_NUMBERS = [0, 4, 3.5, 1, 3.5, 3.5, 3.5, 3.5]


def label_tables():
    known = [c or "" for c in LABEL_CELLS]
    yield "numpy text", np.array(known)
    yield "numpy other byte order", np.array(known, dtype=">U9")[:, None]
    yield "numpy strings", np.array(known, dtype=np.dtypes.StringDType())
    yield "objects", np.array(LABEL_CELLS, dtype=object)
    yield "numpy scalars", np.array([np.str_(c) for c in known] + [None], dtype=object)[:-1]
    for dtype in (object, "str", "string", "string[python]", "string[pyarrow]", "category", "large_string[pyarrow]"):
        yield f"pandas {dtype}", pd.DataFrame({"a": pd.Series(LABEL_CELLS, dtype=dtype)})
    unused = pd.Categorical(LABEL_CELLS, categories=["unused", *sorted(set(known))], ordered=True)
    yield "pandas ordered", pd.DataFrame({"a": unused})
    dictionary = pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))
    yield "pandas dictionary", pd.DataFrame({"a": pd.Series(LABEL_CELLS, dtype=dictionary)})
    yield "polars", pl.DataFrame({"a": LABEL_CELLS})
    yield "polars categorical", pl.DataFrame({"a": pl.Series(LABEL_CELLS, dtype=pl.Categorical)})
    yield "polars enum", pl.DataFrame({"a": pl.Series(LABEL_CELLS, dtype=pl.Enum(["x", *sorted(set(known))]))})
    yield "polars objects", pl.DataFrame({"a": pl.Series(LABEL_CELLS, dtype=pl.Object)})
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        yield f"arrow {kind}", pa.table({"a": pa.array(LABEL_CELLS, kind)})
    yield "arrow dictionary", pa.table({"a": pa.array(LABEL_CELLS).dictionary_encode()})


@pytest.mark.parametrize("table", [pytest.param(t, id=n) for n, t in label_tables()])
def test_labels_of_every_type_are_released_as_their_numbers(table):
    np.testing.assert_allclose(released(table, GRADE), LABEL_NUMBERS, atol=1e-5)


@pytest.mark.parametrize(
    "cells",
    [
        np.array([1, 2, 0, 7], dtype="i1"),
        np.array([1, 2, 0, 7], dtype="u8"),
        np.array([1, 2, np.nan, np.inf], dtype="f2"),
        np.array([1, np.float64(2), "1", None], dtype=object),
        pd.DataFrame({"a": pd.array([1, 2, None, 7], dtype="Int64")}),
        pd.DataFrame({"a": pd.Categorical([1, 2, None, 7])}),
        pl.DataFrame({"a": [1, 2, None, 7]}),
        pa.table({"a": pa.array([1, 2, None, 7]).dictionary_encode()}),
    ],
    ids=lambda cells: type(cells).__name__,
)
def test_integer_labels(cells):
    domain = Box({"a": (0, 9)}, fill={"a": 5.0}, encoding={"a": {1: 9, 2: 0.25}})
    np.testing.assert_allclose(released(cells, domain), [9, 0.25, 5, 5], atol=1e-5)


def test_boolean_labels():
    domain = Box({"a": (0, 9)}, fill={"a": False}, encoding={"a": {True: 9, False: 2}})
    assert domain.fill == (2.0,)
    for cells in (
        np.array([True, False]),
        pd.DataFrame({"a": pd.array([True, None], dtype="boolean")}),
        pl.DataFrame({"a": [True, None]}),
        pa.table({"a": [True, None]}),
    ):
        np.testing.assert_allclose(released(cells, domain), [9, 2], atol=1e-5)


def test_two_equal_releases_differ_in_nothing_but_the_declared_numbers():
    # the same noise on labels and on their numbers
    cells = np.array(["low", "high", "mid", "?"])[np.random.default_rng(3).integers(0, 4, 500)]
    numbers = np.array([{"low": 0.0, "high": 4.0, "mid": 1.0}.get(c, np.nan) for c in cells])
    law, plain = Gaussian(2.0), Box({"a": (-1, 4)}, {"a": 3.5})
    assert (release(cells, law, GRADE, rng=5).frame == release(numbers, law, plain, rng=5).frame).all()


@pytest.mark.parametrize(
    "make, domain, words",
    [
        (lambda: pd.DataFrame({"a": ["1990-01-01"]}), BORN, "must hold dates, got texts .* pandas.to_datetime"),
        (lambda: pl.DataFrame({"a": ["x"]}), BORN, "must hold dates, got texts"),
        (lambda: np.array(["1990-01-01"]), BORN, "must hold dates"),
        (lambda: np.array([True]), BORN, "must hold dates, got booleans"),
        (lambda: np.array(["1990-01-01"], dtype="M8[D]"), Box({"a": (0, 1)}), r"real numbers, got dates .*date\("),
        (lambda: pl.DataFrame({"a": [date(1990, 1, 1)]}), Box({"a": (0, 1)}), "Declare dates as its bounds"),
        (lambda: np.array([1, 2]), GRADE, "labels of its encoding, got numbers .* strings: declare integers"),
        (lambda: pa.table({"a": [date(1990, 1, 1)]}), GRADE, "labels of its encoding, got dates"),
        (lambda: pd.DataFrame({"a": ["x"]}), Box({"a": (0, 1)}, None, {"a": {1: 0, 2: 1}}), "declare strings"),
    ],
)
def test_columns_that_an_encoding_cannot_read_are_schema_errors(make, domain, words):
    with pytest.raises(TypeError, match=f"column 'a' must hold .*{words}|.*{words}") as caught:
        release(make(), LAW, domain)
    assert "1990" not in str(caught.value).replace("1900", "")
    # whatever the cells are, and however few
    with pytest.raises(TypeError) as empty:
        release(make()[:0], LAW, domain)
    assert str(empty.value) == str(caught.value)


@pytest.mark.parametrize("domain", [BORN, GRADE, Box({"a": (0, 1)}), Box({"a": (0, 2)}, None, {"a": {1: 0, 2: 1}})])
def test_columns_of_the_type_null_are_missing_everywhere(domain):
    for table in (pa.table({"a": pa.nulls(3)}), pl.DataFrame({"a": [None] * 3})):
        np.testing.assert_allclose(released(table, domain), np.repeat(domain.fill, 3), atol=1e-5)


@pytest.mark.parametrize(
    "bounds",
    [
        (date(1970, 1, 1), date(1970, 1, 11)),
        (datetime(1970, 1, 1), datetime(1970, 1, 11, tzinfo=UTC)),
        (np.datetime64("1970-01-01"), np.datetime64("1970-01-11T00:00:00.000000000")),
        (pd.Timestamp("1970-01-01"), pd.Timestamp("1970-01-11", tz="UTC")),
    ],
)
def test_date_bounds_of_every_type(bounds):
    box = Box({"a": bounds})
    assert box.intervals == ((0.0, 10.0),) and box.encoding == (Dates(),) and box.fill == (5.0,)
    assert "Dates()" in repr(box)


def test_encodings_stay_with_their_columns():
    box = Box(
        {"n": (0, 1), "born": (date(1970, 1, 1), date(1970, 1, 11)), "grade": (0, 2)},
        fill={"grade": "high", "born": date(1970, 1, 3)},
        encoding={"grade": {"low": 0, "high": 2}},
    )
    assert box.fill == (0.5, 2.0, 2.0)
    grade = Labels({"low": 0, "high": 2})
    assert box.encoding == (Numbers(), Dates(), grade)
    assert box.select(["grade", "n"]).encoding == (grade, Numbers())
    other = Box({"z": (0, 3)})
    both = Box({"z": (0, 3), "born": (0, 10)}, {"born": 2.0}, {"born": Dates()})
    assert find_domain((box, other), ("z", "born")) == both
    assert pickle.loads(pickle.dumps(box)) == box and hash(box) == hash(box.select(box.columns))
    saved = box.to_dict()
    assert domain_from_dict(json.loads(json.dumps(saved))) == box
    # the encoding is part of the declaration
    assert Box({"born": (0, 10)}) != box.select(["born"]) == Box({"born": (0, 10)}, {"born": 2}, {"born": Dates()})
    assert repr(other) == "Box(columns=('z',), intervals=((0.0, 3.0),), fill=(1.5,))"


def test_dictionaries_without_encodings_still_load():
    old = {"domain": "box", "columns": ["a"], "intervals": [[0, 2]], "fill": [1]}
    assert domain_from_dict(old) == Box({"a": (0, 2)}) and domain_from_dict(old).to_dict() == old


@pytest.mark.parametrize(
    "own",
    [None, {}, {"encoding": "text"}, {"encoding": "labels"}, {"encoding": "labels", "labels": ["a"], "numbers": [1]}],
)
def test_saved_encodings_that_are_refused(own):
    with pytest.raises((ValueError, KeyError, TypeError)):
        encoding_from_dict(own)
    with pytest.raises(ValueError, match="the saved domain cannot be read"):
        domain_from_dict({**Box({"a": (0, 2)}).to_dict(), "encoding": [own]})


@pytest.mark.parametrize(
    "bounds, encoding, error, words",
    [
        ((date(2020, 1, 1), date(1900, 1, 1)), None, ValueError, "lower < upper, got \\(2020-01-01, 1900-01-01\\)"),
        ((date(2020, 1, 1), date(2020, 1, 1)), None, ValueError, "lower < upper"),
        ((date(2020, 1, 1), 20000), None, TypeError, "two dates"),
        ((np.datetime64("NaT"), date(2020, 1, 1)), None, ValueError, "lower bound of 'a' must be a date, got NaT"),
        ((date(1900, 1, 1), pd.NaT), None, ValueError, "upper bound of 'a' must be a date, got NaT"),
        ((date(1900, 1, 1), date(2020, 1, 1)), Numbers(), TypeError, "without another encoding"),
        ((timedelta(0), timedelta(9)), None, TypeError, "must be a number"),
        (
            ("1900-01-01", "2020-01-01"),
            None,
            TypeError,
            r"lower bound of 'a' must be a number or a date, got the text '1900-01-01'. Use datetime.date\(1900, 1",
        ),
        ((date(1900, 1, 1), "2020-01-01"), Dates(), TypeError, "two dates"),
        ((0, "2024-01-31T12:00"), {"low": 0, "high": 2}, TypeError, r"upper bound of 'a' .*date\(2024, 1, 31\)"),
        ((0, "9"), None, TypeError, "upper bound of 'a' must be a number in"),
        ((0, 1), {"low": 0, "high": 2}, ValueError, "every number in the encoding of 'a' must be"),
        ((0, 1), {"low": 0, "high": math.nan}, ValueError, "number of label 'high'"),
        ((0, 1), {"low": 0, "high": "1"}, TypeError, "number of label 'high'"),
        ((0, 1), {"low": 0}, TypeError, "at least two"),
        ((0, 1), {"low": 0, 2: 1}, TypeError, "all strings"),
        ((0, 1), {0.5: 0, 1.5: 1}, TypeError, "all strings"),
        ((0, 1), ["low", "high"], TypeError, "mapping \\{label: number\\}"),
        ((0, 1), "date", TypeError, "mapping"),
    ],
)
def test_encodings_that_are_refused(bounds, encoding, error, words):
    with pytest.raises(error, match=words):
        Box({"a": bounds}, encoding=encoding and {"a": encoding})


def test_encodings_and_fills_of_columns_that_are_not_there():
    with pytest.raises(ValueError, match="encoding names columns that the box has not: 'b'"):
        Box({"a": (0, 1)}, encoding={"b": Numbers()})
    with pytest.raises(TypeError, match="encoding must be a mapping"):
        Box({"a": (0, 1)}, encoding=Dates())
    with pytest.raises(ValueError, match=r"fill\['a'\]"):
        Box({"a": (date(1900, 1, 1), date(2020, 1, 1))}, fill={"a": date(2021, 1, 1)})
    with pytest.raises(TypeError, match=r"fill\['a'\]"):
        Box({"a": (0, 2)}, fill={"a": "mid"}, encoding={"a": {"low": 0, "high": 2}})
    for bounds in ((0, 1), (date(1900, 1, 1), date(2020, 1, 1))):
        with pytest.raises(TypeError, match=r"fill\['a'\] must be a number or a date, got the text '2000-01-01'"):
            Box({"a": bounds}, fill={"a": "2000-01-01"})


@given(st.lists(st.dates(), min_size=1), st.sampled_from(["D", "h", "s", "ms", "us"]))
def test_days_go_back_to_the_dates_they_were(days, unit):
    dates = np.array(days, dtype="datetime64[D]")
    back = days_to_datetimes(Dates().read(dates), unit)
    assert back.dtype == f"datetime64[{unit}]" and (back == dates).all()


def test_days_go_to_the_nearest_date():
    out = days_to_datetimes([[-0.6, -0.4], [0.4, 0.6]])
    assert out.tolist() == [[date(1969, 12, 31), date(1970, 1, 1)], [date(1970, 1, 1), date(1970, 1, 2)]]
    moment = datetime(2024, 2, 29, 13, 37, 42, 123456)
    assert days_to_datetimes(cell_days(moment), "ms").item() == datetime(2024, 2, 29, 13, 37, 42, 123000)
    assert days_to_datetimes(pd.Series([1.0])).tolist() == [date(1970, 1, 2)]
    for bad, unit in (([math.nan], "D"), ([math.inf], "D"), ([2e5], "ns"), ([1e10], "s"), (["x"], "D"), ([1.0], "Y")):
        with pytest.raises((ValueError, TypeError), match=r"days|unit"):
            days_to_datetimes(bad, unit)
    assert days_to_datetimes([106_000.0], "ns")[0] == np.datetime64("2260-03-21")
