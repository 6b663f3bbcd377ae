"""The radial law of generalised Laplace noise GL_d(I, k), in the variable z = sqrt(2k) r, u = log z.

    log density at radius r  =  F(u) + const,      F = log( z^v K_v(z) ),  v = k - d/2
    density of u             =  2^(2 - d/2 - k) / (Gamma(k) Gamma(d/2)) z^d e^F
    -F' = s = z K_{v-1}/K_v,     s' = s^2 + 2 v s - z^2,     s'' = 2 s s' + 2 v s' - 2 z^2    (Bessel's equation)

F and s are tabulated once on a grid in u with their exact first and second derivatives, and read by quintic
Hermite interpolation (relative error about 1e-15). The grid is uniform in three pieces, finer where z is not
small; below it F is its leading term, above it F and s are evaluated directly.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.bessel import log_kv, slope

__all__ = ["RadialLaw", "radial_law"]

Floats = NDArray[np.float64]
PIECES = ((-301.0, 1.0, 252), (-49.0, 0.125, 320), (-9.0, 1 / 64, 1200))  # start, step, number of cells
TABLE_CELLS = sum(cells for _, _, cells in PIECES)
COARSE_CELLS = TABLE_CELLS - PIECES[-1][2]
CLOSE, SHORT = 0.25, 0.03
SMALLEST = PIECES[0][0]  # log z below which the leading term of F is exact


class RadialLaw:
    """Functions of the radius for one (dimension, shape); build it with `radial_law`."""

    def __init__(self, dim: int, shape: float) -> None:
        self.dim, self.shape = dim, shape
        self.order = shape - dim / 2
        self.log_constant = (2 - dim / 2 - shape) * math.log(2) - math.lgamma(shape) - math.lgamma(dim / 2)
        u = np.concatenate([low + step * np.arange(cells) for low, step, cells in PIECES] + [np.array([9.75])])
        z = np.exp(u)
        s = slope(self.order, z)
        mirror = slope(-self.order, z)  # s + 2 v, without cancellation
        s1 = s * mirror - z * z
        s2 = s1 * (s + mirror) - 2 * z * z
        density = self._direct_log_density(u)
        h = np.diff(u)
        self._table = np.vstack([_hermite_table(h, density, -s, -s1), _hermite_table(h, s, s1, s2)])
        self._inverse = density[::-1].copy(), np.array([u, s, s1, s2])[:, ::-1].copy()
        x, w = np.polynomial.legendre.leggauss(5)
        self._rule = ((1 + x) / 2, w / 2)
        radial = dim * u + density
        peak = int(np.argmax(radial))
        self.mode = float(u[peak])
        self._rising, self._falling = (u[: peak + 1], radial[: peak + 1]), (u[peak:], radial[peak:])

    def _direct_log_density(self, u: Floats) -> Floats:
        return self.order * u + log_kv(self.order, np.exp(u))

    def _direct_slope(self, u: Floats) -> Floats:
        return slope(self.order, np.exp(u))

    def _below(self, u: Floats) -> tuple[Floats, Floats]:
        """F and s where z would underflow: F is linear in u, or log(-u) for order zero."""
        first = float(self._table[0, 0])
        if self.order == 0:
            shift = math.log(2) - np.euler_gamma
            return first + np.log((shift - u) / (shift - SMALLEST)), 1 / (shift - u)
        rate = 2 * max(-self.order, 0.0)
        return first + rate * (SMALLEST - u), np.full(u.shape, max(rate, 1e-300))

    def _read(self, u: Floats, rows: slice) -> list[Floats]:
        """Quintics of the table at u, one for every six rows."""
        low, step, _ = PIECES[-1]
        position = (u - low) * (1 / step) + COARSE_CELLS
        outside = None
        if position.size and (position.min() < COARSE_CELLS or position.max() >= TABLE_CELLS):
            (far, _, far_cells), (middle, finer, _) = PIECES[:2]
            coarse = np.where(u < middle, u - far, (u - middle) / finer + far_cells)
            position = np.where(u < low, coarse, position)
            outside = (position < 0) | (position >= TABLE_CELLS)
            position = np.where(outside, 0.0, position)
        cell = position.astype(np.intp)
        x = position - cell
        c = self._table[rows].take(cell, axis=1)
        values = [
            c[i] + x * (c[i + 1] + x * (c[i + 2] + x * (c[i + 3] + x * (c[i + 4] + x * c[i + 5]))))
            for i in range(0, len(c), 6)
        ]
        return values if outside is None or not outside.any() else self._repair(np.asarray(u), rows, values, outside)

    def _repair(self, u: Floats, rows: slice, values: list[Floats], outside: NDArray[np.bool_]) -> list[Floats]:
        """The values outside the table."""
        below, above = outside & (u < 0), outside & (u > 0)
        first = rows.start // 6
        leading, exact = self._below(u[below]), (self._direct_log_density, self._direct_slope)
        values = [np.array(value) for value in values]
        for i, value in enumerate(values):
            value[below] = leading[first + i]
            value[above] = exact[first + i](u[above])
        return values

    def log_density(self, u: Floats) -> Floats:
        """F(u): log of the density at radius z = e^u, up to a constant."""
        return self._read(u, slice(0, 6))[0]

    def slope(self, u: Floats) -> Floats:
        """s(u) = -F'(u) > 0."""
        return self._read(u, slice(6, 12))[0]

    def jet(self, u: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """F, s, s' and s''; the derivatives by Bessel's equation, to a few digits where it cancels."""
        density, s = self._read(u, slice(0, 12))
        with np.errstate(under="ignore"):
            square = np.exp(2 * u)
        s1 = s * (s + 2 * self.order) - square
        return density, s, s1, 2 * (s1 * (s + self.order) - square)

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

    def near_end(self, u: Floats, fall: float) -> Floats:
        """Where the radial density has fallen by e^-fall on the way from u, or from its mode, to the centre."""
        grid, radial = self._rising
        level = np.interp(np.minimum(u, self.mode), grid, radial) - fall
        beyond = np.maximum(radial[0] - level, 0.0) / (2 * min(self.shape, self.dim / 2))
        return np.minimum(np.interp(level, radial, grid), u) - beyond

    def drop(self, u: Floats, w: Floats, here: tuple[Floats, ...], there: tuple[Floats, ...]) -> Floats:
        """F(u + w) - F(u) from the jets at both ends, with small relative error also when w is small.

        Where the plain difference would lose digits the slope is integrated instead.
        Over short steps by the two-point rule that uses s, s', s'' at both ends (error w^7 s^(6) / 100800),
        over longer ones, for more than three digits, by Gauss-Legendre with five points.
        """
        result = there[0] - here[0]
        size, limit = np.abs(result), np.abs(here[0])
        lost = size < 0.3 * limit
        if not lost.any():
            return result
        short = lost & (np.abs(w) < SHORT)
        if short.any():
            sums = 0.5 * (here[1] + there[1]) + w * (0.1 * (here[2] - there[2]) + w * (here[3] + there[3]) / 120)
            result = np.where(short, -w * sums, result)
        close = (size < 3e-3 * limit) & ~short & (np.abs(w) < CLOSE)
        if close.any():
            x, weight = self._rule
            wide_u, wide_w = np.broadcast_to(u, result.shape), np.broadcast_to(w, result.shape)
            wc = wide_w[close]
            result[close] = -wc * (self.slope(wide_u[close][:, None] + wc[:, None] * x) @ weight)
        return result

    def solve_drop(self, u: Floats, t: Floats, steps: int = 12) -> Floats:
        """The w <= 0 with F(u + w) - F(u) = t >= 0, by at most `steps` steps of fourth order.

        Starts from the series of the inverse function at u where t is small, otherwise at the nearest entry of
        the table. F is concave in u, so the iteration cannot cycle. Where t exceeds F(-inf) - F(u) there is no
        root and w grows very negative.
        """
        here = self.jet(u)
        tangent = -t / here[1]
        levels, jets = self._inverse
        wanted = here[0] + t
        index = np.minimum(np.searchsorted(levels, wanted), TABLE_CELLS)
        near = jets.take(index, axis=1)
        table = near[0] + _inverse_step(wanted - levels.take(index), *near[1:]) - u
        w = np.where((tangent > -0.1) | (wanted > levels[-1]), _inverse_step(t, *here[1:]), np.minimum(table, 0.0))
        floor = -800.0 - np.maximum(u, 0.0)
        w = np.maximum(np.minimum(w, 0.0), floor)
        for _ in range(steps):
            there = self.jet(u + w)
            moved = w + _inverse_step(t - self.drop(u, w, here, there), *there[1:])
            moved = np.maximum(np.minimum(moved, 0.0), floor)
            step, w = moved - w, moved
            # the error that is left is of the order of the fourth power of this step
            if np.all(np.square(np.square(step)) <= 1e-15 * np.abs(w)):
                break
        return w


def _inverse_step(rise: Floats, s: Floats, s1: Floats, s2: Floats) -> Floats:
    """The x with F(u + x) = F(u) + rise to third order in x, from the jet at u; Newton's where that is too far."""
    with np.errstate(over="ignore", invalid="ignore"):
        first = -rise / s
        p = s1 / (2 * s) * first
        more = p * (2 * p - 1) - s2 / (6 * s) * np.square(first)
    return first * (1 + np.where(np.abs(more) < 0.3, more, 0.0))


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


def _hermite_table(h: Floats, f: Floats, f1: Floats, f2: Floats) -> Floats:
    """Quintic polynomials on every cell of width h, in the cell's own variable in [0, 1]; coefficients on axis 0."""
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
