"""Generalised Laplace noise in the limit of high dimension: the scale W of the noise is seen.

Noise ``sqrt(W) N(0, I)`` with W ~ Gamma(k, rate k) and W known to the attacker is a mixture of Gaussian
curves with ``mu = c / sqrt(W)``; it lies below the exact curve of every finite dimension:

    alpha(t) = E Phi(-t sqrt(W)/c - c/(2 sqrt(W))),      delta(eps) = E delta_Gauss(eps; c/sqrt(W))

For k = 1 (the limit beta_c of Lu, Chen & Qiu) both have closed forms, derived in docs/mathematics.md: with
``h = t/c`` and ``s = sqrt(h^2 + 2)``

    alpha = (1 - h/s)/2 exp(-(c/2)(h + s)),     beta = (1 + h/s)/2 exp((c/2)(h - s))
    delta(eps) = 1 - exp((eps - sqrt(eps^2 + 2 c^2)) / 2),   c(eps, delta) = sqrt(a eps + a^2/2),  a = -2 log(1-delta)

For other integer shapes alpha is a finite sum of half-integer Bessel functions, which cancels in the tail; there, and
for delta, the mixture itself is integrated: its terms are positive, so every digit of a small probability is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.base import SIGN, Bound, Precision, TradeOffCurve, check_scale
from privfit.accounting.gaussian import gaussian_log_delta
from privfit.accounting.validation import check_integer, check_number
from privfit.accounting.wrappers import zero_inflated

__all__ = [
    "ShapedLimitCurve",
    "SymmetricLaplaceLimitCurve",
    "limit_noise",
    "symmetric_laplace_limit",
    "zil_limit",
]

Floats = NDArray[np.float64]
FEW_TERMS = 20  # longer sums of Bessel functions cost more than the integral
LARGEST = 1e153  # |t| beyond it is taken as infinite


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
        with np.errstate(over="ignore"):
            h = np.clip(t / self.c, -1e150, 1e150)
        s = np.hypot(h, math.sqrt(2))
        above = np.maximum(h, 0.0)
        # 1 - h/s = 2/(s (s + h)) and h + s = 2/(s - h): no cancellation on either side
        share = np.where(h > 0, 1 / (s * (s + above)), 0.5 * (1 - np.minimum(h, 0.0) / s))
        total = np.where(h > 0, s + h, 2 / (s - np.minimum(h, 0.0)))
        return share * np.exp(-0.5 * self.c * total)

    def _log_one_minus_delta(self, epsilon: Floats) -> Floats:
        e = np.clip(epsilon, -1e307, 1e307)
        root = np.hypot(e, math.sqrt(2) * self.c)
        return np.where(e > 0, -self.c * (self.c / (np.maximum(e, 0.0) + root)), 0.5 * (np.minimum(e, 0.0) - root))

    def _delta(self, epsilon: Floats) -> Floats:
        value: Floats = -np.expm1(self._log_one_minus_delta(epsilon))
        return np.where(np.isposinf(epsilon), 0.0, value)

    def _epsilon(self, delta: Floats, bound: Bound) -> Floats:
        a = -2 * np.log1p(-np.minimum(delta, 1 - 1e-16))
        with np.errstate(divide="ignore", over="ignore"):
            exact = np.where(delta > 0, self.c * (self.c / a) - a / 2, np.inf)
        move = SIGN[bound] * 1e-14
        return np.maximum(0.0, np.where(np.isinf(exact), np.inf, exact + move * (np.abs(exact) + a)))

    def gdp(self) -> float:
        """No mu suffices: the tail of delta is polynomial."""
        return math.inf


@dataclass(frozen=True)
class ShapedLimitCurve(TradeOffCurve):
    """The limit of generalised Laplace noise of integer shape (see `symmetric_laplace_limit`)."""

    c: float
    shape: int
    precision = Precision(relative=1e-9, absolute=0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "c", check_scale("c", self.c, "c is sensitivity / lambda."))
        object.__setattr__(self, "shape", check_integer("shape", self.shape, 1, 500))

    def _error_rates(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        return self._alpha(log_ratio), self._alpha(-log_ratio)

    def _alpha(self, t: Floats) -> Floats:
        finite = np.clip(t, -LARGEST, LARGEST)
        value = self._closed_alpha(finite) if self.shape <= FEW_TERMS else np.zeros(t.shape)
        rest = value < 1e-3
        if rest.any():
            value[rest] = np.exp(self._mixture(_log_gaussian_alpha, finite[rest]))
        return np.where(np.isposinf(t), 0.0, np.where(np.isneginf(t), 1.0, np.minimum(value, 1.0)))

    def _closed_alpha(self, t: Floats) -> Floats:
        """Integration by parts over W leaves half-integer Bessel functions, which are elementary."""
        from scipy.special import kve

        k, c = self.shape, self.c
        h = np.clip(t / c, -1e7, 1e7)
        s = np.sqrt(h * h + 2 * k)
        z, ratio = 0.5 * c * s, 0.5 * c / s  # 2 sqrt(AB) and sqrt(B/A) with A = k + h^2/2, B = c^2/8
        total, weight = np.zeros_like(h), 1.0
        for j in range(k):
            lower, upper = ratio ** (j - 0.5) * kve(j - 0.5, z), ratio ** (j + 0.5) * kve(j + 0.5, z)
            total += weight * (0.5 * c * lower - h * upper)
            weight *= k / (j + 1)
        value = total * np.exp(-0.5 * c * (h + s)) / math.sqrt(2 * math.pi)
        return np.where(np.abs(t) > 1e7 * c, 0.0, np.nan_to_num(value, nan=0.0))

    def _log_delta(self, epsilon: Floats) -> Floats:
        value = np.minimum(self._mixture(gaussian_log_delta, np.clip(epsilon, -LARGEST, LARGEST)), 0.0)
        return np.where(np.isposinf(epsilon), -np.inf, np.where(np.isneginf(epsilon), 0.0, value))

    def _delta(self, epsilon: Floats) -> Floats:
        return np.exp(self._log_delta(epsilon))

    def _mixture(self, log_value: Callable[[Floats, Floats], Floats], t: Floats) -> Floats:
        """Log E exp(log_value(t, c / sqrt(W))), integrated over log W."""
        from privfit.accounting.quadrature import integrate, narrow

        k, c, flat = self.shape, self.c, t.reshape(-1)
        constant = k * math.log(k) - math.lgamma(k)

        def log_integrand(x: Floats) -> Floats:
            spread = np.broadcast_to(flat[:, None], x.shape)
            with np.errstate(over="ignore", divide="ignore"):
                return constant + k * (x - np.exp(x)) + log_value(spread, c * np.exp(-x / 2))

        # at W = c^2 / (2 t), that is mu = sqrt(2 t), the Gaussian probability steps from 0 to 1 (or a tail turns):
        # the step is 2/mu wide in x. The integral is split on both sides of it and of the bulk of W
        positive = np.maximum(np.abs(flat), 1e-300)
        step = np.log(c * (c / (2 * positive)))
        width = np.minimum(16.0 / np.sqrt(2 * positive), 4.0)
        low = np.minimum(step, 0.0) - 70.0 / k - 2.0
        high = np.full(flat.shape, math.log1p(math.sqrt(140.0 / k) + 80.0 / k))
        inner = [step - width, step + width, np.full(flat.shape, -6.0 / math.sqrt(k)), np.zeros_like(flat)]
        edges = np.sort([low, high, *(np.clip(x, low, high) for x in inner)], axis=0)
        total = np.full(flat.shape, -np.inf)
        for near, far in pairwise(edges):
            for _ in range(2):
                near, far, _ = narrow(log_integrand, near, far)
            total = np.logaddexp(total, integrate(log_integrand, near, far, 96))
        return total.reshape(t.shape)

    def gdp(self) -> float:
        """No mu suffices: the tail of delta is polynomial."""
        return math.inf


def _log_gaussian_alpha(t: Floats, mu: Floats) -> Floats:
    from scipy.special import log_ndtr

    return log_ndtr(-t / mu - mu / 2)


def symmetric_laplace_limit(c: float, shape: int = 1) -> TradeOffCurve:
    """Trade-off curve of generalised Laplace noise as the dimension grows.

    Parameters
    ----------
    c : float
        Sensitivity divided by the noise's standard deviation per coordinate, > 0.
    shape : int
        Shape k of the mixing Gamma law, 1 to 500; 1 is symmetric Laplace.

    Returns
    -------
    TradeOffCurve

    Raises
    ------
    ValueError, TypeError
        If c is not a positive finite number or shape not an integer in its range.

    Examples
    --------
    >>> round(symmetric_laplace_limit(0.5).delta(1.0), 9)
    0.106288654
    """
    k = check_integer("shape", shape, 1, 500)
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
    >>> round(zil_limit(0.50252, 0.05).delta(0.8), 4)
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
    0.50252
    """
    eps = check_number("epsilon", epsilon, 0.0)
    a = -2 * math.log1p(-check_number("delta", delta, 0.0, 1.0, low_open=True, high_open=True))
    return math.sqrt(a * eps + a * a / 2)
