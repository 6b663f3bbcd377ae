"""Neighbouring relations: which two tables a guarantee speaks about.

A curve bounds ``T(M(D), M(D'))`` over all neighbours D, D'. Amplification and parallel composition are true
for one relation only, so their curves carry its name in ``relation``.
"""

from __future__ import annotations

from typing import Any

__all__ = ["ADD_OR_REMOVE", "REPLACE_ONE", "check_relation", "relation_of"]

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
    inner = [getattr(curve, "base", None), *getattr(curve, "curves", ())]
    return next((name for name in map(relation_of, [c for c in inner if c is not None]) if name), "")


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
