"""Reading record ids: integers or text, one per person, none missing, none twice.

These checks look at cells of the id column, and may: neighbouring tables differ in what one record holds and agree on
which records there are, so a refusal that depends on ids alone is the same for both. They run on the holder's side
before anything is drawn or spent; ids are never released, and no message holds one.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["DIGEST_BYTES", "digests", "read_ids"]

DIGEST_BYTES = 16
"""Two of 1e9 ids share a digest with probability 1.5e-21, and then the second counts as released: the safe side."""

KINDS = {str: "text", int: "integers"}


def read_ids(ids: Any) -> tuple[str, list[Any]]:
    """Return the kind of some ids, "integers" or "text", and the ids, or raise.

    Parameters
    ----------
    ids : sequence, ndarray, or pandas, polars or pyarrow column
        One id per row, in the table's order.

    Returns
    -------
    kind : str
        Empty if there are no ids.
    ids : list

    Raises
    ------
    TypeError
        If the column has a type whose values are no ids (real numbers, dates), or mixes integers and text.
    ValueError
        If ids are missing.

    Examples
    --------
    >>> read_ids(np.array([7, 12]))
    ('integers', [7, 12])
    """
    cells = _cells(ids)
    found = {type(cell) for cell in cells}
    if len(found) <= 1 and found <= set(KINDS):
        return KINDS[found.pop()] if found else "", cells
    missing = sum(map(_is_missing, cells))
    if missing:
        raise ValueError(
            f"ids must be there for every row, got {missing} of {len(cells)} missing: a record without an id cannot "
            "be told from one that was released before. Leave these rows out, or find their ids."
        )
    raise TypeError("ids must be all integers or all text; convert them to one type, always the same for one book.")


def digests(cells: list[Any], key: bytes) -> list[bytes]:
    """Return the keyed digests of ids, or raise if an id occurs twice.

    Parameters
    ----------
    cells : list of int or list of str
    key : bytes

    Raises
    ------
    ValueError
        If several rows have one id.

    Examples
    --------
    >>> len(digests([7, 12], bytes(32))[0])
    16
    """
    plain = hashlib.blake2b(key=key, digest_size=DIGEST_BYTES, person=b"privfit-records")
    out = []
    for cell in cells:
        own = plain.copy()
        # hexadecimal, because Python refuses to write out integers of thousands of decimal digits
        own.update(_text(cell) if isinstance(cell, str) else format(cell, "x").encode())
        out.append(own.digest())
    repeated = len(out) - len(set(out))
    if repeated:
        raise ValueError(
            f"ids must be distinct, got {repeated} of {len(out)} rows with the id of an earlier row: the guarantee is "
            "for one row, and a person with k rows has that of `group(k)` only. Make one row per person, or let "
            "something smaller than a person (a visit) have the ids and say so."
        )
    return out


def _text(cell: str) -> bytes:
    """The bytes of a text; the same for all ways to write its characters, which look and mean the same."""
    return (cell if cell.isascii() else unicodedata.normalize("NFC", cell)).encode("utf-8", "surrogatepass")


def _cells(ids: Any) -> list[Any]:
    import narwhals as nw

    if isinstance(ids, np.ma.MaskedArray):
        raise TypeError("ids must be a plain array, got a masked one; leave out the rows without an id.")
    if isinstance(ids, np.ndarray):
        if ids.ndim != 1:
            raise ValueError(f"ids must be one column of shape (n,), got {ids.ndim} dimensions.")
        if ids.dtype.kind not in "iuUTO":
            raise _no_ids(ids.dtype)
        return list(ids.tolist())
    if isinstance(ids, Sequence) and not isinstance(ids, (str, bytes)):
        return [c.item() if isinstance(c, np.integer) else c for c in ids]
    series = nw.from_native(ids, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        raise TypeError(f"ids must be a column or a sequence with one id per row, got {type(ids).__name__}.")
    dtype = series.dtype
    if not (dtype.is_integer() or dtype in (nw.String, nw.Categorical, nw.Enum, nw.Object, nw.Unknown)):
        raise _no_ids(dtype)
    if dtype.is_integer() and series.null_count():  # pandas would give real numbers
        return [None if gone else 0 for gone in series.is_null().to_list()]
    return list(series.to_list())


def _is_missing(cell: Any) -> bool:
    return cell is None or (isinstance(cell, float) and cell != cell) or type(cell).__name__ in ("NAType", "NaTType")


def _no_ids(dtype: Any) -> TypeError:
    return TypeError(
        f"ids must be integers or text, got dtype {dtype}: real numbers lose digits and dates are shared. Convert the "
        "column; one that became real because of missing ids needs these rows left out first."
    )
