"""Trade-off curves that RDP and zCDP guarantees imply, by the exact region of binary outcomes.

A test turns a pair (P, Q) into a pair of coins with ``p = P(A)``, ``q = Q(A)``, and no Renyi divergence grows.
Conversely every pair of coins is itself a mechanism. So what ``D_a <= tau_a`` (both directions, all given orders)
says about tests is exactly the convex region of coins that satisfy it, and its border is the implied curve. In
the ratio ``x = e^l = q / p > 1`` and ``w = 1 - y``, y = (1 - q) / (1 - p), of a coin (coins.py) the border is
``w(l) = min over orders of w_a(l)``, with ``p = w / (x - 1 + w)``. Its slope in the (p, q) plane is

    e^t = x exprel(-a d) / exprel(-(a-1) d),   d = log(x / y),         delta = q - e^t p

The other direction is the region's mirror image; both meet on the diagonal p = 1 - q, so l starts there.
(One direction and order: Asoodeh et al. 2020; both and several: Zhu, Dong & Wang 2022. Never worse than
Canonne, Kamath & Steinke 2020, which is a relaxation of the region of one order.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.accounting.base import SIGN, Bound, Precision, TradeOffCurve, check_scale
from privfit.accounting.coins import diagonal_loss, log_exprel, log_moment, solve_width
from privfit.accounting.roots import bisect_decreasing
from privfit.accounting.validation import check_array

__all__ = ["RdpCurve", "RenyiRegionCurve", "ZcdpCurve", "from_rdp", "from_zcdp"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RenyiRegionCurve(TradeOffCurve):
    """Curve of a region of coins; a family states the active order at every log ratio."""

    precision = Precision(relative=1e-10, absolute=0.0)

    def _order_at(self, loss: Floats) -> tuple[Floats, Floats]:
        """The b = a - 1 and log J of the order whose border is the nearest."""
        raise NotImplementedError

    @property
    def _start(self) -> float:
        """Log ratio on the diagonal."""
        raise NotImplementedError

    def _border(self, loss: Floats) -> tuple[Floats, Floats, Floats]:
        """Log p, log(1 - q) and the slope's logarithm t of the border at log ratios >= the start."""
        b, log_j = self._order_at(loss)
        log_w = np.minimum(solve_width(b, log_j, loss), -1e-16)
        log_x1 = loss + np.log(-np.expm1(-loss))
        total = np.logaddexp(log_x1, log_w)
        v = np.log(-np.expm1(log_w))
        d = loss - v
        return log_w - total, v + log_x1 - total, loss + log_exprel(-(b + 1) * d) - log_exprel(-b * d)

    def _touching(self, t: Floats) -> Floats:
        """Log ratio of the point where the line of slope e^t touches the border."""
        return bisect_decreasing(lambda loss, at: at - self._border(loss)[2], np.minimum(t, 1e7), lower=self._start)[1]

    def _error_rates(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        log_p, log_miss, _ = self._border(self._touching(np.abs(log_ratio)))
        sure = np.isinf(log_ratio)
        p, miss = np.where(sure, 0.0, np.exp(log_p)), np.where(sure, 1.0, np.exp(log_miss))
        return np.where(log_ratio < 0, miss, p), np.where(log_ratio < 0, p, miss)

    def _log_delta(self, epsilon: Floats) -> Floats:
        e = np.abs(epsilon)
        loss = self._touching(e)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = self._border(loss)[0] + loss + np.log(-np.expm1(np.minimum(e - loss, -1e-300)))
            value = np.where(np.isinf(e), -np.inf, value)
            mirrored = np.log1p(-np.exp(-e) * -np.expm1(value))
        return np.where(epsilon < 0, mirrored, value)

    def _delta(self, epsilon: Floats) -> Floats:
        return np.exp(self._log_delta(epsilon))

    def _epsilon(self, delta: Floats, bound: Bound) -> Floats:
        """At a border point eps = log((q - delta) / p): exact in corners, of second order elsewhere."""
        goal = delta * (1 - SIGN[bound] * self.precision.relative)
        result = np.full(delta.shape, np.inf)
        positive = goal > 0

        def excess(loss: Floats, target: Floats) -> Floats:
            log_p, _, t = self._border(loss)
            return log_p + loss + np.log(-np.expm1(np.minimum(t - loss, -1e-300))) - target

        loss = bisect_decreasing(excess, np.log(goal[positive]), lower=self._start)[1]
        log_q = self._border(loss)[0] + loss
        with np.errstate(divide="ignore"):
            share = np.log1p(-np.minimum(goal[positive] * np.exp(-log_q), 1.0))
        result[positive] = np.maximum(loss + share, 0.0)
        return result

    def _curve(self, alpha: Floats) -> Floats:
        result = np.where(alpha == 0.0, 1.0, 0.0)
        turn = float(np.exp(self._border(np.asarray(self._start))[0]))
        low, high = (alpha > 0) & (alpha <= turn), (alpha > turn) & (alpha < 1)
        loss = bisect_decreasing(lambda x, at: self._border(x)[0] - at, np.log(alpha[low]), lower=self._start)[1]
        result[low] = np.exp(self._border(loss)[1])
        # beyond the diagonal the curve is its own mirror image: 1 - alpha is the q of a border point
        goal = np.log1p(-alpha[high])
        loss = bisect_decreasing(lambda x, at: self._border(x)[0] + x - at, goal, lower=self._start)[1]
        result[high] = np.exp(self._border(loss)[0])
        return result


@dataclass(frozen=True)
class RdpCurve(RenyiRegionCurve):
    """Curve implied by Renyi divergences of finitely many orders (see `from_rdp`)."""

    orders: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        orders = np.atleast_1d(check_array("orders", self.orders, 1.0, hint="Orders start at 1."))
        values = np.atleast_1d(check_array("values", self.values, 0.0, hint="Renyi divergences are positive."))
        if orders.ndim != 1 or orders.shape != values.shape or not orders.size:
            raise ValueError(
                f"orders and values must be sequences of the same positive length, got {orders.size} and "
                f"{values.size}; pass one divergence for every order."
            )
        if not (np.isfinite(orders).all() and np.isfinite(values).all() and (values > 0).all()):
            raise ValueError("orders must be finite and values > 0 and finite; leave out orders without a guarantee.")
        keep = np.lexsort((values, orders))
        keep = keep[np.append(True, np.diff(orders[keep]) > 0)]
        object.__setattr__(self, "orders", tuple(orders[keep].tolist()))
        object.__setattr__(self, "values", tuple(values[keep].tolist()))

    @cached_property
    def _parameters(self) -> tuple[Floats, Floats]:
        b = np.asarray(self.orders) - 1
        return b, log_moment(b, np.asarray(self.values))

    @cached_property
    def _start(self) -> float:
        return float(diagonal_loss(*self._parameters).min())

    @cached_property
    def _segments(self) -> tuple[Floats, NDArray[np.intp]]:
        """Log ratios at which the active order changes, and the orders between them."""
        b, log_j = self._parameters
        cross = np.diff(log_j) / np.diff(b) if b.size > 1 else np.zeros(1)
        span = 2 * max(float(np.max(cross, initial=0.0)), self._start) + 5.0
        loss = self._start + np.append(0.0, np.geomspace(1e-6 * span, span, 1200))
        nearest = np.argmin(solve_width(b, log_j, loss[:, None]), axis=1)
        change = np.flatnonzero(np.diff(nearest))
        first, second = nearest[change], nearest[change + 1]

        def order_gap(share: Floats, index: Floats) -> Floats:
            i = index.astype(int)
            at = loss[change[i]] + share * (loss[change[i] + 1] - loss[change[i]])
            n, m = first[i], second[i]
            return solve_width(b[m], log_j[m], at) - solve_width(b[n], log_j[n], at)

        share = bisect_decreasing(order_gap, np.arange(change.size, dtype=float), lower=0.0, upper=1.0)[0]
        return loss[change] + share * np.diff(loss)[change], np.append(nearest[:1], second)

    def _order_at(self, loss: Floats) -> tuple[Floats, Floats]:
        b, log_j = self._parameters
        corners, orders = self._segments
        active = orders[np.searchsorted(corners, loss)]
        return b[active], log_j[active]


@dataclass(frozen=True)
class ZcdpCurve(RenyiRegionCurve):
    """Curve implied by zero-concentrated differential privacy (see `from_zcdp`)."""

    rho: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", check_scale("rho", self.rho, "The Gaussian mechanism has mu^2 / 2."))

    @cached_property
    def _start(self) -> float:
        # for a coin on the diagonal D_a / a is largest at order 1
        return float(diagonal_loss(np.zeros(1), np.log([self.rho]))[0])

    def _log_j(self, b: Floats) -> Floats:
        return log_moment(b, (b + 1) * self.rho)

    def _largest(self, loss: Floats) -> Floats:
        """The nearest border solves mean loss = (2a - 1) rho under the tilted coin: so 2 b + 1 <= loss / rho."""
        return np.maximum(0.5 * (loss / self.rho - 1), 0.0)

    @cached_property
    def _shares(self) -> Any:
        """Spline of b / largest b in log(loss - start); any value gives a valid curve, the best one the highest."""
        from scipy.interpolate import CubicSpline

        scale = math.sqrt(self.rho) + self.rho
        beyond = np.geomspace(1e-5 * min(self._start, 1.0), 2e3 * scale + self._start, 260)
        loss = self._start + beyond
        low, high = np.zeros(loss.shape), np.ones(loss.shape)
        for _ in range(6):
            share = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, 17)
            b = share * self._largest(loss)[:, None]
            best = np.argmin(solve_width(b, self._log_j(b), loss[:, None]), axis=1)
            rows = np.arange(loss.size)
            low, high = share[rows, np.maximum(best - 1, 0)], share[rows, np.minimum(best + 1, 16)]
        return beyond[[0, -1]], CubicSpline(np.log(beyond), 0.5 * (low + high))

    def _order_at(self, loss: Floats) -> tuple[Floats, Floats]:
        (first, last), spline = self._shares
        beyond = np.maximum(loss - self._start, 0.0)
        # order 1 exactly on the diagonal, where both directions meet
        share = spline(np.log(np.clip(beyond, first, last))) * np.minimum(beyond / first, 1.0)
        b = np.clip(share, 0.0, 1.0) * self._largest(loss)
        return b, self._log_j(b)


