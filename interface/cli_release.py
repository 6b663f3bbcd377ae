"""``privfit release``: noise a table once and write it with its law."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privfit.cli_budget import column_domain, column_laws, number_box, read_fills, split_text
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
from privfit.cli_ledger import open_ledger
from privfit.reading import read_private_table
from privfit.reading_schema import check_private_schema, streams, wanted_columns

if TYPE_CHECKING:
    from privfit.mechanisms.file_release import FileRelease
    from privfit.mechanisms.releasing import Release

__all__ = ["release"]

MECHANISMS = ("best", "symmetric-laplace", "generalized-laplace", "laplace", "gaussian", "zil")
FILLED = (
    "Before the noise, a label that is missing or not declared counts as the FIRST declared label of its column, "
    "a missing number or --ordered label as the middle of its range, and a number outside its range as the nearest "
    "bound."
)


def release(
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="The private table: .csv, .parquet, .arrow or a folder of .parquet.")
    ],
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="The release: .parquet, .arrow or .csv; without ending, a folder.")
    ],
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
    ordered: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME:LABEL,LABEL", help="A column of labels in their order, released as noisy numbers 0, 1, ..."
        ),
    ] = None,
    fill: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME:VALUE", help="What a missing cell of a column counts as; repeat for more."),
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
    workers: Annotated[
        int | None,
        typer.Option(help="Processes that add noise; all processors by default. Not for CSV.", show_default=False),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Charge this ledger first; exit code 3 if it refuses.", show_default=False),
    ] = None,
    ledger_label: Annotated[
        str, typer.Option(help="A name for the release in the ledger; never data.", show_default=False)
    ] = "",
    part: Annotated[
        str | None,
        typer.Option(help="The ledger's group of records that the table is about.", show_default=False),
    ] = None,
    as_json: AsJson = False,
    plot: PlotFile = None,
) -> None:
    """Release a table once: noise on the declared columns, the law in the file.

    Declare bounds and labels from knowledge of the subject, not by looking at
    the table: they are public. Columns that are not named are left out. No
    value of the table is ever printed.

    Before the noise, a label that is missing or not declared counts as the
    FIRST declared label of its column, a missing number or --ordered label as
    the middle of its range, and a number outside its range as the nearest
    bound. --fill replaces the first label and the middle by a value that you
    know to be common, for instance --fill age:40.

    Labels whose order means something keep it with --ordered: they become the
    numbers 0, 1, ... in the order given, and get noise as numbers do.

    Parquet and Arrow files are released a few rows at a time, by several
    processes, in bounded memory. If the command is stopped or crashes, the
    same command goes on; what is finished, and the key of the noise, is in
    the folder OUT.unfinished until then: never copy or publish it. A CSV
    table must fit in memory.

    With --ledger, the release is written in the ledger before any noise is
    drawn, or refused.

    For example:

      privfit release adult.csv adult.parquet --epsilon 8 --delta 1e-6
          --column age:17:90 --column hours:1:99 --label "income:<=50K,>50K"
          --ordered school:none,some,degree --fill age:40 --fill school:some

      privfit release in.parquet out.parquet --epsilon 4 --delta 1e-6
          --column age:17:90 --mechanism zil --ledger study.jsonl
    """
    from privfit.accounting.validation import check_choice
    from privfit.mechanisms.law import check_protect
    from privfit.mechanisms.report import expected_exact_rows

    check_figure_path(plot)
    check_choice("--mechanism", mechanism, MECHANISMS)
    check_protect(protect)
    if ledger is None and (ledger_label or part is not None):
        raise ValueError("--ledger-label and --part describe an entry of a ledger; give --ledger, too.")
    _check_out(table, out, ledger, force)
    bounds, labels = read_bounds(column or []), read_labels(label or [])
    orders = read_labels(ordered or [], "--ordered")
    if not wanted_columns([*bounds, *orders], labels, []):
        raise ValueError(
            "name at least one column with --column NAME:LOWER:UPPER, --label NAME:LABEL,LABEL or "
            "--ordered NAME:LABEL,LABEL."
        )
    both = {**labels, **orders}
    fills = read_fills(fill or [], bounds, both)
    charge = {"ledger": open_ledger(ledger), "label": ledger_label, "part": part} if ledger is not None else {}
    table_in = _open(table, out, bounds, both, public or [])
    box = number_box(bounds, {name: table_in.labels[name] for name in orders}, fills)
    with working("calibrating the noise"):
        laws = column_laws(box, labels, epsilon, delta, label_epsilon, mechanism, shape, delta0, protect)
    domain = column_domain(box, {name: table_in.labels[name] for name in labels}, fills)
    done = table_in.release(out, laws, domain, public or None, force, workers, {**charge, "protect": protect})
    unused = table_in.unused
    filled = f"{FILLED} --fill says otherwise: {', '.join(fill)}." if fill else FILLED
    split = split_text([*bounds, *orders], {name: laws[name].epsilon for name in labels}, epsilon, delta, protect)
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
            "missing": filled,
            "ordered": orders,
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
        for line in (text, split, filled):
            console.print(line, markup=False, soft_wrap=True)
        for name, values in orders.items():
            numbers = ", ".join(f"{value} = {number}" for number, value in enumerate(values))
            console.print(f"{name} is released as numbers: {numbers}", markup=False, soft_wrap=True)
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


@dataclass
class _Stored:
    """A table that is read a few rows at a time.

    Attributes
    ----------
    path : Path
    labels : dict
        The declared labels in the types of their columns.
    unused : list of str
        Columns that are left out.
    """

    path: Path
    labels: dict[str, list[Any]]
    unused: list[str]

    def release(
        self, out: Path, laws: Any, domain: Any, public: Any, force: bool, workers: int | None, charge: dict[str, Any]
    ) -> FileRelease:
        from privfit.mechanisms.streaming import release_file

        options = {"drop": self.unused, "workers": workers, "overwrite": force, **charge}
        try:
            return release_file(self.path, out, laws, domain, public, **options)
        except KeyboardInterrupt as stopped:
            # its notes say how to go on
            raise typer.Abort from stopped


@dataclass
class _Loaded:
    """A table in memory."""

    table: Any
    labels: dict[str, list[Any]]
    unused: list[str]

    def release(
        self, out: Path, laws: Any, domain: Any, public: Any, force: bool, workers: int | None, charge: dict[str, Any]
    ) -> Release:
        from privfit.mechanisms import release as release_table

        with working("adding the noise"), TemporaryDirectory() as scratch:
            # without rows, before anything is spent: a release that its format cannot hold would be lost
            empty = release_table(self.table.slice(0, 0), laws, domain, public, rng=0)
            empty.save(Path(scratch) / out.name, allow_insecure=True)
            done = release_table(self.table, laws, domain, public, **charge)
            done.save(out, overwrite=force)
        return done


def _open(table: Path, out: Path, bounds: Any, labels: dict[str, list[str]], public: list[str]) -> _Stored | _Loaded:
    """Look at a table's schema, and read it if it cannot be streamed to `out`."""
    from privfit.mechanisms.sources import open_source

    dates = [name for name, (low, _) in bounds.items() if not isinstance(low, float)]
    if not streams(table) or out.suffix.lower() == ".csv":
        return _Loaded(*read_private_table(table, list(bounds), labels, public, dates))
    if not table.exists():
        raise FileNotFoundError(f"there is no file {table}.")
    source = open_source(table)
    typed, unused = check_private_schema(table, source.schema, list(bounds), labels, public, dates)
    if not source.rows:
        raise ValueError(f"{table.name} has columns and no rows: there is nothing to release.")
    return _Stored(table, typed, unused)


