"""Figures that stay readable in grey and for colour-blind eyes.

    plot_tradeoff     misses of the best attack against its false alarms, with tangents and bands
    plot_curves       the same on linear and on logarithmic axes, side by side
    plot_roc          true against false positives of a membership test, logarithmic
    plot_profile      delta against epsilon, far into the tail
    plot_composition  epsilon against the number of releases
    plot_audit        the claimed curve and what an audit saw, with confidence boxes
    plot_region       which (delta0, lambda) of zero-inflated Laplace noise meet a target
    plot_plan         predicted standard errors of mechanisms against n or epsilon
    plot_coefficients, plot_cost   estimates of fits, and what privacy costs them
    plot_errors, plot_efficiency   standard errors beside those of the raw data; efficiency against the budget
    plot_regions      confidence regions of two coefficients

A figure made here belongs to no window: ``ax.figure.savefig(path)`` writes it. Functions that return axes also
draw on axes that are passed to them.
"""

from privfit.figures_audit import plot_audit
from privfit.figures_composition import plot_composition, plot_region
from privfit.figures_efficiency import plot_efficiency, plot_errors, plot_regions
from privfit.figures_fits import Intervals, plot_coefficients, plot_cost
from privfit.figures_plan import plot_plan
from privfit.figures_profile import plot_profile
from privfit.figures_tradeoff import plot_curves, plot_roc, plot_tradeoff

__all__ = [
    "Intervals",
    "plot_audit",
    "plot_coefficients",
    "plot_composition",
    "plot_cost",
    "plot_curves",
    "plot_efficiency",
    "plot_errors",
    "plot_plan",
    "plot_profile",
    "plot_region",
    "plot_regions",
    "plot_roc",
    "plot_tradeoff",
]
