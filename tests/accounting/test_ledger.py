"""The ledger: never more than the target, never a lost release, whatever dies in between."""

import copy
import errno
import importlib.util
import json
import math
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time

import numpy as np
import pytest

import privfit.accounting as pa
from privfit.accounting import filelock
from privfit.accounting import journal as journal_module
from privfit.accounting.adaptive import PrivacyFilter
from privfit.accounting.journal import Journal
from privfit.accounting.ledger import BudgetExceeded, Entry, Ledger

BUDGET = pa.Budget(1.0, 1e-5)
EPS = np.linspace(0, 4, 41)
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.jsonl"


def _gaussian(sigma):
    return pa.gaussian(1 / sigma)


# --- spending and refusing ---------------------------------------------------------------------------------


def test_spends_add_up_to_their_composition():
    ledger = Ledger(pa.Budget(3.0, 1e-3))
    curves = [pa.gaussian(0.3), pa.randomized_response(0.5), pa.zero_inflated(pa.gaussian(0.4), 1e-4)]
    for i, curve in enumerate(curves):
        entry = ledger.spend(curve, f"release {i}")
        assert isinstance(entry, Entry)
        assert entry.curve == curve
    assert [e.label for e in ledger.entries] == ["release 0", "release 1", "release 2"]
    assert np.allclose(ledger.guarantee().delta(EPS), pa.compose(*curves).delta(EPS), rtol=1e-9, atol=0)
    assert ledger.epsilon(1e-3) == pytest.approx(pa.compose(*curves).epsilon(1e-3), rel=1e-9)


def test_refusal_comes_before_recording_and_says_what_would_fit():
    ledger = Ledger(BUDGET)
    ledger.spend(pa.gaussian(0.2), "first")
    assert not ledger.can_spend(pa.gaussian(0.2))
    with pytest.raises(BudgetExceeded) as caught:
        ledger.spend(pa.gaussian(0.2), "second")
    text = str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert "release 'second' refused, nothing was recorded" in text
    assert f"so far epsilon = {pa.gaussian(0.2).epsilon(1e-5):.6g}" in text
    assert f"with it epsilon = {pa.gaussian(0.2 * math.sqrt(2)).epsilon(1e-5):.6g}" in text
    # what would fit: mu^2 + 0.2^2 = (1 / 3.730631634)^2
    fits = math.sqrt(1 / 3.730631634**2 - 0.04)
    assert float(text.split("mu <= ")[1].rstrip(".")) == pytest.approx(fits, rel=2e-4)
    assert len(ledger.entries) == 1
    ledger.spend(pa.gaussian(fits * (1 - 1e-6)), "smaller")


@pytest.mark.parametrize(
    ("target", "word"),
    [
        (pa.GDP(0.5), "mu = 2"),
        (pa.Advantage(0.1), "advantage = 0.68"),
        (pa.ErrorRates(0.1, 0.8), "false-negative rate >= 0.2"),
        (pa.gaussian(0.5), "advantage = 0.68"),
        (pa.Budget(0.5, 0.0), r"Laplace release with epsilon <= 0\.(5|4999)"),
    ],
    ids=str,
)
def test_refusals_of_every_target(target, word):
    ledger = Ledger(target)
    with pytest.raises(BudgetExceeded, match=word):
        ledger.spend(pa.gaussian(2.0))
    assert ledger.entries == ()


def test_nothing_more_fits_after_the_last_bit():
    ledger = Ledger(pa.Budget(1.0, 0.0))
    ledger.spend(pa.laplace(1.0), "all of it")
    with pytest.raises(BudgetExceeded, match="What would fit: nothing more"):
        ledger.spend(pa.laplace(0.1))
    with pytest.raises(BudgetExceeded, match="no release of this family fits what is left of Budget"):
        ledger.remaining(lambda b: pa.laplace(1 / b))
    assert ledger.how_many(pa.laplace(1e-3)) == 0


def test_remaining_is_safe_and_smallest():
    ledger = Ledger(BUDGET)
    ledger.spend(pa.gaussian(0.15), "first")
    sigma = ledger.remaining(_gaussian)
    assert sigma == pytest.approx(1 / math.sqrt(1 / 3.730631634**2 - 0.15**2), rel=1e-8)
    assert not ledger.can_spend(_gaussian(sigma * (1 - 1e-6)))
    ledger.spend(_gaussian(sigma), "the rest")
    assert ledger.guarantee().delta(1.0) <= 1e-5
    response = Ledger(pa.Budget(1.0, 0.0))
    response.spend(pa.laplace(0.25))
    assert response.remaining(lambda b: pa.laplace(1 / b)) == pytest.approx(1 / 0.75, rel=1e-8)
    with pytest.raises(ValueError, match="no noise is needed"):
        ledger.remaining(lambda s: pa.gaussian(1e-30))


