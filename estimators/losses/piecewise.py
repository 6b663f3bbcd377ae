r"""Piecewise losses: ``f''`` is a constant plus point masses and steps at kinks, so Laplace averages are closed forms.

With ``R = (1 - b^2 D^2)^{-1}`` (average over Laplace(b)), ``R^j delta`` is the density of a sum of j
Laplace(b):

    g_j(u) = (1/b) e^{-t} sum_{i<j} (j-1+i)! / (i! (j-1)! (j-1-i)!) t^{j-1-i} / 2^{j+i},    t = |u| / b.

A jump of f (order 0), of f' (order 1) or of f'' (order 2) at a kink puts delta', delta or a step into f''.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.polynomial import polynomial as poly

from privfit.estimators.errors import CapabilityError
from privfit.estimators.losses.base import Floats, IndexLoss, Kernel, Request
from privfit.estimators.symbols import Symbol

__all__ = ["PiecewiseLoss", "laplace_sum_derivative", "split_resolvents"]


@lru_cache(maxsize=64)
def _radial_polynomial(j: int, m: int) -> tuple[float, ...]:
    """Coefficients P with ``d^m/dt^m [P_j(t) e^-t] = P(t) e^-t``; m = -1 is the upper tail."""
    fact = math.factorial
    base: Floats = np.zeros(j)
    for i in range(j):
        base[j - 1 - i] = fact(j - 1 + i) / (fact(i) * fact(j - 1) * fact(j - 1 - i)) / 2.0 ** (j + i)
    if m < 0:
        total, term = base.copy(), base
        while term.size > 1:
            term = np.asarray(poly.polyder(term), np.float64)
            total[: term.size] += term
        return tuple(total.tolist())
    for _ in range(m):
        base = np.asarray(poly.polysub(poly.polyder(base), base), np.float64)
    return tuple(base.tolist())


def laplace_sum_derivative(u: Floats, b: float, j: int, m: int) -> Floats:
    """Derivative of order m of the density of a sum of j Laplace(b); m = -1 is the distribution function.

    Examples
    --------
    >>> laplace_sum_derivative(np.array([0.0]), 2.0, 1, 0)
    array([0.25])
    """
    t = np.abs(u) / b
    bell = poly.polyval(t, _radial_polynomial(j, m)) * np.exp(-t)
    if m < 0:
        return np.where(u >= 0, 1.0 - bell, bell)
    sign = np.sign(u) if m % 2 else 1.0
    return np.asarray(sign * bell / b ** (m + 1), float)


def split_resolvents(symbol: Symbol) -> tuple[float, float, dict[int, float]]:
    """Write ``G = c + z sum_i a_i R^i`` for at most one pole: ``(c, b, {i: a_i})``; without one R^-m means z^m.

    Examples
    --------
    >>> split_resolvents(Symbol((1.0, -0.5), ((0.25, 1),)))
    (1.0, 0.5, {1: -0.25})
    """
    constant, rest = symbol.split()
    b2, power = symbol.poles[0] if symbol.poles else (0.0, 0)
    coefficients = np.trim_zeros(np.asarray(rest.numerator), "b")
    if b2 == 0.0:
        return constant, 0.0, {-m: float(c) for m, c in enumerate(coefficients) if c != 0.0}
    in_y = np.zeros(1)  # polynomial in y = 1 - b^2 z, by Horner with z = (1 - y) / b^2
    for c in coefficients[::-1]:
        in_y = poly.polyadd(poly.polymul(in_y, [1.0 / b2, -1.0 / b2]), [c])
    return constant, math.sqrt(b2), {power - i: float(a) for i, a in enumerate(in_y) if a != 0.0}


class PiecewiseLoss(IndexLoss):
    """Base of kinked losses with ``f''`` made of point masses and steps.

    A subclass gives `derivative` (almost everywhere), `jumps`: triples (kink, order, size), and `left`: the
    polynomial left of all kinks, of degree <= 2, lowest power first.

    Examples
    --------
    >>> from privfit.estimators.losses import AbsoluteLoss
    >>> AbsoluteLoss().jumps
    ((0.0, 1, 2.0),)
    """

    jumps: tuple[tuple[float, int, float], ...] = ()
    left: tuple[float, ...] = (0.0,)

    def compile(self, requests: Sequence[Request]) -> Kernel:
        """See `IndexLoss.compile`."""
        plans = [(order, *self._decompose(symbol)) for symbol, order in requests]

        def kernel(u: Floats) -> list[Floats]:
            return [self._evaluate(u, *plan) for plan in plans]

        return kernel

    def _decompose(self, symbol: Symbol) -> tuple[float, float, dict[int, float]]:
        """Write ``G = c + z sum_i a_i R^i``; returns (c, b, {i: a_i})."""
        if symbol.heat or len(symbol.poles) > 1:
            self._require_polynomial(symbol)
        constant, b, resolvents = split_resolvents(symbol)
        if b == 0.0 and len(resolvents) > (0 in resolvents):
            self._refuse()
        roughest = min((order for _, order, _ in self.jumps), default=3)
        lowest = min(resolvents, default=1)
        if lowest < 0 or (lowest == 0 and roughest < 2):
            self._refuse()
        return constant, b, resolvents

    def _refuse(self) -> None:
        raise CapabilityError(
            f"{self.said} has a kink, and this correction needs derivatives that are "
            "point masses there: missing is a smoothed version of the loss. Use SmoothedLoss, or ZeroInflatedLaplace "
            "noise with correction='exact' or 'dr', or ask for correction='naive'."
        )

    def _evaluate(self, u: Floats, order: int, constant: float, b: float, resolvents: dict[int, float]) -> Floats:
        total = constant * self.derivative(u, order) if constant else np.zeros_like(u)
        for power, weight in resolvents.items():
            if power == 0:
                total = total + weight * self.derivative(u, order + 2)
                continue
            if order == 0 and len(self.left) > 2:
                total = total + weight * 2.0 * self.left[2]  # R keeps the constant that f'' has on the left
            for kink, jump_order, size in self.jumps:
                m = order + 1 - jump_order
                total = total + weight * size * laplace_sum_derivative(u - kink, b, power, m)
        return np.asarray(total, float)
