"""Probabilities that the privacy loss of (generalised) symmetric Laplace noise exceeds a threshold.

The loss exceeds t where ``|z - C e_1| < R(z)`` with ``F(R) = F(z) + t`` (see symmetric_laplace.py). That is a cap of
every sphere about the centre of P, and a cap of every sphere about the centre of Q:

    P[L > t] = int f(z) P[cos > tau] dz,             tau = (z^2 + C^2 - R^2) / (2 C z)
    Q[L > t] = int f(R) P[cos > tau'] dR/dz dz,      tau' = (z^2 - C^2 - R^2) / (2 C R),   dR/dz = F'(z) / F'(R)

between the points where the axis enters and leaves the region; Q also has the ball about its centre that lies in
the region altogether. ``delta(t) = Q[L > t] - e^t P[L > t]`` is accurate where the difference does not cancel.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.axis import axis_of
from privfit.accounting.caps import log_cap_probability
from privfit.accounting.quadrature import integrate, narrow
from privfit.accounting.radial import RadialLaw

__all__ = ["log_ball", "loss_tails"]

Floats = NDArray[np.float64]
EVERY = 4  # the support is searched at every fourth threshold of a long array
LONG = 9.5  # supports longer than this, in the variable x, take more nodes


def loss_tails(law: RadialLaw, shift: float, t: Floats, t_under_q: Floats) -> tuple[Floats, Floats]:
    """Log P[L > t] and log Q[L > t'] for thresholds >= 0 below the largest loss; `shift` is C = sqrt(2k) c.

    Parameters
    ----------
    law : RadialLaw
    shift : float
    t : array of shape (m,)
        Increasing.
    t_under_q : array of shape (n,)
        Usually short.

    Returns
    -------
    log_p : array of shape (m,)
    log_q : array of shape (n,)
        Relative error of the probabilities about 1e-13 for moderate parameters, 1e-11 in high dimension.

    Examples
    --------
    >>> from privfit.accounting.radial import radial_law
    >>> p, q = loss_tails(radial_law(2, 1.0), 2**0.5, np.array([0.0, 0.7]), np.array([0.0]))
    >>> round(float(np.exp(p[1])), 10), round(float(np.exp(p[0]) + np.exp(q[0])), 12)     # Q[L > 0] = P[L < 0]
    (0.1463869363, 1.0)
    """
    both = np.concatenate([t, t_under_q])
    whole = _Surface(law, shift, both, *axis_of(law.dim, law.shape, shift).crossings(both), len(t))
    if len(t) <= 2 * EVERY:
        ends = whole.support()
    else:
        # a threshold takes the union of the supports of the chosen thresholds on either side of it
        chosen = np.append(np.arange(0, len(t) - 1, EVERY), np.arange(len(t) - 1, len(both)))
        last = len(chosen) - len(t_under_q) - 1
        near, far = whole.rows(chosen, last + 1).distances()
        left = np.minimum(np.arange(len(t)) // EVERY, last - 1)
        near = np.append(np.minimum(near[left], near[left + 1]), near[last + 1 :])
        far = np.append(np.maximum(far[left], far[left + 1]), far[last + 1 :])
        ends = whole.between(near, far)
    value = whole.value(*ends)
    log_p, log_q = value[: len(t)], value[len(t) :]
    entry = whole.entry[len(t) :]
    ball = entry > 0
    if ball.any():
        log_q[ball] = np.logaddexp(log_q[ball], log_ball(law, np.log(entry[ball])))
    return log_p, log_q


def log_ball(law: RadialLaw, u: Floats) -> Floats:
    """Log P[|z| < e^u].

    Parameters
    ----------
    law : RadialLaw
    u : array of shape (m,)

    Returns
    -------
    array of shape (m,)

    Examples
    --------
    >>> from privfit.accounting.radial import radial_law
    >>> round(float(np.exp(log_ball(radial_law(1, 1.0), np.array([0.0]))[0])), 12) == round(1 - math.exp(-1), 12)
    True
    """
    inner = u < law.mode
    side = np.where(inner, -1.0, 1.0)  # the ball itself, or what lies outside it: the smaller part decays from u

    def log_integrand(s: Floats) -> Floats:
        return law.log_radial_density(u[:, None] + side[:, None] * s)

    low, high = np.zeros_like(u), np.where(inner, u - law.near_end(u, 60.0), law.far_end(u, 60.0) - u)
    for _ in range(3):
        low, high, _ = narrow(log_integrand, low, high)
    value = integrate(log_integrand, low, high, 64)
    return np.where(inner, value, np.log1p(-np.exp(np.minimum(value, -1e-300))))


class _Surface:
    """The surface L = t at several thresholds, one row each: the first `under_p` seen from P, the others from Q.

    The distance past the entry is ``unit (e^x - 1)``: linear near the entry, logarithmic far away.
    """

    def __init__(self, law: RadialLaw, shift: float, t: Floats, entry: Floats, inside: Floats, under_p: int) -> None:
        self.law, self.shift, self.t, self.entry, self.inside, self.under_p = law, shift, t, entry, inside, under_p
        self.start = shift - entry
        self.unit = np.where(entry > 0, entry, self.start)
        if law.order > 0:
            # R(z) has a branch point where R = 0, close before the entry if that is close to the centre of Q
            near = np.maximum(np.log(np.maximum(np.abs(entry), 1e-250)), -200.0)
            gap = (law.at_zero - law.log_density(near)) * self.start / law.slope(np.log(self.start))
            self.unit = np.minimum(self.unit, np.maximum(gap, 1e-14 * self.start))

    def rows(self, chosen: NDArray[np.intp], under_p: int) -> _Surface:
        """Some of the thresholds."""
        entry, inside = self.entry[chosen], self.inside[chosen]
        return _Surface(self.law, self.shift, self.t[chosen], entry, inside, under_p)

    def log_integrand(self, x: Floats, steps: int = 12) -> Floats:
        """Log of the integrand in x; R(z) = z e^w by at most `steps` steps."""
        unit = self.unit[:, None]
        y = unit * np.expm1(x)
        offset = y - self.entry[:, None]  # z - C, signed
        z = self.start[:, None] + y
        u = np.log(z)
        w = self.law.solve_drop(u, self.t[:, None], steps)
        step = z * np.expm1(w)  # R - z
        far = w < -0.5
        radius = np.where(far, np.exp(u + w), z + step)
        slack = np.where(far, radius - np.abs(offset), np.where(offset > 0, self.shift, z + offset) + step)
        parts = [u, w, z, radius, offset, np.maximum(slack, 0.0), step]
        n = self.under_p
        with np.errstate(divide="ignore"):
            if n == len(x):
                cap = self._from_p(*parts)
            else:
                cap = np.concatenate([self._from_p(*(v[:n] for v in parts)), self._from_q(*(v[n:] for v in parts))])
            return cap + np.log((y + unit) / z)

    def _from_p(
        self, u: Floats, w: Floats, z: Floats, radius: Floats, offset: Floats, slack: Floats, step: Floats
    ) -> Floats:
        """Log of density times cap, per unit of log z; slack is R - |z - C| and step R - z."""
        reach = slack * (radius + np.abs(offset)) / (2 * self.shift * z)
        return self.law.log_radial_density(u) + log_cap_probability(self.law.dim, np.minimum(reach, 1.0))

    def _from_q(
        self, u: Floats, w: Floats, z: Floats, radius: Floats, offset: Floats, slack: Floats, step: Floats
    ) -> Floats:
        """The same for the spheres about the centre of Q, where a cap can be more than half of the sphere."""
        law, behind = self.law, offset > 0
        other = radius + np.abs(offset)
        size = 2 * self.shift * np.maximum(radius, 1e-300)
        # 1 - tau' = (R + C - z)(R + C + z) / (2 C R) and 1 + tau' = (R + z - C)(z + C - R) / (2 C R)
        reach = np.where(behind, slack, other) * (radius + self.shift + z) / size
        short = np.where(behind, other, slack) * (self.shift - step) / size
        small = log_cap_probability(law.dim, np.minimum(reach, 1.0))
        large = np.log1p(-np.exp(log_cap_probability(law.dim, np.minimum(short, 1.0))))
        angle = np.where(reach <= 1, small, large)
        return law.log_radial_density(u + w) + np.log(law.slope(u) / law.slope(u + w)) + angle

    def value(self, low: Floats, high: Floats) -> Floats:
        """Log of the integrals between low and high; a cap varies on a scale of dim^(-1/2)."""
        nodes = 64 if np.all(high - low < LONG) else 96
        nodes = max(nodes, 16 * math.ceil(0.8 * math.sqrt(self.law.dim)))
        return integrate(self.log_integrand, low, high, nodes)

    def support(self) -> tuple[Floats, Floats]:
        """Where the integrand matters."""

        def rough(x: Floats) -> Floats:
            return self.log_integrand(x, 1)

        fall, zero = 50.0, np.zeros_like(self.t)
        while True:
            far = np.exp(self.law.far_end(np.log(self.start), fall)) - self.start
            low, high, at_end = narrow(rough, zero, np.log1p(np.minimum(self.inside, far) / self.unit))
            if fall > 1e4 or not np.any(at_end & (far < self.inside)):
                break
            fall *= 2  # a rare event: the integral lives where the radial density itself is tiny
        for _ in range(2 if self.law.dim > 100 else 1):
            low, high, _ = narrow(rough, low, high)
        return low, high

    def distances(self) -> tuple[Floats, Floats]:
        """The support as distances past the entry."""
        low, high = self.support()
        return self.unit * np.expm1(low), self.unit * np.expm1(high)

    def between(self, near: Floats, far: Floats) -> tuple[Floats, Floats]:
        """The support from distances past the entry."""
        return np.log1p(near / self.unit), np.log1p(np.minimum(far, self.inside) / self.unit)
