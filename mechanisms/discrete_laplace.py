r"""Discrete Laplace noise on the grid, exactly: pure epsilon-DP without any numerical slack.

Y = g (X + K) with X = x/g rounded to an integer, P(K = k) = (1 - q)/(1 + q) q^|k|, q = e^{-1/t}, t = scale/g an
integer. X moves by at most D_j = ceil(upper_j/g_j) - floor(lower_j/g_j), so a coordinate's loss is at most
D_j/t_j, a record's their sum and an attribute's the largest (Ghosh, Roughgarden & Sundararajan 2012). Noise is
sampled in integer arithmetic (`integers`), with the same work whatever it is, and integers below 2^53 are exact as
floats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.mechanisms.additive import AdditiveLaw
from privfit.mechanisms.domain import Ball, Box
from privfit.mechanisms.grid import Rounder, grid_of
from privfit.mechanisms.integers import discrete_laplace
from privfit.mechanisms.law import check_protect

if TYPE_CHECKING:
    from privfit.accounting import TradeOffCurve
    from privfit.mechanisms.keystream import Words

__all__ = ["GRID_BITS", "DiscreteLaplace"]

Floats = NDArray[np.float64]

GRID_BITS = 20
"""scale/g lies in [2^20, 2^21]: fine, so that rounding a domain outward to the grid costs next to nothing."""


def _on_grid(scale: float) -> float:
    step = float(grid_of(np.array([scale]), GRID_BITS)[0])
    return math.ceil(scale / step) * step


@dataclass(frozen=True)
class DiscreteLaplace(AdditiveLaw):
    """Independent discrete Laplace noise by an exact sampler: for a pure epsilon, at a lower speed.

    Parameters
    ----------
    scale : float or sequence of floats
        Scale b of each coordinate (the standard deviation is b sqrt(2)); rounded up to a whole number of grid
        steps, by less than one part in a million.

    Examples
    --------
    >>> from privfit.mechanisms import Box
    >>> law = DiscreteLaplace(2.0)
    >>> law.guarantee(Box({"x": (0, 1)})).record.epsilon(0.0), law.slack(Box({"x": (0, 1)}))
    (0.5, 0.0)
    """

    mechanism: ClassVar[str] = "discrete_laplace"

    def __post_init__(self) -> None:
        super().__post_init__()
        exact = tuple(map(_on_grid, self.scale)) if isinstance(self.scale, tuple) else _on_grid(self.scale)
        object.__setattr__(self, "scale", exact)

    def grid(self, dim: int) -> Floats:
        """Return the grid of each coordinate's released values, a power of two, shape (dim,)."""
        return grid_of(self.scales(dim), GRID_BITS)

    def check_domain(self, domain: Any) -> None:
        """Raise unless `domain` is a Box with as many columns as the law has scales."""
        super().check_domain(domain)
        if isinstance(domain, Ball):
            raise TypeError(
                "DiscreteLaplace needs a Box, got Ball: its guarantee adds up column by column. Declare a Box, or "
                "use Laplace."
            )

    def loss(self, domain: Any, protect: str = "record") -> Fraction:
        """Return the exact epsilon of a release, sum (record) or maximum (attribute) of D_j/t_j.

        Parameters
        ----------
        domain : Box
        protect : {"record", "attribute"}

        Returns
        -------
        Fraction
        """
        self.check_domain(domain)
        low, high = self._edges(domain)
        losses = [Fraction(int(b - a), t) for a, b, t in zip(low, high, self._steps(domain.dim), strict=True)]
        return sum(losses, Fraction(0)) if check_protect(protect) == "record" else max(losses)

    def tradeoff(self, domain: Any, protect: str = "record") -> TradeOffCurve:
        """Return the curve of pure epsilon-DP, a lower bound of the curve of the noise."""
        from privfit.accounting import approximate_dp

        return approximate_dp(_rounded_up(self.loss(domain, protect)), 0.0)

    def slack(self, domain: Any) -> float:
        """Return 0: the sampler is exact."""
        self.check_domain(domain)
        return 0.0

    @classmethod
    def calibrate(
        cls,
        target: Any,
        domain: Any,
        protect: str = "record",
        relative_scales: ArrayLike | None = None,
        *,
        releases: int = 1,
    ) -> Self:
        """Return the law that meets a target by pure epsilon-DP; see `AdditiveLaw.calibrate`.

        Parameters
        ----------
        target, domain, protect, relative_scales, releases
            As for every law; ``Budget(epsilon, 0)`` is met exactly.

        Returns
        -------
        DiscreteLaplace
            Its scale is the smallest up to a relative 2^-19 dim/epsilon.

        Raises
        ------
        ValueError
            If the target asks for an epsilon below 2^-18 dim, finer than the grid.
        """
        from privfit.mechanisms.calibration import pure_epsilon, relative_to

        check_protect(protect)
        relative = relative_to(domain, relative_scales)
        cls(1.0).check_domain(domain)
        epsilon = pure_epsilon(target, releases=releases)
        counted = domain.dim if protect == "record" else 1
        outward = counted * 2.0 ** (1 - GRID_BITS)
        if epsilon < 2 * outward:
            raise ValueError(
                f"epsilon must be at least {2 * outward:.3g} for this law, got {epsilon:.3g}. Use Laplace."
            )
        ratios = domain.ranges / relative
        total = float(ratios.sum() if protect == "record" else ratios.max())
        # Enough if the bounds lie on the grid, and enough in any case.
        sizes = (total / epsilon, total / epsilon * (1 + 1e-12), total / (epsilon - outward) * (1 + 1e-12))
        laws = (cls(scale=tuple(size * relative)) for size in sizes)
        return next(law for law in laws if law.loss(domain, protect) <= Fraction(epsilon))

    def _steps(self, dim: int) -> list[int]:
        return [int(t) for t in self.scales(dim) / self.grid(dim)]

    def _edges(self, domain: Box) -> tuple[Floats, Floats]:
        """Return the domain in grid steps, rounded outward."""
        grid = self.grid(domain.dim)
        return np.floor(domain.lower / grid), np.ceil(domain.upper / grid)

    def _variances(self, scales: Floats) -> Floats:
        grid = grid_of(scales, GRID_BITS)
        return np.asarray(np.square(grid / np.sinh(0.5 * grid / scales)) / 2)

    def _characteristic(self, t: Floats, scales: Floats) -> Floats:
        grid = grid_of(scales, GRID_BITS)
        rate, wave = np.square(np.sinh(0.5 * grid / scales)), np.square(np.sin(0.5 * grid * t))
        return np.asarray(np.prod(rate / (rate + wave), axis=-1))

    def _perturb(self, x: Floats, words: Words, domain: Any, round_: Rounder) -> None:
        dim, rows = x.shape
        grid, steps, (low, high) = self.grid(dim), self._steps(dim), self._edges(domain)
        for j in range(dim):
            row = x[j]
            row *= 1.0 / grid[j]
            whole = np.floor(row)
            row -= whole
            round_(row)
            row += whole
            np.clip(row, low[j], high[j], out=row)
            # Integer arithmetic; clipping the sum is post-processing, reached with probability below e^(-2^30).
            total = row.astype(np.int64) + discrete_laplace(words, rows, steps[j])
            row[:] = np.clip(total, -(2**53), 2**53)
            row *= grid[j]


def _rounded_up(value: Fraction) -> float:
    nearest = float(value)
    return math.nextafter(nearest, math.inf) if Fraction(nearest) < value else nearest
