r"""Simulations of Lu, Chen & Qiu (zero-inflated Laplace noise), beside theory, with EXACT as one more column.

``python benchmarks/paper_zil.py`` runs the three settings of their section on simulations and writes one page of
tables; ``--figures FOLDER`` adds figures; ``--quick`` runs few small replications, as a test of the tables only.

    averages   means of non-smooth functions of one column     `paper_averages` (closed forms)
    logistic   six coefficients, n = 5,000 to 10,000           `paper_fits`
    median     six coefficients and an intercept, n = 2,500 to 7,500, beside the smoothed corrected loss of Wang,
               Stefanski & Zhu (2012), "wsz", and the same with half the bandwidth, "wsz/2"

RMSE is the root of the mean squared error over replications and coefficients; bias the mean error over both. Each has
its Monte Carlo standard error.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import paper_averages
import paper_fits
from joblib import Parallel, delayed
from paper_claims import claims
from paper_figures import draw_figures
from threadpoolctl import threadpool_limits

HERE = Path(__file__).parent


@dataclass(frozen=True, eq=False)
class Row:
    """Errors of one method in one cell of a setting, shape (replications, coefficients)."""

    setting: str
    case: str
    n: int
    method: str
    errors: Any
    theory: float
    proper: float = 1.0
    bandwidth: float = 0.0

    @property
    def squares(self) -> Any:
        """Mean squared error of each replication."""
        return np.mean(self.errors**2, axis=1)

    @property
    def rmse(self) -> float:
        """Root mean squared error of a coefficient."""
        return float(np.sqrt(self.squares.mean()))

    @property
    def rmse_error(self) -> float:
        """Monte Carlo standard error of `rmse`."""
        return float(self.squares.std() / np.sqrt(len(self.errors)) / (2.0 * self.rmse))

    @property
    def bias(self) -> tuple[float, float]:
        """Mean error of a coefficient and its Monte Carlo standard error."""
        means = self.errors.mean(axis=1)
        return float(means.mean()), float(means.std() / np.sqrt(means.size))


def ratio(a: Row, b: Row) -> tuple[float, float]:
    """RMSE of a over that of b from the same releases, and its Monte Carlo standard error."""
    value = a.rmse / b.rmse
    relative = a.squares / a.squares.mean() - b.squares / b.squares.mean()
    return value, float(0.5 * value * relative.std() / np.sqrt(relative.size))


def averages(replications: int, seed: int, sizes: tuple[int, ...]) -> list[Row]:
    rows = []
    for delta0, scale in paper_averages.LAWS:
        for n in sizes:
            found = paper_averages.simulate(delta0, scale, n, replications, seed)
            for target in paper_averages.TARGETS:
                for method in paper_averages.METHODS:
                    mean, deviation = paper_averages.theory(target, method, delta0, scale)
                    expected = float(np.hypot(mean - target.truth, deviation / np.sqrt(n)))
                    case = f"{target.name}, delta0 = {delta0:g}, lambda = {scale:g}"
                    rows.append(Row("averages", case, n, method, found[target.name, method][:, None], expected))
    return rows


def one_replication(cell: paper_fits.Cell, seed: int, replication: int) -> Any:
    with threadpool_limits(1):
        return paper_fits.replicate(cell, seed, replication)


def fits(model: str, replications: int, seed: int, jobs: int, quick: bool) -> list[Row]:
    scales, sizes = paper_fits.SETTINGS[model]
    rows = []
    for scale in scales[:1] if quick else scales:
        for n in (sizes[0] // 2,) if quick else sizes:
            cell = paper_fits.Cell(model, scale, n)
            found = Parallel(n_jobs=jobs)(delayed(one_replication)(cell, seed, r) for r in range(replications))
            for method in paper_fits.METHODS[model]:
                own = [replication[method] for replication in found]
                width = float(np.median([w for _, _, w in own]))
                records = 5_000 if quick else paper_fits.LARGE[model]
                expected = paper_fits.predicted(cell, method, width, seed, records)
                errors = np.array([params for params, _, _ in own]) - cell.truth
                proper = float(np.mean([ok for _, ok, _ in own]))
                rows.append(Row(model, f"lambda = {scale:g}", n, method, errors, expected, proper, width))
            print(f"{model}, lambda = {scale:g}, n = {n}: done", file=sys.stderr, flush=True)
    return rows


def table(rows: list[Row]) -> list[str]:
    """Markdown lines: one table for each case."""
    lines = []
    widths = any(row.bandwidth for row in rows)
    for case in dict.fromkeys(row.case for row in rows):
        lines += [f"### {case}", ""]
        head = ["n", "method", "RMSE", "theory", "bias", "median error", "proper fits", *["bandwidth"] * widths]
        lines += ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
        for row in (r for r in rows if r.case == case):
            bias, spread = row.bias
            cells = [f"{row.n:,}", row.method, f"{row.rmse:.4f} ± {row.rmse_error:.4f}"]
            cells.append(f"{row.theory:.4f}" if np.isfinite(row.theory) else "-")
            cells += [f"{bias:+.4f} ± {spread:.4f}", f"{np.median(np.sqrt(row.squares)):.4f}", f"{row.proper:.1%}"]
            cells += [f"{row.bandwidth:.3g}" if row.bandwidth else ""] * widths
            lines.append("| " + " | ".join(cells) + " |")
        lines.append("")
    return lines


def page(rows: list[Row], command: str, replications: tuple[int, int], seconds: float) -> str:
    lines = ["# Simulations of the zero-inflated Laplace corrections", "", f"Made by `{command}`", ""]
    lines += [
        f"{replications[0]} replications of the averages and {replications[1]} of the regressions, {seconds:.0f} s in "
        f"all on {platform.machine()}; Python {platform.python_version()}, numpy {version('numpy')}, privfit "
        f"{version('privfit')}.",
        "",
        "RMSE and bias are over replications and coefficients, ± one Monte Carlo standard error. Theory: averages, "
        "exact mean and variance by quadrature; regressions, the sandwich at the true coefficients (naive: at its own "
        "limit, the error of the limit added), which says nothing of a sample too small for the "
        "noise (-: no positive curvature in those records). Median error: "
        "median over replications of the root mean squared error of a replication's coefficients. Proper fits: share "
        "that end in an interior minimum; the others end on the boundary (ten standard deviations) and are counted.",
        "",
    ]
    titles = {
        "averages": "Averages of non-smooth functions",
        "logistic": "Logistic regression, d = 6, delta0 = 0.2",
        "median": "Median regression, d = 6, delta0 = 0.2",
    }
    lines += ["## What was claimed and what was found", "", *claims(rows, ratio), ""]
    for setting, title in titles.items():
        lines += [f"## {title}", "", *table([row for row in rows if row.setting == setting])]
    return "\n".join(lines).rstrip() + "\n"


def main(arguments: list[str] | None = None) -> str:
    """Run the simulations; return the page that was written."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--replications", type=int, default=1000, help="of the regressions; averages get 1000 at least")
    parser.add_argument("--seed", type=int, default=2024)
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1: one for each core")
    parser.add_argument("--quick", action="store_true", help="few small replications: checks that the tables are made")
    parser.add_argument("--output", type=Path, default=HERE / "paper_results.md", help="where the page goes")
    parser.add_argument("--figures", type=Path, help="folder for the figures; none are made without it")
    options = parser.parse_args(arguments)
    if options.replications < 2:
        parser.error(f"--replications must be at least 2, got {options.replications}.")
    begun = time.perf_counter()
    few = 3 if options.quick else options.replications
    many = 20 if options.quick else max(few, 1000)
    rows = averages(many, options.seed, (500,) if options.quick else (500, 1000, 2000, 5000))
    for model in paper_fits.SETTINGS:
        rows += fits(model, few, options.seed, 1 if options.quick else options.jobs, options.quick)
    command = f"python benchmarks/paper_zil.py --replications {options.replications} --seed {options.seed}"
    command += " --quick" if options.quick else ""
    text = page(rows, command, (many, few), time.perf_counter() - begun)
    options.output.write_text(text, encoding="utf-8")
    if options.figures:
        draw_figures(rows, options.figures)
    return text


if __name__ == "__main__":
    print(main())
