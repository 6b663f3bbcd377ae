"""Putting the parts of a release together: one Parquet file, one Arrow IPC file, or the folder of the parts itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from privfit.mechanisms.atomic import replacing
from privfit.mechanisms.dataset import PartInfo, finish_dataset
from privfit.mechanisms.digests import PART_ROWS
from privfit.mechanisms.formats import SUFFIXES, parquet_options
from privfit.mechanisms.law_record import Header
from privfit.mechanisms.parts import read_part
from privfit.mechanisms.work_folder import WorkFolder

__all__ = ["assemble", "target_kind"]


def target_kind(path: Path) -> str:
    """Return what a name says of a target: "parquet", "arrow" or "folder".

    Raises
    ------
    ValueError
        If the name has another ending.

    Examples
    --------
    >>> target_kind(Path("out.parquet")), target_kind(Path("out"))
    ('parquet', 'folder')
    """
    kind = SUFFIXES.get(path.suffix.lower(), "") if path.suffix else "folder"
    if kind not in ("parquet", "arrow", "folder"):
        raise ValueError(
            "target must end in .parquet or .arrow, or have no ending for a folder of Parquet files, "
            f"got {path.name!r}."
        )
    return kind


def assemble(
    parts: Iterable[PartInfo], folder: Path, work: WorkFolder, header: Header, schema: Any, kind: str
) -> None:
    """Put all parts together and note that the release is whole.

    Parameters
    ----------
    parts : iterable of PartInfo
        In any order, as they are finished.
    folder : Path
        Where they are.
    work : WorkFolder
    header : Header
    schema : pyarrow.Schema
        Of every part.
    kind : {"parquet", "arrow", "folder"}
    """
    if kind == "folder":
        finish_dataset(folder, header, parts)
        work.note_whole(folder)
        return
    write = {"parquet": _write_parquet, "arrow": _write_arrow}[kind]
    with replacing(work.whole_path) as temporary:
        write(temporary, in_order(parts), folder, header, schema)
    work.note_whole()


def in_order(parts: Iterable[PartInfo]) -> Iterator[PartInfo]:
    """Yield parts by their numbers, each as soon as all before it are there.

    Examples
    --------
    >>> [info.number for info in in_order(PartInfo(n, 1, (), ()) for n in (1, 0, 2))]
    [0, 1, 2]
    """
    waiting: dict[int, PartInfo] = {}
    following = 0
    for info in parts:
        waiting[info.number] = info
        while following in waiting:
            yield waiting.pop(following)
            following += 1


def _whole_metadata(header: Header, known: list[PartInfo]) -> dict[bytes, bytes]:
    digests = [digest for info in known for digest in info.digests]
    return header.metadata(known[0].types, sum(info.rows for info in known), digests)


def _write_parquet(path: Path, parts: Iterator[PartInfo], folder: Path, header: Header, schema: Any) -> None:
    import pyarrow.parquet as pq

    known = []
    with pq.ParquetWriter(path, schema, **parquet_options(header)) as writer:
        for info in parts:
            writer.write_table(read_part(folder, info.number).replace_schema_metadata(None), PART_ROWS)
            known.append(info)
        writer.add_key_value_metadata(_whole_metadata(header, known))


def _write_arrow(path: Path, parts: Iterator[PartInfo], folder: Path, header: Header, schema: Any) -> None:
    import pyarrow as pa

    # The metadata of this format come first.
    known = list(parts)
    whole = schema.with_metadata(_whole_metadata(header, known))
    with pa.ipc.new_file(str(path), whole) as writer:
        for info in known:
            writer.write_table(read_part(folder, info.number).cast(whole), PART_ROWS)
