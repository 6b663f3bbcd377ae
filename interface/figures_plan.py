"""The decision figure of a plan: predicted standard errors against the number of records, or against epsilon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.plan_mechanisms import MECHANISMS
from privfit.estimators.plan_report import PlanReport
from privfit.figures_style import finish, series, start

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_plan"]

Floats = NDArray[np.float64]
FAINT: dict[str, Any] = {
    "color": "0.65",
    "linewidth": 1.0,
    "linestyle": "--",
    "markersize": 3.5,
    "markerfacecolor": "white",
}

GAP = "Where a line has no mark, its mechanism cannot serve: the plan at that budget says why."


def plot_plan(
    plans: PlanReport | Mapping[float, PlanReport],
    ax: Axes | None = None,
    *,
    title: str | None = None,
    sizes: Sequence[int] | None = None,
    planned: float | None = None,
) -> Axes:
    """Draw the standard error that decides, one line per mechanism and one for raw data.

    Against n, a line is thin and grey where the mechanism needs more records: its prediction is optimistic there.

    Parameters
    ----------
    plans : PlanReport or mapping of epsilon to PlanReport
        One plan is drawn against n, several against epsilon.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    title : str, optional
    sizes : sequence of int, optional
        Numbers of records, for one plan; by default from a tenth of its n to ten times n.
    planned : float, optional
        The epsilon to mark, for several.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError, ValueError
        If `plans` is no plan, or an empty mapping.

    Examples
    --------
    >>> from privfit.accounting import Budget
    >>> from privfit.estimators.planning import plan
    >>> from privfit.mechanisms import Box
    >>> ax = plot_plan(plan("mean", Budget(1.0, 1e-5), Box({"x": (0, 1)}), 1000, ["laplace", "gaussian"]))
    >>> [line.get_label() for line in ax.lines[:3]]
    ['raw data', 'laplace', 'gaussian']
    """
    own = ax is None
    needed: dict[str, int] = {}
    mark: float | None = planned
    if isinstance(plans, PlanReport):
        first, lines, label, mark = plans, plans.lines(sizes), "records n", float(plans.n)
        needed = {row.mechanism: row.records_needed for row in plans.rows}
        text, said = f"{first.task}, {first.budget}", f"planned n = {first.n:,}"
    else:
        first, lines = _against_epsilon(plans)
        label = "epsilon"
        text, said = f"{first.task}, {first.n:,} records", f"planned epsilon = {planned:g}" if planned else ""
    panel = start(ax, (7.2, 4.6))
    known = ("raw data", *MECHANISMS)
    others = [name for name, _, _ in lines if name not in known]
    faint = False
    for place, (name, x, errors) in enumerate(lines):
        # A mechanism looks the same in every figure, whatever its rank.
        j = known.index(name) if name in known else len(known) + others.index(name)
        good = np.isfinite(errors) & (errors > 0)
        same = next((other for other, _, drawn in lines[1:place] if _coincide(errors, drawn)), None)
        shown = name if same is None else f"{name} (coincides with {same})"
        faint |= _draw(panel, x[good], errors[good], needed.get(name, 0), shown, series(j) | {"markevery": 1})
    if faint:
        panel.plot([], [], label="too few records: optimistic", **FAINT)
    if mark is not None:
        panel.axvline(mark, color="0.45", linewidth=0.9, linestyle=":", label=said)
    slopes = [name for name in first.names if name != "const"]
    deciding = first.coefficient or ("geometric mean" if len(slopes) > 1 else first.names[-1])
    panel.set(xscale="log", yscale="log", xlabel=label, ylabel=f"predicted standard error ({deciding})")
    if not isinstance(plans, PlanReport):
        panel.set_xticks(lines[0][1], [f"{epsilon:g}" for epsilon in lines[0][1]])
        panel.set_xticks([], minor=True)
    gaps = any(not np.isfinite(errors).all() for _, _, errors in lines)
    finish([panel], text if title is None else title, own, note=GAP if gaps else "")
    return panel


def _coincide(one: Floats, other: Floats) -> bool:
    return bool(np.allclose(one, other, rtol=0.01, atol=0.0))


def _draw(panel: Axes, x: Floats, y: Floats, needed: int, label: str, style: dict[str, Any]) -> bool:
    """Draw a line; say whether a part of it, or all, is faint: what lies below `needed`."""
    cut = needed if x.size and needed > x[0] else 0
    few = x < cut
    # The line bends nowhere between two points of the grid, in logarithms.
    edge = np.exp(np.interp(np.log(cut), np.log(x), np.log(y))) if cut and not few.all() else np.nan
    join = [] if np.isnan(edge) else [(float(cut), float(edge))]
    enough = np.array([*join, *zip(x[~few], y[~few], strict=True)]).reshape(-1, 2)
    panel.plot(enough[:, 0], enough[:, 1], label=label, **(style | {"markevery": slice(len(join), None)}))
    if few.any():
        thin = np.array([*zip(x[few], y[few], strict=True), *join])
        panel.plot(thin[:, 0], thin[:, 1], **(FAINT | {"marker": style["marker"], "markevery": range(int(few.sum()))}))
    return bool(few.any())


def _against_epsilon(plans: Any) -> tuple[PlanReport, list[Any]]:
    if not isinstance(plans, Mapping):
        raise TypeError(f"plans must be what plan returns, or {{epsilon: plan}}, got {type(plans).__name__}.")
    if not plans:
        raise ValueError("plans must hold at least one plan; pass {epsilon: plan}.")
    for epsilon, report in plans.items():
        if not isinstance(report, PlanReport):
            raise TypeError(f"plans[{epsilon!r}] must be what plan returns, got {type(report).__name__}.")
    points = sorted(plans.items())
    grid = np.array([epsilon for epsilon, _ in points], float)
    first = points[0][1]
    lines = [("raw data", grid, np.array([report.size(report.raw) for _, report in points]))]
    for name in sorted({row.mechanism for _, report in points for row in report.rows if row.law is not None}):
        # A mechanism that cannot serve at some epsilon has a gap there.
        errors = np.array([report.row(name).wanted for _, report in points])
        lines.append((name, grid, errors))
    return first, lines
