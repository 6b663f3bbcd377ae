"""How a ledger is written down: its lines on the disk and its table for people."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from privfit.accounting.adaptive import PrivacyFilter
from privfit.accounting.base import TradeOffCurve, check_curve
from privfit.accounting.filter_plan import FilterPlan
from privfit.accounting.journal import now
from privfit.accounting.targets import GDP, Advantage, Budget, ErrorRates, Target, as_target
from privfit.accounting.validation import check_number

__all__ = [
    "KIND",
    "Entry",
    "check_header",
    "check_place",
    "entry_of",
    "filter_of",
    "header_of",
    "line_of",
    "new_entry",
    "record_of",
    "summary_of",
    "target_of",
]

KIND = "privfit ledger"
VERSION = 1
ADVICE = "read it with the privfit release that wrote it, or restore the file from a copy."
SHOWN = 20  # entries in a summary
NEIGHBOURS = "inputs that differ in one record; a record's part is fixed in advance and the same in both"
TARGETS: dict[str, type] = {t.__name__: t for t in (Advantage, Budget, ErrorRates, GDP)}
HEADER = {"kind", "version", "target", "adaptive", "neighbours", "time"}
RELEASE = {"kind", "label", "part", "time", "leak", "curve"}
ADAPTIVE = {"method", "leak", "slack", "order"}


@dataclass(frozen=True)
class Entry:
    """One recorded release.

    Parameters
    ----------
    curve : TradeOffCurve
        What it guarantees.
    label : str
        What it was; never data.
    part : str or None
        The group of records it is about; None for all.
    time : str
        When it was recorded, universal time.
    leak : float
        Extra disclosure under which an adaptive ledger charged it.
    """

    curve: TradeOffCurve
    label: str
    part: str | None
    time: str
    leak: float = 0.0

    def __str__(self) -> str:
        part = "all" if self.part is None else self.part
        return f"{self.time}  {part:<14}  {self.label:<28}  {self.curve!r}"


def new_entry(curve: TradeOffCurve, label: str, part: str | None, leak: float) -> Entry:
    """Check what a caller passed and stamp it with the time."""
    check_curve(curve)
    _check_text("label", label)
    return Entry(curve, label, part, now(), check_place(part, leak))


def check_place(part: str | None, leak: float) -> float:
    """Check what says where a release is charged, and return the leak."""
    if part is not None:
        _check_text("part", part)
    return check_number("leak", leak, 0.0, 1.0, high_open=True)


def _check_text(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be text, got {type(value).__name__}.")
    if len(value) > 200 or not value.isprintable():
        raise ValueError(f"{name} must be printable text on one line of at most 200 characters; choose a short name.")


def record_of(entry: Entry) -> dict[str, Any]:
    """The line of an entry."""
    plain = {name: getattr(entry, name) for name in ("label", "part", "time", "leak")}
    return {"kind": "release", **plain, "curve": entry.curve.to_dict()}


def entry_of(record: dict[str, Any]) -> Entry:
    """The entry of a line; what is not understood to the last word is refused."""
    _check_keys("a release", record, RELEASE)
    with _as_value_error("a release"):
        _check_text("label", record["label"])
        _check_text("time", record["time"])
        leak = check_place(record["part"], record["leak"])
        return Entry(TradeOffCurve.from_dict(record["curve"]), record["label"], record["part"], record["time"], leak)


def line_of(record: dict[str, Any]) -> Entry | str:
    """The entry of a line or, of an unfinished line that was set aside, the time."""
    kind = record.get("kind")
    if kind == "release":
        return entry_of(record)
    if kind != "set aside":  # it may have spent something: not knowing is no permission
        raise ValueError(f"kind of a line in the ledger must be 'release' or 'set aside', got {kind!r}; {ADVICE}")
    _check_keys("an unfinished line", record, {"kind", "time", "text"})
    with _as_value_error("an unfinished line"):
        _check_text("time", record["time"])
    return str(record["time"])


def _check_keys(what: str, record: dict[str, Any], wanted: set[str]) -> None:
    if set(record) != wanted:
        unlike = [f"{word} {', '.join(sorted(keys))}" for word, keys in _unlike(record, wanted).items() if keys]
        raise ValueError(f"{what} in the ledger {' and '.join(unlike)}; {ADVICE}")


def _unlike(record: dict[str, Any], wanted: set[str]) -> dict[str, set[str]]:
    return {"lacks": wanted - set(record), "has the unknown key": set(record) - wanted}


@contextmanager
def _as_value_error(what: str) -> Iterator[None]:
    """A file that holds something of the wrong type has a wrong value."""
    try:
        yield
    except (TypeError, LookupError, ArithmeticError, AttributeError, RecursionError) as error:
        raise ValueError(f"{what} in the ledger cannot be read: {error} {ADVICE}") from error


def header_of(target: Target | TradeOffCurve, plan: FilterPlan | None) -> dict[str, Any]:
    """The first line of a ledger's file."""
    settings = None
    if plan is not None:
        order = getattr(plan.rule, "order", None)
        settings = {"method": plan.rule.name, "leak": plan.leak, "slack": plan.slack, "order": order}
    return {
        "version": VERSION,
        "target": _target_data(target),
        "adaptive": settings,
        "neighbours": NEIGHBOURS,
        "time": now(),
    }


