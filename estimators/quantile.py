r"""Quantiles of released columns: quantile regression on a constant, one column at a time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from privfit.estimators.checks import read_columns
from privfit.estimators.clusters import mean_covariance, read_clusters
from privfit.estimators.efficiency import compare, unavailable, unchanged
from privfit.estimators.errors import CapabilityError, SmallSampleWarning
from privfit.estimators.groups import column_of, together
from privfit.estimators.growing import Grown, grown
from privfit.estimators.levels import combined, named_warnings
from privfit.estimators.noise import resolve_noise
from privfit.estimators.noncrossing import check_quantiles, rearrange
from privfit.estimators.problem import Problem
from privfit.estimators.quantile_regression import QuantileRegression
from privfit.estimators.reading import Passes, Source, once
from privfit.estimators.released import declared_range
from privfit.estimators.results import ResultsMixin
from privfit.estimators.row_noise import RowNoise
from privfit.estimators.solver import Solution
from privfit.estimators.sources import learn_names, open_sources, released_sources, row_sources

__all__ = ["Quantile"]

Floats = NDArray[np.float64]


class _ColumnQuantile(QuantileRegression):
    """Quantile of one column; keeps how to compute each record's influence, for the joint covariance of columns."""

    def _finish(self, solution: Solution, problem: Problem) -> None:
        super()._finish(solution, problem)
        curvature = solution.hessian[0, 0] if solution.positive else np.inf
        self.unit_ = problem.coordinates.response_scale / curvature
        self.left_ = 0.0 if self._left_bias is None else self._left_bias[0] * problem.coordinates.response_scale
        self.problem_, self.theta_, self.scored_ = problem, solution.theta, solution.of_scores(problem.risk)

    def influence(self) -> Iterator[Floats]:
        """Influence of every record, not centred, in blocks of shape (m,)."""
        for block in self.scored_.score_blocks(self.theta_):
            yield self.unit_ * block[0]


