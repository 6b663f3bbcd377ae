"""Dtypes: the released values depend on the numbers in a table, not on how they are stored."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privfit.mechanisms import Box, Categories, Gaussian, RandomizedResponse, release

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


def test_booleans_are_numbers():
    assert released(np.array([[False], [True]])) == [0, 1]
    assert released(pd.DataFrame({"a": [False, True]})) == [0, 1]
    assert released(pl.DataFrame({"a": [False, True, None]})) == [0, 1, 5]
    assert released(pd.DataFrame({"a": pd.array([False, True, None], dtype="boolean")})) == [0, 1, 5]


@pytest.mark.parametrize(
    "dtype",
    ["Int8", "Int64", "UInt8", "Float32", "Float64", "int64[pyarrow]", "double[pyarrow]", object, "float32"],
)
def test_pandas_dtypes_with_missing_cells(dtype):
    cells = [*CELLS, np.nan if dtype in (object, "float32") else None]
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
    assert released(pd.DataFrame({"a": pd.Series(array, dtype=object)})) == wanted


def test_object_columns_of_text_do_not_depend_on_their_cells():
    for cells in (["x", "y"], ["x", 1.0], [None, None]):
        out = released(pd.DataFrame({"a": pd.Series(cells, dtype=object)}))
        assert out == [5 if not isinstance(c, float) else 1 for c in cells]


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
