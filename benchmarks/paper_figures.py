"""Figures of the simulations: RMSE against n, theory as lines, Monte Carlo errors as bars."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from privfit.figures_style import COLOURS, DASHES, MARKERS, blank_figure, finish

METHODS = ("oracle", "naive", "dr", "sdr", "sl", "exact", "wsz", "wsz/2")
TITLES = {
    "averages": "Averages of non-smooth functions",
    "logistic": "Logistic regression",
    "median": "Median regression",
}


def draw_figures(rows: list[Any], folder: Path) -> list[Path]:
    """Draw one figure for each setting and, of the averages, each law; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    groups: dict[tuple[str, str], list[Any]] = {}
    for row in rows:
        law = row.case.split(", ", 1)[1] if row.setting == "averages" else ""
        if row.setting == "averages" and row.case.startswith("1["):
            law = row.case.split("(x), ", 1)[1]
        groups.setdefault((row.setting, law), []).append(row)
    files = []
    for count, ((setting, law), own) in enumerate(groups.items(), start=1):
        path = folder / f"paper_{count}_{setting}.png"
        _draw(own, f"{TITLES[setting]}{', ' + law if law else ''}: RMSE (marks) and theory (lines)", law, path)
        files.append(path)
    return files


def _draw(rows: list[Any], title: str, law: str, path: Path) -> None:
    cases = list(dict.fromkeys(row.case for row in rows))
    figure, axes = blank_figure(len(cases), (4.2 * len(cases), 4.2))
    for ax, case in zip(axes, cases, strict=True):
        for j, method in enumerate(METHODS):
            own = [row for row in rows if row.case == case and row.method == method]
            if not own:
                continue
            # SDR equals the naive estimate where f'' is 0: marks a little apart stay visible
            n = [row.n * (0.97 + 0.01 * j) for row in own]
            ax.errorbar(
                n,
                [row.rmse for row in own],
                [2.0 * row.rmse_error for row in own],
                color=COLOURS[j],
                marker=MARKERS[j],
                linestyle="none",
                markersize=5,
                label=method,
            )
            ax.plot(
                n,
                [row.theory if row.theory < float("inf") else float("nan") for row in own],
                color=COLOURS[j],
                linestyle=DASHES[j],
                linewidth=1.3,
            )
        ax.set_xscale("log")
        ax.set_yscale("log")
        sizes = sorted({row.n for row in rows})
        ax.set_xticks(sizes, [f"{n:,}" for n in sizes], minor=False)
        ax.set_xticks([], minor=True)
        ax.set_xlabel("records n")
        ax.set_ylabel("RMSE of a coefficient" if len(cases) < 3 else "RMSE")
        ax.set_title(case.removesuffix(", " + law) if law else case, fontsize="medium")
    finish(axes, title, own=True, note="Bars: two Monte Carlo standard errors each way.")
    figure.savefig(path)
