"""Generalised Laplace noise in the limit of high dimension: the scale W of the noise is seen.

Noise ``sqrt(W) N(0, I)`` with W ~ Gamma(k, rate k) and W known to the attacker is a mixture of Gaussian
curves with ``mu = c / sqrt(W)``; it lies below the exact curve of every finite dimension:

    alpha(t) = E Phi(-t sqrt(W)/c - c/(2 sqrt(W))),      delta(eps) = E delta_Gauss(eps; c/sqrt(W))

For k = 1 (the limit beta_c of Lu, Chen & Qiu) both have closed forms, derived in docs/mathematics.md: with
``h = t/c`` and ``s = sqrt(h^2 + 2)``

    alpha = (1 - h/s)/2 exp(-(c/2)(h + s)),     beta = (1 + h/s)/2 exp((c/2)(h - s))
    delta(eps) = 1 - exp((eps - sqrt(eps^2 + 2 c^2)) / 2),   c(eps, delta) = sqrt(a eps + a^2/2),  a = -2 log(1-delta)

Other shapes use Gauss-Legendre panels in log W: the integrand is positive, so nothing cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.base import Bound, Precision, TradeOffCurve, check_scale
from privfit.accounting.gaussian import gaussian_log_delta
from privfit.accounting.wrappers import zero_inflated

__all__ = [
    "ShapedLimitCurve",
    "SymmetricLaplaceLimitCurve",
    "limit_noise",
    "symmetric_laplace_limit",
    "zil_limit",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SymmetricLaplaceLimitCurve(TradeOffCurve):
    """The limit beta_c of symmetric Laplace noise, in closed form (see `symmetric_laplace_limit`)."""

    c: float
    precision = Precision(relative=1e-13, absolute=0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "c", check_scale("c", self.c, "c is sensitivity / lambda."))

    def _error_rates(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        return self._alpha(log_ratio), self._alpha(-log_ratio)

    def _alpha(self, t: Floats) -> Floats:
        h = np.clip(t / self.c, -1e150, 1e150)
        s = np.hypot(h, math.sqrt(2))
        above = np.maximum(h, 0.0)
        # 1 - h/s = 2/(s (s + h)) and h + s = 2/(s - h): no cancellation on either side
        share = np.where(h > 0, 1 / (s * (s + above)), 0.5 * (1 - np.minimum(h, 0.0) / s))
        total = np.where(h > 0, s + h, 2 / (s - np.minimum(h, 0.0)))
        return share * np.exp(-0.5 * self.c * total)

    def _log_one_minus_delta(self, epsilon: Floats) -> Floats:
        e = np.clip(epsilon, -1e150, 1e150)
        root = np.hypot(e, math.sqrt(2) * self.c)
        return np.where(
            e > 0, -self.c * (self.c / (np.maximum(e, 0.0) + root)), 0.5 * (np.minimum(e, 0.0) - root)
        )

    def _delta(self, epsilon: Floats) -> Floats:
        value: Floats = -np.expm1(self._log_one_minus_delta(epsilon))
        return np.where(np.isposinf(epsilon), 0.0, value)

    def _epsilon(self, delta: Floats, bound: Bound) -> Floats:
        a = -2 * np.log1p(-np.minimum(delta, 1 - 1e-16))
        with np.errstate(divide="ignore", over="ignore"):
            exact = np.where(delta > 0, self.c * (self.c / a) - a / 2, np.inf)
        move = {"upper": 1.0, "lower": -1.0, "estimate": 0.0}[bound] * 1e-14
        return np.maximum(0.0, np.where(np.isinf(exact), np.inf, exact + move * (np.abs(exact) + a)))

    def gdp(self) -> float:
        """No mu suffices: the tail of delta is polynomial."""
        return math.inf


@dataclass(frozen=True)
class ShapedLimitCurve(TradeOffCurve):
    """The limit of generalised Laplace noise of any shape, by quadrature (see `symmetric_laplace_limit`)."""

    c: float
    shape: float
    precision = Precision(relative=1e-10, absolute=0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "c", check_scale("c", self.c, "c is sensitivity / lambda."))
        object.__setattr__(self, "shape", check_scale("shape", self.shape))

    @cached_property
    def _range(self) -> tuple[float, float, float]:
        """Ends in log W beyond which the Gamma law has no mass, and the log of its normalising constant."""
        k = self.shape
        high = 1.0
        while k * (high - 1 - math.log(high)) < 45:
            high *= 1.05
        return -44.0 / k, math.log(high), k * math.log(k) - math.lgamma(k)

    def _mean(self, t: Floats, inner: Callable[[Floats, Floats], Floats]) -> Floats:
        """E[inner(t, W)], panels graded around W = c^2 / (2 |t|), where the Gaussian tests switch over."""
        low, high, constant = self._range
        k, flat = self.shape, np.atleast_1d(t).ravel()
        size = np.maximum(np.abs(flat), 1e-300)
        centre = np.clip(2 * math.log(self.c) - np.log(2 * size), low - 700.0, high)
        width = 1 / np.sqrt(1 + np.minimum(size, 1e12))
        steps = np.concatenate([[0.0], np.geomspace(0.5, 2.0 * 10**7, 52)])
        offsets = np.concatenate([-steps[:0:-1], steps])
        bottom = np.minimum(centre + low, low)
        edges = np.clip(centre[:, None] + width[:, None] * offsets, bottom[:, None], high)
        body = np.linspace(low, high, 33)
        edges = np.sort(np.hstack([edges, np.broadcast_to(body, (len(flat), body.size))]), axis=1)
        x, w = np.polynomial.legendre.leggauss(12)
        half = np.diff(edges, axis=1)[:, :, None] / 2
        u = (edges[:, :-1, None] + half * (1 + x)).reshape(len(flat), -1)
        weight = (half * w).reshape(len(flat), -1) * np.exp(constant + k * (u - np.exp(u)))
        return (weight * inner(flat[:, None], np.exp(u))).sum(axis=1).reshape(np.shape(t))

    def _error_rates(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        return self._alpha(log_ratio), self._alpha(-log_ratio)

    def _alpha(self, t: Floats) -> Floats:
        from scipy.special import ndtr

        def inner(threshold: Floats, w: Floats) -> Floats:
            root = np.sqrt(w)
            return ndtr(-threshold * root / self.c - self.c / (2 * root))

        finite = np.clip(t, -1e200, 1e200)
        return np.where(np.isinf(t), np.where(t > 0, 0.0, 1.0), self._mean(finite, inner))

    def _delta(self, epsilon: Floats) -> Floats:
        def inner(eps: Floats, w: Floats) -> Floats:
            return np.exp(gaussian_log_delta(eps, self.c / np.sqrt(w)))

        finite = np.clip(epsilon, -1e200, 1e200)
        value = self._mean(np.abs(finite), inner)
        negative = -np.expm1(np.minimum(finite, 0.0)) + np.exp(np.minimum(finite, 0.0)) * value
        return np.where(np.isposinf(epsilon), 0.0, np.where(epsilon < 0, negative, value))

    def gdp(self) -> float:
        """No mu suffices: the tail of delta is polynomial."""
        return math.inf


def symmetric_laplace_limit(c: float, shape: float = 1) -> TradeOffCurve:
    """Trade-off curve of generalised Laplace noise as the dimension grows.

    Parameters
    ----------
    c : float
        Sensitivity divided by the noise's standard deviation per coordinate, > 0.
    shape : float
        Shape k of the mixing Gamma law, > 0; 1 is symmetric Laplace and has a closed form.

    Returns
    -------
    TradeOffCurve

    Raises
    ------
    ValueError, TypeError
        If a parameter is not a positive finite number.

    Examples
    --------
    >>> round(symmetric_laplace_limit(0.5).delta(1.0), 9)
    0.106423977
    """
    k = check_scale("shape", shape)
    return SymmetricLaplaceLimitCurve(c) if k == 1 else ShapedLimitCurve(c, k)


def zil_limit(c: float, delta0: float) -> TradeOffCurve:
    """Limit beta_{c,delta0} of zero-inflated symmetric Laplace noise (Lu, Chen & Qiu).

    Parameters
    ----------
    c : float
        Sensitivity divided by the noise's standard deviation per coordinate, > 0.
    delta0 : float
        Probability of no noise, in [0, 1).

    Returns
    -------
    TradeOffCurve

    Examples
    --------
    >>> round(zil_limit(0.50253, 0.05).delta(0.8), 4)
    0.17
    """
    return zero_inflated(symmetric_laplace_limit(c), delta0)


def limit_noise(epsilon: float, delta: float) -> float:
    """Largest c whose limit curve is (epsilon, delta)-DP, in closed form (no solver).

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        c = sensitivity / lambda.

    Examples
    --------
    >>> round(limit_noise(0.8, (0.17 - 0.05) / 0.95), 5)
    0.50253
    """
    from privfit.accounting.validation import check_number

    eps = check_number("epsilon", epsilon, 0.0)
    a = -2 * math.log1p(-check_number("delta", delta, 0.0, 1.0, low_open=True, high_open=True))
    return math.sqrt(a * eps + a * a / 2)
