r"""Released records for a fit, wherever they are: in memory, in files that are read in pieces, in partitions of Dask.

A fit needs sums over records only. It passes over them several times, each time in pieces of `CHUNK` records cut at the
same places however the release is cut into files or batches, so that sums, and with them the fit, do not depend on
that to the last bit. Every piece is checked when it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from privfit.estimators.checks import read_columns, read_columns_and_response
from privfit.estimators.noise import NoiseModel
from privfit.estimators.released import read_release
from privfit.mechanisms.progress import Progress, check_progress, showing
from privfit.mechanisms.reader import ReleaseReader, open_release

__all__ = ["CHUNK", "Passes", "Source", "check_piece", "fixed_chunks", "once", "open_source", "read_pieces"]

Floats = NDArray[np.float64]
Piece = tuple[Floats, Any]
CHUNK = 65_536
"""Records that are in memory at a time: a whole number of the blocks that sums are made of."""


@dataclass
class Passes:
    """Counts the passes over the records, and shows how far each one is.

    Examples
    --------
    >>> passes = Passes(print, 3)
    >>> list(passes.over([(np.ones((3, 1)), None)], 1)) and passes.count
    3 3
    1
    """

    progress: Progress = False
    n: int = 0
    count: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        check_progress(self.progress)

    def over(self, pieces: Iterable[Any], first: int) -> Iterator[Any]:
        """Let pieces of a pass through; `first` is 1 where this is the first stratum of the pass, else 0."""
        self.count += first
        with showing(self.progress, self.n, f"fitting, pass {self.count}") as advance:
            for piece in pieces:
                yield piece
                advance(len(piece[0]))


@dataclass(frozen=True)
class Source:
    """Records released once under one law.

    Attributes
    ----------
    model : NoiseModel
    n : int
    pieces : callable
        Returns an iterator over pieces: the columns, shape (m, d), and the response as it is, shape (m,).
    held : bool
        The records are in memory, in one piece.
    classes : ndarray or None
        Declared labels of the response.
    run : callable, optional
        See `problem.Sample`; its tasks get pieces.

    Examples
    --------
    >>> Source.__name__
    'Source'
    """

    model: NoiseModel
    n: int
    pieces: Callable[[], Iterator[Piece]]
    held: bool = False
    classes: NDArray[Any] | None = None
    run: Callable[[Callable[[Iterator[Piece], int], Any]], list[Any]] | None = None

    def each(self, task: Callable[[Iterator[Piece], int], Any]) -> list[Any]:
        """Pass over the records once: the results of consecutive groups of them."""
        return self.run(task) if self.run is not None else [task(self.pieces(), 0)]


def open_source(release: Any) -> Any:
    """Return what a release is: a Release as it is, a `ReleaseReader` for a path or a release in files.

    Examples
    --------
    >>> open_source(3)
    3
    """
    if isinstance(release, (str, Path)):
        return open_release(release)
    if not hasattr(release, "frame") and isinstance(getattr(release, "path", None), Path):
        return release if isinstance(release, ReleaseReader) else open_release(release.path)
    return release


def read_pieces(release: Any, target: Any, features: Sequence[Any], label: bool) -> Iterator[Piece]:
    """Read a release, in memory or on disk, in checked pieces of `CHUNK` records.

    Parameters
    ----------
    release : Release or ReleaseReader
    target : str, int or None
    features : sequence
    label : bool
        The target is a class label.

    Yields
    ------
    x : ndarray, shape (m, d)
    y : ndarray, shape (m,), or None

    Examples
    --------
    >>> from privfit.mechanisms import Box, Laplace, release
    >>> out = release(np.zeros((4, 2)), Laplace(1.0), Box({"a": (0, 1), "b": (0, 1)}), rng=0)
    >>> [x.shape for x, y in read_pieces(out, "b", ["a"], False)]
    [(4, 1)]
    """
    parts = release if isinstance(release, ReleaseReader) else [release]

    def checked() -> Iterator[Piece]:
        for part in parts:
            frame, response, _, _ = read_release(part, target, features)
            if part.n_rows:
                yield check_piece(frame, response, label=label)

    yield from fixed_chunks(checked())


def check_piece(frame: Any, response: Any, *, label: bool) -> Piece:
    """Check the values of a piece as `fit` checks those of all records.

    Examples
    --------
    >>> check_piece([[1, 2]], None, label=False)
    (array([[1., 2.]]), None)
    """
    if response is None:
        return read_columns(_Checker(), frame), None
    return read_columns_and_response(_Checker(), frame, response, label=label)


class _Checker(BaseEstimator):  # type: ignore[misc]
    """Stands for an estimator that has not learned names."""


def once(piece: Piece) -> Iterator[Piece]:
    """Return an iterator over records in memory.

    Examples
    --------
    >>> [x.shape for x, _ in once((np.ones((2, 1)), None))]
    [(2, 1)]
    """
    return iter([piece])


def fixed_chunks(pieces: Iterable[Piece], rows: int | None = None) -> Iterator[Piece]:
    """Cut pieces of any length anew, at multiples of `rows` (`CHUNK`) counted from the first record.

    Examples
    --------
    >>> pieces = [(np.ones((3, 1)), np.ones(3)), (np.ones((4, 1)), np.ones(4))]
    >>> [len(y) for _, y in fixed_chunks(pieces, 5)]
    [5, 2]
    """
    rows = CHUNK if rows is None else rows
    waiting: list[Piece] = []
    there = 0
    for x, y in pieces:
        start = 0
        while start < len(x):
            stop = min(start + rows - there, len(x))
            waiting.append((x[start:stop], None if y is None else y[start:stop]))
            there += stop - start
            start = stop
            if there == rows:
                yield _together(waiting)
                waiting, there = [], 0
    if waiting:
        yield _together(waiting)


def _together(pieces: list[Piece]) -> Piece:
    if len(pieces) == 1:
        return pieces[0]
    x = np.concatenate([x for x, _ in pieces])
    return x, None if pieces[0][1] is None else np.concatenate([y for _, y in pieces])
