r"""A loss of the margin ``m = y u`` whose label y in {-1, 1} was released by randomised response.

With truth probability p, ``F(m) = (p f(m) - (1 - p) f(-m)) / (2p - 1)`` has ``E F(y~ u) = f(y u)``. F is again an
index loss of the released margin, and inverse operators of the columns' noise are even in D: they act on ``f(-m)`` as
on ``f(m)``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from privfit.accounting.validation import check_number
from privfit.estimators.losses.base import Floats, IndexLoss, Kernel, Request

__all__ = ["RandomizedLabelLoss"]


class RandomizedLabelLoss(IndexLoss):
    """``(p f(m) - (1 - p) f(-m)) / (2p - 1)``.

    Parameters
    ----------
    loss : IndexLoss
        f, a function of the margin.
    keep : float
        Probability p in (1/2, 1] that the label is the true one.

    Examples
    --------
    >>> from privfit.estimators.losses import HingeLoss
    >>> RandomizedLabelLoss(HingeLoss(), 0.75).value([0.0, 2.0])
    array([ 1. , -1.5])
    """

    def __init__(self, loss: IndexLoss, keep: float) -> None:
        self.loss, self.keep = loss, check_number("keep", keep, 0.5, 1.0, low_open=True)
        self.kinks = tuple(sorted({*loss.kinks, *(-kink for kink in loss.kinks)}))
        self.max_variance = loss.max_variance
        self._true = self.keep / (2.0 * self.keep - 1.0)
        self._false = (1.0 - self.keep) / (2.0 * self.keep - 1.0)

    def derivative(self, u: ArrayLike, order: int = 1) -> Floats:
        """See `IndexLoss.derivative`."""
        m = np.asarray(u, float)
        flipped = (-1.0) ** order * self.loss.derivative(-m, order)
        return np.asarray(self._true * self.loss.derivative(m, order) - self._false * flipped, float)

    def compile(self, requests: Sequence[Request]) -> Kernel:
        """See `IndexLoss.compile`: the kernel of f, at the margin and at its negative."""
        inner = self.loss.compile(requests)

        def kernel(u: Floats) -> list[Floats]:
            pairs = zip(requests, inner(u), inner(-u), strict=True)
            return [self._true * own - (-1.0) ** order * self._false * other for (_, order), own, other in pairs]

        return kernel
