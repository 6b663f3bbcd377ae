"""The ball: records whose length is bounded, whatever their direction."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.validation import check_integer, check_number
from privfit.mechanisms.columns import Column, as_columns
from privfit.mechanisms.encoding import NUMBERS, Encoding
from privfit.mechanisms.grid import flush

__all__ = ["DECLARE", "Ball"]

Floats = NDArray[np.float64]

DECLARE = (
    "It must be declared, not computed from the data: the smallest and the largest value of a table are two "
    "people's values, and bounds that reveal them void the guarantee. Write down the widest values that the "
    "subject allows."
)
"""Why bounds from the data are refused."""

_LEAST, _MOST = 2.0**-200, 2.0**40


@dataclass(frozen=True, init=False)
class Ball:
    """The l2 ball of a radius around 0; a record outside is projected onto it, a missing value becomes 0.

    Parameters
    ----------
    radius : float
    dim : int
        Number of columns.
    columns : sequence of str or int, optional
        Their names; positions 0, ..., dim - 1 by default.

    Examples
    --------
    >>> Ball(0.5, 6).diameter
    1.0
    """

    radius: float
    dim: int
    columns: tuple[Column, ...]

    def __init__(self, radius: float, dim: int, columns: Iterable[Any] | None = None) -> None:
        dim = check_integer("dim", dim, 1)
        names = as_columns("columns", range(dim) if columns is None else columns)
        if len(names) != dim:
            raise ValueError(f"columns must name dim = {dim} columns, got {len(names)}.")
        given: Any = radius
        if isinstance(given, np.ndarray):
            raise TypeError(f"radius must be a number, got an array. {DECLARE}")
        object.__setattr__(self, "radius", check_number("radius", given, 1e-150, 1e150, hint=DECLARE))
        object.__setattr__(self, "dim", dim)
        object.__setattr__(self, "columns", names)

    @property
    def diameter(self) -> float:
        """Largest distance between two records, 2 radius."""
        return 2.0 * self.radius

    @property
    def magnitude(self) -> Floats:
        """Largest absolute value of each column, shape (dim,)."""
        return np.full(self.dim, self.radius)

    @property
    def encoding(self) -> tuple[Encoding, ...]:
        """How cells become numbers: as they are, in every column."""
        return (NUMBERS,) * self.dim

    def shift(self, scales: Floats, protect: str) -> float:
        """Return 2R/min(scales) at both levels: one coordinate alone can already move by the diameter.

        An attribute outside the ball also moves the others when the record is projected; the l2 distance of
        two projected records is at most 2R all the same.
        """
        return float(self.diameter / scales.min())

    def project(self, x: Floats) -> None:
        """Map the rows of `x`, shape (dim, rows), into the ball in place; total, missing to 0."""
        # One shape of work whatever the entries are: in units of a power of two near the radius, entries beyond
        # 2^40 radii count as 2^40 (every square is finite then), and entries below 2^-200 radii as 0, as missing ones
        # do. Both keep the record in the ball, and neither is seen in data that the radius was chosen for.
        unit = 2.0 ** (math.frexp(self.radius)[1])
        flush(x, unit * _LEAST)
        np.clip(x, -unit * _MOST, unit * _MOST, out=x)
        x *= 1.0 / unit
        norm = np.sqrt(np.square(x).sum(axis=0))
        # The radius shrinks by more than the rounding of the norm, so nothing ends outside.
        inner = self.radius / unit * (1.0 - (self.dim + 8) * 2.0**-52)
        x *= np.minimum(1.0, inner / np.maximum(norm, _LEAST)) * unit

    def to_dict(self) -> dict[str, Any]:
        """Return the ball as plain numbers and lists, ready for JSON."""
        return {"domain": "ball", "radius": self.radius, "dim": self.dim, "columns": list(self.columns)}

    @classmethod
    def _from_dict(cls, d: Mapping[str, Any]) -> Ball:
        return cls(d["radius"], d["dim"], d["columns"])
