r"""Randomised response: keep the label with probability p = e^eps/(e^eps + k - 1), else another uniformly.

The likelihood ratio of two inputs is e^eps, 1 or e^-eps: exactly eps-DP (Warner 1965; Kairouz et al. 2016).
The sampler compares integers, with p rounded down, so its guarantee has no numerical slack.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.accounting.validation import check_integer, check_number
from privfit.mechanisms.categories import Categories
from privfit.mechanisms.law import Law, check_protect

if TYPE_CHECKING:
    from privfit.accounting import TradeOffCurve
    from privfit.mechanisms.keystream import Words

__all__ = ["RandomizedResponse"]

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

EPSILON_MIN, EPSILON_MAX = 1e-6, 100.0
CATEGORIES_MAX = 1_000_000


@dataclass(frozen=True)
class RandomizedResponse(Law):
    """Noise for one categorical column.

    Parameters
    ----------
    epsilon : float
        Privacy parameter, in [1e-6, 100].
    categories : int
        Number k >= 2 of declared labels.

    Examples
    --------
    >>> law = RandomizedResponse(epsilon=1.0, categories=2)
    >>> round(law.keep_probability, 6)
    0.731059
    """

    epsilon: float
    categories: int = 2
    mechanism: ClassVar[str] = "randomized_response"

    def __post_init__(self) -> None:
        hint = "Below, the answers say nothing; above, they hide nothing."
        epsilon = check_number("epsilon", self.epsilon, EPSILON_MIN, EPSILON_MAX, hint=hint)
        object.__setattr__(self, "epsilon", epsilon)
        categories = check_integer("categories", self.categories, 2, CATEGORIES_MAX)
        object.__setattr__(self, "categories", categories)

    @property
    def keep_probability(self) -> float:
        """Probability that the label is kept."""
        return 1.0 / (1.0 + (self.categories - 1) * math.exp(-self.epsilon))

    @property
    def variance(self) -> float | Floats:
        """Variance of the indicator that the label was kept, p (1 - p)."""
        return self.keep_probability * (1.0 - self.keep_probability)

    def scales(self, dim: int) -> Floats:
        """Refuse: labels are exchanged, nothing is added to them."""
        raise TypeError("RandomizedResponse adds no noise and has no scale; use keep_probability.")

    def characteristic_function(self, t: ArrayLike) -> float | Floats:
        """Refuse: labels are exchanged, nothing is added to them."""
        raise TypeError("RandomizedResponse adds no noise; its correction uses keep_probability.")

    def tradeoff(self, domain: Any, protect: str = "record") -> TradeOffCurve:
        """Return the curve of randomised response; one column, so records and attributes agree."""
        from privfit.accounting import randomized_response

        check_protect(protect)
        self.check_domain(domain)
        return randomized_response(self.epsilon, self.categories)

    def check_domain(self, domain: Any) -> None:
        """Raise unless `domain` declares one column with this law's number of labels."""
        if not isinstance(domain, Categories):
            raise TypeError(f"RandomizedResponse needs a domain Categories, got {type(domain).__name__}.")
        if domain.dim != 1:
            raise ValueError(f"RandomizedResponse releases one column, got {domain.dim}; give each its own law.")
        if len(domain.labels[0]) != self.categories:
            raise ValueError(
                f"categories must be the number of declared labels, {len(domain.labels[0])}, got {self.categories}."
            )

    def slack(self, domain: Any) -> float:
        """Return 0: the sampler compares integers and p is rounded down."""
        return 0.0

    @classmethod
    def calibrate(cls, target: Any, domain: Any, protect: str = "record", *, releases: int = 1) -> Self:
        """Return the randomised response with the largest epsilon that meets a target.

        Parameters
        ----------
        target : Budget, GDP, Advantage, ErrorRates or TradeOffCurve
            What must hold; ``Budget(epsilon, 0)`` is met exactly.
        domain : Categories
            One column with its labels.
        protect : {"record", "attribute"}
        releases : int
            How many times the same labels will be randomised afresh; the target holds for all together.

        Returns
        -------
        RandomizedResponse

        Raises
        ------
        ValueError
            If the target asks for an epsilon below 1e-6.
        """
        from privfit.mechanisms.calibration import pure_epsilon

        check_protect(protect)
        if not isinstance(domain, Categories):
            raise TypeError(f"RandomizedResponse needs a domain Categories, got {type(domain).__name__}.")
        law = cls(1.0, len(domain.labels[0]))
        law.check_domain(domain)
        found = pure_epsilon(target, law.categories, releases)
        if found < EPSILON_MIN:
            raise ValueError(
                f"{target} needs epsilon = {found:.3g} of randomised response, less than {EPSILON_MIN:g}: the answers "
                "would say nothing. Loosen the target, or do not release the column."
            )
        return cls(found, law.categories)

    def threshold(self) -> int:
        """Return the integer T: a label is kept if and only if a uniform 64-bit word is below T."""
        return _threshold(self.epsilon, self.categories)

    def randomize(self, codes: Codes, words: Words) -> Codes:
        """Return randomised codes 0..k-1; one shape of work whatever the codes and the words are."""
        rows, others = len(codes), np.uint64(self.categories - 1)
        lie = words(rows) >= np.uint64(self.threshold())
        word = words(rows)
        # floor(word * others / 2^64) in 64-bit arithmetic: every lie has probability 1/others to 2^-64.
        low = ((word & np.uint64(0xFFFFFFFF)) * others) >> np.uint64(32)
        other = ((word >> np.uint64(32)) * others + low) >> np.uint64(32)
        out = codes + (other.astype(np.int64) + 1) * lie
        # no division, whose running time can depend on what is divided
        out -= self.categories * (out >= self.categories)
        return np.asarray(out, dtype=np.int64)


@lru_cache(maxsize=64)
def _threshold(epsilon: float, categories: int) -> int:
    """Return the largest T < 2^64 whose keep : lie ratio is certainly at most e^epsilon."""
    from mpmath import MPContext

    # A context of its own: other threads may set the precision of mpmath's shared one.
    mp = MPContext()
    mp.prec = 400
    others = categories - 1
    # The rarest lie has probability (1 - T/2^64) floor(2^64/others)/2^64; solve ratio <= e^epsilon for T.
    rarest = mp.mpf(2**64 // others) / mp.mpf(2) ** 64
    odds = mp.exp(mp.mpf(epsilon)) * rarest
    return min(int(mp.floor(mp.mpf(2) ** 64 * odds / (1 + odds))), 2**64 - 1)
