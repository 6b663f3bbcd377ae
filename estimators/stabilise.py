r"""A vanishing ridge that keeps small, noisy samples usable as point estimates.

The corrected curvature carries sampling noise of order ``lambda_j^2 sqrt(d/n)`` along coordinate j (lambda_j:
noise standard deviation). The penalty ``(kappa/2) sqrt(d/n) sum_j lambda_j^2 b_j^2`` lifts it above that
noise; it depends on the law and n only, not on the data, and vanishes with n. Intervals of a penalised fit
are conditional on the penalty. It comes in, and grows, until the fit would not warn about its curvature (known
to a third, see `diagnostics`). The strengths (.25 logistic, 1.5 least squares, .25 quantiles), the margin and
the escalation were chosen by simulation (tests).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.risk import Risk
from privfit.estimators.solver import Solution

__all__ = ["ESCALATION", "MARGIN", "stabilising_penalty", "stable"]

Floats = NDArray[np.float64]
MARGIN = 2.0
"""The penalty comes in where the smallest curvature is below this many times the penalty, or uncertain."""
ESCALATION = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""Multiples of the penalty tried in turn until the penalised curvature is positive and known to a third."""


def stabilising_penalty(risk: Risk, kappa: float) -> Floats:
    """Return ``kappa lambda_j^2 sqrt(d / n)`` for every coordinate.

    Parameters
    ----------
    risk : Risk
    kappa : float
        Strength, > 0.

    Returns
    -------
    ndarray, shape (p,)

    Examples
    --------
    >>> stabilising_penalty.__name__
    'stabilising_penalty'
    """
    noise = risk.noise_variances
    columns = max(int(np.count_nonzero(noise)), 1)
    return np.asarray(kappa * noise * np.sqrt(columns / risk.n), np.float64)


def stable(solution: Solution, penalty: Floats) -> bool:
    """Whether the curvature of a fit exceeds its own noise (of the size of the penalty) in every direction.

    Examples
    --------
    >>> stable.__name__
    'stable'
    """
    if not solution.interior:
        return False
    return bool(np.linalg.eigvalsh(solution.hessian - np.diag(penalty))[0] > 0.0)
