"""Parallel composition: several mechanisms, each run on its own part of the records.

Adding or removing one record touches the part it belongs to and no other. If that part is i, all other outputs
keep their law, so the pair of laws is that of mechanism i: the guarantee is the smallest of the curves,
``delta = max_i delta_i``.

Replacing one record is different when its part depends on its own value (a group-by): the old value leaves part
i, the new one enters part j. For i != j the two outputs are independent and the pair is the product of
"remove one record" under mechanism i and "add one record" under mechanism j; for i = j it is the replacement of
one record under mechanism i, a removal and an addition in a chain, for which `group` gives the bound that
follows from the curve for adding or removing one. The guarantee is the smallest of all of these. If the parts
are fixed beforehand (by row number, by a public attribute), a replacement stays in its part: pass curves for
replacing one record and ``parts="fixed"``, and the smallest of them holds again.
"""

from __future__ import annotations

from privfit.accounting.base import TradeOffCurve
from privfit.accounting.composition import compose
from privfit.accounting.group import group
from privfit.accounting.relation import ADD_OR_REMOVE, REPLACE_ONE, check_relation, relation_of
from privfit.accounting.symmetrized import SymmetrizedCurve, symmetrized
from privfit.accounting.validation import check_choice
from privfit.accounting.wrappers import minimum

__all__ = ["parallel"]

RELATIONS = {"add_remove": ADD_OR_REMOVE, "replace_one": REPLACE_ONE}


def parallel(*curves: TradeOffCurve, relation: str = "add_remove", parts: str = "by_value") -> TradeOffCurve:
    """Guarantee of mechanisms that run on disjoint parts of the records.

    Parameters
    ----------
    *curves : TradeOffCurve
        One for every part, at least one. They speak about adding or removing one record, except with
        ``relation="replace_one", parts="fixed"``, where they speak about replacing one.
    relation : {"add_remove", "replace_one"}
        The neighbours the result speaks about.
    parts : {"by_value", "fixed"}
        Whether a record's part depends on its value, so that a replaced record may change parts.

    Returns
    -------
    TradeOffCurve
        The largest trade-off function below those of all cases.

    Raises
    ------
    ValueError, TypeError
        If there is no curve, something is not a curve, or a curve speaks about other neighbours.

    Examples
    --------
    >>> from privfit.accounting.gaussian import gaussian
    >>> parallel(gaussian(1.0), gaussian(0.5), gaussian(1.0)).delta(1.0) == gaussian(1.0).delta(1.0)
    True
    >>> moved = parallel(gaussian(1.0), gaussian(0.5), relation="replace_one")
    >>> round(moved.delta(0.0) / gaussian(2.0).delta(0.0), 9)
    1.0
    """
    check_choice("relation", relation, RELATIONS)
    check_choice("parts", parts, ("by_value", "fixed"))
    if not curves:
        raise ValueError("parallel must get at least one curve; pass the curve of every part.")
    for curve in curves:
        if not isinstance(curve, TradeOffCurve):
            raise TypeError(f"parallel takes TradeOffCurve objects, got {type(curve).__name__}; build a curve first.")
    moves = relation == "replace_one" and parts == "by_value"
    wanted = REPLACE_ONE if relation == "replace_one" and not moves else ADD_OR_REMOVE
    hint = (
        "A record that changes parts is removed from one and added to another: give curves for adding or removing "
        "one record, or parts='fixed' if a replaced record stays in its part."
        if moves
        else "Give curves for these neighbours, or choose another relation."
    )
    for curve in curves:
        check_relation(curve, wanted, f"relation={relation!r} with parts={parts!r}", hint)
    return _moved(curves) if moves else minimum(*curves)


def _moved(curves: tuple[TradeOffCurve, ...]) -> TradeOffCurve:
    """Smallest curve over all pairs of parts that a replaced record may leave and enter."""
    cases = [group(curve, 2) for curve in dict.fromkeys(curves)]
    pairs = dict.fromkeys((left, entered) for i, left in enumerate(curves) for entered in curves[i + 1 :])
    for left, entered in pairs:
        cases += _leave_and_enter(left, entered)
    return minimum(*cases)


def _leave_and_enter(left: TradeOffCurve, entered: TradeOffCurve) -> list[TradeOffCurve]:
    """A removal and an addition at once; symmetrised, since the replacement may also go the other way."""
    out, into = (c.base if isinstance(c, SymmetrizedCurve) else c for c in (left, entered))
    ways = [symmetrized(compose(out.reversed(), into))]
    if not (relation_of(out) and relation_of(into)) and out.reversed() is not out:
        # a curve that does not say which of its laws has the record may be meant either way
        ways.append(symmetrized(compose(out, into)))
    return ways
