r"""Logistic regression on released columns and randomised labels.

Loss ``log(1 + e^u) - y u``: affine in y, so a label flipped with known probability is corrected by the
unbiased label ``y* = (y~ - (1 - p)) / (2 p - 1)``; the columns' noise acts on ``log(1 + e^u)`` alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from privfit.estimators.classifier import BinaryClassifier
from privfit.estimators.losses import LogisticLoss
from privfit.estimators.losses.base import IndexLoss
from privfit.estimators.noise import NoiseModel
from privfit.estimators.problem import Problem
from privfit.estimators.risk import Risk

__all__ = ["LogisticRegression"]

Floats = NDArray[np.float64]


class LogisticRegression(BinaryClassifier):
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

    def _read_response(self, y: Any, model: NoiseModel) -> Floats:
        labels = self._read_labels(y).astype(float)
        if model.keep == 1.0 or self.correction == "naive":
            return labels
        return np.asarray((labels - (1 - model.keep)) / (2 * model.keep - 1), float)

    def _loss(self, problem: Problem) -> IndexLoss:
        return LogisticLoss()

    def _oracle_scores(self, risk: Risk, theta: Floats, curvature: Floats) -> tuple[Floats, str]:
        return curvature, "information equality, their covariance is the corrected Hessian"

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the two classes, in the order of `classes_`, shape (n, 2)."""
        from scipy.special import expit

        check_is_fitted(self)
        index = self.decision_function(X)
        return np.stack([expit(-index), expit(index)], axis=1)
