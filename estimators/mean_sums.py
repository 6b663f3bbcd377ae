r"""Sufficient statistics of means: number, mean and centred products, which add up (Chan, Golub & LeVeque 1983).

They are all that a mean with its covariance needs of the records, so that growing data are passed over once and need
not be kept: d (d + 3) / 2 numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.label_share import LabelColumn
from privfit.estimators.noise import NoiseModel

__all__ = ["Lawful", "MeanSums", "averaged"]

Floats = NDArray[np.float64]
_ROWS = 8192


@dataclass(frozen=True)
class Lawful:
    """Records under one law: their number, noise, and label columns.

    Examples
    --------
    >>> Lawful.__name__
    'Lawful'
    """

    n: int
    model: NoiseModel
    labels: Mapping[Any, LabelColumn]
    releases: int = 1

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for records that may be counted together."""
        positive = tuple((name, column.positive, repr(column.law)) for name, column in self.labels.items())
        return self.model.laws, positive, self.releases

    def noise(self, names: list[Any], mean: Floats) -> Floats:
        """Variance of the noise of each column, shape (d,)."""
        out = self.model.covariance[:-1].copy()
        for j, name in enumerate(names):
            if name in self.labels:
                out[j] = self.labels[name].noise_variance(float(mean[j]))
        return out / self.releases**2


class MeanSums:
    """Number, mean and centred products of columns, and the laws of their noise.

    Examples
    --------
    >>> sums = MeanSums.of([np.array([[0.0], [2.0]]), np.array([[4.0]])])
    >>> sums.n, sums.mean, sums.products
    (3, array([2.]), array([[8.]]))
    """

    def __init__(self, size: int) -> None:
        self.n, self.mean, self.products = 0, np.zeros(size), np.zeros((size, size))
        self.lawful: list[Lawful] = []

    @classmethod
    def of(cls, tables: Iterable[Floats]) -> MeanSums | None:
        """Take tables of shape (m, d), block by block; None if there are none."""
        out: MeanSums | None = None
        for table in tables:
            out = out or cls(table.shape[1])
            for start in range(0, len(table), _ROWS):
                block = table[start : start + _ROWS]
                own = cls(table.shape[1])
                own.n, own.mean = len(block), block.mean(axis=0)
                centred = block - own.mean
                own.products = centred.T @ centred
                out.plus(own)
        return out

    @classmethod
    def table(cls, X: Floats) -> MeanSums:
        """Take one table, which has rows."""
        sums = cls.of([X])
        assert sums is not None
        return sums

    @classmethod
    def of_pieces(cls, pieces: Iterator[Any], first: int) -> MeanSums | None:
        """Take a partition; those of records that follow `first` are the same."""
        return cls.of(x for x, _ in pieces)

    def under(self, model: NoiseModel, labels: Mapping[Any, LabelColumn], releases: int = 1) -> MeanSums:
        """Say under which law the records were released."""
        self.lawful = [Lawful(self.n, model, labels, releases)]
        return self

    def plus(self, other: MeanSums) -> MeanSums:
        """Add the records that follow."""
        n = self.n + other.n
        gap = other.mean - self.mean
        self.products = self.products + other.products + np.outer(gap, gap) * (self.n * other.n / max(n, 1))
        self.mean = self.mean + gap * (other.n / max(n, 1)) if self.n else other.mean
        self.n = n
        for own in other.lawful:
            same = [place for place, known in enumerate(self.lawful) if known.key == own.key]
            if same:
                known = self.lawful[same[0]]
                self.lawful[same[0]] = replace(known, n=known.n + own.n)
            else:
                self.lawful.append(own)
        return self

    def shared(self, releases: list[MeanSums]) -> MeanSums:
        """Say that each record is the mean of several releases, whose laws are told."""
        self.lawful = [replace(own, releases=len(releases)) for one in releases for own in one.lawful]
        return self

    def noise(self, names: list[Any]) -> Floats:
        """Mean variance of the noise of each column, shape (d,)."""
        total = sum((own.n * own.noise(names, self.mean) for own in self.lawful), np.zeros(self.mean.size))
        return np.asarray(total / max(self.n, 1), float)

    def model(self, names: list[Any]) -> NoiseModel:
        """Noise of all records as one model, for reports."""
        laws: list[tuple[str, str]] = []
        parts = []
        keep = 1.0
        for own in self.lawful:
            share = own.n / max(self.n, 1) / own.releases**2
            parts += [replace(part, variances=part.variances * share) for part in own.model.parts]
            where = f" ({own.n:,} records)" if len(self.lawful) > 1 else ""
            told = [*own.model.laws, *((str(name), repr(column.law)) for name, column in own.labels.items())]
            laws += [(columns + where, law) for columns, law in told]
            keep = min([keep, own.model.keep, *(column.law.keep_probability for column in own.labels.values())])
        return NoiseModel(tuple(parts), keep, tuple(laws), len(names))


def averaged(tables: Sequence[Iterator[Floats]]) -> Iterator[Floats]:
    """Yield the means over releases of the same records.

    Examples
    --------
    >>> next(averaged([iter([np.zeros((1, 2))]), iter([np.ones((1, 2))])]))
    array([[0.5, 0.5]])
    """
    for pieces in zip(*tables, strict=True):
        yield np.mean(pieces, axis=0)
