r"""Huber regression on released columns and a released response.

The Huber loss is ``r^2/2`` up to a threshold t, linear beyond; ``f''`` is a box. Zero-inflated noise has an exact
inverse, whose score and curvature are closed forms. Operators that take more derivatives (Laplace noise of any shape)
would put point masses into the score: there the loss is averaged over a narrow kernel of order 4 and inverted
exactly. Residuals that are symmetric about 0 keep their centre: the kernel's bias cancels between the two thresholds.

The automatic threshold is 1.345 s (95 % efficiency for normal errors), s by Huber's proposal 2:
``E min(r^2, (1.345 s)^2) n/(n-p) = 0.7102 s^2``, whose left side is estimated without bias by the same operators.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.validation import check_number
from privfit.estimators.linear_prediction import LinearPrediction
from privfit.estimators.losses import ClippedSquareLoss, HuberLoss, SmoothedLoss, SquaredLoss
from privfit.estimators.losses.base import IndexLoss
from privfit.estimators.losses.piecewise import PiecewiseLoss
from privfit.estimators.problem import Problem
from privfit.estimators.regression import IndexRegression
from privfit.estimators.risk import Risk
from privfit.estimators.smoothed_search import Pilot, check_width, resolvents_only
from privfit.estimators.solver import Solution, minimise, polish, solve
from privfit.estimators.squared_score import ShiftedLoss

__all__ = ["HuberRegression"]

Floats = NDArray[np.float64]
_TUNING = 1.345
_WARM = 30_000
_WARM_ON_DISK = 100_000


def _normal_share(c: float) -> tuple[float, float]:
    """``E min(Z^2, c^2)`` and ``P(|Z| > c)`` of a standard normal Z."""
    tail = math.erfc(c / math.sqrt(2.0))
    return 1.0 - tail - 2.0 * c * math.exp(-c * c / 2.0) / math.sqrt(2.0 * math.pi) + c * c * tail, tail


def _tolerance(level: float) -> float:
    """Of the mean score, which is at most the threshold: outliers may make that tiny beside the response's spread."""
    return max(1e-9 * min(level, 1.0), 1e-15)


