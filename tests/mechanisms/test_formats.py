"""Formats of release files: what CSV carries, which types come back, which endings are known."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privfit.mechanisms import Box, Gaussian, load_release, release

BOX = Box({"age": (17, 90)})
FRAME = pd.DataFrame({"age": [20, 30], "state": ["x", "y"]})
FILES = ("r.parquet", "r.PQ", "r.arrow", "r.feather", "r.ipc", "r.csv", "parts")


def released():
    return release(FRAME, Gaussian(50.0), BOX, public=["state"])


def test_csv_keeps_every_cell(tmp_path):
    odd = ["", None, "a,b", 'say "x"', "two\nlines", " nan ", "NaN", "ä\r\nö", "1.50", "true"]
    n = len(odd)
    table = pa.table(
        {
            "x": np.zeros(n),
            "text": odd,
            "number": [1.5, None, float("nan"), float("inf"), 1e-300, -0.0, 0.1, 2.0**70, 3.0, 4.0],
            "whole": [2**63 - 1, None, *range(n - 2)],
            "yes": [True, None, *[False] * (n - 2)],
            "day": [dt.date(2026, 1, 2), None, *[dt.date(1, 1, 1)] * (n - 2)],
            "stamp": [dt.datetime(2026, 1, 2, 3, 4, 5, 678901), None, *[dt.datetime(1969, 1, 1)] * (n - 2)],
            "group": pa.array(["a", None, *["b"] * (n - 2)]).dictionary_encode(),
            "none": pa.nulls(n),
            'a "name", quoted': list(range(n)),
        }
    )
    out = release(table, Gaussian(1.0), Box({"x": (0, 1)}), public=table.column_names[1:])
    out.save(tmp_path / "r.csv")
    again = load_release(tmp_path / "r.csv").frame
    for name in table.column_names:
        assert repr(again[name].to_pylist()) == repr(out.frame[name].to_pylist())
    assert (tmp_path / "r.csv").read_text().startswith('"x","text"')


CSV_EDITS = {
    "a cell": (lambda text, law: (text.replace('"x"', '"y"', 1), law), "checksum of rows 0 to 1"),
    "a row less": (lambda text, law: ("".join(text.splitlines(True)[:-1]), law), "checksum of rows"),
    "no rows": (lambda text, law: (text.splitlines(True)[0], law), "checksum of rows"),
    "a row more": (lambda text, law: (text + text.splitlines(True)[-1], law), "checksum of rows"),
    "another column": (lambda text, law: (text.replace('"age"', '"AGE"'), law), "columns are not those"),
    "a cell less": (lambda text, law: (text.rstrip().rsplit(",", 1)[0] + "\n", law), "no CSV file, or a damaged one"),
    "text for a number": (lambda text, law: (text + 'a,"x"\n', law), "no CSV file, or a damaged one"),
    "empty": (lambda text, law: ("", law), "no CSV file, or a damaged one"),
    "law cut": (lambda text, law: (text, law[:-3]), "is no JSON"),
    "law": (lambda text, law: (text, law.replace('"scale": 50.0', '"scale": 51.0')), "checksum of its law"),
}


@pytest.mark.parametrize("name", CSV_EDITS)
def test_edited_csv_files_are_refused(name, tmp_path):
    change, message = CSV_EDITS[name]
    path, law = tmp_path / "r.csv", tmp_path / "r.csv.law.json"
    released().save(path)
    before = path.read_text(), law.read_text()
    after = change(*before)
    assert after != before
    path.write_text(after[0])
    law.write_text(after[1])
    with pytest.raises(ValueError, match=message):
        load_release(path)


def test_csv_and_law_belong_together(tmp_path):
    released().save(tmp_path / "r.csv")
    (tmp_path / "r.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"no file .*r\.csv;"):
        load_release(tmp_path / "r.csv")


def test_endings_decide_and_unknown_ones_are_refused(tmp_path):
    out = released()
    for name in FILES:
        out.save(tmp_path / name)
    assert pa.ipc.open_file(str(tmp_path / "r.ipc")).read_all().num_rows == 2
    assert pl.read_ipc(tmp_path / "r.feather").shape == (2, 2) and pl.read_csv(tmp_path / "r.csv").shape == (2, 2)
    assert pq.read_table(tmp_path / "r.PQ").num_rows == 2 and (tmp_path / "parts" / "_privfit.json").is_file()
    for name in ("r.xlsx", "r.json", "r.parquet.gz"):
        with pytest.raises(ValueError, match=r"path must end in one of \.parquet"):
            out.save(tmp_path / name)
        assert not (tmp_path / name).exists()


def test_saving_replaces_a_file_as_a_whole(tmp_path):
    first = released()
    second = released()
    for name in ("r.parquet", "r.arrow", "r.csv"):
        first.save(tmp_path / name)
        with pytest.raises(FileExistsError, match="overwrite=True"):
            second.save(tmp_path / name)
        assert load_release(tmp_path / name).frame.equals(first.frame)
        second.save(tmp_path / name, overwrite=True)
        assert load_release(tmp_path / name).frame.equals(second.frame)
    assert not list(tmp_path.glob(".*"))
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(FileExistsError, match="there and not empty"):
        first.save(tmp_path / "file")


def test_public_types_come_back(tmp_path):
    n = 3
    table = pa.table(
        {
            "x": np.zeros(n),
            "stamp": pa.array([0, None, 5], pa.timestamp("s")),
            "zone": pa.array([0, None, 5], pa.timestamp("ns", "Europe/Berlin")),
            "half": pa.array([0.5, None, 1.0], pa.float16()),
            "large": pa.array(["a", None, "b"], pa.large_string()),
            "group": pa.array(["a", None, "b"], pa.large_string()).dictionary_encode(),
            "numbers": pa.array([7, None, 7]).dictionary_encode(),
            "list": [[1, None], None, []],
            "struct": [{"a": 1}, None, {"a": None}],
            "bytes": [b"a", None, b""],
        }
    )
    out = release(table, Gaussian(1.0), Box({"x": (0, 1)}), public=table.column_names[1:])
    for name in ("r.parquet", "r.arrow", "parts"):
        out.save(tmp_path / name)
        again = load_release(tmp_path / name).frame
        for column in table.column_names:
            assert again[column].to_pylist() == out.frame[column].to_pylist()
    lists = release(table.select(["x", "list"]), Gaussian(1.0), Box({"x": (0, 1)}), public=["list"])
    with pytest.raises(ValueError, match=r"'list' has type list<.*CSV does not carry"):
        lists.save(tmp_path / "l.csv")


def test_whole_numbers_with_gaps_stay_whole_in_pandas(tmp_path):
    table = pa.table(
        {
            "x": [0.0, 0.0],
            "u": pa.array([2**64 - 1, None], pa.uint64()),
            "i": pa.array([2**53 + 1, None]),
            "whole": pa.array([2**53 + 1, 1]),
        }
    )
    release(table, Gaussian(1.0), Box({"x": (0, 1)}), public=["u", "i", "whole"]).save(tmp_path / "r.parquet")
    frame = load_release(tmp_path / "r.parquet", "pandas").frame
    assert [str(frame[name].dtype) for name in frame] == ["float64", "UInt64", "Int64", "int64"]
    assert frame["u"][0] == 2**64 - 1 and frame["i"][0] == 2**53 + 1 and frame["i"].isna()[1]


def test_names_must_stay_apart_in_a_file(tmp_path):
    frame = pd.DataFrame(np.zeros((2, 2)), columns=[1, "1"])
    out = release(frame, {1: Gaussian(1.0), "1": Gaussian(1.0)}, Box({1: (0, 1), "1": (0, 1)}))
    with pytest.raises(ValueError, match="distinct as strings"):
        out.save(tmp_path / "r.parquet")


@pytest.mark.parametrize("ending", [".parquet", ".arrow", ""])
@pytest.mark.parametrize("entries", ["entries", "other"])
def test_maps_come_back_from_every_format(ending, entries, tmp_path):
    kind = pa.map_(pa.string(), pa.field(entries, pa.int64()))
    table = pa.table({"x": [0.1, 0.2, 0.3], "p": pa.array([[("a", 1)], None, []], kind)})
    done = release(table, Gaussian(1.0), Box({"x": (0, 1)}), public=["p"])
    done.save(tmp_path / f"r{ending}")
    assert load_release(tmp_path / f"r{ending}").frame["p"].to_pylist() == [[("a", 1)], None, []]


def test_a_law_that_stands_beside_no_csv_is_not_replaced(tmp_path):
    (tmp_path / "r.csv.law.json").write_text("somebody's")
    done = release(np.zeros((2, 1)), Gaussian(1.0), Box({0: (0, 1)}))
    with pytest.raises(FileExistsError, match=r"r\.csv\.law\.json exists"):
        done.save(tmp_path / "r.csv")
    done.save(tmp_path / "r.csv", overwrite=True)
    assert load_release(tmp_path / "r.csv").n_rows == 2
