r"""How often a fit finds the best known optimum of its corrected risk, at hard settings: a table by simulation.

``python benchmarks/success_rates.py`` prints the table and writes ``success_rates.md``; ``--quick`` runs few
replications, as a test of the table. Each row is a model, columns, a law and n, chosen where fits are barely stable. In
each replication the risk that the fit minimised is minimised again from the true coefficients, from random points near
the fits and from random points of the whole box, with the library's own step but none of its search: from all starts
where a second minimum was met, else until one was met ``--agree`` times (another one, whose basin holds a share s of
the starts, is then missed with probability (1 - s)^agree). An interior minimum counts where the gradient is zero and
the curvature positive; two minima are one if they are within 1e-4 (1 + their size).

    exists     share of replications in which any interior minimum is known
    lowest     of those: share in which the fit is the lowest interior minimum
    first      of those: share in which the fit without further starts (`estimators.restarts`) is the lowest one
    nearest    of those: share in which the fit is the interior minimum nearest to the truth
    missed     of those: share in which the fit is no interior minimum
    edge       share in which the fit lies on the boundary of the box
    lower      of the replications without an interior minimum: share in which the fit's value is within 1e-6 of the
               lowest known in the box
    several    share in which two interior minima or more are known
    steps      iterations of the last search (mean), and milliseconds of the whole fit (median)
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from privfit.accounting import Budget
from privfit.estimators import LogisticRegression, QuantileRegression
from privfit.estimators.solver import Solution, minimise
from privfit.mechanisms import Ball, SymmetricLaplace, ZeroInflatedLaplace

HERE = Path(__file__).parent
Draw = Callable[[np.random.Generator, int, int], Any]


@dataclass(frozen=True)
class Setting:
    """A model, its columns, the noise and the number of records."""

    name: str
    kind: type
    law: Any
    n: int
    columns: Draw
    slopes: tuple[float, ...]


@dataclass(frozen=True)
class Outcome:
    """What one replication gave; see the module for the shares."""

    exists: bool
    lowest: bool
    first: bool
    nearest: bool
    interior: bool
    edge: bool
    lower: bool
    several: bool
    iterations: int
    seconds: float


def truncated(rng: np.random.Generator, n: int, d: int) -> Any:
    """Independent standard normals conditioned on [-1, 1]."""
    x = rng.normal(size=(n, d))
    while (bad := np.abs(x) > 1).any():
        x[bad] = rng.normal(size=bad.sum())
    return x


def collinear(rng: np.random.Generator, n: int, d: int) -> Any:
    """Normal columns of variance 1 and correlation 0.8."""
    return np.sqrt(0.8) * rng.normal(size=(n, 1)) + np.sqrt(0.2) * rng.normal(size=(n, d))


def ball(rng: np.random.Generator, n: int, d: int) -> Any:
    """Uniform points of a ball of diameter 1."""
    g = rng.normal(size=(n, d))
    return 0.5 * g / np.linalg.norm(g, axis=1, keepdims=True) * rng.random((n, 1)) ** (1 / d)


def settings() -> list[Setting]:
    """The hard settings: from most fits interior to most fits at the boundary."""
    logistic, median, six = LogisticRegression, QuantileRegression, (1.0,) * 6
    strong, three = (2.5, -2.5, 2.5), (1.0, -1.0, 1.0)
    shape4 = SymmetricLaplace.calibrate(Budget(4.0, 1e-5), Ball(0.5, 3), shape=4)
    return [
        Setting("logistic", logistic, ZeroInflatedLaplace(1.0, 0.2), 2500, truncated, six),
        Setting("logistic", logistic, ZeroInflatedLaplace(1.5, 0.2), 5000, truncated, six),
        Setting("logistic", logistic, ZeroInflatedLaplace(2.5, 0.2), 7500, truncated, six),
        Setting("logistic, collinear", logistic, ZeroInflatedLaplace(1.0, 0.2), 5000, collinear, three),
        Setting("logistic, shape 4", logistic, shape4, 7500, ball, strong),
        Setting("median", median, ZeroInflatedLaplace(1.0, 0.2), 2500, truncated, six),
        Setting("median", median, ZeroInflatedLaplace(2.5, 0.2), 2500, truncated, six),
        Setting("median", median, ZeroInflatedLaplace(2.5, 0.2), 7500, truncated, six),
        Setting("median, collinear", median, ZeroInflatedLaplace(1.0, 0.2), 2500, collinear, three),
    ]


def noised(rng: np.random.Generator, x: Any, law: Any) -> Any:
    """Add the noise, by its definition and not by the library's sampler."""
    shape = getattr(law, "shape", 1)
    noise = law.scale * np.sqrt(rng.gamma(shape, 1.0 / shape, (len(x), 1))) * rng.normal(size=x.shape)
    return x + noise * (rng.random((len(x), 1)) >= getattr(law, "delta0", 0.0))


