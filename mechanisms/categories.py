"""Categories: the declared labels of columns that are released by randomised response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.columns import Column, as_columns
from privfit.mechanisms.labels import Label, check_labels, label_codes

__all__ = ["Categories"]


@dataclass(frozen=True, init=False)
class Categories:
    """The possible labels of one or more columns, declared by the owner.

    Parameters
    ----------
    labels : mapping
        ``{column: [label, label, ...]}``: at least two distinct labels, all strings, all integers or all
        booleans. Written down, not taken from the data: arrays and columns are refused.
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
            raise TypeError(
                f"labels must be a mapping {{column: [labels]}}, got {type(labels).__name__}. Write down every label "
                "that the subject allows, whether or not it is in the table."
            )
        columns = as_columns("the columns of Categories", labels)
        checked = tuple(check_labels(c, values) for c, values in zip(columns, labels.values(), strict=True))
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

        The work does not depend on what the cells hold (see `privfit.mechanisms.labels`).

        Parameters
        ----------
        values : ndarray of shape (n,), any dtype

        Returns
        -------
        ndarray of shape (n,), int64
        """
        labels = self.labels[0]
        return label_codes(values, labels, labels.index(self.fill[0]))

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

