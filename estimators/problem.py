"""From released arrays to a corrected risk in standard coordinates, with its box of parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.validation import check_array
from privfit.estimators.corrections import correction_terms, draw_second_noise
from privfit.estimators.losses import SquaredLoss
from privfit.estimators.losses.base import IndexLoss
from privfit.estimators.noise import NoiseModel
from privfit.estimators.risk import Design, Risk
from privfit.estimators.standardise import Coordinates

__all__ = ["Problem", "build_problem"]

Floats = NDArray[np.float64]
_INTERCEPT_BOUND = 20.0


@dataclass(frozen=True)
class Problem:
    """A corrected risk, its naive counterpart, coordinates and bounds.

    Examples
    --------
    >>> Problem.__name__
    'Problem'
    """

    risk: Risk
    naive: Risk
    coordinates: Coordinates
    bound: Floats
    bound_text: str

    @property
    def lead(self) -> int:
        """Number of leading coordinates that are not slopes (1 with an intercept)."""
        return int(self.coordinates.intercept)

    @property
    def flat(self) -> NDArray[np.bool_]:
        """Coordinates whose column does not vary (beside an intercept)."""
        return np.concatenate([np.zeros(self.lead, bool), self.coordinates.flat])

    @property
    def collinear(self) -> bool:
        """Whether the varying released columns are collinear, or more than the records."""
        if self.naive.n <= self.naive.size:
            return True
        matrix = self.naive.designs[0].matrix
        gram = matrix @ matrix.T / self.naive.n + np.diag(self.flat)
        values = np.linalg.eigvalsh(gram)
        return bool(values[0] <= 1e-11 * values[-1])

    def penalised(self, penalty: Floats) -> Problem:
        """Return the problem with a ridge added to the corrected risk."""
        return replace(self, risk=self.risk.with_(penalty=self.risk.penalty + penalty))

    def with_loss(self, loss: IndexLoss) -> Problem:
        """Return the problem with another loss."""
        return replace(self, risk=self.risk.with_(loss=loss), naive=self.naive.with_(loss=loss))

    def mark_flat(self, covariance: Floats) -> Floats:
        """Give coefficients of constant columns an infinite variance."""
        flat = self.flat
        covariance[flat, :] = 0.0
        covariance[:, flat] = 0.0
        covariance[flat, flat] = np.inf
        return covariance


def build_problem(
    x: Floats,
    response: Floats,
    model: NoiseModel,
    *,
    correction: str,
    draws: int,
    label: bool,
    intercept: bool,
    bound: Any,
    default_bound: float,
    random_state: Any,
) -> Problem:
    """Build the corrected and the naive risk, with a squared loss until `Problem.with_loss`.

    Parameters
    ----------
    x : ndarray, shape (n, d)
    response : ndarray, shape (n,)
        Numbers, or unbiased labels.
    model : NoiseModel
    correction : str
    draws : int
        Number of second randomisations, where the correction uses any.
    label : bool
        The response enters linearly (logistic) instead of through the residual.
    intercept : bool
    bound : None, float or array_like, shape (d,)
        Limit of each coefficient's absolute value.
    default_bound : float
        Limit in standard coordinates where `bound` is None.
    random_state : int, Generator or None
        For the second randomisation.

    Examples
    --------
    >>> build_problem.__name__
    'build_problem'
    """
    coordinates = Coordinates.of(x, None if label else response, intercept)
    lead, sign = int(intercept), 1.0 if label else -1.0
    matrix = coordinates.design(x, sign)
    offset = None if label else coordinates.response(response)
    terms = correction_terms(correction, model.parts, draws)
    designs = [Design(matrix, offset)]
    rng = np.random.default_rng(random_state)
    for _ in range(max(term.design for term in terms)):
        noise = draw_second_noise(model.parts, x.shape[0], rng)
        moved = matrix.copy()
        moved[lead:] += sign * noise[:-1] / coordinates.scale[:, None]
        shifted = None if offset is None else offset + noise[-1] / coordinates.response_scale
        designs.append(Design(moved, shifted))
    variances = np.zeros((len(model.parts), matrix.shape[0]))
    for p, part in enumerate(model.parts):
        variances[p, lead:] = part.variances[:-1] / coordinates.scale**2
    constants = np.array([part.variances[-1] / coordinates.response_scale**2 for part in model.parts])
    labels = response if label else None
    # A column that does not vary has an all-zero row: a unit penalty keeps its coefficient at zero.
    penalty = np.concatenate([np.zeros(lead), coordinates.flat.astype(float)])
    risk = Risk(SquaredLoss(), terms, designs, variances, constants, labels, penalty)
    plain = correction_terms("naive", model.parts)
    naive = risk.with_(terms=plain, designs=designs[:1])
    limits, text = _limits(bound, coordinates, lead, default_bound)
    return Problem(risk, naive, coordinates, limits, text)


def _limits(bound: Any, coordinates: Coordinates, lead: int, default: float) -> tuple[Floats, str]:
    size = coordinates.scale.size
    if bound is None:
        return np.full(size + lead, default), f"default: each standardised coefficient within {default:g}"
    hint = "It limits the absolute value of each coefficient."
    given = check_array("bound", bound, 0.0, hint=hint)
    if given.ndim > 1 or (given.ndim == 1 and given.size != size) or not (given > 0).all():
        raise ValueError(
            f"bound must be one positive number or {size} of them, got shape {given.shape} with minimum "
            f"{given.min(initial=np.inf):g}. {hint}"
        )
    limits = np.full(size + lead, max(_INTERCEPT_BOUND, default))
    limits[lead:] = given * coordinates.scale / coordinates.response_scale
    return limits, "the given bound"
