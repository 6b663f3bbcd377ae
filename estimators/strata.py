r"""The records of a fit, in strata: records that share one noise law, read in chunks.

A release held in memory is one stratum with one chunk. Records released under different laws are a stratum each;
a release on disk is a stratum whose chunks are read when they are needed, so that a fit never holds more than one.
Sums over records run chunk by chunk in the order of the records, whatever holds them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.corrections import Term
from privfit.estimators.symbols import Identity, Symbol

__all__ = ["Chunk", "Design", "Held", "IndexNoise", "Read", "Records", "Stratum", "signed", "thin"]

Floats = NDArray[np.float64]


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


@dataclass(frozen=True)
class Chunk:
    """Some records: their designs (release, then second randomisations) and, for a label model, labels.

    Examples
    --------
    >>> Chunk((Design(np.ones((1, 3)), None),), None).n
    3
    """

    designs: tuple[Design, ...]
    labels: Floats | None

    @property
    def n(self) -> int:
        """Number of records."""
        return int(self.designs[0].matrix.shape[1])

    def rows(self, chosen: slice) -> Chunk:
        """Return the chosen records."""
        designs = tuple(design.rows(chosen) for design in self.designs)
        return Chunk(designs, None if self.labels is None else self.labels[chosen])

    def copied(self) -> Chunk:
        """Return the same records in memory of their own."""
        designs = tuple(
            Design(np.ascontiguousarray(d.matrix), None if d.offset is None else d.offset.copy()) for d in self.designs
        )
        return Chunk(designs, None if self.labels is None else self.labels.copy())


class Records(Protocol):
    """Where the records of a stratum come from.

    Examples
    --------
    >>> Held(Chunk((Design(np.ones((1, 3)), None),), None)).n
    3
    """

    @property
    def n(self) -> int:
        """Number of records."""

    def chunks(self) -> Iterator[Chunk]:
        """Yield all records, in order; may be called again."""


@dataclass(frozen=True)
class Held:
    """Records in memory.

    Examples
    --------
    >>> sum(chunk.n for chunk in Held(Chunk((Design(np.ones((1, 3)), None),), None)).chunks())
    3
    """

    chunk: Chunk

    @property
    def n(self) -> int:
        """Number of records."""
        return self.chunk.n

    def chunks(self) -> Iterator[Chunk]:
        """Yield the one chunk."""
        yield self.chunk


@dataclass(frozen=True)
class Read:
    """Records that are read anew, chunk by chunk, whenever they are needed.

    Examples
    --------
    >>> Read(3, lambda: iter([Chunk((Design(np.ones((1, 3)), None),), None)])).n
    3
    """

    n: int
    read: Callable[[], Iterator[Chunk]]

    def chunks(self) -> Iterator[Chunk]:
        """Read and yield the chunks."""
        yield from self.read()


@dataclass(frozen=True, eq=False)
class IndexNoise:
    """What is known of the noise in the index ``u = theta'x + o``, and how it is corrected.

    Parameters
    ----------
    terms : tuple of Term
        The corrected loss, a sum over designs.
    variances : ndarray, shape (parts, p)
        Noise variance of each design coordinate, per part.
    constants : ndarray, shape (parts,)
        Noise variance of the offset, per part.
    reach : ndarray, shape (parts,), optional
        Per part, the bound of q z under which exponential moments exist; none if left out.

    Examples
    --------
    >>> IndexNoise((Term(1.0, 0, ()),), np.zeros((0, 1)), np.zeros(0)).corrects
    False
    """

    terms: tuple[Term, ...]
    variances: Floats
    constants: Floats
    reach: Floats | None = None

    @property
    def corrects(self) -> bool:
        """Whether the loss differs from the naive one."""
        return len(self.terms) > 1 or any(not isinstance(f, Identity) for term in self.terms for f in term.factors)

    @property
    def moving(self) -> list[int]:
        """Parts whose variance of the index depends on theta."""
        return [p for p in range(self.constants.size) if self.variances[p].any()]

    def half_variance(self, theta: Floats) -> Floats:
        """Half the noise variance of the index, per part."""
        return np.asarray(0.5 * (self.variances @ theta**2 + self.constants), float)

    def admits(self, theta: Floats, max_variance: float) -> bool:
        """Whether the noise in the index is below a loss's `max_variance` (times the shape), part by part."""
        if self.reach is None or not np.isfinite(max_variance):
            return True
        return bool((2.0 * self.half_variance(theta) < max_variance * self.reach).all())

    def symbols(self, theta: Floats) -> list[Symbol]:
        """Operator of each term at theta."""
        q = self.half_variance(theta)
        return [term.symbol(q, [0] * q.size) for term in self.terms]

    def naive(self) -> IndexNoise:
        """Return the noise left uncorrected."""
        identity = tuple(Identity() for _ in self.constants)
        return IndexNoise((Term(1.0, 0, identity),), self.variances, self.constants)


