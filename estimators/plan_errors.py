r"""Predicted standard errors of a fit under a noise law: the sandwich ``V^-1 A V^-1 / n`` integrated over a design.

V is the curvature of the raw loss (a correction changes no expectation), A the covariance of the corrected score. For
a squared loss A is exact: with residual r, noise z and ``e = a'z``, ``a = (-b, 1)``, the corrected score is
``x r + (x e + z_x r) + (z_x e - E z_x e)`` up to its sign; noise is symmetric, so odd moments vanish, and with
``S = Cov z``, parts S_p and their kappa_p (`plan_noise`)

    A = Cov(x r) + E xx' a'Sa + E r^2 S_xx + E[x r] (Sa)_x' + (Sa)_x E[x r]' + Q,
    Q_jk = S_jk a'Sa + (Sa)_j (Sa)_k + sum_p (kappa_p - 1) (S_p,jk a'S_p a + 2 (S_p a)_j (S_p a)_k).

Other losses take A from the scores of noised records, with random numbers that all mechanisms share; the error that
is left is estimated from batches. A check loss has the bandwidth that a fit to n records would choose. Where the
curvature at the truth would be known to worse than a third (`diagnostics`) is where the search for the records that a
fit needs starts (`plan_needed`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from privfit.estimators.bandwidth import auto_bandwidth
from privfit.estimators.corrections import Term
from privfit.estimators.diagnostics import UNCERTAIN, curvature_error
from privfit.estimators.errors import CapabilityError
from privfit.estimators.losses import SquaredLoss
from privfit.estimators.losses.base import IndexLoss
from privfit.estimators.noise import NoiseModel
from privfit.estimators.plan_design import Design
from privfit.estimators.plan_noise import CommonNumbers, mixing_moments
from privfit.estimators.plan_problem import check_identified, posed, standard
from privfit.estimators.problem import Problem, Sample
from privfit.estimators.risk import Risk
from privfit.estimators.solver import Solution
from privfit.estimators.strata import Design as Matrix

__all__ = ["CURVATURE_WIDTH", "Prediction", "predict_regression", "prediction_at"]

Floats = NDArray[np.float64]
_BATCHES = 20
CURVATURE_WIDTH = 0.25
"""Bandwidth in residual standard deviations at which the curvature of a check loss is read: its bias, about
``2 h^4`` of a normal density for a kernel of order 4, is below 1 %."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """Predicted covariance of the estimates from n records.

    Attributes
    ----------
    covariance : ndarray, shape (p, p)
    monte_carlo : float
        Relative standard error of the largest standard error, from the draws (0: exact given the design).
    needed : float
        Records with which curvature and slopes at the truth reach the limits of `diagnostics` (0 without noise).
    bandwidth : float
        Smoothing of a check loss, in the units of the response (0: none).

    Examples
    --------
    >>> Prediction(4 * np.eye(1), 0.0, 0.0).standard_errors
    array([2.])
    """

    covariance: Floats
    monte_carlo: float
    needed: float
    bandwidth: float = 0.0

    @property
    def standard_errors(self) -> Floats:
        """Standard errors, shape (p,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)), float)


def predict_regression(task: Any, design: Design, model: NoiseModel, numbers: CommonNumbers, n: int) -> Prediction:
    """Predict the covariance of a regression's coefficients.

    Parameters
    ----------
    task : IndexRegression
        Its correction, intercept and loss are used; penalties are not.
    design : Design
    model : NoiseModel
    numbers : CommonNumbers
    n : int
        Records.

    Raises
    ------
    CapabilityError
        If the loss has no exact inverse under this noise.

    Examples
    --------
    >>> predict_regression.__name__
    'predict_regression'
    """
    if model.moments_only and not task._quadratic:
        raise CapabilityError(
            f"{type(task).__name__} has no exact inverse under DiscreteLaplace noise: plan with Laplace."
        )
    if task._quadratic and task.correction == "exact":
        return _squares(task, design, model, n)
    return _by_draws(task, design, model, numbers, n)


