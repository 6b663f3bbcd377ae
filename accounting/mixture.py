"""Sums of a loss with finitely many values and another loss: mixtures, without any approximation.

With atoms (l_i, p_i, q_i) and another curve X

    alpha(t) = sum_i p_i alpha_X(t - l_i),      delta(eps) = sum_i q_i delta_X(eps - l_i)

and the sum of two atomic losses has the atoms (l_i + l_j, p_i p_j, q_i q_j), of which equal ones merge.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.atoms import DiscreteCurve, from_atoms
from privfit.accounting.base import Precision, TradeOffCurve

__all__ = ["MixtureCurve", "power", "product"]

Floats = NDArray[np.float64]
SAME = 4e-15  # losses that differ by less, relative to the largest, are equal up to rounding
BLOCK = 2**20


@dataclass(frozen=True)
class MixtureCurve(TradeOffCurve):
    """A curve composed with atoms of privacy loss.

    Parameters
    ----------
    base : TradeOffCurve
    atoms : DiscreteCurve
    """

    base: TradeOffCurve
    atoms: DiscreteCurve

    def __str__(self) -> str:
        return f"{self.base} + {self.atoms}"

    @property
    def precision(self) -> Precision:
        """That of the base, and the rounding of the sum."""
        base = self.base.precision
        return Precision(base.relative + 1e-13, base.absolute)

    @property
    def max_loss(self) -> float:
        """Sum of the largest losses."""
        return self.base.max_loss + self.atoms.max_loss

    @property
    def infinite_mass(self) -> float:
        """One minus the product of the masses that do not disclose."""
        return 1 - (1 - self.base.infinite_mass) * (1 - self.atoms.infinite_mass)

    def reversed(self) -> TradeOffCurve:
        """Mixture of the reversed parts."""
        base, atoms = self.base.reversed(), self.atoms.reversed()
        return self if base is self.base and atoms is self.atoms else MixtureCurve(base, atoms)

    def _mix(self, t: Floats, which: str) -> Floats:
        loss, p, q = (np.asarray(v) for v in (self.atoms.loss, self.atoms.p, self.atoms.q))
        finite = np.isfinite(loss)
        flat = t.ravel()
        total = np.empty(flat.shape)
        block = max(1, BLOCK // max(1, int(finite.sum())))
        for i in range(0, flat.size, block):
            moved = flat[i : i + block, None] - loss[finite]
            if which == "delta":
                total[i : i + block] = self.base._delta(moved) @ q[finite]
            else:
                alpha, beta = self.base._error_rates(moved)
                total[i : i + block] = alpha @ p[finite] if which == "alpha" else beta @ q[finite]
        return total.reshape(t.shape)

    def _error_rates(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        alpha, beta = self._mix(log_ratio, "alpha"), self._mix(log_ratio, "beta")
        # a loss of -inf under P never exceeds t; a loss of +inf under Q always does, unless t is infinite
        return alpha, np.where(np.isposinf(log_ratio), 1.0, beta)

    def _delta(self, epsilon: Floats) -> Floats:
        certain = self.atoms.infinite_mass
        return np.where(np.isposinf(epsilon), self.infinite_mass, certain + self._mix(epsilon, "delta"))


def product(a: DiscreteCurve, b: DiscreteCurve, limit: int) -> DiscreteCurve | None:
    """Atoms of the sum of two losses, or None if there are more than `limit`.

    Parameters
    ----------
    a, b : DiscreteCurve
    limit : int

    Returns
    -------
    DiscreteCurve or None

    Examples
    --------
    >>> from privfit.accounting.discrete import randomized_response
    >>> product(randomized_response(1.0), randomized_response(1.0), 10).loss
    (-2.0, 0.0, 2.0)
    """
    if len(a.loss) * len(b.loss) > 4096 * limit:
        return None
    (la, pa, qa), (lb, pb, qb) = (_finite(c) for c in (a, b))
    certain_p, certain_q = 1 - (1 - _certain(a)) * (1 - _certain(b)), 1 - (1 - a.infinite_mass) * (1 - b.infinite_mass)
    if not (la.size and lb.size):  # every output discloses
        return from_atoms(np.array([-np.inf, np.inf]), np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    loss = np.add.outer(la, lb).ravel()
    order = np.argsort(loss, kind="stable")
    loss, p, q = loss[order], np.outer(pa, pb).ravel()[order], np.outer(qa, qb).ravel()[order]
    # the largest of equal losses stands for all: rounding never makes a loss smaller
    last = np.append(np.diff(loss) > SAME * max(1e-300, np.abs(loss).max()), True)
    if last.sum() > limit:
        return None
    starts = np.concatenate([[0], np.flatnonzero(last)[:-1] + 1])
    loss, p, q = loss[last], np.add.reduceat(p, starts), np.add.reduceat(q, starts)
    return from_atoms(
        np.concatenate([[-np.inf], loss, [np.inf]]),
        np.concatenate([[certain_p], p, [0.0]]),
        np.concatenate([[0.0], q, [certain_q]]),
    )


def _finite(curve: DiscreteCurve) -> tuple[Floats, Floats, Floats]:
    finite = np.isfinite(curve.loss)
    loss, p, q = (np.asarray(v)[finite] for v in (curve.loss, curve.p, curve.q))
    return loss, p, q


def _certain(curve: DiscreteCurve) -> float:
    """Mass of P at a loss of -inf."""
    return curve.p[0] if curve.loss[0] == -np.inf else 0.0


def power(curve: DiscreteCurve, count: int, limit: int) -> DiscreteCurve | None:
    """Atoms of the sum of `count` losses of one kind, or None if there are more than `limit`.

    Parameters
    ----------
    curve : DiscreteCurve
    count : int
    limit : int

    Returns
    -------
    DiscreteCurve or None

    Examples
    --------
    >>> from privfit.accounting.discrete import randomized_response
    >>> len(power(randomized_response(0.1), 100, 1000).loss)
    101
    """
    result: DiscreteCurve | None = None
    square: DiscreteCurve | None = curve
    while count and square is not None:
        if count % 2:
            result = square if result is None else product(result, square, limit)
            if result is None:
                return None
        count //= 2
        square = product(square, square, limit) if count else square
    return result if count == 0 else None
