"""Curves that are given by finitely many numbers: pmfs, loss distributions, points, guarantees.

Each becomes the atoms of a privacy loss (atoms.py has the formulas):

    pmfs p, q on the same outcomes      loss log(q_i / p_i) with masses p_i and q_i
    loss distribution under Q           p_i = q_i e^(-t_i); what is missing to 1 under P has loss -inf
    polyline                            a segment (dx, dy) is the atom with loss log(dy / dx), p = dx, q = dy
    guarantees (eps_i, delta_i)         upper envelope of the lines 1 - delta_i - e^eps_i alpha and their mirror images
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.accounting.atoms import DiscreteCurve, from_atoms
from privfit.accounting.validation import check_array, check_integer, check_number

__all__ = [
    "DiscreteCurve",
    "approximate_dp",
    "from_atoms",
    "from_distributions",
    "from_losses",
    "from_points",
    "from_profile",
    "randomized_response",
]

Floats = NDArray[np.float64]
SUM_TOLERANCE = 1e-9  # masses that miss 1 by less are rescaled


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


def from_distributions(p: ArrayLike, q: ArrayLike) -> DiscreteCurve:
    """Exact curve of testing one probability mass function against another on the same outcomes.

    Parameters
    ----------
    p, q : array of the same shape
        Mass of every outcome on the two neighbouring inputs, >= 0; each sums to 1 (within 1e-9, then rescaled).
        An outcome that only one of them can produce is an infinite loss.

    Returns
    -------
    DiscreteCurve
        Not symmetric in general: ``reversed()`` is the curve of Q against P.

    Raises
    ------
    ValueError, TypeError
        If the shapes differ, a mass is negative or not finite, or a sum is not 1.

    Examples
    --------
    >>> curve = from_distributions([0.5, 0.5, 0.0], [0.25, 0.65, 0.1])
    >>> round(curve.infinite_mass, 12), round(curve.curve(0.5), 12)
    (0.1, 0.25)
    """
    pm, qm = _masses("p", p), _masses("q", q)
    if np.shape(p) != np.shape(q):
        raise ValueError(
            f"p and q must have the same shape, got {np.shape(p)} and {np.shape(q)}; list the same outcomes in both."
        )
    keep = (pm > 0) | (qm > 0)
    pm, qm = pm[keep], qm[keep]
    with np.errstate(divide="ignore", over="ignore"):
        ratio = qm / pm
        # the quotient itself is exact to one rounding unless it leaves the normal range
        normal = (ratio > 1e-300) & (ratio < 1e300)
        loss = np.where(normal, np.log(np.where(normal, ratio, 1.0)), np.log(qm) - np.log(pm))
    return from_atoms(loss, pm, qm)


def from_losses(loss: ArrayLike, q: ArrayLike) -> DiscreteCurve:
    """Exact curve of a discrete privacy loss distribution (the format of privacy accountants).

    Parameters
    ----------
    loss : array of shape (n,)
        Values of ``log(dQ/dP)`` in any order, equal values allowed; ``inf`` is certain disclosure.
    q : array of shape (n,)
        Their masses under Q, >= 0, with sum 1 (within 1e-9, then rescaled). The masses under P are
        ``q e^(-loss)``; they may sum to less than 1, and the rest is given the loss -inf. A rest below 1e-14
        counts as rounding.

    Returns
    -------
    DiscreteCurve

    Raises
    ------
    ValueError, TypeError
        If the lengths differ, q is no distribution, mass lies on the loss -inf (impossible under Q), or the
        masses under P sum to more than 1.

    Examples
    --------
    >>> import math
    >>> round(from_losses([1.0, -1.0, math.inf], [0.7, 0.2, 0.1]).delta(0.5), 12)
    0.375428538201
    """
    t, qm = np.atleast_1d(check_array("loss", loss)).ravel(), _masses("q", q)
    if t.shape != qm.shape:
        raise ValueError(f"loss and q must have the same length, got {t.size} and {qm.size}; pass one q per loss.")
    t, qm = t[qm > 0], qm[qm > 0]
    if np.any(np.isneginf(t)):
        raise ValueError("q must be 0 where loss is -inf: such outcomes cannot occur under Q. Drop them.")
    with np.errstate(over="ignore"):
        pm = np.exp(np.log(qm) - t)
    rest = 1.0 - float(pm.sum())
    if not rest >= -SUM_TOLERANCE:
        raise ValueError(
            f"q exp(-loss) must sum to at most 1 (it is the mass under P), got {1.0 - rest!r}; "
            "check that loss is log(dQ/dP) with q the masses under Q, and not the reverse."
        )
    if rest > 1e-14:
        t, pm, qm = np.append(t, -np.inf), np.append(pm, rest), np.append(qm, 0.0)
    return from_atoms(t, pm, qm)


def _masses(name: str, value: ArrayLike) -> Floats:
    """A flat array of masses with sum exactly about 1, or an error."""
    mass = np.atleast_1d(check_array(name, value, 0.0, 1.0 + SUM_TOLERANCE)).ravel()
    total = float(mass.sum())
    if not abs(total - 1.0) <= SUM_TOLERANCE:
        raise ValueError(f"{name} must sum to 1, got {total!r}; rescale it, or add the outcomes that are missing.")
    return mass / total


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
    x, y = _lower_hull(np.r_[0.0, a, 1.0], np.r_[1.0, b, 0.0])
    # the first point has alpha = 0: what f lacks to 1 there is an infinite loss
    dx, dy = np.r_[0.0, np.diff(x)], np.r_[1 - y[0], -np.diff(y)]
    with np.errstate(divide="ignore"):
        slope = np.where(dx > 0, np.log(np.maximum(dy, 0.0)) - np.log(np.where(dx > 0, dx, 1.0)), np.inf)
    return from_atoms(slope, dx, np.maximum(dy, 0.0))


def _lower_hull(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Corners of the lower convex hull of points in any order, from left to right."""
    order = np.lexsort((y, x))
    x, y = x[order], y[order]
    lowest = np.append(True, x[1:] > x[:-1])
    x, y = x[lowest], y[lowest]
    # a point on or above the chord of its neighbours is no corner: most go in a few passes over all of them
    while len(x) > 2:
        keep = np.append(np.append(True, _turn(x[:-2], y[:-2], x[1:-1], y[1:-1], x[2:], y[2:]) > 0), True)
        few = np.count_nonzero(keep) > 0.9 * len(x)
        x, y = x[keep], y[keep]
        if few:
            break
    hull: list[tuple[float, float]] = []
    for point in zip(x.tolist(), y.tolist(), strict=True):
        while len(hull) >= 2 and _turn(*hull[-2], *hull[-1], *point) <= 0:
            hull.pop()
        hull.append(point)
    corners = np.array(hull)
    return corners[:, 0], corners[:, 1]


def _turn(ax: Any, ay: Any, bx: Any, by: Any, cx: Any, cy: Any) -> Any:
    return (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)


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
