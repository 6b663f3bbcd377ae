"""Group privacy of piecewise linear curves: the composition of two polylines is a polyline.

Cells of the first curve occupy its axis of power, cells of the second its axis of level; both are the middle
axis of the chain, and both are sorted by falling loss. Where cells with losses s and t overlap on a width m of
the middle axis, the composed curve has a cell with loss ``s + t``, level ``m e^-s`` and power ``m e^t``. A cell of
infinite loss has no level: it keeps its power at the start.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.discrete import DiscreteCurve, from_atoms

__all__ = ["group_polyline"]

Floats = NDArray[np.float64]
MAX_CELLS = 200_000


def group_polyline(curve: DiscreteCurve, k: int) -> DiscreteCurve | None:
    """The k-fold power of a symmetric piecewise linear curve; None if it would have too many cells.

    Parameters
    ----------
    curve : DiscreteCurve
    k : int

    Returns
    -------
    DiscreteCurve or None

    Examples
    --------
    >>> from privfit.accounting.discrete import approximate_dp
    >>> group_polyline(approximate_dp(0.5, 0.0), 2).max_loss
    1.0
    """
    if k * len(curve.loss) > MAX_CELLS:
        return None
    result: DiscreteCurve | None = None
    power = curve
    while k:
        if k % 2:
            result = power if result is None else _chained(result, power)
        k //= 2
        if k:
            power = _chained(power, power)
    return result


def _chained(first: DiscreteCurve, second: DiscreteCurve) -> DiscreteCurve:
    """Polyline of the chain of two symmetric ones; the steep half is computed, the other is its mirror."""
    s, _, q = (np.asarray(v)[::-1] for v in (first.loss, first.p, first.q))
    t, p, top = (np.asarray(v)[::-1] for v in (second.loss, second.p, second.q))
    left, right = np.cumsum(q), np.cumsum(p)
    edges = np.union1d(left, right)
    edges = edges[(edges > 0.0) & (edges < 1.0)]
    width = np.diff(np.concatenate([[0.0], edges, [1.0]]))
    middle = np.concatenate([[0.0], edges]) + width / 2
    i = np.minimum(np.searchsorted(left, middle), len(s) - 1)
    j = np.minimum(np.searchsorted(right, middle), len(t) - 1)
    with np.errstate(invalid="ignore", over="ignore"):
        loss = s[i] + t[j]
        level, power = width * np.exp(-s[i]), width * np.exp(t[j])
    # a loss of +inf then -inf would be a test that gains nothing: it counts as no loss
    loss = np.where(np.isnan(loss), -np.inf, loss)
    steep = loss > 1e-15 * max(abs(v) for v in (*_finite(s), *_finite(t), 0.0))
    certain = np.isinf(t) & (t > 0)
    loss = np.concatenate([np.where(certain, np.inf, 0.0)[certain], loss[steep]])
    level = np.concatenate([np.zeros(int(certain.sum())), level[steep]])
    power = np.concatenate([top[certain], power[steep]])
    flat = max(1.0 - float(level.sum()) - float(power.sum()), 0.0)
    return from_atoms(
        np.concatenate([-loss, [0.0], loss]),
        np.concatenate([power, [flat], level]),
        np.concatenate([level, [flat], power]),
    )


def _finite(values: Floats) -> list[float]:
    return [float(v) for v in values if np.isfinite(v)]
