"""How fast the profile of an unbounded privacy loss falls: what Renyi divergences need beyond the last point.

Generalised Laplace noise of shape k < d/2 has density at most ``A z^(2k-d)`` near its centre, so with C the shift
and rho the distance to the centre of Q, ``L > t`` inside ``L > T`` forces ``A rho^(2k-d) >= e^t f(C + rho_T)`` and

    Q[L > t] <= Q[rho <= rho(t)] <= const e^(-kappa t),     kappa = 2k / (d - 2k)

of the exact order: D_a is finite exactly for a < 1 + kappa = d / (d - 2k). For k = d/2 the density is at most
``log(2/z)`` and the tail falls like exp(-d beta e^t): every order is finite. docs/mathematics.md has both bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.base import TradeOffCurve
from privfit.accounting.composed import ComposedCurve
from privfit.accounting.discrete_noise import DiscreteGaussianCurve
from privfit.accounting.gaussian import GaussianCurve
from privfit.accounting.generalized_gaussian import GeneralizedGaussianCurve
from privfit.accounting.limit import ShapedLimitCurve, SymmetricLaplaceLimitCurve
from privfit.accounting.limit_composition import LimitCompositionCurve
from privfit.accounting.mixture import MixtureCurve
from privfit.accounting.radial import RadialLaw, radial_law
from privfit.accounting.roots import bisect_decreasing
from privfit.accounting.subsampling import FixedSizeSubsampledCurve, SubsampledCurve
from privfit.accounting.symmetric_laplace import SymmetricLaplaceCurve
from privfit.accounting.symmetrized import SymmetrizedCurve

__all__ = ["Tail", "loss_tail"]

Floats = NDArray[np.float64]


def _nothing(rate: Floats, start: float) -> Floats:
    return np.full(rate.shape, -np.inf)


@dataclass(frozen=True)
class Tail:
    """What is known of delta(t) beyond `start`.

    Parameters
    ----------
    order : float
        Renyi orders from here on are reported as infinite.
    start : float
        Where the bound begins.
    log_integral : callable
        ``(rates, start) ->`` log of an upper bound of ``int_start^inf e^(rate t) delta(t) dt``.
    """

    order: float
    start: float
    log_integral: Callable[[Floats, float], Floats] = _nothing


@singledispatch
def loss_tail(curve: TradeOffCurve) -> Tail:
    """Tail of a curve; families with an unbounded loss register their own.

    A family that has not is read off its values: if log delta falls faster than linearly between delta =
    e^-300 and its last computed stretch, it is taken to go on doing so and orders below 1 + 0.9 times the last
    slope are served; otherwise no finite bound is claimed.

    Examples
    --------
    >>> import privfit.accounting as pa
    >>> loss_tail(pa.laplace(1.0)).order, loss_tail(pa.symmetric_laplace(6, 0.5)).order
    (inf, 1.5)
    """
    if math.isfinite(curve.max_loss):
        return Tail(math.inf, curve.max_loss)
    if curve.infinite_mass > 0 or curve.precision.absolute > 1e-290:
        return Tail(1.0, 0.0)
    # log delta is read at pairs of neighbouring levels; if it is concave, a chord's slope is at most the slope after
    levels = np.array([-250.0, -300.0, -550.0, -600.0, -9.5e4, -1e5])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        t = bisect_decreasing(lambda t, level: curve._log_delta(t) - level, levels, lower=0.0)[0]
        log_delta = curve._log_delta(t)
        slope = -(np.diff(log_delta) / np.diff(t))[::2]
    deep = 2 if np.allclose(log_delta[4:], levels[4:], rtol=1e-3) and slope[2] > slope[1] else 1
    if not (np.allclose(log_delta[:4], levels[:4], rtol=1e-3) and slope[1] > 1.1 * slope[0]):
        return Tail(1.0, 0.0)
    last, at = float(slope[deep]), float(t[2 * deep + 1])

    def log_integral(rate: Floats, start: float) -> Floats:
        return rate * at + float(curve._log_delta(np.asarray(at))) - np.log(last - rate)

    return Tail(1 + 0.9 * last, at, log_integral)


@loss_tail.register(SymmetricLaplaceLimitCurve)
@loss_tail.register(ShapedLimitCurve)
@loss_tail.register(LimitCompositionCurve)
def _(curve: TradeOffCurve) -> Tail:
    """The tail of delta is polynomial: every order above 1 is infinite."""
    return Tail(1.0, 0.0)


@loss_tail.register
def _(curve: GaussianCurve) -> Tail:
    """``delta(t) <= Phi(-x) <= exp(-x^2 / 2) / 2`` with x = t/mu - mu/2 >= 0."""
    return _gaussian_tail(curve.mu, 0.5)


@loss_tail.register
def _(curve: DiscreteGaussianCurve) -> Tail:
    """``delta(t) <= P[X >= x sigma] <= exp(-x^2 / 2)``: integer Gaussian noise is sigma-subgaussian.

    (Canonne, Kamath & Steinke 2020, fact 20.)
    """
    return _gaussian_tail(curve.sensitivity / curve.sigma, 1.0)


def _gaussian_tail(mu: float, factor: float) -> Tail:
    """Tail of a profile below ``factor * exp(-x^2 / 2)``, x = t/mu - mu/2 >= 0."""
    from scipy.special import log_ndtr

    def log_integral(rate: Floats, start: float) -> Floats:
        middle = mu * mu * (0.5 + rate)
        constant = 0.5 * math.log(2 * math.pi) + math.log(factor * mu)
        return constant + 0.5 * rate * (1 + rate) * mu * mu + log_ndtr((middle - start) / mu)

    return Tail(math.inf, mu * (mu / 2 + 450.0), log_integral)


@loss_tail.register
def _(curve: GeneralizedGaussianCurve) -> Tail:
    """``delta(t) <= F(-y)``, y the distance from the centre of Q with loss ``l(y) = (y + a)^p - y^p = t``.

    In y the integral is ``int e^(rate l) F(-y) dl``. On a cell F is at most its value on the left. With r = dl/d(y^p),
    which falls as ``F(-y) e^(y^p)`` does, the rest is below ``e^(rate l) F(-y) r / (1 - rate r)`` once rate r <= 1/2.
    """
    p, a = curve.power, curve.shift
    first = 1e4 ** (1 / p)
    start = float(curve._loss(np.asarray(first + a / 2)))
    if not start < 1e200:  # losses that no order of a Renyi divergence can bear
        return Tail(1.0, 0.0)

    def log_integral(rate: Floats, at: float) -> Floats:
        return np.array([_log_stretched(curve, float(b), at) for b in np.atleast_1d(rate)])

    return Tail(math.inf, start, log_integral)


def _log_stretched(curve: GeneralizedGaussianCurve, rate: float, at: float) -> float:
    """Log of an upper bound of ``int_at^inf e^(rate t) F(-y(t)) dt`` for generalised Gaussian noise."""
    p, a, b = curve.power, curve.shift, max(rate, 0.5)
    low = float(curve._crossing(np.asarray(at)))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        high = max(a / math.expm1(math.log1p(0.5 / b) / (p - 1)), low * (1 + 1e-9))
        y = np.geomspace(low, high, 4001)
        loss, tail = curve._loss(y + a / 2), curve._log_tail(y)
        rise = max(rate, 0.0) * np.diff(loss)
        ramp = np.log(np.diff(loss)) + np.log(np.where(rise > 1e-9, -np.expm1(-rise) / np.maximum(rise, 1e-300), 1.0))
        cells = max(rate, 0.0) * loss[1:] + ramp + tail[:-1]
        steep = math.expm1((p - 1) * math.log1p(a / high))  # dl / d(y^p), falling with y
        rest = max(rate, 0.0) * loss[-1] + tail[-1] + math.log(steep / (1 - max(rate, 0.0) * steep))
        value = float(np.logaddexp.reduce(np.append(cells, rest))) + min(rate, 0.0) * at
    return value if not math.isnan(value) else math.inf


@loss_tail.register(SubsampledCurve)
@loss_tail.register(FixedSizeSubsampledCurve)
def _(curve: SubsampledCurve | FixedSizeSubsampledCurve) -> Tail:
    """Sampling only lowers the profile: delta_sub(t) <= delta(t)."""
    return Tail(math.inf, curve.max_loss) if math.isfinite(curve.max_loss) else loss_tail(curve.base)


@loss_tail.register
def _(curve: SymmetrizedCurve) -> Tail:
    parts = [loss_tail(curve.base), loss_tail(curve.base.reversed())]
    return min(parts, key=lambda tail: tail.order)


@loss_tail.register
def _(curve: ComposedCurve) -> Tail:
    """Divergences add, so the tail itself is not needed: only the smallest order that is infinite."""
    return Tail(min(loss_tail(part).order for part in curve.parts), math.nan)


@loss_tail.register
def _(curve: MixtureCurve) -> Tail:
    return Tail(loss_tail(curve.base).order, math.nan)


@loss_tail.register
def _(curve: SymmetricLaplaceCurve) -> Tail:
    if math.isfinite(curve.max_loss):
        return Tail(math.inf, curve.max_loss)
    law, shift, k, d = radial_law(curve.dim, curve.shape), curve._separation, curve.shape, curve.dim
    far = math.log(shift) - min(300.0, 300.0 / k) if law.order < 0 else min(math.log(shift) - 1.0, -600.0 / d)
    outer = float(law.log_density(np.array([np.logaddexp(math.log(shift), far)]))[0])  # F(C + rho_T)
    start = float(law.log_density(np.array([far]))[0]) - outer
    return _power_tail(law, k, outer, start) if law.order < 0 else _double_tail(law, outer, start)


def _power_tail(law: RadialLaw, shape: float, outer: float, start: float) -> Tail:
    v = -law.order
    log_a = (v - 1) * math.log(2) + math.lgamma(v)
    kappa = shape / v
    # delta(t) = int_t^inf e^(t - s) Q[L > s] ds: a tail e^(-kappa s) leaves the factor 1 / (1 + kappa)
    constant = law.log_constant + log_a - math.log(2 * shape) + kappa * (log_a - outer) - math.log1p(kappa)

    def log_integral(rate: Floats, at: float) -> Floats:
        return constant - (kappa - rate) * at - np.log(kappa - rate)

    return Tail(1 + kappa, start, log_integral)


def _double_tail(law: RadialLaw, outer: float, start: float) -> Tail:
    d = law.dim

    def log_integral(rate: Floats, at: float) -> Floats:
        # with y = e^(t + outer): const 2^d int_Y^inf y^(rate - 1) e^(-d y) (y/d + 1/d^2) dy
        x = d * math.exp(at + outer)
        value = _log_upper_gamma(rate + 1, x) + math.log1p(1 / x)
        return law.log_constant + d * math.log(2) - rate * outer - (rate + 2) * math.log(d) + value

    return Tail(math.inf, start, log_integral)


def _log_upper_gamma(s: Floats, x: float) -> Floats:
    """Log of Gamma(s, x) for s >= 1, exactly or (for x far above s) from above."""
    from scipy.special import gammaincc, gammaln

    with np.errstate(divide="ignore"):
        exact = gammaln(s) + np.log(gammaincc(s, x))
    bound = s * math.log(x) - x - np.log(np.maximum(x - s + 1, 1e-300))
    return np.where(x > s + 100, bound, exact)
