"""What privacy costs a fit: standard errors beside those of the raw data, efficiency against the budget, regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.accounting.validation import check_array
from privfit.figures_style import COLOURS, COUNT, DASHES, MARKERS, blank_figure, start

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_efficiency", "plot_errors", "plot_regions"]

Floats = NDArray[np.float64]


def plot_errors(names: Sequence[str], errors: ArrayLike, factors: ArrayLike, title: str = "") -> Figure:
    """Draw standard errors on the release beside those that the raw data would give, with their ratio.

    Parameters
    ----------
    names : sequence of str
        Coefficients.
    errors, factors : array_like, shape (p,)
        ``fit.bse_`` and ``fit.efficiency_.factors``; of an infinite factor the release's error is drawn alone, of an
        infinite error nothing, and the name says so.
    title : str

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If the lengths differ, or no standard error is known.

    Examples
    --------
    >>> figure = plot_errors(["age", "hours"], [0.2, 0.3], [1.5, 2.0])
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['x 1.50', 'x 2.00']
    """
    own, grown = check_array("errors", errors), check_array("factors", factors)
    if not own.shape == grown.shape == (len(names),):
        raise ValueError(f"errors and factors must have {len(names)} entries, got {own.shape} and {grown.shape}.")
    there = np.isfinite(own) & (own > 0.0)
    known = there & np.isfinite(grown)
    if not there.any():
        raise ValueError("errors must have a finite one to draw: the release tells none of these standard errors.")
    figure, (ax,) = blank_figure(1, (7.2, 1.6 + 0.42 * max(len(names), 3)))
    rows = np.arange(len(names), dtype=np.float64)
    raw = np.divide(own, grown, out=np.zeros_like(own), where=known)
    ax.hlines(rows[known], raw[known], own[known], color="0.6", linewidth=2.5)
    styles = (("raw data, estimated from the release", raw, known, 0, "white"), ("release", own, there, 1, None))
    for label, values, drawn, j, face in styles:
        colour = COLOURS[j % COUNT]
        ax.plot(
            values[drawn],
            rows[drawn],
            linestyle="none",
            marker=MARKERS[j % COUNT],
            color=colour,
            markerfacecolor=face or colour,
            markersize=8,
            label=label if drawn.any() else "raw data: unknown from this release",
        )
    for row in np.flatnonzero(known):
        ax.annotate(f"x {grown[row]:.2f}", (own[row], rows[row]), (9, -4), textcoords="offset points", fontsize=9)
    said = np.where(known, "", np.where(there, " (raw data unknown)", " (unknown)"))
    labels = [f"{name}{text}" for name, text in zip(names, said, strict=True)]
    ax.set(yticks=rows, yticklabels=labels, xlabel="standard error, in the units of the coefficient (log scale)")
    ax.set(xscale="log", title=title)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ends = np.concatenate([raw[known], own[there]])
    ax.set_xlim(ends.min() / 1.3, ends.max() * 1.9)
    _plain_ticks(ax.xaxis)
    ax.grid(axis="x", color="0.92")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def plot_efficiency(
    budgets: Sequence[float],
    factors: Mapping[str, ArrayLike],
    *,
    xlabel: str = "privacy budget of the record, ε (log scale)",
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw how much standard errors grow against the budget, and the share of raw records that is left in effect.

    Parameters
    ----------
    budgets : sequence of floats > 0
        Budgets, or noise scales with another `xlabel`.
    factors : mapping
        ``{name: standard error over that of the raw data, one per budget}``; what is infinite is a gap.
    xlabel, title : str
    ax : Axes, optional
        Where to draw; a new figure if left out.

    Returns
    -------
    matplotlib.axes.Axes
        A second axis on its right shows ``1 / factor^2``, the raw records that one released record is worth.

    Raises
    ------
    ValueError
        For a budget or a factor that is not positive, or numbers of factors that differ from that of the budgets.

    Examples
    --------
    >>> ax = plot_efficiency([1.0, 2.0, 4.0], {"Laplace": [9.0, 3.0, 1.5]})
    >>> bool(ax.get_ylim()[0] < 1.0 < ax.get_ylim()[1])
    True
    """
    axes = start(ax, (7.2, 4.8))
    x = check_array("budgets", budgets)
    if x.ndim != 1 or not x.size or not (x > 0.0).all():
        raise ValueError("budgets must be one or more positive numbers.")
    highest, lowest = 1.0, 1.0
    for j, (name, values) in enumerate(factors.items()):
        own = check_array(f"factors[{name!r}]", values)
        if own.shape != x.shape or not (own > 0.0).all():
            raise ValueError(f"factors[{name!r}] must be {x.size} positive numbers, got shape {own.shape}.")
        shown = np.where(np.isfinite(own), own, np.nan)
        style: dict[str, Any] = {"color": COLOURS[j % COUNT], "linestyle": DASHES[j % COUNT]}
        axes.plot(x, shown, marker=MARKERS[j % COUNT], markersize=5, label=name, **style)
        if np.isfinite(own).any():
            highest, lowest = max(highest, float(np.nanmax(shown))), min(lowest, float(np.nanmin(shown)))
    axes.axhline(1.0, color="0.45", linewidth=0.9, linestyle=":")
    axes.set(xscale="log", yscale="log", xlabel=xlabel, title=title)
    axes.set_ylabel("standard error over that of the raw data (log scale)")
    axes.set_ylim(lowest / 1.1, highest * 1.2)
    axes.set_xticks(x, [f"{budget:g}" for budget in x])
    axes.minorticks_off()
    _plain_ticks(axes.yaxis)
    right = axes.secondary_yaxis("right", functions=(_worth, _worth_back))
    right.set_ylabel("raw records that a released one is worth")
    _plain_ticks(right.yaxis)
    axes.grid(axis="y", color="0.92")
    axes.legend(frameon=False)
    return axes


