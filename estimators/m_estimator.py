r"""M-estimators with a loss of the user's own, corrected for the noise of a release.

A loss of an index enters the common corrected risk (`regression`): u is the residual ``y - b_0 - x'b``, the margin
``y (b_0 + x'b)``, or ``b_0 + x'b`` with y entering as ``-y u`` or not at all. Kinks are averaged over a narrow kernel,
as in `QuantileRegression`. A loss of records and parameters is corrected by a second randomisation (`m_records`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from privfit.accounting.validation import check_choice, check_number
from privfit.estimators.checks import read_columns
from privfit.estimators.efficiency import compare, unavailable, unchanged
from privfit.estimators.errors import CapabilityError
from privfit.estimators.losses import PolynomialLoss, RandomizedLabelLoss
from privfit.estimators.losses.base import IndexLoss
from privfit.estimators.losses.callable import RecordLoss
from privfit.estimators.m_index import ScaledLoss, lowest_jump, scale_hint, smoothed
from privfit.estimators.m_records import fit_records
from privfit.estimators.m_scores import NO_SQUARE, NOISY, response_parts, squared_loss, unknown
from privfit.estimators.noise import NoiseModel, resolve_noise
from privfit.estimators.problem import Problem
from privfit.estimators.regression import IndexRegression
from privfit.estimators.risk import Risk
from privfit.estimators.smoothed_search import Pilot, continuation, resolvents_only
from privfit.estimators.solver import Solution
from privfit.estimators.squared_score import SAMPLE, choose_scores
from privfit.estimators.strata import signed

__all__ = ["MEstimator"]

Floats = NDArray[np.float64]
_RESPONSES = ("residual", "margin", "linear", "none")


class MEstimator(RegressorMixin, IndexRegression):  # type: ignore[misc]
    """Minimiser of a mean loss of the user's own, unbiased under the noise of a release.

    Parameters
    ----------
    loss : IndexLoss, RecordLoss or str
        A built-in loss, `Loss.from_expression`, `Loss.from_callable`, or an expression of u.
    response : {"residual", "margin", "linear", "none"}
        How y enters a loss of an index: ``f(y - u)``, ``f(y u)`` for y in {-1, 1}, ``f(u) - y u``, or ``f(u)``.
    noise, correction, fit_intercept, bound, alpha, stabilize, draws, random_state
        As for `LinearRegression`. A loss given as a function needs "dr" or "naive"; for a loss of records `bound`
        limits each parameter (default 100 times the start, at least 100), and `fit_intercept`, `alpha` and `stabilize`
        play no part.
    bandwidth : "auto" or float
        Of the smoothing of a kinked loss, in units of its index.
    start : array_like, shape (p,), optional
        Of a loss of records: where the naive fit starts; zeros if left out.

    Attributes
    ----------
    params_, cov_params_, coef_, intercept_, efficiency_, converged_, diagnostics_
        As for `LinearRegression`; of a loss of records ``coef_`` is ``params_`` and ``diagnostics_["hessian_step"]``
        the step of the numerical Hessian. Where ``efficiency_`` is not available, its ``assumption`` says why.

    Examples
    --------
    >>> x = np.arange(5.0)[:, None]
    >>> MEstimator("sqrt(1 + u**2)").fit(x, [0.0, 1.0, 2.0, 3.0, 40.0]).coef_.round(2)
    array([1.83])
    """

    def __init__(
        self,
        loss: Any = "u**2/2",
        *,
        response: str = "residual",
        noise: Any = None,
        correction: str = "exact",
        fit_intercept: bool = True,
        bandwidth: Any = "auto",
        bound: Any = None,
        alpha: float = 0.0,
        stabilize: Any = None,
        draws: int = 1,
        start: Any = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.loss = loss
        self.response = response
        self.noise = noise
        self.correction = correction
        self.fit_intercept = fit_intercept
        self.bandwidth = bandwidth
        self.bound = bound
        self.alpha = alpha
        self.stabilize = stabilize
        self.draws = draws
        self.start = start
        self.random_state = random_state

    @property
    def _is_label(self) -> bool:  # type: ignore[override]
        return bool(self.response == "margin")

    @property
    def _is_linear(self) -> bool:  # type: ignore[override]
        return self.response in ("linear", "none")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("response", self.response, _RESPONSES)
        if not (isinstance(self.bandwidth, str) and self.bandwidth == "auto"):
            check_number("bandwidth", self.bandwidth, 0.0, low_open=True, hint="Or 'auto'.")
        self._given = IndexLoss.from_expression(self.loss) if isinstance(self.loss, str) else self.loss
        if not isinstance(self._given, IndexLoss | RecordLoss):
            raise TypeError(
                f"loss must be a Loss or an expression of u, got {type(self.loss).__name__}. Use Loss.from_expression "
                "or Loss.from_callable."
            )

    def fit(self, X: Any, y: Any = None, **options: Any) -> Self:
        """Fit to released columns X and response y; see `IndexRegression.fit`.

        A loss of records sees ``[X, y]``, or X alone without y; ``response="none"`` needs no y.
        """
        self._check_parameters()
        records = isinstance(self._given, RecordLoss)
        if records and y is None:
            X = read_columns(self, X)
            self._inference(options.get("clusters"), options.get("keep_records", False), len(X))
            names = list(getattr(self, "feature_names_in_", range(X.shape[1])))
            return self._fit(X, None, resolve_noise(self.noise, names, "y"), names)
        if self.response == "none" and not records:
            y = np.zeros(len(X)) if y is None else np.zeros(len(y))
        return super().fit(X, y, **options)

    def _check_law(self, model: NoiseModel) -> None:
        if isinstance(self._given, RecordLoss):
            raise CapabilityError("a loss of records is fitted to one release in memory, under one law: load_release.")
        super()._check_law(model)

    def _fit(self, X: Floats, y: Any, model: NoiseModel, names: Sequence[Any]) -> Self:
        if not isinstance(self._given, RecordLoss):
            return super()._fit(X, y, model, names)
        if self._codes is not None or self._keep:
            raise CapabilityError("clusters and keep_records are not available for a loss of records. Leave them out.")
        self.noise_, records = model, X if y is None else np.column_stack([X, y])
        found = fit_records(
            self._given,
            records,
            self.noise_,
            correction=self.correction,
            draws=int(self.draws),
            start=self.start,
            bound=self.bound,
            random_state=self.random_state,
        )
        self.params_ = self.coef_ = found.theta
        self.intercept_, self.cov_params_ = 0.0, found.covariance
        self.converged_, self.n_iter_, self.diagnostics_ = found.converged, found.iterations, found.diagnostics
        self._names, self._n_records, self._groups = [f"theta{j}" for j in range(found.theta.size)], len(records), None
        if not self.noise_.noisy:
            self.efficiency_ = unchanged(found.theta.size, len(records))
        elif found.raw is None:
            self.efficiency_ = unavailable(found.theta.size, len(records), found.assumption)
        else:
            self.efficiency_ = compare(found.covariance, found.raw, len(records), found.assumption)
        return self

    def _read_response(self, y: Any, model: NoiseModel) -> Floats:
        if self.response != "margin":
            return np.asarray(y, float)
        labels = np.asarray(y)
        if not np.isin(labels, (-1, 1)).all():
            raise ValueError("y must hold -1 and 1 only for response='margin'. Code the two classes so.")
        self._true = 1.0 if self.correction == "naive" else model.keep
        return labels.astype(float)

    def _pose(self, problem: Problem) -> Problem:
        loss, risk = self._given, problem.risk
        if loss.max_variance == 0.0 and risk.corrects:
            loss.compile([(risk.symbols(np.ones(risk.size))[0], 0)])  # says why, if the operator is not trivial
            raise CapabilityError("this loss grows faster than every exponential: no correction exists. Bound it.")
        if self.response == "margin":
            strata = [signed(s) for s in risk.strata]
            risk = Risk(PolynomialLoss([0.5, -1.0, 0.5]), strata, risk.size, risk.penalty)
            problem = replace(problem, risk=risk, naive=risk.naive())
        self._unit = problem.coordinates.response_scale if self.response == "residual" else 1.0
        self._width, self._jump = 0.0, lowest_jump(loss)
        exact = self._jump == 2 and resolvents_only(risk) and (self._is_linear or _moves(problem))
        if self._jump is not None and not exact:
            self._width = self._choose_width(problem)
        return problem.with_loss(self._loss(problem))

    def _choose_width(self, problem: Problem) -> float:
        if self.bandwidth != "auto":
            return float(self.bandwidth)
        if self._is_linear:
            raise ValueError(
                f"bandwidth must be a number for a kinked loss with response={self.response!r}: there is no "
                "residual to choose it from. Take a tenth of the index's standard deviation."
            )
        jump = max(self._jump or 1, 1)
        return Pilot.of(problem).bandwidth(problem.risk, jump) * self._unit

    def _at_width(self, width: float) -> IndexLoss:
        """Loss in standard coordinates, smoothed with a bandwidth in units of the index."""
        loss: IndexLoss = smoothed(self._given, width, 4 if self.noise_.noisy else 2) if width else self._given
        if self.response == "margin" and self._true < 1.0:
            loss = RandomizedLabelLoss(loss, self._true)
        return loss if self._unit == 1.0 else ScaledLoss(loss, self._unit)

    def _loss(self, problem: Problem) -> IndexLoss:
        return self._at_width(self._width)

    def _search(self, problem: Problem) -> tuple[Solution, Floats]:
        if not self._width or self._is_linear:
            return super()._search(problem)
        pilot = PolynomialLoss([0.5, -1.0, 0.5] if self.response == "margin" else [0.0, 0.0, 0.5])
        return continuation(problem, lambda h: self._at_width(h * self._unit), self._width / self._unit, pilot)

    def _squared_loss(self, down: int) -> IndexLoss | None:
        order = 4 if self.noise_.noisy else 2
        keep = self._true if self.response == "margin" else 1.0
        return squared_loss(self._given, self._width, order, self._unit, keep, down)

    def _raw_scores(self, solution: Solution, risk: Risk) -> tuple[Floats, str]:
        try:
            if self.response != "linear" or self.correction == "naive":
                return super()._raw_scores(solution, risk)
            return self._linear_scores(solution, risk)
        except CapabilityError as error:
            return unknown(risk, str(error))

    def _linear_scores(self, solution: Solution, risk: Risk) -> tuple[Floats, str]:
        square, spread = self._squared_loss(2), float(self.noise_.covariance[-1])
        if square is None:
            return unknown(risk, NO_SQUARE)
        if spread and (len(risk.strata) > 1 or risk.strata[0].noise.releases > 1):
            return unknown(risk, "the response has several noise laws")
        few = risk.thinned(SAMPLE).with_(loss=square)
        more = response_parts(risk.loss, spread)
        return choose_scores(few, solution.theta, solution.hessian, unknown(risk, NOISY), risk.n, more)

    def _squared_scores(self, risk: Risk) -> Risk | None:
        square = self._squared_loss(2)
        return None if square is None else Risk(square, risk.strata, risk.size)

    def _oracle_scores(self, risk: Risk, theta: Floats, curvature: Floats) -> tuple[Floats, str]:
        """For residuals ``E f'^2`` times the Gram matrix (equal errors); no assumption is at hand for the others."""
        square = self._squared_loss(0)
        if square is None:
            return unknown(risk, NO_SQUARE)
        if self.response != "residual":
            return unknown(risk, NOISY)
        free = np.zeros(risk.size)
        gram = risk.with_(loss=PolynomialLoss([0.0, 0.0, 0.5]), penalty=free).hessian(free)
        mean = max(Risk(square, risk.strata, risk.size).value(theta), 0.0) if risk.admits(theta) else np.nan
        return mean * gram, "corrected mean squared score times the corrected Gram matrix (equal errors)"

    def _extra_diagnostics(self, problem: Problem) -> dict[str, Any]:
        return {"bandwidth": self._width or None}

    def _hint(self, slopes: Floats) -> str:
        spread = self.noise_.covariance
        own = 0.0 if self._is_linear else float(spread[-1])
        return scale_hint(self._given, float(np.sqrt(spread[:-1] @ slopes**2 + own)))

    def predict(self, X: Any) -> Floats:
        """Fitted index ``intercept + X coef``.

        Parameters
        ----------
        X : array_like, shape (n, d)

        Returns
        -------
        ndarray, shape (n,)

        Raises
        ------
        CapabilityError
            For a loss of records, which has no index.
        """
        check_is_fitted(self)
        if isinstance(self._given, RecordLoss):
            raise CapabilityError("a loss of records has no index to predict. Use params_.")
        X = read_columns(self, X, reset=False)
        return np.asarray(X @ self.coef_ + self.intercept_, float)


def _moves(problem: Problem) -> bool:
    """Whether the index has noise near the fit: at slopes 0 the averages of a kink over it are none."""
    return not problem.risk.corrects or bool(Pilot.of(problem).theta[problem.lead :].any())
