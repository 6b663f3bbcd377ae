r"""Check loss smoothed by a kernel distribution function (Wang, Stefanski & Zhu 2012, Biometrika 99, 405-421).

    rho_h(r) = r (tau - 1 + K(r / h)),     K the normal distribution function.

Its second derivative ``k_h(r) = (2 - v^2) phi(v) / h``, ``v = r / h``, has integral 1, so that a kink of slope jump 1
is smoothed; its second moment is ``-h^2``: the mean score moves by ``-(h^2 / 2) f'`` for errors with density f at the
quantile. Under Laplace noise of index variance s^2 the corrected loss is ``rho_h - (s^2 / 2) rho_h''``. With q =
s^2/2, n records and the density ``1 / (2.5 t)`` of the released residual (standard deviation t) near 0, the
correction adds to the mean score and to the mean curvature the variances

    q^2 h^-3 I_3 / (2.5 t n),  I_3 = int (v^3 - 4v)^2 phi^2 = 31 / (16 sqrt(pi)),
    q^2 h^-5 I_4 / (2.5 t n),  I_4 = int (v^4 - 7v^2 + 4)^2 phi^2 = 177 / (32 sqrt(pi)).

`kernel_bandwidth` minimises squared bias plus variance of the score, and is widened until the curvature is known to a
third, as `bandwidth.auto_bandwidth` does (2.4 for heavy tails in slope directions).
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import hermite_e
from numpy.typing import ArrayLike

from privfit.accounting.validation import check_integer, check_number
from privfit.estimators.losses.base import Floats, IndexLoss

__all__ = ["KernelCheckLoss", "kernel_bandwidth"]

_I3, _I4 = 31.0 / (16.0 * np.sqrt(np.pi)), 177.0 / (32.0 * np.sqrt(np.pi))
_SLOPE = 0.5 * 0.242  # half the largest derivative of the normal density
_DENSITY, _TAILS = 2.5, 2.4


class KernelCheckLoss(IndexLoss):
    """``rho_h(r) = r (tau - 1 + Phi(r / h))``: smooth, and convex only near 0.

    Parameters
    ----------
    quantile : float
        tau in (0, 1).
    bandwidth : float
        h > 0, in units of r.

    Examples
    --------
    >>> KernelCheckLoss(0.25, 1e-3).value([-2.0, 2.0])
    array([1.5, 0.5])
    """

    def __init__(self, quantile: float, bandwidth: float) -> None:
        self.quantile = check_number("quantile", quantile, 0.0, 1.0, low_open=True, high_open=True)
        self.bandwidth = check_number("bandwidth", bandwidth, 0.0, low_open=True)

    def derivative(self, u: ArrayLike, order: int = 1) -> Floats:
        """See `IndexLoss.derivative`: ``D^m [v Phi] = v D^m Phi + m D^(m-1) Phi``."""
        h = self.bandwidth
        v = np.asarray(u, float) / h
        curved = v * _normal(v, order) + (order * _normal(v, order - 1) if order else 0.0)
        line = (self.quantile - 1.0) * (v if order == 0 else 1.0) if order < 2 else 0.0
        return np.asarray(h ** (1 - order) * (curved + line), float)


def _normal(v: Floats, order: int) -> Floats:
    """Derivative of the normal distribution function; order 0 is the function itself."""
    from scipy.special import ndtr

    if order == 0:
        return np.asarray(ndtr(v), float)
    signed = np.zeros(order)
    signed[-1] = (-1.0) ** (order - 1) / np.sqrt(2.0 * np.pi)
    return np.asarray(hermite_e.hermeval(v, signed) * np.exp(-0.5 * v * v), float)


def kernel_bandwidth(q: float, sigma: float, spread: float, share: float, n: int) -> float:
    """Return h for the corrected loss under Laplace noise.

    Parameters
    ----------
    q : float
        Half the noise variance of the index, > 0.
    sigma : float
        Standard deviation of the residual without noise, > 0.
    spread : float
        Standard deviation of the residual as released, > 0.
    share : float
        Smallest share of signal in a direction of the released columns, in (0, 1].
    n : int
        Records.

    Returns
    -------
    float
        Bandwidth in units of the residual: of order ``n^(-1/7)``, or ``n^(-1/5)`` where the curvature decides.

    Examples
    --------
    >>> round(kernel_bandwidth(0.5, 1.0, 1.5, 0.5, 10_000), 3)
    0.485
    """
    half = check_number("q", q, 0.0, low_open=True)
    check_number("sigma", sigma, 0.0, low_open=True)
    check_number("spread", spread, 0.0, low_open=True)
    check_number("share", share, 0.0, 1.0, low_open=True)
    size = half**2 / (_DENSITY * spread * check_integer("n", n, 1))
    balanced = (0.75 * size * _I3 * (sigma**2 / _SLOPE) ** 2) ** (1.0 / 7.0)
    known = (3.0 * _TAILS * sigma / (0.4 * share)) ** 0.4 * (size * _I4) ** 0.2
    return float(max(balanced, known))
