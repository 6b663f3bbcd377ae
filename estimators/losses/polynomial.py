"""Polynomial loss ``f(u) = sum_k c_k u^k``: every operator acts as a finite sum of even moments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.polynomial import polynomial as poly
from numpy.typing import ArrayLike

from privfit.accounting.validation import check_array
from privfit.estimators.losses.base import Floats, IndexLoss, Kernel, Request

__all__ = ["PolynomialLoss"]


class PolynomialLoss(IndexLoss):
    """``f(u) = sum_k c_k u^k``, lowest power first; exact under every noise law, Gaussian included.

    Parameters
    ----------
    coefficients : array_like, shape (degree + 1,)

    Examples
    --------
    >>> PolynomialLoss([0, 0, 1]).zil_correction([1.0, 5.0], s=1.0, delta0=0.2)
    array([0.8, 0.8])
    """

    def __init__(self, coefficients: ArrayLike) -> None:
        array = check_array("coefficients", coefficients)
        if array.ndim != 1 or array.size == 0 or not np.isfinite(array).all():
            raise ValueError(f"coefficients must be a non-empty finite 1-d array, got shape {array.shape}.")
        self.coefficients = array
        self._derivatives = [array]  # of every order, padded to one length
        for _ in array:
            last = self._derivatives[-1]
            self._derivatives.append(np.append(last[1:] * np.arange(1, array.size), 0.0))

    def derivative(self, u: ArrayLike, order: int = 1) -> Floats:
        """See `IndexLoss.derivative`."""
        return np.asarray(poly.polyval(np.asarray(u, float), self._derived(order)), float)

    def _derived(self, order: int) -> Floats:
        return self._derivatives[min(order, self.coefficients.size)]

    def compile(self, requests: Sequence[Request]) -> Kernel:
        """See `IndexLoss.compile`: the image is again a polynomial, found once."""
        images = []
        for symbol, order in requests:
            series = symbol.series((self.coefficients.size + 1) // 2)
            images.append(sum(c * self._derived(2 * m + order) for m, c in enumerate(series)))
        return lambda u: [np.asarray(poly.polyval(u, image), float) + np.zeros_like(u) for image in images]
