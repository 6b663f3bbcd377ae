r"""Tables of ``G(D^2) D^e f''`` for the logistic bell ``f'' = p (1 - p)`` and rational symbols G.

The bell has Fourier transform ``pi omega / sinh(pi omega)`` and decays like ``e^{-|u|}``; with spacing 0.2 its spectrum
ends at 1e-20 and a periodic grid of half-width ``40 max(1, b)`` wraps round below 1e-16. Between nodes a quintic
Hermite polynomial (exact values and two derivatives) errs by less than ``0.2^6/46080 max|h^(6)|``, about 1e-9.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.symbols import Symbol

__all__ = ["tabulate"]

Floats = NDArray[np.float64]
_SPACING = 0.2
_HALF_WIDTH = 40.0
_MAX_NODES = 1 << 21

# cell polynomial in x in [0, 1] from (f0, f0', f0'', f1, f1', f1'') scaled by the spacing
_HERMITE = np.array(
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
        Operator G (rational, no heat) and derivative order e in {0, 1}.

    Examples
    --------
    >>> table = tabulate([(Symbol((1.0,), ((1.0, 1),)), 0)])
    >>> round(float(table(np.array([0.0]))[0, 0]), 6)
    0.193147
    """
    widest = max((math.sqrt(b2) for symbol, _ in rows for b2, _ in symbol.poles), default=0.0)
    half = _HALF_WIDTH * max(1.0, widest)
    nodes = 1 << math.ceil(math.log2(2.0 * half / _SPACING))
    if nodes > _MAX_NODES:
        raise ValueError(
            f"the noise in the index must be at most {_MAX_NODES * _SPACING / 2 / _HALF_WIDTH:.0f} bandwidths, "
            f"got {widest:.3g}. Use a larger bandwidth."
        )
    half = nodes * _SPACING / 2.0
    omega = 2.0 * np.pi * np.fft.rfftfreq(nodes, _SPACING)
    argument = np.pi * omega
    spectrum = np.ones_like(omega)
    positive = argument > 1e-8
    spectrum[positive] = (
        2.0 * argument[positive] * np.exp(-argument[positive]) / -np.expm1(-2.0 * argument[positive])
    )
    spectrum *= np.exp(-1j * omega * half).real / _SPACING  # bell centred in the middle of the grid
    z = -(omega**2)
    cells = np.empty((len(rows), nodes - 1, 6))
    for place, (symbol, order) in enumerate(rows):
        base = spectrum * (1j * omega) ** order * _symbol_at(symbol, z)
        jets = np.stack([np.fft.irfft(base * (1j * omega * _SPACING) ** m, nodes) for m in range(3)], axis=1)
        cells[place] = np.concatenate([jets[:-1], jets[1:]], axis=1) @ _HERMITE.T

    def table(u: Floats) -> Floats:
        position = np.clip((u + half) * (1.0 / _SPACING), 0.0, nodes - 1.000001)
        cell = position.astype(np.intp)
        position -= cell
        answers = np.empty((len(cells), u.size))
        for place, values in enumerate(cells):
            picked = values[cell]
            total = picked[:, 5] * position
            for m in (4, 3, 2, 1):
                total += picked[:, m]
                total *= position
            answers[place] = total + picked[:, 0]
        return answers

    return table


def _symbol_at(symbol: Symbol, z: Floats) -> Floats:
    value = np.polynomial.polynomial.polyval(z, symbol.numerator)
    for b2, power in symbol.poles:
        value = value / (1.0 - b2 * z) ** power
    return np.asarray(value, float)
