"""Ledger files that were not written by this version of the ledger, word for word, are refused."""

import json
import math
import os

import pytest

import privfit.accounting as pa
from privfit.accounting.journal import Journal
from privfit.accounting.ledger import Ledger
from privfit.accounting.ledger_format import KIND

BUDGET = pa.Budget(1.0, 1e-5)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.jsonl"


def _records(path):
    """The lines of a file as plain data, without their checksums."""
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    return [{k: v for k, v in line.items() if k != "checksum"} for line in lines]


def _rewritten(path, records):
    """A file with these records and a chain of checksums that is in order."""
    path.unlink()
    journal = Journal(path, KIND)
    journal.create({k: v for k, v in records[0].items() if k != "kind"})
    with journal.writing():
        for record in records[1:]:
            journal.append(record)
    return path


def _refused(path, text, target=BUDGET, adaptive=False):
    content = path.read_bytes()
    for use in (
        lambda: Ledger.open(path).spend(pa.gaussian(0.01)),
        lambda: Ledger.open(path).can_spend(pa.gaussian(0.01)),
        lambda: Ledger(target, path, adaptive=adaptive).spend(pa.gaussian(0.01)),
    ):
        with pytest.raises(ValueError, match=text):
            use()
    assert path.read_bytes() == content


def _ledger(path, **settings):
    ledger = Ledger(BUDGET, path, **settings)
    ledger.spend(pa.gaussian(0.1), "first", part="north")
    return _records(path)


def test_a_file_that_is_written_again_as_it_was_is_read(path):
    records = _ledger(path)
    assert [e.label for e in Ledger.open(_rewritten(path, records)).entries] == ["first"]


@pytest.mark.parametrize("kind", ["refund", "Release", None, 3, ["release"], KIND])
def test_a_line_of_an_unknown_kind_is_no_permission(path, kind):
    records = _ledger(path)
    _refused(_rewritten(path, [*records, records[1] | {"kind": kind}]), "kind of a line in the ledger must be")
    records.append({"text": "no kind at all"})
    _refused(_rewritten(path, records), "kind of a line in the ledger must be")


def test_an_open_ledger_stays_refused_after_an_unknown_line(path):
    ledger = Ledger(BUDGET, path)
    ledger.spend(pa.gaussian(0.1), "first")
    stranger = Journal(path, KIND)
    with stranger.writing():
        stranger.append({"kind": "budget moved elsewhere", "epsilon": 0.9})
    for _ in range(2):
        with pytest.raises(ValueError, match="got 'budget moved elsewhere'"):
            ledger.spend(pa.gaussian(0.01))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"label": 3}, "a release in the ledger cannot be read: label must be text, got int"),
        ({"label": "two\nlines"}, "label must be printable"),
        ({"part": 7}, "part must be text, got int"),
        ({"part": ["north"]}, "part must be text, got list"),
        ({"part": "x" * 201}, "part must be printable text"),
        ({"time": None}, "time must be text"),
        ({"leak": "0"}, "leak must be a number"),
        ({"leak": 1.0}, "leak must be a number"),
        ({"curve": 0.1}, "must be a dictionary"),
        ({"curve": {"curve": ["GaussianCurve"], "version": 1, "mu": 0.1}}, "a release in the ledger cannot be read"),
        (
            {"curve": {"curve": "GaussianCurve", "version": 1, "mu": "0.1"}},
            "a release in the ledger cannot be read: mu",
        ),
        ({"times": 4}, "a release in the ledger has the unknown key times"),
    ],
    ids=str,
)
def test_a_release_with_a_wrong_value_is_refused(path, change, text):
    records = _ledger(path)
    _refused(_rewritten(path, [records[0], records[1] | change]), text)


@pytest.mark.parametrize("missing", ["label", "part", "time", "leak", "curve"])
def test_a_release_that_lacks_something_is_refused(path, missing):
    records = _ledger(path)
    del records[1][missing]
    _refused(_rewritten(path, records), f"a release in the ledger lacks {missing}; read it with")


def test_a_note_of_an_unfinished_line_must_be_whole(path):
    records = _ledger(path)
    note = {"kind": "set aside", "time": "2026-01-01", "text": "{"}
    assert "1 unfinished lines" in str(Ledger.open(_rewritten(path, [*records, note])))
    _refused(_rewritten(path, [*records, note | {"time": 1}]), "time must be text")
    _refused(_rewritten(path, [*records, note | {"curve": {}}]), "unknown key curve")


