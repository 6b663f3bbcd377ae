"""release_file: the values of `release`, whatever the files, workers and crashes; never two keys, never half a file."""

import json
import os
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privfit.accounting import Budget, BudgetExceeded, Ledger
from privfit.mechanisms import (
    Box,
    Categories,
    Gaussian,
    RandomizedResponse,
    ZeroInflatedLaplace,
    load_release,
    release,
    sources,
    tasks,
    work_folder,
)
from privfit.mechanisms.digests import PART_ROWS as TRUE_PART_ROWS
from privfit.mechanisms.keystream import MasterKey
from privfit.mechanisms.streaming import release_file
from privfit.mechanisms.work_folder import work_path
from tests.mechanisms.crashing import PART_ROWS, shrink_parts

LAWS = {("a", "b"): Gaussian(8.0), "label": RandomizedResponse(1.0, 3)}
DOMAIN = (Box({"a": (0, 1), "b": (0, 9)}), Categories({"label": ["x", "y", "z"]}))
ROWS = 2 * PART_ROWS + 345
BIG = TRUE_PART_ROWS + 12_345
KEY = MasterKey(bytes(range(32)))

posix = pytest.mark.skipif(os.name != "posix", reason="signals")


def private(rows, seed=0):
    """A table with every kind of column that leaves, and one that does not."""
    rng = np.random.default_rng(seed)
    cells = rng.random(rows)
    cells[::100] = np.nan
    return pa.table(
        {
            "a": cells,
            "label": pa.array(rng.choice(["x", "y", "z", "?"], rows)).dictionary_encode(),
            "name": pa.array(np.arange(rows)).cast(pa.string()),
            "b": pa.array(rng.integers(0, 9, rows), mask=cells < 0.01),
            "open": pa.array(rng.choice(["p", "q"], rows)).dictionary_encode(),
        }
    )


@pytest.fixture(autouse=True)
def small_parts(request, monkeypatch):
    """Parts of a thousand rows, so that small tables have several; worker processes would not know of it."""
    if not {"big", "true_parts"} & set(request.fixturenames):
        shrink_parts(monkeypatch.setattr)


@pytest.fixture
def true_parts():
    """For tests with several processes."""


@pytest.fixture(scope="module")
def table():
    return private(ROWS)


@pytest.fixture(scope="module")
def big():
    return private(BIG)


