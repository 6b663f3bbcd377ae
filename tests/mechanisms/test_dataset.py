"""Releases in parts: written in any order and twice, whole only with the manifest, and every damage has its message."""

import json
import pickle
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privfit.mechanisms import (
    Box,
    Categories,
    Gaussian,
    RandomizedResponse,
    dataset,
    digests,
    files,
    load_release,
    release,
)
from privfit.mechanisms import stored as storing
from privfit.mechanisms.atomic import replacing
from privfit.mechanisms.dataset import PartInfo, finish_dataset, open_release, write_part
from privfit.mechanisms.frames import read_table
from privfit.mechanisms.law_record import Header, sealed
from privfit.mechanisms.plan import plan_release

ROWS = 250
PIECE = 100


@pytest.fixture(autouse=True)
def short_pieces(monkeypatch):
    """Pieces of 100 rows instead of a quarter of a million."""
    for module in (digests, dataset, files, storing):
        monkeypatch.setattr(module, "PART_ROWS", PIECE)


PLAN = plan_release({"x": Gaussian(1.0)}, Box({"x": (0, 1)}), public=["id"])


def piece(start, stop):
    ids = np.arange(start, stop)
    table = pa.table({"id": ids, "x": ids / ROWS})
    done = PLAN.release_rows(read_table(table, PLAN.columns), bytes(32), start)
    return pa.table({name: done[name] for name in ("id", "x")})


def header():
    return Header(PLAN, ("id", "x"), "pyarrow")


@pytest.fixture
def folder(tmp_path):
    head, place = header(), tmp_path / "release"
    parts = [write_part(place, k, piece(100 * k, min(100 * k + 100, ROWS)), head) for k in (2, 0, 1)]
    finish_dataset(place, head, parts)
    return place


def test_parts_are_the_whole(folder):
    whole = load_release(folder)
    assert whole.n_rows == ROWS and whole.frame.equals(piece(0, ROWS)) and whole.kind == "pyarrow"
    reader = open_release(folder)
    assert len(reader) == 3 and [r.n_rows for r in reader] == [100, 100, 50]
    assert [len(r.frame) for r in open_release(folder, "pandas")] == [100, 100, 50]
    for name in ("law", "domain", "columns", "public", "names", "rounding", "secure", "n_rows", "kind"):
        assert getattr(reader, name) == getattr(whole, name)
    assert "250 rows in 3 pieces" in repr(reader)
    # any Parquet reader takes the folder for one table
    assert pq.read_table(folder).num_rows == ROWS


def test_parts_may_have_any_length(tmp_path):
    head = header()
    cuts = [(0, 0), (0, 170), (170, 171), (171, ROWS)]
    finish_dataset(tmp_path, head, [write_part(tmp_path, k, piece(a, b), head) for k, (a, b) in enumerate(cuts)])
    reader = open_release(tmp_path)
    assert [r.n_rows for r in reader] == [0, 100, 70, 1, 79] and len(reader) == 5
    assert load_release(tmp_path).frame.equals(piece(0, ROWS))


def test_a_repeated_task_writes_the_same_bytes(tmp_path):
    head = header()
    first = write_part(tmp_path, 0, piece(0, 170), head)
    path = tmp_path / "part-000000.parquet"
    before = path.read_bytes()
    chunks = pa.concat_tables([piece(0, 30), piece(30, 170)])
    again = write_part(tmp_path, 0, chunks, pickle.loads(pickle.dumps(head)))
    assert again == first and path.read_bytes() == before
    assert PartInfo.from_dict(json.loads(json.dumps(first.to_dict()))) == first
    assert pickle.loads(pickle.dumps(first)) == first
    finish_dataset(tmp_path, head, [first, again])
    before = (tmp_path / "_privfit.json").read_bytes()
    write_part(tmp_path, 0, piece(0, 170), head)
    finish_dataset(tmp_path, head, [first])
    assert (tmp_path / "_privfit.json").read_bytes() == before and load_release(tmp_path).n_rows == 170


