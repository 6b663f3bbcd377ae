r"""What one pass over records computes of a corrected risk: sums over blocks, in the order of the records.

For records with design row x_i, index ``u_i = x_i'theta + o_i`` and noise parts with
``q_p = (theta'V_p theta + c_p)/2`` (V_p diagonal), terms ``f~(u, q) = sum w G(D^2; q) f``, ``g_p = V_p theta``:

    score_i   = (f~' - c y_i) x_i + sum_p f~_{q_p} g_p
    Hessian_i = f~'' x x' + sum_p f~'_{q_p} (x g_p' + g_p x') + sum_pr f~_{q_p q_r} g_p g_r'
                + sum_p f~_{q_p} V_p

`block_sums` is the one function that passes over records, in memory, from disk or in a worker of Dask. Its result is a
few numbers, and the sums of consecutive records add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.losses.base import IndexLoss, Kernel, Request
from privfit.estimators.strata import Chunk, IndexNoise

__all__ = ["BLOCK", "Plan", "Sums", "block_sums", "make_plan", "score_block", "slices"]

Floats = NDArray[np.float64]
BLOCK = 8192
"""Records in a block, which fits in cache."""


@dataclass
class Plan:
    """What one evaluation needs at a given theta: per term a compiled kernel, and the moving parts.

    Examples
    --------
    >>> Plan.__name__
    'Plan'
    """

    noise: IndexNoise
    kernels: list[Kernel]
    constants: list[float]
    g: Floats


class Sums:
    """Sums over records that value, gradient, Hessian and the covariance of the scores are made of.

    Examples
    --------
    >>> Sums(2, 1).plus(Sums(2, 1)).value
    0.0
    """

    def __init__(self, size: int, count: int) -> None:
        self.value, self.first = 0.0, np.zeros(size)
        self.second, self.cross = np.zeros((size, size)), np.zeros((size, count))
        self.by_q, self.by_qq = np.zeros(count), np.zeros((count, count))
        self.total, self.outer = np.zeros(size), np.zeros((size, size))

    def plus(self, other: Sums) -> Sums:
        """Add the sums of the records that follow."""
        for name, own in vars(other).items():
            setattr(self, name, getattr(self, name) + own)
        return self

    def add_slope(self, matrix: Floats, slope: Floats, by_q: list[Floats]) -> None:
        """Add a block to the gradient."""
        self.first += matrix @ slope
        self.by_q += [float(derivative.sum()) for derivative in by_q]

    def add_bend(self, matrix: Floats, answers: Iterator[Floats]) -> None:
        """Add a block to the Hessian."""
        count = self.by_q.size
        self.second += (matrix * next(answers)) @ matrix.T
        for p in range(count):
            self.cross[:, p] += matrix @ next(answers)
        for p in range(count):
            for r in range(p + 1):
                self.by_qq[p, r] += float(next(answers).sum())

    def add_scores(self, scores: Floats) -> None:
        """Add a block to the covariance of the scores."""
        self.total += scores.sum(axis=1)
        self.outer += scores @ scores.T

    def gradient(self, noise: IndexNoise, theta: Floats) -> Floats:
        """Sum of the scores."""
        return np.asarray(self.first + self.by_q @ (noise.variances[noise.moving] * theta), float)

    def hessian(self, noise: IndexNoise, theta: Floats) -> Floats:
        """Sum of the Hessians."""
        g = noise.variances[noise.moving] * theta
        by_qq = np.tril(self.by_qq) + np.tril(self.by_qq, -1).T
        mixed = self.cross @ g
        out = self.second + mixed + mixed.T + g.T @ by_qq @ g
        return np.asarray(out + np.diag(self.by_q @ noise.variances[noise.moving]), float)


def make_plan(loss: IndexLoss, noise: IndexNoise, theta: Floats, order: int, value: bool) -> Plan:
    """Compile what an evaluation up to a derivative of the given order needs.

    Examples
    --------
    >>> make_plan.__name__
    'make_plan'
    """
    q, moving = noise.half_variance(theta), noise.moving
    kernels, constants = [], []
    zero = [0] * q.size
    for term in noise.terms:
        requests: list[Request] = []
        identity = term.symbol(q, zero)

        def raised(*which: int, term=term):  # type: ignore[no-untyped-def]
            orders = zero.copy()
            for p in which:
                orders[p] += 1
            return term.symbol(q, orders)

        if value:
            requests.append((identity, 0))
        if order >= 1:
            requests.append((identity, 1))
            requests += [(raised(p), 0) for p in moving]
        if order >= 2:
            requests.append((identity, 2))
            requests += [(raised(p), 1) for p in moving]
            requests += [(raised(p, r), 0) for i, p in enumerate(moving) for r in moving[: i + 1]]
        kernels.append(loss.compile(requests))
        constants.append(identity.series(0)[0])
    return Plan(noise, kernels, constants, noise.variances[moving] * theta)


def block_sums(
    loss: IndexLoss,
    noise: IndexNoise,
    theta: Floats,
    order: int,
    value: bool,
    outer: bool,
    chunks: Iterable[Chunk],
    first: int = 0,
) -> Sums:
    """Pass over records once.

    Parameters
    ----------
    loss : IndexLoss
    noise : IndexNoise
    theta : ndarray, shape (p,)
    order : int
        Up to which derivative.
    value : bool
        The loss itself, too.
    outer : bool
        The products of the scores, too.
    chunks : iterable of Chunk
    first : int
        Number of the first record; it plays no part.

    Returns
    -------
    Sums

    Examples
    --------
    >>> block_sums.__name__
    'block_sums'
    """
    plan = make_plan(loss, noise, theta, max(order, int(outer)), value)
    sums = Sums(theta.size, len(plan.g))
    for chunk in chunks:
        for chosen in slices(chunk.n):
            _add(sums, plan, chunk.rows(chosen), theta, order, value, outer)
    return sums


def _add(sums: Sums, plan: Plan, block: Chunk, theta: Floats, order: int, value: bool, outer: bool) -> None:
    scores = np.zeros((theta.size, block.n)) if outer else None
    for term, kernel, constant in zip(plan.noise.terms, plan.kernels, plan.constants, strict=True):
        design = block.designs[term.design]
        u, matrix, labels = design.index(theta), design.matrix, block.labels
        answers = iter(kernel(u))
        if value:
            sums.value += float(next(answers).sum())
            if labels is not None:
                sums.value -= constant * float(labels @ u)
        if order >= 1 or outer:
            slope = next(answers)
            slope = slope if labels is None else slope - constant * labels
            by_q = [next(answers) for _ in plan.g]
            if order >= 1:
                sums.add_slope(matrix, slope, by_q)
            if scores is not None:
                _add_term(scores, plan, matrix, slope, by_q)
        if order >= 2:
            sums.add_bend(matrix, answers)
    if scores is not None:
        sums.add_scores(scores)


def _add_term(scores: Floats, plan: Plan, matrix: Floats, slope: Floats, by_q: list[Floats]) -> None:
    scores += matrix * slope
    for g, derivative in zip(plan.g, by_q, strict=True):
        for j in np.flatnonzero(g):
            scores[j] += g[j] * derivative


def score_block(plan: Plan, block: Chunk, theta: Floats) -> Floats:
    """Corrected scores of a block, terms summed within a record, shape (p, m).

    Examples
    --------
    >>> score_block.__name__
    'score_block'
    """
    scores = np.zeros((theta.size, block.n))
    for term, kernel, constant in zip(plan.noise.terms, plan.kernels, plan.constants, strict=True):
        design = block.designs[term.design]
        slope, *by_q = kernel(design.index(theta))
        if block.labels is not None:
            slope = slope - constant * block.labels
        _add_term(scores, plan, design.matrix, slope, by_q)
    return scores


def slices(n: int) -> Iterator[slice]:
    """Yield the blocks of n records.

    Examples
    --------
    >>> [chosen.stop for chosen in slices(10_000)]
    [8192, 10000]
    """
    for start in range(0, n, BLOCK):
        yield slice(start, min(start + BLOCK, n))
