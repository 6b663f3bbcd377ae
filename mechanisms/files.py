"""A release as a Parquet file: the table, and its law as JSON in the file's metadata.

Whoever has the file can fit with the right correction, or is refused: a missing law, columns that are not
those of the law, values off the law's grid, or a checksum that does not fit. The checksum finds accidents
and half-made edits; it is no signature.
"""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from privfit.accounting.validation import check_choice
from privfit.mechanisms.additive import AdditiveLaw
from privfit.mechanisms.blocks import check_part
from privfit.mechanisms.categories import Categories
from privfit.mechanisms.domains import as_domains, domain_from_dict
from privfit.mechanisms.grid import ROUNDINGS
from privfit.mechanisms.law import Law
from privfit.mechanisms.product import Product
from privfit.mechanisms.releasing import Release

__all__ = ["load_release", "save_release"]

KEY = b"privfit"
FORMAT = 1
KINDS = ("numpy", "pandas", "polars", "pyarrow")


def save_release(release: Release, path: Any, allow_insecure: bool = False) -> None:
    """Write a release as Parquet (see `Release.save`)."""
    import pyarrow.parquet as pq

    if not release.secure and allow_insecure is not True:
        raise ValueError(
            "the noise of this release can be reproduced (rng was given), so it protects nobody. Release "
            "without rng, or pass allow_insecure=True for a simulation."
        )
    table = _arrow(release)
    domains = as_domains(release.domain)
    promise = release.guarantee()
    record = {
        "format": FORMAT,
        "version": _version(),
        "law": release.law.to_dict(),
        "domain": [part.to_dict() for part in domains],
        "names": list(release.names),
        "columns": list(release.columns),
        "public": list(release.public),
        "grid": _grids(release.law, domains),
        "rounding": release.rounding,
        "n_rows": release.n_rows,
        "kind": release.kind,
        "flat": release.kind == "numpy" and release.frame.ndim == 1,
        "secure": release.secure,
        "guarantee": {
            "slack": promise.slack,
            "exact_fraction": promise.exact_fraction,
            "delta": promise.deltas(),
        },
    }
    text = json.dumps({**record, "checksum": _checksum(record, table)}, allow_nan=False)
    metadata = {**(table.schema.metadata or {}), KEY: text.encode()}
    pq.write_table(table.replace_schema_metadata(metadata), Path(path))


