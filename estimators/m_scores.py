r"""Raw-data covariance of the scores of a user's own loss, from the release (`squared_score`, `squared_slope`).

    residual, margin, none    E f'(u)^2 xx' is the Hessian of F, F'' = f'^2
    linear: score (f'(u) - y) x    E (f'^2 - 2 y f' + y^2 - t^2) xx',  y released with noise of variance t^2

The parts with y are Hessians of H (``H'' = f'``) and of ``u^2/2`` with each record weighted by -2y and ``y^2 - t^2``:
the noise of y has mean 0 and is independent of that of the columns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.efficiency import NOT_ESTIMATED
from privfit.estimators.losses import PolynomialLoss, RandomizedLabelLoss
from privfit.estimators.losses.base import IndexLoss
from privfit.estimators.m_index import ScaledLoss, averaged
from privfit.estimators.risk import Risk
from privfit.estimators.squared_score import ShiftedLoss, Weigh
from privfit.estimators.squared_slope import squared_slope

__all__ = ["NOISY", "NO_SQUARE", "response_parts", "squared_loss", "unknown"]

Floats = NDArray[np.float64]
NO_SQUARE = "the squared slope of this loss has no formula here; Loss.from_expression has one"
NOISY = "the noise hides the covariance of the raw scores; more records would show it"


def unknown(risk: Risk, why: str) -> tuple[Floats, str]:
    """Return a covariance that is not known, and why.

    Examples
    --------
    >>> unknown.__name__
    'unknown'
    """
    return np.full((risk.size, risk.size), np.nan), f"{NOT_ESTIMATED}: {why}"


def squared_loss(loss: IndexLoss, width: float, order: int, unit: float, keep: float, down: int) -> IndexLoss | None:
    """Return F with ``F^(down) = (d/dv f(unit v))^2``, v the index; None if the square of f' is not known.

    Parameters
    ----------
    loss : IndexLoss
        f, in its own unit.
    width, order : float, int
        Smoothing of its kinks: bandwidth, 0 for none, and order of the kernel.
    unit : float
        Unit of the standardised index.
    keep : float
        Probability that the label of a margin is the true one.
    down : {0, 2}
        How often to integrate.

    Examples
    --------
    >>> from privfit.estimators.losses import HuberLoss
    >>> squared_loss(HuberLoss(1.0), 0.0, 4, 2.0, 1.0, 2).derivative([0.25, 5.0], 2)
    array([1., 4.])
    """
    square = squared_slope(loss)
    if square is None:
        return None
    if width:
        square = averaged(square, width, order)
    if unit != 1.0:
        square = ScaledLoss(square, unit)
    shifted: IndexLoss = ShiftedLoss([(unit**2, square, -down)])
    return shifted if keep == 1.0 else RandomizedLabelLoss(shifted, keep)


def response_parts(loss: IndexLoss, noise_of_response: float) -> list[tuple[IndexLoss, Weigh]]:
    """Return what the score ``(f'(u) - y) x`` has beside F: losses and the weights of their records, of y.

    Parameters
    ----------
    loss : IndexLoss
        f, smoothed as in the fit.
    noise_of_response : float
        Variance t^2.

    Examples
    --------
    >>> [weigh(3.0) for _, weigh in response_parts(PolynomialLoss([0.0, 0.0, 0.5]), 1.0)]
    [-6.0, 8.0]
    """
    return [
        (ShiftedLoss([(1.0, loss, -1)]), lambda y: -2.0 * y),
        (PolynomialLoss([0.0, 0.0, 0.5]), lambda y: y * y - noise_of_response),
    ]
