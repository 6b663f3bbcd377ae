r"""Released records in partitions of Dask: each worker sums over its own, and the sums are added in their order.

A task is the same function that passes over records in memory (`block_sums`, `survey`); it gets a partition and a few
numbers (coefficients, centres and scales) and returns a few numbers, and every 1000th record or so for the search. It
depends on nothing else, so that it can be run again, anywhere. Partitions are read anew in every pass: `persist` a
frame that is dear to make.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np

from privfit.estimators.noise import resolve_noise
from privfit.estimators.reading import Piece, Source, check_piece, fixed_chunks, open_source
from privfit.estimators.released import check_roles, chosen_columns, declared_labels, read_release
from privfit.mechanisms.reader import ReleaseReader

__all__ = ["dask_source"]


def dask_source(frame: Any, target: Any, features: Any, noise: Any, *, label: bool) -> tuple[list[Any], Source]:
    """Return the features and the source of a Dask DataFrame of released columns, or of a release in files.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame, ReleaseReader, FileRelease or path
        Of a release in files each part is a partition, which workers read themselves.
    target : str, int or None
    features : str, int or sequence of these, optional
        All columns but the target if left out.
    noise
        As the parameter ``noise=``; a release has its own law.
    label : bool
        The target is a class label.

    Raises
    ------
    ModuleNotFoundError
        If Dask is not installed.
    TypeError, ValueError
        If `frame` is neither, a column is missing, there are no rows, or noise is given beside a release.

    Examples
    --------
    >>> import pandas, dask.dataframe
    >>> frame = dask.dataframe.from_pandas(pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}), npartitions=2)
    >>> names, source = dask_source(frame, "b", None, None, label=False)
    >>> names, source.n
    (['a'], 2)
    """
    dask = _dask()
    opened = open_source(frame)
    if isinstance(opened, ReleaseReader):
        if noise is not None:
            raise ValueError("noise must be None for a release, which has its own law. Leave it out.")
        _, names, laws = chosen_columns(opened, target, features)
        check_roles(target, names, laws, label=label)
        model = resolve_noise(laws, names, target, label=label, strict=False)
        counts = [rows for rows, _ in opened.record.parts] or [opened.n_rows]
        parts: list[Any] = list(range(len(counts)))
        check: Callable[[Any], Iterator[Piece]] = partial(_read_part, opened, target, names, label)
        labels = declared_labels(opened).get(target)
        classes = None if labels is None else np.unique(np.asarray(labels))
    elif isinstance(opened, dask.dataframe.DataFrame):
        names = _columns(list(opened.columns), target, features)
        model = resolve_noise(noise, names, target, label=label)
        parts = opened[[*names, *([] if target is None else [target])]].to_delayed()
        counts = [int(n) for n in dask.compute(*(dask.delayed(len, pure=False)(part) for part in parts))]
        check, classes = partial(_read_frame, target, names, label), None
    else:
        raise TypeError(
            f"frame must be a dask.dataframe.DataFrame, or a release in files, got {type(frame).__name__}. "
            "Pass tables in memory to fit, and releases in memory to fit_release."
        )
    if not sum(counts):
        raise ValueError("frame must have at least one row, got none.")
    firsts = [0, *accumulate(counts)]

    def run(task: Callable[[Iterator[Piece], int], Any]) -> list[Any]:
        call = dask.delayed(_pass, pure=False, traverse=False)
        return list(dask.compute(*(call(part, check, task, first) for part, first in zip(parts, firsts, strict=False))))

    def pieces() -> Iterator[Piece]:
        fetched = (part.compute() if hasattr(part, "compute") else part for part in parts)
        yield from fixed_chunks(piece for part in fetched for piece in check(part))

    return names, Source(model, sum(counts), pieces, classes=classes, run=run)


def _pass(part: Any, check: Callable[[Any], Iterator[Piece]], task: Callable[..., Any], first: int) -> Any:
    """Run a task on a partition; what a worker does."""
    return task(fixed_chunks(check(part)), first)


def _read_frame(target: Any, names: Sequence[Any], label: bool, part: Any) -> Iterator[Piece]:
    if len(part):
        yield check_piece(part[list(names)], None if target is None else np.asarray(part[target]), label=label)


def _read_part(reader: ReleaseReader, target: Any, names: Sequence[Any], label: bool, part: int) -> Iterator[Piece]:
    tables = reader.part(part) if reader.record.parts else reader.tables()
    for release in map(reader.release, tables):
        if release.n_rows:
            frame, response, _, _ = read_release(release, target, names)
            yield check_piece(frame, response, label=label)


def _columns(there: list[Any], target: Any, features: Any) -> list[Any]:
    """Check target and features of a frame that carries no law."""
    listed = [features] if isinstance(features, (str, int)) else features
    names = [name for name in there if name != target] if listed is None else list(listed)
    for role, wanted in (("features", names), ("target", [] if target is None else [target])):
        for name in wanted:
            if name not in there:
                raise ValueError(f"{role} must name columns of the frame, got {name!r}; it has {there[:12]}.")
    if not names or target in names or len(set(names)) < len(names):
        raise ValueError(f"features must be one or more different columns, without the target, got {names!r}.")
    return names


def _dask() -> Any:
    try:
        import dask
        import dask.dataframe
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            'fit_dask needs Dask, which is not installed: pip install "privfit[dask]".', name=error.name
        ) from error
    return dask
