r"""Logistic loss ``f(u) = log(1 + e^u)`` (minus ``y u`` in a regression) and its exact inverses.

With ``p = 1/(1+e^-u)``, ``w = f'' = p (1 - p)``: ``D^2 w^m = m^2 w^m - (4 m^2 + 2 m) w^{m+1}`` and
``D w^m = m w^m (1 - 2p)``, so a polynomial operator applied to f'' is one polynomial in w. Resolvents
``(1 - b^2 D^2)^{-j}`` (zero-inflated noise) are tabulated by `resolvent.tabulate` once per b. So are polynomial
operators of a high degree, where the terms of the polynomial in w are so much larger than their sum that it would
lose more than 1e-10.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from privfit.estimators.losses.base import Floats, IndexLoss, Kernel, Request
from privfit.estimators.losses.resolvent import tabulate
from privfit.estimators.symbols import Symbol

__all__ = ["LogisticLoss"]

_SAFE_DEGREE, _LOST = 6, 1e-10
_WIDEST = 2000.0
"""Scale b of a resolvent up to which it is tabulated; beyond, the loss is widened to b / 2000 first."""


def _power_rows(count: int) -> Floats:
    """Row j holds the coefficients of ``D^{2j} w`` in powers of w (column m: w^m)."""
    rows = np.zeros((count, count + 1))
    if count:
        rows[0, 1] = 1.0
    m = np.arange(count + 1, dtype=float)
    for j in range(1, count):
        rows[j] = m**2 * rows[j - 1]
        rows[j, 1:] -= ((4 * m**2 + 2 * m) * rows[j - 1])[:-1]
    return rows


def _bell_polynomial(numerator: tuple[float, ...], order: int) -> tuple[float, Floats]:
    """Constant acting on f, and the polynomial in w (times ``1 - 2p`` for odd order) of the rest."""
    c = np.asarray(numerator, dtype=float)
    if order < 2:
        constant, on_bell = float(c[0]), c[1:]
    else:
        constant, on_bell = 0.0, np.concatenate([np.zeros((order - 2) // 2), c])
    coefficients = on_bell @ _power_rows(on_bell.size)
    if order % 2:
        coefficients = coefficients * np.arange(coefficients.size)
    return constant, coefficients


class LogisticLoss(IndexLoss):
    """``f(u) = log(1 + e^u)``; a regression subtracts ``y u`` with y in {0, 1}, which no noise biases.

    Examples
    --------
    >>> LogisticLoss().value([0.0]).round(6)
    array([0.693147])
    """

    def derivative(self, u: ArrayLike, order: int = 1) -> Floats:
        """See `IndexLoss.derivative`."""
        index = np.asarray(u, float)
        flat = np.atleast_1d(index)
        return _horner_kernel([((1.0,), order)])(flat)[0].reshape(index.shape)

    def compile(self, requests: Sequence[Request]) -> Kernel:
        """See `IndexLoss.compile`."""
        cleaned = [(_without_trivial_poles(symbol), order) for symbol, order in requests]
        for symbol, _ in cleaned:
            if symbol.heat:
                self._require_polynomial(symbol)
        widest = max((b2**0.5 for symbol, _ in cleaned for b2, _ in symbol.poles), default=0.0)
        if widest > _WIDEST + 0.5:
            return self._widened(cleaned, widest / _WIDEST)
        tabled = [place for place, (symbol, order) in enumerate(cleaned) if symbol.poles or _cancels(symbol, order)]
        direct = [place for place in range(len(cleaned)) if place not in tabled]
        horner = _horner_kernel([(cleaned[i][0].numerator, cleaned[i][1]) for i in direct])
        table = _table_kernel([cleaned[i] for i in tabled]) if tabled else None

        def kernel(u: Floats) -> list[Floats]:
            answers = dict(zip(direct, horner(u), strict=True)) if direct else {}
            if table is not None:
                answers.update(zip(tabled, table(u), strict=True))
            return [answers[place] for place in range(len(cleaned))]

        return kernel

    def _widened(self, requests: Sequence[Request], h: float) -> Kernel:
        """The same of ``h f(u / h)``, loss and all derivatives alike: beside b the bend of either is a point."""
        inner = self.compile([(symbol.rescaled(h), order) for symbol, order in requests])

        def kernel(u: Floats) -> list[Floats]:
            return [h ** (1 - order) * own for own, (_, order) in zip(inner(u / h), requests, strict=True)]

        return kernel


def _without_trivial_poles(symbol: Symbol) -> Symbol:
    return Symbol(symbol.numerator, tuple(pole for pole in symbol.poles if pole[0] > 0.0), symbol.heat)


def _cancels(symbol: Symbol, order: int) -> bool:
    """Whether the polynomial in w, whose terms are largest at w = 1/4, loses more than `_LOST` to rounding."""
    if symbol.degree < _SAFE_DEGREE:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        coefficients = _bell_polynomial(symbol.numerator, order)[1]
        terms = np.abs(coefficients) * 0.25 ** np.arange(coefficients.size)
    return not float(terms.sum()) * np.finfo(float).eps < _LOST


def _probability(u: Floats) -> tuple[Floats, Floats]:
    """Return e^-u (for u >= -700, where its range ends) and p, to full relative accuracy."""
    odds = np.maximum(u, -700.0)
    np.negative(odds, out=odds)
    np.exp(odds, out=odds)
    p = odds + 1.0
    np.divide(1.0, p, out=p)
    return odds, p


def _sigmoid(u: Floats) -> tuple[Floats, Floats]:
    """Return p and w = p (1 - p) = e^-u p^2."""
    odds, p = _probability(u)
    odds *= p
    odds *= p
    return p, odds


def _softplus(u: Floats) -> Floats:
    return np.asarray(np.maximum(u, 0.0) + np.log1p(np.exp(-np.abs(u))), float)


def _horner_kernel(plans: Sequence[tuple[tuple[float, ...], int]]) -> Kernel:
    prepared = [(order, *_bell_polynomial(numerator, order)) for numerator, order in plans]

    # f' = p is the constant of order 1; higher odd orders have no constant
    def kernel(u: Floats) -> list[Floats]:
        p, w = _sigmoid(u)
        answers = []
        for order, constant, coefficients in prepared:
            total = _horner(coefficients, w)
            if order % 2:
                total *= 1.0 - 2.0 * p
            if constant:
                total += constant * (_softplus(u) if order == 0 else p)
            answers.append(total)
        return answers

    return kernel


def _horner(coefficients: Floats, w: Floats) -> Floats:
    """Polynomial without constant term, in place."""
    total = np.full_like(w, coefficients[-1])
    for c in coefficients[-2:0:-1]:
        total *= w
        total += c
    if coefficients.size > 1:
        total *= w
    return total


def _table_kernel(requests: Sequence[Request]) -> Kernel:
    parts: list[tuple[float, int]] = []
    rows: list[tuple[Symbol, int]] = []
    for symbol, order in requests:
        if order < 2:
            constant, rest = symbol.split()
            rows.append((rest, order))
        else:
            constant, rest = 0.0, symbol
            rows.append((rest, order - 2))
        parts.append((constant, order))
    table: Callable[[Floats], Floats] = tabulate(rows)

    def kernel(u: Floats) -> list[Floats]:
        smooth = table(u)
        answers = []
        for row, (constant, order) in zip(smooth, parts, strict=True):
            if constant and order == 0:
                row += constant * _softplus(u)
            elif constant and order == 1:
                row += constant * _probability(u)[1]
            answers.append(row)
        return answers

    return kernel
