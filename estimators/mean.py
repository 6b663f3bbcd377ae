r"""Means of released columns: the noise has mean zero, so they need no correction.

``mean(x~) -> E x`` with covariance ``Cov(x~) / n``; the raw-data covariance is ``(Cov(x~) - Sigma) / n``. The
mean of a label column is the share of its positive labels, by way of unbiased indicators (`label_share`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from privfit.estimators.checks import read_columns
from privfit.estimators.clusters import mean_covariance, read_clusters
from privfit.estimators.efficiency import compare, unchanged
from privfit.estimators.label_share import LabelColumn, columns_of, labels_to_indicators, split_labels
from privfit.estimators.noise import NoiseModel, resolve_noise
from privfit.estimators.released import declared_labels, read_release
from privfit.estimators.results import ResultsMixin
from privfit.mechanisms import RandomizedResponse

__all__ = ["Mean"]

Floats = NDArray[np.float64]


class Mean(ResultsMixin, BaseEstimator):  # type: ignore[misc]
    """Mean of one or several released columns; of a label column, the share of the positive labels.

    Parameters
    ----------
    noise : Law, Product, mapping or None
        Law of the columns (all, in order), or ``{column or tuple of columns: law}``. A column with a
        `RandomizedResponse` holds labels, and its mean is the share of the positive ones.
    positive : label, list of labels, or mapping of columns to these, optional
        Labels that count as one, by column if there are several label columns. Default: of two labels the second
        declared (`fit_release`) or sorted (`fit`).

    Attributes
    ----------
    mean_ : ndarray, shape (d,)
    cov_params_ : ndarray, shape (d, d)
    efficiency_ : Efficiency

    Examples
    --------
    >>> from privfit.mechanisms import Laplace
    >>> Mean(noise=Laplace(0.1)).fit([[1.0], [2.0], [3.0]]).mean_
    array([2.])
    >>> from privfit.mechanisms import RandomizedResponse
    >>> Mean(noise=RandomizedResponse(np.log(3.0))).fit([["yes"], ["no"], ["yes"], ["yes"]]).mean_
    array([1.])
    """

    def __init__(self, *, noise: Any = None, positive: Any = None) -> None:
        self.noise = noise
        self.positive = positive

    def fit(self, X: Any, y: Any = None, *, clusters: Any = None) -> Self:
        """Estimate the means of the columns of X (`y` is ignored).

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
            For missing or infinite values, wrong shapes, a column in `noise` that X does not have, or labels
            that do not fit their law or `positive`.
        """
        noise, laws = split_labels(self.noise, columns_of(X))
        X, labels = self._indicators(X, laws, {})
        X = read_columns(self, X)
        names = list(getattr(self, "feature_names_in_", range(X.shape[1])))
        return self._fit(X, resolve_noise(noise, names, None), names, labels, clusters)

    def fit_release(self, release: Any, features: Any = None) -> Self:
        """Estimate the means of columns of a release (all if `features` is left out).

        Parameters
        ----------
        release : Release
        features : str, int or sequence of these, optional

        Returns
        -------
        self
        """
        X, _, names, laws = read_release(release, None, features)
        additive = {key: law for key, law in laws.items() if not isinstance(law, RandomizedResponse)}
        own = {key[0]: law for key, law in laws.items() if isinstance(law, RandomizedResponse) and key[0] in names}
        X, labels = self._indicators(X, own, declared_labels(release), names)
        X = read_columns(self, X)
        return self._fit(X, resolve_noise(additive, names, None, strict=False), names, labels)

    def _indicators(self, X: Any, laws: Any, declared: Any, names: Any = None) -> tuple[Any, dict[Any, LabelColumn]]:
        if not laws:
            if self.positive is not None:
                raise ValueError("positive must be None where no column has a RandomizedResponse. Name it in noise=.")
            return X, {}
        return labels_to_indicators(X, laws, self.positive, declared, names)

    def _fit(
        self,
        X: Floats,
        model: NoiseModel,
        names: Sequence[Any],
        labels: dict[Any, LabelColumn],
        clusters: Any = None,
    ) -> Self:
        n = X.shape[0]
        codes = None if clusters is None else read_clusters(clusters, n)
        self._groups = None if codes is None else int(codes.max()) + 1
        for name, column in labels.items():
            laws = (*model.laws, (str(name), repr(column.law)))
            model = replace(model, laws=laws, keep=min(model.keep, column.law.keep_probability))
        self.noise_, self._n_records = model, n
        self._names = [
            f"{name} = {', '.join(map(str, labels[name].positive))}" if name in labels else str(name) for name in names
        ]
        self.mean_ = self.params_ = X.mean(axis=0)
        centred = X - self.mean_
        if n > 1:
            self.cov_params_ = mean_covariance(centred.T, codes)
            spread = n * self.cov_params_
        else:
            spread = np.zeros((X.shape[1], X.shape[1]))
            self.cov_params_ = np.diag(np.full(X.shape[1], np.inf))
        noise = model.covariance[:-1].copy()
        for j, name in enumerate(names):
            if name in labels:
                noise[j] = labels[name].noise_variance(float(self.mean_[j]))
        raw = (spread - np.diag(noise)) / n
        said = "covariance of the release minus that of the noise"
        self.efficiency_ = compare(self.cov_params_, raw, n, said) if model.noisy else unchanged(X.shape[1], n)
        self.converged_ = True
        self.diagnostics_ = {"converged": True, "n_needed": None}
        return self
