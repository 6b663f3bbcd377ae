"""The smallest noise that meets a privacy target.

``calibrate(family, target)`` needs only a map from a noise scale to a curve that gets more private as the
scale grows. A first scale is guessed from the family's curve, a bracket is found by secant steps, refined on the
logarithm of the scale by Chandrupatla's method, and the answer is the end of the last interval that meets the
target, so it is on the safe side: a scale smaller by the stated relative tolerance fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from privfit.accounting.base import TradeOffCurve
from privfit.accounting.roots import chandrupatla
from privfit.accounting.targets import GDP, Advantage, Budget, ErrorRates, Target, as_target
from privfit.accounting.validation import check_number

__all__ = ["GDP", "Advantage", "Budget", "ErrorRates", "Target", "as_target", "calibrate"]

_EXAMPLE = "for example lambda sigma: gaussian(1 / sigma)."
LIMIT = 12 * math.log(10)  # of the logarithm of a scale relative to the first one


def calibrate(
    family: Callable[[float], TradeOffCurve],
    target: Target | TradeOffCurve,
    rtol: float = 1e-9,
    start: float = 1.0,
) -> float:
    """Smallest noise scale whose curve meets the target, on the safe side.

    Parameters
    ----------
    family : callable
        Maps a noise scale > 0 to a curve that is more private the larger the scale.
    target : Target or TradeOffCurve
        `Budget`, `GDP`, `Advantage`, `ErrorRates`, or a curve to lie above.
    rtol : float
        Relative tolerance of the scale: the answer meets the target, ``answer * (1 - rtol)`` does not.
    start : float
        First scale that is tried; any positive number works, a good guess saves a few evaluations.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If no scale up to 1e12 times the first one meets the target, or every scale down to 1e-12 times it does,
        or the family has no curve at the scales that would be needed; the message says what to change.
    TypeError
        If the family is no function or returns no curve, or the target is none.

    Examples
    --------
    >>> from privfit.accounting.gaussian import gaussian
    >>> round(calibrate(lambda sigma: gaussian(1 / sigma), Budget(1.0, 1e-5)), 6)
    3.730632
    """
    if not callable(family):
        raise TypeError(f"family must be callable, got {type(family).__name__}; {_EXAMPLE}")
    wanted = as_target(target)
    tolerance = check_number("rtol", rtol, 1e-13, 0.1)
    first = math.log(check_number("start", start, 0.0, low_open=True))
    search = _Search(family, wanted)
    x, exact = search.guess(first)
    if exact:
        # confirmed by one more evaluation just below or above it
        search.slack(x + (-0.9 if search.slack(x) >= 0 else 0.9) * tolerance)
    if not search.bracketed:
        low, high = search.bracket(x)
        chandrupatla(lambda y: min(max(search.slack(y), -1e3), 1e3), low, high, 0.2 * tolerance)
    return math.exp(search.finish(tolerance))


class _Search:
    """What is known of a family and a target so far: slack as a function of the logarithm of the scale."""

    def __init__(self, family: Callable[[float], TradeOffCurve], wanted: Target) -> None:
        self.family, self.wanted = family, wanted
        self.known: dict[float, float] = {}

    def slack(self, x: float) -> float:
        if x not in self.known:
            self.known[x] = self.wanted.slack(self.curve(x))
        return self.known[x]

    def curve(self, x: float) -> TradeOffCurve:
        curve = self.family(math.exp(x))
        if not isinstance(curve, TradeOffCurve):
            raise TypeError(f"family must return a TradeOffCurve, got {type(curve).__name__}; {_EXAMPLE}")
        return curve

    @property
    def bracketed(self) -> bool:
        """Whether scales on both sides of the answer are known."""
        return len({value >= 0 for value in self.known.values()}) == 2

    def guess(self, first: float) -> tuple[float, bool]:
        """A better first scale if the family's curve is of a known kind, and whether it should be the answer."""
        if isinstance(self.wanted, Budget):
            from privfit.accounting.guesses import noise_factor

            found = noise_factor(self.curve(first), self.wanted.epsilon, self.wanted.delta)
            if found is not None and 0 < found[0] < math.inf and abs(math.log(found[0])) < 50 * LIMIT:
                better = first + math.log(found[0])
                try:
                    self.slack(better)
                except ValueError:  # the family has no curve there
                    return first, False
                return better, found[1]
        return first, False

    def bracket(self, first: float) -> tuple[float, float]:
        """Two scales between which the slack changes sign."""
        rising = self.slack(first) < 0
        x, step = first, (math.log(1.5) if rising else -math.log(1.5))
        while True:
            try:
                value = self.slack(x + step)
            except ValueError as error:
                if abs(step) > 0.02:  # the family ends before: go as far as it goes
                    step *= 0.4
                    continue
                raise ValueError(self._hopeless(rising, math.exp(x), str(error))) from error
            if (value < 0) != rising:
                return (x, x + step) if rising else (x + step, x)
            slope = (value - self.slack(x)) / step
            x += step
            secant = 1.1 * -value / slope if math.isfinite(value) and slope > 0 else math.inf
            step = math.copysign(min(max(abs(secant), 0.5 * abs(step)), 4 * abs(step)), step)
            if abs(x - first) > LIMIT:
                raise ValueError(self._hopeless(rising, math.exp(x), ""))

    def _hopeless(self, rising: bool, scale: float, reason: str) -> str:
        because = f" (beyond it the family has no curve: {reason})" if reason else ""
        if rising:
            return (
                f"no noise scale up to {scale:.2g} meets {self.wanted}{because}; loosen the target (a larger epsilon "
                "or delta) or change the mechanism (this one may have a floor, such as delta0 >= delta)."
            )
        return f"every noise scale down to {scale:.2g} meets {self.wanted}{because}; no noise is needed."

    def finish(self, tolerance: float) -> float:
        """The smallest known scale that meets the target, once the largest known one that fails is close to it."""
        for _ in range(200):
            low = max(x for x, value in self.known.items() if value < 0)
            high = min(x for x, value in self.known.items() if value >= 0)
            if high - low <= tolerance:
                break
            at_low = abs(self.known[low]) < abs(self.known[high])
            step = min(0.9 * tolerance, 0.5 * (high - low))
            self.slack(low + step if at_low else high - step)
        return high