def under_key(table, key=KEY):
    """What `release` gives under a key, as plain columns."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("privfit.mechanisms.releasing.fresh_master", lambda: key)
        return plain(release(table.drop_columns(["name"]), LAWS, DOMAIN, public=["open"]).frame)


@pytest.fixture(scope="module")
def expected(table):
    return under_key(table)


@pytest.fixture(scope="module")
def expected_big(big):
    return under_key(big)


@pytest.fixture
def one_key(monkeypatch):
    monkeypatch.setattr(work_folder, "fresh_master", lambda: KEY)


def plain(frame):
    return {name: frame[name].to_pylist() if name in ("label", "open") else frame[name].to_numpy() for name in
            frame.column_names}  # fmt: skip


def same(found, expected):
    assert list(found) == list(expected)
    for name, cells in expected.items():
        assert np.array_equal(found[name], cells), name


def call(source, target, **more):
    keywords = {"drop": ["name"], "workers": 1, "progress": False, **more}
    return release_file(source, target, LAWS, DOMAIN, ["open"], **keywords)


def write(table, path, kind):
    """Store a table in one of the ways that a source may have."""
    if kind == "folder":
        path.mkdir()
        cuts = [0, 400, 400, 1500, table.num_rows]
        for k, (start, stop) in enumerate(pairwise(cuts)):
            pq.write_table(table.slice(start, stop - start), path / f"part.{k + 8}.parquet", row_group_size=70)
        return path
    if kind == "arrow":
        path = path.with_suffix(".arrow")
        options = pa.ipc.IpcWriteOptions(compression="lz4", unify_dictionaries=True)
        with pa.ipc.new_file(str(path), table.schema, options=options) as writer:
            writer.write_table(table, 901)
        return path
    path = path.with_suffix(".parquet")
    pq.write_table(table, path, row_group_size=int(kind))
    return path


@pytest.mark.parametrize("kind", ["150", "1000", "1234567", "folder", "arrow"])
@pytest.mark.parametrize("target", ["out.parquet", "out.arrow", "out"])
def test_the_values_are_those_of_release(table, expected, one_key, tmp_path, kind, target):
    source = write(table, tmp_path / "in", kind)
    done = call(source, tmp_path / target)
    assert done.n_rows == ROWS and done.names == ("a", "label", "b", "open") and done.public == ("open",)
    loaded = load_release(tmp_path / target)
    same(plain(loaded.frame), expected)
    assert (loaded.law, loaded.domain, loaded.names) == (done.law, done.domain, done.names)
    assert sorted(child.name for child in tmp_path.iterdir()) == sorted([source.name, target])


@pytest.mark.parametrize(
    "kind, target, workers",
    [("1000000", "out.parquet", 2)]
    + [
        pytest.param(kind, target, workers, marks=pytest.mark.slow)
        for kind, target, workers in [
            ("1000000", "out.parquet", 1),
            ("50000", "out", 2),
            ("200000", "out.arrow", 3),
            ("arrow", "out.parquet", 2),
        ]
    ],
)
def test_the_values_are_the_same_for_any_number_of_workers(big, expected_big, one_key, tmp_path, kind, target, workers):
    source = write(big, tmp_path / "in", kind)
    call(source, tmp_path / target, workers=workers)
    same(plain(load_release(tmp_path / target).frame), expected_big)


@pytest.mark.parametrize("rows", [0, 1, PART_ROWS, PART_ROWS + 1])
@pytest.mark.parametrize("target", ["out.parquet", "out.arrow", "out"])
def test_tables_of_any_length(tmp_path, rows, target):
    pq.write_table(private(rows), tmp_path / "in.parquet")
    done = call(tmp_path / "in.parquet", tmp_path / target)
    loaded = done.load()
    assert done.n_rows == loaded.n_rows == rows
    assert loaded.frame.schema.field("label").type in (pa.string(), pa.large_string())


def test_two_calls_have_two_keys(table, tmp_path):
    source = write(table.slice(0, 1000), tmp_path / "in", "500")
    first, second = (call(source, tmp_path / name).load().frame["a"].to_numpy() for name in ("1.parquet", "2.parquet"))
    # equal by chance only: the grid has more than a thousand steps per scale
    assert (first == second).mean() < 0.01


def test_a_stochastic_rounding_is_that_of_release(tmp_path, one_key, monkeypatch):
    monkeypatch.setattr("privfit.mechanisms.releasing.fresh_master", lambda: KEY)
    table = pa.table({"x": np.linspace(0, 1, 20_000)})
    pq.write_table(table, tmp_path / "in.parquet")
    law, box = Gaussian(3.0), Box({"x": (0, 1)})
    done = release_file(tmp_path / "in.parquet", tmp_path / "o", law, box, rounding="stochastic", workers=1).load()
    assert done.rounding == "stochastic"
    wanted = release(table, law, box, rounding="stochastic").frame
    assert done.frame["x"].to_pylist() == wanted["x"].to_pylist()


def test_result_says_what_release_says(tmp_path):
    pq.write_table(pa.table({"x": np.zeros(1000)}), tmp_path / "in.parquet")
    law, box = ZeroInflatedLaplace(4.0, 0.01), Box({"x": (0, 1)})
    done = release_file(tmp_path / "in.parquet", tmp_path / "out.parquet", law, box, workers=1)
    other = release(pa.table({"x": np.zeros(1000)}), law, box)
    assert done.guarantee() == other.guarantee()
    with pytest.warns(UserWarning, match="about 10 of 1000 rows"):
        text = done.report()
    with pytest.warns(UserWarning, match="about 10 of 1000 rows"):
        assert text == other.report()


# what must be refused, and with what words


@pytest.mark.parametrize(
    "change, error, words",
    [
        ({"drop": []}, ValueError, "columns that no law releases: 'name'"),
        ({"drop": ["name", "b"]}, ValueError, "no column 'b'"),
        ({"drop": ["nobody"]}, ValueError, "drop names 'nobody'"),
        ({"workers": 0}, ValueError, "workers"),
        ({"workers": 1.5}, TypeError, "workers"),
        ({"progress": "yes"}, TypeError, "progress must be"),
        ({"label": "x"}, ValueError, "pass ledger"),
        ({"protect": "all"}, ValueError, "protect"),
    ],
)
def test_mistakes_are_refused_before_anything_is_written(tmp_path, change, error, words):
    pq.write_table(private(50), tmp_path / "in.parquet")
    with pytest.raises(error, match=words):
        call(tmp_path / "in.parquet", tmp_path / "out.parquet", **change)
    assert [child.name for child in tmp_path.iterdir()] == ["in.parquet"]


def test_mistakes_about_files(tmp_path):
    source = tmp_path / "in.parquet"
    pq.write_table(private(50), source)
    (tmp_path / "mixed").mkdir()
    (tmp_path / "mixed" / "x.csv").write_text("a\nSECRET\n")
    (tmp_path / "two").mkdir()
    pq.write_table(private(50), tmp_path / "two" / "a.parquet")
    pq.write_table(private(50).drop_columns(["b"]), tmp_path / "two" / "b.parquet")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 SECRET PAR1")
    before = sorted(tmp_path.rglob("*"))
    for given, target, error, words in [
        ("none.parquet", "o.parquet", FileNotFoundError, "there is no"),
        ("in.parquet", "o.csv", ValueError, "target must end in"),
        ("in.parquet", "no/o.parquet", FileNotFoundError, "no folder"),
        ("in.parquet", "in.parquet", ValueError, "private table itself"),
        ("two", "two/o.parquet", ValueError, "columns or types"),
        ("mixed", "o.parquet", ValueError, "Parquet files alone, got also x.csv"),
        ("bad.parquet", "o.parquet", ValueError, "cannot be read"),
        ("mixed/x.csv", "o.parquet", ValueError, "source must be"),
    ]:
        with pytest.raises(error, match=words) as caught:
            call(tmp_path / given, tmp_path / target)
        assert "SECRET" not in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_column_of_the_wrong_type_is_refused_before_the_ledger_is_charged(tmp_path):
    ledger = Ledger(Budget(9.0, 1e-4))
    pq.write_table(pa.table({"a": ["SECRET"] * 9, "b": [1.0] * 9}), tmp_path / "in.parquet")
    with pytest.raises(TypeError, match="column 'a' must hold") as caught:
        release_file(tmp_path / "in.parquet", tmp_path / "o.parquet", Gaussian(9.0), DOMAIN[0], ledger=ledger)
    assert "SECRET" not in str(caught.value) and not ledger.entries
    assert [child.name for child in tmp_path.iterdir()] == ["in.parquet"]


def test_a_target_inside_a_source_folder_is_refused(tmp_path):
    source = tmp_path / "in"
    source.mkdir()
    pq.write_table(private(50), source / "a.parquet")
    with pytest.raises(ValueError, match="inside its folder"):
        call(source, source / "out.parquet")


def test_a_ledger_refuses(tmp_path):
    pq.write_table(private(50), tmp_path / "in.parquet")
    ledger = Ledger(Budget(0.01, 1e-9), tmp_path / "book")
    with pytest.raises(BudgetExceeded):
        call(tmp_path / "in.parquet", tmp_path / "out.parquet", ledger=ledger)
    assert sorted(child.name for child in tmp_path.iterdir()) == ["book", "in.parquet"]


# going on after an interruption


class Interrupted:
    """Lets `count` calls of a function through and then raises."""

    def __init__(self, function, count, error):
        self.function, self.left, self.error = function, count, error

    def __call__(self, *arguments, **keywords):
        if self.left == 0:
            raise self.error
        self.left -= 1
        return self.function(*arguments, **keywords)


def interrupt(monkeypatch, source, target, parts, error, **more):
    """Begin a release and stop it after some parts."""
    with monkeypatch.context() as patch:
        patch.setattr(tasks, "write_part", Interrupted(tasks.write_part, parts, error))
        with pytest.raises(type(error)) as caught:
            call(source, target, **more)
    return caught.value


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device"), MemoryError()])
def test_an_interrupted_release_goes_on(table, expected, one_key, tmp_path, monkeypatch, error):
    source, target = write(table, tmp_path / "in", "700"), tmp_path / "out.parquet"
    ledger = Ledger(Budget(9.0, 1e-4))
    caught = interrupt(monkeypatch, source, target, 2, error, ledger=ledger, label="wave 1")
    assert any("the same call goes on from there" in note for note in caught.__notes__)
    assert not target.exists() and len(ledger.entries) == 1
    kept = {path.name: path.stat().st_mtime_ns for path in work_path(target).glob("parts-*/*")}
    assert len(kept) == 2
    made = []
    write_part = tasks.write_part
    monkeypatch.setattr(tasks, "write_part", lambda *a: made.append(a[1]) or write_part(*a))
    call(source, target, ledger=ledger, label="wave 1")
    assert made == [2] and len(ledger.entries) == 1
    same(plain(load_release(target).frame), expected)
    assert not work_path(target).exists()


def test_a_damaged_part_is_made_again(table, expected, one_key, tmp_path, monkeypatch):
    source, target = write(table, tmp_path / "in", "700"), tmp_path / "out"
    interrupt(monkeypatch, source, target, 2, KeyboardInterrupt())
    first, second = sorted(work_path(target).glob("parts-*/*"))
    first.write_bytes(first.read_bytes()[:5000])
    second.write_bytes(b"")
    call(source, target)
    same(plain(load_release(target).frame), expected)


@pytest.mark.parametrize(
    "change, named",
    [
        ("law", "law"),
        ("domain", "domain"),
        ("drop", "drop, public"),
        ("rounding", "rounding"),
        ("ledger", "ledger"),
        ("version", "version of privfit"),
        ("source", "source"),
        ("touched", "source"),
    ],
)
def test_another_call_does_not_go_on(tmp_path, monkeypatch, change, named):
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(private(50), source)
    interrupt(monkeypatch, source, target, 0, KeyboardInterrupt())
    law, domain, public, more = LAWS, DOMAIN, ["open"], {"drop": ["name"]}
    if change == "law":
        law = {**LAWS, ("a", "b"): Gaussian(8.5)}
    elif change == "domain":
        domain = (Box({"a": (0, 1), "b": (0, 8)}), DOMAIN[1])
    elif change == "drop":
        public, more = None, {"drop": ["name", "open"]}
    elif change == "rounding":
        more["rounding"] = "stochastic"
    elif change == "ledger":
        more["ledger"] = Ledger(Budget(9.0, 1e-4))
    elif change == "version":
        monkeypatch.setattr("privfit.mechanisms.law_record._version", lambda: "0.0")
    elif change == "source":
        pq.write_table(private(50, seed=1), source)
    else:
        os.utime(source, ns=(1, 1))
    with pytest.raises(ValueError, match=rf"differs from this call in: {named}\.") as caught:
        release_file(source, target, law, domain, public, workers=1, **more)
    assert "counts as released" in str(caught.value)
    assert not target.exists() and (work_path(target) / "key").exists()


def test_a_source_that_changes_under_way_is_noticed(table, tmp_path, monkeypatch):
    source, target = write(table, tmp_path / "in", "700"), tmp_path / "out.parquet"
    write_part = tasks.write_part

    def change(*arguments):
        os.utime(source, ns=(1, 1))
        return write_part(*arguments)

    monkeypatch.setattr(tasks, "write_part", change)
    with pytest.raises(ValueError, match="was changed while it was being released"):
        call(source, target)
    assert not target.exists()


def test_a_second_process_is_refused_and_the_first_one_is_not_disturbed(table, tmp_path, monkeypatch):
    source, target = write(table, tmp_path / "in", "700"), tmp_path / "out.parquet"
    write_part = tasks.write_part

    def meanwhile(*arguments):
        with pytest.raises(BlockingIOError, match="another process is writing"):
            call(source, target)
        return write_part(*arguments)

    monkeypatch.setattr(tasks, "write_part", meanwhile)
    assert call(source, target).load().n_rows == ROWS


@posix
@pytest.mark.slow
def test_a_killed_worker_is_named_and_the_same_call_goes_on(big, expected_big, one_key, tmp_path):
    source, target = write(big, tmp_path / "in", "50000"), tmp_path / "out.parquet"

    def kill(done, total):
        me = os.getpid()
        children = Path(f"/proc/{me}/task/{me}/children").read_text().split()
        workers = [pid for pid in children if "loky" in Path(f"/proc/{pid}/cmdline").read_text()]
        for pid in workers:
            os.kill(int(pid), signal.SIGKILL)

    if not Path("/proc/self/task").is_dir():
        pytest.skip("finds its workers in /proc")
    with pytest.raises(ChildProcessError, match="worker process was killed") as caught:
        call(source, target, workers=2, progress=kill)
    assert any("same call" in note for note in caught.value.__notes__) and not target.exists()
    call(source, target, workers=2)
    same(plain(load_release(target).frame), expected_big)


def test_progress_is_told(table, tmp_path, capsys):
    source, seen = write(table, tmp_path / "in", "700"), []
    call(source, tmp_path / "1.parquet", progress=lambda done, total: seen.append((done, total)))
    assert seen == [(PART_ROWS, ROWS), (2 * PART_ROWS, ROWS), (ROWS, ROWS)]
    call(source, tmp_path / "2.parquet", progress=None)
    assert capsys.readouterr() == ("", "")
    call(source, tmp_path / "3.parquet", progress=True)
    out, err = capsys.readouterr()
    assert out == "" and f"{ROWS}/{ROWS}" in err


# crashes at every step: a helper process is killed at its k-th change of the file system

CRASH = Path(__file__).with_name("crashing.py")


def crash_run(folder, *arguments):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, CRASH, folder, *map(str, arguments)], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@posix
@pytest.mark.parametrize(
    "target, stride",
    [("out.parquet", 11)]
    + [pytest.param(name, 1, marks=pytest.mark.slow) for name in ("out.parquet", "out.arrow", "out")],
)
def test_killed_at_every_step_a_release_goes_on_to_the_same_result(tmp_path, target, stride):
    found = crash_run(tmp_path, target, stride)
    # the steps of a whole run: state, ledger, key, parts, whole, delivery, removal
    assert found["steps"] >= 60
    assert found["wrong"] == []
    # charged again only if the crash came between the ledger's line and the note of it; never less than once
    assert set(found["charges"]) <= {1, 2} and found["charges"].count(2) <= 12 / stride + 1


@posix
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_killed_at_random_moments_a_release_goes_on_to_the_same_result(big, tmp_path, seed):
    """All processes, or the parent alone, are killed again and again, at moments that know nothing of the steps.

    Keys are real, and noted as they are drawn: the result is that of `release` under the last one, and of no other.
    """
    source, target = write(big, tmp_path / "in", "50000"), tmp_path / ("out", "out.parquet")[seed % 2]
    rng = np.random.default_rng(seed)
    program = (
        "from pathlib import Path; from tests.mechanisms import crashing, test_streaming; "
        f"crashing.noted_key(Path({str(tmp_path)!r})); "
        f"test_streaming.call({str(source)!r}, {str(target)!r}, workers={1 + seed % 3})"
    )
    kills = 0
    for attempt in range(60):
        command = [sys.executable, "-c", program]
        process = subprocess.Popen(command, cwd=Path(__file__).parents[2], start_new_session=True)
        try:
            assert process.wait(rng.uniform(1.5, 3.0 + attempt)) == 0
            break
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL) if seed < 2 else process.kill()
            process.wait()
            kills += 1
        if target.exists():
            load_release(target)
            if not (work_path(target) / "state.json").exists():
                break
    assert kills
    (*_, key) = (tmp_path / "keys").read_text().split()
    same(plain(load_release(target).frame), under_key(big, MasterKey.fromhex(key)))
    assert not list(tmp_path.rglob("key"))


# memory


@posix
@pytest.mark.slow
def test_memory_does_not_grow_with_the_table(tmp_path, true_parts):
    """Peak memory of a process, in MB, for one million and five million rows in one row group."""
    if not Path("/proc/self/status").exists():
        pytest.skip("reads its memory in /proc")
    peaks = []
    for millions in (1, 5):
        path = tmp_path / f"{millions}.parquet"
        rng = np.random.default_rng(0)
        pq.write_table(pa.table({f"x{j}": rng.random(millions * 10**6) for j in range(8)}), path, row_group_size=10**9)
        program = (
            "from privfit.mechanisms import Gaussian, Box; "
            "from privfit.mechanisms.streaming import release_file; "
            f"release_file({str(path)!r}, {str(tmp_path / 'o.parquet')!r}, Gaussian(2.0), "
            "Box({f'x{j}': (0, 1) for j in range(8)}), workers=1, overwrite=True); "
            "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
        )
        peaks.append(int(subprocess.check_output([sys.executable, "-c", program])) / 1e3)
    # 32 MB per million rows and column; the table of five million rows has 320 MB
    assert peaks[1] < peaks[0] + 60 and peaks[1] < 450


def test_a_giant_row_group_is_decoded_once_per_worker_and_in_pieces(table, tmp_path, monkeypatch):
    """Neither quadratic time nor the whole row group in memory: the rows of all batches are counted."""
    path = write(table, tmp_path / "in", "10000000")
    assert pq.ParquetFile(path).num_row_groups == 1
    decoded = []
    batches_of = sources.Reader._batches_of

    def counted(self, file, groups):
        for batch in batches_of(self, file, groups):
            decoded.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(sources.Reader, "_batches_of", counted)
    monkeypatch.setattr(sources, "_BATCH_ROWS", 300)
    call(path, tmp_path / "out.parquet")
    assert sum(decoded) == ROWS and max(decoded) <= 300


def test_readers_do_not_outlive_a_call(table, tmp_path, monkeypatch):
    path = write(table, tmp_path / "in", "10000000")
    interrupt(monkeypatch, path, tmp_path / "out.parquet", 1, KeyboardInterrupt())
    assert tasks._readers == {}
