"""Where to compute the profile of a composition: tilts, windows and lattice steps.

Planning uses a coarse version of every loss (its envelope at some hundred points) and its cumulant function
``K(theta) = log E_Q e^(-theta L)``, summed over the parts. Nothing here needs to be exact: a table certifies
its own numbers, and a poor plan costs width, not truth.

light tails        rungs theta_0 = 0 > theta_1 > ...; each moves the tilted mean by five standard deviations
polynomial tails   a loss is met with probability e^-46 only far away: theta in (0, 1/2], one rung for every
                   factor of four in eps, and lattices that reach 46/theta beyond it
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.base import TradeOffCurve
from privfit.accounting.convolution import Table, Window
from privfit.accounting.lattice import STEEP, aligned, side_masses

__all__ = ["Ladder"]

Floats = NDArray[np.float64]
Reach = tuple[tuple[float, float], ...]
NEGLIGIBLE = 46.0  # -log of the mass that may be lost, 1e-20
DEEP = -695.0  # log of the smallest profile that is followed
TOLERANCE = 4e-7  # aim for the width of the interval of eps
LARGEST = 2**21  # points of a lattice
RUNGS = 100
FINEST = 1e-5


@dataclass(frozen=True)
class _Sketch:
    """Coarse profile of one part above zero: delta less its limit at a few hundred points."""

    points: Floats
    log_rest: Floats
    q: Floats
    light: bool

    def reach(self, log_mass: float) -> float:
        """Loss above which the profile has fallen to e^log_mass."""
        low = np.flatnonzero(self.log_rest <= log_mass)
        return float(self.points[low[0]] if low.size else self.points[-1])


def _sketch(curve: TradeOffCurve) -> _Sketch:
    limit = curve.infinite_mass

    def log_rest(e: Floats) -> Floats:
        if limit == 0.0:
            return curve._log_delta(e)
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(curve._delta(e) - limit * (1 + 1e-12), 0.0))

    top = curve.max_loss
    start = float(log_rest(np.array([0.0]))[0])
    if math.isfinite(top):
        points, light = np.linspace(0.0, max(top, 1e-9), 600), True
    else:
        body = _fall(log_rest, start - 8.0, 1e-9)
        longest = 500 * max(body, 1.0)
        end = _fall(log_rest, DEEP, body, longest)
        light = end < longest
        end = end if light else STEEP
        points = np.unique(np.concatenate([np.linspace(0.0, body, 400), np.geomspace(body, end, 400)]))
    rest = log_rest(points)
    y = np.exp(np.minimum.accumulate(rest)) + limit
    masses, _ = side_masses(np.diff(points), y)
    return _Sketch(points, rest, masses, light)


def _fall(log_rest: Callable[[Floats], Floats], level: float, first: float, longest: float = 1e9) -> float:
    """A loss beyond which the profile lies below e^level, found by doubling, or the longest."""
    e = first
    while e < longest and float(log_rest(np.array([e]))[0]) > level:
        e *= 2.0
    return min(e, longest)


class Ladder:
    """Tables of one composition in one direction, made when they are needed.

    Parameters
    ----------
    parts : tuple of TradeOffCurve
    counts : tuple of int

    Examples
    --------
    >>> from privfit.accounting.laplace import laplace
    >>> ladder = Ladder((laplace(0.1),), (100,))
    >>> round(float(ladder.delta(np.array([1.0]), "upper")[0]), 6)
    0.121252
    """

    def __init__(self, parts: tuple[TradeOffCurve, ...], counts: tuple[int, ...]) -> None:
        self.parts, self.counts = parts, counts
        self._tables: dict[int, Table] = {}

    # --- planning -------------------------------------------------------------------------------------

    @cached_property
    def _sketches(self) -> list[tuple[_Sketch, _Sketch]]:
        """Sketch of every part and of its reversed pair."""
        found = []
        for part in self.parts:
            forward, back = _sketch(part), part.reversed()
            found.append((forward, forward if back is part else _sketch(back)))
        return found

    @cached_property
    def light(self) -> bool:
        """Whether every part's tail is lighter than a polynomial."""
        return all(a.light and b.light for a, b in self._sketches)

    @cached_property
    def _losses(self) -> list[tuple[int, Floats, Floats]]:
        """(count, losses, log masses under Q) of the coarse parts."""
        found = []
        for (forward, back), count in zip(self._sketches, self.counts, strict=True):
            below = back.q * np.exp(-np.minimum(back.points[1:], 700.0))
            rest = max(1.0 - float(forward.q.sum() + below.sum()), 1e-300)
            loss = np.concatenate([-back.points[:0:-1], [0.0], forward.points[1:]])
            q = np.concatenate([below[::-1], [rest], forward.q])
            with np.errstate(divide="ignore"):
                found.append((count, loss, np.log(q)))
        return found

    def _cumulants(self, theta: float, reach: Reach | None = None) -> tuple[float, float, float]:
        """K(theta), and mean and standard deviation of the tilted sum, of losses within reach."""
        total = mean = variance = 0.0
        for i, (count, loss, log_q) in enumerate(self._losses):
            exponent = log_q - theta * loss
            if reach is not None:
                exponent = np.where((loss <= reach[i][0]) & (loss >= -reach[i][1]), exponent, -np.inf)
            peak = float(exponent.max())
            with np.errstate(under="ignore"):
                w = np.exp(exponent - peak)
                mass = float(w.sum())
                m = float(w @ loss) / mass
                v = float(w @ (loss - m) ** 2) / mass
            total += count * (peak + math.log(mass))
            mean += count * m
            variance += count * v
        return total, mean, math.sqrt(max(variance, 1e-300))

    @cached_property
    def rungs(self) -> tuple[Floats, Floats]:
        """Tilts, and log of Chernoff's constant K of each."""
        if not self.light:
            tilts = [min(0.5, 4.0 / (8.0 * 4.0**j)) for j in range(8)]
            return np.array(tilts), np.array([self._cumulants(t)[0] for t in tilts])
        tilts, constants = [0.0], list[float]()
        for _ in range(RUNGS):
            theta = tilts[-1]
            constant, mean, deviation = self._cumulants(theta)
            if constants and deviation < FINEST * abs(mean):
                break  # so close to the largest loss that no lattice resolves the tilted law
            constants.append(constant)
            if constant + theta * mean < DEEP:
                break
            tilts.append(self._next(theta, constant, 5.0 / deviation))
        return np.array(tilts[: len(constants)]), np.array(constants)

    def _next(self, theta: float, constant: float, step: float) -> float:
        """The next tilt: where the two bounds cross, a tilt in between must not be better by more than e^4."""
        for _ in range(60):
            after, middle = self._cumulants(theta - step)[0], self._cumulants(theta - step / 2)[0]
            epsilon = (after - constant) / step
            if constant - middle + epsilon * step / 2 < 4.0:
                break
            step /= 1.5
        return theta - step

    def rung(self, epsilon: Floats) -> NDArray[np.intp]:
        """The rung whose numbers are the most accurate at every eps."""
        tilts, constants = self.rungs
        if not self.light:
            return np.clip(np.ceil(np.log(np.maximum(epsilon, 1e-9) / 8.0) / math.log(4.0)), 0, 7).astype(np.intp)
        return np.argmin(np.minimum(epsilon, 1e12)[:, None] * tilts + constants, axis=1)

    def _step(self, deviation: float, width: float, reach: Reach) -> float:
        total = sum(self.counts)
        h = min(math.sqrt(8 * TOLERANCE / (total * (1 + 4 / deviation))), deviation / 30)
        h = max(h, width / LARGEST, max(a + b for a, b in reach) / LARGEST)
        bounded = [(c, p.max_loss) for p, c in zip(self.parts, self.counts, strict=True) if 8 * h < p.max_loss <= STEEP]
        return aligned(h, max(bounded)[1]) if bounded else h

    def _window(self, n: int) -> Window:
        theta = float(self.rungs[0][n])
        if not self.light:
            constant, _, deviation = self._cumulants(theta)
            largest = 8.0 * 4.0**n
            right = largest + NEGLIGIBLE / theta
            high = max((NEGLIGIBLE - constant) / theta, right)
            low = -(NEGLIGIBLE - constant) / (1 - theta)
            right, left = min(right, STEEP), min(-low, STEEP)
            reach = tuple((min(right, p.max_loss), min(left, p.reversed().max_loss)) for p in self.parts)
            return Window(self._step(deviation, high - low, reach), theta, low, high, reach, 1 - theta, theta)
        after = min(n + 1, len(self.rungs[0]) - 1)
        constant_after, mean_after, _ = self._cumulants(float(self.rungs[0][after]))
        tail = constant_after + float(self.rungs[0][after]) * mean_after - NEGLIGIBLE - math.log(sum(self.counts))
        level = max(tail, DEEP)
        reach = tuple((min(a.reach(level), STEEP), min(b.reach(level), STEEP)) for a, b in self._sketches)
        constant, _, deviation = self._cumulants(theta, reach)
        slopes = np.array([0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 24.0]) / deviation
        highs = [(self._cumulants(theta - s, reach)[0] - constant + NEGLIGIBLE) / s for s in slopes]
        lows = [-(self._cumulants(theta + s, reach)[0] - constant + NEGLIGIBLE) / s for s in slopes]
        i, j = int(np.argmin(highs)), int(np.argmax(lows))
        width = min(highs[i], self._support(reach, 0)) - max(lows[j], -self._support(reach, 1))
        h = self._step(deviation, width, reach)
        high = min(highs[i], self._support(reach, 0) + 2 * h * sum(self.counts))
        low = max(lows[j], -self._support(reach, 1) - 2 * h * sum(self.counts))
        return Window(h, theta, low, high, reach, float(slopes[j]), float(slopes[i]))

    def _support(self, reach: Reach, end: int) -> float:
        return sum(c * r[end] for c, r in zip(self.counts, reach, strict=True))

    def table(self, n: int) -> Table:
        """The n-th table."""
        if n not in self._tables:
            self._tables[n] = Table(self.parts, self.counts, self._window(n))
        return self._tables[n]

    # --- reading --------------------------------------------------------------------------------------

    def read(self, epsilon: Floats, side: str) -> tuple[Floats, Floats]:
        """(delta, e^eps alpha) at an array of eps >= 0, on one side."""
        flat = epsilon.ravel()
        value, steep = np.empty(flat.shape), np.empty(flat.shape)
        rung = self.rung(flat)
        for n in np.unique(rung):
            here = rung == n
            value[here], steep[here] = self.table(int(n)).read(flat[here], side)
        return value.reshape(epsilon.shape), steep.reshape(epsilon.shape)

    def delta(self, epsilon: Floats, side: str) -> Floats:
        """delta(eps) for eps >= 0."""
        return self.read(epsilon, side)[0]

    def epsilon(self, delta: float, side: str) -> float:
        """Bound of the smallest eps >= 0 with delta(eps) <= delta: inf where no table reaches it."""
        tilts, constants = self.rungs
        n = 0
        if self.light and len(tilts) > 1:
            # Chernoff's bound is somewhat beyond the answer; the table says which one to ask instead
            chernoff = float(((math.log(delta) - constants[1:]) / tilts[1:]).min())
            n = int(self.rung(np.array([max(chernoff, 0.0)]))[0])
        found: dict[int, float] = {}
        while n not in found and len(found) < 8:
            found[n] = e = self._solve(self.table(n), delta, side)
            following = self._following(n, e)
            if following == n and 0.0 < e < math.inf:
                return e  # the table that answers is the one that delta(eps) reads
            n = following
        finite = [e for e in found.values() if e < math.inf]
        return max(finite, default=math.inf)

    def _following(self, n: int, epsilon: float) -> int:
        """The rung to ask next after the n-th has answered `epsilon`."""
        if 0.0 < epsilon < math.inf:
            return int(self.rung(np.array([epsilon]))[0])
        return max(n - 1, 0) if self.light else min(n + 1, len(self.rungs[0]) - 1)

    def curve(self, level: Floats, side: str, mirrored: bool) -> Floats:
        """Trade-off curve at levels in (0, 1): heights of supporting lines with slopes -e^t (-e^-t if mirrored).

        Every table bounds the curve on its side; each level goes from table to table until the touching point
        lies where the table is the most accurate.
        """
        best = np.minimum if side == "lower" else np.maximum
        value = np.full(level.shape, np.inf if side == "lower" else -np.inf)
        rung, active = np.zeros(level.shape, dtype=np.intp), np.ones(level.shape, dtype=bool)
        for _ in range(8):
            following = rung.copy()
            for n in np.unique(rung[active]):
                here = np.flatnonzero(active & (rung == n))
                t, height = self.table(int(n)).supporting(level[here], side, mirrored)
                value[here] = best(value[here], height)
                following[here] = self.rung(t)
            active &= following != rung
            rung = following
            if not active.any():
                break
        return value

    @staticmethod
    def _solve(table: Table, delta: float, side: str) -> float:
        """Where a table falls to `delta`: a bound on its side wherever the window is."""
        y, h = getattr(table, side), table.window.h
        if side == "lower":
            above = np.flatnonzero(y > delta)
            j = int(above[-1]) + 1 if above.size else 0
        else:
            below = np.flatnonzero(y <= delta)
            j = int(below[0]) if below.size else table.size
        if j == 0:
            return math.inf if side != "lower" and table.first > 0 else 0.0
        if j == table.size:
            return h * (table.first + j - 1) if side == "lower" else math.inf
        scaled = (y[j - 1] - y[j]) / math.expm1(h)
        gap = math.log1p((y[j - 1] - delta) / scaled) if scaled > 0 else h
        return max(h * (table.first + j - 1) + gap, 0.0)
