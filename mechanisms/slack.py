r"""Charging the sampler's slack eta to the numbers of a curve.

A sampler within total variation eta of its law has the curve f(alpha + eta) - eta, so

    delta(eps) <= min over e <= eps of delta_law(e) + (1 + e^e) eta,     advantage <= advantage_law + 2 eta,

and a law meets a target with its slack if it meets the target tightened by these amounts. The sum is convex in
e^e; its minimum lies at e = eps while alpha(eps) >= eta, and before it where the tail beyond e weighs less than
the charge. No noise at all can bring it below 2 eta. The curve itself is `privfit.accounting.shifted`; these
forms lose no digits where delta is as small as eta.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privfit.accounting.calibration import Target

if TYPE_CHECKING:
    from privfit.accounting import TradeOffCurve

__all__ = ["ChargedBudget", "calibrate_charged", "charged_delta", "charged_epsilon", "charged_miss", "tighten"]

ROUNDING = 1e-8
"""Relative excess of the charges over eta, so that no rounding of a curve's own bounds can undo them."""


def _charge(epsilon: float, eta: float) -> float:
    return eta * (1.0 + math.exp(min(epsilon, 700.0)))


def _least(curve: TradeOffCurve, epsilon: float, eta: float) -> float:
    """Return min over 0 <= e <= epsilon of delta(e) + (1 + e^e) eta: the minimum has alpha(e) = eta."""
    low, high = 0.0, min(epsilon, max(-math.log(eta), 0.0))
    for _ in range(32 if curve.error_rates(high)[0] < eta else 0):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if curve.error_rates(middle)[0] < eta else (middle, high)
    # Every e gives a valid bound; a curve that ends at its largest loss has the minimum there.
    tried = [low, high, *([curve.max_loss] if curve.max_loss <= epsilon else [])]
    return min(float(curve.delta(e)) + _charge(e, eta) for e in tried)


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
    points = np.asarray(epsilons, dtype=float)
    direct, (alpha, _) = np.asarray(curve.delta(points)), curve.error_rates(points)
    total = [d + _charge(e, eta) for d, e in zip(direct.tolist(), epsilons, strict=True)]
    # delta never grows with epsilon, so the best of the smaller ones holds, too.
    for i in np.flatnonzero(alpha < eta):
        total[i] = min(total[i], _least(curve, float(points[i]), eta))
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


@dataclass(frozen=True)
class ChargedBudget(Target):
    """(epsilon, delta)-differential privacy of a sampler within total variation eta of its law.

    Parameters
    ----------
    epsilon, delta, eta : float
        delta > 2 eta.

    Examples
    --------
    >>> from privfit.accounting import gaussian
    >>> ChargedBudget(50.0, 1e-5, 1e-9).met_by(gaussian(1.0))
    True
    """

    epsilon: float
    delta: float
    eta: float

    def slack(self, curve: TradeOffCurve) -> float:
        """Log of delta over the curve's delta at epsilon with eta charged."""
        return math.log(self.delta / _least(curve, self.epsilon, self.eta * (1 + ROUNDING)))


def tighten(target: Any, eta: float) -> Any:
    """Return the target that the stated law must meet, so that its sampler meets `target`.

    Parameters
    ----------
    target : Budget, Advantage, ErrorRates, or another target, which is returned as it is
    eta : float

    Returns
    -------
    target
        For a budget the smaller one at the same epsilon if the charge leaves any, else a `ChargedBudget`.

    Raises
    ------
    ValueError
        If the slack alone exceeds the target.

    Examples
    --------
    >>> from privfit.accounting import Advantage
    >>> tighten(Advantage(0.25), 0.01)
    Advantage(value=0.2299999998)
    """
    from privfit.accounting import Advantage, Budget, ErrorRates

    if eta == 0:
        return target
    more = eta * (1 + ROUNDING)
    if isinstance(target, Budget):
        charge = _charge(target.epsilon, more)
        if target.delta > charge:
            return Budget(target.epsilon, (target.delta - charge) * (1 - 1e-15))
        if target.delta > 2 * more:
            return ChargedBudget(target.epsilon, target.delta, eta)
        raise ValueError(
            f"delta must be > {2 * more:.4g}, got {target.delta:g}: that much is the numerical slack of "
            "floating-point noise, which is never pure epsilon-DP. Raise delta, release fewer columns, or use "
            "DiscreteLaplace, which has no slack."
        )
    if isinstance(target, Advantage) and target.value > 2 * more:
        return Advantage(target.value - 2 * more)
    if isinstance(target, ErrorRates) and target.fpr + target.fnr + 2 * more < 1:
        return ErrorRates(target.fpr + more, target.fnr + more)
    if isinstance(target, (Advantage, ErrorRates)):
        raise ValueError(f"{target} leaves no room for the sampler's numerical slack {eta:.3g}; loosen it.")
    return target


def calibrate_charged(
    family: Callable[[float], TradeOffCurve], target: Any, eta: float, rtol: float = 1e-9, start: float = 1.0
) -> float:
    """Return the smallest noise scale whose sampler, eta away from its law, meets a target.

    Parameters
    ----------
    family, target, rtol, start
        As for `privfit.accounting.calibrate`; the curves are those of the stated law.
    eta : float

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If no noise meets the target; the message says what to change.

    Examples
    --------
    >>> from privfit.accounting import Budget, laplace
    >>> round(calibrate_charged(lambda b: laplace(1 / b), Budget(1.0, 1e-5), 1e-12), 4)
    1.0
    """
    from privfit.accounting import Budget, calibrate

    wanted = tighten(target, eta)
    size = calibrate(family, wanted, rtol=rtol, start=start)
    if eta > 0 and isinstance(wanted, Budget) and family(size).error_rates(wanted.epsilon)[0] < eta:
        # Fewer than eta false alarms at epsilon: the guarantee of a smaller epsilon is the better one.
        return calibrate(family, ChargedBudget(target.epsilon, target.delta, eta), rtol=rtol, start=size)
    return size
