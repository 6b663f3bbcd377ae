"""Generalised Gaussian (exponential power) noise in one dimension: density p exp(-|x|^p) / (2 Gamma(1/p)).

P has its centre at 0, Q at a > 0. For p > 1 the loss ``L(x) = |x|^p - |x - a|^p`` increases with x, so that with
F the distribution function (F(-x) = Gamma(1/p, x^p) / (2 Gamma(1/p)) for x > 0, the incomplete gamma function)

    f(alpha)   = F(F^-1(1 - alpha) - a)
    alpha(t)   = F(-x),  beta(t) = F(x - a),      L(x) = t
    delta(eps) = int_x^inf q(y) (1 - e^(eps - L(y))) dy,     L(x) = eps,    a positive integrand: no cancellation

The integral is cut where the densities or their derivatives change (centres and edges |y| = 1) and each piece is
summed by the tanh-sinh rule, which resolves features of any scale at its ends. p = 1 is Laplace noise of scale
1, p = 2 Gaussian noise of standard deviation 1/sqrt(2), large p tends to uniform noise on [-1, 1].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.base import SIGN, Bound, Precision, TradeOffCurve
from privfit.accounting.gaussian import gaussian
from privfit.accounting.laplace import laplace
from privfit.accounting.roots import bisect_decreasing
from privfit.accounting.validation import check_number

__all__ = ["GeneralizedGaussianCurve", "generalized_gaussian"]

Floats = NDArray[np.float64]
DEEP = 45.0  # the integrand is followed down to e^-45 of its peak
SMOOTH = 3.0  # below this power the edges |y| = 1 are smooth enough
BLOCK = 4000  # profiles integrated at once


@dataclass(frozen=True)
class GeneralizedGaussianCurve(TradeOffCurve):
    """The curve of exponential power noise with power above 1 (see `generalized_gaussian`)."""

    shift: float
    power: float

    def __post_init__(self) -> None:
        hint = "It is sensitivity / scale."
        object.__setattr__(self, "shift", check_number("shift", self.shift, 1e-8, 1e4, hint=hint))
        object.__setattr__(self, "power", check_number("power", self.power, 1.0, 100.0, low_open=True))

    @property
    def precision(self) -> Precision:
        """Close to power 1 the tail hangs on eps so strongly that the rounding of eps itself shows."""
        return Precision(relative=2e-11 + 1e-12 / (self.power - 1), absolute=0.0)

    def _error_rates(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        y = self._crossing(np.abs(log_ratio))
        alpha, beta = self._log_tail(y + self.shift), self._log_below(y)
        below = log_ratio < 0
        return np.exp(np.where(below, beta, alpha)), np.exp(np.where(below, alpha, beta))

    def _log_tail(self, x: Floats) -> Floats:
        """Log F(-x) for x >= 0."""
        from scipy.special import gammaincc, gammaln

        shape = 1 / self.power
        with np.errstate(over="ignore"):
            z = x**self.power
        value = np.maximum(gammaincc(shape, z), 1e-320)
        far = np.maximum(z, 300.0)
        # Gamma(s, z) = e^-z z^(s-1) / (1 + (1 - s) / (z + 2 - s - ...)): the continued fraction, from its far end
        fraction = np.zeros_like(far)
        for k in range(12, 0, -1):
            fraction = k * (k - shape) / (far + 2 * k + 1 - shape - fraction)
        with np.errstate(invalid="ignore"):
            deep = -far + shape * np.log(far) - np.log(far + 1 - shape - fraction) - gammaln(shape)
        return np.where(z > 300.0, np.where(np.isinf(z), -np.inf, deep), np.log(value)) - math.log(2)

    def _log_below(self, y: Floats) -> Floats:
        """Log F(y) for any y."""
        tail = self._log_tail(np.abs(y))
        return np.where(y < 0, tail, np.log1p(-np.exp(tail)))

    def _loss(self, w: Floats) -> Floats:
        """Loss at distance w >= 0 beyond the midpoint a/2, to full relative accuracy."""
        return self._loss_and_power(w)[0]

    def _loss_and_power(self, w: Floats) -> tuple[Floats, Floats]:
        """The loss, and |y|^p of the distance y = w - a/2 from the centre of Q."""
        p, half = self.power, self.shift / 2
        near = np.abs(w - half)
        # log(far / near) = log1p((far - near) / near) without cancellation on either side
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            power = near**p
            growth = p * np.log1p(2 * np.minimum(w, half) / near)
            loss = np.asarray(power * np.expm1(np.minimum(growth, 30.0)))
            steep = growth > 30.0
            if np.any(steep):
                loss[steep] = (np.asarray(w)[steep] + half) ** p - np.asarray(power)[steep]
        # powers beyond the largest float leave an infinite loss, except where there is none
        return np.where(w == 0, 0.0, np.nan_to_num(loss, nan=np.inf, posinf=np.inf)), power

    def _crossing(self, t: Floats) -> Floats:
        """Position y = x - a, measured from the centre of Q, where the loss equals t >= 0."""
        finite = np.minimum(t, 1e300)
        with np.errstate(over="ignore"):
            low, _ = bisect_decreasing(lambda w, level: level - self._loss(w), finite, lower=0.0)
        return np.where(np.isinf(t), np.inf, low - self.shift / 2)

    def _delta(self, epsilon: Floats) -> Floats:
        return np.exp(self._log_delta(epsilon))

    def _log_delta(self, epsilon: Floats) -> Floats:
        flat = np.abs(epsilon).ravel()
        value = self._log_profile(flat, self._crossing(flat)).reshape(epsilon.shape)
        with np.errstate(divide="ignore"):
            # f is symmetric: delta(-eps) = 1 - e^-eps (1 - delta(eps))
            mirrored = np.log1p(np.exp(-np.abs(epsilon)) * np.expm1(value))
        return np.where(epsilon < 0, mirrored, value)

    def _log_profile(self, epsilon: Floats, start: Floats) -> Floats:
        """Log delta for flat arrays of eps >= 0 and the crossings that belong to them."""
        from scipy.special import gammaln

        p = self.power
        with np.errstate(over="ignore"):
            peak = np.maximum(start, 0.0) ** p
        result = np.full(start.shape, -np.inf)
        alive = np.flatnonzero(peak < 1e12)
        scale = math.log(2 / p) + float(gammaln(1 / p))
        for i in range(0, len(alive), BLOCK):
            here = alive[i : i + BLOCK]
            total = self._integral(epsilon[here], start[here], peak[here])
            with np.errstate(divide="ignore"):
                result[here] = np.minimum(np.log(total) - peak[here] - scale, 0.0)
        return result

    def _integral(self, epsilon: Floats, start: Floats, peak: Floats) -> Floats:
        """Integral of e^(peak - |y|^p) (1 - e^(eps - L)) from `start` on, piece by piece."""
        p = self.power
        end = (peak + DEEP) ** (1 / p)
        bottom = np.maximum(start, -end)  # far behind the centre of Q nothing is left
        cuts = np.sort([-1.0, 0.0, 1.0 - self.shift, 1.0]) if p > SMOOTH else np.zeros(1)
        middle = np.clip(cuts, bottom[:, None], end[:, None])
        edges = np.column_stack([bottom, middle, end])
        row, piece = np.nonzero(edges[:, 1:] > edges[:, :-1])
        low, high = edges[row, piece, None], edges[row, piece + 1, None]
        from_low, from_high, weight = _tanh_sinh(20 if p <= SMOOTH else 30 if p <= 10 else 48)
        y = np.where(from_low < 0.5, low + (high - low) * from_low, high - (high - low) * from_high)
        with np.errstate(invalid="ignore"):
            # losses beyond the largest float: all of Q lies above them
            loss, power = self._loss_and_power(y + self.shift / 2)
            gain = np.nan_to_num(loss - epsilon[row, None], nan=np.inf, posinf=np.inf)
        density = np.exp(peak[row, None] - power)
        values = ((density * -np.expm1(-np.maximum(gain, 0.0))) @ weight) * (high - low)[:, 0]
        return np.asarray(np.bincount(row, values, len(start)), dtype=np.float64)

    def _epsilon(self, delta: Floats, bound: Bound) -> Floats:
        """Solve for the crossing, of which eps is an explicit function."""
        slack = math.log1p(self.precision.relative) * SIGN[bound]
        half = self.shift / 2

        def excess(w: Floats, target: Floats) -> Floats:
            return self._log_profile(self._loss(w), w - half) + slack - target

        result = np.full(delta.shape, np.inf)
        possible = delta > 0
        if possible.any():
            with np.errstate(over="ignore"):
                ends = bisect_decreasing(excess, np.log(delta[possible]), lower=0.0)
            result[possible] = self._loss(ends[0 if bound == "lower" else 1])
        return result * (1 + 4e-15 * SIGN[bound])

    def _curve(self, alpha: Floats) -> Floats:
        from scipy.special import gammainccinv

        level = np.minimum(alpha, 1 - alpha)
        x = gammainccinv(1 / self.power, np.minimum(2 * level, 1.0)) ** (1 / self.power)
        with np.errstate(invalid="ignore"):
            value = np.exp(self._log_below(np.where(alpha <= 0.5, x, -x) - self.shift))
        return np.where(alpha == 0.0, 1.0, np.where(alpha == 1.0, 0.0, value))


@lru_cache(maxsize=3)
def _tanh_sinh(steps: int) -> tuple[Floats, Floats, Floats]:
    """Distances of the nodes from both ends of (0, 1), and weights; `steps` nodes per unit of the new variable."""
    tau = np.arange(-steps * 13 // 4, steps * 13 // 4 + 1) / steps
    s = np.pi * np.sinh(tau)
    weight = np.pi * np.cosh(tau) / (4 * np.cosh(s / 2) ** 2) / steps
    return 1 / (1 + np.exp(-s)), 1 / (1 + np.exp(s)), weight


def generalized_gaussian(shift: float, power: float) -> TradeOffCurve:
    """Exact trade-off curve of generalised Gaussian (exponential power) noise on one number.

    Parameters
    ----------
    shift : float
        Sensitivity divided by the noise's scale s, in [1e-8, 1e4]; the density is proportional to
        ``exp(-|x / s|^power)``, so Gaussian noise of standard deviation sigma has ``s = sqrt(2) sigma``.
    power : float
        In [1, 100]: 1 gives ``laplace(shift)`` and 2 gives ``gaussian(sqrt(2) * shift)``.

    Returns
    -------
    TradeOffCurve

    Raises
    ------
    ValueError, TypeError
        If a parameter is outside its range.

    Examples
    --------
    >>> generalized_gaussian(1.0, 1.0), generalized_gaussian(1.0, 2.0)
    (LaplaceCurve(a=1.0), GaussianCurve(mu=1.4142135623730951))
    >>> round(generalized_gaussian(1.0, 4.0).delta(0.0), 6)
    0.544854
    """
    value, p = check_number("shift", shift, 1e-8, 1e4), check_number("power", power, 1.0, 100.0)
    if p == 1.0:
        return laplace(value)
    if p == 2.0:
        return gaussian(math.sqrt(2) * value)
    return GeneralizedGaussianCurve(value, p)
