r"""Ridge regression on a release: ``min (1/2) E(y - x'b)^2 + (alpha/2) |b|^2``, ``(Gram - Sigma + alpha I) b = X'y/n``.

The penalty acts beside the corrected Gram matrix: it adds to a curvature that noise left weak, and it is the same
penalty that the raw data would get.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from privfit.estimators.linear_regression import LinearRegression

__all__ = ["Ridge"]


class Ridge(LinearRegression):
    """Least squares with a ridge penalty, unbiased under the noise of a release for the penalised raw-data fit.

    Parameters
    ----------
    alpha : float
        Strength >= 0 of ``alpha |coef|^2 / 2`` beside half the MEAN squared residual; the intercept is not
        penalised. scikit-learn's `Ridge` sums the squared residuals: its alpha is n times this one. The default
        equals scikit-learn's at n = 100.
    noise, correction, fit_intercept, bound, stabilize, draws, random_state
        As for `LinearRegression`.

    Attributes
    ----------
    coef_, intercept_, params_, cov_params_, efficiency_, converged_, diagnostics_
        As for `LinearRegression`. Standard errors are those of the penalised estimate: they do not contain its
        shrinkage.

    Examples
    --------
    >>> x = np.array([[-1.0], [0.0], [1.0]])
    >>> Ridge(2.0 / 3.0).fit(x, [-1.0, 0.0, 1.0]).coef_
    array([0.5])
    """

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        noise: Any = None,
        correction: str = "exact",
        fit_intercept: bool = True,
        bound: Any = None,
        stabilize: Any = None,
        draws: int = 1,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        super().__init__(
            noise=noise,
            correction=correction,
            fit_intercept=fit_intercept,
            bound=bound,
            alpha=alpha,
            stabilize=stabilize,
            draws=draws,
            random_state=random_state,
        )
