r"""Zero-inflated Laplace noise: with probability delta0 the whole row has no noise, else it is SL_d.

Characteristic function delta0 + (1 - delta0)/(1 + q) = (1 + delta0 q)/(1 + q), q = t'Sigma t/2; curve
(1 - delta0) T_{d,c}(alpha/(1 - delta0)) up to 1 - delta0, then 0 (Lu, Chen & Qiu).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.accounting.validation import check_number
from privfit.mechanisms.continuous import ContinuousLaw
from privfit.mechanisms.samplers import gamma_rows, keep_rows, laplace_coordinate, normal_coordinates

if TYPE_CHECKING:
    from privfit.accounting import TradeOffCurve
    from privfit.mechanisms.keystream import Words

__all__ = ["ZeroInflatedLaplace"]

Floats = NDArray[np.float64]


def check_delta0(delta0: Any) -> float:
    """Return `delta0` in (0, 1) or raise.

    Examples
    --------
    >>> check_delta0(0.05)
    0.05
    """
    hint = "Without an atom use SymmetricLaplace."
    return check_number("delta0", delta0, 0, 1, low_open=True, high_open=True, hint=hint)


@dataclass(frozen=True)
class ZeroInflatedLaplace(ContinuousLaw):
    """SL noise that spares a random fraction of the rows.

    Parameters
    ----------
    scale : float or sequence of floats
        lambda, the standard deviation of the noise where there is noise, one number or one per coordinate.
    delta0 : float
        Probability, in (0, 1), that a row is released exactly (to the grid). It is a part of delta.

    Examples
    --------
    >>> law = ZeroInflatedLaplace(1.0, delta0=0.1)
    >>> round(law.characteristic_function(2**0.5), 6)
    0.55
    """

    delta0: float
    mechanism: ClassVar[str] = "zero_inflated_laplace"
    calibration_rtol: ClassVar[float] = 1e-6

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "delta0", check_delta0(self.delta0))

    @property
    def exact_fraction(self) -> float:
        """Probability delta0 that a row comes out without noise."""
        return self.delta0

    def tradeoff(self, domain: Any, protect: str = "record") -> TradeOffCurve:
        """Return T_{d, c, delta0} with c the largest shift in units of lambda."""
        from privfit.accounting import zil

        self.check_domain(domain)
        return zil(domain.dim, self.shift(domain, protect), self.delta0)

    @classmethod
    def calibrate(
        cls,
        target: Any,
        domain: Any,
        protect: str = "record",
        relative_scales: ArrayLike | None = None,
        *,
        delta0: float | None = None,
        scale: float | Sequence[float] | None = None,
        criterion: Callable[[ZeroInflatedLaplace], float] | None = None,
        releases: int = 1,
    ) -> Self:
        """Return the law on the border of a target, with one of its two parameters given or both free.

        Parameters
        ----------
        target, domain, protect, relative_scales, releases
            As for every law.
        delta0 : float, optional
            Probability of an exact row, smaller than the target's delta: the smallest noise is found.
        scale : float or sequence of floats, optional
            lambda of the noise: the largest delta0 is found. Excludes `relative_scales`.
        criterion : callable, optional
            Maps a law to the cost of using it, for instance the variance of an estimate: both parameters are
            found, the cheapest pair that meets the target. (Noise alone is cheapest without an atom.)

        Returns
        -------
        ZeroInflatedLaplace

        Raises
        ------
        TypeError
            Unless exactly one of `delta0`, `scale` and `criterion` is given.
        ValueError
            If `delta0` alone, or noise of that `scale` alone, uses up the target.

        Examples
        --------
        >>> from privfit.accounting import Budget
        >>> from privfit.mechanisms import Box
        >>> budget, box = Budget(1.0, 0.05), Box({"x": (0, 1)})
        >>> ZeroInflatedLaplace.calibrate(budget, box, delta0=0.04)
        ZeroInflatedLaplace(scale=1.38..., delta0=0.04)
        >>> ZeroInflatedLaplace.calibrate(budget, box, scale=1.4)
        ZeroInflatedLaplace(scale=1.4, delta0=0.045...)
        """
        from privfit.mechanisms import zero_inflated_calibration as calibration

        given = [
            name
            for name, value in (("delta0", delta0), ("scale", scale), ("criterion", criterion))
            if value is not None
        ]
        if len(given) != 1:
            raise TypeError(
                "exactly one of delta0, scale and criterion must be given, "
                f"got {' and '.join(given) or 'none'}: delta0 finds the noise, scale finds delta0."
            )
        if scale is not None:
            if relative_scales is not None:
                raise TypeError("relative_scales must not be given with scale, which fixes the noise.")
            return calibration.largest_delta0(cls, target, domain, protect, scale, releases)
        if criterion is not None:
            return calibration.cheapest(cls, target, domain, protect, relative_scales, criterion, releases)
        delta0 = check_delta0(delta0)
        calibration.check_room(target, delta0, releases)
        return cls._calibrate(target, domain, protect, relative_scales, releases, delta0=delta0)

    @property
    def _unit_variance(self) -> float:
        return 1.0 - self.delta0

    def _unit_characteristic(self, t: Floats) -> Floats:
        q = np.square(t).sum(axis=-1) / 2
        return np.asarray((1.0 + self.delta0 * q) / (1.0 + q))

    def _unit_noise(self, words: Words, rows: int, dim: int) -> Iterator[Floats]:
        keep = keep_rows(words, rows, self.delta0)
        if dim == 1:
            noise = laplace_coordinate(words, rows)
            noise *= 0.5**0.5
            noise *= keep
            yield noise
        else:
            yield from normal_coordinates(words, rows, dim, gamma_rows(words, rows, 1), keep)
