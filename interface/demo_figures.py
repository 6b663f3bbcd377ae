"""The three figures of the demo, from its results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from privfit.figures import plot_coefficients, plot_cost, plot_curves

if TYPE_CHECKING:
    from privfit.demo import DemoResult
    from privfit.demo_fits import DemoFit

__all__ = ["save_figures"]

QUOTED = (1.0, 2.0, 4.0, 8.0)
LOGISTIC, MEDIAN = "logistic regression of income over 50K", "median of hours per week"


def save_figures(result: DemoResult, oracle: DemoFit, folder: Path) -> list[Path]:
    """Write the three figures as PNG and return their paths.

    Examples
    --------
    >>> save_figures.__name__
    'save_figures'
    """
    first = result.chapters[0]
    promise = first.release.guarantee()
    curves = plot_curves(
        {"whole record": promise.record_law, "one attribute": promise.attribute_law},
        QUOTED,
        f"What the release at ε = {first.epsilon:g} lets an attacker tell",
    )
    fits = {LOGISTIC: first.fits["logistic"], MEDIAN: first.fits["median"]}
    coefficients = plot_coefficients(
        {title: {label: fit.intervals for label, fit in own.items()} for title, own in fits.items()},
        {title: own["exact"].names for title, own in fits.items()},
        {
            LOGISTIC: "change of the log-odds over the declared range",
            MEDIAN: "change in hours over the declared range",
        },
    )
    coefficients.suptitle(f"Release at ε = {first.epsilon:g}: estimates with 95 % intervals")
    budgets = sorted(result.sweep)
    cost = plot_cost(
        budgets,
        {name: [float(result.sweep[e].error[j]) for e in budgets] for j, name in enumerate(oracle.names)},
        dict(zip(oracle.names, oracle.error.tolist(), strict=True)),
        [not result.sweep[e].usable for e in budgets],
        "standard error (log-odds over the declared range)",
        f"What privacy costs: {LOGISTIC}",
    )
    paths = [folder / name for name in ("tradeoff.png", "coefficients.png", "cost.png")]
    for figure, path in zip((curves, coefficients, cost), paths, strict=True):
        figure.savefig(path)
    return paths
