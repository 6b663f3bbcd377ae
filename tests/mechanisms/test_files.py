"""Releases as Parquet, Arrow IPC and CSV: round trips, and the edits that are refused."""

import datetime as dt
import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privfit.mechanisms import (
    Ball,
    Box,
    Categories,
    Gaussian,
    Labels,
    RandomizedResponse,
    SymmetricLaplace,
    ZeroInflatedLaplace,
    load_release,
    release,
)
from privfit.mechanisms.reader import open_release

BOX, LABELS = Box({"age": (17, 90), "hours": (0, 100)}), Categories({"income": ["no", "yes"]})
LAW = {("age", "hours"): Gaussian([50.0, 80.0]), "income": RandomizedResponse(1.0)}
FRAME = pd.DataFrame({"age": [20, 30], "state": ["x", "y"], "income": ["no", "yes"], "hours": [1.0, 2.0]})
KINDS = {
    "pandas": FRAME,
    "polars": pl.from_pandas(FRAME),
    "pyarrow": pa.Table.from_pandas(FRAME, preserve_index=False),
}


def cells(frame):
    return {
        name: list(pd.Series(frame[name].to_pylist() if isinstance(frame, pa.Table) else frame[name]))
        for name in ("age", "state", "income", "hours")
    }


FILES = ("r.parquet", "r.PQ", "r.arrow", "r.feather", "r.ipc", "r.csv", "parts")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["r.parquet", "r.arrow", "r.csv"])
def test_round_trip(kind, name, tmp_path):
    out = release(KINDS[kind], LAW, (BOX, LABELS), public=["state"])
    path = tmp_path / name
    out.save(path)
    again = load_release(str(path))
    assert type(again.frame) is type(out.frame) and cells(again.frame) == cells(out.frame)
    for name in ("law", "domain", "columns", "public", "n_rows", "kind", "secure", "names"):
        assert getattr(again, name) == getattr(out, name)
    for other in KINDS:
        assert cells(load_release(path, other).frame) == cells(out.frame)
    assert load_release(path, "numpy").frame.shape == (2, 4)
    for other in FILES:
        again.save(tmp_path / f"again-{other}")
        assert cells(load_release(tmp_path / f"again-{other}").frame) == cells(out.frame)


def test_arrays_round_trip(tmp_path):
    out = release(np.zeros((50, 3)), SymmetricLaplace(1.0, shape=2), Ball(1.0, 3))
    out.save(tmp_path / "r.parquet")
    again = load_release(tmp_path / "r.parquet")
    assert again.frame.tobytes() == out.frame.tobytes() and again.domain == Ball(1.0, 3)
    assert again.columns == (0, 1, 2)
    flat = release(np.zeros(7), SymmetricLaplace(1.0), Ball(1.0, 1))
    flat.save(tmp_path / "f.parquet")
    one = load_release(tmp_path / "f.parquet")
    assert one.frame.shape == (7,) and one.frame.tobytes() == flat.frame.tobytes()
    assert load_release(tmp_path / "f.parquet", "pandas").frame.shape == (7, 1)
    labels = release(np.array(["a", "b"]), RandomizedResponse(1.0), Categories({0: ["a", "b"]}))
    labels.save(tmp_path / "l.parquet")
    assert load_release(tmp_path / "l.parquet").frame.shape == (2,)
    mixed = release(
        np.array([[1.0, "yes"]], dtype=object),
        {0: Gaussian(1.0), 1: RandomizedResponse(1.0)},
        (Box({0: (0, 1)}), Categories({1: ["no", "yes"]})),
    )
    mixed.save(tmp_path / "m.parquet")
    assert (load_release(tmp_path / "m.parquet").frame == mixed.frame).all()


