r"""Search of a corrected check risk: bandwidths from wide to narrow (`smoothed_search`), then, without noise, exact.

The last step without noise (Portnoy & Koenker 1997): far records keep the side they are on and enter as one linear
term ``g't``, the near ones, with weights w_i, as a linear programme. Its dual has one row per coefficient, whatever
the number of records, and the coefficients are its multipliers: with near residuals ``r_i = o_i + z_i't``,

    min_{|t| <= B} sum_i w_i rho_tau(r_i) + g't  =  max_a o'a - B'|Z a + g|,     w_i (tau - 1) <= a_i <= w_i tau.

A linear term is nowhere above the loss it stands for, so the minimum is that of all records if no far record changes
its side there; otherwise more records count as near.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.bandwidth import curvature_bandwidth
from privfit.estimators.losses import CheckLoss, SmoothedCheckLoss, SquaredLoss
from privfit.estimators.losses.base import IndexLoss
from privfit.estimators.losses.kernel_check import KernelCheckLoss
from privfit.estimators.problem import Problem
from privfit.estimators.risk import Risk
from privfit.estimators.smoothed_search import continuation
from privfit.estimators.solver import Solution, minimise
from privfit.estimators.strata import Chunk

__all__ = ["ON_THE_FIT", "search_quantile", "vertex"]

Floats = NDArray[np.float64]
_MOST = 50_000
ON_THE_FIT = 1e-9
"""Residuals below this, in units of the response's spread, are zero: records that the exact fit goes through."""


def search_quantile(problem: Problem, quantile: float, *, exact: bool) -> tuple[Solution, Floats]:
    """Minimise by continuation in the bandwidth; returns the solution and the naive fit.

    Parameters
    ----------
    problem : Problem
        With a `SmoothedCheckLoss` or a `KernelCheckLoss`.
    quantile : float
    exact : bool
        Finish with the exact minimiser of the unsmoothed check risk (no noise). Its scores are then the unsmoothed
        ``tau - 1[r < 0]``: smoothed by a bandwidth h they vary less, by about ``h f(0) / (tau (1 - tau))`` with f the
        density of the residuals.

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
    if not exact:
        return solution, naive
    if problem.risk.penalty[~problem.flat].any():
        found = _sharpened(problem, solution.theta, quantile, loss.bandwidth)
        if found is not None:
            solution = replace(found[0], scored=SmoothedCheckLoss(quantile, found[1], 2))
        return solution, naive
    theta = vertex(problem.risk, solution.theta, quantile, problem.bound)
    if theta is not None:
        on = ON_THE_FIT * min(1.0, _local_scale(problem.risk, theta, quantile))
        scored = SmoothedCheckLoss(quantile, on, 2)
        solution = replace(solution, theta=theta, converged=True, scored=scored)
    return solution, naive


def _local_scale(risk: Risk, theta: Floats, quantile: float) -> float:
    """Distance of the residuals' quantiles near tau, whatever the outliers."""
    few = risk.thinned(100_000)
    return 2.0 * np.pi * curvature_bandwidth(few.design.index(theta), quantile, few.n)


def _sharpened(problem: Problem, theta: Floats, quantile: float, h: float) -> tuple[Solution, float] | None:
    """Minimiser of a penalised check risk and the bandwidth it has, so narrow that it plays no part.

    The smoothed minimiser is off by about ``(h / n)^(1/2)``, ``(h / scale)^(1/2)`` standard errors.
    """
    risk, best = problem.risk, None
    scale = _local_scale(risk, theta, quantile)
    end = scale * (1e-6 if risk.held else min(risk.n**-0.8, 1e-3))
    h = max(h, end)
    while True:
        own = risk.with_(loss=SmoothedCheckLoss(quantile, h, 2))
        found = minimise(own, theta, problem.bound)
        if not found.converged:
            return best
        theta, best = found.theta, (found, h)
        if h <= end:
            return best
        h = max(h / 4.0, end)


def vertex(risk: Risk, theta: Floats, quantile: float, bound: Floats) -> Floats | None:
    """Exact minimiser of the unsmoothed check risk near theta, or None if none was found.

    Where more than 50,000 different records are tied, a part of them stands for all: the result is the best of what
    such programmes give, if its risk is smaller than that of theta.

    Examples
    --------
    >>> vertex.__name__
    'vertex'
    """
    count = min(risk.n, 20 * risk.size + 100)  # the smoothed minimum is closer than that to the exact one
    closer = False
    best, unsmoothed = None, risk.with_(loss=CheckLoss(quantile))
    while True:
        cut = _cut(risk, theta, count)
        near = reduce(_Near.plus, risk.each(partial(_near_and_far, theta, cut, quantile)))
        found = near.minimiser(quantile, bound, theta)
        if near.thinned:
            better = found is not None and unsmoothed.value(found) < unsmoothed.value(theta if best is None else best)
            if best is not None and not better:
                return best
            best = found if better else None
        elif found is not None and not any(risk.each(partial(_crosses, theta, cut, found))):
            if closer or not 0.0 < _cut(risk, found, count) < 1e-3 * cut:
                return found
            theta, closer = found, True  # so much closer that its residuals tell more digits
            continue
        if count == risk.n:
            return best
        count = min(risk.n, 4 * count)


