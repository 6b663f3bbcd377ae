"""A plan as lines of Python that can be pasted: its domain, and the call that releases a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from privfit.mechanisms import Ball, Box, Categories, Law
from privfit.mechanisms.domains import as_domains

__all__ = ["domain_code", "release_code"]

_NAME = re.compile(r"(?<![\w.'\"])([A-Z]\w*)\(")


def domain_code(domain: Any) -> str:
    """Return the expression that makes a domain, or "" where one would not say all of it (fills, dates).

    Parameters
    ----------
    domain : Box, Ball, Categories or tuple of them

    Examples
    --------
    >>> domain_code((Box({"age": (17, 90)}), Categories({"ill": ["no", "yes"]})))
    "(privfit.Box({'age': (17.0, 90.0)}), privfit.Categories({'ill': ['no', 'yes']}))"
    """
    texts = []
    for part in as_domains(domain):
        again, text = _part(part)
        if again != part or repr(again) != repr(part):
            return ""
        texts.append(text)
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def _part(part: Any) -> tuple[Any, str]:
    if isinstance(part, Ball):
        return Ball(part.radius, part.dim, part.columns), f"privfit.Ball({part.radius!r}, {part.dim}, {part.columns!r})"
    if isinstance(part, Box):
        bounds = dict(zip(part.columns, part.intervals, strict=True))
        return Box(bounds), f"privfit.Box({bounds!r})"
    labels = {column: list(own) for column, own in zip(part.columns, part.labels, strict=True)}
    return Categories(labels), f"privfit.Categories({labels!r})"


def release_code(law: Law, columns: Sequence[Any] = (), public: Sequence[Any] = ()) -> str:
    """Return the call that releases the columns of a table called `table` under a law.

    Parameters
    ----------
    law : Law
    columns : sequence, optional
        Of the domain; without names (an array) the whole table is released.
    public : sequence, optional
        Columns that are published as they are.

    Examples
    --------
    >>> from privfit.mechanisms import Laplace, Product
    >>> release_code(Product({"age": Laplace(2.0)}), ["age"], ["ward"])
    "privfit.release(table[['age', 'ward']], {'age': privfit.Laplace(scale=2.0)}, domain=domain, public=['ward'])"
    """
    table = "table"
    if any(isinstance(c, str) for c in columns):
        table = f"table[[{', '.join(repr(c) for c in [*columns, *public])}]]"
    parts = {own[0] if len(own) == 1 else own: noise for own, noise in getattr(law, "items", ())}
    laws = _NAME.sub(r"privfit.\1(", repr(parts) if parts else repr(law))
    shown = f", public=[{', '.join(map(repr, public))}]" if public else ""
    return f"privfit.release({table}, {laws}, domain=domain{shown})"
