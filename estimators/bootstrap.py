r"""One-step bootstrap on a release: new weights for the records, one Newton step from the fit, no new search.

With weights w_i (mean 1), scores s_i and Hessians H_i at the fit theta^ (P the penalty),

    theta* = theta^ - V*^{-1} [mean(w_i s_i) + P theta^],     V* = V ("fixed")  or  mean(w_i H_i) + P ("estimated"),
    A* = the weighted covariance of the s_i,                  se*_j^2 = (V*^{-1} A* V*^{-1})_jj / n.

"exponential" weights are standard exponential over their mean (the Bayesian bootstrap, Rubin 1981), "mammen" has the
two points of Mammen (1993), mean 1, variance 1 and third central moment 1, and "resample" draws n records with
replacement. With clusters, sums over clusters take the place of records. All replications are computed in one pass: a
block of weights times a block of scores; H_i comes from central differences of scores.

Intervals from the draws: "percentile", the quantiles of theta*; "studentised", from those of
``t* = (theta* - theta^) / se*``: ``theta^ - t*_{1-a} se``, exact to a higher order where se is (Hall 1992); "normal",
from the standard deviation. A replication whose V* is not positive definite counts as infinite on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.validation import check_choice, check_integer, check_number
from privfit.estimators.checks import check_random_state
from privfit.estimators.clusters import cluster_sums
from privfit.estimators.inference import confidence_intervals

if TYPE_CHECKING:
    from privfit.estimators.kept import Kept

__all__ = ["Bootstrap", "one_step_bootstrap"]

Floats = NDArray[np.float64]
_BLOCK = 1024
_STEP = 1e-4
KINDS = ("studentised", "percentile", "normal")
WEIGHTS = ("exponential", "mammen", "resample")


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Replications of a fit.

    Attributes
    ----------
    estimate : ndarray, shape (p,)
        The fit itself, intercept first.
    errors : ndarray, shape (p,)
        Its sandwich standard errors, by the formula of the replications.
    draws : ndarray, shape (replications, p)
        Replicated parameters; nan where a replicated curvature was not positive definite.
    draw_errors : ndarray, shape (replications, p)
        Their standard errors.

    Examples
    --------
    >>> draws = np.array([[0.0], [1.0], [2.0]])
    >>> Bootstrap(np.ones(1), np.ones(1), draws, np.ones((3, 1))).standard_errors
    array([1.])
    """

    estimate: Floats
    errors: Floats
    draws: Floats
    draw_errors: Floats

    def __repr__(self) -> str:
        count, size = self.draws.shape
        lost = f", {100 * self.lost:.1f} % of them lost" if self.lost else ""
        return f"<Bootstrap: {count:,} replications of {size} parameters{lost}; see standard_errors, conf_int()>"

    @property
    def lost(self) -> float:
        """Share of the replications whose curvature was not positive definite."""
        return float(np.isnan(self.draws[:, 0]).mean())

    @property
    def standard_errors(self) -> Floats:
        """Standard deviations of the replications (of those that exist), shape (p,)."""
        return np.asarray(np.nanstd(self.draws, axis=0, ddof=1), float)

    def conf_int(self, level: float = 0.95, kind: str = "studentised") -> Floats:
        """Confidence intervals.

        Parameters
        ----------
        level : float
            Coverage in (0, 1).
        kind : {"studentised", "percentile", "normal"}

        Returns
        -------
        ndarray, shape (p, 2)
            Infinite where too many replications were lost.

        Raises
        ------
        ValueError
            If the level is outside (0, 1), or its tails hold less than 2 replications.
        """
        wanted = check_number("level", level, 0.0, 1.0, low_open=True, high_open=True)
        check_choice("kind", kind, KINDS)
        if kind == "normal":
            return confidence_intervals(self.estimate, self.standard_errors, wanted)
        tail = (1.0 - wanted) / 2.0
        if tail * len(self.draws) < 2.0:
            least = int(np.ceil(2.0 / tail))
            raise ValueError(f"level {wanted:g} needs at least {least} replications, got {len(self.draws)}.")
        if kind == "percentile":
            return np.stack([_quantile(self.draws, tail), _quantile(self.draws, 1.0 - tail)], axis=1)
        t = (self.draws - self.estimate) / self.draw_errors
        ends = [self.estimate - _quantile(t, q) * self.errors for q in (1.0 - tail, tail)]
        return np.stack(ends, axis=1)


def _quantile(values: Floats, q: float) -> Floats:
    """Quantile of each column, outwards to the next draw; a lost draw is infinite on the side that is asked for."""
    filled = np.where(np.isnan(values), np.copysign(np.inf, q - 0.5), values)
    return np.asarray(np.quantile(filled, q, axis=0, method="lower" if q < 0.5 else "higher"), float)