def plot_regions(
    regions: Mapping[str, Any], names: tuple[str, str], *, title: str = "", ax: Axes | None = None
) -> Axes:
    """Draw confidence regions of two coefficients.

    Parameters
    ----------
    regions : mapping
        ``{label: ConfidenceRegion of two coefficients}``, see ``fit.confidence_region``.
    names : (str, str)
        Labels of the axes.
    title : str
    ax : Axes, optional
        Where to draw; a new figure if left out.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If a region is not in the plane.

    Examples
    --------
    >>> from privfit.estimators.regions import ConfidenceRegion
    >>> ax = plot_regions({"95 %": ConfidenceRegion.of(np.zeros(2), np.eye(2), 0.95)}, ("age", "hours"))
    >>> ax.get_xlabel(), len(ax.lines)
    ('age', 2)
    """
    axes = start(ax, (5.6, 5.0))
    for j, (label, region) in enumerate(regions.items()):
        edge = region.boundary(400)
        colour = COLOURS[j % COUNT]
        axes.plot(edge[:, 0], edge[:, 1], color=colour, linestyle=DASHES[j % COUNT], label=label)
        axes.fill(edge[:, 0], edge[:, 1], color=colour, alpha=0.1, linewidth=0)
        axes.plot(*region.centre, color=colour, marker=MARKERS[j % COUNT], linestyle="none")
    axes.set(xlabel=names[0], ylabel=names[1], title=title)
    axes.legend(frameon=False)
    return axes


def _worth(factor: Any) -> Floats:
    return np.asarray(np.maximum(factor, 1e-30), np.float64) ** -2.0


def _worth_back(share: Any) -> Floats:
    return np.asarray(np.maximum(share, 1e-30), np.float64) ** -0.5


def _plain_ticks(axis: Any) -> None:
    """Numbers without powers of ten, at 1, 2 and 5."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
