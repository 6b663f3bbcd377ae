"""Several releases under one budget: the same records compose, new records do not, what does not fit is not drawn."""

import multiprocessing
import os
import pickle
import signal
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import mpmath
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privfit.accounting import GDP, Budget, Ledger, laplace
from privfit.accounting.ledger import BudgetExceeded
from privfit.mechanisms import Box, Categories, Gaussian, Laplace, RandomizedResponse, blocks, release
from privfit.mechanisms.incremental import NothingNewWarning, release_new
from privfit.mechanisms.record_book import RecordBook

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
UNIT = Box({"x": (0, 1)})
LAW = Gaussian(2.0)  # 1/2-GDP for one column of range 1
ETA = 2**-36.9


def column(n, value=0.5):
    return np.full((n, 1), value)


@pytest.fixture
def study(tmp_path):
    """A book and a ledger of exactly two half-GDP releases of the same records."""
    return {
        "book": RecordBook(tmp_path / "records.book"),
        "ledger": Ledger(GDP(np.sqrt(0.5)), tmp_path / "study.jsonl"),
    }


@pytest.fixture
def no_noise(monkeypatch):
    """From now on drawing a key or a word is an error."""

    def fail(*args, **kwargs):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr("privfit.mechanisms.releasing.fresh_master", fail)
    monkeypatch.setattr("privfit.mechanisms.blocks.block_words", fail)


def gaussian_delta(mu, epsilon):
    """Balle & Wang's delta of the Gaussian mechanism, to 30 digits."""
    with mpmath.workdps(30):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        upper = mpmath.ncdf(mu / 2 - epsilon / mu)
        return upper - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


# --- the same records: composition -------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "second"), [(4.0, 4.0), (3.0, 7.0)])
def test_two_gaussian_releases_compose(first, second):
    exact = mpmath.sqrt(mpmath.mpf(1) / first**2 + mpmath.mpf(1) / second**2)
    plain, safe = Ledger(GDP(2.0)), Ledger(Budget(8.0, 1e-3))
    for ledger in (plain, safe):
        for scale in (first, second):
            release(column(3), Gaussian(scale), UNIT, ledger=ledger, label="again")
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        truth = float(gaussian_delta(exact, epsilon))
        assert plain.guarantee().delta(epsilon) == pytest.approx(truth, rel=1e-12)
        # a budget is charged with the slack eta of each sampler: at most (1 + e^eps) eta each
        charged = safe.guarantee().delta(epsilon)
        assert truth < charged < truth + 2 * (1 + np.exp(epsilon)) * ETA * 1.01 + 1e-9 * truth


def test_different_laws_compose_like_their_losses():
    # Laplace and randomised response, by Monte Carlo over the privacy losses: four standard errors
    ledger, n, rng = Ledger(Budget(5.0, 0.5)), 400_000, np.random.default_rng(0)
    release(column(2), Laplace(1.0), UNIT, ledger=ledger, part="a")
    labels = np.array([["u"], ["v"]]), Categories({"c": ["u", "v"]})
    release(labels[0], RandomizedResponse(0.5, 2), labels[1], ledger=ledger, part="a")
    x = rng.laplace(1.0, 1.0, n)
    kept = rng.random(n) < 1 / (1 + np.exp(-0.5))
    loss = np.abs(x) - np.abs(x - 1) + np.where(kept, 0.5, -0.5)
    for epsilon in (0.2, 0.6, 1.0):
        gain = np.maximum(0.0, -np.expm1(epsilon - loss))
        assert abs(ledger.guarantee().delta(epsilon) - gain.mean()) < 4 * gain.std() / np.sqrt(n) + 1e-8


def test_a_release_too_many_is_refused_before_a_word_is_drawn(study, no_noise):
    ledger = study["ledger"]
    ledger.spend(LAW.guarantee(UNIT).record_law, "first")
    ledger.spend(LAW.guarantee(UNIT).record_law, "second")
    with pytest.raises(BudgetExceeded):
        release(column(5), LAW, UNIT, ledger=ledger, label="third")
    with pytest.raises(BudgetExceeded):
        release_new(column(5), LAW, UNIT, ids=range(5), part="a", **study)
    assert len(ledger.entries) == 2
    assert study["book"].parts() == {} and study["book"].new(list(range(5))).all()


def test_the_guard_against_noise_bites(no_noise):
    with pytest.raises(AssertionError, match="noise was drawn"):
        release(column(1), LAW, UNIT)


