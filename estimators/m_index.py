"""Index losses as an M-estimator needs them: in units of a standardised residual, and smoothed where they bend."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from privfit.estimators.errors import CapabilityError
from privfit.estimators.losses.base import Floats, IndexLoss, Kernel, Request
from privfit.estimators.losses.expression import ExpressionLoss
from privfit.estimators.losses.piecewise import PiecewiseLoss
from privfit.estimators.losses.smoothed import SmoothedLoss

__all__ = ["ScaledLoss", "SumLoss", "averaged", "lowest_jump", "scale_hint", "scale_of", "smoothed"]


class ScaledLoss(IndexLoss):
    """``f(c v)``: a loss of the residual, as a function of the standardised residual v.

    Examples
    --------
    >>> from privfit.estimators.losses import HuberLoss
    >>> ScaledLoss(HuberLoss(1.0), 2.0).value([1.0])
    array([1.5])
    """

    def __init__(self, loss: IndexLoss, scale: float) -> None:
        self.loss, self.scale = loss, scale
        self.kinks = tuple(kink / scale for kink in loss.kinks)
        self.max_variance = loss.max_variance / scale**2

    def derivative(self, u: ArrayLike, order: int = 1) -> Floats:
        """See `IndexLoss.derivative`."""
        return np.asarray(self.scale**order * self.loss.derivative(self.scale * np.asarray(u, float), order), float)

    def compile(self, requests: Sequence[Request]) -> Kernel:
        """See `IndexLoss.compile`: ``D_v = c D_u``."""
        inner = self.loss.compile([(symbol.rescaled(1.0 / self.scale), order) for symbol, order in requests])
        factors = [self.scale**order for _, order in requests]
        return lambda v: [factor * own for factor, own in zip(factors, inner(self.scale * v), strict=True)]


class SumLoss(IndexLoss):
    """Sum of losses.

    Examples
    --------
    >>> from privfit.estimators.losses import ReluLoss, SquaredLoss
    >>> SumLoss([ReluLoss(), SquaredLoss()]).value([2.0])
    array([4.])
    """

    def __init__(self, parts: Sequence[IndexLoss]) -> None:
        self.parts = tuple(parts)
        self.kinks = tuple(sorted({kink for part in parts for kink in part.kinks}))
        self.max_variance = min(part.max_variance for part in parts)

    def derivative(self, u: ArrayLike, order: int = 1) -> Floats:
        """See `IndexLoss.derivative`."""
        return np.asarray(np.sum([part.derivative(u, order) for part in self.parts], axis=0), float)

    def compile(self, requests: Sequence[Request]) -> Kernel:
        """See `IndexLoss.compile`."""
        kernels = [part.compile(requests) for part in self.parts]

        def kernel(u: Floats) -> list[Floats]:
            found = [own(u) for own in kernels]
            return [np.asarray(np.sum(answers, axis=0), float) for answers in zip(*found, strict=True)]

        return kernel


def lowest_jump(loss: IndexLoss) -> int | None:
    """Lowest order of a derivative that jumps, None for a smooth loss (or one whose third derivative jumps).

    Examples
    --------
    >>> from privfit.estimators.losses import HuberLoss
    >>> lowest_jump(HuberLoss())
    2
    """
    parts = loss.parts if isinstance(loss, ExpressionLoss) else (loss,)
    orders = [order for part in parts if isinstance(part, PiecewiseLoss) for _, order, _ in part.jumps]
    return min(orders, default=None)


def smoothed(loss: IndexLoss, bandwidth: float, order: int) -> IndexLoss:
    """Average the kinks of a loss over a logistic kernel.

    Raises
    ------
    CapabilityError
        If the loss itself jumps.

    Examples
    --------
    >>> from privfit.estimators.losses import AbsoluteLoss
    >>> smoothed(AbsoluteLoss(), 0.1, 2).value([0.0]).round(6)
    array([0.138629])
    """
    if lowest_jump(loss) == 0:
        raise CapabilityError(
            "an M-estimator needs a continuous loss, and this one jumps. Use Loss.from_callable "
            "with size= for a loss of records that is smooth in theta."
        )
    return averaged(loss, bandwidth, order)


def averaged(loss: IndexLoss, bandwidth: float, order: int) -> IndexLoss:
    """Average the kinks and jumps of a loss over a logistic kernel; a smooth loss is returned as it is.

    Examples
    --------
    >>> from privfit.estimators.losses import IndicatorLoss
    >>> averaged(IndicatorLoss(0.0, 9.0), 0.1, 2).value([0.0]).round(6)
    array([0.5])
    """
    if isinstance(loss, PiecewiseLoss):
        return SmoothedLoss(loss, bandwidth, order)
    if not isinstance(loss, ExpressionLoss):
        return loss
    return SumLoss([SmoothedLoss(p, bandwidth, order) if isinstance(p, PiecewiseLoss) else p for p in loss.parts])


def scale_of(loss: IndexLoss, within: float) -> float:
    """Where a loss leaves its parabola: the slope is half, or twice, what the curvature at zero extends to.

    Parameters
    ----------
    loss : IndexLoss
    within : float
        How far to look.

    Returns
    -------
    float
        In units of the index; inf where it is not within reach, 0 at a kink.

    Examples
    --------
    >>> from privfit.estimators.losses import HuberLoss
    >>> round(scale_of(HuberLoss(2.0), 100.0), 1), scale_of(HuberLoss(2.0), 3.0)
    (4.0, inf)
    """
    u = within * np.geomspace(1e-3, 1.0, 300)
    slope = loss.derivative(u) - loss.derivative(-u)
    straight = slope[0] / u[0] * u
    left = np.flatnonzero(np.abs(slope - straight) > 0.5 * np.abs(straight))
    if not left.size:
        return float("inf")
    return float(u[left[0]]) if left[0] > 70 else 0.0  # already bent where the curvature was read off


def scale_hint(loss: IndexLoss, noise: float) -> str:
    """Say so where a loss bends on a scale below that of the noise in its index.

    Parameters
    ----------
    loss : IndexLoss
    noise : float
        Standard deviation of the noise in the index.

    Examples
    --------
    >>> from privfit.estimators.losses import HuberLoss
    >>> scale_hint(HuberLoss(2.0), 1.0)
    ''
    >>> scale_hint(HuberLoss(2.0), 30.0)[:36]
    'The loss bends on a scale of about 4'
    """
    scale = scale_of(loss, noise)
    if not scale < noise:
        return ""
    where = "at a kink" if scale == 0.0 else f"on a scale of about {scale:.2g}"
    return (
        f"The loss bends {where}, below the noise in its index (standard deviation {noise:.3g}), so its correction "
        "magnifies the noise: take a loss of a larger scale."
    )