def watched(kind: type, first: bool = False) -> type:
    """Return the model, which now remembers its problem, first and reported solution, and the naive fit."""

    def store(self: Any, solution: Solution, problem: Any, start: Any) -> None:
        self.solution_, self.problem_, self.start_ = solution, problem, start
        kind._store(self, solution, problem, start)  # type: ignore[attr-defined]

    def reconsidered(self: Any, solution: Solution, problem: Any, start: Any) -> Solution:
        self.first_ = solution
        return solution if first else kind._reconsidered(self, solution, problem, start)  # type: ignore[attr-defined]

    return type(kind.__name__, (kind,), {"_store": store, "_reconsidered": reconsidered})


def fitted(setting: Setting, rng: np.random.Generator, first: bool = False) -> tuple[Any, Any, float]:
    """Draw records, release and fit them: the model, the true parameters in the units of the data, seconds."""
    slopes = np.array(setting.slopes)
    x = setting.columns(rng, setting.n, slopes.size)
    if setting.kind is LogisticRegression:
        y, truth = (rng.random(setting.n) < 1 / (1 + np.exp(-x @ slopes))).astype(int), np.r_[0.0, slopes]
    else:
        y, truth = 1 + x @ slopes + rng.normal(size=setting.n), np.r_[1.0, slopes]
    released = noised(rng, x, setting.law)
    model = watched(setting.kind, first)(noise=setting.law)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.process_time()
        model.fit(released, y)
        return model, truth, time.process_time() - began


def standard(problem: Any, params: Any) -> Any:
    """Coefficients in the coordinates of the search."""
    coordinates = problem.coordinates
    shifted = params.copy()
    shifted[0] -= coordinates.response_centre
    return np.linalg.solve(coordinates.matrix, shifted)


def same(one: Any, other: Any) -> bool:
    """Whether two minima are one."""
    return bool(np.abs(one - other).max() <= 1e-4 * (1.0 + np.abs(other).max()))


def points(truth: Any, centres: list[Any], starts: int, bound: Any, rng: np.random.Generator) -> Iterator[Any]:
    """The truth, the centres, points around these, and random points of the box."""
    centres = [truth, *centres]
    yield from centres
    for number in range(starts):
        centre = centres[number % len(centres)]
        size = np.linalg.norm(centre) * rng.uniform(0.1, 2.0) / np.sqrt(centre.size)
        yield centre + size * rng.normal(size=centre.size) if number % 2 else rng.uniform(-bound, bound)


def explored(problem: Any, known: list[Solution], starts: Iterable[Any], agree: int) -> list[Solution]:
    """Different interior minima and the lowest of the other ends, known ones and those of searches from `starts`."""
    bound, distinct, rest, met = problem.bound, list[Solution](), list[Solution](), 0

    def enter(solution: Solution) -> None:
        if not solution.interior:
            rest.append(solution)
        elif not any(same(solution.theta, other.theta) for other in distinct):
            distinct.append(solution)

    for solution in known:
        enter(solution)
    for start in starts:
        found = minimise(problem.risk, np.clip(start, -bound, bound), bound, tolerance=1e-5)
        if found.interior and not any(same(found.theta, other.theta) for other in distinct):
            found = minimise(problem.risk, found.theta, bound)
        enter(found)
        met += found.interior
        if len(distinct) == 1 and met >= agree:
            break
    return distinct or [min(rest, key=lambda solution: solution.value)]


