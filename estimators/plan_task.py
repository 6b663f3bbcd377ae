"""What is to be planned: the estimator, the roles of the columns, and which standard error decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from privfit.accounting.validation import check_choice
from privfit.estimators.errors import CapabilityError
from privfit.estimators.huber_regression import HuberRegression
from privfit.estimators.linear_regression import LinearRegression
from privfit.estimators.linear_svc import LinearSVC
from privfit.estimators.logistic_regression import LogisticRegression
from privfit.estimators.mean import Mean
from privfit.estimators.plan_budget import Parts
from privfit.estimators.poisson_regression import PoissonRegression
from privfit.estimators.quantile import Quantile
from privfit.estimators.quantile_regression import QuantileRegression
from privfit.estimators.regression import IndexRegression
from privfit.mechanisms import Box

__all__ = ["TASKS", "deciding_error", "declared_interval", "read_roles", "read_task", "task_title"]

Floats = NDArray[np.float64]
PLANNED = (
    LinearRegression,
    LogisticRegression,
    QuantileRegression,
    PoissonRegression,
    HuberRegression,
    LinearSVC,
)
TASKS = ("mean", "linear", "logistic", "quantile")


def read_task(task: Any, target: Any) -> Any:
    """Return the estimator to plan for, without noise, penalty or bound.

    Raises
    ------
    CapabilityError
        For a regression whose predictions are not written yet.
    TypeError, ValueError
        For anything else than one of `TASKS` or an estimator that can be planned.

    Examples
    --------
    >>> read_task("linear", "y")
    LinearRegression()
    """
    if isinstance(task, str):
        check_choice("task", task, TASKS, hint="Or pass an estimator.")
        if task == "quantile":
            return Quantile() if target is None else QuantileRegression()
        return {"mean": Mean, "linear": LinearRegression, "logistic": LogisticRegression}[task]()
    if not isinstance(task, (Mean, Quantile, IndexRegression)):
        raise TypeError(f"task must be one of {TASKS} or an estimator of privfit, got {type(task).__name__}.")
    if isinstance(task, IndexRegression) and not isinstance(task, PLANNED):
        raise CapabilityError(
            f"{type(task).__name__} cannot be planned: missing is how its loss follows from a design. Plan a "
            f"{' or '.join(sorted(kind.__name__ for kind in PLANNED))} with the same columns instead."
        )
    own = clone(task)
    if isinstance(own, IndexRegression):
        own.set_params(noise=None, alpha=0.0, stabilize=None, bound=None)
        own._check_parameters()
    return own


def declared_interval(parts: Parts, target: Any) -> tuple[float, float] | None:
    """Return the declared bounds of a numeric target, None for any other.

    Examples
    --------
    >>> declared_interval(Parts.of(Box({"hours": (1, 99)})), "hours")
    (1.0, 99.0)
    """
    where = parts.numeric
    if where is None or target not in where.columns:
        return None
    return where.intervals[where.columns.index(target)] if isinstance(where, Box) else (-where.radius, where.radius)


def read_roles(estimator: Any, parts: Parts, target: Any, features: Sequence[Any] | None) -> list[Any]:
    """Return the columns that explain or are described, after a check of everybody's role.

    Raises
    ------
    ValueError, TypeError
        For a target that is missing, too many or of the wrong kind, and features that are no numeric columns.

    Examples
    --------
    >>> read_roles(LinearRegression(), Parts.of(Box({"age": (17, 90), "hours": (1, 99)})), "hours", None)
    ['age']
    """
    numeric = [] if parts.numeric is None else list(parts.numeric.columns)
    regression = isinstance(estimator, IndexRegression)
    name = type(estimator).__name__
    if regression and target is None:
        raise ValueError(f"target must be given for {name}, the column to explain, for instance {numeric[-1:]}.")
    if not regression and target is not None:
        raise ValueError(f"target must be None for {name}. Name the columns to describe with features=.")
    if regression and estimator._is_label and target in numeric:
        raise ValueError(f"target {target!r} must be a label for {name}: declare it with Categories.")
    if regression and target in parts.labels and len(parts.labels[target].labels[0]) != 2:
        raise CapabilityError(
            f"target {target!r} has {len(parts.labels[target].labels[0])} labels: predictions for the several indices "
            "of a multinomial model are missing. Plan two of the labels, or one against the others, as a binary model."
        )
    if regression and not estimator._is_label and target in parts.labels:
        raise ValueError(f"target {target!r} must be a number for {name}: declare it in a Box, or plan 'logistic'.")
    everything = numeric + (list(parts.labels) if isinstance(estimator, Mean) else [])
    if features is None:
        chosen = [c for c in everything if c != target]
    elif isinstance(features, (str, bytes)):
        raise TypeError(f"features must be a list of columns, got the text {features!r}: pass [{features!r}].")
    else:
        chosen = list(features)
    if not chosen:
        raise ValueError(f"features must name at least one column for {name}; the domain has {everything}.")
    refused = [c for c in chosen if c in parts.labels and not isinstance(estimator, Mean)]
    if refused or target in chosen or len(set(chosen)) < len(chosen):
        raise ValueError(f"features must be different columns of numbers other than the target, got {chosen}.")
    return chosen


def deciding_error(names: Sequence[str], lead: int, coefficient: Any) -> Callable[[Floats], float]:
    """Return the function from standard errors to the one number that decides.

    Examples
    --------
    >>> deciding_error(["const", "a", "b"], 1, None)(np.array([9.0, 1.0, 4.0]))
    2.0
    """
    if coefficient is not None:
        check_choice("coefficient", str(coefficient), tuple(names))
        place = list(names).index(str(coefficient))
        return lambda errors: float(errors[place])
    first = lead if len(names) > lead else 0
    return lambda errors: float(np.exp(np.mean(np.log(errors[first:]))))


def task_title(estimator: Any, target: Any) -> str:
    """Return a line that names the task.

    Examples
    --------
    >>> task_title(QuantileRegression(0.9), "hours")
    'QuantileRegression(0.9) of hours'
    """
    tau = f"({estimator.quantile:g})" if hasattr(estimator, "quantile") else ""
    return f"{type(estimator).__name__}{tau}" + (f" of {target}" if target is not None else "")