def _squares(task: Any, design: Design, model: NoiseModel, n: int) -> Prediction:
    assert design.response is not None
    lead, d = int(bool(task.fit_intercept)), design.x.shape[1]
    x = np.column_stack([np.ones(len(design.x)), design.x]) if lead else design.x
    a = np.append(-design.theta[lead:], 1.0)
    r = design.response - x @ design.theta
    gram, mean = x.T @ x / len(x), x.T @ r / len(x)
    score = (x * r[:, None]).T @ (x * r[:, None]) / len(x) - np.outer(mean, mean)
    parts = [(np.diag(m * part.variances), kappa) for part, (m, kappa) in _moments(model)]
    total = np.sum([s for s, _ in parts], axis=0) if parts else np.zeros((d + 1, d + 1))
    quartic = total * (a @ total @ a) + np.outer(total @ a, total @ a)
    for s, kappa in parts:
        quartic = quartic + (kappa - 1.0) * (s * (a @ s @ a) + 2.0 * np.outer(s @ a, s @ a))
    by_noise = float(np.mean(r**2)) * total + quartic
    added = gram * (a @ total @ a)
    added[lead:, lead:] += by_noise[:d, :d]
    mixed = np.zeros_like(gram)
    mixed[:, lead:] = np.outer(mean, (total @ a)[:d])
    if np.linalg.cond(gram) > 1e14:
        raise ValueError("the design must identify every coefficient: columns are constant or collinear.")
    inverse = np.linalg.inv(gram)
    covariance = inverse @ (score + added + mixed + mixed.T) @ inverse / n
    if not parts:
        return Prediction(covariance, 0.0, 0.0)
    own = np.sqrt(np.var(design.x, axis=0) + np.diag(total)[:-1]) / np.sqrt(np.var(design.response) + total[-1, -1])
    needed = max(_squares_needed(x, parts, lead), n * _spread(covariance, design.theta, lead, own) ** 2)
    return Prediction(covariance, 0.0, needed)


def _spread(covariance: Floats, theta: Floats, lead: int, scale: Floats) -> float:
    """Standard error of the slopes as a vector over their size, in standard units (see `diagnostics`)."""
    size = max(float(np.linalg.norm(theta[lead:] * scale)), 1.0)
    return float(np.sqrt(np.diag(covariance)[lead:] @ scale**2)) / size


def _moments(model: NoiseModel) -> list[Any]:
    return [(part, mixing_moments(part.factor)) for part in model.parts]


def _squares_needed(x: Floats, parts: list[Any], lead: int) -> float:
    """Records that make the smallest curvature, in units of the released columns, known to a third."""
    noise = np.sum([s for s, _ in parts], axis=0)[:-1, :-1]
    centre = x[:, lead:].mean(axis=0) if lead else np.zeros(x.shape[1])
    z = x[:, lead:] - centre
    spread = np.sqrt((z**2).mean(axis=0) + np.diag(noise))
    values, vectors = np.linalg.eigh((z / spread).T @ (z / spread) / len(z))
    v = vectors[:, 0] / spread
    u, own = z @ v, [(float(v @ s[:-1, :-1] @ v), kappa) for s, kappa in parts]
    s2 = sum(s for s, _ in own)
    variance = np.var(u**2) + 4 * np.mean(u**2) * s2 + 2 * s2**2 + sum(3 * (kappa - 1) * s**2 for s, kappa in own)
    return float(variance / (UNCERTAIN * values[0]) ** 2)


def _by_draws(task: Any, design: Design, model: NoiseModel, numbers: CommonNumbers, n: int) -> Prediction:
    assert design.response is not None
    task = clone(task)
    noise, response = numbers.noise(model.parts), design.response
    linear = bool(task._is_label or task._is_linear)
    response = numbers.flipped(response, model.keep) if task._is_label else response + noise[:, -1]
    response = np.asarray(task._read_response(response, model), float)
    unit = float(task._unit) if task._is_linear else 1.0  # a rate is fitted to the response over its mean
    x = design.x + noise[:, :-1]
    problem = posed(task, [Sample.of(x, response, model)], linear)
    c = problem.coordinates
    theta = standard(design.theta, problem, unit)
    raw = _raw_risk(problem, design, linear, unit)
    loss, smooth = _losses(task, problem, raw, theta, model, n)
    risk = problem.risk.with_(loss=loss)
    if not risk.admits(theta):
        raise ValueError(
            f"the corrected loss of {type(task).__name__} has no finite variance under this noise at these "
            "coefficients. Use less noise, or columns that matter less."
        )
    curvature = raw.with_(loss=smooth).hessian(theta)
    check_identified(curvature)
    width = float(getattr(loss, "bandwidth", 0.0)) * c.response_scale
    return prediction_at(risk, problem, theta, curvature, design, model, n, width)


