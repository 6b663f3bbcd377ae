r"""Compositions of limits of (generalised) symmetric Laplace noise, and of Gaussian noise: one integral.

The limit curve is a mixture of Gaussian curves over W ~ Gamma(k, rate k) with mu = c / sqrt(W). Releases add
mu^2, so n of them have ``V = sum c_i^2 / W_i`` in place of mu^2, and the moments of the loss depend on
``y = -(z^2 + z)/2`` alone:

    E_Q e^(z L) = M(y) = exp(-mu^2 y) prod_i phi(c_i^2 y; k_i)
    phi(s; k) = E e^(-s/W) = 2 (k s)^(k/2) K_k(2 sqrt(k s)) / Gamma(k)

On a line Re z = -theta, 0 < theta < 1, where every moment is finite however heavy the tail,

    1 - delta(eps)  = (1/2 pi) int M e^(-z eps) / (-z (1 + z)) d Im z
    e^eps alpha(eps) = (1/2 pi) int M e^(-z eps) / (1 + z) d Im z

On Re z = -1/2 all is real: ``1 - delta = e^(eps/2)/pi int_0^inf M((u^2 + 1/4)/2) cos(u eps)/(u^2 + 1/4) du``. The
integrand is analytic and decays like exp(-sqrt(2) c u): the trapezoidal rule is exact to rounding.
Far out, where delta is small (``n c^2 / (2 eps)`` for k = 1), the line is folded around the cut z > 0 and

    delta(eps) = (1/pi) int_0^inf Im M(-(x^2 + x)/2 - i0) e^(-x eps) / (x (1 + x)) dx

keeps the relative accuracy. (Derivations: docs/mathematics.md.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.base import SIGN, Bound, Precision, TradeOffCurve
from privfit.accounting.interpolation import Interpolant
from privfit.accounting.limit import ShapedLimitCurve, SymmetricLaplaceLimitCurve

__all__ = ["LimitCompositionCurve", "limit_composition"]

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]
NEGLIGIBLE = 42.0
BLOCK = 2**21
FEW = 4  # up to so many eps are computed directly


@dataclass(frozen=True)
class LimitCompositionCurve(TradeOffCurve):
    """Several limits of symmetric Laplace noise, and one Gaussian, together.

    Parameters
    ----------
    limits : tuple of TradeOffCurve
        Curves made by `symmetric_laplace_limit`.
    counts : tuple of int
        How often each occurs.
    mu : float
        Parameter of the Gaussian part; 0 for none.
    """

    limits: tuple[TradeOffCurve, ...]
    counts: tuple[int, ...]
    mu: float
    precision = Precision(relative=2e-12, absolute=5e-14)

    def __str__(self) -> str:
        parts = [f"{n} x {c}" for c, n in zip(self.limits, self.counts, strict=True)]
        return " + ".join(parts + ([f"GaussianCurve(mu={self.mu:.6g})"] if self.mu else []))

    @property
    def _terms(self) -> list[tuple[float, int, int]]:
        """(c, shape, count) of the limits."""
        return [(c.c, getattr(c, "shape", 1), n) for c, n in zip(self.limits, self.counts, strict=True)]  # type: ignore[attr-defined]

    def _log_moment(self, y: Complexes) -> Complexes:
        """Log of M(y); the branch of the square root has a positive real part, so that K_k decays."""
        total = -(self.mu**2) * y
        for c, shape, count in self._terms:
            total = total + count * _log_phi(c * c * y, shape)
        return total

    @property
    def _decay(self) -> float:
        """The moments fall like e^(-decay |z|) along a line."""
        return sum(n * c * math.sqrt(2 * k) for c, k, n in self._terms)

    def _line(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """(1 - delta, e^eps alpha) for eps >= 0 up to the largest, on one line."""
        largest = float(epsilon.max())
        theta = min(0.5, 2.0 / max(largest, 1e-300))
        # the sum repeats the function with this period in eps: images that are not negligible are taken off
        period, images = 2 * largest + 2 * NEGLIGIBLE / theta, False
        short = math.sqrt(5600 * self._decay)
        if 3 * self._far < short < period:
            period, images = short, True
        step = 2 * math.pi / period
        gauss = self.mu**2 / 2
        end = NEGLIGIBLE / self._decay
        if gauss:
            end = min(end, (-self._decay + math.sqrt(self._decay**2 + 4 * gauss * NEGLIGIBLE)) / (2 * gauss))
        u = step * np.arange(math.ceil((end + 2.0) / step))
        z = -theta + 1j * u
        with np.errstate(under="ignore"):
            moment = np.exp(self._log_moment(-(z * z + z) / 2)) * (step / math.pi)
        moment[0] *= 0.5
        hidden, steep = np.empty(epsilon.shape), np.empty(epsilon.shape)
        for block in _blocks(epsilon.size, u.size):
            turned = np.exp(-1j * np.outer(epsilon[block], u))
            hidden[block] = (turned @ (moment / (-z * (1 + z)))).real
            steep[block] = (turned @ (moment / (1 + z))).real
        if images:
            hidden_images, steep_images = self._images(epsilon, period, theta)
            hidden, steep = hidden - hidden_images, steep - steep_images
        return hidden * np.exp(theta * epsilon), steep * np.exp(theta * epsilon)

    def _images(self, epsilon: Floats, period: float, theta: float) -> tuple[Floats, Floats]:
        """The function, times e^(-theta eps), at eps + m period for m other than 0; all lie far out."""
        hidden, steep = np.zeros(epsilon.shape), np.zeros(epsilon.shape)
        m = period * np.arange(1, math.ceil(NEGLIGIBLE / (theta * period)) + 1)
        for block in _blocks(epsilon.size, m.size):
            e, s = epsilon[block, None] + m, m - epsilon[block, None]
            for points, rate, mirrored in ((e, theta, False), (s, 1 - theta, True)):
                delta, slope = np.exp(self._far_table(np.log2(points).ravel())).reshape(2, *points.shape)
                weight = np.exp(-rate * points)
                hidden[block] += ((1 - delta) * weight).sum(axis=1)
                steep[block] += (((1 - delta - slope) if mirrored else slope) * weight).sum(axis=1)
        return hidden, steep

    def _cut(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """(delta, e^eps alpha) far out, around the cut."""
        x, weight = np.polynomial.legendre.leggauss(16)
        edges = np.concatenate([[0.0], np.geomspace(1e-5, NEGLIGIBLE, 14)])
        half = np.diff(edges)[:, None] / 2
        v, w = (edges[:-1, None] + half * (1 + x)).ravel(), (half * weight).ravel()
        s = v / epsilon[:, None]
        height = (s * s + s) / 2
        size, turn = self.mu**2 * height - v, np.zeros_like(s)
        for c, shape, count in self._terms:
            log_size, angle = _on_the_cut(c * c * height, shape)
            size, turn = size + count * log_size, turn + count * angle
        with np.errstate(under="ignore"):
            jump = np.exp(size) * np.sin(turn) * (w / math.pi)
        return (jump / (s * (1 + s))).sum(axis=1) / epsilon, (jump / (1 + s)).sum(axis=1) / epsilon

    @property
    def _far(self) -> float:
        """Where the integrand around the cut neither grows nor turns before e^(-x eps) has ended it."""
        square = sum(n * c * c for c, _, n in self._terms) + self.mu**2
        return max(64 * square, 12 * self._decay, 1.0 if self.mu else 0.0)

    @cached_property
    def _near_table(self) -> Interpolant:
        """(1 - delta, e^eps alpha) over log2(1 + eps/unit), from the line."""
        return Interpolant(lambda x: np.array(self._line(self._unit * np.expm1(x * math.log(2)))), 1e-14)

    @property
    def _unit(self) -> float:
        return min(self._far, 8.0)

    @cached_property
    def _far_table(self) -> Interpolant:
        """Logs of (delta, e^eps alpha) over log2 eps, from the cut."""
        return Interpolant(lambda x: np.log(self._cut(np.exp2(x))), 3e-13)

    def _values(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """(delta, e^eps alpha) for eps >= 0."""
        flat = np.minimum(epsilon.ravel(), 1e306)
        values = np.empty((2, flat.size))
        far = flat > self._far
        few = flat.size <= FEW
        if far.any():
            values[:, far] = self._cut(flat[far]) if few else np.exp(self._far_table(np.log2(flat[far])))
        near = flat[~far]
        if near.size:
            values[:, ~far] = self._line(near) if few else self._near_table(np.log1p(near / self._unit) / math.log(2))
            values[0, ~far] = 1.0 - values[0, ~far]
        delta, steep = np.clip(values, 0.0, 1.0).reshape(2, *epsilon.shape)
        return delta, steep

    def _delta(self, epsilon: Floats) -> Floats:
        delta, _ = self._values(np.abs(epsilon))
        return np.where(epsilon >= 0, delta, 1.0 - np.exp(np.minimum(epsilon, 0.0)) * (1.0 - delta))

    def _error_rates(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        t = np.abs(log_ratio)
        delta, steep = self._values(t)
        with np.errstate(under="ignore"):
            low, high = steep * np.exp(-t), np.clip(1.0 - delta - steep, 0.0, 1.0)
        return np.where(log_ratio >= 0, low, high), np.where(log_ratio >= 0, high, low)

    def _on(self, side: Bound) -> TradeOffCurve:
        return _Side(self, side)

    def gdp(self) -> float:
        """No mu suffices: the tail of delta is polynomial."""
        return math.inf


@dataclass(frozen=True, eq=False)
class _Side(TradeOffCurve):
    """Bounds of the integral: its error is absolute on the line, and relative around the cut."""

    inner: LimitCompositionCurve
    side: Bound
    precision = Precision(relative=0.0, absolute=0.0)

    def _on(self, side: Bound) -> TradeOffCurve:
        return self

    def _moved(self, value: Floats, sign: float, near: Any) -> Floats:
        error = self.inner.precision
        return value + sign * (error.relative * value + np.where(near, error.absolute, 0.0))

    def _delta(self, epsilon: Floats) -> Floats:
        value = self._moved(self.inner._delta(epsilon), -SIGN[self.side], epsilon <= self.inner._far)
        return np.clip(value, 0.0, 1.0)

    def _error_rates(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        return self.inner._error_rates(log_ratio)

    def _curve(self, alpha: Floats) -> Floats:
        return self._moved(super()._curve(alpha), SIGN[self.side], (alpha > 0.0) & (alpha < 1.0))


def _log_phi(s: Complexes, k: int) -> Complexes:
    """Log of E e^(-s/W) for W ~ Gamma(k, rate k)."""
    from scipy.special import kve

    root = 2 * np.sqrt(k * s)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = k * np.log(root / 2) + np.log(kve(k, root)) - root + math.log(2) - math.lgamma(k)
    return np.where(root == 0, 0.0, value)


def _on_the_cut(s: Floats, k: int) -> tuple[Floats, Floats]:
    """Log of |phi| and arg phi at -s - i0: K_k turns into J_k and Y_k, which keep a small angle exact."""
    from scipy.special import jv, yv

    x = 2 * np.sqrt(k * s)
    with np.errstate(all="ignore"):
        j, y = jv(k, x), yv(k, x)
        size = k * np.log(x / 2) + np.log(np.hypot(j, y)) + math.log(math.pi) - math.lgamma(k)
    small = ~np.isfinite(y)  # phi is 1 up to far less than rounding
    return np.where(small, 0.0, size), np.where(small, 0.0, np.arctan2(j, -y))


def _blocks(rows: int, columns: int) -> list[slice]:
    size = max(1, BLOCK // max(columns, 1))
    return [slice(i, i + size) for i in range(0, rows, size)]


def limit_composition(limits: dict[TradeOffCurve, int], mu2: float) -> TradeOffCurve:
    """Curve of limits of symmetric Laplace noise with their counts and of Gaussian noise with ``mu^2 = mu2``.

    Parameters
    ----------
        limits : dict
            Curves made by `symmetric_laplace_limit`, and how often each occurs.
        mu2 : float
            At least 0.

    Returns
    -------
        TradeOffCurve

    Raises
    ------
    TypeError
        If a curve is not such a limit.

    Examples
    --------
    >>> from privfit.accounting.limit import symmetric_laplace_limit
    >>> twice = limit_composition({symmetric_laplace_limit(0.5): 2}, 0.0)
    >>> round(twice.delta(1.0), 9)
    0.225228968
    """
    for curve in limits:
        if not isinstance(curve, (SymmetricLaplaceLimitCurve, ShapedLimitCurve)):
            raise TypeError(f"limits must be curves of symmetric_laplace_limit, got {type(curve).__name__}.")
    if mu2 == 0.0 and sum(limits.values()) == 1:
        return next(iter(limits))
    order = sorted(limits, key=repr)
    return LimitCompositionCurve(tuple(order), tuple(limits[c] for c in order), math.sqrt(mu2))
