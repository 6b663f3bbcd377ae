"""Reading private tables: by the types of their columns, and silent about their cells."""

import math
from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather, ipc

from privfit.mechanisms import Box
from privfit.mechanisms.frames import read_table
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
    words = r"column 'smoker' holds text, not numbers; .* --label smoker:.* order, as --ordered smoker:"
    with pytest.raises(ValueError, match=words) as caught:
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


@pytest.mark.parametrize(
    "text, words",
    [
        ('age,income\n1,"low\n2,high\n3,SECRET\n', "line 2 has a quotation mark without its partner. Keep"),
        ('age,income\n1,"low\n2,"high\n', "line 2 has a quotation mark"),
        ('age,income\n1,"low\n2,high"\n', "line 2 has a quotation mark"),
        ('age,income\n1,lo"w\n2,high\n', "line 2 has a quotation mark"),
        ('age,income\n1,low\n2,SECRET"\n', "line 3 has a quotation mark"),
        ('age,"income\n1,low\n', "line 1 has a quotation mark"),
        ('age,income\n1,"low"SECRET\n', "no CSV table in UTF-8"),
        ("age,income\n1,low\n\nSECRET\n", "line 4 has 1 cells, the header line 2. Quote"),
        ("age,income\n1,SECRET,low\n", "line 2 has 3 cells, the header line 2"),
    ],
)
def test_malformed_rows_are_named_by_their_line_alone(tmp_path, text, words):
    with pytest.raises(ValueError, match=words) as caught:
        read_private_table(write(tmp_path, text), ["age"], LABELS, [])
    assert "SECRET" not in str(caught.value)
    # the same rows when they are well formed
    assert read_private_table(write(tmp_path, "age,income\n1,low\n2,high\n"), ["age"], LABELS, [])[0].num_rows == 2


def test_quoted_cells_and_empty_lines(tmp_path):
    path = write(tmp_path, 'age,income,"a ""b"", c"\r\n1,"low","x, y"\r\n\r\n2,"high","""z"""\r\n')
    table, _, _ = read_private_table(path, ["age"], LABELS, ['a "b", c'])
    assert table.to_pydict() == {"age": [1, 2], "income": ["low", "high"], 'a "b", c': ["x, y", '"z"']}


def write_arrow(path, table, form):
    if form == "feather":
        feather.write_feather(table, path)
        return
    with (ipc.new_file if form == "file" else ipc.new_stream)(str(path), table.schema) as sink:
        sink.write_table(table)


@pytest.mark.parametrize("name", ["in.csv", "in.parquet", "in.arrow"])
def test_tables_without_rows_are_refused(tmp_path, name):
    path = tmp_path / name
    empty = pa.table({"age": pa.array([], pa.float64()), "income": pa.array([], pa.string())})
    if name == "in.csv":
        write(tmp_path, "age,income\n")
    elif name == "in.parquet":
        pq.write_table(empty, path)
    else:
        write_arrow(path, empty, "file")
    with pytest.raises(ValueError, match=f"{name} has columns and no rows: there is nothing to release"):
        read_private_table(path, ["age"], LABELS, [])


@pytest.mark.parametrize("suffix", ["arrow", "feather"])
@pytest.mark.parametrize("form", ["file", "stream", "feather"])
def test_arrow_files_are_read_as_parquet_is(tmp_path, suffix, form):
    table = pa.table({"name": ["SECRET", "B"], "income": [1, 0], "age": [30.0, None], "p": ["x", "y"]})
    path, other = tmp_path / f"in.{suffix}", tmp_path / "in.parquet"
    write_arrow(path, table, form)
    pq.write_table(table, other)
    found = [read_private_table(p, ["age"], {"income": ["0", "1"]}, ["p"]) for p in (path, other)]
    assert found[0][0].equals(found[1][0]) and found[0][1:] == found[1][1:] == ({"income": [0, 1]}, ["name"])
    with pytest.raises(ValueError, match="no column 'wage' among its 4"):
        read_private_table(path, ["wage"], {}, [])
    with pytest.raises(ValueError, match="column 'p' holds text, not numbers"):
        read_private_table(path, ["p"], {}, [])


