"""Renyi divergences of a curve: the RDP and zCDP guarantees it implies.

With L the privacy loss, ``D_a = log E_Q[e^((a-1) L)] / (a - 1)``. Two integrations by parts write the moment in
the profiles of the pair and of the reversed pair, with positive terms only, so nothing cancels when D is tiny:

    D_a = log(1 + (a - 1) J) / (a - 1),   J = a int_0^inf e^((a-1) t) delta(t) + e^(-a t) delta_rev(t) dt

and ``D_1 = J`` is the Kullback-Leibler divergence. delta is convex in e^t, so chords between computed values lie
above it and the neighbouring chords, prolonged, below: both integrals are known with a certificate, and the grid
is refined until they agree. The tail beyond the last point has a bound of its own (see tails.py).
(Mironov 2017; Bun & Steinke 2016; for f-divergences through profiles Sason & Verdu 2016, proposition 3.)
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.accounting.base import TradeOffCurve, check_curve
from privfit.accounting.composed import ComposedCurve
from privfit.accounting.discrete import DiscreteCurve
from privfit.accounting.gaussian import GaussianCurve
from privfit.accounting.laplace import LaplaceCurve
from privfit.accounting.limit import ShapedLimitCurve, SymmetricLaplaceLimitCurve
from privfit.accounting.limit_composition import LimitCompositionCurve
from privfit.accounting.mixture import MixtureCurve
from privfit.accounting.symmetrized import SymmetrizedCurve
from privfit.accounting.tails import Tail, loss_tail
from privfit.accounting.validation import check_array

__all__ = ["generator", "rdp", "rdp_family", "second_remainder"]

Floats = NDArray[np.float64]
ACCURACY = 1e-6  # relative width of D at which refinement of the grid stops
POINTS = 30_000
GAUSS_X, GAUSS_W = np.polynomial.legendre.leggauss(8)
ROUNDING = 1e-12
HUGE = 1e200  # orders beyond it would overflow in products; the largest loss serves them
BLOCK = 4  # orders that share a grid


def rdp(curve: TradeOffCurve, order: ArrayLike) -> Any:
    """Renyi divergence of the given orders: the RDP guarantee of a curve, from above.

    Parameters
    ----------
    curve : TradeOffCurve
    order : float or array
        Order a >= 1; 1 is the Kullback-Leibler divergence, ``inf`` the largest privacy loss.

    Returns
    -------
    float or array
        The larger of the divergences of the pair and of the reversed pair, in nats, an upper bound with
        relative excess below 1e-6 (exact to rounding for Gaussian, Laplace and discrete curves); ``inf``
        where the divergence is infinite, and for a curve with unbounded loss whose tail cannot be bounded.

    Raises
    ------
    ValueError, TypeError
        If an order is below 1 or nan, or `curve` is not a curve.

    Examples
    --------
    >>> import privfit.accounting as pa
    >>> rdp(pa.gaussian(0.5), [2.0, 8.0]).tolist()
    [0.25, 1.0]
    >>> rdp(pa.symmetric_laplace(6, 0.1), 1.5)  # infinite from order d / (d - 2) on
    inf
    """
    check_curve(curve)
    orders = check_array("order", order, 1.0, hint="Renyi orders start at 1, the Kullback-Leibler divergence.")
    flat = orders.ravel()
    result = np.full(flat.shape, np.inf)
    turned = curve.reversed()
    if max(curve.infinite_mass, turned.infinite_mass) == 0.0:
        top = np.isposinf(flat)
        result[top] = max(curve.max_loss, turned.max_loss)
        with np.errstate(over="ignore"):  # order times divergence may pass the largest float
            result[~top] = rdp_family(curve, flat[~top])
    return float(result[0]) if np.ndim(order) == 0 else result.reshape(orders.shape)


@singledispatch
def rdp_family(curve: TradeOffCurve, order: Floats) -> Floats:
    """Divergences for a flat array of finite orders >= 1 of a curve without infinite mass; families register.

    Examples
    --------
    >>> import privfit.accounting as pa
    >>> rdp_family(pa.gaussian(1.0), np.array([3.0])).tolist()
    [1.5]
    """
    curve = curve._on("lower")
    turned = curve.reversed()
    result = np.where(order > HUGE, max(curve.max_loss, turned.max_loss), 0.0)
    for first, second in ((curve, turned),) if turned is curve else ((curve, turned), (turned, curve)):
        tail = loss_tail(first)
        result = np.where(order < tail.order, result, np.inf)
        served = np.flatnonzero(np.isfinite(result) & (order <= HUGE))
        for i in range(0, served.size, BLOCK):
            block = served[i : i + BLOCK]
            log_j = _log_j(first, second, order[block], tail)
            result[block] = np.maximum(result[block], _from_log_j(log_j, order[block] - 1))
    return result


def _from_log_j(log_j: Floats, b: Floats) -> Floats:
    """log(1 + b J) / b, for any size of J and for b = 0."""
    safe = np.where(b > 0, b, 1.0)
    with np.errstate(divide="ignore", over="ignore"):
        big = log_j + np.log(b)
        plain = np.where(b > 0, np.log1p(np.exp(np.minimum(big, 700.0))) / safe, np.exp(log_j))
    return np.where(big > 36.0, big / safe, plain) * (1 + ROUNDING)


def _damping(log_j: Floats, b: Floats) -> Floats:
    """Relative change of log(1 + b J) per relative change of J."""
    with np.errstate(divide="ignore"):
        big = np.clip(log_j + np.log(b), -30.0, None)
    odds = np.exp(np.minimum(big, 40.0))
    return odds / (1 + odds) / np.where(big > 36.0, big, np.log1p(odds))


def _log_j(curve: TradeOffCurve, turned: TradeOffCurve, order: Floats, tail: Tail) -> Floats:
    """Log of J for a flat array of orders, from above (the module's formula)."""
    back_end = turned.max_loss if math.isfinite(turned.max_loss) else 60.0
    top = max(tail.start, min(back_end, 60.0), 1e-300)
    t = np.concatenate([np.geomspace(1e-6, 1, 150), np.linspace(0, 1, 150), 1 - np.geomspace(1e-12, 0.1, 40)])
    t = np.unique(top * t)
    while True:
        upper, lower = _cells(curve, t, order - 1.0)
        back_upper, back_lower = _cells(turned, t, -order)
        upper, lower = np.logaddexp(upper, back_upper), np.logaddexp(lower, back_lower)
        total = np.logaddexp.reduce(upper, axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            width = np.exp(upper - total) * -np.expm1(np.minimum(lower - upper, 0.0))
        width = np.nan_to_num(width, nan=0.0)
        # relative error of D: that of J, less what the logarithm takes away
        width *= _damping(total + np.log(order)[:, None], order[:, None] - 1)
        rough = width.sum(axis=1) > ACCURACY
        middle = 0.5 * (t[:-1] + t[1:])
        fresh = np.setdiff1d(middle[(width[rough] > 0.3 * ACCURACY / t.size).any(axis=0)], t)
        if t.size > POINTS or not fresh.size:
            break
        t = np.union1d(t, fresh)
    # beyond the grid the reversed profile is at most its last value, weighed by e^(-a t)
    with np.errstate(divide="ignore"):
        back = -order * t[-1] + _log_upper(turned, t[-1:])[0] - np.log(order)
    rest = np.logaddexp(tail.log_integral(order - 1.0, float(t[-1])), back)
    return np.logaddexp(total[:, 0], rest) + np.log(order)


def _log_upper(curve: TradeOffCurve, t: Floats) -> Floats:
    value = curve._log_shift(curve._log_delta(t), "upper")
    return np.where(t >= curve.max_loss, -np.inf, np.minimum(value, 0.0))


def _cells(curve: TradeOffCurve, t: Floats, rate: Floats) -> tuple[Floats, Floats]:
    """Logs of upper and lower bounds of int e^(rate t) delta(t) dt, per rate (rows) and cell (columns)."""
    log_delta = _log_upper(curve, t)
    low, high, h = log_delta[:-1], log_delta[1:], np.diff(t)
    s = h[:, None] * 0.5 * (1 + GAUSS_X)
    share = np.exp(s - h[:, None]) * np.expm1(-s) / np.expm1(-h)[:, None]
    wide = (np.abs(rate)[:, None] + 1) * h > 4.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        drop = np.where(np.isneginf(low), 0.0, np.exp(high - low))[:, None]
        chord = (1 - share) + share * drop
        # slopes of the neighbouring chords in e^t, times e^t at the common point and relative to delta there
        before = np.append(np.inf, np.expm1(-np.diff(log_delta)[:-1]) / -np.expm1(-h[:-1]))
        after = np.append(np.where(drop[1:, 0] < 1, (1 - drop[1:, 0]) / np.expm1(np.minimum(h[1:], 700.0)), 0.0), 0.0)
        left = 1 - np.expm1(np.minimum(s, 700.0)) * before[:, None]
        right = drop * (1 - np.expm1(s - h[:, None]) * after[:, None])
        floor = np.clip(np.nan_to_num(np.maximum(left, right), nan=0.0, posinf=0.0, neginf=0.0), 0.0, chord)
        weight = np.exp(np.where(wide[..., None], 0.0, rate[:, None, None] * s)) * (GAUSS_W / 2 * h[:, None])
        start = rate[:, None] * t[:-1] + low
        upper = start + np.log((weight * chord).sum(axis=2))
        lower = start + np.log((weight * floor).sum(axis=2))
        # cells too wide for the quadrature are bounded by their left value until they are split
        x = rate[:, None] * h
        growth = np.maximum(x, 0.0) + np.log(-np.expm1(-np.abs(x))) - np.log(np.abs(x))
        crude = start + np.log(h) + np.where(x == 0, 0.0, growth)
    return np.where(wide, crude, upper), np.where(wide, -np.inf, lower)


@rdp_family.register
def _(curve: GaussianCurve, order: Floats) -> Floats:
    return order * (0.5 * curve.mu**2)


@rdp_family.register
def _(curve: LaplaceCurve, order: Floats) -> Floats:
    """Mironov 2017, table II, without its cancellation: J = a eps^2 ((a-1) g((a-1) eps) + a g(-a eps)) / (2a-1)."""
    a, b, eps = order, order - 1, curve.a
    large, share = b * eps > 30, 1 / (2 - 1 / a)  # a / (2a - 1), for orders up to the largest float
    c, d = np.where(large, 0.0, b), np.where(large, 0.0, a)
    j = share * eps**2 * (c * second_remainder(c * eps) + d * second_remainder(-d * eps))
    with np.errstate(divide="ignore"):
        plain = _from_log_j(np.log(j), c)
        exact = eps + np.log(share) / np.where(large, b, 1.0)
    return np.where(large, exact * (1 + ROUNDING), plain)


@rdp_family.register
def _(curve: DiscreteCurve, order: Floats) -> Floats:
    return np.maximum(_of_atoms(curve, order), _of_atoms(curve.reversed(), order))


def _of_atoms(curve: DiscreteCurve, order: Floats) -> Floats:
    """J is the mean under P of phi(l) = (e^(al) - 1 - a (e^l - 1)) / (a - 1) >= 0, written without cancellation."""
    loss, p, q = (np.asarray(v) for v in (curve.loss, curve.p, curve.q))
    never, finite = float(p[np.isneginf(loss)].sum()), np.isfinite(loss)
    loss, p, q = loss[finite], p[finite], q[finite]
    b = (order - 1)[:, None]
    j = never + p @ generator(np.minimum(b, 30.0 / max(float(loss.max(initial=0.0)), 1e-300)), loss).T
    with np.errstate(divide="ignore"):
        plain = _from_log_j(np.log(j), order - 1)
        top = loss.max(initial=-np.inf) if loss.size else 0.0
        x = b * (loss - top) + np.log(q)
        big = top + np.logaddexp.reduce(x, axis=1) / np.where(order > 1, order - 1, 1.0)
    return np.where((order - 1) * loss.max(initial=0.0) > 30.0, big * (1 + ROUNDING), plain)


def generator(b: Floats, loss: Floats) -> Floats:
    """phi(l) = (e^((b+1) l) - 1 - (b+1) (e^l - 1)) / b for every l, also for b = 0 and for tiny l.

    Examples
    --------
    >>> float(generator(np.array(1.0), np.array(0.5))) == (math.exp(0.5) - 1) ** 2
    True
    """
    from scipy.special import exprel

    # exprel(x) - 1 = x g(x): phi = l^2 (exprel(l) - g(l) + e^l b g(b l)), with exprel - g > 0
    return loss**2 * (exprel(loss) - second_remainder(loss) + np.exp(loss) * b * second_remainder(b * loss))


def second_remainder(x: Floats) -> Floats:
    """g(x) = (e^x - 1 - x) / x^2 > 0.

    Examples
    --------
    >>> round(float(second_remainder(np.array(1.0))), 12) == round(math.e - 2, 12)
    True
    """
    small = np.abs(x) < 1.0
    y = np.where(small, x, 0.0)
    series = np.zeros_like(y)
    for n in range(19, 1, -1):
        series = series * y + 1 / math.factorial(n)
    safe = np.where(small, 1.0, x)
    return np.where(small, series, (np.expm1(safe) - safe) / safe**2)


@rdp_family.register
def _(curve: SymmetricLaplaceLimitCurve, order: Floats) -> Floats:
    """E c^2 / (2 W) with W exponential is infinite already for order 1."""
    return np.full(order.shape, np.inf)


@rdp_family.register
def _(curve: ShapedLimitCurve, order: Floats) -> Floats:
    """E exp(a (a - 1) c^2 / (2 W)) is infinite for a > 1; E c^2 / (2 W) = c^2 k / (2 (k - 1)) for order 1."""
    k = curve.shape
    divergence = 0.5 * curve.c**2 * k / (k - 1) if k > 1 else math.inf
    return np.where(order > 1, np.inf, divergence * (1 + ROUNDING))


@rdp_family.register
def _(curve: SymmetrizedCurve, order: Floats) -> Floats:
    """Both directions of the pair, which `rdp_family` looks at in any case."""
    return rdp_family(curve.base, order)


@rdp_family.register
def _(curve: ComposedCurve, order: Floats) -> Floats:
    """Divergences of products add."""
    return np.sum([n * rdp_family(part, order) for part, n in zip(curve.parts, curve.counts, strict=True)], axis=0)


@rdp_family.register
def _(curve: MixtureCurve, order: Floats) -> Floats:
    return rdp_family(curve.base, order) + rdp_family(curve.atoms, order)


@rdp_family.register
def _(curve: LimitCompositionCurve, order: Floats) -> Floats:
    parts = [n * rdp_family(limit, order) for limit, n in zip(curve.limits, curve.counts, strict=True)]
    return np.sum(parts, axis=0) + order * (0.5 * curve.mu**2)
