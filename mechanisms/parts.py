"""Finding the finished parts of a release that was interrupted."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from privfit.mechanisms.dataset import PartInfo, part_name
from privfit.mechanisms.digests import content_digests
from privfit.mechanisms.formats import type_names
from privfit.mechanisms.law_record import KEY, Header

__all__ = ["find_part", "read_part"]


def read_part(folder: Path, number: int) -> Any:
    """Return a part as a pyarrow table, decoded in this thread alone."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(folder / part_name(number), pre_buffer=False) as parquet:
        return parquet.read(use_threads=False)


def find_part(folder: Path, number: int, rows: int, header: Header) -> PartInfo | None:
    """Return what is known of a part if it is there and sound; remove it if it is not sound.

    Parameters
    ----------
    folder : Path
    number : int
    rows : int
        How many it should have.
    header : Header

    Examples
    --------
    >>> find_part(Path("no-such-folder"), 0, 1, None) is None
    True
    """
    import pyarrow as pa

    path = folder / part_name(number)
    if not path.exists():
        return None
    try:
        table = read_part(folder, number)
        record = json.loads(table.schema.metadata[KEY])
        info = PartInfo(number, rows, content_digests(table), type_names(table))
        said = (record["release"], record["part"], record["n_rows"], tuple(record["digests"]))
        if said == (header.release_id, number, rows, info.digests):
            return info
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError):
        pass
    path.unlink()
    return None
