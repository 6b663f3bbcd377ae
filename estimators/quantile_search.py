r"""Search of a corrected check risk: bandwidths from wide to narrow, Newton at each.

A wide bandwidth makes the risk smooth and nearly quadratic; each minimum starts the next, narrower one.
Without noise the last step is exact: far records keep their sign and enter as one linear term, the near ones
as a small linear programme (Portnoy & Koenker 1997).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.bandwidth import auto_bandwidth
from privfit.estimators.least_squares import least_squares
from privfit.estimators.losses import SmoothedCheckLoss, SquaredLoss
from privfit.estimators.problem import Problem
from privfit.estimators.risk import Risk
from privfit.estimators.solver import Solution, minimise, solve

__all__ = ["pilot_bandwidth", "search_quantile", "vertex"]

Floats = NDArray[np.float64]
_WIDEST = 0.5
_WARM = 30_000


def pilot_bandwidth(problem: Problem) -> float:
    """Automatic bandwidth in standard units, from a corrected least-squares pilot.

    Examples
    --------
    >>> pilot_bandwidth.__name__
    'pilot_bandwidth'
    """
    risk, naive = problem.risk, problem.naive
    free = np.zeros(risk.size)
    theta = np.clip(least_squares(risk, 1e-2)[0], -problem.bound, problem.bound)
    spread = np.sqrt(max(2.0 * naive.with_(penalty=free).value(theta), 1e-12))
    sigma = np.sqrt(max(2.0 * risk.with_(penalty=free).value(theta), (0.1 * spread) ** 2))
    if not risk.corrects:
        return float(sigma * risk.n**-0.4)
    share = float(np.linalg.eigvalsh(risk.hessian(theta))[0] / np.linalg.eigvalsh(naive.hessian(theta))[-1])
    widths = [auto_bandwidth(g, sigma, spread, min(max(share, 0.05), 1.0), risk.n) for g in risk.symbols(theta)]
    return max(widths)


def search_quantile(problem: Problem, quantile: float, *, exact: bool) -> tuple[Solution, Floats]:
    """Minimise by continuation in the bandwidth; returns the solution and the naive fit.

    Parameters
    ----------
    problem : Problem
        With a `SmoothedCheckLoss`.
    quantile : float
    exact : bool
        Finish with the exact minimiser of the unsmoothed check risk (no noise).

    Examples
    --------
    >>> search_quantile.__name__
    'search_quantile'
    """
    loss = problem.risk.loss
    assert isinstance(loss, SmoothedCheckLoss)
    few, few_naive = problem.risk.thinned(_WARM), problem.naive.thinned(_WARM)
    start = least_squares(few_naive.with_(loss=SquaredLoss()), 0.0)[0]
    start = np.clip(start, -problem.bound, problem.bound)
    widths = [loss.bandwidth]
    while widths[-1] < _WIDEST:
        widths.append(4.0 * widths[-1])
    naive = corrected = start
    for h in reversed(widths):
        smoothed = SmoothedCheckLoss(quantile, h, loss.order)
        naive = minimise(few_naive.with_(loss=smoothed), naive, problem.bound, tolerance=1e-7).theta
        found = solve(few.with_(loss=smoothed), [corrected, naive], problem.bound, tolerance=1e-7)
        corrected = found.theta if found.interior else corrected
    solution = solve(problem.risk, [corrected] if few.n < problem.risk.n else [corrected, naive], problem.bound)
    if exact and not problem.risk.penalty[~problem.flat].any():
        theta = vertex(problem.risk, solution.theta, quantile, problem.bound)
        if theta is not None:
            solution = replace(solution, theta=theta, converged=True)
    return solution, naive


def vertex(risk: Risk, theta: Floats, quantile: float, bound: Floats) -> Floats | None:
    """Exact minimiser of the unsmoothed check risk near theta, or None if the programme grows too large.

    Examples
    --------
    >>> vertex.__name__
    'vertex'
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, hstack

    design = risk.design
    residual = design.index(theta)
    offset = np.zeros(risk.n) if design.offset is None else design.offset
    order = np.argsort(np.abs(residual), kind="stable")
    count = min(risk.n, 50 * risk.size + 100)
    while count <= min(risk.n, 4000):
        near, far = order[:count], order[count:]
        signs = quantile - (residual[far] < 0)
        matrix = design.matrix[:, near]
        cost = np.concatenate(
            [
                design.matrix[:, far] @ signs,
                np.full(count, quantile),
                np.full(count, 1.0 - quantile),
            ]
        )
        unit: Any = eye_array(count)
        equality: Any = hstack([csr_array(matrix.T), -unit, unit])  # sparse: 2 count + p columns, few entries
        limits = [(-b, b) if np.isfinite(b) else (None, None) for b in bound] + [(0, None)] * (2 * count)
        answer = linprog(cost, A_eq=equality, b_eq=-offset[near], bounds=limits, method="highs-ds")
        if answer.status == 0 and answer.x is not None:
            found = np.asarray(answer.x[: risk.size], float)
            moved = design.index(found)[far]
            if not np.any(np.sign(moved) * np.sign(residual[far]) < 0):
                return found
        if count == risk.n:
            return None
        count = min(risk.n, 4 * count)
    return None
