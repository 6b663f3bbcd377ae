r"""Two numbers that the raw-data standard errors of a model need beside its scores.

Quantiles: a kernel of bandwidth h flattens the density of the residual at 0, the curvature of the fit to the release;
the raw data need no kernel. For normal errors of standard deviation sigma, with z the normal tau-quantile and k the
kernel's Fourier transform, the curvature shrinks by

    int_0^inf cos(z w) e^{-w^2/2} k(h w / sigma) dw  /  int_0^inf cos(z w) e^{-w^2/2} dw        (0.96 at h = 0.45 sigma)

Counts: scores of a Poisson model have the covariance phi V with V the curvature, where the variance of the count is
phi times its mean; ``phi = E (y - e^u)^2 / E e^u`` is 1 for a Poisson count. Without noise the numerator is
``E y^2 - 2 E y e^u + E e^2u``; the inverse operator multiplies ``e^u`` by G(1) and ``e^2u`` by G(4).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.risk import Risk

__all__ = ["curvature_kept", "poisson_dispersion"]

Floats = NDArray[np.float64]
_FINITE = 0.125  # index variance below which e^2u has a finite variance, for shape 1


def curvature_kept(quantile: float, width: float) -> float:
    """Share of the curvature of a check loss that smoothing by the kernel of order 4 keeps, for normal errors.

    Parameters
    ----------
    quantile : float
        tau in (0, 1).
    width : float
        Bandwidth over the standard deviation of the errors, >= 0.

    Returns
    -------
    float
        At least 0.2: beyond, the smoothed target is another one.

    Examples
    --------
    >>> round(curvature_kept(0.5, 0.0), 6), round(curvature_kept(0.5, 0.45), 2)
    (1.0, 0.96)
    """
    from scipy.special import ndtri

    w = np.linspace(0.0, 9.0, 2001)
    x = np.maximum(np.pi * width * w, 1e-9)
    safe = np.minimum(x, 300.0)
    kernel = safe / np.sinh(safe) * (1.0 + safe**2 / 6.0)
    wave = np.cos(float(ndtri(quantile)) * w) * np.exp(-(w**2) / 2.0)
    wave[0] /= 2.0
    return float(max((wave * kernel).sum() / wave.sum(), 0.2))


def poisson_dispersion(risk: Risk, theta: Floats, label_variance: float) -> float | None:
    """Variance of the raw count over its mean, both given the columns; None where too much noise hides it.

    Parameters
    ----------
    risk : Risk
        Corrected risk of a Poisson model.
    theta : ndarray, shape (p,)
        The fit.
    label_variance : float
        Noise variance of the response, in the square of its unit in `risk`.

    Returns
    -------
    float or None
        In the unit of the response.

    Examples
    --------
    >>> poisson_dispersion.__name__
    'poisson_dispersion'
    """
    if not all(stratum.noise.admits(theta, _FINITE) for stratum in risk.strata):
        return None
    square = level = 0.0
    for stratum in risk.strata:
        symbols = stratum.noise.symbols(theta)
        for chunk in stratum.records.chunks():
            if chunk.labels is None:
                return None
            square += float(((chunk.labels**2).sum()) - chunk.n * label_variance)
            for term, symbol in zip(stratum.noise.terms, symbols, strict=True):
                rate = np.exp(np.minimum(chunk.designs[term.design].index(theta), 300.0))
                level += symbol.at(1.0) * float(rate.sum())
                square += symbol.at(4.0) * float(rate @ rate) - 2.0 * symbol.at(1.0) * float(rate @ chunk.labels)
    return square / level if square > 0.0 and level > 0.0 else None
