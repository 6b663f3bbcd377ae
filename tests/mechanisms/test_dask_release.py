"""A Dask release is the release of the whole table, however it is cut, run, repeated or interrupted."""

import itertools
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privfit.accounting import Budget, BudgetExceeded, Ledger
from privfit.mechanisms import (
    Box,
    Categories,
    Gaussian,
    RandomizedResponse,
    ZeroInflatedLaplace,
    dataset,
    load_release,
    release,
    releasing,
    work_folder,
)
from privfit.mechanisms.dask_release import release_dask
from privfit.mechanisms.dask_tasks import Failure, Job, key_digest, release_partition
from privfit.mechanisms.keystream import MasterKey
from privfit.mechanisms.law_record import Header
from privfit.mechanisms.plan import plan_release

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")

KEY = MasterKey(bytes(range(1, 33)))
ROWS = 9000
LAW = {
    ("age", "hours", "born"): ZeroInflatedLaplace([20.0, 20.0, 20_000.0], 0.01),
    "answer": RandomizedResponse(1.0, 2),
}
DOMAIN = (
    Box({"age": (17, 90), "hours": (0, 80), "born": (date(1900, 1, 1), date(2010, 1, 1))}),
    Categories({"answer": ["no", "yes"]}),
)
PUBLIC = ["state", "wave"]
AGE = Box({"age": (17, 90)})


def people(rows=ROWS):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "age": rng.uniform(10, 100, rows),
            "wave": rng.integers(1, 4, rows),
            "hours": rng.integers(0, 90, rows),
            "answer": rng.choice(["no", "yes", "other"], rows),
            "born": np.datetime64("1950-01-01", "s") + rng.integers(0, 2 * 10**9, rows),
            "state": pd.Categorical(rng.choice(["north", "south", "west"], rows)),
        },
        index=np.arange(rows) + 7,
    )
    frame.loc[frame.index[::11], "age"] = np.nan
    return frame


@pytest.fixture
def key(monkeypatch):
    """The master key of every release of a test."""
    monkeypatch.setattr(work_folder, "fresh_master", lambda: KEY)
    monkeypatch.setattr(releasing, "fresh_master", lambda: KEY)


pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")  # Dask's own


@pytest.fixture(autouse=True)
def synchronous():
    with dask.config.set(scheduler="synchronous"):
        yield


def ages(rows=9, npartitions=3):
    return dd.from_pandas(pd.DataFrame({"age": np.linspace(20.0, 30.0, rows)}), npartitions=npartitions)


def same(one, two):
    pd.testing.assert_frame_equal(one, two, check_exact=True, check_categorical=False, check_dtype=False)


@pytest.mark.parametrize("partitions", [pytest.param(1, marks=pytest.mark.slow), 2, 7])
def test_values_are_those_of_the_whole_table_for_any_number_of_partitions(partitions, key, tmp_path):
    frame = people()
    wanted = release(frame, LAW, DOMAIN, public=PUBLIC)
    out = release_dask(dd.from_pandas(frame, npartitions=partitions), tmp_path / "out", LAW, DOMAIN, public=PUBLIC)
    assert len(list((tmp_path / "out").glob("part-*.parquet"))) == partitions
    assert out.n_rows == ROWS and out.names == wanted.names and out.law == wanted.law
    got = load_release(tmp_path / "out")
    same(got.frame, wanted.frame.astype({"state": str}))
    assert got.secure and got.columns == wanted.columns and got.public == wanted.public
    assert out.domain == wanted.domain and out.guarantee().slack == wanted.guarantee().slack
    # Only the release is left: no key, no work folder.
    assert [child.name for child in tmp_path.iterdir()] == ["out"]
    assert not any(bytes(KEY) in child.read_bytes() for child in (tmp_path / "out").iterdir())


def test_partitions_of_any_length_also_without_rows_or_from_parquet(key, tmp_path):
    frame = people(5000)
    wanted = release(frame, LAW, DOMAIN, public=PUBLIC).frame.astype({"state": str})
    cuts = [0, 0, 1, 1024, 1025, 4000, 5000, 5000]
    pieces = [frame.iloc[a:b] for a, b in itertools.pairwise(cuts)]
    uneven = dd.from_map(lambda piece: piece, pieces, meta=frame.iloc[:0])
    release_dask(uneven, tmp_path / "uneven", LAW, DOMAIN, public=PUBLIC)
    same(load_release(tmp_path / "uneven").frame, wanted)
    uneven.to_parquet(tmp_path / "private", write_index=False)
    stored = dd.read_parquet(tmp_path / "private")
    release_dask(stored, tmp_path / "stored", LAW, DOMAIN, public=PUBLIC)
    same(load_release(tmp_path / "stored").frame, wanted)