@pytest.mark.parametrize("name", ["r.parquet", "r.csv"])
def test_encodings_travel_with_the_domain(name, tmp_path):
    grades = Labels({"a": 0, "b": 1, "c": 2})
    box = Box({"born": (dt.date(1900, 1, 1), dt.date(2026, 1, 1)), "grade": (0, 2)}, encoding={"grade": grades})
    frame = pd.DataFrame({"born": pd.to_datetime(["1980-01-01", "1990-05-05"]), "grade": ["a", "c"]})
    out = release(frame, Gaussian([1000.0, 1.0]), box)
    out.save(tmp_path / name)
    again = load_release(tmp_path / name)
    assert again.domain == box and again.frame.equals(out.frame)


def test_any_parquet_reader_sees_the_table_and_the_law(tmp_path):
    out = release(FRAME, LAW, (BOX, LABELS), public=["state"])
    out.save(tmp_path / "r.parquet")
    assert pd.read_parquet(tmp_path / "r.parquet").equals(out.frame)
    record = json.loads(pq.read_schema(tmp_path / "r.parquet").metadata[b"privfit"])
    assert record["law"] == out.law.to_dict() and record["secure"] is True
    assert record["grid"] == {"age": 2.0**-5, "hours": 2.0**-4}
    assert {"slack", "delta", "exact_fraction"} <= set(record["guarantee"])


def test_reproducible_noise_is_not_saved_unless_allowed(tmp_path):
    out = release(np.zeros((5, 1)), Gaussian(1.0), Box({"x": (0, 1)}), rng=1)
    path = tmp_path / "r.parquet"
    for answer in (False, "yes", 1):
        with pytest.raises(ValueError, match="can be reproduced"):
            out.save(path, allow_insecure=answer)
    assert not path.exists()
    out.save(path, allow_insecure=True)
    assert not load_release(path).secure


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "r.parquet"
    release(FRAME, LAW, (BOX, LABELS), public=["state"]).save(path)
    return path


def edit(path, change_record=None, change_table=None):
    table = pq.read_table(path)
    metadata = dict(table.schema.metadata)
    record = json.loads(metadata[b"privfit"])
    if change_record:
        change_record(record)
    if change_table:
        table = change_table(table)
    pq.write_table(table.replace_schema_metadata({**metadata, b"privfit": json.dumps(record).encode()}), path)


def set_scale(record):
    record["law"]["parts"][0]["law"]["scale"] = [500.0, 80.0]


