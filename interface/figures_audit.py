"""Figure of an audit: the claimed trade-off curve and what the samples show, on linear and logarithmic axes.

A point is an event: how often the first input is taken for the second, and how often the second is missed, with a
box of confidence limits. The upper right corners bound the true rates of all events together; a mechanism that keeps
its claim has every true point on or above the curve, so a corner below the curve is a breach.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from privfit.figures_style import COLOURS, blank_figure, finish
from privfit.figures_tradeoff import plot_tradeoff
from privfit.mechanisms.auditing import AuditPoint, AuditReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_audit"]

NOTE = "Upper right corners bound the true rates (error probability {:g} for all); one below the curve is a breach."
SIGNS: tuple[tuple[bool, str, str, str], ...] = (
    (False, "evidence for the second input", "s", COLOURS[1]),
    (True, "evidence for the first input", "D", COLOURS[2]),
)


def plot_audit(report: AuditReport, ax: Axes | None = None, *, log: bool = False, title: str | None = None) -> Figure:
    """Draw the claimed curve and the points of an audit with their confidence boxes.

    Parameters
    ----------
    report : AuditReport
        Of a mechanism with a claimed curve.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure with two panels, linear and logarithmic.
    log : bool
        Logarithmic axes, if `ax` is given.
    title : str, optional
        What was audited by default.

    Returns
    -------
    matplotlib.figure.Figure
        That of `ax`, or a new one that belongs to no window.

    Raises
    ------
    TypeError
        If `report` is no audit report.
    ValueError
        If no curve was claimed.

    Examples
    --------
    >>> from privfit.mechanisms import Box, Gaussian
    >>> from privfit.mechanisms.auditing import audit
    >>> figure = plot_audit(audit(Gaussian(1.0), Box({"x": (0, 1)}), samples=500))
    >>> len(figure.axes)
    2
    """
    if not isinstance(report, AuditReport):
        raise TypeError(f"report must be what audit returns, got {type(report).__name__}.")
    if report.claimed is None:
        raise ValueError("this audit compared noise with its law; there is no curve to draw.")
    name = f"{report.subject}: {'no alarm' if report.passed else 'ALARM'}" if title is None else title
    if ax is None:
        figure, axes = blank_figure(2, (10.4, 5.1))
        for own, logarithmic, panel in zip(axes, (False, True), ("linear axes", "logarithmic axes"), strict=True):
            _draw(own, report, logarithmic)
            own.set_title(panel, fontsize="medium")
        finish(axes, name, True, note=NOTE.format(report.false_alarm))
        return figure
    _draw(ax, report, log)
    finish([ax], name, False)
    found = ax.get_figure(root=True)
    assert found is not None
    return found


def _draw(ax: Axes, report: AuditReport, log: bool) -> None:
    assert report.claimed is not None
    plot_tradeoff({"claimed curve": report.claimed}, ax, log=log, legend=False)
    floor = 0.6e-4 if log else 0.0
    for line in ax.lines:
        if line.get_label() == "claimed curve":
            line.set_marker("")  # marks are for what was seen
    for swapped, label, marker, colour in SIGNS:
        points = [point for point in report.points if point.swapped is swapped]
        _boxes(ax, points, colour, floor)
        # zero has no place on a logarithmic axis: such points stand at its edge
        x, y = (np.maximum([getattr(point, name) for point in points], floor) for name in ("alpha", "beta"))
        ax.plot(x, y, linestyle="", marker=marker, markersize=2.5, color=colour, label=label, clip_on=False)


def _boxes(ax: Axes, points: list[AuditPoint], colour: str, floor: float) -> None:
    from matplotlib.patches import Rectangle

    for p in points:
        corner = (max(p.alpha_low, floor), max(p.beta_low, floor))
        size: Any = (p.alpha_high - corner[0], p.beta_high - corner[1])
        if min(size) >= 0:
            ax.add_patch(Rectangle(corner, *size, facecolor=(colour, 0.2), edgecolor=colour, linewidth=0.8))
