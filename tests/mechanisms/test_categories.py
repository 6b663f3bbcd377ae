"""Categories: labels are found whatever holds them, and the work does not depend on what the cells hold."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfit.mechanisms import Categories, RandomizedResponse, release
from privfit.mechanisms.frames import read_table
from privfit.mechanisms.labels import label_codes

TEXT = ("a", "bb", "", "é", "\U0001f600x")
# keeps every label but one of e^50
LAW = RandomizedResponse(50.0, 2)


def plain_codes(cells, labels, other):
    """What the codes mean, cell by cell."""
    return [next((k for k, label in enumerate(labels) if cell == label), other) for cell in cells]


@given(st.lists(st.sampled_from([*TEXT, "b", "bbb", "aa", "e", "zz"]), min_size=1))
def test_text_of_every_dtype_is_compared_in_full(cells):
    wanted = plain_codes(cells, TEXT, 3)
    wide = max(1, max(map(len, cells)))
    for array in (
        np.array(cells),
        np.array(cells, dtype=f">U{wide + 7}"),
        np.array(cells, dtype=object),
        np.array(cells, dtype=np.dtypes.StringDType()),
        np.array([cell.encode() for cell in cells]),
        np.repeat(np.array(cells), 3)[::3],
    ):
        assert label_codes(array, TEXT, 3).tolist() == wanted


NUMBERS = [0, 1, 2, -1, 7, 255, 2**53, 2**53 + 1, 2**63 - 1, 2**64 - 1, -(2**63)]


@pytest.mark.parametrize("code", "bhilqBHILQ?efdg")
@pytest.mark.parametrize("labels", [(0, 1), (2**53, -1, 0), (True, False), (7, 300, -(2**53))])
def test_numbers_of_every_dtype(code, labels):
    dtype = np.dtype(code)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        cells = np.array([n for n in NUMBERS if info.min <= n <= info.max], dtype=dtype)
    elif dtype.kind == "b":
        cells = np.array([True, False])
    else:
        cells = np.array([0, 1, -1, 7, 300, 0.5, -0.0, np.nan, np.inf, -np.inf], dtype=dtype)
    assert label_codes(cells, labels, 1).tolist() == plain_codes(cells.tolist(), labels, 1)
    objects = np.empty(len(cells), dtype=object)
    objects[:] = list(cells)  # numpy scalars in cells
    assert label_codes(objects, labels, 1).tolist() == plain_codes(cells.tolist(), labels, 1)


@pytest.mark.parametrize("labels", [("1", "True"), (1, 0), (True, False)])
def test_other_dtypes_hold_no_label(labels):
    for cells in (
        np.array([1 + 0j]),
        np.array([1], dtype="m8[s]"),
        np.array([1], dtype="M8[s]"),
        np.array([(1,)], dtype=[("x", int)]),
        np.array(["1"]) if isinstance(labels[0], int) else np.array([1]),
        np.array([1 + 0j, Decimal(1), b"1", np.timedelta64(1)], dtype=object),
    ):
        assert label_codes(cells, labels, 1).tolist() == [1] * len(cells)


def test_equal_numbers_are_one_label():
    cells = np.empty(7, dtype=object)
    cells[:] = [True, 1, 1.0, np.bool_(True), np.uint8(1), np.float16(1), "1"]
    assert label_codes(cells, (0, 1), -1).tolist() == [1, 1, 1, 1, 1, 1, -1]
    assert label_codes(cells, (False, True), -1).tolist() == [1, 1, 1, 1, 1, 1, -1]


CELL = st.one_of(st.none(), st.text(max_size=4), st.sampled_from([*TEXT, "\0"]))


@settings(deadline=None)  # the first table imports a library
@given(st.lists(CELL, max_size=20), st.integers(0, 5))
def test_text_cut_to_the_labels_equals_them_where_the_whole_does(cells, skip):
    labels = ("a", "", "é", "\U0010ffff", "\ud7ff\U0001f600")
    kinds = [pa.string(), pa.large_string(), pa.string_view()]
    tables = [pa.table({"l": pa.array(["x" * 9] * skip + cells, kind).slice(skip)}) for kind in kinds]
    tables.append(pa.table({"l": pa.chunked_array([cells[:skip], [], cells[skip:]], pa.string())}))
    tables.append(pl.DataFrame({"l": pl.Series(cells, dtype=pl.String)}))
    known = list(dict.fromkeys(c for c in cells if c is not None))
    tables.append(pd.DataFrame({"l": pd.Categorical(cells, categories=pd.Index(known, dtype="str"))}))
    tables.append(pd.DataFrame({"l": cells}, dtype="str"))
    # trailing zeros are what short text is padded with
    wanted = plain_codes([None if c is None else c.rstrip("\0") for c in cells], labels, 4)
    for table in tables:
        found = read_table(table, ("l",)).labels("l", labels)
        assert found.dtype.kind in "SU" and found.dtype.itemsize <= 4 * 9
        assert label_codes(found, labels, 4).tolist() == wanted


def test_no_cells_and_one_cell():
    for cells in (np.array([], dtype="U3"), np.array([], dtype=object), np.empty(0), np.empty(0, dtype="U0")):
        assert label_codes(cells, ("a", "b"), 0).shape == (0,)
    assert label_codes(np.array(["b"]), ("a", "b"), 0).tolist() == [1]
    assert label_codes(np.zeros(2, dtype="U1"), ("a", ""), 0).tolist() == [1, 1]


def test_every_label_takes_part_in_every_cell(monkeypatch):
    """The comparisons made are the same for cells that are all the first label, all none, or a mixture."""
    from privfit.mechanisms import labels as module

    made = []
    own = module._Number.__call__
    monkeypatch.setattr(module._Number, "__call__", lambda self, label: made.append(label) or own(self, label))
    for cells in (np.zeros(9), np.full(9, np.nan), np.arange(9.0)):
        made.clear()
        label_codes(cells, (0, 1, 2), 0)
        assert made == [0, 1, 2]


@pytest.mark.slow
def test_time_of_encoding_does_not_depend_on_the_cells():
    """Paired runs over cells with all, half and none of the labels: medians within 5 %, where a mask costs 2x."""
    from time import perf_counter

    rng = np.random.default_rng(2)
    n, labels = 65_536, (0, 1)
    # not np.zeros: pages that nobody wrote share one place in the cache
    tables = [np.full(n, 0.0), np.full(n, 9.0), rng.integers(0, 2, n).astype(float)]

    def masked(cells):
        codes = np.zeros(n, dtype=np.int64)
        for code, label in enumerate(labels):
            codes[cells == label] = code
        return codes

    def spread(function):
        times = np.empty((300, len(tables)))
        for row in times:
            for j in rng.permutation(len(tables)):
                start = perf_counter()
                function(tables[j])
                row[j] = perf_counter() - start
        middle = np.median(times, axis=0)
        return middle.max() / middle.min()

    assert spread(masked) > 1.5  # so the test can fail
    assert min(spread(lambda cells: label_codes(cells, labels, 0)) for _ in range(3)) < 1.05


@pytest.mark.parametrize(
    "make",
    [
        lambda: pd.Series(["a", "b"]),
        lambda: pd.Series(["a", "b"]).unique(),
        lambda: pd.Categorical(["a", "b"]),
        lambda: np.array(["a", "b"]),
        lambda: pl.Series(["a", "b"]),
        lambda: pa.array(["a", "b"]),
        lambda: {"a", "b"},
        lambda: "auto",
        lambda: None,
        lambda: len,
    ],
)
def test_labels_from_data_are_refused_with_the_reason(make):
    with pytest.raises(TypeError, match=r"labels of 'x' must be a list, got .* says that this person is in the table"):
        Categories({"x": make()})
    with pytest.raises(TypeError, match=r"labels must be a mapping.*whether or not it is in the table"):
        Categories(make())


def test_integer_labels_may_be_a_range():
    assert Categories({"x": range(3)}).labels == ((0, 1, 2),)
    assert Categories({"x": (np.int8(4), np.int64(2))}).labels == ((4, 2),)


@pytest.mark.parametrize(
    "make, labels, words",
    [
        (lambda: pd.DataFrame({"l": [1, 2]}), ["a", "b"], r"got numbers \(dtype int64\). Its declared labels are str"),
        (lambda: pd.DataFrame({"l": pd.array([1, None], dtype="Int64")}), ["a", "b"], r"dtype Int64"),
        (lambda: pd.DataFrame({"l": pd.Categorical([1, 2])}), ["a", "b"], "categorical of int64"),
        (lambda: pl.DataFrame({"l": [True]}), ["a", "b"], "got booleans"),
        (lambda: pa.table({"l": ["x"]}), [0, 1], r"got texts \(dtype string\). .* declare strings"),
        (lambda: np.array(["x"]), [True, False], "got texts"),
        (lambda: np.array(["2000-01-01"], dtype="M8[D]"), ["a", "b"], "got dates"),
    ],
)
def test_columns_that_cannot_hold_the_labels_are_schema_errors(make, labels, words):
    column = 0 if isinstance(make(), np.ndarray) else "l"
    domain = Categories({column: labels})
    with pytest.raises(TypeError, match=f"column .* must hold the declared labels, {words}|{words}") as caught:
        release(make(), LAW, domain)
    with pytest.raises(TypeError) as empty:
        release(make()[:0], LAW, domain)
    assert str(empty.value) == str(caught.value)


@pytest.mark.parametrize("cells", [[0, 1, None, 5], [0, None, None, None]])
def test_numeric_labels_of_every_library(cells):
    wanted = [{0: 0, 1: 1}.get(c, 1) for c in cells]
    domain = Categories({"l": [0, 1]}, {"l": 1})
    for table in (
        pd.DataFrame({"l": pd.array(cells, dtype="Int64")}),
        pd.DataFrame({"l": pd.array(cells, dtype="float64")}),
        pd.DataFrame({"l": pd.array(cells, dtype="int8[pyarrow]")}),
        pd.DataFrame({"l": pd.Categorical(cells)}),
        pd.DataFrame({"l": pd.Series(cells, dtype=object)}),
        pd.DataFrame({"l": pd.Series([np.nan if c is None else c for c in cells]).astype(pd.SparseDtype("f8"))}),
        pl.DataFrame({"l": cells}),
        pa.table({"l": cells}),
        pa.table({"l": pa.array(cells).dictionary_encode()}),
    ):
        assert np.asarray(release(table, LAW, domain).frame["l"]).tolist() == wanted