@pytest.mark.parametrize("scheduler", ["threads", pytest.param("processes", marks=pytest.mark.slow)])
def test_any_scheduler_gives_the_same(scheduler, key, tmp_path):
    frame = people(3000)
    with dask.config.set(scheduler=scheduler, num_workers=2):
        release_dask(dd.from_pandas(frame, npartitions=5), tmp_path / "out", LAW, DOMAIN, public=PUBLIC)
    wanted = release(frame, LAW, DOMAIN, public=PUBLIC).frame.astype({"state": str})
    same(load_release(tmp_path / "out").frame, wanted)


def test_two_releases_have_different_noise(tmp_path):
    for name in "ab":
        release_dask(ages(), tmp_path / name, Gaussian(20.0), AGE)
    one, two = (load_release(tmp_path / name).frame for name in "ab")
    assert (one != two).to_numpy().all()


def failing(times, monkeypatch, leave=b""):
    """Let the first parts fail after something was written under their own name."""
    real, failed = dataset.write_parquet, []

    def write(path, *rest):
        if len(failed) < times:
            failed.append(path.name)
            path.write_bytes(leave)
            raise OSError(28, "No space left on device")
        real(path, *rest)

    monkeypatch.setattr(dataset, "write_parquet", write)
    return failed


def test_a_task_that_fails_after_half_of_its_part_is_repeated_with_the_same_bytes(key, tmp_path, monkeypatch):
    release_dask(ages(), tmp_path / "good", Gaussian(20.0), AGE)
    half = (tmp_path / "good" / "part-000000.parquet").read_bytes()[:400]
    failed = failing(2, monkeypatch, half)
    release_dask(ages(), tmp_path / "again", Gaussian(20.0), AGE)
    assert len(failed) == 2
    same(load_release(tmp_path / "again").frame, load_release(tmp_path / "good").frame)


def test_a_release_that_was_given_up_goes_on_under_its_key_and_is_charged_once(tmp_path, monkeypatch):
    ledger = Ledger(Budget(1.0, 1e-5))
    law = Gaussian.calibrate(Budget(0.9, 1e-5), AGE)
    done = {}
    with monkeypatch.context() as patch:
        failing(100, patch)
        with pytest.raises(OSError, match="No space left on device") as info:
            release_dask(ages(), tmp_path / "out", law, AGE, ledger=ledger, label="wave")
    assert "goes on from there" in info.value.__notes__[0]
    unfinished = tmp_path / "out.unfinished"
    done["key"] = (unfinished / "key").read_bytes()
    assert (unfinished / "key").stat().st_mode & 0o77 == 0 and not (tmp_path / "out").exists()
    # Another frame under this key would reveal what differs.
    with pytest.raises(ValueError, match="source"):
        release_dask(ages(8), tmp_path / "out", law, AGE, ledger=ledger, label="wave")
    with pytest.raises(ValueError, match="law"):
        release_dask(ages(), tmp_path / "out", Gaussian(1.0), AGE, ledger=ledger, label="wave")
    release_dask(ages(), tmp_path / "out", law, AGE, ledger=ledger, label="wave")
    assert len(ledger.entries) == 1 and not unfinished.exists()
    monkeypatch.setattr(releasing, "fresh_master", lambda: done["key"])
    same(load_release(tmp_path / "out").frame, release(ages().compute(), law, AGE).frame)


def test_a_ledger_that_refuses_leaves_nothing(tmp_path):
    ledger = Ledger(Budget(0.1, 1e-5))
    with pytest.raises(BudgetExceeded):
        release_dask(ages(), tmp_path / "out", Gaussian(1.0), AGE, ledger=ledger)
    assert list(tmp_path.iterdir()) == [] and not ledger.entries


