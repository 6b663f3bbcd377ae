"""The holder's book of released records: what it remembers, refuses and never says."""

import multiprocessing
import os
import pickle
import signal
import sqlite3
import stat
import threading

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privfit.mechanisms.record_book import RecordBook
from privfit.mechanisms.record_ids import digests, read_ids

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "records.book"


# --- remembering ----------------------------------------------------------------------------------------


def test_it_agrees_with_a_dictionary(path):
    rng, book, known = np.random.default_rng(0), RecordBook(path), {}
    for wave in range(30):
        ids = rng.choice(400, size=rng.integers(0, 40), replace=False)
        expected = np.array([i not in known for i in ids.tolist()], dtype=bool)
        np.testing.assert_array_equal(book.new(ids), expected)
        np.testing.assert_array_equal(RecordBook.open(path).new(ids.astype(np.uint16)), expected)
        with book.adding(ids, f"wave {wave}") as new:
            np.testing.assert_array_equal(new, expected)
        known.update({i: f"wave {wave}" for i in ids.tolist() if i not in known})
        assert book.parts() == {name: list(known.values()).count(name) for name in dict.fromkeys(known.values())}


def test_a_record_has_one_part(path):
    book = RecordBook(path)
    assert book.note(["zelda", "bob"], "2026-10") == 2
    assert book.note(["bob", "eve"], "2026-10") == 1  # a further release of the same part
    with pytest.raises(ValueError, match="got 2 of 3 records of other parts") as caught:
        book.note(["zelda", "eve", "joe"], "2026-11")
    assert "zelda" not in str(caught.value) and "eve" not in str(caught.value)
    assert book.parts() == {"2026-10": 3} and book.new(["joe"]).all()


def test_what_fails_inside_is_not_there(path):
    book = RecordBook(path)
    with pytest.raises(RuntimeError, match="no room"), book.adding([1, 2], "a"):
        raise RuntimeError("no room")
    assert book.parts() == {} and book.new([1, 2]).all()
    book.note(["x"], "a")  # the kind of ids was forgotten, too


