"""Noise on the integers: discrete Laplace and discrete Gaussian, shifted by an integer sensitivity s.

Laplace   P[X = x] = e^(-a |x|) tanh(a/2), a = epsilon / s: the loss a (|x| - |x - s|) takes the s + 1 values
          a (2x - s), x = 0, ..., s; both geometric tails are one atom each.
Gaussian  P[X = x] = e^(-x^2 / (2 sigma^2)) / Z: the loss s (x - s/2) / sigma^2 increases with x, and with
          S(n) = P[X >= n] the test that rejects for x >= n has alpha = S(n), beta = S(s + 1 - n).
          delta(eps) = sum_{y > y*} P[X = y] (1 - e^(-s (y - y*) / sigma^2)),     y* = eps sigma^2 / s - s/2

(Ghosh, Roughgarden & Sundararajan 2012; Canonne, Kamath & Steinke 2020, theorem 7.)
Sums are those of gaussian_sums.py: positive terms, and no table that grows with sigma.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.atoms import DiscreteCurve, from_atoms
from privfit.accounting.base import Precision, TradeOffCurve
from privfit.accounting.gaussian_sums import SHORT, STEEP, exact_product, log_tail, smooth_profile, summed_profile
from privfit.accounting.validation import check_integer, check_number

__all__ = ["DiscreteGaussianCurve", "discrete_gaussian", "discrete_laplace"]

Floats = NDArray[np.float64]
MAX_ATOMS = 200_000


def discrete_laplace(epsilon: float, sensitivity: int = 1) -> DiscreteCurve:
    """Exact trade-off curve of the discrete Laplace (two-sided geometric) mechanism.

    Parameters
    ----------
    epsilon : float
        Pure-DP parameter, > 0: the noise has mass proportional to ``exp(-epsilon |x| / sensitivity)``.
    sensitivity : int
        Distance of the two inputs on the lattice, in [1, 200000].

    Returns
    -------
    DiscreteCurve
        With ``sensitivity + 1`` atoms; it tends to ``laplace(epsilon)`` as the sensitivity grows.

    Raises
    ------
    ValueError, TypeError
        If a parameter is outside its range.

    Examples
    --------
    >>> import math
    >>> round(discrete_laplace(math.log(3)).delta(0.0), 12)
    0.5
    """
    eps = check_number("epsilon", epsilon, 0.0, low_open=True)
    s = check_integer("sensitivity", sensitivity, 1, MAX_ATOMS, hint="Use a coarser lattice.")
    x = np.arange(s + 1.0)
    q = np.exp(-eps * ((s - x) / s))
    q[1:-1] *= -math.expm1(-eps / s)  # the atoms at both ends hold a whole geometric tail
    return from_atoms(eps * ((2 * x - s) / s), q[::-1], q)


def discrete_gaussian(sigma: float, sensitivity: int = 1) -> DiscreteGaussianCurve:
    """Exact trade-off curve of the discrete Gaussian mechanism on the integers.

    Parameters
    ----------
    sigma : float
        Scale: the noise has mass proportional to ``exp(-x^2 / (2 sigma^2))``; in [1e-3, 1e12].
    sensitivity : int
        Distance of the two inputs on the lattice, in [1, 1e12].

    Returns
    -------
    DiscreteGaussianCurve

    Raises
    ------
    ValueError, TypeError
        If a parameter is outside its range.

    Examples
    --------
    >>> round(discrete_gaussian(0.5).delta(0.0), 6), round(discrete_gaussian(5.0, 5).delta(0.0), 6)
    (0.786571, 0.383514)
    """
    return DiscreteGaussianCurve(sigma, sensitivity)


@dataclass(frozen=True)
class DiscreteGaussianCurve(TradeOffCurve):
    """The curve of integer Gaussian noise (see `discrete_gaussian`)."""

    sigma: float
    sensitivity: int = 1
    precision = Precision(relative=2e-12, absolute=0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", check_number("sigma", self.sigma, 1e-3, 1e12))
        object.__setattr__(self, "sensitivity", check_integer("sensitivity", self.sensitivity, 1, 10**12))

    def _first(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        """The first whole x with loss above t, and its distance (in (0, 1]) from the real x* with loss t.

        Next to an atom of a narrow law that distance decides the size of delta, so it is found from
        ``s (x - s/2) - t sigma^2`` with the product taken exactly.
        """
        s = float(self.sensitivity)
        square, rest = exact_product(np.float64(self.sigma), np.float64(self.sigma))
        with np.errstate(invalid="ignore", over="ignore"):
            nearest = np.rint(log_ratio * (square / s) + s / 2)
            product, error = exact_product(log_ratio, square)
            beyond = (((nearest - s / 2) * s - product) - error - log_ratio * rest) / s
        inside = beyond > 0
        return np.where(inside, nearest, nearest + 1), np.clip(np.where(inside, beyond, 1 + beyond), 0.0, 1.0)

    def _error_rates(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        n = self._first(log_ratio)[0]
        return np.exp(self._log_survival(n)), np.exp(self._log_survival(self.sensitivity + 1 - n))

    def _log_survival(self, n: Floats) -> Floats:
        """Log P[X >= n] for whole numbers n, also infinite ones."""
        value = log_tail(self.sigma, np.where(n > 0, n, 1 - n))
        with np.errstate(divide="ignore"):
            return np.where(n > 0, value, np.log1p(-np.exp(value)))

    def _delta(self, epsilon: Floats) -> Floats:
        return np.exp(self._log_delta(epsilon))

    def _log_delta(self, epsilon: Floats) -> Floats:
        flat = np.abs(epsilon).ravel()
        value = np.full(flat.shape, -np.inf)
        here = flat < 1e15 * self.sensitivity / self.sigma**2 + 1e6
        if here.any():
            value[here] = self._log_profile(flat[here])
        with np.errstate(divide="ignore"):
            # f is symmetric: delta(-eps) = 1 - e^-eps (1 - delta(eps))
            mirrored = np.log1p(np.exp(-flat) * np.expm1(value))
        return np.where(epsilon.ravel() < 0, mirrored, value).reshape(epsilon.shape)

    def _log_profile(self, epsilon: Floats) -> Floats:
        """Log delta for eps >= 0, by the shortest way to add the terms."""
        sigma, s = self.sigma, float(self.sensitivity)
        first, distance = self._first(epsilon)
        first = first - s
        gentle = (sigma >= SHORT) & ((first + s) / sigma**2 <= STEEP)
        apart = (sigma >= SHORT) & ~gentle & (first / sigma**2 <= STEEP / 2)
        value = np.empty(epsilon.shape)
        if gentle.any():
            value[gentle] = smooth_profile(sigma, s, epsilon[gentle], first[gentle], distance[gentle])
        if apart.any():
            # s >= 3 sigma: the second probability is well below the first and can be subtracted
            large, small = (self._log_survival(first[apart] + shift) for shift in (0.0, s))
            value[apart] = large + np.log1p(-np.exp(np.minimum(epsilon[apart] + small - large, -1e-16)))
        rest = ~(gentle | apart)
        if rest.any():
            value[rest] = summed_profile(sigma, s, first[rest], distance[rest])
        return value

    def _curve(self, alpha: Floats) -> Floats:
        """Between two corners f is linear; the left corner is the first n with S(n) <= alpha."""
        flat, s = alpha.ravel(), float(self.sensitivity)
        n = self._corner(flat)
        # height above the right corner, where alpha = S(n - 1): a sum of positive terms
        right = self._log_survival(n - 1)
        up = np.where(n > 1, np.exp(right) - flat, (1 - flat) - np.exp(log_tail(self.sigma, np.maximum(2 - n, 1))))
        slope = s * (n - 1 - s / 2) / self.sigma**2
        with np.errstate(divide="ignore", over="ignore"):
            rise = np.exp(slope + np.log(np.maximum(up, 0.0)))
        value = np.exp(self._log_survival(s + 2 - n)) + rise
        return np.where(flat == 0.0, 1.0, np.where(flat == 1.0, 0.0, np.minimum(value, 1 - flat))).reshape(alpha.shape)

    def _corner(self, alpha: Floats) -> Floats:
        """Smallest whole n with P[X >= n] <= alpha, by bisection around the Gaussian quantile."""
        from scipy.special import ndtri

        inner = np.clip(alpha, 5e-324, 1 - 1e-16)
        target = np.log(inner)
        guess = np.floor(-self.sigma * ndtri(inner))
        low, high = guess - 2 - 40 * (self.sigma < SHORT), guess + 3 + 40 * (self.sigma < SHORT)
        while np.any(high - low > 1):
            middle = np.floor((low + high) / 2)
            enough = self._log_survival(middle) <= target
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return high
