"""The ball: records whose length is bounded, whatever their direction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.validation import check_integer, check_number
from privfit.mechanisms.columns import Column, as_columns
from privfit.mechanisms.encoding import NUMBERS, Encoding

__all__ = ["DECLARE", "Ball"]

Floats = NDArray[np.float64]

DECLARE = (
    "It must be declared, not computed from the data: the smallest and the largest value of a table are two "
    "people's values, and bounds that reveal them void the guarantee. Write down the widest values that the "
    "subject allows."
)
"""Why bounds from the data are refused."""


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
        np.nan_to_num(x, copy=False, nan=0.0, posinf=1e300, neginf=-1e300)
        # Scaling by a power of two near the largest entry is exact and keeps every square finite.
        power = np.frexp(np.maximum(np.abs(x).max(axis=0), self.radius))[1]
        np.ldexp(x, -power, out=x)
        norm = np.sqrt(np.square(x).sum(axis=0))
        # The radius shrinks by more than the rounding of the norm, so nothing ends outside.
        inner = self.radius * (1.0 - (self.dim + 8) * 2.0**-52)
        x *= np.minimum(np.ldexp(1.0, power), inner / np.maximum(norm, 2.0**-500))

    def to_dict(self) -> dict[str, Any]:
        """Return the ball as plain numbers and lists, ready for JSON."""
        return {"domain": "ball", "radius": self.radius, "dim": self.dim, "columns": list(self.columns)}

    @classmethod
    def _from_dict(cls, d: Mapping[str, Any]) -> Ball:
        return cls(d["radius"], d["dim"], d["columns"])
