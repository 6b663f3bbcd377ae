"""Zero-concentrated differential privacy of a curve: the smallest rho with D_a <= rho a for every order a > 1.

``K(u) = u D_(1+u)`` is convex with K(0) = 0, so chords of computed values bound it from above between them, and

    rho = sup_u K(u) / (u (u + 1))

is enclosed by branch and bound: cells whose chord could still beat the best value are split. Beyond the last
order a bounded loss gives ``D_a / a <= max_loss / a``; if delta lies below that of G_mu beyond T, then

    D_a / a <= max(T / a, mu^2 / 2) + log(2 a + 1) / (a (a - 1)).

(Bun & Steinke 2016; the exact value of randomised response is eps tanh(eps / 2), that of the Gaussian mu^2 / 2.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.base import TradeOffCurve, check_curve
from privfit.accounting.composed import ComposedCurve
from privfit.accounting.discrete import DiscreteCurve
from privfit.accounting.gaussian import GaussianCurve
from privfit.accounting.gdp import matching_mu
from privfit.accounting.laplace import LaplaceCurve
from privfit.accounting.mixture import MixtureCurve
from privfit.accounting.renyi import rdp_family
from privfit.accounting.subsampling import FixedSizeSubsampledCurve, SubsampledCurve
from privfit.accounting.symmetrized import SymmetrizedCurve
from privfit.accounting.tails import loss_tail

__all__ = ["ratio_beyond", "zcdp"]

Floats = NDArray[np.float64]
ACCURACIES = (1e-3, 1e-4, 1e-5, 3e-6)  # aimed at one after the other, as far as the orders last
ORDERS = 150
CHEAP_ORDERS = 5000  # for families with a closed form


def zcdp(curve: TradeOffCurve) -> float:
    """Smallest rho for which the mechanism is rho-zCDP, from above; inf where there is none.

    Parameters
    ----------
    curve : TradeOffCurve

    Returns
    -------
    float
        A certified upper bound, never above ``gdp()^2 / 2`` for unbounded losses. The relative excess is
        below 4e-6 where that takes few orders, and up to 1e-3 where D_a / a is flat over many orders of
        magnitude (exact for Gaussian curves).

    Raises
    ------
    TypeError
        If `curve` is not a curve.

    Examples
    --------
    >>> import privfit.accounting as pa
    >>> zcdp(pa.gaussian(0.5))
    0.125
    >>> round(zcdp(pa.randomized_response(1.0)), 5)  # tanh(1/2)
    0.46212
    >>> zcdp(pa.symmetric_laplace(6, 0.1))
    inf
    """
    check_curve(curve)
    if isinstance(curve, GaussianCurve):
        return 0.5 * curve.mu**2
    turned = curve.reversed()
    if max(curve.infinite_mass, turned.infinite_mass) > 0:
        return math.inf
    last = min(1e8, loss_tail(curve).order - 1, loss_tail(turned).order - 1)
    beyond = ratio_beyond(curve)
    limit = beyond(1 + last)
    if math.isinf(limit):
        return math.inf
    return min(_enclose(curve, last, beyond), beyond(1.0)) * (1 + 1e-12)


def _enclose(curve: TradeOffCurve, last: float, beyond: Callable[[float], float]) -> float:
    """Upper end of the enclosure of sup D_a / a."""
    u = np.array([0.0, 1e-3, 0.1, 1.0, 10.0])
    u = u[u < last] if last > 1e-3 else np.array([0.0, 0.5 * last])
    divergence = rdp_family(curve, 1 + u)
    whole = beyond(1.0)
    budget = CHEAP_ORDERS if isinstance(curve, (DiscreteCurve, LaplaceCurve)) else ORDERS
    result, stage = math.inf, 0
    while True:
        best = float(np.max(divergence / (1 + u)))
        cells = _chord_maxima(u, divergence)
        outside = beyond(1 + float(u[-1]))
        result = min(result, max(best, float(cells.max()), outside))
        while stage < len(ACCURACIES) and min(result, whole) <= best * (1 + ACCURACIES[stage]):
            stage += 1
        if stage == len(ACCURACIES):
            return result
        fresh = _splits(u)[cells > best * (1 + ACCURACIES[stage])]
        if outside > best * (1 + ACCURACIES[stage]) and u[-1] < last:
            fresh = np.append(fresh, min(8 * u[-1], last))
        fresh = np.setdiff1d(fresh, u)
        if not fresh.size or u.size + fresh.size > budget:
            return result
        at = np.searchsorted(u, fresh)
        u, divergence = np.insert(u, at, fresh), np.insert(divergence, at, rdp_family(curve, 1 + fresh))


def _splits(u: Floats) -> Floats:
    """A point inside every cell: the middle, on a logarithmic scale where the cell is long."""
    fresh = 0.5 * (u[:-1] + u[1:])
    wide = (u[:-1] > 0) & (u[1:] > 4 * u[:-1])
    fresh[wide] = np.sqrt(u[:-1] * u[1:])[wide]
    if u[0] == 0.0:
        fresh[0] = u[1] / 16
    return fresh


def _chord_maxima(u: Floats, divergence: Floats) -> Floats:
    """Largest value of chord(u) / (u (u + 1)) on every cell, the chord being that of K(u) = u D."""
    low, high = u[:-1], u[1:]
    k_low, k_high = low * divergence[:-1], high * divergence[1:]
    slope = (k_high - k_low) / (high - low)
    height = np.minimum(k_low - slope * low, 0.0)  # K is convex through the origin
    with np.errstate(divide="ignore", invalid="ignore"):
        top = (-height + np.sqrt(height**2 - height * slope)) / slope
        at = np.clip(np.nan_to_num(top), low, high)
        value = (height / at + slope) / (1 + at)
    value = np.where(at > 0, value, slope)
    return np.where(low == 0.0, divergence[1:], value)


@singledispatch
def ratio_beyond(curve: TradeOffCurve) -> Callable[[float], float]:
    """A function of a that bounds D_a' / a' for every a' >= a; families and composition register theirs.

    Examples
    --------
    >>> import privfit.accounting as pa
    >>> ratio_beyond(pa.laplace(3.0))(10.0)
    0.3
    """
    pair = {curve, curve.reversed()}
    top = max(c.max_loss for c in pair)
    if math.isfinite(top):
        return lambda a: top / a
    if min(loss_tail(c).order for c in pair) < math.inf and curve.gdp() == math.inf:
        return lambda a: math.inf
    far = max(float(c._epsilon(np.asarray(1e-280), "upper")) for c in pair)
    grid = far * np.append(0.0, np.geomspace(1e-3, 1.0, 60))
    mus = np.max([matching_mu(c, grid) for c in pair], axis=0)
    mus = np.maximum.accumulate(mus[::-1])[::-1]
    mus[0] = curve.gdp()
    return lambda a: _gaussian_beyond(a, grid, mus)


def _gaussian_beyond(a: float, grid: Floats, mus: Floats) -> float:
    whole = 0.5 * float(mus[0]) ** 2
    if a <= 1:
        return whole
    split = np.maximum(grid / a, 0.5 * mus**2) + math.log(2 * a + 1) / (a * (a - 1))
    return min(whole, float(split.min()))


@ratio_beyond.register
def _(curve: GaussianCurve) -> Callable[[float], float]:
    return lambda a: 0.5 * curve.mu**2


@ratio_beyond.register
def _(curve: ComposedCurve) -> Callable[[float], float]:
    """Divergences of products add."""
    parts = [(n, ratio_beyond(part)) for part, n in zip(curve.parts, curve.counts, strict=True)]
    return lambda a: sum(n * part(a) for n, part in parts)


@ratio_beyond.register
def _(curve: MixtureCurve) -> Callable[[float], float]:
    base, atoms = ratio_beyond(curve.base), ratio_beyond(curve.atoms)
    return lambda a: base(a) + atoms(a)


@ratio_beyond.register(SubsampledCurve)
@ratio_beyond.register(FixedSizeSubsampledCurve)
@ratio_beyond.register(SymmetrizedCurve)
def _(curve: SubsampledCurve | FixedSizeSubsampledCurve | SymmetrizedCurve) -> Callable[[float], float]:
    """Sampling lowers every divergence."""
    return ratio_beyond(curve.base)
