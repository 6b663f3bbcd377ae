r"""Poisson regression (log link) on released columns and a count, released as it is or with noise.

Loss ``e^u - y u``. ``G(D^2) e^u = G(1) e^u``: the corrected rate is a factor times the released one, e.g.
``(1 - s^2/2) / (1 - delta0 s^2/2)`` for zero-inflated and ``(1 - s^2/(2k))^k`` for generalised Laplace noise of
shape k, s^2 the noise variance of the index. ``E e^{noise} = 1 / G(1)`` needs ``s^2 < 2k``; the corrected loss has a
finite variance if ``E e^{2 noise} = 1 / G(4)`` is finite: ``s^2 < k/2`` (k = 1 for zero inflation), for each
independent part. The search never leaves that set. The term ``-y u`` is bilinear: noise of mean zero in the count
needs no correction, even released jointly with the columns, as the coordinates of every law are uncorrelated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.linear_prediction import LinearPrediction
from privfit.estimators.losses import ExponentialLoss
from privfit.estimators.losses.base import IndexLoss
from privfit.estimators.noise import NoiseModel
from privfit.estimators.problem import Problem
from privfit.estimators.raw_scores import poisson_dispersion
from privfit.estimators.regression import IndexRegression
from privfit.estimators.risk import Risk
from privfit.estimators.solver import Solution

__all__ = ["PoissonRegression"]

Floats = NDArray[np.float64]
_EDGE = 1.02


class PoissonRegression(LinearPrediction, IndexRegression):
    """Regression of a count or another non-negative response, ``E y = exp(intercept + x'coef)``.

    Parameters
    ----------
    noise : Law, Product, mapping or None
        As for `LinearRegression`; "y" takes an additive law of the count.
    correction, fit_intercept, stabilize, draws, random_state
        As for `LogisticRegression`.
    bound : float or array_like of shape (d,), optional
        Largest absolute value of each coefficient. Default: 10 in released standard deviations, 30 without noise.
    alpha : float
        Ridge ``alpha |coef|^2 / 2`` beside the mean of ``e^u - y u``; as scikit-learn's `PoissonRegressor`.

    Attributes
    ----------
    coef_ : ndarray, shape (d,)
    intercept_ : float
    params_, cov_params_, efficiency_, converged_, diagnostics_
        As for `LogisticRegression`; ``diagnostics_["index_variance"]`` is the noise variance s^2 of the index. The
        sandwich holds for every response with this mean, the reported cost of privacy for a Poisson one.

    Examples
    --------
    >>> x = np.array([[0.0], [0.0], [1.0], [1.0]])
    >>> PoissonRegression().fit(x, [1, 3, 5, 7]).predict([[0.0], [1.0]]).round(6)
    array([2., 6.])
    """

    _is_linear = True
    _needs_level = True
    _kappa = 0.25

    def __init__(
        self,
        *,
        noise: Any = None,
        correction: str = "exact",
        fit_intercept: bool = True,
        bound: Any = None,
        alpha: float = 0.0,
        stabilize: Any = None,
        draws: int = 1,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.noise = noise
        self.correction = correction
        self.fit_intercept = fit_intercept
        self.bound = bound
        self.alpha = alpha
        self.stabilize = stabilize
        self.draws = draws
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """Tags for scikit-learn: the response is not negative."""
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _read_response(self, y: Any, model: NoiseModel) -> Floats:
        """Return the response over its mean: the intercept then starts near 0 whatever the unit."""
        least = float(np.min(y)) if model.variances[-1] == 0.0 else 0.0
        return np.asarray(y / self._learn_level(float(np.mean(y)), least), float)

    def _learn_level(self, mean: float, least: float) -> float:
        """Learn the unit of the response from its mean and the smallest one that has no noise."""
        if least < 0.0:
            raise ValueError(
                "y must be >= 0 for PoissonRegression: Some value(s) of y are negative. Use LinearRegression, or "
                "name the law of y in noise= if the response was released with noise."
            )
        if not mean > 0.0:
            raise ValueError(
                "y must have a positive mean for PoissonRegression, as its rate exp(u) has. Use more records, less "
                "noise in y, or LinearRegression."
            )
        self._unit = mean if self.fit_intercept else 1.0
        return self._unit

    def _loss(self, problem: Problem) -> IndexLoss:
        return ExponentialLoss()

    def _loss_unit(self, response_scale: float) -> float:
        return self._unit

    def _search(self, problem: Problem) -> tuple[Solution, Floats]:
        solution, start = super()._search(problem)
        risk = problem.risk
        if not solution.interior and not risk.admits(_EDGE * solution.theta):
            raise ValueError(
                "noise must leave the index x'coef a noise variance s^2 below half its shape (1/2 for Laplace and "
                "zero-inflated noise) for PoissonRegression, as the corrected rate has no finite variance beyond, and "
                "the fit ends at that limit. Release the columns with less noise or a larger shape, leave out columns, "
                "or limit the coefficients by bound=."
            )
        return solution, start

    def _finish(self, solution: Solution, problem: Problem) -> None:
        if self.fit_intercept:
            self.params_[0] += np.log(self._unit)
            self.intercept_ = float(self.params_[0])

    def _oracle_scores(self, risk: Risk, theta: Floats, curvature: Floats) -> tuple[Floats, str]:
        spread = poisson_dispersion(risk, theta, float(self.noise_.covariance[-1]) / self._unit**2)
        if spread is None:
            said = "information equality of a Poisson response, their covariance is the corrected Hessian"
            return curvature / self._unit, said
        return spread * curvature, f"variance of the count {spread * self._unit:.3g} times its mean"

    def _default_bound(self, model: NoiseModel) -> float:
        return 10.0 if model.noisy else 30.0

    def _extra_diagnostics(self, problem: Problem) -> dict[str, Any]:
        slopes = self.params_[problem.lead :]
        return {"index_variance": float(self.noise_.variances[:-1] @ slopes**2)}

    def predict(self, X: Any) -> Floats:
        """Fitted means ``exp(intercept + X coef)``.

        Parameters
        ----------
        X : array_like, shape (n, d)
            Columns without noise, or as released.

        Returns
        -------
        ndarray, shape (n,)
        """
        return np.asarray(np.exp(super().predict(X)), float)
