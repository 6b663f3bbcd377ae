r"""Quantile regression on released columns and a released response.

The check loss is smoothed by a fourth-order logistic kernel of bandwidth h: a rescaled logistic loss, so each
exact inverse applies to it, and gradient, Hessian and sandwich are analytic. `bandwidth.auto_bandwidth`
balances bias against the noise of the score and of the curvature. Without noise the exact vertex is found.
``correction="wsz"`` is the estimator of Wang, Stefanski & Zhu (2012), for comparison: `losses.kernel_check`.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.validation import check_number
from privfit.estimators.bandwidth import curvature_bandwidth
from privfit.estimators.bandwidth_bias import Bias, bandwidth_bias, narrowed
from privfit.estimators.errors import SmallSampleWarning
from privfit.estimators.linear_prediction import LinearPrediction
from privfit.estimators.losses import SmoothedCheckLoss, SmoothedLoss, SquaredLoss
from privfit.estimators.losses.base import IndexLoss
from privfit.estimators.losses.kernel_check import KernelCheckLoss, kernel_bandwidth
from privfit.estimators.problem import Problem
from privfit.estimators.quantile_search import search_quantile
from privfit.estimators.raw_scores import curvature_kept
from privfit.estimators.regression import IndexRegression
from privfit.estimators.results import QUANTILE_SMOOTHS
from privfit.estimators.risk import Risk
from privfit.estimators.smoothed_search import Pilot, check_width
from privfit.estimators.solver import Solution
from privfit.estimators.squared_score import SAMPLE, SteppedSquareLoss

__all__ = ["QuantileRegression"]

Floats = NDArray[np.float64]
_TIED = 0.02
_FEW_BEYOND = 10
_MUCH = 0.75
"""Bias of the bandwidth, in standard errors, that is said."""


class QuantileRegression(LinearPrediction, IndexRegression):
    """Linear quantile regression, corrected for the noise of a release.

    Parameters
    ----------
    quantile : float
        tau in (0, 1); 0.5 is median regression.
    noise, correction, fit_intercept, bound, alpha, stabilize, draws, random_state
        As for `LinearRegression`. Gaussian noise has no exact inverse here. ``correction="wsz"`` is the smoothed
        corrected loss of Wang, Stefanski and Zhu (2012) for Laplace noise: of a `SymmetricLaplace` release, or of a
        `ZeroInflatedLaplace` one made symmetric Laplace by a second randomisation.
    bandwidth : "auto" or float
        Of the logistic smoothing, in units of the response; "auto" follows `bandwidth.auto_bandwidth`
        (``correction="wsz"``: of its normal kernel, by `losses.kernel_check.kernel_bandwidth`). A
        number smooths without noise, too: raw data and release then have the same target. Under noise "auto" starts
        from the standard deviation of the residuals, which outliers widen (valid intervals, but wide), and is narrowed
        where the estimated bias asks for it (`bandwidth_bias`).

    Attributes
    ----------
    coef_, intercept_, params_, cov_params_, efficiency_, converged_, diagnostics_
        As for `LinearRegression`; ``diagnostics_["bandwidth"]`` is the bandwidth used (of an exact fit to raw data,
        that of its curvature). Under noise ``diagnostics_["bandwidth_bias"]`` is the estimated bias of the bandwidth
        for each coefficient, intercept first, ``diagnostics_["bandwidth_bias_error"]`` its standard error; with "auto"
        its square is part of ``cov_params_``. Of an exact fit, ``diagnostics_["tied"]`` is the share of the records
        that lie on it beyond one for each coefficient.

    Examples
    --------
    >>> x = np.arange(5.0)[:, None]
    >>> QuantileRegression(0.5).fit(x, [0.0, 1.0, 2.0, 3.0, 40.0]).coef_.round(6)
    array([1.])
    """

    _kappa = 0.25
    _order = 4
    _kernel_smoothed = True
    _smooths = QUANTILE_SMOOTHS
    _bias: Bias | None = None

    def __init__(
        self,
        quantile: float = 0.5,
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
        self.quantile = quantile
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
        check_number("quantile", self.quantile, 0.0, 1.0, low_open=True, high_open=True)
        if self.bandwidth != "auto":
            check_number("bandwidth", self.bandwidth, 0.0, low_open=True, hint="Or 'auto'.")

    def _loss(self, problem: Problem) -> IndexLoss:
        if self.correction == "wsz" and self.noise_.noisy:
            return self._published_loss(problem)
        if self.bandwidth == "auto":
            pilot = Pilot.of(problem)
            width, self._sigma = pilot.bandwidth(problem.risk), pilot.sigma
            self._kept_curvature = curvature_kept(self.quantile, width / pilot.sigma) if self.noise_.noisy else 1.0
            return SmoothedCheckLoss(self.quantile, width, 4 if self.noise_.noisy else 2)
        self._kept_curvature = 1.0  # raw data get the same bandwidth
        width = self.bandwidth / problem.coordinates.response_scale
        check_width(self.bandwidth, problem)
        return SmoothedCheckLoss(self.quantile, width, self._order)

    def _published_loss(self, problem: Problem) -> IndexLoss:
        self._kept_curvature = 1.0
        if self.bandwidth != "auto":
            return KernelCheckLoss(self.quantile, self.bandwidth / problem.coordinates.response_scale)
        pilot, risk = Pilot.of(problem), problem.risk
        largest = max(-g.numerator[1] / g.numerator[0] for g in risk.symbols(pilot.theta))
        if largest <= 0.0:  # the noised columns play no part
            return KernelCheckLoss(self.quantile, pilot.sigma * risk.n**-0.4)
        width = kernel_bandwidth(largest, pilot.sigma, pilot.spread, pilot.share, risk.n)
        return KernelCheckLoss(self.quantile, width)

    def _loss_unit(self, response_scale: float) -> float:
        return response_scale

    def _search(self, problem: Problem) -> tuple[Solution, Floats]:
        return search_quantile(problem, self.quantile, exact=not self.noise_.noisy and self.bandwidth == "auto")

    def _stabilised_search(self, problem: Problem) -> tuple[Solution, Problem, Floats]:
        """Search; under noise, weigh the bias of the bandwidth against the variance (`bandwidth_bias`)."""
        solution, problem, start = super()._stabilised_search(problem)
        self._bias, self._left_bias = None, None
        loss, risk = problem.risk.loss, problem.risk
        if solution.scored is not None:
            return *self._bent(solution, problem), start
        if not risk.corrects or not solution.interior or not isinstance(loss, SmoothedCheckLoss):
            return solution, problem, start

        def family(h: float) -> IndexLoss:
            return SmoothedCheckLoss(self.quantile, h, loss.order)

        if self.bandwidth != "auto":  # the target is the quantile smoothed on that scale, as it is without noise
            self._bias = bandwidth_bias(risk, solution, family, loss.bandwidth)
            return solution, problem, start
        solution, width, self._bias = narrowed(risk, solution, family, loss.bandwidth, problem.bound)
        self._left_bias = self._bias.value
        if width != loss.bandwidth:
            problem = problem.with_loss(family(width))
            self._kept_curvature = curvature_kept(self.quantile, width / self._sigma)
        return solution, problem, start

    def _bent(self, solution: Solution, problem: Problem) -> tuple[Solution, Problem]:
        """Give an exact fit the curvature at its own bandwidth (`bandwidth.curvature_bandwidth`).

        The records that it goes through are left out: it was drawn to them, whatever the density.
        """
        few, n = problem.risk.thinned(SAMPLE), problem.risk.n
        residuals = few.design.index(solution.theta)
        width = curvature_bandwidth(residuals, self.quantile, n)
        problem = problem.with_loss(SmoothedCheckLoss(self.quantile, width, 2))
        hessian = problem.risk.hessian(solution.theta)
        assert isinstance(solution.scored, SmoothedCheckLoss)
        drawn = few.design.matrix[:, np.abs(residuals) < 30.0 * solution.scored.bandwidth]
        if few.n == n and drawn.shape[1] <= 2 * few.size:
            without = hessian - drawn @ drawn.T / (4.0 * width * n)
            if np.linalg.eigvals(np.linalg.pinv(hessian) @ without).real.min() > 0.5:
                hessian = without
        free = ~solution.at_bound
        values = np.linalg.eigvalsh(hessian[np.ix_(free, free)]) if free.any() else np.ones(1)
        return replace(solution, hessian=hessian, positive=bool(values[0] > 1e-10 * values[-1])), problem

    def _oracle_scores(self, risk: Risk, theta: Floats, curvature: Floats) -> tuple[Floats, str]:
        squares = risk.with_(loss=SquaredLoss(), penalty=np.zeros(risk.size))
        gram = squares.hessian(np.zeros(risk.size))
        return self.quantile * (1 - self.quantile) * gram, "tau (1 - tau) times the corrected Gram matrix"

    def _raw_scores(self, solution: Solution, risk: Risk) -> tuple[Floats, str]:
        """Scores in units of a curvature without smoothing, as the raw data have it."""
        scores, text = super()._raw_scores(solution, risk)
        if self._kept_curvature == 1.0:
            return scores, text
        return self._kept_curvature**2 * scores, f"{text}; curvature without smoothing, as for normal errors"

    def _squared_scores(self, risk: Risk) -> Risk | None:
        loss = risk.loss
        if not isinstance(loss, SmoothedCheckLoss):
            return None
        return risk.with_(loss=SmoothedLoss(SteppedSquareLoss(loss.quantile), loss.bandwidth, loss.order))

    def _finish(self, solution: Solution, problem: Problem) -> None:
        """Say where few records lie beyond the quantile, smoothing moves it, or ties leave an exact fit no density."""
        few_beyond = problem.risk.n * min(self.quantile, 1.0 - self.quantile)
        if few_beyond < _FEW_BEYOND:
            warnings.warn(
                f"about {few_beyond:.2g} of {problem.risk.n} records lie beyond the quantile {self.quantile:g}: with "
                f"fewer than {_FEW_BEYOND} its standard errors and normal intervals are rough. Use more records, or a "
                "quantile nearer to 0.5.",
                SmallSampleWarning,
                stacklevel=5,
            )
        self._say_smoothing()
        scored = solution.scored
        if not isinstance(scored, SmoothedCheckLoss):
            return
        few = problem.risk.thinned(SAMPLE)
        on = int((np.abs(few.design.index(solution.theta)) < scored.bandwidth).sum())
        self.diagnostics_["tied"] = max(on - few.size, 0) / few.n
        if 2 * few.size < on < few.n and self.diagnostics_["tied"] > _TIED:
            warnings.warn(
                f"{100 * on / few.n:.0f} % of the records lie exactly on the fitted quantile: rounded or tied values "
                "have no density there, so the standard errors are not to be trusted. Set bandwidth= to the step of "
                "the rounding or more: the estimate is then the quantile of smoothed values, with valid ones.",
                SmallSampleWarning,
                stacklevel=5,
            )

    def _say_smoothing(self) -> None:
        found = self.diagnostics_
        if found["bandwidth_too_wide"]:
            warnings.warn(
                f"the bandwidth {found['bandwidth']:.3g} exceeds half the {'declared' if self._range else 'observed'} "
                f"range of the response: the estimate is no longer about the quantile {self.quantile:g}. Use more "
                "records, less noise, or LinearRegression for the mean.",
                SmallSampleWarning,
                stacklevel=6,
            )
            return
        if self._left_bias is None or found.get("n_needed"):  # or the fit has warned of more than its bandwidth
            return
        if self._bias is None or self._bias.ratio.max(initial=0.0) <= _MUCH:
            return
        place = int(self._bias.ratio.argmax())
        of = f" of {self._names[place]!r}" if len(self._names) > 1 else ""
        warnings.warn(
            f"smoothing with bandwidth {found['bandwidth']:.3g} moves the estimate{of} by about "
            f"{self._bias.ratio[place]:.1f} standard errors, as fits at wider ones tell: the intervals contain that "
            "bias, the estimate does not shed it. Use more records or less noise; diagnostics_['bandwidth_bias'] has "
            "its size.",
            SmallSampleWarning,
            stacklevel=6,
        )

    def _extra_diagnostics(self, problem: Problem) -> dict[str, Any]:
        loss = problem.risk.loss
        assert isinstance(loss, SmoothedCheckLoss | KernelCheckLoss)
        width = loss.bandwidth * problem.coordinates.response_scale
        low, high = problem.risk.index_range(np.zeros(problem.risk.size))
        span = self._range
        if span is None:
            span = (high - low) * problem.coordinates.response_scale
        # Without noise and with "auto" the search ends in the exact vertex, whatever the bandwidth.
        smoothed = self.noise_.noisy or self.bandwidth != "auto"
        wide = smoothed and width > 0.5 * span > 0.0
        found: dict[str, Any] = {"bandwidth": width, "bandwidth_too_wide": wide}
        if self._bias is not None:
            c = problem.coordinates
            zero = c.original(np.zeros(problem.risk.size))
            errors = np.diag(np.square(self._bias.error))
            found["bandwidth_bias"] = c.original(self._bias.value) - zero
            found["bandwidth_bias_error"] = np.sqrt(np.diag(c.covariance(errors)))
        return found
