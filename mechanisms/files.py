"""Releases as files: Parquet, Arrow IPC, CSV with its law beside it, or a folder of Parquet parts.

Whoever has the file can fit with the right correction, or is refused: a missing law, columns that are not
those of the law, values off the law's grid, a guarantee that is not the law's, or a checksum that does not fit. The
checksums find accidents and half-made edits; they are no signature.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from privfit.mechanisms.dataset import finish_dataset, write_part
from privfit.mechanisms.digests import PART_ROWS, content_digests
from privfit.mechanisms.domains import as_domains
from privfit.mechanisms.formats import (
    LAW_SUFFIX,
    SUFFIXES,
    canonical,
    csv_table,
    type_names,
    write_arrow,
    write_csv,
    write_parquet,
)
from privfit.mechanisms.law_record import KEY, Header
from privfit.mechanisms.native import to_arrow
from privfit.mechanisms.plan import Plan
from privfit.mechanisms.reader import open_release
from privfit.mechanisms.releasing import Release

__all__ = ["KEY", "load_release", "save_release"]


def save_release(release: Release, path: Any, allow_insecure: bool = False, overwrite: bool = False) -> None:
    """Write a release with its law (see `Release.save`).

    Parameters
    ----------
    release : Release
    path : str or path
        The end of the name says what is written: .parquet or .pq; .arrow, .feather or .ipc; .csv, with the law in
        ``<name>.csv.law.json``. A name without an ending, one that ends in "/", or an empty folder becomes a folder
        of Parquet parts.
    allow_insecure, overwrite : bool

    Raises
    ------
    ValueError
        If the release is not secure and `allow_insecure` is not set, the ending is not known, or the format cannot
        hold the columns.
    FileExistsError
        If the file exists and `overwrite` is not set, or the folder is not empty.
    """
    if not release.secure and allow_insecure is not True:
        raise ValueError(
            "the noise of this release can be reproduced (rng was given), so it protects nobody. Release "
            "without rng, or pass allow_insecure=True for a simulation."
        )
    place, format_ = Path(path), _format(path)
    written = {"folder": [], "csv": [place, place.with_name(place.name + LAW_SUFFIX)]}.get(format_, [place])
    for own in written if not overwrite else []:
        if own.exists():
            raise FileExistsError(
                f"{own} exists, and may be the private table or a release that somebody has. Choose another name, or "
                "pass overwrite=True."
            )
    flat = release.kind == "numpy" and release.frame.ndim == 1
    plan = Plan(release.law, as_domains(release.domain), release.public, release.rounding)
    header = Header(plan, release.names, release.kind, release.secure, flat)
    table = canonical(to_arrow(release.frame, release.kind, header.texts), header)
    if format_ == "folder":
        _write_folder(place, table, header)
        return
    if format_ == "csv":
        table = csv_table(table)
    metadata = header.metadata(type_names(table), table.num_rows, content_digests(table))
    if format_ == "parquet":
        write_parquet(place, table, header, metadata)
    elif format_ == "arrow":
        write_arrow(place, table, metadata)
    else:
        write_csv(place, table, metadata)


def _format(path: Any) -> str:
    text, place = os.fspath(path), Path(path)
    if place.is_dir() or text.endswith(("/", os.sep)) or not place.suffix:
        return "folder"
    if place.suffix.lower() not in SUFFIXES:
        raise ValueError(
            f"path must end in one of {', '.join(SUFFIXES)}, or have no ending for a folder of parts, "
            f"got {place.name!r}."
        )
    return SUFFIXES[place.suffix.lower()]


def _write_folder(place: Path, table: Any, header: Header) -> None:
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise FileExistsError(f"{place} is there and not empty; write a release in parts into a new folder.")
    starts = range(0, max(table.num_rows, 1), PART_ROWS)
    parts = [write_part(place, k, table.slice(s, PART_ROWS), header) for k, s in enumerate(starts)]
    finish_dataset(place, header, parts)


def load_release(path: Any, kind: str | None = None) -> Release:
    """Read a release from a file or a folder that `Release.save`, or a streaming release, wrote.

    Parameters
    ----------
    path : str or path
    kind : {"numpy", "pandas", "polars", "pyarrow"}, optional
        What the table becomes; by default the kind that was released.

    Returns
    -------
    Release

    Raises
    ------
    FileNotFoundError
        If there is nothing at `path`.
    ValueError
        If it carries no law, or one that does not fit its table; the message says what does not fit.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from privfit.mechanisms import Box, Gaussian, release
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = release(np.zeros((2, 1)), Gaussian(1.0), Box({"x": (0, 1)}))
    ...     done.save(folder + "/x.parquet")
    ...     load_release(folder + "/x.parquet").law
    Gaussian(scale=1.0)
    """
    import pyarrow as pa

    reader = open_release(path, kind)
    return reader.release(pa.concat_tables(list(reader.tables())))