def test_attribute_level_is_counted_if_asked_for(tmp_path):
    box = Box({"x": (0, 1), "y": (0, 1)})
    book, ledger = RecordBook(tmp_path / "book"), Ledger(GDP(5.0))
    release_new(np.zeros((2, 2)), LAW, box, ids=[1, 2], book=book, ledger=ledger, part="a", protect="attribute")
    assert ledger.guarantee().gdp() == pytest.approx(0.5, rel=1e-12)
    release_new(np.zeros((2, 2)), LAW, box, ids=[3, 4], book=book, ledger=ledger, part="b")
    assert np.sqrt(0.5) * (1 - 1e-12) < ledger.guarantee().gdp() < np.sqrt(0.5) * (1 + 1e-5)


# --- new records: parallel -----------------------------------------------------------------------------------


def test_waves_of_new_records_cost_what_the_worst_costs(study):
    for month in range(1, 13):
        ids = np.arange(10 * month)
        out = release_new(column(10 * month), LAW, UNIT, ids=ids, part=f"month {month}", **study)
        assert out.n_rows == 10 and out.secure
    assert study["ledger"].guarantee().gdp() == pytest.approx(0.5, rel=1e-12)
    for epsilon in (0.0, 1.0):
        truth = float(gaussian_delta(0.5, epsilon))
        assert study["ledger"].guarantee().delta(epsilon) == pytest.approx(truth, rel=1e-12)
    assert study["book"].parts() == {f"month {month}": 10 for month in range(1, 13)}
    # sqrt(12)/2-GDP would never have fitted
    with pytest.raises(BudgetExceeded):
        single = Ledger(GDP(np.sqrt(0.5)))
        for _ in range(3):
            release(column(10), LAW, UNIT, ledger=single)


def test_a_wave_under_an_old_name_adds_up(study):
    for wave in range(2):
        release_new(column(3), LAW, UNIT, ids=[3 * wave + i for i in range(3)], part="same", **study)
    assert study["ledger"].guarantee().gdp() == pytest.approx(np.sqrt(0.5), rel=1e-12)
    with pytest.raises(BudgetExceeded):
        release_new(column(3), LAW, UNIT, ids=[7, 8, 9], part="same", **study)
    assert study["book"].new([7, 8, 9]).all()
    assert release_new(column(3), LAW, UNIT, ids=[7, 8, 9], part="other", **study).n_rows == 3


def test_a_second_release_of_a_part_composes_within_it(study):
    book, ledger = study["book"], study["ledger"]
    release_new(column(4), LAW, UNIT, ids=[1, 2, 3, 4], part="a", **study)
    release_new(column(6), LAW, UNIT, ids=[1, 2, 3, 4, 5, 6], part="b", **study)
    with pytest.raises(ValueError, match="2 of 3 records of other parts"):
        book.note([4, 5, 6], "a")
    assert book.note([1, 2, 3, 4], "a") == 0
    release(column(4), LAW, UNIT, ledger=ledger, part="a")
    # the smallest of two curves is numerical: on the safe side
    assert np.sqrt(0.5) * (1 - 1e-12) < ledger.guarantee().gdp() < np.sqrt(0.5) * (1 + 1e-5)
    assert not ledger.can_spend(LAW.guarantee(UNIT).record_law, part="a")
    assert ledger.can_spend(LAW.guarantee(UNIT).record_law, part="b")


def test_a_release_of_everyone_adds_to_every_wave(study):
    release_new(column(2), LAW, UNIT, ids=[1, 2], part="a", **study)
    release(column(9), LAW, UNIT, ledger=study["ledger"], label="everyone")
    assert study["ledger"].guarantee().gdp() == pytest.approx(np.sqrt(0.5), rel=1e-12)
    with pytest.raises(BudgetExceeded):
        release_new(column(2), Gaussian(1.9), UNIT, ids=[3, 4], part="b", **study)


# --- which rows, in which container ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["numpy", "pandas", "polars", "pyarrow"])
def test_the_new_rows_and_only_those_come_out_in_order(study, kind):
    frame = pd.DataFrame({"x": np.arange(8) / 8.0, "person": list("abcdefgh")}, index=list("stuvwxyz"))
    study["book"].note(list("bdg"), "before")
    data = {
        "pandas": frame,
        "polars": pl.from_pandas(frame),
        "pyarrow": pa.Table.from_pandas(frame, preserve_index=False),
        "numpy": frame[["x"]].to_numpy(),
    }[kind]
    ids = "person" if kind != "numpy" else frame["person"].to_numpy()
    sharp = Gaussian(1e-3)
    study["ledger"] = Ledger(GDP(1e4))
    out = release_new(data, sharp, UNIT, ids=ids, part="now", label="wave", **study)
    assert type(out.frame) is type(data) and out.n_rows == 5 and out.names == ("x",)
    np.testing.assert_allclose(np.asarray(out.frame)[:, 0], np.array([0, 2, 4, 5, 7]) / 8, atol=0.01)
    if kind == "pandas":
        assert list(out.frame.index) == [0, 1, 2, 3, 4]
    assert b"person" not in pickle.dumps(out.frame)
    (entry,) = study["ledger"].entries
    assert (entry.label, entry.part) == ("wave", "now")


