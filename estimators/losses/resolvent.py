r"""Tables of ``G(D^2) D^e f''`` for the logistic bell ``f'' = p (1 - p)`` and rational symbols G.

The bell has Fourier transform ``pi omega / sinh(pi omega)`` and decays like ``e^{-|u|}``: with spacing 0.2
the spectrum ends at 1e-20, and a periodic grid of half-width ``40 max(1, b)`` wraps round below 1e-16.
Between nodes, Hermite polynomials with exact derivatives: cubic at spacing 0.025 (error
``0.025^4/384 max|h^(4)|``) for narrow b, quintic at spacing 0.2 (``0.2^6/46080 max|h^(6)|``) for wide b; both
about 1e-9. For b within [40, 2000] the cells of `expression_average` instead, whose number grows like
log b only. Polynomial operators of a high degree k raise frequencies up to ``2k / pi``: quintic at ``1 / (2k)``.
Beyond b = 2000 `LogisticLoss` is widened to b / 2000, as a whole: what changes is of the size ``(1/2000)^2`` of an
average over b. Tables of many poles end where they would need too many nodes, and widen the bell alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.symbols import Symbol

__all__ = ["tabulate"]

Floats = NDArray[np.float64]
_NARROW = 4.0
_HALF_WIDTH = 40.0
_MAX_NODES = 1 << 21
_HIGH = 5
_WIDE = 40.0  # from where cells are fewer than nodes

# Cell polynomials in x in [0, 1] (row m: coefficient of x^m) from the scaled jets at the cell's two ends.
_CUBIC = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [-3, -2, 3, -1], [2, 1, -2, 1]], float)
_QUINTIC = np.array(
    [
        [1, 0, 0, 0, 0, 0],
        [0, 1, 0, 0, 0, 0],
        [0, 0, 0.5, 0, 0, 0],
        [-10, -6, -1.5, 10, -4, 0.5],
        [15, 8, 1.5, -15, 7, -1],
        [-6, -3, -0.5, 6, -3, 0.5],
    ]
)


def tabulate(rows: Sequence[tuple[Symbol, int]]) -> Callable[[Floats], Floats]:
    """Return a function u -> array (len(rows), u.size) with ``G(D^2) D^e`` of the bell, per row.

    Parameters
    ----------
    rows : sequence of (Symbol, int)
        Operator G (rational, no heat) and derivative order e >= 0.

    Examples
    --------
    >>> table = tabulate([(Symbol((1.0,), ((1.0, 1),)), 0)])
    >>> round(float(table(np.array([0.0]))[0, 0]), 6)
    0.193147
    """
    widest = max((math.sqrt(b2) for symbol, _ in rows for b2, _ in symbol.poles), default=0.0)
    degree = max((symbol.degree for symbol, _ in rows), default=0)
    one_law = all(len(symbol.poles) == 1 for symbol, _ in rows)
    if widest > _WIDE and degree <= _HIGH and one_law:
        return _averages(rows)
    spacing, hermite = (0.025, _CUBIC) if widest <= _NARROW else (0.2, _QUINTIC)
    if degree > _HIGH:  # (1 + q w^2)^k e^{-pi w} ends near w = 2k / pi
        spacing, hermite = min(spacing, 0.5 / degree), _QUINTIC
    nodes = 1 << math.ceil(math.log2(2.0 * _HALF_WIDTH * max(1.0, widest) / spacing))
    if nodes > _MAX_NODES:
        return _widened(rows, max(widest / 300.0, 2.0))
    half = nodes * spacing / 2.0
    omega = np.asarray(2.0 * np.pi * np.fft.rfftfreq(nodes, spacing), np.float64)
    spectrum = _bell_spectrum(omega) / spacing
    spectrum[1::2] *= -1.0  # puts the bell in the middle of the grid: exp(-i omega half) = (-1)^k
    z = np.asarray(-(omega**2), np.float64)
    degree = hermite.shape[0] - 1
    orders = range(hermite.shape[0] // 2)
    powers = [(omega * spacing) ** m for m in orders]
    transforms = np.zeros((len(rows), len(orders), omega.size), complex)
    for (symbol, order), own in zip(rows, transforms, strict=True):
        base = spectrum * _symbol_at(symbol, z) * omega**order
        for m in orders:  # i^(order + m) times a real spectrum
            part = own[m].imag if (order + m) % 2 else own[m].real
            np.multiply(base, powers[m] if (order + m) % 4 < 2 else -powers[m], out=part)
    jets = np.fft.irfft(transforms, nodes).transpose(0, 2, 1)
    # cells are made where the first records are, and made again where others lie further out
    made: dict[str, Any] = {"low": 0, "cells": np.empty((len(rows), 0, degree + 1))}

    def table(u: Floats) -> Floats:
        position = (u + half) * (1.0 / spacing)
        np.clip(position, 0.0, nodes - 1.000001, out=position)
        cell = position.astype(np.intp)
        position -= cell
        low, high = made["low"], made["low"] + made["cells"].shape[1]
        least, most = int(cell.min(initial=nodes)), int(cell.max(initial=-1)) + 1
        if least < most and (least < low or most > high):
            grow = (most - least) // 4
            least = max(0, min(least - grow, low if high > low else nodes))
            most = min(nodes - 1, max(most + grow, high))
            ends = np.concatenate([jets[:, least:most], jets[:, least + 1 : most + 1]], axis=2)
            made["low"], made["cells"] = least, ends @ hermite.T
        cell -= made["low"]
        cells = made["cells"]
        answers = np.empty((len(cells), u.size))
        for values, answer in zip(cells, answers, strict=True):
            picked = values.take(cell, axis=0)
            np.multiply(picked[:, degree], position, out=answer)
            for m in range(degree - 1, 0, -1):
                answer += picked[:, m]
                answer *= position
            answer += picked[:, 0]
        return answers

    return table


def _widened(rows: Sequence[tuple[Symbol, int]], h: float) -> Callable[[Floats], Floats]:
    """The same of the bell ``w(u / h) / h``, which beside b is a point as well."""
    inner = tabulate([(symbol.rescaled(h), order) for symbol, order in rows])
    factors = np.array([[h ** (-1.0 - order)] for _, order in rows])
    return lambda u: inner(u / h) * factors


class _Bell:
    """Derivatives of the bell as `AveragedLoss` wants them."""

    # As for a function with kinks, operators are split into averages of the second derivative and what is left: the
    # terms of ``N(z) / (1 - b^2 z)^m`` are far larger than their sum for wide b.
    knots, roughness = ("none",), (99,)
    places = np.zeros(0)

    def __call__(self, u: Floats, order: int = 0) -> Floats:
        from privfit.estimators.losses.logistic import LogisticLoss

        return LogisticLoss().derivative(u, order + 2)


def _averages(rows: Sequence[tuple[Symbol, int]]) -> Callable[[Floats], Floats]:
    from privfit.estimators.losses.expression_rest import AveragedLoss

    kernel = AveragedLoss(cast(Any, _Bell())).compile(rows)
    return lambda u: np.stack(kernel(u))


def _bell_spectrum(omega: Floats) -> Floats:
    x = np.pi * omega
    safe = np.where(x > 1e-8, x, 1.0)
    return np.where(x > 1e-8, 2.0 * safe * np.exp(-safe) / -np.expm1(-2.0 * safe), 1.0)


def _symbol_at(symbol: Symbol, z: Floats) -> Floats:
    value = np.polynomial.polynomial.polyval(z, symbol.numerator)
    for b2, power in symbol.poles:
        value = value / (1.0 - b2 * z) ** power
    return np.asarray(value, float)
