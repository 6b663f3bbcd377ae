r"""Sandwich inference: ``sqrt(n) (theta^ - theta) -> N(0, V^-1 A V^-1)``.

V is the corrected Hessian (terms through the noise scale included), A the covariance of the corrected scores
over records; both see only the release. Where the fit is not an interior minimum with positive curvature, or
a direction is not identified, the standard error is infinite: no finite number would be true. Rows in clusters:
`clusters`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.validation import check_number

__all__ = ["confidence_intervals", "full_rank", "sandwich", "tail_probability", "unidentified"]

Floats = NDArray[np.float64]


def sandwich(v: Floats, a: Floats, n: int) -> Floats:
    """Covariance matrix of the estimate, with the factor n / (n - p) for estimated parameters.

    Parameters
    ----------
    v : ndarray, shape (p, p)
        Mean Hessian of the loss.
    a : ndarray, shape (p, p)
        Covariance of the score of one record.
    n : int
        Records.

    Returns
    -------
    ndarray, shape (p, p)
        Infinite variances in the directions that `v` does not identify.

    Examples
    --------
    >>> sandwich(np.eye(1), np.array([[3.0]]), 4)
    array([[1.]])
    """
    size = v.shape[0]
    if n <= size:
        return np.diag(np.full(size, np.inf))
    values, vectors = np.linalg.eigh(v)
    weak = values <= 1e-10 * max(float(values[-1]), 1e-300)
    inverse = vectors[:, ~weak] / values[~weak] @ vectors[:, ~weak].T
    covariance = inverse @ a @ inverse / (n - size)
    covariance = (covariance + covariance.T) / 2.0
    lost = unidentified(v)
    covariance[lost, :] = 0.0
    covariance[:, lost] = 0.0
    covariance[lost, lost] = np.inf
    return np.asarray(covariance, float)


def unidentified(v: Floats) -> NDArray[np.bool_]:
    """Coordinates that take part in a direction of no (or negative) curvature.

    Examples
    --------
    >>> unidentified(np.diag([1.0, 0.0]))
    array([False,  True])
    """
    values, vectors = np.linalg.eigh(v)
    weak = values <= 1e-10 * max(float(values[-1]), 1e-300)
    return np.asarray((vectors[:, weak] ** 2).sum(axis=1) > 1e-8, bool)


def confidence_intervals(estimate: Floats, standard_errors: Floats, level: float, freedom: float = np.inf) -> Floats:
    """Intervals, one row per coefficient: normal, or Student's t where the covariance has few degrees of freedom.

    Parameters
    ----------
    estimate, standard_errors : ndarray, shape (p,)
    level : float
        Coverage in (0, 1).
    freedom : float
        Degrees of freedom of the covariance.

    Returns
    -------
    ndarray, shape (p, 2)

    Examples
    --------
    >>> confidence_intervals(np.array([0.0]), np.array([1.0]), 0.95).round(2)
    array([[-1.96,  1.96]])
    """
    from scipy.special import ndtri, stdtrit

    wanted = check_number("level", level, 0.0, 1.0, low_open=True, high_open=True)
    upper = 0.5 + wanted / 2.0
    reach = float(ndtri(upper) if np.isinf(freedom) else stdtrit(freedom, upper)) * standard_errors
    return np.stack([estimate - reach, estimate + reach], axis=1)


def tail_probability(statistic: Any, count: int, freedom: float = np.inf) -> Any:
    """P-value of a quadratic statistic: chi-squared with `count` degrees of freedom, or count times F.

    Parameters
    ----------
    statistic : float or ndarray
    count : int
        Number of hypotheses.
    freedom : float
        Degrees of freedom of the covariance.

    Examples
    --------
    >>> round(float(tail_probability(3.841459, 1)), 4)
    0.05
    """
    from scipy.special import fdtrc, gammaincc

    if np.isinf(freedom):
        return gammaincc(count / 2.0, np.asarray(statistic) / 2.0)
    return fdtrc(count, freedom, np.asarray(statistic) / count)


def full_rank(covariance: Floats) -> bool:
    """Whether a finite covariance matrix has full rank to 14 digits, whatever the units of its coordinates.

    Examples
    --------
    >>> full_rank(np.diag([1.0, 1e-20])), full_rank(np.ones((2, 2)))
    (True, False)
    """
    errors = np.sqrt(np.diag(covariance))
    return bool(errors.all()) and bool(np.linalg.cond(covariance / np.outer(errors, errors)) <= 1e14)
