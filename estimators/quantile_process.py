r"""Several regression quantiles at once: they do not cross, have a joint covariance and a simultaneous band.

Each quantile is fitted alone (`QuantileRegression`). With s_a the scores and V_a the curvature of quantile a,

    n Cov(theta_a, theta_b) = V_a^{-1} E[s_a s_b'] V_b^{-1},

from the scores of the same records, in blocks. Predictions are sorted over the quantiles (`noncrossing`). The band of
``x'theta(tau)`` over all x and tau asked for uses the largest t statistic under this joint law (`bands`).
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from privfit.accounting.validation import check_number
from privfit.estimators.bands import largest_t
from privfit.estimators.checks import check_random_state, read_columns
from privfit.estimators.efficiency import compare, unavailable, unchanged
from privfit.estimators.errors import SmallSampleWarning
from privfit.estimators.kept import Kept
from privfit.estimators.levels import combined, joint_covariance, named_warnings
from privfit.estimators.noncrossing import check_quantiles, rearrange
from privfit.estimators.quantile_regression import QuantileRegression
from privfit.estimators.results import QUANTILE_SMOOTHS, ResultsMixin

__all__ = ["QuantileProcess"]

Floats = NDArray[np.float64]


class QuantileProcess(ResultsMixin, BaseEstimator):  # type: ignore[misc]
    """Linear quantile regression at several quantiles, corrected for the noise of a release.

    Parameters
    ----------
    quantiles : sequence of float
        Increasing tau in (0, 1).
    noise, correction, fit_intercept, bandwidth, bound, alpha, stabilize, draws, random_state
        As for `QuantileRegression`. Second noises of "dr", "sdr" and "sl" are the same for all quantiles.

    Attributes
    ----------
    coef_ : ndarray, shape (k, d)
    intercept_ : ndarray, shape (k,)
    params_ : ndarray, shape (k p,)
        Quantile by quantile: intercept (if any), then coefficients; as fitted, before sorting.
    cov_params_ : ndarray, shape (k p, k p)
        Joint covariance.
    models_ : list of QuantileRegression
        The single fits.
    efficiency_, converged_, diagnostics_
        As for `QuantileRegression`; ``diagnostics_["quantiles"]`` lists those of the single fits.

    References
    ----------
    Chernozhukov, Fernandez-Val & Galichon (2010), Econometrica 78, for the sorting.

    Examples
    --------
    >>> x = np.repeat([[0.0], [1.0]], 5, axis=0)
    >>> y = [0, 1, 2, 3, 4, 1, 3, 5, 7, 9]
    >>> QuantileProcess((0.25, 0.5, 0.75)).fit(x, y).predict([[0.0], [1.0]]).round(6)
    array([[1., 2., 3.],
           [3., 5., 7.]])
    """

    _smooths = QUANTILE_SMOOTHS

    def __init__(
        self,
        quantiles: Any = (0.25, 0.5, 0.75),
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
        self.quantiles = quantiles
        self.noise = noise
        self.correction = correction
        self.fit_intercept = fit_intercept
        self.bandwidth = bandwidth
        self.bound = bound
        self.alpha = alpha
        self.stabilize = stabilize
        self.draws = draws
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, clusters: Any = None) -> Self:
        """Fit to released columns X and response y.

        Parameters
        ----------
        X : array_like or data frame, shape (n, d)
        y : array_like, shape (n,)
        clusters : array_like, shape (n,), optional
            Labels of rows that depend on each other (of one person).

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError, CapabilityError
            As `QuantileRegression.fit`, and for quantiles that do not increase within (0, 1).
        """
        return self._fit(lambda model: model.fit(X, y, clusters=clusters, keep_records=True))

    def fit_release(self, release: Any, target: Any = None, features: Any = None, **options: Any) -> Self:
        """Fit to a release, or to several; their laws replace the ``noise=`` parameter.

        Parameters
        ----------
        release, target, features
            As for `QuantileRegression.fit_release`; from disk, too, read in pieces for each quantile.
        **options
            Its `same_rows`, `progress` and `clusters`.

        Returns
        -------
        self
        """
        return self._fit(lambda model: model.fit_release(release, target, features, **options, keep_records=True))

    def fit_dask(self, frame: Any, target: Any, features: Any = None) -> Self:
        """Fit to a Dask DataFrame of released columns, or to a release in files; see `LinearRegression.fit_dask`.

        The joint covariance fetches the records, partition by partition.
        """
        return self._fit(lambda model: model.fit_dask(frame, target, features, keep_records=True))

    def _fit(self, fit: Any) -> Self:
        taus = check_quantiles(self.quantiles)
        check_random_state(self.random_state)
        seed = self.random_state
        if seed is None or isinstance(seed, np.random.Generator):
            seed = int(np.random.default_rng(seed).integers(2**32))
        shared = {name: value for name, value in self.get_params(deep=False).items() if name != "quantiles"}
        self.models_: list[QuantileRegression] = []
        kept: list[Kept] = []
        for tau in taus:
            model = QuantileRegression(tau, **(shared | {"random_state": seed}))
            with named_warnings(f"quantile {tau:g}"):
                fit(model)
            own, model._kept = model._kept, None
            assert own is not None
            if kept:  # the same columns and second noises: hold them once
                risk = kept[0].problem.risk.with_(loss=own.problem.risk.loss, penalty=own.problem.risk.penalty)
                own = replace(own, problem=replace(own.problem, risk=risk, naive=kept[0].problem.naive))
            kept.append(own)
            self.models_.append(model)
        first = self.models_[0]
        self.n_features_in_ = first.n_features_in_
        if hasattr(first, "feature_names_in_"):
            self.feature_names_in_ = first.feature_names_in_
        self.noise_, self._n_records, self._groups = first.noise_, first._n_records, first._groups
        pairs = list(zip(taus, self.models_, strict=True))
        self._names = [f"{name} @ {tau:g}" for tau, model in pairs for name in model._names]
        self.params_ = np.concatenate([model.params_ for model in self.models_])
        self.coef_ = np.stack([model.coef_ for model in self.models_])
        self.intercept_ = np.array([model.intercept_ for model in self.models_])
        left = [model._left_bias for model in self.models_]
        self.cov_params_ = joint_covariance(kept, [model.cov_params_ for model in self.models_], left)
        self._compare()
        self.converged_ = all(model.converged_ for model in self.models_)
        found = [model.diagnostics_ for model in self.models_]
        self.diagnostics_ = {"quantiles": found} | combined([f"quantile {tau:g}" for tau in taus], found)
        self.diagnostics_["bandwidth"] = max(own["bandwidth"] for own in found)
        return self

    def _compare(self) -> None:
        size, n = self.params_.size, self._n_records
        if not self.noise_.noisy:
            self.efficiency_ = unchanged(size, n)
            return
        lost = [model.efficiency_ for model in self.models_ if not np.isfinite(model.efficiency_.overall)]
        said = (lost or [self.models_[0].efficiency_])[0].assumption
        factors = np.concatenate([model.efficiency_.factors for model in self.models_])
        own = np.diag(self.cov_params_)
        if np.isfinite(factors).all() and np.isfinite(own).all():
            self.efficiency_ = compare(np.diag(own), np.diag(own / factors**2), n, said)
        else:
            self.efficiency_ = unavailable(size, n, said)

    def predict(self, X: Any) -> Floats:
        """Fitted quantiles, sorted in each row.

        A quantile whose search ran away (``diagnostics_["quantiles"][j]["runaway"]``; its standard errors are
        infinite) takes no part in the sorting: its predictions are nan, and a warning says so.

        Parameters
        ----------
        X : array_like, shape (n, d)
            Columns without noise, or as released.

        Returns
        -------
        ndarray, shape (n, k)
        """
        check_is_fitted(self)
        X = read_columns(self, X, reset=False)
        out, lost = X @ self.coef_.T + self.intercept_, self._lost
        if lost.any():
            warnings.warn(f"{self._lost_text} Their predictions are nan.", SmallSampleWarning, stacklevel=2)
            out[:, lost] = np.nan
        if not lost.all():
            out[:, ~lost] = rearrange(out[:, ~lost])
        return out

    @property
    def _lost(self) -> NDArray[np.bool_]:
        """Which quantiles have no usable fit."""
        return np.array([bool(model.diagnostics_.get("runaway")) for model in self.models_])

    @property
    def _lost_text(self) -> str:
        listed = ", ".join(f"{model.quantile:g}" for model in np.array(self.models_, object)[self._lost])
        return f"no usable fit at the quantiles {listed}, as the search ran away: see diagnose(), or leave them out."

    def band(self, X: Any, level: float = 0.95, *, draws: int = 20_000, random_state: Any = 0) -> tuple[Floats, Floats]:
        """Band of the quantiles that holds for all rows of X and all quantiles at once.

        Parameters
        ----------
        X : array_like, shape (m, d)
            Where to predict.
        level : float
            Coverage of all together, in (0, 1).
        draws : int
            Simulations of the joint normal law, see `bands.sup_t`.
        random_state : int, Generator or None

        Returns
        -------
        lower, upper : ndarray, shape (m, k)
            Sorted in each row, as the predictions are.

        Raises
        ------
        ValueError
            If a standard error is infinite.
        """
        check_is_fitted(self)
        check_number("level", level, 0.0, 1.0, low_open=True, high_open=True)
        if not np.isfinite(self.bse_).all():
            why = self._lost_text if self._lost.any() else "See warnings."
            raise ValueError(f"band needs finite standard errors, and the fit has infinite ones. {why}")
        X = read_columns(self, X, reset=False)
        rows = np.concatenate([np.ones((len(X), 1)), X], axis=1) if self.fit_intercept else X
        count, size = len(self.models_), rows.shape[1]
        values, vectors = np.linalg.eigh(self.cov_params_)
        root = (vectors * np.sqrt(np.maximum(values, 0.0))).reshape(count, size, -1)
        root = np.einsum("mp,kpr->mkr", rows, root).reshape(len(X) * count, -1)
        errors = np.linalg.norm(root, axis=1)
        critical = largest_t(root / errors[:, None], level, draws, random_state)
        centre, reach = X @ self.coef_.T + self.intercept_, (critical * errors).reshape(len(X), count)
        return rearrange(centre - reach), rearrange(centre + reach)