def one_step_bootstrap(
    kept: Kept,
    params: Floats,
    replications: int,
    *,
    weights: str = "exponential",
    curvature: str = "fixed",
    random_state: Any = None,
) -> Bootstrap:
    """Replicate a fit.

    Parameters
    ----------
    kept : Kept
        Records of the fit.
    params : ndarray, shape (p,)
        Its parameters, in the units of the data.
    replications : int
        50 to 100,000.
    weights : {"exponential", "mammen", "resample"}
    curvature : {"fixed", "estimated"}
        "estimated" also replicates the curvature: it costs p + 1 times the time of "fixed".
    random_state : int, Generator or None

    Returns
    -------
    Bootstrap

    Raises
    ------
    ValueError, TypeError
        For an invalid parameter, or a fit without a proper minimum.

    Examples
    --------
    >>> one_step_bootstrap.__name__
    'one_step_bootstrap'
    """
    count = check_integer("replications", replications, 50, 100_000)
    check_choice("weights", weights, WEIGHTS)
    check_choice("curvature", curvature, ("fixed", "estimated"))
    check_random_state(random_state)
    risk, theta, hessian = kept.problem.risk, kept.solution.theta, kept.solution.hessian
    size = theta.size
    if not kept.solution.positive or kept.problem.flat.any():
        raise ValueError(
            "bootstrap needs a fit with positive curvature in every direction: a column is constant, or the noise is "
            "too strong for the sample (see diagnostics_)."
        )
    units = _units(kept, curvature == "estimated")
    number = risk.n if kept.codes is None else int(kept.codes.max()) + 1
    rng = np.random.default_rng(random_state)
    upper = np.triu_indices(size)
    first, outer, total = np.zeros((count, size)), np.zeros((count, upper[0].size)), np.zeros(count)
    bends = np.zeros((count, size * size))
    plain = np.zeros(upper[0].size)
    for scores, bend, drawn in _weighted(units, number, count, weights, rng):
        products = (scores[upper[0]] * scores[upper[1]]).T
        first += drawn @ scores.T
        outer += drawn @ products
        plain += products.sum(axis=0)
        total += drawn.sum(axis=1)
        if bend is not None:
            bends += drawn @ bend.T
    share = total[:, None] / number  # weights are divided by their mean
    gradient = first / share / risk.n + risk.penalty * theta
    middle = _symmetric(outer / share / risk.n, size)
    mean = first / share / risk.n
    middle = middle - mean[:, :, None] * mean[:, None, :] * (risk.n / number)
    curved = np.broadcast_to(hessian, (count, size, size))
    if curvature == "estimated":
        curved = (bends / share / risk.n).reshape(count, size, size)
        curved = (curved + curved.transpose(0, 2, 1)) / 2.0 + np.diag(risk.penalty)
    steps, spread = _newton(curved, gradient, middle, risk.n)
    centre = risk.penalty * theta
    own = _newton(hessian[None], centre[None], _symmetric(plain[None] / risk.n, size), risk.n)[1]
    matrix = kept.matrix
    return Bootstrap(
        params,
        np.sqrt(np.einsum("ij,bjk,ik->bi", matrix, own, matrix))[0],
        params - steps @ matrix.T,
        np.sqrt(np.einsum("ij,bjk,ik->bi", matrix, spread, matrix)),
    )


def _symmetric(rows: Floats, size: int) -> Floats:
    out = np.zeros((len(rows), size, size))
    upper = np.triu_indices(size)
    out[:, upper[0], upper[1]] = out[:, upper[1], upper[0]] = rows
    return out


def _newton(curved: Floats, gradient: Floats, middle: Floats, n: int) -> tuple[Floats, Floats]:
    """Newton steps and covariances; nan where the curvature is not positive definite."""
    values, vectors = np.linalg.eigh(curved)
    good = values[:, 0] > 1e-10 * values[:, -1]
    safe = np.where(good[:, None], values, 1.0)
    inverse = vectors / safe[:, None, :] @ vectors.transpose(0, 2, 1)
    steps = np.einsum("bij,bj->bi", inverse, gradient)
    spread = inverse @ middle @ inverse / n
    steps[~good] = np.nan
    spread[~good] = np.nan
    return steps, spread


def _units(kept: Kept, curvature: bool) -> Iterator[tuple[Floats, Floats | None]]:
    """Scores, shape (p, m), and Hessians, shape (p p, m) or None, of records or clusters, block by block."""
    scored, theta = kept.scored, kept.solution.theta
    if kept.codes is None:
        yield from _blocks(kept, curvature)
        return
    groups = int(kept.codes.max()) + 1
    scores = cluster_sums(scored.score_blocks(theta), kept.codes, groups, scored.size)
    bend = None
    if curvature:
        rows = (block for _, block in _blocks(kept, True) if block is not None)
        bend = cluster_sums(rows, kept.codes, groups, scored.size**2)
    yield scores, bend


def _blocks(kept: Kept, curvature: bool) -> Iterator[tuple[Floats, Floats | None]]:
    risk, theta = kept.problem.risk, kept.solution.theta
    if not curvature:
        for block in kept.scored.score_blocks(theta):
            yield block, None
        return
    sides = []
    for j in range(risk.size):
        step = np.zeros(risk.size)
        step[j] = _STEP
        sides += [risk.score_blocks(theta + step), risk.score_blocks(theta - step)]
    for block, *moved in zip(kept.scored.score_blocks(theta), *sides, strict=True):
        pairs = zip(moved[::2], moved[1::2], strict=True)
        yield block, np.concatenate([(high - low) / (2.0 * _STEP) for high, low in pairs])


def _weighted(
    units: Iterator[tuple[Floats, Floats | None]], number: int, count: int, weights: str, rng: np.random.Generator
) -> Iterator[tuple[Floats, Floats | None, Floats]]:
    """Cut blocks to a size that fits in memory and draw their weights, shape (count, m)."""
    left, still = number, np.full(count, number)  # records to come, and draws that fall on them
    for scores, bend in units:
        for start in range(0, scores.shape[1], _BLOCK):
            part = scores[:, start : start + _BLOCK]
            m = part.shape[1]
            if weights == "exponential":
                drawn = rng.standard_exponential((count, m))
            elif weights == "mammen":
                root = np.sqrt(5.0)
                low = rng.random((count, m)) < (root + 1.0) / (2.0 * root)
                drawn = 1.0 + np.where(low, (1.0 - root) / 2.0, (1.0 + root) / 2.0)
            else:
                hits = rng.binomial(still, min(m / left, 1.0))
                drawn = np.stack([np.bincount(rng.integers(0, m, k), minlength=m) for k in hits]).astype(float)
                still = still - hits
            left -= m
            yield part, None if bend is None else bend[:, start : start + _BLOCK], drawn
