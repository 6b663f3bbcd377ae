r"""Common base of the regressions: one index ``u = b_0 + x'b``, a corrected risk, a sandwich.

A subclass says how the response enters (`_read_response`), which loss (`_loss`), how to search (`_search`)
and what the raw-data score covariance is (`_oracle_scores`); validation, solver, warnings and inference are
written once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from privfit.accounting.validation import check_choice, check_integer, check_number
from privfit.estimators.checks import check_random_state, read_columns_and_response
from privfit.estimators.clusters import between_rows
from privfit.estimators.corrections import CORRECTIONS
from privfit.estimators.diagnostics import curvature_error, report_plain, report_solution
from privfit.estimators.efficiency import RIDGE, compare, unavailable, unchanged
from privfit.estimators.errors import CapabilityError
from privfit.estimators.inference import sandwich
from privfit.estimators.kept import RecordsMixin
from privfit.estimators.losses.base import IndexLoss
from privfit.estimators.noise import NoiseModel, resolve_noise
from privfit.estimators.noted import noted_warnings
from privfit.estimators.pieces import PiecesMixin
from privfit.estimators.problem import Problem, Sample, build_problem
from privfit.estimators.restarts import SUSPICIOUS, restarted
from privfit.estimators.results import ResultsMixin
from privfit.estimators.risk import Risk
from privfit.estimators.row_noise import RowNoise
from privfit.estimators.runaway import runaway, settled
from privfit.estimators.solver import Solution, minimise, one_step, polish, solve
from privfit.estimators.stabilise import ESCALATION, MARGIN, stabilising_penalty, stable

__all__ = ["IndexRegression"]

Floats = NDArray[np.float64]
_WARM, _WARM_ON_DISK = 30_000, 100_000  # a pass over a file is dearer than a search in memory


class IndexRegression(PiecesMixin, RecordsMixin, ResultsMixin, BaseEstimator):  # type: ignore[misc]
    """Base class; see `LogisticRegression`, `LinearRegression`, `QuantileRegression`.

    Examples
    --------
    >>> IndexRegression.__name__
    'IndexRegression'
    """

    _is_label = False
    _kernel_smoothed = False  # whether correction="wsz" has a loss here
    _is_linear = False  # a numeric response that enters the loss as -y u
    _quadratic = False
    _kappa = 1.0
    _target: Any = None
    _range: float | None = None
    _left_bias: Floats | None = None  # of a smoothed loss, in standard coordinates: it counts as error

    def fit(self, X: Any, y: Any, *, clusters: Any = None, keep_records: bool = False) -> Self:
        """Fit to released columns X and response y.

        Parameters
        ----------
        X : array_like or data frame, shape (n, d)
            Columns as released.
        y : array_like, shape (n,)
            Response as released.
        clusters : array_like, shape (n,), optional
            Labels of rows that depend on each other (of one person), for cluster-robust standard errors.
        keep_records : bool
            Keep what score tests and the bootstrap need (the columns; never part of a pickle or a copy).

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For missing or infinite values, wrong shapes, an unknown column in `noise`, invalid parameters.
        CapabilityError
            If the loss has no exact inverse under this noise.
        """
        self._check_parameters()
        self._target = getattr(y, "name", None)
        X, y = self._validate(X, y)
        names = list(getattr(self, "feature_names_in_", range(X.shape[1])))
        self._range = self._grown = None
        if isinstance(self.noise, RowNoise):
            if clusters is not None:
                raise CapabilityError("clusters are not available with RowNoise. Leave them out, or use one law.")
            return self._fit_rows(X, y, self.noise, names, keep_records)
        self._inference(clusters, keep_records, len(X))
        return self._fit(X, y, resolve_noise(self.noise, names, "y", label=self._is_label), names)

    def _check_parameters(self) -> None:
        if check_choice("correction", self.correction, CORRECTIONS) == "wsz" and not self._kernel_smoothed:
            raise CapabilityError(
                f"correction='wsz' is known for the check loss only, not for {type(self).__name__}: missing is a "
                "kernel-smoothed loss. Use correction='exact', or QuantileRegression."
            )
        check_integer("draws", self.draws, 1, 1000, hint="Each draw holds one more copy of the columns.")
        check_number("alpha", self.alpha, 0.0)
        if not isinstance(self.fit_intercept, (bool, np.bool_)):
            raise TypeError(f"fit_intercept must be True or False, got {type(self.fit_intercept).__name__}.")
        check_random_state(self.random_state)
        if isinstance(self.stabilize, str):
            check_choice("stabilize", self.stabilize, ("auto",), hint="Or None, or a positive number.")
        elif self.stabilize is not None:
            check_number("stabilize", self.stabilize, 0.0, low_open=True, hint="Or None, or 'auto'.")

    def _validate(self, X: Any, y: Any, reset: bool = True) -> tuple[Floats, Any]:
        return read_columns_and_response(self, X, y, label=self._is_label, reset=reset)

    def _fit(self, X: Floats, y: Any, model: NoiseModel, names: Sequence[Any]) -> Self:
        self._check_law(model)
        return self._fit_samples([Sample.of(X, self._read_response(y, model), model)], model, names)

    def _fit_samples(self, samples: Sequence[Sample], model: NoiseModel, names: Sequence[Any]) -> Self:
        self.noise_ = model
        problem = build_problem(
            samples,
            correction=self.correction,
            draws=int(self.draws),
            label=self._is_label or self._is_linear,
            intercept=bool(self.fit_intercept),
            bound=self.bound,
            default_bound=self._default_bound(model),
            random_state=self.random_state,
        )
        return self._fit_problem(problem, names)

    def _fit_problem(self, problem: Problem, names: Sequence[Any]) -> Self:
        self._names = (["const"] if self.fit_intercept else []) + [str(name) for name in names]
        problem = self._pose(problem)
        if self.alpha:
            problem = problem.penalised(self._alpha_penalty(problem))
        solution, problem, start = self._stabilised_search(problem)
        solution = self._reconsidered(solution, problem, start)
        with noted_warnings(self):
            self._store(solution, problem, start)
            self._finish(solution, problem)
        self._keep_records(solution, problem)
        return self

    def _check_law(self, model: NoiseModel) -> None:
        if model.moments_only and not self._quadratic and self.correction != "naive":
            raise CapabilityError(
                f"{type(self).__name__.removeprefix('_Column')} has no exact inverse under DiscreteLaplace noise: "
                "it is known for squared losses only (LinearRegression, Mean). Release with Laplace or "
                "SymmetricLaplace instead, or use correction='naive'."
            )

    def _alpha_penalty(self, problem: Problem) -> Floats:
        """``alpha |b|^2 / 2`` in standard coordinates and in units of the standardised loss."""
        c = problem.coordinates
        penalty = np.zeros(problem.risk.size)
        unit = c.response_scale**2 / self._loss_unit(c.response_scale)
        penalty[problem.lead :] = self.alpha * unit / c.scale**2
        return penalty

    def _stabilised_search(self, problem: Problem) -> tuple[Solution, Problem, Floats]:
        """Search; where asked for and needed, once more with the stabilising penalty."""
        self._stabilised = False
        kappa = self._kappa if self.stabilize == "auto" else float(self.stabilize or 0.0)
        penalty = stabilising_penalty(problem.risk, kappa)
        possible = self.correction != "naive" and bool(penalty.any())
        if possible and self.stabilize != "auto":
            self._stabilised, problem = True, problem.penalised(penalty)
        solution, start = self._search(problem)
        optional = possible and self.stabilize == "auto"
        if optional and not (stable(solution, MARGIN * penalty) and settled(solution, problem)):
            self._stabilised, plain = True, problem
            for strength in ESCALATION:
                problem = plain.penalised(strength * penalty)
                solution, start = self._search(problem)
                if stable(solution, penalty) and settled(solution, problem):
                    break
        return solution, problem, start

    def _reconsidered(self, solution: Solution, problem: Problem, start: Floats) -> Solution:
        """Search from more starts where the first solution may be one minimum of several."""
        risk = problem.risk
        if not risk.corrects or self._quadratic:
            return solution
        error = curvature_error(risk, solution) if solution.interior else np.inf
        if error <= SUSPICIOUS:
            return solution
        found = restarted(risk, solution, start, problem.bound)
        if self.stabilize == "auto" and settled(solution, problem) and not settled(found, problem):
            return solution  # the ridge ended with this one, or was let off for it
        return found

    def _search(self, problem: Problem) -> tuple[Solution, Floats]:
        """Naive fit and one corrected step on a subsample, then all records; returns also the naive fit."""
        risk, bound = problem.risk, problem.bound
        warm = _WARM if risk.held else _WARM_ON_DISK
        few, few_naive = risk.thinned(warm), problem.naive.thinned(warm)
        start = minimise(few_naive, np.zeros(risk.size), bound, tolerance=1e-6).theta
        if not risk.corrects:
            quick = polish(risk, start, bound) if few is not risk else None
            return quick or solve(risk, [start], bound), start
        stepped = one_step(few, start)
        starts = [start] if stepped is None else [stepped, start]
        if few is not risk:
            near = solve(few, starts, bound, tolerance=1e-6)
            if near.interior:
                solution = polish(risk, near.theta, bound) or minimise(risk, near.theta, bound)
                if solution.interior:
                    return solution, start
                starts.insert(0, near.theta)
        return solve(risk, starts, bound), start

    def _store(self, solution: Solution, problem: Problem, start: Floats) -> None:
        risk, lead, coordinates = problem.risk, problem.lead, problem.coordinates
        theta, noisy = solution.theta, self.noise_.noisy
        scored = solution.of_scores(risk)
        between = between_rows(scored, theta, self._codes)
        standard = sandwich(solution.hessian, scored.score_covariance(theta) + between, risk.n)
        if self._left_bias is not None:
            standard += np.outer(self._left_bias, self._left_bias)
        corrected, collinear = noisy and self.correction != "naive", problem.collinear
        odd = runaway(solution, problem) if corrected and not (collinear or self._quadratic) else []
        if solution.at_bound.any() or (noisy and not solution.interior) or odd:
            standard = np.diag(np.full(risk.size, np.inf))
        standard = problem.mark_flat(standard)
        self.params_ = coordinates.original(theta)
        self.intercept_ = self._shape_intercept(float(self.params_[0]) if lead else 0.0)
        self.coef_ = self._shape_coefficients(self.params_[lead:])
        self.cov_params_ = coordinates.covariance(standard)
        if noisy:
            oracle, assumption = self._raw_scores(solution, risk)
            raw = coordinates.covariance(problem.mark_flat(sandwich(solution.hessian, oracle + between, risk.n)))
            self.efficiency_ = compare(self.cov_params_, raw, risk.n, assumption)
        else:
            self.efficiency_ = unchanged(theta.size, risk.n)
        self.converged_, self.n_iter_ = solution.converged, max(solution.iterations, 1)
        self._n_records = risk.n
        size, varying = max(float(np.linalg.norm(theta[lead:])), 1.0), ~coordinates.flat
        plain = not corrected or collinear or problem.flat.any()
        found: dict[str, Any] = report_plain(solution, problem, self._names[lead:]) if plain else {}
        if corrected and not collinear:
            spread = float(np.sqrt(np.trace(standard[lead:, lead:][np.ix_(varying, varying)]))) / size
            naive, hint = problem.naive, self._hint(coordinates.original(start)[lead:])
            found |= report_solution(solution, risk, naive, start, spread, problem.bound_text, odd, hint)
        found |= {
            "stabilised": self._stabilised,
            "penalised": bool(self._stabilised or self.alpha),
            "penalty": risk.penalty[lead:]
            * (coordinates.scale / coordinates.response_scale) ** 2
            * self._loss_unit(coordinates.response_scale),
            "bound": problem.bound_text,
        }
        self.diagnostics_ = found | self._extra_diagnostics(problem)
        if noisy and (found.get("n_needed") or self.diagnostics_.get("bandwidth_too_wide")):
            self.efficiency_ = unavailable(theta.size, risk.n, assumption)
        elif self._stabilised:
            self.efficiency_ = unavailable(theta.size, risk.n, RIDGE)

    # what a subclass says ---------------------------------------------------------------------------

    def _read_response(self, y: Any, model: NoiseModel) -> Floats:
        return np.asarray(y, float)

    def _pose(self, problem: Problem) -> Problem:
        """Put the loss into the problem."""
        return problem.with_loss(self._loss(problem))

    def _loss(self, problem: Problem) -> IndexLoss:
        """Loss in standard coordinates; the problem comes with a squared loss."""
        raise NotImplementedError

    def _oracle_scores(self, risk: Risk, theta: Floats, curvature: Floats) -> tuple[Floats, str]:
        raise NotImplementedError

    def _default_bound(self, model: NoiseModel) -> float:
        return 10.0 if model.noisy else np.inf

    def _loss_unit(self, response_scale: float) -> float:
        """Size of the loss when the response is scaled by `response_scale`."""
        return 1.0

    def _finish(self, solution: Solution, problem: Problem) -> None:
        """Last look at the data for a subclass that needs more than the sandwich."""

    def _extra_diagnostics(self, problem: Problem) -> dict[str, Any]:
        return {}

    def _hint(self, slopes: Floats) -> str:
        return ""  # what a warning says beside the rest, at naive slopes

    def _shape_intercept(self, value: float) -> Any:
        return value

    def _shape_coefficients(self, values: Floats) -> Floats:
        return values
