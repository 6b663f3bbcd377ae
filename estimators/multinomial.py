r"""Fit of a logistic regression with more than two classes: search, sandwich, shapes of the answer.

Parameters are log odds against the first class, as in statsmodels' `MNLogit`; ``coef_`` has one row for each class
and rows that sum to 0, as scikit-learn's. The ridge acts on the latter: ``sum_k |w_k|^2 = v'(I - 11'/K)v``.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.clusters import between_rows
from privfit.estimators.diagnostics import UNCERTAIN, curvature_error, rounded_need
from privfit.estimators.efficiency import compare, unavailable, unchanged
from privfit.estimators.errors import CapabilityError, RankDeficiencyWarning, SmallSampleWarning
from privfit.estimators.inference import sandwich, unidentified
from privfit.estimators.multinomial_risk import PairsRisk, SoftmaxRisk, indicator_weights, split_classes
from privfit.estimators.noise import NoiseModel
from privfit.estimators.problem import Problem, Sample, build_problem
from privfit.estimators.solver import Solution, minimise, one_step, solve

__all__ = ["fit_multinomial"]

Floats = NDArray[np.float64]


def fit_multinomial(model: Any, X: Floats, codes: NDArray[np.intp], noise: NoiseModel, names: Sequence[Any]) -> None:
    """Fit `model` (its parameters say how) and store estimates, covariance, efficiency and diagnostics.

    Parameters
    ----------
    model : LogisticRegression
        With `classes_`.
    X : ndarray, shape (n, d)
    codes : ndarray of int, shape (n,)
        Position of each released label in `classes_`.
    noise : NoiseModel
    names : sequence
        Names of the columns.

    Raises
    ------
    CapabilityError
        For parameters that more than two classes do not have.

    Examples
    --------
    >>> fit_multinomial.__name__
    'fit_multinomial'
    """
    for wrong, name in ((model.stabilize is not None, "stabilize"), (getattr(model, "_keep", False), "keep_records")):
        if wrong:
            raise CapabilityError(f"{name} is not available for more than two classes. Leave it out, or use alpha > 0.")
    classes, correction = model.classes_.size, model.correction
    problem = build_problem(
        [Sample.of(X, codes.astype(float), noise)],
        correction=correction,
        draws=int(model.draws),
        label=True,
        intercept=bool(model.fit_intercept),
        bound=model.bound,
        default_bound=10.0 if noise.noisy else 30.0,
        random_state=model.random_state,
    )
    keep = 1.0 if correction == "naive" else noise.keep
    strata = split_classes(problem.risk.strata[0], codes, classes)
    indicators = indicator_weights(classes, keep)
    penalty = _penalty(problem, float(model.alpha), classes)
    risk: Any = (PairsRisk if problem.risk.corrects else SoftmaxRisk)(strata, indicators, penalty)
    solution = _search(risk, np.tile(problem.bound, classes - 1))
    clusters = getattr(model, "_codes", None)
    between = between_rows(
        risk, solution.theta, None if clusters is None else clusters[np.argsort(codes, kind="stable")]
    )
    standard = sandwich(solution.hessian, risk.score_covariance(solution.theta) + between, risk.n)
    # a constant column has the curvature of its stand-in penalty alone
    flat = np.tile(problem.flat, classes - 1)
    standard[flat, :] = standard[:, flat] = 0.0
    if solution.at_bound.any() or (noise.noisy and not solution.interior):
        standard = np.diag(np.full(risk.size, np.inf))
    standard[flat, flat] = np.inf
    model.noise_, model._n_records = noise, risk.n
    model._names = [
        f"{label}: {name}"
        for label in model.classes_[1:]
        for name in [*(["const"] if model.fit_intercept else []), *map(str, names)]
    ]
    _store(model, solution, problem, standard)
    _report(model, solution, risk, problem)
    _efficiency(model, solution, risk, problem)


def _penalty(problem: Problem, alpha: float, classes: int) -> Floats:
    own = np.zeros(problem.risk.size)
    own[problem.lead :] = alpha / problem.coordinates.scale**2
    centred = np.eye(classes - 1) - np.full((classes - 1, classes - 1), 1.0 / classes)
    # penalties of the problem itself hold the coefficients of constant columns at 0
    return np.asarray(
        np.kron(centred, np.diag(own)) + np.kron(np.eye(classes - 1), np.diag(problem.risk.penalty)), float
    )


def _search(risk: Any, bound: Floats) -> Solution:
    """Likelihood: one convex search. Pairs: naive fit, then the corrected risk from there and from one step on."""
    zero = np.zeros(risk.size)
    if isinstance(risk, SoftmaxRisk):
        return minimise(risk, zero, bound)  # type: ignore[arg-type]
    start = minimise(risk.naive(), zero, bound, tolerance=1e-6).theta
    stepped = one_step(risk, start)
    return solve(risk, [start] if stepped is None else [stepped, start], bound)


def _store(model: Any, solution: Solution, problem: Problem, standard: Floats) -> None:
    coordinates, lead = problem.coordinates, problem.lead
    rows = solution.theta.reshape(-1, problem.risk.size)
    v = np.array([coordinates.original(row) for row in rows])
    model.params_ = v.ravel()
    centred = np.concatenate([np.zeros((1, v.shape[1])), v])
    centred -= centred.mean(axis=0)
    model.intercept_ = centred[:, 0] if lead else np.zeros(len(centred))
    model.coef_ = np.ascontiguousarray(centred[:, lead:])
    model.cov_params_ = _original(standard, problem, len(rows))
    model.converged_, model.n_iter_ = solution.converged, max(solution.iterations, 1)


def _original(standard: Floats, problem: Problem, count: int) -> Floats:
    """Covariance in the units of the data, block by block; infinite variances stay and reach the intercepts."""
    p = problem.risk.size
    move = np.kron(np.eye(count), problem.coordinates.matrix)
    lost = ~np.isfinite(np.diag(standard))
    out = move @ np.where(np.isfinite(standard), standard, 0.0) @ move.T
    reached = np.zeros(lost.size, bool)
    for block in range(count):
        own = slice(block * p, (block + 1) * p)
        reached[own] = ~np.isfinite(np.diag(problem.coordinates.covariance(standard[own, own])))
    out[reached, :] = out[:, reached] = 0.0
    out[reached, reached] = np.inf
    return np.asarray((out + out.T) / 2.0, float)


def _report(model: Any, solution: Solution, risk: Any, problem: Problem) -> None:
    error = curvature_error(risk, solution)
    corrected = problem.risk.corrects or (model.noise_.keep < 1.0 and model.correction != "naive")
    found: dict[str, Any] = {
        "converged": solution.converged,
        "iterations": solution.iterations,
        "at_bound": bool(solution.at_bound.any()),
        "positive_curvature": solution.positive,
        "smallest_curvature": float(np.linalg.eigvalsh(solution.hessian)[0]),
        "curvature_error": error,
        "n_needed": None,
        "stabilised": False,
        "penalised": bool(model.alpha),
        "bound": problem.bound_text,
    }
    model.diagnostics_ = found
    bad = not solution.interior or error > UNCERTAIN
    if corrected and bad and not problem.collinear:
        needed = rounded_need(risk.n, error if solution.interior else np.inf)
        found |= {"n_needed": needed[0], "n_needed_is_bound": needed[1]}
        warnings.warn(
            f"{risk.n:,} released records are too few for this noise and {model.classes_.size} classes: the corrected "
            "curvature is not known to a third, or the search ended at the bound. Standard errors are not to be "
            "trusted; use alpha > 0, merge classes, fewer columns, or less noise.",
            SmallSampleWarning,
            stacklevel=5,
        )
    elif solution.at_bound.any() or not solution.converged:
        warnings.warn(
            f"the estimate lies on the boundary of the parameter set ({problem.bound_text}) or the search did not "
            "converge: the classes are perfectly separated, or the bound is too small. Standard errors are infinite; "
            "use alpha > 0 or a larger bound.",
            SmallSampleWarning,
            stacklevel=5,
        )
    gram = problem.risk.gram() + np.diag(problem.flat)
    if problem.flat.any() or problem.collinear or unidentified(gram).any():
        warnings.warn(
            f"coefficients are not identified by {risk.n:,} records: columns are constant, collinear or more than the "
            "records. Their standard errors are infinite.",
            RankDeficiencyWarning,
            stacklevel=5,
        )


def _efficiency(model: Any, solution: Solution, risk: Any, problem: Problem) -> None:
    size, said = solution.theta.size, "information equality"
    if not model.noise_.noisy:
        model.efficiency_ = unchanged(size, risk.n)
        return
    if model.diagnostics_["n_needed"]:
        model.efficiency_ = unavailable(size, risk.n, said)
        return
    information = solution.hessian
    if isinstance(risk, PairsRisk):
        information = risk.information(solution.theta) + risk.penalty
        said = "information of the likelihood from that of pairs, with class shares constant over the columns"
    raw = _original(sandwich(information, information - risk.penalty, risk.n), problem, model.classes_.size - 1)
    model.efficiency_ = compare(model.cov_params_, raw, risk.n, said)
