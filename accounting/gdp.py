"""The tightest Gaussian guarantee: the smallest mu with the curve above G_mu, enclosed from both sides.

The Gaussian curve through the point (alpha, beta) has ``mu = Phi^-1(1 - alpha) - Phi^-1(beta)``, so the answer is
the supremum over the curve's points. Between two thresholds the curve lies above its two supporting lines; they
meet at

    p = (delta_0 - delta_1) / (e^t1 - e^t0),    1 - beta = q = delta_0 + e^t0 p

and because the region above G_mu is convex, the mu of that vertex (and of the computed points) bounds the mu of
the whole cell. Cells whose vertex could beat the best point are split: no maximum is missed. Thresholds t >= 0 of
the curve and of the reversed curve cover everything. (Dong, Roth & Su 2022, section 2.)
"""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.base import TradeOffCurve
from privfit.accounting.composed import ComposedCurve
from privfit.accounting.discrete import DiscreteCurve
from privfit.accounting.discrete_noise import DiscreteGaussianCurve
from privfit.accounting.gaussian import GaussianCurve, gaussian_log_delta
from privfit.accounting.gdp_tails import discrete_gaussian_tail, generalized_gaussian_tail
from privfit.accounting.generalized_gaussian import GeneralizedGaussianCurve
from privfit.accounting.limit import ShapedLimitCurve, SymmetricLaplaceLimitCurve
from privfit.accounting.limit_composition import LimitCompositionCurve
from privfit.accounting.mixture import MixtureCurve
from privfit.accounting.roots import bisect_decreasing
from privfit.accounting.subsampling import FixedSizeSubsampledCurve, SubsampledCurve
from privfit.accounting.symmetric_laplace import SymmetricLaplaceCurve
from privfit.accounting.symmetrized import SymmetrizedCurve
from privfit.accounting.wrappers import MinimumCurve

__all__ = ["matching_mu", "mu_at_infinity", "mu_of_parts", "mu_of_rates", "tight_mu"]

Floats = NDArray[np.float64]
ACCURACY = 1e-9
POINTS = 20_000


def tight_mu(curve: TradeOffCurve) -> float:
    """Smallest mu whose Gaussian curve lies below `curve`, on the safe side; inf where there is none.

    Parameters
    ----------
    curve : TradeOffCurve
        Thresholds t >= 0 are looked at: an asymmetric curve and its reversed curve give the two halves.

    Returns
    -------
    float
        At most about 1e-9 (relative) above the exact value (1e-6 where mu is constant along the curve). Tables
        of composed curves with an unbounded loss cannot show the far tail: for them ``sqrt(sum mu_i^2)``.

    Examples
    --------
    >>> from privfit.accounting.laplace import laplace
    >>> round(tight_mu(laplace(1.0)), 6)
    1.030064
    """
    if curve.infinite_mass > 0:
        return math.inf
    if isinstance(curve, SymmetrizedCurve):
        return curve.base.gdp()
    cap = mu_of_parts(curve)
    beyond = mu_at_infinity(curve)
    if math.isinf(beyond):
        return cap
    side = curve._on("lower")
    return min(max(_enclose(side, _start(side)), beyond) * (1 + 1e-10), cap)


def _start(curve: TradeOffCurve) -> Floats:
    """First thresholds: the loss values of a discrete curve, otherwise a mixed grid up to the far tail."""
    if isinstance(curve, DiscreteCurve):
        loss = np.asarray(curve.loss)
        return np.unique(np.append(loss[(loss > 0) & np.isfinite(loss)], 0.0))
    top = curve.max_loss if math.isfinite(curve.max_loss) else _far(curve, -600.0)
    t = np.concatenate([[0.0], np.geomspace(1e-6, 1, 100), np.linspace(0, 1, 120), 1 - np.geomspace(1e-9, 0.1, 30)])
    return np.unique(max(top, 1e-300) * t)


def _far(curve: TradeOffCurve, level: float) -> float:
    """Last threshold with log delta above `level` (or where delta is lost in its own error)."""
    floor = math.log(curve.precision.absolute) + 20 if curve.precision.absolute > 0 else -math.inf
    target = np.asarray(max(level, floor))
    with np.errstate(over="ignore"):
        return float(bisect_decreasing(lambda t, at: curve._log_delta(t) - at, target, lower=0.0)[0])


