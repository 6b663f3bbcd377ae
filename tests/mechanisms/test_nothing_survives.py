"""Nothing of the private table is left in a release: objects, pickles, files, messages and warnings are searched.

The private cells are sentinels that no noise produces. They stand where a table can hide things: in cells, cut-away
rows, the index, attributes, schema metadata, categories that do not occur, and under the mask of missing cells.
"""

import pickle
import struct
import traceback
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from privfit.mechanisms import Box, Categories, Gaussian, RandomizedResponse, formats, load_release, release

NUMBERS = (123456.789012345, 765432.109876543)
WHOLE = 918273645546372819  # hidden under a mask
TEXTS = ("SENTINEL-A", "SENTINEL-B")
BOX, LABELS = Box({"age": (0, 1e6)}), Categories({"income": ["no", "yes"]})
LAW = {"age": Gaussian(1e4), "income": RandomizedResponse(1.0)}
FORMATS = ("r.parquet", "r.arrow", "r.csv", "parts")
TRACES = [
    *(trace for x in NUMBERS for trace in (struct.pack("<d", x), struct.pack("<f", x), repr(x)[:9].encode())),
    struct.pack("<q", WHOLE),
    str(WHOLE)[:12].encode(),
    b"SENTINEL",
]


def found(data):
    data = data.encode(errors="surrogatepass") if isinstance(data, str) else data
    return [trace for trace in TRACES if trace in data]


def pandas_table():
    frame = pd.DataFrame(
        {
            "age": [NUMBERS[0], np.nan, NUMBERS[1], NUMBERS[0]],
            "income": pd.Categorical(["no", "yes", TEXTS[0], TEXTS[1]], categories=["no", "yes", *TEXTS]),
            "place": pd.Categorical(["here", "there", "here", TEXTS[1]]),
            "count": pd.arrays.IntegerArray(np.array([1, WHOLE, 3, WHOLE]), np.array([False, True, False, False])),
        },
        index=pd.Index([*TEXTS, "SENTINEL-C", "SENTINEL-D"], name="SENTINEL-NAME"),
    )
    frame.attrs["note"] = TEXTS[0]
    frame["place"].attrs["note"] = TEXTS[0]
    frame.columns.name = "SENTINEL-COLUMNS"
    return frame.iloc[:3]


def polars_table():
    frame = pl.DataFrame(
        {
            "age": [NUMBERS[0], None, NUMBERS[1], NUMBERS[0]],
            "income": ["no", "yes", TEXTS[0], TEXTS[1]],
            "place": pl.Series(["here", "there", "here", TEXTS[1]], dtype=pl.Enum(["here", "there", *TEXTS])),
            "count": [1, None, 3, WHOLE],
        }
    )
    return frame.slice(0, 3)


def arrow_table():
    hidden = pa.py_buffer(np.array([1, WHOLE, 3, WHOLE]).tobytes())
    fields = [
        pa.field("age", pa.float64(), metadata={"note": TEXTS[0]}),
        pa.field("income", pa.string()),
        pa.field("place", pa.dictionary(pa.int32(), pa.string())),
        pa.field("count", pa.int64()),
    ]
    columns = [
        pa.array([NUMBERS[0], None, NUMBERS[1], NUMBERS[0]]),
        pa.array(["no", "yes", *TEXTS]),
        pa.array(["here", "there", "here", TEXTS[1]]).dictionary_encode(),
        pa.Array.from_buffers(pa.int64(), 4, [pa.py_buffer(b"\x0d"), hidden]),
    ]
    return pa.table(columns, schema=pa.schema(fields, metadata={"pandas": TEXTS[0]})).slice(0, 3)


def numpy_table():
    rows = [[NUMBERS[0], "no", "here", 1], [np.nan, "yes", "there", 2], [NUMBERS[1], TEXTS[0], "here", 3]]
    whole = np.array([*rows, [NUMBERS[0], TEXTS[1], TEXTS[1], WHOLE]], dtype=object)
    return whole[:3]


