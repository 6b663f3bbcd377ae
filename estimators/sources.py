"""From releases to sources of records: which columns are features, which laws they have, and whether releases fit."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from privfit.estimators.noise import resolve_noise
from privfit.estimators.reading import Piece, Source, check_piece, once, open_source, read_pieces
from privfit.estimators.released import check_roles, chosen_columns, declared_labels, declared_range, read_release
from privfit.estimators.row_noise import RowNoise
from privfit.mechanisms.reader import ReleaseReader

__all__ = ["is_plain", "learn_names", "open_sources", "released_sources", "row_sources", "warn_of_twins"]


def is_plain(release: Any) -> bool:
    """Whether something is not a path, a release in files, or several releases.

    Examples
    --------
    >>> is_plain("people.parquet"), is_plain([1, 2]), is_plain(3)
    (False, False, True)
    """
    in_files = not hasattr(release, "frame") and isinstance(getattr(release, "path", None), Path)
    return not isinstance(release, (list, tuple, str, Path)) and not in_files


def learn_names(estimator: Any, names: Sequence[Any], releases: Sequence[Any]) -> None:
    """Give an estimator the names of its columns, as scikit-learn does: those of tables, not of arrays.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> model = SimpleNamespace()
    >>> learn_names(model, ["a", "b"], [SimpleNamespace(kind="pandas")])
    >>> model.n_features_in_, model.feature_names_in_.tolist()
    (2, ['a', 'b'])
    """
    estimator.n_features_in_ = len(names)
    arrays = any(getattr(own, "kind", "pandas") == "numpy" for own in releases)
    if not arrays and all(isinstance(name, str) for name in names):
        estimator.feature_names_in_ = np.asarray(names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def open_sources(releases: Any) -> list[Any]:
    """Open one or several releases.

    Raises
    ------
    TypeError, ValueError
        If there are none, one of them is no release, or two are the same.

    Examples
    --------
    >>> from privfit.mechanisms import Box, Laplace, release
    >>> out = release(np.zeros((4, 2)), Laplace(1.0), Box({"a": (0, 1), "b": (0, 1)}), rng=0)
    >>> len(open_sources([out]))
    1
    """
    listed = list(releases) if isinstance(releases, (list, tuple)) else [releases]
    if not listed:
        raise ValueError("release must be at least one release, got an empty list.")
    opened = [open_source(own) for own in listed]
    marks = []
    for own in opened:
        header = getattr(own, "header", None)
        marks.append(("file", header.release_id) if header is not None and header.release_id else ("object", id(own)))
    if len(set(marks)) < len(marks):
        raise ValueError(
            "release must be different releases, got one of them twice: its noise is not new. Leave it out."
        )
    return opened


def released_sources(
    releases: Sequence[Any], target: Any, features: Any, *, label: bool, same_rows: bool
) -> tuple[list[Any], list[list[Source]]]:
    """Return the features, and sources in groups: disjoint records, or one group of releases of the same records.

    Parameters
    ----------
    releases : sequence of Release or ReleaseReader
    target, features
        As for `fit_release`.
    label : bool
        The target is a class label.
    same_rows : bool
        All releases are of the same records, in the same order.

    Raises
    ------
    ValueError, TypeError
        If columns, laws, numbers of rows or domains do not fit together.

    Examples
    --------
    >>> from privfit.mechanisms import Box, Laplace, release
    >>> box = Box({"a": (0, 1), "b": (0, 1)})
    >>> outs = [release(np.zeros((4, 2)), Laplace(1.0), box, rng=seed) for seed in (0, 1)]
    >>> names, groups = released_sources(outs, "b", None, label=False, same_rows=True)
    >>> names, len(groups), len(groups[0])
    (['a'], 1, 2)
    """
    found = [chosen_columns(own, target, features) for own in releases]
    names = found[0][1]
    for _, chosen, _ in found[1:]:
        if chosen != names:
            raise ValueError(
                f"features must be the same in all releases, got {names[:8]} and {chosen[:8]}. Name them by features=."
            )
    sources = []
    for own, (_, _, laws) in zip(releases, found, strict=True):
        check_roles(target, names, laws, label=label)
        model = resolve_noise(laws, names, target, label=label, strict=False)
        labels = declared_labels(own).get(target)
        classes = None if labels is None else np.unique(np.asarray(labels))
        held = not isinstance(own, ReleaseReader)
        pieces = partial(_whole if held else read_pieces, own, target, names, label)
        sources.append(Source(model, own.n_rows, pieces, held=held, classes=classes))
    for own, source in zip(releases[1:], sources[1:], strict=True):
        _check_fit(releases[0], own, sources[0], source, names, target, same_rows)
    if not same_rows:
        warn_of_twins(releases)
        kept = [[source] for source in sources if source.n]
        if not kept:
            raise ValueError("release must have at least one row, got none.")
        return names, kept
    if not all(source.held for source in sources):
        # one way of reading for all, so that their pieces end at the same rows
        sources = [
            Source(s.model, s.n, partial(read_pieces, own, target, names, label), classes=s.classes)
            for own, s in zip(releases, sources, strict=True)
        ]
    if len(sources) > 1:
        _check_public(sources, names, target)
    return names, [sources]


def row_sources(
    noise: RowNoise, X: Any, y: Any, names: Sequence[Any], target: Any, *, label: bool = False
) -> list[list[Source]]:
    """Return rows in memory as groups of sources, one for each law.

    Parameters
    ----------
    noise : RowNoise
    X : ndarray, shape (n, d)
    y : array_like, shape (n,), or None
    names : sequence
        Columns of X.
    target : str or None
        What the laws call the response.
    label : bool
        The response is a class label.

    Examples
    --------
    >>> noise = RowNoise([0, 1, 1], {0: None, 1: None})
    >>> [group[0].n for group in row_sources(noise, np.ones((3, 1)), None, ["a"], None)]
    [1, 2]
    """
    groups = []
    for rows, law in noise.split(len(X)):
        piece = (X[rows], None if y is None else np.asarray(y)[rows])
        model = resolve_noise(law, names, target, label=label)
        groups.append([Source(model, rows.size, partial(once, piece), held=True)])
    return groups


def _whole(release: Any, target: Any, names: Sequence[Any], label: bool) -> Iterator[Piece]:
    """Yield a release in memory as one piece."""
    frame, response, _, _ = read_release(release, target, names)
    yield check_piece(frame, response, label=label)


def _check_fit(
    first: Any, other: Any, source: Source, another: Source, names: Sequence[Any], target: Any, same_rows: bool
) -> None:
    """Refuse a release whose rows, labels or domains do not fit those of the first."""
    if (source.classes is None) != (another.classes is None) or (
        source.classes is not None and list(source.classes) != list(np.asarray(another.classes))
    ):
        raise ValueError(
            f"target: {target!r} must have the same declared labels in all releases. Release it with them."
        )
    if not same_rows:
        return
    if source.n != another.n:
        raise ValueError(
            f"release must be releases of the same rows with same_rows=True, got {source.n} and {another.n} rows. "
            "Leave same_rows out for disjoint records."
        )
    for name in [*names, target]:
        one, two = declared_range(first, name), declared_range(other, name)
        if one is not None and two is not None and one != two:
            raise ValueError(
                f"the column {name!r} must have one domain with same_rows=True, got intervals of length {one:g} and "
                f"{two:g}: its values were clipped differently."
            )


def warn_of_twins(releases: Sequence[Any]) -> None:
    """Warn of releases in memory of which columns without noise agree row by row: they look like the same rows.

    Examples
    --------
    >>> warn_of_twins([])
    """
    tables = [own for own in releases if not isinstance(own, ReleaseReader) and own.public and own.n_rows > 1]
    for place, own in enumerate(tables):
        for other in tables[:place]:
            if own.n_rows != other.n_rows or set(own.public) != set(other.public):
                continue
            plain = [(own.frame[name].to_numpy(), other.frame[name].to_numpy()) for name in own.public]
            if all(np.array_equal(*pair) for pair in plain) and any((one != one[0]).any() for one, _ in plain):
                warnings.warn(
                    f"two releases of {own.n_rows:,} rows agree in their public columns {list(own.public)[:4]} row by "
                    "row, so they look like releases of the same rows, which a list takes for different ones: "
                    "standard errors are then too small. Use same_rows=True, or one of them.",
                    UserWarning,
                    stacklevel=5,
                )
                return


def _check_public(sources: Sequence[Source], names: Sequence[Any], target: Any) -> None:
    """Refuse releases of which columns without noise differ: their rows are not the same, or in another order."""
    plain = [j for j in range(len(names)) if all(source.model.variances[j] == 0.0 for source in sources)]
    known = target is not None and all(s.model.variances[-1] == 0.0 and s.model.keep == 1.0 for s in sources)
    if not plain and not known:
        return
    for pieces in zip(*(source.pieces() for source in sources), strict=True):
        first, response = pieces[0]
        for x, y in pieces[1:]:
            different = [names[j] for j in plain if not np.array_equal(x[:, j], first[:, j])]
            if known and not np.array_equal(np.asarray(y), np.asarray(response)):
                different.append(target)
            if different:
                raise ValueError(
                    f"the column {different[0]!r} must be the same in all releases with same_rows=True, as it "
                    "has no noise: these are other rows, or in another order. Leave same_rows out for disjoint records."
                )