@dataclass(frozen=True)
class Stratum:
    """Records that share one noise law.

    Examples
    --------
    >>> Stratum.__name__
    'Stratum'
    """

    noise: IndexNoise
    records: Records

    def naive(self) -> Stratum:
        """Return the records with their noise left uncorrected."""
        return Stratum(self.noise.naive(), self.records)


def signed(stratum: Stratum) -> Stratum:
    """Return the records with each design row multiplied by its label, 1 or -1: the index becomes a margin.

    Every noise law here is symmetric, so that the noise of a signed row has the law of the row's.

    Examples
    --------
    >>> held = Held(Chunk((Design(np.ones((1, 2)), None),), np.array([1.0, -1.0])))
    >>> row = signed(Stratum(IndexNoise((), np.zeros((0, 1)), np.zeros(0)), held))
    >>> next(row.records.chunks()).designs[0].matrix
    array([[ 1., -1.]])
    """
    records = stratum.records

    def read() -> Iterator[Chunk]:
        for chunk in records.chunks():
            yield Chunk(tuple(Design(d.matrix * chunk.labels, d.offset) for d in chunk.designs), None)

    if isinstance(records, Held):
        return Stratum(stratum.noise, Held(next(read())))
    return Stratum(stratum.noise, Read(records.n, read))


def thin(strata: Sequence[Stratum], step: int) -> list[Stratum]:
    """Return every `step`-th record, counted through all strata, in memory.

    Parameters
    ----------
    strata : sequence of Stratum
    step : int

    Examples
    --------
    >>> held = Held(Chunk((Design(np.arange(6.0)[None], None),), None))
    >>> few = thin([Stratum(IndexNoise((), np.zeros((0, 1)), np.zeros(0)), held)], 4)
    >>> [chunk.designs[0].matrix.tolist() for chunk in few[0].records.chunks()]
    [[[0.0, 4.0]]]
    """
    out, passed = [], 0
    for stratum in strata:
        kept = []
        for chunk in stratum.records.chunks():
            first = -passed % step
            passed += chunk.n
            if first < chunk.n:
                kept.append(chunk.rows(slice(first, None, step)).copied())
        if kept:
            out.append(Stratum(stratum.noise, Held(_joined(kept))))
    return out


def _joined(chunks: Sequence[Chunk]) -> Chunk:
    if len(chunks) == 1:
        return chunks[0]
    designs = []
    for place, first in enumerate(chunks[0].designs):
        own = [chunk.designs[place] for chunk in chunks]
        offset = None if first.offset is None else np.concatenate([np.asarray(d.offset) for d in own])
        designs.append(Design(np.concatenate([d.matrix for d in own], axis=1), offset))
    labels = None if chunks[0].labels is None else np.concatenate([np.asarray(c.labels) for c in chunks])
    return Chunk(tuple(designs), labels)
