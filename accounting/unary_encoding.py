"""Unary encoding: a category is reported as a bit vector, each bit flipped independently.

A one stays one with probability `keep`, a zero becomes one with probability `flip` (Wang, Blocki, Li & Jha
2017, section 4.1). Two categories differ in two bits; the other bits carry no information:

    (0, 1)               P = (1 - keep) flip        Q = keep (1 - flip)       loss  log Q/P = eps
    (0, 0) or (1, 1)     P = Q = keep flip + (1 - keep)(1 - flip)             loss  0
    (1, 0)               P = keep (1 - flip)        Q = (1 - keep) flip       loss -eps
"""

from __future__ import annotations

import math

import numpy as np

from privfit.accounting.atoms import DiscreteCurve, from_atoms
from privfit.accounting.validation import check_number

__all__ = ["optimized_unary_encoding", "symmetric_unary_encoding", "unary_encoding"]


def unary_encoding(keep: float, flip: float) -> DiscreteCurve:
    """Exact trade-off curve of unary encoding, for any number of categories.

    Parameters
    ----------
    keep : float
        Probability that a one is reported as one, in [0, 1].
    flip : float
        Probability that a zero is reported as one, in [0, 1]. Equal values reveal nothing; a certain bit
        (0 or 1) can disclose the category, which the curve shows as an infinite loss.

    Returns
    -------
    DiscreteCurve
        Strictly above ``approximate_dp(eps)``, because the report is often uninformative.

    Raises
    ------
    ValueError, TypeError
        If a parameter is outside its range.

    Examples
    --------
    >>> curve = unary_encoding(0.75, 0.25)
    >>> round(curve.epsilon(0.0), 12), round(curve.advantage, 12)  # eps = log 9
    (2.197224577336, 0.5)
    """
    k, f = check_number("keep", keep, 0.0, 1.0), check_number("flip", flip, 0.0, 1.0)
    if k == f:
        return from_atoms(np.zeros(1), np.ones(1), np.ones(1))
    moved = k * (1 - f), (1 - k) * f
    eps = (
        math.log(k) + math.log1p(-f) - math.log1p(-k) - math.log(f)
        if min(moved) > 0
        else math.copysign(math.inf, k - f)
    )
    return _curve(eps, *moved, k * f + (1 - k) * (1 - f))


def symmetric_unary_encoding(epsilon: float) -> DiscreteCurve:
    """Curve of symmetric unary encoding (basic RAPPOR): ``keep = 1 - flip = 1 / (1 + exp(-epsilon / 2))``.

    Parameters
    ----------
    epsilon : float
        Pure-DP parameter of one report, > 0.

    Returns
    -------
    DiscreteCurve

    Raises
    ------
    ValueError, TypeError
        If epsilon is not a positive finite number.

    Examples
    --------
    >>> symmetric_unary_encoding(2.0).epsilon(0.0)
    2.0
    """
    eps = check_number("epsilon", epsilon, 0.0, low_open=True)
    keep, flip = 1 / (1 + math.exp(-eps / 2)), math.exp(-eps / 2) / (1 + math.exp(-eps / 2))
    return _curve(eps, keep * keep, flip * flip, 2 * keep * flip)


def optimized_unary_encoding(epsilon: float) -> DiscreteCurve:
    """Curve of optimised unary encoding: ``keep = 1/2``, ``flip = 1 / (1 + exp(epsilon))``.

    The estimate of a frequency has the least variance among unary encodings with this epsilon (Wang et al.
    2017, section 4.3), and the trade-off curve is higher than that of symmetric unary encoding.

    Parameters
    ----------
    epsilon : float
        Pure-DP parameter of one report, > 0.

    Returns
    -------
    DiscreteCurve

    Raises
    ------
    ValueError, TypeError
        If epsilon is not a positive finite number.

    Examples
    --------
    >>> import math
    >>> round(optimized_unary_encoding(math.log(3)).advantage, 12)
    0.25
    """
    eps = check_number("epsilon", epsilon, 0.0, low_open=True)
    other = math.exp(-eps) / (1 + math.exp(-eps))
    return _curve(eps, 0.5 / (1 + math.exp(-eps)), 0.5 * other, 0.5)


def _curve(eps: float, high: float, low: float, same: float) -> DiscreteCurve:
    """The three atoms; `same` is the chance that the two bits agree."""
    mass = np.array([high, same, low])
    return from_atoms(np.array([-eps, 0.0, eps]), mass, mass[::-1])
