r"""What an audit compares noise with: densities, marginals and radii of the laws, from textbook formulas.

Independent of the samplers and of the trade-off curves. With Z in units of the scales,

    Gaussian           |Z|^2 ~ chi^2_d                      Laplace            |Z_1| + ... + |Z_d| ~ Gamma(d)
    SL, shape k        |Z|^2 = W chi^2_d, W ~ Gamma(k, rate k), density ~ |z|^v K_v(sqrt(2k)|z|), v = k - d/2
    discrete Laplace   |K|/t within one step of a standard exponential: q^m <= P(|K| >= m) = 2q^m/(1+q) <= q^(m-1)

P(W chi^2_d <= r^2) is an integral over u = log W of an analytic function that dies out on both sides, where the
trapezoidal rule converges exponentially. All densities have convex level sets around 0, so by Anderson (1955)
no cell of the grid is more likely than the one centred at 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.discrete_laplace import DiscreteLaplace
from privfit.mechanisms.gaussian import Gaussian
from privfit.mechanisms.laplace import Laplace
from privfit.mechanisms.law import Law
from privfit.mechanisms.symmetric_laplace import SymmetricLaplace
from privfit.mechanisms.zero_inflated import ZeroInflatedLaplace

__all__ = ["cell_mass", "is_known", "log_density", "marginal_cdf", "mixed_radius_cdf", "radius", "radius_cdf"]

Floats = NDArray[np.float64]
TINY = 1e-12


def is_known(law: Law) -> bool:
    """Whether this module has formulas for `law`.

    Examples
    --------
    >>> is_known(Gaussian(1.0))
    True
    """
    return isinstance(law, (Gaussian, Laplace, DiscreteLaplace, SymmetricLaplace, ZeroInflatedLaplace))


def _additive_sizes(law: Law) -> bool:
    """Whether the coordinates are independent Laplace, so that their sizes add up."""
    return isinstance(law, (Laplace, DiscreteLaplace))


def _shape(law: Law) -> int:
    return law.shape if isinstance(law, SymmetricLaplace) else 1


def log_density(law: Law, z: Floats) -> Floats:
    """Return the log density of the noise at z, shape (n, dim), up to a constant; the atom left out.

    Examples
    --------
    >>> log_density(Gaussian(2.0), np.array([[2.0]]))
    array([-0.5])
    """
    from privfit.accounting.bessel import log_kv

    scaled = radius(law, z)
    if isinstance(law, Gaussian):
        return np.asarray(-0.5 * scaled**2)
    if _additive_sizes(law):
        return -scaled
    shape = _shape(law)
    order, at = shape - z.shape[1] / 2, np.maximum(scaled, TINY)
    return np.asarray(order * np.log(at) + log_kv(order, math.sqrt(2 * shape) * at))


def radius(law: Law, z: Floats) -> Floats:
    """Return the size of each row of z, shape (n, dim), in units of the scales: l1 for Laplace, else l2.

    Examples
    --------
    >>> radius(Laplace(2.0), np.array([[2.0, -4.0]]))
    array([3.])
    """
    scaled = np.abs(z) / law.scales(z.shape[1])
    return np.asarray(scaled.sum(axis=1) if _additive_sizes(law) else np.sqrt(np.square(scaled).sum(axis=1)))


def mixed_radius_cdf(r: Floats, dim: int, shape: int) -> Floats:
    """Return P(sqrt(W) |N(0, I_dim)| <= r), W ~ Gamma(shape, rate shape), to about 1e-12.

    Examples
    --------
    >>> bool(abs(mixed_radius_cdf(np.array([1.0]), 1, 1)[0] - (1 - math.exp(-math.sqrt(2)))) < 1e-12)
    True
    """
    from scipy.special import gammainc

    wide = math.sqrt(92.0 / shape)
    step = min(0.1, 0.25 / math.sqrt(shape), 0.25 * math.sqrt(2.0 / dim))
    u = np.arange(-(46.0 / shape + wide), wide, step)
    weight = step * np.exp(shape * (math.log(shape) + u - np.exp(u)) - math.lgamma(shape))
    half = 0.5 * np.square(np.maximum(r, 0.0))
    return np.asarray(gammainc(dim / 2, half[:, None] * np.exp(-u)) @ (weight / weight.sum()))


def _noise_cdf(law: Law, r: Floats, dim: int) -> Floats:
    """Cumulative distribution of `radius` where there is noise."""
    from scipy.special import gammainc

    at = np.maximum(r, 0.0)
    if isinstance(law, Gaussian):
        return np.asarray(gammainc(dim / 2, 0.5 * at**2))
    if _additive_sizes(law):
        return np.asarray(gammainc(dim, at))
    return mixed_radius_cdf(at, dim, _shape(law))


def radius_cdf(law: Law, dim: int) -> Callable[[Floats], Floats]:
    """Return the cumulative distribution function of `radius` for `dim` coordinates, atom included.

    Examples
    --------
    >>> radius_cdf(Laplace(3.0), 1)(np.array([-1.0, 1.0])).round(4)
    array([0.    , 0.6321])
    """
    atom = law.exact_fraction

    def cdf(r: Floats) -> Floats:
        return np.where(r < 0, 0.0, atom + (1 - atom) * _noise_cdf(law, r, dim))

    return cdf


def marginal_cdf(law: Law) -> Callable[[Floats], Floats]:
    """Return the cumulative distribution function of one coordinate in units of its scale, atom included.

    Examples
    --------
    >>> marginal_cdf(Gaussian(3.0))(np.array([0.0, 1.0])).round(4)
    array([0.5   , 0.8413])
    """
    atom = law.exact_fraction

    def cdf(z: Floats) -> Floats:
        inside = _noise_cdf(law, np.abs(z), 1)
        return atom * (z >= 0) + (1 - atom) * (0.5 + 0.5 * np.sign(z) * inside)

    return cdf


def cell_mass(law: Law, halves: Floats) -> float:
    """Return an upper bound of P(|Z_j| <= halves[j] for all j) where there is noise, Z in units of the scales.

    Examples
    --------
    >>> round(cell_mass(Laplace(1.0), np.array([1.0, 1.0])), 4)
    0.3996
    """
    if _additive_sizes(law):
        return float(np.prod(-np.expm1(-halves)))
    ball = float(np.sqrt(np.square(halves).sum()))
    return float(_noise_cdf(law, np.array([ball]), len(halves))[0])
