"""Fresh releases of the two records of a domain that are furthest apart, through the path that everybody uses.

Rows are the corner itself and points beyond it, infinite ones included: a release must map them all to the corner,
so that a domain that is not enforced shows as noise of the wrong law. The corners and the grid points that belong
to them are computed here, from the declaration, not asked of the code that is audited.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.audit_laws import is_known, log_density
from privfit.mechanisms.categories import Categories
from privfit.mechanisms.columns import Column
from privfit.mechanisms.discrete_laplace import DiscreteLaplace
from privfit.mechanisms.domain import Ball, Box
from privfit.mechanisms.domains import as_domains
from privfit.mechanisms.labels import label_codes
from privfit.mechanisms.laplace import Laplace
from privfit.mechanisms.law import Law
from privfit.mechanisms.product import Product
from privfit.mechanisms.randomized_response import RandomizedResponse

__all__ = ["Part", "draw", "parts_of", "score"]

Floats = NDArray[np.float64]
Drawn = list[NDArray[Any]]
"""Outputs by part: grid values of shape (n, dim), or label codes of shape (n, 1); -1 for an unknown label."""


@dataclass(frozen=True)
class Part:
    """A law, its columns and domain, and the two inputs: points of shape (dim,), or codes of labels.

    Attributes
    ----------
    columns : tuple of str or int
    law : Law
    domain : Box, Ball or Categories
    ends : pair of ndarray of shape (dim,)
    """

    columns: tuple[Column, ...]
    law: Law
    domain: Any
    ends: tuple[Floats, Floats]

    @property
    def name(self) -> str:
        """The columns, for reports."""
        return ", ".join(map(str, self.columns))

    @property
    def labels(self) -> bool:
        """Whether labels are exchanged, instead of noise added."""
        return isinstance(self.law, RandomizedResponse)

    @property
    def grid(self) -> Floats:
        """Grid of the released values, shape (dim,)."""
        return self.law.grid(len(self.columns))  # type: ignore[attr-defined]

    def exact(self, end: int) -> Floats:
        """Grid point of an input that gets no noise, rounded to the nearest."""
        whole = np.floor(self.ends[end] / self.grid)
        return np.asarray((whole + np.rint(self.ends[end] / self.grid - whole)) * self.grid)

    def inputs(self, end: int, rows: int) -> list[NDArray[Any]]:
        """Return columns of inputs that all stand for one end of the domain."""
        if self.labels:
            label = self.domain.labels[0][int(self.ends[end][0])]
            kind = object if isinstance(label, str) else None
            return [np.full(rows, label, dtype=kind)]
        x, other = self.ends[end], self.ends[1 - end]
        kinds = [x, x, 2 * x - other, x + 1e6 * (x - other)]
        if isinstance(self.domain, Box):
            with np.errstate(invalid="ignore"):
                kinds.append(np.where(x == other, x, np.sign(x - other) * np.inf))
        return list(np.array(kinds)[np.arange(rows) % len(kinds)].T)


def _ends(law: Law, domain: Any, attribute: bool) -> tuple[Floats, Floats]:
    """The worst pair of neighbours of one part."""
    if isinstance(domain, Categories):
        return np.array([0.0]), np.array([1.0])
    scales = law.scales(domain.dim)
    if isinstance(domain, Ball):
        direction = 1 / scales if isinstance(law, (Laplace, DiscreteLaplace)) else (scales == scales.min()) * 1.0
        if not isinstance(law, (Laplace, DiscreteLaplace)):
            direction[np.argmax(direction) + 1 :] = 0.0
        tip = domain.radius * direction / np.linalg.norm(direction)
        both = np.array([-tip, tip]).T
        Ball.project(domain, both)
        return both[:, 0], both[:, 1]
    low, high = domain.lower, domain.upper
    if attribute:
        j = int(np.argmax(domain.ranges / scales))
        high = np.where(np.arange(domain.dim) == j, high, low)
    return low, high


def parts_of(law: Law, domain: Any, protect: str) -> list[Part]:
    """Return the parts of a law with their worst neighbours.

    Parameters
    ----------
    law : Law
    domain : Box, Ball, Categories or tuple of them
    protect : {"record", "attribute"}
        For an attribute of a Product, the part whose attribute is protected least has two different ends.

    Examples
    --------
    >>> from privfit.mechanisms import Gaussian
    >>> parts_of(Gaussian(1.0), Box({"x": (0, 1)}), "record")[0].ends
    (array([0.]), array([1.]))
    """
    if isinstance(law, Product):
        pairs = [(c, own, part) for (c, own), (_, part) in zip(law.items, law.resolve(domain), strict=True)]
    else:
        only = as_domains(domain)[0]
        pairs = [(only.columns, law, only)]
    attribute = protect == "attribute"
    found = [Part(columns, own, part, _ends(own, part, attribute)) for columns, own, part in pairs]
    if not attribute or len(found) == 1:
        return found
    worst = max(range(len(found)), key=lambda i: found[i].law.tradeoff(found[i].domain, protect).advantage)
    return [
        part if i == worst else Part(part.columns, part.law, part.domain, (part.ends[0], part.ends[0]))
        for i, part in enumerate(found)
    ]


def draw(law: Law, domain: Any, parts: list[Part], end: int, rows: int, rounding: str) -> Drawn:
    """Release `rows` rows of one end and return the outputs by part.

    Examples
    --------
    >>> from privfit.mechanisms import Gaussian
    >>> box = Box({"x": (0, 1)})
    >>> draw(Gaussian(1.0), box, parts_of(Gaussian(1.0), box, "record"), 0, 5, "nearest")[0].shape
    (5, 1)
    """
    cells = {c: cell for part in parts for c, cell in zip(part.columns, part.inputs(end, rows), strict=True)}
    declared = [c for own in as_domains(domain) for c in own.columns if c in cells]
    public = None
    if all(isinstance(c, int) for c in declared):
        declared = list(range(1 + max(c for c in declared if isinstance(c, int))))
        public = [c for c in declared if c not in cells] or None
    mixed = any(part.labels for part in parts)
    table = np.zeros((rows, len(declared)), dtype=object if mixed else np.float64)
    for place, column in enumerate(declared):
        if column in cells:
            table[:, place] = cells[column]
    frame = law.release(table, domain, public=public, rounding=rounding).frame
    out = []
    for part in parts:
        columns = frame[:, [declared.index(c) for c in part.columns]]
        if part.labels:
            columns = label_codes(columns[:, 0], part.domain.labels[0], -1)[:, None]
        out.append(columns if part.labels else columns.astype(np.float64))
    return out


def score(parts: list[Part], drawn: Drawn, stochastic: bool) -> Floats | None:
    """Return log dQ/dP of the stated laws at the outputs, shape (n,); None if a law is not known here."""
    total = np.zeros(len(drawn[0]))
    for part, y in zip(parts, drawn, strict=True):
        if np.array_equal(*part.ends):
            continue
        if part.labels:
            assert isinstance(part.law, RandomizedResponse)
            codes = y[:, 0]
            total += part.law.epsilon * (1.0 * (codes == part.ends[1][0]) - 1.0 * (codes == part.ends[0][0]))
            continue
        if not is_known(part.law):
            return None
        with np.errstate(all="ignore"):
            total = total + log_density(part.law, y - part.ends[1]) - log_density(part.law, y - part.ends[0])
        if part.law.exact_fraction:
            here, there = (_on_input(part, y, end, stochastic) for end in (0, 1))
            total = np.where(here & ~there, -np.inf, np.where(there & ~here, np.inf, total))
    return np.nan_to_num(total, nan=0.0, posinf=np.inf, neginf=-np.inf)


def _on_input(part: Part, y: Floats, end: int, stochastic: bool) -> NDArray[np.bool_]:
    """Whether rows lie on the grid point that their input has without noise, all coordinates."""
    if stochastic:
        return np.asarray((np.abs(y - part.ends[end]) < part.grid).all(axis=1))
    return np.asarray((y == part.exact(end)).all(axis=1))
