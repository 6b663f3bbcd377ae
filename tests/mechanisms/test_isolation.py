"""Forks, spawned processes, threads, copies and pickles: no two releases share noise, no object keeps data or a key."""

import copy
import gc
import inspect
import multiprocessing
import os
import pickle
import struct
import sys
import threading
from datetime import date

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from privfit import mechanisms
from privfit.accounting import Budget
from privfit.mechanisms import (
    AuditReport,
    Ball,
    Box,
    Categories,
    Dates,
    DiscreteLaplace,
    Gaussian,
    Labels,
    Laplace,
    Law,
    NothingNewWarning,
    Numbers,
    Product,
    RandomizedResponse,
    RecordBook,
    SymmetricLaplace,
    ZeroInflatedLaplace,
    audit,
    dask_tasks,
    open_release,
    release,
    release_dask,
    release_file,
    releasing,
    work_folder,
    zil_region,
)
from privfit.mechanisms.keystream import MasterKey, block_words
from privfit.mechanisms.law_record import Header
from privfit.mechanisms.plan import plan_release

dd = pytest.importorskip("dask.dataframe")

PAIR = Box({"a": (0, 1), "b": (0, 1)})
LAWS = [
    Gaussian(1.0),
    Laplace(1.0),
    DiscreteLaplace(1.0),
    SymmetricLaplace(1.0, shape=3),
    ZeroInflatedLaplace(1.0, 0.01),
    Product({"a": Laplace(1.0), "b": Gaussian(1.0)}),
]


def drawn(law):
    return release(np.zeros((8, 2)), law, PAIR).frame.tobytes()


OTHERS = [pytest.param(method, marks=pytest.mark.slow) for method in ("spawn", "forkserver")]