def test_save_and_load(tmp_path):
    out = release(np.linspace(0, 1, ROWS), Gaussian(1.0), Box({"x": (0, 1)}))
    for place in (tmp_path / "a", f"{tmp_path}/b.2026/"):
        out.save(place)
        assert load_release(place).frame.tobytes() == out.frame.tobytes()
        assert len(open_release(place)) == 3
        with pytest.raises(FileExistsError, match="there and not empty"):
            out.save(place)
    empty = release(np.zeros((0, 1)), Gaussian(1.0), Box({"x": (0, 1)}))
    (tmp_path / "c").mkdir()
    empty.save(tmp_path / "c")
    assert load_release(tmp_path / "c").frame.shape == (0, 1)


def test_readers_check_every_piece_when_it_is_read(folder):
    path = folder / "part-000001.parquet"
    table = pq.read_table(path)
    values = table["x"].to_numpy().copy()
    values[3] += 2.0**-10
    pq.write_table(table.set_column(1, "x", pa.array(values)), path)
    pieces = iter(open_release(folder))
    assert next(pieces).n_rows == 100
    with pytest.raises(ValueError, match=r"part-000001\.parquet was changed .*checksum of rows 0 to 99"):
        next(pieces)


def other_release(folder):
    write_part(folder.parent / "other", 1, piece(100, 200), header())
    shutil.copy(folder.parent / "other" / "part-000001.parquet", folder / "part-000001.parquet")


def swap(folder):
    first, second = folder / "part-000000.parquet", folder / "part-000001.parquet"
    first.rename(folder / "x")
    second.rename(first)
    (folder / "x").rename(second)


def truncate(folder):
    path = folder / "part-000001.parquet"
    path.write_bytes(path.read_bytes()[:-20])


def rewrite_part(folder):
    """A part of the same release, written again with fewer rows."""
    manifest = json.loads((folder / "_privfit.json").read_text())
    head = Header(PLAN, ("id", "x"), "pyarrow", release_id=manifest["release"])
    write_part(folder, 1, piece(100, 199), head)


def other_law(folder):
    manifest = json.loads((folder / "_privfit.json").read_text())
    plan = plan_release({"x": Gaussian(1.0)}, Box({"x": (0, 2)}), public=["id"])
    write_part(folder, 1, piece(100, 200), Header(plan, ("id", "x"), "pyarrow", release_id=manifest["release"]))


def manifest_edit(change):
    def apply(folder):
        record = json.loads((folder / "_privfit.json").read_text())
        record.pop("checksum")
        change(record)
        (folder / "_privfit.json").write_text(sealed(record))

    return apply


