"""Digests see every cell and nothing else: not chunks, offsets, dictionaries or what lies under missing cells."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfit.mechanisms import digests
from privfit.mechanisms.digests import content_digests, pieces

STAMP = dt.datetime(2026, 1, 2, 3, 4, 5)
COLUMNS = {
    "float64": (pa.float64(), [1.0, None, -0.0, float("nan")], 2.0),
    "float32": (pa.float32(), [1.0, None, 0.5], 2.0),
    "float16": (pa.float16(), [1.0, None, 0.5], 2.0),
    "int64": (pa.int64(), [1, None, 2**62], 2),
    "uint8": (pa.uint8(), [1, None, 255], 2),
    "bool": (pa.bool_(), [True, None, False], False),
    "string": (pa.string(), ["a", None, "", "äö"], "b"),
    "large_string": (pa.large_string(), ["a", None, ""], "b"),
    "string_view": (pa.string_view(), ["a", None, "longer than twelve bytes"], "b"),
    "binary": (pa.binary(), [b"a", None, b""], b"b"),
    "fixed": (pa.binary(2), [b"ab", None, b"cd"], b"xy"),
    "date": (pa.date32(), [dt.date(2026, 1, 1), None], dt.date(2026, 1, 2)),
    "time": (pa.time64("us"), [dt.time(1, 2), None], dt.time(1, 3)),
    "stamp": (pa.timestamp("us", "UTC"), [STAMP, None], dt.datetime(2026, 1, 2)),
    "span": (pa.duration("us"), [dt.timedelta(1), None], dt.timedelta(2)),
    "decimal": (pa.decimal128(5, 2), [Decimal("1.25"), None], Decimal("1.50")),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["a", None, "b"], "b"),
    "list": (pa.list_(pa.int64()), [[1, None], None, []], [2]),
    "large_list": (pa.large_list(pa.string()), [["a"], None, []], ["b"]),
    "pair": (pa.list_(pa.int64(), 2), [[1, 2], None, [3, None]], [2, 2]),
    "struct": (pa.struct({"a": pa.int64(), "b": pa.string()}), [{"a": 1, "b": None}, None], {"a": 2, "b": None}),
    "map": (pa.map_(pa.string(), pa.int64()), [[("a", 1)], None, []], [("b", 1)]),
    "null": (pa.null(), [None, None], None),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_layout_does_not_matter_and_cells_do(name, tmp_path):
    type_, cells, other = COLUMNS[name]
    table = pa.table({"c": pa.array(cells, type_)})
    (digest,) = content_digests(table)
    longer = pa.table({"c": pa.array([*cells[:1], *cells, *cells[-1:]], type_)}).slice(1, len(cells))
    apart = pa.concat_tables([table.slice(j, 1) for j in range(len(cells))])
    assert content_digests(longer) == content_digests(apart) == (digest,)
    if name not in ("float16", "string_view", "span"):
        pq.write_table(table, tmp_path / "t.parquet")
        assert content_digests(pq.read_table(tmp_path / "t.parquet")) == (digest,)
    changed = [[other, *cells[1:]], [*cells[1:], cells[0]], cells[:-1], [*cells, None]]
    for edit in changed if name != "null" else changed[2:]:
        assert content_digests(pa.table({"c": pa.array(edit, type_)})) != (digest,)
    assert content_digests(table.rename_columns(["d"])) != (digest,)


def test_what_lies_under_missing_cells_does_not_matter():
    digest = set()
    for hidden in (0, 7):
        buffers = [pa.py_buffer(b"\x05"), pa.py_buffer(np.array([1, hidden, 3]).tobytes())]
        digest.update(content_digests(pa.table({"c": pa.Array.from_buffers(pa.int64(), 3, buffers)})))
    assert len(digest) == 1
    payload = np.array([0x7FF8000000000001, 0x7FF8000000000000], dtype=np.uint64).view(np.float64)
    assert content_digests(pa.table({"c": payload[:1]})) == content_digests(pa.table({"c": payload[1:]}))


def test_equal_bytes_of_different_types_differ():
    bits = np.arange(4)
    tables = [pa.table({"c": bits}), pa.table({"c": bits.view(np.uint64)}), pa.table({"c": bits.view(np.float64)})]
    strings = [pa.table({"c": ["ab", "c"]}), pa.table({"c": ["a", "bc"]}), pa.table({"c": [b"ab", b"c"]})]
    assert len({content_digests(table) for table in (*tables, *strings)}) == 6
    assert content_digests(pa.table({"a": [1.0], "b": [2.0]})) != content_digests(pa.table({"a": [2.0], "b": [1.0]}))


def test_pieces(monkeypatch):
    monkeypatch.setattr(digests, "PART_ROWS", 10)
    table = pa.table({"c": np.arange(25.0)})
    assert content_digests(table) == tuple(content_digests(table.slice(k, 10))[0] for k in (0, 10, 20))
    assert len(content_digests(table.slice(0, 0))) == 1 == pieces(0) == pieces(10)
    assert pieces(11) == 2


def test_long_text_has_the_same_digest(monkeypatch):
    tables = [pa.table({"c": pa.chunked_array([["a", None], ["bc"]], t)}) for t in (pa.string(), pa.binary())]
    short = [content_digests(table) for table in tables]
    monkeypatch.setattr(digests, "_LARGE", 0)
    assert [content_digests(table) for table in tables] == short


def test_other_types_are_refused_by_name():
    union = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])
    with pytest.raises(TypeError, match="sparse_union"):
        content_digests(pa.table({"c": union}))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=40), st.data())
def test_one_changed_bit_shows(values, data):
    array = np.array(values)
    j, bit = data.draw(st.integers(0, len(array) - 1)), data.draw(st.integers(0, 63))
    changed = array.copy()
    changed.view(np.uint64)[j] ^= np.uint64(1 << bit)
    both = content_digests(pa.table({"c": array})), content_digests(pa.table({"c": changed}))
    assert both[0] != both[1]