TABLES = {"pandas": pandas_table, "polars": polars_table, "pyarrow": arrow_table, "numpy": numpy_table}


def released(kind):
    if kind == "numpy":
        # integer positions: an array's columns have no names
        box, labels = Box({0: (0, 1e6)}), Categories({1: ["no", "yes"]})
        return release(numpy_table(), {0: Gaussian(1e4), 1: RandomizedResponse(1.0)}, (box, labels), public=[2, 3])
    return release(TABLES[kind](), LAW, (BOX, LABELS), public=["place", "count"])


def test_the_search_finds_what_is_there():
    for kind, table in TABLES.items():
        assert found(pickle.dumps(table())), kind
    assert len(found(pickle.dumps(arrow_table()))) >= 4


@pytest.mark.parametrize("kind", TABLES)
def test_objects_and_pickles(kind):
    out = released(kind)
    for thing in (pickle.dumps(out), pickle.dumps(out.frame), repr(out), str(out), repr(out.frame), out.report()):
        assert not found(thing)
    if kind == "numpy":
        assert out.frame.base is None and out.frame.flags.owndata
    if kind == "pandas":
        assert out.frame.attrs == {} and isinstance(out.frame.index, pd.RangeIndex) and out.frame.index.name is None
        assert out.frame.columns.name is None and not out.frame["place"].attrs
        assert out.frame["count"].isna().tolist() == [False, True, False] and str(out.frame["count"].dtype) == "Int64"
        for name in out.frame:
            assert not found(pickle.dumps(out.frame[name].array))
    if kind == "pyarrow":
        assert out.frame.schema.metadata is None and all(field.metadata is None for field in out.frame.schema)
        for column in out.frame.columns:
            for chunk in column.chunks:
                assert not any(found(buffer.to_pybytes()) for buffer in chunk.buffers() if buffer)
    if kind == "polars":
        assert not found(pickle.dumps(out.frame.to_arrow()))


def test_no_memory_is_shared():
    data = np.array([[NUMBERS[0], 1.0], [NUMBERS[1], 2.0]])
    out = release(data, {0: Gaussian(1e4)}, Box({0: (0, 1e6)}), public=[1]).frame
    assert out.base is None and not np.shares_memory(out, data)
    frame = pd.DataFrame({"age": data[:, 0].copy(), "open": data[:, 1].copy()})
    out = release(frame, Gaussian(1e4), BOX, public=["open"]).frame
    assert not any(np.shares_memory(out[a].to_numpy(), frame[b].to_numpy()) for a in out for b in frame)


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("name", FORMATS)
def test_files(kind, name, tmp_path, monkeypatch):
    plain = formats.parquet_options
    monkeypatch.setattr(formats, "parquet_options", lambda header: {**plain(header), "compression": "none"})
    out = released(kind)
    out.save(tmp_path / name)
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert written and not any(path.suffix == ".tmp" for path in written)
    for path in written:
        data = path.read_bytes()
        assert not found(data)
        # the public cells are there, so the search looks at the right bytes
        assert path.suffix == ".json" or b"there" in data
    again = load_release(tmp_path / name)
    assert not found(pickle.dumps(again)) and not found(repr(again))


def everything_said(error):
    """All texts of an exception and of those behind it."""
    seen = ["".join(traceback.format_exception(error))]
    while error is not None:
        seen += [repr(error), *map(repr, error.args)]
        error = error.__cause__ or error.__context__
    return "\n".join(seen)


