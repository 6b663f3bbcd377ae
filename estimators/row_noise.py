r"""Noise whose law differs from row to row: rows are grouped by the law they were released under."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["RowNoise"]


class RowNoise:
    """The law of every row, by groups of rows.

    Each row's loss is corrected for the law of its own group, and the groups are strata of one fit. Which group a row
    is in must not depend on its values: it has to be known without the raw data.

    Parameters
    ----------
    groups : array_like, shape (n,)
        The group of each row, of the rows that are given to `fit`.
    laws : mapping
        ``{group: noise}``, the noise as in the parameter ``noise=``: a law, a Product, a mapping of columns to laws,
        or None for rows without noise.

    Raises
    ------
    ValueError, TypeError
        If the groups are not one-dimensional, or have no law, or a law has no group.

    Examples
    --------
    >>> from privfit.mechanisms import Laplace
    >>> noise = RowNoise(["old", "new", "new"], {"old": Laplace(2.0), "new": Laplace(0.5)})
    >>> [rows.tolist() for rows, _ in noise.split(3)]
    [[0], [1, 2]]
    """

    def __init__(self, groups: Any, laws: Mapping[Any, Any]) -> None:
        if not isinstance(laws, Mapping) or not laws:
            raise TypeError(
                f"laws must be a mapping of groups to laws, got {type(laws).__name__}. Pass {{group: law}}."
            )
        labels = np.asarray(groups)
        if labels.ndim != 1:
            raise ValueError(f"groups must have one label per row, shape (n,), got shape {labels.shape}.")
        present = set(labels.tolist())
        for what, unknown in (("has no law", present - set(laws)), ("occurs in no row", set(laws) - present)):
            if unknown:
                shown = sorted(map(repr, unknown))[:8]
                raise ValueError(f"laws must have one law for every group: {', '.join(shown)} {what}.")
        self.groups, self.laws = labels, dict(laws)

    def __repr__(self) -> str:
        return f"RowNoise({self.groups.size} rows, {self.laws!r})"

    def split(self, n: int) -> Iterator[tuple[NDArray[np.intp], Any]]:
        """Yield the rows of each group and their noise, in the order of the laws.

        Parameters
        ----------
        n : int
            Rows of the data.

        Raises
        ------
        ValueError
            If the groups are of another number of rows.
        """
        if self.groups.size != n:
            raise ValueError(f"groups must have one label per row, got {self.groups.size} labels for {n} rows.")
        for group, law in self.laws.items():
            yield np.flatnonzero(self.groups == group), law
