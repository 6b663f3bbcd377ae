r"""Principal components of a debiased covariance: ``C = Cov(x~) - Cov(noise)``, projected on positive matrices.

With ``C v_j = l_j v_j``, ``z_j = v_j'(x~ - mean)`` and ``n`` records, to first order

    l_j: influence z_j^2 - E z_j^2,        v_j: influence sum_{k != j} z_j z_k v_k / (l_j - l_k),

so their covariances are fourth moments of the release (Anderson 1963 without the normality). Those of the raw data
follow by the operators, exact on polynomials: ``E z^4 = E z~^4 + 12 g_1 E z~^2 + 24 g_2`` where
``G(D^2) = 1 + g_1 D^2 + g_2 D^4 + ...`` along v.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from privfit.accounting.validation import check_integer
from privfit.estimators.checks import read_columns
from privfit.estimators.efficiency import Efficiency, compare, unavailable, unchanged
from privfit.estimators.errors import SmallSampleWarning
from privfit.estimators.noise import NoiseModel, resolve_noise
from privfit.estimators.released import check_roles, read_release
from privfit.estimators.results import ResultsMixin
from privfit.estimators.summary import component_table, summary_text
from privfit.estimators.symbols import Symbol

__all__ = ["PrincipalComponents"]

Floats = NDArray[np.float64]
_FOURTH = "fourth moments of the release, the noise's taken out"
_NORMAL = "normal scores, as the fourth moments of the release are too noisy"


class PrincipalComponents(
    ResultsMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator  # type: ignore[misc]
):
    """Principal components of the raw data, estimated from released columns.

    Parameters
    ----------
    n_components : int, optional
        Number of components to keep; default: as many as columns, or records if there are fewer.
    noise : Law, Product, mapping or None
        Law of the columns (all, in order), or ``{column or tuple of columns: law}``. Only its covariance matters:
        every additive law is exact, the Gaussian included.

    Attributes
    ----------
    components_ : ndarray, shape (k, d)
        Unit vectors, by decreasing variance; the entry of largest absolute value is positive, as in scikit-learn.
    explained_variance_ : ndarray, shape (k,)
        Eigenvalues of the debiased covariance, 0 where noise made them negative; `params_` by another name.
    explained_variance_ratio_ : ndarray, shape (k,)
    cov_params_ : ndarray, shape (k, k)
        Covariance of the eigenvalues; `bse_`, `conf_int` and `summary` follow.
    components_bse_ : ndarray, shape (k, d)
        Standard errors of the entries of the components, infinite where two eigenvalues are equal.
    covariance_ : ndarray, shape (d, d)
        The debiased covariance, projected.
    mean_ : ndarray, shape (d,)
    efficiency_ : Efficiency
    diagnostics_ : dict
        ``gaps`` between neighbouring eigenvalues, their standard errors ``gap_bse``, and ``projected``, the number
        of negative eigenvalues set to 0.

    Examples
    --------
    >>> x = np.tile([[2.0, 2.0], [-2.0, -2.0], [1.0, -1.0], [-1.0, 1.0]], (5, 1))
    >>> model = PrincipalComponents(n_components=1).fit(x)
    >>> model.components_.round(3), model.explained_variance_.round(3)
    (array([[0.707, 0.707]]), array([4.211]))
    """

    def __init__(self, n_components: int | None = None, *, noise: Any = None) -> None:
        self.n_components = n_components
        self.noise = noise

    def fit(self, X: Any, y: Any = None) -> Self:
        """Estimate components from released columns (`y` is ignored).

        Parameters
        ----------
        X : array_like or data frame, shape (n, d)

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For missing or infinite values, wrong shapes, fewer than 2 records, an unknown column in `noise`.
        """
        X = read_columns(self, X)
        names = list(getattr(self, "feature_names_in_", range(X.shape[1])))
        return self._fit(X, resolve_noise(self.noise, names, None), names)

    def fit_release(self, release: Any, features: Any = None) -> Self:
        """Estimate components of columns of a release (all if `features` is left out).

        Parameters
        ----------
        release : Release
        features : str, int or sequence of these, optional

        Returns
        -------
        self
        """
        X, _, names, laws = read_release(release, None, features)
        check_roles(None, names, laws, label=False)
        return self._fit(read_columns(self, X), resolve_noise(laws, names, None, strict=False), names)

    def _fit(self, X: Floats, model: NoiseModel, names: Sequence[Any]) -> Self:
        n, d = X.shape
        if n < 2:
            raise ValueError("X must have at least 2 records for a covariance, got 1 sample. Pass more rows.")
        most = min(n, d)
        count = most
        if self.n_components is not None:
            count = check_integer("n_components", self.n_components, 1, most, hint="At most records and columns.")
        self.noise_, self._n_records = model, n
        self.mean_ = X.mean(axis=0)
        centred = X - self.mean_
        values, vectors = np.linalg.eigh(centred.T @ centred / (n - 1) - np.diag(model.covariance[:-1]))
        values, vectors = values[::-1], vectors[:, ::-1]
        vectors = vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(d)])
        kept = np.maximum(values, 0.0)
        self.covariance_ = (vectors * kept) @ vectors.T
        self.components_ = np.ascontiguousarray(vectors[:, :count].T)
        self.explained_variance_ = self.params_ = kept[:count]
        total = float(kept.sum())
        self.explained_variance_ratio_ = self.explained_variance_ / (total if total > 0 else 1.0)
        self.n_components_ = count
        self._columns = [str(name) for name in names]
        self._names = [f"component {j + 1}" for j in range(count)]
        scores = centred @ vectors
        self.cov_params_ = np.atleast_2d(np.cov(scores[:, :count] ** 2, rowvar=False)) / n
        self.components_bse_ = np.array([_vector_errors(scores, values, vectors, j) for j in range(count)])
        self.efficiency_ = self._cost(scores[:, :count], model)
        self.converged_ = True
        self._report(scores, values, count)
        return self

    def _cost(self, scores: Floats, model: NoiseModel) -> Efficiency:
        n, count = scores.shape
        if not model.noisy:
            return unchanged(count, n)
        if self.explained_variance_[-1] <= 0.0:
            return unavailable(count, n, _NORMAL)
        normal = 2.0 * np.diag(self.explained_variance_) ** 2 / n
        if model.moments_only:  # its operator is exact up to degree 3
            return compare(self.cov_params_, normal, n, "normal scores")
        own = [_moments(scores[:, j], self.components_[j], model) for j in range(count)]
        raw = np.empty((count, count))
        for j in range(count):
            for k in range(j + 1):
                if j == k:
                    fourth = own[j][1]
                else:  # 12 z_j^2 z_k^2 = (z_j + z_k)^4 + (z_j - z_k)^4 - 2 z_j^4 - 2 z_k^4
                    one, two = self.components_[[j, k]]
                    sides = [_moments(scores[:, j] + s * scores[:, k], one + s * two, model)[1] for s in (1.0, -1.0)]
                    fourth = (sum(sides) - 2.0 * own[j][1] - 2.0 * own[k][1]) / 12.0
                raw[j, k] = raw[k, j] = fourth - own[j][0] * own[k][0]
        if np.linalg.eigvalsh(raw)[0] <= 0.0:
            return compare(self.cov_params_, normal, n, _NORMAL)
        return compare(self.cov_params_, raw / n, n, _FOURTH)

    def _report(self, scores: Floats, values: Floats, count: int) -> None:
        n, d = scores.shape
        last = min(count, d - 1)
        gaps = values[:last] - values[1 : last + 1]
        squares = scores[:, : last + 1] ** 2
        errors = np.std(squares[:, :-1] - squares[:, 1:], axis=0) / np.sqrt(n)
        self.diagnostics_: dict[str, Any] = {
            "converged": True,
            "n_needed": None,
            "gaps": gaps,
            "gap_bse": errors,
            "projected": int(np.count_nonzero(values < -1e-12 * np.abs(values).max(initial=0.0))),
        }
        lost = self.diagnostics_["projected"]
        if lost and self.noise_.noisy:
            warnings.warn(
                f"{lost} of the {d} eigenvalues of the debiased covariance are negative and were set to 0: the noise "
                "drowns these directions. Use more records, less noise, fewer columns, or check the law and its units.",
                SmallSampleWarning,
                stacklevel=4,
            )
        floor = 1e-12 * np.abs(values).max(initial=0.0)
        close = np.flatnonzero((values[:last] > floor) & (gaps < 1.96 * errors))
        if close.size:
            pairs = ", ".join(f"{j + 1} and {j + 2}" for j in close[:8])
            warnings.warn(
                f"components {pairs}: their eigenvalues differ by less than the gap's error (1.96 standard errors), so "
                "their directions, and which comes first, are not told apart by these records. Read them as one "
                "subspace, or use more records or less noise.",
                SmallSampleWarning,
                stacklevel=4,
            )

    def summary(self, level: float = 0.95) -> str:
        """Return a printable summary: variances with intervals, and loadings; a variance is not tested against 0.

        Parameters
        ----------
        level : float
            Coverage of the intervals.

        Returns
        -------
        str
        """
        interval = self.conf_int(level)
        values = (self.explained_variance_, self.bse_, self.explained_variance_ratio_)
        table = component_table(self._columns, values, interval, level, self.components_, self.components_bse_)
        return summary_text(f"{type(self).__name__} on released data", self._facts(), table, self._notes())

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def transform(self, X: Any) -> Floats:
        """Scores of rows on the components; rows of a release keep their noise.

        Parameters
        ----------
        X : array_like, shape (n, d)

        Returns
        -------
        ndarray, shape (n, k)
        """
        check_is_fitted(self)
        X = read_columns(self, X, reset=False)
        return np.asarray((X - self.mean_) @ self.components_.T, float)

    def inverse_transform(self, X: Any) -> Floats:
        """Rows of the original space with these scores.

        Parameters
        ----------
        X : array_like, shape (n, k)

        Returns
        -------
        ndarray, shape (n, d)
        """
        check_is_fitted(self)
        scores = np.asarray(X, float)
        if scores.ndim != 2 or scores.shape[1] != self.n_components_:
            raise ValueError(
                f"X must have shape (n, {self.n_components_}), got {scores.shape}. Pass scores of transform."
            )
        return np.asarray(scores @ self.components_ + self.mean_, float)


def _vector_errors(scores: Floats, values: Floats, vectors: Floats, j: int) -> Floats:
    """Standard errors of the entries of component j."""
    n = len(scores)
    others = np.delete(np.arange(values.size), j)
    gaps = values[j] - values[others]
    if (np.abs(gaps) <= 1e-12 * np.abs(values).max(initial=0.0)).any():
        return np.full(values.size, np.inf)
    influence = scores[:, [j]] * scores[:, others] @ (vectors[:, others] / gaps).T
    return np.asarray(influence.std(axis=0) / np.sqrt(n), float)


def _moments(scores: Floats, direction: Floats, model: NoiseModel) -> tuple[float, float]:
    """Second and fourth moments of the raw scores along a direction."""
    symbol = Symbol()
    for part in model.parts:
        symbol = symbol * part.factor(0.5 * float(part.variances[:-1] @ direction**2), 0)
    _, g1, g2 = symbol.series(2)
    second, fourth = float(np.mean(scores**2)), float(np.mean(scores**4))
    return second + 2.0 * g1, fourth + 12.0 * g1 * second + 24.0 * g2
