"""No other rows meet the noise of a part: seals are keyed, written before the noise, and refuse what does not fit."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privfit.mechanisms import (
    Box,
    Categories,
    Gaussian,
    RandomizedResponse,
    load_release,
    release_dask,
    release_file,
    tasks,
)
from privfit.mechanisms.frames import read_table
from privfit.mechanisms.plan import plan_release
from privfit.mechanisms.row_seals import seal_rows

BOX = Box({"x": (0, 1)})
PLAN = plan_release(
    {"x": Gaussian(1.0), "l": RandomizedResponse(1.0)}, (BOX, Categories({"l": ["a", "b"]})), public=["p"]
)


def table(x=0.5, label="a", p=1):
    return read_table(pa.table({"x": [0.1, x], "l": ["b", label], "p": [0, p]}), PLAN.columns)


def test_the_same_rows_fit_and_others_do_not(tmp_path):
    for number, key in ((0, bytes(32)), (1, bytes(32)), (0, bytes(31) + b"1")):
        folder = tmp_path / key.hex()[-2:]
        folder.mkdir(exist_ok=True)
        for rows in (table(), table(), table(p=2)):  # nothing protects a public cell
            seal_rows(folder, number, PLAN, rows, key)
        for other in (table(x=np.nextafter(0.5, 1)), table(x=None), table(label="b")):
            with pytest.raises(ValueError, match=f"part {number} are not those"):
                seal_rows(folder, number, PLAN, other, key)


def test_seals_say_nothing_without_the_key(tmp_path):
    seals = set()
    for k in range(20):
        folder = tmp_path / str(k)
        folder.mkdir()
        seal_rows(folder, 0, PLAN, table(), bytes([k]) * 32)
        (file,) = (folder / "rows").iterdir()
        seals.add(file.read_bytes())
        assert file.stat().st_mode & 0o077 == 0
    assert len(seals) == 20 and all(len(seal) == 32 for seal in seals)


def test_a_source_edited_unnoticeably_does_not_meet_the_noise_of_the_first(tmp_path, monkeypatch):
    """The fingerprint of the file is blinded: only the seal can tell."""
    from privfit.mechanisms.sources import Source

    monkeypatch.setattr(Source, "fingerprint", lambda self: "the same")
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.table({"x": [0.2, 0.4]}), source)
    with monkeypatch.context() as crash:
        crash.setattr(tasks, "write_part", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(OSError, match="disk full"):
            release_file(source, target, Gaussian(1.0), BOX, workers=1)
    pq.write_table(pa.table({"x": [0.2, 0.6]}), source)
    with pytest.raises(ValueError, match="are not those it was begun with"):
        release_file(source, target, Gaussian(1.0), BOX, workers=1)
    assert not target.exists()
    pq.write_table(pa.table({"x": [0.2, 0.4]}), source)
    release_file(source, target, Gaussian(1.0), BOX, workers=1)
    assert load_release(target).n_rows == 2 and not (tmp_path / "out.parquet.unfinished").exists()


def test_a_dask_source_that_changes_behind_its_name_does_not_meet_the_noise_of_the_first(tmp_path, monkeypatch):
    import dask
    import dask.dataframe as dd

    from privfit.mechanisms import dask_tasks

    held = {"x": 0.25}
    frame = dd.from_map(lambda _: pd.DataFrame({"x": [held["x"], 0.5]}), [0], meta=pd.DataFrame({"x": [0.0]}))
    with dask.config.set(scheduler="synchronous"):
        with monkeypatch.context() as crash:
            crash.setattr(dask_tasks, "write_part", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
            with pytest.raises(OSError):
                release_dask(frame, tmp_path / "out", Gaussian(1.0), BOX)
        held["x"] = 0.75
        with pytest.raises(ValueError, match="are not those it was begun with"):
            release_dask(frame, tmp_path / "out", Gaussian(1.0), BOX)
        held["x"] = 0.25
        assert release_dask(frame, tmp_path / "out", Gaussian(1.0), BOX).n_rows == 2
