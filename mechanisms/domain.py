r"""Domains: where the records of a table may lie. Declared by the owner, never computed from the data.

Releases map every input into the domain (missing to the declared fill value, then clipping or projection), so
the distance between two records is bounded by the declaration alone: r_j = upper_j - lower_j, or 2R.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.validation import check_integer, check_number
from privfit.mechanisms.columns import Column, as_columns

__all__ = ["Ball", "Box"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, init=False)
class Box:
    """A product of intervals, one per named column.

    Parameters
    ----------
    bounds : mapping
        ``{column: (lower, upper)}`` with finite lower < upper.
    fill : mapping, optional
        ``{column: value}``, what a missing value is taken for; the centre of the interval by default.

    Examples
    --------
    >>> box = Box({"age": (17, 90), "hours": (0, 100)})
    >>> box.ranges
    array([ 73., 100.])
    """

    columns: tuple[Column, ...]
    intervals: tuple[tuple[float, float], ...]
    fill: tuple[float, ...]

    def __init__(self, bounds: Mapping[Any, Sequence[float]], fill: Mapping[Any, float] | None = None) -> None:
        if not isinstance(bounds, Mapping):
            raise TypeError(f"bounds must be a mapping {{column: (lower, upper)}}, got {type(bounds).__name__}.")
        columns = as_columns("the columns of a Box", bounds)
        intervals = tuple(_interval(c, pair) for c, pair in zip(columns, bounds.values(), strict=True))
        fills = dict(fill or {})
        unknown = [repr(c) for c in fills if c not in columns]
        if unknown:
            raise ValueError(f"fill names columns that the box has not: {', '.join(unknown)}.")
        centre = tuple(
            check_number(f"fill[{c!r}]", fills.get(c, lo + (hi - lo) / 2), lo, hi)
            for c, (lo, hi) in zip(columns, intervals, strict=True)
        )
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "intervals", intervals)
        object.__setattr__(self, "fill", centre)

    @property
    def dim(self) -> int:
        """Number of columns."""
        return len(self.columns)

    @property
    def lower(self) -> Floats:
        """Lower bounds, shape (dim,)."""
        return np.array([lo for lo, _ in self.intervals])

    @property
    def upper(self) -> Floats:
        """Upper bounds, shape (dim,)."""
        return np.array([hi for _, hi in self.intervals])

    @property
    def ranges(self) -> Floats:
        """Lengths of the intervals, rounded up, shape (dim,)."""
        return np.array([_length(lo, hi) for lo, hi in self.intervals])

    @property
    def magnitude(self) -> Floats:
        """Largest absolute value of each column, shape (dim,)."""
        return np.maximum(np.abs(self.lower), np.abs(self.upper))

    def select(self, columns: Iterable[Any]) -> Box:
        """Return the box of some columns, in the order asked for.

        Parameters
        ----------
        columns : iterable of str or int

        Returns
        -------
        Box

        Raises
        ------
        ValueError
            If a column is not in the box.
        """
        wanted = as_columns("columns", columns)
        missing = [repr(c) for c in wanted if c not in self.columns]
        if missing:
            raise ValueError(f"columns {', '.join(missing)} are not in the box, which has {list(self.columns)}.")
        where = [self.columns.index(c) for c in wanted]
        return Box(
            {c: self.intervals[j] for c, j in zip(wanted, where, strict=True)},
            {c: self.fill[j] for c, j in zip(wanted, where, strict=True)},
        )

    def shift(self, scales: Floats, protect: str) -> float:
        """Return the largest |x - x'| in units of `scales` between neighbouring records."""
        ratios = self.ranges / scales
        return float(np.hypot.reduce(ratios) if protect == "record" else ratios.max())

    def project(self, x: Floats) -> None:
        """Map the rows of `x`, shape (dim, rows), into the box in place; total, missing to `fill`."""
        fill = np.array(self.fill)[:, None]
        np.copyto(x, np.where(np.isnan(x), fill, x))
        np.clip(x, self.lower[:, None], self.upper[:, None], out=x)

    def to_dict(self) -> dict[str, Any]:
        """Return the box as plain lists, ready for JSON."""
        return {
            "domain": "box",
            "columns": list(self.columns),
            "intervals": [list(pair) for pair in self.intervals],
            "fill": list(self.fill),
        }

    @classmethod
    def _from_dict(cls, d: Mapping[str, Any]) -> Box:
        columns = d["columns"]
        bounds = dict(zip(columns, d["intervals"], strict=True))
        return cls(bounds, dict(zip(columns, d["fill"], strict=True)))


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
        object.__setattr__(self, "radius", check_number("radius", radius, 1e-150, 1e150))
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


def _interval(column: Column, pair: Any) -> tuple[float, float]:
    if isinstance(pair, (str, bytes)) or not hasattr(pair, "__len__") or len(pair) != 2:
        raise TypeError(f"the bounds of {column!r} must be a pair (lower, upper), got {type(pair).__name__}.")
    lower = check_number(f"lower bound of {column!r}", pair[0], -1e150, 1e150)
    upper = check_number(f"upper bound of {column!r}", pair[1], -1e150, 1e150)
    if not lower < upper:
        raise ValueError(
            f"the bounds of {column!r} must have lower < upper, got ({lower:g}, {upper:g}): "
            "declare the widest values the column may take."
        )
    return lower + 0.0, upper + 0.0


def _length(lower: float, upper: float) -> float:
    length = upper - lower
    exact = Fraction(upper) - Fraction(lower)
    return float(np.nextafter(length, np.inf)) if Fraction(length) < exact else length