def test_nothing_new_is_said_and_not_charged(study):
    first = release_new(column(3), LAW, UNIT, ids=[1, 2, 3], part="a", **study)
    with pytest.warns(NothingNewWarning, match="not charged") as caught:
        again = release_new(column(3), LAW, UNIT, ids=[3, 2, 1], part="b", **study)
    assert caught[0].filename == __file__
    assert again.n_rows == 0 and again.frame.shape == (0, 1) and again.secure
    assert first.n_rows == 3 and len(study["ledger"].entries) == 1
    assert study["book"].parts() == {"a": 3}
    with pytest.warns(NothingNewWarning):
        assert release_new(column(0), LAW, UNIT, ids=[], part="c", **study).n_rows == 0


def test_cells_change_neither_rows_nor_errors(study):
    for part, value in enumerate((np.nan, np.inf, -1e308, 0.5)):
        ids = [f"{part}/{row}" for row in range(4)]
        assert release_new(column(4, value), LAW, UNIT, ids=ids, part=str(part), **study).n_rows == 4


# --- mistakes spend nothing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"book": None}, TypeError, "book must be a RecordBook"),
        ({"ledger": None}, TypeError, "ledger must be"),
        ({"ledger": "study.jsonl"}, TypeError, "ledger must be"),
        ({"part": None}, TypeError, "part must be"),
        ({"part": ""}, TypeError, "part must be"),
        ({"ids": [1, 2]}, ValueError, "one id for each of the 3 rows of data, got 2"),
        ({"ids": [1, 1, 2]}, ValueError, "1 of 3 rows"),
        ({"ids": [1, None, 2]}, ValueError, "1 of 3 missing"),
        ({"ids": "person"}, ValueError, "data has not"),
        ({"domain": None}, TypeError, "domain must be"),
        ({"domain": Box({"x": (0, 1), "y": (0, 1)})}, ValueError, "data must have 2 columns"),
        ({"data": np.array([["4111"], ["b"], ["c"]])}, TypeError, "must hold"),
        ({"rounding": "up"}, ValueError, "rounding"),
        ({"protect": "rows"}, ValueError, "protect"),
        ({"label": "a\nb"}, ValueError, "label"),
        ({"law": RandomizedResponse(1.0, 2)}, TypeError, "Categories"),
    ],
)
def test_mistakes(study, no_noise, change, error, match):
    given = {"data": column(3), "law": LAW, "domain": UNIT, "ids": [1, 2, 3], "part": "a", **study, **change}
    with pytest.raises(error, match=match) as caught:
        release_new(given.pop("data"), given.pop("law"), given.pop("domain"), **given)
    assert "4111" not in str(caught.value)
    assert study["ledger"].entries == () and study["book"].parts() == {}


# --- threads, processes, crashes ------------------------------------------------------------------------------------


def test_threads_share_a_ledger_in_memory():
    ledger, law = Ledger(GDP(1.0)), LAW  # room for four

    def one(_):
        try:
            return release(column(50), law, UNIT, ledger=ledger).frame
        except BudgetExceeded:
            return None

    with ThreadPoolExecutor(8) as pool:
        outs = [out for out in pool.map(one, range(12)) if out is not None]
    assert len(outs) == len(ledger.entries) == 4
    assert len({out.tobytes() for out in outs}) == 4
    assert ledger.guarantee().gdp() == pytest.approx(1.0, rel=1e-12)


@pytest.mark.filterwarnings("ignore::privfit.mechanisms.incremental.NothingNewWarning")
def test_threads_release_a_record_once(study):
    found = []

    def one(wave):
        found.append(release_new(column(20), LAW, UNIT, ids=range(20), part=f"wave {wave}", **study).n_rows)

    threads = [threading.Thread(target=one, args=(wave,)) for wave in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [0, 0, 0, 0, 20]
    assert len(study["ledger"].entries) == 1


def release_often(study, part, queue):
    done = 0
    for _ in range(2):
        try:
            release(column(5), LAW, UNIT, ledger=study["ledger"], part=part)
            done += 1
        except BudgetExceeded:
            pass
    queue.put(done)


@forks
def test_processes_share_a_ledger(study):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    children = [context.Process(target=release_often, args=(study, part, queue)) for part in ("a", "a", "b")]
    for child in children:
        child.start()
    done = [queue.get(timeout=60) for _ in children]
    for child in children:
        child.join()
    assert sum(done) == len(study["ledger"].entries) == 4  # two in each part, whoever was faster
    assert study["ledger"].guarantee().gdp() == pytest.approx(np.sqrt(0.5), rel=1e-12)


def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)