class Quantile(ResultsMixin, BaseEstimator):  # type: ignore[misc]
    """Quantile of one or several released columns.

    Parameters
    ----------
    quantile : float or sequence of float
        tau in (0, 1); several, increasing, for all of them at once.
    noise : Law, Product, mapping or None
        Law of the columns (all, in order), or ``{column or tuple of columns: law}``.
    correction : {"exact", "dr", "sdr", "sl", "naive"}
    bandwidth : "auto" or float
        See `QuantileRegression`.
    draws : int
        Second noises that "dr", "sdr" and "sl" average over; the more, the closer to "exact", at a cost in time
        and memory in proportion.
    random_state : int, Generator or None

    Attributes
    ----------
    quantile_ : ndarray, shape (d,), or (d, k) for k quantiles
        Several quantiles of a column are sorted: they never cross (`noncrossing`).
    cov_params_ : ndarray, shape (d, d) or (d k, d k)
        Joint covariance of the columns' quantiles, those of a column together.

    Examples
    --------
    >>> Quantile(0.5).fit([[1.0], [2.0], [9.0]]).quantile_
    array([2.])
    """

    _grown: Grown | None = None

    def __init__(
        self,
        quantile: Any = 0.5,
        *,
        noise: Any = None,
        correction: str = "exact",
        bandwidth: Any = "auto",
        draws: int = 1,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.quantile = quantile
        self.noise = noise
        self.correction = correction
        self.bandwidth = bandwidth
        self.draws = draws
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, clusters: Any = None) -> Self:
        """Estimate the quantiles of the columns of X (`y` is ignored).

        Parameters
        ----------
        X : array_like, shape (n, d)
        clusters : array_like, shape (n,), optional
            Labels of rows that depend on each other (of one person), for cluster-robust standard errors.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For missing or infinite values, wrong shapes, invalid parameters.
        CapabilityError
            For noise without an exact inverse (Gaussian).
        """
        X = read_columns(self, X)
        names = list(getattr(self, "feature_names_in_", range(X.shape[1])))
        self._grown = None
        if not isinstance(self.noise, RowNoise):
            return self._fit([[self._table(X, names)]], names, Passes(), clusters=clusters)
        if clusters is not None:
            raise CapabilityError("clusters are not available with RowNoise. Leave them out, or use one law.")
        return self._fit(row_sources(self.noise, X, None, names, None), names, Passes())

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add records: afterwards the fit is that of all records so far, exactly.

        The records are kept (d n numbers), and every call fits anew: a quantile is no function of sums.

        Parameters
        ----------
        X : array_like, shape (m, d)
            The columns of the earlier records, under the law in ``noise=``, which may have been changed since.

        Returns
        -------
        self
        """
        X = read_columns(self, X, reset=self._grown is None)
        names = list(getattr(self, "feature_names_in_", range(X.shape[1])))
        self._grown = grown(self._grown, names, [[self._table(X, names)]])
        return self._fit(self._grown.groups, names, Passes())

    def fit_release(
        self, release: Any, features: Any = None, *, same_rows: bool = False, progress: Any = False
    ) -> Self:
        """Estimate quantiles of columns of a release, or of several.

        Parameters
        ----------
        release : Release, ReleaseReader, path, or list of these
            In memory, or on disk: read in pieces, several times for each quantile. A list is of releases of different
            records.
        features : str, int or sequence of these, optional
        same_rows : bool
            The listed releases are of the same records in the same order, with new noise each.
        progress : bool or callable, optional
            See `LinearRegression.fit_release`.

        Returns
        -------
        self
        """
        self._grown = None
        return self._fit(*self._released(release, features, same_rows, progress))

    def partial_fit_release(self, release: Any, features: Any = None, *, progress: Any = False) -> Self:
        """Add the records of a release, or of several, with their own law; see `partial_fit` and `fit_release`."""
        groups, names, passes, ranges = self._released(release, features, False, progress)
        self._grown = grown(self._grown, names, groups)
        return self._fit(self._grown.groups, names, passes, ranges)

    def fit_dask(self, frame: Any, features: Any = None) -> Self:
        """Estimate quantiles of columns of a Dask DataFrame, or of a release in files; see `LinearRegression.fit_dask`.

        The joint covariance fetches the released columns, partition by partition.
        """
        from privfit.estimators.dask_fit import dask_source

        names, source = dask_source(frame, None, features, self.noise, label=False)
        learn_names(self, names, [])
        self._grown = None
        return self._fit([[source]], names, Passes(False, source.n))

    def _table(self, X: Floats, names: Sequence[Any]) -> Source:
        return Source(resolve_noise(self.noise, names, None), len(X), partial(once, (X, None)), held=True)

    def _released(
        self, release: Any, features: Any, same_rows: bool, progress: Any
    ) -> tuple[list[list[Source]], list[Any], Passes, list[float | None]]:
        opened = open_sources(release)
        names, groups = released_sources(opened, None, features, label=False, same_rows=same_rows)
        learn_names(self, names, opened)
        ranges = [declared_range(opened[0], name) for name in names]
        return groups, names, Passes(progress, sum(group[0].n for group in groups)), ranges

    def _fit(
        self,
        groups: Sequence[Sequence[Source]],
        names: Sequence[Any],
        passes: Passes,
        ranges: Sequence[float | None] | None = None,
        clusters: Any = None,
    ) -> Self:
        n, single, model = sum(group[0].n for group in groups), np.ndim(self.quantile) == 0, together(groups)
        taus = [self.quantile] if single else check_quantiles(self.quantile)
        codes = None if clusters is None else read_clusters(clusters, n)
        self._groups = None if codes is None else int(codes.max()) + 1
        self.noise_, self._n_records = model, n
        self._names = [str(name) if single else f"{name} @ {tau:g}" for name in names for tau in taus]
        d, fits = len(names) * len(taus), list[_ColumnQuantile]()
        for j in range(len(names)):
            column = [[column_of(source, j) for source in group] for group in groups]
            noisy = any(source.model.noisy for group in column for source in group)
            for tau in taus:
                fit = _ColumnQuantile(
                    tau,
                    correction=self.correction if noisy else "exact",
                    bandwidth=self.bandwidth,
                    draws=self.draws,
                    random_state=self.random_state,
                )
                fit._check_parameters()
                fit._range = None if ranges is None else ranges[j]
                with named_warnings(f"column {self._names[len(fits)]!r}"):
                    fit._fit_groups(column, [], passes)
                fits.append(fit)
        centres = np.array([fit.params_[0] for fit in fits])
        self.quantile_ = centres if single else rearrange(centres.reshape(-1, len(taus)))
        self.params_ = self.quantile_.ravel()
        independent = np.array([fit.cov_params_[0, 0] for fit in fits])
        independent[self._drowned(fits)] = np.inf
        self.cov_params_ = np.diag(independent)
        good = np.isfinite(independent)
        if n > 1:
            kept = [f for f, own in zip(fits, good, strict=True) if own]
            left = np.array([f.left_ for f in kept])
            self.cov_params_[np.ix_(good, good)] = _joint(kept, codes) + np.outer(left, left)
        factors = np.array([fit.efficiency_.factors[0] for fit in fits])
        if model.noisy:
            said = next(fit.efficiency_.assumption for fit in fits if fit.noise_.noisy)
            known = bool(np.isfinite(factors).all() and np.isfinite(independent).all())
            own = np.diag(self.cov_params_)
            # what clusters add is that of the raw data, too (`clusters`)
            raw = np.diag(own - independent * (1.0 - 1.0 / np.square(factors))) if known else None
            self.efficiency_ = unavailable(d, n, said) if raw is None else compare(np.diag(own), raw, n, said)
        else:
            self.efficiency_ = unchanged(d, n)
        self.converged_ = all(fit.converged_ for fit in fits)
        found = [fit.diagnostics_ for fit in fits]
        self.diagnostics_ = {"columns": found} | combined([f"column {name!r}" for name in self._names], found)
        self.diagnostics_["penalty"] = np.zeros(0)
        return self

    def _drowned(self, fits: Sequence[Any]) -> list[int]:
        """Columns whose released variance is not above that of their noise; warns of them and of wide smoothing."""
        drowned = []
        for j, fit in enumerate(fits):
            noise = float(fit.noise_.covariance.sum())
            if not noise:
                continue
            raw = float(fit.problem_.coordinates.response_scale) ** 2 - noise
            width, text = fit.diagnostics_.get("bandwidth", 0.0), ""
            if raw <= 0:
                drowned.append(j)
                text = (
                    "the column varies less than its noise alone would: the noise law or its units are wrong, or the "
                    "sample is too small. No standard error is given"
                )
            elif width > 0.5 * raw**0.5:
                counted = "contains as far as fits at wider ones tell" if "bandwidth_bias" in fit.diagnostics_ else ""
                text = (
                    f"the bandwidth {width:.3g} exceeds half the standard deviation of the data: the estimate is "
                    f"biased towards the smoothed quantile by an amount its interval {counted or 'does not contain'}. "
                    "Use more records or less noise"
                )
                fit.diagnostics_["bandwidth_too_wide"] = True
            if text:
                fit.diagnostics_.setdefault("cautions", []).append(text)
                warnings.warn(f"column {self._names[j]!r}: {text}.", SmallSampleWarning, stacklevel=4)
        return drowned


def _joint(fits: Sequence[_ColumnQuantile], codes: Any) -> Floats:
    """Joint covariance of the quantiles, from the influence of each record on each of them."""
    blocks = (np.stack(own) for own in zip(*(fit.influence() for fit in fits), strict=True))
    if codes is not None:
        influence = np.concatenate(list(blocks), axis=1)
        return mean_covariance(influence - influence.mean(axis=1, keepdims=True), codes)
    n, total, products = 0, np.zeros(len(fits)), np.zeros((len(fits), len(fits)))
    for block in blocks:
        n, total, products = n + block.shape[1], total + block.sum(axis=1), products + block @ block.T
    return np.asarray((products - np.outer(total, total) / n) / (n - 1) / n, float)
