"""The axis through the centres of P and Q, where the region L > t begins and ends.

On the axis the loss depends on the distance from one centre alone, ``F(distance to Q) - F(distance to P)``; it is
monotone from the middle to the centre of Q, and monotone behind it (falling, or rising for shapes >= (d+1)/2).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.radial import RadialLaw, radial_law

__all__ = ["Axis", "axis_of"]

Floats = NDArray[np.float64]


class Axis:
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
        here, there = law.jet(other), law.jet(x)
        derivative = -there[1] + here[1] * (side * a / (shift + side * a))
        ratio = shift / a if side > 0 else np.maximum(shift - 2 * a, 0.0) / a  # other distance over a, less one
        return law.drop(other, -np.log1p(ratio), here, there), derivative

    def _grid(self, side: float) -> tuple[Floats, Floats]:
        if side not in self._grids:
            last = math.log(self.shift / 2) if side < 0 else 9.0
            middle = min(0.0, last) - 12.0
            far = [] if side < 0 else [np.array([12.0, 16.0, 22.0, 30.0, 40.0])]
            x = np.concatenate([np.linspace(-650.0, middle, 40)[:-1], np.linspace(middle, last, 100), *far])
            self._grids[side] = x, self._loss(x, side)[0]
        return self._grids[side]

    def _distance(self, t: Floats, side: float) -> Floats:
        """The distance with loss t: bracketed by the grid, then Newton steps kept inside the bracket."""
        sign = -1.0 if side > 0 and self.rising else 1.0
        grid, loss = self._grid(side)
        heights = np.minimum.accumulate(sign * loss)
        i = np.clip(np.searchsorted(-heights, -sign * t) - 1, 0, len(grid) - 2)
        low, high = grid[i], grid[i + 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (t - loss[i]) / (loss[i + 1] - loss[i])
        x = np.where((share >= 0) & (share <= 1), low + share * (high - low), 0.5 * (low + high))
        for _ in range(60):
            value, derivative = self._loss(x, side)
            rest = value - t
            above = sign * rest > 0
            low, high = np.where(above, x, low), np.where(above, high, x)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                newton = x - rest / derivative
            moved = np.where((newton >= low) & (newton <= high), newton, 0.5 * (low + high))
            done = np.abs(moved - x) <= 1e-8  # the next error is its square
            x = moved
            if np.all(done):
                break
        return np.exp(x)


@lru_cache(maxsize=32)
def axis_of(dim: int, shape: float, shift: float) -> Axis:
    """The axis for one law and one shift ``C = sqrt(2k) c``.

    Examples
    --------
    >>> entry, length = axis_of(2, 1.0, 1.0).crossings(np.array([0.0]))     # L = 0 half-way between the centres
    >>> entry.tolist(), length.tolist()
    ([0.5], [inf])
    """
    return Axis(radial_law(dim, shape), shift)
