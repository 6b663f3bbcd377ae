r"""M-estimators with a general loss ``l(x, theta)``: corrected by a second randomisation, in a bounded parameter set.

The corrected loss is a sum of terms on the release and on M draws of ``X + S`` (`corrections`): values of l for "dr",
values and traces of Hessians for "sdr" and "sl". Search: L-BFGS-B in the box, from the naive fit. Sandwich: scores per
record, and the Hessian as central differences of the mean score with step ``eps^(1/4) max(1, |theta_j|)``.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.corrections import Term, correction_terms, draw_second_noise
from privfit.estimators.efficiency import NOT_ESTIMATED
from privfit.estimators.errors import CapabilityError, SmallSampleWarning
from privfit.estimators.inference import sandwich
from privfit.estimators.losses.callable import RecordLoss
from privfit.estimators.noise import NoiseModel
from privfit.estimators.squared_score import FREE, GROUPS, known_covariance
from privfit.estimators.symbols import Identity, Monomial, Power

__all__ = ["RecordFit", "RecordRisk", "fit_records"]

Floats = NDArray[np.float64]
_NEEDS_DR = "for a loss of records it needs correction='dr', which corrects the squared scores by their values"
_NOISY = "the noise hides the covariance of the raw scores; more records or draws would show it"
_FLAT = 1e-5  # curvatures below this share of the largest are not told from 0 by differences


@dataclass(frozen=True, eq=False)
class RecordRisk:
    """Mean corrected loss of records.

    Examples
    --------
    >>> loss = RecordLoss(lambda x, theta: (theta[0] - x[:, 0]) ** 2, 1)
    >>> risk = RecordRisk(loss, [Term(1.0, 0, ())], [np.array([[1.0], [3.0]])], np.zeros(1))
    >>> risk.value(np.array([2.0]))
    1.0
    """

    loss: RecordLoss
    terms: Sequence[Term]
    designs: Sequence[Floats]
    variances: Floats

    def value(self, theta: Floats) -> float:
        """Risk at theta."""
        total = 0.0
        for term in self.terms:
            x = self.designs[term.design]
            weight, bend = _weights(term)
            if weight:
                total += weight * float(self.loss.values(x, theta).mean())
            if bend:
                total += bend * float(self.loss.traces(x, theta, self.variances).mean())
        return total

    def scores(self, theta: Floats) -> Floats:
        """Corrected scores, terms summed within a record, shape (n, p)."""
        total = np.zeros((len(self.designs[0]), theta.size))
        for term in self.terms:
            x = self.designs[term.design]
            weight, bend = _weights(term)
            if weight:
                total += weight * self.loss.scores(x, theta)
            if bend:
                for j in range(theta.size):
                    step = np.zeros(theta.size)
                    step[j] = 6e-6 * max(1.0, abs(float(theta[j])))
                    high, low = (self.loss.traces(x, theta + sign * step, self.variances) for sign in (1.0, -1.0))
                    total[:, j] += bend * (high - low) / (2.0 * step[j])
        return total

    def squared_scores(self, theta: Floats) -> Floats | None:
        """Corrected mean of the outer product of raw scores, by groups of records, shape (groups, p, p).

        A second randomisation corrects any function of the record by its values; other operators would need the
        products' derivatives in x, and None is returned.
        """
        if not all(isinstance(factor, Identity) for term in self.terms for factor in term.factors):
            return None
        count = min(GROUPS, len(self.designs[0]))
        total = np.zeros((count, theta.size, theta.size))
        for term in self.terms:
            scores = self.loss.scores(self.designs[term.design], theta)
            for k in range(count):
                own = scores[k::count]
                total[k] += term.weight * own.T @ own / len(own)
        return total

    def hessian(self, theta: Floats, steps: Floats) -> Floats:
        """Central differences of the mean score."""
        rows = []
        for j in range(theta.size):
            step = np.zeros(theta.size)
            step[j] = steps[j]
            rows.append(
                (self.scores(theta + step).mean(axis=0) - self.scores(theta - step).mean(axis=0)) / (2 * steps[j])
            )
        out = np.array(rows)
        return (out + out.T) / 2.0


def _weights(term: Term) -> tuple[float, float]:
    """Weight of the loss, and of half the trace of Sigma times its Hessian."""
    factor = next((f for f in term.factors if not isinstance(f, Identity)), Identity())
    if isinstance(factor, Identity):
        return term.weight, 0.0
    if isinstance(factor, Monomial):
        return 0.0, term.weight
    if isinstance(factor, Power) and factor.shape == 1:
        return term.weight, -term.weight
    raise CapabilityError(
        "a loss of records has no exact correction: its average over the noise is missing. Release with "
        "ZeroInflatedLaplace(delta0 > 0) and use correction='dr', or a loss of an index (Loss.from_expression)."
    )


@dataclass(frozen=True)
class RecordFit:
    """Estimate, covariance and what a report needs; `raw` is the covariance that the raw data would give.

    Examples
    --------
    >>> RecordFit.__name__
    'RecordFit'
    """

    theta: Floats
    covariance: Floats
    converged: bool
    iterations: int
    diagnostics: dict[str, Any]
    raw: Floats | None
    assumption: str


def fit_records(
    loss: RecordLoss,
    records: Floats,
    model: NoiseModel,
    *,
    correction: str,
    draws: int,
    start: Any,
    bound: Any,
    random_state: Any,
) -> RecordFit:
    """Fit a general loss to released records; see `MEstimator`.

    Examples
    --------
    >>> fit_records.__name__
    'fit_records'
    """
    parts = list(model.parts)
    terms = correction_terms(correction, parts, draws)
    for term in terms:
        _weights(term)  # refuses before any work
    if len(parts) > 1 and correction != "naive":
        raise CapabilityError("a loss of records is corrected for one joint law only. Release the columns under one.")
    rng = np.random.default_rng(random_state)
    designs = [records]
    for _ in range(max(term.design for term in terms)):
        designs.append(records + draw_second_noise(parts, len(records), rng)[: records.shape[1]].T)
    variances = model.variances[: records.shape[1]]
    naive = RecordRisk(loss, [Term(1.0, 0, ())], designs[:1], variances)
    risk = RecordRisk(loss, terms, designs, variances)
    first = np.zeros(loss.size) if start is None else np.asarray(start, float)
    limit = (
        100.0 * np.maximum(1.0, np.abs(first))
        if bound is None
        else np.broadcast_to(np.asarray(bound, float), first.shape)
    )
    if first.shape != (loss.size,) or not (limit > 0).all() or (np.abs(first) > limit).any():
        raise ValueError(f"start must hold {loss.size} numbers within the bound, got shape {first.shape}.")
    begun = _search(naive, first, limit)
    found = _search(risk, begun.x, limit)
    theta = np.asarray(found.x, float)
    steps = np.finfo(float).eps ** 0.25 * np.maximum(1.0, np.abs(theta))
    hessian, scores = risk.hessian(theta, steps), risk.scores(theta)
    values = np.linalg.eigvalsh(hessian)
    positive = bool(values[0] > _FLAT * max(abs(values[-1]), 1e-300))
    at_bound = np.abs(theta) >= limit * (1 - 1e-9)
    covariance = sandwich(hessian, np.atleast_2d(np.cov(scores.T, bias=True)), len(records))
    slope = float(np.abs(scores.mean(axis=0)[~at_bound]).max(initial=0.0))
    settled = slope <= 1e-4 * (1.0 + float(np.abs(hessian).max()))
    if not positive or at_bound.any():
        covariance = np.diag(np.full(loss.size, np.inf))
        warnings.warn(
            "the corrected risk has no interior minimum with positive curvature: the sample is too small for this "
            "noise, or the parameters are not identified. Use more records, more draws, less noise, or another bound.",
            SmallSampleWarning,
            stacklevel=4,
        )
    facts = {"hessian_step": steps, "at_bound": at_bound, "positive": positive, "naive": begun.x, "bound": limit}
    good = settled and positive and not bool(at_bound.any())
    squares = None if correction == "naive" else risk.squared_scores(theta)
    mean = None if squares is None or not good else known_covariance(squares, hessian, len(records))
    raw = None if mean is None else sandwich(hessian, mean, len(records))
    said = f"{NOT_ESTIMATED}: {_NEEDS_DR if squares is None else _NOISY}" if raw is None else FREE
    return RecordFit(theta, covariance, good, max(int(found.nit), 1), facts, raw, said)


def _search(risk: RecordRisk, start: Floats, limit: Floats) -> Any:
    from scipy.optimize import minimize

    def both(theta: Any) -> tuple[float, Floats]:
        return risk.value(theta), risk.scores(theta).mean(axis=0)

    return minimize(
        both,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(-limit, limit, strict=True)),
        options={"ftol": 1e-13, "gtol": 1e-9, "maxiter": 500},
    )
