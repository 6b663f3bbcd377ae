"""``privfit ledger``: keep account of a privacy budget, in a file that any number of processes may share."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privfit.cli_common import AsJson, emit, read_numbers, read_target, simple_table, working
from privfit.cli_mechanisms import Description, describes_mechanism

if TYPE_CHECKING:
    from privfit.accounting import Ledger

__all__ = ["create", "ledger", "open_ledger", "remaining", "show", "spend"]

ledger = typer.Typer(
    name="ledger",
    no_args_is_help=True,
    help="Keep account of a privacy budget: create, spend, show, remaining.\n\n"
    "A ledger is a file with a target and the releases made so far. 'spend' records a release BEFORE it is made, or "
    "refuses it (exit code 3) and records nothing; then nothing must be released.",
)
File = Annotated[Path, typer.Argument(metavar="FILE", help="The ledger, for instance study.jsonl.")]
Part = Annotated[
    str | None,
    typer.Option(
        help="The group of records it is about, fixed in advance; groups are disjoint and do not add up. All records "
        "by default.",
        show_default=False,
    ),
]
Leak = Annotated[float, typer.Option(help="For adaptive ledgers: extra disclosure under which it is charged.")]
DIGITS = 6


def open_ledger(file: Path) -> Ledger:
    """Open a ledger that is there.

    Raises
    ------
    ValueError
        If it is not.

    Examples
    --------
    >>> open_ledger(Path("none.jsonl"))
    Traceback (most recent call last):
        ...
    ValueError: there is no ledger none.jsonl; make one with 'privfit ledger create'.
    """
    from privfit.accounting import Ledger

    if not file.is_file():
        raise ValueError(f"there is no ledger {file}; make one with 'privfit ledger create'.")
    return Ledger.open(file)


def _state(book: Ledger) -> list[str]:
    """What is spent and what would fit, in the words of the library."""
    return book.summary().splitlines()[1:3]


@ledger.command(no_args_is_help=True)
def create(
    file: File,
    epsilon: Annotated[float | None, typer.Option(help="Target: epsilon, together with --delta.")] = None,
    delta: Annotated[float | None, typer.Option(help="Target: delta, together with --epsilon.")] = None,
    gdp: Annotated[float | None, typer.Option(metavar="MU", help="Target: Gaussian DP with this mu.")] = None,
    advantage: Annotated[float | None, typer.Option(help="Target: largest advantage of any attack.")] = None,
    fpr: Annotated[
        float | None, typer.Option(help="Target: an attack with this false-positive rate misses at least --fnr.")
    ] = None,
    fnr: Annotated[float | None, typer.Option(help="Target: see --fpr.")] = None,
    adaptive: Annotated[
        bool,
        typer.Option(
            "--adaptive",
            help="Allow the noise of a release to be chosen after seeing earlier ones; costs some of the budget.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make a ledger for a target, which is then fixed.

    Without --adaptive, the mechanisms of all releases must be chosen without
    looking at what was released before.

    For example:

      privfit ledger create study.jsonl --epsilon 1 --delta 1e-5

      privfit ledger create study.jsonl --gdp 1 --adaptive
    """
    from privfit.accounting import Ledger

    target = read_target(epsilon, delta, gdp, advantage, fpr, fnr)
    if file.exists():
        raise ValueError(f"{file} exists; see it with 'privfit ledger show', or choose another name.")
    if not file.parent.is_dir():
        raise ValueError(f"there is no folder {file.parent}; make it first.")
    with working("writing"):
        book = Ledger(target, file, adaptive=adaptive)
        lines = _state(book)
    payload = {"file": file, "target": str(target), "adaptive": adaptive, "would_fit": lines[1]}
    emit(payload, as_json, lambda console: _print(console, [f"{file}: ledger for {target}", lines[1]]))


@ledger.command(no_args_is_help=True)
@describes_mechanism
def spend(
    described: Description,
    file: File,
    label: Annotated[str, typer.Option(help="A name for the release; never data.", show_default=False)] = "",
    part: Part = None,
    leak: Leak = 0.0,
    as_json: AsJson = False,
) -> None:
    """Record a release, or refuse it; make the release only afterwards.

    Exit code 0: it is recorded. Exit code 3: it would break the target,
    nothing is recorded and nothing must be released.

    For example:

      privfit ledger spend study.jsonl --mechanism gaussian --mu 0.2
          --label "mean of age"

      privfit ledger spend study.jsonl --mechanism laplace --epsilon 0.1
          --times 3 --part "hospital A"
    """
    book, curve = open_ledger(file), _curve(described)
    with working("composing"):
        entry = book.spend(curve, label, part, leak=leak)
        lines = _state(book)
    payload = {"recorded": _entry(entry), "so_far": lines[0], "would_fit": lines[1]}
    name = f"recorded {label!r}" if label else "recorded"
    emit(payload, as_json, lambda console: _print(console, [f"{name}: {described}", *lines]))


