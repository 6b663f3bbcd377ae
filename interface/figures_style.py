"""What all figures share: signs that survive grey print and colour-blind eyes, axes of our own, legends.

Seven of Okabe and Ito's colours and a wine red, all dark enough on white; next to the colour every series has its
own line style and its own marker. A legend never lies on the data: it stands below the axes.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privfit.accounting import TradeOffCurve
from privfit.accounting.validation import check_array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "COLOURS",
    "COUNT",
    "DASHES",
    "MARKERS",
    "blank_figure",
    "check_epsilons",
    "finish",
    "named",
    "series",
    "shade",
    "start",
]

Floats = NDArray[np.float64]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9", "#882255")
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "<")
DASHES: tuple[Any, ...] = (
    "-",
    (0, (6, 2)),
    (0, (7, 2, 1, 2)),
    (0, (2, 1.2)),
    (0, (7, 1.5, 1, 1.5, 1, 1.5)),
    (0, (12, 3)),
    (0, (1, 1.2)),
    (0, (3, 1.5, 3, 1.5, 1, 1.5)),
)
COUNT = len(COLOURS)
INCH_PER_LETTER, HANDLE, LINE = 0.073, 0.62, 0.2


def series(j: int) -> dict[str, Any]:
    """Line, colour and marks of the j-th series; marks are spread over the line as it is seen.

    Examples
    --------
    >>> series(0)["color"], series(8)["color"] == series(0)["color"], series(8)["linestyle"] == series(0)["linestyle"]
    ('#0072B2', True, False)
    """
    return {
        "color": COLOURS[j % COUNT],
        "linestyle": DASHES[(j + j // COUNT) % COUNT],
        "marker": MARKERS[j % COUNT],
        "markevery": (0.03 + 0.021 * (j % COUNT), 0.17),
        "markersize": 4.5,
        "linewidth": 1.7,
    }


def named(curves: Any) -> dict[str, TradeOffCurve]:
    """Return ``{label: curve}`` of a mapping or of one curve.

    Raises
    ------
    TypeError, ValueError
        If there is no curve, or something else.

    Examples
    --------
    >>> from privfit.accounting import gaussian
    >>> named(gaussian(1.0))
    {'GaussianCurve(mu=1.0)': GaussianCurve(mu=1.0)}
    """
    if isinstance(curves, TradeOffCurve):
        return {textwrap.shorten(str(curves), 100): curves}
    if not isinstance(curves, Mapping):
        raise TypeError(f"curves must be a curve or a mapping {{label: curve}}, got {type(curves).__name__}.")
    if not curves:
        raise ValueError("curves must hold at least one curve; pass {label: curve}.")
    for label, curve in curves.items():
        if not isinstance(curve, TradeOffCurve):
            raise TypeError(f"curves[{label!r}] must be a TradeOffCurve, got {type(curve).__name__}.")
    return {str(label): curve for label, curve in curves.items()}


def check_epsilons(epsilons: Any) -> Floats:
    """Return the quoted epsilons, sorted, shape (m,); none is allowed.

    Examples
    --------
    >>> check_epsilons([2, 1])
    array([1., 2.])
    """
    values = np.atleast_1d(np.asarray(epsilons, dtype=np.float64)) if np.size(epsilons) else np.empty(0)
    return np.unique(check_array("epsilons", values, 0.0, 700.0))


def blank_figure(panels: int, size: tuple[float, float]) -> tuple[Figure, list[Axes]]:
    """Return a figure that belongs to no window, and its panels side by side.

    Examples
    --------
    >>> len(blank_figure(2, (8.0, 4.0))[1])
    2
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=150, layout="constrained")
    axes = [figure.add_subplot(1, panels, 1 + j) for j in range(panels)]
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    return figure, axes


