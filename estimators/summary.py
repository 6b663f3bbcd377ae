"""Plain-text summaries of fits, in the layout that statsmodels users know."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["coefficient_table", "component_table", "cost_table", "summary_text"]

Floats = NDArray[np.float64]
_WIDTH = 78
_LINE = 110
_SIDE = 3  # components side by side
_WORTH = "worth (raw records each)"


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
    trusted: ArrayLike = True,
    student: bool = False,
) -> list[str]:
    """Lines of the coefficient table; tests and intervals of coefficients that are not `trusted` show as "-".

    The statistic is headed t for Student's law (`student`), else z.

    Examples
    --------
    >>> one = np.array([1.0])
    >>> lines = coefficient_table(["x"], one, one, one, one, np.array([[0.0, 2.0]]), 0.95)
    >>> lines[1].split()
    ['x', '1.0000', '1.0000', '1.000', '1.000', '0.0000', '2.0000']
    >>> coefficient_table(["x"], one, one, one, one, np.array([[0.0, 2.0]]), 0.95, trusted=False)[1].split()
    ['x', '1.0000', '1.0000', '-', '-', '-', '-']
    """
    tail = (1.0 - level) / 2.0
    width = max(16, *(len(name) for name in names)) if names else 16
    z_head = "t" if student else "z"
    heads = f"{z_head:>9} {f'P>|{z_head}|':>8} {f'[{tail:.3f}':>10} {f'{1 - tail:.3f}]':>10}"
    lines = [f"{'':<{width}}{'coef':>10} {'std err':>10} {heads}"]
    shows = np.broadcast_to(np.asarray(trusted, bool), len(names))
    for j, name in enumerate(names):
        shown = f"{z[j]:>9.3f} {p[j]:>8.3f} {_number(interval[j, 0])} {_number(interval[j, 1])}"
        if not shows[j]:
            shown = f"{'-':>9} {'-':>8} {'-':>10} {'-':>10}"
        lines.append(f"{name:<{width}}{_number(estimate[j])} {_number(errors[j])} {shown}")
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
    for name, text in facts:
        lines += _wrapped(f"{f'{name}:' if name else '':<18}", text)
    lines += [rule, table[0], "-" * len(rule), *table[1:], rule]
    for number, note in enumerate(notes, 1):
        lines += _wrapped(f"[{number}] ", note)
    return "\n".join(lines)


def _wrapped(head: str, text: str) -> list[str]:
    """Lines of a fact or note, below one another."""
    return textwrap.wrap(
        text,
        _LINE,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )


def cost_table(names: Sequence[str], errors: Floats, factors: Floats) -> list[str]:
    """Lines of the table of standard errors on the release and on the raw data.

    Parameters
    ----------
    names : sequence of str
    errors, factors : ndarray, shape (p,)
        Standard errors on the release, and how much larger they are than on the raw data.

    Examples
    --------
    >>> cost_table(["x"], np.array([1.0]), np.array([2.0]))[1].split()
    ['x', '1.0000', '0.5000', '2.000', '0.2500']
    """
    width = max(16, *(len(name) for name in names)) if names else 16
    lines = [f"{'standard errors':<{width}}{'release':>10} {'raw data':>10} {'factor':>10} {_WORTH:>24}"]
    for name, error, factor in zip(names, errors, factors, strict=True):
        texts = [f"{'unknown':>{wide}}" for wide in (10, 10, 24)]
        if np.isfinite(factor) and np.isfinite(error):
            texts = [_number(error / factor), f"{factor:>10.3f}", f"{factor**-2:>24.4f}"]
        lines.append(f"{name:<{width}}{_number(error)} {' '.join(texts)}")
    return lines


def component_table(
    columns: Sequence[str], values: Sequence[Floats], interval: Floats, level: float, loadings: Floats, errors: Floats
) -> list[str]:
    """Lines of the tables of principal components: their variances, then their loadings on the columns.

    Parameters
    ----------
    columns : sequence of str
        Names of the d columns.
    values : sequence of ndarray, shape (k,)
        Variance of each component, its standard error, and its share of the total.
    interval : ndarray, shape (k, 2)
    level : float
        Coverage of the intervals.
    loadings, errors : ndarray, shape (k, d)
        With standard errors.

    Examples
    --------
    >>> one = np.ones((1, 1))
    >>> lines = component_table(["x"], [one[0], one[0], one[0]], np.array([[0.0, 2.0]]), 0.95, one, 0.1 * one)
    >>> lines[1].split()
    ['component', '1', '1.0000', '1.0000', '0.0000', '2.0000', '1.0000']
    >>> lines[-1].split()
    ['x', '1.0000', '(0.1000)']
    """
    tail = (1.0 - level) / 2.0
    width = max(16, *(len(name) for name in columns)) if columns else 16
    heads = f"{f'[{tail:.3f}':>10} {f'{1 - tail:.3f}]':>10}"
    lines = [f"{'':<{width}}{'variance':>10} {'std err':>10} {heads} {'share':>10}"]
    for j, (variance, error, share) in enumerate(zip(*values, strict=True)):
        ends = " ".join(_number(end) for end in interval[j])
        lines.append(f"{f'component {j + 1}':<{width}}{_number(variance)} {_number(error)} {ends} {_number(share)}")
    for start in range(0, len(loadings), _SIDE):
        shown = range(start, min(start + _SIDE, len(loadings)))
        lines += ["", f"{'loadings (std err)':<{width}}" + "".join(f"{f'component {j + 1}':>24}" for j in shown)]
        for place, name in enumerate(columns):
            pairs = ((loadings[j, place], f"({_number(errors[j, place]).strip()})") for j in shown)
            cells = (f" {_number(loading)} {error:>12}" for loading, error in pairs)
            lines.append(f"{name:<{width}}{''.join(cells)}")
    return lines
