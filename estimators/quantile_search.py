r"""Search of a corrected check risk: bandwidths from wide to narrow (`smoothed_search`), then, without noise, exact.

The last step without noise: far records keep their sign and enter as one linear term, the near ones
as a small linear programme (Portnoy & Koenker 1997).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.losses import SmoothedCheckLoss, SquaredLoss
from privfit.estimators.problem import Problem
from privfit.estimators.risk import Risk
from privfit.estimators.smoothed_search import continuation
from privfit.estimators.solver import Solution

__all__ = ["search_quantile", "vertex"]

Floats = NDArray[np.float64]


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
    solution, naive = continuation(
        problem, lambda h: SmoothedCheckLoss(quantile, h, loss.order), loss.bandwidth, SquaredLoss()
    )
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
