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
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.base import Precision, TradeOffCurve, check_scale
from privfit.accounting.laplace import laplace
from privfit.accounting.panels import Panels
from privfit.accounting.radial import RadialLaw, radial_law
from privfit.accounting.roots import bisect_decreasing
from privfit.accounting.validation import check_integer, check_number
from privfit.accounting.wrappers import zero_inflated

__all__ = ["SymmetricLaplaceCurve", "rejection_probability", "symmetric_laplace", "zil"]

Floats = NDArray[np.float64]
MAX_DIM = 10_000
COARSE, FINE = 40, 64
SUPPORT = 42.0  # the integrand is followed down to e^-42 of its peak


def rejection_probability(law: RadialLaw, shift: float, t: Floats) -> Floats:
    """log P[L > t] for thresholds 0 <= t below the largest loss; `shift` is C = sqrt(2k) c.

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
    entry, leave = _axis_crossings(law, shift, t)
    start = shift - entry
    # y = z - start = unit (e^x - 1): linear near the entry, logarithmic far away
    unit = np.where(entry > 0, entry, start)
    top = np.maximum(np.exp(law.mode), start)
    far = top + 70.0 + 14.0 * np.sqrt(top) - start
    length = np.log1p(np.minimum(leave, far) / unit)

    def log_integrand(x: Floats) -> Floats:
        y = unit[:, None] * np.expm1(x)
        offset = y - entry[:, None]
        z = start[:, None] + y
        u = np.log(z)
        w = law.solve_drop(u, t[:, None])
        radius_gap = z * np.expm1(w)  # R - z
        slack = np.where(offset > 0, shift, z + offset) + radius_gap  # R - |z - C|
        reach = np.maximum(slack, 0.0) * (z + radius_gap + np.abs(offset)) / (2 * shift * z)
        with np.errstate(divide="ignore"):
            angle = np.log(_cap_probability(law.dim, np.minimum(reach, 1.0)))
            return law.log_radial_density(u) - u + angle + np.log(y + unit[:, None])

    low, high = np.zeros_like(length), length
    for _ in range(2):
        fraction = _sine_map((np.arange(COARSE) + 0.5) / COARSE)[0]
        value = log_integrand(low[:, None] + (high - low)[:, None] * fraction)
        keep = value > value.max(axis=1, keepdims=True) - SUPPORT
        first = np.argmax(keep, axis=1)
        last = COARSE - 1 - np.argmax(keep[:, ::-1], axis=1)
        grid = np.concatenate([[0.0], fraction, [1.0]])
        span = high - low
        low, high = low + span * grid[first], low + span * grid[last + 2]
    x, weight = np.polynomial.legendre.leggauss(FINE)
    fraction, jacobian = _sine_map((1 + x) / 2)
    value = log_integrand(low[:, None] + (high - low)[:, None] * fraction)
    peak = np.maximum(value.max(axis=1), -1e5)
    total = np.exp(value - peak[:, None]) @ (weight / 2 * jacobian)
    with np.errstate(divide="ignore"):
        return np.log(total * (high - low)) + peak


def _sine_map(x: Floats) -> tuple[Floats, Floats]:
    """sin^2 substitution: powers (1 - tau)^((d-1)/2) at the ends become analytic for every integer d."""
    return np.sin(0.5 * np.pi * x) ** 2, 0.5 * np.pi * np.sin(np.pi * x)


def _cap_probability(dim: int, reach: Floats) -> Floats:
    """P[cos(angle) > 1 - reach] for a uniform direction in R^dim, 0 <= reach <= 1."""
    from scipy.special import betainc

    if dim == 1:
        return np.where(reach > 0, 0.5, 0.0)
    if dim == 3:
        return 0.5 * reach
    square = reach * (2 - reach)
    if dim == 2:
        return np.arcsin(np.sqrt(square)) / np.pi
    return 0.5 * betainc((dim - 1) / 2, 0.5, square)


def _axis_crossings(law: RadialLaw, shift: float, t: Floats) -> tuple[Floats, Floats]:
    """Distances from the centre of Q at which the axis enters (towards P) and leaves the region L > t.

    The entry is negative when it lies beyond the centre; a region that reaches to infinity leaves at inf.
    """

    def before(a: Floats, level: Floats) -> Floats:  # L at shift - a, for 0 < a <= shift/2
        return law.drop(np.log(shift - a), np.log(a) - np.log(shift - a)) - level

    def behind(a: Floats, level: Floats) -> Floats:  # L at shift + a
        with np.errstate(divide="ignore"):
            return law.drop(np.log(shift + a), np.log(a) - np.log1p(a / shift) - math.log(shift)) - level

    entry = np.full_like(t, shift / 2)
    leave = np.full_like(t, np.inf)
    inner = t > 0
    centre = law.at_zero - float(law.log_density(np.array([math.log(shift)]))[0])
    inside = inner & (t < centre)
    if inside.any():
        root = bisect_decreasing(lambda x, s: before(np.exp(x), s), t[inside], -745.0, math.log(shift / 2))
        entry[inside] = np.exp(root[0])
    late = inner & ~inside
    if late.any():
        root = bisect_decreasing(lambda x, s: -behind(np.exp(x), s), t[late], -745.0, 40.0)
        entry[late] = -np.exp(root[0])
    closed = inside & (t > shift) & (law.order < 0.5)
    if closed.any():
        root = bisect_decreasing(lambda x, s: behind(np.exp(x), s), t[closed], -745.0, 60.0)
        leave[closed] = np.exp(root[1])
    return entry, leave + entry


@dataclass(frozen=True)
class SymmetricLaplaceCurve(TradeOffCurve):
    """Exact T_{d,c} of symmetric or generalised Laplace noise (see `symmetric_laplace`)."""

    dim: int
    c: float
    shape: float = 1.0
    precision = Precision(relative=1e-9, absolute=1e-300)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", check_integer("dim", self.dim, 1, MAX_DIM))
        object.__setattr__(self, "c", check_number("c", self.c, 1e-8, 1e5, hint="c is sensitivity / lambda."))
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
            edges = [top * (1 - 0.5**j) for j in range(46)]
        else:
            edges = [0.0, shift / 2, shift]
            while edges[-1] < 1e7:
                edges.append(2 * edges[-1])
        return Panels(lambda t: rejection_probability(law, shift, t), edges)

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

        The tangent's error is of second order in the error of t, so a cubic inverse is enough.
        """
        flat = alpha.ravel()
        middle = float(self._error_rates(np.array(0.0))[0])
        upper = flat > middle  # here the curve is its own mirror image: thresholds below zero
        result = np.empty(flat.shape)
        for side, wanted in ((~upper, flat), (upper, 1.0 - flat)):
            if side.any():
                t = self._threshold(np.maximum(wanted[side], 1e-290), mirrored=bool(side is upper))
                result[side] = self._support_line(-t if side is upper else t, flat[side])
        result = np.where(flat == 0.0, 1.0 - self.infinite_mass, result)
        return result.reshape(alpha.shape)

    def _threshold(self, level: Floats, mirrored: bool) -> Floats:
        """The t >= 0 with P[L > t] = level (or Q[L > t] = level), by interpolation of panel values."""
        from scipy.interpolate import CubicSpline

        target = np.log(level)
        bottom, reach, grid = float(target.min()), self._separation, [0.0]
        columns: list[Floats] = []
        for i in range(len(self._panels.edges) - 1):
            for panel in self._panels.covering(self._panels.edges[i], self._panels.edges[i + 1] * (1 - 1e-15)):
                t = np.linspace(panel.low, panel.high, 48)
                alpha, exceed = self._tails(t)
                columns.append(np.vstack([t, np.log(np.maximum(exceed if mirrored else alpha, 1e-320))]))
            if not columns or columns[-1][1, -1] < bottom:
                break
        del reach, grid
        t, value = np.hstack(columns)
        keep = np.concatenate([[True], np.diff(np.minimum.accumulate(value)) < 0])
        spline = CubicSpline(value[keep][::-1], t[keep][::-1])
        return np.clip(spline(np.clip(target, value[keep][-1], value[0])), 0.0, t[-1])

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
        ``sup |Sigma^(-1/2)(x - x')|`` over neighbours, in [1e-8, 1e5].
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