KINDS = {
    "list": lambda ids: ids,
    "numpy text": np.array,
    "numpy object": lambda ids: np.array(ids, dtype=object),
    "pandas": pd.Series,
    "pandas object": lambda ids: pd.Series(ids, dtype=object),
    "pandas category": lambda ids: pd.Series(ids, dtype="category"),
    "polars": pl.Series,
    "polars category": lambda ids: pl.Series(ids, dtype=pl.Categorical),
    "pyarrow": lambda ids: pa.chunked_array([ids]),
    "pyarrow dictionary": lambda ids: pa.chunked_array([pa.array(ids).dictionary_encode()]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_id_is_the_same_in_every_container(path, kind):
    book = RecordBook(path)
    book.note(["zelda", "bob"], "a")
    assert book.new(KINDS[kind](["bob", "é", "zelda"])).tolist() == [False, True, False]


def test_whole_numbers_of_every_width(path):
    book = RecordBook(path)
    book.note([7, 2**53 + 1, -5, 2**90], "a")
    nullable, chunked = (lambda ids: pd.Series(ids, dtype="Int64")), (lambda ids: pa.chunked_array([ids]))
    for make in (np.array, pd.Series, pl.Series, nullable, chunked):
        assert book.new(make([7, 2**53, 2**53 + 1, -5])).tolist() == [False, True, False, False]
    assert book.new([2**90, 2**90 + 1, 10**5000]).tolist() == [False, True, True]


# --- what is refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ids", "error", "match"),
    [
        (["zelda", None, "bob", None], ValueError, "got 2 of 4 missing"),
        ([4111, None], ValueError, "got 1 of 2 missing"),
        (pd.Series(["zelda", None]), ValueError, "got 1 of 2 missing"),
        (pd.Series([4111, None], dtype="Int64"), ValueError, "got 1 of 2 missing"),
        (pl.Series([4111, None, None]), ValueError, "got 2 of 3 missing"),
        (pa.chunked_array([["zelda", None]]), ValueError, "got 1 of 2 missing"),
        (np.array(["zelda", np.nan], dtype=object), ValueError, "got 1 of 2 missing"),
        (np.array([4111.0]), TypeError, "real numbers lose digits"),
        (pd.Series([4111, None]), TypeError, "real numbers lose digits"),
        (np.array([True]), TypeError, "got dtype bool"),
        (np.array(["2020-01-01"], dtype="M8[D]"), TypeError, "dates are shared"),
        (["zelda", 4111], TypeError, "all integers or all text"),
        ([True, False], TypeError, "all integers or all text"),
        ([b"zelda"], TypeError, "all integers or all text"),
        (["zelda", "bob", "zelda", "zelda"], ValueError, "got 2 of 4 rows with the id of an earlier row"),
        (np.array([4111, 4111]), ValueError, r"group\(k\)"),
        (np.array([[4111]]), ValueError, "got 2 dimensions"),
        (np.ma.masked_array([4111], [True]), TypeError, "masked"),
        ("zelda", TypeError, "got str"),
        (4111, TypeError, "got int"),
    ],
)
def test_ids_that_cannot_tell_people_apart(path, ids, error, match):
    book = RecordBook(path)
    for call in (book.new, lambda ids: book.note(ids, "a")):
        with pytest.raises(error, match=match) as caught:
            call(ids)
        assert "zelda" not in str(caught.value) and "4111" not in str(caught.value)
    assert book.parts() == {}


def test_one_kind_of_ids_for_life(path):
    RecordBook(path).note([7], "a")
    with pytest.raises(TypeError, match="must be integers, as those in the book, got text"):
        RecordBook(path).new(["7"])
    assert RecordBook(path).new([]).tolist() == []


@pytest.mark.parametrize("part", [None, "", 3, "a\nb", "x" * 201])
def test_bad_parts(path, part):
    book = RecordBook(path)
    with pytest.raises((TypeError, ValueError), match="part must be"):
        book.note([1], part)
    assert book.parts() == {}


def test_bad_paths(tmp_path):
    for wrong in (3, None):
        with pytest.raises(TypeError, match="path must be"):
            RecordBook(wrong)
    for wrong in ("", tmp_path, "a\0b"):
        with pytest.raises(ValueError, match="path must be"):
            RecordBook(wrong)
    with pytest.raises(FileNotFoundError, match="check the path"):
        RecordBook.open(tmp_path / "none.book")
    assert not (tmp_path / "none.book").exists()


def test_files_that_are_no_book(tmp_path):
    other = tmp_path / "other"
    other.write_bytes(b"name,age\n" * 500)
    other.chmod(0o600)
    with pytest.raises(ValueError, match="no record book"):
        RecordBook(other)
    assert other.read_bytes() == b"name,age\n" * 500
    database = tmp_path / "database"
    with sqlite3.connect(database) as file:
        file.execute("CREATE TABLE mine (x)")
    database.chmod(0o600)
    with pytest.raises(ValueError, match="no record book"):
        RecordBook(database)


def test_a_later_version_is_not_guessed_at(path):
    RecordBook(path)
    with sqlite3.connect(path) as file:
        file.execute("PRAGMA user_version = 2")
    with pytest.raises(ValueError, match="version 2"):
        RecordBook(path)


def test_a_removed_file_does_not_come_back_empty(path):
    book = RecordBook(path)
    book.note([1], "a")
    path.unlink()
    for call in (lambda: book.new([1]), lambda: book.note([1], "a"), book.parts):
        with pytest.raises(OSError, match="could not be read or written"):
            call()
    assert not path.exists()


def test_damage_is_noticed(path):
    book = RecordBook(path)
    book.note(range_list := list(range(2000)), "a")
    content = bytearray(path.read_bytes())
    content[:100] = os.urandom(100)
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match="damaged"):
        book.new(range_list)


# --- what the file says -----------------------------------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX permissions")
def test_only_the_owner_can_read_it(path):
    before = os.umask(0)
    try:
        book = RecordBook(path)
        with book.adding([1], "a"):
            assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}
    finally:
        os.umask(before)
    path.chmod(0o640)
    with pytest.raises(ValueError, match="chmod 600"):
        RecordBook(path)


