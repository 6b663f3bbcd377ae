r"""Bias that the kernel of a smoothed check loss leaves in a fit, told by fits of wider kernels to the same records.

Let theta(h) be the fit at bandwidth h and ``c = 1.5``. A bias of order r, ``B(h) = C h^r``, grows by the factor
``c^r`` from each bandwidth to the next, so that with ``d_1 = theta(c h) - theta(h)``,
``d_2 = theta(c^2 h) - theta(c h)``

    B(h) = d_1 / (c^r - 1),      c^r = d_2 / d_1.

A smooth density has r = 4 (the order of the kernel); one that jumps or bends within the kernel's reach has less, so r
is taken from the data, within [1.5, 4]. Where the differences disagree in sign or ``d_2 > c^4 d_1``, the bias turns
within that reach (the lower quartile of exponential values) and B is the larger one of ``d_1 / (c^1.5 - 1)`` and
``d_2 / (c^1.5 (c^1.5 - 1))``. Fits use the same records: ``d_1`` is noisy by the scores' difference only,
``H^-1 Cov(s_(ch) - s_h) H^-1 / n``. One Newton step from theta(h) gives theta(c h), since the steps are small.

Where the bias is large beside the standard error, a narrower bandwidth trades it for variance: `narrowed` divides h by
c as long as the sum of squared bias and variance falls. What bias is left, as far as it is above its own noise, is
added to the covariance that intervals use: ``P(|Z + b| < 1.96 (1 + b^2)^(1/2)) >= 0.95`` for every b.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.diagnostics import curvature_error
from privfit.estimators.inference import sandwich
from privfit.estimators.losses.base import IndexLoss
from privfit.estimators.risk import Risk
from privfit.estimators.solver import Solution, polish, solve
from privfit.estimators.squared_score import ShiftedLoss

__all__ = ["Bias", "bandwidth_bias", "narrowed"]

Floats = NDArray[np.float64]
_STEP = 1.5
_ORDERS = (1.5, 4.0)
_MIXED = 1.0
_HARMLESS = 0.5
_NARROWER = 5
_CALM = 0.2
"""Largest relative error of the curvature at a bandwidth that is narrowed to; fits warn from a third on."""


@dataclass(frozen=True)
class Bias:
    """Bias of a bandwidth, per coefficient.

    Attributes
    ----------
    value, error : ndarray, shape (p,)
        Estimate and its standard error.
    variance : ndarray, shape (p,)
        Of the fit.

    Examples
    --------
    >>> Bias(np.array([3.0]), np.array([1.0]), np.array([4.0])).beyond_noise.round(3)
    array([2.828])
    """

    value: Floats
    error: Floats
    variance: Floats

    @property
    def beyond_noise(self) -> Floats:
        """The estimate, less what its own noise adds to its square; 0 where that is all."""
        return np.asarray(np.sign(self.value) * np.sqrt(np.maximum(self.value**2 - self.error**2, 0.0)), float)

    @property
    def ratio(self) -> Floats:
        """`beyond_noise` in standard errors of the fit."""
        return np.asarray(np.abs(self.beyond_noise) / np.sqrt(np.maximum(self.variance, 1e-300)), float)


def bandwidth_bias(risk: Risk, solution: Solution, family: Callable[[float], IndexLoss], h: float) -> Bias:
    """Estimate the bias of a fit at bandwidth h.

    Parameters
    ----------
    risk : Risk
        With the loss ``family(h)``.
    solution : Solution
        Its interior minimum.
    family : callable
        Loss at a bandwidth.
    h : float

    Examples
    --------
    >>> bandwidth_bias.__name__
    'bandwidth_bias'
    """
    theta, free = solution.theta, np.zeros(risk.size)

    def moved(width: float, narrower: IndexLoss) -> tuple[Floats, Floats]:
        """Newton step between the fits of two widths, and its standard error."""
        apart = risk.with_(loss=ShiftedLoss([(1.0, family(width), 0), (-1.0, narrower, 0)]), penalty=free)
        _, gradient, bend = apart.derivatives(theta, value=False)
        hessian = solution.hessian + bend
        if np.linalg.eigvalsh(hessian)[0] <= 0.0:
            hessian = solution.hessian
        covariance = sandwich(hessian, apart.score_covariance(theta), risk.n)
        step = np.asarray(-np.linalg.solve(hessian, gradient), float)
        return step, np.asarray(np.sqrt(np.maximum(np.diag(covariance), 0.0)), float)

    first, error = moved(_STEP * h, risk.loss)
    second, wide_error = moved(_STEP**2 * h, family(_STEP * h))
    low, high = (_STEP**r for r in _ORDERS)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(first != 0.0, second / first, np.inf)
    growth = np.clip(ratio, low, high)
    value, noise = first / (growth - 1.0), error / (growth - 1.0)
    # not of one order: the larger of what either difference tells, at a low order
    near, far = 1.0 / (low - 1.0), 1.0 / (low * (low - 1.0))
    mixed = (ratio <= 0.0) | (ratio > _MIXED * high)
    larger = np.abs(second) * far > np.abs(first) * near
    value = np.where(mixed, np.where(larger, second * far, first * near), value)
    noise = np.where(mixed, np.where(larger, wide_error * far, error * near), noise)
    variance = np.diag(sandwich(solution.hessian, risk.score_covariance(theta), risk.n))
    return Bias(value, noise, variance)


def narrowed(
    risk: Risk, solution: Solution, family: Callable[[float], IndexLoss], h: float, bound: Floats
) -> tuple[Solution, float, Bias]:
    """Narrow the bandwidth while that lowers squared bias plus variance; returns the fit, its bandwidth and its bias.

    Parameters
    ----------
    risk, solution, family, h
        As for `bandwidth_bias`.
    bound : ndarray, shape (p,)
        Of the search.

    Examples
    --------
    >>> narrowed.__name__
    'narrowed'
    """
    bias = bandwidth_bias(risk, solution, family, h)
    for _ in range(_NARROWER):
        if bias.ratio.max(initial=0.0) <= _HARMLESS:
            break
        own = risk.with_(loss=family(h / _STEP))
        found = polish(own, solution.theta, bound) or solve(own, [solution.theta], bound)
        if not found.interior or curvature_error(own, found) > _CALM:
            break
        other = bandwidth_bias(own, found, family, h / _STEP)
        cost, now = (mine.variance + mine.beyond_noise**2 for mine in (other, bias))
        if float(np.mean((cost - now) / bias.variance)) >= 0.0:
            break
        solution, h, bias = found, h / _STEP, other
    return solution, h, bias
