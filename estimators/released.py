"""Reading a release: which columns are features, which is the target, and the law of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from privfit.estimators.errors import CapabilityError
from privfit.mechanisms import Box, Categories, Law, Product, RandomizedResponse

__all__ = ["check_roles", "chosen_columns", "declared_labels", "declared_range", "read_release"]


def read_release(release: Any, target: Any, features: Any) -> tuple[Any, Any, list[Any], dict[tuple[Any, ...], Law]]:
    """Split a release into features, target, feature names and laws keyed by columns.

    Parameters
    ----------
    release : Release
        With `frame`, `law`, `columns`, `public` and `domain`.
    target : str or int, or None
        Column to model; None for estimators without one.
    features : str, int or sequence of these, optional
        Columns to use, a single name meaning one column; all but the target if left out.

    Returns
    -------
    X, y, names, laws

    Raises
    ------
    TypeError
        If `release` is not a release, or `features` no sequence of columns.
    CapabilityError
        If it is on disk, or several.
    ValueError
        If a column is not in it.

    Examples
    --------
    >>> from privfit.mechanisms import Box, Laplace, release
    >>> out = release(np.zeros((4, 2)), Laplace(1.0), Box({"a": (0, 1), "b": (0, 1)}), rng=0)
    >>> read_release(out, "b", None)[2]
    ['a']
    """
    names, chosen, laws = chosen_columns(release, target, features, needed=("frame", "law", "columns", "public"))
    frame = release.frame
    return _take(frame, names, chosen), None if target is None else _take(frame, names, target), chosen, laws


def chosen_columns(
    release: Any, target: Any, features: Any, needed: Sequence[str] = ("law", "columns", "public")
) -> tuple[list[Any], list[Any], dict[tuple[Any, ...], Law]]:
    """Return all columns of a release, in memory or on disk, the features among them, and the laws by columns.

    Parameters
    ----------
    release : Release or ReleaseReader
    target, features
        As for `read_release`, with the same errors.
    needed : sequence of str
        What a release must have.

    Returns
    -------
    names, features, laws

    Examples
    --------
    >>> from privfit.mechanisms import Box, Laplace, release
    >>> out = release(np.zeros((4, 2)), Laplace(1.0), Box({"a": (0, 1), "b": (0, 1)}), rng=0)
    >>> chosen_columns(out, "b", None)[:2]
    (['a', 'b'], ['a'])
    """
    missing = [name for name in needed if not hasattr(release, name)]
    if missing:
        if "frame" in missing and (isinstance(release, (str, Path, list, tuple)) or hasattr(release, "path")):
            raise CapabilityError(
                f"this fit takes one release in memory, got {type(release).__name__}: it needs all records at once. "
                "Use load_release(path), one of the releases, or an estimator that is fitted in pieces."
            )
        raise TypeError(
            f"release must be a Release, got {type(release).__name__} without {missing[0]!r}. "
            "Use load_release(path), or fit(X, y) with noise=."
        )
    names = list(getattr(release, "names", ())) or [*release.columns, *release.public]
    chosen = [name for name in names if name != target] if features is None else _listed(features)
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
        return names, chosen, dict(law.parts)
    covered = getattr(getattr(release, "domain", None), "columns", None) or release.columns
    return names, chosen, {tuple(covered): law}


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


def declared_range(release: Any, column: Any) -> float | None:
    """Return the length of a column's declared interval, None if none is declared.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from privfit.mechanisms import Box
    >>> declared_range(SimpleNamespace(domain=Box({"a": (17, 90)})), "a")
    73.0
    """
    domain = getattr(release, "domain", None)
    for part in domain if isinstance(domain, (tuple, list)) else (domain,):
        if isinstance(part, Box) and column in part.columns:
            return float(part.ranges[list(part.columns).index(column)])
    return None


def check_roles(target: Any, names: Sequence[Any], laws: Mapping[tuple[Any, ...], Law], *, label: bool) -> None:
    """Refuse columns whose law does not fit their part in a regression: labels and numbers exchanged.

    Parameters
    ----------
    target : str, int or None
    names : sequence
        Features.
    laws : mapping
        As from `read_release`.
    label : bool
        Whether the estimator models a label.

    Raises
    ------
    ValueError
        If the target is of the other kind, or a feature is a released label.

    Examples
    --------
    >>> from privfit.mechanisms import Laplace
    >>> check_roles("b", ["a"], {("a", "b"): Laplace(1.0)}, label=False)
    """
    labels = {name for key, law in laws.items() if isinstance(law, RandomizedResponse) for name in key}
    noised = {name for key in laws for name in key} - labels
    if label and target in noised:
        raise ValueError(
            f"target: {target!r} is a numeric column released with noise, not a label. "
            "Use LinearRegression or QuantileRegression."
        )
    if not label and target in labels:
        raise ValueError(f"target: column {target!r} is a released label, not a number. Use LogisticRegression.")
    for name in names:
        if name in labels:
            rest = [other for other in names if other in noised and other != target]
            unknown = [other for other in names if other not in noised and other not in labels]
            listed = ", ".join([*map(repr, rest[:8]), *(["..."] if len(rest) > 8 else [])])
            advice = f"pass features=[{listed}] without it" if rest else "name a numeric column"
            if unknown:  # published as they are: numbers or text
                advice += f", and {', '.join(map(repr, unknown[:8]))} if numeric"
            raise ValueError(f"features: column {name!r} is a released label, not a number; {advice}.")


def _listed(features: Any) -> list[Any]:
    if isinstance(features, (str, int, np.integer)) and not isinstance(features, bool):
        return [features]
    if isinstance(features, (bool, bytes)) or not isinstance(features, Iterable):
        raise TypeError(
            f"features must be a list of columns of the release, got {type(features).__name__}. "
            "Pass their names, or leave it out for all."
        )
    return list(features)


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
