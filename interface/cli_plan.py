"""``privfit plan``: predicted standard errors of every mechanism at a budget, before anything is released."""

from __future__ import annotations

import shlex
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
    number_text,
    read_bounds,
    read_labels,
    read_numbers,
    read_target,
    save_figure,
    simple_table,
    working,
)

__all__ = ["plan"]

FIGURES = ("n", "epsilon")
MECHANISM_NAMES = {
    "Gaussian": "gaussian",
    "Laplace": "laplace",
    "SymmetricLaplace": "symmetric-laplace",
    "ZeroInflatedLaplace": "zil",
}
"""Names of laws in ``privfit release``."""
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
    with working("planning") as say:
        records, dropped = (None, 0) if pilot is None else _pilot(pilot, bounds, labels, target)
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
        payload = found.to_dict() | {"notes": found.notes(), "pilot_rows_dropped": dropped}
        if standard_error is not None:
            say("looking for n")
            payload |= {"standard_error": standard_error, "required_n": _required(found, standard_error)}
    payload["command"] = _command(found, column or [], label or [], target, epsilon, delta)
    emit(payload, as_json, lambda console: _show(console, found, payload))
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


def _pilot(path: Path, bounds: dict[str, Any], labels: dict[str, list[str]], target: str | None) -> tuple[Any, int]:
    """Complete records of a file, as ``{column: values}``, and how many others there were."""
    from privfit.reading import read_private_table

    public = [target] if target is not None and target not in {*bounds, *labels} else []
    table, typed, _ = read_private_table(path, [*bounds, *public], labels, [])
    numeric = {name: np.asarray(table[name].to_numpy(), float) for name in [*bounds, *public]}
    texts = {
        name: np.array([None if v not in own else labels[name][own.index(v)] for v in table[name].to_pylist()], object)
        for name, own in typed.items()
    }
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


def _command(
    found: Any,
    columns: Sequence[str],
    labels: Sequence[str],
    target: str | None,
    epsilon: float | None,
    delta: float | None,
) -> str | None:
    """Return the command that releases a table under the best law; None where the budget is no epsilon and delta."""
    if epsilon is None or all(row.law is None for row in found.rows):
        return None
    words = ["privfit", "release", "TABLE", "OUT"]
    for option, values in (("--column", columns), ("--label", labels)):
        words += [word for value in values for word in (option, value)]
    words += ["--epsilon", f"{epsilon:.10g}", "--delta", f"{delta:.10g}"]
    share: list[str] = []
    for _, own in found.best.law.items:
        if hasattr(own, "categories"):
            share = ["--label-epsilon", f"{own.epsilon:.6g}"] if columns and found.protect == "record" else []
            continue
        words += ["--mechanism", MECHANISM_NAMES[type(own).__name__]]
        for name in ("shape", "delta0"):
            words += [f"--{name}", f"{getattr(own, name):.10g}"] if hasattr(own, name) else []
    words += share
    declared = {value.split(":")[0] for value in [*columns, *labels]}
    words += ["--public", target] if target is not None and target not in declared else []
    words += ["--protect", "attribute"] if found.protect == "attribute" else []
    return shlex.join(words)


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
    return plot_plan(plans).figure


def _show(console: Any, found: Any, payload: dict[str, Any]) -> None:
    from privfit.estimators.plan_row import count_text, law_text

    required = payload.get("required_n", {})
    header = ["mechanism", found.error_title, "x raw data", "worth raw n", "fits from n"]
    if required:
        header.append(f"n for {payload['standard_error']:g}")
    body = []
    served = [row for row in found.rows if row.law is not None]
    for row in served:
        cells: list[Any] = [row.mechanism, row.wanted, row.factor, f"{row.n_effective:,.0f}"]
        cells.append(count_text(row.records_needed))
        if required:
            cells.append("none" if required[row.mechanism] is None else f"{required[row.mechanism]:,}")
        body.append(cells)
    console.print(f"{found.task}, {found.budget}, protecting one {found.protect}", markup=False)
    if served:
        title = f"Predicted standard errors ({found.deciding}) from {found.n:,} records; "
        title += f"raw data: {number_text(payload['raw_wanted'])}"
        console.print(simple_table(title, header, body))
        console.print(f"Best: {found.best.mechanism}, {law_text(found.best.law)}", markup=False)
        errors = found.best.standard_errors
        text = ", ".join(f"{name} {value:.4g}" for name, value in zip(found.names, errors, strict=True))
        console.print(f"Its standard errors: {text}", markup=False)
        if payload["command"] is not None:
            console.print("Release with:", markup=False)
            console.print(f"  {payload['command']}", markup=False, soft_wrap=True)
    if payload["pilot_rows_dropped"]:
        console.print(f"{payload['pilot_rows_dropped']:,} incomplete pilot records left out.", markup=False)
    for note in payload["notes"]:
        console.print(note, markup=False, soft_wrap=True)
