"""Amplification by shuffling: n users report through an eps0-LDP randomiser, the order of reports is lost.

Clones (Feldman, McMillan & Talwar 2021, theorem 3.2). One user holds x0 or x1. A pair of eps0-close laws is a
mixture ``R(x0) = s Q0 + (1 - s) Q1``, ``R(x1) = (1 - s) Q0 + s Q1`` with ``s = e^eps0 / (e^eps0 + 1)``. For
every other user ``R_i >= e^-eps0 R(x_j)`` for both j, so ``R_i >= (e^-eps0 / 2) (Q0 + Q1)``: report i is a copy
of Q0 or of Q1 with probability ``e^-eps0 / 2`` each, else something that says nothing about the user. Only the
numbers (a, b) of copies of Q0 and Q1 matter, the user's own report included.

k-ary randomised response tells any category with probability at least ``p = 1 / (e^eps0 + k - 1)`` and x0 or
x1 with ``R(x0) + R(x1) = (e^eps0 + 1) p``, so ``R_i >= (Q0 + Q1) / (e^eps0 + 1)`` for every k, with equality at
x0 and x1: copies appear with probability ``1 / (e^eps0 + 1)`` each, more than half ``e^-eps0``. (Counting only
the reports x0 and x1, each with probability p, would not do: whether the user is among the other reports
then shows in their histogram. The tests hold a table that exceeds such a count.)

With r the probability of a copy, ``B(c) = P[Bin(n, r) = c]``, ``g = tanh(eps0 / 2)`` and ``c = a + b``,

    P(a, b) = B(c) C(c, a) 2^-c [c + g (a - b)] / (n r),                         Q(a, b) = P(b, a)
    delta(eps) = (g (1 + e^eps) / (n r)) sum_c B(c) P[X_c = j] (j - kappa M),    X_c ~ Bin(c, 1/2)

where ``kappa = c tanh(eps/2) / g``, j is the smallest number with ``2 j > c + kappa`` and
``M = P[X_c >= j] / P[X_c = j]``: every term is positive (the sum of ``2 b - c`` above j telescopes).

An (eps0, delta0) randomiser is within total variation of the above: the user's two laws are
``delta0 / (1 + e^eps0)`` from an eps0-close pair, and raising R_i to its floor costs at most
``e^-eps0 (delta0 + delta0 / (1 + e^eps0))``. The sum over users, eta, lowers the curve as in `shifted`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.base import SIGN, Bound, Precision, TradeOffCurve
from privfit.accounting.binomial import binomial_log_pmf, upper_tail_ratio
from privfit.accounting.chords import chord_epsilon
from privfit.accounting.relation import REPLACE_ONE
from privfit.accounting.validation import check_choice, check_integer, check_number
from privfit.accounting.wrappers import shifted

__all__ = ["ShuffledCurve", "shuffled"]

Floats = NDArray[np.float64]
RANDOMIZERS = ("any", "randomized_response")
MAX_REPORTS = 10**10
WINDOW = 4000  # numbers of copies that are summed without looking for the part that matters
NEGLIGIBLE = 65.0  # nats below the largest term


@dataclass(frozen=True)
class ShuffledCurve(TradeOffCurve):
    """Curve of n shuffled reports of a pure eps0-LDP randomiser (see `shuffled`).

    Parameters
    ----------
    epsilon0 : float
        Local pure-DP parameter, in (0, 700].
    n : int
        Number of reports.
    randomizer : {"any", "randomized_response"}
        What is known of the local randomiser.
    """

    epsilon0: float
    n: int
    randomizer: str = "any"
    precision = Precision(relative=1e-9, absolute=0.0)

    def __post_init__(self) -> None:
        hint = "It is the local privacy parameter of one report."
        object.__setattr__(
            self, "epsilon0", check_number("epsilon0", self.epsilon0, 0.0, 700.0, low_open=True, hint=hint)
        )
        object.__setattr__(self, "n", check_integer("n", self.n, 1, MAX_REPORTS, hint="It is the number of reports."))
        check_choice("randomizer", self.randomizer, RANDOMIZERS)

    def __repr__(self) -> str:
        """Fields, and the neighbours the curve speaks about."""
        return f"ShuffledCurve(epsilon0={self.epsilon0!r}, n={self.n}, {self.randomizer!r}, {REPLACE_ONE})"

    @property
    def relation(self) -> str:
        """Neighbouring tables."""
        return REPLACE_ONE

    @property
    def max_loss(self) -> float:
        """The local epsilon0: all reports may happen to agree."""
        return self.epsilon0

    @cached_property
    def _constants(self) -> tuple[float, float, float]:
        """Probability r of a copy, 1 - r, and g."""
        small = math.exp(-self.epsilon0)
        tanh = math.tanh(self.epsilon0 / 2)
        return (
            (small, -math.expm1(-self.epsilon0), tanh)
            if self.randomizer == "any"
            else (2 * small / (1 + small), tanh, tanh)
        )

    def _kappa(self, c: Floats, epsilon: float) -> Floats:
        return (math.tanh(epsilon / 2) / self._constants[2]) * c

    def _window(self, epsilon: float) -> Floats:
        """Numbers of copies c that matter: all others together carry less than e^-60 of what they carry."""
        low, high = 0, self.n
        edges = np.arange(low, high + 1.0)
        if self.n > WINDOW:
            mode = min(int((self.n + 1) * self._constants[0]), self.n)
            steps = np.geomspace(1, self.n, 600).round()
            edges = np.unique(np.clip(np.concatenate([mode - steps, [mode], mode + steps, [low, high]]), low, high))
            while True:
                kept = self._blocks_that_matter(edges, epsilon)
                shorter = kept[-1] - kept[0] < 0.8 * (high - low)
                low, high = int(kept[0]), int(kept[-1])
                if not shorter or high - low <= WINDOW:
                    break
                edges = np.unique(np.append(np.linspace(low, high, 400).round(), np.clip(mode, low, high)))
            edges = np.arange(low, high + 1.0)
        return edges

    def _blocks_that_matter(self, edges: Floats, epsilon: float) -> Floats:
        """Ends of the blocks of c whose mass above the threshold may exceed e^-65 of the largest term.

        log B is concave with its mode at an edge. For a fixed kappa, ``P[2 X_c - c > kappa]`` at most doubles
        when c falls, so a block is bounded at its upper end with the kappa of its lower end.
        """
        r, rest, _ = self._constants
        log_b = binomial_log_pmf(edges, self.n, r, rest)
        kappa = self._kappa(edges, epsilon)
        with np.errstate(divide="ignore"):
            log_pmf, ratio, _ = _upper_half(edges, kappa)
            largest = np.max(log_b + log_pmf + np.log(ratio * edges))
            log_pmf, ratio, _ = _upper_half(edges[1:], kappa[:-1])
            bound = np.maximum(log_b[1:], log_b[:-1]) + log_pmf + np.log(2 * ratio * edges[1:] * (np.diff(edges) + 1))
        kept = np.flatnonzero(bound > largest - NEGLIGIBLE)
        return edges[kept[0] : kept[-1] + 2]

    def _terms(self, epsilon: float) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """c, log of B(c) P[X_c = j] / (n r), M, j and kappa for one threshold >= 0."""
        r, rest, _ = self._constants
        c = self._window(epsilon)
        kappa = self._kappa(c, epsilon)
        log_pmf, ratio, first = _upper_half(c, kappa)
        log_weight = binomial_log_pmf(c, self.n, r, rest) + log_pmf - math.log(self.n) - math.log(r)
        return c, log_weight, ratio, first, kappa

    def _log_delta_at(self, epsilon: float) -> float:
        if epsilon >= self.epsilon0:
            return -math.inf
        _, log_weight, ratio, first, kappa = self._terms(epsilon)
        with np.errstate(divide="ignore"):
            terms = log_weight + np.log(np.maximum(first - kappa * ratio, 0.0))
        top = terms.max()
        if top == -math.inf:
            return -math.inf
        return float(top + np.log(np.exp(terms - top).sum()) + math.log(self._constants[2]) + np.logaddexp(0, epsilon))

    def _masses_at(self, t: float) -> tuple[float, float]:
        """P[L > t] and Q[L > t] for t >= 0."""
        if t >= self.epsilon0:
            return 0.0, 0.0
        c, log_weight, ratio, first, _ = self._terms(t)
        level, lean = c * ratio, self._constants[2] * first
        weight = np.exp(log_weight)
        return float(weight @ np.maximum(level - lean, 0.0)), float(weight @ (level + lean))

    def _error_rates(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        size = np.abs(log_ratio)
        distinct, index = np.unique(size, return_inverse=True)
        masses = np.array([self._masses_at(float(t)) for t in distinct]).reshape(-1, 2)[index.reshape(size.shape)]
        alpha, beta = np.minimum(masses[..., 0], 1.0), np.clip(1 - masses[..., 1], 0.0, 1.0)
        return np.where(log_ratio >= 0, alpha, beta), np.where(log_ratio >= 0, beta, alpha)

    def _log_delta(self, epsilon: Floats) -> Floats:
        size = np.abs(epsilon)
        distinct, index = np.unique(size, return_inverse=True)
        value = np.array([self._log_delta_at(float(e)) for e in distinct])[index.reshape(size.shape)]
        below = np.minimum(epsilon, 0.0)
        with np.errstate(divide="ignore"):
            return np.where(epsilon >= 0, value, np.log(-np.expm1(below) + np.exp(below + value)))

    def _delta(self, epsilon: Floats) -> Floats:
        return np.exp(self._log_delta(epsilon))

    def _epsilon(self, delta: Floats, bound: Bound) -> Floats:
        slack = SIGN[bound] * (self.precision.relative + 1e-14)  # and the rounding of the logarithm
        low, high = chord_epsilon(self._log_delta, delta, slack, 0.0, self.epsilon0)
        return low if bound == "lower" else high


def _upper_half(c: Floats, kappa: Floats) -> tuple[Floats, Floats, Floats]:
    """Values of log P[X_c = j], P[X_c >= j] / P[X_c = j] and j, the smallest number with 2 j > c + kappa."""
    first = np.floor((c + kappa) / 2) + 1
    possible = first <= c
    inside = np.where(possible, first, c)
    log_pmf = np.where(possible, binomial_log_pmf(inside, c, 0.5, 0.5), -np.inf)
    return log_pmf, upper_tail_ratio(inside, c), inside


def shuffled(local: float | TradeOffCurve, n: int, delta0: float = 0.0, randomizer: str = "any") -> TradeOffCurve:
    """Central guarantee of `n` local reports whose order is removed by a trusted shuffler.

    Parameters
    ----------
    local : float or TradeOffCurve
        Local privacy of one report: epsilon0, or the curve between any two inputs (its epsilon at `delta0`).
    n : int
        Number of reports, at least 1 and at most 1e10; every user sends exactly one, all with the same randomiser.
    delta0 : float
        Local delta, in [0, 1); it costs about ``(1 + e^eps) n e^-eps0 delta0`` in the result, so choose it far
        below the target delta over n.
    randomizer : {"any", "randomized_response"}
        Randomised response over any number of categories has a smaller loss.

    Returns
    -------
    TradeOffCurve
        For neighbours that replace one record; a valid bound, not tight.

    Raises
    ------
    ValueError, TypeError
        If a parameter is outside its range, or the local curve has no finite epsilon at `delta0`.

    Examples
    --------
    >>> curve = shuffled(1.0, 10_000)
    >>> curve.epsilon(1e-6) < 0.1
    True
    >>> shuffled(1.0, 10_000, randomizer="randomized_response").epsilon(1e-6) < curve.epsilon(1e-6)
    True
    """
    d0 = check_number("delta0", delta0, 0.0, 1.0, high_open=True)
    if isinstance(local, TradeOffCurve):
        epsilon0 = max(local.epsilon(d0), local.reversed().epsilon(d0))
        if math.isinf(epsilon0):
            raise ValueError(
                f"local must have a finite epsilon at delta0={d0!r}; pass a positive delta0 above its certain "
                "disclosure, for example 1e-3 times the target delta over n."
            )
        if epsilon0 <= 0.0:
            raise ValueError(f"delta0 must leave a positive local epsilon, got {d0!r}; pass a smaller delta0.")
    else:
        epsilon0 = local
    curve = ShuffledCurve(epsilon0, n, randomizer)
    if d0 == 0.0:
        return curve
    if randomizer != "any":
        raise ValueError(f"delta0 must be 0 for randomised response, got {d0!r}; use randomizer='any'.")
    user = d0 / (1 + math.exp(curve.epsilon0))
    eta = user + (curve.n - 1) * math.exp(-curve.epsilon0) * (d0 + user)
    if eta > 0.5:
        raise ValueError(f"delta0 must be far below 1 / n, got {d0!r} for n = {curve.n}; pass a smaller delta0.")
    return shifted(curve, eta)