def spend_and_die(ledger, *args, spend=Ledger.spend, **kwargs):
    spend(ledger, *args, **kwargs)
    die()


POINTS = {
    "before the ledger": ("privfit.mechanisms.incremental.spending", die),
    "between ledger and book": ("privfit.accounting.ledger.Ledger.spend", spend_and_die),
    "before the noise": ("privfit.mechanisms.releasing.fresh_master", die),
}


def release_and_die(study, point, log):
    patch, draw = pytest.MonkeyPatch(), blocks.block_words

    def logged(*args):
        with open(log, "a") as file:  # what is on the disk when words are drawn
            file.write(f"{len(study['ledger'].entries)} {sum(study['book'].parts().values())};")
        words = draw(*args)
        if point == "after the noise":
            return lambda count: (words(count), die())[0]
        return words

    patch.setattr(blocks, "block_words", logged)
    if point in POINTS:
        patch.setattr(*POINTS[point])
    release_new(column(6), LAW, UNIT, ids=range(6), part="a", **study)


@forks
@pytest.mark.parametrize(
    ("point", "entries", "noted", "words"),
    [
        ("before the ledger", 0, 0, ""),
        ("between ledger and book", 1, 0, ""),
        ("before the noise", 1, 6, ""),
        ("after the noise", 1, 6, "1 6;"),
    ],
)
def test_killed_at_every_point(study, tmp_path, point, entries, noted, words):
    log = tmp_path / "words"
    log.touch()
    child = multiprocessing.get_context("fork").Process(target=release_and_die, args=(study, point, log))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    assert len(study["ledger"].entries) == entries
    assert sum(study["book"].parts().values()) == noted
    assert log.read_text() == words  # no word before both are on the disk
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingNewWarning)  # half of the cases have nothing new
        again = release_new(column(6), LAW, UNIT, ids=range(6), part="a", **study)
    # what may have left is never released as new; what has not left is, and pays again
    assert again.n_rows == 6 - noted
    assert len(study["ledger"].entries) == entries + (noted == 0)


def test_a_failure_in_the_ledger_leaves_the_book_as_it_was(study, monkeypatch):
    def full(*args, **kwargs):
        raise OSError("no space left on device")

    monkeypatch.setattr("privfit.accounting.journal.Journal.append", full)
    with pytest.raises(OSError, match="no space"):
        release_new(column(2), LAW, UNIT, ids=[1, 2], part="a", **study)
    monkeypatch.undo()
    assert study["book"].new([1, 2]).all() and study["ledger"].entries == ()


def test_a_failure_of_the_release_stays_spent(study, monkeypatch):
    def broken(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr("privfit.mechanisms.releasing.fresh_master", broken)
    with pytest.raises(MemoryError) as caught:
        release_new(column(2), LAW, UNIT, ids=[1, 2], part="a", label="wave", **study)
    assert any("'wave' stays in the ledger" in note for note in caught.value.__notes__)
    assert len(study["ledger"].entries) == 1 and study["book"].parts() == {"a": 2}


def test_the_ledger_of_pure_budgets_adds_epsilons():
    ledger = Ledger(Budget(1.0, 0.0))
    ledger.spend(laplace(0.6), "first", part="a")
    with pytest.raises(BudgetExceeded):
        ledger.spend(laplace(0.5), "second", part="a")
    ledger.spend(laplace(0.5), "second", part="b")
    assert ledger.epsilon(0.0) == 0.6


@pytest.mark.parametrize("kind", ["numpy", "pandas", "polars", "pyarrow"])
def test_a_column_of_a_wrong_type_is_refused_before_anything_is_spent(kind):
    columns = {"x": ["a", "b"]}
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
    data = np.array([["a"], ["b"]]) if kind == "numpy" else make[kind](columns)
    ledger = Ledger(Budget(1.0, 1e-5))
    with pytest.raises(TypeError, match="must hold real numbers"):
        release(data, Gaussian(100.0), Box({"x": (0, 1)}), ledger=ledger)
    assert not ledger.entries
