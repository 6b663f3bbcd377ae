"""``privfit plan``: predicted standard errors of every mechanism at a budget, before anything is released."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from privfit.cli_common import (
    AsJson,
    PlotFile,
    check_figure_path,
    emit,
    read_bounds,
    read_labels,
    read_numbers,
    read_target,
    save_figure,
    working,
)
from privfit.cli_plan_show import release_command, show_plan

__all__ = ["plan"]

FIGURES = ("n", "epsilon")
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Budgets of the figure against epsilon, over the one that is planned."""


def plan(
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME:LOWER:UPPER", help="A column that will be released, with its declared bounds."),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME:LABEL,LABEL", help="A column of labels that will be released."),
    ] = None,
    public: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A column that will be published UNCHANGED; nothing protects it."),
    ] = None,
    task: Annotated[str, typer.Option(help="mean, linear, logistic, or quantile.")] = "mean",
    target: Annotated[
        str | None, typer.Option(metavar="NAME", help="Column to explain; none for mean.", show_default=False)
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(metavar="NAME,NAME", help="Columns that explain; all others by default.", show_default=False),
    ] = None,
    n: Annotated[int, typer.Option("--n", help="Number of records that will be released.")] = 10_000,
    epsilon: Annotated[float | None, typer.Option(help="Target: epsilon, together with --delta.")] = None,
    delta: Annotated[float | None, typer.Option(help="Target: delta, together with --epsilon.")] = None,
    gdp: Annotated[float | None, typer.Option(metavar="MU", help="Target: Gaussian DP with this mu.")] = None,
    advantage: Annotated[float | None, typer.Option(help="Target: no attack has a larger advantage.")] = None,
    fpr: Annotated[float | None, typer.Option(help="Target: false-positive rate, together with --fnr.")] = None,
    fnr: Annotated[float | None, typer.Option(help="Target: see --fpr.")] = None,
    protect: Annotated[str, typer.Option(help="'record': a whole row; 'attribute': one column of it.")] = "record",
    mechanism: Annotated[
        list[str] | None,
        typer.Option(
            help="gaussian, laplace, symmetric-laplace, generalized-laplace or zil; all by default.", show_default=False
        ),
    ] = None,
    pilot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Public or pilot records (.csv, .parquet, .arrow), not those that will be released; without them the "
            "columns are uniform.",
            show_default=False,
        ),
    ] = None,
    theta: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER,NUMBER", help="Plausible coefficients, intercept first; or shares.", show_default=False
        ),
    ] = None,
    residual_sd: Annotated[
        float | None, typer.Option(help="Residual standard deviation, without a pilot.", show_default=False)
    ] = None,
    coefficient: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Whose standard error decides; all by default.", show_default=False),
    ] = None,
    standard_error: Annotated[
        float | None, typer.Option(help="Also say how many records bring it down to this.", show_default=False)
    ] = None,
    quantile: Annotated[float, typer.Option(help="Which quantile, for --task quantile.")] = 0.5,
    figure: Annotated[
        str, typer.Option(help="What --plot draws errors against: 'n', or 'epsilon' (five plans).")
    ] = "n",
    as_json: AsJson = False,
    plot: PlotFile = None,
) -> None:
    """Predict standard errors, mechanism by mechanism, before a release.

    For example:

      privfit plan --column age:17:90 --column hours:1:99
          --label "income:<=50K,>50K" --task logistic --target income
          --epsilon 4 --delta 1e-6 --n 50000

      privfit plan --column age:17:90 --column hours:1:99 --task linear
          --target hours --epsilon 4 --delta 1e-6 --pilot public.csv
          --n 50000 --standard-error 0.05 --plot plan.png

      privfit plan --column age:17:90 --epsilon 1 --delta 1e-5 --n 5000
    """
    from privfit.accounting.validation import check_choice
    from privfit.estimators import planning

    check_figure_path(plot)
    check_choice("--task", task, planning.TASKS)
    check_choice("--figure", figure, FIGURES)
    if figure == "epsilon" and (epsilon is None or plot is None):
        raise ValueError("--figure epsilon needs --epsilon with --delta, and --plot FILE.")
    budget = read_target(epsilon, delta, gdp, advantage, fpr, fnr)
    bounds, labels = read_bounds(column or []), read_labels(label or [])
    numbers = None if theta is None else read_numbers("--theta", theta)
    wanted = None if features is None else [name.strip() for name in features.split(",")]
    open_columns = _public(public or [], {*bounds, *labels}, [*([] if target is None else [target]), *(wanted or [])])
    with working("planning") as say:
        records, dropped = (None, 0) if pilot is None else _pilot(pilot, bounds, labels, open_columns)
        found = planning.plan(
            _task(task, target, quantile),
            budget,
            _domain(bounds, labels),
            n,
            mechanism or None,
            target=target,
            features=wanted,
            pilot=records,
            theta=numbers,
            residual_sd=residual_sd,
            coefficient=coefficient,
            protect=protect,
            progress=lambda name: say(f"planning {name}"),
        )
        unchanged = (*dict.fromkeys([*found.public, *(public or [])]),)
        rows = tuple(dataclasses.replace(row, public=unchanged) for row in found.rows)
        found = dataclasses.replace(found, public=unchanged, rows=rows)
        payload = found.to_dict() | {
            "warnings": found.warnings(),
            "notes": found.notes(),
            "pilot_rows_dropped": dropped,
        }
        if standard_error is not None:
            say("looking for n")
            payload |= {"standard_error": standard_error, "required_n": _required(found, standard_error)}
    payload["command"] = release_command(found, column or [], label or [], epsilon, delta)
    emit(payload, as_json, lambda console: show_plan(console, found, payload))
    if plot is not None:
        with working("drawing") as say:
            save_figure(_figure(found, budget, figure, say), plot)


