"""Estimates with their intervals, and what privacy costs in standard errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.accounting.validation import check_array
from privfit.figures_style import COLOURS, COUNT, DASHES, MARKERS, blank_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Intervals", "plot_coefficients", "plot_cost"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Intervals:
    """Estimates of one fit with their intervals, as `plot_coefficients` draws them.

    Parameters
    ----------
    estimate, lower, upper : array of shape (p,)
        In the units of the axis; an interval with an infinite end is drawn as an open mark without a bar.

    Examples
    --------
    >>> Intervals([1.0], [0.5], [1.5]).usable
    array([ True])
    """

    estimate: ArrayLike
    lower: ArrayLike
    upper: ArrayLike

    def __post_init__(self) -> None:
        for name in ("estimate", "lower", "upper"):
            object.__setattr__(self, name, np.atleast_1d(check_array(name, getattr(self, name))))

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Whether the interval is finite, shape (p,)."""
        return np.asarray(np.isfinite(self.lower) & np.isfinite(self.upper))


def plot_coefficients(
    panels: Mapping[str, Mapping[str, Intervals]],
    names: Mapping[str, Sequence[str]],
    units: Mapping[str, str],
) -> Figure:
    """Draw estimates with intervals, one panel per model, one mark per fit.

    Parameters
    ----------
    panels : mapping
        ``{model: {fit: Intervals}}``.
    names : mapping
        ``{model: names of its coefficients}``.
    units : mapping
        ``{model: label of its axis, with the unit}``.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> fits = {"raw data": Intervals([1.0], [0.9], [1.1]), "release": Intervals([1.2], [0.7], [1.7])}
    >>> figure = plot_coefficients({"logistic": fits}, {"logistic": ["age"]}, {"logistic": "log-odds"})
    >>> [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    ['age']
    """
    figure, axes = blank_figure(len(panels), (4.8 * len(panels) + 1.2, 3.9))
    for ax, (model, fits) in zip(axes, panels.items(), strict=True):
        rows = np.arange(len(names[model]), dtype=np.float64)
        for j, (label, fit) in enumerate(fits.items()):
            _draw_fit(ax, rows + 0.2 * (j - (len(fits) - 1) / 2), fit, label, j)
        ax.axvline(0, color="0.45", linewidth=0.9, linestyle=":")
        ax.set(xlabel=units[model], title=model, yticks=rows, yticklabels=list(names[model]))
        ax.set_ylim(len(rows) - 0.5, -0.5)
        _limit_to_intervals(ax, list(fits.values()))
    # Entries of all panels, because an open mark may occur in one of them only.
    handles = {t: h for ax in axes for h, t in zip(*ax.get_legend_handles_labels(), strict=True)}
    # As many columns as the figure is wide, at about 12 characters an inch and 0.7 inches for the mark.
    ncols = max(1, int(figure.get_figwidth() / (max(map(len, handles), default=0) / 12 + 0.7)))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=ncols, frameon=False)
    return figure


def _draw_fit(ax: Axes, rows: Floats, fit: Intervals, label: str, j: int) -> None:
    estimate, lower, upper = (np.asarray(v, float) for v in (fit.estimate, fit.lower, fit.upper))
    good = fit.usable
    # A mark must not hide a short interval: small marks, and the bar with its caps drawn over them.
    style: dict[str, Any] = {
        "color": COLOURS[j % COUNT],
        "marker": MARKERS[j % COUNT],
        "linestyle": "none",
        "markersize": 4,
    }
    if good.any():
        bars = np.array([estimate - lower, upper - estimate])[:, good]
        bar = ax.errorbar(estimate[good], rows[good], xerr=bars, capsize=5, capthick=1.5, label=label, **style)
        bar.lines[0].set_alpha(0.6)
        for over in (*bar.lines[1], *bar.lines[2]):
            over.set_zorder(4)
    if not good.all():
        ax.plot(estimate[~good], rows[~good], markerfacecolor="white", label=f"{label}: no interval", **style)


