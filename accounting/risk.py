"""What a trade-off curve means for the people in the data: probabilities of attacks, from above.

Q is the law of the output with the target's record (or attribute), P without it (or with another value).

    membership      error with prior pi:  min_alpha (1-pi) alpha + pi f(alpha) = pi (1 - delta(log((1-pi)/pi)))
    positive test   odds pi (1 - f(alpha)) / ((1-pi) alpha), at most (pi/(1-pi)) e^max_loss over all tests
    power           1 - f(alpha) = min_t delta(t) + e^t alpha         every t is an upper bound

Attacks on one of several secrets stand in attacks.py. (Wasserman & Zhou 2010; Dong, Roth & Su 2022.)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.accounting.base import TradeOffCurve, check_curve
from privfit.accounting.roots import bisect_decreasing
from privfit.accounting.validation import check_array

__all__ = [
    "bayes_risk",
    "log_likelihood_ratio",
    "posterior_odds",
    "posterior_probability",
    "predictive_values",
]

Floats = NDArray[np.float64]
ROUNDING = 1e-13


def _shaped(value: Floats, *given: Any) -> Any:
    return float(value) if all(np.ndim(g) == 0 for g in given) else value


def bayes_risk(curve: TradeOffCurve, prior: ArrayLike) -> Any:
    """Smallest error probability of any membership or attribute test, from below.

    Parameters
    ----------
    curve : TradeOffCurve
    prior : float or array
        Probability pi that the target's record is in the data (of Q), in [0, 1].

    Returns
    -------
    float or array
        At most min(pi, 1 - pi), the error of guessing; the closer, the better protected.

    Raises
    ------
    ValueError, TypeError
        If a prior is outside [0, 1].

    Examples
    --------
    >>> import privfit.accounting as pa
    >>> round(bayes_risk(pa.gaussian(1.0), 0.5), 6)  # Phi(-1/2)
    0.308538
    """
    check_curve(curve)
    pi = check_array("prior", prior, 0.0, 1.0)
    with np.errstate(divide="ignore"):
        log_odds = np.log(pi) - np.log1p(-pi)
    # the rarer hypothesis first: at eps >= 0 delta keeps its accuracy
    direct = np.where(pi <= 0.5, pi * (1 - curve.delta(np.maximum(-log_odds, 0.0))), 0.0)
    other = np.where(pi > 0.5, (1 - pi) * (1 - curve.reversed().delta(np.maximum(log_odds, 0.0))), 0.0)
    return _shaped(direct + other, prior)


def _log_power(curve: TradeOffCurve, alpha: Floats) -> Floats:
    """Log of 1 - f(alpha) from above: delta(t) + e^t alpha at the threshold of level alpha, > 0."""
    limit = curve.max_loss
    with np.errstate(divide="ignore", over="ignore"):
        low, high = bisect_decreasing(lambda t, a: curve.error_rates(t)[0] - a, alpha, lower=-limit, upper=limit)
        lines = [np.logaddexp(curve.log_delta(t), t + np.log(alpha)) for t in (low, high)]
    return np.minimum(np.minimum(*lines), 0.0)


def posterior_odds(curve: TradeOffCurve, prior: ArrayLike, fpr: ArrayLike | None = None) -> Any:
    """Largest posterior odds of membership after a positive test, from above.

    Parameters
    ----------
    curve : TradeOffCurve
    prior : float or array
        Probability of membership, in [0, 1].
    fpr : float or array, optional
        False-positive rate of the test, in [0, 1]; without it the largest odds over all tests.

    Returns
    -------
    float or array
        Broadcast shape of prior and fpr; ``inf`` where a test can be certain (unbounded loss without `fpr`,
        or a mechanism that sometimes adds no noise).

    Raises
    ------
    ValueError, TypeError
        If an argument is outside [0, 1].

    Examples
    --------
    >>> import privfit.accounting as pa
    >>> round(posterior_odds(pa.laplace(1.0), 0.5), 6)  # e^1
    2.718282
    >>> round(posterior_odds(pa.gaussian(1.0), 0.5, fpr=0.01), 4)
    9.2362
    """
    check_curve(curve)
    pi = check_array("prior", prior, 0.0, 1.0)
    level = np.zeros(()) if fpr is None else check_array("fpr", fpr, 0.0, 1.0)
    ratio = log_likelihood_ratio(curve, level)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        odds = np.exp(np.log(pi) - np.log1p(-pi) + ratio) * (1 + ROUNDING)
    odds = np.where(pi == 0, 0.0, np.where(pi == 1, np.inf, odds))
    return _shaped(odds, prior, 0.0 if fpr is None else fpr)


def log_likelihood_ratio(curve: TradeOffCurve, level: Floats) -> Floats:
    """Log of (1 - f(alpha)) / alpha from above, with its limit at alpha = 0 (no checks).

    Examples
    --------
    >>> import privfit.accounting as pa
    >>> log_likelihood_ratio(pa.laplace(1.0), np.array([0.0])).tolist()
    [1.0]
    """
    ratio = np.full(level.shape, math.inf if curve.infinite_mass > 0 else curve.max_loss)
    positive = level > 0
    if positive.any():
        ratio[positive] = np.minimum(_log_power(curve, level[positive]) - np.log(level[positive]), ratio[positive])
    return ratio


def posterior_probability(curve: TradeOffCurve, prior: ArrayLike, fpr: ArrayLike | None = None) -> Any:
    """Largest posterior probability of membership after a positive test, from above.

    Parameters
    ----------
    curve : TradeOffCurve
    prior : float or array
        Probability of membership, in [0, 1].
    fpr : float or array, optional
        False-positive rate of the test; without it the supremum over all tests.

    Returns
    -------
    float or array

    Raises
    ------
    ValueError, TypeError
        If an argument is outside [0, 1].

    Examples
    --------
    >>> import privfit.accounting as pa
    >>> round(posterior_probability(pa.laplace(1.0), 0.5), 6)  # e / (1 + e)
    0.731059
    """
    odds = np.asarray(posterior_odds(curve, prior, fpr))
    with np.errstate(invalid="ignore"):
        value = np.where(np.isinf(odds), 1.0, odds / (1 + odds))
    return _shaped(value, prior, 0.0 if fpr is None else fpr)


def predictive_values(curve: TradeOffCurve, prior: ArrayLike, alpha: ArrayLike) -> tuple[Any, Any]:
    """Positive and negative predictive value of the best membership test, from above.

    Parameters
    ----------
    curve : TradeOffCurve
    prior : float or array
        Probability of membership, in [0, 1].
    alpha : float or array
        False-positive rate of the test, in [0, 1]; its false-negative rate is f(alpha).

    Returns
    -------
    positive, negative : float or array
        Probability of membership after a positive answer, and of non-membership after a negative one.

    Raises
    ------
    ValueError, TypeError
        If an argument is outside [0, 1].

    Examples
    --------
    >>> import privfit.accounting as pa
    >>> [round(v, 4) for v in predictive_values(pa.gaussian(1.0), 0.1, 0.05)]
    [0.3658, 0.9203]
    """
    check_curve(curve)
    pi = check_array("prior", prior, 0.0, 1.0)
    level = check_array("alpha", alpha, 0.0, 1.0)
    positive = posterior_probability(curve, pi, level)
    # the negative answer is the positive one of the reversed test, at its own level f(alpha)
    miss = np.asarray(curve.curve(level))
    ratio = np.full(level.shape, math.inf if curve.reversed().infinite_mass > 0 else curve.reversed().max_loss)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(level < 1, np.minimum(np.log1p(-level) - np.log(miss), ratio), ratio)
        against = (1 - pi) / (1 - pi + pi * np.exp(-ratio))
    negative = np.where(pi == 1, 0.0, against)
    return _shaped(np.asarray(positive), prior, alpha), _shaped(negative, prior, alpha)
