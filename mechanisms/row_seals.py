"""Seals on the rows that a part of a release is made from, so that no other rows ever meet its noise.

Until it is finished, a release to files keeps its key, and a part that a crash or a worker's death has destroyed is
made again under it. From rows that have changed in the meantime the same noise would make another part, and the
difference of the two would be that of the rows, exactly. So before a part's noise is drawn, a digest of its rows as
the laws read them, keyed with the master key, is written beside it; other rows do not fit the seal and are refused.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from privfit.mechanisms.atomic import replacing
from privfit.mechanisms.work_state import write_private

if TYPE_CHECKING:
    from privfit.mechanisms.frames import Table
    from privfit.mechanisms.plan import Plan

__all__ = ["seal_rows"]


def seal_rows(work: Path, number: int, plan: Plan, rows: Table, master: bytes) -> None:
    """Seal the rows of a part, or check that they are those of its seal.

    Parameters
    ----------
    work : Path
        The work folder.
    number : int
        Of the part.
    plan : Plan
    rows : Table
    master : bytes

    Raises
    ------
    ValueError
        If the part was begun with other rows.

    Examples
    --------
    >>> import tempfile
    >>> from privfit.mechanisms import Box, Gaussian
    >>> from privfit.mechanisms.frames import read_table
    >>> from privfit.mechanisms.plan import plan_release
    >>> plan = plan_release(Gaussian(20.0), Box({"age": (17, 90)}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for age in (30.0, 30.0, 31.0):
    ...         seal_rows(Path(folder), 0, plan, read_table(np.array([[age]]), ("age",)), bytes(32))
    Traceback (most recent call last):
        ...
    ValueError: the rows of part 0 are not those it was begun with. ...
    """
    seal = hashlib.blake2b(_digest(plan, rows), key=master, digest_size=32, person=b"privfit-row-seal").digest()
    place = work / "rows" / f"{number:06d}"
    if place.exists():
        if place.read_bytes() != seal:
            raise ValueError(
                f"the rows of part {number} are not those it was begun with. Under the key of this release, other rows "
                "would reveal how they differ. Put the source back as it was and repeat the call, or give the release "
                f"up and remove {work}: what anybody has seen of it counts as released."
            )
        return
    place.parent.mkdir(mode=0o700, exist_ok=True)
    with replacing(place) as temporary:
        write_private(temporary, seal)


def _digest(plan: Plan, rows: Table) -> bytes:
    """Digest of everything that noise is added to, or that is exchanged: numbers, and codes of labels."""
    hashed = hashlib.sha256()
    for _, _, part in plan.parts:
        for column, cells in zip(part.columns, rows.cells(part), strict=True):
            values = part.select([column]).encode(cells) if hasattr(part, "encode") else cells
            hashed.update(f"{column!r} {len(values)} ".encode())
            hashed.update(np.ascontiguousarray(values, dtype=np.float64).data)
    return hashed.digest()
