"""Chebyshev panels for log alpha(t) and log delta(t), built lazily from exact values of log alpha.

Every panel holds 17 Chebyshev coefficients. A panel is split until its last coefficients are below the
tolerance and ``t + log alpha`` changes by at most 30 on it, so that Gauss-Legendre sums of
``e^t alpha(t)`` are accurate to rounding. delta at a point is the integral to the end of its panel plus
delta at the end of the interval: where that is known directly it is taken, otherwise it is the sum of the panels
above, which are made only as far as they still matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["Panels"]

Floats = NDArray[np.float64]
NODES = 17
TOLERANCE = 3e-13
MAX_CHANGE = 30.0
MAX_DEPTH = 12
# rounding noise is believed the more readily the oftener a panel has been split
NOISE = (1e-10, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6)
DEAD = -800.0  # log of e^t alpha below which delta is reported as zero: so delta = 1e-300 keeps its digits

AHEAD = 4  # intervals sampled in one call

_ANGLES = np.pi * (np.arange(NODES)[::-1] + 0.5) / NODES  # increasing points
_POINTS = np.cos(_ANGLES)
_TRANSFORM = np.cos(np.outer(np.arange(NODES), _ANGLES)) * (2.0 / NODES)
_TRANSFORM[0] *= 0.5
_GAUSS_X, _GAUSS_W = np.polynomial.legendre.leggauss(24)


def _nodes(low: float, high: float) -> Floats:
    return low + (high - low) * 0.5 * (1 + _POINTS)


def _clenshaw(coefficients: Floats, x: Floats) -> Floats:
    """Chebyshev sum at an array of points."""
    twice = 2 * x
    b1 = b2 = np.zeros_like(x)
    for c in coefficients[:0:-1].tolist():
        b1, b2 = twice * b1 - b2 + c, b1
    return float(coefficients[0]) + x * b1 - b2


@dataclass
class _Panel:
    low: float
    high: float
    alpha: Floats  # coefficients of log alpha
    log_integral: float
    delta: Floats | None = None  # coefficients of log delta


@dataclass
class Panels:
    """Values of log alpha and log delta between the given edges.

    Parameters
    ----------
    log_alpha : callable
        Exact values for an increasing array of thresholds t >= 0.
    edges : sequence of float
        Increasing, starting at 0.
    end : float
        Largest loss: alpha vanishes above it. Between the last edge and a finite end, alpha and delta are
        replaced by upper bounds.
    log_delta_exact : callable, optional
        Log delta at one threshold by another route, or nan where that is not accurate.
    verify : callable, optional
        Called with the lower edge of every interval that is read and log delta there; raises if it is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> panels = Panels(lambda t: -2 * t, [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0], np.inf)
    >>> bool(np.allclose(panels.read(np.array([0.5, 3.0]))[1], [-0.5, -3.0], rtol=1e-12))
    True
    """

    log_alpha_exact: Callable[[Floats], Floats]
    edges: list[float]
    end: float
    log_delta_exact: Callable[[float], float] = lambda t: math.nan
    verify: Callable[[float, float], None] = lambda t, log_delta: None
    _built: dict[int, list[_Panel]] = field(default_factory=dict)
    _samples: dict[int, Floats] = field(default_factory=dict)

    # --- building -------------------------------------------------------------------------------------

    def _panels(self, i: int) -> list[_Panel]:
        """Panels of the i-th interval between edges; empty where nothing is left to integrate."""
        if i not in self._built:
            if i not in self._samples:
                self._sample_ahead(i)
            self._built[i] = self._split(self.edges[i], self.edges[i + 1], self._samples.pop(i), 0)
        return self._built[i]

    def _sample_ahead(self, i: int) -> None:
        """Exact values on several intervals in one call: the integral above needs the next ones too."""
        ahead = [n for n in range(i, min(i + AHEAD, len(self.edges) - 1)) if n not in self._built]
        t = np.concatenate([_nodes(self.edges[n], self.edges[n + 1]) for n in ahead])
        values = self.log_alpha_exact(t).reshape(len(ahead), NODES)
        self._samples.update(zip(ahead, values, strict=True))

    def _split(self, low: float, high: float, values: Floats, depth: int) -> list[_Panel]:
        t = _nodes(low, high)
        scaled = t + values
        # at t = 0 alpha never vanishes: an interval that begins there is split until it shows
        begins = low == 0.0 and depth < MAX_DEPTH
        if not begins and (not np.isfinite(values[0]) or (scaled[0] < DEAD and scaled[-1] <= scaled[0])):
            return []
        alive = bool(np.all(np.isfinite(values)))
        if not alive and depth == MAX_DEPTH:
            return []
        coefficients = _TRANSFORM @ np.where(np.isfinite(values), values, -1e4)
        tail = np.abs(coefficients[-3:]).max()
        scale = 1.0 + 1e-3 * np.abs(values[np.isfinite(values)]).max(initial=0.0)
        change = np.ptp(scaled)
        # a small tail that neither decays nor falls when split is rounding noise of the values
        believed = NOISE[min(depth, len(NOISE) - 1)]
        noise = tail < believed and tail > 0.2 * np.abs(coefficients[-8:-3]).max()
        # close to a finite end the distance end - t itself carries a relative error
        near_end = 2e-15 * high / (self.end - high)
        resolved = tail < TOLERANCE * scale + near_end or noise
        # there splitting meets the rounding of t and not the function
        deepest = 2 if self.end - high < 1e-4 * high else MAX_DEPTH
        if depth < deepest and not (alive and resolved and change < MAX_CHANGE):
            middle = 0.5 * (low + high)
            sampled = self.log_alpha_exact(np.concatenate([_nodes(low, middle), _nodes(middle, high)]))
            left = self._split(low, middle, sampled[:NODES], depth + 1)
            right = self._split(middle, high, sampled[NODES:], depth + 1)
            return left + right
        return [_Panel(low, high, coefficients, _log_integral(coefficients, low, high, np.array([low]))[0])]

    def _log_tail(self, i: int, j: int) -> float:
        """Log of the integral of e^t alpha(t) over everything above panel j of interval i."""
        total, small = -math.inf, 0
        reference = self._panels(i)[j].log_integral
        for n in range(i, len(self.edges) - 1):
            for panel in self._panels(n)[j + 1 if n == i else 0 :]:
                total = float(np.logaddexp(total, panel.log_integral))
                small = small + 1 if panel.log_integral < max(total, reference) - 38.0 else 0
                if small == 3:
                    return total
            if not self._panels(n) or self._panels(n)[-1].high < self.edges[n + 1]:
                return total
            direct = self.log_delta_exact(self.edges[n + 1])
            if not math.isnan(direct):
                return float(np.logaddexp(total, direct))
        if math.isfinite(self.end):
            edge = np.array([np.nextafter(self.edges[-1], self.end)])
            total = float(np.logaddexp(total, self._bounds_near_end(edge)[1][0]))
        return total

    def _with_delta(self, i: int) -> list[_Panel]:
        panels = self._panels(i)
        for j, panel in enumerate(panels):
            if panel.delta is None:
                t = _nodes(panel.low, panel.high)
                inside = _log_integral(panel.alpha, panel.low, panel.high, t)
                panel.delta = _TRANSFORM @ np.logaddexp(inside, self._log_tail(i, j))
                if j == 0:
                    self.verify(panel.low, float(_clenshaw(panel.delta, -np.ones(1))[0]))
        return panels

    # --- reading --------------------------------------------------------------------------------------

    def covering(self, low: float, high: float) -> list[_Panel]:
        """All panels with delta that meet [low, high], in order."""
        first = max(0, int(np.searchsorted(self.edges, low, side="right")) - 1)
        last = min(len(self.edges) - 2, int(np.searchsorted(self.edges, high, side="right")) - 1)
        found: list[_Panel] = []
        for i in range(first, last + 1):
            found += [p for p in self._with_delta(i) if p.high >= low and p.low <= high]
        return found

    def _bounds_near_end(self, t: Floats) -> tuple[Floats, Floats]:
        """Alpha is at most its value at the last edge, so delta(t) <= (end - t) e^end alpha."""
        panels = self._panels(len(self.edges) - 2)
        if not panels or panels[-1].high < self.edges[-1]:
            return np.full(t.shape, -np.inf), np.full(t.shape, -np.inf)
        last = float(_clenshaw(panels[-1].alpha, np.ones(1))[0])
        return np.full(t.shape, last), last + self.end + np.log(self.end - t)

    def read(self, t: Floats) -> tuple[Floats, Floats]:
        """(log alpha, log delta) at thresholds t >= 0; -inf beyond the last panel.

        Panels are looked up interval by interval, so a few far-apart points stay cheap.
        """
        flat = t.ravel()
        log_alpha, log_delta = np.full(flat.shape, -np.inf), np.full(flat.shape, -np.inf)
        interval = np.clip(np.searchsorted(self.edges, flat, side="right") - 1, 0, len(self.edges) - 2)
        alive = flat <= self.edges[-1]
        for i in np.unique(interval[alive]):
            panels = self._with_delta(int(i))
            here = np.flatnonzero(alive & (interval == i))
            panel_of = np.searchsorted([p.low for p in panels], flat[here], side="right") - 1
            for j, panel in enumerate(panels):
                these = here[panel_of == j]
                these = these[flat[these] <= panel.high]
                if len(these):
                    x = np.clip(2 * (flat[these] - panel.low) / (panel.high - panel.low) - 1, -1.0, 1.0)
                    log_alpha[these] = _clenshaw(panel.alpha, x)
                    log_delta[these] = _clenshaw(panel.delta, x)  # type: ignore[arg-type]
        beyond = ~alive & (flat < self.end)
        if math.isfinite(self.end) and beyond.any():
            log_alpha[beyond], log_delta[beyond] = self._bounds_near_end(flat[beyond])
        return log_alpha.reshape(t.shape), log_delta.reshape(t.shape)


def _log_integral(coefficients: Floats, low: float, high: float, start: Floats) -> Floats:
    """Log of int_start^high e^t alpha(t) dt inside one panel, for an array of starting points."""
    t = start[:, None] + (high - start)[:, None] * 0.5 * (1 + _GAUSS_X)
    x = 2 * (t - low) / (high - low) - 1
    value = t + _clenshaw(coefficients, x)
    peak = value.max(axis=1)
    with np.errstate(divide="ignore"):
        return peak + np.log((np.exp(value - peak[:, None]) @ (_GAUSS_W / 2)) * (high - start))