@ledger.command(no_args_is_help=True)
def show(
    file: File,
    deltas: Annotated[str, typer.Option(help="Deltas at which epsilon is printed.")] = "1e-3,1e-5,1e-7",
    as_json: AsJson = False,
) -> None:
    """Print the releases, what they guarantee together, and what would fit.

    For example:

      privfit ledger show study.jsonl

      privfit ledger show study.jsonl --deltas 1e-6 --json
    """
    from privfit.accounting.validation import check_array

    wanted = sorted(set(read_numbers("--deltas", deltas)), reverse=True)
    check_array("--deltas", wanted, 0.0, 1.0)
    book = open_ledger(file)
    with working("composing"):
        together, lines, entries = book.guarantee(), _state(book), book.entries
        rows = [{"at_delta": d, "epsilon": together.epsilon(d)} for d in wanted]
    payload = {
        "file": file,
        "target": str(book.target),
        "releases": [_entry(entry) for entry in entries],
        "so_far": lines[0],
        "would_fit": lines[1],
        "guarantee": rows,
        "checksum": book.checksum,
    }

    def tell(console: Any) -> None:
        if entries:
            body = [[e.time, "all" if e.part is None else e.part, e.label, _short(e.curve)] for e in entries]
            console.print(simple_table(f"Ledger for {book.target}", ["time", "part", "label", "curve"], body))
        else:
            _print(console, [f"Ledger for {book.target}: nothing spent"])
        values = [[f"epsilon at delta = {row['at_delta']:g}", row["epsilon"]] for row in rows]
        console.print(simple_table("What all releases guarantee together", ["", "at most"], values))
        _print(console, lines)

    emit(payload, as_json, tell)


@ledger.command(no_args_is_help=True)
@describes_mechanism
def remaining(
    described: Description,
    file: File,
    part: Part = None,
    leak: Leak = 0.0,
    as_json: AsJson = False,
) -> None:
    """Print what still fits: how often, or with how little noise.

    With a mechanism described in full: how many more releases of it fit. With
    the option left out that says how private it is (--mu, --epsilon, --shift,
    --rho, --sigma): the value of that option that still fits once. Exit code
    3 if nothing fits. Nothing is recorded.

    For example:

      privfit ledger remaining study.jsonl --mechanism gaussian --mu 0.1

      privfit ledger remaining study.jsonl --mechanism laplace
    """
    book = open_ledger(file)
    main = None if described.curve_file is not None else described.family.main
    if main is None or getattr(described, main) is not None:
        count = _how_many(book, _curve(described), part, leak)
        payload: dict[str, Any] = {"of": str(described), "how_many": count}
        text = f"{described}: {count if count < 10**12 else 'any number'} more of these fit"
    else:
        payload = _largest(book, described, main, part, leak)
        side = "at least" if described.family.grows else "at most"
        shown = _rounded(payload["value"], up=described.family.grows)
        text = f"{described}: one more release fits with --{main} {side} {shown}"
    emit(payload, as_json, lambda console: _print(console, [text]))


def _how_many(book: Ledger, curve: Any, part: str | None, leak: float) -> int:
    from privfit.accounting import BudgetExceeded

    with working("composing"):
        count = book.how_many(curve, part, leak=leak)
    if count == 0:
        raise BudgetExceeded("no more release of this kind fits what is left of the target.")
    return count


def _largest(book: Ledger, described: Description, main: str, part: str | None, leak: float) -> dict[str, Any]:
    """The value of the main option that fits, found as a noise scale: its inverse, or sigma itself."""
    family = described.family
    if others := [name for name in described.missing() if name != main]:
        raise ValueError(f"{described.mechanism} needs {' and '.join('--' + name for name in others)}.")

    def at(scale: float) -> Any:
        return described.with_main(scale if family.grows else 1.0 / scale).curve()

    with working("searching"):
        scale = book.remaining(at, part, leak=leak)
    return {"of": str(described), "parameter": main, "value": scale if family.grows else 1.0 / scale}


def _curve(described: Description) -> Any:
    if described.mechanism is None and described.curve_file is None:
        raise ValueError("say what is released with --mechanism, or with --curve.")
    return described.curve()


def _rounded(value: float, up: bool) -> str:
    """A number for people, rounded to the side that fits.

    Examples
    --------
    >>> _rounded(0.123456789, up=False), _rounded(0.123456789, up=True)
    ('0.123456', '0.123457')
    """
    unit = 10.0 ** (math.floor(math.log10(value)) + 1 - DIGITS)
    steps = (math.ceil if up else math.floor)(value / unit)
    return f"{steps * unit:.{DIGITS}g}"


def _entry(entry: Any) -> dict[str, Any]:
    plain = {name: getattr(entry, name) for name in ("time", "label", "part", "leak")}
    return {**plain, "curve": entry.curve.to_dict()}


def _short(curve: Any) -> str:
    import textwrap

    return textwrap.shorten(str(curve), 80)


def _print(console: Any, lines: list[str]) -> None:
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)
