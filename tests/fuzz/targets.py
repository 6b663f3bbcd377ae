"""Fuzz targets: a strategy, and a check that holds whatever is drawn. ``tests/fuzz/fuzzing.py`` runs them."""

from __future__ import annotations

import json
import math
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from json_edits import ANY, edited

from privfit.mechanisms import (
    Ball,
    Box,
    Categories,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Law,
    Product,
    RandomizedResponse,
    SymmetricLaplace,
    ZeroInflatedLaplace,
    load_release,
    release,
)
from privfit.mechanisms.domains import domain_from_dict
from privfit.mechanisms.law_record import sealed
from privfit.mechanisms.record_checks import read_record

LAWS = [
    Gaussian(2.0),
    Gaussian([1.0, 2.0]),
    Laplace(0.5),
    SymmetricLaplace(1.0, shape=2),
    ZeroInflatedLaplace([1.0, 3.0], 0.25),
    RandomizedResponse(1.0, 3),
    DiscreteLaplace(1.0),
    Product({("a", "b"): Gaussian(1.0), "c": RandomizedResponse(0.5)}),
]
DOMAINS = [
    Box({"a": (0, 1), "b": (-5, 2.5)}, fill={"a": 0.5}),
    Box({0: (0, 1)}),
    Ball(1.5, 3),
    Ball(1.0, 2, ["a", "b"]),
    Categories({"c": ["x", "y"], "d": ["u", "v", "w"]}),
    Categories({"c": [False, True]}),
]


def _numbers(value: Any) -> Any:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _numbers(inner)
    elif isinstance(value, (int, float)):
        yield value


def _read_back(read: Any, d: Any) -> None:
    """A description is refused, or becomes an object of finite numbers that says so itself."""
    try:
        made = read(d)
    except (TypeError, ValueError) as error:
        assert len(str(error)) < 5000
        return
    said = json.loads(json.dumps(made.to_dict()))
    assert read(said) == made
    assert all(math.isfinite(number) for number in _numbers(said))
    assert repr(made) and str(made)


def laws(d: Any) -> None:
    """``Law.from_dict`` takes anything."""
    _read_back(Law.from_dict, d)


def domains(d: Any) -> None:
    """``domain_from_dict`` takes anything."""
    _read_back(domain_from_dict, d)


LAW = {("a", "b"): Gaussian(1.0), "c": RandomizedResponse(0.5)}
DOMAIN = (Box({"a": (0, 1), "b": (0, 2)}), Categories({"c": ["x", "y"]}))
NAMES = ["release.parquet", "release.arrow", "release.csv", "parts"]


@cache
def samples() -> tuple[Any, dict[str, dict[str, bytes]]]:
    """A release, and the files of every format that hold it."""
    table = pa.table(
        {
            "a": [0.0, 0.5, 1.0] * 5,
            "p": ["one", None, "three"] * 5,
            "b": [2.0, 0.5, 1.0] * 5,
            "c": ["x", "y", "x"] * 5,
            "q": pa.array(["g", "h", "g"] * 5).dictionary_encode(),
        }
    )
    out = release(table, LAW, DOMAIN, public=["p", "q"])
    files: dict[str, dict[str, bytes]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in NAMES:
            out.save(Path(folder) / name)
        for name in NAMES:
            own = {p.relative_to(folder).as_posix(): p for p in Path(folder).rglob("*") if p.is_file()}
            files[name] = {path: p.read_bytes() for path, p in own.items() if path.startswith(name)}
    return out, files


def _same(one: Any, other: Any) -> None:
    for name in ("law", "domain", "columns", "public", "n_rows", "kind", "secure", "names", "rounding"):
        assert getattr(one, name) == getattr(other, name), name
    assert one.frame.to_pydict() == other.frame.to_pydict()


def _load(folder: Path, name: str) -> Any:
    """Load, or be refused in one of the two ways that are allowed."""
    try:
        return load_release(folder / name)
    except (ValueError, FileNotFoundError) as error:
        assert not isinstance(error, pa.ArrowException) and str(folder) in str(error)
        return None


@st.composite
def damage(draw: Any) -> tuple[str, str, bytes]:
    """Draw the name of a release, one of its files, and what its bytes have become."""
    name = draw(st.sampled_from(NAMES))
    files = samples()[1][name]
    path = draw(st.sampled_from(sorted(files)))
    data = bytearray(files[path])
    for _ in range(draw(st.integers(1, 4))):
        where = draw(st.integers(0, max(len(data) - 1, 0)))
        kind = draw(st.sampled_from(["flip", "flip", "flip", "set", "cut", "remove", "insert", "repeat"]))
        if kind == "flip" and data:
            data[where] ^= 1 << draw(st.integers(0, 7))
        elif kind == "set" and data:
            data[where] = draw(st.integers(0, 255))
        elif kind == "cut":
            del data[where:]
        elif kind == "remove":
            del data[where : where + draw(st.integers(1, 16))]
        elif kind == "insert":
            data[where:where] = draw(st.binary(max_size=8))
        elif kind == "repeat":
            data[where:where] = data[where : where + draw(st.integers(1, 64))]
    return name, path, bytes(data)


def files(drawn: tuple[str, str, bytes]) -> None:
    """A damaged file is refused, or is still the release that was saved."""
    name, path, data = drawn
    out, all_files = samples()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for other, content in all_files[name].items():
            (folder / other).parent.mkdir(exist_ok=True)
            (folder / other).write_bytes(content)
        (folder / path).write_bytes(data)
        again = _load(folder, name)
        if again is not None:
            _same(again, out)


def record() -> dict[str, Any]:
    """The record of the sample, as its CSV file has it."""
    found: dict[str, Any] = json.loads(samples()[1]["release.csv"]["release.csv.law.json"])
    return found


@st.composite
def records(draw: Any) -> tuple[str, bool]:
    """Draw an edited record, and whether its checksum was made to fit."""
    edit, fits = draw(edited([record()])), draw(st.booleans())
    try:
        if fits and isinstance(edit, dict):
            edit.pop("checksum", None)
            return sealed(edit), True
        return json.dumps(edit), False
    except (ValueError, TypeError, UnicodeError):
        return json.dumps(edit), False


def metadata(drawn: tuple[str, bool]) -> None:
    """An edited record is refused; only with a new checksum can it say something else that fits together."""
    text, fits = drawn
    out, all_files = samples()
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "release.csv"
        path.write_bytes(all_files["release.csv"]["release.csv"])
        path.with_name("release.csv.law.json").write_text(text)
        try:
            read_record(text)
        except ValueError:
            pass
        else:
            assert fits or json.loads(text) == record()
        again = _load(Path(place), "release.csv")
        if again is not None and not fits:
            _same(again, out)


CELLS = st.one_of(
    st.floats(),
    st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 5e-324, 1e308, 2.0**53]),
    st.integers(-(2**62), 2**62).map(float),
)
ODD = st.one_of(CELLS, st.none(), st.text(max_size=3), st.booleans(), st.integers(), st.binary(max_size=2))


