r"""Search of a corrected check risk: bandwidths from wide to narrow (`smoothed_search`), then, without noise, exact.

The last step without noise: far records keep their sign and enter as one linear term, the near ones
as a small linear programme (Portnoy & Koenker 1997).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.losses import SmoothedCheckLoss, SquaredLoss
from privfit.estimators.losses.base import IndexLoss
from privfit.estimators.losses.kernel_check import KernelCheckLoss
from privfit.estimators.problem import Problem
from privfit.estimators.risk import Risk
from privfit.estimators.smoothed_search import continuation
from privfit.estimators.solver import Solution
from privfit.estimators.strata import Chunk, Design

__all__ = ["search_quantile", "vertex"]

Floats = NDArray[np.float64]


def search_quantile(problem: Problem, quantile: float, *, exact: bool) -> tuple[Solution, Floats]:
    """Minimise by continuation in the bandwidth; returns the solution and the naive fit.

    Parameters
    ----------
    problem : Problem
        With a `SmoothedCheckLoss` or a `KernelCheckLoss`.
    quantile : float
    exact : bool
        Finish with the exact minimiser of the unsmoothed check risk (no noise).

    Examples
    --------
    >>> search_quantile.__name__
    'search_quantile'
    """
    loss = problem.risk.loss
    assert isinstance(loss, SmoothedCheckLoss | KernelCheckLoss)

    def family(h: float) -> IndexLoss:
        if isinstance(loss, KernelCheckLoss):
            return KernelCheckLoss(quantile, h)
        return SmoothedCheckLoss(quantile, h, loss.order)

    solution, naive = continuation(problem, family, loss.bandwidth, SquaredLoss())
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

    count = min(risk.n, 50 * risk.size + 100)
    while count <= min(risk.n, 4000):
        cut = _cut(risk, theta, count)
        parts = risk.each(partial(_near_and_far, theta, cut, count, quantile))
        matrix = np.concatenate([own[0] for own in parts], axis=1)
        offset = np.concatenate([own[1] for own in parts])
        near = offset.size
        if near > 8000:
            return None
        cost = np.concatenate([sum(own[2] for own in parts), np.full(near, quantile), np.full(near, 1.0 - quantile)])
        unit: Any = eye_array(near)
        equality: Any = hstack([csr_array(matrix.T), -unit, unit])  # sparse: 2 near + p columns, few entries
        limits = [(-b, b) if np.isfinite(b) else (None, None) for b in bound] + [(0, None)] * (2 * near)
        answer = linprog(cost, A_eq=equality, b_eq=-offset, bounds=limits, method="highs-ds")
        if answer.status == 0 and answer.x is not None:
            found = np.asarray(answer.x[: risk.size], float)
            if not any(risk.each(partial(_crosses, theta, cut, count, found))):
                return found
        if near == risk.n:
            return None
        count = min(risk.n, 4 * count)
    return None


def _cut(risk: Risk, theta: Floats, count: int) -> float:
    """Largest absolute residual of about `count` near records: told by a sample where records are not in memory."""
    few = risk if risk.held else risk.thinned(100_000)
    sizes = np.sort(np.abs(few.design.index(theta)))
    if few.n == risk.n:
        return float(sizes[count - 1])
    place = min(few.n, max(1000, round(count * few.n / risk.n)))
    return float(sizes[place - 1]) * (count / risk.n) / (place / few.n)


def _near_and_far(
    theta: Floats, cut: float, count: int, quantile: float, chunks: Iterator[Chunk], first: int
) -> tuple[Floats, Floats, Floats]:
    """Near records, and the linear term of the far ones; where they are counted from `first` plays no part."""
    near, offsets, total = [], [], np.zeros(theta.size)
    for design, residual, close in _close(theta, cut, count, chunks):
        offset = np.zeros(residual.size) if design.offset is None else design.offset
        near.append(design.matrix[:, close])
        offsets.append(offset[close])
        total += design.matrix @ np.where(close, 0.0, quantile - (residual < 0))
    if not near:
        return np.zeros((theta.size, 0)), np.zeros(0), total
    return np.concatenate(near, axis=1), np.concatenate(offsets), total


def _crosses(theta: Floats, cut: float, count: int, found: Floats, chunks: Iterator[Chunk], first: int) -> bool:
    """Whether a far record has changed its sign; where they are counted from `first` plays no part."""
    wrong = False
    for design, residual, close in _close(theta, cut, count, chunks):
        wrong |= bool((~close & (np.sign(design.index(found)) * np.sign(residual) < 0)).any())
    return wrong


def _close(
    theta: Floats, cut: float, count: int, chunks: Iterator[Chunk]
) -> Iterator[tuple[Design, Floats, NDArray[np.bool_]]]:
    """Yield design, residuals and which of them are near; of residuals as large as the cut, `count` at most are."""
    room = count
    for chunk in chunks:
        design = chunk.designs[0]
        residual = design.index(theta)
        size = np.abs(residual)
        close = size < cut
        tied = np.flatnonzero(size == cut)[:room]
        room -= tied.size
        close[tied] = True
        yield design, residual, close
