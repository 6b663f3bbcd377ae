r"""Least squares on released columns and a released response: ``(Gram - Sigma) b = X'y / n``.

The squared loss sees only the noise's covariance, so every additive law is exact, the Gaussian included. In a
small sample ``Gram - Sigma`` may lose positive definiteness; it is then projected, and the fit says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.errors import CapabilityError
from privfit.estimators.groups import together
from privfit.estimators.least_squares import least_squares
from privfit.estimators.linear_prediction import LinearPrediction
from privfit.estimators.losses import PolynomialLoss, SquaredLoss
from privfit.estimators.losses.base import IndexLoss
from privfit.estimators.problem import Problem, index_noise, pose
from privfit.estimators.quartics import GrownSums, Summed
from privfit.estimators.reading import Passes, Source
from privfit.estimators.regression import IndexRegression
from privfit.estimators.risk import Risk
from privfit.estimators.solver import Solution, minimise
from privfit.estimators.standardise import Coordinates
from privfit.estimators.strata import Stratum

__all__ = ["LinearRegression"]

Floats = NDArray[np.float64]


class LinearRegression(LinearPrediction, IndexRegression):
    """Linear least squares, unbiased under the noise of a release.

    Parameters
    ----------
    noise : Law, Product, mapping or None
        Law of the columns of X (all, in order), or ``{column or tuple of columns: law}`` with names, integer
        positions of X, and "y" for the response (in a tuple with columns, if released together).
    correction : {"exact", "dr", "sdr", "sl", "naive"}
    fit_intercept : bool
    bound : float or array_like of shape (d,), optional
        Largest absolute value of each coefficient. Default: 10 in released standard deviations, none without
        noise.
    alpha : float
        Ridge ``alpha |coef|^2 / 2`` added to half the mean squared residual.
    stabilize : None, "auto" or float
        Ridge scaled to the noise, for small samples.
    draws : int
        Second noises that "dr", "sdr" and "sl" average over; the more, the closer to "exact", at a cost in time
        and memory in proportion.
    random_state : int, Generator or None

    Attributes
    ----------
    coef_ : ndarray, shape (d,)
    intercept_ : float
    params_, cov_params_, efficiency_, converged_, diagnostics_
        As for `LogisticRegression`.

    Examples
    --------
    >>> x = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> LinearRegression().fit(x, [1.0, 3.0, 5.0, 7.5]).coef_
    array([2.15])
    """

    _kappa = 1.5
    _quadratic = True

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

    def _fit_grown(self, names: Sequence[Any], groups: Sequence[Sequence[Source]], passes: Passes) -> Self:
        """Fit to the records so far and these: from sums over them, which are passed over once (`quartics`)."""
        if self.correction not in ("exact", "naive"):
            raise CapabilityError(
                f"correction={self.correction!r} draws a second noise, which needs the records again. Use "
                "correction='exact' for growing data."
            )
        sums = GrownSums(list(names)) if self._grown is None else self._grown
        if sums.names != list(names):
            raise ValueError(f"X must have the columns of the earlier records, {sums.names[:8]}, got {names[:8]}.")
        for group in groups:
            for x, y in passes.over(group[0].pieces(), 0):
                sums.add(x, np.asarray(y, float), group[0].model)
        assert sums.columns is not None and sums.response is not None
        c = Coordinates.of_spreads(sums.columns, sums.response, bool(self.fit_intercept))
        strata = [
            Stratum(index_noise([own.model], c, self.correction, 1, False), Summed(own.n, own.chunk(c)))
            for own in sums.parts
        ]
        memo = {
            "moments": [[own.moments(c)] for own in sums.parts],
            "samples": [own.chunk(c) for own in sums.parts],
            "scores": [partial(own.scores, c) for own in sums.parts],
        }
        self.noise_ = together([[Source(own.model, own.n, lambda: iter([]))] for own in sums.parts])
        self._inference(None, False, sum(own.n for own in sums.parts))
        self._grown = None
        self._fit_problem(pose(strata, c, self.bound, self._default_bound(self.noise_), memo), names)
        self._grown = sums
        return self

    def _loss(self, problem: Problem) -> IndexLoss:
        return SquaredLoss()

    def _loss_unit(self, response_scale: float) -> float:
        return response_scale**2

    def _search(self, problem: Problem) -> tuple[Solution, Floats]:
        """Closed form; inside the box by Newton where the closed form leaves it."""
        theta, positive = least_squares(problem.risk, 1e-3)
        start = least_squares(problem.naive, 0.0)[0] if problem.risk.corrects else theta
        if (np.abs(theta) < problem.bound).all():
            value, gradient, hessian = problem.risk.derivatives(theta)
            inside = np.zeros(theta.size, bool)
            return Solution(theta, value, gradient, hessian, True, inside, positive, 1), start
        solution = minimise(problem.risk, np.clip(theta, -problem.bound, problem.bound), problem.bound)
        return replace(solution, positive=positive and solution.positive), start

    def _oracle_scores(self, risk: Risk, theta: Floats, curvature: Floats) -> tuple[Floats, str]:
        ridge = 0.5 * float(risk.penalty @ theta**2)
        variance = max(2.0 * (risk.value(theta) - ridge), 0.0)
        return (
            variance * curvature,
            "residual variance times the corrected Gram matrix (equal error variances)",
        )

    def _squared_scores(self, risk: Risk) -> Risk | None:
        exact = not self.noise_.moments_only
        return risk.with_(loss=PolynomialLoss([0.0, 0.0, 0.0, 0.0, 1.0 / 12.0])) if exact else None
