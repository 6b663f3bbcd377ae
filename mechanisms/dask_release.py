"""Releasing a Dask DataFrame: every partition is one task, which writes its released rows as a part of the release.

The rows of all partitions are counted first; then a task knows the number of its first row, and the noise of a row
depends on the master key and the row's number alone. So it does not matter how the frame is partitioned, which worker
runs a task, or how often. What the tasks return is small and free of data and noise: nothing lazy ever holds noise,
so that nothing can be computed twice and come out differently.

The key is in no task, graph, log or message, and the scheduler never sees it (see `dask_tasks`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privfit.mechanisms.charging import spending
from privfit.mechanisms.columns import Column
from privfit.mechanisms.dask_tasks import ERRORS, Failure, Job, key_digest, release_partition, released_rows
from privfit.mechanisms.dataset import PartInfo, finish_dataset
from privfit.mechanisms.file_release import FileRelease
from privfit.mechanisms.formats import canonical
from privfit.mechanisms.frames import read_table
from privfit.mechanisms.law_record import Header, part_name
from privfit.mechanisms.parts import find_part
from privfit.mechanisms.plan import Plan, plan_release
from privfit.mechanisms.progress import Progress, check_progress, showing
from privfit.mechanisms.selfcheck import check_machine
from privfit.mechanisms.work_folder import WorkFolder, work_folder

if TYPE_CHECKING:
    from privfit.accounting import Ledger

__all__ = ["release_dask"]

_TRIES = 3
"""How often a partition is tried whose part could not be written."""

_SECONDS = 0.5


def release_dask(
    frame: Any,
    folder: Any,
    law: Any,
    domain: Any,
    public: Iterable[Column] | None = None,
    rounding: str = "nearest",
    *,
    progress: Progress = None,
    ledger: Ledger | None = None,
    label: str = "",
    part: str | None = None,
    protect: str = "record",
) -> FileRelease:
    """Release every row of a Dask DataFrame once, into a folder of Parquet files; after a crash, the same call goes on.

    The released values are those of `release` under the same key, for any number of partitions and workers and any
    scheduler, also where tasks are repeated and workers killed. The partitions are read twice, for counting and for
    releasing: `frame.persist()` first if reading is dear. Between the two the data must not change.

    What a crash leaves is in ``<folder>.unfinished``: finished parts and, readable by its owner only, the key of the
    noise. All workers need access to it, as the same user, on one file system. Never copy or publish it. Dask sends
    the private partitions between machines and keeps them in the workers' memory and spill files: use workers that
    you trust, and a scheduler with TLS.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
        The private table. All its columns need a law, or are public.
    folder : str or path
        Where the release will be: a name without an ending, not there yet, in a folder that exists.
    law, domain, public, rounding
        See `release`.
    progress : bool or callable, optional
        True or False; a function ``(rows done, rows in all)``, called from another thread; by default a bar where
        stderr is a terminal.
    ledger, label, part, protect
        See `release`. A call that goes on does not charge the ledger again.

    Returns
    -------
    FileRelease
        Path, law and guarantee; `FileRelease.load`, or `load_release`, reads the values.

    Raises
    ------
    ModuleNotFoundError
        If Dask is not installed.
    TypeError, ValueError
        If parameters and schema do not fit together, a partition has another number of rows than were counted, or
        an unfinished release to `folder` is of something else. Never because of a value of the data.
    FileNotFoundError, FileExistsError
        If there is no place for the folder, or something is there already.
    OSError, RuntimeError
        If a worker cannot read or write the folder, or is not fit to release. The same call goes on.
    BudgetExceeded
        If the ledger refuses; nothing has been released then.

    Examples
    --------
    >>> import tempfile, dask, pandas, dask.dataframe
    >>> from privfit.mechanisms import Box, Gaussian
    >>> people = dask.dataframe.from_pandas(pandas.DataFrame({"age": [30, 41, None]}), npartitions=2)
    >>> with tempfile.TemporaryDirectory() as place, dask.config.set(scheduler="synchronous"):
    ...     done = release_dask(people, place + "/out", Gaussian(20.0), Box({"age": (17, 90)}))
    ...     done.n_rows, len(done.load().frame)
    (3, 3)
    """
    dask = _dask()
    plan = plan_release(law, domain, public, rounding)
    spend = spending(plan, ledger, label, part, protect)
    progress = check_progress(progress)
    place = _target(folder)
    if not isinstance(frame, dask.dataframe.DataFrame):
        raise TypeError(
            f"frame must be a dask.dataframe.DataFrame, got {type(frame).__name__}. "
            "Pass tables in memory to release, and files to release_file."
        )
    names, schema = _schema(plan, frame)
    check_machine()
    partitions = frame.to_delayed()
    counts = [int(n) for n in dask.compute(*(dask.delayed(len, pure=False)(rows) for rows in partitions))]
    record = {
        "law": plan.law.to_dict(),
        "domain": [own.to_dict() for own in plan.domains],
        "public": list(plan.public),
        "rounding": rounding,
        "version of privfit": Header(plan, names, "pandas").version,
        "source": [dask.base.tokenize(frame), counts],
        "ledger": None if ledger is None else [label, part, protect],
    }
    with work_folder(place, record) as work:
        if not work.is_whole:
            with work.charged(spend, ledger), _kept(work):
                header = Header(plan, names, "pandas", release_id=work.release_id)
                assert header.record  # made once, and sent to the workers with the header
                job = Job(header, schema, work.path, work.parts, key_digest(work.master()))
                with showing(progress, sum(counts), "releasing rows") as advance:
                    _make_parts(dask, partitions, counts, job, advance)
                work.note_whole(work.parts)
        work.deliver()
    return FileRelease(place, plan, names, sum(counts))


def _dask() -> Any:
    try:
        import dask
        import dask.base
        import dask.dataframe
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            'release_dask needs Dask, which is not installed: pip install "privfit[dask]".', name=error.name
        ) from error
    return dask


def _target(folder: Any) -> Path:
    place = Path(folder).absolute()
    if place.suffix:
        raise ValueError(f"folder must be a name without an ending, got {place.name!r}: the release is a folder.")
    if not place.parent.is_dir():
        raise FileNotFoundError(f"folder: there is no {place.parent} to put it in; make it first.")
    return place


def _schema(plan: Plan, frame: Any) -> tuple[tuple[Column, ...], Any]:
    """Return names and types of what leaves, after a check that every column can be read and released."""
    import pandas as pd
    import pyarrow as pa

    empty = pd.concat([pd.Series([], dtype=dtype) for dtype in frame.dtypes], axis=1)
    empty.columns = frame.columns
    names = plan.order(read_table(empty, plan.columns).names)
    header = Header(plan, names, "pandas")
    whole = canonical(released_rows(empty, header, bytes(32), 0), header)
    # A dictionary's type depends on how many labels a partition has.
    types = [t.value_type if pa.types.is_dictionary(t) else t for t in whole.schema.types]
    unknown = [repr(name) for name, type_ in zip(names, types, strict=True) if pa.types.is_null(type_)]
    if unknown:
        raise TypeError(
            f"public column {', '.join(unknown)} has no declared type, so its partitions could differ: convert it "
            'first, for instance by frame.astype({column: "string"}).'
        )
    return names, pa.schema(list(zip(header.texts, types, strict=True)))


def _make_parts(
    dask: Any, partitions: list[Any], counts: list[int], job: Job, advance: Callable[[int], None]
) -> None:
    """Run the tasks whose parts are not there, until all are, and write the manifest."""
    firsts = [0, *accumulate(counts)]
    task = dask.delayed(release_partition, pure=False, traverse=False)
    made: dict[int, PartInfo] = {}
    for number, count in enumerate(counts):
        info = find_part(job.folder, number, count, job.header)
        if info is not None:
            made[number] = info
    with _watched(job.folder, counts, advance):
        for attempt in range(1, _TRIES + 1):
            missing = [n for n in range(len(counts)) if n not in made]
            calls = (task(partitions[n], n, firsts[n], counts[n], job) for n in missing)
            done = dict(zip(missing, dask.compute(*calls), strict=True))
            made |= {n: info for n, info in done.items() if isinstance(info, PartInfo)}
            failures = [info for info in done.values() if isinstance(info, Failure)]
            grave = [f for f in failures if f.kind != "OSError" or attempt == _TRIES]
            if grave:
                raise ERRORS[grave[0].kind](grave[0].text)
            if not failures:
                break
    finish_dataset(job.folder, job.header, made.values())


@contextmanager
def _watched(folder: Path, counts: list[int], advance: Callable[[int], None]) -> Iterator[None]:
    """Report the rows of parts as they appear, whatever scheduler makes them; all of them if the block succeeds."""
    seen: set[int] = set()
    over = threading.Event()

    def look() -> None:
        for number, count in enumerate(counts):
            if number not in seen and (folder / part_name(number)).exists():
                seen.add(number)
                advance(count)

    def watch() -> None:
        while not over.wait(_SECONDS):
            look()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    look()


@contextmanager
def _kept(work: WorkFolder) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        error.add_note(f"What is finished is kept in {work.path}: the same call goes on from there.")
        raise
