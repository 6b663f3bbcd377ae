"""Showing how far a long release is: a bar on a terminal, or a function that is told."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Progress", "check_progress", "showing"]

Progress = bool | Callable[[int, int], object] | None
"""True or False; a function ``(done, total)``; None for a bar where stderr is a terminal."""


def check_progress(progress: object) -> Progress:
    """Return `progress`, or raise TypeError if it is none.

    Examples
    --------
    >>> check_progress(True)
    True
    """
    if progress is None or isinstance(progress, bool) or callable(progress):
        return progress
    raise TypeError(f"progress must be True, False, None or a function (done, total), got {type(progress).__name__}.")


@contextmanager
def showing(progress: Progress, total: int, what: str) -> Iterator[Callable[[int], None]]:
    """Show progress for the duration of a ``with`` block.

    Parameters
    ----------
    progress : bool, callable or None
        See `Progress`.
    total : int
        Number of rows, which is public.
    what : str

    Yields
    ------
    function
        Takes the number of rows that are newly done.

    Examples
    --------
    >>> with showing(print, 10, "releasing") as advance:
    ...     advance(4)
    ...     advance(6)
    4 10
    10 10
    """
    if callable(progress):
        done = 0

        def tell(rows: int) -> None:
            nonlocal done
            done += rows
            progress(done, total)

        yield tell
    elif progress if progress is not None else sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Bar(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task(what, total=total)
            yield lambda rows: bar.advance(task, rows)
    else:
        yield lambda rows: None