def prediction_at(
    risk: Risk,
    problem: Problem,
    theta: Floats,
    curvature: Floats,
    design: Design,
    model: NoiseModel,
    n: int,
    width: float,
) -> Prediction:
    """Put a prediction together from the corrected scores of the records of `risk` and the curvature of the raw loss.

    Examples
    --------
    >>> prediction_at.__name__
    'prediction_at'
    """
    c = problem.coordinates
    scores = c.matrix @ np.linalg.solve(curvature, risk.scores(theta))
    covariance = np.cov(scores, bias=True).reshape(theta.size, theta.size) / n
    needed = 0.0
    if model.parts and risk.corrects and theta.size > problem.lead:
        error = curvature_error(risk, _at_truth(theta, curvature))
        spread = _spread(covariance, design.theta, problem.lead, c.scale / c.response_scale)
        needed = max(risk.n * (error / UNCERTAIN) ** 2, n * spread**2)
    return Prediction(covariance, _batch_error(scores), needed, width)


def _raw_risk(problem: Problem, design: Design, linear: bool, unit: float) -> Risk:
    """Risk of the records without noise, in the coordinates of the released ones."""
    assert design.response is not None
    c, response = problem.coordinates, design.response / unit
    matrix = Matrix(c.design(design.x, 1.0 if linear else -1.0), None if linear else c.response(response))
    size = problem.risk.size
    return Risk.of(
        SquaredLoss(),
        [Term(1.0, 0, ())],
        [matrix],
        np.zeros((0, size)),
        np.zeros(0),
        labels=response if linear else None,
    )


def _losses(
    task: Any, problem: Problem, raw: Risk, theta: Floats, model: NoiseModel, n: int
) -> tuple[IndexLoss, IndexLoss]:
    """Loss of a fit to n records, and one to read the curvature with."""
    task.noise_ = model
    if not hasattr(task, "bandwidth"):
        loss = task._loss(problem)
        return loss, loss
    sigma = float(np.std(raw.design.index(theta)))
    unit = problem.coordinates.response_scale
    width = task.bandwidth
    if isinstance(width, str):
        width = unit * _bandwidth(problem.risk, raw, theta, sigma, n)
    loss = task.set_params(bandwidth=width)._loss(problem)
    return loss, task.set_params(bandwidth=max(width, CURVATURE_WIDTH * sigma * unit))._loss(problem)


def _bandwidth(risk: Risk, raw: Risk, theta: Floats, sigma: float, n: int) -> float:
    """What `quantile_search.pilot_bandwidth` finds in n records, from the true residual and the true coefficients."""
    if not risk.corrects:
        return float(sigma * n**-0.4)
    released = risk.naive()
    spread = float(np.std(released.design.index(theta)))
    share = float(np.linalg.eigvalsh(raw.gram())[0] / np.linalg.eigvalsh(released.gram())[-1])
    return max(auto_bandwidth(g, sigma, spread, min(max(share, 0.05), 1.0), n) for g in risk.symbols(theta))


def _at_truth(theta: Floats, curvature: Floats) -> Solution:
    inside = np.zeros(theta.size, bool)
    return Solution(theta, 0.0, np.zeros(theta.size), curvature, True, inside, True, 0)


def _batch_error(scores: Floats) -> float:
    """Largest relative standard error of a standard error, from batches of records."""
    batches = np.stack([batch.var(axis=1) for batch in np.array_split(scores, _BATCHES, axis=1)])
    relative = batches.std(axis=0, ddof=1) / np.sqrt(_BATCHES) / batches.mean(axis=0)
    return float(0.5 * relative.max())
