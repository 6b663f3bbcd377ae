r"""How often a fit finds the best known optimum of its corrected risk, at hard settings: a table by simulation.

``python benchmarks/success_rates.py`` prints the table; ``--quick`` runs few replications, as a test of the table.
Each row is a model, columns, a law and n, chosen where fits are barely stable. In each replication the risk that the
fit minimised is minimised again from the true coefficients, from random points near the fits and from random points of
the whole box, with the library's own step but none of its search. An interior minimum counts where the gradient is
zero and the curvature positive; two minima are one if they are within 1e-5 (1 + their size).

    exists     share of replications in which any interior minimum is known
    lowest     of those: share in which the fit is the lowest interior minimum
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
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from privfit.accounting import Budget
from privfit.estimators import LogisticRegression, QuantileRegression
from privfit.estimators.solver import Solution, minimise
from privfit.mechanisms import Ball, SymmetricLaplace, ZeroInflatedLaplace

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
    """Return the model, which now remembers the problem, the solution that it reports and the naive fit."""

    def store(self: Any, solution: Solution, problem: Any, start: Any) -> None:
        self.solution_, self.problem_, self.start_ = solution, problem, start
        kind._store(self, solution, problem, start)  # type: ignore[attr-defined]

    members: dict[str, Any] = {"_store": store}
    if first:
        members["_reconsidered"] = lambda self, solution, problem, start: solution
    return type(kind.__name__, (kind,), members)


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
    return bool(np.abs(one - other).max() <= 1e-5 * (1.0 + np.abs(other).max()))


def explored(problem: Any, truth: Any, centres: list[Any], starts: int, rng: np.random.Generator) -> list[Solution]:
    """Minima from the truth, from around the centres, and from random points of the box."""
    bound = problem.bound
    points = [truth, *centres]
    for number in range(starts):
        centre = points[number % len(points)]
        size = np.linalg.norm(centre) * rng.uniform(0.1, 2.0) / np.sqrt(centre.size)
        points.append(centre + size * rng.normal(size=centre.size) if number % 2 else rng.uniform(-bound, bound))
    return [minimise(problem.risk, np.clip(point, -bound, bound), bound) for point in points]


def outcome(setting: Setting, rng: np.random.Generator, starts: int, first: bool = False) -> Outcome:
    """One replication."""
    model, params, seconds = fitted(setting, rng, first)
    problem, own = model.problem_, model.solution_
    truth = standard(problem, params)
    known = [own, *explored(problem, truth, [model.start_, own.theta], starts, rng)]
    distinct: list[Solution] = []
    for solution in known:
        if solution.interior and not any(same(solution.theta, other.theta) for other in distinct):
            distinct.append(solution)
    edge = bool(own.at_bound.any())
    facts = {"edge": edge, "iterations": own.iterations, "seconds": seconds, "several": len(distinct) > 1}
    if not distinct:
        least = min(solution.value for solution in known)
        return Outcome(False, False, False, False, lower=own.value <= least + 1e-6 * (1 + abs(least)), **facts)
    best = min(distinct, key=lambda solution: solution.value)
    near = min(distinct, key=lambda solution: float(np.linalg.norm(solution.theta - truth)))
    reached, nearest = (own.interior and same(own.theta, other.theta) for other in (best, near))
    return Outcome(True, reached, nearest, own.interior, lower=False, **facts)


def measure(setting: Setting, replications: int, starts: int, seed: int, first: bool = False) -> list[Outcome]:
    """Replications with generators of their own; `first` leaves out the library's further starts."""
    rngs = [np.random.default_rng([seed, setting.n, rep]) for rep in range(replications)]
    return [outcome(setting, rng, starts, first) for rng in rngs]


def line(setting: Setting, found: list[Outcome]) -> str:
    """One row of the table."""

    def share(what: str, among: list[Outcome]) -> str:
        if not among:
            return f"{'-':>8}"
        return f"{100 * np.mean([getattr(own, what) for own in among]):>7.1f}%"

    inside, outside = [own for own in found if own.exists], [own for own in found if not own.exists]
    missed = f"{100 * np.mean([not own.interior for own in inside]):>7.1f}%" if inside else f"{'-':>8}"
    cells = [share("exists", found), share("lowest", inside), share("nearest", inside), missed]
    cells += [share("edge", found), share("lower", outside), share("several", found)]
    steps, spent = np.mean([own.iterations for own in found]), 1e3 * np.median([own.seconds for own in found])
    law = f"{type(setting.law).__name__}({setting.law.scale:.3g})"
    return f"{setting.name:<20}{law:<26}{setting.n:>6} {''.join(cells)} {steps:>6.1f} {spent:>6.0f}"


def main(arguments: list[str] | None = None) -> str:
    """Print the table and return it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few replications: checks that the table runs")
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument("--starts", type=int, default=50, help="random starts in each replication")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", action="store_true", help="without the further starts of `estimators.restarts`")
    parser.add_argument("--only", type=int, nargs="+", help="numbers of the rows, from 0")
    options = parser.parse_args(arguments)
    replications, starts = (2, 3) if options.quick else (options.replications, options.starts)
    heads = ["exists", "lowest", "nearest", "missed", "edge", "lower", "several"]
    lines = [f"{'setting':<20}{'law':<26}{'n':>6} {''.join(f'{h:>8}' for h in heads)} {'steps':>6} {'ms':>6}"]
    print(lines[0], flush=True)
    with threadpool_limits(1):
        for number, setting in enumerate(settings()):
            if options.only is None or number in options.only:
                lines.append(line(setting, measure(setting, replications, starts, options.seed, options.first)))
                print(lines[-1], flush=True)
    return "\n".join(lines)


if __name__ == "__main__":
    main()
