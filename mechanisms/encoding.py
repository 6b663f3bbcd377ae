"""Encodings: how the cells of a column become the numbers that noise is added to. Declared, never guessed.

Numbers are taken as they are, dates as days since 1970-01-01 in UTC, labels by a declared table of numbers. Every
encoding is total: a cell that it does not know is missing (nan), and the domain declares what that counts as. Which
columns it reads is decided by their type, which is part of the schema and no cell's doing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.validation import check_number
from privfit.mechanisms.days import array_days, cell_days, parameter_days
from privfit.mechanisms.labels import NUMBER_TYPES, Label, check_labels, label_codes, type_ids

__all__ = ["NUMBERS", "Dates", "Encoding", "Labels", "Numbers", "as_encoding", "encoding_from_dict", "is_date"]

Floats = NDArray[np.float64]


class Encoding(ABC):
    """How cells become numbers.

    Attributes
    ----------
    kind : str
        Its name in a dictionary.
    reads : frozenset of str
        The families of columns (see `privfit.mechanisms.cells`) that it can read.
    """

    kind: ClassVar[str]

    @property
    @abstractmethod
    def reads(self) -> frozenset[str]:
        """Families of columns that it can read."""

    def bound(self, name: str, value: Any) -> Any:
        """Return the number of a declared bound called `name`, or raise; numbers as they are."""
        day = _date_of_text(value)
        if day is not None:
            raise TypeError(f"{name} must be a number or a date, got the text {value!r}. Use {day!r}.")
        return value

    def fill(self, name: str, value: Any) -> Any:
        """Return the number of a declared fill value called `name`, or raise; numbers as they are."""
        return self.bound(name, value)

    @abstractmethod
    def read(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return cells of a family in `reads` as an array that casts to float64, missing as nan; total."""

    @abstractmethod
    def next_step(self, family: str) -> str:
        """Say what to do with a column of a family that is not in `reads`."""

    def to_dict(self) -> dict[str, Any]:
        """Return the encoding as plain values, ready for JSON."""
        return {"encoding": self.kind}


