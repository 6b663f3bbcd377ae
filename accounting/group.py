"""Group privacy: neighbours that differ in k records.

A chain of k neighbouring tables composes the power functions ``F = 1 - f``: ``f_k = 1 - F o ... o F`` is the
largest trade-off function that holds for every chain (Dong, Roth & Su 2022, theorem 2.14). In profiles,

    delta_k(eps) = min over t_1 + ... + t_k = eps of  sum_i e^(t_1 + ... + t_(i-1)) delta(t_i),

because ``F(x) = min_t delta(t) + e^t x``. Every choice of t gives a valid delta and all terms are positive; at
the best one, ``t_i`` is the log slope of F at the point the chain has reached. Equal shares eps / k give the
published ``delta (e^eps - 1) / (e^(eps/k) - 1)``.

Location families with a log-concave density compose exactly: every best test is a threshold on the outcome,
``F(alpha) = 1 - G(G^-1(1 - alpha) - c)`` for the distribution function G, so k steps shift by ``k c``. Hence
Gaussian mu becomes ``k mu`` and Laplace a becomes ``k a``. Piecewise linear curves compose to piecewise linear
ones. For other additive noise the curve of the k-fold shift is larger (more private) than f_k: it knows that
the k shifts share one noise vector, whereas f alone allows the worst chain. Only f_k follows from the curve.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property, singledispatch

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.base import SIGN, Bound, Precision, TradeOffCurve, check_curve
from privfit.accounting.chords import chord_decreasing, chord_epsilon
from privfit.accounting.discrete import DiscreteCurve
from privfit.accounting.gaussian import GaussianCurve
from privfit.accounting.group_polyline import group_polyline
from privfit.accounting.laplace import LaplaceCurve
from privfit.accounting.symmetrized import symmetrized
from privfit.accounting.validation import check_choice, check_integer

__all__ = ["GroupCurve", "group"]

Floats = NDArray[np.float64]
DEEPEST = -740.0  # logarithm of the smallest type I error that is looked at
TABLE = 600


@dataclass(frozen=True)
class GroupCurve(TradeOffCurve):
    """The k-fold power of a symmetric curve, by its profile (see `group`).

    Parameters
    ----------
    base : TradeOffCurve
        A symmetric curve.
    k : int
        At least 2.
    side : {"estimate", "lower", "upper"}
        Side of the trade-off curve on which the absolute error of the base is counted, k times.
    """

    base: TradeOffCurve
    k: int
    side: Bound = "estimate"

    def __post_init__(self) -> None:
        check_curve(self.base)
        if self.base.reversed() is not self.base and self.base.reversed() != self.base:
            raise ValueError("curve must be symmetric; pass symmetrized(curve), or call group.")
        object.__setattr__(self, "k", check_integer("k", self.k, 2))
        check_choice("side", self.side, ("estimate", "lower", "upper"))

    @property
    def relation(self) -> str:
        """Neighbouring tables: what the base says, k times over."""
        return f"differ in {self.k} records"

    @property
    def precision(self) -> Precision:
        """Relative error of the base and of the best chain; an absolute error is counted through `side`."""
        return Precision(self.base.precision.relative + 1e-10, 0.0)

    def _on(self, side: Bound) -> TradeOffCurve:
        base = self.base._on(side)
        exact = base.precision.absolute == 0.0
        return self if exact and base is self.base else dataclasses.replace(self, base=base, side=side)

    @property
    def _error(self) -> float:
        return -SIGN[self.side] * self.base.precision.absolute

    @property
    def max_loss(self) -> float:
        """That of the base, k times."""
        return self.k * self.base.max_loss

    @cached_property
    def infinite_mass(self) -> float:
        """Power of the test of level zero: F applied k - 1 times to the disclosed mass of the base."""
        mass = self.base.infinite_mass
        return 0.0 if mass == 0.0 else 1 - float(self._chain(np.log([mass]), self.k - 1)[1][0])

    @cached_property
    def _table(self) -> tuple[Floats, Floats, Floats]:
        """Thresholds with log alpha and log power, for first brackets."""
        top = self.base.max_loss
        if not math.isfinite(top):
            lost = self.base.infinite_mass
            top = float(self.base._epsilon(np.array([lost * (1 + 1e-12) + 1e-300]), "estimate")[0])
        # alpha(t) <= e^-t: no threshold beyond 745 belongs to a representable level
        top = min(top, 745.0)
        reach = np.geomspace(1e-8 * top, 1.01 * top, TABLE)
        t = np.concatenate([-reach[::-1], [0.0], reach])
        return t, self._log_alpha(t), self._log_power(t)

    def _log_alpha(self, t: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(self.base._error_rates(t)[0])

    def _log_profile(self, t: Floats) -> Floats:
        value = self.base._log_delta(t)
        if self._error == 0.0:
            return value
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(np.exp(value) + self._error, 0.0))

    def _log_power(self, t: Floats) -> Floats:
        return np.logaddexp(self.base._log_delta(t), t + self._log_alpha(t))

    def _inverse(self, values: Floats, log_target: Floats, power: bool) -> Floats:
        """Threshold at which log alpha, or log power, has fallen to the target."""
        t = self._table[0]
        place = np.clip(np.searchsorted(-values, -log_target), 1, len(t) - 1)

        def excess(x: Floats) -> Floats:
            value = self._log_power(x) if power else self._log_alpha(x)
            return np.maximum(value, -1e4) - log_target

        return chord_decreasing(excess, t[place - 1], t[place], 1e-12, 1e-13)[1]

    def _chain(self, log_alpha: Floats, length: int) -> tuple[Floats, Floats]:
        """Log slopes of F along the chain, first to last, and the type II error it ends with.

        Above alpha = 1/2 the complement ``b = 1 - alpha`` is followed: its map is the inverse of F.
        """
        _, alphas, powers = self._table
        size = np.maximum(log_alpha, DEEPEST)
        upper = log_alpha > math.log(0.5)
        size = np.where(upper, np.log(np.maximum(-np.expm1(np.minimum(log_alpha, 0.0)), 1e-320)), size)
        slopes = np.zeros((length, *log_alpha.shape))
        for i in range(length):
            lower = ~upper
            new, slope = size.copy(), np.zeros(size.shape)
            if lower.any():
                t = self._inverse(alphas, size[lower], power=False)
                slope[lower] = t
                log_new = np.minimum(np.logaddexp(self._log_profile(t), t + size[lower]), 0.0)
                alpha, beta = self.base._error_rates(t)
                with np.errstate(over="ignore"):
                    rest = beta + np.exp(t) * (alpha - np.exp(size[lower])) - self._error
                crossed = log_new > math.log(0.5)
                new[lower] = np.where(crossed, np.log(np.clip(rest, 1e-320, 0.5)), log_new)
            if upper.any():
                u = self._inverse(powers, size[upper], power=True)
                slope[upper] = -u
                alpha = self.base._error_rates(u)[0]
                with np.errstate(over="ignore", invalid="ignore"):
                    gap = np.exp(size[upper]) - np.exp(self._log_power(u))
                    rest = alpha + np.where(gap == 0.0, 0.0, np.exp(-u) * gap) - self._error
                new[upper] = np.log(np.clip(np.nan_to_num(rest, nan=0.0), 1e-320, 0.5))
            if lower.any():
                upper[lower] = crossed
            size, slopes[i] = new, slope
        return slopes, np.where(upper, np.exp(size), -np.expm1(size))

    def _start(self, slope: Floats) -> tuple[Floats, Floats]:
        """Log of the first type I errors on both sides of the point where F_k has the log slope >= 0."""
        low = np.full(slope.shape, DEEPEST)
        high = np.full(slope.shape, math.log(0.5))
        return chord_decreasing(lambda a: self._chain(a, self.k)[0].sum(0) - slope, low, high, 1e-11, 1e-13)

    def _log_delta(self, epsilon: Floats) -> Floats:
        flat = np.abs(epsilon).ravel()
        value = np.full(flat.shape, -np.inf)
        if self.infinite_mass > 0:
            value[:] = math.log(self.infinite_mass)
        inside = flat < min(self.max_loss, 1e300)
        if inside.any():
            value[inside] = np.maximum(value[inside], self._log_delta_inside(flat[inside]))
        size = value.reshape(epsilon.shape)
        below = np.minimum(epsilon, 0.0)
        with np.errstate(divide="ignore"):
            return np.where(epsilon >= 0, size, np.log(-np.expm1(below) + np.exp(below + size)))

    def _log_delta_inside(self, eps: Floats) -> Floats:
        low, high = self._start(eps)
        steep, flat = self._chain(low, self.k)[0], self._chain(high, self.k)[0]
        # at a kink of F_k every vector of slopes between the two sides is as good: take the one that adds up
        gap = steep.sum(0) - flat.sum(0)
        share = np.clip(np.where(gap > 0, (eps - flat.sum(0)) / np.where(gap > 0, gap, 1.0), 0.0), 0.0, 1.0)
        best = flat + share * (steep - flat)
        best[0] += eps - best.sum(0)
        equal = np.broadcast_to(eps / self.k, best.shape)
        return np.minimum(np.minimum(self._cost(best), self._cost(equal)), 0.0)

    def _cost(self, slopes: Floats) -> Floats:
        """Log of the sum in the module's opening; the chain's last step comes first there."""
        later = np.cumsum(slopes[::-1], axis=0)[::-1] - slopes
        terms = later + self._log_profile(slopes.ravel()).reshape(slopes.shape)
        return np.logaddexp.reduce(terms, axis=0)

    def _delta(self, epsilon: Floats) -> Floats:
        return np.exp(self._log_delta(epsilon))

    def _epsilon(self, delta: Floats, bound: Bound) -> Floats:
        slack = SIGN[bound] * (self.precision.relative + 1e-14)  # and the rounding of the logarithm
        low, high = chord_epsilon(self._log_delta, delta, slack, self.infinite_mass, self.max_loss)
        return low if bound == "lower" else high

    def _error_rates(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        flat = np.abs(log_ratio).ravel()
        alpha, beta = np.zeros(flat.shape), np.ones(flat.shape)
        inside = flat < min(self.max_loss, 1e300)
        if inside.any():
            start = self._start(flat[inside])[1]
            alpha[inside], beta[inside] = np.exp(start), self._chain(start, self.k)[1]
        a, b = alpha.reshape(log_ratio.shape), beta.reshape(log_ratio.shape)
        return np.where(log_ratio >= 0, a, b), np.where(log_ratio >= 0, b, a)

    def _curve(self, alpha: Floats) -> Floats:
        flat = alpha.ravel()
        value = np.where(flat == 0.0, 1 - self.infinite_mass, 0.0)
        inside = (flat > 0.0) & (flat < 1.0)
        if inside.any():
            value[inside] = self._chain(np.log(flat[inside]), self.k)[1]
        return value.reshape(alpha.shape)


@singledispatch
def _group(curve: TradeOffCurve, k: int) -> TradeOffCurve:
    return GroupCurve(curve, k)


@_group.register
def _(curve: GaussianCurve, k: int) -> TradeOffCurve:
    return GaussianCurve(k * curve.mu)


@_group.register
def _(curve: LaplaceCurve, k: int) -> TradeOffCurve:
    return LaplaceCurve(k * curve.a)


@_group.register
def _(curve: DiscreteCurve, k: int) -> TradeOffCurve:
    return group_polyline(curve, k) or GroupCurve(curve, k)


@_group.register
def _(curve: GroupCurve, k: int) -> TradeOffCurve:
    return GroupCurve(curve.base, curve.k * k, curve.side)


def group(curve: TradeOffCurve, k: int) -> TradeOffCurve:
    """Curve for neighbours that differ in `k` records.

    Parameters
    ----------
    curve : TradeOffCurve
        Curve for one record; an asymmetric one is symmetrised first, since a chain may go both ways.
    k : int
        Number of records, at least 1; 1 returns the curve itself.

    Returns
    -------
    TradeOffCurve
        Exact for Gaussian, Laplace and piecewise linear curves; otherwise `GroupCurve`, whose delta keeps ten
        digits down to ``delta e^-eps`` of about 1e-300 and is a valid upper bound below.

    Raises
    ------
    ValueError, TypeError
        If k is below 1 or `curve` is not a curve.

    Examples
    --------
    >>> from privfit.accounting.discrete import approximate_dp
    >>> from privfit.accounting.gaussian import gaussian
    >>> group(gaussian(0.5), 3)
    GaussianCurve(mu=1.5)
    >>> import math
    >>> published = 1e-5 * math.expm1(2.0) / math.expm1(1.0)
    >>> group(approximate_dp(1.0, 1e-5), 2).delta(2.0) <= published * (1 + 1e-12)
    True
    """
    check_curve(curve)
    count = check_integer("k", k, 1, hint="It is the number of records in which two neighbours differ.")
    return curve if count == 1 else _group(symmetrized(curve), count)