@pytest.mark.parametrize("missing", ["target", "adaptive", "neighbours", "time"])
@pytest.mark.parametrize("adaptive", [False, True])
def test_a_header_that_lacks_something_is_refused(path, missing, adaptive):
    records = _ledger(path, adaptive=adaptive)
    del records[0][missing]
    _refused(_rewritten(path, records), f"the header in the ledger lacks {missing}; read it with", adaptive=adaptive)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"target": {"target": "Renyi", "order": 2.0}}, "target in the ledger must be one of Advantage, Budget"),
        ({"target": {"epsilon": 1.0, "delta": 1e-5}}, "target in the ledger must be one of"),
        ({"target": {"target": ["Budget"]}}, "target in the ledger must be one of"),
        ({"target": "Budget"}, "target in the ledger must be one of"),
        ({"target": None}, "target in the ledger must be one of"),
        ({"target": {"target": "Budget", "epsilon": 1.0}}, "the target in the ledger cannot be read: .*delta"),
        ({"target": {"target": "Budget", "epsilon": "1", "delta": 0.1}}, "the target in the ledger cannot be read"),
        ({"target": {"target": "Budget", "epsilon": -1.0, "delta": 0.1}}, "epsilon must be"),
        ({"target": {"target": "GDP", "mu": 1.0, "nu": 1.0}}, "the target in the ledger cannot be read"),
        ({"target": {"curve": "GaussianCurve", "version": 1, "mu": [1.0]}}, "the target in the ledger cannot be read"),
        ({"adaptive": True}, "adaptive in the ledger must be null or the settings of a filter"),
        ({"adaptive": {}}, "the filter in the ledger lacks leak, method, order, slack"),
        ({"adaptive": {"method": "gdp", "leak": "0", "slack": 0.0, "order": None}}, "the filter .* cannot be read"),
        ({"adaptive": {"method": "gdp", "leak": 0.0, "slack": 0.0, "order": None, "x": 1}}, "unknown key x"),
        (
            {"neighbours": "inputs that differ in ten records"},
            "neighbours of the ledger must be .inputs that differ in one record",
        ),
        ({"neighbours": None}, "neighbours of the ledger must be .*, got None"),
        ({"currency": "epsilon"}, "the header in the ledger has the unknown key currency"),
        ({"version": None}, "version of the ledger must be 1"),
    ],
    ids=str,
)
def test_a_header_with_a_wrong_value_is_refused(path, change, text):
    records = _ledger(path)
    _rewritten(path, [records[0] | change, *records[1:]])
    with pytest.raises(ValueError, match=text):
        Ledger.open(path)
    with pytest.raises(ValueError, match=r"of the ledger|in the ledger"):
        Ledger(BUDGET, path)


def test_another_file_in_the_place_of_the_one_that_was_opened_is_noticed(path):
    ledger = Ledger(BUDGET, path)
    path.unlink()
    Ledger(pa.Budget(9.0, 1e-5), path)
    for use in (lambda: ledger.spend(pa.gaussian(0.01)), lambda: ledger.entries):
        with pytest.raises(ValueError, match="was cut or changed after it was read"):
            use()


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        ("", ValueError, "path must not be empty"),
        (b"", ValueError, "path must not be empty"),
        ("a\0b", ValueError, "null character"),
        (3, TypeError, "path must be text or path-like, got int"),
        (True, TypeError, "path must be text or path-like, got bool"),
        (["study.jsonl"], TypeError, "path must be text or path-like, got list"),
    ],
)
def test_what_is_no_path_is_named(wrong, error, text):
    for use in (lambda: Ledger(BUDGET, wrong), lambda: Ledger.open(wrong)):
        with pytest.raises(error, match=text):
            use()


def test_folders_devices_and_pipes_are_no_ledgers(tmp_path):
    places = [tmp_path, str(tmp_path), os.devnull]
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")  # opening it would wait for ever
        places.append(tmp_path / "pipe")
    for place in places:
        for use in (lambda p: Ledger(BUDGET, p), Ledger.open):
            with pytest.raises(ValueError, match="path must be that of a regular file, got the folder or device"):
                use(place)


def test_a_path_may_be_bytes(tmp_path):
    Ledger(BUDGET, os.fsencode(tmp_path / "study.jsonl")).spend(pa.gaussian(0.1), "first")
    assert len(Ledger.open(tmp_path / "study.jsonl").entries) == 1


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"part": 3}, TypeError, "part must be text"),
        ({"leak": math.nan}, ValueError, "leak must be"),
        ({"leak": 0.1}, ValueError, "leak must be 0 without adaptive"),
    ],
)
def test_remaining_checks_where_a_release_would_be_charged(settings, error, text):
    with pytest.raises(error, match=text):
        Ledger(BUDGET).remaining(lambda sigma: pa.gaussian(1 / sigma), **settings)
