"""How epsilon grows with the number of releases, and which noise of a zero-inflated law meets a target."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privfit.accounting import TradeOffCurve
from privfit.accounting.validation import check_integer, check_number
from privfit.figures_style import COLOURS, COUNT, finish, named, series, shade, start
from privfit.mechanisms import ZilRegion

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_composition", "plot_region"]

Floats = NDArray[np.float64]

FACTOR = 1.02  # ratio of two bounds that can be seen


def plot_composition(
    curves: TradeOffCurve | Mapping[str, TradeOffCurve],
    delta: float,
    counts: int | Sequence[int] = 100,
    ax: Axes | None = None,
    *,
    naive: bool = False,
    bands: bool = True,
    title: str = "",
    legend: bool = True,
) -> Axes:
    """Draw epsilon at a fixed delta against the number k of runs on the same records.

    Parameters
    ----------
    curves : TradeOffCurve or mapping
        One curve, or ``{label: curve}``; each is the guarantee of one run.
    delta : float
        In (0, 1).
    counts : int or sequence of ints
        The values of k, each at least 1; one number is the largest of about ten.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    naive : bool
        Draw also what adding up gives: k times epsilon at delta / k.
    bands : bool
        Shade what lies between the bounds of epsilon, where they can be told apart.
    title : str
    legend : bool
        As for `plot_tradeoff`.

    Returns
    -------
    matplotlib.axes.Axes
        Where no epsilon reaches delta any more, a line ends and its entry in the legend says so.

    Raises
    ------
    TypeError, ValueError
        If something is not a curve, there is none, or a number is out of range.

    Examples
    --------
    >>> from privfit.accounting import gaussian
    >>> ax = plot_composition(gaussian(0.5), 1e-5, [1, 4, 16])
    >>> round(float(ax.lines[0].get_ydata()[1]), 6) == round(gaussian(1.0).epsilon(1e-5), 6)
    True
    """
    known = named(curves)
    d = check_number("delta", delta, 0.0, 1.0, low_open=True, high_open=True)
    k = _counts(counts)
    drawn = start(ax, (6.6, 4.8))
    for j, (label, curve) in enumerate(known.items()):
        _draw(drawn, label, curve, d, k, naive, bands, j)
    values = np.concatenate([np.asarray(line.get_ydata(), dtype=np.float64) for line in drawn.lines])
    values = values[np.isfinite(values)]
    drawn.set(xlabel="number k of runs on the same records", ylabel=f"ε (nats) at δ = {d:g}", xscale="log")
    if values.size and values.min() > 0 and values.max() > 4 * values.min():
        drawn.set_yscale("log")
    elif not values.size:
        drawn.text(0.5, 0.5, f"no ε reaches δ = {d:g}", ha="center", transform=drawn.transAxes)
        drawn.set_yticks([])
    drawn.set_xlim(k[0] / 1.1, max(k[-1] * 1.1, k[0] * 1.2))
    _plain_ticks(drawn)
    steps = np.diff(np.log(k))
    if len(k) < 9 and (len(k) == 1 or steps.min() > 0.05 * steps.sum()):
        drawn.set_xticks(k, [f"{n:g}" for n in k], minor=False)
        drawn.minorticks_off()
    drawn.grid(color="0.92", linewidth=0.6)
    drawn.set_axisbelow(True)
    finish([drawn], title, ax is None, legend)
    return drawn


def _counts(counts: int | Sequence[int]) -> list[int]:
    if np.ndim(counts) == 0:
        most = check_integer("counts", counts, 1, 10**9)
        return sorted({round(v) for v in np.geomspace(1, most, 10).tolist()})
    found = sorted({check_integer("counts", v, 1, 10**9) for v in np.asarray(counts).tolist()})
    if not found:
        raise ValueError("counts must hold at least one number of runs, got none.")
    return found


def _draw(
    ax: Axes, label: str, curve: TradeOffCurve, delta: float, k: list[int], naive: bool, bands: bool, j: int
) -> None:
    together = [curve.self_compose(n) for n in k]
    high = np.array([c.epsilon(delta) for c in together])
    low = np.array([c.epsilon(delta, bound="lower") for c in together]) if bands else high
    good = np.isfinite(high)
    x = np.array(k, dtype=np.float64)
    if not good.all():
        last = k[int(good.sum()) - 1] if good.any() else 0
        label += f" (no ε beyond k = {last})" if last else " (no ε at any k)"
    between = bool(np.any(high[good] > FACTOR * np.maximum(low[good], 1e-300)))
    ax.plot(x[good], high[good], label=label, **(series(j) | {"markevery": None}))
    if between:
        shade(ax, x[good], low[good], high[good], j, f"{label}, lower to upper bound")
    if naive:
        added = np.array([n * curve.epsilon(delta / n) for n in k])
        sign = series(j) | {"markevery": None, "linewidth": 0.8, "markerfacecolor": "white"}
        ax.plot(x, np.where(np.isfinite(added), added, math.nan), label=f"{label}: added up, k ε(δ/k)", **sign)


def _plain_ticks(ax: Axes) -> None:
    """Numbers as people write them, at 1, 2 and 5, if a logarithmic axis is short; else powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for axis, ends in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        if axis.get_scale() == "log" and ends[1] < 1000 * ends[0]:
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_formatter(NullFormatter())


