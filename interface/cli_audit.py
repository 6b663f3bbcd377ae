"""``privfit audit``: samples of a law on this machine, of a release file's law, or of a user's function."""

from __future__ import annotations

import ast
import importlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privfit.cli_common import (
    AsJson,
    PlotFile,
    check_figure_path,
    emit,
    read_bounds,
    read_labels,
    read_numbers,
    save_figure,
    working,
)

if TYPE_CHECKING:
    from privfit.accounting import TradeOffCurve
    from privfit.mechanisms.auditing import AuditReport

__all__ = ["ALARM", "audit", "read_claim", "read_function"]

ALARM = 4
"""Exit code of an audit that raised an alarm."""

LAWS = {
    "gaussian": ("Gaussian", ("scale",)),
    "laplace": ("Laplace", ("scale",)),
    "discrete-laplace": ("DiscreteLaplace", ("scale",)),
    "symmetric-laplace": ("SymmetricLaplace", ("scale", "shape")),
    "zil": ("ZeroInflatedLaplace", ("scale", "delta0")),
    "randomized-response": ("RandomizedResponse", ("epsilon",)),
}
SHAPE = 1


def audit(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="MECHANISM",
            help="One of " + ", ".join(LAWS) + "; a saved release, whose law is then audited on this machine; "
            "or MODULE:FUNCTION, your own.",
            show_default=False,
        ),
    ],
    scale: Annotated[
        str | None, typer.Option(help="Noise scale of a law: one number, or one per column separated by commas.")
    ] = None,
    shape: Annotated[int | None, typer.Option(help="Shape of symmetric-laplace; 1 by default.")] = None,
    delta0: Annotated[float | None, typer.Option(help="Share of exact rows of zil.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Epsilon of randomized-response.")] = None,
    column: Annotated[
        list[str] | None, typer.Option(metavar="NAME:LOWER:UPPER", help="A column and its bounds; repeat for more.")
    ] = None,
    label: Annotated[
        str | None, typer.Option(metavar="NAME:LABEL,LABEL", help="The column of randomized-response and its labels.")
    ] = None,
    protect: Annotated[
        str, typer.Option(help="Neighbours of a law: 'record', the whole row differs; 'attribute', one column.")
    ] = "record",
    rounding: Annotated[
        str | None,
        typer.Option(help="'nearest' or 'stochastic'; nearest, or as the file says, by default.", show_default=False),
    ] = None,
    claim: Annotated[
        str | None,
        typer.Option(
            metavar="CURVE", help="What a function promises: a curve of privfit.accounting, like 'gaussian(1.0)'."
        ),
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="VALUE",
            help="Input of a function: Python literal or text. Twice; the claim is for the first against the second.",
        ),
    ] = None,
    samples: Annotated[int, typer.Option(help="Outputs drawn of each of the two inputs.")] = 50_000,
    false_alarm: Annotated[
        float, typer.Option(help="Probability, at most, of an alarm about a correct mechanism.")
    ] = 1e-6,
    every: Annotated[
        bool, typer.Option("--every-test", help="List every test, with its share of false alarms.")
    ] = False,
    as_json: AsJson = False,
    plot: PlotFile = None,
) -> None:
    """Test whether a mechanism keeps its promise, on samples of its outputs.

    The outputs for two neighbouring inputs are compared with the claimed
    curve; those of a law of privfit also with its distribution, for noise that
    rows or releases share, and for values off the grid. An audit can disprove
    a promise, not prove it. Exit code 0: no alarm; 4: an alarm.

    A function maps an input to one output, or (input, n) to n outputs, with
    new noise each time.

    For example:

      privfit audit gaussian --scale 2 --column x:0:1

      privfit audit zil --scale 1.5 --delta0 0.001 --column a:0:1
          --column b:0:2 --protect attribute --plot audit.png

      privfit audit release.parquet --samples 200000

      privfit audit mymodule:noisy_count --claim "laplace(1.0)"
          --input 10 --input 11
    """
    from privfit.accounting.validation import check_choice
    from privfit.mechanisms.auditing import audit as run
    from privfit.mechanisms.grid import ROUNDINGS
    from privfit.mechanisms.reader import open_release

    check_figure_path(plot)
    if rounding is not None:
        check_choice("--rounding", rounding, tuple(ROUNDINGS))
    described = {"--scale": scale, "--shape": shape, "--delta0": delta0, "--epsilon": epsilon}
    declared = {"--column": column, "--label": label}
    own = {"--claim": claim, "--input": given}
    options: dict[str, Any] = {"samples": samples, "false_alarm": false_alarm}
    with working("drawing outputs"):
        if subject in LAWS:
            _refuse(subject, own)
            law, domain = _law(subject, scale, shape, delta0, epsilon, column or [], label)
            report = run(law, domain, protect=protect, rounding=rounding or "nearest", **options)
        elif ":" in subject and not Path(subject).exists():
            _refuse("a function", described | declared | {"--rounding": rounding})
            if protect != "record":
                raise ValueError("--protect is for laws; a function is audited at the two inputs given.")
            if claim is None or given is None or len(given) != 2:
                raise ValueError("a function needs --claim and two times --input, its neighbouring inputs.")
            pair = (_literal(given[0]), _literal(given[1]))
            function, curve = read_function(subject), read_claim(claim)
            try:
                report = run(function, claimed=curve, inputs=pair, **options)
            except RuntimeError as error:  # the function's own mistake, and so the user's
                raise ValueError(str(error)) from error
        elif Path(subject).exists() or Path(subject).suffix:
            _refuse("a release file", described | declared | own)
            saved = open_release(subject)
            report = run(saved.law, saved.domain, protect=protect, rounding=rounding or saved.rounding, **options)
        else:
            check_choice("MECHANISM", subject, tuple(LAWS), hint="Or give a release file, or MODULE:FUNCTION.")
    emit(report.to_dict(), as_json, lambda console: _show(console, report, every))
    if plot is not None:
        from privfit.figures import plot_audit

        save_figure(plot_audit(report), plot)
    if not report.passed:
        raise typer.Exit(ALARM)


