r"""Predicted standard errors of means, shares of labels and quantiles of single columns.

Means are exact: ``Cov(x~)/n = (Cov(x) + Cov z)/n``; the share theta of a label under randomised response has n times
the variance ``theta (1 - theta) + e^eps/(e^eps - 1)^2`` (two labels). A quantile is a quantile regression on a
constant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.validation import check_array
from privfit.estimators.label_share import LabelColumn
from privfit.estimators.noise import NoiseModel, resolve_noise
from privfit.estimators.plan_design import Design
from privfit.estimators.plan_errors import Prediction, predict_regression
from privfit.estimators.plan_noise import CommonNumbers, mixing_moments
from privfit.estimators.plan_records import Table, numbers_of
from privfit.estimators.quantile_regression import QuantileRegression
from privfit.mechanisms import Categories, RandomizedResponse

__all__ = ["predict_means", "predict_quantiles", "read_columns_design"]

Floats = NDArray[np.float64]


def read_columns_design(
    table: Table, source: str, columns: list[Any], labels: Mapping[Any, Categories], theta: Any
) -> Design:
    """Return the columns to describe; labels become indicators of their last label.

    Parameters
    ----------
    table, source
        From `plan_records.records_of`.
    columns : list
    labels : mapping
        ``{column: Categories}`` of the label columns.
    theta : None or array, shape (number of label columns,)
        Shares of the last label where the design has no such column; 1/2 by default.

    Raises
    ------
    ValueError
        For missing columns, or shares outside [0, 1].

    Examples
    --------
    >>> read_columns_design({"x": [1.0, 3.0]}, "pilot", ["x"], {}, None).x.tolist()
    [[1.0], [3.0]]
    """
    unknown = [c for c in columns if c in labels and c not in table]
    shares = np.full(len(unknown), 0.5) if theta is None else np.atleast_1d(check_array("theta", theta, 0.0, 1.0))
    if shares.shape != (len(unknown),):
        raise ValueError(
            f"theta must be the shares of the last label of the columns {unknown}, got shape {shares.shape}. "
            "A mean of numbers needs none."
        )
    rows = len(next(iter(table.values()))) if table else 2000
    x = []
    for c in columns:
        if c in unknown:
            share = float(shares[unknown.index(c)])
            x.append((np.arange(rows) < round(share * rows)).astype(float))
            source += f"; a share of {share:g} assumed for {c!r}"
        elif c not in table:
            raise ValueError(f"pilot must have the column {c!r}. Add it, or choose others with features=.")
        elif c in labels:
            x.append(np.array([value == labels[c].labels[0][-1] for value in np.asarray(table[c]).tolist()], float))
        else:
            x.append(numbers_of(c, table[c]))
    return Design(columns, np.stack(x, axis=1), None, np.empty(0), source)


def predict_means(design: Design, laws: Mapping[Any, Any], labels: Mapping[Any, Categories], n: int) -> Prediction:
    """Predict the covariance of means and shares from n records.

    Parameters
    ----------
    design : Design
    laws : mapping
        ``{column or tuple of columns: law}``; a column without a law has no noise.
    labels : mapping
    n : int

    Examples
    --------
    >>> from privfit.mechanisms import Laplace
    >>> design = Design(["x"], np.array([[0.0], [1.0]]), None, np.empty(0), "example")
    >>> predict_means(design, {("x",): Laplace(1.0)}, {}, 9).standard_errors
    array([0.5])
    """
    own = {key[0]: law for key, law in laws.items() if isinstance(law, RandomizedResponse)}
    numeric = {key: law for key, law in laws.items() if not isinstance(law, RandomizedResponse)}
    model = resolve_noise(numeric, design.columns, None, strict=False)
    added = np.sum(
        [mixing_moments(part.factor)[0] * part.variances[:-1] for part in model.parts] or [np.zeros(design.x.shape[1])],
        axis=0,
    )
    for j, c in enumerate(design.columns):
        if c in own:
            column = LabelColumn(own[c], (labels[c].labels[0][-1],))
            added[j] = column.noise_variance(float(design.x[:, j].mean()))
    covariance = np.cov(design.x.T, bias=True).reshape(len(added), len(added)) + np.diag(added)
    return Prediction(covariance / n, 0.0, 0.0)


def predict_quantiles(task: Any, design: Design, model: NoiseModel, numbers: CommonNumbers, n: int) -> Prediction:
    """Predict the variances of quantiles of several columns (their covariances are not predicted).

    Parameters
    ----------
    task : Quantile
    design : Design
    model : NoiseModel
    numbers : CommonNumbers
    n : int

    Examples
    --------
    >>> predict_quantiles.__name__
    'predict_quantiles'
    """
    one = QuantileRegression(task.quantile, correction=task.correction, bandwidth=task.bandwidth, draws=task.draws)
    found: list[Prediction] = []
    for j in range(design.x.shape[1]):
        own = tuple(replace(p, variances=p.variances[j : j + 1]) for p in model.parts if p.variances[j] > 0)
        values = design.x[:, j]
        centre = np.array([np.quantile(values, task.quantile)])
        column = Design([], np.empty((values.size, 0)), values, centre, design.source)
        shared = CommonNumbers(numbers.normal[:, j : j + 1], numbers.uniform)
        found.append(predict_regression(one, column, NoiseModel(own, 1.0, model.laws, 0), shared, n))
    return _side_by_side(found)


def _side_by_side(found: Sequence[Prediction]) -> Prediction:
    covariance = np.diag([float(own.covariance[0, 0]) for own in found])
    return Prediction(
        covariance,
        max(own.monte_carlo for own in found),
        max(own.needed for own in found),
        max(own.bandwidth for own in found),
    )
