"""Records of releases: what is written, and every way in which a text is no record, each with its message."""

import json
import pickle
import time

import numpy as np
import pytest

from privfit.mechanisms import (
    Ball,
    Box,
    Categories,
    Gaussian,
    Product,
    RandomizedResponse,
    SymmetricLaplace,
    ZeroInflatedLaplace,
)
from privfit.mechanisms.domains import domain_from_dict
from privfit.mechanisms.law_record import KEY, Header, checksum, part_name, sealed
from privfit.mechanisms.plan import plan_release
from privfit.mechanisms.record_checks import read_record

BOX = Box({"age": (17, 90), "hours": (0, 100)})
PLAN = plan_release(Gaussian([50.0, 80.0]), BOX, public=["state"])
HEADER = Header(PLAN, ("hours", "state", "age"), "pandas")
TYPES, DIGESTS = ["double", "string", "double"], ["0" * 32]


def text(change=None, fit=True, part=None):
    """A record after a change, with a checksum made to fit or as it was."""
    record = json.loads(HEADER.metadata(TYPES, 5, DIGESTS, part)[KEY])
    if change:
        change(record)
    if fit:
        record.pop("checksum", None)
        return sealed(record)
    return json.dumps(record)


def test_a_record_is_read_back():
    record = read_record(text())
    assert record.header == HEADER and record.n_rows == 5 and record.types == tuple(TYPES)
    assert record.digests == tuple(DIGESTS) and record.part is None and not record.first_format
    assert read_record(text(part=3)).part == 3
    assert read_record(text().encode()).header == HEADER
    # spacing and order are nothing that the checksum sees
    shuffled = dict(sorted(json.loads(text()).items(), reverse=True))
    assert read_record(json.dumps(shuffled, indent=2)).header == HEADER


PLANS = [
    plan_release(SymmetricLaplace(1.0, shape=2), Ball(1.0, 3)),
    plan_release(ZeroInflatedLaplace(1.0, 0.1), BOX, rounding="stochastic"),
    plan_release(RandomizedResponse(1.0), Categories({"l": ["a", "b"]})),
    plan_release(
        Product({"age": Gaussian(1.0), "l": RandomizedResponse(1.0)}), (BOX, Categories({"l": [1, 2]})), public=["p"]
    ),
]


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: str(plan.law))
def test_every_kind_of_plan_is_read_back(plan):
    header = Header(plan, plan.columns, "polars", secure=False)
    record = read_record(header.metadata(["double"] * len(plan.columns), 0, DIGESTS)[KEY])
    assert record.header == header and record.header.plan == plan and not record.header.secure
    assert pickle.loads(pickle.dumps(header)) == header


def test_what_a_header_says():
    assert HEADER.columns == ("hours", "age") and HEADER.public == ("state",)
    assert HEADER.grid == {"age": 2.0**-5, "hours": 2.0**-4} == HEADER.record["grid"]
    promise = PLAN.guarantee()
    assert HEADER.record["guarantee"]["slack"] == promise.slack
    assert HEADER.record["guarantee"]["delta"] == promise.deltas()
    assert int(HEADER.release_id, 16) < 2**128 and len(HEADER.release_id) == 32
    wrong = [
        (("age", "hours"), "no column 'state'"),
        (("age", "hours", "state", "x"), "no law releases"),
        (("age", "hours", "state", "age"), "distinct"),
    ]
    for names, message in wrong:
        with pytest.raises(ValueError, match=message):
            Header(PLAN, names, "pandas")


def halve(record):
    for row in record["guarantee"]["delta"]:
        row.update(record=row["record"] / 2, attribute=row["attribute"] / 2)


