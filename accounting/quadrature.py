"""Integrals of exp(log integrand) over many intervals at once, one row each.

The integrand is sampled coarsely to find where it is within e^-42 of its peak, and integrated there by one
Gauss-Legendre rule after the substitution ``x = sin^2(pi s / 2)``, which makes powers at the ends analytic for
every half-integer exponent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["integrate", "narrow"]

Floats = NDArray[np.float64]
COARSE = 28
SUPPORT = 42.0  # the integrand is followed down to e^-42 of its peak


def narrow(
    log_integrand: Callable[[Floats], Floats], low: Floats, high: Floats
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """The part of [low, high] where the integrand matters, and whether it still matters at the end.

    Parameters
    ----------
    log_integrand : callable
        Maps points of shape (m, n) to values of that shape.
    low, high : array of shape (m,)

    Returns
    -------
    low, high : array of shape (m,)
    at_end : boolean array of shape (m,)

    Examples
    --------
    >>> low, high, at_end = narrow(lambda x: -0.5 * (x - 3) ** 2, np.array([0.0]), np.array([1000.0]))
    >>> bool(low[0] == 0 and 8 < high[0] < 60), at_end.tolist()
    (True, [False])
    """
    fraction = _sine_map((np.arange(COARSE) + 0.5) / COARSE)[0]
    value = log_integrand(low[:, None] + (high - low)[:, None] * fraction)
    keep = value > value.max(axis=1, keepdims=True) - SUPPORT
    first, last = np.argmax(keep, axis=1), COARSE - 1 - np.argmax(keep[:, ::-1], axis=1)
    grid = np.concatenate([[0.0], fraction, [1.0]])
    return low + (high - low) * grid[first], low + (high - low) * grid[last + 2], keep[:, -1]


def integrate(log_integrand: Callable[[Floats], Floats], low: Floats, high: Floats, nodes: int) -> Floats:
    """Logarithm of the integrals over [low, high].

    Parameters
    ----------
    log_integrand : callable
        Maps points of shape (m, n) to values of that shape.
    low, high : array of shape (m,)
    nodes : int

    Returns
    -------
    array of shape (m,)

    Examples
    --------
    >>> value = integrate(np.log, np.array([0.0]), np.array([2.0]), 20)[0]
    >>> round(float(np.exp(value)), 12)
    2.0
    """
    fraction, weight = _rule(nodes)
    value = log_integrand(low[:, None] + (high - low)[:, None] * fraction)
    peak = np.maximum(value.max(axis=1), -1e300)  # finite also for an integrand that vanishes
    total = np.exp(value - peak[:, None]) @ weight
    with np.errstate(divide="ignore"):
        return np.log(total * (high - low)) + peak


@lru_cache(maxsize=16)
def _rule(nodes: int) -> tuple[Floats, Floats]:
    x, weight = np.polynomial.legendre.leggauss(nodes)
    fraction, jacobian = _sine_map((1 + x) / 2)
    return fraction, weight / 2 * jacobian


def _sine_map(x: Floats) -> tuple[Floats, Floats]:
    return np.sin(0.5 * math.pi * x) ** 2, 0.5 * math.pi * np.sin(math.pi * x)
