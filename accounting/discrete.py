"""Curves with finitely many values of the privacy loss: piecewise linear trade-off functions.

Outputs fall into cells i with ``P = p_i``, ``Q = q_i`` and loss ``t_i = log(q_i / p_i)``, sorted by t:

    alpha(t) = sum_{t_i > t} p_i,      beta(t) = sum_{t_i <= t} q_i
    delta(eps) = sum_{t_i > eps} q_i (1 - e^(eps - t_i))                         (no cancellation)

Randomised response, the (eps, delta) curve, a polyline of points and the envelope of several guarantees are
all of this kind. A polyline's segment with slope ``-e^t`` is the cell with loss t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.accounting.base import Precision, TradeOffCurve
from privfit.accounting.validation import check_array, check_integer, check_number

__all__ = ["DiscreteCurve", "approximate_dp", "from_points", "from_profile", "randomized_response"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class DiscreteCurve(TradeOffCurve):
    """A curve given by the atoms of its privacy loss.

    Parameters
    ----------
    loss : tuple of float
        Increasing values of the privacy loss; the first may be -inf, the last +inf.
    p, q : tuple of float
        Mass of every value under P and Q; each sums to one.
    """

    loss: tuple[float, ...]
    p: tuple[float, ...]
    q: tuple[float, ...]
    precision = Precision(relative=1e-13, absolute=0.0)

    def __post_init__(self) -> None:
        loss, p, q = (np.atleast_1d(check_array(n, getattr(self, n))) for n in ("loss", "p", "q"))
        check_array("p", p, 0.0, 1.0)
        check_array("q", q, 0.0, 1.0)
        if not (loss.ndim == 1 and loss.shape == p.shape == q.shape and loss.size):
            raise ValueError("loss, p and q must be sequences of the same positive length.")
        if np.any(np.diff(loss) <= 0):
            raise ValueError("loss must be strictly increasing; merge equal values first.")
        if abs(p.sum() - 1) > 1e-9 or abs(q.sum() - 1) > 1e-9:
            raise ValueError("p and q must each sum to 1; rescale them.")
        for name, value in (("loss", loss), ("p", p), ("q", q)):
            object.__setattr__(self, name, tuple(value.tolist()))

    def __repr__(self) -> str:
        return f"DiscreteCurve({len(self.loss)} values of the privacy loss)"

    @cached_property
    def _tables(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Losses, survival of P, distribution of Q, delta and its slope weight at every loss value."""
        t, p, q = (np.asarray(v) for v in (self.loss, self.p, self.q))
        survival = np.concatenate([np.cumsum(p[::-1])[::-1], [0.0]])
        distribution = np.concatenate([[0.0], np.cumsum(q)])
        delta, weight = np.zeros(len(t) + 1), np.zeros(len(t) + 1)
        for j in range(len(t) - 1, -1, -1):
            # weight_j = sum_{i >= j} q_i e^(t_j - t_i): finite however large the losses are
            if math.isinf(t[j]):
                delta[j], weight[j] = (q[j], q[j]) if t[j] > 0 else (1.0, 0.0)
                continue
            above = j + 1 < len(t)
            gap = t[j] - t[j + 1] if above and math.isfinite(t[j + 1]) else -math.inf
            carried = weight[j + 1] if math.isfinite(gap) else 0.0
            delta[j] = (delta[j + 1] if above else 0.0) - math.expm1(max(gap, -745.0)) * carried
            weight[j] = q[j] + math.exp(max(gap, -745.0)) * carried
        return t, survival, np.minimum(distribution, 1.0), delta, weight

    @property
    def max_loss(self) -> float:
        """Largest finite value of the loss."""
        finite = [v for v in self.loss if math.isfinite(v)]
        return finite[-1] if finite else 0.0

    @property
    def infinite_mass(self) -> float:
        """Mass of certain disclosure."""
        return self.q[-1] if self.loss[-1] == math.inf else 0.0

    def _error_rates(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        t, survival, distribution, _, _ = self._tables
        above = np.searchsorted(t, log_ratio, side="right")
        return np.minimum(survival[above], 1.0), distribution[above]

    def _delta(self, epsilon: Floats) -> Floats:
        t, _, _, delta, weight = self._tables
        above = np.searchsorted(t, epsilon, side="right")
        index = np.minimum(above, len(t) - 1)
        gap = np.where(np.isfinite(t[index]), t[index], 0.0)
        with np.errstate(invalid="ignore"):
            step = -np.expm1(np.where(above < len(t), np.minimum(epsilon - gap, 0.0), 0.0)) * weight[index]
        value = np.where(above < len(t), delta[index] + step, 0.0)
        return np.where(np.isposinf(epsilon), self.infinite_mass, value)

    def _curve(self, alpha: Floats) -> Floats:
        _, survival, distribution, _, _ = self._tables
        # where cells have no mass under P the curve falls vertically: keep the lowest point
        keep = np.concatenate([np.diff(survival[::-1]) > 0, [True]])
        x, y = survival[::-1][keep], distribution[::-1][keep]
        return np.interp(alpha, x, y)

    def reversed(self) -> DiscreteCurve:
        """Curve of Q against P: losses change sign, P and Q change places."""
        return DiscreteCurve(tuple(-v for v in reversed(self.loss)), self.q[::-1], self.p[::-1])


def from_atoms(loss: Floats, p: Floats, q: Floats) -> DiscreteCurve:
    """Discrete curve from atoms in any order; equal losses are merged and empty atoms dropped.

    Examples
    --------
    >>> import numpy as np
    >>> from_atoms(np.array([1.0, -1.0]), np.array([0.25, 0.75]), np.array([0.75, 0.25])).loss
    (-1.0, 1.0)
    """
    values, index = np.unique(loss, return_inverse=True)
    pm, qm = np.bincount(index, p, len(values)), np.bincount(index, q, len(values))
    keep = (pm > 0) | (qm > 0)
    total_p, total_q = pm[keep].sum(), qm[keep].sum()
    return DiscreteCurve(tuple(values[keep]), tuple(pm[keep] / total_p), tuple(qm[keep] / total_q))


def randomized_response(epsilon: float, categories: int = 2) -> DiscreteCurve:
    """Trade-off curve of randomised response over k categories (Warner 1965; Kairouz, Oh & Viswanath 2016).

    The truth is told with probability ``e^eps / (e^eps + k - 1)``, every other category is equally likely;
    the loss takes the values ``-eps, 0, eps``. For k > 2 the curve is strictly above the (eps, 0) curve.

    Parameters
    ----------
    epsilon : float
        Pure-DP parameter, > 0.
    categories : int
        Number of categories, at least 2.

    Returns
    -------
    DiscreteCurve

    Raises
    ------
    ValueError, TypeError
        If a parameter is outside its range.

    Examples
    --------
    >>> import math
    >>> round(randomized_response(math.log(3)).advantage, 12)
    0.5
    """
    eps = check_number("epsilon", epsilon, 0.0, low_open=True)
    k = check_integer("categories", categories, 2)
    other = math.exp(-eps) / (1 + (k - 1) * math.exp(-eps))
    truth = 1 / (1 + (k - 1) * math.exp(-eps))
    rest = np.array([truth, (k - 2) * other, other])
    return from_atoms(np.array([-eps, 0.0, eps]), rest, rest[::-1])


def approximate_dp(epsilon: float, delta: float = 0.0) -> DiscreteCurve:
    """The curve f_{eps,delta}: the largest one below every (eps, delta)-DP mechanism.

    ``f(alpha) = max(0, 1 - delta - e^eps alpha, e^-eps (1 - delta - alpha))`` (Wasserman & Zhou 2010).

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float
        In [0, 1].

    Returns
    -------
    DiscreteCurve

    Raises
    ------
    ValueError, TypeError
        If a parameter is outside its range.

    Examples
    --------
    >>> round(approximate_dp(1.0, 0.05).delta(1.0), 12)
    0.05
    """
    eps = check_number("epsilon", epsilon, 0.0)
    d = check_number("delta", delta, 0.0, 1.0)
    high = (1 - d) / (1 + math.exp(-eps))
    low = (1 - d) * math.exp(-eps) / (1 + math.exp(-eps))
    return from_atoms(
        np.array([-math.inf, -eps, eps, math.inf]),
        np.array([d, high, low, 0.0]),
        np.array([0.0, low, high, d]),
    )


def from_points(alpha: ArrayLike, beta: ArrayLike) -> DiscreteCurve:
    """The piecewise linear curve through points of a trade-off function.

    The lower convex hull of the points together with (0, 1) and (1, 0) is taken, so the result is a valid
    trade-off function. A convex curve that is known only at these points lies *below* the chords: pass
    points that are conservative, or use `from_profile`.

    Parameters
    ----------
    alpha, beta : array of shape (n,)
        Type I and type II errors in [0, 1].

    Returns
    -------
    DiscreteCurve

    Raises
    ------
    ValueError, TypeError
        If the arrays differ in length or leave [0, 1].

    Examples
    --------
    >>> round(from_points([0.2], [0.3]).curve(0.1), 6)
    0.65
    """
    a = np.atleast_1d(check_array("alpha", alpha, 0.0, 1.0)).ravel()
    b = np.atleast_1d(check_array("beta", beta, 0.0, 1.0)).ravel()
    if a.shape != b.shape or a.size == 0:
        raise ValueError(
            f"alpha and beta must have the same positive length, got {a.size} and {b.size}; pass pairs of points."
        )
    points = np.unique(np.column_stack([np.r_[0.0, a, 1.0], np.r_[1.0, b, 0.0]]), axis=0)
    hull = _lower_hull(points)
    x, y = hull[:, 0], hull[:, 1]
    # f is non-increasing and ends at zero
    if y[0] > 0 and x[0] == 0 and y[0] < 1:
        dx, dy = np.r_[0.0, np.diff(x)], np.r_[1 - y[0], -np.diff(y)]
    else:
        dx, dy = np.diff(x), -np.diff(y)
    with np.errstate(divide="ignore"):
        slope = np.where(dx > 0, np.log(np.maximum(dy, 0.0)) - np.log(np.where(dx > 0, dx, 1.0)), np.inf)
    return from_atoms(slope, dx, np.maximum(dy, 0.0))


def _lower_hull(points: Any) -> Floats:
    """Lower convex hull of points sorted by the first coordinate (the lowest point per abscissa)."""
    hull: list[tuple[float, float]] = []
    for x, y in points.tolist():
        if hull and hull[-1][0] == x:
            continue
        while len(hull) >= 2 and _turn(hull[-2], hull[-1], (x, y)) <= 0:
            hull.pop()
        hull.append((x, y))
    return np.array(hull)


def _turn(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def from_profile(epsilon: ArrayLike, delta: ArrayLike) -> DiscreteCurve:
    """The largest symmetric curve that the guarantees (eps_i, delta_i) imply.

    It is the upper envelope of the lines ``1 - delta_i - e^eps_i alpha`` and their mirror images
    (Dong, Roth & Su 2022, proposition 2.12).

    Parameters
    ----------
    epsilon : array of shape (n,)
        At least 0.
    delta : array of shape (n,)
        In [0, 1].

    Returns
    -------
    DiscreteCurve

    Raises
    ------
    ValueError, TypeError
        If the arrays differ in length or leave their range.

    Examples
    --------
    >>> round(from_profile([0.5, 1.0], [0.1, 0.02]).delta(1.0), 12)
    0.02
    """
    e = np.atleast_1d(check_array("epsilon", epsilon, 0.0, 709.0)).ravel()
    d = np.atleast_1d(check_array("delta", delta, 0.0, 1.0)).ravel()
    if e.shape != d.shape or e.size == 0:
        raise ValueError(
            f"epsilon and delta must have the same positive length, got {e.size} and {d.size}; "
            "pass one delta for every epsilon."
        )
    order = np.lexsort((d, e))
    e, d = e[order], d[order]
    lines: list[tuple[float, float]] = []  # (slope e^eps, height 1 - delta), steepest last
    for slope, height in zip(np.exp(e), 1 - d, strict=True):
        if lines and (height <= lines[-1][1] or slope == lines[-1][0]):
            continue
        while len(lines) >= 2 and _crossing(lines[-1], (slope, height)) >= _crossing(lines[-2], lines[-1]):
            lines.pop()
        lines.append((slope, height))
    fixed = lines[0][1] / (1 + lines[0][0])
    # drop lines that only matter beyond the diagonal, where the mirror images take over
    while len(lines) >= 2 and _crossing(lines[0], lines[1]) >= fixed:
        lines.pop(0)
        fixed = lines[0][1] / (1 + lines[0][0])
    corners = [0.0] + [_crossing(a, b) for a, b in zip(lines[:0:-1], lines[-2::-1], strict=True)] + [fixed]
    p = np.diff(corners)
    slopes = np.array([line[0] for line in reversed(lines)])
    loss, q = np.log(slopes), p * slopes
    top = 1 - lines[-1][1]
    return from_atoms(np.r_[-np.inf, -loss, loss, np.inf], np.r_[top, q, p, 0.0], np.r_[0.0, p, q, top])


def _crossing(flat: tuple[float, float], steep: tuple[float, float]) -> float:
    return (steep[1] - flat[1]) / (steep[0] - flat[0])
