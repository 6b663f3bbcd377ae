r"""Logistic regression on released columns and randomised labels.

Loss ``log(1 + e^u) - y u``: affine in y, so a label flipped with known probability is corrected by the
unbiased label ``y* = (y~ - (1 - p)) / (2 p - 1)``; the columns' noise acts on ``log(1 + e^u)`` alone. More than two
classes: the multinomial likelihood, or all pairs of classes where columns are noised (`multinomial_risk`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from privfit.estimators.checks import read_columns
from privfit.estimators.classifier import BinaryClassifier
from privfit.estimators.losses import LogisticLoss, RandomizedLabelLoss
from privfit.estimators.losses.base import IndexLoss
from privfit.estimators.multinomial import fit_multinomial
from privfit.estimators.noise import NoiseModel
from privfit.estimators.problem import Problem
from privfit.estimators.released import declared_labels
from privfit.estimators.risk import Risk
from privfit.estimators.squared_score import LogisticSquare, signed_by_labels

__all__ = ["LogisticRegression"]

Floats = NDArray[np.float64]


class LogisticRegression(BinaryClassifier):
    """Logistic regression with two or more classes, unbiased under the noise of a release.

    Parameters
    ----------
    noise : Law, Product, mapping or None
        Law of the columns of X (all, in order), or ``{column or tuple of columns: law}`` with names, integer
        positions of X, and "y" for a `RandomizedResponse` of the label. None: ordinary logistic regression.
    correction : {"exact", "dr", "sdr", "sl", "naive"}
        How to correct; the middle three draw a second noise for a zero-inflated law.
    fit_intercept : bool
    bound : float or array_like of shape (d,), optional
        Largest absolute value of each coefficient. Default: 10 per released standard deviation (30 without
        noise).
    alpha : float
        Ridge ``alpha |coef|^2 / 2`` added to the mean loss; scikit-learn's ``C = 1 / (n alpha)``. With noised columns
        and K > 2 classes the loss is a sum over pairs, K - 1 of them for each record.
    stabilize : None, "auto" or float
        Ridge scaled to the noise, for small samples: never, where the corrected curvature is not safely
        positive, or always with this strength. Two classes only.
    draws : int
        Second noises that "dr", "sdr" and "sl" average over; the more, the closer to "exact", at a cost in time
        and memory in proportion.
    random_state : int, Generator or None
        For the second noise of "dr", "sdr" and "sl".

    Attributes
    ----------
    classes_ : ndarray, shape (K,)
    coef_ : ndarray, shape (1, d) for two classes, (K, d) for more
        As in scikit-learn: log odds of the second class, or rows that sum to 0 over the classes.
    intercept_ : ndarray, shape (1,) or (K,)
    params_ : ndarray, shape (p,)
        Intercept (if any), then coefficients: log odds against the first class, class after class (as statsmodels).
    cov_params_ : ndarray, shape (p, p)
        Sandwich covariance; infinite variances where the fit gives none.
    efficiency_ : Efficiency
        What privacy cost in standard errors.
    converged_ : bool
    diagnostics_ : dict

    References
    ----------
    Lu, Chen & Qiu (zero-inflated noise, corrections); docs/mathematics.md (exact correction, generalised
    Laplace).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, (20_000, 2))
    >>> y = rng.random(20_000) < 1 / (1 + np.exp(-x.sum(axis=1)))
    >>> released = x + 0.5 * np.sqrt(rng.exponential(size=(20_000, 1))) * rng.normal(size=x.shape)
    >>> from privfit.mechanisms import SymmetricLaplace
    >>> model = LogisticRegression(noise=SymmetricLaplace(0.5)).fit(released, y)
    >>> bool(np.all(np.abs(model.coef_ - 1) < 4 * model.bse_[1:]))
    True
    """

    _kappa = 0.25
    _declared: Any = None

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
        """Tags for scikit-learn: any number of classes."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags

    def fit_release(self, release: Any, target: Any = None, features: Any = None, **options: Any) -> Self:
        """Fit to a release; see `IndexRegression.fit_release`. The classes are the labels it declares."""
        self._declared = declared_labels(release).get(target) if hasattr(release, "domain") else None
        try:
            return super().fit_release(release, target, features, **options)
        finally:
            self._declared = None

    def _fit(self, X: Floats, y: Any, model: NoiseModel, names: Sequence[Any]) -> Self:
        check_classification_targets(y)
        labels = np.unique(np.asarray(y))
        if max(labels.size, model.categories) <= 2:
            return super()._fit(X, y, model, names)
        self._check_law(model)
        if model.keep < 1.0:
            labels = labels if self._declared is None else np.unique(np.asarray(self._declared, labels.dtype))
            if labels.size != model.categories:
                raise ValueError(
                    f"y must hold the {model.categories} labels of its law, got {labels.size}. Check categories=, or "
                    "use fit_release, which knows the declared labels."
                )
        if not np.isin(y, labels).all():
            raise ValueError(f"y must hold declared labels only, which are {labels.size}. Check the target column.")
        self.classes_ = labels
        fit_multinomial(self, X, np.searchsorted(labels, y), model, names)
        self._kept = self._codes = None
        return self

    def _read_response(self, y: Any, model: NoiseModel) -> Floats:
        labels = self._read_labels(y, model).astype(float)
        if model.keep == 1.0 or self.correction == "naive":
            return labels
        return np.asarray((labels - (1 - model.keep)) / (2 * model.keep - 1), float)

    def _loss(self, problem: Problem) -> IndexLoss:
        return LogisticLoss()

    def _oracle_scores(self, risk: Risk, theta: Floats, curvature: Floats) -> tuple[Floats, str]:
        return curvature, "information equality, their covariance is the corrected Hessian"

    def _squared_scores(self, risk: Risk) -> Risk | None:
        strata, loss = signed_by_labels(risk.strata), LogisticSquare()
        if strata is None:
            return None
        keep = self.noise_.keep
        return Risk(loss if keep == 1.0 else RandomizedLabelLoss(loss, keep), strata, risk.size)

    def _facts(self) -> list[tuple[str, str]]:
        facts = super()._facts()
        if self.classes_.size > 2:
            facts[1] = ("Modelled", f"log odds of {self.classes_.size - 1} classes against {self.classes_[0]}")
        return facts

    def decision_function(self, X: Any) -> Floats:
        """Index ``intercept + X coef`` of each row; of each class, if there are more than two.

        Parameters
        ----------
        X : array_like, shape (n, d)
            Columns without noise, or as released.

        Returns
        -------
        ndarray, shape (n,) or (n, K)
        """
        check_is_fitted(self)
        if self.classes_.size == 2:
            return super().decision_function(X)
        X = read_columns(self, X, reset=False)
        return np.asarray(X @ self.coef_.T + self.intercept_, float)

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes, in the order of `classes_`, shape (n, K)."""
        from scipy.special import expit, softmax

        index = self.decision_function(X)
        if index.ndim == 2:
            return np.asarray(softmax(index, axis=1), float)
        return np.stack([expit(-index), expit(index)], axis=1)

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable class of each row, shape (n,)."""
        index = self.decision_function(X)
        return np.asarray(self.classes_[index.argmax(axis=1) if index.ndim == 2 else (index > 0).astype(int)])
