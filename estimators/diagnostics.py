r"""Is the sample large enough for this noise? What to tell the user, with the n that would be.

Along a direction v the corrected curvature ``v'Hv`` is a mean over records with standard deviation c; it is
safely positive when it exceeds three of its standard errors, which needs ``n = (3 c / v'Hv)^2`` records.
Before that many are there, the expected ``v'Hv`` is the naive curvature times the share of the columns'
variance along v that is not noise, and c is taken at the naive coefficients divided by that share; the worst
direction decides.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.errors import RankDeficiencyWarning, SmallSampleWarning
from privfit.estimators.inference import unidentified
from privfit.estimators.problem import Problem
from privfit.estimators.risk import Risk
from privfit.estimators.solver import Solution

__all__ = ["curvature_error", "records_needed", "report_plain", "report_solution", "round_up"]

Floats = NDArray[np.float64]
_SAMPLE = 100_000


def round_up(n: float) -> int:
    """Two leading digits, rounded up: an estimate that does not pretend.

    Examples
    --------
    >>> round_up(123456)
    130000
    """
    if not np.isfinite(n) or n <= 0:
        return 0
    digits = 10 ** max(int(np.floor(np.log10(n))) - 1, 0)
    return int(np.ceil(n / digits) * digits)


def _bend(risk: Risk, theta: Floats, direction: Floats) -> float:
    """Standard deviation over records of the curvature along a direction (difference of scores)."""
    step = 1e-4 * direction
    total = square = 0.0
    for high, low in zip(risk.score_blocks(theta + step), risk.score_blocks(theta - step), strict=True):
        bend = direction @ (high - low) / 2e-4
        total, square = total + float(bend.sum()), square + float(bend @ bend)
    return float(np.sqrt(max(square / risk.n - (total / risk.n) ** 2, 0.0)))


def curvature_error(risk: Risk, solution: Solution) -> float:
    """Relative standard error of the corrected curvature in its weakest direction (inf if not positive).

    Above a third the sandwich is unreliable: 95 % intervals covered 81-92 % in simulations, else 93-97 %.

    Examples
    --------
    >>> curvature_error.__name__
    'curvature_error'
    """
    values, vectors = np.linalg.eigh(solution.hessian)
    if values[0] <= 0.0:
        return float("inf")
    return _bend(risk.thinned(_SAMPLE), solution.theta, vectors[:, 0]) / float(np.sqrt(risk.n) * values[0])


def records_needed(risk: Risk, naive: Risk, theta: Floats) -> int:
    """Return about how many records make the corrected curvature at theta safely positive.

    Examples
    --------
    >>> records_needed.__name__
    'records_needed'
    """
    few, flat = risk.thinned(_SAMPLE), naive.thinned(_SAMPLE)
    matrix = flat.designs[0].matrix
    values, vectors = np.linalg.eigh(matrix @ matrix.T / flat.n)
    root = vectors * np.sqrt(np.maximum(values, 1e-12 * values[-1]))
    inverse = vectors / np.sqrt(np.maximum(values, 1e-12 * values[-1]))
    noise, turn = np.linalg.eigh(inverse.T @ np.diag(risk.variances.sum(axis=0)) @ inverse)
    share = np.clip(1.0 - noise, 0.05, 1.0)
    restored = inverse @ turn @ ((turn.T @ root.T @ theta) / share)
    hessian, needed = flat.hessian(theta), 1.0
    for direction, part in zip((inverse @ turn).T, share, strict=True):
        curvature = max(float(direction @ hessian @ direction) * part, 1e-300)
        needed = max(needed, 9.0 * (_bend(few, restored, direction) / curvature) ** 2)
    return round_up(needed)


def report_solution(
    solution: Solution, risk: Risk, naive: Risk, start: Floats, spread: float, bound_text: str
) -> dict[str, Any]:
    """Warn where a corrected fit is not usable; return what was found for `diagnostics_`.

    Parameters
    ----------
    solution : Solution
    risk, naive : Risk
        Corrected and uncorrected risk.
    start : ndarray
        Naive estimate, where curvature is compared.
    spread : float
        Predicted standard error of the slopes as a vector, over their size (inf if not available).
    bound_text : str
        How the parameter set was bounded.

    Examples
    --------
    >>> report_solution.__name__
    'report_solution'
    """
    found: dict[str, Any] = {
        "converged": solution.converged,
        "iterations": solution.iterations,
        "at_bound": bool(solution.at_bound.any()),
        "positive_curvature": solution.positive,
        "smallest_curvature": float(np.linalg.eigvalsh(solution.hessian)[0]),
        "relative_standard_error": spread,
        "curvature_error": curvature_error(risk, solution),
        "n_needed": None,
    }
    reasons = []
    if not solution.converged:
        reasons.append("the search did not converge")
    if found["at_bound"]:
        reasons.append(f"the estimate lies on the boundary of the parameter set ({bound_text})")
    if not solution.positive:
        reasons.append("the corrected curvature is not positive")
    if not reasons and spread > 1.0:
        reasons.append("the predicted standard error exceeds the size of the coefficients")
    uncertain = found["curvature_error"]
    if not reasons and uncertain > 1.0 / 3.0:
        reasons.append(f"the corrected curvature is only known to {100 * uncertain:.0f} %")
    if reasons:
        needed = round_up(9.0 * risk.n * max(min(spread, 30.0), min(uncertain, 30.0)) ** 2)
        if not solution.interior:
            needed = records_needed(risk, naive, start)
        found["n_needed"] = needed
        warnings.warn(
            f"{risk.n:,} released records are too few for this noise: {'; '.join(reasons)}. This noise needs "
            f"roughly n = {max(needed, 2 * risk.n):,}. Standard errors are not to be trusted; use "
            "stabilize='auto' for a shrunken point estimate, fewer columns, or less noise.",
            SmallSampleWarning,
            stacklevel=5,
        )
    return found


def report_plain(solution: Solution, problem: Problem, names: list[str]) -> dict[str, Any]:
    """Warn about an uncorrected fit whose numbers mislead: separation, collinearity, exact fit.

    Examples
    --------
    >>> report_plain.__name__
    'report_plain'
    """
    risk = problem.risk
    corrected = risk.terms != problem.naive.terms
    if solution.at_bound.any() and not corrected:
        warnings.warn(
            f"the estimate lies on the boundary of the parameter set ({problem.bound_text}): the classes are "
            "perfectly separated, or the bound is too small. Standard errors are infinite; use alpha > 0 "
            "or a larger bound.",
            SmallSampleWarning,
            stacklevel=5,
        )
    elif not solution.converged and not corrected:
        warnings.warn(
            "the search did not converge; rescale or drop columns.", SmallSampleWarning, stacklevel=5
        )
    gram = problem.naive.designs[0].matrix @ problem.naive.designs[0].matrix.T / risk.n
    lost = problem.flat | (unidentified(gram + np.diag(problem.flat)) if risk.n > risk.size else True)
    lost = lost[problem.lead :]
    if lost.any():
        listed = ", ".join(name for name, gone in zip(names, lost, strict=True) if gone)
        warnings.warn(
            f"{int(lost.sum())} coefficients are not identified by {risk.n:,} records ({listed[:200]}): "
            "columns are constant, collinear or more than the records. Their standard errors are infinite.",
            RankDeficiencyWarning,
            stacklevel=5,
        )
    elif risk.labels is None and np.abs(risk.designs[0].index(solution.theta)).max(initial=0.0) < 1e-9:
        warnings.warn(
            "the residuals are all zero: the fit is exact, and standard errors of 0 describe no uncertainty.",
            RankDeficiencyWarning,
            stacklevel=5,
        )
    return {
        "converged": solution.converged,
        "iterations": solution.iterations,
        "at_bound": bool(solution.at_bound.any()),
        "positive_curvature": solution.positive,
        "smallest_curvature": float(np.linalg.eigvalsh(solution.hessian)[0]),
        "n_needed": None,
    }
