r"""Laws that add noise with one scale per coordinate: Y = x + diag(scale) Z.

On a box with ranges r_j the shift between two records, in units of the scales, is at most
c_I = sqrt(sum (r_j/scale_j)^2) for whole records and c_A = max r_j/scale_j for records that differ in one
coordinate; on an l2 ball of radius R both are 2R/min(scale).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.accounting.validation import check_array, check_integer, check_number
from privfit.mechanisms.domain import Ball, Box
from privfit.mechanisms.grid import Rounder, grid_of
from privfit.mechanisms.law import Law, check_protect

if TYPE_CHECKING:
    from privfit.mechanisms.keystream import Words

__all__ = ["SCALE_MAX", "SCALE_MIN", "AdditiveLaw", "check_scale"]

Floats = NDArray[np.float64]

SCALE_MIN, SCALE_MAX = 2.0**-500, 2.0**500
"""Scales whose square, grid and grid multiples are ordinary floats: no formula over- or underflows."""


def check_scale(scale: Any) -> float | tuple[float, ...]:
    """Return one positive float, or a tuple of them, or raise naming the offending entry.

    Examples
    --------
    >>> check_scale([1, 2.5])
    (1.0, 2.5)
    """
    hint = "Scales outside this range do not fit the release grid: rescale the column."
    if isinstance(scale, (str, bytes, dict, set, frozenset)) or scale is None:
        raise TypeError(f"scale must be a number or a sequence of numbers, got {type(scale).__name__}.")
    if isinstance(scale, np.ndarray) and scale.ndim == 0:
        scale = scale[()]
    if not hasattr(scale, "__len__"):
        return check_number("scale", scale, SCALE_MIN, SCALE_MAX, hint=hint)
    if np.ndim(scale) != 1 or len(scale) == 0:
        raise ValueError(f"scale must be one number or a flat, non-empty sequence, got shape {np.shape(scale)}.")
    return tuple(check_number(f"scale[{j}]", value, SCALE_MIN, SCALE_MAX, hint=hint) for j, value in enumerate(scale))


@dataclass(frozen=True)
class AdditiveLaw(Law):
    """Base of the laws that add noise; `scale` is one number, or one per coordinate.

    Continuous laws derive from `privfit.mechanisms.continuous.ContinuousLaw`.
    """

    scale: float | tuple[float, ...]
    calibration_rtol: ClassVar[float] = 1e-9

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", check_scale(self.scale))

    def scales(self, dim: int) -> Floats:
        """Return the scale of each coordinate.

        Parameters
        ----------
        dim : int
            Number of coordinates of the released vector.

        Returns
        -------
        ndarray of shape (dim,)

        Raises
        ------
        ValueError
            If the law has one scale per coordinate and their number is not `dim`.
        """
        dim = check_integer("dim", dim, 1)
        if isinstance(self.scale, tuple):
            if len(self.scale) != dim:
                raise ValueError(
                    f"scale must be one number or {dim} numbers, one per coordinate, got {len(self.scale)}."
                )
            return np.array(self.scale, dtype=np.float64)
        return np.full(dim, self.scale, dtype=np.float64)

    @property
    def variance(self) -> float | Floats:
        """Variance of the noise, a float when `scale` is one number, else shape (dim,)."""
        variance = self._variances(np.asarray(self.scale, dtype=np.float64))
        return float(variance) if np.ndim(variance) == 0 else np.asarray(variance, dtype=np.float64)

    def grid(self, dim: int) -> Floats:
        """Return the grid of each coordinate's released values, a power of two, shape (dim,)."""
        return grid_of(self.scales(dim))

    def characteristic_function(self, t: ArrayLike) -> float | Floats:
        """Return E exp(i t'Z) of the noise, which is real because every law here is symmetric.

        Parameters
        ----------
        t : array of shape (..., dim), or a number for one coordinate
            The last axis runs over the coordinates.

        Returns
        -------
        float or ndarray of shape (...)
        """
        points = check_array("t", t)
        if not np.isfinite(points).all():
            raise ValueError("t must be finite.")
        if points.ndim == 0:
            points = points[None]
        out = self._characteristic(points, self.scales(points.shape[-1]))
        return float(out) if out.ndim == 0 else out

    def check_domain(self, domain: Any) -> None:
        """Raise unless `domain` is a Box or a Ball with as many columns as the law has scales."""
        if not isinstance(domain, (Box, Ball)):
            raise TypeError(
                f"{type(self).__name__} adds noise to numbers and needs a Box or a Ball, got {type(domain).__name__}."
            )
        self.scales(domain.dim)

    def shift(self, domain: Any, protect: str = "record") -> float:
        """Return c, the largest shift between neighbours of `domain` in units of the scales.

        Parameters
        ----------
        domain : Box or Ball
        protect : {"record", "attribute"}

        Returns
        -------
        float
        """
        self.check_domain(domain)
        return float(domain.shift(self.scales(domain.dim), check_protect(protect)))

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
        """Return the law of this kind with the smallest noise that meets a target on a domain.

        Parameters
        ----------
        target : Budget, GDP, Advantage, ErrorRates or TradeOffCurve
            What must hold. A budget, advantage or error-rate target holds with the sampler's numerical
            slack included; GDP and curve targets hold for the stated law, and the guarantee adds the slack.
        domain : Box or Ball
            The declared domain.
        protect : {"record", "attribute"}
            Neighbours that differ in the whole row, or in one coordinate.
        relative_scales : array of shape (dim,), optional
            Noise of the coordinates relative to each other; the default is proportional to the ranges of
            a box and equal on a ball.
        releases : int
            How many times the same records will be released, each time with new noise of this law: the target
            holds for all releases together.

        Returns
        -------
        Law

        Raises
        ------
        ValueError
            If no noise of this kind meets the target; the message says what to change.
        """
        return cls._calibrate(target, domain, protect, relative_scales, releases)

    @classmethod
    def _calibrate(
        cls,
        target: Any,
        domain: Any,
        protect: str,
        relative_scales: ArrayLike | None,
        releases: int,
        **parameters: Any,
    ) -> Self:
        from privfit.mechanisms.calibration import calibrate_scale

        return calibrate_scale(cls, target, domain, protect, relative_scales, parameters, releases=releases)

    @abstractmethod
    def _variances(self, scales: Floats) -> Floats:
        """Variance of the noise at each scale, the shape of `scales`."""

    @abstractmethod
    def _characteristic(self, t: Floats, scales: Floats) -> Floats:
        """Characteristic function for t of shape (..., dim) and scales of shape (dim,)."""

    @abstractmethod
    def _perturb(self, x: Floats, words: Words, domain: Any, round_: Rounder) -> None:
        """Replace x, shape (dim, rows) and inside `domain`, by released values in place.

        Nothing but the rounding `round_` of x + noise to the grid may depend on x.
        """
