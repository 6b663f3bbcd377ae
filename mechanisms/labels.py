"""Labels of a column: how they are declared, and how cells are told apart by them.

Every cell is compared with every label, and the codes are summed: code = other + sum_k (code_k - other) 1[cell is
label k]. The work is the same whatever the cells hold; a sort, a search or an assignment under a mask would move
more data for some cells than for others. Object cells go through one dictionary look-up each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["NUMBER_TYPES", "Label", "check_labels", "label_codes", "longest", "type_ids"]

Label = str | int | bool
Codes = NDArray[np.int64]

NUMBER_TYPES: tuple[type, ...] = (
    bool,
    int,
    float,
    np.bool_,
    *(np.dtype(code).type for code in "bhilqBHILQefdg"),
)


def type_ids(types: Sequence[type]) -> frozenset[int]:
    """Return the identities of types, for looking up ``id(type(cell))``.

    A cell of exactly such a type runs no code of its own. `isinstance` may (``__class__``), and so may the hash
    of a type (its metaclass).

    Examples
    --------
    >>> id(type("a")) in type_ids((str,))
    True
    """
    return frozenset(map(id, types))


_NUMBER_IDS, _TEXT_IDS = type_ids(NUMBER_TYPES), type_ids((str, np.str_))


def check_labels(column: Any, values: Any) -> tuple[Label, ...]:
    """Return declared labels as a tuple, or raise.

    Parameters
    ----------
    column : str or int
        For the message.
    values : sequence
        At least two distinct labels, all strings, all integers or all booleans, listed by hand.

    Raises
    ------
    TypeError
        If they are an array or a column (labels found in the data are data), too few, or of mixed types.
    ValueError
        If two are equal, or an integer is beyond 2^53.

    Examples
    --------
    >>> check_labels("income", ["low", "high"])
    ('low', 'high')
    """
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
        raise TypeError(
            f"the labels of {column!r} must be a list, got {type(values).__name__}. Write down every label that the "
            "subject allows: a label that is there because somebody has it says that this person is in the table."
        )
    own = tuple(v.item() if isinstance(v, np.generic) else v for v in values)
    if len(own) < 2 or len(set(map(type, own))) != 1 or type(own[0]) not in (str, int, bool):
        raise TypeError(
            f"the labels of {column!r} must be at least two, all strings, all integers or all booleans; "
            f"got {len(own)} of type {', '.join(sorted({type(v).__name__ for v in own})) or 'none'}."
        )
    if len(set(own)) != len(own):
        raise ValueError(f"the labels of {column!r} must be distinct.")
    if isinstance(own[0], int) and any(abs(v) > 2**53 for v in own):
        raise ValueError(f"integer labels of {column!r} must lie in [-2^53, 2^53]; use strings.")
    return own


def longest(labels: tuple[Label, ...] | None) -> int | None:
    r"""Return the most code units of UTF-8 in a label, at least 1; None unless they are strings.

    Examples
    --------
    >>> longest(("no", "\u00e9t\u00e9"))
    5
    """
    if labels is None or not isinstance(labels[0], str):
        return None
    return max(1, *(len(str(label).encode("utf-8", "surrogatepass")) for label in labels))


def label_codes(values: NDArray[Any], labels: tuple[Label, ...], other: int) -> Codes:
    """Return the positions of the labels that cells hold; total, `other` for cells that hold none of them.

    Equal numbers are the same label: a cell 1, 1.0 or True holds the labels 1 and True. Text never is a number. An
    array of bytes is text in UTF-8 (see `privfit.mechanisms.cells`).

    Parameters
    ----------
    values : ndarray of shape (n,), any dtype
    labels : tuple
        Passed `check_labels`.
    other : int

    Returns
    -------
    ndarray of shape (n,), int64

    Examples
    --------
    >>> label_codes(np.array(["a", "c", "b"]), ("a", "b"), -1)
    array([ 0, -1,  1])
    """
    kind = values.dtype.kind
    if kind == "T":
        values, kind = values.astype(object), "O"
    if kind == "O":
        return _codes_of_objects(values, labels, other)
    equal: Callable[[Any], NDArray[np.bool_]] | None
    if isinstance(labels[0], str):
        equal = _Text(values, longest(labels) or 1) if kind in "US" else None
    else:
        equal = _Number(values) if kind in "biuf" else None
    codes = np.full(len(values), other, dtype=np.int64)
    if equal is not None:
        for code, label in enumerate(labels):
            codes += equal(label) * np.int64(code - other)
    return codes


class _Number:
    """Which cells of a numeric array equal a number."""

    def __init__(self, values: NDArray[Any]) -> None:
        # Integers stay integers: 2^53 + 1 is not 2^53.
        with np.errstate(all="ignore"):
            self._values = values.astype(np.float64) if values.dtype.kind == "f" else values

    def __call__(self, label: Any) -> NDArray[np.bool_]:
        return np.asarray(self._values == int(label))


class _Text:
    """Which cells of an array of text equal a string, every code unit compared."""

    def __init__(self, values: NDArray[Any], most: int) -> None:
        # One unit more than any label, so that longer text matches none.
        self._width = most + 1
        self._codec, unit = ("utf-8", "u1") if values.dtype.kind == "S" else ("utf-32-le", "<u4")
        cells = np.ascontiguousarray(values.astype(f"<{values.dtype.kind}{self._width}"))
        self._units = np.ascontiguousarray(cells.view(unit).reshape(len(values), self._width).T)

    def __call__(self, label: Any) -> NDArray[np.bool_]:
        wanted = np.zeros(self._width, dtype=self._units.dtype)
        own = np.frombuffer(label.encode(self._codec, "surrogatepass"), dtype=wanted.dtype)
        wanted[: len(own)] = own
        equal = np.ones(self._units.shape[1], dtype=bool)
        for units, unit in zip(self._units, wanted, strict=True):
            equal &= units == unit
        return equal


def _codes_of_objects(values: NDArray[Any], labels: tuple[Label, ...], other: int) -> Codes:
    lookup: dict[Any, int] = {label: code for code, label in enumerate(labels)}
    plain = _TEXT_IDS if isinstance(labels[0], str) else _NUMBER_IDS
    # Only cells of plain types are hashed and compared: nothing that a cell may hold can raise.
    found = [lookup.get(v, other) if id(type(v)) in plain else other for v in values.tolist()]
    return np.array(found, dtype=np.int64).reshape(len(values))