def test_how_many_agrees_with_spending_one_by_one():
    for target, curve in ((BUDGET, pa.gaussian(0.03)), (pa.Budget(1.0, 0.0), pa.randomized_response(0.07))):
        ledger = Ledger(target)
        ledger.spend(pa.gaussian(0.1) if target.delta else pa.laplace(0.1), "before")
        expected, count = ledger.how_many(curve), 0
        while ledger.can_spend(curve):
            ledger.spend(curve)
            count += 1
        assert count == expected > 5
    # mu^2 / 0.03^2 by hand
    assert Ledger(BUDGET).how_many(pa.gaussian(0.03)) == int((1 / 3.730631634 / 0.03) ** 2)


def test_a_thousand_spends_are_cheap():
    ledger = Ledger(BUDGET)
    start = time.process_time()
    for _ in range(1000):
        ledger.spend(pa.gaussian(0.008), "step")
    assert time.process_time() - start < 2.0
    assert ledger.epsilon(1e-5) == pytest.approx(pa.gaussian(0.008 * math.sqrt(1000)).epsilon(1e-5), rel=1e-9)


def test_reserve_records_first_and_keeps_the_entry_when_the_release_fails(path):
    ledger = Ledger(BUDGET, path)
    with ledger.reserve(pa.gaussian(0.1), "good") as entry:
        assert Ledger.open(path).entries == (entry,)  # already on the disk while the block runs
    with pytest.raises(RuntimeError, match="disk on fire") as caught, ledger.reserve(pa.gaussian(0.1), "bad"):
        raise RuntimeError("disk on fire")
    assert any("'bad' stays in the ledger" in note for note in caught.value.__notes__)
    assert [e.label for e in Ledger.open(path).entries] == ["good", "bad"]
    ran = []
    with pytest.raises(BudgetExceeded), ledger.reserve(pa.gaussian(3.0)):
        ran.append(True)
    assert ran == []


# --- both directions ---------------------------------------------------------------------------------------


ONE_WAY = {
    "certain disclosure": pa.from_distributions([0.5, 0.5], [1.0, 0.0]),
    "a rare large loss": pa.from_distributions([0.5, 0.5 - 1e-3, 1e-3], [0.5, 0.5 - 1e-7, 1e-7]),
}


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize(
    ("one_way", "turn"),
    [
        pytest.param(ONE_WAY["certain disclosure"], False, id="certain disclosure"),
        pytest.param(ONE_WAY["certain disclosure"], True, id="certain disclosure, turned"),
        pytest.param(ONE_WAY["a rare large loss"], False, id="a rare large loss"),
        pytest.param(ONE_WAY["a rare large loss"], True, id="a rare large loss, turned", marks=pytest.mark.slow),
    ],
)
def test_a_release_that_is_private_in_one_direction_only_is_refused(one_way, turn, adaptive):
    assert one_way.delta(1.0) <= 1e-5 < one_way.reversed().delta(1.0)
    curve = one_way.reversed() if turn else one_way
    ledger = Ledger(BUDGET, adaptive=adaptive)
    assert not ledger.can_spend(curve)
    assert ledger.how_many(curve) == 0
    for part in (None, "north"):
        with pytest.raises(BudgetExceeded):
            ledger.spend(curve, "one way", part)
    with pytest.raises(BudgetExceeded, match="no release of this family"):
        ledger.remaining(lambda scale: pa.compose(curve, pa.gaussian(1 / scale)))
    assert ledger.entries == ()


