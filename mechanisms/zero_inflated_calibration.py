r"""The pairs (delta0, lambda) of zero-inflated Laplace noise that meet a target.

delta(eps) = delta0 + (1 - delta0) delta_noise(eps): more exact rows need more noise in the others, and no pair
has delta0 >= delta. With lambda given the largest delta0 is found on the scale (1 - delta0)/delta0, which grows
as the law gets more private; with both free, the cost is minimised along the border of the target.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.accounting.validation import check_array
from privfit.mechanisms.additive import check_scale
from privfit.mechanisms.calibration import calibrate_scale, check_releases, laws_by_size, repeated
from privfit.mechanisms.domain import Ball
from privfit.mechanisms.law import check_protect
from privfit.mechanisms.slack import calibrate_charged

if TYPE_CHECKING:
    from privfit.mechanisms.zero_inflated import ZeroInflatedLaplace

__all__ = ["ZilRegion", "cheapest", "check_room", "largest_delta0", "zil_region"]

Floats = NDArray[np.float64]
Z = TypeVar("Z", bound="ZeroInflatedLaplace")


def limit_of_delta0(target: Any, releases: int) -> float:
    """Return the delta0 that alone uses up a target (1 for a target that does not say).

    Examples
    --------
    >>> from privfit.accounting import Advantage, Budget, gaussian
    >>> limit_of_delta0(Budget(1.0, 0.19), 2).__round__(12), limit_of_delta0(gaussian(1.0), 1)
    (0.1, 0.0)
    """
    from privfit.accounting import GDP, Advantage, Budget, ErrorRates, TradeOffCurve

    total = 1.0
    if isinstance(target, Budget):
        total = target.delta
    elif isinstance(target, Advantage):
        total = target.value
    elif isinstance(target, ErrorRates):
        total = 1.0 - target.fpr - target.fnr
    elif isinstance(target, GDP):
        total = 0.0
    elif isinstance(target, TradeOffCurve):
        total = target.infinite_mass
    # Over several releases a record stays hidden if it does in each: 1 - (1 - delta0)^m.
    return -math.expm1(math.log1p(-total) / releases) if total < 1 else 1.0


def check_room(target: Any, delta0: float, releases: int = 1) -> None:
    """Raise ValueError if a fraction `delta0` of exact rows alone uses up the target.

    Examples
    --------
    >>> from privfit.accounting import Budget
    >>> check_room(Budget(1.0, 0.1), 0.05)
    """
    from privfit.accounting import Budget

    limit = limit_of_delta0(target, check_releases(releases))
    if delta0 < limit:
        return
    if limit == 0:
        raise ValueError(f"{target} leaves no room for exact rows, whatever delta0: use SymmetricLaplace.")
    if releases == 1 and isinstance(target, Budget):
        name = f"the target's delta = {target.delta:g}"
    else:
        name = f"{limit:g} to leave anything of {target} for the noise"
    raise ValueError(
        f"delta0 must be smaller than {name}, got {delta0:g}: a fraction delta0 of the rows comes out exactly. "
        "Lower delta0, loosen the target, or use SymmetricLaplace."
    )


def largest_delta0(
    cls: type[Z], target: Any, domain: Any, protect: str, scale: float | Sequence[float], releases: int
) -> Z:
    """Return the law with noise of a given scale and the largest delta0 (see `ZeroInflatedLaplace.calibrate`)."""
    from privfit.accounting import zero_inflated
    from privfit.mechanisms.symmetric_laplace import SymmetricLaplace

    noise, count = SymmetricLaplace(check_scale(scale)), check_releases(releases)
    limit = limit_of_delta0(target, count)
    check_room(target, 1e-12 * limit, count)
    base, eta = noise.tradeoff(domain, check_protect(protect)), count * noise.slack(domain)

    def family(odds: float) -> Any:
        return repeated(zero_inflated(base, 1 / (1 + odds)), count)

    try:
        odds = calibrate_charged(family, target, eta, start=2 / limit)
    except ValueError as error:
        least = SymmetricLaplace.calibrate(target, domain, protect, _shape_of(noise.scale), releases=releases)
        raise ValueError(
            f"scale must be larger, got {scale!r}: this noise alone uses up {target}, which needs more than "
            f"{_text(least.scale)} before any row may come out exactly. Raise scale, or loosen the target."
        ) from error
    return cls(noise.scale, 1 / (1 + odds))


def _shape_of(scale: float | tuple[float, ...]) -> ArrayLike | None:
    return scale if isinstance(scale, tuple) else None


def _text(scale: float | tuple[float, ...]) -> str:
    return f"({', '.join(f'{s:.6g}' for s in scale)})" if isinstance(scale, tuple) else f"{scale:.6g}"


def cheapest(
    cls: type[Z],
    target: Any,
    domain: Any,
    protect: str,
    relative_scales: ArrayLike | None,
    criterion: Callable[[Z], float],
    releases: int,
) -> Z:
    """Return the law of smallest cost on the border of a target (see `ZeroInflatedLaplace.calibrate`).

    A coarse grid of delta0, dense towards both ends, is refined around its best point; each point is calibrated.
    """
    limit = limit_of_delta0(target, check_releases(releases))
    check_room(target, 1e-12 * limit, releases)
    start: float | None = None
    found: dict[float, tuple[float, Z]] = {}

    def cost(logit: float) -> float:
        nonlocal start
        if logit not in found:
            law = _at(cls, target, domain, protect, relative_scales, limit / (1 + math.exp(-logit)), releases, start)
            start = _size(law, domain, relative_scales)
            value = float(criterion(law))
            found[logit] = (value if value == value else math.inf), law
        return found[logit][0]

    grid = np.linspace(-12.0, 6.0, 13)
    for step in (1.5, 0.5, 0.15, 0.05):
        best = min(grid.tolist(), key=cost)
        grid = best + step * np.array([-2 / 3, -1 / 3, 0.0, 1 / 3, 2 / 3])
    value, law = min(found.values(), key=lambda pair: pair[0])
    if not math.isfinite(value):
        raise ValueError("criterion must be finite for some law that meets the target, it is not for any tried.")
    return law


def _at(
    cls: type[Z],
    target: Any,
    domain: Any,
    protect: str,
    relative_scales: ArrayLike | None,
    delta0: float,
    releases: int,
    start: float | None,
) -> Z:
    parameters = {"delta0": delta0}
    return calibrate_scale(cls, target, domain, protect, relative_scales, parameters, releases=releases, start=start)


def _size(law: Any, domain: Any, relative_scales: ArrayLike | None) -> float:
    unit = laws_by_size(type(law), domain, relative_scales, {"delta0": law.delta0})(1.0)
    return float(law.scales(domain.dim)[0] / unit.scales(domain.dim)[0])


@dataclass(frozen=True)
class ZilRegion:
    """The border of the pairs (delta0, lambda) that meet a target; all larger lambda meet it, too.

    Attributes
    ----------
    target : Budget, Advantage or ErrorRates
    delta0 : ndarray of shape (m,)
        Probabilities of an exact row.
    scale : ndarray of shape (m,)
        Smallest lambda over the range of its column, or over the diameter of a ball.
    """

    target: Any
    delta0: Floats
    scale: Floats


def zil_region(
    target: Any,
    domain: Any,
    delta0: ArrayLike | None = None,
    protect: str = "record",
    *,
    releases: int = 1,
) -> ZilRegion:
    """Return the border of the region of (delta0, lambda) that meets a target, for a picture.

    Parameters
    ----------
    target : Budget, Advantage or ErrorRates
    domain : Box or Ball
        Scales are proportional to the ranges of a box.
    delta0 : array of shape (m,), optional
        Where to compute it; by default 25 points from nothing to what the target allows.
    protect : {"record", "attribute"}
    releases : int

    Returns
    -------
    ZilRegion

    Raises
    ------
    ValueError
        If a delta0 alone uses up the target.

    Examples
    --------
    >>> from privfit.accounting import Budget
    >>> from privfit.mechanisms import Box
    >>> zil_region(Budget(1.0, 0.1), Box({"x": (0, 1)}), [0.02, 0.09]).scale.round(4)
    array([1.2084, 1.3836])
    """
    from privfit.mechanisms.zero_inflated import ZeroInflatedLaplace, check_delta0

    limit = limit_of_delta0(target, check_releases(releases))
    if delta0 is None:
        check_room(target, 1e-12 * limit, releases)
        grid = limit * np.sin(np.linspace(0.0, np.pi / 2, 27)[1:-1]) ** 2
    else:
        grid = np.atleast_1d(check_array("delta0", delta0))
    unit = float(domain.diameter) if isinstance(domain, Ball) else 1.0
    scales, start = [], None
    for value in grid.tolist():
        check_room(target, check_delta0(value), releases)
        law = _at(ZeroInflatedLaplace, target, domain, protect, None, value, releases, start)
        start = _size(law, domain, None)
        scales.append(start / unit)
    return ZilRegion(target, grid, np.array(scales))
