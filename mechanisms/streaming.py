"""Releasing a table in files to a file, a few rows at a time, in several processes, and on from where a crash left it.

A task is a run of PART_ROWS rows that begins at a multiple of it. Its noise depends on the master key and the row
numbers alone, so the result is the same for any number of workers, any row groups, and any crash in between: equal to
that of `release` under the same key. Finished tasks are parts in the work folder (see `work_folder`, which says what
a crash leaves and why no block ever gets noise from two keys); they are put together as they come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privfit.accounting.validation import check_integer
from privfit.mechanisms.assembling import assemble, target_kind
from privfit.mechanisms.charging import spending
from privfit.mechanisms.columns import Column, as_columns
from privfit.mechanisms.dataset import PartInfo
from privfit.mechanisms.digests import content_digests
from privfit.mechanisms.file_release import FileRelease
from privfit.mechanisms.formats import canonical
from privfit.mechanisms.frames import read_table
from privfit.mechanisms.keystream import KEY_BYTES
from privfit.mechanisms.law_record import Header
from privfit.mechanisms.plan import Plan, plan_release
from privfit.mechanisms.progress import Progress, check_progress, showing
from privfit.mechanisms.selfcheck import check_machine
from privfit.mechanisms.sources import Source, open_source
from privfit.mechanisms.tasks import Job, all_parts
from privfit.mechanisms.work_folder import WorkFolder, work_folder

if TYPE_CHECKING:
    from privfit.accounting import Ledger

__all__ = ["release_file"]


def release_file(
    source: Any,
    target: Any,
    law: Any,
    domain: Any,
    public: Iterable[Column] | None = None,
    rounding: str = "nearest",
    *,
    drop: Iterable[str] = (),
    workers: int | None = None,
    progress: Progress = None,
    overwrite: bool = False,
    ledger: Ledger | None = None,
    label: str = "",
    part: str | None = None,
    protect: str = "record",
) -> FileRelease:
    """Release every row of a table in files once, in bounded memory; after a crash, the same call goes on.

    What a crash leaves is in the folder ``<target>.unfinished``: finished parts and, readable by its owner only, the
    key of the noise. Never copy or publish that folder. The target appears when it is whole, and the folder goes.

    Parameters
    ----------
    source : str or path
        The private table: a Parquet file, a folder of Parquet files, or an Arrow IPC file (whose compressed record
        batches must fit in memory, one per worker).
    target : str or path
        A name that ends in .parquet or .arrow, or one without an ending for a folder of Parquet files. Not there yet.
    law, domain, public, rounding
        See `release`.
    drop : iterable of str
        Columns of the source that are left out. All others need a law, or are public.
    workers : int, optional
        Processes that add noise; by default one for each available processor. The result is the same for any number.
    progress : bool or callable, optional
        True or False; a function ``(rows done, rows in all)``; by default a bar where stderr is a terminal.
    overwrite : bool
        Replace a file at `target`, once the new one is whole.
    ledger, label, part, protect
        See `release`. A call that goes on does not charge the ledger again. After a crash between the ledger's line
        and the note of it, it does: budget may be wasted, never forgotten.

    Returns
    -------
    FileRelease
        Path, law and guarantee; `FileRelease.load`, or `load_release`, reads the values.

    Raises
    ------
    TypeError, ValueError
        If parameters and schema do not fit together, or an unfinished release to `target` is of something else: a
        changed source, another law. Never because of a value of the data.
    FileNotFoundError, FileExistsError
        If there is no source or no folder for the target; if the target exists.
    BlockingIOError
        If another process writes this target.
    BudgetExceeded
        If the ledger refuses; nothing has been released then.
    ChildProcessError
        If a worker process is killed. The same call goes on.

    Examples
    --------
    >>> import tempfile, pyarrow, pyarrow.parquet
    >>> from privfit.mechanisms import Box, Gaussian
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pyarrow.parquet.write_table(pyarrow.table({"age": [30, 41, None]}), folder + "/in.parquet")
    ...     done = release_file(
    ...         folder + "/in.parquet", folder + "/out.parquet", Gaussian(20.0), Box({"age": (17, 90)})
    ...     )
    ...     done.n_rows, len(done.load("numpy").frame)
    (3, 3)
    """
    plan = plan_release(law, domain, public, rounding)
    spend = spending(plan, ledger, label, part, protect)
    progress = check_progress(progress)
    processes = _workers(workers)
    table, place = open_source(source), Path(target).absolute()
    kind = target_kind(place)
    _check_place(place, table)
    names = plan.order(_kept(table, drop))
    schema = _schema(plan, table, names, kind)
    check_machine()
    record = {
        "law": plan.law.to_dict(),
        "domain": [own.to_dict() for own in plan.domains],
        "public": list(plan.public),
        "rounding": rounding,
        "drop": [name for name in table.schema.names if name not in names],
        "target": kind,
        "source": table.fingerprint(),
        "ledger": None if ledger is None else [label, part, protect],
        "version of privfit": Header(plan, names, "pyarrow").version,
    }
    with work_folder(place, record, overwrite) as work:
        if not work.is_whole:
            with work.charged(spend, ledger):
                header = Header(plan, names, "pyarrow", release_id=work.release_id)
                _run(Job(header, table, schema, work.path, work.parts), work, kind, processes, progress)
        work.deliver()
    return FileRelease(place, plan, names, table.rows)


def _workers(workers: int | None) -> int:
    if workers is not None:
        return check_integer("workers", workers, 1, 1024)
    from joblib import cpu_count

    return max(int(cpu_count()), 1)


def _check_place(place: Path, table: Source) -> None:
    if not place.parent.is_dir():
        raise FileNotFoundError(f"target: there is no folder {place.parent}; make it first.")
    inside = table.path.resolve()
    if inside == place.resolve() or (inside.is_dir() and inside in place.resolve().parents):
        raise ValueError("target must not be the private table itself, nor inside its folder.")


def _kept(table: Source, drop: Iterable[str]) -> list[str]:
    left_out = as_columns("drop", drop) if (drop := tuple(drop)) else ()
    unknown = [repr(name) for name in left_out if name not in table.schema.names]
    if unknown:
        raise ValueError(f"drop names {', '.join(unknown)}, which the source does not have.")
    return [name for name in table.schema.names if name not in left_out]


def _schema(plan: Plan, table: Source, names: tuple[Column, ...], kind: str) -> Any:
    """Return the schema of what leaves, after a check that every column can be read and released."""
    import pyarrow as pa

    empty = table.schema.empty_table().select(list(names))
    cells = read_table(empty, plan.columns)
    released = cells.build(plan.release_rows(cells, bytes(KEY_BYTES)))
    whole = canonical(released, Header(plan, names, "pyarrow"))
    content_digests(whole)
    if kind != "arrow":
        return whole.schema
    # An Arrow file has one dictionary for all its batches, and the labels of later parts are not known yet.
    plain = [t.value_type if pa.types.is_dictionary(t) else t for t in whole.schema.types]
    return pa.schema(list(zip(whole.schema.names, plain, strict=True)))


def _run(job: Job, work: WorkFolder, kind: str, workers: int, progress: Progress) -> None:
    """Make the parts and put them together."""
    master = work.master()
    try:
        with showing(progress, job.source.rows, "releasing rows") as advance:
            parts = _counted(all_parts(job, master, workers), advance)
            assemble(parts, job.folder, work, job.header, job.schema, kind)
    except BaseException as error:
        error.add_note(f"What is finished is kept in {work.path}: the same call goes on from there.")
        raise


def _counted(parts: Iterable[PartInfo], advance: Callable[[int], None]) -> Iterator[PartInfo]:
    for info in parts:
        advance(info.rows)
        yield info
