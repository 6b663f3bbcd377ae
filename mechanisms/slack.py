r"""Charging the sampler's slack eta to the numbers of a curve.

A sampler within total variation eta of its law has the curve f(alpha + eta) - eta, so

    delta(eps) <= min over e <= eps of delta_law(e) + (1 + e^e) eta,     advantage <= advantage_law + 2 eta,

and a law meets a target with its slack if it meets the target tightened by these amounts. The curve itself is
`privfit.accounting.shifted`; these forms need no evaluation of the law's far tail.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from privfit.accounting import TradeOffCurve

__all__ = ["charged_delta", "charged_epsilon", "charged_miss", "tighten"]


def _charge(epsilon: float, eta: float) -> float:
    return eta * (1.0 + math.exp(min(epsilon, 700.0)))


def charged_delta(curve: TradeOffCurve, epsilons: Sequence[float], eta: float) -> list[float]:
    """Return delta at each epsilon, slack included, on the safe side.

    Parameters
    ----------
    curve : TradeOffCurve
        Of the stated law.
    epsilons : increasing sequence of floats >= 0
    eta : float

    Returns
    -------
    list of floats

    Examples
    --------
    >>> from privfit.accounting import laplace
    >>> charged_delta(laplace(1.0), [1.0, 9.0], 1e-9) == [1e-9 * (1 + math.e)] * 2
    True
    """
    direct = np.asarray(curve.delta(np.asarray(epsilons, dtype=float)))
    total = [d + _charge(e, eta) for d, e in zip(direct.tolist(), epsilons, strict=True)]
    # delta never grows with epsilon, so the best of the smaller ones holds, too.
    return [float(min(1.0, value)) for value in np.minimum.accumulate(total)]


def charged_epsilon(curve: TradeOffCurve, delta: float, eta: float) -> float:
    """Return epsilon at `delta`, slack included, on the safe side; inf if the iteration finds none.

    Parameters
    ----------
    curve : TradeOffCurve
        Of the stated law.
    delta, eta : float

    Returns
    -------
    float

    Examples
    --------
    >>> from privfit.accounting import laplace
    >>> round(charged_epsilon(laplace(1.0), 1e-5, 1e-12), 4)
    1.0
    """
    epsilon = 0.0
    for _ in range(50):
        left = delta - _charge(epsilon, eta)
        if left <= 0:
            return math.inf
        # The charge is taken a little larger than needed, so that the iteration from below ends inside.
        wanted = float(curve.epsilon(left)) * (1 + 1e-12)
        if wanted <= epsilon or not math.isfinite(wanted):
            return max(wanted, epsilon)
        epsilon = wanted + 1e-12
    return math.inf


def charged_miss(curve: TradeOffCurve, alpha: float, eta: float) -> float:
    """Return f(alpha + eta) - eta, the least type II error at type I error `alpha`, slack included.

    Examples
    --------
    >>> from privfit.accounting import laplace
    >>> bool(abs(charged_miss(laplace(1.0), 0.1, 1e-6) - (1 - math.e * 0.100001 - 1e-6)) < 1e-12)
    True
    """
    (miss,) = np.asarray(curve.curve(np.array([min(1.0, alpha + eta)]))).tolist()
    return max(0.0, float(miss) - eta)


def tighten(target: Any, eta: float) -> Any:
    """Return the target that the stated law must meet, so that its sampler meets `target`.

    Parameters
    ----------
    target : Budget, Advantage, ErrorRates, or another target, which is returned as it is
    eta : float

    Returns
    -------
    target

    Raises
    ------
    ValueError
        If the slack alone exceeds the target.

    Examples
    --------
    >>> from privfit.accounting import Advantage
    >>> tighten(Advantage(0.25), 0.01)
    Advantage(value=0.23)
    """
    from privfit.accounting import Advantage, Budget, ErrorRates

    if isinstance(target, Budget):
        charge = _charge(target.epsilon, eta)
        if target.delta > charge:
            return Budget(target.epsilon, target.delta - charge)
        if charge >= 1:
            raise ValueError(
                f"epsilon must be lower than {target.epsilon:g}: there the numerical slack of floating-point noise "
                "exceeds every delta. Lower epsilon, or use DiscreteLaplace, which has no slack."
            )
        raise ValueError(
            f"delta must be > {charge:.3g} at epsilon = {target.epsilon:g}, got {target.delta:g}: that much "
            "is the numerical slack of floating-point noise, which is never pure epsilon-DP. "
            "Raise delta, or lower epsilon."
        )
    if isinstance(target, Advantage) and target.value > 2 * eta:
        return Advantage(target.value - 2 * eta)
    if isinstance(target, ErrorRates) and target.fpr + target.fnr + 2 * eta < 1:
        return ErrorRates(target.fpr + eta, target.fnr + eta)
    if isinstance(target, (Advantage, ErrorRates)):
        raise ValueError(f"{target} leaves no room for the sampler's numerical slack {eta:.3g}; loosen it.")
    return target
