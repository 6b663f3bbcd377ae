r"""Minimiser for corrected risks: projected trust-region Newton in a box.

A corrected risk is a difference of convex functions: in finite samples it may bend downwards or have no
minimum away from the truth. The consistent root is the interior minimum near the naive and one-step fits, so
those start the search; every iterate stays in the box, and the answer says whether it is an interior minimum
with positive curvature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.errors import CapabilityError
from privfit.estimators.losses.base import IndexLoss
from privfit.estimators.risk import Risk

__all__ = ["Solution", "minimise", "one_step", "polish", "solve"]

Floats = NDArray[np.float64]
_FINAL = 1e-9
"""Tolerance of a search that is the last one."""
_EXACT = 1e-12
"""Size of a Newton step, beside 1 + that of the coefficients, that leaves the curvature as it is."""


@dataclass(frozen=True)
class Solution:
    """What a minimisation found.

    Attributes
    ----------
    theta : ndarray
        The minimiser, in the solver's coordinates.
    value : float
        Risk there.
    gradient, hessian : ndarray
    converged : bool
        Projected gradient below tolerance.
    at_bound : ndarray of bool
        Coordinates on the boundary of the box.
    positive : bool
        Hessian positive definite on the free coordinates.
    iterations : int
    minima : int
        Different proper minima met, where `restarts` searched for several.
    others : tuple of ndarray
        Those other than the lowest, from the lowest up.
    scored : IndexLoss, optional
        The loss whose minimiser this is, if it is not that of the risk: its scores make the sandwich. (An exact
        minimiser without smoothing, while the smoothed risk gives the curvature.)

    Examples
    --------
    >>> one = np.zeros(1)
    >>> Solution(one, 0.0, one, np.eye(1), True, np.array([False]), True, 3).interior
    True
    """

    theta: Floats
    value: float
    gradient: Floats
    hessian: Floats
    converged: bool
    at_bound: NDArray[np.bool_]
    positive: bool
    iterations: int
    minima: int = 1
    others: tuple[Floats, ...] = ()
    scored: IndexLoss | None = None

    def of_scores(self, risk: Risk) -> Risk:
        """Return the risk with the loss whose scores the minimiser has."""
        return risk if self.scored is None else risk.with_(loss=self.scored)

    @property
    def interior(self) -> bool:
        """Whether this is a proper minimum inside the box."""
        return self.converged and self.positive and not bool(self.at_bound.any())


def minimise(
    risk: Risk, start: Floats, bound: Floats, *, tolerance: float = 1e-9, max_iterations: int = 100
) -> Solution:
    """Minimise a risk in the box ``|theta| <= bound`` from one start by projected trust-region Newton.

    Parameters
    ----------
    risk : Risk
    start : ndarray, shape (p,)
    bound : ndarray, shape (p,)
        Half-widths, inf allowed.
    tolerance : float
        On the largest entry of the projected gradient, relative to 1 + the curvature's size.
    max_iterations : int

    Returns
    -------
    Solution

    Examples
    --------
    >>> from privfit.estimators.corrections import Term
    >>> from privfit.estimators.losses import SquaredLoss
    >>> from privfit.estimators.risk import Design
    >>> data = Design(-np.array([[1.0, 1.0]]), np.array([1.0, 3.0]))
    >>> risk = Risk.of(SquaredLoss(), [Term(1.0, 0, ())], [data], np.zeros((0, 1)), np.zeros(0))
    >>> minimise(risk, np.zeros(1), np.array([np.inf])).theta
    array([2.])
    """
    theta = np.clip(start, -bound, bound)
    if not risk.admits(0.0 * theta):
        raise CapabilityError(
            f"{type(risk.loss).__name__} has no finite-variance correction under this noise for any coefficients: "
            "use less noise, a loss that grows more slowly, or a finer release of the response."
        )
    while not risk.admits(theta):
        theta = 0.9 * theta
    value, gradient, hessian = risk.derivatives(theta)
    radius, converged, step_count = 1.0 + float(np.linalg.norm(theta)), False, 0
    for step_count in range(max_iterations + 1):
        held = _held(theta, gradient, bound)
        projected = np.where(held, 0.0, gradient)
        if np.abs(projected).max(initial=0.0) <= tolerance * (1.0 + np.abs(np.diag(hessian)).max(initial=0.0)):
            converged = True
            break
        if step_count == max_iterations:
            break
        step = _trust_step(projected, hessian, ~held, radius)
        trial = np.clip(theta + step, -bound, bound)
        move = trial - theta
        expected = -float(gradient @ move + 0.5 * move @ hessian @ move)
        admitted = risk.admits(trial)
        new = risk.derivatives(trial) if admitted else (np.inf, gradient, hessian)
        actual = value - new[0]
        noise = 1e-14 * (1.0 + abs(value))
        good = actual > 0.1 * expected or (abs(expected) <= noise and abs(actual) <= 10 * noise)
        length = float(np.linalg.norm(move))
        if good:
            if actual > 0.7 * expected and length > 0.8 * radius:
                radius *= 3.0
            theta, (value, gradient, hessian) = trial, new
        else:
            radius = 0.25 * min(radius, length)
            if radius < 1e-13 * (1.0 + float(np.linalg.norm(theta))):
                break
    return _solution(theta, value, gradient, hessian, bound, converged, step_count)


def polish(risk: Risk, start: Floats, bound: Floats, *, tolerance: float = 1e-9) -> Solution | None:
    """Finish from a start close to an interior minimum: one Newton step, then chords (gradients only).

    Records that are not in memory are dear to read, and get Newton steps, which need fewer passes.

    Returns None where the chords do not contract or leave the box; `minimise` is the general search.

    Examples
    --------
    >>> polish.__name__
    'polish'
    """
    if not risk.held:
        return _newton(risk, start, bound, tolerance)
    _, gradient, hessian = risk.derivatives(start, value=False)
    eigenvalues, vectors = np.linalg.eigh(hessian)
    if eigenvalues[0] <= 1e-8 * eigenvalues[-1]:
        return None
    inverse = vectors / eigenvalues @ vectors.T
    wanted = tolerance * (1.0 + float(np.abs(np.diag(hessian)).max()))
    theta, last = start, float(np.abs(gradient).max())
    for count in range(1, 12):
        theta = theta - inverse @ gradient
        if (np.abs(theta) >= bound).any() or not risk.admits(theta):
            return None
        gradient = risk.derivatives(theta, 1, value=False)[1]
        now = float(np.abs(gradient).max())
        if now <= wanted:
            theta = theta - inverse @ gradient
            value, gradient, hessian = risk.derivatives(theta)
            return _refreshed(risk, _solution(theta, value, gradient, hessian, bound, True, count))
        if now > 0.3 * last:
            return None
        last = now
    return None


def _newton(risk: Risk, theta: Floats, bound: Floats, tolerance: float) -> Solution | None:
    """Newton steps that each cut the gradient to a third at least."""
    last = np.inf
    for count in range(12):
        value, gradient, hessian = risk.derivatives(theta)
        now = float(np.abs(gradient).max())
        values, vectors = np.linalg.eigh(hessian)
        if values[0] <= 1e-8 * values[-1] or now > 0.3 * last:
            return None
        if now <= tolerance * (1.0 + float(np.abs(np.diag(hessian)).max())):
            return _refreshed(risk, _solution(theta, value, gradient, hessian, bound, True, count))
        last, theta = now, theta - vectors @ ((vectors.T @ gradient) / values)
        if (np.abs(theta) >= bound).any() or not risk.admits(theta):
            return None
    return None


def _solution(
    theta: Floats, value: float, gradient: Floats, hessian: Floats, bound: Floats, converged: bool, count: int
) -> Solution:
    held = np.abs(theta) >= bound * (1.0 - 1e-9)
    free = ~held
    eigenvalues = np.linalg.eigvalsh(hessian[np.ix_(free, free)]) if free.any() else np.ones(1)
    largest = float(np.abs(eigenvalues).max(initial=0.0))
    positive = bool(eigenvalues.min() > 1e-10 * largest)
    if converged and positive and free.all() and eigenvalues.min() > 1e-6 * largest:
        # A Newton step costs nothing now, and squares what the tolerance has left.
        better = theta - np.linalg.solve(hessian, gradient)
        theta = better if (np.abs(better) < bound).all() else theta
    return Solution(theta, value, gradient, hessian, converged, held, positive, count)


def _refreshed(risk: Risk, solution: Solution) -> Solution:
    """Take value, gradient and Hessian anew where the last Newton step was longer than rounding.

    Standard errors are then those at the minimum, whichever way the search came there: from other starts, or over
    records in memory or on disk.
    """
    if not solution.interior:
        return solution
    step = np.abs(np.linalg.solve(solution.hessian, solution.gradient)).max()
    if step <= _EXACT * (1.0 + float(np.abs(solution.theta).max())):
        return solution
    value, gradient, hessian = risk.derivatives(solution.theta)
    return replace(solution, value=value, gradient=gradient, hessian=hessian)


def _held(theta: Floats, gradient: Floats, bound: Floats) -> NDArray[np.bool_]:
    """Coordinates on the boundary that descent would push outwards."""
    return ((theta >= bound) & (gradient < 0)) | ((theta <= -bound) & (gradient > 0))


def _trust_step(gradient: Floats, hessian: Floats, free: NDArray[np.bool_], radius: float) -> Floats:
    """Minimise the quadratic model over ``|step| <= radius`` in the free coordinates (secular equation)."""
    step = np.zeros_like(gradient)
    values, vectors = np.linalg.eigh(hessian[np.ix_(free, free)])
    g = vectors.T @ gradient[free]
    floor = 1e-12 * max(float(np.abs(values).max()), 1e-300)
    low = max(0.0, -float(values[0])) + floor
    if values[0] > floor:
        newton = -g / values
        if np.linalg.norm(newton) <= radius:
            step[free] = vectors @ newton
            return step
        low = 0.0
    # No component of the step may be longer than the radius; from there Newton's method on 1 / |step|, which is
    # concave, ascends to the root (Conn, Gould & Toint 2000, section 7.3).
    shift = max(low, float((np.abs(g) / radius - values).max()))
    for _ in range(50):
        moved = g / (values + shift)
        square = float(moved @ moved)
        excess = np.sqrt(square) / radius - 1.0
        if excess <= 1e-14:
            break
        shift += excess * square / float(moved @ (moved / (values + shift)))
    step[free] = vectors @ -moved
    return step


def one_step(risk: Risk, theta: Floats) -> Floats | None:
    """One Newton step of `risk` from theta, or None where its curvature is not positive."""
    if not risk.admits(theta):
        return None
    _, gradient, hessian = risk.derivatives(theta, value=False)
    values, vectors = np.linalg.eigh(hessian)
    if values[0] <= 1e-8 * abs(values[-1]):
        return None
    return np.asarray(theta - vectors @ ((vectors.T @ gradient) / values), float)


def solve(risk: Risk, starts: Sequence[Floats], bound: Floats, *, tolerance: float = 1e-9) -> Solution:
    """Minimise from several starts: the lowest proper interior minimum, else the lowest value found.

    Examples
    --------
    >>> solve.__name__
    'solve'
    """
    found: list[Solution] = []
    for start in starts:
        near = [s for s in found if s.interior and np.abs(s.theta - start).max() < 1e-6]
        if not near:
            found.append(minimise(risk, start, bound, tolerance=tolerance))
    interior = [s for s in found if s.interior]
    best = min(interior or found, key=lambda s: s.value)
    return _refreshed(risk, best) if tolerance <= _FINAL else best