def failing_calls(kind):
    table, both, public = TABLES[kind](), (BOX, LABELS), ["place", "count"]
    age, labels = Gaussian(1e4), RandomizedResponse(1.0)
    yield lambda: release(table, LAW, both)
    yield lambda: release(table, LAW, both, public=["place", "nothing"])
    yield lambda: release(table, {**LAW, "count": age}, (*both, Box({"count": (0, 1e-9)})), public=["place"])
    yield lambda: release(table, {"age": labels, "income": labels}, both, public=public)
    yield lambda: release(table, LAW, (BOX, Categories({"income": ["no", "yes", "maybe"]})), public=public)
    yield lambda: release(table, LAW, both, public=public, rounding="up")
    yield lambda: release(table, LAW, both, public=[*public, "age"])
    yield lambda: release(table, {"income": age}, Box({"income": (0, 1)}), public=["age", *public])
    yield lambda: release(table, {"age": labels}, Categories({"age": ["no", "yes"]}), public=["income", *public])
    yield lambda: release([table], LAW, both, public=public)
    yield lambda: release(table, LAW, both, public=public, rng="seed")


@pytest.mark.parametrize("kind", TABLES)
def test_messages_and_warnings(kind):
    failed = 0
    for call in failing_calls(kind):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                call()
            except (TypeError, ValueError) as error:
                failed += 1
                assert not found(everything_said(error))
        assert not any(found(str(warning.message)) for warning in caught)
    assert failed >= (7 if kind == "numpy" else 9)


def test_saving_says_nothing_about_cells(tmp_path):
    mixed = pd.DataFrame({"age": [1.0, 2.0], "place": pd.Series([TEXTS[0], WHOLE], dtype=object)})
    nested = pa.table({"age": [1.0, 2.0], "place": [[TEXTS[0]], [TEXTS[1]]]})
    calls = [(mixed, "r.parquet"), (mixed, "parts"), (nested, "r.csv"), (nested, "r.xlsx"), (nested, "no/r.parquet")]
    for table, name in calls:
        out = release(table, Gaussian(1e4), BOX, public=["place"])
        with pytest.raises((ValueError, FileNotFoundError)) as caught:
            out.save(tmp_path / name)
        assert not found(everything_said(caught.value))
        assert not list(tmp_path.rglob("*.*"))


def test_reading_says_nothing_about_cells(tmp_path):
    out = release(pd.DataFrame({"age": [1.0, 2.0]}), Gaussian(1e4), BOX)
    out.save(tmp_path / "r.csv")
    (tmp_path / "r.csv").write_text(f'"age"\n{TEXTS[0]}\n{NUMBERS[0]}\n')
    with pytest.raises(ValueError, match="CSV file, or a damaged one") as caught:
        load_release(tmp_path / "r.csv")
    assert not found(everything_said(caught.value))


def test_parquet_statistics_are_of_released_columns(tmp_path):
    import pyarrow.parquet as pq

    out = released("pandas")
    out.save(tmp_path / "r.parquet")
    file = pq.ParquetFile(tmp_path / "r.parquet")
    group = file.metadata.row_group(0)
    assert group.num_columns == 4
    values = out.frame["age"]
    for j in range(4):
        stats = group.column(j).statistics
        assert stats is None or not found(f"{stats.min}{stats.max}")
        if group.column(j).path_in_schema == "age":
            assert (stats.min, stats.max) == (values.min(), values.max())
    assert set(file.metadata.metadata) <= {b"privfit", b"ARROW:schema"}


HIDDEN = "somebody who is not in this table"


def nested_tables():
    texts = ["one who is in it", HIDDEN]
    labels = pa.array(texts).dictionary_encode()
    frame = pl.DataFrame({"x": [0.1, 0.2], "p": texts})
    yield pa.table({"x": [0.1, 0.2], "p": pa.StructArray.from_arrays([labels], ["c"])})
    yield pa.table({"x": [0.1, 0.2], "p": pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), labels)})
    yield pa.table({"x": [0.1, 0.2], "p": pa.array(texts, pa.string_view())})
    yield pa.table({"x": [0.1, 0.2], "p": pa.RunEndEncodedArray.from_arrays([1, 2], texts)})
    yield frame.with_columns(pl.concat_list("p").alias("p"))
    yield frame.with_columns(pl.concat_list(pl.col("p").cast(pl.Categorical)).alias("p"))
    yield frame.with_columns(pl.struct("p", pl.col("p").cast(pl.Enum([*texts[:1], "b", HIDDEN])).alias("e")).alias("p"))
    yield pa.table({"x": [0.1, 0.2], "p": pa.StructArray.from_arrays([labels], ["c"])}).to_pandas(
        types_mapper=pd.ArrowDtype
    )
    yield pa.table({"x": [0.1, 0.2], "p": pa.array(texts, pa.string_view())}).to_pandas(types_mapper=pd.ArrowDtype)


