"""A trade-off curve seen through samples of a score: what an attack achieved, with confidence bands.

The test "score > s" has type I error F(s) = P[score > s] and type II error G(s) = Q[score <= s], estimated by
counting. Each sample is allowed the error share (1 - confidence)/2, half of it for each of two bands that hold for all
thresholds at once, for every sample size and every law, ties included:

    count/n -+ r,   2 e^(-2 n r^2) = share / 2                     (Dvoretzky, Kiefer & Wolfowitz; Massart 1990)
    Clopper-Pearson limits at level share / (4 n) on each side     (one for every order statistic, union bound)

The first is narrow in the middle, the second in the tails, which decide about privacy; the tighter one counts. Both
are increasing functions of the counts, lo and up. With h the lower convex hull of the counted points,

    hull of (lo(k/n), lo(h(k/n))), k = 0..n   <=   curve of the tests "score > s"   <=   hull of (up(a), up(h(a)))

with a running over the corners of h: every counted point lies above h, and every corner is a counted point. The
upper band is above the true f of the mechanism too, whatever the score, because no test beats f. The lower band
is below the true f only if the score is the likelihood ratio dQ/dP or increases with it: then, and in general only
then, are its thresholds the best tests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.accounting.atoms import DiscreteCurve
from privfit.accounting.base import Bound, Precision, TradeOffCurve
from privfit.accounting.discrete import from_points
from privfit.accounting.validation import check_array, check_integer, check_number

__all__ = ["EmpiricalCurve", "empirical"]

Floats = NDArray[np.float64]
DENSE = 2000  # counts per tail and scale of which the lower band is made


@dataclass(frozen=True)
class EmpiricalCurve(TradeOffCurve):
    """An estimated curve with its confidence bands (see `empirical`).

    Parameters
    ----------
    alpha, beta : tuple of float
        Corners of the convex hull of the counted error rates, alpha increasing from 0 to 1.
    p_size, q_size : int
        Number of scores under P and under Q.
    confidence : float
        Probability with which both bands hold, for all alpha at once.
    """

    alpha: tuple[float, ...]
    beta: tuple[float, ...]
    p_size: int
    q_size: int
    confidence: float
    precision = Precision(relative=1e-13, absolute=0.0)

    def __post_init__(self) -> None:
        a, b = (np.atleast_1d(check_array(n, getattr(self, n), 0.0, 1.0)) for n in ("alpha", "beta"))
        if a.ndim != 1 or a.shape != b.shape or a.size == 0:
            raise ValueError("alpha and beta must be sequences of the same positive length.")
        if np.any(np.diff(a) <= 0) or np.any(np.diff(b) > 0):
            raise ValueError("alpha must increase and beta must not; use empirical(p_scores, q_scores).")
        object.__setattr__(self, "alpha", tuple(a.tolist()))
        object.__setattr__(self, "beta", tuple(b.tolist()))
        object.__setattr__(self, "p_size", check_integer("p_size", self.p_size, 1))
        object.__setattr__(self, "q_size", check_integer("q_size", self.q_size, 1))
        level = check_number("confidence", self.confidence, 0.0, 1.0, low_open=True, high_open=True)
        object.__setattr__(self, "confidence", level)

    def __repr__(self) -> str:
        return f"EmpiricalCurve({self.p_size} and {self.q_size} scores, confidence={self.confidence:g})"

    def _on(self, side: Bound) -> TradeOffCurve:
        return self._sides[side]

    @cached_property
    def _sides(self) -> dict[Bound, DiscreteCurve]:
        a, b, n, m = np.asarray(self.alpha), np.asarray(self.beta), self.p_size, self.q_size
        share = (1 - self.confidence) / 2
        # thresholds with k to next_k - 1 scores of P above them share one conservative point
        k = _grid(n)
        last = np.append(k[1:] - 1, n)
        low = _lower_limit(k, n, share), _lower_limit(np.interp(last / n, a, b) * m, m, share)
        high = 1 - _lower_limit(n - np.rint(a * n), n, share), 1 - _lower_limit(m - np.rint(b * m), m, share)
        return {"estimate": from_points(a, b), "lower": from_points(*low), "upper": from_points(*high)}

    @property
    def infinite_mass(self) -> float:
        """Estimated mass of certain disclosure; `delta(inf)` has the bounds."""
        return self._sides["estimate"].infinite_mass

    @property
    def max_loss(self) -> float:
        """Largest finite loss of the estimated polyline."""
        return self._sides["estimate"].max_loss

    def _error_rates(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        return self._sides["estimate"]._error_rates(log_ratio)

    def _delta(self, epsilon: Floats) -> Floats:
        return self._sides["estimate"]._delta(epsilon)

    def _curve(self, alpha: Floats) -> Floats:
        return self._sides["estimate"]._curve(alpha)

    def reversed(self) -> TradeOffCurve:
        """Curve of Q against P: the samples change places."""
        return _from_corners(from_points(self.beta, self.alpha), self.q_size, self.p_size, self.confidence)


def empirical(p_scores: ArrayLike, q_scores: ArrayLike, confidence: float = 0.95) -> EmpiricalCurve:
    """Trade-off curve estimated from the scores of an attack or test, with simultaneous confidence bands.

    Samples show what this score achieves, not what any attack can do: the estimate and the upper band
    say how private the mechanism is *at best* (an audit), for every score. The lower band, and with it the
    default numbers ``curve(alpha)``, ``delta(epsilon)`` and ``epsilon(delta)``, is a guarantee with the stated
    confidence only if the score is the likelihood ratio dQ/dP or an increasing function of it.

    Parameters
    ----------
    p_scores, q_scores : array of shape (n,), (m,)
        Independent scores of outputs drawn under P and under Q; larger scores speak for Q. Ties are allowed.
    confidence : float
        Probability, in (0, 1), that both bands hold for all alpha at once.

    Returns
    -------
    EmpiricalCurve
        ``bound="lower"`` and ``"upper"`` give the bands of the trade-off curve (and the opposite ones of delta
        and epsilon), ``"estimate"`` the convex hull of the counted error rates.

    Raises
    ------
    ValueError, TypeError
        If a sample is empty, holds nan, or confidence is outside (0, 1).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> curve = empirical(rng.normal(size=4000), rng.normal(1.0, size=4000))
    >>> [round(curve.curve(0.2, bound=b), 2) for b in ("lower", "estimate", "upper")]  # G_1(0.2) = 0.44
    [0.36, 0.42, 0.49]
    """
    p = np.sort(check_array("p_scores", p_scores), axis=None)
    q = np.sort(check_array("q_scores", q_scores), axis=None)
    if p.size == 0 or q.size == 0:
        raise ValueError(f"p_scores and q_scores must not be empty, got {p.size} and {q.size} scores.")
    # between two neighbouring scores of P the lower one is the best threshold: alpha is the same, beta least
    alpha = (p.size - np.searchsorted(p, p, side="right")) / p.size
    beta = np.searchsorted(q, p, side="right") / q.size
    return _from_corners(from_points(alpha, beta), p.size, q.size, confidence)


def _from_corners(hull: DiscreteCurve, p_size: int, q_size: int, confidence: float) -> EmpiricalCurve:
    x, y = (np.clip(v, 0.0, 1.0).tolist() for v in hull._corners)
    return EmpiricalCurve(tuple(x), tuple(y), p_size, q_size, confidence)


def _grid(n: int) -> Floats:
    """Counts from 0 to n: all of them, or for many scores a choice that is dense in both tails."""
    if n <= 2 * DENSE:
        return np.arange(n + 1.0)
    tail = np.rint(np.concatenate([[0.0], np.geomspace(1, n / 2, DENSE), np.linspace(1, n / 2, DENSE)]))
    return np.unique(np.concatenate([tail, n - tail]))


def _lower_limit(count: Floats, size: int, share: float) -> Floats:
    """Lower limit of a probability, valid with error share/2 for all counts at once (share for both sides)."""
    from scipy.special import betaincinv

    even = count / size - math.sqrt(math.log(4 / share) / (2 * size))
    some = np.maximum(count, 1e-9)
    exact = np.where(count > 1e-9, betaincinv(some, size - some + 1, share / (4 * size)), 0.0)
    return np.maximum(even, exact)
