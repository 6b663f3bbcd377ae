"""Gaussian mechanism: ``G_mu(alpha) = Phi(Phi^-1(1 - alpha) - mu)``, mu = sensitivity / sigma.

    L ~ N(-mu^2/2, mu^2) under P;      delta(eps) = Phi(-x) - e^eps Phi(-x - mu),     x = eps/mu - mu/2
    delta(eps) = phi(x) (m(x) - m(x + mu)) = phi(x) int_0^inf exp(-x s - s^2/2) (1 - exp(-mu s)) ds

with m = (1 - Phi)/phi the Mills ratio. The first form cancels when delta is tiny, the second when mu is
small against max(1, x); the integral has a positive integrand and never cancels.
(Balle & Wang 2018, theorem 8; Dong, Roth & Su 2022, corollary 2.13.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.base import Precision, TradeOffCurve, check_scale

__all__ = ["GaussianCurve", "gaussian", "gaussian_log_delta"]

Floats = NDArray[np.float64]
HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
FAR = 1e154
"""Beyond this argument a normal tail has no finite logarithm."""
SQRT_2 = math.sqrt(2.0)
LOSS = 300.0  # how much of its accuracy the difference of two Mills ratios may lose


@dataclass(frozen=True)
class GaussianCurve(TradeOffCurve):
    """The curve G_mu (see `gaussian`)."""

    mu: float
    precision = Precision(relative=1e-12, absolute=0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", check_scale("mu", self.mu, "mu is sensitivity / sigma."))

    def _error_rates(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        from scipy.special import ndtr

        t = log_ratio / self.mu
        return ndtr(-t - self.mu / 2), ndtr(t - self.mu / 2)

    def _delta(self, epsilon: Floats) -> Floats:
        return np.exp(self._log_delta(epsilon))

    def _log_delta(self, epsilon: Floats) -> Floats:
        return gaussian_log_delta(epsilon, np.asarray(self.mu))

    def _curve(self, alpha: Floats) -> Floats:
        from scipy.special import ndtr, ndtri

        return ndtr(-ndtri(alpha) - self.mu)

    def gdp(self) -> float:
        """The parameter mu itself."""
        return self.mu


def gaussian(mu: float) -> GaussianCurve:
    """Trade-off curve of the Gaussian mechanism.

    Parameters
    ----------
    mu : float
        Sensitivity divided by the noise's standard deviation, > 0.

    Returns
    -------
    GaussianCurve

    Raises
    ------
    ValueError, TypeError
        If mu is not a positive finite number.

    Examples
    --------
    >>> round(gaussian(1 / 3.730631634).delta(1.0), 12)
    1e-05
    """
    return GaussianCurve(mu)


@lru_cache(maxsize=1)
def _laguerre_like() -> tuple[Floats, Floats]:
    """Nodes and weights on (0, inf) for exp(-z) times a smooth function: graded Gauss-Legendre panels."""
    edges = np.concatenate([[0.0], np.geomspace(0.5, 44.0, 7)])
    x, w = np.polynomial.legendre.leggauss(16)
    half = np.diff(edges)[:, None] / 2
    nodes = edges[:-1, None] + half * (1 + x)
    return nodes.ravel(), (half * w).ravel()


def gaussian_log_delta(epsilon: Floats, mu: Floats) -> Floats:
    """Log delta(eps) of the Gaussian mechanism for broadcast arrays of eps and mu > 0 (no checks).

    Parameters
    ----------
    epsilon, mu : array
        Broadcast together; eps may be negative or infinite.

    Returns
    -------
    array

    Examples
    --------
    >>> import numpy as np
    >>> float(np.exp(gaussian_log_delta(np.array(0.0), np.array(1.0)))).__round__(9)
    0.382924923
    """
    if np.ndim(epsilon) == 0 and np.ndim(mu) == 0:
        e, m = np.float64(epsilon), np.float64(mu)
        shift = e / m - m / 2
        steep = max(shift, 1.0) > LOSS * m and shift > -3.0
        return _BRANCHES[3 if math.isinf(e) or shift > FAR else 1 if steep else 0 if shift > 0 else 2](e, m, shift)
    epsilon, mu = np.broadcast_arrays(np.asarray(epsilon, float), np.asarray(mu, float))
    x = epsilon / mu - mu / 2
    far = np.isinf(epsilon) | (x > FAR)
    branch = np.select([far, (np.maximum(x, 1.0) > LOSS * mu) & (x > -3.0), x > 0], [3, 1, 0], default=2)
    out = np.empty(x.shape)
    for i, formula in enumerate(_BRANCHES):
        here = branch == i
        if here.any():
            out[here] = formula(epsilon[here], mu[here], x[here])
    return out


def _mills(epsilon: Any, mu: Any, x: Any) -> Floats:
    """Difference of two Mills ratios, for x > 0 and mu not small against x."""
    from scipy.special import erfcx

    difference = erfcx(x / SQRT_2) - erfcx((x + mu) / SQRT_2)
    return np.log(0.5 * difference) - x * x / 2


def _integral(epsilon: Any, mu: Any, x: Any) -> Floats:
    """The integral with a positive integrand, for mu small against max(1, x)."""
    nodes, weights = _laguerre_like()
    # s = z / scale puts the decay of exp(-x s - s^2/2) on the nodes' exp(-z) scale for every x
    scale = np.maximum(x, 3.0)
    s = nodes / scale[..., None]
    integrand = -np.expm1(-mu[..., None] * s) * np.exp(-x[..., None] * s - s * s / 2)
    return np.log(integrand @ weights) - np.log(scale) - x * x / 2 - HALF_LOG_2PI


def _normal_tails(epsilon: Any, mu: Any, x: Any) -> Floats:
    """Log Phi(-x) + log(1 - e^eps Phi(-x - mu) / Phi(-x)), for x <= 0 where delta is not small."""
    from scipy.special import log_ndtr

    first = log_ndtr(-x)
    gap = epsilon + log_ndtr(-x - mu) - first
    return first + np.log(-np.expm1(np.minimum(gap, -1e-320)))


def _at_infinity(epsilon: Any, mu: Any, x: Any) -> Floats:
    return np.where(epsilon > 0, -np.inf, 0.0)


_BRANCHES = (_mills, _integral, _normal_tails, _at_infinity)
