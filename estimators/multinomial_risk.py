r"""Risks of a multinomial logistic model: maximum likelihood, and pairs of classes for noised columns.

K classes, indices ``u_k = v_k'x`` with ``v_0 = 0``. A label enters linearly, through unbiased indicators e of its
class: with truth probability p and ``r = (1 - p)/(K - 1)`` of each lie, ``e_k = (1[label = k] - r)/(p - r)``.

    likelihood   log sum_k e^{u_k} - sum_k e_k u_k
    pairs        sum_{j<k} (e_j + e_k) log(1 + e^{u_k - u_j}) - e_k (u_k - u_j)

The log of the sum sees x through K - 1 indices, and only few noise laws have a usable inverse there. Given that the
class is j or k, the odds are ``u_k - u_j`` (Begg & Gray 1984): each pair is a binary logistic loss of one index, which
every exact inverse covers, and the sum over all pairs (a composite likelihood) does not depend on the base class. The
records are split by released class, of which the weight of a pair is a function: each class is a stratum of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.losses import LogisticLoss
from privfit.estimators.risk import Risk
from privfit.estimators.strata import Chunk, Design, Held, Stratum

__all__ = ["PairsRisk", "SoftmaxRisk", "indicator_weights", "split_classes"]

Floats = NDArray[np.float64]
_BLOCK = 8192


def indicator_weights(classes: int, keep: float) -> Floats:
    """Unbiased indicators: row c holds ``e`` of a record released with class c, shape (K, K).

    Examples
    --------
    >>> indicator_weights(3, 0.8).round(3)
    array([[ 1.286, -0.143, -0.143],
           [-0.143,  1.286, -0.143],
           [-0.143, -0.143,  1.286]])
    """
    lie = (1.0 - keep) / (classes - 1)
    return np.asarray((np.eye(classes) - lie) / (keep - lie), float)


def split_classes(stratum: Stratum, codes: NDArray[np.intp], classes: int) -> list[Stratum]:
    """Split records in memory by their released class; the order within a class stays.

    Parameters
    ----------
    stratum : Stratum
    codes : ndarray of int, shape (n,)
    classes : int

    Examples
    --------
    >>> from privfit.estimators.strata import IndexNoise
    >>> held = Held(Chunk((Design(np.array([[1.0, 2.0, 3.0]]), None),), None))
    >>> parts = split_classes(Stratum(IndexNoise((), np.zeros((0, 1)), np.zeros(0)), held), np.array([1, 0, 1]), 2)
    >>> [part.records.n for part in parts]
    [1, 2]
    """
    chunk = next(stratum.records.chunks())
    out = []
    for c in range(classes):
        own = codes == c
        designs = tuple(Design(np.ascontiguousarray(d.matrix[:, own]), None) for d in chunk.designs)
        out.append(Stratum(stratum.noise, Held(Chunk(designs, None))))
    return out


@dataclass(eq=False)
class _MultinomialRisk:
    """Common part: K strata, one for each released class, and a penalty ``(1/2) v'Pv``.

    Parameters are ``v_1, ..., v_{K-1}``, one after the other.
    """

    strata: Sequence[Stratum]
    indicators: Floats
    penalty: Floats

    def __post_init__(self) -> None:
        self.classes = len(self.strata)
        self.size = self.penalty.shape[0]
        self.width = self.size // (self.classes - 1)
        self.n = sum(stratum.records.n for stratum in self.strata)

    held = True

    def admits(self, theta: Floats) -> bool:
        """Whether the loss has a finite variance at theta: always."""
        return True

    def score_blocks(self, theta: Floats) -> Iterator[Floats]:
        """Yield scores, records ordered by released class, in blocks of shape (size, m)."""
        raise NotImplementedError

    def score_covariance(self, theta: Floats) -> Floats:
        """Covariance of the score over records, shape (size, size)."""
        outer, total = np.zeros((self.size, self.size)), np.zeros(self.size)
        for block in self.score_blocks(theta):
            outer += block @ block.T
            total += block.sum(axis=1)
        mean = total / self.n
        return np.asarray(outer / self.n - np.outer(mean, mean), float)

    def thinned(self, n: int) -> _MultinomialRisk:
        """Return the risk itself: its diagnostics use all records."""
        return self

    def _penalised(
        self, value: float, gradient: Floats, hessian: Floats, theta: Floats
    ) -> tuple[float, Floats, Floats]:
        pull = self.penalty @ theta
        return value + 0.5 * float(theta @ pull), gradient + pull, (hessian + hessian.T) / 2.0 + self.penalty


class SoftmaxRisk(_MultinomialRisk):
    """Likelihood: columns without noise, or their noise ignored.

    Examples
    --------
    >>> from privfit.estimators.strata import IndexNoise
    >>> held = [Held(Chunk((Design(np.ones((1, m)), None),), None)) for m in (1, 2, 3)]
    >>> noise = IndexNoise((), np.zeros((0, 1)), np.zeros(0))
    >>> risk = SoftmaxRisk([Stratum(noise, records) for records in held], np.eye(3), np.zeros((2, 2)))
    >>> risk.derivatives(np.log([2.0, 3.0]))[1].round(12) + 0.0
    array([0., 0.])
    """

    def derivatives(self, theta: Floats, order: int = 2, value: bool = True) -> tuple[float, Floats, Floats]:
        """Value, gradient and Hessian."""
        total, gradient, hessian = 0.0, np.zeros(self.size), np.zeros((self.size, self.size))
        p = self.width
        for matrix, u, probability, own in self._blocks(theta):
            top = u.max(axis=0)
            total += float(np.sum(top + np.log(np.exp(u - top).sum(axis=0))) - own @ u.sum(axis=1))
            gradient += ((probability[1:] - own[1:, None]) @ matrix.T).ravel()
            for k in range(1, self.classes):
                for j in range(1, k + 1):
                    weight = probability[k] * (float(j == k) - probability[j])
                    piece = (matrix * weight) @ matrix.T
                    hessian[(k - 1) * p : k * p, (j - 1) * p : j * p] += piece
                    if j < k:
                        hessian[(j - 1) * p : j * p, (k - 1) * p : k * p] += piece.T
        return self._penalised(total / self.n, gradient / self.n, hessian / self.n, theta)

    def score_blocks(self, theta: Floats) -> Iterator[Floats]:
        """See `_MultinomialRisk`."""
        for matrix, _, probability, own in self._blocks(theta):
            gap = probability[1:] - own[1:, None]
            yield (gap[:, None, :] * matrix[None]).reshape(self.size, -1)

    def _blocks(self, theta: Floats) -> Iterator[tuple[Floats, Floats, Floats, Floats]]:
        """Design, indices, probabilities, and the indicators that a block's records share."""
        v = np.concatenate([np.zeros((1, self.width)), theta.reshape(-1, self.width)])
        for stratum, own in zip(self.strata, self.indicators, strict=True):
            for chunk in stratum.records.chunks():
                for start in range(0, chunk.n, _BLOCK):
                    matrix = chunk.designs[0].matrix[:, start : start + _BLOCK]
                    u = v @ matrix
                    odds = np.exp(u - u.max(axis=0))
                    yield matrix, u, odds / odds.sum(axis=0), own


