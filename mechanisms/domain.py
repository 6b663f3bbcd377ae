"""Domains: where the records of a table may lie. Declared by the owner, never computed from the data.

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

from privfit.accounting.validation import check_number
from privfit.mechanisms.ball import DECLARE, Ball
from privfit.mechanisms.columns import Column, as_columns
from privfit.mechanisms.encoding import NUMBERS, Dates, Encoding, as_encoding, encoding_from_dict, is_date

__all__ = ["Ball", "Box"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, init=False, repr=False)
class Box:
    """A product of intervals, one per named column.

    Parameters
    ----------
    bounds : mapping
        ``{column: (lower, upper)}`` with finite lower < upper: numbers, or dates (`datetime.date` or `datetime`,
        numpy.datetime64, pandas.Timestamp; with a time zone the moment, without one UTC), which are released as
        days since 1970-01-01.
    fill : mapping, optional
        ``{column: value}``, what a missing value is taken for; the centre of the interval by default. A number,
        a date, or a label of the column's encoding.
    encoding : mapping, optional
        ``{column: {label: number}}`` for columns of labels whose numbers get the noise, inside the bounds; a label
        without a number is missing. Or `Dates`, `Labels` or `Numbers` objects.

    Raises
    ------
    TypeError
        If bounds are no pairs of numbers or dates; columns and arrays are refused because bounds that depend on
        the data reveal its extreme records.
    ValueError
        If lower >= upper, a bound is not finite, or a fill value or a label's number lies outside.

    Examples
    --------
    >>> box = Box({"age": (17, 90), "hours": (0, 100)})
    >>> box.ranges
    array([ 73., 100.])
    >>> from datetime import date
    >>> Box({"born": (date(1970, 1, 1), date(1970, 12, 31))}).intervals
    ((0.0, 364.0),)
    >>> Box({"grade": (0, 2)}, encoding={"grade": {"low": 0, "mid": 1, "high": 2}})
    Box(columns=('grade',), intervals=((0.0, 2.0),), fill=(1.0,),
        encoding=(Labels({'low': 0.0, 'mid': 1.0, 'high': 2.0}),))
    """

    columns: tuple[Column, ...]
    intervals: tuple[tuple[float, float], ...]
    fill: tuple[float, ...]
    encoding: tuple[Encoding, ...] = ()

    def __init__(
        self,
        bounds: Mapping[Any, Sequence[Any]],
        fill: Mapping[Any, Any] | None = None,
        encoding: Mapping[Any, Any] | None = None,
    ) -> None:
        if not isinstance(bounds, Mapping):
            raise TypeError(
                f"bounds must be a mapping {{column: (lower, upper)}}, got {type(bounds).__name__}. {DECLARE}"
            )
        columns = as_columns("the columns of a Box", bounds)
        fills, named = (_by_column(*own, columns) for own in (("fill", fill), ("encoding", encoding)))
        encodings = tuple(_encoding(c, pair, named.get(c)) for c, pair in zip(columns, bounds.values(), strict=True))
        intervals = tuple(
            _interval(c, pair, own) for c, pair, own in zip(columns, bounds.values(), encodings, strict=True)
        )
        centre = tuple(
            check_number(f"fill[{c!r}]", own.fill(f"fill[{c!r}]", fills.get(c, lo + (hi - lo) / 2)), lo, hi) + 0.0
            for c, (lo, hi), own in zip(columns, intervals, encodings, strict=True)
        )
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "intervals", intervals)
        object.__setattr__(self, "fill", centre)
        object.__setattr__(self, "encoding", encodings)

    def __repr__(self) -> str:
        # Said where there is one to say.
        encoding = f", encoding={self.encoding!r}" if any(own != NUMBERS for own in self.encoding) else ""
        return f"Box(columns={self.columns!r}, intervals={self.intervals!r}, fill={self.fill!r}{encoding})"

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
            {c: self.encoding[j] for c, j in zip(wanted, where, strict=True)},
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
        plain: dict[str, Any] = {
            "domain": "box",
            "columns": list(self.columns),
            "intervals": [list(pair) for pair in self.intervals],
            "fill": list(self.fill),
        }
        if all(own == NUMBERS for own in self.encoding):
            return plain
        return {**plain, "encoding": [own.to_dict() for own in self.encoding]}

    @classmethod
    def _from_dict(cls, d: Mapping[str, Any]) -> Box:
        columns = d["columns"]
        bounds = dict(zip(columns, d["intervals"], strict=True))
        saved = d.get("encoding", [NUMBERS.to_dict()] * len(columns))
        encoding = {c: encoding_from_dict(own) for c, own in zip(columns, saved, strict=True)}
        return cls(bounds, dict(zip(columns, d["fill"], strict=True)), encoding)


def _by_column(name: str, value: Any, columns: tuple[Column, ...]) -> dict[Any, Any]:
    if value is not None and not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a mapping {{column: ...}}, got {type(value).__name__}.")
    own = dict(value or {})
    unknown = [repr(c) for c in own if c not in columns]
    if unknown:
        raise ValueError(f"{name} names columns that the box has not: {', '.join(unknown)}.")
    return own


def _encoding(column: Column, pair: Any, declared: Any) -> Encoding:
    """Return the declared encoding, or what the type of the bounds says."""
    if not isinstance(pair, (tuple, list)):
        raise TypeError(
            f"the bounds of {column!r} must be a pair (lower, upper), got {type(pair).__name__}. {DECLARE}"
        )
    dates = [is_date(end) for end in pair]
    own = as_encoding(f"encoding[{column!r}]", declared) if declared is not None else Dates() if any(dates) else NUMBERS
    if any(dates) and not (all(dates) and isinstance(own, Dates)):
        raise TypeError(
            f"the bounds of {column!r} must be two dates, without another encoding, or two numbers; got "
            f"{' and '.join(type(end).__name__ for end in pair)} with {own!r}."
        )
    return own


def _interval(column: Column, pair: Any, encoding: Encoding) -> tuple[float, float]:
    if len(pair) != 2:
        raise TypeError(f"the bounds of {column!r} must be a pair (lower, upper), got {len(pair)} values.")
    lower, upper = (
        _end(f"{end} bound of {column!r}", value, encoding)
        for end, value in zip(("lower", "upper"), pair, strict=True)
    )
    if not lower < upper:
        raise ValueError(
            f"the bounds of {column!r} must have lower < upper, got ({pair[0]}, {pair[1]}): "
            "declare the widest values the column may take."
        )
    for number in getattr(encoding, "numbers", ()):
        check_number(f"every number in the encoding of {column!r}", number, lower, upper, hint="Widen the bounds.")
    return lower, upper


def _end(name: str, value: Any, encoding: Encoding) -> float:
    if isinstance(value, np.ndarray):
        raise TypeError(f"{name} must be a number or a date, got an array. {DECLARE}")
    number = encoding.bound(name, value)
    known = isinstance(number, (bool, np.bool_, int, float, np.integer, np.floating))
    return check_number(name, number, -1e150, 1e150, hint="" if known else DECLARE) + 0.0


def _length(lower: float, upper: float) -> float:
    length = upper - lower
    exact = Fraction(upper) - Fraction(lower)
    return float(np.nextafter(length, np.inf)) if Fraction(length) < exact else length
