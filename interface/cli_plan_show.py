"""What ``privfit plan`` prints: the table, and the command that releases under the best law."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from privfit.cli_common import number_text, simple_table

__all__ = ["release_command", "show_plan"]

MECHANISM_NAMES = {
    "Gaussian": "gaussian",
    "Laplace": "laplace",
    "SymmetricLaplace": "symmetric-laplace",
    "ZeroInflatedLaplace": "zil",
}
"""Names of laws in ``privfit release``."""


def release_command(
    found: Any,
    columns: Sequence[str],
    labels: Sequence[str],
    epsilon: float | None,
    delta: float | None,
) -> str | None:
    """Return the command that releases a table under the best law; None where the budget is no epsilon and delta.

    Examples
    --------
    >>> from privfit.accounting import Budget
    >>> from privfit.estimators.planning import plan
    >>> from privfit.mechanisms import Box
    >>> found = plan("mean", Budget(1.0, 1e-5), Box({"x": (0, 1)}), 1000, ["laplace"])
    >>> release_command(found, ["x:0:1"], [], 1.0, 1e-5)
    'privfit release TABLE OUT --column x:0:1 --epsilon 1 --delta 1e-05 --mechanism laplace'
    """
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
        name = MECHANISM_NAMES[type(own).__name__]
        words += ["--mechanism", found.best.mechanism if found.best.mechanism == "generalized-laplace" else name]
        for parameter in ("shape", "delta0"):
            words += [f"--{parameter}", f"{getattr(own, parameter):.10g}"] if hasattr(own, parameter) else []
    words += share
    words += [word for name in found.public for word in ("--public", name)]
    words += ["--protect", "attribute"] if found.protect == "attribute" else []
    return shlex.join(words)


def show_plan(console: Any, found: Any, payload: dict[str, Any]) -> None:
    """Print a plan: warnings, table, the best law with its command, notes.

    Examples
    --------
    >>> show_plan.__name__
    'show_plan'
    """
    from privfit.estimators.plan_row import count_text, law_text

    required = payload.get("required_n", {})
    header = ["mechanism", found.error_title, "x raw data", "worth raw n", "needs n"]
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
    for line in payload["warnings"]:
        console.print(line, markup=False, soft_wrap=True)
    console.print(f"{found.task}, {found.budget}, {found.protected}", markup=False, soft_wrap=True)
    if served:
        title = f"Predicted standard errors ({found.deciding}) from {found.n:,} records; "
        title += f"raw data: {number_text(payload['raw_wanted'])}"
        table = simple_table(title, header, body)
        table.columns[0].no_wrap = True
        console.print(table)
    if found.suffices:
        console.print(f"Best: {found.best.mechanism}, {law_text(found.best.law)}", markup=False, soft_wrap=True)
        errors = found.best.standard_errors
        text = ", ".join(f"{name} {value:.4g}" for name, value in zip(found.names, errors, strict=True))
        console.print(f"Its standard errors: {text}", markup=False, soft_wrap=True)
        if payload["command"] is not None:
            console.print("Release with:", markup=False)
            console.print(f"  {payload['command']}", markup=False, soft_wrap=True)
    if payload["pilot_rows_dropped"]:
        console.print(f"{payload['pilot_rows_dropped']:,} incomplete pilot records left out.", markup=False)
    for note in payload["notes"]:
        console.print(note, markup=False, soft_wrap=True)
