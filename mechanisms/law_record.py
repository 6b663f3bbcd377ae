"""The record that travels with a released table: its law, domain and promise, as JSON with a checksum.

A header says what every file of a release has in common, before a row is written; a record adds what one file holds:
its Arrow types, its rows and the digests of its contents. The checksum is taken over all of it, so that
whatever was changed by accident or by half is found; it is no signature.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from privfit.mechanisms.additive import AdditiveLaw
from privfit.mechanisms.columns import Column
from privfit.mechanisms.plan import Plan

__all__ = ["FORMAT", "KEY", "KINDS", "MANIFEST", "Header", "checksum", "part_name", "promise_of", "sealed"]

KEY = b"privfit"
"""Where the record stands in the metadata of a Parquet or Arrow file."""

MANIFEST = "_privfit.json"
"""The record of a release in parts, in its folder."""

FORMAT = 2

KINDS = ("numpy", "pandas", "polars", "pyarrow")


@dataclass(frozen=True)
class Header:
    """What all files of one release say, whatever rows they hold. Picklable, and free of data and of keys.

    Parameters
    ----------
    plan : Plan
    names : tuple of str or int
        All columns in the order of the table.
    kind : {"numpy", "pandas", "polars", "pyarrow"}
        What `load_release` makes of the table unless told otherwise.
    secure : bool
        False if the noise came from a reproducible source.
    flat : bool
        Whether a numpy release has shape (n,).
    release_id : str
        32 hexadecimal digits that tell one release from another; drawn, and derived from nothing.
    version : str
        Of the privfit that wrote it.

    Examples
    --------
    >>> from privfit.mechanisms import Box, Gaussian
    >>> from privfit.mechanisms.plan import plan_release
    >>> header = Header(plan_release(Gaussian(20.0), Box({"age": (17, 90)})), ("age",), "pandas")
    >>> header.record["grid"]
    {'age': 0.015625}
    """

    plan: Plan
    names: tuple[Column, ...]
    kind: str
    secure: bool = True
    flat: bool = False
    release_id: str = field(default_factory=lambda: secrets.token_hex(16))
    version: str = field(default_factory=lambda: _version())

    def __post_init__(self) -> None:
        """Check that the columns are those of the plan, and that their names stay distinct in a file."""
        self.plan.order(self.names)
        if len(set(self.texts)) != len(self.names):
            raise ValueError(f"column names must be distinct as strings, got {', '.join(map(repr, self.names))}.")
        try:
            "".join(self.texts).encode()
        except UnicodeEncodeError as error:
            raise ValueError("column names must be Unicode text without lone surrogates.") from error

    @property
    def texts(self) -> tuple[str, ...]:
        """The names as a file writes them."""
        return tuple(str(name) for name in self.names)

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns with noise, in the order of the table."""
        return tuple(name for name in self.names if name in self.plan.noisy)

    @property
    def public(self) -> tuple[Column, ...]:
        """Columns published unchanged, in the order of the table."""
        return tuple(name for name in self.names if name in self.plan.public)

    @cached_property
    def grid(self) -> dict[str, float]:
        """The grid of every column with added noise, by its name in a file."""
        return _grids(self.plan)

    @cached_property
    def record(self) -> dict[str, Any]:
        """The header as plain numbers, strings and lists."""
        return {
            "format": FORMAT,
            "version": self.version,
            "release": self.release_id,
            "law": self.plan.law.to_dict(),
            "domain": [part.to_dict() for part in self.plan.domains],
            "names": list(self.names),
            "columns": list(self.columns),
            "public": list(self.public),
            "grid": self.grid,
            "rounding": self.plan.rounding,
            "kind": self.kind,
            "flat": self.flat,
            "secure": self.secure,
            "guarantee": promise_of(self.plan),
        }

    def metadata(
        self, types: Sequence[str], rows: int, digests: Sequence[str], part: int | None = None
    ) -> dict[bytes, bytes]:
        """Return the metadata of a file that holds some rows.

        Parameters
        ----------
        types : sequence of str
            Arrow types of the columns, in order (see `privfit.mechanisms.formats.type_names`).
        rows : int
        digests : sequence of str
            What `privfit.mechanisms.digests.content_digests` returned for the rows, in order.
        part : int, optional
            Number of the file in a partitioned release.

        Returns
        -------
        dict
            ``{b"privfit": record as JSON}``.
        """
        own = {"types": list(types), "n_rows": rows, "digests": list(digests), "part": part}
        return {KEY: sealed({**self.record, **own}).encode()}


def sealed(record: Mapping[str, Any]) -> str:
    """Return a record as JSON with its checksum.

    Examples
    --------
    >>> sealed({"format": 2})
    '{"format": 2, "checksum": "0b75524436fe6639e537ecc4f6f3c4e3"}'
    """
    return json.dumps({**record, "checksum": checksum(record)}, allow_nan=False)


def checksum(record: Mapping[str, Any]) -> str:
    """Return the BLAKE2b checksum of a record, whatever the order and spacing of its JSON."""
    text = json.dumps(record, sort_keys=True, allow_nan=False)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def part_name(number: int) -> str:
    """Return the file name of a part of a release.

    Examples
    --------
    >>> part_name(7)
    'part-000007.parquet'
    """
    return f"part-{number:06d}.parquet"


def _grids(plan: Plan) -> dict[str, float]:
    grids: dict[str, float] = {}
    for columns, own, part in plan.parts:
        if isinstance(own, AdditiveLaw):
            grids.update(zip(map(str, columns), own.grid(part.dim).tolist(), strict=True))
    return grids


def promise_of(plan: Plan) -> dict[str, Any]:
    """Return the guarantee in numbers: slack, share of exact rows, delta at some epsilon."""
    promise = plan.guarantee()
    return {"slack": promise.slack, "exact_fraction": promise.exact_fraction, "delta": promise.deltas()}


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("privfit")
    except PackageNotFoundError:
        return "unknown"
