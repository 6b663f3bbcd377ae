r"""The smallest noise of a kind that meets a target.

The scales are size * relative scales with one unknown, size, found by `privfit.accounting.calibrate` for the
target tightened by the sampler's slack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.accounting.validation import check_array, check_choice
from privfit.mechanisms.domain import Ball, Box
from privfit.mechanisms.law import check_protect
from privfit.mechanisms.slack import tighten

if TYPE_CHECKING:
    from privfit.accounting import TradeOffCurve
    from privfit.mechanisms.additive import AdditiveLaw
    from privfit.mechanisms.symmetric_laplace import SymmetricLaplace

__all__ = ["best_shape", "calibrate_scale", "pure_epsilon"]

A = TypeVar("A", bound="AdditiveLaw")
S = TypeVar("S", bound="SymmetricLaplace")

EPSILON_MAX = 100.0


def relative_to(domain: Any, relative_scales: ArrayLike | None) -> NDArray[np.float64]:
    """Return the noise of the coordinates relative to each other, shape (dim,).

    Examples
    --------
    >>> relative_to(Box({"age": (17, 90), "hours": (0, 100)}), None)
    array([ 73., 100.])
    """
    if not isinstance(domain, (Box, Ball)):
        raise TypeError(f"domain must be a Box or a Ball, got {type(domain).__name__}.")
    if relative_scales is None:
        return domain.ranges if isinstance(domain, Box) else np.ones(domain.dim)
    relative = check_array("relative_scales", relative_scales)
    if relative.shape != (domain.dim,) or not (np.isfinite(relative) & (relative > 0)).all():
        raise ValueError(
            f"relative_scales must be {domain.dim} finite numbers > 0, one per column, got shape {relative.shape}."
        )
    return relative


def calibrate_scale(
    cls: type[A],
    target: Any,
    domain: Any,
    protect: str,
    relative_scales: ArrayLike | None,
    parameters: dict[str, Any],
) -> A:
    """Return the additive law with the smallest scales that meets a target (see `AdditiveLaw.calibrate`)."""
    from privfit.accounting import calibrate

    relative = relative_to(domain, relative_scales)
    check_protect(protect)
    vector = (isinstance(domain, Box) and domain.dim > 1) or relative_scales is not None

    def law(size: float) -> A:
        scale = tuple(size * relative) if vector else float(size * relative[0])
        return cls(scale=scale, **parameters)

    wanted = tighten(target, law(1.0).slack(domain))
    return law(calibrate(lambda size: law(size).tradeoff(domain, protect), wanted, rtol=cls.calibration_rtol))


def best_shape(
    cls: type[S], target: Any, domain: Any, protect: str, relative_scales: ArrayLike | None, shape: str
) -> S:
    """Return the calibrated law of the integer shape with the smallest variance.

    The variance falls and then rises in the shape, with its minimum near dim/2 + 1 for a small delta and at 1
    for one column or a large delta: a walk from the first, and the second, find it. Where the variance only
    falls towards that of Gaussian noise (an advantage target), the walk lengthens its steps and stops when a
    long step saves less than a hundredth of the scale, a single one less than a thousandth.
    """
    check_choice("shape", shape, ("best",), hint="Or pass an integer >= 1.")
    relative_to(domain, relative_scales)
    laws: dict[int, S] = {}

    def size(k: int) -> float:
        if k not in laws:
            laws[k] = cls.calibrate(target, domain, protect, relative_scales, shape=k)
        return float(laws[k].scales(domain.dim)[0])

    start = domain.dim // 2 + 1
    size(1)
    for direction in (-1, 1):
        k, stride = start, 1
        while True:
            following = min(max(k + direction * stride, 1), 1000)
            if following != k and size(following) < (1 - (1e-3 if stride == 1 else 1e-2)) * size(k):
                k, stride = following, 2 * stride
            elif stride > 1:
                stride = 1
            else:
                break
    return laws[min(laws, key=size)]


def pure_epsilon(target: Any, categories: int | None = None) -> float:
    """Return the largest epsilon, at most 100, whose pure epsilon-DP meets a target.

    Parameters
    ----------
    target : Budget, GDP, Advantage, ErrorRates or TradeOffCurve
    categories : int, optional
        Randomised response with so many labels, whose curve is a little better.

    Examples
    --------
    >>> from privfit.accounting import Budget
    >>> pure_epsilon(Budget(1.0, 0.0))
    1.0
    """
    from privfit.accounting import Budget, approximate_dp, calibrate, randomized_response

    if isinstance(target, Budget) and target.delta == 0:
        return min(target.epsilon, EPSILON_MAX)

    def family(size: float) -> TradeOffCurve:
        epsilon = min(1 / size, EPSILON_MAX)
        return randomized_response(epsilon, categories) if categories else approximate_dp(epsilon, 0.0)

    return min(1 / calibrate(family, target), EPSILON_MAX)
