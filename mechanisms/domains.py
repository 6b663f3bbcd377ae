"""Finding a column's part of a domain, and reading domains from files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privfit.mechanisms.categories import Categories
from privfit.mechanisms.columns import Column, as_columns
from privfit.mechanisms.domain import Ball, Box

__all__ = ["Domain", "as_domains", "domain_from_dict", "find_domain"]

Domain = Box | Ball | Categories

_KINDS: dict[str, Any] = {"box": Box, "ball": Ball, "categories": Categories}


def as_domains(domain: Any) -> tuple[Domain, ...]:
    """Return the parts of a domain as a tuple with disjoint columns, or raise.

    Parameters
    ----------
    domain : Box, Ball, Categories, or tuple or list of them

    Returns
    -------
    tuple

    Examples
    --------
    >>> len(as_domains(Box({"age": (17, 90)})))
    1
    """
    parts = tuple(domain) if isinstance(domain, (tuple, list)) else (domain,)
    for part in parts:
        if not isinstance(part, (Box, Ball, Categories)):
            raise TypeError(
                f"domain must be a Box, a Ball, Categories or a tuple of them, got {type(part).__name__}. "
                'Declare it, for instance Box({"age": (17, 90)}).'
            )
    as_columns("the columns of the domain", tuple(c for part in parts for c in part.columns))
    return parts


def find_domain(domain: Any, columns: tuple[Column, ...]) -> Domain:
    """Return the part of `domain` that declares `columns`, reduced to them.

    Parameters
    ----------
    domain : Box, Ball, Categories or tuple of them
    columns : tuple of str or int

    Returns
    -------
    Box, Ball or Categories

    Raises
    ------
    ValueError
        If no part declares all the columns together.

    Examples
    --------
    >>> find_domain(Box({"age": (17, 90), "hours": (0, 100)}), ("hours",)).ranges
    array([100.])
    """
    parts = as_domains(domain)
    for part in parts:
        if isinstance(part, Ball):
            if set(columns) == set(part.columns):
                return Ball(part.radius, part.dim, columns)
        elif set(columns) <= set(part.columns):
            return part.select(columns)
    own = {c: (b, j) for b in parts if isinstance(b, Box) for j, c in enumerate(b.columns)}
    if set(columns) <= set(own):
        found = [own[c] for c in columns]
        bounds, fills, encodings = (
            {c: getattr(b, name)[j] for c, (b, j) in zip(columns, found, strict=True)}
            for name in ("intervals", "fill", "encoding")
        )
        return Box(bounds, fills, encodings)
    declared = [c for part in parts for c in part.columns]
    raise ValueError(
        f"the domain declares {declared}; the law's columns {list(columns)} must be part of one Box or "
        "Categories, or be all of a Ball."
    )


def domain_from_dict(d: Any) -> Domain:
    """Build a domain from what its `to_dict` wrote.

    Parameters
    ----------
    d : mapping

    Returns
    -------
    Box, Ball or Categories

    Raises
    ------
    ValueError
        If `d` describes no domain.

    Examples
    --------
    >>> domain_from_dict(Ball(1.0, 2).to_dict())
    Ball(radius=1.0, dim=2, columns=(0, 1))
    """
    kind = _KINDS.get(str(d.get("domain"))) if isinstance(d, Mapping) else None
    if kind is None:
        raise ValueError(f"a domain is read from a mapping whose 'domain' is one of {sorted(_KINDS)}.")
    if not isinstance(d.get("columns"), (list, tuple)):
        # a Ball without names would count as many columns as it says it has
        raise ValueError("the saved domain cannot be read: 'columns' must be a list.")
    try:
        domain: Domain = kind._from_dict(d)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the saved domain cannot be read: {error}") from error
    return domain
