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


class RadialLaw:
    """Functions of the radius for one (dimension, shape); build it with `radial_law`."""

    def __init__(self, dim: int, shape: float) -> None:
        self.dim, self.shape = dim, shape
        self.order = shape - dim / 2
        self.log_constant = (2 - dim / 2 - shape) * math.log(2) - math.lgamma(shape) - math.lgamma(dim / 2)
        u = TABLE_LOW + TABLE_STEP * np.arange(TABLE_CELLS + 1)
        z = np.exp(u)
        s = slope(self.order, z)
        mirror = slope(-self.order, z)  # s + 2 v, without cancellation
        s1 = s * mirror - z * z
        s2 = s1 * (s + mirror) - 2 * z * z
        self._slope_table = _hermite_table(s, s1, s2)
        self._log_table = _hermite_table(self._direct_log_density(u), -s, -s1)
        x, w = np.polynomial.legendre.leggauss(7)
        self._rule = ((1 + x) / 2, w / 2)
        self.mode = float(u[np.argmax(dim * u + self._direct_log_density(u))])

    def _direct_log_density(self, u: Floats) -> Floats:
        return self.order * u + log_kv(self.order, np.exp(u))

    def log_density(self, u: Floats) -> Floats:
        """F(u): log of the density at radius z = e^u, up to a constant."""
        return _read(self._log_table, u, self._direct_log_density)

    def slope(self, u: Floats) -> Floats:
        """s(u) = -F'(u) > 0."""
        return _read(self._slope_table, u, lambda x: slope(self.order, np.exp(x)))

    @property
    def at_zero(self) -> float:
        """F(-inf): finite only for shape > d/2."""
        v = self.order
        return (v - 1) * math.log(2) + math.lgamma(v) if v > 0 else math.inf

    def log_radial_density(self, u: Floats) -> Floats:
        """Log of the density of u = log(sqrt(2k) |S|)."""
        return self.log_constant + self.dim * u + self.log_density(u)

    def drop(self, u: Floats, w: Floats) -> Floats:
        """F(u + w) - F(u) with small relative error also when w is small (w may be -inf).

        Close points are joined by Gauss-Legendre integration of the slope.
        """
        u, w = np.broadcast_arrays(u, w)
        close = np.abs(w) < CLOSE
        result = np.empty(u.shape)
        if close.any():
            x, weight = self._rule
            uc, wc = u[close][:, None], w[close][:, None]
            result[close] = -w[close] * (self.slope(uc + wc * x) @ weight)
        far = ~close
        if far.any():
            end = u[far] + w[far]
            infinite = np.isneginf(end)
            value = self.log_density(np.where(infinite, 0.0, end))
            result[far] = np.where(infinite, self.at_zero, value) - self.log_density(u[far])
        return result

    def solve_drop(self, u: Floats, t: Floats) -> Floats:
        """The w <= 0 with F(u + w) - F(u) = t >= 0, by Newton's method.

        F is concave in u, so iterates that start where the difference is too small approach the root from
        one side. Where t exceeds F(-inf) - F(u) there is no root and w runs to -inf.
        """
        u, t = np.broadcast_arrays(u, t)
        w = -t / self.slope(u)
        for _ in range(60):
            rest = t - self.drop(u, w)
            step = rest / self.slope(u + w)
            w = np.where(np.isfinite(step), w - step, w)
            if np.all(np.abs(step) <= 1e-13 * np.abs(w)) or np.all(np.abs(rest) <= 2e-15 * t):
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
