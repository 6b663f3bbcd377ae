r"""Laplace averages ``R_b g = (1 - b^2 D^2)^{-1} g`` of any function, to about 1e-12, by cells and polynomials.

The line is cut into cells, narrow where the function needs it, with its kinks as ends of cells; a function is its
values at 12 Chebyshev nodes of each. ``R_b g = (F + B) / 2``, ``F(u) = int_{-inf}^u e^{-(u-v)/b} g(v) dv / b``: in
a cell F is a matrix times the values of g, and from cell to cell it decays by ``e^{-width/b}``; B is its mirror image.
Averages of averages are again values at nodes, so that any product of resolvents is a chain of such steps. Cells are
halved until the Chebyshev coefficients of g and of every average have decayed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

__all__ = ["Chain", "average"]

Floats = NDArray[np.float64]
Derivatives = Callable[[Floats, int], Floats]
_NODES = 12
_X = -np.cos(np.pi * np.arange(_NODES) / (_NODES - 1))
_TO = np.linalg.inv(chebyshev.chebvander(_X, _NODES - 1))
_POWERS = np.zeros((_NODES, _NODES))  # row k: T_k in powers
for _k in range(_NODES):
    _POWERS[_k, : _k + 1] = chebyshev.cheb2poly(np.eye(_NODES)[_k, : _k + 1])
_BINS = 4096
_FAR = 38.0  # e^-38 = 3e-17
_DECAY = 3e-13
_MOST_CELLS = 60_000


@dataclass(frozen=True)
class Chain:
    """``R_{b_m}(... (R_{b_1} g_0) + g_1 ...) + g_m``, each g a combination of derivatives of one function.

    Attributes
    ----------
    scales : tuple of float
        Laplace scales b_1, ..., b_m.
    inputs : tuple of tuples of (int, float)
        Orders and weights of g_0, ..., g_{m-1}.

    Examples
    --------
    >>> Chain((1.0,), (((0, 1.0),),)).reach
    38.0
    """

    scales: tuple[float, ...]
    inputs: tuple[tuple[tuple[int, float], ...], ...]

    @property
    def reach(self) -> float:
        """How far from a point the average looks."""
        return _FAR * sum(self.scales)


def average(
    function: Derivatives, knots: Floats, chains: Sequence[Chain], low: float, high: float
) -> Callable[[Floats], list[Floats]]:
    """Return a function of u in [low, high] that gives the averages, one array per chain.

    Parameters
    ----------
    function : callable
        ``function(u, order)``, the derivative of that order.
    knots : ndarray
        Where the function or a derivative jumps, increasing.
    chains : sequence of Chain
    low, high : float

    Raises
    ------
    ValueError
        If the function is too rough or too wide for 60,000 cells.

    Examples
    --------
    >>> mean = average(lambda u, order: np.cos(u), np.zeros(0), [Chain((1.0,), (((0, 1.0),),))], -1.0, 1.0)
    >>> mean(np.array([0.0]))[0].round(12)
    array([0.5])
    """
    edges, tables = _tables(function, knots, chains, low, high)
    return _Lookup(edges, tables, low, high)


def _tables(
    function: Derivatives, knots: Floats, chains: Sequence[Chain], low: float, high: float
) -> tuple[Floats, Floats]:
    """Cells for all chains, and coefficients of polynomials on [-1, 1], shape (chains, powers, cells)."""
    reach = max(chain.reach for chain in chains)
    edges = _first_edges(low - reach, high + reach, knots)
    while True:
        width = np.diff(edges)
        middle = 0.5 * (edges[1:] + edges[:-1])
        points = middle[:, None] + 0.5 * width[:, None] * _X
        # ends of cells belong to the cell: a jump there is seen from inside
        points[:, 0] = np.nextafter(points[:, 0], np.inf)
        points[:, -1] = np.nextafter(points[:, -1], -np.inf)
        values, rough = _averages(function, points, width, chains)
        inside = (edges[1:] > low - reach / 2) & (edges[:-1] < high + reach / 2)
        rough &= inside & (width > 1e-9 * (1.0 + np.abs(middle)))
        if not rough.any():
            return edges, np.moveaxis((_POWERS.T @ _TO) @ values, (2, 1, 0), (0, 1, 2))
        edges = np.sort(np.concatenate([edges, middle[rough]]))
        if edges.size > _MOST_CELLS:
            raise ValueError(
                f"the loss is too rough, or indices are too far apart (from {low:.3g} to {high:.3g}), for a table of "
                f"{_MOST_CELLS} cells. Rescale the columns, or use correction='dr'."
            )


def _averages(
    function: Derivatives, points: Floats, width: Floats, chains: Sequence[Chain]
) -> tuple[Floats, NDArray[np.bool_]]:
    """All chains at the points, shape (cells, nodes, chains), and the cells that are too wide."""
    rough = np.zeros(width.size, bool)
    known: dict[int, Floats] = {}
    means: dict[float, _Mean] = {}
    values = np.zeros((*points.shape, len(chains)))
    for step in range(max(len(chain.scales) for chain in chains)):
        rows: dict[float, list[int]] = {}
        for row, chain in enumerate(chains):
            for order, weight in chain.inputs[step] if step < len(chain.scales) else ():
                if order not in known:
                    known[order] = function(points.ravel(), order).reshape(points.shape)
                    rough |= _rough(known[order][:, :, None])
                values[:, :, row] += weight * known[order]
            if step < len(chain.scales):
                rows.setdefault(chain.scales[step], []).append(row)
        for scale, own in rows.items():  # chains that average over the same noise, together
            if scale not in means:
                means[scale] = _Mean(width / scale)
            values[:, :, own] = means[scale](values[:, :, own])
            rough |= _rough(values[:, :, own])
    return values, rough


def _first_edges(low: float, high: float, knots: Floats) -> Floats:
    """Cells of width 1/8 of their distance from 0, at least 1/4: dyadic, so that few widths differ."""
    reach = max(abs(low), abs(high), 4.0)
    right = [np.arange(0.0, 4.0, 0.25)]
    start = 4.0
    while start <= reach:
        right.append(np.arange(start, 2.0 * start, start / 8.0))
        start *= 2.0
    half = np.concatenate(right)
    edges = np.concatenate([-half[:0:-1], half, [start]])
    first, last = max(np.searchsorted(edges, low) - 1, 0), np.searchsorted(edges, high) + 1
    return np.unique(np.concatenate([edges[first:last], knots[(knots > low) & (knots < high)]]))


def _rough(values: Floats) -> NDArray[np.bool_]:
    """Cells where the last coefficients of some function have not decayed; shape (cells, nodes, functions)."""
    tail = np.abs(_TO[-2:] @ values).max(axis=1)
    size = np.abs(values).max(axis=1)
    floor = 1e-3 * size.max(axis=0, initial=0.0) + 1e-300
    return np.asarray((tail > _DECAY * np.maximum(size, floor)).any(axis=1), bool)


class _Mean:
    """``R g`` at the nodes of cells whose widths are in units of b; g goes on as a constant beyond the cells."""

    def __init__(self, widths: Floats) -> None:
        kinds, kind = np.unique(widths, return_inverse=True)
        self.matrices = np.stack([_cell_matrix(float(width)) for width in kinds])[kind]
        self.decay = np.exp(-0.5 * np.outer(widths, _X + 1.0))

    def __call__(self, values: Floats) -> Floats:
        forward = _causal(values, self.matrices, self.decay)
        backward = _causal(values[::-1, ::-1], self.matrices[::-1], self.decay[::-1])[::-1, ::-1]
        return np.asarray(0.5 * (forward + backward), float)


def _causal(values: Floats, matrices: Floats, decay: Floats) -> Floats:
    """``F`` at the nodes, from the left: in a cell a matrix, and ``kept_i F_i + end_i`` from cell to cell."""
    local = matrices @ values
    kept, end = decay[:, -1:].copy(), local[:, -1].copy()
    end[0] += kept[0] * values[0, 0]
    shift = 1
    while shift < len(kept):  # composes ever longer runs of cells
        end[shift:] += kept[shift:] * end[:-shift]
        kept[shift:] *= kept[:-shift]
        shift *= 2
    entry = np.concatenate([values[:1, 0], end[:-1]])
    return np.asarray(decay[:, :, None] * entry[:, None] + local, float)


_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(48)


@lru_cache(maxsize=512)
def _cell_matrix(width: float) -> Floats:
    """Maps g at the nodes to ``int_{-1}^{x_j} e^{-(x_j - x) width/2} g(x) dx width/2``."""
    cut = np.minimum(0.5 * width * (_X + 1.0), _FAR)[:, None]
    t = 0.5 * cut * (_POINTS + 1.0)
    x = _X[:, None] - 2.0 * t / width
    weights = 0.5 * cut * _WEIGHTS * np.exp(-t)
    rows = np.einsum("jq,jqm->jm", weights, chebyshev.chebvander(x, _NODES - 1)) @ _TO
    rows.setflags(write=False)
    return np.asarray(rows, float)


class _Lookup:
    """Values of the tables at any u: bins of equal width tell the cell, or all but one edge of it."""

    def __init__(self, edges: Floats, tables: Floats, low: float, high: float) -> None:
        first = max(int(np.searchsorted(edges, low, side="right")) - 1, 0)
        last = max(int(np.searchsorted(edges, high)), first + 1)
        self.edges, self.tables = edges[first : last + 1], np.ascontiguousarray(tables[:, :, first:last])
        self.middle = 0.5 * (self.edges[1:] + self.edges[:-1])
        self.scale = 2.0 / np.diff(self.edges)
        ends = np.linspace(low, high, _BINS + 1)
        at = np.clip(np.searchsorted(self.edges, ends, side="right") - 1, 0, self.scale.size - 1)
        self.low, self.step = low, _BINS / (high - low)
        self.start = at[:-1] if (np.diff(at) <= 1).all() else None

    def _cell(self, u: Floats) -> NDArray[np.intp]:
        if self.start is None:
            return np.clip(np.searchsorted(self.edges, u, side="right") - 1, 0, self.scale.size - 1)
        cell = self.start.take(np.clip((u - self.low) * self.step, 0, _BINS - 1).astype(np.intp))
        cell += u >= self.edges.take(cell + 1)
        cell -= u < self.edges.take(cell)  # where rounding took the bin beyond
        return np.clip(cell, 0, self.scale.size - 1, out=cell)

    def __call__(self, u: Floats) -> list[Floats]:
        cell = self._cell(u)
        t = (u - self.middle.take(cell)) * self.scale.take(cell)
        answers = []
        for table in self.tables:
            total = table[-1].take(cell)
            for coefficients in table[-2::-1]:
                total *= t
                total += coefficients.take(cell)
            answers.append(total)
        return answers
