"""Categories: the declared labels of columns that are released by randomised response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.columns import Column, as_columns

__all__ = ["Categories"]

Label = str | int | bool


@dataclass(frozen=True, init=False)
class Categories:
    """The possible labels of one or more columns, declared by the owner.

    Parameters
    ----------
    labels : mapping
        ``{column: [label, label, ...]}``: at least two distinct labels, all strings, all integers or all
        booleans.
    fill : mapping, optional
        ``{column: label}``, what a missing or undeclared label is taken for; the first label by default.

    Examples
    --------
    >>> Categories({"income": ["<=50K", ">50K"]}).columns
    ('income',)
    """

    columns: tuple[Column, ...]
    labels: tuple[tuple[Label, ...], ...]
    fill: tuple[Label, ...]

    def __init__(self, labels: Mapping[Any, Sequence[Label]], fill: Mapping[Any, Label] | None = None) -> None:
        if not isinstance(labels, Mapping):
            raise TypeError(f"labels must be a mapping {{column: [labels]}}, got {type(labels).__name__}.")
        columns = as_columns("the columns of Categories", labels)
        checked = tuple(_labels(c, values) for c, values in zip(columns, labels.values(), strict=True))
        fills = dict(fill or {})
        unknown = [repr(c) for c in fills if c not in columns]
        if unknown:
            raise ValueError(f"fill names columns that are not declared: {', '.join(unknown)}.")
        chosen = tuple(fills.get(c, own[0]) for c, own in zip(columns, checked, strict=True))
        for column, value, own in zip(columns, chosen, checked, strict=True):
            if not any(type(value) is type(label) and value == label for label in own):
                raise ValueError(f"fill[{column!r}] must be one of the declared labels {list(own)}.")
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "labels", checked)
        object.__setattr__(self, "fill", chosen)

    @property
    def dim(self) -> int:
        """Number of columns."""
        return len(self.columns)

    def select(self, columns: Any) -> Categories:
        """Return the declaration of some columns, in the order asked for; unknown ones raise ValueError."""
        wanted = as_columns("columns", columns)
        missing = [repr(c) for c in wanted if c not in self.columns]
        if missing:
            raise ValueError(f"columns {', '.join(missing)} are not declared; the domain has {list(self.columns)}.")
        where = [self.columns.index(c) for c in wanted]
        return Categories(
            {c: self.labels[j] for c, j in zip(wanted, where, strict=True)},
            {c: self.fill[j] for c, j in zip(wanted, where, strict=True)},
        )

    def encode(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """Return the codes 0..k-1 of the first column's labels; total, anything undeclared to `fill`.

        Parameters
        ----------
        values : ndarray of shape (n,), any dtype

        Returns
        -------
        ndarray of shape (n,), int64
        """
        labels = self.labels[0]
        codes = np.full(len(values), labels.index(self.fill[0]), dtype=np.int64)
        numeric = isinstance(labels[0], int)
        if values.dtype.kind in ("biuf" if numeric else "UT"):
            for code, label in enumerate(labels):
                codes[values == label] = code
        elif values.dtype.kind == "O":
            lookup: dict[Any, int] = {label: code for code, label in enumerate(labels)}
            allowed = (bool, int, float, np.number, np.bool_) if numeric else (str,)
            own = labels.index(self.fill[0])
            # Only plain scalars are looked up: nothing a cell may hold can raise.
            found = [lookup.get(v, own) if isinstance(v, allowed) else own for v in values.tolist()]
            codes = np.array(found, dtype=np.int64).reshape(len(values))
        return codes

    def decode(self, codes: NDArray[np.int64]) -> NDArray[Any]:
        """Return the labels of codes 0..k-1: an object array of strings, or an int64 or bool array."""
        labels = self.labels[0]
        table = np.array(labels, dtype=object if isinstance(labels[0], str) else None)
        return np.asarray(table[codes])

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as plain lists, ready for JSON."""
        return {
            "domain": "categories",
            "columns": list(self.columns),
            "labels": [list(own) for own in self.labels],
            "fill": list(self.fill),
        }

    @classmethod
    def _from_dict(cls, d: Mapping[str, Any]) -> Categories:
        columns = d["columns"]
        labels = dict(zip(columns, d["labels"], strict=True))
        return cls(labels, dict(zip(columns, d["fill"], strict=True)))


def _labels(column: Column, values: Any) -> tuple[Label, ...]:
    if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__len__"):
        raise TypeError(f"the labels of {column!r} must be a sequence, got {type(values).__name__}.")
    own = tuple(v.item() if isinstance(v, np.generic) else v for v in values)
    if len(own) < 2 or len(set(map(type, own))) != 1 or not isinstance(own[0], (str, int)):
        raise TypeError(
            f"the labels of {column!r} must be at least two, all strings, all integers or all booleans; "
            f"got {len(own)} of type {', '.join(sorted({type(v).__name__ for v in own})) or 'none'}."
        )
    if len(set(own)) != len(own):
        raise ValueError(f"the labels of {column!r} must be distinct.")
    if isinstance(own[0], int) and any(abs(v) > 2**53 for v in own):
        raise ValueError(f"integer labels of {column!r} must lie in [-2^53, 2^53]; use strings.")
    return own