def _enclose(curve: TradeOffCurve, t: Floats) -> float:
    """Upper end of the enclosure of sup mu over the cells of t."""
    # beta(t) >= Q[L < 0]: known to full relative accuracy where beta itself is 1 minus something
    floor = float(curve.reversed()._error_rates(np.asarray(0.0))[0])
    while True:
        log_delta = np.minimum(curve._log_shift(curve._log_delta(t), "upper"), 0.0)
        log_delta = np.where(t >= curve.max_loss, -np.inf, log_delta)
        alpha, beta = curve._error_rates(t)
        beta = np.maximum(beta, floor)
        best = float(_at_points(t, log_delta, alpha, beta).max())
        if t.size == 1:
            return max(best, 0.0)
        cells = _at_vertices(t, log_delta, alpha, beta, curve.max_loss)
        split = cells > max(best, 1e-300) * (1 + ACCURACY)
        middle = (0.5 * (t[:-1] + t[1:]))[split]
        fresh = middle[(middle > t[:-1][split]) & (middle < t[1:][split])]
        if not fresh.size or t.size > POINTS:
            return max(best, float(cells.max()), 0.0)
        t = np.union1d(t, fresh)


def _at_points(t: Floats, log_delta: Floats, alpha: Floats, beta: Floats) -> Floats:
    """The mu of (alpha(t), beta(t)), with q = delta + e^t alpha."""
    with np.errstate(divide="ignore"):
        scaled = t + np.log(alpha)
        excess = np.exp(log_delta) + np.expm1(t) * alpha if t[-1] < 700 else np.full(t.shape, np.inf)
        # where alpha has underflowed the vertices alone decide
        log_q = np.where(alpha > 0, np.logaddexp(log_delta, scaled), -np.inf)
        return mu_of_rates(np.log(alpha), log_q, beta, excess)


def _at_vertices(t: Floats, log_delta: Floats, alpha: Floats, beta: Floats, top: float) -> Floats:
    """The mu where the supporting lines of neighbouring thresholds meet, above the line of the largest loss."""
    low, high = t[:-1], t[1:]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_p = log_delta[:-1] + np.log(-np.expm1(log_delta[1:] - log_delta[:-1])) - low - np.log(np.expm1(high - low))
        # an alpha that has underflowed says only that it is small
        least = np.where(alpha[1:] > 1e-300, np.log(alpha[1:]), -np.inf)
        log_p = np.clip(np.nan_to_num(log_p, nan=-np.inf), least, np.log(np.maximum(alpha[:-1], 1e-300)))
        log_p = np.maximum(log_p, log_delta[:-1] - top - np.log(-np.expm1(low - top)))
        p = np.exp(log_p)
        log_q = np.minimum(np.logaddexp(log_delta[:-1], low + log_p), 0.0)
        excess = np.exp(log_delta[:-1]) + np.expm1(np.minimum(low, 700.0)) * p
        miss = beta[:-1] + np.exp(np.minimum(low, 700.0)) * np.maximum(alpha[:-1] - p, 0.0)
    return mu_of_rates(log_p, log_q, np.clip(miss, 0.0, 1.0), excess)


def mu_of_rates(log_p: Floats, log_q: Floats, miss: Floats, excess: Floats) -> Floats:
    """``Phi^-1(q) - Phi^-1(p)`` from log p, log q, 1 - q and q - p; zero where q = 0.

    Examples
    --------
    >>> p, q = np.array([0.3]), np.array([0.6])
    >>> mu_of_rates(np.log(p), np.log(q), 1 - q, q - p).round(6).tolist()
    [0.777748]
    """
    from scipy.special import ndtri, ndtri_exp

    alive = log_q > -np.inf
    log_p, log_q = np.where(alive, log_p, -1.0), np.where(alive, log_q, -1.0)
    p = np.exp(log_p)
    upper = np.where(log_q < math.log(0.5), ndtri_exp(log_q), -ndtri(np.clip(miss, 0.0, 1.0)))
    mu = upper - ndtri_exp(log_p)
    # close rates: the difference over the density at the middle, with an error of relative order (q - p)^2
    close = (excess < 1e-5 * p) & (p < 0.99)
    z = ndtri_exp(np.log(np.where(close, p + 0.5 * excess, 0.5)))
    return np.where(alive, np.where(close, excess * math.sqrt(2 * math.pi) * np.exp(0.5 * z * z), mu), 0.0)