class HuberRegression(LinearPrediction, IndexRegression):
    """Robust linear regression with the Huber loss, corrected for the noise of a release.

    Parameters
    ----------
    threshold : "auto" or float
        Residual size beyond which the loss is linear, in units of the response. "auto": 1.345 times the robust scale
        of the residuals without noise (Huber's proposal 2). Under noise the scale starts from a corrected least-squares
        pilot, which outliers move: scale and bandwidth are then not below a fixed share of the residuals' standard
        deviation (contaminated data: a threshold of 12 to 20 in place of 1.4 with 1 % of the errors times 1e4, still
        valid intervals, 1.6 to 2.6 times as wide as the raw data's). Declare a tighter range of the response, or give
        `threshold` and `bandwidth`.
    noise, correction, fit_intercept, bound, alpha, stabilize, draws, random_state
        As for `LinearRegression`. Gaussian noise has no exact inverse here.
    bandwidth : "auto" or float
        Of the smoothing where the exact inverse needs one, in units of the response; "auto" follows
        `bandwidth.auto_bandwidth`.

    Attributes
    ----------
    coef_, intercept_, params_, cov_params_, efficiency_, converged_, diagnostics_
        As for `LinearRegression`; ``diagnostics_`` holds the ``threshold``, the residual ``scale`` (None if the
        threshold was given), the ``bandwidth`` (None if nothing is smoothed) and ``smoothing_bias``, an upper bound of
        the bias of the intercept for normal errors (0 if they are symmetric about 0). Standard errors take the
        threshold as fixed, which is right for symmetric errors.

    Examples
    --------
    >>> x = np.arange(5.0)[:, None]
    >>> HuberRegression(0.1).fit(x, [0.0, 1.0, 2.0, 3.0, 40.0]).coef_.round(2)
    array([1.05])
    """

    _kappa = 1.5

    def __init__(
        self,
        threshold: Any = "auto",
        *,
        noise: Any = None,
        correction: str = "exact",
        fit_intercept: bool = True,
        bandwidth: Any = "auto",
        bound: Any = None,
        alpha: float = 0.0,
        stabilize: Any = None,
        draws: int = 1,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.threshold = threshold
        self.noise = noise
        self.correction = correction
        self.fit_intercept = fit_intercept
        self.bandwidth = bandwidth
        self.bound = bound
        self.alpha = alpha
        self.stabilize = stabilize
        self.draws = draws
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("threshold", "bandwidth"):
            value = getattr(self, name)
            if not (isinstance(value, str) and value == "auto"):
                check_number(name, value, 0.0, low_open=True, hint="Or 'auto'.")

    def _pose(self, problem: Problem) -> Problem:
        """Choose bandwidth, scale and threshold from a corrected least-squares pilot."""
        pilot, unit = Pilot.of(problem), problem.coordinates.response_scale
        self._pilot, self._width, self._scale, self._start = pilot, 0.0, None, pilot.theta
        slopes = pilot.theta[problem.lead :].any() or not problem.risk.corrects
        if not (resolvents_only(problem.risk) and slopes):
            given = self.bandwidth != "auto"
            if given:
                check_width(self.bandwidth, problem)
            self._width = self.bandwidth / unit if given else pilot.bandwidth(problem.risk, jump=2)
        if self.threshold == "auto":
            self._scale = self._robust_scale(problem)
            self._level = _TUNING * self._scale
        else:
            self._level = self.threshold / unit
        return problem.with_loss(self._loss(problem))

    def _smoothed(self, loss: PiecewiseLoss) -> IndexLoss:
        return SmoothedLoss(loss, self._width) if self._width else loss

    def _loss(self, problem: Problem) -> IndexLoss:
        return self._smoothed(HuberLoss(self._level))

    def _robust_scale(self, problem: Problem) -> float:
        """Solve for the scale on a sample, then, from there, on all records if they are more."""
        few = problem.risk.thinned(_WARM_ON_DISK)
        found = self._alternated(few, problem.bound, self._pilot.theta, self._pilot.sigma**2)
        if few.n < problem.risk.n:
            found = self._alternated(problem.risk, problem.bound, *found)
        self._start, variance = found
        return math.sqrt(variance)

    def _alternated(self, risk: Risk, bound: Floats, theta: Floats, variance: float) -> tuple[Floats, float]:
        """Alternate Huber fits and single Newton steps of the scale's equation, with its slope for normal errors."""
        pilot = self._pilot
        share, tail = _normal_share(_TUNING)
        count = risk.n / max(risk.n - risk.size, 1)
        free = np.zeros(risk.size)
        low, high = (1e-4 if risk.corrects else 1e-24) * pilot.sigma**2, 4.0 * max(pilot.spread, pilot.sigma) ** 2
        tolerance = 1e-4 if risk.corrects else 1e-10  # of the scale, which needs coefficients to a tenth of it
        for _ in range(60):
            level = _TUNING * math.sqrt(variance)
            loss = self._smoothed(HuberLoss(level))
            enough = max(_tolerance(level), 0.1 * tolerance * level)
            theta = minimise(risk.with_(loss=loss), theta, bound, tolerance=enough).theta
            clipped = risk.with_(loss=self._smoothed(ClippedSquareLoss(level)), penalty=free).value(theta)
            step = (count * clipped - share * variance) / (share - _TUNING**2 * tail)
            last, variance = variance, min(max(variance + step, low, 0.05 * variance), high)
            if abs(variance - last) <= tolerance * variance:
                break
        return theta, variance

    def _search(self, problem: Problem) -> tuple[Solution, Floats]:
        """From the pilot, and from the naive fit."""
        risk, bound, tolerance = problem.risk, problem.bound, _tolerance(self._level)
        warm = _WARM if risk.held else _WARM_ON_DISK
        naive = minimise(problem.naive.thinned(warm), self._start, bound, tolerance=tolerance).theta
        starts, few = [self._start, naive] if risk.corrects else [self._start], risk.thinned(warm)
        if few is not risk:
            near = solve(few, starts, bound, tolerance=1e-6 * self._level)
            quick = polish(risk, near.theta, bound, tolerance=tolerance) if near.interior else None
            if quick is not None and quick.interior:
                return quick, naive
        return solve(risk, starts, bound, tolerance=tolerance), naive

    def _loss_unit(self, response_scale: float) -> float:
        return response_scale**2

    def _oracle_scores(self, risk: Risk, theta: Floats, curvature: Floats) -> tuple[Floats, str]:
        free = np.zeros(risk.size)
        gram = risk.with_(loss=SquaredLoss(), penalty=free).hessian(free)
        square = risk.with_(loss=self._smoothed(ClippedSquareLoss(self._level)), penalty=free).value(theta)
        return max(square, 0.0) * gram, "corrected mean squared score times the corrected Gram matrix (equal errors)"

    def _squared_scores(self, risk: Risk) -> Risk | None:
        return risk.with_(loss=ShiftedLoss([(1.0, self._smoothed(ClippedSquareLoss(self._level)), -2)]))

    def _extra_diagnostics(self, problem: Problem) -> dict[str, Any]:
        unit, pilot = problem.coordinates.response_scale, self._pilot
        # 0.32 sigma (h / sigma)^4 in the mean score (`bandwidth`), over the curvature 0.8
        bias = 0.4 * pilot.sigma * (self._width / pilot.sigma) ** 4 * unit
        return {
            "threshold": self._level * unit,
            "scale": None if self._scale is None else self._scale * unit,
            "bandwidth": self._width * unit or None,
            "smoothing_bias": bias,
        }