def _task(task: str, target: Any, quantile: float) -> Any:
    from privfit.estimators import Quantile, QuantileRegression

    if task != "quantile":
        return task
    return Quantile(quantile) if target is None else QuantileRegression(quantile)


def _domain(bounds: dict[str, Any], labels: dict[str, list[str]]) -> Any:
    from privfit.mechanisms import Box, Categories

    if not bounds and not labels:
        raise ValueError("--column or --label must declare at least one column, for instance --column age:17:90.")
    parts: list[Any] = [Box(bounds)] if bounds else []
    return tuple([*parts, Categories(labels)] if labels else parts)


def _public(public: Sequence[str], declared: set[str], roles: Sequence[str]) -> list[str]:
    """Columns of the task that are published as they are; none is published that nobody asked to publish."""
    if both := [name for name in public if name in declared]:
        raise ValueError(f"--public {both[0]}: the column is declared with --column or --label; choose one of them.")
    for name in roles:
        if name not in declared and name not in public:
            raise ValueError(
                f"{name} is not among the declared columns: add --label {name}:<labels> (or --column), or --public "
                f"{name} if it may be published as it is."
            )
    return [name for name in dict.fromkeys(roles) if name not in declared]


def _pilot(path: Path, bounds: dict[str, Any], labels: dict[str, list[str]], public: list[str]) -> tuple[Any, int]:
    """Complete records of a file, as ``{column: values}``, and how many others there were."""
    from privfit.reading import read_private_table

    table, typed, _ = read_private_table(path, [*bounds], labels, public)
    texts = {
        name: np.array([None if v not in own else labels[name][own.index(v)] for v in table[name].to_pylist()], object)
        for name, own in typed.items()
    }
    worded = [name for name in public if str(table[name].type) in ("string", "large_string")]
    texts |= {name: np.array([value or None for value in table[name].to_pylist()], object) for name in worded}
    numeric = {name: np.asarray(table[name].to_numpy(), float) for name in [*bounds, *public] if name not in worded}
    full = np.ones(table.num_rows, bool)
    for values in numeric.values():
        full &= np.isfinite(values)
    for values in texts.values():
        full &= np.array([value is not None for value in values], bool)
    return {name: values[full] for name, values in (numeric | texts).items()}, int((~full).sum())


def _required(found: Any, standard_error: float) -> dict[str, int | None]:
    """Records that each mechanism needs; None where no number would do."""
    needed: dict[str, int | None] = {}
    for row in found.rows:
        if row.law is None:
            continue
        try:
            needed[row.mechanism] = found.required_n(standard_error, row.mechanism)
        except ValueError as error:
            if "would need more" not in str(error):
                raise
            needed[row.mechanism] = None
    return needed


def _figure(found: Any, budget: Any, against: str, say: Callable[[str], None]) -> Any:
    from privfit.accounting import Budget
    from privfit.figures import plot_plan

    if against == "n":
        return plot_plan(found).figure
    epsilons: Sequence[float] = [factor * budget.epsilon for factor in FACTORS]
    plans = {}
    for epsilon in epsilons:
        say(f"planning epsilon = {epsilon:g}")
        plans[epsilon] = found.again(Budget(epsilon, budget.delta))
    return plot_plan(plans, planned=budget.epsilon).figure
