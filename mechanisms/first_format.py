"""The checksum of files that privfit 0.1.0 wrote (format 1): one over the record and all columns together."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["first_checksum"]


def first_checksum(record: Mapping[str, Any], table: Any) -> str:
    """Return the checksum of a file of the first format.

    Parameters
    ----------
    record : mapping
        Without its checksum.
    table : pyarrow.Table

    Examples
    --------
    >>> import pyarrow as pa
    >>> record = {"columns": ["x"], "public": [], "grid": {"x": 0.5}}
    >>> first_checksum(record, pa.table({"x": [0.5]}))
    'ffb8e3c41e85acf46f433404e2e2a712'
    """
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