def plot_region(
    regions: ZilRegion | Mapping[str, ZilRegion],
    ax: Axes | None = None,
    *,
    title: str = "",
    legend: bool = True,
) -> Axes:
    """Draw which pairs (delta0, lambda) of zero-inflated Laplace noise meet a target.

    Parameters
    ----------
    regions : ZilRegion or mapping
        What `privfit.mechanisms.zil_region` returns, or ``{label: region}``. A border and all that lies above it
        meets the target.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    title : str
    legend : bool
        As for `plot_tradeoff`.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError, ValueError
        If something is not a region, or there is none.

    Examples
    --------
    >>> from privfit.accounting import Budget
    >>> from privfit.mechanisms import Box, zil_region
    >>> region = zil_region(Budget(1.0, 0.1), Box({"x": (0, 1)}), [0.02, 0.05, 0.09])
    >>> plot_region(region).get_xlabel()
    'δ₀, probability that a row comes out without noise'
    """
    known = _regions(regions)
    drawn = start(ax, (6.4, 4.8))
    top = max(float(np.max(r.scale)) for r in known.values()) * 1.08
    lowest = min(float(np.min(r.scale)) for r in known.values())
    least, most = (f([f(r.delta0) for r in known.values()]) for f in (np.min, np.max))
    tall = top > 30 * lowest
    for j, (label, region) in enumerate(known.items()):
        x, y = np.asarray(region.delta0), np.asarray(region.scale)
        order = np.argsort(x)
        colour = COLOURS[j % COUNT]
        drawn.fill_between(x[order], y[order], top * (2 if tall else 1), color=colour, alpha=0.13, linewidth=0)
        marks = {"markevery": None} if x.size < 3 else {}
        drawn.plot(x[order], y[order], label=f"smallest noise: {label}", **(series(j) | marks))
    drawn.fill_between([], [], color="0.5", alpha=0.25, linewidth=0, label="meets the target")
    wide = most > 1000 * least
    if wide:
        drawn.set(xscale="log", xlim=(least, most))
    else:
        drawn.set_xlim(0.0, max(1.03 * most, 1e-300))
        if most < 1e-2:
            drawn.ticklabel_format(axis="x", style="sci", scilimits=(0, 0), useMathText=True)
    if tall:
        drawn.set(yscale="log", ylim=(0.8 * lowest, top))
    else:
        drawn.set_ylim(0.0 if lowest < 0.3 * top else lowest - 0.25 * (top - lowest), top)
    drawn.set(
        xlabel="δ₀, probability that a row comes out without noise",
        ylabel="λ, standard deviation of the noise\n(in ranges of the column, or diameters of the ball)",
    )
    finish([drawn], title, ax is None, legend)
    return drawn


def _regions(regions: ZilRegion | Mapping[str, ZilRegion]) -> dict[str, ZilRegion]:
    if isinstance(regions, ZilRegion):
        return {str(regions.target): regions}
    if not isinstance(regions, Mapping):
        raise TypeError(f"regions must be a ZilRegion or a mapping {{label: region}}, got {type(regions).__name__}.")
    if not regions:
        raise ValueError("regions must hold at least one region; see privfit.mechanisms.zil_region.")
    for label, region in regions.items():
        if not isinstance(region, ZilRegion):
            raise TypeError(f"regions[{label!r}] must be a ZilRegion, got {type(region).__name__}.")
    return {str(label): region for label, region in regions.items()}