def from_rdp(orders: ArrayLike, values: ArrayLike) -> RdpCurve:
    """The largest trade-off curve that Renyi guarantees of several orders imply, for all tests at once.

    Parameters
    ----------
    orders : array of shape (n,)
        Finite orders >= 1; order 1 is the Kullback-Leibler divergence.
    values : array of shape (n,)
        Divergences in nats, > 0, valid for the pair and for the reversed pair.

    Returns
    -------
    RdpCurve
        Its epsilon is never above that of Canonne, Kamath & Steinke (2020) or Asoodeh et al. (2020).

    Raises
    ------
    ValueError, TypeError
        If the arrays differ in length or leave their range.

    Examples
    --------
    >>> orders = np.array([1.5, 2.0, 4.0, 8.0, 16.0, 32.0])
    >>> round(from_rdp(orders, orders / 2).epsilon(1e-5), 4)  # of a Gaussian mechanism with mu = 1: 4.3772
    5.087
    """
    return RdpCurve(
        tuple(np.atleast_1d(check_array("orders", orders)).ravel().tolist()),
        tuple(np.atleast_1d(check_array("values", values)).ravel().tolist()),
    )


def from_zcdp(rho: float) -> ZcdpCurve:
    """The largest trade-off curve that rho-zCDP implies (``D_a <= rho a`` for every order a > 1).

    Parameters
    ----------
    rho : float
        > 0; the Gaussian mechanism has ``mu^2 / 2``.

    Returns
    -------
    ZcdpCurve

    Raises
    ------
    ValueError, TypeError
        If rho is not a positive finite number.

    Examples
    --------
    >>> import privfit.accounting as pa
    >>> pa.gaussian(1.0).epsilon(1e-5) < from_zcdp(0.5).epsilon(1e-5) < 4.8
    True
    """
    return ZcdpCurve(rho)