@pytest.mark.parametrize("name, kind", [("in.arrow", "Arrow IPC"), ("in.feather", "Arrow IPC"), ("in.pq", "Parquet")])
def test_damaged_files_say_so_without_repeating_them(tmp_path, name, kind):
    table = pa.table({"age": np.arange(999.0)})
    path = tmp_path / name
    if kind == "Parquet":
        pq.write_table(table, path)
    else:
        write_arrow(path, table, "file")
    whole = path.read_bytes()
    for damaged in (b"", b"SECRET", whole[:8], whole[:-99], whole[: len(whole) // 2] + b"SECRET"):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=f"{name} is no {kind} file, or a damaged one") as caught:
            read_private_table(path, ["age"], {}, [])
        assert "SECRET" not in str(caught.value)


def days(table, box):
    return read_table(table, ["born"]).cells(box)[0]


def test_dates_of_csv(tmp_path):
    box = Box({"born": (date(1900, 1, 1), date(2020, 12, 31))})
    plain = "born,age\n1970-01-02,1\n 1970-01-01T06:00:00 ,2\n?,3\n1969-12-31 12:00,4\n"
    wanted = [1, 0.25, math.nan, -0.5]
    found = days(read_private_table(write(tmp_path, plain), ["born"], {}, [], ["born"])[0], box)
    np.testing.assert_array_equal(found, wanted)
    # one cell with a time zone, which Arrow does not read beside others
    zone = plain + "1970-01-01T02:00:00+02:00,5\n1970-01-03T00:00:00Z,6\n"
    found = days(read_private_table(write(tmp_path, zone), ["born"], {}, [], ["born"])[0], box)
    np.testing.assert_array_equal(found, [*wanted, 0, 2])


@pytest.mark.parametrize("cell", ["SECRET", "31.12.2020", "2021-02-29", "12/31/2020"])
def test_text_that_is_no_date(tmp_path, cell):
    path = write(tmp_path, f"born\n1970-01-02\n{cell}\n")
    with pytest.raises(ValueError, match="column 'born' holds text that is no date; write") as caught:
        read_private_table(path, ["born"], {}, [], ["born"])
    assert cell not in str(caught.value)


def test_dates_of_parquet(tmp_path):
    path = tmp_path / "in.parquet"
    box = Box({"born": (date(1900, 1, 1), date(2020, 12, 31))})
    pq.write_table(pa.table({"born": [datetime(1970, 1, 1, 12), None]}), path)
    table = read_private_table(path, ["born"], {}, [], ["born"])[0]
    np.testing.assert_array_equal(days(table, box), [0.5, math.nan])
    pq.write_table(pa.table({"born": ["1970-01-01"]}), path)
    with pytest.raises(ValueError, match="holds text that is no date"):
        read_private_table(path, ["born"], {}, [], ["born"])


def test_other_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_private_table(tmp_path / "none.csv", ["age"], {}, [])
    with pytest.raises(ValueError, match=r"\.csv, \.parquet, \.arrow or \.feather"):
        read_private_table(write(tmp_path, "age\n1\n", "in.txt"), ["age"], {}, [])


@pytest.mark.parametrize(
    ("text", "numeric", "dates"),
    [
        ("x\n1\nSECRET\n", ["x"], []),
        ("x\n2000-01-01\nSECRET\n", ["x"], ["x"]),
        ("x\n1\n\udcffSECRET\n", ["x"], []),
        ('x,y\n1,2\n1,"SECRET" b"\n', ["x"], []),
    ],
)
def test_no_cell_stands_behind_an_error(text, numeric, dates, tmp_path):
    path = tmp_path / "in.csv"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=r"text|no CSV table") as caught:
        read_private_table(path, numeric, {}, [], dates)
    error = caught.value
    while error is not None:
        assert "SECRET" not in repr(error) and "SECRET" not in repr(error.args)
        error = error.__cause__ or error.__context__
