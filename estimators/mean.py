r"""Means of released columns: the noise has mean zero, so they need no correction.

``mean(x~) -> E x`` with covariance ``Cov(x~) / n``; the raw-data covariance is ``(Cov(x~) - Sigma) / n``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from privfit.estimators.checks import read_columns
from privfit.estimators.efficiency import compare, unchanged
from privfit.estimators.noise import NoiseModel, resolve_noise
from privfit.estimators.released import read_release
from privfit.estimators.results import ResultsMixin

__all__ = ["Mean"]

Floats = NDArray[np.float64]


class Mean(ResultsMixin, BaseEstimator):  # type: ignore[misc]
    """Mean of one or several released columns.

    Parameters
    ----------
    noise : Law, Product, mapping or None
        Law of the columns (all, in order), or ``{column or tuple of columns: law}``.

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
    """

    def __init__(self, *, noise: Any = None) -> None:
        self.noise = noise

    def fit(self, X: Any, y: Any = None) -> Self:
        """Estimate the means of the columns of X (`y` is ignored).

        Parameters
        ----------
        X : array_like, shape (n, d)

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For missing or infinite values, wrong shapes, or a column in `noise` that X does not have.
        """
        X = read_columns(self, X)
        names = list(getattr(self, "feature_names_in_", range(X.shape[1])))
        return self._fit(X, resolve_noise(self.noise, names, None), names)

    def fit_release(self, release: Any, features: Sequence[Any] | None = None) -> Self:
        """Estimate the means of columns of a release (all numeric ones if `features` is left out).

        Parameters
        ----------
        release : Release
        features : sequence of str or int, optional

        Returns
        -------
        self
        """
        X, _, names, laws = read_release(release, None, features)
        X = read_columns(self, X)
        return self._fit(X, resolve_noise(laws, names, None, strict=False), names)

    def _fit(self, X: Floats, model: NoiseModel, names: Sequence[Any]) -> Self:
        n = X.shape[0]
        self.noise_, self._names, self._n_records = model, [str(name) for name in names], n
        self.mean_ = self.params_ = X.mean(axis=0)
        centred = X - self.mean_
        if n > 1:
            spread = centred.T @ centred / (n - 1)
            self.cov_params_ = spread / n
        else:
            spread = np.zeros((X.shape[1], X.shape[1]))
            self.cov_params_ = np.diag(np.full(X.shape[1], np.inf))
        raw = (spread - np.diag(model.variances[:-1])) / n
        said = "covariance of the release minus that of the noise"
        self.efficiency_ = (
            compare(self.cov_params_, raw, n, said) if model.noisy else unchanged(X.shape[1], n)
        )
        self.converged_ = True
        self.diagnostics_ = {"converged": True, "n_needed": None}
        return self
