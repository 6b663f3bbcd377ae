"""Profiles of sums of many privacy losses: tilted FFT between certified bounds.

The loss of a composition is the sum of independent losses under Q. With every loss on one lattice, its law is a
convolution. It is taken of the tilted masses ``v = q e^(-theta l) / M(theta)``; with w the tilted law of the sum

    delta(eps) = disclosed + M e^(theta eps) sum_(l > eps) w(l) e^(theta (l - eps)) (1 - e^(eps - l))
    1 - delta(eps) = M e^(theta eps) sum_l w(l) e^(theta (l - eps)) min(1, e^(eps - l)) + left out

so rounding errors are relative to the Chernoff bound ``M e^(theta eps)`` and not to one. theta <= 0 (the first
form) is chosen from a ladder by the smallest bound, which is the saddle point: delta keeps its relative accuracy
down to 1e-300. Where a loss has a polynomial tail, theta in (0, 1/2] (the second form) makes all tails
exponential, so that no tail is cut within reach of eps.

What is certified: losses rounded to either side (lattice.py); mass that wraps around, by Chernoff's bound; and
the rounding of the transforms, by ``|error| <= 4 u log2(N)`` per value of a transform of unit mass (every output
is a sum along log2 N additions), carried through the product by Parseval's equation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.base import TradeOffCurve
from privfit.accounting.lattice import Atoms, rounded

__all__ = ["Table", "Window"]

Floats = NDArray[np.float64]
UNIT = 2.0**-53


@dataclass(frozen=True)
class Window:
    """Where and how a sum of losses is computed.

    Parameters
    ----------
    h : float
        Step of the lattice.
    theta : float
        Tilt.
    low, high : float
        Range of the sum that is kept.
    reach : tuple of (float, float)
        How far the lattice of every part goes above and below zero.
    slope_low, slope_high : float
        Tilts at which Chernoff's bound of the mass outside is taken.
    """

    h: float
    theta: float
    low: float
    high: float
    reach: tuple[tuple[float, float], ...]
    slope_low: float
    slope_high: float


class Table:
    """delta at the lattice points of a window, from above and from below.

    Parameters
    ----------
    parts : sequence of TradeOffCurve
    counts : sequence of int
        How often every part occurs.
    window : Window

    Examples
    --------
    >>> from privfit.accounting.laplace import laplace
    >>> table = Table([laplace(1.0)], [2], Window(1e-3, 0.0, -2.0, 2.0, ((1.0, 1.0),), 1.0, 1.0))
    >>> [round(float(table.read(np.array([0.5]), side)[0][0]), 5) for side in ("lower", "upper")]
    [0.35049, 0.3505]
    """

    def __init__(self, parts: tuple[TradeOffCurve, ...], counts: tuple[int, ...], window: Window) -> None:
        self.parts, self.counts, self.window = parts, counts, window
        self.first = math.floor(window.low / window.h)
        self.size = math.ceil(window.high / window.h) - self.first + 1
        self._rates: dict[tuple[str, bool], tuple[Floats, Floats, Floats]] = {}

    @cached_property
    def upper(self) -> Floats:
        """Pessimistic values at the lattice points, shape (size,)."""
        value, error = self._values(pessimistic=True)
        return np.minimum.accumulate(np.minimum(value + error, 1.0))

    @cached_property
    def lower(self) -> Floats:
        """Optimistic values at the lattice points, shape (size,)."""
        value, error = self._values(pessimistic=False)
        return np.maximum.accumulate(np.clip(value - error, 0.0, 1.0)[::-1])[::-1]

    @cached_property
    def estimate(self) -> Floats:
        """Middle of the two, shape (size,)."""
        return 0.5 * (self.lower + self.upper)

    def read(self, epsilon: Floats, side: str) -> tuple[Floats, Floats]:
        """(delta, e^eps alpha) of the polyline in e^eps; constant outside the window."""
        y = getattr(self, side)
        h = self.window.h
        position = epsilon / h - self.first
        cell = np.clip(np.floor(position), 0, self.size - 2).astype(np.intp)
        gap = np.clip(position - cell, 0.0, 1.0) * h
        scaled = (y[cell] - y[cell + 1]) / math.expm1(h)
        inside = (position >= 0) & (position <= self.size - 1)
        return y[cell] - scaled * np.expm1(gap), np.where(inside, scaled * np.exp(gap), 0.0)

    def supporting(self, level: Floats, side: str, mirrored: bool) -> tuple[Floats, Floats]:
        """Vertices t >= 0 of the polyline whose lines bound the curve at `level`, and their heights there.

        The curve is ``sup_t 1 - delta(t) - e^t alpha``, or for thresholds below zero (mirrored) the supremum of
        ``e^-t (1 - delta_rev(t) - alpha)``. Every line bounds it from below. Its bound from above is the supremum
        for the optimistic polyline, attained in a vertex of its convex minorant, or outside the window.
        """
        if (side, mirrored) not in self._rates:
            self._rates[side, mirrored] = self._vertices(side, mirrored)
        points, y, rates = self._rates[side, mirrored]
        vertex = np.searchsorted(rates, level if mirrored else -level)
        t, hidden = points[vertex], 1.0 - y[vertex]
        with np.errstate(over="ignore", under="ignore"):
            height = np.exp(-t) * (hidden - level) if mirrored else hidden - np.exp(t + np.log(level))
            if side == "lower":
                end = points[-1]
                beyond = np.exp(-end) * (1.0 - level) if mirrored else 1.0 - np.exp(end + np.log(level))
                height = np.maximum(height, beyond)
                if self.first > 0:
                    height = np.maximum(height, 1.0 - y[0] - level)
        return t, height

    def _vertices(self, side: str, mirrored: bool) -> tuple[Floats, Floats, Floats]:
        """Vertices of the convex minorant over eps >= 0, values there, and the increasing key of its cells."""
        begin = max(0, -self.first)
        y: Floats = getattr(self, side)[begin:]
        points: Floats = self.window.h * (self.first + begin + np.arange(len(y), dtype=np.float64))
        steep = (y[:-1] - y[1:]) / math.expm1(self.window.h)
        with np.errstate(under="ignore"):
            alpha = steep * np.exp(-points[:-1])
        if side == "lower" and np.any(alpha[1:] > alpha[:-1]):
            points, y = _minorant(points, y, alpha)
            steep = (y[:-1] - y[1:]) / np.expm1(np.diff(points))
            alpha = steep * np.exp(-points[:-1])
        rates = 1.0 - y[:-1] - steep if mirrored else -alpha
        return points, y, np.maximum.accumulate(rates)

    def _values(self, pessimistic: bool) -> tuple[Floats, Floats]:
        """Delta at the lattice points, and the bound of its numerical error."""
        atoms = [
            rounded(part, self.window.h, *reach, pessimistic)
            for part, reach in zip(self.parts, self.window.reach, strict=True)
        ]
        disclosed = -math.expm1(_log_kept(self.counts, [a.disclosed for a in atoms]))
        if not all(a.q.any() for a in atoms):  # a part whose laws are too far apart to meet within reach
            return np.full(self.size, disclosed if pessimistic else 0.0), np.full(self.size, 4 * UNIT)
        law, mass, noise = self._convolve(atoms)
        h, theta = self.window.h, self.window.theta
        points = h * (self.first + np.arange(self.size))
        bound = np.exp(np.minimum(theta * points + mass, 700.0))  # Chernoff's
        above = _decayed_sum(law, math.exp((theta - 1) * h))  # e^eps alpha(eps), in units of the bound
        rounding = 4 * UNIT * self.size  # relative, of sums of `size` positive terms
        if theta <= 0:
            value = bound * _scan(math.expm1(h) * above, math.exp(theta * h))
            weight = min(1 / -math.expm1(2 * theta * h), self.size) if theta < 0 else self.size
            error, value = rounding * np.abs(value), disclosed + value
        else:
            left_out = 0.0 if pessimistic else -math.expm1(_log_kept(self.counts, [a.left_out for a in atoms]))
            below = _decayed_sum(law[::-1], math.exp(-theta * h))[::-1] + law
            hidden = bound * (below + above)
            weight = 1 / -math.expm1(-2 * theta * h) + 1 / -math.expm1(2 * (theta - 1) * h)
            error, value = rounding * np.abs(hidden) + 2 * UNIT, 1.0 - left_out - hidden
        return value, error + bound * (noise * math.sqrt(weight) + self._outside(atoms, mass))

    def _convolve(self, atoms: list[Atoms]) -> tuple[Floats, float, float]:
        """Tilted law of the sum in the window, log of its normaliser, and the error's Euclidean norm."""
        length = _fast_length(self.size)
        error = 4 * UNIT * math.log2(length)
        product = np.ones(length // 2 + 1, dtype=complex)
        size = np.ones(length // 2 + 1)
        growth = np.zeros(length // 2 + 1)  # first-order error of the product, in units of `error`
        mass = 0.0
        for part, count in zip(atoms, self.counts, strict=True):
            v, log_mass = _tilted(part, self.window.h, self.window.theta)
            mass += count * log_mass
            index = (part.first + np.arange(len(v))) % length
            transform = np.fft.rfft(np.bincount(index, v, minlength=length))
            with np.errstate(divide="ignore", under="ignore"):
                radius = np.minimum(np.abs(transform), 1.0)
                power, less = radius**count, radius ** (count - 1)
                turn = np.exp(1j * count * np.angle(transform))
            growth = growth * power + size * count * less
            size *= power
            product *= power * turn
        law = np.fft.irfft(product, length)
        # the lattice point `first` comes first
        law = np.roll(law, -self.first)[: self.size]
        # Parseval: norms of the two halves of the spectrum; the inverse transform adds its own error
        spectrum = math.sqrt(2 * float(growth @ growth) / length)
        noise = error * (spectrum + math.sqrt(2 * float(size @ size) / length))
        return law, mass, noise

    def _outside(self, atoms: list[Atoms], mass: float) -> float:
        """Chernoff's bound of the tilted mass that the window does not hold."""
        window, total = self.window, 0.0
        for slope, distance in ((window.slope_high, -window.high), (-window.slope_low, window.low)):
            support = sum(
                c * (a.first + (len(a.q) - 1 if slope > 0 else 0)) for a, c in zip(atoms, self.counts, strict=True)
            )
            last = self.first + self.size - 1
            if (support <= last) if slope > 0 else (support >= self.first):
                continue
            moved = sum(
                c * _tilted(a, window.h, window.theta - slope)[1] for a, c in zip(atoms, self.counts, strict=True)
            )
            total += math.exp(min(moved - mass + abs(slope) * distance, 0.0))
        return total


def _fast_length(size: int) -> int:
    """Smallest even number without prime factors above 5 that is at least `size`."""
    best = 2 ** math.ceil(math.log2(max(size, 2)))
    for odd in (3, 5, 9, 15, 25, 27, 45, 75, 81, 125, 135, 225):
        best = min(best, odd * 2 ** max(1, math.ceil(math.log2(size / odd))))
    return best


def _tilted(atoms: Atoms, h: float, theta: float) -> tuple[Floats, float]:
    """Masses times e^(-theta l), scaled to sum one, and the log of their sum."""
    exponent = -theta * h * (atoms.first + np.arange(len(atoms.q)))
    with np.errstate(divide="ignore", under="ignore"):
        log_mass = np.log(atoms.q) + exponent
        peak = float(log_mass.max())
        v = np.exp(log_mass - peak)
    total = float(v.sum())
    return v / total, peak + math.log(total)


def _log_kept(counts: tuple[int, ...], shares: list[float]) -> float:
    """Log of the probability that none of the shares is hit."""
    return sum(n * math.log1p(-min(s, 1 - UNIT)) for n, s in zip(counts, shares, strict=True))


def _minorant(points: Floats, y: Floats, alpha: Floats) -> tuple[Floats, Floats]:
    """Vertices of the greatest convex minorant, in e^eps, of a polyline with slopes -alpha."""
    from scipy.optimize import isotonic_regression

    # widths of the cells up to a common factor; pools are local, so far cells may underflow
    log_width = points[:-1] - points[-2]
    blocks = isotonic_regression(alpha, weights=np.exp(np.maximum(log_width, -700.0)), increasing=False).blocks
    return points[blocks], y[blocks]


def _scan(x: Floats, ratio: float) -> Floats:
    """s_j = x_j + ratio s_(j+1), from the end: sums of doubling length, of positive terms throughout."""
    if ratio == 1.0:
        return np.cumsum(x[::-1])[::-1]
    total, span, power = x.copy(), 1, ratio
    while span < len(x) and power > 1e-300:
        total[:-span] += power * total[span:]
        span, power = 2 * span, power * power
    return total


def _decayed_sum(x: Floats, ratio: float) -> Floats:
    """Sum over i > j of x_i ratio^(i - j)."""
    total = ratio * _scan(x, ratio)
    return np.append(total[1:], 0.0)