class PairsRisk(_MultinomialRisk):
    """Composite likelihood of all pairs of classes, corrected for the noise of the columns.

    Examples
    --------
    >>> PairsRisk.__name__
    'PairsRisk'
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._pairs = list(combinations(range(self.classes), 2))
        self._risks = [
            [self._pair(stratum, *own[[j, k]]) for j, k in self._pairs]
            for stratum, own in zip(self.strata, self.indicators, strict=True)
        ]

    def naive(self) -> PairsRisk:
        """Return the risk that ignores the noise of the columns."""
        return PairsRisk([stratum.naive() for stratum in self.strata], self.indicators, self.penalty)

    def _pair(self, stratum: Stratum, first: float, second: float) -> Risk | None:
        """Binary risk of the records of one class, weight included; None where the weight is 0.

        A class outside the pair has ``e_j + e_k = 2 e_j`` below 0, or 0 where labels are true.
        """
        weight = first + second
        if weight == 0.0:
            return None
        terms = tuple(replace(term, weight=weight * term.weight) for term in stratum.noise.terms)
        chunk = next(stratum.records.chunks())
        labels = np.full(chunk.n, second / weight)
        noise = replace(stratum.noise, terms=terms)
        return Risk(LogisticLoss(), [Stratum(noise, Held(replace(chunk, labels=labels)))], self.width)

    def derivatives(self, theta: Floats, order: int = 2, value: bool = True) -> tuple[float, Floats, Floats]:
        """Value, gradient and Hessian (up to `order`)."""
        v = np.concatenate([np.zeros((1, self.width)), theta.reshape(-1, self.width)])
        total = 0.0
        gradient = np.zeros((self.classes, self.width))
        hessian = np.zeros((self.classes, self.width, self.classes, self.width))
        for risks in self._risks:
            for (j, k), risk in zip(self._pairs, risks, strict=True):
                if risk is None or risk.n == 0:
                    continue
                one, slope, bend = risk.derivatives(v[k] - v[j], order, value)
                share = risk.n / self.n
                total += share * one
                gradient[k] += share * slope
                gradient[j] -= share * slope
                for a, b, sign in ((k, k, 1.0), (j, j, 1.0), (j, k, -1.0), (k, j, -1.0)):
                    hessian[a, :, b] += sign * share * bend
        flat = hessian[1:, :, 1:].reshape(self.size, self.size)
        return self._penalised(total, gradient[1:].ravel(), flat, theta)

    def score_blocks(self, theta: Floats) -> Iterator[Floats]:
        """See `_MultinomialRisk`."""
        v = np.concatenate([np.zeros((1, self.width)), theta.reshape(-1, self.width)])
        for risks in self._risks:
            used = [(j, k, risk) for (j, k), risk in zip(self._pairs, risks, strict=True) if risk is not None]
            for blocks in zip(*(risk.score_blocks(v[k] - v[j]) for j, k, risk in used), strict=True):
                out = np.zeros((self.classes, self.width, blocks[0].shape[1]))
                for (j, k, _), block in zip(used, blocks, strict=True):
                    out[k] += block
                    out[j] -= block
                yield out[1:].reshape(self.size, -1)

    def information(self, theta: Floats) -> Floats:
        """Approximate curvature of the likelihood, from the pairs' curvatures.

        A pair's mean curvature is ``E p_j p_k / (p_j + p_k) xx'``; times the mean share of its classes it stands for
        ``E p_j p_k xx'``, of which the likelihood's is made.
        """
        v = np.concatenate([np.zeros((1, self.width)), theta.reshape(-1, self.width)])
        shares = np.array([stratum.records.n for stratum in self.strata]) / self.n @ self.indicators
        out = np.zeros((self.classes, self.width, self.classes, self.width))
        for place, (j, k) in enumerate(self._pairs):
            bend = np.zeros((self.width, self.width))
            for risks in self._risks:
                risk = risks[place]
                if risk is not None and risk.n:
                    bend += risk.n / self.n * risk.hessian(v[k] - v[j])
            bend *= max(float(shares[j] + shares[k]), 0.0)
            for a, b, sign in ((k, k, 1.0), (j, j, 1.0), (j, k, -1.0), (k, j, -1.0)):
                out[a, :, b] += sign * bend
        return np.asarray(out[1:, :, 1:].reshape(self.size, self.size), float)
