"""The work folder: one key per release, one release per key, charged before it is drawn, gone when it is over."""

import json
import multiprocessing
import os
import stat

import pytest

from privfit.accounting import GDP, BudgetExceeded, Ledger, gaussian
from privfit.mechanisms import Box, Gaussian
from privfit.mechanisms.charging import spending
from privfit.mechanisms.keystream import KEY_BYTES
from privfit.mechanisms.plan import plan_release
from privfit.mechanisms.work_folder import is_delivered, work_folder, work_path

PLAN = plan_release(Gaussian(4.0), Box({"x": (0, 1)}))
RECORD = {"law": "a", "rows": 3, "public": ["x"]}

posix = pytest.mark.skipif(os.name != "posix", reason="file permissions and flock")


@pytest.fixture
def target(tmp_path):
    return tmp_path / "out.parquet"


def deliver(work, text="released"):
    work.whole_path.write_text(text)
    work.note_whole()
    work.deliver()


def test_a_release_leaves_its_target_and_nothing_else(target):
    with work_folder(target, RECORD) as work:
        work.master()
        work.parts.mkdir()
        (work.parts / "part").write_text("a part")
        deliver(work)
    assert [child.name for child in target.parent.iterdir()] == ["out.parquet"]
    assert target.read_text() == "released"


def test_the_same_call_goes_on_with_the_same_key_and_number(target):
    with work_folder(target, RECORD) as work:
        key, number = bytes(work.master()), work.release_id
        assert len(key) == KEY_BYTES and bytes(work.master()) == key
    with work_folder(target, RECORD) as again:
        assert (bytes(again.master()), again.release_id) == (key, number)
        deliver(again)
    with work_folder(target, RECORD, overwrite=True) as new:
        assert bytes(new.master()) != key and new.release_id != number


@posix
def test_only_the_owner_can_read_the_folder_and_the_key(target):
    with work_folder(target, RECORD) as work:
        key = work.master()
        assert stat.S_IMODE(work.path.stat().st_mode) == 0o700
        holding = [child for child in work.path.rglob("*") if child.is_file() and bytes(key) in child.read_bytes()]
        assert [child.name for child in holding] == ["key"]
        assert all(stat.S_IMODE(child.stat().st_mode) == 0o600 for child in work.path.iterdir())
        assert key.hex() not in (work.path / "state.json").read_text() and key.hex() not in repr(work)


@pytest.mark.parametrize(
    "changes, named",
    [({"law": "b"}, "law"), ({"rows": 4, "public": []}, "public, rows"), ({"more": 1}, "more")],
)
def test_another_release_to_the_same_target_is_refused_with_what_differs(target, changes, named):
    with work_folder(target, RECORD) as work:
        key = bytes(work.master())
    with pytest.raises(ValueError, match=f"differs from this call in: {named}\\.") as caught, work_folder(
        target, {**RECORD, **changes}
    ):
        pass
    assert "as it was" in str(caught.value) and "delete" in str(caught.value)
    assert "counts as released" in str(caught.value)
    with work_folder(target, RECORD) as work:
        assert bytes(work.master()) == key


def _hold(target, ready, leave):
    with work_folder(target, RECORD):
        ready.set()
        leave.wait(20)


@posix
def test_two_processes_do_not_write_one_target(target):
    context = multiprocessing.get_context("spawn")
    ready, leave = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(target, ready, leave))
    other.start()
    try:
        assert ready.wait(20)
        with pytest.raises(BlockingIOError, match="another process is writing"), work_folder(target, RECORD):
            pass
    finally:
        leave.set()
        other.join(20)
    with work_folder(target, RECORD):
        pass


def test_an_existing_target_stays_unless_it_may_be_replaced(target):
    target.write_text("precious")
    with pytest.raises(FileExistsError, match="adds to what the first revealed"), work_folder(target, RECORD):
        pass
    assert [child.name for child in target.parent.iterdir()] == ["out.parquet"]
    with work_folder(target, RECORD, overwrite=True) as work:
        assert target.read_text() == "precious"
        deliver(work)
    assert target.read_text() == "released"


def test_an_existing_folder_is_never_replaced(target):
    target.mkdir()
    with pytest.raises(FileExistsError, match="is a folder"), work_folder(target, RECORD, overwrite=True):
        pass


def test_a_strange_folder_is_left_alone(target):
    work_path(target).mkdir(mode=0o700)
    (work_path(target) / "thesis.txt").write_text("precious")
    with pytest.raises(ValueError, match="no work folder of a release"), work_folder(target, RECORD):
        pass
    assert (work_path(target) / "thesis.txt").read_text() == "precious"


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"record": {}}'])
def test_a_damaged_state_is_refused(target, text):
    with work_folder(target, RECORD):
        pass
    (work_path(target) / "state.json").write_text(text)
    with pytest.raises(ValueError, match="cannot be read"), work_folder(target, RECORD):
        pass


def test_a_key_that_is_gone_is_not_replaced_while_there_are_parts(target):
    with work_folder(target, RECORD) as work:
        work.master()
        (work.path / "key").unlink()
        work.master()
        work.parts.mkdir()
        (work.path / "key").unlink()
        with pytest.raises(ValueError, match="key is gone"):
            work.master()
        (work.path / "key").write_bytes(b"short")
        with pytest.raises(ValueError, match="damaged"):
            work.master()


