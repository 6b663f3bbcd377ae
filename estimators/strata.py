r"""The records of a fit, in strata: records that share one noise law, read in chunks.

A release held in memory is one stratum with one chunk. Records released under different laws are a stratum each;
a release on disk is a stratum whose chunks are read when they are needed, so that a fit never holds more than one.
Sums over records run chunk by chunk in the order of the records, whatever holds them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.index_noise import IndexNoise

__all__ = ["Chunk", "Design", "Held", "IndexNoise", "Read", "Records", "Spread", "Stratum", "joined", "signed"]

Floats = NDArray[np.float64]
T = TypeVar("T")
Task = Callable[[Iterator["Chunk"], int], T]
"""What a pass computes of consecutive records, given the number of the first one: it must be small."""


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

    def each(self, task: Task[T]) -> list[T]:
        """Pass over the records: the results of consecutive groups of them, in order."""


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

    def each(self, task: Task[T]) -> list[T]:
        """Return the result for all records."""
        return [task(self.chunks(), 0)]


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

    def each(self, task: Task[T]) -> list[T]:
        """Return the result for all records."""
        return [task(self.chunks(), 0)]


@dataclass(frozen=True)
class Spread:
    """Records that are elsewhere, in partitions: passes run where they are, and numbers come back.

    Parameters
    ----------
    n : int
    read : callable
        Fetches the chunks, one partition after the other, for what needs the records themselves.
    run : callable
        Runs a task on every partition and returns the results in their order.

    Examples
    --------
    >>> chunk = Chunk((Design(np.ones((1, 3)), None),), None)
    >>> halves = Spread(3, lambda: iter([chunk]), lambda task: [task(iter([chunk]), 0)])
    >>> halves.each(lambda chunks, first: sum(c.n for c in chunks))
    [3]
    """

    n: int
    read: Callable[[], Iterator[Chunk]]
    run: Callable[[Task], list]

    def chunks(self) -> Iterator[Chunk]:
        """Fetch and yield the chunks."""
        yield from self.read()

    def each(self, task: Task[T]) -> list[T]:
        """Return the result of every partition."""
        return self.run(task)


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
    if isinstance(records, Held):
        return Stratum(stratum.noise, Held(_margins(records.chunk)))
    if isinstance(records, Read):
        return Stratum(stratum.noise, Read(records.n, lambda: map(_margins, records.chunks())))

    def run(task: Task[T]) -> list[T]:
        return records.each(lambda chunks, first: task(map(_margins, chunks), first))

    return Stratum(stratum.noise, Spread(records.n, lambda: map(_margins, records.chunks()), run))


def _margins(chunk: Chunk) -> Chunk:
    labels = np.ones(chunk.n) if chunk.labels is None else chunk.labels
    return Chunk(tuple(Design(d.matrix * labels, d.offset) for d in chunk.designs), None)


def joined(chunks: Sequence[Chunk]) -> Chunk:
    """Return consecutive chunks as one.

    Examples
    --------
    >>> chunk = Chunk((Design(np.ones((1, 3)), None),), None)
    >>> joined([chunk, chunk]).n
    6
    """
    if len(chunks) == 1:
        return chunks[0]
    designs = []
    for place, first in enumerate(chunks[0].designs):
        own = [chunk.designs[place] for chunk in chunks]
        offset = None if first.offset is None else np.concatenate([np.asarray(d.offset) for d in own])
        designs.append(Design(np.concatenate([d.matrix for d in own], axis=1), offset))
    labels = None if chunks[0].labels is None else np.concatenate([np.asarray(c.labels) for c in chunks])
    return Chunk(tuple(designs), labels)
