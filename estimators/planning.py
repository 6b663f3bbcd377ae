r"""Planning: predicted standard errors of every mechanism at a budget, before anything is released.

For a task, a budget and n records the smallest noise of each kind that meets the budget is found, the covariance
``V^-1 A V^-1 / n`` of the corrected estimate is integrated over a design (`plan_errors`), and of each family the law
of the smallest error is taken (`plan_mechanisms`): the shape of generalised Laplace noise, the pair (delta0, lambda)
of zero-inflated noise, the split of epsilon between label and columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.validation import check_choice, check_integer
from privfit.estimators.plan_budget import Parts
from privfit.estimators.plan_code import domain_code
from privfit.estimators.plan_columns import read_columns_design
from privfit.estimators.plan_design import read_design
from privfit.estimators.plan_mechanisms import MECHANISMS, Found, search
from privfit.estimators.plan_noise import CommonNumbers
from privfit.estimators.plan_predictor import Predictor
from privfit.estimators.plan_records import UNIFORM, records_of
from privfit.estimators.plan_report import PlanReport
from privfit.estimators.plan_row import PlanRow
from privfit.estimators.plan_task import TASKS, deciding_error, declared_interval, read_roles, read_task, task_title
from privfit.estimators.regression import IndexRegression
from privfit.mechanisms import Law
from privfit.mechanisms.domains import as_domains
from privfit.mechanisms.law import check_protect

__all__ = ["TASKS", "plan"]

Floats = NDArray[np.float64]
_SEARCH_ROWS = 4000
"""Records that laws are compared on while they are searched; the chosen ones are predicted on all."""


def plan(
    task: Any,
    budget: Any,
    domain: Any,
    n: int,
    mechanisms: Any = None,
    *,
    target: Any = None,
    features: Sequence[Any] | None = None,
    pilot: Any = None,
    mean: Any = None,
    covariance: Any = None,
    theta: Any = None,
    residual_sd: float | None = None,
    coefficient: Any = None,
    protect: str = "record",
    rows: int = 20_000,
    random_state: int = 0,
    progress: Callable[[str], None] | None = None,
) -> PlanReport:
    """Predict the standard errors of a task under every mechanism that meets a budget.

    Parameters
    ----------
    task : estimator or {"mean", "linear", "logistic", "quantile"}
        What will be estimated: a mean, quantiles, a linear (ridge), Huber, logistic, quantile or Poisson regression, or
        a linear support vector classifier (whose coefficients are always fitted: to a pilot, or to labels that
        follow theta). "quantile" is a `QuantileRegression` with a target and a `Quantile` without. Of an estimator
        its noise, penalties and bounds are not used.
    budget : Budget, GDP, Advantage, ErrorRates or TradeOffCurve
        What the release has to guarantee.
    domain : Box, Ball, Categories or tuple of them
        The columns that will be released.
    n : int
        Records that will be released.
    mechanisms : sequence of str or Law, or mapping of labels to laws, optional
        Some of "gaussian", "laplace", "symmetric-laplace", "generalized-laplace", "zil" (all by default), or laws
        that are taken as they are.
    target : str or int
        Column that a regression explains; one outside the domain is published as it is, and the report says so.
    features : sequence, optional
        Columns that explain, or that are described; by default those of the domain (labels for a mean only).
    pilot : mapping, data frame or array, optional
        Public or pilot records, not those that will be released; those of an array have the columns of the domain.
    mean, covariance : array, optional
        Instead: moments of the domain's numeric columns, whose law is normal, truncated to the domain. Without any
        design, columns are uniform on the domain.
    theta : array, optional
        Plausible coefficients, intercept first, in the units of the data. By default fitted to the pilot, or, if
        it has no target, equal in standard units: with an index of standard deviation 1 for a label, and half the
        variance of a uniform response for a number. For means: shares of the
        last label of label columns that the pilot has not.
    residual_sd : float, optional
        Standard deviation of a numeric target that the design has not; by default that of the index.
    coefficient : str or int, optional
        The column whose coefficient decides; by default all slopes do (geometric mean of their standard errors).
    protect : {"record", "attribute"}
    rows : int
        Records that errors are integrated over.
    random_state : int
        Seed of the noise in the predictions.
    progress : callable, optional
        Told the name of each mechanism when its turn comes.

    Returns
    -------
    PlanReport

    Raises
    ------
    ValueError, TypeError
        For an unknown task, target or column, or a design that does not fit the domain.

    Examples
    --------
    >>> from privfit.accounting import Budget
    >>> from privfit.mechanisms import Box, Categories
    >>> domain = (Box({"age": (17, 90), "hours": (1, 99)}), Categories({"income": ["low", "high"]}))
    >>> found = plan("logistic", Budget(4.0, 1e-6), domain, 50_000, ["laplace", "gaussian"], target="income", rows=2000)
    >>> found.best.mechanism, found.row("gaussian").law is None
    ('laplace', True)
    """
    estimator = read_task(task, target)
    count = check_integer("n", n, 2, 10**15)
    check_integer("rows", rows, 500, 10_000_000, hint="Errors are integrated over so many records.")
    check_protect(protect)
    parts, say = Parts.of(domain), progress or (lambda text: None)
    rng = np.random.default_rng(check_integer("random_state", random_state, 0))
    table, source = records_of(pilot, mean, covariance, domain, rows, rng)
    columns = read_roles(estimator, parts, target, features)
    if isinstance(estimator, IndexRegression):
        if source == UNIFORM:
            table.pop(target, None)  # a response follows its columns
        interval = declared_interval(parts, target)
        labels = parts.labels[target].labels[0] if target in parts.labels else None
        design = read_design(estimator, table, source, columns, target, labels, theta, residual_sd, rng, interval)
    else:
        design = read_columns_design(table, source, columns, parts.labels, theta)
    numbers = CommonNumbers.draw(len(design.x), design.x.shape[1], random_state + 1)
    predict = Predictor(estimator, parts, target, design, numbers)
    few = predict.thinned(_SEARCH_ROWS)
    lead = int(isinstance(estimator, IndexRegression) and bool(estimator.fit_intercept))
    names = ["const"] * lead + [str(c) for c in columns]
    size = deciding_error(names, lead, coefficient)

    def error(law: Law) -> float:
        return size(few(law, count).standard_errors)

    raw = predict(None, count)
    found = _candidates(mechanisms, parts, budget, domain, protect, error, say)
    noised = tuple(c for part in as_domains(domain) for c in part.columns)
    public = tuple(c for c in (*columns, *([] if target is None else [target])) if c not in noised)
    done = [_row(own, predict, size(raw.standard_errors), size, count, noised, public) for own in found]
    done.sort(key=lambda row: (round(float(np.log(row.wanted)), 3), row.exact_records))

    def again(other: Any) -> PlanReport:
        return plan(
            estimator,
            other,
            domain,
            count,
            mechanisms,
            target=target,
            features=columns,
            pilot=pilot,
            mean=mean,
            covariance=covariance,
            theta=theta,
            residual_sd=residual_sd,
            coefficient=coefficient,
            protect=protect,
            rows=rows,
            random_state=random_state,
            progress=progress,
        )

    return PlanReport(
        task=task_title(estimator, target),
        budget=str(budget),
        protect=protect,
        n=count,
        names=names,
        coefficient=None if coefficient is None else str(coefficient),
        theta=design.theta,
        design=design.source,
        public=public,
        domain=domain_code(domain),
        raw=raw.standard_errors,
        rows=tuple(done),
        size=size,
        again=again,
    )


def _candidates(
    mechanisms: Any,
    parts: Parts,
    budget: Any,
    domain: Any,
    protect: str,
    error: Callable[[Law], float],
    say: Callable[[str], None],
) -> list[Found]:
    if isinstance(mechanisms, Mapping):
        given = dict(mechanisms)
    elif isinstance(mechanisms, (str, Law)):
        given = {str(mechanisms): mechanisms}
    elif mechanisms is None:
        given = dict.fromkeys(MECHANISMS)
    else:
        given = {str(own): own for own in mechanisms}
    if not given:
        raise ValueError(f"mechanisms must name at least one of {MECHANISMS}, or hold a law.")
    names = [name for name, own in given.items() if not isinstance(own, Law)]
    for name in names:
        check_choice("mechanisms", name, MECHANISMS, hint="Or pass laws.")
    found = search(names, budget, domain, protect, error, say) if names else []
    return found + [Found(str(name), own) for name, own in given.items() if isinstance(own, Law)]


def _row(
    found: Found,
    predict: Predictor,
    raw: float,
    size: Callable[[Floats], float],
    n: int,
    columns: tuple[Any, ...],
    public: tuple[Any, ...],
) -> PlanRow:
    law = found.law
    if law is None:
        return PlanRow(found.mechanism, None, found.reason)
    try:
        own = predict(law, n)
    except (NotImplementedError, ValueError) as reason:
        return PlanRow(found.mechanism, None, str(reason))
    wanted = size(own.standard_errors)
    factor = wanted / raw if raw > 0.0 else math.inf
    return PlanRow(
        found.mechanism,
        law,
        "",
        own.standard_errors,
        wanted,
        factor,
        n / factor**2,
        n * law.exact_fraction,
        n,
        own.monte_carlo,
        own.bandwidth,
        columns,
        public,
        lambda other: predict(law, other),
        lambda: predict.needed(law, own.needed),
    )