@st.composite
def tables(draw: Any) -> tuple[Any, Any, Any, Any]:
    """Draw a law, a domain, a table and a harmless table of the same schema."""
    rows, kind = draw(st.integers(0, 6)), draw(st.sampled_from(["numpy", "object", "pandas", "polars", "pyarrow"]))
    law = draw(st.sampled_from([LAWS[0], LAWS[2], LAWS[3], LAWS[6], ZeroInflatedLaplace(1.0, 0.5)]))
    domain = draw(st.sampled_from([Box({"a": (0, 1), "b": (-5, 2.5)}), Ball(1.5, 2, ["a", "b"])]))
    cells = [draw(st.lists(ODD if kind == "object" else CELLS, min_size=rows, max_size=rows)) for _ in "ab"]
    return law, domain, _table(kind, cells), _table(kind, [[0.0] * rows] * 2)


def _table(kind: str, cells: list[list[Any]]) -> Any:
    if kind == "object":
        out = np.empty((len(cells[0]), 2), dtype=object)
        for j, column in enumerate(cells):
            out[:, j] = column
        return out
    if kind == "numpy":
        return np.array(cells, dtype=float).reshape(2, -1).T
    table = pa.table({name: pa.array(column, pa.float64()) for name, column in zip("ab", cells, strict=True)})
    if kind == "polars":
        import polars

        return polars.from_arrow(table)
    return table.to_pandas() if kind == "pandas" else table


def releases(drawn: tuple[Any, Any, Any, Any]) -> None:
    """A table is released or refused by its schema alone; what leaves is finite, on the grid, and can be saved."""
    law, domain, table, harmless = drawn
    outcomes: list[str] = []
    for own in (harmless, table):
        try:
            out = law.release(own, domain=domain)
            outcomes.append("released")
        except (TypeError, ValueError) as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]
    if outcomes[1] != "released":
        return
    frame = out.frame
    values = np.column_stack([np.asarray(frame[name]) for name in "ab"]) if out.kind != "numpy" else frame
    steps = values / law.grid(2)
    assert values.shape == (out.n_rows, 2) and np.isfinite(values).all() and (steps == np.rint(steps)).all()
    assert not np.signbit(values[values == 0.0]).any()
    with tempfile.TemporaryDirectory() as place:
        out.save(Path(place) / "r.arrow")
        again = load_release(Path(place) / "r.arrow")
        assert again.law == law and again.domain == domain and again.n_rows == out.n_rows


def _any_or_edited(valid: list[Any]) -> Any:
    return st.one_of(edited(valid), edited(valid), edited(valid), ANY)


TARGETS: dict[str, tuple[Any, Any]] = {
    "laws": (_any_or_edited([law.to_dict() for law in LAWS]), laws),
    "domains": (_any_or_edited([domain.to_dict() for domain in DOMAINS]), domains),
    "files": (damage(), files),
    "metadata": (records(), metadata),
    "releases": (tables(), releases),
}
