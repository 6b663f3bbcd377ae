"""Amplification by subsampling: the mechanism sees each record with probability r only.

With f = T(P, Q), P without the record and Q with it, Poisson sampling turns Q into ``(1 - r) P + r Q``:

    f_r(alpha) = r f(alpha) + (1 - r)(1 - alpha),                    L' = log(1 - r + r e^L)
    delta_r(eps)  = r delta(g(eps)),                                 e^g = 1 + (e^eps - 1) / r
    delta_r^-(eps) = (1 - e^(eps - m)) delta^-(-g(-eps)),            m = -log(1 - r),  eps < m

where ``^-`` is the reversed direction (Q against P); below -m, ``delta_r = 1 - e^eps``. Joint convexity of
tests gives f_r as a lower bound for every table, and the mechanism that answers only "is the record in my
sample" through (P, Q) attains it: the bound is tight, in both directions, and under composition too
(Dong, Roth & Su 2022, section 4.2; Zhu, Dong & Wang 2022, theorem 11).

A sample of fixed size drawn without replacement, with one record replaced, obeys the same delta for
eps >= 0 and its mirror image for eps < 0 (Balle, Barthe & Gaboardi 2018, theorem 9). A single release
attains it. Steps may attain it in different directions, so composition must take the symmetric curve itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.base import Precision, TradeOffCurve, check_curve
from privfit.accounting.relation import ADD_OR_REMOVE, REPLACE_ONE, check_relation
from privfit.accounting.roots import bisect_decreasing
from privfit.accounting.sampling_loss import LossMap
from privfit.accounting.symmetrized import SymmetrizedCurve, symmetrized
from privfit.accounting.validation import check_choice, check_number

__all__ = ["FixedSizeSubsampledCurve", "SubsampledCurve", "subsample"]

Floats = NDArray[np.float64]
SCHEMES = {"poisson": ADD_OR_REMOVE, "without_replacement": REPLACE_ONE}


@dataclass(frozen=True)
class SubsampledCurve(TradeOffCurve):
    """One direction of Poisson subsampling: ``T(P, (1-r) P + r Q)``, or its inverse (see `subsample`).

    Parameters
    ----------
    base : TradeOffCurve
        ``T(P, Q)`` with P the law without the record.
    rate : float
        In (0, 1).
    reverse : bool
        Whether the sampled law is tested against P instead.
    """

    base: TradeOffCurve
    rate: float
    reverse: bool = False

    def __post_init__(self) -> None:
        _check_base(self, self.base)
        check_choice("reverse", self.reverse, (False, True))

    def __repr__(self) -> str:
        """Fields, and the neighbours the curve speaks about."""
        turned = "remove" if self.reverse else "add"
        return f"SubsampledCurve({self.base!r}, rate={self.rate!r}, Poisson, {turned} one record)"

    @property
    def relation(self) -> str:
        """Neighbouring tables."""
        return ADD_OR_REMOVE

    @property
    def precision(self) -> Precision:
        """That of the base, and the rounding of its argument."""
        return _precision(self.base)

    @cached_property
    def _inner(self) -> TradeOffCurve:
        return self.base.reversed() if self.reverse else self.base

    @cached_property
    def _map(self) -> LossMap:
        return LossMap(self.rate)

    @property
    def max_loss(self) -> float:
        """``log(1 - r + r e^M)`` for a base with largest loss M; ``-log(1 - r + r e^-M)`` in reverse."""
        largest = self._inner.max_loss
        if not self.reverse:
            return self._map.outer(largest)
        if self._inner.infinite_mass > 0 or math.isinf(largest):
            return self._map.top
        return min(-math.log1p(self.rate * math.expm1(-largest)) * (1 + 1e-15), self._map.top)

    @property
    def infinite_mass(self) -> float:
        """A disclosed record is in the sample with probability r; without it nothing can be certain."""
        return 0.0 if self.reverse else self.rate * self._inner.infinite_mass

    def _error_rates(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        r = self.rate
        if self.reverse:
            h = -self._map.inner(-log_ratio)
            alpha, beta = self._inner._error_rates(h)
            alpha = (1 - r) * self._power(h, alpha, beta) + r * alpha
            beyond = log_ratio >= self._map.top
            return np.where(beyond, 0.0, alpha), np.where(beyond, 1.0, beta)
        g = self._map.inner(log_ratio)
        alpha, beta = self._inner._error_rates(g)
        with np.errstate(over="ignore", invalid="ignore"):
            # P[L <= g] = delta^-(-g) + e^-g Q[L <= g]: no cancellation where it is tiny
            below = self._inner.reversed()._delta(-g) + np.where(beta > 0, np.exp(-g) * beta, 0.0)
        exact = (alpha > 0.5) & (self.base.precision.absolute == 0.0)
        beta = (1 - r) * np.where(exact, np.minimum(below, 1.0), 1 - alpha) + r * beta
        before = log_ratio < -self._map.top
        return np.where(before, 1.0, alpha), np.where(before, 0.0, beta)

    def _power(self, t: Floats, alpha: Floats, beta: Floats) -> Floats:
        """Q[L > t] of the inner curve as delta + e^t alpha, which keeps its relative accuracy."""
        with np.errstate(over="ignore", invalid="ignore"):
            power = self._inner._delta(t) + np.where(alpha > 0, np.exp(t) * alpha, 0.0)
        return np.where((beta > 0.5) & (self.base.precision.absolute == 0.0), np.minimum(power, 1.0), 1 - beta)

    def _delta(self, epsilon: Floats) -> Floats:
        return np.exp(self._log_delta(epsilon))

    def _log_delta(self, epsilon: Floats) -> Floats:
        top = self._map.top
        with np.errstate(divide="ignore"):
            if self.reverse:
                factor = np.log(-np.expm1(np.minimum(-self._map.gap(-epsilon), 0.0)))
                return np.where(epsilon < top, factor + self._inner._log_delta(-self._map.inner(-epsilon)), -np.inf)
            value = math.log(self.rate) + self._inner._log_delta(self._map.inner(epsilon))
            return np.where(epsilon > -top, value, np.log(-np.expm1(np.minimum(epsilon, -top))))

    def _curve(self, alpha: Floats) -> Floats:
        if not self.reverse:
            return self.rate * self._inner._curve(alpha) + (1 - self.rate) * (1 - alpha)
        least = self._map.outer(self.base.max_loss)
        with np.errstate(over="ignore"):
            low, high = bisect_decreasing(lambda t, a: self._error_rates(t)[0] - a, alpha, -least, self.max_loss)
        value = np.maximum(self._support_line(low, alpha), self._support_line(high, alpha))
        return np.where(alpha == 0.0, 1.0, value)

    def reversed(self) -> TradeOffCurve:
        """The other direction."""
        return SubsampledCurve(self.base, self.rate, not self.reverse)


@dataclass(frozen=True)
class FixedSizeSubsampledCurve(TradeOffCurve):
    """Sampling without replacement, one record replaced: a symmetric curve (see `subsample`)."""

    base: TradeOffCurve
    rate: float

    def __post_init__(self) -> None:
        _check_base(self, self.base)

    def __repr__(self) -> str:
        """Fields, and the neighbours the curve speaks about."""
        return f"FixedSizeSubsampledCurve({self.base!r}, rate={self.rate!r}, without replacement, {REPLACE_ONE})"

    @property
    def relation(self) -> str:
        """Neighbouring tables."""
        return REPLACE_ONE

    @property
    def precision(self) -> Precision:
        """That of the base, and the rounding of its argument."""
        return _precision(self.base)

    @cached_property
    def _one_way(self) -> SubsampledCurve:
        return SubsampledCurve(symmetrized(self.base), self.rate)

    @property
    def max_loss(self) -> float:
        """``log(1 - r + r e^M)`` for a base with largest loss M."""
        return self._one_way.max_loss

    @property
    def infinite_mass(self) -> float:
        """A disclosed record is in the sample with probability r."""
        return self._one_way.infinite_mass

    def _error_rates(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        alpha, beta = self._one_way._error_rates(np.abs(log_ratio))
        return np.where(log_ratio >= 0, alpha, beta), np.where(log_ratio >= 0, beta, alpha)

    def _delta(self, epsilon: Floats) -> Floats:
        size = self._one_way._delta(np.abs(epsilon))
        return np.where(epsilon >= 0, size, -np.expm1(np.minimum(epsilon, 0)) + np.exp(np.minimum(epsilon, 0)) * size)

    def _log_delta(self, epsilon: Floats) -> Floats:
        size = self._one_way._log_delta(np.abs(epsilon))
        with np.errstate(divide="ignore"):
            return np.where(epsilon >= 0, size, np.log(self._delta(np.minimum(epsilon, 0))))


def subsample(curve: TradeOffCurve, rate: float, scheme: str = "poisson", relation: str | None = None) -> TradeOffCurve:
    """Curve of a mechanism run on a random subsample of the records.

    Parameters
    ----------
    curve : TradeOffCurve
        Curve of the mechanism on the sample, for the neighbours of the scheme; an asymmetric one is
        symmetrised first. A subsampled curve of the same scheme is sampled further: the rates multiply.
    rate : float
        Share of the records in the sample, in (0, 1]; 1 returns the curve itself.
    scheme : {"poisson", "without_replacement"}
        "poisson": every record enters independently; neighbours add or remove one record. "without_replacement":
        a sample of fixed size ``rate * n``; neighbours replace one record. Batches cut from one shuffled pass
        over the data are neither.
    relation : str, optional
        The neighbours you mean, "add or remove one record" or "replace one record"; checked against the scheme.

    Returns
    -------
    TradeOffCurve
        Covers both directions and names its neighbours in ``relation`` and in its repr. Tight for Poisson
        sampling; tight for one release without replacement (composed, an upper bound of the privacy loss).

    Raises
    ------
    ValueError, TypeError
        If the rate is outside (0, 1], the scheme unknown, or curve and scheme speak about other neighbours.

    Examples
    --------
    >>> from privfit.accounting.gaussian import gaussian
    >>> sampled = subsample(gaussian(1.0), 0.01)
    >>> sampled.relation
    'add or remove one record'
    >>> round(sampled.delta(0.1) / gaussian(1.0).delta(0.1), 4)
    0.0002
    """
    check_curve(curve)
    r = check_number("rate", rate, 0.0, 1.0, low_open=True, hint="It is the share of the records in the sample.")
    neighbours = SCHEMES[check_choice("scheme", scheme, SCHEMES)]
    if relation is not None:
        check_choice("relation", relation, SCHEMES.values())
        if relation != neighbours:
            raise ValueError(f"scheme must fit the relation {relation!r}, got {scheme!r}. {_advice(scheme)}")
    check_relation(curve, neighbours, f"scheme={scheme!r}", _advice(scheme))
    if r == 1.0:
        return curve
    inside = curve.base if isinstance(curve, SymmetrizedCurve) else curve
    if isinstance(inside, SubsampledCurve) and inside.relation == neighbours:
        return subsample(inside.base, inside.rate * r, scheme)
    if isinstance(inside, FixedSizeSubsampledCurve):
        return FixedSizeSubsampledCurve(inside.base, inside.rate * r)
    base = symmetrized(curve)
    return symmetrized(SubsampledCurve(base, r)) if scheme == "poisson" else FixedSizeSubsampledCurve(base, r)


def _advice(scheme: str) -> str:
    if scheme == "poisson":
        return (
            "Poisson sampling is analysed for adding or removing one record: give a curve for those neighbours "
            "and use group(subsample(curve, rate), 2) for replacing one (a removal and an addition), "
            "or draw batches of fixed size with scheme='without_replacement'."
        )
    return (
        "Sampling without replacement keeps the number of records, so its neighbours replace one record: give a "
        "curve for those neighbours (for additive noise, twice the sensitivity), or use scheme='poisson'."
    )


def _check_base(curve: Any, base: Any) -> None:
    check_curve(base)
    check_relation(base, curve.relation, type(curve).__name__, "")
    rate = check_number("rate", curve.rate, 0.0, 1.0, low_open=True, high_open=True)
    object.__setattr__(curve, "rate", rate)


def _precision(base: TradeOffCurve) -> Precision:
    return Precision(base.precision.relative + 1e-12, base.precision.absolute)