def test_data_that_change_their_length_are_refused(tmp_path):
    reads = []

    def read(number):
        reads.append(number)
        return pd.DataFrame({"age": np.full(3 + len(reads) // 3, 54321.5)})

    frame = dd.from_map(read, range(2), meta=pd.DataFrame({"age": [0.0]}))
    with pytest.raises(ValueError, match="partition 0: it has 4 rows and had 3 when they were counted") as info:
        release_dask(frame, tmp_path / "out", Gaussian(20.0), AGE)
    assert "54321" not in str(info.value)


@pytest.mark.parametrize(
    ("declared", "cells", "message"),
    [
        (0, {"age": ["secret-cell"] * 2, "id": [1, 2]}, "must hold real numbers"),
        (0, {"age": [54321.5] * 2, "id": ["secret-cell", "2"]}, "does not have the columns and types"),
        (0, {"age": [54321.5] * 2, "id": [2**53 + 1.0, 54321.5]}, "does not have the columns and types"),
        (0, {"age": [54321.5] * 2, "ID": [1, 2]}, "does not have the columns and types"),
        (0, {"age": [54321.5] * 2, "id": [("secret-cell",), 1]}, "does not have the columns and types"),
    ],
)
def test_partitions_that_are_not_what_dask_declares_fail_without_a_cell(declared, cells, message, tmp_path, caplog):
    meta = pd.DataFrame({"age": [0.0], "id": [declared]}).iloc[:0]
    frame = dd.from_map(lambda c: pd.DataFrame(c), [cells], meta=meta)
    with caplog.at_level(logging.DEBUG), pytest.raises((ValueError, TypeError), match=message) as info:
        release_dask(frame, tmp_path / "out", Gaussian(20.0), AGE, public=["id"])
    shown = caplog.text
    error = info.value
    while error is not None:
        shown += repr(error) + "".join(getattr(error, "__notes__", []))
        error = error.__cause__ or error.__context__
    assert "secret" not in shown and "54321" not in shown


def test_the_key_is_in_no_graph_and_in_no_text(key, tmp_path, caplog):
    import cloudpickle
    from dask.local import get_sync

    seen = []

    def scheduler(graph, keys, **options):
        tasks = dict(graph.__dask_graph__()) if hasattr(graph, "__dask_graph__") else dict(graph)
        seen.append(cloudpickle.dumps(graph) + cloudpickle.dumps(tasks) + repr((tasks, keys)).encode())
        out = get_sync(graph, keys, **options)
        seen.append(cloudpickle.dumps(out) + repr(out).encode())
        return out

    with caplog.at_level(logging.DEBUG), dask.config.set(scheduler=scheduler):
        release_dask(ages(), tmp_path / "out", Gaussian(20.0), AGE)
    everything = b"".join(seen) + caplog.text.encode()
    assert len(seen) == 4 and b"release_partition" in everything
    for form in (bytes(KEY), KEY.hex().encode(), bytes.__repr__(KEY).encode()[2:-1], str(list(KEY)).encode()):
        assert form not in everything
    # Nor are released values: a task returns numbers of rows and digests.
    released = load_release(tmp_path / "out").frame["age"].to_numpy()
    assert not any(value.tobytes() in everything or repr(float(value)).encode() in everything for value in released)


def job_in(folder, digest=None):
    header = Header(plan_release(Gaussian(20.0), AGE), ("age",), "pandas")
    return Job(header, pa.schema([("age", pa.float64())]), folder, folder / "parts", digest or key_digest(KEY))


def test_a_worker_of_a_release_that_is_over_or_out_of_reach_makes_nothing(tmp_path):
    rows = pd.DataFrame({"age": [30.0]})
    gone = release_partition(rows, 0, 0, 1, job_in(tmp_path / "gone"))
    assert isinstance(gone, Failure) and gone.kind == "OSError" and "All workers need access" in gone.text
    (tmp_path / "key").write_bytes(bytes(32))
    other = release_partition(rows, 0, 0, 1, job_in(tmp_path))
    assert other == Failure("RuntimeError", "partition 0: this release is over.")
    (tmp_path / "key").write_bytes(KEY)
    assert release_partition(rows, 0, 0, 1, job_in(tmp_path)).rows == 1


def test_a_worker_with_another_version_makes_nothing(tmp_path):
    job = job_in(tmp_path)
    object.__setattr__(job.header, "version", "0.0.1")
    out = release_partition(pd.DataFrame({"age": [30.0]}), 0, 0, 1, job)
    assert out.kind == "RuntimeError" and "install the same version" in out.text


def test_progress_tells_every_row_once(tmp_path):
    told = []
    release_dask(ages(), tmp_path / "out", Gaussian(20.0), AGE, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (9, 9) and told == sorted(set(told))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"frame": pd.DataFrame({"age": [1.0]})}, TypeError, "frame must be a dask.dataframe.DataFrame, got DataFrame"),
        ({"frame": ages().age}, TypeError, "got Series"),
        ({"frame": ages().rename(columns={"age": "years"})}, ValueError, "no column 'age'"),
        ({"frame": ages().assign(more=1.0)}, ValueError, "no law releases: 'more'"),
        ({"frame": ages().astype({"age": str})}, TypeError, "column 'age' must hold real numbers"),
        ({"law": "noise"}, TypeError, "law must be"),
        ({"domain": None}, TypeError, "domain must be"),
        ({"rounding": "up"}, ValueError, "rounding"),
        ({"progress": 3}, TypeError, "progress"),
        ({"protect": "all"}, ValueError, "protect"),
        ({"label": "wave"}, ValueError, "label"),
        ({"folder": "out.parquet"}, ValueError, "folder must be a name without an ending"),
        ({"folder": "there/no"}, FileNotFoundError, "folder"),
    ],
)
def test_parameters_that_are_refused_before_anything_happens(change, error, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = {"frame": ages(), "folder": "out", "law": Gaussian(20.0), "domain": AGE, **change}
    with pytest.raises(error, match=message):
        release_dask(**options)
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_stays_and_undeclared_public_columns_are_refused(tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(FileExistsError, match="folder that is there already"):
        release_dask(ages(), tmp_path / "out", Gaussian(20.0), AGE)
    with dask.config.set({"dataframe.convert-string": False}):
        frame = dd.from_pandas(pd.DataFrame({"age": [1.0], "id": np.array([b"a"], dtype=object)}), npartitions=1)
        with pytest.raises(TypeError, match="public column 'id' has no declared type"):
            release_dask(frame, tmp_path / "new", Gaussian(20.0), AGE, public=["id"])


def test_without_dask_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "privfit\[dask\]"'):
        release_dask(None, tmp_path / "out", Gaussian(20.0), AGE)


def test_importing_the_module_needs_no_dask():
    code = "import privfit.mechanisms.dask_release, sys; sys.exit('dask' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("lazy", [ages(), pl.LazyFrame({"age": [1.0]})], ids=["dask", "polars"])
def test_release_itself_refuses_lazy_tables(lazy):
    with pytest.raises(TypeError, match="lazy"):
        release(lazy, Gaussian(20.0), AGE)


def slow_partition(number, folder):
    """Thirty rows, after a pause in which a worker may be killed."""
    (Path(folder) / f"begun-{number}-{os.getpid()}-{time.monotonic_ns()}").touch()
    time.sleep(0.3)
    return pd.DataFrame({"age": np.linspace(20.0, 60.0, 30) + number})


@pytest.mark.slow
def test_a_killed_worker_loses_nothing_and_spills_no_key(key, tmp_path):
    distributed = pytest.importorskip("distributed")
    (tmp_path / "notes").mkdir()
    frame = dd.from_map(slow_partition, range(8), folder=str(tmp_path / "notes"), meta=pd.DataFrame({"age": [0.0]}))
    # Everything that a worker holds goes to its disk at once.
    spill = {"distributed.worker.memory.target": 1e-9, "distributed.worker.memory.spill": 1e-9}
    with (
        dask.config.set({**spill, "scheduler": None}),
        distributed.LocalCluster(2, processes=True, threads_per_worker=1, dashboard_address=None,
                                 local_directory=str(tmp_path / "spill")) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        killed, spilled = [], []

        def kill():
            parts = tmp_path / "out.unfinished"
            while not list(parts.glob("parts-*/part-*")):
                time.sleep(0.01)
            pid = next(iter(client.run(os.getpid).values()))
            os.kill(pid, signal.SIGKILL)
            killed.append(len(list(parts.glob("parts-*/part-*"))))

        def look():
            while not killed or (tmp_path / "out.unfinished").exists():
                for path in (tmp_path / "spill").rglob("*"):
                    try:
                        spilled.append(path.read_bytes())
                    except OSError:
                        continue
                time.sleep(0.02)

        threads = [threading.Thread(target=target, daemon=True) for target in (kill, look)]
        for thread in threads:
            thread.start()
        release_dask(frame, tmp_path / "out", Gaussian(20.0), AGE)
        for thread in threads:
            thread.join(60)
        logs = repr(client.get_worker_logs()) + repr(cluster.get_logs()) + repr(client.get_events())
    assert killed and killed[0] < 8
    whole = pd.DataFrame({"age": np.concatenate([np.linspace(20.0, 60.0, 30) + k for k in range(8)])})
    same(load_release(tmp_path / "out").frame, release(whole, Gaussian(20.0), AGE).frame)
    # Reads of partitions, counting and releasing: some more than twice each because of the kill.
    assert len(list((tmp_path / "notes").iterdir())) > 16
    assert any(b"PartInfo" in text or b"age" in text for text in spilled)
    for form in (bytes(KEY), KEY.hex().encode(), bytes.__repr__(KEY).encode()[2:-1]):
        assert form.decode("latin1") not in logs and not any(form in text for text in spilled)