def load_release(path: Any, kind: str | None = None) -> Release:
    """Read a release from a Parquet file.

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
        If there is no such file.
    ValueError
        If the file carries no law, or one that does not fit its table.

    Examples
    --------
    >>> import tempfile
    >>> from privfit.mechanisms import Box, Gaussian, release
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = release(np.zeros((2, 1)), Gaussian(1.0), Box({"x": (0, 1)}))
    ...     done.save(folder + "/x.parquet")
    ...     load_release(folder + "/x.parquet").law
    Gaussian(scale=1.0)
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if kind is not None:
        check_choice("kind", kind, KINDS)
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {path}; pass what Release.save wrote.")
    try:
        table = pq.read_table(Path(path))
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path} is no Parquet file, or a damaged one; pass what Release.save wrote.") from error
    text = (table.schema.metadata or {}).get(KEY)
    if text is None:
        raise ValueError(f"{path} carries no law, so no correction can be chosen; pass what Release.save wrote.")
    try:
        release = _parse(json.loads(text), table, kind or "")
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} was changed after it was saved: {error}") from error
    return release


def _parse(record: Any, table: Any, kind: str) -> Release:
    if record["format"] != FORMAT:
        raise ValueError(f"format must be {FORMAT}; install the privfit that wrote it.")
    checksum = record.pop("checksum")
    law = Law.from_dict(record["law"])
    domains = tuple(domain_from_dict(part) for part in record["domain"])
    for own, part in _pairs(law, domains):
        check_part(own, part)
    names, columns = record["names"], record["columns"]
    if [str(name) for name in names] != table.column_names or table.num_rows != record["n_rows"]:
        raise ValueError("its columns or rows are not those that were saved.")
    if record["grid"] != _grids(law, domains):
        raise ValueError("its grid is not that of its law.")
    _check_cells(law, domains, table)
    if checksum != _checksum(record, table):
        raise ValueError("its checksum does not fit.")
    made = check_choice("kind", kind or record["kind"], KINDS)
    return Release(
        frame=_native(table, made, names, record["flat"] is True),
        law=law,
        domain=domains[0] if len(domains) == 1 else domains,
        columns=tuple(columns),
        public=tuple(record["public"]),
        n_rows=table.num_rows,
        kind=made,
        secure=record["secure"] is True,
        names=tuple(names),
        rounding=check_choice("rounding", record["rounding"], tuple(ROUNDINGS)),
    )


def _pairs(law: Law, domains: tuple[Any, ...]) -> list[tuple[Law, Any]]:
    return law.resolve(domains) if isinstance(law, Product) else [(law, domains[0])]


def _grids(law: Law, domains: tuple[Any, ...]) -> dict[str, float]:
    """Return the grid of every column with added noise."""
    grids: dict[str, float] = {}
    for own, part in _pairs(law, domains):
        if isinstance(own, AdditiveLaw):
            steps = own.grid(part.dim).tolist()
            grids.update(zip(map(str, part.columns), steps, strict=True))
    return grids


def _check_cells(law: Law, domains: tuple[Any, ...], table: Any) -> None:
    for own, part in _pairs(law, domains):
        for column in part.columns:
            cells = table[str(column)]
            if isinstance(part, Categories):
                if not set(cells.unique().to_pylist()) <= set(part.labels[part.columns.index(column)]):
                    raise ValueError(f"column {column!r} holds labels that were not declared.")
                continue
            step = _grids(own, (part,))[str(column)]
            values = cells.to_numpy()
            steps = values / step if values.dtype == np.float64 else np.array([np.nan])
            if not (np.isfinite(steps).all() and (steps == np.rint(steps)).all()):
                raise ValueError(f"column {column!r} holds values that are not on the grid of its law.")


def _checksum(record: dict[str, Any], table: Any) -> str:
    digest = hashlib.blake2b(digest_size=16)
    digest.update(json.dumps(record, sort_keys=True).encode())
    for name in record["columns"]:
        cells = table[str(name)]
        if str(name) in record["grid"]:
            digest.update(np.ascontiguousarray(cells.to_numpy()).tobytes())
        else:
            digest.update(json.dumps(cells.to_pylist()).encode())
    for name in record["public"]:
        column = table[str(name)]
        digest.update(str(column.type).encode())
        digest.update(json.dumps(column.to_pylist(), default=str).encode())
    return digest.hexdigest()


def _arrow(release: Release) -> Any:
    import pyarrow as pa

    frame, names = release.frame, [str(name) for name in release.names]
    if release.kind == "pyarrow":
        return frame
    if release.kind == "polars":
        return frame.to_arrow()
    if release.kind == "pandas":
        return pa.Table.from_pandas(frame, preserve_index=False)
    columns = frame[:, None] if frame.ndim == 1 else frame
    return pa.table(
        {
            name: columns[:, j].tolist() if frame.dtype == object else columns[:, j].copy()
            for j, name in enumerate(names)
        }
    )


def _native(table: Any, kind: str, names: list[Any], flat: bool) -> Any:
    plain = table.replace_schema_metadata(None)
    if kind == "pyarrow":
        return plain
    if kind == "polars":
        import polars

        return polars.from_arrow(plain)
    if kind == "pandas":
        frame = plain.to_pandas()
        frame.columns = names
        return frame
    cells = [column.to_numpy() for column in plain.columns]
    numeric = all(column.dtype.kind in "biuf" for column in cells)
    columns = [column.astype(np.float64 if numeric else object) for column in cells]
    return columns[0] if flat else np.column_stack(columns)


def _version() -> str:
    try:
        return version("privfit")
    except PackageNotFoundError:
        return "unknown"