@dataclass(frozen=True)
class Numbers(Encoding):
    """Numbers and booleans as they are; objects that are no numbers are missing.

    Examples
    --------
    >>> Numbers().read(np.array([1, None, "2"], dtype=object))
    array([ 1., nan, nan])
    """

    kind = "number"

    @property
    def reads(self) -> frozenset[str]:
        """Families of columns that it can read."""
        return frozenset(("number", "boolean", "object", "missing"))

    def read(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return real dtypes unchanged, objects number by number, missing as nan; total."""
        if values.dtype.kind != "O":
            return values
        return np.array([_object_number(v) for v in values.tolist()], dtype=np.float64).reshape(len(values))

    def next_step(self, family: str) -> str:
        """Say what to do with a column of another family."""
        if family == "date":
            return 'Declare dates as its bounds, for instance Box({"born": (date(1900, 1, 1), date(2020, 12, 31))}).'
        return (
            "Convert it to numbers, declare its labels with Categories or with an encoding of the Box, "
            "or leave it out."
        )


@dataclass(frozen=True)
class Dates(Encoding):
    """Dates and times as days since 1970-01-01T00:00 UTC; a time without a zone is taken as it stands.

    A column of numbers is read as days. Exact for whole days, else to about a microsecond, the precision of
    float64 (and of counts of nanoseconds) in these centuries. Dates outside the bounds are clipped like numbers.

    Examples
    --------
    >>> Dates().read(np.array(["1970-01-02", "NaT"], dtype="datetime64[s]"))
    array([ 1., nan])
    """

    kind = "date"

    @property
    def reads(self) -> frozenset[str]:
        """Families of columns that it can read."""
        return frozenset(("date", "number", "object", "missing"))

    def bound(self, name: str, value: Any) -> Any:
        """Return the days of a date; numbers as they are."""
        return parameter_days(name, value) if is_date(value) else super().bound(name, value)

    def read(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return days since 1970-01-01, missing as nan; total."""
        if values.dtype.kind == "M":
            return array_days(values)
        if values.dtype.kind != "O":
            return values
        days = [_object_number(v) if id(type(v)) in _NUMERIC_NOT_BOOLEAN else cell_days(v) for v in values.tolist()]
        return np.array(days, dtype=np.float64).reshape(len(values))

    def next_step(self, family: str) -> str:
        """Say what to do with a column of another family."""
        if family == "text":
            return 'Convert the text first, for instance by pandas.to_datetime(column, errors="coerce").'
        return "Declare numbers as its bounds, or leave it out."


@dataclass(frozen=True, init=False)
class Labels(Encoding):
    """Labels by a declared table of numbers; a label that is not in it is missing.

    Parameters
    ----------
    numbers : mapping
        ``{label: number}``: at least two labels, all strings, all integers or all booleans.

    Examples
    --------
    >>> grades = Labels({"low": 0, "mid": 1, "high": 2})
    >>> grades.read(np.array(["high", "low", "none"]))
    array([ 2.,  0., nan])
    """

    kind = "labels"
    labels: tuple[Label, ...]
    numbers: tuple[float, ...]

    def __init__(self, numbers: Mapping[Any, float]) -> None:
        if not isinstance(numbers, Mapping):
            raise TypeError(f"numbers must be a mapping {{label: number}}, got {type(numbers).__name__}.")
        labels = check_labels("an encoding", list(numbers))
        values = tuple(
            check_number(f"the number of label {k!r}", v, -1e150, 1e150) + 0.0
            for k, v in zip(labels, numbers.values(), strict=True)
        )
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "numbers", values)

    def __repr__(self) -> str:
        return f"Labels({dict(zip(self.labels, self.numbers, strict=True))!r})"

    @property
    def reads(self) -> frozenset[str]:
        """Families of columns that it can read."""
        return label_families(self.labels)

    def fill(self, name: str, value: Any) -> Any:
        """Return the number of a label; other values as they are."""
        for label, number in zip(self.labels, self.numbers, strict=True):
            if type(label) is type(value) and label == value:
                return number
        return value

    def read(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the declared numbers, missing as nan; total."""
        codes = label_codes(values, self.labels, len(self.labels))
        return np.array([*self.numbers, np.nan])[codes]

    def next_step(self, family: str) -> str:
        """Say what to do with a column of another family."""
        return label_step(self.labels)

    def to_dict(self) -> dict[str, Any]:
        """Return the encoding as plain values, ready for JSON."""
        return {"encoding": self.kind, "labels": list(self.labels), "numbers": list(self.numbers)}


NUMBERS = Numbers()
"""The encoding of a column that declares none."""


def is_date(value: Any) -> bool:
    """Whether a declared value is a date or a time: datetime, numpy or pandas.

    Examples
    --------
    >>> is_date(np.datetime64("2020-01-01")), is_date(18262)
    (True, False)
    """
    return isinstance(value, (date, np.datetime64))


def label_families(labels: tuple[Label, ...]) -> frozenset[str]:
    """Return the families of columns that can hold these labels."""
    own = ("text",) if isinstance(labels[0], str) else ("number", "boolean")
    return frozenset((*own, "object", "missing"))


def label_step(labels: tuple[Label, ...]) -> str:
    """Say what to do with a column that cannot hold these labels."""
    if isinstance(labels[0], str):
        return "Its declared labels are strings: declare integers or booleans, or convert the column to text."
    return "Its declared labels are integers or booleans: declare strings, or convert the column to numbers."


def as_encoding(name: str, value: Any) -> Encoding:
    """Return an encoding, made from ``{label: number}`` if need be, or raise TypeError.

    Examples
    --------
    >>> as_encoding("encoding['x']", {"no": 0, "yes": 1})
    Labels({'no': 0.0, 'yes': 1.0})
    """
    if isinstance(value, Encoding):
        return value
    if not isinstance(value, Mapping):
        raise TypeError(
            f"{name} must be a mapping {{label: number}}, or Dates(), Labels(...) or Numbers(), "
            f"got {type(value).__name__}."
        )
    return Labels(value)


def encoding_from_dict(d: Any) -> Encoding:
    """Build an encoding from what its `to_dict` wrote; ValueError if it describes none.

    Examples
    --------
    >>> encoding_from_dict({"encoding": "date"})
    Dates()
    """
    kind = d.get("encoding") if isinstance(d, Mapping) else None
    if kind == "labels":
        return Labels(dict(zip(d["labels"], d["numbers"], strict=True)))
    for plain in (NUMBERS, Dates()):
        if kind == plain.kind:
            return plain
    raise ValueError("an encoding is read from a mapping whose 'encoding' is 'number', 'date' or 'labels'.")


def _date_of_text(value: Any) -> date | None:
    """Return the date that a declared text begins with, if any."""
    try:
        return date.fromisoformat(value[:10]) if isinstance(value, str) else None
    except ValueError:
        return None


_NUMERIC = type_ids((*NUMBER_TYPES, Decimal))
_NUMERIC_NOT_BOOLEAN = _NUMERIC - type_ids((bool, np.bool_))


def _object_number(value: Any) -> float:
    """Return a number in an object column; only plain types are looked into, so nothing can raise."""
    if id(type(value)) not in _NUMERIC:
        return np.nan
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf
    except (ValueError, TypeError):
        return np.nan