def test_what_is_recorded_is_the_curve_as_given_and_what_is_guaranteed_covers_both_directions(path):
    curve = pa.from_distributions([0.5, 0.3, 0.2], [0.55, 0.35, 0.1])
    ledger = Ledger(pa.Budget(2.0, 0.1), path)
    ledger.spend(curve, "first")
    ledger.spend(curve.reversed(), "second")
    for reader in (ledger, Ledger.open(path)):
        assert [e.curve for e in reader.entries] == [curve, curve.reversed()]
        guarantee = reader.guarantee()
        assert np.allclose(guarantee.delta(EPS), guarantee.reversed().delta(EPS), rtol=1e-9, atol=1e-15)
        # whichever way each release was oriented, the joint laws by hand
        p, q = np.array([0.5, 0.3, 0.2]), np.array([0.55, 0.35, 0.1])
        for a, b, c, d in ((p, q, p, q), (q, p, q, p), (p, q, q, p), (q, p, p, q)):
            joint_p, joint_q = np.outer(a, c), np.outer(b, d)
            true = [np.maximum(joint_q - math.exp(e) * joint_p, 0.0).sum() for e in EPS]
            assert np.all(guarantee.delta(EPS) >= np.array(true) * (1 - 1e-9))
    assert Ledger(pa.Budget(2.0, 0.1)).how_many(curve) == Ledger(pa.Budget(2.0, 0.1)).how_many(curve.reversed()) > 0


# --- parts -------------------------------------------------------------------------------------------------


def test_disjoint_parts_do_not_add_up_and_the_worst_one_counts():
    ledger = Ledger(pa.Budget(2.0, 1e-3))
    ledger.spend(pa.gaussian(0.2), "common")
    ledger.spend(pa.randomized_response(0.4), "north", part="north")
    ledger.spend(pa.gaussian(0.3), "south", part="south")
    ledger.spend(pa.gaussian(0.1), "common again")
    ledger.spend(pa.gaussian(0.25), "south again", part="south")
    north = pa.compose(pa.gaussian(0.2), pa.randomized_response(0.4), pa.gaussian(0.1))
    south = pa.gaussian(math.sqrt(0.2**2 + 0.3**2 + 0.1**2 + 0.25**2))
    expected = np.maximum(north.delta(EPS), south.delta(EPS))
    assert np.allclose(ledger.guarantee().delta(EPS), expected, rtol=1e-9, atol=0)
    # a further common release must fit in every part, one about a new part only beside the common ones
    alone = Ledger(pa.GDP(1.0))
    alone.spend(pa.gaussian(0.6), part="a")
    assert alone.remaining(_gaussian) == pytest.approx(1 / 0.8, rel=1e-8)
    assert alone.remaining(_gaussian, part="a") == pytest.approx(1 / 0.8, rel=1e-8)
    assert alone.remaining(_gaussian, part="b") == pytest.approx(1.0, rel=1e-8)
    assert alone.how_many(pa.gaussian(0.5), part="b") == 4
    assert alone.how_many(pa.gaussian(0.5)) == 2
    with pytest.raises(BudgetExceeded, match="about 'a'"):
        alone.spend(pa.gaussian(0.9), "too much", part="a")


def test_error_rates_are_judged_on_the_convex_minimum_of_the_parts():
    """Two curves above a point whose convex minimum passes below it."""
    target = pa.ErrorRates(0.15, 0.615)
    one, two = pa.approximate_dp(0.9, 0.0), pa.approximate_dp(0.0, 0.225)
    assert target.met_by(one)
    assert target.met_by(two)
    assert not target.met_by(pa.minimum(one, two))
    ledger = Ledger(target)
    ledger.spend(one, part="a")
    assert not ledger.can_spend(two, part="b")
    assert target.met_by(ledger.guarantee())


# --- the file ----------------------------------------------------------------------------------------------


def test_save_and_restore_keep_everything_to_the_last_bit(path):
    target = pa.Budget(5.0, 0.02)
    curves = [
        pa.gaussian(0.1 + 0.2),
        pa.shifted(pa.zero_inflated(pa.gaussian(1 / 3), 1e-3 / 3), 1e-15 / 3),
        pa.approximate_dp(0.0, 1e-3),
        pa.randomized_response(1 / 7, 5),
    ]
    ledger = Ledger(target, path)
    for i, curve in enumerate(curves):
        ledger.spend(curve, f"Größe {i}", part="Köln" if i == 1 else None)
    again = Ledger.open(path)
    assert again.entries == ledger.entries
    assert [e.curve.to_dict() for e in again.entries] == [c.to_dict() for c in curves]
    assert again.target == target
    assert again.epsilon(0.01) == ledger.epsilon(0.01)
    assert again.summary() == ledger.summary()
    again.spend(pa.gaussian(0.01), "later")
    assert [e.label for e in ledger.entries][-1] == "later"  # the first instance sees it, too
    lines = path.read_text(encoding="ascii").splitlines()
    assert len(lines) == 6
    assert json.loads(lines[0])["version"] == 1
    assert json.loads(lines[1])["curve"] == curves[0].to_dict()


