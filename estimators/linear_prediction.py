"""Prediction by the index: what regressions whose fitted value is ``intercept + X coef`` share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from privfit.estimators.checks import read_columns

__all__ = ["LinearPrediction"]

Floats = NDArray[np.float64]


class LinearPrediction(RegressorMixin):  # type: ignore[misc]
    """Mixin with `predict` for the regressions of an index.

    Examples
    --------
    >>> from privfit.estimators import LinearRegression
    >>> LinearRegression().fit([[0.0], [1.0]], [1.0, 3.0]).predict([[2.0]]).round(9)
    array([5.])
    """

    coef_: Floats
    intercept_: Any

    def predict(self, X: Any) -> Floats:
        """Fitted values.

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
        return np.asarray(X @ self.coef_ + self.intercept_, float)
