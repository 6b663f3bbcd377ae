"""Laplace noise in R^d for Euclidean sensitivity: density proportional to exp(-|x| / b) (the K-norm mechanism).

``r^v K_v(r)`` is ``e^-r`` up to a constant for v = 1/2, so this is generalised Laplace noise (radial.py,
symmetric_laplace.py) of shape k = v + d/2 = (d + 1)/2, with b = lambda / sqrt(2k) = lambda / sqrt(d + 1) for a
standard deviation lambda of every coordinate. Two centres at distance Delta = eps b have the loss

    L = (|x| - |x - Delta|) / b     in [-eps, eps], by the triangle inequality: pure eps-DP.

Shapes above (d + 1)/2 are pure too: with v = k - d/2 >= 1/2 the slope of the log density in sqrt(2k) r/lambda is
``K_{v-1} / K_v <= 1`` (orders |v - 1| <= v), so |L| <= sqrt(2k) Delta / lambda; the slope tends to 1 far out, and
no smaller bound holds. Below (d + 1)/2 the slope exceeds 1 everywhere and the bound fails.
(Hardt & Talwar 2010; the radius has a Gamma(d, b) law.)
"""

from __future__ import annotations

import math

from privfit.accounting.base import TradeOffCurve
from privfit.accounting.symmetric_laplace import MAX_DIM, symmetric_laplace
from privfit.accounting.validation import check_integer, check_number

__all__ = ["l2_laplace"]


def l2_laplace(dim: int, epsilon: float) -> TradeOffCurve:
    """Exact trade-off curve of noise with density proportional to ``exp(-|x| / b)`` in R^dim.

    Parameters
    ----------
    dim : int
        Dimension of the noise, in [1, 10000]. One dimension is ``laplace(epsilon)``.
    epsilon : float
        Euclidean sensitivity divided by b, in [1e-6, 1000]: the pure-DP parameter. A standard deviation
        lambda of every coordinate means ``b = lambda / sqrt(dim + 1)``.

    Returns
    -------
    TradeOffCurve
        ``symmetric_laplace(dim, epsilon / sqrt(dim + 1), (dim + 1) / 2)``. It is above ``laplace(epsilon)``: the
        largest loss occurs only on a line.

    Raises
    ------
    ValueError, TypeError
        If a parameter is outside its range.

    Examples
    --------
    >>> curve = l2_laplace(3, 1.0)
    >>> curve.max_loss, round(curve.delta(0.0), 6)
    (1.0, 0.241837)
    """
    d = check_integer("dim", dim, 1, MAX_DIM)
    eps = check_number("epsilon", epsilon, 1e-6, 1e3, hint="It is sensitivity / b.")
    return symmetric_laplace(d, eps / math.sqrt(d + 1), (d + 1) / 2)
