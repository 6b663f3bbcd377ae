"""log K_v(z) and the log-slope of z^v K_v(z) without overflow, for every real order.

    F_v(z) = log( z^v K_v(z) ),      s_v(z) = -dF/d log z = z K_{v-1}(z) / K_v(z)

Three regimes: scaled Bessel functions (scipy), the leading term for small z where K overflows, and Debye's
uniform expansion for large order (DLMF 10.41.4):

    K_v(v x) ~ sqrt(pi/(2v)) e^(-v eta) (1 + x^2)^(-1/4) sum_k (-1)^k u_k(p) v^-k,     p = (1 + x^2)^(-1/2)
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["log_kv", "slope"]

Floats = NDArray[np.float64]
LARGE_ORDER = 30.0
DEBYE_TERMS = 12


@lru_cache(maxsize=1)
def _debye_polynomials() -> tuple[Floats, ...]:
    """u_0 .. u_K as coefficient arrays in p (DLMF 10.41.9), by exact rational recursion."""
    from fractions import Fraction

    polynomials = [[Fraction(1)]]
    for _ in range(DEBYE_TERMS):
        u = polynomials[-1]
        new = [Fraction(0)] * (len(u) + 3)
        for i, coefficient in enumerate(u):
            # p^2 (1 - p^2) u'/2  +  (1/8) int (1 - 5 p^2) u
            if i:
                new[i + 1] += coefficient * i / 2
                new[i + 3] -= coefficient * i / 2
            new[i + 1] += coefficient / (8 * (i + 1))
            new[i + 3] -= 5 * coefficient / (8 * (i + 3))
        polynomials.append(new)
    return tuple(np.array([float(c) for c in u]) for u in polynomials)


@lru_cache(maxsize=1)
def _debye_derivative_polynomials() -> tuple[Floats, ...]:
    """v_0 .. v_K of the expansion of K_v' (DLMF 10.41.11)."""
    from numpy.polynomial import polynomial as poly

    u = _debye_polynomials()
    result = [np.array([1.0])]
    for k in range(DEBYE_TERMS):
        first = poly.polymul([0.0, 0.5, 0.0, -0.5], u[k])
        second = poly.polymul([0.0, 0.0, 1.0, 0.0, -1.0], poly.polyder(u[k]))
        result.append(poly.polysub(u[k + 1], poly.polyadd(first, second)))
    return tuple(result)


def _debye_sums(order: float, p: Floats) -> tuple[Floats, Floats]:
    """The sums over v_k and over u_k of Debye's expansions."""
    top, bottom = np.zeros_like(p), np.zeros_like(p)
    for k in range(DEBYE_TERMS, -1, -1):
        top = top / -order + np.polynomial.polynomial.polyval(p, _debye_derivative_polynomials()[k])
        bottom = bottom / -order + np.polynomial.polynomial.polyval(p, _debye_polynomials()[k])
    return top, bottom


def _log_kv_large_order(v: float, z: Floats) -> Floats:
    x = z / v
    root = np.sqrt(1 + x * x)
    p = 1 / root
    eta = root + np.log(x) - np.log1p(root)
    _, series = _debye_sums(v, p)
    return 0.5 * math.log(math.pi / (2 * v)) - v * eta - 0.25 * np.log1p(x * x) + np.log(series)


def _log_kv_extreme(order: float, z: Floats) -> Floats:
    """Leading terms where the scaled function over- or underflows."""
    small = np.minimum(z, 1e-3)
    if order > 0:
        near = math.lgamma(order) - math.log(2) + order * (math.log(2) - np.log(small))
    else:
        near = np.log(-np.log(small / 2) - np.euler_gamma)
    far = 0.5 * math.log(math.pi / 2) - 0.5 * np.log(np.maximum(z, 1.0)) - z
    return np.where(z > 1.0, far, near)


def log_kv(v: float, z: Floats) -> Floats:
    """Logarithm of the modified Bessel function K_v(z).

    Parameters
    ----------
    v : float
        Real order; K_-v = K_v.
    z : array
        Positive argument.

    Returns
    -------
    array

    Examples
    --------
    >>> import numpy as np
    >>> float(log_kv(0.5, np.array(2.0))).__round__(12)      # log(sqrt(pi / 4) e^-2)
    -2.120782237635
    """
    from scipy.special import kve

    order = abs(v)
    if order >= LARGE_ORDER:
        return _log_kv_large_order(order, z)
    with np.errstate(over="ignore", divide="ignore"):
        value = np.log(kve(order, z)) - z
    broken = ~np.isfinite(value)
    if np.any(broken):
        value = np.array(value)
        value[broken] = _log_kv_extreme(order, z[broken] if np.ndim(z) else z)
    return value


def slope(v: float, z: Floats) -> Floats:
    """s_v(z) = z K_{v-1}(z) / K_v(z): minus the logarithmic derivative of z^v K_v(z), without cancellation.

    Orders above 1/2 use ``s_v(z) s_{1-v}(z) = z^2``; the rest have no difference of nearly equal numbers.

    Parameters
    ----------
    v : float
        Real order.
    z : array
        Positive argument.

    Returns
    -------
    array
        Positive and increasing in z.

    Examples
    --------
    >>> import numpy as np
    >>> float(slope(0.5, np.array(3.0))).__round__(12)       # z^(1/2) K_(1/2) is proportional to e^-z
    3.0
    """
    from scipy.special import kve

    if v > 0.5:
        return z * (z / slope(1 - v, z))
    order = -v
    if order >= LARGE_ORDER:
        # z K_{n+1}/K_n = n - z K_n'/K_n, with the derivative's own expansion (DLMF 10.41.6)
        root = np.sqrt(1 + (z / order) ** 2)
        top, bottom = _debye_sums(order, 1 / root)
        return order * (1 + root * (top / bottom))
    with np.errstate(over="ignore", invalid="ignore"):
        value = z * (kve(order + 1, z) / kve(order, z))
    broken = ~np.isfinite(value)
    if np.any(broken):
        value = np.array(value)
        tiny = z[broken] if np.ndim(z) else z
        # K_{n+1} overflows only where z K_{n+1}/K_n = 2n + O(z^2) to the last bit, unless n is small
        limit = 2 * order if order > 2 else np.exp(np.log(tiny) + log_kv(order + 1, tiny) - log_kv(order, tiny))
        value[broken] = limit
    return value
