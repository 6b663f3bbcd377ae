"""The tasks of a release: runs of PART_ROWS rows, made into parts by this process or by several.

A task begins at a multiple of PART_ROWS of the whole table. Its noise depends on the master key and its row numbers
alone, so that it does not matter which process makes it, nor how often.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from privfit.mechanisms.dataset import PartInfo, write_part
from privfit.mechanisms.digests import PART_ROWS, pieces
from privfit.mechanisms.frames import read_table
from privfit.mechanisms.law_record import Header
from privfit.mechanisms.parts import find_part
from privfit.mechanisms.row_seals import seal_rows
from privfit.mechanisms.sources import Reader, Source

__all__ = ["Job", "all_parts", "work_units"]

_MOST_TASKS = 4
"""Tasks that one worker takes at a time, if they begin in one row group: it is decoded once for all of them."""


@dataclass(frozen=True)
class Job:
    """What a process has to know to make parts of a release, apart from the key.

    Parameters
    ----------
    header : Header
    source : Source
    schema : pyarrow.Schema
        Of every part.
    work : Path
        The work folder.
    folder : Path
        Where the parts go.
    """

    header: Header
    source: Source
    schema: Any
    work: Path
    folder: Path

    def rows_of(self, number: int) -> int:
        """Return the number of rows of a task."""
        return min(PART_ROWS, self.source.rows - number * PART_ROWS)


def all_parts(job: Job, master: bytes, workers: int) -> Iterator[PartInfo]:
    """Make all parts that are not there yet, and yield what is known of each as it is there, in any order.

    Parameters
    ----------
    job : Job
    master : bytes
    workers : int
        Most processes to use; one means this one.

    Raises
    ------
    ChildProcessError
        If a worker process is killed.
    """
    units = work_units(job.source, workers)
    try:
        if min(workers, len(units)) == 1:
            for unit in units:
                yield from _make_parts(job, master, unit, True)
        else:
            yield from _parallel_parts(job, master, units, workers)
    finally:
        _close_readers()


def work_units(source: Source, workers: int) -> list[list[int]]:
    """Return the tasks, in order, in runs for one worker each; a run begins in one row group.

    Examples
    --------
    >>> from privfit.mechanisms.sources import SourceFile
    >>> file = SourceFile(Path("x.parquet"), 0, 0, "", (1_000_000, 500_000))
    >>> work_units(Source(Path("x.parquet"), (file,), None), 2)
    [[0, 1, 2], [3], [4, 5]]
    """
    tasks = pieces(source.rows)
    longest = min(_MOST_TASKS, -(-tasks // workers))
    units: list[list[int]] = []
    for _, numbers in groupby(range(tasks), key=lambda number: source.group_of(number * PART_ROWS)):
        run = list(numbers)
        units += [run[k : k + longest] for k in range(0, len(run), longest)]
    return units


def _parallel_parts(job: Job, master: bytes, units: list[list[int]], workers: int) -> Iterator[PartInfo]:
    from concurrent.futures.process import BrokenProcessPool

    from joblib import Parallel, delayed

    workers = min(workers, len(units))
    pool = Parallel(workers, "loky", return_as="generator_unordered", batch_size=1, max_nbytes=None)
    calls = (delayed(_make_parts)(job, master, unit, k + workers < len(units)) for k, unit in enumerate(units))
    try:
        for made in pool(calls):
            yield from made
    except BrokenProcessPool:
        raise ChildProcessError("a worker process was killed, perhaps because memory ran out.") from None


_readers: dict[str, Reader] = {}
"""The reader of this process's latest tasks, if it stands inside a row group: the next ones may follow on it."""


def _make_parts(job: Job, master: bytes, numbers: list[int], more: bool) -> list[PartInfo]:
    """Make some consecutive parts, unless they are there and sound; `more` if this process may get others."""
    mine = job.header.release_id
    reader = _readers.pop(mine, None) or Reader(job.source, job.header.texts)
    _close_readers()
    made = [find_part(job.folder, n, job.rows_of(n), job.header) or _make_part(job, master, n, reader) for n in numbers]
    if more and reader.is_inside:
        _readers[mine] = reader
    else:
        reader.close()
    return made


def _make_part(job: Job, master: bytes, number: int, reader: Reader) -> PartInfo:
    first = number * PART_ROWS
    plan = job.header.plan
    rows = read_table(reader.read(first, job.rows_of(number)), plan.columns)
    seal_rows(job.work, number, plan, rows, master)
    released = rows.build(plan.release_rows(rows, master, first))
    return write_part(job.folder, number, released.cast(job.schema), job.header)


def _close_readers() -> None:
    for reader in _readers.values():
        reader.close()
    _readers.clear()
