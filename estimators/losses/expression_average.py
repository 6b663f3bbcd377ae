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
    tables = [_table(function, knots, chain, low, high) for chain in chains]
    return lambda u: [_interpolated(edges, coefficients, u) for edges, coefficients in tables]


def _table(function: Derivatives, knots: Floats, chain: Chain, low: float, high: float) -> tuple[Floats, Floats]:
    edges = _first_edges(low - chain.reach, high + chain.reach, knots)
    while True:
        width = np.diff(edges)
        middle = 0.5 * (edges[1:] + edges[:-1])
        points = middle[:, None] + 0.5 * width[:, None] * _X
        # ends of cells belong to the cell: a jump there is seen from inside
        points[:, 0] = np.nextafter(points[:, 0], np.inf)
        points[:, -1] = np.nextafter(points[:, -1], -np.inf)
        values = np.zeros_like(points)
        rough = np.zeros(width.size, bool)
        for scale, weights in zip(chain.scales, chain.inputs, strict=True):
            for order, weight in weights:
                own = weight * function(points.ravel(), order).reshape(points.shape)
                rough |= _rough(own)
                values = values + own
            values = _resolvent(values, width / scale)
            rough |= _rough(values)
        inside = (edges[1:] > low - chain.reach / 2) & (edges[:-1] < high + chain.reach / 2)
        rough &= inside & (width > 1e-9 * (1.0 + np.abs(middle)))
        if not rough.any():
            return edges, values @ _TO.T
        edges = np.sort(np.concatenate([edges, middle[rough]]))
        if edges.size > _MOST_CELLS:
            raise ValueError(
                f"the loss is too rough, or indices are too far apart (from {low:.3g} to {high:.3g}), for a table of "
                f"{_MOST_CELLS} cells. Rescale the columns, or use correction='dr'."
            )


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
    """Cells whose last coefficients have not decayed."""
    tail = np.abs(values @ _TO.T[:, -2:]).max(axis=1)
    size = np.abs(values).max(axis=1)
    return np.asarray(tail > _DECAY * np.maximum(size, 1e-3 * float(size.max(initial=0.0)) + 1e-300), bool)


def _resolvent(values: Floats, widths: Floats) -> Floats:
    """``R g`` at the nodes; widths of the cells in units of b."""
    forward = _causal(values, widths)
    backward = _causal(values[::-1, ::-1], widths[::-1])[::-1, ::-1]
    return 0.5 * (forward + backward)


def _causal(values: Floats, widths: Floats) -> Floats:
    """``F`` at the nodes, from the left; g goes on as a constant beyond the first cell."""
    kinds, kind = np.unique(widths, return_inverse=True)
    matrices = np.stack([_cell_matrix(float(width)) for width in kinds])
    local = np.empty_like(values)
    for k, matrix in enumerate(matrices):
        local[kind == k] = values[kind == k] @ matrix.T
    decay = np.exp(-0.5 * np.outer(widths, _X + 1.0))
    entry = np.empty(widths.size)
    carried = float(values[0, 0])
    for i, (end, kept) in enumerate(zip(local[:, -1].tolist(), decay[:, -1].tolist(), strict=True)):
        entry[i] = carried
        carried = kept * carried + end
    return decay * entry[:, None] + local


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


def _interpolated(edges: Floats, coefficients: Floats, u: Floats) -> Floats:
    cell = np.clip(np.searchsorted(edges, u, side="right") - 1, 0, edges.size - 2)
    left, right = edges[cell], edges[cell + 1]
    t = (2.0 * u - left - right) / (right - left)
    return np.asarray(chebyshev.chebval(t, coefficients[cell].T, tensor=False), float)
