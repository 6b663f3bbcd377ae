r"""Product Laplace noise: Z_j with density exp(-|z|/b_j)/(2 b_j), independent per coordinate.

Coordinate j alone is the Laplace curve with a_j = r_j/b_j: f(alpha) = 1 - e^a alpha up to e^-a/2, then
e^-a/(4 alpha), then e^-a (1 - alpha). A record changes every coordinate, so its curve is the composition
of the d curves; on a ball only sum_j |shift_j|/b_j <= 2R |1/b|_2 is used, as pure differential privacy, for
attributes too: projecting two records that differ in one coordinate can move all the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.continuous import ContinuousLaw
from privfit.mechanisms.domain import Ball, Box
from privfit.mechanisms.law import check_protect
from privfit.mechanisms.samplers import laplace_coordinate

if TYPE_CHECKING:
    from privfit.accounting import TradeOffCurve
    from privfit.mechanisms.keystream import Words

__all__ = ["Laplace"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Laplace(ContinuousLaw):
    """Independent Laplace noise.

    Parameters
    ----------
    scale : float or sequence of floats
        Scale b (the standard deviation is b sqrt(2)), one number or one per coordinate.

    Examples
    --------
    >>> Laplace([1.0, 2.0]).variance
    array([2., 8.])
    """

    mechanism: ClassVar[str] = "laplace"

    def tradeoff(self, domain: Any, protect: str = "record") -> TradeOffCurve:
        """Return the composed Laplace curves (record), or the worst single one (attribute, on a box)."""
        from privfit.accounting import approximate_dp, laplace

        self.check_domain(domain)
        scales = self.scales(domain.dim)
        attribute = check_protect(protect) == "attribute"
        if domain.dim == 1 or (attribute and isinstance(domain, Box)):
            return laplace(domain.shift(scales, "attribute"))
        if isinstance(domain, Ball):
            return approximate_dp(domain.diameter * float(np.sqrt(np.square(1 / scales).sum())), 0.0)
        first, *others = (laplace(a) for a in domain.ranges / scales)
        return first.compose(*others)

    @property
    def _unit_variance(self) -> float:
        return 2.0

    def _unit_characteristic(self, t: Floats) -> Floats:
        return np.asarray(np.prod(1.0 / (1.0 + np.square(t)), axis=-1))

    def _unit_noise(self, words: Words, rows: int, dim: int) -> Iterator[Floats]:
        return (laplace_coordinate(words, rows) for _ in range(dim))
