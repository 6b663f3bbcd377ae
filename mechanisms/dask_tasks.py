"""The tasks of a Dask release: what a worker runs for one partition.

A failing task would leave its arguments' text and Arrow's messages, which quote cells, in the workers' logs. Hence
tasks do not fail: they return what went wrong, in words of ours. Nor does a task bring the key: workers, which have
to write into the work folder anyway (see `work_folder`), read it there. A task knows a digest of the key, and a worker
that is left over from a release that is over finds no key, or another one, and stops.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privfit.mechanisms.dataset import PartInfo, write_part
from privfit.mechanisms.formats import released_types
from privfit.mechanisms.frames import read_table
from privfit.mechanisms.law_record import Header
from privfit.mechanisms.native import to_arrow
from privfit.mechanisms.parts import find_part
from privfit.mechanisms.row_seals import seal_rows
from privfit.mechanisms.selfcheck import check_machine
from privfit.mechanisms.work_folder import read_key

__all__ = ["ERRORS", "Failure", "Job", "key_digest", "release_partition", "released_rows"]

ERRORS: dict[str, type[Exception]] = {t.__name__: t for t in (TypeError, ValueError, RuntimeError, OSError)}
"""What a `Failure` can be."""


@dataclass(frozen=True)
class Job:
    """What a worker has to know to make parts of a release; the key is in the folder.

    Parameters
    ----------
    header : Header
    schema : pyarrow.Schema
        Of every part.
    work : Path
        The work folder.
    folder : Path
        Where the parts go.
    digest : str
        Of the key.
    """

    header: Header
    schema: Any
    work: Path
    folder: Path
    digest: str


@dataclass(frozen=True)
class Failure:
    """What went wrong in a task: the name of an exception, and text that holds no data."""

    kind: str
    text: str


def release_partition(rows: Any, number: int, first: int, count: int, job: Job) -> PartInfo | Failure:
    """Make one part, unless it is there and sound; what a task runs.

    Parameters
    ----------
    rows : pandas.DataFrame
    number : int
        Of the partition.
    first : int
        Number of its first row in the whole.
    count : int
        Its rows, when they were counted.
    job : Job

    Returns
    -------
    PartInfo or Failure
    """
    import pyarrow as pa

    try:
        return _part(rows, number, first, count, job)
    except (pa.ArrowException, KeyError):
        # not our words
        return Failure("ValueError", f"partition {number} does not have the columns and types that Dask declares.")
    except OSError as error:
        reason = f"a worker could not use the folder of the release: {error.strerror or type(error).__name__}."
        return Failure("OSError", f"{reason} All workers need access to {job.work}, as the same user.")
    except (TypeError, ValueError, RuntimeError) as error:
        kind = next(name for name, known in ERRORS.items() if isinstance(error, known))
        return Failure(kind, f"partition {number}: {error}")
    except Exception as error:
        return Failure("RuntimeError", f"partition {number} could not be released: {type(error).__name__}.")


def _part(rows: Any, number: int, first: int, count: int, job: Job) -> PartInfo:
    header = job.header
    own = Header(header.plan, header.names, header.kind).version
    if own != header.version:
        raise RuntimeError(f"a worker has privfit {own} and the client {header.version}; install the same version.")
    check_machine()
    if len(rows) != count:
        raise ValueError(
            f"it has {len(rows)} rows and had {count} when they were counted. The data must not change while they "
            "are released: put them back as they were, or give this release up and begin another one."
        )
    master = read_key(job.work)
    if key_digest(master) != job.digest:
        raise RuntimeError("this release is over.")
    there = find_part(job.folder, number, count, header)
    if there is not None:
        return there
    table = released_rows(rows, header, master, first, job.work, number)
    return write_part(job.folder, number, table.cast(job.schema), header)


def released_rows(
    rows: Any, header: Header, master: bytes, first: int, work: Path | None = None, number: int = 0
) -> Any:
    """Return released rows of a pandas DataFrame as an Arrow table; public columns have the types of these rows.

    With a work folder, the rows are sealed there as those of a part (see `row_seals`).
    """
    import pyarrow as pa

    cells = read_table(rows[list(header.names)], header.plan.columns)
    if work is not None:
        seal_rows(work, number, header.plan, cells, master)
    done = header.plan.release_rows(cells, master, first)
    noisy = released_types(header)
    columns = [
        pa.array(values, pa.type_for_alias(noisy[name][0]))
        if name in noisy
        else to_arrow(values.to_frame(), "pandas", [name]).column(0)
        for name, values in zip(header.texts, done.values(), strict=True)
    ]
    return pa.table(columns, names=list(header.texts))


def key_digest(master: bytes) -> str:
    """Return what tells a master key from others and says nothing about it.

    Examples
    --------
    >>> key_digest(bytes(32)) == key_digest(bytes(31) + b"1")
    False
    """
    return hashlib.blake2b(master, digest_size=16, person=b"privfit-key-id").hexdigest()