@pytest.mark.parametrize(
    "curve",
    [pa.zil(3, 1 / 300, 1e-3 / 3), pa.minimum(pa.gaussian(1 / 3), pa.laplace(1 / 7)), pa.from_points([1 / 3], [1 / 3])],
    ids=str,
)
def test_every_kind_of_curve_is_kept_to_the_last_bit(path, curve):
    Ledger(pa.Budget(5.0, 0.5), path).spend(curve, "only")
    again = Ledger.open(path)
    assert again.entries[0].curve == curve
    assert again.entries[0].curve.to_dict() == curve.to_dict()
    assert again.guarantee() == curve


def test_targets_round_trip(tmp_path):
    targets = [pa.GDP(1 / 3), pa.Advantage(0.1), pa.ErrorRates(0.05, 0.8), BUDGET, pa.gaussian(0.7), pa.laplace(1.0)]
    for i, target in enumerate(targets):
        ledger = Ledger(target, tmp_path / f"{i}.jsonl")
        assert Ledger.open(tmp_path / f"{i}.jsonl").target == ledger.target
        Ledger(target, tmp_path / f"{i}.jsonl")


def test_reading_changes_nothing(path):
    ledger = Ledger(BUDGET, path)
    ledger.spend(pa.gaussian(0.1), "first")
    before = (path.read_bytes(), path.stat().st_mtime_ns, ledger.epsilon(1e-5))
    os.chmod(path, 0o400)
    for _ in range(3):
        ledger.guarantee(), ledger.entries, ledger.summary(), str(ledger), repr(ledger), ledger.checksum
        ledger.can_spend(pa.gaussian(0.1)), ledger.how_many(pa.gaussian(0.05)), ledger.remaining(_gaussian)
        assert ledger.epsilon(1e-5) == before[2]
        assert Ledger.open(path).epsilon(1e-5) == before[2] if os.geteuid() == 0 else True
    assert (path.read_bytes(), path.stat().st_mtime_ns, ledger.epsilon(1e-5)) == before


def test_another_target_or_another_kind_of_file_is_refused(path, tmp_path):
    Ledger(BUDGET, path)
    with pytest.raises(ValueError, match=r"target of the ledger .* use Ledger.open"):
        Ledger(pa.Budget(1.0, 2e-5), path)
    with pytest.raises(ValueError, match="adaptive of the ledger"):
        Ledger(BUDGET, path, adaptive=True)
    with pytest.raises(FileNotFoundError):
        Ledger.open(tmp_path / "missing.jsonl")
    for i, content in enumerate((b"age,income\n1,2\n", b"age", b'{"kind":"other"}\n', b"\n", b"\0" * 10)):
        other = tmp_path / f"other {i}"
        other.write_bytes(content)
        for open_it in (Ledger.open, lambda p: Ledger(BUDGET, p)):
            with pytest.raises(ValueError, match="is not a privfit ledger"):
                open_it(other)
        assert other.read_bytes() == content
    notes = tmp_path / "notes.jsonl"
    Journal(notes, "diary").create({})
    with pytest.raises(ValueError, match="not a privfit ledger but a 'diary'"):
        Ledger.open(notes)
    future = tmp_path / "future.jsonl"
    Journal(future, "privfit ledger").create({"version": 2})
    with pytest.raises(ValueError, match="version of the ledger must be 1, got 2"):
        Ledger.open(future)

    class Custom(pa.Target):
        def slack(self, curve):
            return 1.0

    assert Ledger(Custom()).spend(pa.gaussian(5.0)).label == ""
    with pytest.raises(TypeError, match="keep this one in memory"):
        Ledger(Custom(), tmp_path / "custom.jsonl")


