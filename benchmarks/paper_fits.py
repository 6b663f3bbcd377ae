r"""Logistic and median regression on columns with zero-inflated noise: replications and their sandwich predictions.

Columns are six independent standard normals truncated to [-1, 1]; logistic: P(y = 1) = expit(sum x); median: y = 1 +
sum x + N(0, 1). The response is released as it is. Methods see the same release and the same second randomisation. A
fit is the interior minimum near the corrected least-squares fit (median) or the one-step fit (logistic); EXACT comes
first, and starts the others too; where no start leads to one, the last point found counts, usually on the boundary.
(The estimators' own searches take longer and start from more points.) The prediction is the sandwich ``V^-1 A V^-1 /
n`` at the true coefficients, with the bandwidth that the replications used, from 100,000 records (a million for the
median, whose corrected curvature has heavy tails); for the naive fit it is added to the error of its limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.special import expit, ndtr, ndtri

from privfit.estimators.inference import sandwich
from privfit.estimators.losses import LogisticLoss, SmoothedCheckLoss
from privfit.estimators.losses.kernel_check import KernelCheckLoss, kernel_bandwidth
from privfit.estimators.noise import resolve_noise
from privfit.estimators.problem import Problem, Sample, build_problem
from privfit.estimators.smoothed_search import Pilot
from privfit.estimators.solver import Solution, minimise, one_step
from privfit.mechanisms import ZeroInflatedLaplace

METHODS = {
    "logistic": ("oracle", "naive", "dr", "sdr", "sl", "exact"),
    "median": ("oracle", "naive", "dr", "sdr", "sl", "exact", "wsz", "wsz/2"),
}
SETTINGS = {"logistic": ((0.5, 1.0), (5000, 7500, 10_000)), "median": ((1.0, 2.5), (2500, 5000, 7500))}
DELTA0, DIM = 0.2, 6
LARGE = {"logistic": 100_000, "median": 1_000_000}


@dataclass(frozen=True)
class Cell:
    """A model, a noise scale and a number of records."""

    model: str
    scale: float
    n: int

    @property
    def law(self) -> Any:
        """Noise of the columns."""
        return ZeroInflatedLaplace(self.scale, DELTA0)

    @property
    def median(self) -> bool:
        """Median, or else logistic regression."""
        return self.model == "median"

    @property
    def truth(self) -> Any:
        """True coefficients, intercept first."""
        return np.ones(DIM + self.median)


def draw(cell: Cell, rng: np.random.Generator, n: int) -> tuple[Any, Any, Any]:
    """Raw columns, released columns (noise by its definition) and response."""
    low, high = ndtr(-1.0), ndtr(1.0)
    x = ndtri(low + (high - low) * rng.random((n, DIM)))
    if cell.median:
        y = 1.0 + x.sum(axis=1) + rng.normal(size=n)
    else:
        y = (rng.random(n) < expit(x.sum(axis=1))).astype(float)
    noise = cell.scale * np.sqrt(rng.exponential(size=(n, 1))) * rng.normal(size=(n, DIM))
    return x, x + noise * (rng.random((n, 1)) >= DELTA0), y


def pose(cell: Cell, method: str, x: Any, released: Any, y: Any, seed: int) -> Problem:
    """Posed as the estimators pose it, with a squared loss (median) or its own (logistic)."""
    oracle = method == "oracle"
    model = resolve_noise(None if oracle else cell.law, range(DIM), "y", label=False)
    problem = build_problem(
        [Sample.of(x if oracle else released, y, model)],
        correction="exact" if oracle else method.split("/")[0],
        draws=1,
        label=not cell.median,
        intercept=cell.median,
        bound=None,
        default_bound=10.0,
        random_state=seed,
    )
    return problem if cell.median else problem.with_loss(LogisticLoss())


def standard(problem: Problem, coefficients: Any) -> Any:
    """Coefficients in the problem's coordinates."""
    c = problem.coordinates
    return np.linalg.solve(c.matrix, coefficients - c.original(np.zeros(coefficients.size)))


def check_loss(method: str, width: float) -> Any:
    if method.startswith("wsz"):
        return KernelCheckLoss(0.5, width)
    return SmoothedCheckLoss(0.5, width, 2 if method in ("oracle", "naive") else 4)


def automatic(method: str, problem: Problem, pilot: Pilot) -> float:
    """Bandwidth by the estimators' rule, in standard units; "wsz/2" takes half of it."""
    if not method.startswith("wsz"):
        return pilot.bandwidth(problem.risk)
    q = max(-g.numerator[1] for g in problem.risk.symbols(pilot.theta))
    width = kernel_bandwidth(q, pilot.sigma, pilot.spread, pilot.share, problem.risk.n)
    return width / 2.0 if method == "wsz/2" else width


def replicate(cell: Cell, seed: int, replication: int) -> dict[str, tuple[Any, bool, float]]:
    """Estimate by every method: coefficients, whether the fit is proper, bandwidth in the response's unit."""
    rng = np.random.default_rng([seed, replication, cell.n, round(1000 * cell.scale), cell.median])
    data = draw(cell, rng, cell.n)
    found: dict[str, tuple[Any, bool, float]] = {}
    near: list[Any] = []
    for method in ("exact", *(m for m in METHODS[cell.model] if m != "exact")):
        found[method] = fit(cell, method, data, replication, near if method not in ("oracle", "naive") else [])
        if method == "exact" and found[method][1]:
            near.append(found[method][0])
    return found


def fit(cell: Cell, method: str, data: tuple[Any, Any, Any], seed: int, near: list[Any]) -> tuple[Any, bool, float]:
    problem = pose(cell, method, *data, seed)
    unit, width = float(problem.coordinates.response_scale) if cell.median else 1.0, 0.0
    if cell.median:
        pilot = Pilot.of(problem)
        width = automatic(method, problem, pilot)
        problem, start = problem.with_loss(check_loss(method, width)), pilot.theta
    else:
        start = minimise(problem.naive, np.zeros(problem.risk.size), problem.bound, tolerance=1e-6).theta
        stepped = one_step(problem.risk, start)
        start = start if stepped is None else stepped
    for first in (*(standard(problem, own) for own in near), start):
        solution: Solution = minimise(problem.risk, np.clip(first, -problem.bound, problem.bound), problem.bound)
        if solution.interior:
            break
    return problem.coordinates.original(solution.theta), solution.interior, width * unit


@cache
def large_sample(model: str, scale: float, records: int, seed: int) -> tuple[Any, Any, Any]:
    return draw(Cell(model, scale, records), np.random.default_rng([seed, 7]), records)


def predicted(cell: Cell, method: str, width: float, seed: int, records: int) -> float:
    """Predicted RMSE of a coefficient at n records."""
    data = large_sample(cell.model, cell.scale, records, seed)
    problem = pose(cell, method, *data, seed)
    c = problem.coordinates
    if cell.median:
        problem = problem.with_loss(check_loss(method, width / float(c.response_scale)))
    theta = standard(problem, cell.truth)
    if method == "naive":
        theta = minimise(problem.risk, theta, problem.bound).theta
    limit = c.original(theta) - cell.truth
    _, _, hessian = problem.risk.derivatives(theta)
    own = sandwich(hessian, problem.risk.score_covariance(theta), records)
    variance = np.diag(c.covariance(own)) * records / cell.n
    return float(np.sqrt(np.mean(limit**2 + variance)))
