r"""Which law of each kind to plan with: smallest predicted error among those that meet the target.

Of generalised Laplace noise every integer shape, of zero-inflated noise every delta0 below the target's delta meets
the target with some scale; the predicted error decides (noise alone would always take delta0 = 0). Labels share a
record's epsilon with the numeric columns: with e for each of L labels, the columns keep ``(epsilon - L e, delta)``,
and e minimises the predicted error, too. Epsilons that add are safe; the exact curve of the parts
(`mechanisms.calibrate_parts`) saves a little more.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privfit.estimators.plan_budget import COARSE, FINE, Parts, as_box, calibrated
from privfit.mechanisms import (
    Gaussian,
    Laplace,
    Law,
    Product,
    RandomizedResponse,
    SymmetricLaplace,
    ZeroInflatedLaplace,
    calibrate_parts,
    remaining_budget,
)
from privfit.mechanisms.zero_inflated_calibration import check_room, limit_of_delta0

__all__ = ["MECHANISMS", "Found", "search"]

Error = Callable[[Law], float]
Say = Callable[[str], None]
MECHANISMS = ("gaussian", "laplace", "symmetric-laplace", "generalized-laplace", "zil")
CLASSES: dict[str, Any] = {
    "gaussian": Gaussian,
    "laplace": Laplace,
    "symmetric-laplace": SymmetricLaplace,
    "generalized-laplace": SymmetricLaplace,
    "zil": ZeroInflatedLaplace,
}
_SHARES = (0.08, 0.17, 0.3, 0.45, 0.65)
"""Shares of epsilon for the labels that are tried before the best is refined."""
_ATOMS = (0.01, 0.1, 0.3, 0.6, 0.85, 0.96)
"""The same for delta0 over its limit."""


@dataclass(frozen=True)
class Found:
    """A mechanism with its law, or the reason why there is none.

    Examples
    --------
    >>> Found("zil", None, "delta is 0").law is None
    True
    """

    mechanism: str
    law: Law | None
    reason: str = ""


def search(mechanisms: Sequence[str], target: Any, domain: Any, protect: str, error: Error, say: Say) -> list[Found]:
    """Return the best law of each mechanism for a target, in the order asked for.

    Parameters
    ----------
    mechanisms : sequence of str
        Some of `MECHANISMS`.
    target : Budget, GDP, Advantage, ErrorRates or TradeOffCurve
    domain : Box, Ball, Categories or tuple of them
    protect : {"record", "attribute"}
    error : callable
        Predicted error of a law; raises where the task cannot be done under it.
    say : callable
        Told what is being done.

    Examples
    --------
    >>> from privfit.accounting import Budget
    >>> from privfit.mechanisms import Box
    >>> error = lambda law: float(np.sum(law.variance))
    >>> search(["gaussian"], Budget(1.0, 1e-5), Box({"x": (0, 1)}), "record", error, lambda text: None)[0].law
    Product({'x': Gaussian(scale=3.7...)})
    """
    parts = Parts.of(domain)
    if parts.numeric is None:
        say("randomized-response")
        return [_labels_only(parts, target, protect)]
    found = []
    for name in mechanisms:
        say(name)
        try:
            found.append(Found(name, _best(name, target, parts, domain, protect, error)))
        except (ValueError, ArithmeticError, TypeError, NotImplementedError) as reason:
            found.append(Found(name, None, str(reason)))
    return found


def _labels_only(parts: Parts, target: Any, protect: str) -> Found:
    if len(parts.labels) == 1 or protect == "attribute":
        laws: dict[Any, Law] = {
            c: RandomizedResponse.calibrate(target, own, protect) for c, own in parts.labels.items()
        }
        return Found("randomized-response", Product(laws))
    domain = tuple(parts.labels.values())
    law = calibrate_parts(target, dict.fromkeys(parts.labels, RandomizedResponse), domain, protect)
    return Found("randomized-response", law)


def _best(name: str, target: Any, parts: Parts, domain: Any, protect: str, error: Error) -> Law:
    divide = _divider(target, parts, domain, protect, error)
    if name == "generalized-laplace":
        return _best_shape(target, parts, divide, error)
    if name == "zil":
        return _best_atom(target, divide, error)
    return divide(CLASSES[name], {}, None, FINE)[0]


Divide = Callable[..., tuple[Law, float | None]]


def _divider(target: Any, parts: Parts, domain: Any, protect: str, error: Error) -> Divide:
    """Return a function from a kind of noise to the law of the record, and the labels' share of epsilon.

    The function takes a class, its parameters, and the share if it is known already.
    """
    from privfit.accounting import Budget

    where = parts.numeric
    assert where is not None

    def divide(
        cls: Any, parameters: Mapping[str, Any], share: float | None, rtol: float = COARSE
    ) -> tuple[Law, float | None]:
        kind = tuple(sorted(parameters.items()))
        if not parts.labels:
            return parts.law(calibrated(cls, kind, target, where, protect, rtol), None), None
        if protect == "attribute":
            each = {c: RandomizedResponse.calibrate(target, own, protect) for c, own in parts.labels.items()}
            numeric = calibrated(cls, kind, target, where, protect, rtol)
            return Product({tuple(where.columns): numeric, **each}), None
        if not isinstance(target, Budget):
            kinds = {tuple(where.columns): functools.partial(cls, **parameters)}
            return calibrate_parts(target, kinds | dict.fromkeys(parts.labels, RandomizedResponse), domain), None
        count = len(parts.labels)

        def at(wanted: float, rtol: float = rtol) -> Law:
            epsilon = wanted * target.epsilon / count
            left = remaining_budget(target.epsilon, target.delta, [epsilon] * count, as_box(where))
            return parts.law(calibrated(cls, kind, left, where, protect, rtol), epsilon)

        if share is None:
            share = _smallest(lambda wanted: error(at(wanted, COARSE)), _SHARES)
        return at(share), share

    return divide


def _smallest(cost: Callable[[float], float], grid: Sequence[float]) -> float:
    """Return the minimiser in (0, 1): the best of a grid, refined by the parabola through it in the logit."""
    values = [cost(point) for point in grid]
    best = int(np.argmin(values))
    if 0 < best < len(grid) - 1 and np.isfinite(values[best - 1 : best + 2]).all():
        logits = [math.log(p / (1 - p)) for p in grid[best - 1 : best + 2]]
        curve = np.polyfit(logits, np.log(values[best - 1 : best + 2]), 2)
        refined = float(1.0 / (1.0 + math.exp(curve[1] / (2.0 * curve[0])))) if curve[0] > 0 else grid[best]
        if cost(refined) <= values[best]:
            return refined
    return grid[best]


def _best_shape(target: Any, parts: Parts, divide: Divide, error: Error) -> Law:
    """Start near dim/2 + 1, where small deltas have their best shape, and walk downhill."""
    assert parts.numeric is not None
    tried: dict[int, float] = {}
    share: float | None = None

    def cost(shape: int) -> float:
        nonlocal share
        if shape < 1:
            return math.inf
        if shape not in tried:
            # The split hardly depends on the shape: found once, and again for the best shape.
            law, found = divide(SymmetricLaplace, {"shape": shape}, share)
            share = found if share is None else share
            tried[shape] = error(law)
        return tried[shape]

    best = start = parts.numeric.dim // 2 + 1
    while True:
        try:
            step = min((best, best + 1, best - 1), key=cost)
        except (ArithmeticError, ValueError):
            if best not in tried:
                raise
            break
        if step == best:
            break
        best = step
    kept = share if best == start else None
    return divide(SymmetricLaplace, {"shape": best}, kept, FINE)[0]


def _best_atom(target: Any, divide: Divide, error: Error) -> Law:
    limit = limit_of_delta0(target, 1)
    check_room(target, 1e-12 * limit)
    share = divide(ZeroInflatedLaplace, {"delta0": _ATOMS[1] * limit}, None)[1]

    def law(fraction: float, rtol: float) -> Law:
        return divide(ZeroInflatedLaplace, {"delta0": fraction * limit}, share, rtol)[0]

    return law(_smallest(lambda fraction: error(law(fraction, COARSE)), _ATOMS), FINE)
