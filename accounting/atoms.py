"""Curves with finitely many values of the privacy loss: piecewise linear trade-off functions.

Outputs fall into cells i with ``P = p_i``, ``Q = q_i`` and loss ``t_i = log(q_i / p_i)``, sorted by t:

    alpha(t) = sum_{t_i > t} p_i,      beta(t) = sum_{t_i <= t} q_i
    delta(eps) = sum_{t_i > eps} q_i (1 - e^(eps - t_i))                         (no cancellation)

Between two losses delta is ``delta_j + (1 - e^(eps - t_j)) w_j`` with ``w_j = sum_{i >= j} q_i e^(t_j - t_i)``.
Both sums are built by doubling (spans of 1, 2, 4, ... cells): positive terms, log2(n) roundings.
A segment of the curve with slope ``-e^t`` is the cell with loss t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.base import Precision, TradeOffCurve
from privfit.accounting.validation import check_array

__all__ = ["DiscreteCurve", "from_atoms"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class DiscreteCurve(TradeOffCurve):
    """A curve given by the atoms of its privacy loss.

    Parameters
    ----------
    loss : tuple of float
        Increasing values of the privacy loss; the first may be -inf, the last +inf.
    p, q : tuple of float
        Mass of every value under P and Q; each sums to one.
    """

    loss: tuple[float, ...]
    p: tuple[float, ...]
    q: tuple[float, ...]
    precision = Precision(relative=1e-13, absolute=0.0)

    def __post_init__(self) -> None:
        loss = np.atleast_1d(check_array("loss", self.loss))
        p, q = (np.atleast_1d(check_array(n, getattr(self, n), 0.0, 1.0)) for n in ("p", "q"))
        if not (loss.ndim == 1 and loss.shape == p.shape == q.shape and loss.size):
            raise ValueError("loss, p and q must be sequences of the same positive length.")
        if np.any(loss[1:] <= loss[:-1]):
            raise ValueError("loss must be strictly increasing; merge equal values first.")
        if abs(p.sum() - 1) > 1e-9 or abs(q.sum() - 1) > 1e-9:
            raise ValueError("p and q must each sum to 1; rescale them.")
        for name, value in (("loss", loss), ("p", p), ("q", q)):
            object.__setattr__(self, name, tuple(value.tolist()))
        object.__setattr__(self, "_arrays", (loss, p, q))  # the cached property below, already known

    def __repr__(self) -> str:
        return f"DiscreteCurve({len(self.loss)} values of the privacy loss)"

    @cached_property
    def _arrays(self) -> tuple[Floats, Floats, Floats]:
        return np.asarray(self.loss), np.asarray(self.p), np.asarray(self.q)

    @cached_property
    def _tables(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Losses, survival of P, distribution of Q, delta and its slope weight at every loss value."""
        t, p, q = self._arrays
        survival = np.append(_sums_from_above(p), 0.0)
        distribution = np.append(0.0, _sums_from_above(q[::-1])[::-1])
        first, last = int(t[0] == -math.inf), len(t) - int(t[-1] == math.inf)
        delta, weight = np.zeros(len(t) + 1), np.zeros(len(t) + 1)
        delta[0], delta[last:-1] = 1.0, q[last:]  # at -inf and +inf; the finite losses follow
        finite = t[first:last]
        if finite.size:
            w = _discounted_sums(finite, q[first:last])
            with np.errstate(over="ignore"):
                steps = -np.expm1(finite[:-1] - finite[1:]) * w[1:]
            weight[first:last] = w
            delta[first:last] = _sums_from_above(np.append(steps, self.infinite_mass))
        return t, np.minimum(survival, 1.0), np.minimum(distribution, 1.0), delta, weight

    @cached_property
    def max_loss(self) -> float:
        """Largest finite value of the loss."""
        finite = [v for v in (*self.loss[:2], *self.loss[-2:]) if math.isfinite(v)]
        return finite[-1] if finite else 0.0

    @property
    def infinite_mass(self) -> float:
        """Mass of certain disclosure."""
        return self.q[-1] if self.loss[-1] == math.inf else 0.0

    def _error_rates(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        t, survival, distribution, _, _ = self._tables
        above = np.searchsorted(t, log_ratio, side="right")
        return survival[above], distribution[above]

    def _delta(self, epsilon: Floats) -> Floats:
        t, _, _, delta, weight = self._tables
        above = np.searchsorted(t, epsilon, side="right")
        # an infinite loss, or none, lies above: its weight is zero and any reference will do
        reference = np.append(np.where(np.isfinite(t), t, 0.0), 0.0)[above]
        value = delta[above] - np.expm1(np.minimum(epsilon - reference, 0.0)) * weight[above]
        return np.where(np.isposinf(epsilon), self.infinite_mass, value)

    @cached_property
    def _corners(self) -> tuple[Floats, Floats]:
        """Corners of the curve from left to right; where it falls vertically, the lowest point."""
        _, survival, distribution, _, _ = self._tables
        x, y = survival[::-1], distribution[::-1]
        keep = np.append(x[1:] > x[:-1], True)
        return x[keep], y[keep]

    def _curve(self, alpha: Floats) -> Floats:
        return np.interp(alpha, *self._corners)

    def reversed(self) -> DiscreteCurve:
        """Curve of Q against P: losses change sign, P and Q change places."""
        return DiscreteCurve(tuple(-v for v in reversed(self.loss)), self.q[::-1], self.p[::-1])


def _sums_from_above(terms: Floats) -> Floats:
    """Sum of terms[j:] for every j."""
    total, span = terms.copy(), 1
    while span < len(total):
        total[:-span] += total[span:].copy()
        span *= 2
    return total


def _discounted_sums(t: Floats, q: Floats) -> Floats:
    """``sum_{i >= j} q_i e^(t_j - t_i)`` for every j; finite however large the losses are."""
    total, span = q.copy(), 1
    while span < len(total):
        with np.errstate(over="ignore"):  # a difference of losses beyond the largest float discounts to nothing
            total[:-span] += np.exp(t[:-span] - t[span:]) * total[span:]
        span *= 2
    return total


def from_atoms(loss: Floats, p: Floats, q: Floats) -> DiscreteCurve:
    """Discrete curve from atoms in any order; equal losses are merged and empty atoms dropped.

    Parameters
    ----------
    loss, p, q : array of shape (n,)
        Values of the privacy loss with their masses under P and Q, which are rescaled to sum to one.

    Returns
    -------
    DiscreteCurve

    Examples
    --------
    >>> import numpy as np
    >>> from_atoms(np.array([1.0, -1.0]), np.array([0.25, 0.75]), np.array([0.75, 0.25])).loss
    (-1.0, 1.0)
    """
    values, index = np.unique(loss, return_inverse=True)
    pm, qm = np.bincount(index, p, len(values)), np.bincount(index, q, len(values))
    keep = (pm > 0) | (qm > 0)
    total_p, total_q = pm[keep].sum(), qm[keep].sum()
    columns = values[keep], pm[keep] / total_p, qm[keep] / total_q
    return DiscreteCurve(*(tuple(column.tolist()) for column in columns))
