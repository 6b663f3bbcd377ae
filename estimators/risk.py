r"""Empirical corrected risk of an index loss, with analytic gradient and Hessian.

For records with design row x_i, index ``u_i = x_i'theta + o_i`` and noise parts with
``q_p = (theta'V_p theta + c_p)/2`` (V_p diagonal), terms ``f~(u, q) = sum w G(D^2; q) f``,
``g_p = V_p theta``:

    score_i   = (f~' - c y_i) x_i + sum_p f~_{q_p} g_p
    Hessian_i = f~'' x x' + sum_p f~'_{q_p} (x g_p' + g_p x') + sum_pr f~_{q_p q_r} g_p g_r'
                + sum_p f~_{q_p} V_p

Designs are stored feature-major, shape (p, n), and passed over in blocks that fit in cache, stratum by stratum
(`strata`): each stratum has noise of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.corrections import Term
from privfit.estimators.losses.base import IndexLoss, Kernel, Request
from privfit.estimators.strata import Chunk, Design, Held, IndexNoise, Stratum, thin
from privfit.estimators.symbols import Symbol

__all__ = ["Design", "Risk"]

Floats = NDArray[np.float64]
_BLOCK = 8192


@dataclass
class _Plan:
    """What one evaluation needs at a given theta: per term a compiled kernel, and the moving parts."""

    noise: IndexNoise
    kernels: list[Kernel]
    constants: list[float]
    moving: list[int]
    g: Floats


class _Sums:
    """Sums over the records of a stratum that value, gradient and Hessian are made of."""

    def __init__(self, size: int, count: int) -> None:
        self.value, self.first = 0.0, np.zeros(size)
        self.second, self.cross = np.zeros((size, size)), np.zeros((size, count))
        self.by_q, self.by_qq = np.zeros(count), np.zeros((count, count))

    def add_slope(self, matrix: Floats, slope: Floats, answers: Iterator[Floats]) -> None:
        self.first += matrix @ slope
        self.by_q += [float(next(answers).sum()) for _ in range(self.by_q.size)]

    def add_bend(self, matrix: Floats, answers: Iterator[Floats]) -> None:
        count = self.by_q.size
        self.second += (matrix * next(answers)) @ matrix.T
        for p in range(count):
            self.cross[:, p] += matrix @ next(answers)
        for p in range(count):
            for r in range(p + 1):
                self.by_qq[p, r] += float(next(answers).sum())

    def gradient(self, plan: _Plan) -> Floats:
        return np.asarray(self.first + self.by_q @ plan.g, float)

    def hessian(self, plan: _Plan) -> Floats:
        by_qq = np.tril(self.by_qq) + np.tril(self.by_qq, -1).T
        mixed = self.cross @ plan.g
        out = self.second + mixed + mixed.T + plan.g.T @ by_qq @ plan.g
        return np.asarray(out + np.diag(self.by_q @ plan.noise.variances[plan.moving]), float)


class Risk:
    """Mean corrected loss ``mean_i [sum_terms G f(u_i) - c y_i u_i] + (1/2) sum_j penalty_j theta_j^2``.

    Parameters
    ----------
    loss : IndexLoss
    strata : sequence of Stratum
        Disjoint records, each group with its noise.
    size : int
        Number p of coefficients.
    penalty : ndarray, shape (p,), optional

    Examples
    --------
    >>> from privfit.estimators.losses import SquaredLoss
    >>> design = Design(-np.array([[1.0, 2.0]]), np.array([1.0, 2.0]))
    >>> risk = Risk.of(SquaredLoss(), [Term(1.0, 0, ())], [design], np.zeros((0, 1)), np.zeros(0))
    >>> risk.value(np.array([1.0]))
    0.0
    """

    def __init__(self, loss: IndexLoss, strata: Sequence[Stratum], size: int, penalty: Floats | None = None) -> None:
        self.loss, self.strata, self.size = loss, list(strata), size
        self.penalty = np.zeros(size) if penalty is None else penalty
        self.n = sum(stratum.records.n for stratum in self.strata)

    @classmethod
    def of(
        cls,
        loss: IndexLoss,
        terms: Sequence[Term],
        designs: Sequence[Design],
        variances: Floats,
        constants: Floats,
        labels: Floats | None = None,
        penalty: Floats | None = None,
    ) -> Risk:
        """Risk of one stratum in memory.

        Parameters
        ----------
        loss : IndexLoss
        terms, variances, constants
            See `strata.IndexNoise`.
        designs : sequence of Design
            Release, and second randomisation if a term uses it.
        labels : ndarray, shape (n,), optional
            Linear part ``-y u`` (unbiased labels of a logistic loss).
        penalty : ndarray, shape (p,), optional
        """
        noise = IndexNoise(tuple(terms), variances, constants)
        stratum = Stratum(noise, Held(Chunk(tuple(designs), labels)))
        return cls(loss, [stratum], designs[0].matrix.shape[0], penalty)

    def with_(self, loss: IndexLoss | None = None, penalty: Floats | None = None) -> Risk:
        """Return the risk with another loss or penalty."""
        return Risk(loss or self.loss, self.strata, self.size, self.penalty if penalty is None else penalty)

    def naive(self) -> Risk:
        """Return the risk that ignores the noise."""
        return Risk(self.loss, [stratum.naive() for stratum in self.strata], self.size, self.penalty)

    def thinned(self, n: int) -> Risk:
        """Risk of about n records, taken at equal distances (tables are often sorted), in memory."""
        step = max(1, self.n // n)
        if step == 1 and self.held:
            return self
        return Risk(self.loss, thin(self.strata, step), self.size, self.penalty)

    @property
    def held(self) -> bool:
        """Whether all records are in memory."""
        return all(isinstance(stratum.records, Held) for stratum in self.strata)

    @property
    def corrects(self) -> bool:
        """Whether a record's loss is corrected for noise."""
        return any(stratum.noise.corrects for stratum in self.strata)

    def admits(self, theta: Floats) -> bool:
        """Whether the corrected loss has a finite variance at theta (`IndexLoss.max_variance`)."""
        return all(stratum.noise.admits(theta, self.loss.max_variance) for stratum in self.strata)

    @property
    def noise_variances(self) -> Floats:
        """Noise variance of each design coordinate, all parts, mean over the records: shape (p,)."""
        total = np.zeros(self.size)
        for stratum in self.strata:
            total += stratum.records.n / self.n * stratum.noise.variances.sum(axis=0)
        return total

    @property
    def design(self) -> Design:
        """The released design of all records, in memory."""
        found = [chunk.designs[0] for chunk in self._chunks()]
        if len(found) == 1:
            return found[0]
        offset = None if found[0].offset is None else np.concatenate([np.asarray(d.offset) for d in found])
        return Design(np.concatenate([d.matrix for d in found], axis=1), offset)

    @property
    def labelled(self) -> bool:
        """Whether the response is a label, in a linear part or in the sign of the rows, and not in the offset."""
        return next(self._chunks()).designs[0].offset is None

    def gram(self) -> Floats:
        """Mean outer product of the released design, shape (p, p); nothing is corrected."""
        total = np.zeros((self.size, self.size))
        for chunk in self._chunks():
            matrix = chunk.designs[0].matrix
            total += matrix @ matrix.T
        return total / self.n

    def index_range(self, theta: Floats) -> tuple[float, float]:
        """Smallest and largest index of the released records."""
        ends = [(u.min(), u.max()) for u in (chunk.designs[0].index(theta) for chunk in self._chunks()) if u.size]
        return float(min(low for low, _ in ends)), float(max(high for _, high in ends))

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
        total, gradient, hessian = 0.0, np.zeros(self.size), np.zeros((self.size, self.size))
        for stratum in self.strata:
            plan = self._plan(stratum.noise, theta, order, value)
            sums = _Sums(self.size, len(plan.moving))
            for chunk in stratum.records.chunks():
                _add(sums, plan, chunk, theta, order, value)
            total += sums.value
            gradient += sums.gradient(plan)
            hessian += sums.hessian(plan)
        gradient = gradient / self.n + self.penalty * theta
        hessian = hessian / self.n + np.diag(self.penalty)
        return total / self.n + 0.5 * float(self.penalty @ theta**2), gradient, (hessian + hessian.T) / 2

    def score_blocks(self, theta: Floats) -> Iterator[Floats]:
        """Yield corrected scores (terms summed within a record, no penalty) in blocks of shape (p, m)."""
        for stratum in self.strata:
            plan = self._plan(stratum.noise, theta, 1, False)
            for chunk in stratum.records.chunks():
                for chosen in _slices(chunk.n):
                    yield self._scores(plan, chunk.rows(chosen), theta)

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
        """Operator of each term at theta, of all strata."""
        return [symbol for stratum in self.strata for symbol in stratum.noise.symbols(theta)]

    def _chunks(self) -> Iterator[Chunk]:
        for stratum in self.strata:
            yield from stratum.records.chunks()

    def _scores(self, plan: _Plan, block: Chunk, theta: Floats) -> Floats:
        out = np.zeros((self.size, block.n))
        for term, kernel, constant in zip(plan.noise.terms, plan.kernels, plan.constants, strict=True):
            design = block.designs[term.design]
            slope, *by_q = kernel(design.index(theta))
            if block.labels is not None:
                slope = slope - constant * block.labels
            out += design.matrix * slope
            for g, derivative in zip(plan.g, by_q, strict=True):
                for j in np.flatnonzero(g):
                    out[j] += g[j] * derivative
        return out

    def _plan(self, noise: IndexNoise, theta: Floats, order: int, value: bool) -> _Plan:
        q, moving = noise.half_variance(theta), noise.moving
        kernels, constants = [], []
        zero = [0] * q.size
        for term in noise.terms:
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
        return _Plan(noise, kernels, constants, moving, noise.variances[moving] * theta)


def _slices(n: int) -> Iterator[slice]:
    for start in range(0, n, _BLOCK):
        yield slice(start, min(start + _BLOCK, n))


def _add(sums: _Sums, plan: _Plan, chunk: Chunk, theta: Floats, order: int, value: bool) -> None:
    """Add the records of a chunk to the sums, term by term and block by block."""
    for place, term in enumerate(plan.noise.terms):
        for chosen in _slices(chunk.n):
            block = chunk.designs[term.design].rows(chosen)
            labels = None if chunk.labels is None else chunk.labels[chosen]
            u, matrix, constant = block.index(theta), block.matrix, plan.constants[place]
            answers = iter(plan.kernels[place](u))
            if value:
                sums.value += float(next(answers).sum())
                if labels is not None:
                    sums.value -= constant * float(labels @ u)
            if order >= 1:
                slope = next(answers)
                sums.add_slope(matrix, slope if labels is None else slope - constant * labels, answers)
            if order >= 2:
                sums.add_bend(matrix, answers)
