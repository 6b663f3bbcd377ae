r"""Shares of labels released by randomised response, as means of unbiased indicators.

A label is kept with probability p, else exchanged for one of the k - 1 others, each with probability
``r = (1 - p)/(k - 1)``. With m positive labels, a positive record is released as positive with probability
``A = p + (m - 1) r``, another one with ``B = m r``, so ``(1[released positive] - B)/(A - B)`` has the mean
theta. Given the raw label its variance is ``A (1 - A)/(A - B)^2`` or ``B (1 - B)/(A - B)^2``; for k = 2 both are
``e^eps/(e^eps - 1)^2``, and n times the variance of the share is ``e^eps/(e^eps - 1)^2 + theta (1 - theta)``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms import Product, RandomizedResponse

__all__ = ["LabelColumn", "columns_of", "labels_to_indicators", "split_labels"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LabelColumn:
    """One randomised label column and the labels whose share is wanted.

    Attributes
    ----------
    law : RandomizedResponse
    positive : tuple
        Labels that count as one.

    Examples
    --------
    >>> column = LabelColumn(RandomizedResponse(1.0), ("yes",))
    >>> round(column.noise_variance(0.3), 6), round(float(np.e / (np.e - 1) ** 2), 6)
    (0.920674, 0.920674)
    """

    law: RandomizedResponse
    positive: tuple[Any, ...]

    @property
    def rates(self) -> tuple[float, float]:
        """Probabilities A, B that a positive and another record are released as positive."""
        keep, others = self.law.keep_probability, self.law.categories - 1
        lie, count = (1.0 - keep) / others, len(self.positive)
        return keep + (count - 1) * lie, count * lie

    def noise_variance(self, share: float) -> float:
        """Mean variance of the indicator given the raw label, where a share theta of the labels is positive."""
        a, b = self.rates
        theta = min(max(share, 0.0), 1.0)
        return (theta * a * (1 - a) + (1 - theta) * b * (1 - b)) / (a - b) ** 2


def split_labels(noise: Any, names: Sequence[Any]) -> tuple[Any, dict[Any, RandomizedResponse]]:
    """Separate randomised responses from the other laws.

    Parameters
    ----------
    noise : None, Law, Product or mapping
    names : sequence
        Names of the columns.

    Returns
    -------
    rest, labels
        Additive laws as they came, and ``{column name: law}``.

    Raises
    ------
    TypeError
        If one randomised response is meant for several columns.

    Examples
    --------
    >>> split_labels({"a": RandomizedResponse(1.0)}, ["a", "b"])[1]
    {'a': RandomizedResponse(epsilon=1.0, categories=2)}
    """
    if isinstance(noise, RandomizedResponse) and len(names) == 1:
        noise = {names[0]: noise}
    laws = noise.parts if isinstance(noise, Product) else noise
    if not isinstance(laws, Mapping):
        return noise, {}
    labels: dict[Any, RandomizedResponse] = {}
    rest = {}
    for key, law in laws.items():
        if not isinstance(law, RandomizedResponse):
            rest[key] = law
            continue
        columns = key if isinstance(key, tuple) else (key,)
        if len(columns) != 1:
            raise TypeError("noise must give each label column a RandomizedResponse of its own.")
        name = columns[0]
        place = isinstance(name, (int, np.integer)) and name not in names and 0 <= name < len(names)
        if not place and name not in names:
            rest[key] = law  # refused, or left out of this fit, with the other laws
        else:
            labels[names[int(name)] if place else name] = law
    return (rest, labels) if labels else (noise, {})


def columns_of(table: Any) -> list[Any]:
    """Names of the columns of a data frame, positions of an array (empty if it has not two dimensions).

    Examples
    --------
    >>> columns_of([[1, 2, 3]])
    [0, 1, 2]
    """
    names = getattr(table, "column_names", getattr(table, "columns", None))
    if names is not None:
        return list(names)
    shape = np.shape(table if hasattr(table, "shape") else np.asarray(table, dtype=object))
    return list(range(shape[1])) if len(shape) == 2 else []


def labels_to_indicators(
    table: Any,
    laws: Mapping[Any, RandomizedResponse],
    positive: Any,
    declared: Mapping[Any, Sequence[Any]],
    names: Sequence[Any] | None = None,
) -> tuple[Any, dict[Any, LabelColumn]]:
    """Replace label columns by unbiased indicators of the positive labels.

    Parameters
    ----------
    table : array_like or data frame, shape (n, d)
    laws : mapping
        ``{column: RandomizedResponse}``.
    positive : None, label, list of labels, or mapping of columns to these
    declared : mapping
        Declared labels, where known; else those that occur.
    names : sequence, optional
        Names of the columns, for an array that has others than 0, 1, ...

    Returns
    -------
    table, columns
        Of the same kind, and ``{column: LabelColumn}``.

    Raises
    ------
    ValueError
        For unknown, too many or missing labels, or where `positive` must choose.

    Examples
    --------
    >>> law = RandomizedResponse(np.log(3.0))
    >>> labels_to_indicators(np.array([["a"], ["b"]]), {0: law}, None, {})[0].tolist()
    [[-0.5], [1.5]]
    """
    chosen = _chosen(positive, laws)
    names, columns = columns_of(table) if names is None else list(names), {}
    if not hasattr(table, "shape"):
        table = np.asarray(table, dtype=object)
    if isinstance(table, np.ndarray):
        table = table.astype(object)
    for name, law in laws.items():
        values = np.asarray(table[:, names.index(name)] if isinstance(table, np.ndarray) else table[name])
        try:
            found, codes = np.unique(values, return_inverse=True)
        except TypeError:
            found, codes = np.array([None], dtype=object), np.zeros(values.size, int)
        present = found.tolist()
        if any(label is None or label != label for label in present):
            raise ValueError(f"the column {name!r} must hold labels of one kind, and none missing.")
        known = list(declared.get(name, present))
        if len(known) > law.categories or not set(present) <= set(known):
            raise ValueError(
                f"the column {name!r} must hold the {law.categories} labels of its law, got "
                f"{len(present)} different values. Check the column and categories=."
            )
        own = chosen.get(name)
        if own is None:
            if law.categories != 2 or len(known) != 2:
                raise ValueError(
                    f"positive must say which of the {law.categories} labels of column {name!r} to count. "
                    "Pass positive={column: label or list of labels}."
                )
            own = (known[1],)
        if not own or len(own) >= law.categories or not set(own) <= set(known):
            raise ValueError(
                f"positive must list between 1 and {law.categories - 1} labels of column {name!r}, got "
                f"{len(own)}, of which {len(set(own) - set(known))} unknown."
            )
        columns[name] = LabelColumn(law, own)
        a, b = columns[name].rates
        hit = np.array([label in own for label in present], float)[codes.reshape(-1)]
        table = _with_column(table, names.index(name), name, (hit - b) / (a - b))
    return table, columns


def _chosen(positive: Any, laws: Mapping[Any, RandomizedResponse]) -> dict[Any, tuple[Any, ...]]:
    if positive is None:
        return {}
    if not isinstance(positive, Mapping):
        if len(laws) > 1:
            raise ValueError(f"positive must be a mapping {{column: labels}}, as there are {len(laws)} label columns.")
        positive = dict.fromkeys(laws, positive)
    for name in positive:
        if name not in laws:
            raise ValueError(f"positive names the column {name!r}, which has no RandomizedResponse; use {list(laws)}.")
    return {
        name: tuple(dict.fromkeys(own)) if isinstance(own, (list, tuple, set, frozenset)) else (own,)
        for name, own in positive.items()
    }


def _with_column(table: Any, place: int, name: Any, values: Floats) -> Any:
    if isinstance(table, np.ndarray):
        table[:, place] = values
        return table
    if hasattr(table, "iloc"):  # pandas
        table = table.copy()
        table[name] = values
        return table
    if hasattr(table, "set_column"):  # pyarrow
        return table.set_column(place, name, [values])
    return table.with_columns(type(table[name])(name, values))  # polars