def start(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the axes to draw on: those given, or new ones.

    Raises
    ------
    TypeError
        If `ax` is something else.

    Examples
    --------
    >>> start(None, (5.0, 4.0)).get_xscale()
    'linear'
    """
    from matplotlib.axes import Axes as AxesType

    if ax is None:
        return blank_figure(1, size)[1][0]
    if not isinstance(ax, AxesType):
        raise TypeError(f"ax must be matplotlib axes, got {type(ax).__name__}; subplots() returns (figure, axes).")
    return ax


def shade(ax: Axes, x: Floats, low: Floats, high: Floats, j: int, label: str) -> None:
    """Shade the space between two bounds, with thin edges that show where shades lie on each other.

    Examples
    --------
    >>> ax = start(None, (5.0, 4.0))
    >>> shade(ax, np.array([0.0, 1.0]), np.array([0.0, 0.1]), np.array([0.1, 0.3]), 0, "band")
    >>> len(ax.collections), len(ax.lines)
    (1, 2)
    """
    colour = COLOURS[j % COUNT]
    ax.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0, label=label)
    for edge in (low, high):
        ax.plot(x, edge, color=colour, linewidth=0.7, linestyle=DASHES[(j + j // COUNT) % COUNT])


def finish(axes: Sequence[Axes], title: str, own: bool, legend: bool = True, note: str = "") -> None:
    """Write the title, and a legend that covers nothing.

    Axes of our own grow a strip below for it. On axes of somebody else it goes below them where the figure has a
    layout engine that makes room, and otherwise inside, where it covers least.

    Examples
    --------
    >>> ax = start(None, (5.0, 4.0))
    >>> line = ax.plot([0, 1], [0, 1], label="a line")
    >>> finish([ax], "a title", own=True)
    >>> len(ax.figure.legends)
    1
    """
    ax = axes[0]
    figure = ax.get_figure(root=True)
    assert figure is not None
    width = figure.get_figwidth() if own else ax.get_position().width * figure.get_figwidth()
    wrapped = textwrap.fill(title, max(20, int(0.9 * width / 0.1)))
    if len(axes) > 1:
        figure.suptitle(wrapped)
    else:
        ax.set_title(wrapped, fontsize="medium" if not own else None)
    found = {text: handle for a in axes for handle, text in zip(*a.get_legend_handles_labels(), strict=True)}
    if not legend or not found:
        return
    longest = max(map(len, found))
    columns = max(1, min(len(found), int(width / (INCH_PER_LETTER * longest + HANDLE + 0.2)), 4))
    room = max(12, int((width / columns - HANDLE - 0.2) / INCH_PER_LETTER))
    labels = [textwrap.fill(text, room) for text in found]
    options: dict[str, Any] = {"ncols": columns, "frameon": False, "fontsize": 9}
    handles = list(found.values())
    if own:
        _legend_below(figure, handles, labels, options, note)
    elif figure.get_layout_engine() is not None:
        from matplotlib.transforms import ScaledTranslation

        below = ax.transAxes + ScaledTranslation(0.0, -0.5, figure.dpi_scale_trans)
        ax.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, 0.0), bbox_transform=below, **options)
    else:
        ax.legend(handles, labels, loc="best", fontsize=8, framealpha=0.9)


def _legend_below(figure: Figure, handles: list[Any], labels: list[str], options: dict[str, Any], note: str) -> None:
    """The figure grows by what the legend and the note need; the layout keeps the strip free."""
    columns = options["ncols"]
    tallest = [1 + text.count("\n") for text in labels]
    per_column = -(-len(labels) // columns)
    lines = max(sum(tallest[c * per_column : (c + 1) * per_column]) for c in range(columns))
    note = textwrap.fill(note, int(figure.get_figwidth() / 0.075))
    legend_height, note_height = 0.16 + LINE * lines, (0.06 + LINE * (1 + note.count("\n"))) if note else 0.0
    strip = legend_height + note_height
    height = figure.get_figheight() + strip
    figure.set_figheight(height)
    figure.set_layout_engine("constrained", rect=(0.0, strip / height, 1.0, 1.0 - strip / height))
    if note:
        figure.text(0.5, 0.04 / height, note, ha="center", va="bottom", fontsize=8.5, color="0.3")
    anchor = (0.5, (strip - 0.08) / height)
    figure.legend(handles, labels, loc="upper center", bbox_to_anchor=anchor, borderaxespad=0.0, **options)