def _edits():
    return {
        "a letter of a label": lambda lines: [lines[0], lines[1].replace(b"first", b"forst"), *lines[2:]],
        "less noise claimed": lambda lines: [*lines[:2], lines[2].replace(b'"mu":0.11', b'"mu":0.01'), lines[3]],
        "a line deleted": lambda lines: [lines[0], *lines[2:]],
        "two lines swapped": lambda lines: [lines[0], lines[2], lines[1], lines[3]],
        "a line twice": lambda lines: [*lines[:2], lines[1], *lines[2:]],
        "the target raised": lambda lines: [lines[0].replace(b'"epsilon":1.0', b'"epsilon":9.0'), *lines[1:]],
        "a checksum changed": lambda lines: [*lines[:1], lines[1][:-3] + bytes([lines[1][-3] ^ 1]) + b'"}', *lines[2:]],
        "an empty line": lambda lines: [*lines[:2], b"", *lines[2:]],
        "no header": lambda lines: lines[1:],
    }


@pytest.mark.parametrize("edit", _edits().values(), ids=_edits().keys())
def test_edits_are_noticed(path, edit):
    ledger = Ledger(BUDGET, path)
    for label in ("first", "second", "third"):
        ledger.spend(pa.gaussian(0.11), label)
    lines = path.read_bytes().split(b"\n")[:-1]
    changed = b"\n".join(edit(lines)) + b"\n"
    assert changed != path.read_bytes()
    path.write_bytes(changed)
    for use in (Ledger.open, lambda p: Ledger(BUDGET, p).spend(pa.gaussian(0.01)), lambda p: ledger.epsilon(0.1)):
        with pytest.raises(ValueError, match=r"restore it from a copy|check the path"):
            use(path)
    assert path.read_bytes() == changed


def test_a_cut_end_is_noticed_by_whoever_remembers_the_checksum(path):
    ledger = Ledger(BUDGET, path)
    ledger.spend(pa.gaussian(0.1), "kept")
    kept = ledger.checksum
    ledger.spend(pa.gaussian(0.1), "cut")
    noted = ledger.checksum
    assert ledger.contains(noted)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    assert Ledger.open(path).contains(kept)
    assert not Ledger.open(path).contains(noted)
    with pytest.raises(ValueError, match="was cut or changed after it was read"):
        ledger.can_spend(pa.gaussian(0.1))


# --- crashes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [1, 40, -60, -2])
def test_a_torn_line_was_never_a_permission(path, keep):
    ledger = Ledger(BUDGET, path)
    ledger.spend(pa.gaussian(0.1), "whole")
    size = path.stat().st_size
    Ledger.open(path).spend(pa.gaussian(0.2), "torn")
    content = path.read_bytes()
    path.write_bytes(content[: size + keep if keep > 0 else keep])
    torn = path.read_bytes()
    again = Ledger.open(path)
    assert [e.label for e in again.entries] == ["whole"]
    assert path.read_bytes() == torn  # reading leaves it alone
    again.spend(pa.gaussian(0.2), "next")
    assert [e.label for e in Ledger.open(path).entries] == ["whole", "next"]
    assert "1 unfinished lines were set aside" in Ledger.open(path).summary()
    aside = json.loads(path.read_bytes().splitlines()[2])
    assert aside["text"].encode() == torn[size:]
    assert [e.label for e in ledger.entries] == ["whole", "next"]


def test_a_line_torn_at_any_byte(path):
    Ledger(BUDGET, path).spend(pa.gaussian(0.1), "whole")
    size = path.stat().st_size
    Ledger.open(path).spend(pa.gaussian(0.2), "torn")
    content = path.read_bytes()
    for cut in range(size, len(content) + 1):
        path.write_bytes(content[:cut])
        # the record is complete with its last brace; the newline after it may be missing
        expected = ["whole", "torn"] if cut >= len(content) - 1 else ["whole"]
        assert [e.label for e in Ledger.open(path).entries] == expected


def test_a_whole_line_without_its_newline_counts(path):
    ledger = Ledger(BUDGET, path)
    ledger.spend(pa.gaussian(0.2), "whole")
    path.write_bytes(path.read_bytes()[:-1])
    again = Ledger.open(path)
    assert [e.label for e in again.entries] == ["whole"]
    assert not again.can_spend(pa.gaussian(0.2))
    again.spend(pa.gaussian(0.1), "next")
    for reader in (again, ledger, Ledger.open(path)):
        assert [e.label for e in reader.entries] == ["whole", "next"]


def test_a_crash_while_the_file_is_made(path):
    Ledger(BUDGET, path)
    content = path.read_bytes()
    for cut in (0, 5, 30, len(content) - 3):
        path.write_bytes(content[:cut])
        Ledger(BUDGET, path).spend(pa.gaussian(0.1), "first")
        assert [e.label for e in Ledger.open(path).entries] == ["first"]


