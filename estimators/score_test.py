r"""Score tests on a release, and their inversion.

The fit under the restriction ``R theta = c`` ends at theta~, where the mean corrected score g vanishes along the
directions N that the restriction leaves free. With B the other directions, V the corrected Hessian and s_i the scores,
all at theta~, the efficient score

    e_i = B's_i - B'V N (N'V N)^{-1} N's_i,        T = n e' (mean e_i e_i')^{-1} e,   e the mean of e_i,

is asymptotically chi-squared with as many degrees of freedom as R has rows, whatever the law of the data (Boos 1992).
T inverts the curvature of the free directions only, while the Wald test inverts all of V: under much noise V is noisy,
and a Wald statistic built on it rejects true hypotheses too often. With clusters, e_i is summed by cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.validation import check_number
from privfit.estimators.clusters import cluster_sums
from privfit.estimators.inference import tail_probability
from privfit.estimators.risk import Risk
from privfit.estimators.solver import Solution, minimise

if TYPE_CHECKING:
    from privfit.estimators.kept import Kept

__all__ = ["AffineRisk", "score_interval", "score_test"]

Floats = NDArray[np.float64]


class AffineRisk:
    """A risk on the affine set ``base + free @ gamma``, within the bounds of the fit.

    Parameters
    ----------
    risk : Risk
    base : ndarray, shape (p,)
    free : ndarray, shape (p, k)
    bound : ndarray, shape (p,)

    Examples
    --------
    >>> AffineRisk.__name__
    'AffineRisk'
    """

    def __init__(self, risk: Risk, base: Floats, free: Floats, bound: Floats) -> None:
        self.risk, self.base, self.free, self.bound = risk, base, free, bound

    def at(self, gamma: Floats) -> Floats:
        """Return the parameters at gamma."""
        return np.asarray(self.base + self.free @ gamma, float)

    def admits(self, gamma: Floats) -> bool:
        """Whether the parameters are within the bounds and the loss has a finite variance there."""
        theta = self.at(gamma)
        return bool((np.abs(theta) <= self.bound).all()) and self.risk.admits(theta)

    def derivatives(self, gamma: Floats, order: int = 2, value: bool = True) -> tuple[float, Floats, Floats]:
        """Value, gradient and Hessian in gamma."""
        level, gradient, hessian = self.risk.derivatives(self.at(gamma), order, value)
        return level, self.free.T @ gradient, self.free.T @ hessian @ self.free


def score_test(kept: Kept, contrasts: Floats, values: Floats) -> tuple[float, float]:
    """Test ``contrasts @ params = values``.

    Parameters
    ----------
    kept : Kept
        Records of a fit.
    contrasts : ndarray, shape (m, p)
    values : ndarray, shape (m,)

    Returns
    -------
    statistic, p_value : float

    Raises
    ------
    ValueError
        If a tested coefficient belongs to a constant column, or the restricted fit has no proper minimum.

    Examples
    --------
    >>> score_test.__name__
    'score_test'
    """
    statistic = _statistic(kept, contrasts, values, None)
    if statistic is None:
        raise ValueError(
            "contrasts: the fit under this restriction has no minimum with positive curvature inside the parameter "
            "set, so there is no test. Test fewer contrasts, use more records, or set bound=."
        )
    return statistic[0], float(tail_probability(statistic[0], len(contrasts)))


def score_interval(kept: Kept, place: int, level: float) -> tuple[float, float]:
    """Values of one coefficient that the score test does not reject, connected with the estimate.

    Parameters
    ----------
    kept : Kept
    place : int
        Position of the coefficient.
    level : float
        Coverage in (0, 1).

    Returns
    -------
    lower, upper : float
        Infinite where no value on that side is rejected before the restricted fit loses its proper minimum; beyond,
        there is no test, or one of values that are not connected with the estimate.

    Raises
    ------
    ValueError
        If the fit itself has no proper minimum, from which the values could be told: single ones may have a test.

    Examples
    --------
    >>> score_interval.__name__
    'score_interval'
    """
    from scipy.special import ndtri

    wanted = check_number("level", level, 0.0, 1.0, low_open=True, high_open=True)
    critical = float(ndtri(0.5 + wanted / 2.0)) ** 2
    if not kept.solution.interior:
        raise ValueError(
            "score_interval needs a fit with a proper minimum inside the parameter set, and this one ended on its "
            "boundary or bends downwards: no interval holds around it. score_test takes single values, where the fit "
            "under the restriction has a minimum; or use more records, or set bound=."
        )
    row = np.zeros((1, kept.matrix.shape[0]))
    row[0, place] = 1.0
    estimate = float((kept.matrix @ kept.solution.theta + kept.shift)[place])
    unit = _rough_error(kept, row)
    ends = [_end(kept, row, estimate, side * unit, critical) for side in (-1.0, 1.0)]
    return ends[0], ends[1]


def _end(kept: Kept, row: Floats, estimate: float, step: float, critical: float) -> float:
    """First crossing of the critical value in one direction, by doubling steps and the secant in the root of T."""
    inside, gamma, low = estimate, None, -critical
    for _ in range(12):
        trial = inside + step
        found = _statistic(kept, row, np.array([trial]), gamma)
        if found is None:
            return float(np.copysign(np.inf, step))
        high, gamma = found[0] - critical, found[1]
        if high > 0.0:
            break
        inside, low, step = trial, high, 2.0 * step
    else:
        return float(np.copysign(np.inf, step))
    outside = trial
    for _ in range(40):
        if abs(outside - inside) <= 1e-6 * abs(trial - estimate) + 1e-300 or abs(high) < 1e-6:
            break
        # the root of T is about linear in the coefficient; bisection guards it
        below, above = np.sqrt(max(low + critical, 0.0)), np.sqrt(high + critical)
        part = (np.sqrt(critical) - below) / max(above - below, 1e-300)
        middle = inside + float(np.clip(part, 0.05, 0.95)) * (outside - inside)
        found = _statistic(kept, row, np.array([middle]), gamma)
        if found is None:
            return float(np.copysign(np.inf, step))
        gap, gamma = found[0] - critical, found[1]
        if gap > 0.0:
            outside, high = middle, gap
        else:
            inside, low = middle, gap
    return float(outside)


def _rough_error(kept: Kept, row: Floats) -> float:
    """A scale of one coefficient: its standard error, by the diagonal where the curvature is not positive."""
    risk, solution = kept.problem.risk, kept.solution
    direction = (row @ kept.matrix)[0]
    scores = risk.score_covariance(solution.theta)
    values, vectors = np.linalg.eigh(solution.hessian)
    inverse = vectors / np.maximum(np.abs(values), 1e-3 * np.abs(values).max()) @ vectors.T
    return float(np.sqrt(direction @ inverse @ scores @ inverse @ direction / risk.n))


def _statistic(kept: Kept, contrasts: Floats, values: Floats, gamma: Floats | None) -> tuple[float, Floats] | None:
    """T and the free coordinates of the restricted fit; None where this has no proper minimum."""
    problem, risk = kept.problem, kept.problem.risk
    rows = contrasts @ kept.matrix
    if np.abs(rows[:, problem.flat]).any():
        raise ValueError("contrasts must involve identified coefficients only: a column is constant.")
    across = rows.T @ np.linalg.inv(rows @ rows.T)
    free = np.linalg.svd(rows)[2][len(rows) :].T
    base = across @ (values - contrasts @ kept.shift)
    theta, gradient, hessian = base, None, None
    if free.shape[1]:
        found = _restricted(kept, base, free, rows, gamma)
        if found is None:
            return None
        theta, gamma = base + free @ found.theta, found.theta
    elif not risk.admits(base):
        return None
    gamma = np.zeros(0) if gamma is None else gamma
    _, gradient, hessian = risk.derivatives(theta, value=False)
    sweep = across.T
    if free.shape[1]:
        sweep = sweep - across.T @ hessian @ free @ np.linalg.solve(free.T @ hessian @ free, free.T)
    shrink = risk.penalty * theta
    blocks = (sweep @ (block + shrink[:, None]) for block in risk.score_blocks(theta))
    if kept.codes is None:
        spread = sum((e @ e.T for e in blocks), np.zeros((len(rows), len(rows))))
    else:
        sums = cluster_sums(blocks, kept.codes, int(kept.codes.max()) + 1, len(rows))
        spread = sums @ sums.T
    mean = sweep @ gradient
    return float(risk.n**2 * mean @ np.linalg.solve(spread, mean)), gamma


def _restricted(kept: Kept, base: Floats, free: Floats, rows: Floats, gamma: Floats | None) -> Solution | None:
    """Fit on the restricted set: from the nearest fit in the metric of the curvature, then from the nearest point."""
    problem, whole = kept.problem, kept.solution
    affine = AffineRisk(problem.risk, base, free, problem.bound)
    starts = [] if gamma is None else [gamma]
    if whole.positive:
        inverse = np.linalg.pinv(whole.hessian)
        gap = rows @ (whole.theta - base)
        moved = whole.theta - inverse @ rows.T @ np.linalg.lstsq(rows @ inverse @ rows.T, gap, rcond=None)[0]
        starts.append(free.T @ (moved - base))
    starts.append(free.T @ (whole.theta - base))
    limits = np.full(free.shape[1], np.inf)
    for start in starts:
        if not affine.admits(start):
            continue
        risk: Any = affine
        found = minimise(risk, start, limits)
        if found.interior:
            return found
    return None
