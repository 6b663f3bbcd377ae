r"""The design of a regression: records, a response and plausible coefficients.

Where the records have no response it is made from the coefficients: a label from the logistic model, a count from the
Poisson law, a number from a normal residual whose quantile (quantile regression) or mean is zero.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from privfit.accounting.validation import check_array, check_number
from privfit.estimators.linear_svc import LinearSVC
from privfit.estimators.plan_records import Table, numbers_of

__all__ = ["Design", "read_design"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Design:
    """Raw-like records in the units of the data, and the coefficients that are plausible for them.

    Attributes
    ----------
    columns : list
        Names of the columns that explain (of a regression), or that are described.
    x : ndarray, shape (m, d)
    response : ndarray or None, shape (m,)
        Numbers, or 0/1 labels.
    theta : ndarray, shape (p,)
        Intercept (if any), then coefficients; empty for a mean or a quantile.
    source : str
        Where the records and the coefficients come from, for the report.

    Examples
    --------
    >>> Design.__name__
    'Design'
    """

    columns: list[Any]
    x: Floats
    response: Floats | None
    theta: Floats
    source: str


def read_design(
    task: Any,
    table: Table,
    source: str,
    columns: list[Any],
    target: Any,
    labels: Sequence[Any] | None,
    theta: Any,
    residual_sd: Any,
    rng: np.random.Generator,
    interval: tuple[float, float] | None = None,
) -> Design:
    """Return the records of a regression with its response and plausible coefficients.

    Parameters
    ----------
    task : IndexRegression
    table, source
        From `plan_records.records_of`.
    columns : list
        Columns that explain.
    target : str or int
    labels : sequence or None
        Declared labels of the target, negative one first.
    theta : None or array, shape (p,)
        Intercept (if any), then coefficients, in the units of the data.
    residual_sd : None or float
        Standard deviation of a response that the design does not have.
    rng : Generator
    interval : None or (float, float)
        Declared bounds of a numeric target.

    Raises
    ------
    ValueError
        For missing columns, a theta of the wrong length, or a response that must be in the pilot.

    Examples
    --------
    >>> read_design.__name__
    'read_design'
    """
    missing = [c for c in columns if c not in table]
    if missing:
        raise ValueError(f"pilot must have the columns {missing[:8]}. Add them, or choose others with features=.")
    x = np.stack([numbers_of(c, table[c]) for c in columns], axis=1) if columns else np.empty((_rows(table), 0))
    lead, is_label = int(bool(task.fit_intercept)), bool(task._is_label)
    given = None if theta is None else np.atleast_1d(check_array("theta", theta))
    size = x.shape[1] + lead
    if given is not None and (given.shape != (size,) or not np.isfinite(given).all()):
        raise ValueError(
            f"theta must be {size} finite numbers{', intercept first' if lead else ''}, then one for each of "
            f"{columns[:8]}; got shape {given.shape}."
        )
    response = None
    if target in table:
        response = _codes(target, table[target], labels) if is_label else numbers_of(target, table[target])
        fitted = _fitted(task, x, response)
        if given is None:
            return Design(columns, x, response, fitted, f"{source}; coefficients fitted to it")
        if task._is_linear or _is_margin(task):
            raise ValueError(f"theta must be left out for {type(task).__name__}: it is fitted to the pilot.")
        if not is_label:
            design = np.column_stack([np.ones(len(x)), x]) if lead else x
            return Design(columns, x, response + design @ (given - fitted), given, f"{source}; coefficients as given")
    elif given is None and task._is_linear:
        raise ValueError(
            f"theta must be given for {type(task).__name__} without a pilot that has the target: no rate is moderate "
            "for every unit of it."
        )
    elif given is None:
        given = _moderate(x, lead, interval)
        sd = 1.0 if interval is None else (interval[1] - interval[0]) / math.sqrt(24)
        source += f"; equal coefficients in standard units assumed (index of standard deviation {sd:.3g})"
    return _imagined(task, Design(columns, x, None, given, source), residual_sd, rng)


def _imagined(task: Any, design: Design, residual_sd: Any, rng: np.random.Generator) -> Design:
    """The design with a response that follows from its coefficients."""
    x, theta, source = design.x, design.theta, design.source
    lead = theta.size - x.shape[1]
    index = x @ theta[lead:] + (theta[0] if lead else 0.0)
    if task._is_label:
        response = (rng.random(len(x)) < 1.0 / (1.0 + np.exp(-np.clip(index, -700, 700)))).astype(float)
        if _is_margin(task):
            source += "; labels from a logistic model, coefficients fitted to them"
            theta = _fitted(task, x, response)
    elif task._is_linear:
        response = rng.poisson(np.exp(np.minimum(index, 30.0))).astype(float)
    else:
        response = index + _residual(task, index, residual_sd, rng)
    return Design(design.columns, x, response, theta, source)


def _is_margin(task: Any) -> bool:
    """Whether the coefficients are no parameters of a law of the response, but what a fit to its records finds."""
    return isinstance(task, LinearSVC)


def _rows(table: Table) -> int:
    return len(next(iter(table.values())))


def _codes(target: Any, values: Any, labels: Sequence[Any] | None) -> Floats:
    """0/1 codes of the labels."""
    found = list(labels) if labels is not None else np.unique(values).tolist()
    if len(found) != 2:
        raise ValueError(f"pilot: column {target!r} must have 2 labels for a binary model, got {len(found)}.")
    one = np.asarray([value == found[1] for value in np.asarray(values).tolist()], float)
    if one.min() == one.max():
        raise ValueError(f"pilot: column {target!r} must hold both labels. Use more records, or give theta.")
    return one


def _fitted(task: Any, x: Floats, response: Floats) -> Floats:
    model = clone(task).set_params(noise=None, correction="exact")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a poor pilot shows in the predictions
        found = np.asarray(model.fit(x, response).params_, float)
    if not np.isfinite([found, np.diag(model.cov_params_)]).all():
        raise ValueError(
            "pilot must identify the coefficients: columns are constant or collinear, or separate the labels. "
            "Drop columns with features=, or give theta."
        )
    return found


def _moderate(x: Floats, lead: int, interval: tuple[float, float] | None) -> Floats:
    """Equal coefficients in standard units: an index of standard deviation 1, or half a uniform response's variance."""
    spread = x.std(axis=0)
    if not (spread > 0).all():
        raise ValueError("the design must vary in every column. Drop constant columns with features=.")
    slopes = 1.0 / spread
    low, high = (-math.sqrt(6), math.sqrt(6)) if interval is None else interval
    slopes *= (high - low) / math.sqrt(24) / max(float(np.std(x @ slopes)), 1e-12)
    middle = (low + high) / 2 - float(x.mean(axis=0) @ slopes)
    return np.concatenate([[middle], slopes]) if lead else slopes


def _residual(task: Any, index: Floats, residual_sd: Any, rng: np.random.Generator) -> Floats:
    sd = float(np.std(index)) if residual_sd is None else check_number("residual_sd", residual_sd, 0.0, low_open=True)
    if sd == 0.0:
        raise ValueError("residual_sd must be given where the index does not vary.")
    from scipy.special import ndtri

    shift = float(ndtri(task.quantile)) if hasattr(task, "quantile") else 0.0
    return np.asarray(sd * (rng.standard_normal(index.size) - shift), float)
