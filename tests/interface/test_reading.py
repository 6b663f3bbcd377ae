"""Reading private tables: by the types of their columns, and silent about their cells."""

import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privfit.reading import read_private_table

LABELS = {"income": ["low", "high"]}


def write(tmp_path, text, name="in.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_cells_without_a_number_count_as_missing(tmp_path):
    path = write(tmp_path, "age,income\n 30 ,low\n ? ,high\n,low\n1e1,\ninf,low\n")
    table, _, unused = read_private_table(path, ["age"], LABELS, [])
    ages = table["age"].to_pylist()
    assert ages[0] == 30 and math.isnan(ages[1]) and math.isnan(ages[2]) and ages[3] == 10
    assert ages[4] == math.inf
    assert unused == []


def test_fast_and_slow_readers_of_numbers_agree(tmp_path):
    clean = "\n".join(["age", *(f"{v}" for v in (1, -2.5, "3e2", " 4 "))])
    fast = read_private_table(write(tmp_path, clean), ["age"], {}, [])[0]["age"].to_pylist()
    slow = read_private_table(write(tmp_path, clean + "\n+5"), ["age"], {}, [])[0]["age"].to_pylist()
    assert slow[-1] == 5 and fast == slow[:-1] == [1.0, -2.5, 300.0, 4.0]


@pytest.mark.parametrize("cells", ["yes,no", "1,SECRET", ",SECRET", "True,False", "2020-01-01,2021-01-01"])
def test_text_columns_of_csv_are_no_numbers(tmp_path, cells):
    path = write(tmp_path, "age,smoker\n" + "\n".join(f"30,{cell}" for cell in cells.split(",")))
    with pytest.raises(ValueError, match=r"column 'smoker' holds text, not numbers; .* --label smoker:") as caught:
        read_private_table(path, ["age", "smoker"], {}, [])
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("missing", ["", "?", "NA", "n/a", "NaN", "NULL", " "])
def test_number_columns_stay_numbers_where_cells_are_missing(tmp_path, missing):
    path = write(tmp_path, f"age,hours\n30,1\n{missing},2\n")
    first, second = read_private_table(path, ["age"], {}, [])[0]["age"].to_pylist()
    assert first == 30 and math.isnan(second)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_text_columns_of_parquet_are_no_numbers(tmp_path, kind):
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"smoker": pa.array(["1", "2"]).cast(kind)}), path)
    with pytest.raises(ValueError, match="column 'smoker' holds text, not numbers"):
        read_private_table(path, ["smoker"], {}, [])


def test_public_columns_keep_a_type(tmp_path):
    path = write(tmp_path, "age,a,b,c\n1,1,1.5,x\n2,2,2,y\n")
    table, _, _ = read_private_table(path, ["age"], {}, ["a", "b", "c"])
    assert [str(table.schema.field(n).type) for n in "abc"] == ["int64", "double", "string"]


def test_byte_order_mark_and_spaces_around_labels(tmp_path):
    path = write(tmp_path, "\ufeffincome,age\n low,1\n high ,2\n")
    assert read_private_table(path, ["age"], LABELS, [])[0]["income"].to_pylist() == ["low", "high"]


@pytest.mark.parametrize(
    "values, declared, read",
    [
        ([0, 1], ["0", "1"], [0, 1]),
        ([True, False], ["true", "False"], [True, False]),
        (["a"], ["a", "b"], ["a", "b"]),
    ],
)
def test_labels_of_parquet_take_the_type_of_the_column(tmp_path, values, declared, read):
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"y": values}), path)
    labels = read_private_table(path, [], {"y": declared}, [])[1]["y"]
    assert labels == read and [type(v) for v in labels] == [type(v) for v in read]


@pytest.mark.parametrize(
    "text, words",
    [
        ("age,income\n1,low\nSECRET,2,3,4\n", "rows of equal length"),
        (b"age,income\n\xff\xfeSECRET,low\n", "UTF-8"),
        (b"\xff\xfe", "UTF-8"),
        ("", "no column 'age'"),
        ("wage,income\n1,low\n", "no column 'age' among its"),
        ("20777,3,SECRET\n30,4,low\n", "make sure that it has one"),
        ("age,age,income\n1,2,low\n", "more than one column age"),
    ],
)
def test_unreadable_csv_says_so_without_repeating_it(tmp_path, text, words):
    with pytest.raises(ValueError, match=words) as caught:
        read_private_table(write(tmp_path, text), ["age"], LABELS, [])
    assert "SECRET" not in str(caught.value)


def test_unreadable_parquet(tmp_path):
    with pytest.raises(ValueError, match="no Parquet file"):
        read_private_table(write(tmp_path, "age\n1\n", "in.parquet"), ["age"], {}, [])


@pytest.mark.parametrize("column, declared", [([1, 2], ["a", "b"]), ([1.5, 2.0], ["1.5", "2"]), ([True], ["a", "b"])])
def test_labels_that_do_not_fit_their_column(tmp_path, column, declared):
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"y": column}), path)
    with pytest.raises(ValueError, match="column 'y'"):
        read_private_table(path, [], {"y": declared}, [])


def test_other_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_private_table(tmp_path / "none.csv", ["age"], {}, [])
    with pytest.raises(ValueError, match=r"\.csv or \.parquet"):
        read_private_table(write(tmp_path, "age\n1\n", "in.txt"), ["age"], {}, [])
