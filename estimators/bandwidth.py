r"""Bandwidth of a smoothed kink under noise: check loss and hinge, and losses whose second derivative jumps.

A fourth-order kernel (logistic, its h^2 term removed) moves the mean score by ``0.81 h^4 f'''``, at most
``B(h) = 0.45 (h / sigma)^4`` for normal errors of standard deviation sigma. With k(x) the kernel's Fourier
transform and ``1/(2.5 s)`` the density of the released residual (standard deviation s) near 0, Parseval gives
the variances per record

    score  I0 / (2.5 s),  I0 = (1/2 pi) int |G(-w^2) - 1|^2 k(hw)^2 w^-2 dw      (added by the correction)
    bend   I2 / (2.5 s),  I2 = (1/2 pi) int |G(-w^2)|^2 k(hw)^2 dw               (of the corrected curvature)

A vanishing h leaves the risk rugged: the curvature's noise, 2.4 times larger in slope directions (heavy
tails), is held against the expected curvature ``0.4 / sigma`` times the share of signal in the columns. Where
G is bounded (zero-inflated noise), h within [sigma n^(-2/5), 0.45 sigma] is the smallest with noise below a
tenth, but no more than keeps B below a quarter of the score's standard error, unless the noise would then
exceed a third. Where G is unbounded (Laplace noise without zero inflation), h minimises
``B^2 + I0 / (2.5 s n)``, and is widened until the noise is below a third.

A loss like Huber's, whose second derivative jumps at two points, has in place of these ``B(h) = 0.32 sigma
(h / sigma)^4`` (at most; 0 for symmetric errors), integrands times ``min(2 / w^2, 4 t^2)`` (the mean of the box's
``4 sin^2(t w) / w^2``, t = 1.345 sigma), the curvature 0.8 (the share of residuals between the jumps) and the score
variance ``0.71 sigma^2``.

Without noise only the curvature needs a bandwidth. Hall & Sheather (1988) choose it in probability:
``d = n^(-1/3) z^(2/3) (1.5 phi(q)^2 / (2 q^2 + 1))^(1/3)``, q the normal tau-quantile and z = 1.96. The residuals'
own quantiles at tau - d and tau + d turn it into their unit, so that far outliers play no part (Hendricks & Koenker
1992); the logistic kernel gets the standard deviation of the box between them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.validation import check_number
from privfit.estimators.symbols import Symbol

__all__ = ["auto_bandwidth", "curvature_bandwidth", "narrowest"]

Floats = NDArray[np.float64]
_DENSITY, _TAILS = 2.5, 2.4


def auto_bandwidth(symbol: Symbol, sigma: float, spread: float, share: float, n: int, jump: int = 1) -> float:
    """Return h for a corrected loss smoothed by the kernel of order 4.

    Parameters
    ----------
    symbol : Symbol
        Inverse operator at the pilot coefficients.
    sigma : float
        Standard deviation of the residual without noise, > 0.
    spread : float
        Standard deviation of the residual as released, > 0.
    share : float
        Smallest share of signal in a direction of the released columns, in (0, 1].
    n : int
        Records.
    jump : {1, 2}
        Order of the derivative that jumps: 1 for the check loss and the hinge, 2 for Huber's and the squared hinge.

    Returns
    -------
    float
        Bandwidth in units of the residual.

    Examples
    --------
    >>> round(auto_bandwidth(Symbol(), 1.0, 1.0, 1.0, 1_000_000), 4)
    0.004
    """
    check_number("sigma", sigma, 0.0, low_open=True)
    check_number("share", share, 0.0, 1.0, low_open=True)
    smallest = max(sigma * n**-0.4, narrowest(symbol))
    bounded = symbol.degree <= sum(power for _, power in symbol.poles)
    largest = max(0.45 * sigma, smallest) if bounded else max(10.0 * spread, 2.0 * smallest)
    grid = np.geomspace(smallest, largest * (1 + 1e-9), 80)
    worst, curvature, score = (0.45, 0.4 / sigma, 0.25) if jump == 1 else (0.32 * sigma, 0.8, 0.71 * sigma**2)
    bias = worst * (grid / sigma) ** 4
    integrals = np.array([_amplification(symbol, float(h), None if jump == 1 else 1.345 * sigma) for h in grid])
    extra, bend = integrals.T / (_DENSITY * spread * n)
    noise = _TAILS * np.sqrt(bend) / (curvature * share)
    if bounded:
        calm = _first(noise <= 0.1)
        harmless = int(np.count_nonzero(bias <= 0.25 * np.sqrt(score / n + extra))) - 1
        chosen = min(calm, max(harmless, 0))
    else:
        chosen = int(np.argmin(bias**2 + extra))
    return float(grid[max(chosen, _first(noise <= 1.0 / 3.0))])


def narrowest(symbol: Symbol) -> float:
    """Smallest bandwidth at which a resolvent ``(1 - b^2 D^2)^{-1}`` of the loss is computed exactly: b / 150.

    Tables of such averages reach to b / 300 (`losses.resolvent`); the rest is room for the search to move b.

    Examples
    --------
    >>> narrowest(Symbol((1.0,), ((2.25, 1),)))
    0.01
    """
    return max((b2**0.5 for b2, _ in symbol.poles), default=0.0) / 150.0


def curvature_bandwidth(residuals: Floats, quantile: float, n: int) -> float:
    """Return h of the logistic kernel for the curvature of an exact quantile fit without noise.

    Parameters
    ----------
    residuals : ndarray
        Of the fit: of all records, or a sample of them.
    quantile : float
        tau in (0, 1).
    n : int
        Records of the fit.

    Returns
    -------
    float
        In units of the residuals; 1 where they are all equal.

    Examples
    --------
    >>> round(curvature_bandwidth(np.linspace(-1, 1, 1001), 0.5, 1001), 4)
    0.0618
    """
    from scipy.special import ndtri

    q = float(ndtri(quantile))
    density = np.exp(-q * q / 2.0) / np.sqrt(2.0 * np.pi)
    part = n ** (-1 / 3) * 1.959964 ** (2 / 3) * (1.5 * density**2 / (2.0 * q * q + 1.0)) ** (1 / 3)
    part = min(part, 0.75 * min(quantile, 1.0 - quantile))
    least = 1e-8 * float(np.subtract(*np.quantile(residuals, [0.9, 0.1])))
    while True:  # ties, but for rounding: as far as the next different value
        ends = [max(quantile - part, 0.0), min(quantile + part, 1.0)]
        low, high = np.quantile(residuals, ends)
        if high - low > least:
            return float(high - low) / (2.0 * np.pi)
        if ends == [0.0, 1.0]:
            return 1.0
        part = max(2.0 * part, 1e-6)


def _first(holds: NDArray[np.bool_]) -> int:
    """Position of the first true entry, or the last position."""
    return int(np.argmax(holds)) if holds.any() else holds.size - 1


def _amplification(symbol: Symbol, h: float, box: float | None = None) -> tuple[float, float]:
    """Integrals I0 and I2 over frequencies, by the trapezoid rule in x = h w; for a box of half-width `box`."""
    x = np.linspace(1e-4, 14.0, 1500)
    kernel = np.pi * x / np.sinh(np.pi * x) * (1.0 + (np.pi * x) ** 2 / 6.0)
    z = -((x / h) ** 2)
    g = np.polynomial.polynomial.polyval(z, symbol.numerator)
    for b2, power in symbol.poles:
        g = g / (1.0 - b2 * z) ** power
    if box is not None:
        kernel = kernel * np.sqrt(np.minimum(2.0 / -z, 4.0 * box**2))
    step = (x[1] - x[0]) / h / np.pi
    return float(np.sum((g - 1.0) ** 2 * kernel**2 / -z) * step), float(np.sum(g**2 * kernel**2) * step)
