"""Attacks that guess a secret: attribute inference, re-identification, reconstruction; success from above.

Success s_z on secret z needs probability f^-1(1 - s_z) of the same answer under every other secret, and answers
exclude each other. By linear-programming duality, for all l_z >= 0,

    success = sum_z pi_z s_z  <=  sum l + sum_z (pi_z - l_z)+ delta(log((sum l - l_z) / (pi_z - l_z)))

which for m equally likely secrets is ``theta + (1 - theta) delta(eps)``, theta = e^eps / (e^eps + m - 1), at any eps:
the success of randomised response plus what delta adds, and exact for randomised response. Against one
reference law only (records added or removed) it is the weaker

    success  <=  min_l  l + sum_z pi_z delta(log(l / pi_z))  <=  1 - f(max pi)

(Balle, Cherubin & Hayes 2022; Kaissis et al. 2023; Kulynych et al. 2024 for ``1 - f(max pi)``; the inequality
for pairs of secrets is derived in docs/mathematics.md.)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.accounting.base import TradeOffCurve, check_curve
from privfit.accounting.relation import ADD_OR_REMOVE, REPLACE_ONE, check_relation
from privfit.accounting.risk import log_likelihood_ratio
from privfit.accounting.roots import bisect_decreasing
from privfit.accounting.validation import check_array, check_choice

__all__ = ["attack_success", "reconstruction_robustness"]

Floats = NDArray[np.float64]
ROUNDING = 1e-13


def _shaped(value: Floats, given: Any) -> Any:
    return float(value) if np.ndim(given) == 0 else value


def reconstruction_robustness(curve: TradeOffCurve, baseline: ArrayLike) -> Any:
    """Largest success of any reconstruction of a secret, whatever counts as success, from above.

    Parameters
    ----------
    curve : TradeOffCurve
        Holds for the pair of the true data and data without the secret (removed or replaced).
    baseline : float or array
        Largest probability kappa of success without access to the output, in [0, 1].

    Returns
    -------
    float or array
        ``gamma = 1 - f(kappa)``: the mechanism is (eta, gamma)-reconstruction robust for every error eta at
        which guessing from the prior succeeds with probability kappa.

    Raises
    ------
    ValueError, TypeError
        If a baseline is outside [0, 1].

    Notes
    -----
    Balle, Cherubin & Hayes 2022 define the quantity. With E_z the event of success on secret z and R the law of
    the output without it, ``sum_z pi_z (1 - f(R(E_z))) <= 1 - f(sum_z pi_z R(E_z)) <= 1 - f(kappa)``.

    Examples
    --------
    >>> import privfit.accounting as pa
    >>> round(reconstruction_robustness(pa.gaussian(1.0), 0.01), 5)
    0.09236
    """
    check_curve(curve)
    kappa = check_array("baseline", baseline, 0.0, 1.0)
    ratio = np.asarray(log_likelihood_ratio(curve, kappa))
    with np.errstate(invalid="ignore"):
        value = np.where(kappa > 0, np.exp(np.minimum(ratio + np.log(np.maximum(kappa, 5e-324)), 0.0)), 0.0)
    certain = np.where(kappa == 0, curve.delta(math.inf), 0.0)
    return _shaped(np.maximum(np.clip(value, kappa, 1.0), certain), baseline)


def attack_success(
    curve: TradeOffCurve,
    prior: ArrayLike | None = None,
    *,
    categories: ArrayLike | None = None,
    relation: str = "replace",
) -> Any:
    """Largest probability of guessing which of m secrets is in the data, from above.

    Attribute inference (m values of an attribute) and re-identification (m candidate people).

    Parameters
    ----------
    curve : TradeOffCurve
        Holds for every ordered pair of secrets ("replace"), or for the data without the record against the
        data with any of them ("add_remove").
    prior : array of shape (m,), optional
        What the attacker believes before; sums to 1.
    categories : int or array of int, optional
        Number m of equally likely secrets; give either this or `prior`.
    relation : {"replace", "add_remove"}
        The neighbouring relation of the curve.

    Returns
    -------
    float or array
        Never below max(prior); exact for randomised response over the m secrets.

    Raises
    ------
    ValueError, TypeError
        If not exactly one of prior and categories is given, or either is out of range.

    Examples
    --------
    >>> import math
    >>> import privfit.accounting as pa
    >>> round(attack_success(pa.randomized_response(math.log(3), 4), categories=4), 9)  # 3 / (3 + 3)
    0.5
    >>> round(attack_success(pa.gaussian(0.5), [0.5, 0.4, 0.1]), 2)
    0.55
    """
    check_curve(curve)
    check_choice("relation", relation, ("replace", "add_remove"), hint="Which pairs does the curve hold for?")
    wanted = REPLACE_ONE if relation == "replace" else ADD_OR_REMOVE
    check_relation(curve, wanted, f"relation={relation!r}", "Pass the relation of the curve.")
    if (prior is None) == (categories is None):
        raise ValueError("give either prior or categories, and not both: who or what is being guessed?")
    if prior is None:
        m = check_array("categories", categories, 1.0)  # type: ignore[arg-type]
        if np.any(m != np.floor(m)) or np.any(np.isinf(m)):
            raise ValueError("categories must be finite integers >= 1; pass the number of possible secrets.")
        bound = _uniform(curve, m) if relation == "replace" else np.asarray(reconstruction_robustness(curve, 1 / m))
        return _shaped(bound, categories)
    pi = check_array("prior", prior, 0.0, 1.0)
    if pi.ndim != 1 or abs(pi.sum() - 1) > 1e-9:
        raise ValueError(f"prior must be a vector of probabilities that sum to 1, got sum {pi.sum():.9g}; rescale it.")
    pi = np.sort(pi[pi > 0] / pi.sum())[::-1]
    best = _against_reference(curve, pi)
    if relation == "replace" and pi.size > 1:
        best = min(best, _pairwise(curve, pi))
    return min(max(best * (1 + ROUNDING), float(pi[0])), 1.0)


def _uniform(curve: TradeOffCurve, m: Floats) -> Floats:
    """Bound theta + (1 - theta) delta(eps) at the best eps: where beta = (m - 1) alpha."""
    limit = curve.max_loss

    def balance(t: Floats, number: Floats) -> Floats:
        alpha, beta = curve.error_rates(t)
        return (number - 1) * alpha - beta

    values = []
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        for t in bisect_decreasing(balance, m, lower=-limit, upper=limit):
            theta = np.where(m > 1, 1 / (1 + (m - 1) * np.exp(-t)), 1.0)
            values.append(theta + (1 - theta) * curve.delta(t))
    return np.clip(np.minimum(*values) * (1 + ROUNDING), 1 / m, 1.0)


def _against_reference(curve: TradeOffCurve, pi: Floats) -> float:
    """Minimum over l of l + sum pi delta(log(l / pi)): the best l makes the rejection rates sum to one."""
    log_pi = np.log(pi)

    def excess(log_l: Floats, _: Floats) -> Floats:
        return np.sum(curve.error_rates(log_l[:, None] - log_pi)[0], axis=1) - 1

    with np.errstate(over="ignore"):
        ends = bisect_decreasing(excess, np.zeros(1))
    return min(float(np.exp(end[0]) + pi @ curve.delta(end[0] - log_pi)) for end in ends)


def _pairwise(curve: TradeOffCurve, pi: Floats) -> float:
    """The bound over all pairs, minimised over l = min(pi, max(u pi - v, 0)); every (u, v) gives a valid bound."""
    from scipy.optimize import minimize

    def value(parameters: Floats) -> float:
        u, v = parameters
        load = np.clip(u * pi - v * pi[0], 0.0, pi)
        rest, total = pi - load, float(load.sum())
        with np.errstate(divide="ignore", invalid="ignore"):
            eps = np.where(rest > 0, np.log(np.maximum(total - load, 0.0)) - np.log(rest), 0.0)
        return total + float(rest @ np.asarray(curve.delta(eps)))

    gap = pi[1] / pi[0]
    starts = [(0.5, 0.0), (0.95, 0.0), (min(1 / max(1 - gap, 1e-3), 1e3), min(gap / max(1 - gap, 1e-3), 1e3))]
    options = {"xatol": 1e-9, "fatol": 1e-12}
    found = [minimize(value, np.array(start), method="Nelder-Mead", options=options) for start in starts]  # type: ignore[call-overload]
    return min(float(result.fun) for result in found)
