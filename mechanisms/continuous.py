r"""Laws that add continuous noise, scale * Z with a fixed law of Z, sampled in floating point.

Rounding x + noise to a grid, to the nearest point or at random, is post-processing of the stated law, so its
curve holds. What does not follow the stated law is the arithmetic: with logarithm, square root, sine and
cosine good to one unit in the last place a value rounds to another grid point with probability at most
2^-36.9, which every guarantee charges (docs/mathematics.md).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.additive import AdditiveLaw
from privfit.mechanisms.grid import Rounder, add_noise

if TYPE_CHECKING:
    from privfit.mechanisms.keystream import Words

__all__ = ["SLACK_PER_VALUE", "ContinuousLaw"]

Floats = NDArray[np.float64]

SLACK_PER_VALUE = 2.0**-36.9
"""P(sampler and stated law round to different grid points) per value, at most."""


@dataclass(frozen=True)
class ContinuousLaw(AdditiveLaw):
    """Base of the laws that add continuous noise: a subclass states Z at scale 1."""

    def slack(self, domain: Any) -> float:
        """Return dim * 2^-36.9, the sampler's distance from the stated law per row."""
        self.check_domain(domain)
        return int(domain.dim) * SLACK_PER_VALUE

    def _variances(self, scales: Floats) -> Floats:
        return np.asarray(np.square(scales) * self._unit_variance)

    def _characteristic(self, t: Floats, scales: Floats) -> Floats:
        return self._unit_characteristic(t * scales)

    def _perturb(self, x: Floats, words: Words, domain: Any, round_: Rounder) -> None:
        dim, rows = x.shape
        add_noise(x, self._unit_noise(words, rows, dim), self.scales(dim), self.grid(dim), round_)

    @property
    @abstractmethod
    def _unit_variance(self) -> float:
        """Variance at scale 1."""

    @abstractmethod
    def _unit_characteristic(self, t: Floats) -> Floats:
        """Characteristic function at scale 1 for t of shape (..., dim)."""

    @abstractmethod
    def _unit_noise(self, words: Words, rows: int, dim: int) -> Iterator[Floats]:
        """Yield the unit noise of coordinate 0, 1, ..., dim - 1 for `rows` rows from 64-bit words.

        The arrays belong to the caller, who may overwrite each before asking for the next.
        """
