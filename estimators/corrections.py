r"""Corrections as lists of terms ``weight * G(D^2) f`` on the release X1 or on a second randomisation X2.

With ``X2 = X1 + S``, ``S ~ SL(delta0 Sigma)`` drawn by the analyst (Lu, Chen & Qiu):

    dr     [f(X1) - (1 - delta0) f(X2)] / delta0            exact  G f on X1 (the average of all three over S)
    sdr    f(X1) - (1 - delta0) q f''(X2)                   sl     (1 - q D^2) f on X2

"wsz", the published rival (Wang, Stefanski & Zhu 2012), is "sl" on the loss of `losses.kernel_check`.
Averaged over M independent draws of S, the variance that S adds falls as 1/M, towards that of "exact".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.validation import check_choice
from privfit.estimators.errors import CapabilityError
from privfit.estimators.operators import Part
from privfit.estimators.symbols import Factor, Heat, Identity, Monomial, Power, Resolvent, Symbol

__all__ = ["CORRECTIONS", "Term", "correction_terms", "draw_second_noise"]

Floats = NDArray[np.float64]
CORRECTIONS = ("exact", "dr", "sdr", "sl", "naive", "wsz")


@dataclass(frozen=True)
class Term:
    """``weight * prod_p G_p(D^2; q_p) f`` on design 0 (X1) or a later one (a draw of X2).

    Examples
    --------
    >>> Term(2.0, 0, (Power(1),)).symbol([0.5], [0]).numerator
    (2.0, -1.0)
    """

    weight: float
    design: int
    factors: tuple[Factor, ...]

    def symbol(self, q: Iterable[float], orders: Sequence[int]) -> Symbol:
        """Symbol of the derivative of the given order in each q, weight included."""
        total = Symbol((self.weight,))
        for factor, value, nu in zip(self.factors, q, orders, strict=True):
            total = total * factor(value, nu)
        return total


def correction_terms(correction: str, parts: Sequence[Part], draws: int = 1) -> list[Term]:
    """Return the terms of a named correction for the given noise parts.

    Parameters
    ----------
    correction : str
        One of `CORRECTIONS`.
    parts : sequence of Part
    draws : int
        Independent second randomisations that terms on X2 are averaged over; they become designs 1 to draws.

    Raises
    ------
    ValueError
        If the name is unknown.
    CapabilityError
        If "dr", "sdr" or "sl" is asked for without exactly one zero-inflated part, or "wsz" without exactly one part
        that is zero-inflated or symmetric Laplace of shape 1.

    Examples
    --------
    >>> [term.weight for term in correction_terms("dr", [Part(Resolvent(0.2), np.ones(2))])]
    [5.0, -4.0]
    """
    check_choice("correction", correction, CORRECTIONS)
    factors = tuple(part.factor for part in parts)
    if correction == "naive":
        return [Term(1.0, 0, tuple(Identity() for _ in factors))]
    if correction == "exact" or not factors:
        return [Term(1.0, 0, factors)]
    if correction == "wsz":
        if factors == (Power(1),):
            return [Term(1.0, 0, factors)]
        if len(factors) != 1 or not isinstance(factors[0], Resolvent):
            raise CapabilityError(
                "correction='wsz' needs one law, SymmetricLaplace of shape 1 or ZeroInflatedLaplace, for all noised "
                f"columns, got {_listed(factors)}. Use correction='exact', which is not bound to one law."
            )
    place, delta0 = _zero_inflated(correction, factors)

    def with_factor(factor: Factor) -> tuple[Factor, ...]:
        return tuple(factor if p == place else other for p, other in enumerate(factors))

    def averaged(weight: float, factor: Factor) -> list[Term]:
        return [Term(weight / draws, 1 + draw, with_factor(factor)) for draw in range(draws)]

    if correction == "dr":
        first, second = 1.0 / delta0, (1.0 - delta0) / delta0
        return [Term(first, 0, with_factor(Identity())), *averaged(-second, Identity())]
    if correction == "sdr":
        return [Term(1.0, 0, with_factor(Identity())), *averaged(-(1.0 - delta0), Monomial())]
    return averaged(1.0, Power(1))


def _zero_inflated(correction: str, factors: Sequence[Factor]) -> tuple[int, float]:
    found = [(p, f.delta0) for p, f in enumerate(factors) if isinstance(f, Resolvent)]
    if len(found) != 1:
        raise CapabilityError(
            f"correction={correction!r} draws a second noise for exactly one ZeroInflatedLaplace part, got "
            f"{len(found)} of them among {_listed(factors)}. Use correction='exact', which is not bound to one law."
        )
    return found[0]


def _listed(factors: Sequence[Factor]) -> str:
    """Kinds of noise parts in words."""
    words = []
    for factor in factors:
        if isinstance(factor, Resolvent):
            words.append("ZeroInflatedLaplace")
        elif isinstance(factor, Power):
            words.append(f"Laplace of shape {factor.shape}")
        else:
            words.append("Gaussian" if isinstance(factor, Heat) else type(factor).__name__)
    counts = {word: words.count(word) for word in words}
    return ", ".join(word if count == 1 else f"{count} x {word}" for word, count in counts.items())


def draw_second_noise(parts: Sequence[Part], rows: int, random_state: int | np.random.Generator | None) -> Floats:
    """Draw S ~ SL(delta0 Sigma) for the zero-inflated part, one W per row: shape (d + 1, rows).

    A Generator moves on, so that repeated calls give independent draws.

    Examples
    --------
    >>> draw_second_noise([Part(Resolvent(0.5), np.array([1.0, 0.0]))], 3, 0).shape
    (2, 3)
    """
    _, delta0 = _zero_inflated("dr", [part.factor for part in parts])
    part = next(p for p in parts if isinstance(p.factor, Resolvent))
    rng = np.random.default_rng(random_state)
    radius = np.sqrt(delta0 * rng.standard_exponential(rows))
    noise = np.zeros((part.variances.size, rows))
    for j in np.flatnonzero(part.variances):
        noise[j] = np.sqrt(part.variances[j]) * radius * rng.standard_normal(rows)
    return noise


def scaled(parts: Sequence[Part], divisor: Floats) -> list[Part]:
    """Return the parts in coordinates divided by `divisor` (standard deviations of the columns)."""
    return [replace(part, variances=part.variances / divisor**2) for part in parts]
