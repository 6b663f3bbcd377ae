r"""Simultaneous intervals: one critical value for the largest of several t statistics.

For estimates that are jointly normal with correlation matrix C, ``c`` is the level-quantile of ``max_j |Z_j|``,
Z ~ N(0, C), by simulation; the intervals ``estimate_j +- c se_j`` hold all at once (sup-t band: Montiel Olea &
Plagborg-Moller 2019). With independent estimates ``P(max <= c) = (2 Phi(c) - 1)^m``; with equal ones c is the normal
quantile.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.validation import check_integer, check_number
from privfit.estimators.checks import check_random_state

__all__ = ["largest_t", "simultaneous_intervals", "sup_t"]

Floats = NDArray[np.float64]


def sup_t(
    covariance: Floats, level: float, draws: int = 20_000, random_state: Any = 0, freedom: float = np.inf
) -> float:
    """Critical value of the largest absolute t statistic.

    Parameters
    ----------
    covariance : ndarray, shape (m, m)
        Joint covariance of the estimates; positive variances.
    level : float
        Coverage in (0, 1).
    draws : int
        Simulations, at least 1000: the critical value has a Monte Carlo error of about 0.02 at 20,000.
    random_state : int, Generator or None
    freedom : float
        Degrees of freedom of the standard errors (clusters less one): the statistics share one of them.

    Returns
    -------
    float

    Examples
    --------
    >>> round(sup_t(np.ones((2, 2)), 0.95, 100_000), 1)
    2.0
    """
    errors = np.sqrt(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(errors, errors))
    return largest_t(vectors * np.sqrt(np.maximum(values, 0.0)), level, draws, random_state, freedom)


def largest_t(root: Floats, level: float, draws: int, random_state: Any, freedom: float = np.inf) -> float:
    """Quantile of the largest absolute entry of ``root @ N(0, I)``, or of t, by simulation; exact for one entry.

    Parameters
    ----------
    root : ndarray, shape (m, r)
        Rows of length 1.
    level, draws, random_state, freedom
        As for `sup_t`.

    Returns
    -------
    float

    Examples
    --------
    >>> round(largest_t(np.ones((1, 1)), 0.95, 1000, 0), 3)
    1.96
    """
    from scipy.special import ndtri, stdtrit

    wanted = check_number("level", level, 0.0, 1.0, low_open=True, high_open=True)
    count = check_integer("draws", draws, 1000, 10_000_000, hint="More draws make the critical value exacter.")
    check_random_state(random_state)
    if len(root) == 1:
        upper = 0.5 + wanted / 2.0
        return float(ndtri(upper) if np.isinf(freedom) else stdtrit(freedom, upper))
    rng = np.random.default_rng(random_state)
    largest = np.concatenate(
        [
            np.abs(root @ rng.standard_normal((root.shape[1], min(1000, count - start)))).max(axis=0)
            for start in range(0, count, 1000)
        ]
    )
    if np.isfinite(freedom):
        largest /= np.sqrt(rng.chisquare(freedom, largest.size) / freedom)
    return float(np.quantile(largest, wanted))


def simultaneous_intervals(
    estimate: Floats,
    covariance: Floats,
    level: float,
    draws: int = 20_000,
    random_state: Any = 0,
    freedom: float = np.inf,
) -> Floats:
    """Intervals that hold all at once; infinite for estimates without a standard error, which count for nothing.

    Parameters
    ----------
    estimate : ndarray, shape (m,)
    covariance : ndarray, shape (m, m)
    level, draws, random_state, freedom
        As for `sup_t`.

    Returns
    -------
    ndarray, shape (m, 2)

    Raises
    ------
    ValueError
        If no estimate has a finite, positive standard error.

    Examples
    --------
    >>> simultaneous_intervals(np.zeros(2), np.diag([1.0, np.inf]), 0.95).round(1)
    array([[ -2.,   2.],
           [-inf,  inf]])
    """
    variances = np.diag(covariance)
    usable = np.isfinite(variances) & (variances > 0.0)
    if not usable.any():
        raise ValueError("simultaneous intervals need a finite, positive standard error; the fit has none.")
    critical = sup_t(covariance[np.ix_(usable, usable)], level, draws, random_state, freedom)
    reach = critical * np.sqrt(variances)
    return np.stack([estimate - reach, estimate + reach], axis=1)