def _show(console: Any, report: AuditReport, every: bool) -> None:
    console.print(str(report), markup=False, soft_wrap=True)
    if every:
        console.print("\n" + report.table(), markup=False, soft_wrap=True)


def _refuse(subject: str, options: dict[str, Any]) -> None:
    for name, value in options.items():
        if value is not None:
            raise ValueError(f"{subject} does not take {name}.")


def _law(
    name: str,
    scale: str | None,
    shape: int | None,
    delta0: float | None,
    epsilon: float | None,
    columns: list[str],
    label: str | None,
) -> tuple[Any, Any]:
    """The law that the options describe, and its domain."""
    from privfit import mechanisms

    kind, wanted = LAWS[name]
    numbers = None if scale is None else read_numbers("--scale", scale)
    sizes = numbers[0] if numbers is not None and len(numbers) == 1 else numbers
    values = {"scale": sizes, "shape": shape, "delta0": delta0, "epsilon": epsilon}
    _refuse(name, {f"--{option}": value for option, value in values.items() if option not in wanted})
    values["shape"] = SHAPE if shape is None else shape
    missing = [f"--{option}" for option in wanted if values[option] is None]
    if missing:
        raise ValueError(f"{name} needs {' and '.join(missing)}.")
    parameters: dict[str, Any] = {option: values[option] for option in wanted}
    if name == "randomized-response":
        _refuse(name, {"--column": columns or None})
        if label is None:
            raise ValueError(f"{name} needs --label NAME:LABEL,LABEL.")
        labels = read_labels([label])
        (found,) = labels.values()
        return mechanisms.RandomizedResponse(categories=len(found), **parameters), mechanisms.Categories(labels)
    _refuse(name, {"--label": label})
    if not columns:
        raise ValueError(f"{name} needs --column NAME:LOWER:UPPER.")
    return getattr(mechanisms, kind)(**parameters), mechanisms.Box(read_bounds(columns))


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def read_claim(text: str) -> TradeOffCurve:
    """Read a curve: a constructor of `privfit.accounting` with numbers, texts and other curves in its parentheses.

    Raises
    ------
    ValueError
        For anything else.

    Examples
    --------
    >>> read_claim("gaussian(1.0)"), read_claim("zero_inflated(laplace(1), delta0=0.01)")
    (GaussianCurve(mu=1.0), ZeroInflatedCurve(base=LaplaceCurve(a=1.0), delta0=0.01))
    """
    from privfit.accounting import TradeOffCurve

    refused = f"--claim must be a curve like gaussian(1.0) or zero_inflated(laplace(1), 0.01), got {text!r}."
    try:
        found = _evaluate(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(refused) from error
    if not isinstance(found, TradeOffCurve):
        raise ValueError(refused)
    return found


def _evaluate(node: ast.expr) -> Any:
    """Values of literals and of calls of the public functions of privfit.accounting; no other code runs."""
    from privfit import accounting

    if not isinstance(node, ast.Call):
        try:
            return ast.literal_eval(node)
        except ValueError as error:
            raise SyntaxError("neither a literal nor a call") from error
    if not isinstance(node.func, ast.Name) or node.func.id not in accounting.__all__ or node.func.id[0].isupper():
        raise SyntaxError("no curve of privfit.accounting")
    keywords = {own.arg: _evaluate(own.value) for own in node.keywords if own.arg is not None}
    return getattr(accounting, node.func.id)(*(_evaluate(own) for own in node.args), **keywords)


def read_function(text: str) -> Any:
    """Import MODULE:FUNCTION; modules of the current folder count.

    Raises
    ------
    ValueError
        If there is no such module or function.

    Examples
    --------
    >>> read_function("math:sqrt")
    <built-in function sqrt>
    """
    module, _, name = text.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
    except (ImportError, ValueError) as error:
        raise ValueError(f"there is no module {module!r} to import; give MODULE:FUNCTION.") from error
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise ValueError(f"module {module} has no function {name!r}; give MODULE:FUNCTION.")
    return found
