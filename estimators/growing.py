r"""Growing data: the records that were added so far, by the law they were released under.

Where an estimate is no function of sums, as for a logistic or a quantile regression, the exact fit of growing data
needs all records. They are kept, released values only: n (d + 1) numbers, and as much again while a fit runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from privfit.estimators.reading import Piece, Source, once

__all__ = ["Grown", "grown"]


@dataclass(frozen=True)
class Grown:
    """Records that were added to a fit.

    Attributes
    ----------
    names : list
        Their columns.
    groups : list of list of Source

    Examples
    --------
    >>> Grown(["a"], []).groups
    []
    """

    names: list[Any]
    groups: list[list[Source]]


def grown(before: Grown | None, names: Sequence[Any], groups: Sequence[Sequence[Source]]) -> Grown:
    """Return the records so far and new ones; those in memory under one law are joined.

    Parameters
    ----------
    before : Grown or None
    names : sequence
        Columns of the new records.
    groups : sequence of sequence of Source
        The new records.

    Raises
    ------
    ValueError
        If their columns are not those of the earlier ones.

    Examples
    --------
    >>> from privfit.estimators.noise import resolve_noise
    >>> def table(n):
    ...     return Source(resolve_noise(None, ["a"]), n, partial(once, (np.ones((n, 1)), np.ones(n))), held=True)
    >>> both = grown(grown(None, ["a"], [[table(3)]]), ["a"], [[table(4)]])
    >>> [source.n for group in both.groups for source in group]
    [7]
    """
    if before is None:
        return Grown(list(names), [list(group) for group in groups])
    if before.names != list(names):
        raise ValueError(f"X must have the columns of the earlier records, {before.names[:8]}, got {list(names)[:8]}.")
    out = [list(group) for group in before.groups]
    for group in groups:
        same = [place for place, own in enumerate(out) if _joins(own, group)]
        if same:
            out[same[0]] = [_joined(out[same[0]][0], group[0])]
        else:
            out.append(list(group))
    return Grown(before.names, out)


def _joins(one: Sequence[Source], two: Sequence[Source]) -> bool:
    if len(one) != 1 or len(two) != 1 or not (one[0].held and two[0].held):
        return False
    declared = [None if own[0].classes is None else own[0].classes.tolist() for own in (one, two)]
    return one[0].model.laws == two[0].model.laws and declared[0] == declared[1]


def _joined(one: Source, two: Source) -> Source:
    (x1, y1), (x2, y2) = next(one.pieces()), next(two.pieces())
    y = None if y1 is None else np.concatenate([np.asarray(y1), np.asarray(y2)])
    piece: Piece = (np.concatenate([x1, x2]), y)
    return Source(one.model, one.n + two.n, partial(once, piece), held=True, classes=one.classes)
