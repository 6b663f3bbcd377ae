r"""The Gaussian parameter of curves on the line, beyond every tabulated point: bounds from above.

A test of a shifted law that rejects above x has rates S(x) and S(x - a), S the survival function of the noise. With
``X(x) = -Phi^-1(S(x))`` its Gaussian parameter is ``mu(x) = X(x) - X(x - a)``, and with the hazards
``lam = -S'/S`` of the noise and h of the normal law ``X' = lam / h(X)``.

Generalised Gaussian, power p: ``lam < p x^(p-1) + (p-1)/x``; X' falls like x^(p/2 - 1).

Discrete Gaussian, v = n / sigma: with the normal Mills ratio m, ``-log S(n) = v^2/2 + log Z - log R(n)`` and
``-log Phi(-X) = X^2/2 + log sqrt(2 pi) - log m(X)``. R is a sum of decreasing terms, between ``sigma m(v)`` and
``1 + sigma m(v)``, and ``Z >= sigma sqrt(2 pi)``, so ``0 <= e = v - X <= log(1 + h(v)/sigma) / X`` up to the (minute)
excess of Z. Subtracting both equations at n and n - s leaves, with means over both ends written as bars,

    mu Xbar = (s/sigma) vbar + D,   D = log R(n-s)/m(X_(n-s)) - log R(n)/m(X_n)
    D <= s/sigma / v_(n-s) - mu X_n/(X_n^2 + 2)       and       D <= log(1 + h(v_(n-s))/sigma) + e/v
    mu <= (s/sigma) (1 + [ebar + min(1/v - X/(X^2 + 2), (log(1 + h/sigma) + e/v) sigma/s)] / Xbar)

which tends to s/sigma, from above. Every term falls with n: one value bounds everything beyond.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.gaussian_sums import log_tail

if TYPE_CHECKING:
    from privfit.accounting.generalized_gaussian import GeneralizedGaussianCurve

__all__ = ["discrete_gaussian_tail", "generalized_gaussian_tail"]

Floats = NDArray[np.float64]
CORNERS = 30_000  # so many corners are looked at one by one
CELL = 1e-4  # relative width of the cells on which X' is bounded


def discrete_gaussian_tail(sigma: float, shift: float, first: float) -> float:
    """Largest mu of the corners n >= `first` of discrete Gaussian noise, from above.

    Parameters
    ----------
    sigma, shift : float
        Scale of the noise and the (whole) distance of the two inputs.
    first : float
        Whole number above ``shift + sigma``.

    Returns
    -------
    float

    Examples
    --------
    >>> round(discrete_gaussian_tail(2.0, 1.0, 70.0), 3)
    0.501
    """
    from scipy.special import ndtri_exp

    n: Floats = first + np.arange(float(CORNERS))
    mu: Floats = np.subtract(ndtri_exp(log_tail(sigma, n - shift)), ndtri_exp(log_tail(sigma, n)))
    ratio, v = shift / sigma, (float(n[-1]) - shift) / sigma
    log_z = math.log1p(2 * math.exp(-2 * math.pi**2 * sigma**2)) if sigma > 0.4 else -math.log(sigma)
    gap = math.log1p((v + 1 / v) / sigma) / v
    gap = gap * v / (v - gap)  # divided by X >= v - gap
    far = v + ratio + log_z / v
    between = min(1 / v - far / (far * far + 2), (math.log1p((v + 1 / v) / sigma) + gap / v) / ratio)
    excess = max(gap + between, 0.0) / (v - gap)
    # rounding of X, of relative size 1e-15, counts against the difference
    return max(float(mu.max()) + 4e-15 * (v + ratio), ratio * (1 + excess))


def generalized_gaussian_tail(curve: GeneralizedGaussianCurve, start: float) -> float:
    """Largest mu where the rejection region begins more than `start` beyond the centre of Q, from above; power < 2.

    Parameters
    ----------
    curve : GeneralizedGaussianCurve
    start : float
        Distance y > 1 from the centre of Q.

    Returns
    -------
    float

    Examples
    --------
    >>> from privfit.accounting.generalized_gaussian import generalized_gaussian
    >>> heavy = generalized_gaussian(1.0, 1.5)
    >>> generalized_gaussian_tail(heavy, 70.0) < heavy.gdp()
    True
    """
    from scipy.special import ndtri_exp

    p = curve.power
    # beyond (1e3 / (2 - p))^(1/p), X' <= p x^(p-1) (1 + 1/x^p) / X falls for certain
    end = max(2 * (start + curve.shift), (1e3 / (2 - p)) ** (1 / p))
    cells = min(math.ceil(math.log(end / start) / CELL), 200_000)
    x = np.geomspace(start, end, cells + 1)
    log_survival = curve._log_tail(x)
    normal = -ndtri_exp(log_survival[:-1])
    slope = (p * x[1:] ** (p - 1) + (p - 1) / x[:-1]) / (normal + normal / (normal * normal + 2))
    slope = np.maximum.accumulate(slope[::-1])[::-1]  # what X' does not exceed from here on
    inside = np.clip(np.minimum(x[1:], start + curve.shift) - x[:-1], 0.0, None)
    return float(slope @ inside)