def outcome(setting: Setting, rng: np.random.Generator, starts: int, agree: int = 15) -> Outcome:
    """One replication."""
    model, params, seconds = fitted(setting, rng)
    problem, own, first = model.problem_, model.solution_, model.first_
    truth = standard(problem, params)
    begin = points(truth, [model.start_, own.theta], starts, problem.bound, rng)
    distinct = explored(problem, [own, first], begin, agree)
    edge = bool(own.at_bound.any())
    facts = {"edge": edge, "iterations": own.iterations, "seconds": seconds, "several": len(distinct) > 1}
    if not distinct[0].interior:
        least = distinct[0].value
        return Outcome(False, False, False, False, False, lower=own.value <= least + 1e-6 * (1 + abs(least)), **facts)
    best = min(distinct, key=lambda solution: solution.value)
    near = min(distinct, key=lambda solution: float(np.linalg.norm(solution.theta - truth)))
    reached, nearest = (own.interior and same(own.theta, other.theta) for other in (best, near))
    at_once = first.interior and same(first.theta, best.theta)
    return Outcome(True, reached, at_once, nearest, own.interior, lower=False, **facts)


def measure(setting: Setting, replications: int, starts: int, seed: int, agree: int = 15) -> list[Outcome]:
    """Replications with generators of their own."""
    rngs = [np.random.default_rng([seed, setting.n, rep]) for rep in range(replications)]
    return [outcome(setting, rng, starts, agree) for rng in rngs]


def line(setting: Setting, seed: int, found: list[Outcome]) -> str:
    """One row of the table."""

    def share(what: str, among: list[Outcome]) -> str:
        if not among:
            return "-"
        rate = float(np.mean([getattr(own, what) for own in among]))
        return f"{100 * rate:.1f} ({100 * np.sqrt(rate * (1 - rate) / len(among)):.1f})"

    inside, outside = [own for own in found if own.exists], [own for own in found if not own.exists]
    missed = f"{100 * np.mean([not own.interior for own in inside]):.1f}" if inside else "-"
    law = f"{type(setting.law).__name__}({setting.law.scale:.3g})"
    cells = [setting.name, law, str(setting.n), str(seed), str(len(found)), share("exists", found)]
    cells += [*(share(what, inside) for what in ("lowest", "first", "nearest")), missed]
    cells += [share("edge", found), share("lower", outside), share("several", found)]
    cells += [f"{np.mean([own.iterations for own in found]):.1f}"]
    cells += [f"{1e3 * np.median([own.seconds for own in found]):.0f}"]
    return f"| {' | '.join(cells)} |"


def main(arguments: list[str] | None = None) -> str:
    """Print the table, write the page, and return the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few replications, and no page: checks that it runs")
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument("--starts", type=int, default=50, help="random starts in each replication, at most")
    parser.add_argument("--agree", type=int, default=15, help="searches that end in the only minimum: enough")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", type=int, nargs="+", help="numbers of the rows, from 0")
    parser.add_argument("--output", type=Path, default=HERE / "success_rates.md", help="where the page goes")
    options = parser.parse_args(arguments)
    replications, starts = (2, 3) if options.quick else (options.replications, options.starts)
    heads = ["setting", "law", "n", "seed", "replications", "exists", "lowest", "first", "nearest", "missed"]
    heads += ["edge", "lower", "several", "steps", "ms"]
    lines = [f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads)]
    print("\n".join(lines), flush=True)
    with threadpool_limits(1):
        for number, setting in enumerate(settings()):
            for seed in options.seeds if options.only is None or number in options.only else ():
                found = measure(setting, replications, starts, seed, options.agree)
                lines.append(line(setting, seed, found))
                print(lines[-1], flush=True)
    table = "\n".join(lines)
    if not options.quick:
        options.output.write_text(page(table, starts, options.agree), encoding="utf-8")
    return table


def page(table: str, starts: int, agree: int) -> str:
    """The table with what it means."""
    assert __doc__ is not None
    columns = __doc__.split("\n\n")[2].rstrip()
    return f"""# How often a fit finds the best known optimum

Percentages, with their standard errors in brackets; at most {starts} random starts in each replication, {agree} where
all end in one minimum. `python benchmarks/success_rates.py` makes this page.

{table}

{columns}

For a user: where an interior minimum exists, the fit is the lowest known one in the share `lowest`; a restart by hand,
from other coefficients, is of use in the rest only. What `exists` lacks to 100 are releases with too much noise for
their n: the fit then lies at the edge, and warns with the n that it needs.
"""


if __name__ == "__main__":
    main()
