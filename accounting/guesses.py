"""First guesses for calibration: by what factor the noise of a known curve has to grow to meet a budget.

For noise of one scale the curve depends on sensitivity over scale, so a curve that was calibrated to (eps, delta) in
that parameter gives the factor: exact in closed form for Laplace noise and for the limit of symmetric Laplace noise,
to rounding by Newton's method for Gaussian noise, where ``d delta / d mu = phi(eps/mu - mu/2)``. The limit is an upper
bound of the noise for every dimension. A wrong guess costs a few evaluations and nothing else.
"""

from __future__ import annotations

import math

import numpy as np

from privfit.accounting.base import TradeOffCurve
from privfit.accounting.gaussian import HALF_LOG_2PI, SQRT_2, GaussianCurve, gaussian_log_delta
from privfit.accounting.laplace import LaplaceCurve
from privfit.accounting.limit import ShapedLimitCurve, SymmetricLaplaceLimitCurve, limit_noise
from privfit.accounting.symmetric_laplace import SymmetricLaplaceCurve
from privfit.accounting.wrappers import ZeroInflatedCurve

__all__ = ["gaussian_mu", "noise_factor"]


def noise_factor(curve: TradeOffCurve, epsilon: float, delta: float) -> tuple[float, bool] | None:
    """Factor by which the noise behind `curve` has to be scaled to meet (epsilon, delta), and whether it is exact.

    Parameters
    ----------
    curve : TradeOffCurve
    epsilon, delta : float
        At least 0, and in [0, 1).

    Returns
    -------
    tuple of float and bool, or None
        None for families it does not know.

    Examples
    --------
    >>> from privfit.accounting.laplace import laplace
    >>> noise_factor(laplace(2.0), 0.5, 0.0)
    (4.0, True)
    """
    if isinstance(curve, ZeroInflatedCurve):
        return noise_factor(curve.base, epsilon, (delta - curve.delta0) / (1 - curve.delta0))
    if isinstance(curve, LaplaceCurve) and delta >= 0:
        return curve.a / (epsilon - 2 * math.log1p(-delta)), True
    if delta <= 0:
        return None
    if isinstance(curve, GaussianCurve):
        return curve.mu / gaussian_mu(epsilon, delta), True
    if isinstance(curve, SymmetricLaplaceLimitCurve):
        return curve.c / limit_noise(epsilon, delta), True
    if isinstance(curve, ShapedLimitCurve):
        return curve.c / limit_noise(epsilon, delta), False
    if isinstance(curve, SymmetricLaplaceCurve):
        needed = gaussian_mu(epsilon, delta) if curve.shape > curve.dim / 2 else limit_noise(epsilon, delta)
        return curve.c / needed, False
    return None


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The mu for which the Gaussian mechanism has delta(epsilon) = delta, to rounding.

    Parameters
    ----------
    epsilon, delta : float
        At least 0, and in (0, 1).

    Returns
    -------
    float

    Examples
    --------
    >>> round(1 / gaussian_mu(1.0, 1e-5), 9)
    3.730631635
    """
    wanted = math.log(delta)
    z = math.sqrt(max(-2 * (wanted + math.log(2)), 0.0))
    log_mu = math.log(max(2 * epsilon / (math.sqrt(z * z + 2 * epsilon) + z) if epsilon else 0.0, 2.5 * delta))
    for _ in range(60):
        mu = math.exp(log_mu)
        x = epsilon / mu - mu / 2
        value = _log_delta(epsilon, mu, x)
        # Newton's step in log mu for log delta
        exponent = value + x * x / 2 + HALF_LOG_2PI - log_mu
        step = (wanted - value) * math.exp(min(exponent, 50.0))
        log_mu += max(-1.0, min(1.0, step))
        if abs(step) < 1e-7:  # the next error is its square
            break
    return math.exp(log_mu)


def _log_delta(epsilon: float, mu: float, x: float) -> float:
    """Log delta by the two normal tails, which is fast, or without cancellation where they cancel."""
    if epsilon < 600.0 and x < 35.0:
        first = math.erfc(x / SQRT_2)
        difference = first - math.exp(epsilon) * math.erfc((x + mu) / SQRT_2)
        if difference > 1e-2 * first:
            return math.log(difference / 2)
    return float(gaussian_log_delta(np.asarray(epsilon), np.asarray(mu)))
