r"""The squared slope ``f'(u)^2`` of an index loss, as an index loss of its own.

``E f'(u)^2 xx'`` is the covariance of raw scores (`squared_score`); inverse operators act on ``f'^2`` as on any loss:

    polynomials, exponentials, waves    products of the same kind
    logistic loss L                     ``p^2 = L' - L''``
    piecewise quadratics                where f' = l and f'' = m left of a kink at which they jump by a and b, f'^2 has
                                        the jumps ``2 l a + a^2``, ``2 (l + a)(m + b) - 2 l m``, ``2 (m + b)^2 - 2 m^2``
                                        of orders 0, 1 and 2
    formulas                            the square of the derivative, as a formula
    functions                           values, and by Leibniz' rule as many derivatives as f has beyond the first
"""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
from numpy.polynomial import polynomial as poly
from numpy.typing import ArrayLike

from privfit.estimators.losses import ExponentialLoss, LogisticLoss, PolynomialLoss
from privfit.estimators.losses.base import Floats, IndexLoss
from privfit.estimators.losses.callable import CallableLoss
from privfit.estimators.losses.expression import ExpressionLoss, from_expression
from privfit.estimators.losses.expression_exponential import ExponentialPolynomialLoss
from privfit.estimators.losses.piecewise import PiecewiseLoss
from privfit.estimators.losses.sinusoid import SineLoss
from privfit.estimators.squared_score import ShiftedLoss

__all__ = ["PiecewiseSquare", "squared_slope"]


class PiecewiseSquare(PiecewiseLoss):
    """Square of the slope of a continuous piecewise quadratic loss.

    Parameters
    ----------
    loss : PiecewiseLoss

    Examples
    --------
    >>> from privfit.estimators.losses import HuberLoss
    >>> PiecewiseSquare(HuberLoss(2.0)).value([1.0, 5.0])
    array([1., 4.])
    """

    def __init__(self, loss: PiecewiseLoss) -> None:
        self.loss, self.kinks = loss, loss.kinks
        line = np.zeros(2)
        line[: len(loss.left) - 1] = poly.polyder(loss.left)[:2] if len(loss.left) > 1 else 0.0
        self.left = tuple(poly.polymul(line, line).tolist())
        jumps: list[tuple[float, int, float]] = []
        for kink in sorted(set(loss.kinks)):
            sizes = [sum(s for place, own, s in loss.jumps if place == kink and own == order) for order in (1, 2)]
            level, bend = line[0] + line[1] * kink, line[1]
            after, steeper = level + sizes[0], bend + sizes[1]
            found = (after**2 - level**2, 2.0 * (after * steeper - level * bend), 2.0 * (steeper**2 - bend**2))
            jumps += [(kink, order, float(size)) for order, size in enumerate(found) if size]
            line = np.array([after - steeper * kink, steeper])
        self.jumps = tuple(jumps)

    def derivative(self, u: ArrayLike, order: int = 1) -> Floats:
        """See `IndexLoss.derivative`."""
        return _product(lambda m: self.loss.derivative(u, m) if m < 3 else np.zeros_like(np.asarray(u, float)), order)


def _product(derivative: Any, order: int) -> Floats:
    """Leibniz' rule for ``D^order (f')^2``."""
    terms = [comb(order, j) * derivative(1 + j) * derivative(1 + order - j) for j in range(order + 1)]
    return np.asarray(np.sum(terms, axis=0), float)


def squared_slope(loss: IndexLoss) -> IndexLoss | None:
    """Return ``f'^2`` as a loss with inverse operators; None for a loss that is not known here.

    Parameters
    ----------
    loss : IndexLoss
        Continuous.

    Examples
    --------
    >>> squared_slope(PolynomialLoss([0.0, 0.0, 0.5])).coefficients
    array([0., 0., 1.])
    """
    if isinstance(loss, PolynomialLoss):
        slope = poly.polyder(loss.coefficients) if loss.coefficients.size > 1 else np.zeros(1)
        return PolynomialLoss(poly.polymul(slope, slope))
    if isinstance(loss, PiecewiseLoss):
        return PiecewiseSquare(loss)
    if isinstance(loss, ExponentialLoss):
        return ExponentialPolynomialLoss({2.0: [1.0]})
    if isinstance(loss, SineLoss):  # w^2 cos^2 t = w^2 (2 + e^{2it} + e^{-2it}) / 4, t = w u + phase
        wave, size = np.exp(2j * loss._phase), loss.frequency**2 / 4.0
        rate = 2j * loss.frequency
        return ExponentialPolynomialLoss({0.0: [2.0 * size], rate: [size * wave], -rate: [size / wave]})
    if isinstance(loss, LogisticLoss):
        return ShiftedLoss([(1.0, loss, 1), (-1.0, loss, 2)])
    if isinstance(loss, ExpressionLoss):
        try:
            return from_expression(_formula(loss), loss.variable)
        except ValueError:  # the square is too long, or overflows as it is written
            return None
    if isinstance(loss, CallableLoss):
        count = len(loss.functions) - 1
        # f' itself may come from differences; a derivative that an operator needs may not
        known = [lambda u, m=m: _product(lambda k: loss.derivative(u, k), m) for m in range(max(count, 1))]
        return CallableLoss(known[0], known[1:])
    return None


def _formula(loss: ExpressionLoss) -> Any:
    """Square of the derivative of a formula, piece by piece."""
    import sympy

    from privfit.estimators.losses.expression_stable import plain

    symbol = loss.function.smooth[0].symbol
    squares = [plain(own.formula(1)) ** 2 for own in loss.function.smooth]
    if len(squares) == 1:
        return squares[0].subs(symbol, sympy.Symbol(loss.variable, real=True))
    cases = [(square, symbol < knot) for square, knot in zip(squares, loss.function.knots, strict=False)]
    return sympy.Piecewise(*cases, (squares[-1], True)).subs(symbol, sympy.Symbol(loss.variable, real=True))
