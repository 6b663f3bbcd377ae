"""What a release costs when the choice of the next one may depend on it (see `privfit.accounting.adaptive`).

Every curve is first taken apart into three costs that add up however the parameters are chosen:

    leak    with probability d the release discloses its input:       total leak    1 - prod(1 - d_i)
    slack   the sampler is within total variation eta of its law:     total slack   sum eta_i
    cost    of what is left, in the unit of one theorem:              sum eps_i,  sum mu_i^2  or  sum rho_i

Leaks need no theorem of their own. A mechanism whose curve is above ``zero_inflated(g, d)`` is a function of a
coin that shows the input with probability d and otherwise of a mechanism with curve g (Blackwell). Let C_P, C_Q
be the laws of the adaptive process without leaks; the histories without a leak have the sub-probabilities
``w dC_P`` and ``w dC_Q`` with one weight ``w = prod(1 - d_i) >= 1 - d``, which depends on the history alone. So

    delta(eps) <= 1 - int_{A^c} w dC_Q - e^eps int_A w dC_P <= d + (1 - d) delta_C(eps),

A the set where ``dC_Q > e^eps dC_P``: the whole process is above the zero-inflated curve of the process without
leaks. Slack adds by coupling. (Derived in docs/mathematics.md.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, singledispatch

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.base import TradeOffCurve, check_curve
from privfit.accounting.discrete import DiscreteCurve, from_atoms
from privfit.accounting.gaussian import gaussian_log_delta
from privfit.accounting.roots import bisect_decreasing
from privfit.accounting.validation import check_number
from privfit.accounting.wrappers import SlackCurve, ZeroInflatedCurve

__all__ = ["Charge", "Parts", "charge_of", "leaky_mu", "take_apart"]

Floats = NDArray[np.float64]
TOLERANCE = 1e-3  # relative excess of `leaky_mu`
MOST_CELLS = 8192


def exact(value: float) -> Fraction | float:
    """A fraction for a finite float, so that sums have no rounding; infinity stays what it is."""
    return Fraction(value) if math.isfinite(value) else value


@dataclass(frozen=True)
class Charge:
    """Costs of one release or of many: they add, exactly.

    Parameters
    ----------
    cost : Fraction or inf
        In the unit of the method: epsilon, mu squared or rho.
    leak : Fraction or inf
        ``-log(1 - d)`` for a probability d of disclosure.
    slack : Fraction
        Total variation error of the samplers.

    Examples
    --------
    >>> from fractions import Fraction
    >>> tenth = Charge(Fraction(1, 10), Fraction(0), Fraction(0))
    >>> (tenth + tenth * 3).cost
    Fraction(2, 5)
    """

    cost: Fraction | float = Fraction(0)
    leak: Fraction | float = Fraction(0)
    slack: Fraction | float = Fraction(0)

    def __add__(self, other: Charge) -> Charge:
        return Charge(self.cost + other.cost, self.leak + other.leak, self.slack + other.slack)

    def __mul__(self, times: int) -> Charge:
        return Charge(self.cost * times, self.leak * times, self.slack * times)


@dataclass(frozen=True)
class Parts:
    """A curve as ``shifted(zero_inflated(core, leak), slack)``, or below that.

    Examples
    --------
    >>> import privfit.accounting as pa
    >>> take_apart(pa.zero_inflated(pa.gaussian(1.0), 0.05))
    Parts(core=GaussianCurve(mu=1.0), leak=0.05, slack=0.0)
    """

    core: TradeOffCurve
    leak: float = 0.0
    slack: float = 0.0


@singledispatch
def take_apart(curve: TradeOffCurve) -> Parts:
    """Split certain disclosure and sampler slack from a curve; what cannot be split stays in the core.

    Parameters
    ----------
    curve : TradeOffCurve

    Returns
    -------
    Parts

    Examples
    --------
    >>> import privfit.accounting as pa
    >>> parts = take_apart(pa.approximate_dp(1.0, 0.01))
    >>> parts.core.max_loss, round(parts.leak, 12)
    (1.0, 0.01)
    """
    return Parts(curve)


@take_apart.register
def _(curve: SlackCurve) -> Parts:
    inner = take_apart(curve.base)
    return Parts(inner.core, inner.leak, inner.slack + curve.eta)


@take_apart.register
def _(curve: ZeroInflatedCurve) -> Parts:
    inner = take_apart(curve.base)
    return Parts(inner.core, inner.leak + (1 - inner.leak) * curve.delta0, inner.slack)


@take_apart.register
def _(curve: DiscreteCurve) -> Parts:
    """Atoms of infinite loss are a leak: the larger of the two masses covers both hypotheses."""
    loss, p, q = (np.asarray(v) for v in (curve.loss, curve.p, curve.q))
    finite = np.isfinite(loss)
    leak = max(float(p[~finite].sum()), float(q[~finite].sum()))
    if leak == 0.0 or not finite.any() or p[finite].sum() == 0 or q[finite].sum() == 0:
        return Parts(curve)
    scale_p, scale_q = p[finite].sum(), q[finite].sum()
    # dividing by the two masses moves every loss by the same amount
    core = from_atoms(loss[finite] + math.log(scale_p / scale_q), p[finite] / scale_p, q[finite] / scale_q)
    return Parts(core, leak)


def charge_of(cost: Callable[[TradeOffCurve, float], float], curve: TradeOffCurve, leak: float) -> Charge:
    """Charge of a curve whose core costs ``cost(core, extra leak)``; infinite where no theorem covers it.

    Examples
    --------
    >>> import privfit.accounting as pa
    >>> charge_of(lambda core, leak: core.epsilon(leak), pa.approximate_dp(0.5, 0.0), 0.0).cost
    Fraction(1, 2)
    """
    check_curve(curve)
    return _charge_of(cost, curve, check_number("leak", leak, 0.0, 1.0, high_open=True))


@lru_cache(maxsize=512)
def _charge_of(cost: Callable[[TradeOffCurve, float], float], curve: TradeOffCurve, extra: float) -> Charge:
    parts = take_apart(curve)
    total_leak = math.inf if parts.leak >= 1 else -math.log1p(-parts.leak) - math.log1p(-extra)
    return Charge(exact(cost(parts.core, extra)), exact(total_leak), exact(parts.slack))


def both_ways(curve: TradeOffCurve) -> tuple[TradeOffCurve, ...]:
    """The curve and, when it is another one, the curve of Q against P."""
    turned = curve.reversed()
    return (curve,) if turned is curve else (curve, turned)


def leaky_mu(curve: TradeOffCurve, leak: float) -> float:
    """Smallest mu, to 1e-3 and on the safe side, with ``curve >= zero_inflated(gaussian(mu), leak)``.

    A curve with a polynomial tail (symmetric Laplace noise in three or more dimensions) has no finite mu by
    itself; a small leak covers its tail. On a cell [a, b] of epsilon the wanted delta is at most
    ``(delta(a) - leak) / (1 - leak)`` and the Gaussian's at least its delta at b, so that matching these two is
    safe; cells that may hold the maximum are halved until it is known.

    Parameters
    ----------
    curve : TradeOffCurve
    leak : float
        In (0, 1).

    Returns
    -------
    float
        ``inf`` where certain disclosure exceeds the leak.

    Examples
    --------
    >>> import privfit.accounting as pa
    >>> pa.symmetric_laplace_limit(0.1).gdp()
    inf
    >>> round(leaky_mu(pa.symmetric_laplace_limit(0.1), 1e-3), 3)
    1.165
    """
    return max(_leaky_mu(turned, leak) for turned in both_ways(curve))


def _leaky_mu(curve: TradeOffCurve, leak: float) -> float:
    top = curve.epsilon(leak)
    if not math.isfinite(top):
        return math.inf
    if top == 0.0:
        return 0.0

    def wanted(at: Floats) -> Floats:
        return np.maximum(np.asarray(curve.delta(at)) - leak, 0.0) / (1 - leak)

    edges = np.union1d(np.linspace(0.0, top, 100), np.geomspace(top * 1e-4, top, 60))
    left, right, delta = edges[:-1], edges[1:], wanted(edges[:-1])
    best, worst = 0.0, 0.0
    for _ in range(40):
        left, right, delta = left[delta > 0], right[delta > 0], delta[delta > 0]
        if left.size == 0:
            return worst
        upper = _matching_mu(right, delta)
        best, worst = max(best, float(_matching_mu(left, delta).max())), float(upper.max())
        if worst <= best * (1 + TOLERANCE) or left.size > MOST_CELLS:
            break
        unsure = upper > best
        left, right, delta = left[unsure], right[unsure], delta[unsure]
        middle = 0.5 * (left + right)
        left, right, delta = np.r_[left, middle], np.r_[middle, right], np.r_[delta, wanted(middle)]
    return worst


def _matching_mu(epsilon: Floats, delta: Floats) -> Floats:
    """For every pair the mu whose Gaussian curve has delta(epsilon) = delta, rounded up."""
    wanted = np.log(delta)

    def shortfall(log_mu: Floats, index: Floats) -> Floats:
        i = index.astype(int)
        return wanted[i] - gaussian_log_delta(epsilon[i], np.exp(log_mu))

    _, high = bisect_decreasing(shortfall, np.arange(len(epsilon), dtype=float), lower=-60.0, upper=60.0, steps=50)
    return np.exp(high)
