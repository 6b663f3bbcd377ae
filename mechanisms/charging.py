"""Writing a release in a ledger before it is made.

The entry is the release's guarantee: with its numerical slack if the ledger's target is a budget, an advantage or a
pair of error rates, and for the stated law if it is a curve (mu-GDP, say), which no numerical slack whatever can meet;
calibration draws the same line. It is on the disk before any noise is drawn: a crash in
between wastes budget, the opposite order would lose a release that somebody has seen.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from privfit.accounting.targets import Advantage, Budget, ErrorRates
from privfit.mechanisms.law import check_protect

if TYPE_CHECKING:
    from privfit.accounting import Ledger
    from privfit.mechanisms.plan import Plan

__all__ = ["spending"]

_WITH_SLACK = (Budget, Advantage, ErrorRates)


def spending(
    plan: Plan,
    ledger: Ledger | None,
    label: str = "",
    part: str | None = None,
    protect: str = "record",
    rng: Any = None,
) -> AbstractContextManager[Any]:
    """Return the context in which a planned release is to be made; entering it spends, or is refused.

    Parameters
    ----------
    plan : Plan
    ledger : Ledger, optional
        None spends nothing.
    label, part : str, optional
        See `privfit.accounting.Ledger.spend`.
    protect : {"record", "attribute"}
        The level at which `ledger` counts.
    rng : object, optional
        What makes the noise reproducible; such a release cannot be accounted for.

    Raises
    ------
    TypeError, ValueError
        If the parameters do not fit together.

    Examples
    --------
    >>> from privfit.accounting import GDP, Ledger
    >>> from privfit.mechanisms import Box, Gaussian
    >>> from privfit.mechanisms.plan import plan_release
    >>> ledger = Ledger(GDP(1.0))
    >>> with spending(plan_release(Gaussian(4.0), Box({"x": (0, 1)})), ledger, "wave 1") as entry:
    ...     entry.label
    'wave 1'
    """
    check_protect(protect)
    if ledger is None:
        if label or part is not None:
            raise ValueError("label and part describe an entry of a ledger; pass ledger, too, or leave them out.")
        return nullcontext()
    if not callable(getattr(ledger, "reserve", None)):
        opened = " Open the file first: Ledger.open(path)." if isinstance(ledger, (str, os.PathLike)) else ""
        raise TypeError(f"ledger must be a privfit.Ledger, got {type(ledger).__name__}.{opened}")
    if rng is not None:
        raise ValueError("a release with rng protects nobody, so no ledger can account for it; drop rng or ledger.")
    promise = plan.guarantee()
    names = {"record": ("record", "record_law"), "attribute": ("attribute", "attribute_law")}[protect]
    curve = getattr(promise, names[0 if isinstance(ledger.target, _WITH_SLACK) else 1])
    return ledger.reserve(curve, label, part)
