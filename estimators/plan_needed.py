r"""Records from which on fits stop to warn, from trial fits.

A fit of n records minimises the mean of n corrected losses. Its law is imitated by far fewer records: m noised ones
beside raw ones, ``N = sqrt(n m)`` together. With ``w = m/N`` the mean over all of them is

    w (mean of m corrected losses) + (1 - w) (mean raw loss),

which has the same expectation, since a correction changes none, and the covariance ``w^2 C/m = C/n`` of n noised
records (the raw ones are the same in all trials). Such mixtures are fitted from the coefficients that made them (an
estimator's own search from the naive fit ended in the same verdict in 120 of 120 trials, in three times the time); the
variances of score and curvature at the estimate, which few records of heavy-tailed noise tell badly, are those of a
larger pool of noised records. The answer is an n at which fewer than one trial fit in ten would warn.

A formula at the true coefficients finds only where trials start: fitted coefficients vary, and the weakest of several
directions is the one that chance made weak. Together these move the number up by 1.3 to 16 times in trials over
designs, losses and laws.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from privfit.estimators.diagnostics import UNCERTAIN, curvature_error
from privfit.estimators.inference import sandwich
from privfit.estimators.noise import NoiseModel, resolve_noise
from privfit.estimators.plan_design import Design
from privfit.estimators.plan_noise import CommonNumbers
from privfit.estimators.plan_problem import standard
from privfit.estimators.problem import Problem, Sample, build_problem
from privfit.estimators.risk import Risk
from privfit.estimators.solver import minimise

__all__ = ["CLOSE", "TRIALS", "records_without_warning", "share_of_warnings"]

Floats = NDArray[np.float64]
TRIALS = 40
_ALLOWED = 3
"""Of `TRIALS` that may warn."""
_NOISED, _POOL = 1000, 8000
_LARGEST = 4e6
"""Trials of more records would be slow: beyond, the formula times the largest ratio that was met."""
_RATIO = 16.0
_MARGIN = 0.8
"""For fits that also choose a bandwidth: their curvature errors spread more than those of trials at one bandwidth (a
quarter of median fits warned where 3 of 40 trials did)."""
CLOSE = 1.8
"""Ratio up to which the number is narrowed down."""


def records_without_warning(task: Any, design: Design, model: NoiseModel, first: float, bandwidth: Any) -> float:
    """Return an n at which less than a tenth of the trial fits would warn, to a factor of 1.8 on the safe side.

    Parameters
    ----------
    task : IndexRegression
    design : Design
    model : NoiseModel
    first : float
        Where curvature and coefficients at the truth pass the limits of `diagnostics`.
    bandwidth : callable
        From n to the bandwidth of a fit, in the units of the response (0: none).

    Examples
    --------
    >>> records_without_warning.__name__
    'records_without_warning'
    """
    passes, fails = math.inf, max(first, 10.0)
    n = 6.0 * fails
    while passes > CLOSE * fails:
        if n > _LARGEST:
            return min(passes, _RATIO * max(first, 10.0)) if first > _LARGEST / _RATIO else max(n, _LARGEST)
        if share_of_warnings(task, design, model, n, bandwidth(round(n)), _ALLOWED) > _ALLOWED / TRIALS:
            fails = n
        else:
            passes = n
        n = math.sqrt(passes * fails) if math.isfinite(passes) else 3.0 * fails
    return passes


def share_of_warnings(
    task: Any, design: Design, model: NoiseModel, n: float, bandwidth: float = 0.0, enough: int = TRIALS
) -> float:
    """Return the share of trial fits of n records that would warn; a lower bound once more than `enough` do.

    Parameters
    ----------
    task, design, model
        As for `records_without_warning`.
    n : float
    bandwidth : float
    enough : int

    Examples
    --------
    >>> share_of_warnings.__name__
    'share_of_warnings'
    """
    count = 0
    for trial in range(TRIALS):
        count += _warns(task, design, model, n, bandwidth, trial)
        if count > enough:
            break
    return count / TRIALS


def _warns(task: Any, design: Design, model: NoiseModel, n: float, bandwidth: float, trial: int) -> bool:
    own = clone(task)
    if bandwidth > 0.0:
        own.set_params(bandwidth=bandwidth)
    own.noise_ = model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            problem = own._pose(_mixture(own, design, model, n, trial))
            theta = standard(design.theta, problem, float(getattr(own, "_unit", 1.0)))
            mixed, pool = _parted(problem.risk)
            solution = minimise(mixed, theta, problem.bound, tolerance=1e-6, max_iterations=25)
        except (ValueError, ArithmeticError):  # for instance a corrected rate without a finite variance
            return True
    lead = problem.lead
    limit = UNCERTAIN * (_MARGIN if bandwidth > 0.0 else 1.0)
    if not solution.interior or curvature_error(pool, solution) * math.sqrt(pool.n / n) > limit:
        return True
    covariance = sandwich(solution.hessian, pool.score_covariance(solution.theta), round(n))[lead:, lead:]
    return bool(np.trace(covariance) > max(float(np.linalg.norm(solution.theta[lead:])), 1.0) ** 2)


def _parted(risk: Risk) -> tuple[Risk, Risk]:
    """The mixture, and the pool of noised records."""
    first, last = risk.strata[:-1], risk.strata[-1:]
    return Risk(risk.loss, first, risk.size, risk.penalty), Risk(risk.loss, last, risk.size)


def _mixture(own: Any, design: Design, model: NoiseModel, n: float, trial: int) -> Problem:
    """Noised records, raw ones, and a pool of noised ones (see the module)."""
    assert design.response is not None
    columns = design.x.shape[1]
    noised = round(min(n, max(_NOISED, 20 * design.theta.size)))
    raw = max(round(math.sqrt(n * noised)) - noised, 0)
    rng = np.random.default_rng([trial, 17])
    everyone = np.arange(raw) % len(design.x) if raw > len(design.x) else np.linspace(0, len(design.x) - 1, raw)
    few, exact = rng.integers(0, len(design.x), noised), everyone.astype(int)
    pool = np.linspace(0, len(design.x) - 1, min(len(design.x), _POOL)).astype(int)
    chosen = np.concatenate([few, pool])
    numbers = CommonNumbers.draw(chosen.size, columns, int(rng.integers(2**31)))
    noise = numbers.noise(model.parts)
    x, truth = design.x[chosen] + noise[:, :-1], design.response[exact]
    y = design.response[chosen]
    y = numbers.flipped(y, model.keep) if own._is_label else y + noise[:, -1]
    plain = resolve_noise(None, list(range(columns)), "y", label=own._is_label)
    if own._is_label and not hasattr(own, "_signs"):
        answers = np.asarray(own._read_response(truth, plain), float) if raw else truth
        response = np.asarray(own._read_response(y, model), float)  # last: the estimator keeps what it learns
    else:
        if own._is_label:  # flips are corrected in the loss, of all records
            truth = np.where(rng.random(raw) < model.keep, truth, 1.0 - truth)
        both = np.asarray(own._read_response(np.concatenate([y, truth]), model), float)
        response, answers = both[: chosen.size], both[chosen.size :]
    samples = [Sample.of(x[:noised], response[:noised], model)]
    samples += [Sample.of(design.x[exact], answers, plain)] if raw else []
    samples += [Sample.of(x[noised:], response[noised:], model)]
    return build_problem(
        samples,
        correction=own.correction,
        draws=int(own.draws),
        label=bool(own._is_label or own._is_linear),
        intercept=bool(own.fit_intercept),
        bound=None,
        default_bound=own._default_bound(model),
        random_state=trial,
    )
