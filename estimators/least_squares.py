"""Closed-form minimum of a quadratic risk, projected where its Gram matrix is not positive definite."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.risk import Risk

__all__ = ["least_squares"]

Floats = NDArray[np.float64]


def least_squares(risk: Risk, floor: float) -> tuple[Floats, bool]:
    """Minimise the quadratic risk; eigenvalues below ``floor * largest`` are lifted.

    With floor 0 they are dropped instead: the minimiser of least norm.

    Returns
    -------
    theta : ndarray
    positive : bool
        Whether the quadratic form is positive definite.

    Examples
    --------
    >>> from privfit.estimators.corrections import Term
    >>> from privfit.estimators.losses import SquaredLoss
    >>> from privfit.estimators.risk import Design
    >>> data = Design(-np.array([[1.0, 1.0]]), np.array([1.0, 3.0]))
    >>> risk = Risk.of(SquaredLoss(), [Term(1.0, 0, ())], [data], np.zeros((0, 1)), np.zeros(0))
    >>> least_squares(risk, 0.0)
    (array([2.]), True)
    """
    _, gradient, hessian = risk.derivatives(np.zeros(risk.size))
    values, vectors = np.linalg.eigh(hessian)
    largest = max(float(values[-1]), 1e-300)
    # floor only matters for a corrected Gram matrix that is not positive definite
    positive = bool(values[0] > 1e-10 * largest)
    moved = vectors.T @ gradient
    if positive:
        return np.asarray(-vectors @ (moved / values), float), True
    if floor and values[0] < -1e-10 * largest:
        return np.asarray(-vectors @ (moved / np.maximum(values, floor * largest)), float), False
    keep = values > 1e-10 * largest
    return np.asarray(-vectors[:, keep] @ (moved[keep] / values[keep]), float), False
