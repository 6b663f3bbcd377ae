r"""What a fit found about itself: every key of `diagnostics_`, and what to do next.

`diagnostics_` is a plain dictionary of numbers; a model has the keys that apply to it. `diagnosis` turns it into a
verdict, the reasons, and the next steps in the order of what they cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from privfit.estimators.diagnostics import UNCERTAIN, needed_text

__all__ = ["CAUTIOUS", "KEYS", "advice", "cautions", "diagnosis", "trusted"]

CAUTIOUS = 0.2
"""Relative standard error of the curvature above which a fit without a warning is read with care."""
FEW_CLUSTERS = 10
"""Clusters below which the cluster-robust standard errors are known to be too small, Student's t or not."""

KEYS = {
    "converged": "whether the search ended with a gradient of zero along every free coordinate",
    "iterations": "steps of the last search",
    "at_bound": "whether a standardised coefficient lies on the boundary of the parameter set",
    "positive_curvature": "whether the corrected risk bends upwards in every free direction at the estimate",
    "smallest_curvature": "smallest eigenvalue of the corrected Hessian, in standardised coefficients",
    "curvature_error": f"relative standard error of that curvature; a fit warns above {UNCERTAIN:.2f}",
    "relative_standard_error": "standard error of the slopes as a vector over their size; a fit warns above 1",
    "minima": "different proper minima that the search met; above 1 the lowest was taken",
    "reasons": "why the records are too few for this noise, as texts; empty where they suffice",
    "runaway": "whether the search ran away from the truth, so that standard errors are infinite",
    "cautions": "what to keep in mind when reading the fit, as texts",
    "n_needed": "records that this noise needs; None where those at hand suffice",
    "n_needed_is_bound": "n_needed is a limit of what the data at hand can tell (at least so many), not an estimate",
    "stabilised": "whether the vanishing ridge of stabilize= took part",
    "penalised": "whether any ridge took part",
    "penalty": "the ridge on each slope, in the units of the data",
    "bound": "how the parameter set was bounded",
    "bandwidth": "smoothing of a kinked loss, in the units of the response; None without smoothing",
    "bandwidth_too_wide": "the bandwidth exceeds half the response's range (Quantile: half the standard deviation of "
    "the column): the fit is not about that quantile",
    "bandwidth_bias": "estimated bias of each coefficient by the smoothing, from fits at wider bandwidths",
    "bandwidth_bias_error": "its standard errors",
    "smoothing_bias": "upper bound of the smoothing's bias in the mean score",
    "threshold": "Huber's threshold, in the units of the response",
    "scale": "scale of the residuals, in the units of the response; None with a given threshold",
    "index_variance": "noise variance of the index",
    "passes": "passes over a release on disk",
    "quantiles": "diagnostics of the single fits, quantile by quantile",
    "columns": "diagnostics of the single fits, column by column",
    "gaps": "differences between neighbouring eigenvalues",
    "gap_bse": "standard errors of the gaps",
    "projected": "negative eigenvalues of the debiased covariance that were set to 0",
}
"""Meaning of every key."""


def advice(found: Mapping[str, Any]) -> list[str]:
    """Next steps for a fit, the cheapest first; empty where nothing need be done.

    Parameters
    ----------
    found : mapping
        `diagnostics_` of a fitted model.

    Returns
    -------
    list of str

    Examples
    --------
    >>> advice({"converged": True, "n_needed": None})
    []
    >>> advice({"converged": True, "n_needed": 450_000, "n_needed_is_bound": False})[-2]
    'More records: roughly n = 450,000.'
    """
    if not found.get("n_needed"):
        steps = []
        if not found.get("converged", True):
            steps.append("Rescale, or drop columns that are nearly collinear: the search did not converge.")
        if found.get("at_bound"):
            steps.append("Give a larger bound=, or alpha > 0: the estimate lies on the boundary of the parameter set.")
        if found.get("bandwidth_too_wide"):
            steps.append("LinearRegression or Mean for the mean, more records, or less noise: too wide a bandwidth.")
        if found.get("stabilised"):
            steps.append("To test: more records, fewer columns in the release, or less noise, and no ridge.")
        return steps
    steps = []
    if np.size(found.get("penalty", 1.0)):  # there are columns
        if found.get("stabilised") is False:
            steps = ["stabilize='auto': a shrunken point estimate now; its intervals are conditional on the ridge."]
        steps.append(
            "Fewer columns. Dropping one from the fit alone takes its noise out of the curvature, but does not reduce "
            "the noise that the release paid for all columns; only fewer columns in the release do."
        )
    needed = needed_text(found["n_needed"], found.get("n_needed_is_bound", False))
    steps.append(f"{needed[0].upper()}{needed[1:]}." if found.get("n_needed_is_bound") else f"More records: {needed}.")
    steps.append("Less noise, at the next release: a larger epsilon, narrower declared ranges, or another mechanism.")
    return steps


