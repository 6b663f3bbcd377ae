r"""Empirical corrected risk of an index loss, with analytic gradient and Hessian.

Records are passed over stratum by stratum (`strata`), each with noise of its own, in blocks that fit in cache
(`block_sums`); a quadratic risk needs their moments only (`survey`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.block_sums import Sums, block_sums, make_plan, score_block, slices
from privfit.estimators.corrections import Term
from privfit.estimators.losses.base import IndexLoss
from privfit.estimators.losses.polynomial import PolynomialLoss
from privfit.estimators.strata import Chunk, Design, Held, IndexNoise, Stratum
from privfit.estimators.survey import Moments, Survey, index_range, merged, quadratic_sums, sample, survey
from privfit.estimators.symbols import Symbol

__all__ = ["Design", "Risk"]

Floats = NDArray[np.float64]
T = TypeVar("T")
_SAMPLE = 100_000


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

    def __init__(
        self,
        loss: IndexLoss,
        strata: Sequence[Stratum],
        size: int,
        penalty: Floats | None = None,
        memo: dict[str, Any] | None = None,
    ) -> None:
        self.loss, self.strata, self.size = loss, list(strata), size
        self.penalty = np.zeros(size) if penalty is None else penalty
        self.n = sum(stratum.records.n for stratum in self.strata)
        self._memo = {} if memo is None else memo  # of the records, shared by risks of the same records
        self._last: tuple[Floats, Floats] | None = None

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
        penalty = self.penalty if penalty is None else penalty
        return Risk(loss or self.loss, self.strata, self.size, penalty, self._memo)

    def naive(self) -> Risk:
        """Return the risk that ignores the noise."""
        return Risk(self.loss, [stratum.naive() for stratum in self.strata], self.size, self.penalty, self._memo)

    def thinned(self, n: int) -> Risk:
        """Risk of about n <= 100,000 records, taken at equal distances (tables are often sorted), in memory."""
        base = max(1, self.n // _SAMPLE)
        step = max(1, -(-self.n // base) // n)
        if base * step == 1 and self.held:
            return self
        strata = []
        passed = 0
        for stratum, found in zip(self.strata, self._samples(base), strict=True):
            if found is not None:
                few = found.rows(slice(-passed % step, None, step))
                passed += found.n
                if few.n:
                    strata.append(Stratum(stratum.noise, Held(few.copied())))
        return Risk(self.loss, strata, self.size, self.penalty)

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
            total += stratum.records.n / self.n * stratum.noise.variance
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
        return not any(own[0].offset for own in self._moments())

    def gram(self) -> Floats:
        """Mean outer product of the released design, shape (p, p); nothing is corrected."""
        total = np.zeros((self.size, self.size))
        for own in self._moments():
            total += own[0].product[: self.size, : self.size]
        return total / self.n

    def index_range(self, theta: Floats) -> tuple[float, float]:
        """Smallest and largest index of the released records."""
        if not theta.any():
            if self.labelled:
                return 0.0, 0.0
            return min(own[0].low for own in self._moments()), max(own[0].high for own in self._moments())
        ends = self.each(partial(index_range, theta))
        return min(low for low, _ in ends), max(high for _, high in ends)

    def each(self, task: Callable[[Iterator[Chunk], int], T]) -> list[T]:
        """Pass over the records: the results of consecutive groups of them, in order (see `strata.Records`)."""
        return [own for stratum in self.strata for own in stratum.records.each(task)]

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
        outer = order >= 2 and not self.held  # a pass over a file is dear: the scores come with the Hessian
        for stratum, sums in zip(self.strata, self._sums(theta, order, value, outer), strict=True):
            total += sums.value
            gradient += sums.gradient(stratum.noise, theta)
            hessian += sums.hessian(stratum.noise, theta)
        gradient = gradient / self.n + self.penalty * theta
        hessian = hessian / self.n + np.diag(self.penalty)
        return total / self.n + 0.5 * float(self.penalty @ theta**2), gradient, (hessian + hessian.T) / 2

    def score_blocks(self, theta: Floats) -> Iterator[Floats]:
        """Yield corrected scores (terms summed within a record, no penalty) in blocks of shape (p, m)."""
        for stratum in self.strata:
            plan = make_plan(self.loss, stratum.noise, theta, 1, False)
            for chunk in stratum.records.chunks():
                for chosen in slices(chunk.n):
                    yield score_block(plan, chunk.rows(chosen), theta)

    def scores(self, theta: Floats) -> Floats:
        """Corrected score of every record, shape (p, n)."""
        return np.concatenate(list(self.score_blocks(theta)), axis=1)

    def score_covariance(self, theta: Floats) -> Floats:
        """Covariance of the corrected score over records (the middle of the sandwich), shape (p, p).

        Of records that are not in memory, that of the last Hessian is returned if it was at most 1e-10 away.
        """
        if self._last is None or np.abs(self._last[0] - theta).max() > 1e-10 * (1.0 + np.abs(theta).max()):
            self._sums(theta, 0, False, True)
        assert self._last is not None
        covariance = self._last[1]
        if self.held:
            self._last = None
        return covariance

    def symbols(self, theta: Floats) -> list[Symbol]:
        """Operator of each term at theta, of all strata."""
        return [symbol for stratum in self.strata for symbol in stratum.noise.symbols(theta)]

    def _sums(self, theta: Floats, order: int, value: bool, outer: bool) -> list[Sums]:
        """Pass over the records, or use their moments; keeps the covariance of the scores where it was asked for."""
        if isinstance(self.loss, PolynomialLoss) and self.loss.coefficients.size <= 3 and (not outer or order):
            noises = [stratum.noise for stratum in self.strata]
            moments = self._moments()
            return [
                quadratic_sums(self.loss, noise, theta, order, value, own)
                for noise, own in zip(noises, moments, strict=True)
            ]
        if outer and "scores" in self._memo:
            return self._known_scores(theta)
        found = []
        for stratum in self.strata:
            task = partial(block_sums, self.loss, stratum.noise, theta, order, value, outer)
            found.append(reduce(Sums.plus, stratum.records.each(task)))
        if outer:
            self._keep_covariance(theta, found)
        return found

    def _known_scores(self, theta: Floats) -> list[Sums]:
        """Products of the scores of a quadratic loss where sums tell them (`quartics`): the correction is constant."""
        found = self._sums(theta, 1, False, False)
        for stratum, sums, tell in zip(self.strata, found, self._memo["scores"], strict=True):
            plain, outer = tell(theta)
            shift = (sums.gradient(stratum.noise, theta) - plain) / stratum.records.n
            cross = np.outer(plain, shift)
            sums.total = plain + stratum.records.n * shift
            sums.outer = outer + cross + cross.T + stratum.records.n * np.outer(shift, shift)
        self._keep_covariance(theta, found)
        return found

    def _keep_covariance(self, theta: Floats, found: Sequence[Sums]) -> None:
        mean = sum((own.total for own in found), np.zeros(self.size)) / self.n
        product = sum((own.outer for own in found), np.zeros((self.size, self.size))) / self.n
        self._last = theta.copy(), product - np.outer(mean, mean)

    def _moments(self) -> list[list[Moments]]:
        if "moments" not in self._memo:
            if self.held:
                self._memo["moments"] = [Moments.of(stratum.records.chunks()) for stratum in self.strata]
            else:
                self._survey()
        return list(self._memo["moments"])

    def _samples(self, base: int) -> list[Chunk | None]:
        if "samples" not in self._memo:
            if self.held:
                found, passed = list[Chunk | None](), 0
                for stratum in self.strata:
                    kept: list[Chunk] = []
                    for _ in sample(passed, base, stratum.records.chunks(), kept):
                        pass
                    passed += stratum.records.n
                    found.append(kept[0] if kept else None)
                self._memo["samples"] = found
            else:
                self._survey()
        return list(self._memo["samples"])

    def _survey(self) -> None:
        """Take moments and sample in one pass, where records are not in memory."""
        found, passed = list[Survey](), 0
        for stratum in self.strata:
            task = partial(survey, passed, max(1, self.n // _SAMPLE))
            found.append(merged(stratum.records.each(task)))
            passed += stratum.records.n
        self._memo["moments"] = [own.moments for own in found]
        self._memo["samples"] = [own.chunks[0] if own.chunks else None for own in found]

    def _chunks(self) -> Iterator[Chunk]:
        for stratum in self.strata:
            yield from stratum.records.chunks()
