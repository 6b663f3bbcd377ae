"""Claims of the publication, each beside what the simulation found."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

Ratio = Callable[[Any, Any], tuple[float, float]]


def claims(rows: list[Any], ratio: Ratio) -> list[str]:
    """Markdown list, one entry for each claim."""
    return [*_averages(rows), *_regressions(rows), *_ratios(rows, ratio), *_rival(rows, ratio)]


def _cells(rows: list[Any], setting: str) -> dict[tuple[str, int], dict[str, Any]]:
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for row in rows:
        if row.setting == setting:
            found.setdefault((row.case, row.n), {})[row.method] = row
    return found


def _averages(rows: list[Any]) -> list[str]:
    cells = _cells(rows, "averages")
    largest = max(n for _, n in cells)
    last = {case: own for (case, n), own in cells.items() if n == largest}

    def biased(method: str) -> str:
        names = [case for case, own in last.items() if abs(own[method].bias[0]) > 4.0 * own[method].bias[1]]
        return f"{len(names)} of {len(last)} cases"

    beyond = [abs(r.rmse - r.theory) / r.rmse_error for own in cells.values() for r in own.values()]
    better = max(own["exact"].rmse / own["dr"].rmse for own in last.values())
    unbiased = [case for case, own in last.items() if abs(own["naive"].bias[0]) <= 4.0 * own["naive"].bias[1]]
    worst = sorted({max(last[case].values(), key=lambda row: row.rmse).method for case in unbiased})
    return [
        f"- *Averages: SL is inconsistent, DR is not.* At n = {largest:,} a bias beyond four standard errors: SL in "
        f"{biased('sl')}, SDR in {biased('sdr')}, naive in {biased('naive')}, DR in {biased('dr')}, EXACT in "
        f"{biased('exact')}. The RMSE of EXACT is at most {better:.2f} times that of DR. Distance of RMSE from theory: "
        f"at most {max(beyond):.1f} Monte Carlo errors over {len(beyond)} cells, {np.mean(np.array(beyond) < 2):.0%} "
        "within two.",
        f"- *Averages: the naive mean is inconsistent*, but without a bias for {'; '.join(unbiased) or 'no case'}: a "
        "uniform variable stays uniform modulo the period under any noise, so that the mean of abs sin(2 pi x) "
        f"survives it. The largest RMSE there is that of {', '.join(worst) or '-'}.",
    ]


def _regressions(rows: list[Any]) -> list[str]:
    lines = []
    for setting in ("logistic", "median"):
        cells = _cells(rows, setting)
        worst = [max(own.values(), key=lambda row: row.rmse).method == "naive" for own in cells.values()]
        others = sorted({max(own.values(), key=lambda row: row.rmse).method for own in cells.values()} - {"naive"})
        instead = f" (elsewhere {', '.join(others)})" if others else ""
        lines.append(f"- *{setting.capitalize()}: naive is worst.* In {sum(worst)} of {len(worst)} cells{instead}.")
        cases = dict.fromkeys(case for case, _ in cells)
        methods = [m for m in next(iter(cells.values())) if m != "naive"]
        falls = []
        for case in cases:
            sizes = sorted(n for c, n in cells if c == case)
            for method in methods:
                path = [cells[case, n][method].rmse for n in sizes]
                if any(b > a for a, b in pairwise(path)):
                    falls.append(f"{method} at {case}")
        exceptions = f"except {'; '.join(falls)}" if falls else "without exception"
        lines.append(f"- *{setting.capitalize()}: the RMSE of every correction falls with n*: {exceptions}.")
    return lines


def _ratios(rows: list[Any], ratio: Ratio) -> list[str]:
    cells = _cells(rows, "logistic")
    pairs = [ratio(own["sdr"], own["sl"]) for own in cells.values()]
    below = sum(value < 1.0 for value, _ in pairs)
    text = ", ".join(f"{value:.2f} ± {error:.2f}" for value, error in pairs)
    lines = [f"- *Logistic: SDR below SL.* In {below} of {len(pairs)} cells; RMSE ratios SDR/SL {text}."]
    cases = list(dict.fromkeys(case for case, _ in cells))
    for method in ("sdr", "sl"):
        parts, grows = [], []
        for n in sorted({n for _, n in cells}):
            own = [ratio(cells[case, n][method], cells[case, n]["dr"]) for case in cases]
            grows.append(all(b[0] > a[0] for a, b in pairwise(own)))
            parts.append(f"n = {n:,}: " + " to ".join(f"{value:.2f} ± {error:.2f}" for value, error in own))
        lines.append(
            f"- *Logistic: {method.upper()}/DR grows with lambda.* At {sum(grows)} of {len(grows)} sizes; from "
            f"{' to '.join(cases)}: {'; '.join(parts)}."
        )
    return lines


def _rival(rows: list[Any], ratio: Ratio) -> list[str]:
    lines = []
    cells = _cells(rows, "median")
    for method, rival in (("dr", "wsz"), ("dr", "wsz/2"), ("exact", "wsz"), ("exact", "wsz/2")):
        pairs = [ratio(own[method], own[rival]) for own in cells.values()]
        below = sum(value < 1.0 for value, _ in pairs)
        text = ", ".join(
            f"{value:.2f} ± {error:.2f} ({case}, n = {n:,})"
            for (value, error), (case, n) in zip(pairs, cells, strict=True)
        )
        lines.append(
            f"- *Median: {method.upper()} below the rival in RMSE*, {rival}: in {below} of {len(pairs)} cells; ratios "
            f"{text}."
        )
    return lines