def trusted(found: Mapping[str, Any]) -> bool:
    """Whether tests and intervals of a fit are shown: not where its records are too few, or a ridge shrank it.

    Examples
    --------
    >>> trusted({"n_needed": None}), trusted({"n_needed": None, "stabilised": True})
    (True, False)
    """
    return not (found.get("n_needed") or found.get("stabilised"))


def cautions(found: Mapping[str, Any]) -> list[str]:
    """Say what to keep in mind when reading a fit, warned of or not.

    Where noise is strong, the fits that escape the warning are those whose curvature came out large by chance, and
    a large curvature goes with small coefficients (logistic regression, 60 releases of which 5 were not warned of:
    all 5 slopes were too small, by 2.4 to 3.8 standard errors).

    Parameters
    ----------
    found : mapping
        `diagnostics_` of a fitted model, with the number of its ``clusters``.

    Returns
    -------
    list of str

    Examples
    --------
    >>> cautions({"curvature_error": 0.05})
    []
    >>> cautions({"curvature_error": 0.25})[0][:30]
    'its curvature is known to 25.0'
    """
    said = list(found.get("cautions", ()))
    if found.get("stabilised"):
        said.append(
            "shrunken by the stabilising ridge: a point estimate; its intervals are conditional on the ridge, do not "
            "test with it"
        )
    elif not found.get("n_needed") and CAUTIOUS < (found.get("curvature_error") or 0.0) <= UNCERTAIN:
        which = "biased towards zero" if np.size(found.get("penalty", 1.0)) else "chosen by chance"  # no slope, no zero
        said.append(
            f"its curvature is known to {100 * found['curvature_error']:.1f} %: of releases with this noise, those "
            f"that escape the warning are {which}; plan() tells whether n suffices"
        )
    if 0 < (found.get("clusters") or 0) < FEW_CLUSTERS:
        said.append(
            f"only {found['clusters']} clusters: cluster-robust standard errors are too small with fewer than about "
            f"{FEW_CLUSTERS}, even with Student's t; use finer clusters"
        )
    return said


def diagnosis(model: str, found: Mapping[str, Any], records: int) -> str:
    """Return verdict, reasons and next steps as text.

    Parameters
    ----------
    model : str
    found : mapping
        `diagnostics_` of a fitted model; with ``clusters``, their number.
    records : int

    Returns
    -------
    str

    Examples
    --------
    >>> print(diagnosis("Mean", {"converged": True, "n_needed": None}, 10))
    Mean on 10 records: nothing stands against this fit.
    """
    steps, said = advice(found), cautions(found)
    if not steps and not said:
        known = found.get("curvature_error")
        end = "" if known is None else f" Its curvature is known to {100 * known:.1f} %."
        return f"{model} on {records:,} records: nothing stands against this fit.{end}"
    verdict = "TOO FEW RECORDS for this noise" if found.get("n_needed") else "read with care"
    lines = [f"{model} on {records:,} records: {verdict}."]
    lines += [f"  found: {reason}" for reason in [*found.get("reasons", ()), *said]]
    lines += [f"  {number}. {step}" for number, step in enumerate(steps, 1)]
    return "\n".join(lines)
