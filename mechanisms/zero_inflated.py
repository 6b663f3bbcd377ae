r"""Zero-inflated Laplace noise: with probability delta0 the whole row has no noise, else it is SL_d.

Characteristic function delta0 + (1 - delta0)/(1 + q) = (1 + delta0 q)/(1 + q), q = t'Sigma t/2; curve
(1 - delta0) T_{d,c}(alpha/(1 - delta0)) up to 1 - delta0, then 0 (Lu, Chen & Qiu).
"""

from __future__ import annotations

from collections.abc import Iterator
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
    def calibrate(  # type: ignore[override]
        cls,
        target: Any,
        domain: Any,
        protect: str = "record",
        relative_scales: ArrayLike | None = None,
        *,
        delta0: float,
    ) -> Self:
        """Return the smallest noise that meets a target at a given atom; see `AdditiveLaw.calibrate`.

        Parameters
        ----------
        target, domain, protect, relative_scales
            As for every law.
        delta0 : float
            Probability of an exact row, smaller than the target's delta.

        Returns
        -------
        ZeroInflatedLaplace

        Raises
        ------
        ValueError
            If `delta0` alone uses up the target's delta.
        """
        delta0 = check_delta0(delta0)
        allowed = getattr(target, "delta", None)
        if isinstance(allowed, float) and delta0 >= allowed:
            raise ValueError(
                f"delta0 must be smaller than the target's delta = {allowed:g}, got {delta0:g}: a fraction "
                "delta0 of the rows comes out exactly. Lower delta0, raise delta, or use SymmetricLaplace."
            )
        return cls._calibrate(target, domain, protect, relative_scales, delta0=delta0)

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
