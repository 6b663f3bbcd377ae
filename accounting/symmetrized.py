"""Both directions of an asymmetric pair: the largest trade-off function below f and its inverse.

An attacker may test P against Q or Q against P. The curve that covers both is the convex hull of
``min(f, f^-1)`` (Dong, Roth & Su 2022, section 4.2), whose profile is the larger of the two,

    delta(eps) = max(delta_PQ(eps), delta_QP(eps)),       delta_PQ(-eps) = 1 - e^-eps + e^-eps delta_QP(eps),

so that at slope -e^t it touches the direction that attains the maximum, and at -t the other one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.base import Bound, Precision, TradeOffCurve, check_curve

__all__ = ["SymmetrizedCurve", "symmetrized"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SymmetrizedCurve(TradeOffCurve):
    """The largest symmetric trade-off function below a curve (see `symmetrized`)."""

    base: TradeOffCurve

    def __post_init__(self) -> None:
        check_curve(self.base)

    @cached_property
    def _other(self) -> TradeOffCurve:
        return self.base.reversed()

    @property
    def relation(self) -> str:
        """The neighbouring relation that the base curve states; empty if it states none."""
        return str(getattr(self.base, "relation", ""))

    @property
    def precision(self) -> Precision:
        """The worse of the two directions."""
        a, b = self.base.precision, self._other.precision
        return Precision(max(a.relative, b.relative), max(a.absolute, b.absolute))

    @property
    def max_loss(self) -> float:
        """The larger of the two directions."""
        return max(self.base.max_loss, self._other.max_loss)

    @property
    def infinite_mass(self) -> float:
        """The larger of the two directions."""
        return max(self.base.infinite_mass, self._other.infinite_mass)

    def _error_rates(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        # compared at |t|, where the profile is small and its logarithm exact; mirrored for t < 0
        size = np.abs(log_ratio)
        with np.errstate(over="ignore"):
            forward = (self.base._log_delta(size) >= self._other._log_delta(size)) == (log_ratio >= 0)
        ours, theirs = self.base._error_rates(log_ratio), self._other._error_rates(log_ratio)
        return np.where(forward, ours[0], theirs[0]), np.where(forward, ours[1], theirs[1])

    def _delta(self, epsilon: Floats) -> Floats:
        return np.maximum(self.base._delta(epsilon), self._other._delta(epsilon))

    def _log_delta(self, epsilon: Floats) -> Floats:
        return np.maximum(self.base._log_delta(epsilon), self._other._log_delta(epsilon))

    def _epsilon(self, delta: Floats, bound: Bound) -> Floats:
        return np.maximum(self.base._epsilon(delta, bound), self._other._epsilon(delta, bound))

    def _curve(self, alpha: Floats) -> Floats:
        value = np.where(alpha == 0.0, 1.0 - self.infinite_mass, 0.0)
        inside = (alpha > 0.0) & (alpha < 1.0)
        value[inside] = super()._curve(alpha[inside])
        return value


def symmetrized(curve: TradeOffCurve) -> TradeOffCurve:
    """The guarantee that holds in both directions of a pair of laws.

    Parameters
    ----------
    curve : TradeOffCurve
        Curve of P against Q; a symmetric one is returned unchanged.

    Returns
    -------
    TradeOffCurve
        Its own inverse; below `curve` and below ``curve.reversed()``, touching one of them at every slope.

    Notes
    -----
    When records are added or removed, all parts of a composition meet the pair in one direction, and composition
    keeps that (curves of Poisson sampling). Replacing a record may turn the pair in one part and not in another:
    any other symmetrised curve is composed as the symmetric curve that it is.

    Raises
    ------
    TypeError
        If `curve` is not a curve.

    Examples
    --------
    >>> from privfit.accounting.discrete import from_points
    >>> one_way = from_points([0.1], [0.6])
    >>> both = symmetrized(one_way)
    >>> round(both.curve(0.1), 9), round(both.curve(0.6), 9)
    (0.6, 0.1)
    """
    made = SymmetrizedCurve(curve)
    other = curve.reversed()
    return curve if other is curve or other == curve else made