EDITS = {
    "scale on another grid": (set_scale, None, "grid"),
    "scale on the same grid": (
        lambda r: r["law"]["parts"][0]["law"].update(scale=[51.0, 80.0]),
        None,
        "checksum",
    ),
    "law": (lambda r: r.update(law={"mechanism": "gaussian", "scale": 50.0}), None, "changed"),
    "unknown law": (lambda r: r["law"].update(mechanism="magic"), None, "mechanism"),
    "epsilon": (lambda r: r["law"]["parts"][1]["law"].update(epsilon=3.0), None, "checksum"),
    "domain": (lambda r: r["domain"][0].update(intervals=[[17, 80], [0, 100]]), None, "checksum"),
    "secure": (lambda r: r.update(secure=False), None, "checksum"),
    "rows": (lambda r: r.update(n_rows=3), None, "checksum"),
    "format": (lambda r: r.update(format=99), None, "cannot be read: its format is none of 1 and 2"),
    "no domain": (lambda r: r.pop("domain"), None, "changed"),
    "no checksum": (lambda r: r.pop("checksum"), None, "checksum"),
    "row removed": (None, lambda t: t.slice(0, 1), "rows"),
    "column renamed": (None, lambda t: t.rename_columns(["a", "state", "income", "hours"]), "columns"),
    "column dropped": (None, lambda t: t.drop_columns(["age"]), "columns"),
    "value on the grid": (None, lambda t: t.set_column(0, "age", pa.array([20.0, 30.0])), "checksum"),
    "value off the grid": (None, lambda t: t.set_column(0, "age", pa.array([20.1, 30.0])), "not on the grid"),
    "missing value": (None, lambda t: t.set_column(0, "age", pa.array([None, 30.0])), "not on the grid"),
    "integer column": (None, lambda t: t.set_column(0, "age", pa.array([20, 30])), "type that was saved"),
    "undeclared label": (
        None,
        lambda t: t.set_column(2, "income", pa.array(["no", "maybe"], t["income"].type)),
        "labels",
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_edited_files_are_refused(name, saved):
    change_record, change_table, message = EDITS[name]
    edit(saved, change_record, change_table)
    with pytest.raises(ValueError, match=message):
        load_release(saved)


def test_an_untouched_rewrite_is_accepted(saved):
    edit(saved)
    assert load_release(saved).n_rows == 2


def test_files_without_a_law_are_refused(tmp_path):
    FRAME.to_parquet(tmp_path / "plain.parquet")
    with pytest.raises(ValueError, match="carries no law"):
        load_release(tmp_path / "plain.parquet")
    table = pa.Table.from_pandas(FRAME)
    with pa.OSFile(str(tmp_path / "plain.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(ValueError, match="carries no law"):
        load_release(tmp_path / "plain.arrow")
    FRAME.to_csv(tmp_path / "plain.csv")
    with pytest.raises(ValueError, match=r"carries no law.*plain\.csv\.law\.json must lie beside it"):
        load_release(tmp_path / "plain.csv")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match="no release, or its writing has not ended"):
        load_release(tmp_path / "folder")
    for suffix, kind in {"parquet": "Parquet", "feather": "Arrow IPC", "xlsx": "Parquet, Arrow IPC or CSV"}.items():
        for text in ("age,hours", "", "PAR1", "ARROW1"):
            (tmp_path / f"text.{suffix}").write_text(text)
            with pytest.raises(ValueError, match=f"no {kind} file, or a damaged one"):
                load_release(tmp_path / f"text.{suffix}")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load_release(tmp_path / "nowhere.parquet")


def test_metadata_that_is_no_record_is_refused(saved):
    for text in (b"not json", b"[]", b"null", b"{}", b"\xff"):
        pq.write_table(pq.read_table(saved).replace_schema_metadata({b"privfit": text}), saved)
        with pytest.raises(ValueError, match="changed after it was saved"):
            load_release(saved)


def test_kind_is_checked(saved):
    with pytest.raises(ValueError, match="kind must be one of"):
        load_release(saved, "excel")


SAMPLE = Path(__file__).parent / "samples" / "format1.parquet"


def test_files_of_the_first_format_are_read():
    """Written by privfit 0.1.0 before there were parts: one checksum over everything."""
    old = load_release(SAMPLE)
    assert cells(old.frame) == {
        "age": [20.0, 56.65625, 45.0],
        "state": ["x", "y", "x"],
        "income": ["no", "no", "no"],
        "hours": [1.0, 55.3125, 40.0],
    }
    law = old.law.parts[("age", "hours")]
    assert law == ZeroInflatedLaplace([50.0, 80.0], 0.25) and old.domain[0] == BOX and old.kind == "pandas"
    assert [piece.n_rows for piece in open_release(SAMPLE)] == [3]


FIRST = {
    "value": (None, lambda t: t.set_column(0, "age", pa.array([20.0, 30.0, 45.0])), "its checksum does not fit"),
    "public value": (None, lambda t: t.set_column(1, "state", pa.array(["x", "y", "z"])), "its checksum does not fit"),
    "secure": (lambda r: r.update(secure=False), None, "its checksum does not fit"),
    "rows": (None, lambda t: t.slice(0, 2), "rows"),
    "scale": (set_scale, None, "grid"),
    "guarantee": (lambda r: r["guarantee"].update(slack=1e-30), None, "its guarantee is not that of its law"),
}


@pytest.mark.parametrize("name", FIRST)
def test_edited_files_of_the_first_format_are_refused(name, tmp_path):
    change_record, change_table, message = FIRST[name]
    path = tmp_path / "old.parquet"
    path.write_bytes(SAMPLE.read_bytes())
    edit(path, change_record, change_table)
    with pytest.raises(ValueError, match=message):
        load_release(path)