CHANGES = {
    "format": (lambda r: r.update(format=3), "its format is none of 1 and 2"),
    "format is true": (lambda r: r.update(format=True), "its format is none of 1 and 2"),
    "no format": (lambda r: r.pop("format"), "no record of a release"),
    "no entry": (lambda r: r.pop("rounding"), "has no entry 'rounding'"),
    "unknown entry": (lambda r: r.update(more=1), "has the unknown entry 'more'"),
    "mechanism": (lambda r: r["law"].update(mechanism="magic"), "mechanism must be one of"),
    "scale": (lambda r: r["law"].update(scale=[50.0, -1.0]), "scale"),
    "scale is huge": (lambda r: r["law"].update(scale=[50.0, 10**400]), "scale"),
    "law with more": (lambda r: r["law"].update(note="x"), "exactly the parameters"),
    "domain": (lambda r: r["domain"][0].update(intervals=[[0, 0], [0, 1]]), "lower < upper"),
    "domain with more": (lambda r: r["domain"][0].update(note="x"), "more than it should"),
    "domain of other columns": (lambda r: r["domain"][0].update(columns=["age", "x"]), "columns are not those"),
    "dimension": (lambda r: r.update(domain=[Box({"age": (0, 1)}).to_dict()]), "one per coordinate"),
    "no names": (lambda r: r.update(names=[]), "columns are not those of its law"),
    "names twice": (lambda r: r.update(names=["age", "hours", "age", "state"]), "columns are not those of its law"),
    "names is text": (lambda r: r.update(names="age"), "must be of type list"),
    "columns": (lambda r: r.update(columns=["age", "hours"]), "columns are not those of its law"),
    "public": (lambda r: r.update(public=[]), "columns are not those of its law"),
    "grid": (lambda r: r["grid"].update(age=1.0), "grid is not that of its law"),
    "grid of other columns": (lambda r: r["grid"].update(x=1.0), "grid is not that of its law"),
    "rounding": (lambda r: r.update(rounding="up"), "rounding must be one of"),
    "kind": (lambda r: r.update(kind="excel"), "kind must be one of"),
    "flat": (lambda r: r.update(flat=True), "one flat array"),
    "secure is 1": (lambda r: r.update(secure=1), "must be of type bool"),
    "rows": (lambda r: r.update(n_rows=-1), "out of range"),
    "rows are many": (lambda r: r.update(n_rows=300_000), "one digest per piece"),
    "rows are a float": (lambda r: r.update(n_rows=5.0), "must be of type int"),
    "types": (lambda r: r.update(types=["double"]), "one type per column"),
    "digests": (lambda r: r.update(digests=[]), "one digest per piece"),
    "digest is a number": (lambda r: r.update(digests=[0]), "must be of type str"),
    "part": (lambda r: r.update(part="0"), "must be of type int"),
    "slack": (lambda r: r["guarantee"].update(slack=0.0), "guarantee is not that of its law"),
    "exact rows": (lambda r: r["guarantee"].update(exact_fraction=0.5), "guarantee is not that of its law"),
    "smaller deltas": (halve, "guarantee is not that of its law"),
    "delta above 1": (lambda r: r["guarantee"]["delta"][0].update(record=2.0), "no decreasing list"),
    "deltas that grow": (lambda r: r["guarantee"]["delta"].reverse(), "no decreasing list"),
    "no deltas": (lambda r: r["guarantee"].update(delta=[]), "guarantee is incomplete"),
    "guarantee is text": (lambda r: r.update(guarantee="strong"), "cannot be read"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changed_records_are_refused_even_with_a_fitting_checksum(name):
    change, message = CHANGES[name]
    with pytest.raises(ValueError, match=message):
        read_record(text(change))


def test_the_checksum_covers_every_entry():
    plain = json.loads(text())
    for key in set(plain) - {"checksum"}:
        record = {**plain, key: "changed"}
        assert checksum({k: v for k, v in record.items() if k != "checksum"}) != plain["checksum"]
    others = {
        "version": lambda r: r.update(version="9"),
        "release": lambda r: r.update(release="0" * 32),
        "secure": lambda r: r.update(secure=False),
        "kind": lambda r: r.update(kind="polars"),
        "rounding": lambda r: r.update(rounding="stochastic"),
        "domain": lambda r: r["domain"][0].update(intervals=[[17, 80], [0, 100]]),
        "scale on the same grid": lambda r: r["law"].update(scale=[51.0, 80.0]),
        "rows": lambda r: r.update(n_rows=6),
        "digests": lambda r: r.update(digests=["1" * 32]),
        "types": lambda r: r.update(types=["double", "large_string", "double"]),
        "part": lambda r: r.update(part=1),
        "checksum": lambda r: r.update(checksum="0" * 32),
    }
    for change in others.values():
        with pytest.raises(ValueError, match="checksum of its law does not fit"):
            read_record(text(change, fit=False))


BOMBS = {
    "nothing": "",
    "cut": text()[:-4],
    "not text": b"\xff\xfe\x00",
    "deep lists": "[" * 100_000,
    "deep objects": '{"a":' * 100_000,
    "deep entry": text(lambda r: r.update(version="V")).replace('"V"', "[" * 50_000 + "]" * 50_000),
    "a long integer": text(lambda r: r.update(version="V")).replace('"V"', "9" * 100_000),
    "nan": text(lambda r: r.update(version="V")).replace('"V"', "NaN"),
    "infinity": text(lambda r: r.update(version="V")).replace('"V"', "-Infinity"),
    "overflow": text(lambda r: r.update(version="V")).replace('"V"', "1e999"),
    "a name twice": text().replace('"version"', '"secure": false, "version"', 1),
    "lone surrogate": text(lambda r: r.update(names=["hours", "\ud800", "age"], public=["\ud800"])),
    "list": "[1]",
    "number": "3",
}


@pytest.mark.parametrize("name", BOMBS)
def test_texts_that_are_no_record(name):
    start = time.monotonic()
    with pytest.raises(ValueError, match=r"law|names") as caught:
        read_record(BOMBS[name])
    assert time.monotonic() - start < 5 and len(str(caught.value)) < 1000


def test_a_domain_that_counts_to_a_billion_is_refused_at_once():
    for columns in (None, "ab", 3):
        with pytest.raises(ValueError, match="'columns' must be a list"):
            domain_from_dict({"domain": "ball", "radius": 1.0, "dim": 10**9, "columns": columns})


def test_manifests_have_their_own_entries():
    with pytest.raises(ValueError, match=r"no entry|unknown entry"):
        read_record(text(), manifest=True)
    with pytest.raises(ValueError, match="its format is none of"):
        read_record(json.dumps({"format": 1}), manifest=True)
    assert part_name(12) == "part-000012.parquet"


def test_text_is_plain_json():
    said = json.loads(sealed({"x": [1.0, 2]}))
    assert said["x"] == [1.0, 2] and len(said["checksum"]) == 32
    with pytest.raises(ValueError, match=r"JSON|range|Out"):
        sealed({"x": np.inf})