@singledispatch
def mu_at_infinity(curve: TradeOffCurve) -> float:
    """Supremum of mu beyond the far tail; families register theirs.

    A curve with bounded loss has 0. Where a family says nothing, mu is read off the computed tail: 0 if it falls
    from delta = e^-300 to e^-600, otherwise no finite value is claimed.

    Examples
    --------
    >>> import privfit.accounting as pa
    >>> mu_at_infinity(pa.laplace(1.0)), mu_at_infinity(pa.symmetric_laplace_limit(0.1))
    (0.0, inf)
    """
    if math.isfinite(curve.max_loss):
        return 0.0
    if curve.precision.absolute > 1e-290:
        return math.inf
    t = np.array([_far(curve, -300.0), _far(curve, -600.0)])
    near, far = matching_mu(curve, t)
    return 0.0 if far < near else math.inf


@mu_at_infinity.register
def _(curve: GaussianCurve) -> float:
    return curve.mu


@mu_at_infinity.register(SymmetricLaplaceLimitCurve)
@mu_at_infinity.register(ShapedLimitCurve)
@mu_at_infinity.register(LimitCompositionCurve)
def _(curve: TradeOffCurve) -> float:
    """The tail of delta is polynomial."""
    return math.inf


@mu_at_infinity.register
def _(curve: SymmetricLaplaceCurve) -> float:
    """The profile falls like e^(-2k t / (d - 2k)) for k < d/2, like exp(-e^t) for k = d/2, and ends for k > d/2."""
    return math.inf if curve.shape < curve.dim / 2 else 0.0


@mu_at_infinity.register
def _(curve: DiscreteGaussianCurve) -> float:
    """It tends to sensitivity / sigma from above, so the far tail decides."""
    first = curve._first(np.asarray(_far(curve, -600.0)))[0]
    return discrete_gaussian_tail(curve.sigma, float(curve.sensitivity), float(first))


@mu_at_infinity.register
def _(curve: GeneralizedGaussianCurve) -> float:
    """A tail lighter than the Gaussian one has no mu; of a heavier one the largest mu beyond its computed part."""
    if curve.power > 2:
        return math.inf
    return generalized_gaussian_tail(curve, float(curve._crossing(np.asarray(_far(curve, -600.0)))))


@mu_at_infinity.register
def _(curve: MinimumCurve) -> float:
    """Largest of the parts."""
    return max(mu_at_infinity(part) for part in curve.curves)


@mu_at_infinity.register
def _(curve: ComposedCurve) -> float:
    """The tail of a table is not certain: with an unbounded part only the sum of mu^2 is."""
    return 0.0 if math.isfinite(curve.max_loss) else math.inf


@singledispatch
def mu_of_parts(curve: TradeOffCurve) -> float:
    """A Gaussian guarantee that a curve inherits from its parts: an upper bound of the tight mu, or inf.

    Examples
    --------
    >>> import privfit.accounting as pa
    >>> mu_of_parts(pa.laplace(1.0))
    inf
    """
    return math.inf


@mu_of_parts.register
def _(curve: ComposedCurve) -> float:
    """Gaussian guarantees compose: mu^2 adds."""
    return math.sqrt(sum(n * part.gdp() ** 2 for part, n in zip(curve.parts, curve.counts, strict=True)))


@mu_of_parts.register
def _(curve: MixtureCurve) -> float:
    return math.hypot(curve.base.gdp(), curve.atoms.gdp())


@mu_of_parts.register(SubsampledCurve)
@mu_of_parts.register(FixedSizeSubsampledCurve)
def _(curve: SubsampledCurve | FixedSizeSubsampledCurve) -> float:
    """Sampling never hurts; for a Gaussian base it does not help either, because the far tail decides."""
    return curve.base.gdp()


def matching_mu(curve: TradeOffCurve, epsilon: Floats) -> Floats:
    """For every eps >= 0 the mu with delta_Gauss(eps; mu) = delta(eps); zero where delta vanishes.

    Examples
    --------
    >>> from privfit.accounting.gaussian import gaussian
    >>> matching_mu(gaussian(0.7), np.array([0.0, 3.0])).round(9).tolist()
    [0.7, 0.7]
    """
    wanted = curve._log_shift(curve._log_delta(epsilon), "upper")
    wanted = np.where(epsilon >= curve.max_loss, -np.inf, wanted)
    alive = wanted > -np.inf
    result = np.zeros(epsilon.shape)
    if alive.any():
        eps, goal = epsilon[alive], wanted[alive]

        def shortfall(log_mu: Floats, index: Floats) -> Floats:
            i = index.astype(int)
            return goal[i] - gaussian_log_delta(eps[i], np.exp(log_mu))

        _, high = bisect_decreasing(shortfall, np.arange(len(eps), dtype=float), lower=-60.0, upper=60.0)
        result[alive] = np.exp(high)
    return result
