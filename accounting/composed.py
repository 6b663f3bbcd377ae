"""A composition known between bounds: distinct parts with their counts, and the tables they need.

The parts and counts are all there is to store; tables (convolution.py) are made for the eps that are asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.base import MIRROR, SIGN, Bound, Precision, TradeOffCurve
from privfit.accounting.ladder import Ladder

__all__ = ["ComposedCurve"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ComposedCurve(TradeOffCurve):
    """Several curves together, known between a lower and an upper bound (see `compose`).

    Parameters
    ----------
    parts : tuple of TradeOffCurve
        Distinct curves.
    counts : tuple of int
        How often each of them occurs.
    """

    parts: tuple[TradeOffCurve, ...]
    counts: tuple[int, ...]

    def __str__(self) -> str:
        return " + ".join(f"{n} x {p}" if n > 1 else str(p) for p, n in zip(self.parts, self.counts, strict=True))

    @cached_property
    def _ladders(self) -> tuple[Ladder, Ladder]:
        """Tables of both directions (one object for symmetric curves)."""
        forward = Ladder(self.parts, self.counts)
        back = tuple(p.reversed() for p in self.parts)
        same = all(a is b for a, b in zip(self.parts, back, strict=True))
        return forward, forward if same else Ladder(back, self.counts)

    @cached_property
    def _views(self) -> dict[Bound, _Side]:
        return {side: _Side(self, side) for side in ("lower", "upper", "estimate")}

    def _on(self, side: Bound) -> TradeOffCurve:
        return self._views[side]

    @cached_property
    def precision(self) -> Precision:
        """Largest distance of the two bounds of delta between eps = 0 and delta = 1e-12, measured there."""
        end = self.epsilon(1e-12)
        e = np.linspace(0.0, end if math.isfinite(end) else 50.0, 41)
        gap = np.asarray(self.delta(e)) - np.asarray(self.delta(e, bound="lower"))
        return Precision(relative=0.0, absolute=float(gap.max()))

    @property
    def max_loss(self) -> float:
        """Sum of the largest losses."""
        return sum(n * p.max_loss for p, n in zip(self.parts, self.counts, strict=True))

    @property
    def infinite_mass(self) -> float:
        """One minus the product of the masses that do not disclose."""
        kept = sum(n * math.log1p(-p.infinite_mass) for p, n in zip(self.parts, self.counts, strict=True))
        return -math.expm1(kept)

    def _error_rates(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        return self._on("lower")._error_rates(log_ratio)

    def _delta(self, epsilon: Floats) -> Floats:
        return self._on("lower")._delta(epsilon)

    def _curve(self, alpha: Floats) -> Floats:
        return self._on("lower")._curve(alpha)

    def _epsilon(self, delta: Floats, bound: Bound) -> Floats:
        return self._on("lower")._epsilon(delta, bound)

    def reversed(self) -> TradeOffCurve:
        """The parts reversed, each in its place."""
        if self._ladders[0] is self._ladders[1]:
            return self
        return self._turned

    @cached_property
    def _turned(self) -> ComposedCurve:
        """The reversed composition, which reads the same tables from the other end."""
        turned = ComposedCurve(tuple(p.reversed() for p in self.parts), self.counts)
        turned.__dict__.update(_ladders=self._ladders[::-1], _turned=self)
        return turned


@dataclass(frozen=True, eq=False)
class _Side(TradeOffCurve):
    """One side of a composed curve: the polyline of its tables."""

    composed: ComposedCurve
    side: Bound
    precision = Precision(relative=1e-14, absolute=1e-300)

    def _on(self, side: Bound) -> TradeOffCurve:
        return self

    @property
    def max_loss(self) -> float:
        return self.composed.max_loss

    @property
    def infinite_mass(self) -> float:
        return self.composed.infinite_mass

    def reversed(self) -> TradeOffCurve:
        back = self.composed.reversed()
        return self if back is self.composed else back._on(self.side)

    def _read(self, t: Floats, direction: int) -> tuple[Floats, Floats]:
        """(delta, e^t alpha) at t >= 0 of the pair (0) or of the reversed pair (1)."""
        pair = self if direction == 0 else self.reversed()
        delta, steep = np.full(t.shape, pair.infinite_mass), np.zeros(t.shape)
        here = t < pair.max_loss
        if here.any():
            delta[here], steep[here] = self.composed._ladders[direction].read(t[here], MIRROR[self.side])
        return delta, steep

    def _delta(self, epsilon: Floats) -> Floats:
        value = np.empty(epsilon.shape)
        below = epsilon < 0
        value[~below] = self._read(epsilon[~below], 0)[0]
        value[below] = 1.0 - np.exp(epsilon[below]) * (1.0 - self._read(-epsilon[below], 1)[0])
        return value

    def _error_rates(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        alpha, beta = np.empty(log_ratio.shape), np.empty(log_ratio.shape)
        for direction, here in enumerate((log_ratio >= 0, log_ratio < 0)):
            t = np.abs(log_ratio[here])
            delta, steep = self._read(t, direction)
            with np.errstate(under="ignore"):
                rates = steep * np.exp(-t), np.clip(1.0 - delta - steep, 0.0, 1.0)
            alpha[here], beta[here] = rates if direction == 0 else rates[::-1]
        return alpha, beta

    def _epsilon(self, delta: Floats, bound: Bound) -> Floats:
        if self.side == "estimate":
            ends = [self.composed._on(side)._epsilon(delta, bound) for side in ("lower", "upper")]
            return np.where(np.isinf(ends[0]), np.inf, 0.5 * (ends[0] + ends[1]))
        ladder, mass = self.composed._ladders[0], self.infinite_mass
        result = np.empty(delta.shape)
        for i, d in enumerate(delta.ravel()):
            # what delta(eps) adds for its own rounding is taken off here
            level = float(d - SIGN[bound] * (self.precision.relative * d + self.precision.absolute))
            if level <= mass:
                result.flat[i] = self.max_loss if d >= mass else math.inf
            else:
                result.flat[i] = min(ladder.epsilon(level, MIRROR[self.side]), self.max_loss)
        return result

    def _curve(self, alpha: Floats) -> Floats:
        """Slopes steeper than -1 from the tables of the pair, the others from those of the reversed pair."""
        if self.side == "estimate":
            return 0.5 * (self.composed._on("lower")._curve(alpha) + self.composed._on("upper")._curve(alpha))
        flat = alpha.ravel()
        value = np.where(flat == 0.0, 1.0 - self.infinite_mass, 0.0)
        inside = (flat > 0.0) & (flat < 1.0)
        steep = flat <= float(self._error_rates(np.zeros(1))[0][0])
        for direction, here in enumerate((inside & steep, inside & ~steep)):
            if here.any():
                ladder = self.composed._ladders[direction]
                value[here] = ladder.curve(flat[here], MIRROR[self.side], mirrored=direction == 1)
        return np.clip(value, 0.0, 1.0 - flat).reshape(alpha.shape)