def _limit_to_intervals(ax: Axes, fits: Sequence[Intervals]) -> None:
    ends = np.concatenate([np.asarray(e, float) for f in fits for e in (f.estimate, f.lower, f.upper)])
    ends = np.append(ends[np.isfinite(ends)], 0.0)
    margin = 0.06 * max(float(np.ptp(ends)), 1e-9)
    ax.set_xlim(float(ends.min()) - margin, float(ends.max()) + margin)


def plot_cost(
    epsilons: Sequence[float],
    errors: Mapping[str, ArrayLike],
    oracle: Mapping[str, float],
    small: Sequence[bool] = (),
    ylabel: str = "standard error",
    title: str = "",
) -> Figure:
    """Draw standard errors against the budget, and mark where the sample is too small for the noise.

    Parameters
    ----------
    epsilons : sequence of floats > 0
        Budgets, increasing.
    errors : mapping
        ``{coefficient: standard errors, one per budget}``, inf where there is none.
    oracle : mapping
        ``{coefficient: standard error of the raw data}``, drawn as a horizontal line.
    small : sequence of bool, optional
        Where the library warned, one per budget: a cross, and open marks if there are standard errors.
    ylabel, title : str

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = plot_cost([1, 4, 12], {"age": [float("inf"), 0.5, 0.1]}, {"age": 0.02})
    >>> figure.axes[0].get_xscale()
    'log'
    """
    from matplotlib.ticker import FormatStrFormatter, LogLocator

    figure, (ax,) = blank_figure(1, (7.2, 4.8))
    budgets = check_array("epsilons", epsilons)
    values = {name: check_array(f"errors[{name!r}]", own) for name, own in errors.items()}
    ax.set(xscale="log", yscale="log", xlabel="privacy budget of the record, ε (log scale)", ylabel=ylabel)
    infinite = ~np.logical_and.reduce([np.isfinite(own) for own in values.values()])
    warned = infinite | np.asarray(small, dtype=bool) if len(small) else infinite
    for j, (name, own) in enumerate(values.items()):
        style: dict[str, Any] = {"color": COLOURS[j % COUNT], "marker": MARKERS[j % COUNT]}
        good, open_mark = np.isfinite(own) & ~warned, np.isfinite(own) & warned
        ax.plot(budgets[good], own[good], linestyle=DASHES[j % COUNT], label=f"{name}, release", **style)
        ax.plot(budgets[open_mark], own[open_mark], linestyle="none", markerfacecolor="white", **style)
        ax.axhline(oracle[name], color=COLOURS[j % COUNT], linewidth=1.0, linestyle=DASHES[j % COUNT], alpha=0.7)
    lowest, highest = _span(list(values.values()), list(oracle.values()))
    ax.set_ylim(lowest / 1.6, highest * 3.0)
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(FormatStrFormatter("%g"))
    if warned.any():
        _mark_small(ax, budgets[warned], highest * 1.9)
    # One entry for all horizontal lines: they share colour and dashes with their coefficient.
    ax.plot([], [], color="0.3", linewidth=1.0, label="horizontal lines: raw data, same colour and dashes")
    ax.set_xlim(budgets.min() / 1.25, budgets.max() * 1.25)
    ax.set_xticks(budgets, [f"{b:g}" for b in budgets])
    ax.minorticks_off()
    ax.set_title(title)
    ax.grid(axis="y", color="0.9")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def _span(errors: Sequence[Floats], oracle: Sequence[float]) -> tuple[float, float]:
    flat = np.concatenate([*errors, np.asarray(oracle, float)])
    flat = flat[np.isfinite(flat) & (flat > 0)]
    return (float(flat.min()), float(flat.max())) if flat.size else (0.1, 1.0)


def _mark_small(ax: Axes, budgets: Floats, height: float) -> None:
    heights = np.full(budgets.size, height)
    ax.plot(
        budgets,
        heights,
        color="black",
        linestyle="none",
        marker="x",
        markersize=9,
        markeredgewidth=2,
        label="the library warns: sample too small (open marks: not to be trusted)",
    )
