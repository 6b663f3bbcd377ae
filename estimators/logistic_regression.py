r"""Logistic regression on released columns and randomised labels.

Loss ``log(1 + e^u) - y u``: affine in y, so a label flipped with known probability is corrected by the
unbiased label ``y* = (y~ - (1 - p)) / (2 p - 1)``; the columns' noise acts on ``log(1 + e^u)`` alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from privfit.estimators.checks import read_columns
from privfit.estimators.losses import LogisticLoss
from privfit.estimators.losses.base import IndexLoss
from privfit.estimators.noise import NoiseModel
from privfit.estimators.problem import Problem
from privfit.estimators.regression import IndexRegression
from privfit.estimators.risk import Risk

__all__ = ["LogisticRegression"]

Floats = NDArray[np.float64]


class LogisticRegression(ClassifierMixin, IndexRegression):  # type: ignore[misc]
    """Binary logistic regression, unbiased under the noise of a release.

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
        Ridge ``alpha |coef|^2 / 2`` added to the mean loss.
    stabilize : None, "auto" or float
        Ridge scaled to the noise, for small samples: never, where the corrected curvature is not safely
        positive, or always with this strength.
    draws : int
        Second noises that "dr", "sdr" and "sl" average over; the more, the closer to "exact", at a cost in time
        and memory in proportion.
    random_state : int, Generator or None
        For the second noise of "dr", "sdr" and "sl".

    Attributes
    ----------
    classes_ : ndarray, shape (2,)
    coef_ : ndarray, shape (1, d)
    intercept_ : ndarray, shape (1,)
    params_ : ndarray, shape (p,)
        Intercept (if any), then coefficients.
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

    _is_label = True
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
        """Tags for scikit-learn: two classes only."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _read_response(self, y: Any, model: NoiseModel) -> Floats:
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if self.classes_.size != 2:
            raise ValueError(
                f"y must have 2 classes, got {self.classes_.size} class"
                f"{'' if self.classes_.size == 1 else 'es'}. Only binary classification is supported: "
                "merge classes, or collect records of both."
            )
        labels = codes.astype(float)
        return (
            labels
            if model.keep == 1.0 or self.correction == "naive"
            else (labels - (1 - model.keep)) / (2 * model.keep - 1)
        )

    def _loss(self, problem: Problem) -> IndexLoss:
        return LogisticLoss()

    def _facts(self) -> list[tuple[str, str]]:
        name = self._target if isinstance(self._target, str) and self._target else "y"
        if isinstance(self._target, (int, np.integer)):
            name = f"column {self._target}"
        facts = super()._facts()
        return [facts[0], ("Modelled", f"P({name} = {self.classes_[1]})"), *facts[1:]]

    def _oracle_scores(self, risk: Risk, theta: Floats, curvature: Floats) -> tuple[Floats, str]:
        return curvature, "information equality, their covariance is the corrected Hessian"

    def _default_bound(self, model: NoiseModel) -> float:
        return 10.0 if model.noisy else 30.0

    def _shape_intercept(self, value: float) -> Any:
        return np.array([value])

    def _shape_coefficients(self, values: Floats) -> Floats:
        return values[None, :]

    def decision_function(self, X: Any) -> Floats:
        """Index ``intercept + X coef`` of each row.

        Parameters
        ----------
        X : array_like, shape (n, d)
            Columns without noise, or as released.

        Returns
        -------
        ndarray, shape (n,)
        """
        check_is_fitted(self)
        X = read_columns(self, X, reset=False)
        return np.asarray(X @ self.coef_[0] + self.intercept_[0], float)

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the two classes, in the order of `classes_`, shape (n, 2)."""
        from scipy.special import expit

        check_is_fitted(self)
        index = self.decision_function(X)
        return np.stack([expit(-index), expit(index)], axis=1)

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable class of each row, shape (n,)."""
        check_is_fitted(self)
        return np.asarray(self.classes_[(self.decision_function(X) > 0).astype(int)])
