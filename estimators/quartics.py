r"""Least squares of growing data, exactly, from sums: moments up to order 4 of columns and response.

With ``w = (1, (x - c) / s, (y - c_y) / s_y)`` (c, s: those of the first records) and v the products of pairs of w,
``Q = sum v v'`` gives everything a corrected least squares fit needs: its part against 1 is the Gram matrix, and the
score ``x (x'b - y)`` of a record is linear in v, so that the middle of the sandwich is ``H Q H'``. The correction
for noise adds constants. For d columns Q has M^2 numbers, M = (d + 2)(d + 3) / 2, and a record costs about M^2 / 2
multiplications: d = 10: 49 kB; d = 50: 15 MB. Records are not kept, but for an even sample of at most 100,000, with
which the diagnostics are made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.noise import NoiseModel
from privfit.estimators.standardise import Coordinates, Spreads
from privfit.estimators.strata import Chunk, Design, Task
from privfit.estimators.survey import Moments

__all__ = ["GrownSums", "Quartics", "Summed"]

Floats = NDArray[np.float64]
T = TypeVar("T")
_ROWS = 2048
_SAMPLE = 100_000


@dataclass
class Quartics:
    """Sums over the records of one law.

    Parameters
    ----------
    model : NoiseModel
    start : Coordinates
        Centres and scales that the sums are in, with an intercept.

    Examples
    --------
    >>> from privfit.estimators.noise import resolve_noise
    >>> x, y = np.array([[1.0], [2.0], [4.0]]), np.array([1.0, 0.0, 2.0])
    >>> sums = Quartics(resolve_noise(None, ["a"]), Coordinates.of(x, y, True))
    >>> sums.add(x, y)
    >>> sums.n
    3
    """

    model: NoiseModel
    start: Coordinates
    product: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    sample: list[tuple[Floats, Floats]] = field(default_factory=list)
    step: int = 1
    seen: int = 0

    @property
    def n(self) -> int:
        """Number of records."""
        return self.seen

    @property
    def pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The pairs of w whose products are v."""
        return np.triu_indices(self.start.scale.size + 2)

    def add(self, x: Floats, y: Floats) -> None:
        """Add records."""
        first, second = self.pairs
        if not self.product.size:
            self.product = np.zeros((first.size, first.size))
        for begin in range(0, len(x), _ROWS):
            w = self._standard(x[begin : begin + _ROWS], y[begin : begin + _ROWS])
            v = w[first] * w[second]
            self.product += v @ v.T
        begin = -self.seen % self.step
        self.sample.append((x[begin :: self.step].copy(), y[begin :: self.step].copy()))
        self.seen += len(x)
        while sum(len(own) for own, _ in self.sample) > _SAMPLE:
            rows, answers = (np.concatenate([own[j] for own in self.sample]) for j in (0, 1))
            self.sample, self.step = [(rows[::2].copy(), answers[::2].copy())], 2 * self.step

    def _standard(self, x: Floats, y: Floats) -> Floats:
        w = np.empty((x.shape[1] + 2, len(x)))
        w[0] = 1.0
        w[1:-1] = ((x - self.start.centre) / self.start.scale).T
        w[-1] = (y - self.start.response_centre) / self.start.response_scale
        return w

    def map_to(self, c: Coordinates) -> Floats:
        """Map from w to a record's (design row, offset) in other coordinates, shape (p + 1, d + 2)."""
        lead, size = int(c.intercept), c.scale.size
        out = np.zeros((size + lead + 1, size + 2))
        out[:lead, 0] = -1.0
        for j in np.flatnonzero(~c.flat):
            out[lead + j, 0] = -(self.start.centre[j] - c.centre[j]) / c.scale[j]
            out[lead + j, 1 + j] = -self.start.scale[j] / c.scale[j]
        out[-1, 0] = (self.start.response_centre - c.response_centre) / c.response_scale
        out[-1, -1] = self.start.response_scale / c.response_scale
        return out

    def moments(self, c: Coordinates) -> Moments:
        """Moments of design and offset in other coordinates."""
        first, second = self.pairs
        plain = np.zeros((self.start.scale.size + 2,) * 2)
        plain[first, second] = plain[second, first] = self.product[0]
        turn = self.map_to(c)
        own = turn @ plain @ turn.T
        out = Moments(self.n, np.zeros(len(own) + 1), np.zeros((len(own) + 1,) * 2), offset=True)
        out.total[:-1], out.product[:-1, :-1] = turn @ plain[0], own
        for _, y in self.sample:
            offset = c.response(y)
            out.low = min(out.low, float(offset.min(initial=np.inf)))
            out.high = max(out.high, float(offset.max(initial=-np.inf)))
        return out

    def scores(self, c: Coordinates, theta: Floats) -> tuple[Floats, Floats]:
        """Sum, and sum of outer products, of the uncorrected scores ``x (x'theta + o)``, shapes (p,) and (p, p)."""
        first, second = self.pairs
        turn = self.map_to(c)
        index = np.append(theta, 1.0) @ turn
        rows = turn[:-1]
        linear = rows[:, first] * index[second]
        linear += np.where(first == second, 0.0, rows[:, second] * index[first])
        return linear @ self.product[:, 0], linear @ self.product @ linear.T

    def chunk(self, c: Coordinates) -> Chunk:
        """Return the sample in other coordinates."""
        rows, answers = (np.concatenate([own[j] for own in self.sample]) for j in (0, 1))
        return Chunk((Design(c.design(rows, -1.0), c.response(answers)),), None)


@dataclass(frozen=True)
class Summed:
    """Records of which sums are known, and a sample.

    Examples
    --------
    >>> Summed(9, Chunk((Design(np.ones((1, 3)), None),), None)).n
    9
    """

    n: int
    sample: Chunk

    def chunks(self) -> Iterator[Chunk]:
        """Yield the sample."""
        yield self.sample

    def each(self, task: Task[T]) -> list[T]:
        """Return the result for the sample."""
        return [task(self.chunks(), 0)]


@dataclass
class GrownSums:
    """All records so far, by their laws; `columns` and `response` are the spreads of all.

    Examples
    --------
    >>> GrownSums(["a"]).parts
    []
    """

    names: list[Any]
    parts: list[Quartics] = field(default_factory=list)
    columns: Spreads | None = None
    response: Spreads | None = None

    def add(self, x: Floats, y: Floats, model: NoiseModel) -> None:
        """Add records under a law."""
        columns, response = Spreads.of([x]), Spreads.of([y[:, None]])
        assert columns is not None and response is not None
        start = self.parts[0].start if self.parts else Coordinates.of_spreads(columns, response, True)
        self.columns = columns if self.columns is None else self.columns.plus(columns)
        self.response = response if self.response is None else self.response.plus(response)
        same = [own for own in self.parts if own.model.laws == model.laws]
        if not same:
            same = [Quartics(model, start)]
            self.parts.append(same[0])
        same[0].add(x, y)
