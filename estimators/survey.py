r"""The first pass over records in standard coordinates: their second moments, and a sample of them.

The moments of ``z = (x, o, y)`` (design, offset, label) give every quadratic risk exactly: with ``f(u) = a + b u +
c u^2 / 2`` and ``u = x'theta + o``, the sums of f, of f' x and of f'' xx' are linear in ``sum zz'`` and ``sum z``. So
least squares, pilots and the check for collinear columns need no further pass. The sample, every step-th record, is
where searches begin.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.block_sums import Sums, make_plan, slices
from privfit.estimators.losses.base import IndexLoss
from privfit.estimators.strata import Chunk, IndexNoise, joined

__all__ = ["Moments", "Survey", "index_range", "merged", "quadratic_sums", "sample", "survey"]

Floats = NDArray[np.float64]


@dataclass
class Moments:
    """Sums over records of z and zz', ``z = (x, o, y)``, and the range of the offset.

    Examples
    --------
    >>> from privfit.estimators.strata import Design
    >>> chunk = Chunk((Design(np.array([[1.0, 2.0]]), np.array([3.0, 5.0])),), None)
    >>> Moments.of([chunk])[0].product[:2, :2]
    array([[ 5., 13.],
           [13., 34.]])
    """

    n: int
    total: Floats
    product: Floats
    low: float = np.inf
    high: float = -np.inf
    offset: bool = False

    @classmethod
    def of(cls, chunks: Iterable[Chunk]) -> list[Moments]:
        """Moments of the records of each design."""
        out: list[Moments] = []
        for chunk in chunks:
            if not out:
                size = chunk.designs[0].matrix.shape[0] + 2
                out = [cls(0, np.zeros(size), np.zeros((size, size))) for _ in chunk.designs]
            for own, place in zip(out, range(len(out)), strict=True):
                for chosen in slices(chunk.n):
                    own.add(chunk.rows(chosen), place)
        return out

    def add(self, block: Chunk, place: int) -> None:
        """Add a block of records, as it is in one of the designs."""
        x, o, y = block.designs[place].matrix, block.designs[place].offset, block.labels
        size = x.shape[0]
        self.n += block.n
        self.product[:size, :size] += x @ x.T
        self.total[:size] += x.sum(axis=1)
        self.offset = o is not None
        for j, own in ((size, o), (size + 1, y)):
            if own is not None:
                self.total[j] += own.sum()
                self.product[j, :size] += x @ own
                self.product[j, j] += own @ own
                self.product[:size, j] = self.product[j, :size]
        if o is not None:
            self.low, self.high = min(self.low, float(o.min())), max(self.high, float(o.max()))
        if o is not None and y is not None:
            self.product[size, size + 1] += o @ y
            self.product[size + 1, size] = self.product[size, size + 1]

    def plus(self, other: Moments) -> Moments:
        """Return the moments of these records and those."""
        return Moments(
            self.n + other.n,
            self.total + other.total,
            self.product + other.product,
            min(self.low, other.low),
            max(self.high, other.high),
            self.offset or other.offset,
        )


@dataclass
class Survey:
    """Moments of each design, and every step-th record.

    Examples
    --------
    >>> Survey([], []).chunks
    []
    """

    moments: list[Moments]
    chunks: list[Chunk] = field(default_factory=list)


def survey(passed: int, step: int, chunks: Iterable[Chunk], first: int) -> Survey:
    """Take moments and sample in one pass.

    Parameters
    ----------
    passed : int
        Records of earlier strata.
    step : int
        Every step-th record is kept, counted through all strata.
    chunks : iterable of Chunk
    first : int
        Number of the first record within its stratum.

    Returns
    -------
    Survey

    Examples
    --------
    >>> from privfit.estimators.strata import Design
    >>> chunk = Chunk((Design(np.arange(6.0)[None], None),), None)
    >>> survey(0, 4, [chunk], 0).chunks[0].designs[0].matrix
    array([[0., 4.]])
    """
    kept: list[Chunk] = []

    def passing() -> Iterable[Chunk]:
        yield from sample(passed + first, step, chunks, kept)

    moments = Moments.of(passing())
    return Survey(moments, [joined(kept)] if kept else [])


def sample(passed: int, step: int, chunks: Iterable[Chunk], kept: list[Chunk]) -> Iterable[Chunk]:
    """Let records pass and keep every step-th of them in `kept`.

    Examples
    --------
    >>> sample.__name__
    'sample'
    """
    for chunk in chunks:
        begin = -passed % step
        passed += chunk.n
        if begin < chunk.n:
            kept.append(chunk.rows(slice(begin, None, step)).copied())
        yield chunk


def merged(found: Sequence[Survey]) -> Survey:
    """Join the surveys of consecutive records.

    Examples
    --------
    >>> merged([Survey([]), Survey([])]).moments
    []
    """
    moments: list[Moments] = []
    for own in found:
        if own.moments:
            moments = [a.plus(b) for a, b in zip(moments, own.moments, strict=True)] if moments else own.moments
    kept = [chunk for own in found for chunk in own.chunks]
    return Survey(moments, [joined(kept)] if kept else [])


def quadratic_sums(
    loss: IndexLoss, noise: IndexNoise, theta: Floats, order: int, value: bool, moments: Sequence[Moments]
) -> Sums:
    """Sums of a loss that is a polynomial of degree 2 at most, from the moments.

    The compiled kernels are called at u = -1, 0, 1, which tells their coefficients.

    Examples
    --------
    >>> quadratic_sums.__name__
    'quadratic_sums'
    """
    plan = make_plan(loss, noise, theta, order, value)
    size = theta.size
    sums = Sums(size, len(plan.g))
    nodes = np.array([-1.0, 0.0, 1.0])
    for term, kernel, constant in zip(noise.terms, plan.kernels, plan.constants, strict=True):
        m = moments[term.design]
        gram, offset = m.product[:size, :size], m.product[:size, size]
        by_x = gram @ theta + offset  # sum of x u
        u1 = float(m.total[:size] @ theta + m.total[size])
        u2 = float(theta @ by_x + offset @ theta + m.product[size, size])
        coefficients = iter([(a[1], (a[2] - a[0]) / 2.0, (a[2] + a[0]) / 2.0 - a[1]) for a in kernel(nodes)])

        def summed(c: tuple[float, float, float], n: int = m.n, u1: float = u1, u2: float = u2) -> float:
            return float(c[0] * n + c[1] * u1 + c[2] * u2)

        if value:
            sums.value += summed(next(coefficients))
            sums.value -= float(constant * (m.product[size + 1, :size] @ theta + m.product[size + 1, size]))
        if order >= 1:
            c = next(coefficients)
            sums.first += c[0] * m.total[:size] + c[1] * by_x - constant * m.product[size + 1, :size]
            sums.by_q += [summed(next(coefficients)) for _ in plan.g]
        if order >= 2:
            sums.second += next(coefficients)[0] * gram
            for p in range(len(plan.g)):
                c = next(coefficients)
                sums.cross[:, p] += c[0] * m.total[:size] + c[1] * by_x
            for p in range(len(plan.g)):
                for r in range(p + 1):
                    sums.by_qq[p, r] += summed(next(coefficients))
    return sums


def index_range(theta: Floats, chunks: Iterable[Chunk], first: int) -> tuple[float, float]:
    """Smallest and largest index; where records are counted from plays no part.

    Examples
    --------
    >>> index_range(np.ones(1), iter([]), 0)
    (inf, -inf)
    """
    ends = [(u.min(), u.max()) for u in (chunk.designs[0].index(theta) for chunk in chunks) if u.size]
    return float(min((low for low, _ in ends), default=np.inf)), float(max((high for _, high in ends), default=-np.inf))