DAMAGE = {
    "no manifest": (lambda f: (f / "_privfit.json").unlink(), "writing has not ended"),
    "missing": (lambda f: (f / "part-000001.parquet").unlink(), r"part-000001\.parquet is missing"),
    "last one missing": (lambda f: (f / "part-000002.parquet").unlink(), r"part-000002\.parquet is missing"),
    "extra": (
        lambda f: shutil.copy(f / "part-000001.parquet", f / "part-000003.parquet"),
        r"part-000003\.parquet is no part of it",
    ),
    "swapped": (swap, "holds part 1 of the release: parts were copied or swapped"),
    "duplicated": (
        lambda f: shutil.copy(f / "part-000000.parquet", f / "part-000001.parquet"),
        "holds part 0 of the release",
    ),
    "truncated": (truncate, "no Parquet file, or a damaged one"),
    "emptied": (lambda f: (f / "part-000001.parquet").write_bytes(b""), "no Parquet file, or a damaged one"),
    "of another release": (other_release, "a part of another release"),
    "fewer rows": (rewrite_part, "not those that the manifest lists"),
    "other law": (other_law, "not those of the other parts"),
    "without a law": (
        lambda f: pq.write_table(piece(100, 200), f / "part-000001.parquet"),
        "no record of a release",
    ),
    "manifest cut": (lambda f: (f / "_privfit.json").write_text("{"), "is no JSON"),
    "manifest without a part": (manifest_edit(lambda r: r["parts"].pop()), "not the sum"),
    "manifest in another order": (manifest_edit(lambda r: r["parts"].reverse()), "not in order"),
    "manifest with a digest too many": (
        manifest_edit(lambda r: r["parts"][0]["digests"].append("0" * 32)),
        "one digest per piece",
    ),
    "manifest of no parts": (manifest_edit(lambda r: r.update(parts=[], n_rows=0)), "one digest per piece"),
    "manifest with a digest changed": (
        manifest_edit(lambda r: r["parts"][0].update(digests=["0" * 32])),
        "not those that the manifest lists",
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_has_its_message(name, folder):
    change, message = DAMAGE[name]
    change(folder)
    with pytest.raises(ValueError, match=message):
        load_release(folder)


def test_a_part_alone_is_no_release(folder):
    with pytest.raises(ValueError, match="is part 1 of a release in parts; pass its folder"):
        load_release(folder / "part-000001.parquet")


def test_a_folder_takes_one_release(folder):
    with pytest.raises(FileExistsError, match="holds another release"):
        write_part(folder, 0, piece(0, 100), header())
    (folder / "_privfit.json").unlink()
    with pytest.raises(FileExistsError, match="holds another release"):
        write_part(folder, 0, piece(0, 100), header())
    (folder / "part-000000.parquet").write_text("something else")
    with pytest.raises(FileExistsError, match="holds another release"):
        write_part(folder, 0, piece(0, 100), header())


def test_finish_refuses_what_is_not_whole(tmp_path):
    head = header()
    parts = [write_part(tmp_path, k, piece(100 * k, 100 * k + 10), head) for k in range(3)]
    (tmp_path / ".part-000001.parquet.0011aabb.tmp").write_text("left by a worker that was killed")
    for some in ([], parts[1:], [parts[0], parts[2]], [*parts, PartInfo(1, 3, ("a",), parts[0].types)]):
        with pytest.raises(ValueError, match="numbered 0, 1"):
            finish_dataset(tmp_path, head, some)
    with pytest.raises(ValueError, match="part 2 has columns of types"):
        finish_dataset(tmp_path, head, [*parts[:2], PartInfo(2, 10, parts[2].digests, ("string", "double"))])
    with pytest.raises(FileExistsError, match=r"part-000002\.parquet, which is no part"):
        finish_dataset(tmp_path, head, parts[:2])
    assert not (tmp_path / "_privfit.json").exists()
    finish_dataset(tmp_path, head, parts)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["_privfit.json", *(f"part-00000{k}.parquet" for k in range(3))]
    (tmp_path / "part-000001.parquet").unlink()
    with pytest.raises(ValueError, match=r"has no part-000001\.parquet"):
        finish_dataset(tmp_path, head, parts)


def test_parts_have_the_columns_of_the_header(tmp_path):
    good = piece(0, 10)
    for table, message in [
        (good.select(["x", "id"]), r"columns \['id', 'x'\] in this order"),
        (good.drop_columns(["id"]), "in this order"),
        (good.set_column(1, "x", pa.array(range(10))), "'x' must be double"),
    ]:
        with pytest.raises(ValueError, match=message):
            write_part(tmp_path / "new", 0, table, header())
    assert not (tmp_path / "new").exists()
    for number in (-1, 1_000_000):
        with pytest.raises(ValueError, match="number must be"):
            write_part(tmp_path, number, good, header())


def test_an_empty_part_of_labels(tmp_path):
    plan = plan_release({"l": RandomizedResponse(1.0)}, Categories({"l": ["a", "b"]}))
    head = Header(plan, ("l",), "pandas")
    tables = [pa.table({"l": pa.array(["a"])}), pa.table({"l": pa.array([], pa.null())})]
    finish_dataset(tmp_path, head, [write_part(tmp_path, k, t, head) for k, t in enumerate(tables)])
    assert load_release(tmp_path).frame["l"].tolist() == ["a"]


def test_an_interrupted_file_leaves_nothing_behind(tmp_path):
    (tmp_path / "x").write_text("old")

    def interrupted():
        with replacing(tmp_path / "x") as temporary:
            temporary.write_text("ne")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (tmp_path / "x").read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_release_ids_differ():
    assert len({header().release_id for _ in range(10)}) == 10
