r"""Symbols of inverse noise operators, as functions of z = D^2 (D: derivative in the index).

A noise part of index variance ``s^2 = 2 q`` has characteristic function ``1 / G(D^2)`` on the index, and
``G(D^2) f`` is the corrected loss. Every ``G`` here, and its derivatives in ``q``, has the form

    N(z) exp(-h z) / prod_j (1 - b_j^2 z)^{m_j},      N a polynomial,

so products (independent parts) stay in the family. Sources: Lu, Chen & Qiu (zero-inflated Laplace);
docs/mathematics.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Factor", "Heat", "Identity", "Monomial", "Power", "Resolvent", "Symbol"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Symbol:
    """``N(z) exp(-heat z) / prod (1 - b2 z)^m`` with ``z = D^2``.

    Parameters
    ----------
    numerator : tuple of float
        Coefficients of N, lowest power first.
    poles : tuple of (float, int)
        Pairs ``(b2, m)``: squared Laplace scale of a resolvent and its power.
    heat : float
        Coefficient of the inverse heat flow (Gaussian noise).

    Examples
    --------
    >>> Symbol((1.0, -2.0)).at(0.25)
    0.5
    """

    numerator: tuple[float, ...] = (1.0,)
    poles: tuple[tuple[float, int], ...] = ()
    heat: float = 0.0

    def __mul__(self, other: Symbol) -> Symbol:
        """Symbol of the composition of two operators (they commute)."""
        numerator = np.convolve(self.numerator, other.numerator)
        return Symbol(tuple(numerator.tolist()), self.poles + other.poles, self.heat + other.heat)

    @property
    def degree(self) -> int:
        """Degree of the numerator, trailing zeros ignored."""
        nonzero = [m for m, c in enumerate(self.numerator) if c != 0.0]
        return max(nonzero, default=0)

    def at(self, z: float) -> float:
        """Return ``G(z)``: the factor on an eigenfunction of D^2 (e^u: z = 1, sin wu: z = -w^2)."""
        value = float(np.polynomial.polynomial.polyval(z, self.numerator)) * math.exp(-self.heat * z)
        for b2, power in self.poles:
            value /= (1.0 - b2 * z) ** power
        return value

    def series(self, order: int) -> Floats:
        """Taylor coefficients in z up to `order`: exact on polynomials of degree <= 2 order + 1."""
        total = np.zeros(order + 1)
        head = np.asarray(self.numerator[: order + 1], dtype=float)
        total[: head.size] = head
        for b2, power in self.poles:
            geometric = b2 ** np.arange(order + 1)
            for _ in range(power):
                total = np.convolve(total, geometric)[: order + 1]
        if self.heat:
            flow = np.array([(-self.heat) ** m / math.factorial(m) for m in range(order + 1)])
            total = np.convolve(total, flow)[: order + 1]
        return total

    def split(self) -> tuple[float, Symbol]:
        """Return ``(c, R)`` with ``G(z) = c + z R(z)`` (no heat): what acts on f itself and on f''."""
        constant = self.numerator[0]
        denominator = np.ones(1)
        for b2, power in self.poles:
            for _ in range(power):
                denominator = np.convolve(denominator, (1.0, -b2))
        size = max(len(self.numerator), denominator.size)
        rest = np.zeros(size)
        rest[: len(self.numerator)] = self.numerator
        rest[: denominator.size] -= constant * denominator
        return constant, Symbol(tuple(rest[1:].tolist()) or (0.0,), self.poles)

    def rescaled(self, h: float) -> Symbol:
        """Symbol in the variable ``v = u / h`` (``D_u = D_v / h``)."""
        numerator = tuple(c / h ** (2 * m) for m, c in enumerate(self.numerator))
        return Symbol(numerator, tuple((b2 / h**2, m) for b2, m in self.poles), self.heat / h**2)


class Factor(Protocol):
    """The inverse operator of one noise part as a function of ``q = s^2 / 2``.

    Examples
    --------
    >>> Power(1)(0.5, 0).numerator
    (1.0, -0.5)
    """

    @property
    def reach(self) -> float:
        """Bound of q z below which the noise's ``E exp(sqrt(z) noise) = 1 / G(z)`` is finite."""

    def __call__(self, q: float, nu: int) -> Symbol:
        """Symbol of the derivative of order `nu` (0, 1 or 2) in q."""


@dataclass(frozen=True)
class Identity:
    """No operator: ``G = 1``.

    Examples
    --------
    >>> Identity()(2.0, 0).at(3.0)
    1.0
    """

    reach: ClassVar[float] = math.inf

    def __call__(self, q: float, nu: int) -> Symbol:
        """Symbol of the derivative of order `nu` in q."""
        return Symbol((1.0,) if nu == 0 else (0.0,))


@dataclass(frozen=True)
class Monomial:
    """``G = q z``: the trace of the Hessian alone (second term of the smoothed doubly random correction).

    Examples
    --------
    >>> Monomial()(2.0, 0).at(3.0)
    6.0
    """

    reach: ClassVar[float] = math.inf

    def __call__(self, q: float, nu: int) -> Symbol:
        """Symbol of the derivative of order `nu` in q."""
        return Symbol((0.0, (q, 1.0, 0.0)[nu]))


@dataclass(frozen=True)
class Power:
    """``G = (1 - q z / k)^k``: symmetric (shape 1) and generalised Laplace noise of integer shape k.

    Examples
    --------
    >>> Power(2)(1.0, 0).at(1.0)
    0.25
    """

    shape: int

    @property
    def reach(self) -> float:
        """Bound of q z below which the noise has an exponential moment."""
        return float(self.shape)

    def __call__(self, q: float, nu: int) -> Symbol:
        """Symbol of the derivative of order `nu` in q."""
        k = self.shape
        lead = (1.0, -1.0, (k - 1) / k)[nu]
        left = k - nu
        if lead == 0.0 or left < 0:
            return Symbol((0.0,))
        powers = [math.comb(left, j) * (-q / k) ** j for j in range(left + 1)]
        return Symbol((0.0,) * nu + tuple(lead * c for c in powers))


@dataclass(frozen=True)
class Resolvent:
    """``G = (1 - q z) / (1 - delta0 q z)``: zero-inflated Laplace noise, 0 < delta0 < 1.

    Examples
    --------
    >>> round(Resolvent(0.5)(1.0, 0).at(-1.0), 6)
    1.333333
    """

    delta0: float
    reach: ClassVar[float] = 1.0

    def __call__(self, q: float, nu: int) -> Symbol:
        """Symbol of the derivative of order `nu` in q."""
        d = self.delta0
        pole = ((d * q, nu + 1),)
        if nu == 0:
            return Symbol((1.0, -q), pole)
        if nu == 1:
            return Symbol((0.0, -(1.0 - d)), pole)
        return Symbol((0.0, 0.0, -2.0 * d * (1.0 - d)), pole)


@dataclass(frozen=True)
class Heat:
    """``G = exp(-q z)``: Gaussian noise; finite only on polynomials and eigenfunctions of D^2.

    Examples
    --------
    >>> round(Heat()(1.0, 0).at(1.0), 6)
    0.367879
    """

    reach: ClassVar[float] = math.inf

    def __call__(self, q: float, nu: int) -> Symbol:
        """Symbol of the derivative of order `nu` in q."""
        return Symbol((0.0,) * nu + ((-1.0) ** nu,), heat=q)
