r"""Inference that needs the records again: score tests, their inversion, the bootstrap.

A fitted model holds estimates and covariances, a few kilobytes, and no data. What follows needs the corrected score of
each record. ``fit(..., keep_records=True)`` therefore keeps the fit's corrected risk: for a release in memory its
standardised columns (p n numbers, as much as the fit had used), for a release on disk only how to read it. Scores are
never stored; they are computed again, block by block, at the parameters that a test needs. Pickles and copies leave the
records out, so that no file of a fitted model carries data by accident.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from privfit.estimators.clusters import read_clusters
from privfit.estimators.contrasts import check_contrasts, place_of
from privfit.estimators.problem import Problem
from privfit.estimators.risk import Risk
from privfit.estimators.solver import Solution
from privfit.estimators.squared_score import SAMPLE, choose_scores

__all__ = ["Kept", "RecordsMixin"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Kept:
    """The corrected risk of a fit, and where the fit ended.

    Attributes
    ----------
    solution : Solution
        In standard coordinates.
    problem : Problem
    codes : ndarray, shape (n,), or None
        Clusters of the rows.
    shift : ndarray, shape (p,)
        ``params = matrix @ theta + shift``.

    Examples
    --------
    >>> Kept.__name__
    'Kept'
    """

    solution: Solution
    problem: Problem
    codes: NDArray[np.intp] | None
    shift: Floats

    @property
    def scored(self) -> Risk:
        """The risk with the loss whose scores the estimate has (`Solution.scored`)."""
        return self.solution.of_scores(self.problem.risk)

    @property
    def matrix(self) -> Floats:
        """Map from standard to original coefficients, shape (p, p)."""
        return self.problem.coordinates.matrix


class RecordsMixin:
    """Methods of a fit that kept its records.

    Examples
    --------
    >>> from privfit.estimators import LinearRegression
    >>> x = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> fit = LinearRegression().fit(x, [1.0, 3.0, 5.0, 7.5], keep_records=True)
    >>> round(fit.score_test([0, 1])[0], 3)
    2.402
    """

    params_: Floats
    _names: list[str]
    _codes: NDArray[np.intp] | None = None
    _kept: Kept | None = None
    _keep = False
    _groups: int | None = None

    def __getstate__(self) -> Any:
        """State for pickles and copies: everything but the records."""
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        state.pop("_kept", None)
        state.pop("_codes", None)
        return state

    def _inference(self, clusters: Any, keep_records: bool, n: int) -> None:
        """Note what inference the fit is asked for."""
        if not isinstance(keep_records, (bool, np.bool_)):
            raise TypeError(f"keep_records must be True or False, got {type(keep_records).__name__}.")
        self._codes = None if clusters is None else read_clusters(clusters, n)
        self._groups = None if self._codes is None else int(self._codes.max()) + 1
        self._keep = bool(keep_records)

    def _keep_records(self, solution: Solution, problem: Problem) -> None:
        shift = self.params_ - problem.coordinates.matrix @ solution.theta
        self._kept = Kept(solution, problem, self._codes, shift) if self._keep else None
        self._codes = None

    def _raw_scores(self, solution: Solution, risk: Risk) -> tuple[Floats, str]:
        """Covariance that the scores of the raw data have, and how it was estimated."""
        assumed = self._oracle_scores(risk, solution.theta, solution.hessian - np.diag(risk.penalty))
        if getattr(self, "correction", "exact") == "naive":
            return assumed
        squared = self._squared_scores(risk.thinned(SAMPLE))
        return choose_scores(squared, solution.theta, solution.hessian, assumed, risk.n)

    def _oracle_scores(self, risk: Risk, theta: Floats, curvature: Floats) -> tuple[Floats, str]:
        """By an assumption of the model."""
        raise NotImplementedError

    def _squared_scores(self, risk: Risk) -> Risk | None:
        """Risk whose Hessian is the covariance of the raw scores (`squared_score`); None where none is known."""
        return None

    def _records(self, wanted_for: str) -> Kept:
        check_is_fitted(self)
        if self._kept is None:
            raise ValueError(
                f"{wanted_for} needs the records of the fit, and a fitted model keeps none (nor does a copy from a "
                "pickle). Fit with keep_records=True."
            )
        return self._kept

    def score_test(self, contrasts: Any, values: Any = 0.0) -> tuple[float, float]:
        """Score test of ``contrasts @ params_ = values``, from a fit under this restriction.

        It needs no curvature along the tested directions and keeps its size where noise makes this curvature, and
        with it the Wald test, unreliable. See `score_test`.

        Parameters
        ----------
        contrasts : names, or array_like of shape (m, p)
            Coefficients, or rows of linear hypotheses, intercept first; full row rank.
        values : float or array_like, shape (m,)

        Returns
        -------
        statistic, p_value : float
            Chi-squared with m degrees of freedom.

        Raises
        ------
        ValueError
            If the fit kept no records, the shape is wrong, the rows depend on each other, or the restricted fit has
            no proper minimum.
        """
        from privfit.estimators.score_test import score_test

        kept = self._records("score_test")
        return score_test(kept, *check_contrasts(contrasts, values, self._names))

    def score_interval(self, coefficient: Any, level: float = 0.95) -> tuple[float, float]:
        """Values of one coefficient that the score test does not reject, around the estimate.

        Parameters
        ----------
        coefficient : str or int
            Name, or position in `params_`.
        level : float
            Coverage in (0, 1).

        Returns
        -------
        lower, upper : float
            Infinite where no value on that side is rejected before the restricted fit loses its proper minimum.

        Raises
        ------
        ValueError, TypeError
            If the fit kept no records, has no such coefficient, or no proper minimum itself.
        """
        from privfit.estimators.score_test import score_interval

        return score_interval(self._records("score_interval"), self._place(coefficient), level)

    def bootstrap(
        self,
        replications: int = 999,
        *,
        weights: str = "exponential",
        curvature: str = "fixed",
        random_state: int | np.random.Generator | None = None,
    ) -> Any:
        """One-step bootstrap on the release: each replication weights the scores anew and takes one Newton step.

        Parameters
        ----------
        replications : int
            Number of replications.
        weights : {"exponential", "mammen", "resample"}
            Weights of the records (or clusters), see `bootstrap.one_step_bootstrap`.
        curvature : {"fixed", "estimated"}
            The curvature of the fit, or that of the weighted records.
        random_state : int, Generator or None

        Returns
        -------
        Bootstrap
            With `standard_errors`, `conf_int(level, kind)` and the draws.

        Raises
        ------
        ValueError, TypeError
            If the fit kept no records or has no proper minimum, or for an invalid parameter.
        """
        from privfit.estimators.bootstrap import one_step_bootstrap

        kept = self._records("bootstrap")
        return one_step_bootstrap(
            kept, self.params_, replications, weights=weights, curvature=curvature, random_state=random_state
        )

    def _place(self, coefficient: Any) -> int:
        if isinstance(coefficient, str):
            return place_of(coefficient, self._names, "coefficient")
        if isinstance(coefficient, (bool, np.bool_)) or not isinstance(coefficient, (int, np.integer)):
            raise TypeError(f"coefficient must be a name or a position, got {type(coefficient).__name__}.")
        if not 0 <= coefficient < self.params_.size:
            raise ValueError(f"coefficient must be a position from 0 to {self.params_.size - 1}, got {coefficient}.")
        return int(coefficient)