def _check_out(table: Path, out: Path, ledger: Path | None, force: bool) -> None:
    from privfit.mechanisms.formats import LAW_SUFFIX, SUFFIXES
    from privfit.mechanisms.work_folder import is_delivered

    if out.suffix and out.suffix.lower() not in SUFFIXES:
        raise ValueError(
            f"OUT must end in .parquet, .arrow or .csv, or have no ending for a folder of .parquet, got {out.name!r}."
        )
    if out.exists() and table.exists() and out.samefile(table):
        raise ValueError("OUT must not be the private table itself.")
    law = [out.with_name(out.name + LAW_SUFFIX)] if out.suffix.lower() == ".csv" else []
    written = [place for place in (out, *law) if place.exists()]
    if ledger is not None and ledger.exists() and any(place.samefile(ledger) for place in written):
        raise ValueError("OUT, or the law that is written beside it, must not be the ledger: it would be lost.")
    if law and law[0] in written and not out.exists() and not force:
        raise ValueError(f"{law[0]} exists and would be replaced. Choose another name, or use --force to overwrite.")
    if out.is_dir():
        raise ValueError(f"OUT: {out} is a folder that is there already; choose another name, or remove it.")
    if out.exists() and not force and not is_delivered(out):
        raise ValueError(f"{out} exists; a second release adds to what the first revealed. Use --force to overwrite.")
    if not out.parent.is_dir():
        raise ValueError(f"there is no folder {out.parent}; make it first.")