def _target_data(target: Target | TradeOffCurve) -> dict[str, Any]:
    if isinstance(target, TradeOffCurve):
        return target.to_dict()
    if type(target).__name__ not in TARGETS:
        raise TypeError(
            f"a ledger on disk needs one of {', '.join(TARGETS)} or a curve as its target, got "
            f"{type(target).__name__}; keep this one in memory."
        )
    return {"target": type(target).__name__, **dataclasses.asdict(target)}  # type: ignore[call-overload]


def check_header(found: dict[str, Any], wanted: dict[str, Any], path: str) -> None:
    """Refuse a file of another version, target or kind of accounting."""
    _check_form(found)
    for key in ("target", "adaptive"):
        if found.get(key) != wanted[key]:
            raise ValueError(
                f"{key} of the ledger {path} is {found.get(key)}, not {wanted[key]}; it is fixed when the file is "
                "made: use Ledger.open(path), or another path for another budget."
            )


def _check_version(header: dict[str, Any]) -> None:
    if header.get("version") != VERSION:
        raise ValueError(
            f"version of the ledger must be {VERSION}, got {header.get('version')!r}; "
            "read it with the privfit release that wrote it."
        )


def _check_form(header: dict[str, Any]) -> None:
    """Refuse a header that is not, word for word, of the form this version writes."""
    _check_version(header)
    _check_keys("the header", header, HEADER)
    if header["neighbours"] != NEIGHBOURS:
        raise ValueError(
            f"neighbours of the ledger must be {NEIGHBOURS!r}, got {header['neighbours']!r}: its guarantee is about "
            f"other inputs; {ADVICE}"
        )


def target_of(header: dict[str, Any]) -> Target | TradeOffCurve:
    """The target that a file was made for."""
    _check_form(header)
    data = header["target"]
    if isinstance(data, dict) and "curve" in data:
        with _as_value_error("the target"):
            return TradeOffCurve.from_dict(data)
    name = data.get("target") if isinstance(data, dict) else None
    if not isinstance(name, str) or name not in TARGETS:
        raise ValueError(f"target in the ledger must be one of {', '.join(TARGETS)} or a curve, got {data!r}; {ADVICE}")
    with _as_value_error("the target"):
        target: Target = TARGETS[name](**{key: value for key, value in data.items() if key != "target"})
    return target


def filter_of(header: dict[str, Any]) -> PrivacyFilter | None:
    """The filter that a file was made with, if it is adaptive."""
    target, settings = as_target(target_of(header)), header["adaptive"]
    if settings is None:
        return None
    if not isinstance(settings, dict):
        raise ValueError(f"adaptive in the ledger must be null or the settings of a filter, got {settings!r}; {ADVICE}")
    _check_keys("the filter", settings, ADAPTIVE)
    with _as_value_error("the filter"):
        return PrivacyFilter(target, **settings)


def summary_of(target: Target, entries: list[Entry], notes: list[str], spent: str, left: str) -> str:
    """A table for people."""
    lines = [f"Ledger for {target!r}", f"{len(entries)} releases; so far {spent}", f"what would fit: {left}"]
    if notes:
        lines.append(f"{len(notes)} unfinished lines were set aside (a process died while writing), last {notes[-1]}")
    if len(entries) > SHOWN:
        lines.append(f"({len(entries) - SHOWN} earlier releases not shown)")
    return "\n".join(lines + [f"  {entry}" for entry in entries[-SHOWN:]])