def test_no_id_is_in_the_file_and_two_books_have_nothing_in_common(tmp_path):
    found = []
    for name in ("one", "two"):
        book = RecordBook(tmp_path / name)
        book.note(["zelda.of.green.gables", "bob"], "a")
        assert b"green" not in (tmp_path / name).read_bytes()
        assert b"green" not in pickle.dumps(book) and "green" not in repr(book)
        with sqlite3.connect(tmp_path / name) as file:
            found.append({digest for (digest,) in file.execute("SELECT digest FROM records")})
    assert len(found[0]) == len(found[1]) == 2 and not found[0] & found[1]


def test_it_only_grows(path):
    RecordBook(path).note([1, 2], "a")
    with sqlite3.connect(path) as file:
        for statement in ("DELETE FROM records", "UPDATE records SET part = 2"):
            with pytest.raises(sqlite3.IntegrityError, match="only grows"):
                file.execute(statement)


def test_digests_are_keyed_blake2b():
    import hashlib

    (own,) = digests(["zelda"], b"k" * 32)
    assert own == hashlib.blake2b(b"zelda", key=b"k" * 32, digest_size=16, person=b"privfit-records").digest()
    (number,) = digests([255], b"k" * 32)
    assert number == hashlib.blake2b(b"ff", key=b"k" * 32, digest_size=16, person=b"privfit-records").digest()
    assert read_ids([]) == ("", [])


# --- threads, processes, crashes --------------------------------------------------------------------------


def claim(path, wave, won):
    with RecordBook(path).adding(list(range(200)), f"wave {wave}") as new:
        won.append(int(new.sum()))


def test_threads_claim_a_record_once(path):
    RecordBook(path)
    won = []
    threads = [threading.Thread(target=claim, args=(path, wave, won)) for wave in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == [0] * 5 + [200]
    assert sum(RecordBook(path).parts().values()) == 200


def claim_some(path, seed, queue):
    rng, total = np.random.default_rng(seed), 0
    for wave in range(8):
        with RecordBook(path).adding(rng.choice(300, 60, replace=False), f"{seed}/{wave}") as new:
            total += int(new.sum())
    queue.put(total)


@forks
def test_processes_claim_a_record_once(path):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    children = [context.Process(target=claim_some, args=(path, seed, queue)) for seed in range(3)]
    for child in children:
        child.start()
    total = sum(queue.get(timeout=60) for _ in children)
    for child in children:
        child.join()
    assert sum(RecordBook(path).parts().values()) == total > 250


def die_inside(path):
    with RecordBook(path).adding(list(range(5000)), "lost"):
        os.kill(os.getpid(), signal.SIGKILL)


def die_between(path):
    RecordBook(path).note(list(range(5000)), "kept")
    os.kill(os.getpid(), signal.SIGKILL)


@forks
@pytest.mark.parametrize(("death", "left"), [(die_inside, {}), (die_between, {"kept": 5000})])
def test_a_killed_process_leaves_all_or_nothing(path, death, left):
    RecordBook(path)
    child = multiprocessing.get_context("fork").Process(target=death, args=(path,))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    assert RecordBook.open(path).parts() == left
    assert RecordBook.open(path).note([9000], "next") == 1


@forks
def test_fork_and_pickle_share_the_file(path):
    book = RecordBook(path)
    book.note([1], "a")
    child = multiprocessing.get_context("fork").Process(target=book.note, args=([2], "b"))
    child.start()
    child.join()
    assert pickle.loads(pickle.dumps(book)).parts() == book.parts() == {"a": 1, "b": 1}


def test_a_letter_with_an_accent_is_one_letter_however_it_is_stored(path):
    book = RecordBook(path)
    book.note(["Zo\u00eb", "\u1100\u1161"], "first")
    assert book.new(["Zoe\u0308", "\uac00"]).tolist() == [False, False]
    with pytest.raises(ValueError, match="distinct"):
        book.new(["Zo\u00eb", "Zoe\u0308"])
    assert book.new(["Zoe", "zo\u00eb", "\ud800"]).all()
