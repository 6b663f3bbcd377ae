"""What classifiers of two classes share: labels as sorted classes, an index, a decision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from privfit.estimators.checks import read_columns
from privfit.estimators.noise import NoiseModel
from privfit.estimators.regression import IndexRegression

__all__ = ["BinaryClassifier"]

Floats = NDArray[np.float64]


class BinaryClassifier(ClassifierMixin, IndexRegression):  # type: ignore[misc]
    """Base of classifiers with one index ``u = b_0 + x'b``, positive for the second class.

    Examples
    --------
    >>> BinaryClassifier.__name__
    'BinaryClassifier'
    """

    _is_label = True
    classes_: NDArray[Any]

    def __sklearn_tags__(self) -> Any:
        """Tags for scikit-learn: two classes only."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _read_labels(self, y: Any, model: NoiseModel) -> NDArray[np.intp]:
        """Learn `classes_` and return the position of each label."""
        check_classification_targets(y)
        if model.categories != 2:
            raise ValueError(
                f"categories must be 2 for a binary model, got {model.categories} in the law of y. Merge classes "
                "before the release, or use LogisticRegression."
            )
        self.classes_, codes = np.unique(y, return_inverse=True)
        if self.classes_.size != 2:
            raise ValueError(
                f"y must have 2 classes, got {self.classes_.size} class"
                f"{'' if self.classes_.size == 1 else 'es'}. Only binary classification is supported: "
                "merge classes, or collect records of both."
            )
        return np.asarray(codes, np.intp)

    def _facts(self) -> list[tuple[str, str]]:
        name = self._target if isinstance(self._target, str) and self._target else "y"
        if isinstance(self._target, (int, np.integer)):
            name = f"column {self._target}"
        facts = super()._facts()
        return [facts[0], ("Modelled", f"P({name} = {self.classes_[1]})"), *facts[1:]]

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

    def predict(self, X: Any) -> NDArray[Any]:
        """Class of each row: the second where the index is positive, shape (n,)."""
        check_is_fitted(self)
        return np.asarray(self.classes_[(self.decision_function(X) > 0).astype(int)])
