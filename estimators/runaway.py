r"""Did the search run away? Two signs of an estimate that the data do not settle, whatever its curvature says.

Several minima. A corrected risk may have several proper minima. With ``d_i`` the difference of the corrected losses
of record i at two of them, the risks differ by ``mean d_i``, with standard error ``sd(d_i) / sqrt(n)``. Where another
minimum that the search met (`restarts`) is higher by less than `DIFFERENT` of these, the lowest is so by chance.

Implausible slopes. A response ``y = x'b + e`` varies at least as much as its prediction, so for a loss of residuals
``b'(Cov(x~) - Cov(noise)) b <= Var(y) <= Var(y~)``. Robust losses do not fit the mean, so a fit is called implausible
only where the standard deviation of the predictions exceeds that of the released response `IMPLAUSIBLE` times.

Measured: with the loss ``min((u / 10)**2, 4)`` and noise of 47 in its index (n = 50,000) the corrected risk has 16
minima, and the slope of the lowest is 25 times the true one, with a curvature that is known to 30 %. Of 192 fits in
eight settings of ``benchmarks/success_rates.py``, 49 with a curvature known to between 10 and 33 %, 13 have a rival
minimum, in two settings where the six slopes of 1 are missed by 0.6 and by 1.1 in norm (root mean square).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.block_sums import make_plan, slices
from privfit.estimators.diagnostics import UNCERTAIN, curvature_error
from privfit.estimators.problem import Problem
from privfit.estimators.restarts import FEW
from privfit.estimators.risk import Risk
from privfit.estimators.solver import Solution

__all__ = ["DIFFERENT", "IMPLAUSIBLE", "prediction_spread", "record_losses", "rivals", "runaway", "settled"]

Floats = NDArray[np.float64]
DIFFERENT = 2.0
IMPLAUSIBLE = 3.0
_COMPARED = 4


def record_losses(risk: Risk, theta: Floats) -> Floats:
    """Corrected loss of every record (terms summed within a record, no penalty), shape (n,).

    Parameters
    ----------
    risk : Risk
    theta : ndarray, shape (p,)

    Examples
    --------
    >>> from privfit.estimators.corrections import Term
    >>> from privfit.estimators.losses import SquaredLoss
    >>> from privfit.estimators.risk import Design
    >>> data = Design(-np.array([[1.0, 1.0]]), np.array([1.0, 3.0]))
    >>> risk = Risk.of(SquaredLoss(), [Term(1.0, 0, ())], [data], np.zeros((0, 1)), np.zeros(0))
    >>> record_losses(risk, np.ones(1))
    array([0., 2.])
    """
    found = []
    for stratum in risk.strata:
        plan = make_plan(risk.loss, stratum.noise, theta, 0, True)
        for chunk in stratum.records.chunks():
            for chosen in slices(chunk.n):
                block = chunk.rows(chosen)
                losses = np.zeros(block.n)
                for term, kernel, constant in zip(plan.noise.terms, plan.kernels, plan.constants, strict=True):
                    u = block.designs[term.design].index(theta)
                    losses += kernel(u)[0]
                    if block.labels is not None:
                        losses -= constant * block.labels * u
                found.append(losses)
    return np.concatenate(found)


def rivals(risk: Risk, solution: Solution) -> int:
    """Number of other known minima (of the `_COMPARED` lowest) that are not told from the one that was taken.

    Parameters
    ----------
    risk : Risk
    solution : Solution
        Of `restarts.restarted`.

    Examples
    --------
    >>> rivals.__name__
    'rivals'
    """
    if not solution.others:
        return 0
    few, count = risk.thinned(FEW), 0
    own = record_losses(few, solution.theta)
    for other in solution.others[:_COMPARED]:
        error = float(np.std(record_losses(few, other) - own)) / np.sqrt(risk.n)
        count += risk.value(other) - risk.value(solution.theta) < DIFFERENT * error
    return count


def prediction_spread(problem: Problem, theta: Floats) -> float:
    """Standard deviation of ``x'b`` without the noise, over that of the released response (0 if not positive).

    Parameters
    ----------
    problem : Problem
        Whose response is in the offset of the index.
    theta : ndarray, shape (p,)
        Standardised coefficients.

    Examples
    --------
    >>> prediction_spread.__name__
    'prediction_spread'
    """
    lead, b = problem.lead, theta[problem.lead :]
    covariance = problem.risk.gram()[lead:, lead:] - np.diag(problem.risk.noise_variances[lead:])
    return float(np.sqrt(max(float(b @ covariance @ b), 0.0)))


def settled(solution: Solution, problem: Problem) -> bool:
    """Whether the curvature is known as well as a fit without a warning needs it, and the slopes are plausible.

    Examples
    --------
    >>> settled.__name__
    'settled'
    """
    if curvature_error(problem.risk, solution) > UNCERTAIN:
        return False
    return problem.risk.labelled or prediction_spread(problem, solution.theta) <= IMPLAUSIBLE


def runaway(solution: Solution, problem: Problem) -> list[str]:
    """Reasons to take a proper minimum for a false one, as texts; empty where there are none.

    Parameters
    ----------
    solution : Solution
    problem : Problem

    Returns
    -------
    list of str

    Examples
    --------
    >>> runaway.__name__
    'runaway'
    """
    if not solution.interior or not problem.risk.corrects:
        return []
    reasons, count = [], rivals(problem.risk, solution)
    if count:
        reasons.append(
            f"the corrected risk has {solution.minima} known minima, of which at least {count + 1} differ by less than "
            "the noise"
        )
    spread = 0.0 if problem.risk.labelled else prediction_spread(problem, solution.theta)
    if spread > IMPLAUSIBLE:
        reasons.append(
            f"the estimate is implausible: its predictions would vary {spread:.1f} times as much as the released "
            "response"
        )
    return reasons
