"""The radial law of generalised Laplace noise GL_d(I, k), in the variable z = sqrt(2k) r, u = log z.

    log density at radius r  =  F(u) + const,      F = log( z^v K_v(z) ),  v = k - d/2
    density of u             =  2^(2 - d/2 - k) / (Gamma(k) Gamma(d/2)) z^d e^F
    -F' = s = z K_{v-1}/K_v,     s' = s^2 + 2 v s - z^2,     s'' = 2 s s' + 2 v s' - 2 z^2    (Bessel's equation)

F and s are tabulated once on a uniform grid in u with their exact first and second derivatives, and read by
quintic Hermite interpolation (relative error about 1e-15); outside the grid they are evaluated directly.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.bessel import log_kv, slope

__all__ = ["RadialLaw", "radial_law"]

Floats = NDArray[np.float64]
TABLE_LOW, TABLE_CELLS, TABLE_STEP = -9.0, 1200, 1 / 64
CLOSE = 0.25
SMALLEST = -300.0  # log z below which the leading term of F is exact


class RadialLaw:
    """Functions of the radius for one (dimension, shape); build it with `radial_law`."""

    def __init__(self, dim: int, shape: float) -> None:
        self.dim, self.shape = dim, shape
        self.order = shape - dim / 2
        self.log_constant = (2 - dim / 2 - shape) * math.log(2) - math.lgamma(shape) - math.lgamma(dim / 2)
        u: Floats = TABLE_LOW + TABLE_STEP * np.arange(TABLE_CELLS + 1, dtype=np.float64)
        z = np.exp(u)
        s = slope(self.order, z)
        mirror = slope(-self.order, z)  # s + 2 v, without cancellation
        s1 = s * mirror - z * z
        s2 = s1 * (s + mirror) - 2 * z * z
        self._slope_table = _hermite_table(s, s1, s2)
        density = self._direct_log_density(u)
        self._log_table = _hermite_table(density, -s, -s1)
        self._inverse = density[::-1], u[::-1]
        x, w = np.polynomial.legendre.leggauss(5)
        self._rule = ((1 + x) / 2, w / 2)
        radial = dim * u + density
        peak = int(np.argmax(radial))
        self.mode = float(u[peak])
        self._falling = u[peak:], radial[peak:]

    def _direct_log_density(self, u: Floats) -> Floats:
        safe = np.maximum(u, SMALLEST)
        value = self.order * safe + log_kv(self.order, np.exp(safe))
        if np.any(u < SMALLEST):
            value = np.where(u < SMALLEST, value + self._below(u, safe), value)
        return value

    def _below(self, u: Floats, safe: Floats) -> Floats:
        """F(u) - F(SMALLEST) where z would underflow: linear in u, or log(-u) for order zero."""
        if self.order == 0:
            return np.log((math.log(2) - np.euler_gamma - u) / (math.log(2) - np.euler_gamma - safe))
        return 2 * max(-self.order, 0.0) * (safe - u)

    def _direct_slope(self, u: Floats) -> Floats:
        value = slope(self.order, np.exp(np.maximum(u, SMALLEST)))
        if self.order == 0:
            value = np.where(u < SMALLEST, 1 / (math.log(2) - np.euler_gamma - u), value)
        return value

    def log_density(self, u: Floats) -> Floats:
        """F(u): log of the density at radius z = e^u, up to a constant."""
        return _read(self._log_table, u, self._direct_log_density)

    def slope(self, u: Floats) -> Floats:
        """s(u) = -F'(u) > 0."""
        return _read(self._slope_table, u, self._direct_slope)

    @property
    def at_zero(self) -> float:
        """F(-inf): finite only for shape > d/2."""
        v = self.order
        return (v - 1) * math.log(2) + math.lgamma(v) if v > 0 else math.inf

    def log_radial_density(self, u: Floats) -> Floats:
        """Log of the density of u = log(sqrt(2k) |S|)."""
        return self.log_constant + self.dim * u + self.log_density(u)

    def far_end(self, u: Floats, fall: float) -> Floats:
        """Where the radial density has fallen by e^-fall from its value at u or at its mode, if that is later."""
        grid, radial = self._falling
        begin = np.maximum(u, self.mode)
        level = np.interp(begin, grid, radial) - fall
        end = np.interp(-level, -radial, grid)
        return np.where(level > radial[-1], end, np.logaddexp(begin, math.log(30.0 + fall)))

    def drop(self, u: Floats, w: Floats, base: Floats | None = None) -> Floats:
        """F(u + w) - F(u), with small relative error also when w is small; `base` is F(u) if known.

        Where the plain difference would lose more than three digits, the slope is integrated instead
        (Gauss-Legendre, 5 points on |w| < 0.25).
        """
        base = self.log_density(u) if base is None else base
        result = self.log_density(u + w) - base
        close = (np.abs(w) < CLOSE) & (np.abs(result) < 3e-3 * np.abs(base))
        if np.any(close):
            x, weight = self._rule
            wide_u, wide_w = np.broadcast_to(u, result.shape), np.broadcast_to(w, result.shape)
            wc = wide_w[close]
            result[close] = -wc * (self.slope(wide_u[close][:, None] + wc[:, None] * x) @ weight)
        return result

    def solve_drop(self, u: Floats, t: Floats, steps: int = 12) -> Floats:
        """The w <= 0 with F(u + w) - F(u) = t >= 0, by at most `steps` Newton steps.

        Starts from the tabulated inverse of F, or from the tangent where t is small. F is concave in u, so
        the iteration cannot cycle. Where t exceeds F(-inf) - F(u) there is no root and w grows very negative.
        """
        base, slope_u = self.log_density(u), self.slope(u)
        tangent = -t / slope_u
        table = np.interp(base + t, self._inverse[0], self._inverse[1]) - u
        w = np.where((tangent > -0.05) | (base + t > self._inverse[0][-1]), tangent, np.minimum(table, 0.0))
        for _ in range(steps):
            step = (t - self.drop(u, w, base)) / self.slope(u + w)
            w = np.clip(w - step, -800.0 - np.maximum(u, 0.0), 0.0)
            # convergence is quadratic: the step after one of relative size 1e-8 is below rounding
            if np.all(np.abs(step) <= 1e-8 * np.abs(w)):
                break
        return w


