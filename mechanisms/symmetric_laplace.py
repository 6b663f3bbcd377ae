r"""Symmetric multivariate (generalised) Laplace noise: Z = sqrt(W) N(0, diag(lambda^2)), one W per row.

W ~ Gamma(k, rate k) has mean 1, so lambda is the standard deviation; the characteristic function is
(1 + q/k)^-k with q = t'Sigma t/2. Shape 1 is SL_d (Lu, Chen & Qiu), shape (d+1)/2 the l2 Laplace mechanism,
shape infinity the Gaussian. Its trade-off curve depends only on d, k and c = |Sigma^-1/2 (x - x')|.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.accounting.validation import check_integer
from privfit.mechanisms.continuous import ContinuousLaw
from privfit.mechanisms.samplers import gamma_rows, laplace_coordinate, normal_coordinates

if TYPE_CHECKING:
    from privfit.accounting import TradeOffCurve
    from privfit.mechanisms.additive import AdditiveLaw
    from privfit.mechanisms.keystream import Words

__all__ = ["SHAPE_MAX", "SymmetricLaplace"]

Floats = NDArray[np.float64]

SHAPE_MAX = 1000


@dataclass(frozen=True)
class SymmetricLaplace(ContinuousLaw):
    """Uncorrelated, dependent coordinates that share one radius per row.

    Parameters
    ----------
    scale : float or sequence of floats
        Standard deviation lambda, one number or one per coordinate.
    shape : int
        Shape k >= 1 of the mixing gamma variable.

    Examples
    --------
    >>> law = SymmetricLaplace(1.0, shape=2)
    >>> round(law.characteristic_function([1.0, 1.0]), 6)
    0.444444
    """

    shape: int = 1
    mechanism: ClassVar[str] = "symmetric_laplace"
    calibration_rtol: ClassVar[float] = 1e-6

    def __post_init__(self) -> None:
        super().__post_init__()
        hint = "Only integer shapes have an exact correction and sampler."
        object.__setattr__(self, "shape", check_integer("shape", self.shape, 1, SHAPE_MAX, hint=hint))

    def tradeoff(self, domain: Any, protect: str = "record") -> TradeOffCurve:
        """Return T_{d, c} of this shape with c the largest shift in units of lambda."""
        from privfit.accounting import symmetric_laplace

        self.check_domain(domain)
        return symmetric_laplace(domain.dim, self.shift(domain, protect), self.shape)

    @overload
    @classmethod
    def calibrate(
        cls,
        target: Any,
        domain: Any,
        protect: str = "record",
        relative_scales: ArrayLike | None = None,
        *,
        shape: int | None = None,
        releases: int = 1,
    ) -> Self: ...
    @overload
    @classmethod
    def calibrate(
        cls,
        target: Any,
        domain: Any,
        protect: str = "record",
        relative_scales: ArrayLike | None = None,
        *,
        shape: Literal["best"],
        releases: int = 1,
    ) -> AdditiveLaw: ...
    @classmethod
    def calibrate(
        cls,
        target: Any,
        domain: Any,
        protect: str = "record",
        relative_scales: ArrayLike | None = None,
        *,
        shape: int | str | None = None,
        releases: int = 1,
    ) -> Any:
        """Return the smallest noise that meets a target; see `AdditiveLaw.calibrate`.

        Parameters
        ----------
        target, domain, protect, relative_scales, releases
            As for every law.
        shape : int or "best", optional
            Shape k, by default 1, or "best" for the integer shape with the smallest variance (near dim/2 + 1 when delta
            is small). The law returned carries the shape that was chosen, and where no shape needs less noise
            than shape infinity (small advantages, many releases) it is that: a `Gaussian` law.

        Returns
        -------
        SymmetricLaplace
            With ``shape="best"`` never more noise than ``Gaussian.calibrate``, whose law it may be.

        Warns
        -----
        UserWarning
            If no shape was asked for and shape 1 needs more than twice the variance of Gaussian noise, as it does at
            a small delta with three or more columns.

        Examples
        --------
        >>> from privfit.accounting import Advantage, Budget
        >>> from privfit.mechanisms import Box
        >>> box = Box({"x": (0, 1)})
        >>> SymmetricLaplace.calibrate(Budget(1.0, 1e-5), box, shape="best")
        SymmetricLaplace(scale=1.41..., shape=1)
        >>> SymmetricLaplace.calibrate(Advantage(0.2), box, shape="best")
        Gaussian(scale=1.97...)
        """
        if isinstance(shape, str):
            from privfit.mechanisms.calibration import best_shape

            return best_shape(cls, target, domain, protect, relative_scales, shape, releases)
        own = check_integer("shape", 1 if shape is None else shape, 1, SHAPE_MAX, hint='Or pass shape="best".')
        law = cls._calibrate(target, domain, protect, relative_scales, releases, shape=own)
        if shape is None:
            _compare_with_gaussian(law, target, domain, protect, relative_scales, releases)
        return law

    @property
    def _unit_variance(self) -> float:
        return 1.0

    def _unit_characteristic(self, t: Floats) -> Floats:
        return np.asarray((1.0 + np.square(t).sum(axis=-1) / (2 * self.shape)) ** -self.shape)

    def _unit_noise(self, words: Words, rows: int, dim: int) -> Iterator[Floats]:
        if dim == 1 and self.shape == 1:
            noise = laplace_coordinate(words, rows)
            noise *= 0.5**0.5
            yield noise
        else:
            yield from normal_coordinates(words, rows, dim, gamma_rows(words, rows, self.shape))


def _compare_with_gaussian(
    law: SymmetricLaplace, target: Any, domain: Any, protect: str, relative_scales: ArrayLike | None, releases: int
) -> None:
    """Warn of a shape that nobody chose and that costs much."""
    from privfit.mechanisms.gaussian import Gaussian

    try:
        plain = Gaussian.calibrate(target, domain, protect, relative_scales, releases=releases)
    except (ArithmeticError, ValueError):
        return  # a target that Gaussian noise cannot meet
    ratio = float((law.scales(domain.dim)[0] / plain.scales(domain.dim)[0]) ** 2)
    if ratio > 2.0:
        warnings.warn(
            f"shape 1 needs {ratio:.3g} times the variance of Gaussian noise for this target. Pass shape='best' for "
            "the shape with the least noise (or shape=1, if you mean it).",
            UserWarning,
            stacklevel=3,
        )