def charge(work, ledger, label="wave 1"):
    with work.charged(spending(PLAN, ledger, label), ledger):
        pass


def test_a_ledger_is_charged_once_for_one_release(target):
    ledger = Ledger(GDP(1.0))
    for _ in range(2):
        with work_folder(target, RECORD) as work:
            charge(work, ledger)
    assert [entry.label for entry in ledger.entries] == ["wave 1"]


def test_a_ledger_without_the_entry_is_charged(target):
    """The ledger of the interrupted process was in memory only: the next one has to know of the release, too."""
    for ledger in (Ledger(GDP(1.0)), Ledger(GDP(1.0))):
        ledger.spend(gaussian(0.1), "an earlier one")
        with work_folder(target, RECORD) as work:
            charge(work, ledger)
        assert [entry.label for entry in ledger.entries] == ["an earlier one", "wave 1"]


def test_a_ledger_is_charged_before_there_is_a_key(target):
    ledger = Ledger(GDP(1.0))
    spend = spending(PLAN, ledger, "x")
    with pytest.raises(KeyboardInterrupt), work_folder(target, RECORD) as work, work.charged(spend, ledger):
        assert len(ledger.entries) == 1 and not (work.path / "key").exists()
        raise KeyboardInterrupt
    assert json.loads((work_path(target) / "state.json").read_text())["charged"]["label"] == "x"


def test_a_refusal_leaves_nothing(target):
    ledger = Ledger(GDP(0.1))
    with pytest.raises(BudgetExceeded), work_folder(target, RECORD) as work:
        charge(work, ledger)
    assert not list(target.parent.iterdir())


def test_a_crash_after_delivery_is_cleaned_up(target):
    with work_folder(target, RECORD) as work:
        work.master()
        work.whole_path.write_text("released")
        work.note_whole()
        os.replace(work.whole_path, target)
    assert is_delivered(target)
    with work_folder(target, RECORD) as work:
        assert work.is_whole
        work.deliver()
    assert [child.name for child in target.parent.iterdir()] == ["out.parquet"]


@pytest.mark.parametrize("overwrite", [True, False])
def test_after_a_delivery_that_was_not_cleaned_up_another_release_is_a_new_one(target, overwrite):
    with work_folder(target, RECORD) as work:
        key = bytes(work.master())
        work.whole_path.write_text("released")
        work.note_whole()
        os.replace(work.whole_path, target)
    if overwrite:
        with work_folder(target, {**RECORD, "law": "b"}, overwrite=True) as work:
            assert not work.is_whole and bytes(work.master()) != key
            assert target.read_text() == "released"
        return
    with pytest.raises(FileExistsError), work_folder(target, {**RECORD, "law": "b"}):
        pass
    assert [child.name for child in target.parent.iterdir()] == ["out.parquet"]


def test_nothing_is_delivered_before_it_is_whole(target):
    with work_folder(target, RECORD) as work:
        work.whole_path.write_text("half")
        with pytest.raises(ValueError, match="no whole release"):
            work.deliver()
    assert not target.exists()
    with work_folder(target, RECORD) as work:
        assert not work.is_whole


def test_half_written_files_of_a_crash_are_removed(target):
    with work_folder(target, RECORD) as work:
        work.parts.mkdir()
        left = [work.path / ".whole.00000000.tmp", work.parts / ".part-000000.parquet.00000000.tmp"]
        for path in left:
            path.write_text("half")
        (work.parts / "part-000000.parquet").write_text("whole")
    with work_folder(target, RECORD) as work:
        assert not any(path.exists() for path in left)
        assert (work.parts / "part-000000.parquet").exists()


def test_the_key_is_gone_before_the_target_is_there(target, monkeypatch):
    real, seen = os.replace, []

    def replace(source, place):
        if place == target:
            seen.append((work_path(target) / "key").exists())
            raise PermissionError("no room at the target")
        real(source, place)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(PermissionError), work_folder(target, RECORD) as work:
        work.master()
        deliver(work)
    assert seen == [False] and not target.exists()
    monkeypatch.undo()
    with work_folder(target, RECORD) as work:
        assert work.is_whole
        work.deliver()
    assert target.read_text() == "released" and not work_path(target).exists()


def test_a_delivered_target_that_was_taken_away_is_not_said_to_be_there(target, monkeypatch):
    from privfit.mechanisms import work_folder as module

    with monkeypatch.context() as patch, work_folder(target, RECORD) as work:
        patch.setattr(module, "_remove", lambda path: None)
        work.master()
        deliver(work)
    target.rename(target.with_name("elsewhere"))
    with pytest.raises(FileNotFoundError, match="taken away"), work_folder(target, RECORD) as work:
        work.deliver()
    assert not work_path(target).exists()


@pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")
@pytest.mark.parametrize("kind", ["open", "group", "link"])
def test_a_folder_that_others_could_use_is_refused(target, kind, tmp_path):
    path = work_path(target)
    if kind == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.mkdir()
        path.chmod(0o777 if kind == "open" else 0o770)
    with pytest.raises(ValueError, match="nobody but you"), work_folder(target, RECORD):
        pass
    assert path.exists() and not list(path.iterdir())
