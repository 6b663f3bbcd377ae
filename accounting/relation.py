"""Neighbouring relations: which two tables a guarantee speaks about.

A curve bounds ``T(M(D), M(D'))`` over all neighbours D, D'. Amplification and parallel composition are true
for one relation only, so their curves carry its name in ``relation``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["ADD_OR_REMOVE", "REPLACE_ONE", "check_relation", "common_relation", "relation_of"]

ADD_OR_REMOVE = "add or remove one record"
REPLACE_ONE = "replace one record"


def relation_of(curve: Any) -> str:
    """Neighbouring relation that a curve, or one it is made of, states; empty if none does.

    Examples
    --------
    >>> import privfit.accounting as pa
    >>> relation_of(pa.gaussian(1.0))
    ''
    """
    stated = getattr(curve, "relation", None)
    if isinstance(stated, str) and stated:
        return stated
    inner = [getattr(curve, "base", None), *getattr(curve, "curves", ()), *getattr(curve, "parts", ())]
    return common_relation([c for c in inner if c is not None])


def common_relation(curves: Iterable[Any]) -> str:
    """The one relation that several curves state, empty if none does; they must not contradict each other.

    Examples
    --------
    >>> import privfit.accounting as pa
    >>> common_relation([pa.gaussian(1.0), pa.gaussian(1.0).subsample(0.1)])
    'add or remove one record'
    """
    stated = sorted({name for name in map(relation_of, curves) if name})
    if len(stated) > 1:
        raise ValueError(
            f"curves must be stated for the same neighbours, got some that {stated[0]} and some that {stated[1]}; "
            "use one sampling scheme for all, or cover replacing one record by group(2) of an add-or-remove curve."
        )
    return stated[0] if stated else ""


def check_relation(curve: Any, wanted: str, purpose: str, hint: str) -> None:
    """Raise ValueError if `curve` states another relation than `wanted`.

    Examples
    --------
    >>> import privfit.accounting as pa
    >>> check_relation(pa.gaussian(1.0), ADD_OR_REMOVE, "Poisson sampling", "")
    """
    stated = relation_of(curve)
    if stated not in ("", wanted):
        raise ValueError(f"{purpose} needs a curve for neighbours that {wanted}, got one that must {stated}. {hint}")