def _cut(risk: Risk, theta: Floats, count: int) -> float:
    """Largest absolute residual of about `count` near records: told by a sample where records are not in memory."""
    few = risk if risk.held else risk.thinned(100_000)
    sizes = np.abs(few.design.index(theta))
    if few.n == risk.n:
        return float(np.partition(sizes, count - 1)[count - 1])
    place = min(few.n, max(1000, round(count * few.n / risk.n)))
    return float(np.partition(sizes, place - 1)[place - 1]) * (count / risk.n) / (place / few.n)


class _Near:
    """Near records, a column (z, o) and a weight each, and the linear term of the far ones."""

    def __init__(self, size: int) -> None:
        self.columns, self.weights = np.zeros((size + 1, 0)), np.zeros(0)
        self.far, self.thinned = np.zeros(size), False

    def plus(self, other: _Near) -> _Near:
        """Add other records; beyond 50,000, equal ones become one, and if that is not enough, some stand for all."""
        self.columns = np.concatenate([self.columns, other.columns], axis=1)
        self.weights = np.concatenate([self.weights, other.weights])
        self.far += other.far
        self.thinned |= other.thinned
        if self.weights.size > _MOST:
            self.columns, place = np.unique(self.columns, axis=1, return_inverse=True)
            self.weights = np.asarray(np.bincount(place.ravel(), self.weights), float)
        if self.weights.size > _MOST:
            whole, step = self.weights.sum(), -(-self.weights.size // _MOST)
            # equal records were sorted: every step-th of them is a fair sample
            self.columns, self.weights, self.thinned = self.columns[:, ::step], self.weights[::step], True
            self.weights = self.weights * (whole / self.weights.sum())
        return self

    def minimiser(self, quantile: float, bound: Floats, theta: Floats) -> Floats | None:
        """Solve the dual programme (see the head of the module); None where the far records outweigh the near ones.

        The unknown is the way from theta, in units of the near residuals: outliers may make these tiny beside the
        spread of the response, and a programme is solved to an absolute tolerance.
        """
        from scipy.optimize import linprog

        matrix, residuals = self.columns[:-1], self.columns[-1] + theta @ self.columns[:-1]
        sizes = np.abs(residuals)
        unit = float(np.median(sizes)) or float(sizes.max(initial=0.0)) or 1.0
        limited = np.isfinite(bound)
        slack = np.eye(bound.size)[:, limited]
        up, down = (bound - theta)[limited] / unit, (bound + theta)[limited] / unit
        cost = np.concatenate([-residuals / unit, up, down])
        limits: Any = np.zeros((cost.size, 2))
        limits[:, 1] = np.inf
        limits[: residuals.size] = self.weights[:, None] * [quantile - 1.0, quantile]
        equality = np.concatenate([matrix, slack, -slack], axis=1)
        tight: Any = {"dual_feasibility_tolerance": 1e-10}
        answer = linprog(cost, A_eq=equality, b_eq=-self.far, bounds=limits, method="highs-ds", options=tight)
        return theta + unit * np.asarray(answer.eqlin.marginals, float) if answer.status == 0 else None


def _near_and_far(theta: Floats, cut: float, quantile: float, chunks: Iterator[Chunk], first: int) -> _Near:
    """Take a group of records apart; where they are counted from `first` plays no part."""
    out = _Near(theta.size)
    for chunk in chunks:
        design, own = chunk.designs[0], _Near(theta.size)
        residual = design.index(theta)
        close = np.abs(residual) <= cut
        offset = np.zeros(residual.size) if design.offset is None else design.offset
        own.columns = np.concatenate([design.matrix[:, close], offset[None, close]])
        own.weights = np.ones(own.columns.shape[1])
        own.far = design.matrix @ np.where(close, 0.0, quantile - (residual < 0))
        out = out.plus(own)
    return out


def _crosses(theta: Floats, cut: float, found: Floats, chunks: Iterator[Chunk], first: int) -> bool:
    """Whether a far record has changed its side; where they are counted from `first` plays no part."""
    wrong = False
    for chunk in chunks:
        design = chunk.designs[0]
        residual = design.index(theta)
        moved = np.sign(residual) * design.index(found)
        wrong |= bool(((np.abs(residual) > cut) & (moved < -ON_THE_FIT * min(1.0, cut))).any())
    return wrong
