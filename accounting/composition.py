"""Composition: several mechanisms run independently on the same record.

The privacy loss of a product is the sum of the losses. What has an exact rule is combined by it:

    Gaussian curves            mu^2 adds
    zero inflation, slack      1 - prod(1 - delta0_i),  sum of eta_i
    atoms (randomised response)  the atoms' sums, while there are few of them
    atoms and one other curve X  the mixture  delta(eps) = sum_i q_i delta_X(eps - l_i)
    limits of symmetric Laplace  one integral in closed form, with any Gaussian (limit_composition.py)
    adding or removing a record: the two directions of a pair are composed apart, for it has one direction

Everything else stays a list of parts with their counts, so that composing in a loop costs nothing. Its numbers
are computed when they are asked for, as intervals: see convolution.py. For parameters that depend on
earlier results see adaptive.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any

from privfit.accounting.atoms import DiscreteCurve
from privfit.accounting.base import TradeOffCurve
from privfit.accounting.composed import ComposedCurve
from privfit.accounting.gaussian import GaussianCurve
from privfit.accounting.limit import ShapedLimitCurve, SymmetricLaplaceLimitCurve
from privfit.accounting.limit_composition import LimitCompositionCurve, limit_composition
from privfit.accounting.mixture import MixtureCurve, power, product
from privfit.accounting.relation import ADD_OR_REMOVE, common_relation, relation_of
from privfit.accounting.symmetrized import SymmetrizedCurve, symmetrized
from privfit.accounting.validation import check_integer
from privfit.accounting.wrappers import SlackCurve, ZeroInflatedCurve, minimum, shifted, zero_inflated

__all__ = ["ComposedCurve", "compose", "self_compose"]

MAX_ATOMS = 4096


def compose(*curves: TradeOffCurve) -> TradeOffCurve:
    """Curve of several mechanisms run independently on the same record.

    Parameters
    ----------
    *curves : TradeOffCurve
        At least one.

    Returns
    -------
    TradeOffCurve
        Exact where a rule is (see the module); otherwise every number lies between ``bound="lower"`` and
        ``bound="upper"``, and ``precision`` tells how far these are apart.

    Raises
    ------
    TypeError, ValueError
        If something is not a curve, there is none, or two are stated for different neighbours.

    Examples
    --------
    >>> import privfit.accounting as pa
    >>> both = compose(pa.gaussian(1.0), pa.randomized_response(0.5))
    >>> pa.gaussian(1.0).delta(1.0) < both.delta(1.0) < pa.gaussian(1.0).delta(0.5)
    True
    """
    if not curves:
        raise ValueError("compose needs at least one curve; pass the curves of the mechanisms.")
    for curve in curves:
        if not isinstance(curve, TradeOffCurve):
            raise TypeError(f"compose takes TradeOffCurve objects, got {type(curve).__name__}.")
    common_relation(curves)
    return _composed((curve, 1) for curve in curves)


def self_compose(curve: TradeOffCurve, k: int) -> TradeOffCurve:
    """Curve of `k` independent runs of one mechanism.

    Parameters
    ----------
    curve : TradeOffCurve
    k : int
        At least 1.

    Returns
    -------
    TradeOffCurve

    Raises
    ------
    TypeError, ValueError
        If `curve` is not a curve or k not a positive integer.

    Examples
    --------
    >>> import privfit.accounting as pa
    >>> self_compose(pa.randomized_response(0.1), 3).max_loss
    0.30000000000000004
    """
    if not isinstance(curve, TradeOffCurve):
        raise TypeError(f"curve must be a TradeOffCurve, got {type(curve).__name__}.")
    count = check_integer("k", k, 1)
    return curve if count == 1 else _composed([(curve, count)])


@dataclass
class _Parts:
    """What is left when the exact rules have been applied to every curve."""

    eta: float = 0.0
    log_survival: float = 0.0
    mu2: float = 0.0
    atoms: dict[DiscreteCurve, int] = field(default_factory=dict)
    limits: dict[TradeOffCurve, int] = field(default_factory=dict)
    others: dict[TradeOffCurve, int] = field(default_factory=dict)
    one_sided: dict[TradeOffCurve, int] = field(default_factory=dict)


def _composed(curves: Iterable[tuple[TradeOffCurve, int]]) -> TradeOffCurve:
    parts = _Parts()
    for curve, count in curves:
        _sort_into(curve, parts, count)
    inner = _both_directions(parts) if parts.one_sided else _join(parts)
    return shifted(zero_inflated(inner, -math.expm1(parts.log_survival)), parts.eta)


def _both_directions(parts: _Parts) -> TradeOffCurve:
    """Parts seen from both sides: all of them are met in the same direction."""
    found = []
    for turn in (False, True):
        directed = _Parts(mu2=parts.mu2, atoms=dict(parts.atoms), limits=dict(parts.limits), others=dict(parts.others))
        for curve, count in parts.one_sided.items():
            _sort_into(curve.reversed() if turn else curve, directed, count)
        found.append(_join(directed))
        if not turn and all(c.reversed() is c for c in [*parts.atoms, *parts.others]):
            return symmetrized(found[0])
    return minimum(*found)


def _join(parts: _Parts) -> TradeOffCurve:
    """Combine sorted parts by the exact rules as far as they go."""
    atoms, crowded = _joint_atoms(parts.atoms)
    others = parts.others | crowded
    base: TradeOffCurve | None
    if parts.limits and not others:
        base = limit_composition(parts.limits, parts.mu2)
    else:
        others |= parts.limits
        if parts.mu2:
            others[GaussianCurve(math.sqrt(parts.mu2))] = 1
        base = _listed(others)
    if base is None:
        assert atoms is not None
        return atoms
    return base if atoms is None else MixtureCurve(base, atoms)


def _listed(curves: dict[TradeOffCurve, int]) -> TradeOffCurve | None:
    if sum(curves.values()) <= 1:
        return next(iter(curves), None)
    order = sorted(curves, key=lambda c: (type(c).__name__, repr(c)))
    return ComposedCurve(tuple(order), tuple(curves[c] for c in order))


def _joint_atoms(curves: dict[DiscreteCurve, int]) -> tuple[DiscreteCurve | None, dict[TradeOffCurve, int]]:
    """Sum of the atoms as far as they stay few, and the curves that have too many."""
    total: DiscreteCurve | None = None
    crowded: dict[TradeOffCurve, int] = {}
    for curve, count in curves.items():
        raised = power(curve, count, MAX_ATOMS)
        joined = raised if total is None or raised is None else product(total, raised, MAX_ATOMS)
        if joined is None:
            crowded[curve] = count
        else:
            total = joined
    return total, crowded


def _add(counts: dict[Any, int], curve: TradeOffCurve, count: int) -> None:
    counts[curve] = counts.get(curve, 0) + count


@singledispatch
def _sort_into(curve: TradeOffCurve, parts: _Parts, count: int) -> None:
    _add(parts.others, curve, count)


@_sort_into.register
def _(curve: SlackCurve, parts: _Parts, count: int) -> None:
    parts.eta += count * curve.eta
    _sort_into(curve.base, parts, count)


@_sort_into.register
def _(curve: ZeroInflatedCurve, parts: _Parts, count: int) -> None:
    parts.log_survival += count * math.log1p(-curve.delta0)
    _sort_into(curve.base, parts, count)


@_sort_into.register
def _(curve: GaussianCurve, parts: _Parts, count: int) -> None:
    parts.mu2 += count * curve.mu**2


@_sort_into.register
def _(curve: DiscreteCurve, parts: _Parts, count: int) -> None:
    _add(parts.atoms, curve, count)


@_sort_into.register(SymmetricLaplaceLimitCurve)
@_sort_into.register(ShapedLimitCurve)
def _(curve: TradeOffCurve, parts: _Parts, count: int) -> None:
    _add(parts.limits, curve, count)


@_sort_into.register
def _(curve: SymmetrizedCurve, parts: _Parts, count: int) -> None:
    # adding or removing a record has one direction for all parts; replacing one may have another in each
    if relation_of(curve) == ADD_OR_REMOVE:
        _add(parts.one_sided, curve.base, count)
    else:
        _add(parts.others, curve, count)


@_sort_into.register
def _(curve: MixtureCurve, parts: _Parts, count: int) -> None:
    _sort_into(curve.base, parts, count)
    _add(parts.atoms, curve.atoms, count)


@_sort_into.register
def _(curve: LimitCompositionCurve, parts: _Parts, count: int) -> None:
    for limit, times in zip(curve.limits, curve.counts, strict=True):
        _add(parts.limits, limit, count * times)
    parts.mu2 += count * curve.mu**2


@_sort_into.register
def _(curve: ComposedCurve, parts: _Parts, count: int) -> None:
    for part, times in zip(curve.parts, curve.counts, strict=True):
        _sort_into(part, parts, count * times)
