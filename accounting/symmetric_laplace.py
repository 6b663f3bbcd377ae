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

from privfit.accounting.axis import axis_of
from privfit.accounting.base import Precision, TradeOffCurve, check_scale
from privfit.accounting.laplace import laplace
from privfit.accounting.panels import Panels
from privfit.accounting.radial import radial_law
from privfit.accounting.rejection import loss_tails
from privfit.accounting.validation import check_integer, check_number
from privfit.accounting.wrappers import zero_inflated

__all__ = ["SymmetricLaplaceCurve", "symmetric_laplace", "zil"]

Floats = NDArray[np.float64]
MAX_DIM = 10_000
CHECK = 1e-9  # largest error of delta against the other route to it, relative to Q[L > t]
FAR_APART = 8.0  # shift sqrt(2k) c beyond which ten times that was met near the largest loss
RESOLVED = 2e-3  # the share of Q[L > t] that must be left in delta for the difference to be used
FEW = 4  # so many thresholds are evaluated one by one


@lru_cache(maxsize=1)
def _gauss() -> tuple[Floats, Floats]:
    return np.polynomial.legendre.leggauss(10)


@dataclass(frozen=True)
class SymmetricLaplaceCurve(TradeOffCurve):
    """Exact T_{d,c} of symmetric or generalised Laplace noise (see `symmetric_laplace`)."""

    dim: int
    c: float
    shape: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", check_integer("dim", self.dim, 1, MAX_DIM))
        object.__setattr__(self, "c", check_number("c", self.c, 1e-8, 1e3, hint="c is sensitivity / lambda."))
        object.__setattr__(self, "shape", check_scale("shape", self.shape))

    @cached_property
    def _separation(self) -> float:
        """C = sqrt(2k) c, the shift in the variable z."""
        return math.sqrt(2 * self.shape) * self.c

    @property
    def _check(self) -> float:
        return CHECK if self._separation < FAR_APART else 10 * CHECK

    @property
    def precision(self) -> Precision:
        """That to which two routes to delta must agree before a number is returned."""
        return Precision(relative=self._check, absolute=1e-320)

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
            edges = [top * (1 - 0.5 ** (j / 2)) for j in range(61)]
            if top > 4 * shift:  # shapes just above d/2: most of the loss is far below its largest value
                near = [shift * x for x in (0.0, 0.25, 0.5, 0.75, 1.0, 1.125, 1.25, 1.5, 1.875, 2.25)]
                while near[-1] < 0.3 * top:
                    near.append(1.5 * near[-1])
                edges = near + [x for x in edges if x > 1.2 * near[-1]]
            # where the region's boundary passes through the centre of Q, alpha is not smooth
            centre = axis_of(self.dim, self.shape, shift).at_centre
            if 1e-3 * top < centre < 0.99 * top:
                graded = [centre * (1 + side * 0.25**j) for j in range(1, 6) for side in (-1, 1)]
                near = sorted([centre, *(x for x in graded if x < 0.99 * top)])
                after = near[-1] + 0.1 * (top - near[-1])
                edges = sorted(near + [x for x in edges if not 0.9 * near[0] < x < after])
        else:
            # the region reaches to infinity for t < C: alpha has all derivatives there but is not analytic
            edges = [shift * x for x in (0.0, 0.25, 0.5, 0.75, 1.0, 1.125, 1.25, 1.5, 1.875, 2.25)]
            # for d = 2k the tail falls like exp(-e^t): short intervals keep each one cheap
            longest = 0.3 if law.order > -0.25 else math.inf
            while edges[-1] < min(1e7, self._far) and len(edges) < 400:
                edges.append(min(edges[-1] + min(0.5 * edges[-1], longest), max(self._far, edges[-1] + 0.1 * shift)))
        return Panels(
            lambda t: self._sample(t, edges),
            edges,
            top,
            log_delta_exact=self._log_difference,
            verify=self._verify,
        )

    @cached_property
    def _far(self) -> float:
        """Where the region is a ball about Q's centre of radius e^-350 C: from here on tails are pure powers."""
        law = radial_law(self.dim, self.shape)
        return 350.0 * (self.dim - 2 * self.shape) if law.order < -0.25 else math.inf

    @cached_property
    def _kappa(self) -> float:
        """Far out delta falls like e^(-kappa t) and P[L > t] like e^(-(1 + kappa) t)."""
        return 2 * self.shape / (self.dim - 2 * self.shape) if math.isfinite(self._far) else 0.0

    def _sample(self, t: Floats, edges: list[float]) -> Floats:
        """Log P[L > t], and on the way both tails at the edges around."""
        first = max(int(np.searchsorted(edges, t[0], side="right")) - 1, 0)
        last = int(np.searchsorted(edges, t[-1]))
        ends = [x for x in edges[first : last + 1] if x not in self._known_tails and not self._touchy(x)]
        every = np.union1d(t, ends)
        at = np.array(ends)
        log_alpha, log_exceed = loss_tails(radial_law(self.dim, self.shape), self._separation, every, at)
        pairs = zip(log_alpha[np.searchsorted(every, at)].tolist(), log_exceed.tolist(), strict=True)
        self._known_tails.update(zip(ends, pairs, strict=True))
        return log_alpha[np.searchsorted(every, t)]

    @cached_property
    def _known_tails(self) -> dict[float, tuple[float, float]]:
        return {}

    def _tails_at(self, t: float, *more: float) -> tuple[float, float]:
        """Log P[L > t] and log Q[L > t] at one t >= 0, by two integrals; `more` will be needed soon."""
        known = self._known_tails
        if t not in known:
            new = np.array(sorted({t, *more} - known.keys()))
            new = new[new < self.max_loss]
            pairs = loss_tails(radial_law(self.dim, self.shape), self._separation, new, new)
            known.update(zip(new.tolist(), zip(*(v.tolist() for v in pairs), strict=True), strict=True))
        return known[t]

    def _touchy(self, t: float) -> bool:
        """Whether the tails depend on the last digits of t: at the largest loss, and at the loss at Q's centre."""
        centre = axis_of(self.dim, self.shape, self._separation).at_centre
        return self.max_loss - t < 1e-3 * t or abs(t - centre) < 1e-4 * t

    def _log_difference(self, t: float, *more: float) -> float:
        """Log of delta(t) = Q[L > t] - e^t P[L > t], or nan where that cancels."""
        if t >= self.max_loss:
            return -math.inf
        if self._touchy(t):
            return math.nan
        log_alpha, log_exceed = self._tails_at(t)
        share = -math.expm1(min(t + log_alpha - log_exceed, 0.0))
        if share > RESOLVED:
            return min(log_exceed + math.log(share), 0.0)
        return t + log_alpha - math.log(self._kappa) if t >= self._far else math.nan

    def _verify(self, t: float, log_delta: float) -> None:
        """Compare delta, an integral of e^t P[L > t] over t, with the difference of two tails.

        Not where both depend on the last digits of t, close to the largest loss, or on what is below 1e-300.
        """
        if self._touchy(t) or log_delta < -700.0:
            return
        log_alpha, log_exceed = self._tails_at(t)
        error = abs(1 - math.exp(t + log_alpha - log_exceed) - math.exp(log_delta - log_exceed))
        # far out both routes carry the rounding of t and of logarithms of its size
        if not error < self._check + 1e-15 * t:
            raise ArithmeticError(
                f"the integrals for dim={self.dim}, c={self.c!r}, shape={self.shape!r} miss their own check at "
                f"{t!r} by {error:.1e}, more than {self._check:.0e}; no number is better than a wrong one. Please "
                "report it, and use symmetric_laplace_limit, which is a lower bound for every dimension."
            )

    @cached_property
    def _points(self) -> dict[float, float]:
        """Log delta at the first few thresholds that were asked for, before there are panels."""
        return {}

    def _at_few(self, t: Floats) -> Floats | None:
        """Log delta at few thresholds t >= 0 without panels; None where there are too many or it cancels."""
        known = self._points
        new = [x for x in dict.fromkeys(t.ravel().tolist()) if x not in known]
        if new and ("_panels" in self.__dict__ or len(known) + len(new) > FEW):
            return None
        for x in new:
            value = self._checked_difference(x)
            if math.isnan(value):
                return None
            known[x] = value
        return np.array([known[x] for x in t.ravel().tolist()]).reshape(t.shape)

    def _checked_difference(self, t: float) -> float:
        """Log delta(t), compared with the integral of e^t P[L > t] over an interval above t; nan if they differ."""
        top = self.max_loss
        if t >= top:
            return -math.inf
        x, weight = _gauss()
        h = min(0.25 * max(t, 0.25 * self._separation), 0.25 * (top - t))
        for _ in range(2):
            at = np.concatenate([[t], t + h * (1 + x) / 2, [t + h]])
            ends = at[[0, -1]]
            log_alpha, log_exceed = loss_tails(radial_law(self.dim, self.shape), self._separation, at, ends)
            self._known_tails.update(zip(ends.tolist(), zip(log_alpha[[0, -1]], log_exceed, strict=True), strict=True))
            value = self._log_difference(t)
            if not math.isfinite(value):
                break
            mass = np.exp(at + log_alpha - value)  # its first entry is -d log delta / dt
            if mass[0] * h < 1.5:
                left = math.exp(log_exceed[1] - value) - float(mass[-1])
                fallen = float(mass[1:-1] @ weight) * h / 2
                return value if abs(1 - left - fallen) < self._check / RESOLVED else math.nan
            h = 0.7 / float(mass[0])
        return math.nan

    def _error_rates(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        t = np.abs(log_ratio)
        low, high = self._tails(t)
        high = 1.0 - high  # beta at |t|
        below = log_ratio < 0
        return np.where(below, high, low), np.where(below, low, high)

    def _tails(self, t: Floats) -> tuple[Floats, Floats]:
        """P[L > t] and Q[L > t] for t >= 0."""
        near = np.minimum(t, self._far)
        log_alpha, log_delta = self._panels.read(near)
        if np.any(t > near):
            log_alpha, log_delta = (
                log - rate * (t - near) for log, rate in ((log_alpha, 1 + self._kappa), (log_delta, self._kappa))
            )
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.where(np.isfinite(log_alpha), np.exp(t + log_alpha), 0.0)
        return np.exp(log_alpha), np.minimum(np.exp(log_delta) + scaled, 1.0)

    def _log_delta(self, epsilon: Floats) -> Floats:
        e = np.abs(epsilon)
        near = np.minimum(e, self._far)
        value = self._at_few(near) if e.size <= FEW else None
        if value is None:
            value = self._panels.read(near)[1]
        if np.any(e > near):
            value = value - self._kappa * (e - near)
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
                # just inside the last panel, so that the next interval is not made
                t = np.concatenate([np.linspace(panel.low, panel.high, 32) for panel in panels])
                t[-1] -= 1e-12 * (t[-1] - t[-2])
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
