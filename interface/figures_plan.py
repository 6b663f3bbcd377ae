"""The decision figure of a plan: predicted standard errors against the number of records, or against epsilon."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from privfit.estimators.plan_mechanisms import MECHANISMS
from privfit.estimators.plan_report import PlanReport
from privfit.figures_style import finish, series, start

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_plan"]


def plot_plan(
    plans: PlanReport | Mapping[float, PlanReport], ax: Axes | None = None, *, title: str | None = None
) -> Axes:
    """Draw the standard error that decides, one line per mechanism and one for raw data.

    Parameters
    ----------
    plans : PlanReport or mapping of epsilon to PlanReport
        One plan is drawn against n, several against epsilon.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    title : str, optional

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
    if isinstance(plans, PlanReport):
        first, lines, label, mark = plans, plans.lines(), "records n", float(plans.n)
        text = f"{first.task}, {first.budget}"
    else:
        first, lines = _against_epsilon(plans)
        label, mark = "epsilon", None
        text = f"{first.task}, {first.n:,} records"
    panel = start(ax, (7.2, 4.6))
    known = ("raw data", *MECHANISMS)
    others = [name for name, _, _ in lines if name not in known]
    for name, x, errors in lines:
        # A mechanism looks the same in every figure, whatever its rank.
        j = known.index(name) if name in known else len(known) + others.index(name)
        good = np.isfinite(errors) & (errors > 0)
        panel.plot(x[good], errors[good], label=name, **(series(j) | {"markevery": 1}))
    if mark is not None:
        panel.axvline(mark, color="0.45", linewidth=0.9, linestyle=":", label=f"planned n = {first.n:,}")
    slopes = [name for name in first.names if name != "const"]
    deciding = first.coefficient or ("geometric mean" if len(slopes) > 1 else first.names[-1])
    panel.set(xscale="log", yscale="log", xlabel=label, ylabel=f"predicted standard error ({deciding})")
    if mark is None:
        panel.set_xticks(lines[0][1], [f"{epsilon:g}" for epsilon in lines[0][1]])
        panel.set_xticks([], minor=True)
    finish([panel], text if title is None else title, own)
    return panel


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