@pytest.mark.parametrize("number", range(9))
def test_rows_that_were_cut_off_are_not_behind_nested_cells(number):
    table = list(nested_tables())[number]
    cut = table.iloc[:1] if isinstance(table, pd.DataFrame) else table[:1]
    done = release(cut, Gaussian(1.0), Box({"x": (0, 1)}), public=["p"])
    data = pickle.dumps(done)
    assert b"one who is in it" in data
    # the labels of an Enum are part of its type
    assert (HIDDEN.encode() in data) == (number == 6)
    before, after = cut["p"], done.frame["p"]
    kind = (lambda column: column.type) if isinstance(table, pa.Table) else (lambda column: column.dtype)
    assert kind(after) == kind(before)
    as_list = "to_pylist" if isinstance(table, pa.Table) else "to_list"
    assert getattr(after, as_list)() == getattr(before, as_list)()


def test_a_public_column_that_cannot_be_copied_costs_nothing(monkeypatch):
    from privfit.accounting import GDP, Ledger
    from privfit.mechanisms import frames

    def fails(column):
        raise pa.ArrowNotImplementedError("no such kernel")

    ledger = Ledger(GDP(1.0))
    table = pa.table({"x": [0.1], "p": ["a"]})
    monkeypatch.setattr(frames, "only_cells", lambda column: fails(column) if len(column) else column)
    with pytest.raises(pa.ArrowNotImplementedError):
        release(table, Gaussian(4.0), Box({"x": (0, 1)}), public=["p"], ledger=ledger)
    assert not ledger.entries


def test_a_damaged_source_is_not_quoted_behind_the_error(tmp_path, monkeypatch):
    from privfit.mechanisms import sources

    path = tmp_path / "in.parquet"
    path.write_bytes(b"PAR1 no parquet at all")
    with pytest.raises(ValueError, match="cannot be read") as caught:
        sources.open_source(path)
    assert caught.value.__context__ is None and caught.value.__cause__ is None
    pa.parquet.write_table(pa.table({"x": [1.0]}), path)
    source = sources.open_source(path)

    def broken(self, file, groups):
        raise pa.ArrowInvalid(WHOLE)
        yield

    monkeypatch.setattr(sources.Reader, "_batches_of", broken)
    with pytest.raises(ValueError, match="is damaged") as caught:
        sources.Reader(source, ["x"]).read(0, 1)
    assert not found(everything_said(caught.value))


def test_names_that_repeat_and_widths_of_text_are_not_told(tmp_path):
    from privfit.accounting import GDP, Ledger
    from privfit.estimators import ReleaseTransformer
    from privfit.mechanisms.incremental import release_new
    from privfit.mechanisms.record_book import RecordBook

    law, box = Gaussian(4.0), Box({"x": (0, 1)})
    twice = pd.DataFrame([[0.1, 0.2]], columns=[TEXTS[0]] * 2)
    spend = {"book": RecordBook(tmp_path / "book"), "ledger": Ledger(GDP(1.0)), "part": "first"}
    for call in (
        lambda: ReleaseTransformer(law, (0, 1)).fit(twice),
        lambda: release_new(twice, law, box, ids="x", **spend),
    ):
        with pytest.raises(ValueError, match="must be distinct") as caught:
            call()
        assert not found(everything_said(caught.value))
    for width in (1, 12345):
        for cell in ("a" * width, b"a" * width):
            with pytest.raises(TypeError) as caught:
                release(np.array([[cell]]), law, Box({0: (0, 1)}))
            assert "12345" not in str(caught.value)
