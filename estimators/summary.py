"""Plain-text summaries of fits, in the layout that statsmodels users know."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["coefficient_table", "summary_text"]

Floats = NDArray[np.float64]
_WIDTH = 78


def _number(value: float) -> str:
    if not np.isfinite(value):
        return f"{value:>10}"
    return f"{value:>10.4f}" if 1e-3 <= abs(value) < 1e5 or value == 0 else f"{value:>10.3g}"


def coefficient_table(
    names: Sequence[str],
    estimate: Floats,
    errors: Floats,
    z: Floats,
    p: Floats,
    interval: Floats,
    level: float,
) -> list[str]:
    """Lines of the coefficient table.

    Examples
    --------
    >>> one = np.array([1.0])
    >>> lines = coefficient_table(["x"], one, one, one, one, np.array([[0.0, 2.0]]), 0.95)
    >>> lines[1].split()
    ['x', '1.0000', '1.0000', '1.000', '1.000', '0.0000', '2.0000']
    """
    tail = (1.0 - level) / 2.0
    width = max(16, *(len(name) for name in names)) if names else 16
    lines = [
        f"{'':<{width}}{'coef':>10} {'std err':>10} {'z':>9} {'P>|z|':>8} {f'[{tail:.3f}':>10} {f'{1 - tail:.3f}]':>10}"
    ]
    for j, name in enumerate(names):
        lines.append(
            f"{name:<{width}}{_number(estimate[j])} {_number(errors[j])} {z[j]:>9.3f} {p[j]:>8.3f} "
            f"{_number(interval[j, 0])} {_number(interval[j, 1])}"
        )
    return lines


def summary_text(title: str, facts: Sequence[tuple[str, str]], table: Sequence[str], notes: Sequence[str]) -> str:
    """Join title, facts, coefficient table and notes.

    Examples
    --------
    >>> print(summary_text("Fit", [("Records", "3")], ["a  1"], ["done"]).splitlines()[1])
    ====...
    """
    rule = "=" * max(_WIDTH, *(len(line) for line in table))
    lines = [title.center(len(rule)).rstrip(), rule]
    lines += [f"{f'{name}:' if name else '':<18}{text}" for name, text in facts]
    lines += [rule, table[0], "-" * len(rule), *table[1:], rule]
    lines += [f"[{number}] {note}" for number, note in enumerate(notes, 1)]
    return "\n".join(lines)
