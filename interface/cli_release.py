"""``privfit release``: noise a table once and write it with its law."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from privfit.cli_common import (
    AsJson,
    PlotFile,
    check_figure_path,
    emit,
    read_bounds,
    read_labels,
    save_figure,
    working,
)

__all__ = ["release"]

MECHANISMS = ("best", "symmetric-laplace", "laplace", "gaussian", "zil")
LABEL_SHARE = 0.15
FILLED = (
    "Before the noise, a label that is missing or not declared counts as the FIRST declared label of its column, "
    "a missing number as the middle of its range, and a number outside its range as the nearest bound."
)


def release(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="The private table: .csv, .parquet or .arrow.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The release to write: .parquet.")],
    epsilon: Annotated[float, typer.Option(help="Total epsilon of a person's row.", show_default=False)],
    delta: Annotated[float, typer.Option(help="Total delta; less than 1 / rows.", show_default=False)],
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME:LOWER:UPPER", help="A column and its bounds, numbers or dates; repeat for more."),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME:LABEL,LABEL", help="A column of labels and all it may hold; repeat for more."),
    ] = None,
    label_epsilon: Annotated[
        float | None,
        typer.Option(help="Part of --epsilon for each label; 15 % of it by default.", show_default=False),
    ] = None,
    public: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A column to publish UNCHANGED; nothing protects it."),
    ] = None,
    mechanism: Annotated[str, typer.Option(help="One of " + ", ".join(MECHANISMS) + ".")] = "best",
    shape: Annotated[int | None, typer.Option(help="Shape of symmetric-laplace.", show_default=False)] = None,
    delta0: Annotated[float | None, typer.Option(help="Share of exact rows of zil.", show_default=False)] = None,
    protect: Annotated[
        str, typer.Option(help="'record': the budget is for a whole row; 'attribute': one column.")
    ] = "record",
    force: Annotated[bool, typer.Option("--force", help="Overwrite OUT.")] = False,
    as_json: AsJson = False,
    plot: PlotFile = None,
) -> None:
    """Release a table once: noise on the declared columns, the law in the file.

    Declare bounds and labels from knowledge of the subject, not by looking at
    the table: they are public. Columns that are not named are left out. No
    value of the table is ever printed.

    Before the noise, a label that is missing or not declared counts as the
    FIRST declared label of its column, a missing number as the middle of its
    range, and a number outside its range as the nearest bound.

    For example:

      privfit release adult.csv adult.parquet --epsilon 8 --delta 1e-6
          --column age:17:90 --column hours:1:99 --label "income:<=50K,>50K"

      privfit release in.parquet out.parquet --epsilon 4 --delta 1e-6
          --column age:17:90 --mechanism zil
    """
    from privfit.accounting.validation import check_choice
    from privfit.mechanisms import release as release_table
    from privfit.mechanisms.law import check_protect
    from privfit.mechanisms.report import expected_exact_rows
    from privfit.reading import read_private_table

    check_figure_path(plot)
    check_choice("--mechanism", mechanism, MECHANISMS)
    check_protect(protect)
    _check_out(table, out, force)
    bounds, labels = read_bounds(column or []), read_labels(label or [])
    if not bounds and not labels:
        raise ValueError("name at least one column with --column NAME:LOWER:UPPER or --label NAME:LABEL,LABEL.")
    dates = [name for name, (low, _) in bounds.items() if not isinstance(low, float)]
    private, typed, unused = read_private_table(table, list(bounds), labels, public or [], dates)
    with working("calibrating the noise") as say:
        laws = _laws(bounds, labels, epsilon, delta, label_epsilon, mechanism, shape, delta0, protect)
        say("adding the noise")
        done = release_table(private, laws, domain=_domain(bounds, typed), public=public or None)
        done.save(out)
    split = _split(list(bounds), {name: laws[name].epsilon for name in labels}, epsilon, delta, protect)
    with working("computing the guarantee"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        text = done.report()
        promise = done.guarantee()
        payload: dict[str, Any] = {
            "out": out,
            "rows": done.n_rows,
            "columns": list(done.columns),
            "public": list(done.public),
            "left_out": unused,
            "law": done.law.to_dict(),
            "budget": {"epsilon": epsilon, "delta": delta, "protect": protect, "split": split},
            "missing": FILLED,
            "epsilon": promise.epsilons((delta,)) if delta > 0 else [],
            "delta": promise.deltas(),
            "numerical_slack": promise.slack,
            "rows_expected_exact": expected_exact_rows(done),
        }
    # The report repeats these warnings in its text.
    payload["warnings"] = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
    careless = [f"delta times rows is {delta * done.n_rows:.3g}: choose delta well below 1 / rows."]
    careless = careless if delta * done.n_rows >= 1 else []
    payload["warnings"] += careless

    def show(console: Any) -> None:
        for line in (text, split, FILLED):
            console.print(line, markup=False, soft_wrap=True)
        for line in careless:
            console.print(f"WARNING: {line}", markup=False, soft_wrap=True)
        if unused:
            console.print(f"left out: {', '.join(unused)}", markup=False, soft_wrap=True)
        console.print(f"written: {out}", markup=False, soft_wrap=True)

    emit(payload, as_json, show)
    if plot is not None:
        from privfit.figures import plot_curves

        curves = {"whole record": promise.record_law, "one attribute": promise.attribute_law}
        save_figure(plot_curves(curves, title=f"release of {done.n_rows:,} rows"), plot)


def _check_out(table: Path, out: Path, force: bool) -> None:
    if out.suffix.lower() not in (".parquet", ".pq"):
        raise ValueError(f"OUT must end in .parquet, got {out.name!r}.")
    if out.exists() and table.exists() and out.samefile(table):
        raise ValueError("OUT must not be the private table itself.")
    if out.exists() and not force:
        raise ValueError(f"{out} exists; a second release adds to what the first revealed. Use --force to overwrite.")
    if not out.parent.is_dir():
        raise ValueError(f"there is no folder {out.parent}; make it first.")


def _laws(
    bounds: dict[str, tuple[float, float]],
    labels: dict[str, list[str]],
    epsilon: float,
    delta: float,
    label_epsilon: float | None,
    mechanism: str,
    shape: int | None,
    delta0: float | None,
    protect: str,
) -> dict[Any, Any]:
    """Divide the budget and calibrate: laws by columns."""
    from privfit.accounting import Budget
    from privfit.accounting.validation import check_number
    from privfit.cli_calibrate import calibrate_law
    from privfit.mechanisms import Box, RandomizedResponse, remaining_budget

    check_number("--epsilon", epsilon, 0.0, low_open=True)
    Budget(epsilon, delta)
    if label_epsilon is None:
        whole = epsilon / len(labels) if labels and not bounds else round(LABEL_SHARE * epsilon, 12)
        share = epsilon if protect == "attribute" else whole
    else:
        share = check_number("--label-epsilon", label_epsilon, 0.0, epsilon, low_open=True)
    spent = [share] * len(labels) if protect == "record" else []
    laws: dict[Any, Any] = {name: RandomizedResponse(share, len(values)) for name, values in labels.items()}
    if bounds:
        box = Box(bounds)
        target = remaining_budget(epsilon, delta, spent, box)
        laws = {tuple(bounds): calibrate_law(mechanism, target, box, protect, shape, delta0), **laws}
    elif sum(spent) > epsilon * (1 + 1e-12):
        raise ValueError(f"the labels take epsilon = {sum(spent):g} together, more than {epsilon:g}; lower it.")
    return laws


def _split(numbers: list[str], labels: dict[str, float], epsilon: float, delta: float, protect: str) -> str:
    """Say in one sentence how the budget is divided between the columns."""
    taken = [f"label {name} takes epsilon = {own:.6g}" for name, own in labels.items()]
    if protect == "attribute":
        taken += [f"number {name} takes epsilon = {epsilon:.6g} with delta = {delta:g}" for name in numbers]
        return f"Budget of each single column: {', '.join(taken)}."
    if numbers:
        left = f"the remaining epsilon = {epsilon - sum(labels.values()):.6g}" if labels else "all of it"
        who = "the numbers {} together take" if len(numbers) > 1 else "the number {} takes"
        taken.append(f"{who.format(', '.join(numbers))} {left}, with delta = {delta:g}")
    return f"Split of epsilon = {epsilon:g}: {', '.join(taken)}."


def _domain(bounds: dict[str, tuple[float, float]], labels: dict[str, list[Any]]) -> Any:
    from privfit.mechanisms import Box, Categories

    parts = ([Box(bounds)] if bounds else []) + ([Categories(labels)] if labels else [])
    return tuple(parts)
