r"""Predicted standard errors of models that choose a threshold or a bandwidth by a pilot: Huber and linear SVC.

As in `plan_errors`, with the loss that the estimator would pose. The pilot's numbers are taken from the design: the
residual's standard deviation from raw records, as released from noised ones. A threshold is that of the fit to the
raw records, held fixed, as in the estimator's standard errors.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from privfit.estimators.bandwidth import auto_bandwidth
from privfit.estimators.huber_regression import HuberRegression
from privfit.estimators.least_squares import least_squares
from privfit.estimators.linear_svc import LinearSVC
from privfit.estimators.losses import SquaredLoss
from privfit.estimators.losses.base import IndexLoss
from privfit.estimators.noise import NoiseModel, resolve_noise
from privfit.estimators.plan_design import Design
from privfit.estimators.plan_errors import CURVATURE_WIDTH, Prediction, prediction_at
from privfit.estimators.plan_noise import CommonNumbers
from privfit.estimators.plan_problem import check_identified, posed, standard
from privfit.estimators.problem import Problem, Sample
from privfit.estimators.risk import Risk

__all__ = ["POSED", "predict_posed"]

Floats = NDArray[np.float64]
POSED = (HuberRegression, LinearSVC)


def predict_posed(task: Any, design: Design, model: NoiseModel, numbers: CommonNumbers, n: int) -> Prediction:
    """Predict the covariance of the coefficients of one of `POSED`.

    Parameters
    ----------
    task : HuberRegression or LinearSVC
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
    >>> predict_posed.__name__
    'predict_posed'
    """
    assert design.response is not None
    own = clone(task)
    own._check_law(model)
    own.noise_ = model
    label = bool(own._is_label)
    if not label and own.threshold == "auto":
        own.set_params(threshold=_threshold(task, design))
    noise = numbers.noise(model.parts)
    y = numbers.flipped(design.response, model.keep) if label else design.response + noise[:, -1]
    plain = resolve_noise(None, list(range(design.x.shape[1])), "y", label=label)
    raw = Sample.of(design.x, np.asarray(own._read_response(design.response, plain), float), plain)
    noised = Sample.of(design.x + noise[:, :-1], np.asarray(own._read_response(y, model), float), model)
    problem = own._pose(posed(own, [noised, raw], label))
    c = problem.coordinates
    theta = standard(design.theta, problem)
    released, exact = (Risk(problem.risk.loss, [stratum], theta.size) for stratum in problem.risk.strata)
    sigma = _set_width(own, problem, released, exact, n)
    loss, width = own._loss(problem), own._width * c.response_scale
    curvature = exact.with_(loss=_raw_loss(own, problem, sigma)).hessian(theta)
    check_identified(curvature)
    return prediction_at(released.with_(loss=loss), problem, theta, curvature, design, model, n, width)


def _threshold(task: Any, design: Design) -> float:
    model = clone(task).set_params(noise=None, correction="exact").fit(design.x, design.response)
    return float(model.diagnostics_["threshold"])


def _set_width(own: Any, problem: Problem, released: Risk, exact: Risk, n: int) -> float:
    """Give the estimator the bandwidth of a fit to n records; returns the residual's standard deviation."""
    if own._is_label:
        kept, own._truth = own._truth, 1.0  # raw labels are true
        raw, own._truth = exact.with_(loss=own._pilot_loss()), kept
    else:
        raw = exact.with_(loss=SquaredLoss())
    seen = released.with_(loss=raw.loss).naive()
    theta = least_squares(raw, 0.0)[0]
    sigma = math.sqrt(2.0 * raw.value(theta))
    if own._width and own.bandwidth == "auto":
        spread = math.sqrt(max(2.0 * seen.value(theta), sigma**2))
        share = float(np.linalg.eigvalsh(raw.hessian(theta))[0] / np.linalg.eigvalsh(seen.hessian(theta))[-1])
        jump = 1 if own._is_label and own.loss == "hinge" else 2
        own._width = sigma * n**-0.4
        if released.corrects:
            own._width = max(
                auto_bandwidth(g, sigma, spread, min(max(share, 0.05), 1.0), n, jump) for g in released.symbols(theta)
            )
    return sigma


def _raw_loss(own: Any, problem: Problem, sigma: float) -> IndexLoss:
    """Loss of raw records: no flipped labels, and a kernel only where the curvature is a point mass."""
    width = own._width
    kinked = own._is_label and own.loss == "hinge"
    own._width = max(width, CURVATURE_WIDTH * sigma) if kinked else 0.0
    if own._is_label:
        own._truth = 1.0
    loss: IndexLoss = own._loss(problem)
    return loss
