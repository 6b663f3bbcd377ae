"""Reading the record of a release from text that anybody may have written: a law that fits, or a ValueError.

Everything is rebuilt and compared: the law and the domain from their parameters, the grid and the guarantee from the
law. What a file says beyond that, or says twice, is refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

from privfit.accounting.validation import check_choice
from privfit.mechanisms.digests import pieces
from privfit.mechanisms.domains import domain_from_dict
from privfit.mechanisms.law import Law
from privfit.mechanisms.law_record import FORMAT, KINDS, Header, checksum
from privfit.mechanisms.plan import Plan, plan_release

__all__ = ["Record", "UnknownFormatError", "read_record"]

LONGEST = 2**28
_PAST = 1
_SHARED = {
    "format", "version", "law", "domain", "names", "columns", "public", "grid", "rounding", "kind", "flat", "secure",
    "guarantee", "n_rows", "checksum",
}  # fmt: skip
_KEYS = {
    "first": _SHARED,
    "file": _SHARED | {"release", "types", "digests", "part"},
    "manifest": _SHARED | {"release", "types", "parts"},
}
_TOLERANCE = 1e-3  # numerics differ between machines and versions; an edit that matters is larger


class UnknownFormatError(ValueError):
    """The record is of a format that this version does not read."""


@dataclass(frozen=True)
class Record:
    """What a file says of itself, checked as far as that goes without its rows.

    Attributes
    ----------
    header : Header
    n_rows : int
    types : tuple of str or None
        None in files of the first format, which did not say.
    digests : tuple of str
        One per piece of the rows.
    part : int or None
    parts : tuple of (int, tuple of str)
        Rows and digests of the parts, of a manifest.
    raw : dict
        The record without its checksum.
    seal : str
        Its checksum.
    """

    header: Header
    n_rows: int
    types: tuple[str, ...] | None
    digests: tuple[str, ...]
    part: int | None
    parts: tuple[tuple[int, tuple[str, ...]], ...]
    raw: dict[str, Any]
    seal: str

    @property
    def first_format(self) -> bool:
        """Whether the file is of the first format: one checksum over record and rows together."""
        return bool(self.raw["format"] == _PAST)


def read_record(text: bytes | str, manifest: bool = False) -> Record:
    """Read a record and check that its law, domain, grid, guarantee and checksum fit together.

    Parameters
    ----------
    text : bytes or str
        JSON.
    manifest : bool
        Whether it is that of a release in parts.

    Returns
    -------
    Record

    Raises
    ------
    ValueError
        If it is no record, or one whose parts do not fit together; whatever the text is.

    Examples
    --------
    >>> read_record("[]")
    Traceback (most recent call last):
        ...
    ValueError: its law is no record of a release.
    """
    raw = _read_json(text)
    if not isinstance(raw, dict) or "format" not in raw:
        raise ValueError("its law is no record of a release.")
    if type(raw["format"]) is not int or raw["format"] not in (_PAST, FORMAT) or (manifest and raw["format"] == _PAST):
        raise UnknownFormatError(
            f"its format is none of {_PAST} and {FORMAT}, which this version of privfit reads: install the privfit "
            "that wrote it, or a newer one."
        )
    old = raw["format"] == _PAST
    wanted = _KEYS["first" if old else "manifest" if manifest else "file"]
    if set(raw) != wanted:
        odd = sorted(set(raw) ^ wanted)[0]
        raise ValueError(f"its law has {'no entry' if odd in wanted else 'the unknown entry'} {odd[:40]!r}.")
    try:
        return _checked(raw, old)
    except (KeyError, TypeError, AttributeError, IndexError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"its law cannot be read: {str(error)[:300]}") from error


def _checked(raw: dict[str, Any], old: bool) -> Record:
    plan = _plan(raw)
    names = tuple(_strict(raw["names"], list))
    if len(names) != len(plan.columns) or set(names) != set(plan.columns):
        raise ValueError("its columns are not those of its law and its domain.")
    header = Header(
        plan,
        names,
        check_choice("kind", raw["kind"], KINDS),
        _strict(raw["secure"], bool),
        _strict(raw["flat"], bool),
        "" if old else _strict(raw["release"], str),
        _strict(raw["version"], str),
    )
    if raw["columns"] != list(header.columns) or raw["public"] != list(header.public):
        raise ValueError("its columns are not those of its law and its domain.")
    if header.flat and (header.kind != "numpy" or len(header.names) != 1):
        raise ValueError("it says that it is one flat array, and is not.")
    if raw["grid"] != header.grid:
        raise ValueError("its grid is not that of its law.")
    rows = _count(raw["n_rows"])
    parts = tuple((_count(p["rows"]), _texts(p["digests"])) for p in raw.get("parts", ()))
    if [p["number"] for p in raw.get("parts", ())] != list(range(len(parts))) or sum(r for r, _ in parts) > rows:
        raise ValueError("its list of parts is not in order.")
    if "parts" in raw and sum(r for r, _ in parts) != rows:
        raise ValueError("its rows are not the sum of those of its parts.")
    digests = _texts(raw.get("digests", []))
    counted = [*parts, (rows, digests)] if "digests" in raw else list(parts)
    if any(len(own) != pieces(r) for r, own in counted) or ("parts" in raw and not parts):
        raise ValueError("it does not give one digest per piece of its rows.")
    types = None if old else _texts(raw["types"])
    if types is not None and len(types) != len(header.names):
        raise ValueError("it does not give one type per column.")
    seal = _strict(raw.pop("checksum"), str)
    if not old and seal != checksum(raw):
        raise ValueError("the checksum of its law does not fit.")
    _check_promise(raw["guarantee"], raw)
    part = raw.get("part")
    return Record(header, rows, types, digests, None if part is None else _count(part), parts, raw, seal)


def _plan(raw: dict[str, Any]) -> Plan:
    law = Law.from_dict(raw["law"])
    domains = [domain_from_dict(part) for part in _strict(raw["domain"], list)]
    if law.to_dict() != raw["law"] or [part.to_dict() for part in domains] != raw["domain"]:
        raise ValueError("its law or its domain holds more than it should.")
    return plan_release(law, domains, _strict(raw["public"], list), raw["rounding"])


@lru_cache(maxsize=64)
def _promise(text: str, epsilon: float) -> tuple[Mapping[str, float], float, float]:
    """Deltas at epsilon, slack and share of exact rows of a plan; every part of a release in files asks for them."""
    law, domain, public, rounding = json.loads(text)
    promise = _plan({"law": law, "domain": domain, "public": public, "rounding": rounding}).guarantee()
    (own,) = promise.deltas((epsilon,))
    return own, promise.slack, promise.exact_fraction


def _check_promise(said: Any, raw: Mapping[str, Any]) -> None:
    """Refuse a guarantee that promises more than the law gives."""
    rows = said["delta"]
    if set(said) != {"slack", "exact_fraction", "delta"} or not rows:
        raise ValueError("its guarantee is incomplete.")
    for name in ("record", "attribute"):
        deltas = [row[name] for row in rows]
        falling = all(a >= b for a, b in pairwise(deltas))
        if not (falling and all(isinstance(d, (int, float)) and 0 <= d <= 1 for d in deltas)):
            raise ValueError("its guarantee is no decreasing list of deltas.")
    middle = rows[len(rows) // 2]
    own, slack, exact = _promise(
        json.dumps([raw[key] for key in ("law", "domain", "public", "rounding")]), float(middle["epsilon"])
    )
    short = any(middle[name] < own[name] * (1.0 - _TOLERANCE) for name in ("record", "attribute"))
    other = not math.isclose(said["slack"], slack, rel_tol=_TOLERANCE)
    if short or other or not math.isclose(said["exact_fraction"], exact, rel_tol=1e-9):
        raise ValueError("its guarantee is not that of its law.")


def _strict(value: Any, type_: type) -> Any:
    if type(value) is not type_:
        raise TypeError(f"an entry must be of type {type_.__name__}, got {type(value).__name__}.")
    return value


def _count(value: Any) -> int:
    number: int = _strict(value, int)
    if not 0 <= number < 2**62:
        raise ValueError("a number of rows or parts is out of range.")
    return number


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(_strict(value, str) for value in _strict(values, list))


def _read_json(text: bytes | str) -> Any:
    if len(text) > LONGEST:
        raise ValueError("its law is longer than any law.")
    try:
        return json.loads(text, object_pairs_hook=_distinct, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its law is no JSON: {str(error)[:100]}") from error


def _distinct(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return out


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is not finite")
    return number
