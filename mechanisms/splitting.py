r"""Dividing one budget between the parts of a record: numeric columns, labels, or any list of laws.

The parts of a record compose, so the guarantee of the whole is the curve of the `Product`. A part i alone would
need noise of size a_i; with shares w_i that sum to one it gets size s a_i / w_i, and the common factor s is the
smallest for which the product meets the target: nothing of the budget is left over, whatever the shares. The
shares are those of the smallest cost. The default cost is the product over the parts of the factor by which noise
inflates the variance of a mean, for data that are uniform on the domain:

    added noise           1 + mean_j (variance of the noise)_j / (variance of a uniform column)_j
    randomised response   1/(p - q)^2,  p = P(label kept), q = P(a given other label)

Without the curves: labels with epsilon_j and (e, d)-private numbers make an (e + sum epsilon_j, d)-private row.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privfit.accounting.validation import check_choice, check_number
from privfit.mechanisms.additive import AdditiveLaw
from privfit.mechanisms.calibration import check_releases, laws_by_size, repeated
from privfit.mechanisms.domain import Ball, Box
from privfit.mechanisms.domains import find_domain
from privfit.mechanisms.law import Law, check_protect
from privfit.mechanisms.product import Product
from privfit.mechanisms.randomized_response import EPSILON_MAX, RandomizedResponse
from privfit.mechanisms.slack import calibrate_charged, tighten

if TYPE_CHECKING:
    from privfit.accounting import Budget

__all__ = ["calibrate_parts", "remaining_budget", "variance_inflation"]

CRITERIA = ("product", "sum", "worst")


def variance_inflation(law: Law, domain: Any) -> float:
    """Return the factor by which a law inflates the variance of a mean, for data uniform on the domain.

    Parameters
    ----------
    law : Law
        An additive law or `RandomizedResponse`.
    domain : Box, Ball or Categories

    Returns
    -------
    float
        At least 1; the mean over the columns of an additive law.

    Examples
    --------
    >>> from privfit.mechanisms import Gaussian
    >>> variance_inflation(Gaussian(1.0), Box({"x": (0, 1)}))
    13.0
    """
    if isinstance(law, RandomizedResponse):
        keep = law.keep_probability
        return (keep - (1 - keep) / (law.categories - 1)) ** -2.0
    if not isinstance(domain, (Box, Ball)):
        raise TypeError(f"domain must be a Box or a Ball for {type(law).__name__}, got {type(domain).__name__}.")
    uniform = domain.radius**2 / (domain.dim + 2) if isinstance(domain, Ball) else np.square(domain.ranges) / 12
    return float(1 + np.mean(np.broadcast_to(law.variance, domain.dim) / uniform))


@dataclass(frozen=True)
class _Free:
    """A part whose noise is to be found: its columns, its law of a size, and the size it would need alone."""

    key: Any
    make: Callable[[float], Law]
    alone: float


def calibrate_parts(
    target: Any,
    parts: Mapping[Any, Any],
    domain: Any,
    protect: str = "record",
    *,
    criterion: str | Callable[[Product], float] = "product",
    share: Mapping[Any, float] | None = None,
    releases: int = 1,
) -> Product:
    """Return laws for the parts of a record that meet one target together, with the budget split best.

    Parameters
    ----------
    target : Budget, GDP, Advantage, ErrorRates or TradeOffCurve
        What the whole record must meet, sampler's slack included as in ``Law.calibrate``.
    parts : mapping
        ``{column or tuple of columns: kind}``. A kind is a class of laws (``Gaussian``, ``RandomizedResponse``,
        ...), a class with some of its parameters (``functools.partial(SymmetricLaplace, shape=2)``, also with
        ``shape="best"`` or ``relative_scales=...``), or a finished law, which is kept as it is.
    domain : Box, Ball, Categories or tuple of them
        The declared domain of all columns.
    protect : {"record", "attribute"}
        At attribute level no budget is divided: each part meets the target by itself.
    criterion : {"product", "sum", "worst"} or callable
        Cost that the split minimises: product, sum or largest of the parts' `variance_inflation`; or a function
        from the `Product` to a number.
    share : mapping, optional
        ``{key of parts: weight > 0}`` for every part that is not finished, instead of a criterion: the noise of a
        part is what it would need alone, over its share.
    releases : int
        Number of releases of the same records that meet the target together.

    Returns
    -------
    Product
        Meets the target, and fails it with all noise smaller by a relative 1e-6.

    Raises
    ------
    TypeError, ValueError
        If a part is not of these kinds, or the finished laws leave nothing of the target.

    Examples
    --------
    >>> from privfit.accounting import Budget
    >>> from privfit.mechanisms import Box, Categories, Gaussian, RandomizedResponse
    >>> domain = (Box({"age": (17, 90)}), Categories({"income": ["low", "high"]}))
    >>> law = calibrate_parts(Budget(4.0, 1e-6), {"age": Gaussian, "income": RandomizedResponse}, domain)
    >>> law.guarantee(domain).record.delta(4.0) <= 1e-6
    True
    """
    if not isinstance(parts, Mapping) or not parts:
        raise TypeError("parts must be a non-empty mapping {column or tuple of columns: kind of law}.")
    level, count = check_protect(protect), check_releases(releases)
    cost = _criterion(criterion, domain)
    kept = {key: kind for key, kind in parts.items() if isinstance(kind, Law)}
    free = [_free(k, kind, target, domain, level, count) for k, kind in parts.items() if k not in kept]
    if not free:
        raise ValueError("parts must hold at least one class of laws to calibrate, all of them are finished laws.")
    if kept:
        _check_kept(Product(kept), target, domain, level, count)

    def product(sizes: Sequence[float]) -> Product:
        made = {part.key: part.make(size) for part, size in zip(free, sizes, strict=True)}
        return Product({key: made.get(key, kind) for key, kind in parts.items()})

    eta = count * product([part.alone for part in free]).slack(domain)
    if level == "attribute":
        if share is not None:
            raise ValueError("share must not be given with protect='attribute': there each part has all of the target.")
        return product([_least(part, target, domain, count, eta) for part in free])
    last = 1.0

    def split(weights: Sequence[float], rtol: float) -> Product:
        nonlocal last
        base = [part.alone / weight for part, weight in zip(free, weights, strict=True)]

        def curve(size: float) -> Any:
            return repeated(product([size * b for b in base]).tradeoff(domain), count)

        last = calibrate_charged(curve, target, eta, rtol=rtol, start=last)
        return product([last * b for b in base])

    weights = _weights(share, free) if share is not None else _cheapest(split, cost, len(free))
    return split(weights, 1e-6)


def _free(key: Any, kind: Any, target: Any, domain: Any, protect: str, releases: int) -> _Free:
    partial = isinstance(kind, functools.partial)
    cls, parameters = (kind.func, dict(kind.keywords)) if partial else (kind, {})
    if not (isinstance(cls, type) and issubclass(cls, (AdditiveLaw, RandomizedResponse))):
        raise TypeError(
            f"parts[{key!r}] must be a class of laws, functools.partial of one, or a finished law, got {kind!r}."
        )
    where = find_domain(domain, key if isinstance(key, tuple) else (key,))
    alone: Any = cls.calibrate(target, where, protect, releases=releases, **parameters)
    if isinstance(alone, RandomizedResponse):
        k = alone.categories
        return _Free(key, lambda size: RandomizedResponse(min(1 / size, EPSILON_MAX), k), 1 / alone.epsilon)
    relative = parameters.pop("relative_scales", None)
    # Of shape "best" it is the law found alone, perhaps a Gaussian one, that says what to make.
    fixed = {name: getattr(alone, name) for name in parameters if hasattr(alone, name)}
    make = laws_by_size(type(alone), where, relative, fixed)
    return _Free(key, make, float(alone.scales(where.dim)[0] / make(1.0).scales(where.dim)[0]))


def _check_kept(kept: Product, target: Any, domain: Any, protect: str, releases: int) -> None:
    from privfit.accounting.calibration import as_target

    curve = repeated(kept.tradeoff(domain, protect), releases)
    if not as_target(tighten(target, releases * kept.slack(domain))).met_by(curve):
        raise ValueError(
            f"the finished laws {kept} already use up {target}, nothing is left for the other parts. "
            "Give them more noise, or loosen the target."
        )


def _least(part: _Free, target: Any, domain: Any, releases: int, eta: float) -> float:
    def curve(size: float) -> Any:
        return repeated(Product({part.key: part.make(size)}).tradeoff(domain, "attribute"), releases)

    return calibrate_charged(curve, target, eta, rtol=1e-6, start=part.alone)


def _weights(share: Any, free: Sequence[_Free]) -> list[float]:
    keys = [part.key for part in free]
    if not isinstance(share, Mapping) or set(share) != set(keys):
        raise ValueError(f"share must be a mapping with exactly the keys {keys}, one weight each.")
    raw = [check_number(f"share[{key!r}]", share[key], 0.0, low_open=True) for key in keys]
    return [value / sum(raw) for value in raw]


def _criterion(criterion: Any, domain: Any) -> Callable[[Product], float]:
    if callable(criterion):
        return lambda law: float(criterion(law))
    check_choice("criterion", criterion, CRITERIA, hint="Or pass a function from a Product to its cost.")

    def cost(law: Product) -> float:
        factors = [variance_inflation(own, part) for own, part in law.resolve(domain)]
        if criterion == "product":
            return math.fsum(map(math.log, factors))
        return math.log(math.fsum(factors) if criterion == "sum" else max(factors))

    return cost


def _cheapest(split: Callable[[Sequence[float], float], Product], cost: Any, parts: int) -> list[float]:
    """Return the shares of least cost: of two parts by a grid and a bounded search, of more by a simplex."""
    from scipy.optimize import minimize, minimize_scalar

    def weights(logits: Any) -> list[float]:
        powers = np.exp(np.append(logits, 0.0) - max(0.0, *np.atleast_1d(logits)))
        return [float(w) for w in np.maximum(powers / powers.sum(), 1e-6)]

    def value(logits: Any) -> float:
        found = float(cost(split(weights(logits), 1e-4)))
        return found if math.isfinite(found) else 1e300

    if parts == 1:
        return [1.0]
    if parts == 2:
        grid = np.linspace(-4.0, 4.0, 5)
        centre = float(min(grid, key=value))
        found = minimize_scalar(value, bounds=(centre - 2.0, centre + 2.0), method="bounded", options={"xatol": 0.01})
        return weights(found.x)
    options: Any = {"xatol": 0.02, "fatol": 1e-4, "maxfev": 80 * (parts - 1)}
    return weights(minimize(value, np.zeros(parts - 1), method="Nelder-Mead", options=options).x)


def remaining_budget(epsilon: float, delta: float, labels: Sequence[float], box: Box) -> Budget:
    """Return what is left of a record's budget for its numeric columns when labels take some of epsilon.

    Epsilons add. `calibrate_parts` uses the exact curve of the parts instead and needs a little less noise.

    Parameters
    ----------
    epsilon, delta : float
        Budget of the whole record.
    labels : sequence of floats
        Epsilon of every label of the record.
    box : Box
        The numeric columns.

    Returns
    -------
    Budget
        To be handed to ``calibrate`` of an additive law on `box`.

    Raises
    ------
    ValueError
        If the labels use up epsilon, or the slack of floating-point noise uses up delta.

    Examples
    --------
    >>> remaining_budget(8.0, 1e-5, [2.0], Box({"age": (17, 90)})).epsilon
    6.0
    """
    from privfit.accounting import Budget
    from privfit.mechanisms.gaussian import Gaussian

    total = Budget(epsilon, delta)
    spent = sum(check_number("the epsilon of a label", e, 0.0, low_open=True) for e in labels)
    if spent >= total.epsilon:
        raise ValueError(
            f"the labels must leave some of epsilon = {epsilon:g} for the numeric columns, "
            f"they take {spent:g}. Lower the labels' epsilon or raise the total."
        )
    rest = total.epsilon - spent
    eta = Gaussian(1.0).slack(box)
    # `calibrate` charges the slack at the numeric epsilon; what it is more at the row's is charged here.
    left = total.delta - eta * (math.exp(min(total.epsilon, 700.0)) - math.exp(min(rest, 700.0)))
    if left <= eta * (1.0 + math.exp(min(rest, 700.0))):
        needed = eta * (1.0 + math.exp(min(total.epsilon, 700.0)))
        raise ValueError(
            f"delta must be > {needed:.2g} at epsilon = {epsilon:g}, got {delta:g}: that much is the "
            "numerical slack of floating-point noise. Raise delta, or lower epsilon."
        )
    return Budget(rest, left)
