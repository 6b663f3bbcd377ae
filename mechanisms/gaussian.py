r"""Gaussian noise: Z ~ N(0, sigma_j^2), independent per coordinate, and T(P, Q) = G_mu with mu = c.

G_mu(alpha) = Phi(Phi^-1(1 - alpha) - mu), mu = sqrt(sum (r_j/sigma_j)^2) for records and max r_j/sigma_j for
one attribute: Dong, Roth & Su (2022), Balle & Wang (2018).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.continuous import ContinuousLaw
from privfit.mechanisms.samplers import normal_coordinates

if TYPE_CHECKING:
    from privfit.accounting import TradeOffCurve
    from privfit.mechanisms.keystream import Words

__all__ = ["Gaussian"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Gaussian(ContinuousLaw):
    """Independent normal noise.

    Parameters
    ----------
    scale : float or sequence of floats
        Standard deviation sigma, one number or one per coordinate.

    Examples
    --------
    >>> law = Gaussian(2.0)
    >>> law.variance
    4.0
    """

    mechanism: ClassVar[str] = "gaussian"

    def tradeoff(self, domain: Any, protect: str = "record") -> TradeOffCurve:
        """Return G_mu with mu the largest shift in units of sigma."""
        from privfit.accounting import gaussian

        return gaussian(self.shift(domain, protect))

    @property
    def _unit_variance(self) -> float:
        return 1.0

    def _unit_characteristic(self, t: Floats) -> Floats:
        return np.asarray(np.exp(-0.5 * np.square(t).sum(axis=-1)))

    def _unit_noise(self, words: Words, rows: int, dim: int) -> Iterator[Floats]:
        return normal_coordinates(words, rows, dim, None)