def test_a_full_disk_refuses_and_leaves_the_file_as_it_was(path, monkeypatch):
    ledger = Ledger(BUDGET, path)
    ledger.spend(pa.gaussian(0.1), "before")
    content, write = path.read_bytes(), os.write

    def full(descriptor, data):
        if len(data) > 100:
            return write(descriptor, bytes(data)[:100])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(journal_module.os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        ledger.spend(pa.gaussian(0.1), "lost")
    monkeypatch.undo()
    assert path.read_bytes() == content
    assert [e.label for e in ledger.entries] == ["before"]
    ledger.spend(pa.gaussian(0.1), "after")
    assert [e.label for e in Ledger.open(path).entries] == ["before", "after"]


def test_an_interrupt_between_disk_and_memory_loses_nothing(path, monkeypatch):
    ledger, append = Ledger(BUDGET, path), Journal.append

    def interrupted(self, record):
        append(self, record)
        raise KeyboardInterrupt

    monkeypatch.setattr(Journal, "append", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ledger.spend(pa.gaussian(0.2), "recorded")
    monkeypatch.undo()
    assert [e.label for e in ledger.entries] == ["recorded"]
    assert not ledger.can_spend(pa.gaussian(0.2))


def test_what_cannot_be_read_blocks_until_it_can(path):
    """A release of an unknown kind must not be skipped: not now, and not at the next call."""
    ledger = Ledger(BUDGET, path)
    ledger.spend(pa.gaussian(0.1), "known")
    whole = path.read_bytes()
    stranger = Journal(path, "privfit ledger")
    with stranger.writing():
        record = {"kind": "release", "label": "x", "part": None, "time": "now", "leak": 0.0}
        stranger.append(record | {"curve": {"curve": "FutureCurve", "version": 1}})
    for _ in range(2):
        with pytest.raises(ValueError, match="FutureCurve"):
            ledger.spend(pa.gaussian(0.01))
    path.write_bytes(whole)
    # the line that was seen is gone: cut, as far as this instance can tell; a new one starts from the file
    with pytest.raises(ValueError, match="was cut or changed"):
        ledger.spend(pa.gaussian(0.01))
    assert [e.label for e in Ledger.open(path).entries] == ["known"]


def test_a_restored_file_is_counted_from_its_start(path):
    ledger = Ledger(BUDGET, path)
    Ledger.open(path).spend(pa.gaussian(0.2), "by another process")
    whole = path.read_bytes()
    path.write_bytes(whole + b"rubbish\n")
    for _ in range(2):
        with pytest.raises(ValueError, match=r"line 3 .* was edited or damaged"):
            ledger.spend(pa.gaussian(0.2))
    path.write_bytes(whole)
    assert not ledger.can_spend(pa.gaussian(0.2))
    assert [e.label for e in ledger.entries] == ["by another process"]


def _die_in_the_middle(path, part):
    write = os.write

    def half(descriptor, data):
        write(descriptor, bytes(data)[: max(1, int(len(data) * part))])
        os.kill(os.getpid(), signal.SIGKILL)

    journal_module.os.write = half
    Ledger.open(path).spend(pa.gaussian(0.1), "dying")


def _spend_and_tell(path, pipe):
    ledger, i = Ledger.open(path), 0
    while True:
        ledger.spend(pa.gaussian(1e-4), f"{i}")
        pipe.send_bytes(b"%d" % i)
        i += 1


@forks
@pytest.mark.parametrize("part", [0.0, 0.5, 0.99, 1.0])
def test_kill_in_the_middle_of_a_write(path, part):
    Ledger(BUDGET, path).spend(pa.gaussian(0.1), "before")
    child = multiprocessing.get_context("fork").Process(target=_die_in_the_middle, args=(path, part))
    child.start()
    child.join(30)
    assert child.exitcode == -signal.SIGKILL
    labels = ["before", "dying"] if part == 1.0 else ["before"]
    assert [e.label for e in Ledger.open(path).entries] == labels
    Ledger.open(path).spend(pa.gaussian(0.1), "after")  # the lock went with its holder
    assert [e.label for e in Ledger.open(path).entries] == [*labels, "after"]


@forks
def test_kill_at_any_moment_loses_no_permission(path):
    Ledger(BUDGET, path)
    rng, context, expected = np.random.default_rng(3), multiprocessing.get_context("fork"), 0
    for _ in range(5):
        told, pipe = context.Pipe(duplex=False)
        child = context.Process(target=_spend_and_tell, args=(path, pipe))
        child.start()
        pipe.close()
        told.recv_bytes()
        time.sleep(rng.uniform(0, 0.03))
        os.kill(child.pid, signal.SIGKILL)
        child.join(30)
        permitted = 1
        try:
            while True:
                told.recv_bytes()
                permitted += 1
        except EOFError:
            pass
        recorded = len(Ledger.open(path).entries) - expected
        assert permitted <= recorded <= permitted + 1
        expected += recorded


# --- processes and threads ---------------------------------------------------------------------------------


def _spend_until_refused(path, name, done):
    ledger, count = Ledger.open(path), 0
    try:
        while True:
            ledger.spend(pa.gaussian(0.03), f"{name} {count}")
            count += 1
    except BudgetExceeded:
        done.put((name, count))


@forks
def test_eight_processes_never_spend_too_much_and_lose_nothing(path):
    room = Ledger(BUDGET, path).how_many(pa.gaussian(0.03))
    context = multiprocessing.get_context("fork")
    done = context.Queue()
    children = [context.Process(target=_spend_until_refused, args=(path, i, done)) for i in range(8)]
    for child in children:
        child.start()
    counts = dict(done.get(timeout=60) for _ in children)
    for child in children:
        child.join(60)
    entries = Ledger.open(path).entries
    assert sum(counts.values()) == len(entries) == room == 79
    assert {e.label for e in entries} == {f"{i} {j}" for i, n in counts.items() for j in range(n)}
    assert Ledger.open(path).guarantee().delta(1.0) <= 1e-5


@pytest.mark.parametrize("on_disk", [False, True])
def test_eight_threads_share_a_ledger(path, on_disk):
    ledger = Ledger(BUDGET, path if on_disk else None)
    counts = []

    def work():
        count = 0
        while True:
            try:
                ledger.spend(pa.gaussian(0.05), "thread")
            except BudgetExceeded:
                counts.append(count)
                return
            count += 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(counts) == len(ledger.entries) == int((1 / 3.730631634 / 0.05) ** 2)


def test_the_lock_of_other_systems(tmp_path, monkeypatch):
    """The branch without flock, on an imitation of msvcrt: one holder of a byte at a time, others retry."""
    held, waits = set(), []

    class Imitation:
        LK_NBLCK, LK_UNLCK = 1, 2

        @staticmethod
        def locking(descriptor, mode, size):
            place = os.lseek(descriptor, 0, os.SEEK_CUR), size
            if mode == Imitation.LK_UNLCK:
                held.remove(place)
            elif place in held:
                waits.append(place)
                held.clear()  # the other holder leaves
                raise OSError(errno.EACCES, "Permission denied")
            else:
                held.add(place)

    monkeypatch.setitem(sys.modules, "msvcrt", Imitation)
    monkeypatch.setattr(sys, "platform", "win32")
    spec = importlib.util.spec_from_file_location("filelock_elsewhere", filelock.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with open(tmp_path / "file", "w+b") as file:
        held.add((module.FAR, 1))
        with module.locked(file.fileno(), exclusive=True):
            assert waits == [(module.FAR, 1)]
            assert held == {(module.FAR, 1)}
        assert held == set()
        monkeypatch.setattr(Imitation, "locking", lambda *_: (_ for _ in ()).throw(OSError(errno.EBADF, "bad")))
        with pytest.raises(OSError, match="bad"), module.locked(file.fileno(), exclusive=True):
            pass


def _in_child(ledger, answer):
    try:
        ledger.spend(pa.gaussian(0.01), "child")
        answer.put("spent")
    except RuntimeError as error:
        answer.put(str(error))


@forks
@pytest.mark.parametrize("on_disk", [False, True])
def test_fork(path, on_disk):
    ledger = Ledger(BUDGET, path if on_disk else None)
    ledger.spend(pa.gaussian(0.01), "parent")
    context = multiprocessing.get_context("fork")
    answer = context.Queue()
    with ledger._mutex:  # held during the fork: the child must not wait for it
        child = context.Process(target=_in_child, args=(ledger, answer))
        child.start()
    text = answer.get(timeout=30)
    child.join(30)
    assert text == "spent" if on_disk else "give it a path" in text
    assert [e.label for e in ledger.entries] == (["parent", "child"] if on_disk else ["parent"])


def test_pickle_and_copy(path):
    ledger = Ledger(BUDGET, path)
    ledger.spend(pa.gaussian(0.1), "first")
    for again in (pickle.loads(pickle.dumps(ledger)), copy.deepcopy(ledger)):
        assert again.entries == ledger.entries
        again.spend(pa.gaussian(0.01), "copy")
    assert len(ledger.entries) == 3
    for make in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="both would spend one budget"):
            make(Ledger(BUDGET))


# --- adaptive ----------------------------------------------------------------------------------------------


def test_adaptive_ledger_follows_a_filter(path):
    settings = PrivacyFilter(BUDGET, leak=4e-6)
    ledger = Ledger(BUDGET, path, adaptive=settings)
    ledger.spend(pa.gaussian(0.1), "first")
    ledger.spend(pa.zero_inflated(pa.gaussian(0.05), 1e-6), "second", part="north")
    ledger.spend(pa.symmetric_laplace(6, 0.001), "tail", part="south", leak=1e-6)
    again = Ledger.open(path)
    assert again.entries == ledger.entries
    assert again.entries[2].leak == 1e-6
    # the guarantee is that of the whole target, whatever has been spent
    assert again.guarantee().delta(1.0) <= 1e-5
    assert again.guarantee() == settings.guarantee()
    assert again.guarantee() == Ledger(BUDGET, adaptive=PrivacyFilter(BUDGET, leak=4e-6)).guarantee()
    limit = settings.plan.limit
    assert again.remaining(_gaussian, part="north") == pytest.approx(1 / math.sqrt(limit**2 - 0.0125), rel=1e-8)
    assert again.how_many(pa.gaussian(0.05), part="west") == int((limit**2 - 0.01) / 0.0025)
    with pytest.raises(BudgetExceeded, match=r"release 'leaky' refused: .* a larger leak="):
        again.spend(pa.zero_inflated(pa.gaussian(0.01), 5e-6), "leaky")
    with pytest.raises(BudgetExceeded, match=r"costs mu = 0\.3, but"):
        again.spend(pa.gaussian(0.3), "large")
    assert settings.spent == 0.0
    assert "3 releases; so far mu = 0.119" in str(again)
    assert "what is guaranteed is the whole target" in str(again)
    assert pickle.loads(pickle.dumps(ledger)).entries == ledger.entries


def test_summary_is_for_people():
    ledger = Ledger(BUDGET)
    for i in range(25):
        ledger.spend(pa.gaussian(0.02), f"question {i}", part="north" if i % 2 else None)
    text = str(ledger)
    assert text.startswith("Ledger for Budget(epsilon=1.0, delta=1e-05)\n25 releases; so far epsilon = 0.3")
    assert "one more Gaussian release with mu <= 0.2" in text
    assert "(5 earlier releases not shown)" in text
    assert "question 24" in text
    assert "question 4 " not in text
    assert "GaussianCurve(mu=0.02)" in text
    assert repr(ledger) == "Ledger(Budget(epsilon=1.0, delta=1e-05), in memory, 25 releases)"


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: Ledger(0.5), TypeError, "target must be"),
        (lambda: Ledger(BUDGET, adaptive="gdp"), TypeError, "adaptive must be"),
        (lambda: Ledger(BUDGET, adaptive=PrivacyFilter(pa.GDP(1.0))), ValueError, "own target"),
        (lambda: Ledger(BUDGET).spend(0.5), TypeError, "curve must be a TradeOffCurve"),
        (lambda: Ledger(BUDGET).spend(pa.gaussian(0.1), 3), TypeError, "label must be text"),
        (lambda: Ledger(BUDGET).spend(pa.gaussian(0.1), "two\nlines"), ValueError, "label must be printable"),
        (lambda: Ledger(BUDGET).spend(pa.gaussian(0.1), "a", part=1), TypeError, "part must be text"),
        (lambda: Ledger(BUDGET).spend(pa.gaussian(0.1), leak=0.1), ValueError, "leak must be 0 without adaptive"),
        (lambda: Ledger(BUDGET).can_spend(None), TypeError, "curve"),
        (lambda: Ledger(BUDGET).epsilon(2.0), ValueError, "delta"),
    ],
)
def test_bad_input_says_what_to_do(make, error, text):
    with pytest.raises(error, match=text):
        make()
