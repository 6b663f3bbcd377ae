"""Privacy profiles: delta against epsilon, far into the tail."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privfit.accounting import TradeOffCurve
from privfit.accounting.validation import check_number
from privfit.figures_style import finish, named, series, shade, start

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_profile"]

Floats = NDArray[np.float64]

SPREAD = 25.0  # the longest profile over the shortest, above which the axis of epsilon is bent
FACTOR = 1.05  # ratio of two bounds that can be seen


def plot_profile(
    curves: TradeOffCurve | Mapping[str, TradeOffCurve],
    ax: Axes | None = None,
    *,
    smallest: float = 1e-12,
    largest_epsilon: float | None = None,
    bands: bool = True,
    title: str = "",
    legend: bool = True,
) -> Axes:
    """Draw privacy profiles delta(epsilon), delta on a logarithmic axis.

    The axis of epsilon is linear; where one profile reaches much further than another, it is linear near zero and
    turns smoothly into a logarithmic one (matplotlib's "asinh" scale).

    Parameters
    ----------
    curves : TradeOffCurve or mapping
        One curve, or ``{label: curve}``.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    smallest : float
        delta at which the axis ends, in [1e-300, 0.1].
    largest_epsilon : float, optional
        Where the axis of epsilon ends, > 0 in nats; by default where every profile has fallen to `smallest` or
        to its limit.
    bands : bool
        Shade what lies between the bounds of a curve that is known only between two, where they can be told apart.
    title : str
    legend : bool
        As for `plot_tradeoff`.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError, ValueError
        If something is not a curve, there is none, or a number is out of range.

    Examples
    --------
    >>> from privfit.accounting import gaussian, laplace
    >>> ax = plot_profile({"Gaussian": gaussian(0.5), "Laplace": laplace(2.0)}, smallest=1e-9)
    >>> ax.get_yscale(), ax.get_xlabel()
    ('log', 'ε (nats)')
    """
    known, lowest = named(curves), check_number("smallest", smallest, 1e-300, 0.1)
    reach = [_reach(curve, lowest) for curve in known.values()]
    top = 1.04 * max(reach)
    if largest_epsilon is not None:
        top = check_number("largest_epsilon", largest_epsilon, 0.0, low_open=True)
    near = 1.1 * min(min(reach), top)
    bent = top > SPREAD * near
    drawn = start(ax, (6.6, 4.6))
    grid = np.linspace(0.0, top, 240)
    if bent:
        grid = np.union1d(np.linspace(0.0, near, 120), np.geomspace(near, top, 160))
    bottom = 1.0
    for j, (label, curve) in enumerate(known.items()):
        bottom = min(bottom, _draw(drawn, label, curve, grid, lowest, bands, j))
    if bent:
        _bend(drawn, near, top)
    margin = 0.0 if bent else 0.015 * top
    xlabel = "ε (nats; linear near 0, logarithmic far out)" if bent else "ε (nats)"
    drawn.set(xlabel=xlabel, ylabel="δ(ε), probability", yscale="log", xlim=(-margin, top))
    # profiles that never come near the end of the axis are not squeezed into its top
    drawn.set_ylim(max(0.7 * lowest, bottom / 30), 1.6)
    drawn.grid(color="0.92", linewidth=0.6)
    drawn.set_axisbelow(True)
    finish([drawn], title, ax is None, legend)
    return drawn


def _reach(curve: TradeOffCurve, lowest: float) -> float:
    """Where a profile has fallen to the end of the axis, or close to its limit."""
    mass = curve.delta(math.inf)
    end = curve.epsilon(lowest) if mass < lowest else curve.epsilon(min(1.0, 1.01 * mass))
    return min(max(end, 1e-3), 1e9) if end > 0 else 1.0


def _bend(ax: Axes, near: float, top: float) -> None:
    """Linear near zero, logarithmic far out, with ticks at zero and at powers of ten that do not crowd."""
    from matplotlib.ticker import NullLocator

    ax.set_xscale("asinh", linear_width=near / 3)
    decades = np.arange(math.ceil(math.log10(near / 3)), math.log10(top) + 1e-9)
    decades = decades[:: max(1, -(-decades.size // 6))]
    ax.set_xticks([0.0, *(10.0**decades).tolist()], ["0", *(f"{10.0**d:g}" for d in decades)])
    ax.xaxis.set_minor_locator(NullLocator())


def _draw(ax: Axes, label: str, curve: TradeOffCurve, grid: Floats, lowest: float, bands: bool, j: int) -> float:
    """Draw one profile and return its smallest value on the grid."""
    floor = 1e-3 * lowest  # a delta of zero ends the line below the axis
    limit = curve.max_loss
    own = np.union1d(grid, [limit * (1 - 1e-9), limit]) if limit < grid[-1] else grid
    high = np.asarray(curve.delta(own))
    low = np.asarray(curve.delta(own, bound="lower")) if bands else high
    between = bool(np.any((high > FACTOR * low) & (high > lowest)))
    middle = np.asarray(curve.delta(own, bound="estimate")) if between else high
    ax.plot(own, np.maximum(middle, floor), label=label, **series(j))
    if between:
        shade(ax, own, np.maximum(low, floor), np.maximum(high, floor), j, f"{label}, lower to upper bound")
    return float(middle.min())
