"""Rows of the benchmark table: how they are declared, timed and printed.

Times are processor seconds of this process, which equal wall-clock seconds on a quiet machine because every
row runs on one core; ours and the peer take turns, so that a slow minute of the machine hits both.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from statistics import median
from typing import Any

__all__ = ["ROWS", "Row", "duration", "installed", "medians", "row", "table"]


@dataclass(frozen=True)
class Row:
    """One line of the table; `reached` is None where there is no goal."""

    what: str
    ours: str
    peer: str
    ratio: float | None = None
    goal: str = ""
    reached: bool | None = None


ROWS: list[Callable[[bool], list[Row]]] = []
"""Functions ``rows(quick) -> list of Row``, in the order of the table."""


def row(function: Callable[[bool], Any]) -> Callable[[bool], list[Row]]:
    """Enter a function that returns a Row, or several, in the table."""

    def rows(quick: bool) -> list[Row]:
        found = function(quick)
        return [found] if isinstance(found, Row) else list(found)

    ROWS.append(rows)
    return rows


def installed(package: str) -> bool:
    """Whether a peer can be imported."""
    return find_spec(package) is not None


def medians(
    *calls: Callable[[], Any],
    quick: bool,
    repeats: int = 7,
    at_least: float = 0.02,
    clock: Callable[[], float] = time.process_time,
) -> list[float]:
    """Return the median seconds per call of each function, measured in turns.

    Each turn calls a function as often as it takes to last `at_least` seconds; `quick` is one call each. What uses
    several processes needs another `clock` than the processor time of this one.
    """
    if quick:
        return [_seconds(call, 1, clock) for call in calls]
    counts = [1] * len(calls)
    for j, call in enumerate(calls):
        while (spent := _seconds(call, counts[j], clock)) < at_least and counts[j] < 1_000_000:
            counts[j] = int(counts[j] * min(10.0, 1.3 * at_least / max(spent, 1e-9))) + 1
    times = [[_seconds(call, n, clock) / n for call, n in zip(calls, counts, strict=True)] for _ in range(repeats)]
    return [median(column) for column in zip(*times, strict=True)]


def _seconds(call: Callable[[], Any], count: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(count):
        call()
    return clock() - start


def duration(seconds: float) -> str:
    """Return a time in the unit that reads best.

    Examples
    --------
    >>> duration(0.0123)
    '12.3 ms'
    """
    unit, size = next((u for u in (("s", 1.0), ("ms", 1e-3)) if seconds >= u[1]), ("us", 1e-6))
    return f"{seconds / size:.3g} {unit}"


def table(rows: list[Row]) -> str:
    """Return the rows as one Markdown table, aligned for the terminal."""
    verdict = {None: "", True: "yes", False: "NO"}
    cells = [("what", "ours", "peer", "ours / peer", "goal", "reached")]
    cells += [
        (r.what, r.ours, r.peer, "" if r.ratio is None else f"{r.ratio:.3g}", r.goal, verdict[r.reached]) for r in rows
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |" for line in cells]
    lines.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
    return "\n".join(lines)
