"""Reading a release: which columns are features, which is the target, and the law of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from privfit.mechanisms import Categories, Law, Product

__all__ = ["declared_labels", "read_release"]


def read_release(
    release: Any, target: Any, features: Sequence[Any] | None
) -> tuple[Any, Any, list[Any], dict[tuple[Any, ...], Law]]:
    """Split a release into features, target, feature names and laws keyed by columns.

    Parameters
    ----------
    release : Release
        With `frame`, `law`, `columns`, `public` and `domain`.
    target : str or int, or None
        Column to model; None for estimators without one.
    features : sequence of str or int, optional
        Columns to use; all but the target if left out.

    Returns
    -------
    X, y, names, laws

    Raises
    ------
    TypeError
        If `release` is not a release.
    ValueError
        If a column is not in it.

    Examples
    --------
    >>> from privfit.mechanisms import Box, Laplace, release
    >>> out = release(np.zeros((4, 2)), Laplace(1.0), Box({"a": (0, 1), "b": (0, 1)}), rng=0)
    >>> read_release(out, "b", None)[2]
    ['a']
    """
    missing = [name for name in ("frame", "law", "columns", "public") if not hasattr(release, name)]
    if missing:
        raise TypeError(
            f"release must be a Release, got {type(release).__name__} without {missing[0]!r}. "
            "Use load_release(path), or fit(X, y) with noise=."
        )
    frame = release.frame
    names = list(getattr(release, "names", ())) or [*release.columns, *release.public]
    chosen = [name for name in names if name != target] if features is None else list(features)
    for role, wanted in (("features", chosen), ("target", [] if target is None else [target])):
        for name in wanted:
            if name not in names:
                raise ValueError(f"{role} must name columns of the release, got {name!r}; it has {names[:12]}.")
    if target is not None and target in chosen:
        raise ValueError(f"features must not contain the target {target!r}. Leave it out.")
    if len(set(chosen)) < len(chosen) or not chosen:
        raise ValueError(f"features must be one or more different columns, got {chosen!r}.")
    law = release.law
    if isinstance(law, Product):
        laws = dict(law.parts)
    else:
        covered = getattr(getattr(release, "domain", None), "columns", None) or release.columns
        laws = {tuple(covered): law}
    return _take(frame, names, chosen), None if target is None else _take(frame, names, target), chosen, laws


def declared_labels(release: Any) -> dict[Any, tuple[Any, ...]]:
    """Return the declared labels of each label column of a release.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from privfit.mechanisms import Categories
    >>> declared_labels(SimpleNamespace(domain=Categories({"a": ["no", "yes"]})))
    {'a': ('no', 'yes')}
    """
    domain = release.domain
    parts = domain if isinstance(domain, (tuple, list)) else (domain,)
    return {
        name: tuple(labels)
        for part in parts
        if isinstance(part, Categories)
        for name, labels in zip(part.columns, part.labels, strict=True)
    }


def _take(frame: Any, names: list[Any], wanted: Any) -> Any:
    if isinstance(frame, np.ndarray):
        places = [names.index(name) for name in wanted] if isinstance(wanted, list) else names.index(wanted)
        return frame[:, places]
    if hasattr(frame, "iloc"):  # pandas
        column = frame[wanted]
        return column if isinstance(wanted, list) else np.asarray(column)
    if not isinstance(wanted, list):  # polars and pyarrow
        return np.asarray(frame[wanted])
    return frame.select(wanted)
