"""Column names: strings, or integer positions of an array."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = ["Column", "as_columns"]

Column = str | int


def as_columns(name: str, columns: Iterable[Any]) -> tuple[Column, ...]:
    """Return column names (strings or integer positions) as a tuple without repeats, or raise.

    Examples
    --------
    >>> as_columns("public", ["sex", "state"])
    ('sex', 'state')
    """
    if isinstance(columns, (str, bytes)):
        raise TypeError(f"{name} must be a sequence of column names, got {type(columns).__name__}.")
    out = tuple(int(c) if isinstance(c, np.integer) else c for c in columns)
    for column in out:
        if isinstance(column, bool) or not isinstance(column, (str, int)):
            raise TypeError(f"{name} must be strings or integer positions, got {type(column).__name__}.")
        if isinstance(column, int) and column < 0:
            raise ValueError(f"{name}: positions must be >= 0, got {column}.")
    if not out:
        raise ValueError(f"{name} must name at least one column.")
    repeated = sorted({str(c) for c in out if out.count(c) > 1})
    if repeated:
        raise ValueError(f"{name} must be distinct, got {', '.join(repeated)} more than once.")
    return out
