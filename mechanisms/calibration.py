r"""The smallest noise of a kind that meets a target, alone or over several releases of the same records.

The scales are size * relative scales with one unknown, size, found by `privfit.accounting.calibrate` for the
target with the sampler's slack charged. The curve of m releases is the m-fold composition of one; their slack is
m times that of one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.accounting.validation import check_array, check_choice, check_integer
from privfit.mechanisms.domain import Ball, Box
from privfit.mechanisms.law import Law, check_protect
from privfit.mechanisms.slack import calibrate_charged, tighten

if TYPE_CHECKING:
    from privfit.accounting import TradeOffCurve
    from privfit.mechanisms.additive import AdditiveLaw
    from privfit.mechanisms.symmetric_laplace import SymmetricLaplace

__all__ = ["best_shape", "calibrate_scale", "check_releases", "pure_epsilon", "repeated"]

A = TypeVar("A", bound="AdditiveLaw")
S = TypeVar("S", bound="SymmetricLaplace")

EPSILON_MAX = 100.0
GAIN = 1 - 5e-4
"""A shape is better if it meets the target with this much of the scale."""


def check_releases(releases: Any) -> int:
    """Return `releases` as an integer >= 1 or raise.

    Examples
    --------
    >>> check_releases(2)
    2
    """
    return check_integer("releases", releases, 1, 1_000_000, hint="It counts the releases of the same records.")


def repeated(curve: TradeOffCurve, releases: int) -> TradeOffCurve:
    """Return the curve of several releases under one law.

    Examples
    --------
    >>> from privfit.accounting import gaussian
    >>> repeated(gaussian(0.5), 4)
    GaussianCurve(mu=1.0)
    """
    return curve if releases == 1 else curve.self_compose(releases)


def relative_to(domain: Any, relative_scales: ArrayLike | None) -> NDArray[np.float64]:
    """Return the noise of the coordinates relative to each other, shape (dim,).

    Examples
    --------
    >>> relative_to(Box({"age": (17, 90), "hours": (0, 100)}), None)
    array([ 73., 100.])
    """
    if not isinstance(domain, (Box, Ball)):
        several = " Numbers and labels together: calibrate_parts divides one budget between them."
        raise TypeError(
            f"domain must be a Box or a Ball, got {type(domain).__name__}."
            f"{several if isinstance(domain, (tuple, list)) else ''}"
        )
    if relative_scales is None:
        return domain.ranges if isinstance(domain, Box) else np.ones(domain.dim)
    relative = check_array("relative_scales", relative_scales)
    if relative.shape != (domain.dim,) or not (np.isfinite(relative) & (relative > 0)).all():
        raise ValueError(
            f"relative_scales must be {domain.dim} finite numbers > 0, one per column, got shape {relative.shape}."
        )
    return relative


def laws_by_size(
    cls: type[A], domain: Any, relative_scales: ArrayLike | None, parameters: dict[str, Any]
) -> Callable[[float], A]:
    """Return the map from a size to the law whose scales are size times the relative scales.

    Examples
    --------
    >>> from privfit.mechanisms import Gaussian
    >>> laws_by_size(Gaussian, Box({"age": (17, 90), "hours": (0, 100)}), None, {})(2.0)
    Gaussian(scale=(146.0, 200.0))
    """
    relative = relative_to(domain, relative_scales)
    vector = (isinstance(domain, Box) and domain.dim > 1) or relative_scales is not None

    def law(size: float) -> A:
        return cls(scale=tuple((size * relative).tolist()) if vector else float(size * relative[0]), **parameters)

    return law


def _curves(make: Callable[[float], Law], domain: Any, protect: str, releases: int) -> Callable[[float], TradeOffCurve]:
    def curve(size: float) -> TradeOffCurve:
        law = make(size)
        try:
            return repeated(law.tradeoff(domain, protect), releases)
        except ValueError as error:
            raise ValueError(
                f"{error} {type(law).__name__} noise has curves there only; Gaussian noise, and SymmetricLaplace "
                'with shape="best", have no such limit.'
            ) from error

    return curve


def calibrate_scale(
    cls: type[A],
    target: Any,
    domain: Any,
    protect: str,
    relative_scales: ArrayLike | None,
    parameters: dict[str, Any],
    *,
    releases: int = 1,
    start: float | None = None,
    rtol: float | None = None,
) -> A:
    """Return the additive law with the smallest scales that meets a target (see `AdditiveLaw.calibrate`).

    `start` is a guess of the size and `rtol` its tolerance, that of the class by default.
    """
    check_protect(protect)
    count = check_releases(releases)
    make = laws_by_size(cls, domain, relative_scales, parameters)
    unit = make(1.0)
    size = calibrate_charged(
        _curves(make, domain, protect, count),
        target,
        count * unit.slack(domain),
        cls.calibration_rtol if rtol is None else rtol,
        # c = 1 until better is known: the units of the domain do not matter.
        unit.shift(domain, protect) if start is None else start,
    )
    return make(size)


def best_shape(
    cls: type[S],
    target: Any,
    domain: Any,
    protect: str,
    relative_scales: ArrayLike | None,
    shape: str,
    releases: int = 1,
) -> AdditiveLaw:
    """Return the calibrated law of the best integer shape, or Gaussian noise (shape infinity) if that is best.

    Starting from the Gaussian mechanism, a shape replaces the best one so far if it meets the target with less
    noise: one curve per question. The variance has its minimum near dim/2 + 1 for a small delta, at 1 for a large
    epsilon or delta, and at infinity for small advantages; multiples of the first and then ever smaller steps
    around the best find it to a thousandth of the variance.
    """
    from privfit.accounting.calibration import as_target
    from privfit.mechanisms.gaussian import Gaussian
    from privfit.mechanisms.symmetric_laplace import SHAPE_MAX

    check_choice("shape", shape, ("best",), hint="Or pass an integer >= 1.")
    plain = Gaussian.calibrate(target, domain, protect, relative_scales, releases=releases)
    first = relative_to(domain, relative_scales)[0]
    best, size = 0, float(plain.scales(domain.dim)[0]) / first
    wanted = tighten(target, releases * plain.slack(domain))
    asked: set[int] = set()

    def improves(k: int) -> bool:
        nonlocal best, size
        if k in asked or not 1 <= k <= SHAPE_MAX:
            return False
        asked.add(k)
        make = laws_by_size(cls, domain, relative_scales, {"shape": k})
        try:
            if not as_target(wanted).met_by(_curves(make, domain, protect, releases)(GAIN * size)):
                return False
            law = calibrate_scale(
                cls, target, domain, protect, relative_scales, {"shape": k}, releases=releases, start=size, rtol=1e-4
            )
        except (ArithmeticError, ValueError):
            return False  # beyond what the integrals can certify
        found = float(law.scales(domain.dim)[0]) / first
        if found < size:
            best, size = k, found
            asked.clear()
            asked.add(k)
        return found == size

    start = domain.dim // 2 + 1
    for k in (start, 1, 2 * start, 4 * start, 8 * start):
        improves(k)
    step = max(best // 4, 1)
    while best and step:
        if not improves(best - step) and not improves(best + step):
            step //= 2
    if not best:
        return plain
    law = calibrate_scale(cls, target, domain, protect, relative_scales, {"shape": best}, releases=releases, start=size)
    return law if law.scales(domain.dim)[0] < plain.scales(domain.dim)[0] else plain


def pure_epsilon(target: Any, categories: int | None = None, releases: int = 1) -> float:
    """Return the largest epsilon, at most 100, whose pure epsilon-DP meets a target.

    Parameters
    ----------
    target : Budget, GDP, Advantage, ErrorRates or TradeOffCurve
    categories : int, optional
        Randomised response with so many labels, whose curve is a little better.
    releases : int
        Number of releases of the same records that meet it together.

    Examples
    --------
    >>> from privfit.accounting import Budget
    >>> pure_epsilon(Budget(1.0, 0.0))
    1.0
    """
    from privfit.accounting import Budget, approximate_dp, calibrate, randomized_response
    from privfit.accounting.calibration import as_target

    count = check_releases(releases)

    def curve(epsilon: float) -> TradeOffCurve:
        one = randomized_response(epsilon, categories) if categories else approximate_dp(epsilon, 0.0)
        return repeated(one, count)

    if isinstance(target, Budget) and target.delta == 0:
        epsilon = min(target.epsilon / count, EPSILON_MAX)
        while count > 1 and not target.met_by(curve(epsilon)):
            epsilon *= 1 - 1e-15
        return epsilon
    if as_target(target).met_by(curve(EPSILON_MAX)):
        return EPSILON_MAX
    return min(1 / calibrate(lambda size: curve(min(1 / size, EPSILON_MAX)), target), EPSILON_MAX)
