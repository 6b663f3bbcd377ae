r"""What corrected scores cost in theory: second moments A(delta0, lambda) of a corrected score, and their limits.

An index loss sees zero-inflated noise as one number: 0 with probability delta0, else Laplace with standard deviation s.
With ``f~' = G f'``, R the average over the second noise (Laplace with variance delta0 s^2), X1 the released and X2 the
twice noised index, and k = 1 - delta0,

    exact   E (G f')^2(X1)                          dr   [E f'^2(X1) - 2k E (f' R f')(X1) + k^2 E f'^2(X2)] / delta0^2
    sdr     E f'^2(X1) - k s^2 E (f' R f''')(X1) + (k s^2 / 2)^2 E f'''^2(X2)        sl   E (f' - s^2/2 f''')^2(X2)

Limits for a score g of columns in R^d with noise lambda in each (Lu, Chen & Qiu, Propositions 5.1 and 6.1):

    lambda -> 0     A = E g^2 + c lambda^2 E |grad g|^2,   c = 1/delta0 - 1 (dr), 1 (sl), 1 - delta0 (sdr, exact)
    lambda -> inf   dr and exact: E g^2 / delta0, for a g that vanishes far out;
                    sl: J lambda^3 / (4 sqrt 2)  (d = 1),  J lambda^2 log(lambda) / (4 pi)  (d = 2),
                    J lambda^2 / 2  (d >= 3);  sdr: (1 - delta0)^2 times that,

J the integral of ``(Laplacian g)^2``, for d >= 3 weighted by the Newton kernel
``Gamma(d/2 - 1) / (4 pi^{d/2}) r^{2-d}``
around the record. They follow from the noise's density near 0: ``1 / (sqrt 2 lambda)``, ``log(lambda / r) / (pi
lambda^2)``, and ``2 / lambda^2`` times the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.accounting.validation import check_array, check_choice, check_integer, check_number
from privfit.estimators.errors import CapabilityError
from privfit.estimators.losses.base import IndexLoss
from privfit.estimators.symbols import Factor, Power, Resolvent, Symbol

__all__ = ["bernoulli_variance", "large_noise_growth", "slope_moment", "small_noise_coefficient"]

Floats = NDArray[np.float64]
_NAMES = ("exact", "dr", "sdr", "sl")
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


def slope_moment(loss: IndexLoss, index: ArrayLike, scale: float, delta0: float, correction: str = "exact") -> Floats:
    """Second moment of the corrected slope ``f~'`` at true indices, ``E f~'(u + noise)^2``.

    Parameters
    ----------
    loss : IndexLoss
    index : array_like, shape (m,)
        True indices u.
    scale : float
        Standard deviation s >= 0 of the Laplace part of the noise in the index.
    delta0 : float
        Zero inflation in [0, 1); "dr" and "sdr" need more than 0.
    correction : {"exact", "dr", "sdr", "sl"}

    Returns
    -------
    ndarray, shape (m,)
        ``f'(u)^2`` for s = 0.

    Raises
    ------
    ValueError
        For a parameter outside its range.
    CapabilityError
        If the loss has no formula for an operator (a kinked loss under "sdr" or "sl", or without zero inflation).

    Examples
    --------
    >>> from privfit.estimators.losses import SquaredLoss
    >>> slope_moment(SquaredLoss(), [0.0], 2.0, 0.25).round(6)
    array([3.])
    """
    u = np.atleast_1d(check_array("index", index))
    s = check_number("scale", scale, 0.0)
    check_choice("correction", correction, _NAMES)
    low = correction in ("dr", "sdr")
    d0 = check_number("delta0", delta0, 0.0, 1.0, low_open=low, high_open=True)
    identity, q = Symbol(), s * s / 2.0
    if s == 0.0:
        return np.asarray(loss.apply(u, identity, 1) ** 2, float)
    if loss.kinks and (correction in ("sdr", "sl") or d0 == 0.0):
        raise CapabilityError(
            f"{type(loss).__name__} has a jump in its second derivative or below, and correction={correction!r} with "
            f"delta0={d0:g} needs the third, a point mass without a mean square. Use 'exact' or 'dr' with delta0 > 0."
        )
    average = Symbol((1.0,), ((d0 * q, 1),))

    def first(kernel: Callable[[Floats], Floats]) -> Floats:
        return d0 * kernel(u) + (1.0 - d0) * _laplace_mean(kernel, u, s, loss.kinks)

    def second(kernel: Callable[[Floats], Floats]) -> Floats:
        return _laplace_mean(kernel, u, s, loss.kinks)

    def products(*requests: tuple[Symbol, int]) -> Callable[[Floats], Floats]:
        compiled = loss.compile(requests)

        def kernel(v: Floats) -> Floats:
            answers = compiled(v)
            return np.asarray(answers[0] * answers[-1], float)

        return kernel

    slope, k = products((identity, 1)), 1.0 - d0
    if correction == "exact":
        factor: Factor = Resolvent(d0) if d0 > 0.0 else Power(1)
        return first(products((factor(q, 0), 1)))
    if correction == "sl":
        return second(products((Power(1)(q, 0), 1)))
    if correction == "dr":
        crossed = first(products((identity, 1), (average, 1)))
        return np.asarray((first(slope) - 2.0 * k * crossed + k * k * second(slope)) / d0**2, float)
    crossed = first(products((identity, 1), (average, 3)))
    bent = second(products((identity, 3)))
    return np.asarray(first(slope) - 2.0 * k * q * crossed + (k * q) ** 2 * bent, float)


def _laplace_mean(kernel: Callable[[Floats], Floats], u: Floats, s: float, kinks: tuple[float, ...]) -> Floats:
    """Mean of a function over u + Laplace noise of standard deviation s, by panels that end at its kinks."""
    b = s / math.sqrt(2.0)
    marks = b * np.concatenate([[0.0], np.geomspace(1e-3, 60.0, 24)])
    # panels no wider than the scale 1/2 of a smooth loss, as far as that is in reach
    fine = np.arange(0.0, min(60.0 * b, 40.0) + 0.5, 0.5)
    base = np.unique(np.concatenate([marks, fine[fine <= 60.0 * b], -marks, -fine[fine <= 60.0 * b]]))
    out = np.empty_like(u)
    for place, centre in enumerate(u):
        own = [kink - centre for kink in kinks if abs(kink - centre) < base[-1]]
        ends = np.unique(np.concatenate([base, np.arange(-centre - 30.0, -centre + 30.5, 0.5), own]))
        ends = ends[np.abs(ends) <= base[-1]]
        middle, half = (ends[1:] + ends[:-1]) / 2.0, (ends[1:] - ends[:-1]) / 2.0
        z = (middle[:, None] + half[:, None] * _NODES).ravel()
        weight = (half[:, None] * _WEIGHTS).ravel() * np.exp(-np.abs(z) / b) / (2.0 * b)
        out[place] = weight @ kernel(centre + z)
    return out


def small_noise_coefficient(correction: str, delta0: float) -> float:
    """Return c in ``A = E g^2 + c lambda^2 E |grad g|^2`` for small noise.

    Parameters
    ----------
    correction : {"exact", "dr", "sdr", "sl"}
    delta0 : float
        Zero inflation in [0, 1]; "dr" needs more than 0.

    Examples
    --------
    >>> small_noise_coefficient("dr", 0.2)
    4.0
    """
    check_choice("correction", correction, _NAMES)
    d0 = check_number("delta0", delta0, 0.0, 1.0, low_open=correction == "dr")
    if correction == "dr":
        return 1.0 / d0 - 1.0
    return 1.0 if correction == "sl" else 1.0 - d0


def large_noise_growth(correction: str, dim: int, scale: float, delta0: float, energy: float) -> float:
    """Leading term of A for large noise.

    Parameters
    ----------
    correction : {"exact", "dr", "sdr", "sl"}
    dim : int
        Number d of noised columns.
    scale : float
        lambda > 1.
    delta0 : float
        Zero inflation in [0, 1); "exact" and "dr" need more than 0.
    energy : float
        For "sl" and "sdr" the integral J of the module; for "exact" and "dr" the raw second moment E g^2.

    Examples
    --------
    >>> large_noise_growth("dr", 3, 50.0, 0.2, 1.0)
    5.0
    """
    check_choice("correction", correction, _NAMES)
    d = check_integer("dim", dim, 1)
    size = check_number("scale", scale, 1.0, low_open=True)
    bounded = correction in ("exact", "dr")
    d0 = check_number("delta0", delta0, 0.0, 1.0, low_open=bounded, high_open=True)
    whole = check_number("energy", energy, 0.0)
    if bounded:
        return whole / d0
    rate = {1: size**3 / (4.0 * math.sqrt(2.0)), 2: size**2 * math.log(size) / (4.0 * math.pi)}.get(d, size**2 / 2.0)
    return whole * rate * ((1.0 - d0) ** 2 if correction == "sdr" else 1.0)


def bernoulli_variance(theta: float, epsilon: float, mechanism: str, delta0: float = 0.0) -> float:
    """Variance of one record's unbiased estimate of a Bernoulli mean, from a release with sensitivity 1.

    ``2/eps^2 + theta (1 - theta)`` with Laplace noise ("sl"), ``(1 - delta0) 2/eps^2 + theta (1 - theta)`` with
    zero-inflated noise ("sdr"; "exact" is the same for a mean), ``e^eps/(e^eps - 1)^2 + theta (1 - theta)`` with
    randomised response, the best of all eps-private ones ("optimal").

    Parameters
    ----------
    theta : float
        Mean in [0, 1].
    epsilon : float
        Budget > 0: the noise scale is 1/epsilon. With delta0 > 0 a record is published as it is with this
        probability, so that epsilon is then the budget of the noise alone.
    mechanism : {"sl", "sdr", "exact", "optimal"}
    delta0 : float
        Zero inflation in [0, 1], for "sdr" and "exact".

    Examples
    --------
    >>> bernoulli_variance(0.5, 2.0, "sl")
    0.75
    """
    share = check_number("theta", theta, 0.0, 1.0)
    budget = check_number("epsilon", epsilon, 0.0, low_open=True)
    check_choice("mechanism", mechanism, ("sl", "sdr", "exact", "optimal"))
    d0 = check_number("delta0", delta0, 0.0, 1.0)
    raw = share * (1.0 - share)
    if mechanism == "optimal":
        return math.exp(-budget) / math.expm1(-budget) ** 2 + raw
    return (1.0 if mechanism == "sl" else 1.0 - d0) * 2.0 / budget**2 + raw
