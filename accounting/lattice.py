"""One privacy loss on a uniform lattice, rounded to either side.

As a function of ``x = e^eps`` the profile ``h(x) = delta(log x)`` is convex, and atoms of the loss on the
lattice ``0, +-h, +-2h, ...`` are the polylines with vertices at its points. Two of them enclose a profile:

    pessimistic   chords between the lattice points                         (Doroshenko et al. 2022: the best)
    optimistic    the least of the tangents at the middles of the two cells that meet in a lattice point;
                  a chord between such points lies below the tangent of its cell

Both miss by O(h^2). Rounding errors can leave either one slightly concave; its greatest convex minorant, an
isotonic regression of the slopes, is on the same side and is taken instead. Losses above the lattice count as
infinite (pessimistic) or as the last point (optimistic), losses below as certain for P or as no loss at all.
Losses above zero come from the profile, losses below from the profile of the reversed pair, so that masses
keep their relative accuracy in both tails.

An atom of the loss between two points costs the optimistic side O(h); a step that puts a lattice point just
below it (`aligned`) costs nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.base import TradeOffCurve

__all__ = ["Atoms", "aligned", "rounded", "side_masses"]

Floats = NDArray[np.float64]
CONCAVE = 1e-13  # negative mass at zero that is not rounding
STEEP = 600.0  # largest loss whose exponential is formed


@dataclass(frozen=True)
class Atoms:
    """Masses of the loss under Q at ``(first + i) h``, of the disclosed part, and of the part left out."""

    first: int
    q: Floats
    disclosed: float
    left_out: float


def aligned(h: float, loss: float) -> float:
    """Step of at most h with a lattice point closely below `loss`, where the curve has an atom.

    Examples
    --------
    >>> aligned(0.3, 1.0)
    0.249999999999...
    """
    return loss * (1 - 4e-12) / math.ceil(loss / h)


def rounded(curve: TradeOffCurve, h: float, right: float, left: float, pessimistic: bool) -> Atoms:
    """Loss of `curve` on the lattice of step h between -left and right, on one side of the truth.

    Parameters
    ----------
    curve : TradeOffCurve
    h : float
        Step of the lattice.
    right, left : float
        How far the lattice reaches above and below zero.
    pessimistic : bool
        Profile from above, or from below.

    Returns
    -------
    Atoms

    Examples
    --------
    >>> from privfit.accounting.laplace import laplace
    >>> atoms = rounded(laplace(1.0), 0.25, 1.0, 1.0, pessimistic=True)
    >>> atoms.first, len(atoms.q), round(float(atoms.q.sum()), 12)
    (-4, 9, 1.0)
    """
    back = curve.reversed()
    m, n = (max(1, math.ceil(reach / h)) for reach in (left, right))
    values = _chords if pessimistic else _tangents
    y, floor = values(curve, h, n)
    z, _ = (y, floor) if back is curve and m == n else values(back, h, m)
    y[0] = z[0] = max(y[0], z[0]) if pessimistic else min(y[0], z[0])
    # what one side has lowered at zero binds the other
    y, z = np.minimum(y, y[0]), np.minimum(z, z[0])
    floor = min(floor, float(y[-1]))
    above, slope = side_masses(h, y)
    below, back_slope = side_masses(h, z)
    if 1.0 - y[0] - slope - back_slope < -CONCAVE:
        y, z = _convex(h, y, z)
        floor = min(floor, float(y[-1]))
        (above, slope), (below, back_slope) = side_masses(h, y), side_masses(h, z)
    if not pessimistic:
        above[-1] += max(y[-1] - floor, 0.0)
    middle = 1.0 - y[0] - slope - back_slope
    with np.errstate(under="ignore"):
        q_below = (below * np.exp(-h * np.arange(1, m + 1)))[::-1]
    q = np.concatenate([q_below, [max(middle, 0.0)], above])
    disclosed = float(y[-1]) if pessimistic else floor
    return Atoms(-m, q, disclosed, 0.0 if pessimistic else max(back_slope - float(q_below.sum()), 0.0))


def _convex(h: float, y: Floats, z: Floats) -> tuple[Floats, Floats]:
    """Greatest convex minorant across zero, where the minorants of the two sides meet in a concave angle.

    In x = e^eps the profile below one is ``1 - x + x z``; the share of P at losses below a cell there is
    ``(z_j - e^-h z_(j+1)) / (1 - e^-h)``.
    """
    from scipy.optimize import isotonic_regression

    right = np.exp(h * np.arange(len(y) - 1)) * math.expm1(h)
    x = np.exp(-h * np.arange(len(z)))
    # from x = 0, where the profile is one, to the first lattice point, and on from cell to cell
    left = np.append(x[:-1] * -math.expm1(-h), x[-1])[::-1]
    share = np.append((z[:-1] - math.exp(-h) * z[1:]) / -math.expm1(-h), z[-1])[::-1]
    slopes = np.concatenate([1.0 - share, (y[:-1] - y[1:]) / right])
    fitted = isotonic_regression(slopes, weights=np.concatenate([left, right]), increasing=False).x
    falling = np.maximum(fitted, 0.0)  # it does not rise: where it would, it stays at its least value
    new_z = np.cumsum((1.0 - falling[: len(left)]) * left)[::-1] / x
    if fitted[-1] < 0:
        new_y = new_z[0] - np.append(0.0, np.cumsum(falling[len(left) :] * right))
    else:
        new_y = y[-1] + np.append(np.cumsum((falling[len(left) :] * right)[::-1])[::-1], 0.0)
    new_y[0] = new_z[0] = min(new_y[0], new_z[0])
    return np.minimum(new_y, new_y[0]), np.minimum(new_z, new_z[0])


def _chords(curve: TradeOffCurve, h: float, n: int) -> tuple[Floats, float]:
    """Values of the pessimistic polyline at 0, h, ..., n h."""
    return np.asarray(curve.delta(h * np.arange(n + 1.0))), 0.0


def _tangents(curve: TradeOffCurve, h: float, n: int) -> tuple[Floats, float]:
    """Values of the optimistic polyline at 0, h, ..., n h, and its limit."""
    side = curve._on("upper")
    floor = float(np.clip(side._shift(np.float64(side.infinite_mass), "lower"), 0.0, 1.0))
    middle = h * (np.arange(float(n)) + 0.5)
    value, steep = _support(curve, side, h, middle)
    start, end = value - steep * math.expm1(-h / 2), value - steep * math.expm1(h / 2)
    # the tangent at the end of a cell stays above the floor where the one at its middle does not
    low = np.flatnonzero(end < floor)
    if low.size:
        value, steep = _support(curve, side, h, middle[low] + h / 2)
        start[low], end[low] = value - steep * math.expm1(-h), value
    y = np.concatenate([start, [end[-1]]])
    y[1:-1] = np.minimum(start[1:], end[:-1])
    sunk = np.flatnonzero(end < floor)
    if sunk.size:
        y[sunk[0] :] = floor
    return np.minimum.accumulate(np.maximum(y, floor)), floor


def _support(curve: TradeOffCurve, side: TradeOffCurve, h: float, t: Floats) -> tuple[Floats, Floats]:
    """(delta, e^t alpha) at t, lowered so that the line stays below the profile within h of t."""
    value = np.asarray(curve.delta(t, bound="lower"))
    alpha = side._error_rates(t)[0]
    precision = side.precision
    with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
        steep = np.where(alpha > 0, np.exp(t + np.log(alpha)), 0.0)  # at most 1
        doubt = 2 * h * (precision.relative * steep + precision.absolute * np.exp(np.minimum(t, STEEP)))
    return value - doubt, steep


def side_masses(h: float | Floats, y: Floats) -> tuple[Floats, float]:
    """Masses of Q at the points after the first of a polyline in e^eps, and the mass of P above the first.

    Parameters
    ----------
    h : float or array of shape (n,)
        Distances of the points, which start at eps = 0.
    y : array of shape (n + 1,)
        Values of delta there, not increasing.

    Returns
    -------
    masses : array of shape (n,)
    slope : float

    Examples
    --------
    >>> masses, slope = side_masses(1.0, np.array([0.5, 0.0]))
    >>> round(float(masses[0]), 6), round(slope, 6)
    (0.790988, 0.290988)
    """
    step = np.broadcast_to(np.minimum(h, STEEP), (len(y) - 1,))
    scaled = (y[:-1] - y[1:]) / np.expm1(step)  # e^(e_j) alpha on the cell that starts at e_j
    edges = np.concatenate([[0.0], np.cumsum(step)[:-1]])
    if edges[-1] < STEEP:
        alpha = scaled * np.exp(-edges)
        if np.any(alpha[1:] > alpha[:-1]):
            from scipy.optimize import isotonic_regression

            alpha = isotonic_regression(alpha, weights=np.exp(edges) * np.expm1(step), increasing=False).x
            scaled = alpha * np.exp(edges)
    masses = np.maximum(scaled * np.exp(step) - np.append(scaled[1:], 0.0), 0.0)
    return masses, float(scaled[0])
