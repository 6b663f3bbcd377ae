r"""Empirical corrected risk of an index loss, with analytic gradient and Hessian.

For records with design row x_i, index ``u_i = x_i'theta + o_i`` and noise parts with
``q_p = (theta'V_p theta + c_p)/2`` (V_p diagonal), terms ``f~(u, q) = sum w G(D^2; q) f``,
``g_p = V_p theta``:

    score_i   = (f~' - c y_i) x_i + sum_p f~_{q_p} g_p
    Hessian_i = f~'' x x' + sum_p f~'_{q_p} (x g_p' + g_p x') + sum_pr f~_{q_p q_r} g_p g_r'
                + sum_p f~_{q_p} V_p

Designs are stored feature-major, shape (p, n), and passed over in blocks that fit in cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.corrections import Term
from privfit.estimators.losses.base import IndexLoss, Kernel, Request
from privfit.estimators.symbols import Symbol

__all__ = ["Design", "Risk"]

Floats = NDArray[np.float64]
_BLOCK = 8192


@dataclass(frozen=True)
class Design:
    """Design matrix, feature-major, with an optional offset of the index.

    Examples
    --------
    >>> Design(np.ones((1, 3)), None).rows(slice(0, 2)).matrix.shape
    (1, 2)
    """

    matrix: Floats
    offset: Floats | None

    def rows(self, chosen: slice) -> Design:
        """Return the chosen records."""
        return Design(self.matrix[:, chosen], None if self.offset is None else self.offset[chosen])

    def index(self, theta: Floats) -> Floats:
        """Index of every record."""
        u = theta @ self.matrix
        if self.offset is not None:
            u += self.offset
        return np.asarray(u, float)


@dataclass
class _Plan:
    """What one evaluation needs at a given theta: per term a compiled kernel, and the moving parts."""

    kernels: list[Kernel]
    constants: list[float]
    moving: list[int]
    g: Floats


class Risk:
    """Mean corrected loss ``mean_i [sum_terms G f(u_i) - c y_i u_i] + (1/2) sum_j penalty_j theta_j^2``.

    Parameters
    ----------
    loss : IndexLoss
    terms : sequence of Term
    designs : sequence of Design
        Release, and second randomisation if a term uses it.
    variances : ndarray, shape (parts, p)
        Noise variance of each design coordinate, per part.
    constants : ndarray, shape (parts,)
        Noise variance of the offset, per part.
    labels : ndarray, shape (n,), optional
        Linear part ``-y u`` (unbiased labels of a logistic loss).
    penalty : ndarray, shape (p,), optional

    Examples
    --------
    >>> from privfit.estimators.losses import SquaredLoss
    >>> design = Design(-np.array([[1.0, 2.0]]), np.array([1.0, 2.0]))
    >>> risk = Risk(SquaredLoss(), [Term(1.0, 0, ())], [design], np.zeros((0, 1)), np.zeros(0))
    >>> risk.value(np.array([1.0]))
    0.0
    """

    def __init__(
        self,
        loss: IndexLoss,
        terms: Sequence[Term],
        designs: Sequence[Design],
        variances: Floats,
        constants: Floats,
        labels: Floats | None = None,
        penalty: Floats | None = None,
    ) -> None:
        self.loss, self.terms, self.designs = loss, list(terms), list(designs)
        self.variances, self.constants, self.labels = variances, constants, labels
        self.size, self.n = designs[0].matrix.shape
        self.penalty = np.zeros(self.size) if penalty is None else penalty

    def with_(self, **changes: object) -> Risk:
        """Return a copy with some arguments replaced."""
        values: dict = {
            "loss": self.loss,
            "terms": self.terms,
            "designs": self.designs,
            "variances": self.variances,
            "constants": self.constants,
            "labels": self.labels,
            "penalty": self.penalty,
        }
        return Risk(**(values | changes))

    def thinned(self, n: int) -> Risk:
        """Risk of about n records, taken at equal distances (tables are often sorted)."""
        chosen = slice(0, None, max(1, self.n // n))
        if chosen.step == 1:
            return self
        designs = [
            Design(np.ascontiguousarray(d.matrix[:, chosen]), None if d.offset is None else d.offset[chosen])
            for d in self.designs
        ]
        return self.with_(designs=designs, labels=None if self.labels is None else self.labels[chosen])

    def value(self, theta: Floats) -> float:
        """Risk at theta."""
        return self.derivatives(theta, 0)[0]

    def gradient(self, theta: Floats) -> Floats:
        """Gradient at theta, shape (p,)."""
        return self.derivatives(theta, 1)[1]

    def hessian(self, theta: Floats) -> Floats:
        """Hessian at theta, shape (p, p)."""
        return self.derivatives(theta, 2)[2]

    def derivatives(self, theta: Floats, order: int = 2, value: bool = True) -> tuple[float, Floats, Floats]:
        """Value, gradient and Hessian in one pass (up to `order`; `value=False` skips the loss itself)."""
        plan = self._plan(theta, order, value)
        count = len(plan.moving)
        total, first = 0.0, np.zeros(self.size)
        second, cross = np.zeros((self.size, self.size)), np.zeros((self.size, count))
        by_q, by_qq = np.zeros(count), np.zeros((count, count))
        for place, block, labels in self._blocks(plan):
            u, matrix, constant = block.index(theta), block.matrix, plan.constants[place]
            answers = iter(plan.kernels[place](u))
            if value:
                total += float(next(answers).sum())
                if labels is not None:
                    total -= constant * float(labels @ u)
            if order >= 1:
                slope = next(answers)
                if labels is not None:
                    slope = slope - constant * labels
                first += matrix @ slope
                by_q += [float(next(answers).sum()) for _ in range(count)]
            if order >= 2:
                second += (matrix * next(answers)) @ matrix.T
                for p in range(count):
                    cross[:, p] += matrix @ next(answers)
                for p in range(count):
                    for r in range(p + 1):
                        by_qq[p, r] += float(next(answers).sum())
        gradient = (first + by_q @ plan.g) / self.n + self.penalty * theta
        by_qq = np.tril(by_qq) + np.tril(by_qq, -1).T
        mixed = cross @ plan.g
        hessian = second + mixed + mixed.T + plan.g.T @ by_qq @ plan.g
        hessian += np.diag(by_q @ self.variances[plan.moving])
        hessian = hessian / self.n + np.diag(self.penalty)
        return total / self.n + 0.5 * float(self.penalty @ theta**2), gradient, (hessian + hessian.T) / 2

    def score_blocks(self, theta: Floats) -> Iterator[Floats]:
        """Yield corrected scores (terms summed within a record, no penalty) in blocks of shape (p, m)."""
        plan = self._plan(theta, 1, False)
        for chosen in self._slices():
            labels = None if self.labels is None else self.labels[chosen]
            block = np.zeros((self.size, chosen.stop - chosen.start))
            for term, kernel, constant in zip(self.terms, plan.kernels, plan.constants, strict=True):
                design = self.designs[term.design].rows(chosen)
                slope, *by_q = kernel(design.index(theta))
                if labels is not None:
                    slope = slope - constant * labels
                block += design.matrix * slope
                for g, derivative in zip(plan.g, by_q, strict=True):
                    for j in np.flatnonzero(g):
                        block[j] += g[j] * derivative
            yield block

    def scores(self, theta: Floats) -> Floats:
        """Corrected score of every record, shape (p, n)."""
        return np.concatenate(list(self.score_blocks(theta)), axis=1)

    def score_covariance(self, theta: Floats) -> Floats:
        """Covariance of the corrected score over records (the middle of the sandwich), shape (p, p)."""
        outer, total = np.zeros((self.size, self.size)), np.zeros(self.size)
        for block in self.score_blocks(theta):
            outer += block @ block.T
            total += block.sum(axis=1)
        mean = total / self.n
        return np.asarray(outer / self.n - np.outer(mean, mean), float)

    def symbols(self, theta: Floats) -> list[Symbol]:
        """Operator of each term at theta."""
        q = 0.5 * (self.variances @ theta**2 + self.constants)
        return [term.symbol(q, [0] * q.size) for term in self.terms]

    def _plan(self, theta: Floats, order: int, value: bool) -> _Plan:
        q = 0.5 * (self.variances @ theta**2 + self.constants)
        moving = [p for p in range(q.size) if self.variances[p].any()]
        kernels, constants = [], []
        zero = [0] * q.size
        for term in self.terms:
            requests: list[Request] = []
            identity = term.symbol(q, zero)

            def raised(*which: int, term: Term = term) -> Request:
                orders = zero.copy()
                for p in which:
                    orders[p] += 1
                return term.symbol(q, orders), 0

            if value:
                requests.append((identity, 0))
            if order >= 1:
                requests.append((identity, 1))
                requests += [raised(p) for p in moving]
            if order >= 2:
                requests.append((identity, 2))
                requests += [(raised(p)[0], 1) for p in moving]
                requests += [raised(p, r) for i, p in enumerate(moving) for r in moving[: i + 1]]
            kernels.append(self.loss.compile(requests))
            constants.append(identity.series(0)[0])
        return _Plan(kernels, constants, moving, self.variances[moving] * theta)

    def _slices(self) -> Iterator[slice]:
        for start in range(0, self.n, _BLOCK):
            yield slice(start, min(start + _BLOCK, self.n))

    def _blocks(self, plan: _Plan) -> Iterator[tuple[int, Design, Floats | None]]:
        for place, term in enumerate(self.terms):
            for chosen in self._slices():
                block = self.designs[term.design].rows(chosen)
                yield place, block, None if self.labels is None else self.labels[chosen]
