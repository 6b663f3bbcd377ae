"""Sums of exp(-x^2 / (2 sigma^2)) over the integers, for tails and privacy profiles.

Sums of positive terms are added as they stand where they are short (small sigma, or a steep tail). Elsewhere
the Euler-Maclaurin formula gives sum - integral:

    sum_{y >= n} h(y) = int_n^inf h + h(n)/2 - sum_k B_2k / (2k)! h^(2k-1)(n)

The integral is that of the continuous Gaussian and the rest is of relative size (decay per step)^2, so that
nothing cancels and no table grows with sigma (docs/mathematics.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.gaussian import gaussian_log_delta

__all__ = ["SHORT", "STEEP", "exact_product", "log_tail", "smooth_profile", "summed_profile"]

Floats = NDArray[np.float64]
SHORT = 12.0  # below this sigma every sum is short
STEEP = 0.2  # relative decay per step above which a tail is short
DEEP = 45.0  # terms below e^-45 of the largest do not matter
BLOCK = 1 << 21  # entries of a block of direct sums
# order of the derivative: coefficient B_2k / (2k)!
EULER_MACLAURIN = {1: 1 / 12, 3: -1 / 720, 5: 1 / 30240, 7: -1 / 1209600, 9: 1 / 47900160}


def exact_product(a: Any, b: Any) -> tuple[Any, Any]:
    """The product as a rounded number and its rounding error (Dekker 1971); infinities give nan errors."""
    product = a * b
    (a1, a2), (b1, b2) = _halves(a), _halves(b)
    return product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2


def _halves(a: Any) -> tuple[Any, Any]:
    """Two numbers of 26 bits each with sum a."""
    large = 134217729.0 * a
    top = large - (large - a)
    return top, a - top


def log_tail(sigma: float, n: Floats) -> Floats:
    """Log P[X >= n] for whole numbers n >= 1 (inf gives -inf), accurate in the far tail."""
    from scipy.special import erfcx, log_ndtr

    flat = np.asarray(n, float).ravel()
    value = np.full(flat.shape, -np.inf)
    smooth = (flat / sigma**2 <= STEEP) & (sigma >= SHORT)
    if smooth.any():
        z = flat[smooth] / sigma
        hermite = _hermite(z)
        rest = 0.5 + sum(c * hermite[k] / sigma**k for k, c in EULER_MACLAURIN.items())
        mills = math.sqrt(math.pi / 2) * erfcx(z / math.sqrt(2))
        value[smooth] = log_ndtr(-z) + np.log1p(rest / (sigma * mills))
    short = ~smooth & (flat < 1e150)
    if short.any():
        start = flat[short]
        steps = np.arange(_length(sigma))

        def terms(y: Floats) -> Floats:
            return np.exp(-steps * (2 * y[:, None] + steps) / (2 * sigma**2))

        value[short] = np.log(_row_sums(terms, start, len(steps))) - start**2 / (2 * sigma**2) - _log_total(sigma)
    return value.reshape(np.shape(n))


def summed_profile(sigma: float, s: float, first: Floats, distance: Floats) -> Floats:
    """Log of the sum over y >= first of P[X = y] (1 - e^(-s (y - y*) / sigma^2)), y* = first - distance."""
    gap = s / sigma**2
    far = -math.ceil(9.5 * min(sigma, SHORT)) - 1.0  # what lies below adds less than e^-45
    begin = np.maximum(first, far)
    steps = np.arange(_length(sigma) + (abs(far) if np.any(begin < 0) else 0))
    peak = np.maximum(begin, 0.0)

    def terms(i: NDArray[np.intp]) -> Floats:
        y = begin[i, None] + steps
        top = peak[i, None]
        return np.exp(-(y - top) * (y + top) / (2 * sigma**2)) * -np.expm1(
            -gap * (y - first[i, None] + distance[i, None])
        )

    total = _row_sums(terms, np.arange(len(first)), len(steps))
    with np.errstate(divide="ignore"):
        return np.log(total) - peak**2 / (2 * sigma**2) - _log_total(sigma)


def smooth_profile(sigma: float, s: float, epsilon: Floats, first: Floats, distance: Floats) -> Floats:
    """Log delta of the continuous Gaussian, corrected to the lattice by Euler and Maclaurin's formula.

    With h(y) = P[X = y] - e^eps P[X = y + s], the correction over P[X = first] is
    ``h/2 - sum_k c_k h^(2k-1)`` at `first`, less the integral of h over the last `distance` before `first`.
    """
    continuous = gaussian_log_delta(epsilon, np.asarray(s / sigma))
    gap, mu, z = s / sigma**2, s / sigma, first / sigma
    ratio = np.exp(-gap * distance)  # e^eps P[X = first + s] / P[X = first]
    rest = -np.expm1(-gap * distance)
    correction = rest / 2
    hermite = _hermite(z)
    for k, c in EULER_MACLAURIN.items():
        # He_k(z) - ratio He_k(z + mu), with He_k(z + mu) expanded around z
        shifted = sum(math.comb(k, j) * mu**j * hermite[k - j] for j in range(1, k + 1))
        correction = correction + c * (hermite[k] * rest - ratio * shifted) / sigma**k
    x, w = _gauss()
    back = distance[:, None] * x  # first - y at the nodes
    density = np.exp(back * (2 * first[:, None] - back) / (2 * sigma**2))
    integral = distance * ((density * -np.expm1(-gap * (distance[:, None] - back))) @ w)
    log_first = -0.5 * z * z - _log_total(sigma)
    # below e^-1e10 or so the two logarithms have no common digits left: a bounded correction keeps the order
    relative = (correction - integral) * np.exp(np.minimum(log_first - continuous, 100.0))
    return continuous + np.log1p(np.clip(relative, -0.9, 9.0))


def _hermite(z: Floats) -> list[Floats]:
    """He_0, ..., He_9: the k-th derivative of e^(-z^2/2) is (-1)^k He_k(z) e^(-z^2/2)."""
    values = [np.ones_like(z), z]
    for k in range(1, 9):
        values.append(z * values[-1] - k * values[-2])
    return values


@lru_cache(maxsize=1)
def _gauss() -> tuple[Floats, Floats]:
    x, w = np.polynomial.legendre.leggauss(10)
    return (1 + x) / 2, w / 2


def _length(sigma: float) -> int:
    """Number of terms of a one-sided sum that matter: a Gaussian or a steep exponential decay."""
    return math.ceil(min(math.sqrt(2 * DEEP) * sigma, 2 * DEEP / STEEP)) + 2


@lru_cache(maxsize=64)
def _log_total(sigma: float) -> float:
    """Log of sum_x e^(-x^2 / (2 sigma^2)); Poisson's formula where sigma is large."""
    if sigma >= 1:
        return math.log(sigma * math.sqrt(2 * math.pi)) + math.log1p(2 * math.exp(-2 * (math.pi * sigma) ** 2))
    return math.log1p(2 * math.fsum(math.exp(-k * k / (2 * sigma**2)) for k in range(12, 0, -1)))


def _row_sums(terms: Callable[..., Floats], rows: NDArray, width: int) -> Floats:
    """Sums over the columns of a wide table, made a block of rows at a time."""
    size = max(1, BLOCK // width)
    return np.concatenate([terms(rows[i : i + size]).sum(axis=1) for i in range(0, len(rows), size)])
