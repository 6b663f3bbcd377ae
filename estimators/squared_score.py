r"""Raw-data covariance of the scores from a release, without an assumption on the model.

The score of an index loss is ``f'(u) x``, and ``E f'(u)^2 xx'`` is the Hessian of the loss F with ``F'' = f'^2``. The
same operators correct F for the noise, so the Hessian of its corrected risk is an unbiased estimate of the covariance
that the raw scores have:

    squared f = u^2/2      F = u^4 / 12                       check       F'' = (1-tau)^2 1[u < 0] + tau^2 1[u > 0]
    logistic (margin)      F'' = p^2 = L' - L''               Huber       F'' = min(u^2, h^2), squared hinge likewise

with L the logistic loss. Fourth moments of much noise make the estimate unreliable, so its own spread is taken from
groups of records; where the standard errors it implies are not known within a tenth, a model's assumption is better
(equal error variances, a correct mean): `choose_scores`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.estimators.block_sums import Sums, make_plan, slices
from privfit.estimators.inference import sandwich
from privfit.estimators.losses.base import IndexLoss, Kernel, Request
from privfit.estimators.losses.logistic import LogisticLoss
from privfit.estimators.losses.piecewise import PiecewiseLoss
from privfit.estimators.risk import Risk
from privfit.estimators.strata import Chunk, Design, Held, Stratum
from privfit.estimators.symbols import Symbol

__all__ = [
    "LogisticSquare",
    "ShiftedLoss",
    "SteppedSquareLoss",
    "choose_scores",
    "group_hessians",
    "known_covariance",
    "signed_by_labels",
]

Floats = NDArray[np.float64]
Weigh = Callable[[Floats], Floats]
GROUPS = 8
"""Interleaved groups of records that tell how well the estimate is known."""
SAMPLE = 100_000
"""Records that the estimate is taken from."""
CERTAIN = 0.1
"""Largest relative error of the raw-data standard errors at which the estimate without assumption is used."""
FREE = "corrected mean of the squared scores (no assumption)"


class ShiftedLoss(IndexLoss):
    """``F = sum_k c_k D^{m_k} f_k`` with m_k down to -2, where integrals occur only under two derivatives.

    Parameters
    ----------
    parts : sequence of (float, IndexLoss, int)
        c_k, f_k, m_k. With m_k < 0 the value and the gradient of F are not available (nan); its Hessian is.

    Examples
    --------
    >>> from privfit.estimators.losses import ClippedSquareLoss
    >>> ShiftedLoss([(1.0, ClippedSquareLoss(2.0), -2)]).derivative([1.0, 5.0], 2)
    array([1., 4.])
    """

    def __init__(self, parts: Sequence[tuple[float, IndexLoss, int]]) -> None:
        self.parts = tuple(parts)
        self.max_variance = min(loss.max_variance for _, loss, _ in self.parts)

    def derivative(self, u: ArrayLike, order: int = 1) -> Floats:
        """See `IndexLoss.derivative`."""
        r = np.asarray(u, float)
        return self.compile([(Symbol(), order)])(np.atleast_1d(r))[0].reshape(r.shape)

    def compile(self, requests: Sequence[Request]) -> Kernel:
        """See `IndexLoss.compile`: ``z R(z)`` on F is ``R(z)`` two derivatives up."""
        plans = []
        for weight, loss, shift in self.parts:
            moved = [_raised(symbol, order + shift) for symbol, order in requests]
            known = [request for request in moved if request is not None]
            plans.append((weight, [request is not None for request in moved], loss.compile(known)))

        def kernel(u: Floats) -> list[Floats]:
            answers = [np.zeros_like(u) for _ in requests]
            for weight, known, compiled in plans:
                found = iter(compiled(u))
                for place, there in enumerate(known):
                    answers[place] += weight * next(found) if there else np.nan
            return answers

        return kernel


def _raised(symbol: Symbol, order: int) -> Request | None:
    """Move factors z of an operator into derivatives until the order is not negative; None if there are too few."""
    numerator = symbol.numerator
    while order < 0:
        if numerator[0] != 0.0:
            return None
        numerator, order = numerator[1:] or (0.0,), order + 2
    return Symbol(numerator, symbol.poles, symbol.heat), order


class LogisticSquare(ShiftedLoss):
    """``F'' = p^2``, the squared score of the logistic loss as a function of the margin ``(1 - 2y) u``.

    Examples
    --------
    >>> LogisticSquare().derivative([0.0], 2)
    array([0.25])
    """

    def __init__(self) -> None:
        super().__init__([(1.0, LogisticLoss(), -1), (-1.0, LogisticLoss(), 0)])


class SteppedSquareLoss(PiecewiseLoss):
    """``F'' = (1 - tau)^2`` below 0 and ``tau^2`` above, the squared score of the check loss.

    Parameters
    ----------
    quantile : float
        tau in (0, 1).

    Examples
    --------
    >>> SteppedSquareLoss(0.25).derivative([-1.0, 1.0], 2)
    array([0.5625, 0.0625])
    """

    kinks = (0.0,)

    def __init__(self, quantile: float) -> None:
        self.below, self.above = (1.0 - quantile) ** 2, quantile**2
        self.jumps = ((0.0, 2, self.above - self.below),)
        self.left = (0.0, 0.0, self.below / 2.0)

    def derivative(self, u: ArrayLike, order: int = 1) -> Floats:
        """See `IndexLoss.derivative`."""
        r = np.asarray(u, float)
        bend = np.where(r < 0.0, self.below, self.above)
        return np.asarray((0.5 * bend * r * r, bend * r, bend)[order] if order < 3 else 0.0 * r, float)


def signed_by_labels(strata: Sequence[Stratum]) -> list[Stratum] | None:
    """Multiply each design row by 1 - 2y, y the released label; None if labels are averages of several releases.

    Unbiased labels of a randomised response are two numbers, the smaller one for y = 0.

    Parameters
    ----------
    strata : sequence of Stratum
        In memory.

    Examples
    --------
    >>> signed_by_labels([])
    []
    """
    out = []
    for stratum in strata:
        for chunk in stratum.records.chunks():
            labels = chunk.labels
            if labels is None or np.unique(labels).size > 2:
                return None
            sign = np.where(labels > 0.5, -1.0, 1.0)
            designs = tuple(Design(design.matrix * sign, design.offset) for design in chunk.designs)
            out.append(Stratum(stratum.noise, Held(Chunk(designs, None))))
    return out


def choose_scores(
    squared: Risk | None,
    theta: Floats,
    hessian: Floats,
    assumed: tuple[Floats, str],
    n: int,
    more: Sequence[tuple[IndexLoss, Weigh]] = (),
) -> tuple[Floats, str]:
    """Return the raw-data covariance of the score that is known better, and how it was estimated.

    Parameters
    ----------
    squared : Risk or None
        Corrected risk of F on at most `SAMPLE` records; None if there is none.
    theta : ndarray, shape (p,)
        The fit.
    hessian : ndarray, shape (p, p)
        Its curvature.
    assumed : (ndarray, str)
        Covariance by the model's assumption, and its name.
    n : int
        Records of the fit.
    more : sequence of (IndexLoss, callable)
        Losses whose Hessians are added to that of F, each record's times a weight made of its label.

    Examples
    --------
    >>> choose_scores(None, np.zeros(1), np.eye(1), (np.eye(1), "example"), 9)[1]
    'example'
    """
    if squared is None or n <= theta.size or not squared.admits(theta):
        return assumed
    groups = group_hessians(squared.loss, squared.strata, theta)
    for loss, weigh in more:
        groups = groups + group_hessians(loss, squared.strata, theta, weigh)
    mean = known_covariance(groups, hessian, n)
    return assumed if mean is None else (mean, FREE)


def known_covariance(groups: Floats, hessian: Floats, n: int) -> Floats | None:
    """Return the mean over groups of records, None if its standard errors are not known within `CERTAIN`.

    Parameters
    ----------
    groups : ndarray, shape (groups, p, p)
        Covariance of the raw scores, estimated from each group.
    hessian : ndarray, shape (p, p)
    n : int
        Records of the fit.

    Examples
    --------
    >>> known_covariance(np.stack([np.eye(1), 1.1 * np.eye(1)]), np.eye(1), 9)
    array([[1.05]])
    """
    mean = groups.mean(axis=0)
    variances = np.stack([np.diag(sandwich(hessian, group, n)) for group in (mean, *groups)])
    good = np.isfinite(variances[0])
    whole, parts = variances[0][good], variances[1:, good]
    if not good.any() or whole.min() <= 0.0 or np.linalg.eigvalsh(mean)[0] <= 0.0:
        return None
    error = parts.std(axis=0, ddof=1) / np.sqrt(len(parts)) / (2.0 * whole)
    return np.asarray(mean, float) if error.max() <= CERTAIN else None


def group_hessians(loss: IndexLoss, strata: Sequence[Stratum], theta: Floats, weigh: Weigh | None = None) -> Floats:
    """Mean Hessian of the corrected loss over each of `GROUPS` interleaved groups of records.

    Parameters
    ----------
    loss : IndexLoss
    strata : sequence of Stratum
        Enough for one pass in memory.
    theta : ndarray, shape (p,)
    weigh : callable, optional
        Maps labels, shape (m,), to weights of the records.

    Returns
    -------
    ndarray, shape (groups, p, p)
        No more groups than records.

    Examples
    --------
    >>> from privfit.estimators.losses import SquaredLoss
    >>> from privfit.estimators.strata import IndexNoise
    >>> from privfit.estimators.corrections import Term
    >>> held = Held(Chunk((Design(np.array([[1.0, 2.0]]), None),), None))
    >>> noise = IndexNoise((Term(1.0, 0, ()),), np.zeros((0, 1)), np.zeros(0))
    >>> group_hessians(SquaredLoss(), [Stratum(noise, held)], np.zeros(1)).ravel()
    array([1., 4.])
    """
    count, size = min(GROUPS, sum(stratum.records.n for stratum in strata)), theta.size
    total, records = np.zeros((count, size, size)), np.zeros(count)
    for stratum in strata:
        plan = make_plan(loss, stratum.noise, theta, 2, False)
        for chunk in stratum.records.chunks():
            for k in range(min(count, chunk.n)):
                group, sums = chunk.rows(slice(k, None, count)).copied(), Sums(size, len(plan.g))
                for block in map(group.rows, slices(group.n)):
                    weights = 1.0 if weigh is None or block.labels is None else weigh(block.labels)
                    for term, kernel in zip(stratum.noise.terms, plan.kernels, strict=True):
                        design = block.designs[term.design]
                        answers = [weights * own for own in kernel(design.index(theta))]
                        sums.add_slope(design.matrix, answers[0], answers[1 : 1 + len(plan.g)])
                        sums.add_bend(design.matrix, iter(answers[1 + len(plan.g) :]))
                total[k] += sums.hessian(stratum.noise, theta)
                records[k] += group.n
    total = total / records[:, None, None]
    return np.asarray((total + total.transpose(0, 2, 1)) / 2.0, float)
