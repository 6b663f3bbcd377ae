r"""Linear support vector classification on released columns and randomised labels.

Loss ``f(m)`` of the margin ``m = y (b_0 + x'b)``, y in {-1, 1}: the hinge ``(1 - m)_+`` or its square. A margin is an
index of the signed row ``y x``, whose noise has the law of the row's; randomised labels make it
``(p f(m) - (1 - p) f(-m)) / (2p - 1)``, again an index loss (`losses.randomized_label`). The squared hinge has an
exact inverse under zero-inflated noise; the hinge, and the squared hinge under other laws, are averaged over a narrow
kernel of order 4 and inverted exactly. Without noise the exact minimiser of the hinge is found from its optimality
conditions: records below margin 1 count in full, those above not, those at 1 in part. This last step holds all rows,
also those of a release on disk.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.validation import check_choice, check_number
from privfit.estimators.classifier import BinaryClassifier
from privfit.estimators.losses import HingeLoss, PolynomialLoss, RandomizedLabelLoss, SmoothedLoss, SquaredHingeLoss
from privfit.estimators.losses.base import IndexLoss
from privfit.estimators.losses.piecewise import PiecewiseLoss
from privfit.estimators.noise import NoiseModel
from privfit.estimators.problem import Problem
from privfit.estimators.risk import Risk
from privfit.estimators.smoothed_search import Pilot, continuation, resolvents_only
from privfit.estimators.solver import Solution, minimise
from privfit.estimators.squared_score import ShiftedLoss
from privfit.estimators.strata import signed

__all__ = ["LinearSVC"]

Floats = NDArray[np.float64]
_LOSSES: dict[str, type[PiecewiseLoss]] = {"hinge": HingeLoss, "squared_hinge": SquaredHingeLoss}
_NARROWEST = 1e-7


class LinearSVC(BinaryClassifier):
    """Linear support vector classifier, corrected for the noise of a release.

    Parameters
    ----------
    loss : {"squared_hinge", "hinge"}
    alpha : float
        Strength >= 0 of ``alpha |coef|^2 / 2`` beside the MEAN loss; the intercept is not penalised. scikit-learn's
        `LinearSVC` and `SVC` have ``C = 1 / (n alpha)``; `SGDClassifier` has the same alpha and default.
    noise, correction, fit_intercept, bound, stabilize, draws, random_state
        As for `LogisticRegression`. Gaussian noise has no exact inverse here.
    bandwidth : "auto" or float
        Of the smoothing where there is one, in units of the margin; "auto" follows `bandwidth.auto_bandwidth`.

    Attributes
    ----------
    coef_ : ndarray, shape (1, d)
    intercept_ : ndarray, shape (1,)
    classes_ : ndarray, shape (2,)
    params_, cov_params_, efficiency_, converged_, diagnostics_
        As for `LogisticRegression`; ``diagnostics_["bandwidth"]`` is None if nothing is smoothed, and
        ``diagnostics_["smoothing_bias"]`` an upper bound of the smoothing's bias in the mean score.

    Examples
    --------
    >>> x = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> LinearSVC("hinge", alpha=0.01).fit(x, ["no", "no", "yes", "yes"]).coef_.round(6)
    array([[1.]])
    """

    _kappa = 0.25
    _signs = True

    def __init__(
        self,
        loss: str = "squared_hinge",
        *,
        alpha: float = 1e-4,
        noise: Any = None,
        correction: str = "exact",
        fit_intercept: bool = True,
        bandwidth: Any = "auto",
        bound: Any = None,
        stabilize: Any = None,
        draws: int = 1,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.noise = noise
        self.correction = correction
        self.fit_intercept = fit_intercept
        self.bandwidth = bandwidth
        self.bound = bound
        self.stabilize = stabilize
        self.draws = draws
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("loss", self.loss, tuple(_LOSSES))
        if not (isinstance(self.bandwidth, str) and self.bandwidth == "auto"):
            check_number("bandwidth", self.bandwidth, 0.0, low_open=True, hint="Or 'auto'.")

    def _read_response(self, y: Any, model: NoiseModel) -> Floats:
        self._truth = 1.0 if self.correction == "naive" else model.keep
        return np.asarray(2.0 * self._read_labels(y, model) - 1.0, float)

    def _pose(self, problem: Problem) -> Problem:
        """Turn the index into a margin and choose the bandwidth from a corrected least-squares pilot."""
        plain = problem.risk
        risk = Risk(self._pilot_loss(), [signed(s) for s in plain.strata], plain.size, plain.penalty)
        problem = replace(problem, risk=risk, naive=risk.naive())
        pilot = Pilot.of(problem)
        self._pilot, self._width, exact = pilot, 0.0, False
        if self.loss == "squared_hinge":
            exact = resolvents_only(risk) and bool(pilot.theta[problem.lead :].any() or not risk.corrects)
        if not exact:
            given = self.bandwidth != "auto"
            jump = 1 if self.loss == "hinge" else 2
            self._width = float(self.bandwidth) if given else pilot.bandwidth(risk, jump)
        return problem.with_loss(self._loss(problem))

    def _pilot_loss(self) -> IndexLoss:
        return self._randomized(PolynomialLoss([0.5, -1.0, 0.5]))

    def _randomized(self, loss: IndexLoss) -> IndexLoss:
        return loss if self._truth == 1.0 else RandomizedLabelLoss(loss, self._truth)

    def _smoothed(self, loss: PiecewiseLoss, width: float) -> IndexLoss:
        # without noise the convex kernel; with it that of order 4
        return self._randomized(SmoothedLoss(loss, width, 4 if self.noise_.noisy else 2) if width else loss)

    def _loss(self, problem: Problem) -> IndexLoss:
        return self._smoothed(_LOSSES[self.loss](), self._width)

    def _search(self, problem: Problem) -> tuple[Solution, Floats]:
        if self.loss == "squared_hinge":
            return super()._search(problem)
        solution, naive = continuation(problem, self._at_width, self._width, self._pilot_loss())
        if not self.noise_.noisy and self.bandwidth == "auto":
            theta = _exact_hinge(problem.risk, solution.theta, problem.bound, self._width)
            solution = replace(solution, theta=theta, converged=True)
        return solution, naive

    def _at_width(self, width: float) -> IndexLoss:
        return self._smoothed(HingeLoss(), width)

    def _oracle_scores(self, risk: Risk, theta: Floats, curvature: Floats) -> tuple[Floats, str]:
        """``E f'^2 xx'``: for the hinge, whose ``f'^2`` is its square's ``f''/2``, without an assumption."""
        free = np.zeros(risk.size)
        if self.loss == "hinge":
            square = risk.with_(loss=self._smoothed(SquaredHingeLoss(), self._width), penalty=free)
            return square.hessian(theta) / 2.0, "corrected mean of the squared score"
        gram = risk.with_(loss=PolynomialLoss([0.0, 0.0, 0.5]), penalty=free).hessian(free)
        inside = float(curvature[0, 0] / 2.0 if self.fit_intercept else np.trace(curvature) / (2.0 * np.trace(gram)))
        value = max(risk.with_(penalty=free).value(theta), 0.0)
        return (
            2.0 * value / max(inside, 1e-12) * curvature,
            "squared gaps below margin 1 uncorrelated with the columns' products",
        )

    def _squared_scores(self, risk: Risk) -> Risk | None:
        if self.loss == "hinge":
            return None
        square = self._smoothed(SquaredHingeLoss(), self._width)
        return risk.with_(loss=ShiftedLoss([(4.0, square, -2)]))

    def _extra_diagnostics(self, problem: Problem) -> dict[str, Any]:
        sigma, h = self._pilot.sigma, self._width
        worst = (0.45, 0.64 * sigma)[self.loss == "squared_hinge"]  # see `bandwidth`; f'' jumps by 2
        return {"bandwidth": h or None, "smoothing_bias": worst * (h / sigma) ** 4 if self.noise_.noisy else 0.0}


def _exact_hinge(risk: Risk, theta: Floats, bound: Floats, width: float) -> Floats:
    """Minimiser of the ridge-penalised hinge risk, from a smoothed one: ever narrower kernels, then the equations.

    With z the signed rows, E the records at margin 1: ``P t = mean(z 1[m < 1]) + Z_E a / n``, ``Z_E't = 1``.
    """
    while width > _NARROWEST:
        width = max(0.25 * width, _NARROWEST)
        theta = minimise(risk.with_(loss=SmoothedLoss(HingeLoss(), width, 2)), theta, bound).theta
    matrix, size = risk.design.matrix, risk.size
    margin = theta @ matrix
    at = np.abs(1.0 - margin) < 50.0 * width
    edge = matrix[:, at]
    count = edge.shape[1]
    system = np.zeros((size + count, size + count))
    system[:size, :size] = np.diag(risk.penalty)
    system[:size, size:] = -edge / risk.n
    system[size:, :size] = edge.T
    below = matrix[:, (margin < 1.0) & ~at].sum(axis=1) / risk.n
    right = np.concatenate([below, np.ones(count)])
    found = np.linalg.lstsq(system, right, rcond=1e-14)[0]
    share, exact = found[size:], found[:size]
    solved = np.abs(system @ found - right).max(initial=0.0) < 1e-9
    sides = (exact @ matrix < 1.0)[~at] == (margin < 1.0)[~at]
    fine = solved and bool(sides.all()) and share.min(initial=0.0) > -1e-9 and share.max(initial=0.0) < 1.0 + 1e-9
    return exact if fine and (np.abs(exact) < bound).all() else theta
