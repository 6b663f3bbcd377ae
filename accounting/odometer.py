"""Privacy odometer: a bound on the privacy loss so far that holds at all times at once.

Let L_t be the privacy loss of the first t releases, chosen adaptively, and R_t(a) the sum of their Renyi
divergences of order a. Under Q the process ``exp((a - 1) (L_t - R_t(a)))`` is a supermartingale, because each
factor has conditional mean at most one. Ville's inequality gives, with probability at least 1 - delta_a,

    L_t <= R_t(a) + log(1 / delta_a) / (a - 1)        for all t

and a union bound over a grid of orders with sum delta_a = delta lets the smallest line be quoted at any moment
(the odometer of Feldman & Zrnic 2021, section 4, and Whitehouse et al. 2023, section 5). Under mu-GDP releases
``R_t(a) <= a sum mu_i^2 / 2``. The sum of the epsilons of pure-DP releases holds surely and needs no delta.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from privfit.accounting.adaptive_rules import make_rule, pure_epsilon, without_leak
from privfit.accounting.base import TradeOffCurve
from privfit.accounting.charges import Charge, charge_of, exact, take_apart
from privfit.accounting.single import Single
from privfit.accounting.targets import Budget
from privfit.accounting.validation import check_choice, check_number

__all__ = ["PrivacyOdometer"]

ORDERS = tuple(1 + 2.0**j for j in range(-3, 12))


class PrivacyOdometer(Single):
    """Running upper bound of epsilon for releases whose mechanisms and parameters are chosen as one goes.

    With probability at least ``1 - delta - leak`` the privacy loss of everything released so far is at most
    `epsilon`, at every moment at once, under either of two neighbouring inputs. The statement is about the
    releases themselves or, where a curve has been charged with a leak, about the richer output they are made
    from (which also shows whether the leak happened). It needs no total fixed in advance; a filter with a
    well-chosen total is tighter. Like a filter it lives in one process and cannot be copied or pickled.

    Parameters
    ----------
    delta : float
        Probability that the bound fails, in [0, 1); 0 leaves the sum of pure-DP epsilons.
    method : {"gdp", "rdp", "basic"}
        How releases are charged: by mu of their GDP guarantee, by their Renyi divergence at every order of the
        grid (tighter for pure DP), or by the plain sum of epsilons. The sum is always used where it is smaller.
    leak : float
        Additional probability reserved for releases that disclose their input, in [0, 1).

    Raises
    ------
    ValueError, TypeError
        If a parameter is outside its range.

    Examples
    --------
    >>> import privfit.accounting as pa
    >>> odometer = PrivacyOdometer(delta=1e-5)
    >>> round(odometer.add(pa.gaussian(0.5)), 3)
    2.903
    >>> PrivacyOdometer(delta=0.0, method="basic").add(pa.laplace(0.5))
    0.5
    """

    _twice = "neither copy would count what the other one adds; share the odometer itself, among threads."

    def __init__(self, delta: float, method: str = "gdp", *, leak: float = 0.0) -> None:
        super().__init__()
        self.delta = check_number("delta", delta, 0.0, 1.0, high_open=True)
        self.leak = check_number("leak", leak, 0.0, 1.0, high_open=True)
        if self.delta + self.leak >= 1:
            raise ValueError(f"delta + leak must be < 1, got {self.delta + self.leak:g}; lower one of them.")
        self.method = check_choice("method", method, ("gdp", "rdp", "basic"))
        self._orders = ORDERS if method != "basic" and self.delta > 0 else ()
        self._divergences: tuple[Fraction | float, ...] = (Fraction(0),) * len(self._orders)
        self._sum = Charge()

    def __repr__(self) -> str:
        return f"PrivacyOdometer(delta={self.delta:g}, method={self.method!r}, epsilon={self.epsilon:.6g})"

    def add(self, curve: TradeOffCurve, leak: float = 0.0) -> float:
        """Record a release and return the bound so far.

        Parameters
        ----------
        curve : TradeOffCurve
            Guarantee of the mechanism given everything released before.
        leak : float
            Extra disclosure under which the curve is charged, in [0, 1), for curves that cost infinity
            otherwise (see `PrivacyFilter.ask`). Curves with sampler slack need one, too.

        Returns
        -------
        float
            `epsilon`; ``inf`` once leaks pass the reserve or a release has no finite cost.

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> odometer = PrivacyOdometer(1e-6, leak=1e-3)
        >>> odometer.add(pa.zero_inflated(pa.gaussian(0.1), 5e-4)) < 1
        True
        """
        charge = charge_of(pure_epsilon, curve, leak)
        core = take_apart(curve).core
        if charge.slack:
            # the loss of an inexact sampler is not near the loss of its law: the whole curve is charged
            core = curve
            charge = Charge(exact(pure_epsilon(curve, leak)), exact(-math.log1p(-leak)))
        new = _divergences(self.method, core, leak) if self._orders else ()
        with self._alone():
            self._divergences = tuple(a + b for a, b in zip(self._divergences, new, strict=True))
            self._sum += charge
            return self.epsilon

    @property
    def epsilon(self) -> float:
        """The bound so far; reading it changes nothing.

        Examples
        --------
        >>> PrivacyOdometer(1e-5).epsilon
        0.0
        """
        if float(self._sum.leak) > -math.log1p(-self.leak):
            return math.inf
        failure = math.log(len(self._orders) / self.delta) if self._orders else 0.0
        lines = (float(r) + failure / (a - 1) for a, r in zip(self._orders, self._divergences, strict=True))
        return min([float(self._sum.cost), *lines])


@lru_cache(maxsize=512)
def _divergences(method: str, core: TradeOffCurve, leak: float) -> tuple[Fraction | float, ...]:
    """Bounds of the Renyi divergences at every order of the grid."""
    if method == "gdp":
        half = make_rule("gdp", Budget(1.0, 0.5), 0.0, 0.0, None).cost(core, leak) / 2
        return tuple(exact(order * half) for order in ORDERS)
    from privfit.accounting.renyi import rdp

    return tuple(exact(float(value)) for value in rdp(without_leak(core, leak), np.array(ORDERS)))
