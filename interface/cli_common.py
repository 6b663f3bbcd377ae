"""What the commands share: reading options, printing tables or JSON, saving figures."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

__all__ = [
    "AsJson",
    "PlotFile",
    "emit",
    "number_text",
    "read_bounds",
    "read_labels",
    "read_numbers",
    "read_target",
    "save_figure",
    "simple_table",
    "working",
]

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
PlotFile = Annotated[
    Path | None,
    typer.Option("--plot", metavar="FILE", help="Save a figure (.png, .pdf or .svg).", show_default=False),
]
FIGURES = (".png", ".pdf", ".svg")
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def read_bounds(columns: Iterable[str]) -> dict[str, tuple[Any, Any]]:
    """Read NAME:LOWER:UPPER, two numbers or two dates (2020-12-31).

    Raises
    ------
    ValueError
        For another form, or a column given twice.

    Examples
    --------
    >>> read_bounds(["age:17:90", "born:1900-01-01:2020-12-31"])
    {'age': (17.0, 90.0), 'born': (datetime.date(1900, 1, 1), datetime.date(2020, 12, 31))}
    """
    bounds: dict[str, tuple[Any, Any]] = {}
    for text in columns:
        name, *ends = text.rsplit(":", 2)
        read = date.fromisoformat if any(DATE.fullmatch(end) for end in ends) else float
        try:
            low, high = (read(end) for end in ends)
        except ValueError:
            raise ValueError(
                "--column must be NAME:LOWER:UPPER with two numbers or two dates, for instance age:17:90 or "
                f"born:1900-01-01:2020-12-31, got {text!r}."
            ) from None
        if not name or name in bounds:
            raise ValueError(f"--column must name each column once, got {text!r}.")
        bounds[name] = (low, high)
    return bounds


def read_labels(labels: Iterable[str], option: str = "--label") -> dict[str, list[str]]:
    """Read NAME:LABEL,LABEL,... of an option.

    Raises
    ------
    ValueError
        For another form, or a column given twice.

    Examples
    --------
    >>> read_labels(["income:<=50K,>50K"])
    {'income': ['<=50K', '>50K']}
    """
    found: dict[str, list[str]] = {}
    for text in labels:
        name, _, rest = text.partition(":")
        values = [value.strip() for value in rest.split(",")]
        if not name or len(values) < 2 or "" in values or name in found:
            raise ValueError(
                f"{option} must be NAME:LABEL,LABEL,... with two or more labels and each column once, got {text!r}."
            )
        found[name] = values
    return found


def read_numbers(name: str, text: str) -> list[float]:
    """Read numbers separated by commas.

    Raises
    ------
    ValueError
        If one of them is none.

    Examples
    --------
    >>> read_numbers("--at", "0.5,1,2")
    [0.5, 1.0, 2.0]
    """
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if not values or not all(math.isfinite(value) for value in values):
        raise ValueError(f"{name} must be finite numbers separated by commas, got {text!r}.")
    return values


def read_target(
    epsilon: float | None,
    delta: float | None,
    gdp: float | None,
    advantage: float | None,
    fpr: float | None,
    fnr: float | None,
) -> Any:
    """Return the one target that the options name.

    Raises
    ------
    ValueError
        If none or several are named, one is incomplete, or its numbers are out of range.

    Examples
    --------
    >>> read_target(4.0, 1e-5, None, None, None, None)
    Budget(epsilon=4.0, delta=1e-05)
    """
    from privfit.accounting import GDP, Advantage, Budget, ErrorRates

    pairs = {"--epsilon with --delta": (epsilon, delta), "--fpr with --fnr": (fpr, fnr)}
    for form, pair in pairs.items():
        if (pair[0] is None) != (pair[1] is None):
            raise ValueError(f"{form}: give both, or neither.")
    found: list[Callable[[], Any]] = []
    if epsilon is not None and delta is not None:
        found.append(lambda: Budget(epsilon, delta))
    if gdp is not None:
        found.append(lambda: GDP(gdp))
    if advantage is not None:
        found.append(lambda: Advantage(advantage))
    if fpr is not None and fnr is not None:
        found.append(lambda: ErrorRates(fpr, fnr))
    if len(found) != 1:
        raise ValueError(
            f"give exactly one target, got {len(found)}: --epsilon with --delta, --gdp, --advantage, "
            "or --fpr with --fnr."
        )
    return found[0]()


def number_text(value: Any) -> str:
    """Write a number for a table.

    Examples
    --------
    >>> number_text(0.123456), number_text(float("inf")), number_text(3)
    ('0.1235', 'none', '3')
    """
    if isinstance(value, (int, str)):
        return str(value)
    return f"{value:.4g}" if math.isfinite(value) else "none"


def simple_table(title: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Any:
    """Return a rich table: text to the left, numbers to the right.

    Examples
    --------
    >>> simple_table("t", ["a", "b"], [["x", 1.0]]).row_count
    1
    """
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(title), title_justify="left")
    body = [list(row) for row in rows]
    for j, name in enumerate(header):
        text = all(isinstance(row[j], str) for row in body)
        table.add_column(escape(name), justify="left" if text else "right", overflow="fold")
    for row in body:
        table.add_row(*(escape(number_text(value)) for value in row))
    return table


def emit(payload: Mapping[str, Any], as_json: bool, show: Callable[[Console], None]) -> None:
    """Print JSON and nothing else, or what `show` prints.

    Examples
    --------
    >>> emit({"n": 1, "error": float("inf")}, True, lambda console: None)
    {
      "n": 1,
      "error": null
    }
    """
    if as_json:
        typer.echo(json.dumps(_plain(payload), indent=2, allow_nan=False))
        return
    from rich.console import Console

    show(Console(highlight=False))


def _plain(value: Any) -> Any:
    """JSON-ready: numbers that are not finite become null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


@contextmanager
def working(text: str) -> Iterator[Callable[[str], None]]:
    """Show on stderr, if it is a terminal, what is being done; the line vanishes at the end.

    Yields
    ------
    function
        Takes the text of the next step.

    Examples
    --------
    >>> with working("calibrating") as say:
    ...     say("adding the noise")
    """
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status(escape(text) + " ...") as status:
        yield lambda text: status.update(escape(text) + " ...")


def check_figure_path(path: Path | None) -> None:
    """Refuse a figure format that we do not write, and a folder that does not exist, before the work starts.

    Raises
    ------
    ValueError
        If the figure could not be written.

    Examples
    --------
    >>> check_figure_path(Path("curve.png"))
    """
    if path is not None and path.suffix.lower() not in FIGURES:
        raise ValueError(f"--plot must end in {', '.join(FIGURES)}, got {path.name!r}.")
    if path is not None and not path.parent.is_dir():
        raise ValueError(f"--plot: there is no folder {path.parent}; make it first.")


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure.

    Examples
    --------
    >>> save_figure.__name__
    'save_figure'
    """
    figure.savefig(path)
