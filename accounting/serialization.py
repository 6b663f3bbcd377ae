"""Curves as plain data: a family's name, the format's version, and the family's fields.

Fields are numbers, strings, tuples of these, or curves again. JSON writes a float with the digits that
identify it, so a curve survives the trip to the last bit; infinite values, which JSON lacks, go as strings.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from privfit.accounting.base import TradeOffCurve

__all__ = ["FORMAT_VERSION", "from_dict", "to_dict"]

FORMAT_VERSION = 1


def to_dict(curve: TradeOffCurve) -> dict[str, Any]:
    """Plain data of a curve (see `TradeOffCurve.to_dict`).

    Examples
    --------
    >>> from privfit.accounting.laplace import laplace
    >>> to_dict(laplace(0.3))
    {'curve': 'LaplaceCurve', 'version': 1, 'a': 0.3}
    """
    fields = {f.name: _encode(getattr(curve, f.name)) for f in dataclasses.fields(curve)}
    return {"curve": type(curve).__name__, "version": FORMAT_VERSION, **fields}


def from_dict(data: dict[str, Any]) -> TradeOffCurve:
    """Curve of plain data (see `TradeOffCurve.from_dict`).

    Examples
    --------
    >>> from_dict({'curve': 'LaplaceCurve', 'version': 1, 'a': 0.3})
    LaplaceCurve(a=0.3)
    """
    if not isinstance(data, dict) or "curve" not in data:
        raise ValueError("data must be a dictionary written by to_dict, with the key 'curve'.")
    if data.get("version") != FORMAT_VERSION:
        raise ValueError(
            f"version must be {FORMAT_VERSION}, got {data.get('version')!r}; "
            "read the curve with the privfit release that wrote it."
        )
    family = TradeOffCurve.registry.get(data["curve"])
    if family is None:
        raise ValueError(
            f"curve must be one of {', '.join(sorted(TradeOffCurve.registry))}, got {data['curve']!r}."
        )
    names = {f.name for f in dataclasses.fields(family)}
    given = {k: _decode(v) for k, v in data.items() if k not in ("curve", "version")}
    if set(given) != names:
        raise ValueError(f"{data['curve']} needs the keys {sorted(names)}, got {sorted(given)}.")
    return family(**given)


def _encode(value: Any) -> Any:
    if isinstance(value, TradeOffCurve):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_encode(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        return TradeOffCurve.from_dict(value)
    if isinstance(value, list):
        return tuple(_decode(v) for v in value)
    if value in ("inf", "-inf"):
        return float(value)
    return value
