"""Trade-off curves, and the same as the ROC curve of a membership test on logarithmic axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privfit.accounting import TradeOffCurve
from privfit.accounting.validation import check_number
from privfit.figures_style import blank_figure, check_epsilons, finish, named, series, shade, start

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_curves", "plot_roc", "plot_tradeoff"]

Floats = NDArray[np.float64]

BENT = "Between two marks, (ε, δ) guarantees imply a straight line; logarithmic axes bend it into a scallop."
TYPE_I, TYPE_II = "false-alarm rate of the attack (type I error)", "miss rate of the attack (type II error)"
LOWEST = 1e-4
VISIBLE = 0.004  # of a linear axis, or of a factor on a logarithmic one


def plot_tradeoff(
    curves: TradeOffCurve | Mapping[str, TradeOffCurve],
    ax: Axes | None = None,
    *,
    epsilons: Sequence[float] = (),
    bands: bool = True,
    log: bool = False,
    title: str = "",
    legend: bool = True,
) -> Axes:
    """Draw trade-off curves: the misses of the best attack at every rate of false alarms.

    Parameters
    ----------
    curves : TradeOffCurve or mapping
        One curve, or ``{label: curve}``.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default, which belongs to no window (``ax.figure.savefig(path)``).
    epsilons : sequence of floats in [0, 700]
        Where the profile of every curve is quoted: the tangents with slopes ``-exp(+-epsilon)`` are drawn as the
        polyline that these (epsilon, delta) pairs imply; none by default.
    bands : bool
        Shade what lies between the bounds of a curve that is known only between two (an empirical curve with its
        confidence bands, a composition with its certified ones), where they can be told apart.
    log : bool
        Logarithmic axes, which open the corner near zero.
    title : str
    legend : bool
        Whether to draw a legend. On given axes it goes below them if the figure has a layout engine
        (``layout="constrained"``), otherwise inside.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError, ValueError
        If something is not a curve, there is none, or an epsilon is out of range.

    Examples
    --------
    >>> from privfit.accounting import gaussian, laplace
    >>> ax = plot_tradeoff({"Gaussian": gaussian(1.0), "Laplace": laplace(1.0)}, epsilons=[0.5, 1.5])
    >>> ax.get_ylabel()
    'miss rate of the attack (type II error)'
    """
    known, quoted = named(curves), check_epsilons(epsilons)
    drawn = start(ax, (5.5, 5.3))
    for j, (label, curve) in enumerate(known.items()):
        _draw([drawn], label, curve, quoted, bands, j)
    _frame(drawn, log)
    finish([drawn], title, ax is None, legend, BENT if log and quoted.size else "")
    return drawn


def plot_curves(
    curves: TradeOffCurve | Mapping[str, TradeOffCurve],
    epsilons: Sequence[float] = (),
    title: str = "",
    *,
    bands: bool = True,
) -> Figure:
    """Draw trade-off curves twice, on linear and on logarithmic axes (see `plot_tradeoff`).

    Parameters
    ----------
    curves : TradeOffCurve or mapping
        One curve, or ``{label: curve}``.
    epsilons : sequence of floats in [0, 700]
        Where the profile of every curve is quoted for its polyline; none by default.
    title : str
    bands : bool
        Shade what lies between the bounds of a curve that is known only between two.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    TypeError, ValueError
        If something is not a curve, there is none, or an epsilon is out of range.

    Examples
    --------
    >>> from privfit.accounting import gaussian
    >>> figure = plot_curves({"Gaussian, mu = 1": gaussian(1.0)}, epsilons=[0.5, 1.5])
    >>> figure.axes[0].get_xlabel()
    'false-alarm rate of the attack (type I error)'
    """
    known, quoted = named(curves), check_epsilons(epsilons)
    figure, axes = blank_figure(2, (10.4, 5.1))
    for j, (label, curve) in enumerate(known.items()):
        _draw(axes, label, curve, quoted, bands, j)
    for ax, log, name in zip(axes, (False, True), ("linear axes", "the same, logarithmic axes"), strict=True):
        _frame(ax, log)
        ax.set_title(name, fontsize="medium")
    finish(axes, title, True, note=BENT if quoted.size else "")
    return figure


def _levels() -> Floats:
    """False-alarm rates that are dense on linear and on logarithmic axes."""
    return np.concatenate([[0.0], np.geomspace(1e-6, 0.02, 100), np.linspace(0.022, 1.0, 200)])


def _draw(axes: Sequence[Axes], label: str, curve: TradeOffCurve, quoted: Floats, bands: bool, j: int) -> None:
    """One curve on all panels: evaluated once."""
    alpha = _levels()
    edge, _ = curve.error_rates(np.array([curve.max_loss, -curve.max_loss]))  # a kink if the loss is bounded
    alpha = np.union1d(alpha, np.clip(edge, 0.0, 1.0))
    low = np.asarray(curve.curve(alpha))
    high = np.asarray(curve.curve(alpha, bound="upper")) if bands else low
    between = bool(np.max(high - low) > VISIBLE)
    middle = np.asarray(curve.curve(alpha, bound="estimate")) if between else low
    corners = _corners(curve, quoted) if quoted.size else None
    for ax in axes:
        if j == 0:
            ax.plot(alpha, 1 - alpha, color="0.45", linewidth=1.0, linestyle=":", label="perfect privacy")
        ax.plot(alpha, middle, label=label, **series(j))
        if between:
            shade(ax, alpha, low, high, j, f"{label}, lower to upper bound")
        if corners is not None:
            implied = f"{label}, what (ε, δ) at ε = {', '.join(f'{e:g}' for e in quoted)} imply"
            x = np.union1d(alpha, corners[0])
            # straight lines between corners on a fine grid: on logarithmic axes they are curves
            sign = series(j) | {"linestyle": "-", "linewidth": 0.9, "markerfacecolor": "white"}
            sign["markevery"] = np.searchsorted(x, corners[0]).tolist()
            ax.plot(x, np.interp(x, *corners), label=implied, **sign)


def _frame(ax: Axes, log: bool) -> None:
    ax.set(xlabel=TYPE_I, ylabel=TYPE_II)
    if log:
        ax.set(xscale="log", yscale="log", xlim=(0.6 * LOWEST, 1.2), ylim=(0.6 * LOWEST, 1.2))
    else:
        ax.set(xlim=(-0.015, 1.015), ylim=(-0.015, 1.015))


def _corners(curve: TradeOffCurve, quoted: Floats) -> tuple[Floats, Floats]:
    """Corners of the polyline: its error rates at thresholds on either side of every quoted epsilon."""
    beside = np.concatenate([quoted - 1e-9, quoted + 1e-9])
    thresholds = np.unique(np.concatenate([beside, -beside, [-1e6, 1e6]]))
    alpha, beta = curve.envelope(quoted).error_rates(thresholds)
    return np.append(alpha[::-1], 1.0), np.append(beta[::-1], 0.0)


def plot_roc(
    curves: TradeOffCurve | Mapping[str, TradeOffCurve],
    ax: Axes | None = None,
    *,
    smallest: float = 1e-5,
    bands: bool = True,
    title: str = "",
    legend: bool = True,
) -> Axes:
    """Draw how often any membership test can be right: TPR <= 1 - f(FPR), on logarithmic axes.

    Parameters
    ----------
    curves : TradeOffCurve or mapping
        One curve, or ``{label: curve}``.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    smallest : float
        False-positive rate at which the axes begin, in [1e-300, 0.1].
    bands : bool
        Shade what lies between the bounds of a curve that is known only between two.
    title : str
    legend : bool
        As for `plot_tradeoff`.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError, ValueError
        If something is not a curve, there is none, or `smallest` is out of range.

    Examples
    --------
    >>> from privfit.accounting import gaussian
    >>> ax = plot_roc(gaussian(1.0), smallest=1e-4)
    >>> ax.get_xscale(), ax.get_yscale()
    ('log', 'log')
    """
    known, lowest = named(curves), check_number("smallest", smallest, 1e-300, 0.1)
    drawn = start(ax, (5.6, 5.3))
    rates = np.union1d(np.geomspace(lowest, 1.0, 240), np.linspace(max(lowest, 0.05), 1.0, 80))
    drawn.plot(rates, rates, color="0.45", linewidth=1.0, linestyle=":", label="guessing: TPR = FPR")
    for j, (label, curve) in enumerate(known.items()):
        high = 1.0 - np.asarray(curve.curve(rates))
        low = 1.0 - np.asarray(curve.curve(rates, bound="upper")) if bands else high
        between = bool(np.max(high - low * (1 + VISIBLE * np.log(1 / lowest))) > 0)
        middle = 1.0 - np.asarray(curve.curve(rates, bound="estimate")) if between else high
        drawn.plot(rates, middle, label=label, **series(j))
        if between:
            shade(drawn, rates, np.maximum(low, 0.1 * lowest), high, j, f"{label}, lower to upper bound")
    x = "false-positive rate of the membership test (share)"
    y = "largest true-positive rate (share)"
    ends: Any = (0.8 * lowest, 1.25)
    drawn.set(xscale="log", yscale="log", xlim=ends, ylim=ends, xlabel=x, ylabel=y)
    drawn.grid(color="0.92", linewidth=0.6)
    drawn.set_axisbelow(True)
    finish([drawn], title, ax is None, legend)
    return drawn
