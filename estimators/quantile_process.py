r"""Several regression quantiles at once: they do not cross, have a joint covariance and a simultaneous band.

Each quantile is fitted alone (`QuantileRegression`). With s_a the scores and V_a the curvature of quantile a,

    n Cov(theta_a, theta_b) = V_a^{-1} E[s_a s_b'] V_b^{-1},

from the scores of the same records, in blocks. Predictions are sorted over the quantiles (`noncrossing`). The band of
``x'theta(tau)`` over all x and tau asked for uses the largest t statistic under this joint law (`bands`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from privfit.accounting.validation import check_number
from privfit.estimators.bands import largest_t
from privfit.estimators.checks import check_random_state, read_columns
from privfit.estimators.clusters import cluster_factor, cluster_sums
from privfit.estimators.efficiency import compare, unavailable, unchanged
from privfit.estimators.kept import Kept
from privfit.estimators.noncrossing import check_quantiles, rearrange
from privfit.estimators.quantile_regression import QuantileRegression
from privfit.estimators.results import ResultsMixin

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
        self.cov_params_ = _joint_covariance(kept, [model.cov_params_ for model in self.models_])
        self._compare()
        self.converged_ = all(model.converged_ for model in self.models_)
        found = [model.diagnostics_ for model in self.models_]
        worst = max(found, key=lambda own: own["n_needed"] or 0)
        self.diagnostics_ = {"quantiles": found} | {
            key: worst[key] for key in ("n_needed", "n_needed_is_bound", "bandwidth") if key in worst
        }
        return self

    def _compare(self) -> None:
        size, n = self.params_.size, self._n_records
        if not self.noise_.noisy:
            self.efficiency_ = unchanged(size, n)
            return
        said = self.models_[0].efficiency_.assumption
        factors = np.concatenate([model.efficiency_.factors for model in self.models_])
        own = np.diag(self.cov_params_)
        if np.isfinite(factors).all() and np.isfinite(own).all():
            self.efficiency_ = compare(np.diag(own), np.diag(own / factors**2), n, said)
        else:
            self.efficiency_ = unavailable(size, n, said)

    def predict(self, X: Any) -> Floats:
        """Fitted quantiles, sorted in each row.

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
        return rearrange(X @ self.coef_.T + self.intercept_)

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
            raise ValueError("band needs finite standard errors; the fit has infinite ones (see warnings).")
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


def _joint_covariance(kept: list[Kept], single: list[Floats]) -> Floats:
    """Joint covariance of all parameters; a fit without standard errors keeps its infinite ones and no covariances."""
    size, count = len(single[0]), len(single)
    lost = [not np.isfinite(own).all() for own in single]
    out = np.zeros((count, size, count, size))
    for a, own in enumerate(single):
        out[a, :, a, :] = own
    good = [a for a in range(count) if not lost[a]]
    if len(good) > 1:
        scores = _score_covariance([kept[a] for a in good], size)
        maps = [kept[a].matrix @ np.linalg.inv(kept[a].solution.hessian) for a in good]
        n = kept[0].problem.risk.n
        for i, a in enumerate(good):
            for j, b in enumerate(good):
                if a != b:
                    out[a, :, b, :] = maps[i] @ scores[i, :, j, :] @ maps[j].T / (n - size)
    return out.reshape(count * size, count * size)


def _score_covariance(kept: list[Kept], size: int) -> Floats:
    """Joint covariance of the scores of several fits to the same records, shape (k, p, k, p)."""
    count, codes, n = len(kept), kept[0].codes, kept[0].problem.risk.n

    def blocks() -> Iterator[Floats]:
        own = [one.scored.score_blocks(one.solution.theta) for one in kept]
        for parts in zip(*own, strict=True):
            yield np.concatenate(parts)

    total, outer = np.zeros(count * size), np.zeros((count * size, count * size))
    for block in blocks():
        total += block.sum(axis=1)
        if codes is None:
            outer += block @ block.T
    mean = total / n
    if codes is None:
        return np.asarray(outer / n - np.outer(mean, mean), float).reshape(count, size, count, size)
    groups = int(codes.max()) + 1
    sums = cluster_sums(blocks(), codes, groups, count * size) - np.outer(mean, np.bincount(codes, minlength=groups))
    clustered = cluster_factor(groups, n) * (sums @ sums.T) / n
    return np.asarray(clustered, float).reshape(count, size, count, size)
