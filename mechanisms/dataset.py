"""A release in parts: a folder of Parquet files, each with the law, and a manifest that makes them whole.

A part is written under a temporary name and renamed; the manifest is written last. Hence a folder without a manifest
is no release yet, and whatever happens to a part afterwards shows, because the manifest knows the number, the rows and
the digests of each. The same part written twice has the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from privfit.accounting.validation import check_integer
from privfit.mechanisms.atomic import TEMPORARY, replacing
from privfit.mechanisms.digests import PART_ROWS, content_digests
from privfit.mechanisms.formats import canonical, type_names, write_parquet
from privfit.mechanisms.law_record import KEY, MANIFEST, Header, part_name, sealed
from privfit.mechanisms.reader import ReleaseReader, open_release

__all__ = ["PART_ROWS", "PartInfo", "ReleaseReader", "finish_dataset", "open_release", "part_name", "write_part"]


@dataclass(frozen=True)
class PartInfo:
    """What the manifest says of a part; small, picklable, and plain in JSON (`to_dict`, `from_dict`).

    Attributes
    ----------
    number : int
    rows : int
    digests : tuple of str
        One for every `PART_ROWS` rows of the part.
    types : tuple of str
        Arrow types of the columns.
    """

    number: int
    rows: int
    digests: tuple[str, ...]
    types: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings and lists."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> PartInfo:
        """Return the part that `to_dict` described."""
        return cls(d["number"], d["rows"], tuple(d["digests"]), tuple(d["types"]))


def write_part(folder: Any, number: int, table: Any, header: Header) -> PartInfo:
    """Write one part of a release; writing it again writes the same bytes.

    Parameters
    ----------
    folder : str or path
        Made if it is not there; its parent must be.
    number : int
        Position of the part: 0, 1, ...
    table : pyarrow.Table
        Released rows, with the columns of `header` in order.
    header : Header

    Returns
    -------
    PartInfo
        For `finish_dataset`.

    Raises
    ------
    ValueError
        If the columns are not those of the header.
    FileExistsError
        If the folder holds another release.
    """
    place, number = Path(folder), check_integer("number", number, 0, 999_999)
    table = canonical(table, header)
    place.mkdir(exist_ok=True)
    path = place / part_name(number)
    _refuse_other_release(place, path, header)
    info = PartInfo(number, table.num_rows, content_digests(table), type_names(table))
    write_parquet(path, table, header, header.metadata(info.types, info.rows, info.digests, number))
    return info


def finish_dataset(folder: Any, header: Header, parts: Iterable[PartInfo]) -> None:
    """Write the manifest: from now on the folder is a release.

    Parameters
    ----------
    folder : str or path
    header : Header
    parts : iterable of PartInfo
        All parts, in any order; a part that was written twice may stand there twice.

    Raises
    ------
    ValueError
        If parts are missing, in the list or in the folder, or their columns have different types.
    FileExistsError
        If the folder holds parts that are not in the list.
    """
    place, known = Path(folder), sorted(set(parts), key=lambda part: part.number)
    if not known or [part.number for part in known] != list(range(len(known))):
        raise ValueError(
            f"parts must be numbered 0, 1, ... without a gap and with one content each, got {len(known)} parts "
            f"with numbers {sorted({part.number for part in known})[:5]}...; pass what every write_part returned."
        )
    differing = [part.number for part in known if part.types != known[0].types]
    if differing:
        raise ValueError(
            f"part {differing[0]} has columns of types {', '.join(known[differing[0]].types)}, part 0 of types "
            f"{', '.join(known[0].types)}; cast the public columns to one type each."
        )
    there = {child.name for child in place.glob("part-*")}
    wanted = {part_name(part.number) for part in known}
    if there - wanted:
        raise FileExistsError(f"{place} holds {min(there - wanted)}, which is no part of this release; remove it.")
    if wanted - there:
        raise ValueError(f"{place} has no {min(wanted - there)}; write the part again.")
    for left in place.glob(f".part-*{TEMPORARY}"):
        left.unlink(missing_ok=True)
    own = {
        "types": list(known[0].types),
        "n_rows": sum(part.rows for part in known),
        "parts": [{"number": p.number, "rows": p.rows, "digests": list(p.digests)} for p in known],
    }
    with replacing(place / MANIFEST) as temporary:
        temporary.write_text(sealed({**header.record, **own}))


def _refuse_other_release(place: Path, path: Path, header: Header) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if (place / MANIFEST).exists():
            text: Any = (place / MANIFEST).read_bytes()
        elif path.exists():
            text = (pq.read_metadata(path).metadata or {}).get(KEY, b"{}")
        else:
            return
        same = json.loads(text).get("release") == header.release_id
    except (pa.ArrowException, OSError, ValueError, AttributeError):
        same = False
    if not same:
        raise FileExistsError(f"{place} holds another release; write into a new folder.")
