"""Exact trade-off curves of (generalised) symmetric Laplace noise in every dimension.

P = GL_d(I, k), Q = P + c e_1, with ``S = sqrt(W) N(0, I)``, W ~ Gamma(k, rate k); k = 1 is symmetric Laplace.
In the variable ``z = sqrt(2k) r`` and with ``C = sqrt(2k) c`` the loss is ``L = F(|z - C e_1|) - F(|z|)``
(F: see radial.py), and for t >= 0

    L > t   <=>   |z - C e_1| < R(z),   F(R) = F(z) + t   <=>   cos(angle) > tau = 1 - (R^2 - (z - C)^2)/(2 C z)
    alpha(t) = int f(z) P[cos > tau(z)] dz,        P[cos > tau] = I_{1 - tau^2}((d-1)/2, 1/2) / 2

The integral runs between the points where the axis enters and leaves the rejection region. Because
``d delta / d eps = -e^eps alpha(eps)``, the profile is a sum of positive terms and keeps its relative accuracy:

    delta(eps) = int_eps^max e^t alpha(t) dt,     beta(t) = 1 - delta(t) - e^t alpha(t),    alpha(-t) = beta(t)

log alpha and log delta are kept as Chebyshev panels in t, made when they are first needed. The largest loss
is C for k >= (d+1)/2 (pure DP), F(0) - F(C) for d/2 < k < (d+1)/2 and infinite for k <= d/2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.base import Precision, TradeOffCurve, check_scale
from privfit.accounting.laplace import laplace
from privfit.accounting.panels import Panels
from privfit.accounting.radial import RadialLaw, radial_law
from privfit.accounting.validation import check_integer, check_number
from privfit.accounting.wrappers import zero_inflated

__all__ = ["SymmetricLaplaceCurve", "rejection_probability", "symmetric_laplace", "zil"]

Floats = NDArray[np.float64]
MAX_DIM = 10_000
COARSE = 28
CHECK = 5e-9  # largest absolute error of delta(0) against 1 - 2 alpha(0)
SUPPORT = 42.0  # the integrand is followed down to e^-42 of its peak


def rejection_probability(law: RadialLaw, shift: float, t: Floats) -> Floats:
    """Log P[L > t] for thresholds 0 <= t below the largest loss; `shift` is C = sqrt(2k) c.

    Parameters
    ----------
    law : RadialLaw
    shift : float
    t : array of shape (m,)

    Returns
    -------
    array of shape (m,)
        Relative error about 1e-13 for moderate parameters; see the tests for the measured range.

    Examples
    --------
    >>> law = radial_law(2, 1.0)
    >>> round(float(np.exp(rejection_probability(law, 2**0.5, np.array([0.7]))[0])), 10)
    0.1463869363
    """
    entry, inside = _axis(law.dim, law.shape, shift).crossings(t)
    start = shift - entry
    # y = z - start = unit (e^x - 1): linear near the entry, logarithmic far away
    unit = np.where(entry > 0, entry, start)

    def log_integrand(x: Floats, steps: int) -> Floats:
        y = unit[:, None] * np.expm1(x)
        offset = y - entry[:, None]  # z - C, signed
        z = start[:, None] + y
        u = np.log(z)
        w = law.solve_drop(u, t[:, None], steps)
        step = z * np.expm1(w)
        radius = np.where(w < -0.5, np.exp(u + w), z + step)
        slack = np.where(w < -0.5, radius - np.abs(offset), np.where(offset > 0, shift, z + offset) + step)
        reach = np.maximum(slack, 0.0) * (radius + np.abs(offset)) / (2 * shift * z)
        with np.errstate(divide="ignore"):
            angle = _log_cap_probability(law.dim, np.minimum(reach, 1.0))
            return law.log_radial_density(u) - u + angle + np.log(y + unit[:, None])

    def support(low: Floats, high: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """The part of [low, high] where the integrand matters, and whether it still matters at the end."""
        fraction = _sine_map((np.arange(COARSE) + 0.5) / COARSE)[0]
        value = log_integrand(low[:, None] + (high - low)[:, None] * fraction, 1)
        keep = value > value.max(axis=1, keepdims=True) - SUPPORT
        first, last = np.argmax(keep, axis=1), COARSE - 1 - np.argmax(keep[:, ::-1], axis=1)
        grid = np.concatenate([[0.0], fraction, [1.0]])
        return low + (high - low) * grid[first], low + (high - low) * grid[last + 2], keep[:, -1]

    fall, zero = 50.0, np.zeros_like(t)
    while True:
        far = np.exp(law.far_end(np.log(start), fall)) - start
        low, high, at_end = support(zero, np.log1p(np.minimum(inside, far) / unit))
        if fall > 1e4 or not np.any(at_end & (far < inside)):
            break
        fall *= 2  # a rare event: the integral lives where the radial density itself is tiny
    for _ in range(2 if law.dim > 100 else 1):
        low, high, _ = support(low, high)
    fraction, jacobian, weight = _fine_rule(law.dim)
    value = log_integrand(low[:, None] + (high - low)[:, None] * fraction, 12)
    peak = np.maximum(value.max(axis=1), -1e5)
    total = np.exp(value - peak[:, None]) @ (weight * jacobian)
    with np.errstate(divide="ignore"):
        return np.log(total * (high - low)) + peak


@lru_cache(maxsize=16)
def _fine_rule(dim: int) -> tuple[Floats, Floats, Floats]:
    """Gauss-Legendre nodes; the probability of a cap varies on a scale of dim^(-1/2)."""
    x, weight = np.polynomial.legendre.leggauss(max(64, 16 * math.ceil(0.8 * math.sqrt(dim))))
    return (*_sine_map((1 + x) / 2), weight / 2)


def _sine_map(x: Floats) -> tuple[Floats, Floats]:
    """sin^2 substitution: powers (1 - tau)^((d-1)/2) at the ends become analytic for every integer d."""
    return np.sin(0.5 * np.pi * x) ** 2, 0.5 * np.pi * np.sin(np.pi * x)


def _log_cap_probability(dim: int, reach: Floats) -> Floats:
    """Log P[cos(angle) > 1 - reach] for a uniform direction in R^dim, 0 <= reach <= 1."""
    from scipy.special import betainc, betaln, hyp2f1

    with np.errstate(divide="ignore"):
        if dim == 1:
            return np.where(reach > 0, math.log(0.5), -np.inf)
        if dim == 3:
            return np.log(0.5 * reach)
        square = reach * (2 - reach)
        if dim == 2:
            return np.log(np.arcsin(np.sqrt(square)) / np.pi)
        a = (dim - 1) / 2
        value = 0.5 * betainc(a, 0.5, square)
        result = np.log(value)
        # in high dimension the incomplete beta function underflows; its logarithm is still needed
        tiny = value < 1e-280
        if np.any(tiny):
            x = np.maximum(square[tiny], 1e-300)
            series = hyp2f1(a + 0.5, 1.0, a + 1.0, x)  # DLMF 8.17.8
            result[tiny] = a * np.log(x) + 0.5 * np.log1p(-x) - math.log(2 * a) - betaln(a, 0.5) + np.log(series)
            result[square == 0] = -np.inf
        return result


class _Axis:
    """Where the line through both centres enters and leaves the region L > t (one law, one shift)."""

    def __init__(self, law: RadialLaw, shift: float) -> None:
        self.law, self.shift = law, shift
        self.at_centre = law.at_zero - float(law.log_density(np.array([math.log(shift)]))[0])
        self.rising = law.order >= 0.5  # for these shapes the loss grows behind the centre of Q
        self._grids: dict[float, tuple[Floats, Floats]] = {}

    def crossings(self, t: Floats) -> tuple[Floats, Floats]:
        """Distance of the entry before the centre of Q (negative: behind it) and length inside the region.

        A region that reaches to infinity has infinite length.
        """
        entry = np.full_like(t, self.shift / 2)
        length = np.full_like(t, np.inf)
        inside = (t > 0) & (t < self.at_centre)
        if inside.any():
            entry[inside] = self._distance(t[inside], -1.0)
        late = (t > 0) & ~inside
        if late.any():
            entry[late] = -self._distance(t[late], 1.0)
        closed = inside & (t > self.shift) & (not self.rising)
        if closed.any():
            length[closed] = entry[closed] + self._distance(t[closed], 1.0)
        return entry, length

    def _loss(self, x: Floats, side: float) -> tuple[Floats, Floats]:
        """Loss at distance a = e^x from the centre, on one side, and its derivative in x."""
        a, shift, law = np.exp(x), self.shift, self.law
        other = np.log(shift + side * a)
        derivative = -law.slope(x) + law.slope(other) * (side * a / (shift + side * a))
        ratio = shift / a if side > 0 else np.maximum(shift - 2 * a, 0.0) / a  # other distance over a, less one
        return law.drop(other, -np.log1p(ratio)), derivative

    def _grid(self, side: float) -> tuple[Floats, Floats]:
        if side not in self._grids:
            last = math.log(self.shift / 2) if side < 0 else 40.0
            middle = min(0.0, last) - 12.0
            x = np.concatenate([np.linspace(-650.0, middle, 160)[:-1], np.linspace(middle, last, 400)])
            self._grids[side] = x, self._loss(x, side)[0]
        return self._grids[side]

    def _distance(self, t: Floats, side: float) -> Floats:
        """The distance with loss t: bracketed by the grid, then Newton steps kept inside the bracket."""
        sign = -1.0 if side > 0 and self.rising else 1.0
        grid, loss = self._grid(side)
        heights = np.minimum.accumulate(sign * loss)
        i = np.clip(np.searchsorted(-heights, -sign * t) - 1, 0, len(grid) - 2)
        low, high = grid[i], grid[i + 1]
        x = 0.5 * (low + high)
        for _ in range(60):
            value, derivative = self._loss(x, side)
            rest = value - t
            above = sign * rest > 0
            low, high = np.where(above, x, low), np.where(above, high, x)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                newton = x - rest / derivative
            moved = np.where((newton >= low) & (newton <= high), newton, 0.5 * (low + high))
            done = np.abs(moved - x) <= 1e-9 * np.maximum(np.abs(x), 1e-3)  # the next error is its square
            x = moved
            if np.all(done):
                break
        return np.exp(x)


@lru_cache(maxsize=32)
def _axis(dim: int, shape: float, shift: float) -> _Axis:
    return _Axis(radial_law(dim, shape), shift)


@dataclass(frozen=True)
class SymmetricLaplaceCurve(TradeOffCurve):
    """Exact T_{d,c} of symmetric or generalised Laplace noise (see `symmetric_laplace`)."""

    dim: int
    c: float
    shape: float = 1.0
    precision = Precision(relative=1e-9, absolute=1e-300)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", check_integer("dim", self.dim, 1, MAX_DIM))
        object.__setattr__(self, "c", check_number("c", self.c, 1e-8, 1e3, hint="c is sensitivity / lambda."))
        object.__setattr__(self, "shape", check_scale("shape", self.shape))

    @cached_property
    def _separation(self) -> float:
        """C = sqrt(2k) c, the shift in the variable z."""
        return math.sqrt(2 * self.shape) * self.c

    @property
    def max_loss(self) -> float:
        """Largest privacy loss: finite exactly for shape > dim/2."""
        law = radial_law(self.dim, self.shape)
        if law.order >= 0.5:
            return self._separation
        if law.order <= 0:
            return math.inf
        return law.at_zero - float(law.log_density(np.array([math.log(self._separation)]))[0])

    @cached_property
    def _panels(self) -> Panels:
        law, shift, top = radial_law(self.dim, self.shape), self._separation, self.max_loss
        if math.isfinite(top):
            edges = [top * (1 - 0.5 ** (j / 2)) for j in range(41)]
            # where the region's boundary passes through the centre of Q, alpha is not smooth
            centre = _axis(self.dim, self.shape, shift).at_centre
            if 1e-3 * top < centre < 0.99 * top:
                graded = [centre * (1 + side * 0.25**j) for j in range(1, 6) for side in (-1, 1)]
                near = sorted([centre, *(x for x in graded if x < 0.99 * top)])
                after = near[-1] + 0.1 * (top - near[-1])
                edges = sorted(near + [x for x in edges if not 0.9 * near[0] < x < after])
        else:
            edges = [0.0, shift / 4, shift / 2, 3 * shift / 4, shift]
            # for d = 2k the tail falls like exp(-e^t): short intervals keep each one cheap
            longest = 0.3 if law.order > -0.25 else math.inf
            while edges[-1] < 1e7 and len(edges) < 400:
                edges.append(edges[-1] + min(0.5 * edges[-1], longest))
        panels = Panels(lambda t: rejection_probability(law, shift, t), edges, top)
        self._check(panels)
        return panels

    def _check(self, panels: Panels) -> None:
        """By symmetry delta(0) = 1 - 2 alpha(0): one equation that every panel takes part in."""
        log_alpha, log_delta = panels.read(np.zeros(1))
        error = abs(math.expm1(float(log_delta[0])) + 2 * math.exp(float(log_alpha[0])))
        if not error < CHECK:
            raise ArithmeticError(
                f"the integrals for dim={self.dim}, c={self.c!r}, shape={self.shape!r} miss their own check by "
                f"{error:.1e}, more than {CHECK:.0e}; no number is better than a wrong one. Please report it, and "
                "use symmetric_laplace_limit, which is a lower bound for every dimension."
            )

    def _error_rates(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        t = np.abs(log_ratio)
        low, high = self._tails(t)
        high = 1.0 - high  # beta at |t|
        below = log_ratio < 0
        return np.where(below, high, low), np.where(below, low, high)

    def _tails(self, t: Floats) -> tuple[Floats, Floats]:
        """P[L > t] and Q[L > t] for t >= 0."""
        log_alpha, log_delta = self._panels.read(t)
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.where(np.isfinite(log_alpha), np.exp(t + log_alpha), 0.0)
        return np.exp(log_alpha), np.minimum(np.exp(log_delta) + scaled, 1.0)

    def _log_delta(self, epsilon: Floats) -> Floats:
        e = np.abs(epsilon)
        value = self._panels.read(e)[1]
        with np.errstate(divide="ignore", invalid="ignore"):
            mirrored = np.log1p(-np.exp(-e) * -np.expm1(value))
        return np.where(epsilon < 0, mirrored, value)

    def _delta(self, epsilon: Floats) -> Floats:
        return np.exp(self._log_delta(epsilon))

    def _curve(self, alpha: Floats) -> Floats:
        """Invert log alpha (or log Q[L > t] above the fixed point) and follow the tangent there.

        The tangent's error is of second order in the error of t, so a rough inverse is enough.
        """
        flat = alpha.ravel()
        middle = float(self._error_rates(np.array(0.0))[0])
        result = np.where(flat == 0.0, 1.0 - self.infinite_mass, 0.0)
        lower = (flat > 0) & (flat <= middle)
        if lower.any():
            result[lower] = self._support_line(self._threshold(flat[lower], mirrored=False), flat[lower])
        upper = (flat > middle) & (flat < 1)  # the curve's own mirror image: thresholds below zero
        if upper.any():
            t = self._threshold(1.0 - flat[upper], mirrored=True)
            result[upper] = self._support_line(-t, flat[upper])
        return result.reshape(alpha.shape)

    def _threshold(self, level: Floats, mirrored: bool) -> Floats:
        """The t >= 0 with P[L > t] = level (or Q[L > t] = level), from panel values and one secant step."""

        def height(t: Floats) -> Floats:
            alpha, exceed = self._tails(t)
            return np.log(np.maximum(exceed if mirrored else alpha, 1e-320))

        target = np.log(level)
        bottom = float(target.min())
        columns: list[Floats] = []
        for low, high in pairwise(self._panels.edges):
            panels = self._panels.covering(low, high * (1 - 1e-15))
            if panels:
                t = np.concatenate([np.linspace(panel.low, panel.high, 32) for panel in panels])
                columns.append(np.vstack([t, height(t)]))
            if not columns or columns[-1][1, -1] < bottom:
                break
        t, value = np.hstack(columns)
        keep = np.concatenate([[True], np.diff(np.minimum.accumulate(value)) < 0])
        t, value = t[keep], value[keep]
        first = np.interp(-target, -value, t)
        cell = np.clip(np.searchsorted(t, first, side="right") - 1, 0, len(t) - 2)
        slope = (np.diff(value) / np.diff(t))[cell]
        second = first - (height(first) - target) / slope
        return np.clip(second, t[cell], t[cell + 1])

    def gdp(self) -> float:
        """Smallest mu with the curve above G_mu; inf for shape < dim/2, where the loss has a heavy tail."""
        return math.inf if self.shape < self.dim / 2 else super().gdp()


def symmetric_laplace(dim: int, c: float, shape: float = 1) -> TradeOffCurve:
    """Exact trade-off curve T_{d,c} of symmetric multivariate (generalised) Laplace noise.

    Parameters
    ----------
    dim : int
        Dimension of the noise vector, 1 to 10,000.
    c : float
        Sensitivity divided by the noise's standard deviation per coordinate,
        ``sup |Sigma^(-1/2)(x - x')|`` over neighbours, in [1e-8, 1000].
    shape : float
        Shape k > 0 of the Gamma mixing law; 1 is symmetric Laplace (Lu, Chen & Qiu), large k is Gaussian.

    Returns
    -------
    TradeOffCurve
        For ``dim=1, shape=1`` the Laplace curve with ``a = sqrt(2) c``.

    Raises
    ------
    ValueError, TypeError
        If a parameter is outside its range.

    Examples
    --------
    >>> import math
    >>> curve = symmetric_laplace(6, 0.5)
    >>> abs(curve.delta(0.0, bound="estimate") - (1 - math.exp(-0.5 / math.sqrt(2)))) < 1e-12
    True
    """
    made = SymmetricLaplaceCurve(dim, c, shape)
    return laplace(math.sqrt(2) * made.c) if (made.dim, made.shape) == (1, 1.0) else made


def zil(dim: int, c: float, delta0: float) -> TradeOffCurve:
    """Exact trade-off curve T_{d,c,delta0} of zero-inflated symmetric Laplace noise (Lu, Chen & Qiu).

    Parameters
    ----------
    dim : int
        Dimension of the noise vector.
    c : float
        Sensitivity divided by the noise's standard deviation per coordinate.
    delta0 : float
        Probability that a record is released unchanged, in [0, 1).

    Returns
    -------
    TradeOffCurve

    Examples
    --------
    >>> zil(2, 1.0, 0.05).delta(float("inf"))
    0.05...
    """
    return zero_inflated(symmetric_laplace(dim, c), delta0)