@lru_cache(maxsize=64)
def radial_law(dim: int, shape: float) -> RadialLaw:
    """The radial law of GL_d(I, k), tabulated once for every (dimension, shape).

    Examples
    --------
    >>> law = radial_law(1, 1.0)        # Laplace: z = sqrt(2) |x| is exponential, u = log z has density z e^-z
    >>> import numpy as np
    >>> round(float(law.log_radial_density(np.array(0.0))), 12)
    -1.0
    """
    return RadialLaw(dim, shape)


def _hermite_table(f: Floats, f1: Floats, f2: Floats) -> Floats:
    """Quintic polynomials on every cell, in the cell's own variable in [0, 1]; coefficients on axis 0."""
    h = TABLE_STEP
    a, b = f[:-1], f[1:]
    d0, d1 = h * f1[:-1], h * f1[1:]
    e0, e1 = h * h * f2[:-1], h * h * f2[1:]
    jump = b - a
    return np.array(
        [
            a,
            d0,
            0.5 * e0,
            10 * jump - 6 * d0 - 4 * d1 - 1.5 * e0 + 0.5 * e1,
            -15 * jump + 8 * d0 + 7 * d1 + 1.5 * e0 - e1,
            6 * jump - 3 * (d0 + d1) - 0.5 * (e0 - e1),
        ]
    )


def _read(table: Floats, u: Floats, direct: object) -> Floats:
    position = (u - TABLE_LOW) / TABLE_STEP
    outside = ~((position >= 0) & (position < table.shape[1]))
    cell = np.where(outside, 0, position).astype(np.intp)
    x = np.where(outside, 0.0, position) - cell
    c = table[:, cell]
    value = c[0] + x * (c[1] + x * (c[2] + x * (c[3] + x * (c[4] + x * c[5]))))
    if np.any(outside):
        value = np.array(value)
        value[outside] = direct(np.asarray(u)[outside])  # type: ignore[operator]
    return value