@pytest.mark.parametrize("method", ["fork", *OTHERS])
def test_three_workers_after_a_draw_make_four_distinct_outputs(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system does not {method}")
    for law in LAWS if method == "fork" else LAWS[-1:]:
        drawn(law)
        with multiprocessing.get_context(method).Pool(3, maxtasksperchild=1) as pool:
            # One task per process, all of them from the same law.
            outs = [pool.apply_async(work, (law,)) for _ in range(3)]
            made = [out.get(120) for out in outs]
        assert len({pid for pid, _ in made}) == 3
        outputs = [noise for _, noise in made] + [drawn(law), drawn(law)]
        assert len(set(outputs)) == len(outputs)


def work(law):
    return os.getpid(), drawn(law)


def test_one_key_in_forked_workers_makes_the_same_block_everywhere():
    # What must differ is the key and nothing else: a block is a function of it in every process.
    with multiprocessing.get_context("fork").Pool(2) as pool:
        made = pool.map(words_of, [MasterKey(bytes(32))] * 4)
    assert set(made) == {words_of(bytes(32))}


def words_of(master):
    return block_words(master, 0, 0)(16).tobytes()


def in_threads(calls):
    """Run all calls at once, one thread each, and return what they returned."""
    barrier, out = threading.Barrier(len(calls)), [None] * len(calls)

    def run(number, call):
        barrier.wait()
        out[number] = call()

    threads = [threading.Thread(target=run, args=item) for item in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return out


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_eight_threads_release_at_once_each_with_its_own_noise(law):
    outs = in_threads([lambda: [drawn(law) for _ in range(4)]] * 8)
    every = [noise for out in outs for noise in out]
    assert len(every) == len(set(every)) == 32


@pytest.mark.parametrize("rounding", ["nearest", "stochastic"])
def test_threads_do_not_disturb_each_other(rounding):
    # Many blocks each, scales that no cache has seen, numpy's error state at its default: as if one after the other.
    x = np.random.default_rng(0).normal(size=(20_000, 2))
    scales = np.linspace(1.0, 1.9, 8) * (1.01 if rounding == "nearest" else 1.02)
    for make in (Gaussian, DiscreteLaplace, lambda s: SymmetricLaplace(s, shape=9)):
        laws = [make(scale) for scale in scales.tolist()]
        calls = [
            lambda law=law, seed=seed: release(x, law, PAIR, rng=seed, rounding=rounding).frame.tobytes()
            for seed, law in enumerate(laws)
        ]
        assert in_threads(calls) == [call() for call in calls]


def test_labels_in_threads():
    labels = np.array([["u"], ["v"], ["w"]] * 3000)
    law, domain = RandomizedResponse(1.0, 3), Categories({"l": ["u", "v", "w"]})
    calls = [lambda seed=seed: release(labels, law, domain, rng=seed).frame.tolist() for seed in range(8)]
    outs = in_threads(calls)
    assert outs == [call() for call in calls] and len({str(out[:64]) for out in outs}) == 8


# Every public object, made from these private cells under this key.

PRIVATE = 54_321.123456789
SECRET = "secret-person"
KEY = MasterKey(bytes(range(101, 133)))
SECRETS = [
    struct.pack("<d", PRIVATE), struct.pack(">d", PRIVATE), b"54321.12", SECRET.encode(), SECRET.encode("utf-16-le"),
    bytes(KEY), KEY.hex().encode(), bytes(KEY)[:16],
]  # fmt: skip
MONEY = Box({"money": (0, 1e5)})
DOMAIN = (MONEY, Categories({"answer": ["no", "yes"]}))
RULES = {"money": Gaussian(3e4), "answer": RandomizedResponse(1.0)}


def private_frame():
    return pd.DataFrame(
        {"money": [PRIVATE] * 6, "answer": [SECRET, "yes"] * 3}, index=[f"{SECRET}-{i}" for i in range(6)]
    )


@pytest.fixture(scope="module")
def public_objects(tmp_path_factory):
    """One object of every public class, each that can have seen data made from private ones."""
    place = tmp_path_factory.mktemp("isolation")
    private = private_frame()
    private.to_parquet(place / "in.parquet", index=False)
    with pytest.MonkeyPatch.context() as patch:
        for module in (releasing, work_folder):
            patch.setattr(module, "fresh_master", lambda: KEY)
        made = release(private, RULES, DOMAIN)
        made.save(place / "saved.parquet")
        streamed = release_file(place / "in.parquet", place / "streamed", RULES, DOMAIN, workers=1, progress=False)
        lazy = dd.from_pandas(private, npartitions=2)
        release_dask(lazy, place / "partitions", RULES, DOMAIN, progress=False)
    book = RecordBook(place / "records.book")
    book.note([SECRET, "someone else"], "wave")
    plan = plan_release(RULES, DOMAIN)
    return {
        "AuditReport": audit(Gaussian(1.0), PAIR, samples=2000),
        "Ball": Ball(1.0, 2),
        "Box": MONEY,
        "Categories": DOMAIN[1],
        "Dates": Dates(),
        "DiscreteLaplace": LAWS[2],
        "FileRelease": streamed,
        "Gaussian": LAWS[0],
        "Guarantee": made.guarantee(),
        "Labels": Labels({"low": 0, "high": 1}),
        "Laplace": LAWS[1],
        "NothingNewWarning": NothingNewWarning("nothing new"),
        "Numbers": Numbers(),
        "Product": LAWS[5],
        "RandomizedResponse": RULES["answer"],
        "RecordBook": book,
        "Release": made,
        "ReleaseReader": open_release(place / "partitions"),
        "SymmetricLaplace": LAWS[3],
        "ZeroInflatedLaplace": LAWS[4],
        "ZilRegion": zil_region(Budget(1.0, 0.1), Box({"x": (0, 1)}), [0.02, 0.09]),
        # not exported, but what travels between processes
        "Plan": plan,
        "Header": Header(plan, ("money", "answer"), "pandas"),
        "Job": dask_tasks.Job(Header(plan, ("money", "answer"), "pandas"), None, place, place, "0"),
    }


def test_every_public_class_is_here(public_objects):
    classes = {name for name in mechanisms.__all__ if inspect.isclass(getattr(mechanisms, name))}
    assert classes - {"Law"} <= set(public_objects), "add the new class to public_objects"
    for name in classes - {"Law"}:
        assert type(public_objects[name]) is getattr(mechanisms, name)


PROTOCOLS = (2, pickle.HIGHEST_PROTOCOL)


def ways(thing):
    yield copy.copy(thing)
    yield copy.deepcopy(thing)
    for protocol in PROTOCOLS:
        yield pickle.loads(pickle.dumps(thing, protocol))


def test_copies_and_pickles_are_as_good_as_the_original(public_objects):
    for name, thing in public_objects.items():
        for again in ways(thing):
            assert type(again) is type(thing)
            if name != "RecordBook":
                assert repr(again) == repr(thing), name
            if isinstance(thing, (Law, Box, Ball, Categories, Dates, Labels, Numbers)):
                assert again == thing and hash(again) == hash(thing)


def test_neither_pickles_nor_texts_hold_data_or_a_key(public_objects):
    for name, thing in public_objects.items():
        stored = b"".join(pickle.dumps(thing, protocol) for protocol in PROTOCOLS)
        text = repr(thing) + str(thing)
        if hasattr(thing, "report"):
            text += thing.report()
        for secret in SECRETS:
            assert secret not in stored, name
            assert secret not in text.encode("utf-8", "surrogateescape"), name


def reachable(thing):
    """Everything that can be reached from an object without going through classes, modules and functions."""
    seen, todo = {}, [thing]
    skipped = (type, type(sys), type(reachable), type(len), property)
    while todo:
        found = todo.pop()
        if id(found) in seen or isinstance(found, skipped):
            continue
        seen[id(found)] = found
        todo += gc.get_referents(found)
        if isinstance(found, np.ndarray) and found.base is not None:
            todo.append(found.base)
    return seen.values()


def test_nothing_that_can_be_reached_from_an_object_is_data_or_a_key(public_objects):
    for name, thing in public_objects.items():
        count = 0
        for found in reachable(thing):
            count += 1
            assert not isinstance(found, MasterKey), name
            if isinstance(found, np.ndarray) and found.dtype.kind == "f":
                assert not (found == PRIVATE).any(), name
            elif isinstance(found, float):
                assert found != PRIVATE, name
            elif isinstance(found, (str, bytes)) and len(found) < 10_000:
                raw = found.encode("utf-8", "surrogateescape") if isinstance(found, str) else found
                assert not any(secret in raw for secret in SECRETS), name
        assert count > 0


def test_the_search_finds_what_is_there():
    # Were a release to keep the table or the key, the tests above would say so.
    for holder in ({"frame": private_frame()}, [(KEY,)], private_frame()["money"].to_numpy()[:2]):
        stored, things = pickle.dumps(holder), list(reachable(holder))
        assert any(secret in stored for secret in SECRETS)
        arrays = [t for t in things if isinstance(t, np.ndarray) and t.dtype.kind == "f"]
        assert any(isinstance(t, MasterKey) for t in things) or any((a == PRIVATE).any() for a in arrays)


def test_files_hold_neither_data_nor_a_key(public_objects):
    folder = public_objects["FileRelease"].path.parent
    written = [path for path in folder.rglob("*") if path.is_file() and path.name != "in.parquet"]
    assert len(written) >= 6
    for path in written:
        raw = path.read_bytes()
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            raw += pickle.dumps(table.to_pydict()) + repr(table.schema.metadata).encode()
        assert not any(secret in raw for secret in SECRETS), path.name


def test_a_copied_or_pickled_law_shares_no_randomness():
    for law in LAWS:
        outputs = [drawn(one) for one in (law, *ways(law)) for _ in range(2)]
        assert len(set(outputs)) == len(outputs)


def test_copies_of_a_release_are_the_same_release_in_memory_of_their_own():
    made = release(np.zeros((50, 2)), LAWS[0], PAIR)
    for again in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert (again.frame == made.frame).all() and not np.shares_memory(again.frame, made.frame)
        assert again.law == made.law and again.secure


def test_reports_of_audits_hold_counts_alone(public_objects):
    report = public_objects["AuditReport"]
    assert isinstance(report, AuditReport)
    arrays = [t for t in reachable(report) if isinstance(t, np.ndarray) and t.size >= report.samples]
    assert arrays == []


def test_dates_and_boxes_keep_declarations_only():
    box = Box({"born": (date(1900, 1, 1), date(2010, 1, 1))})
    release(pd.DataFrame({"born": [pd.Timestamp("1977-03-05")] * 3}), Gaussian(700.0), box)
    day = (date(1977, 3, 5) - date(1970, 1, 1)).days
    assert not any(isinstance(found, (int, float)) and found == day for found in reachable(box))
