"""The part of a loss that has no closed form: operators by derivatives and by numerical Laplace averages."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from privfit.estimators.errors import CapabilityError
from privfit.estimators.losses.base import Floats, IndexLoss, Kernel, Request
from privfit.estimators.losses.expression_average import Chain, average
from privfit.estimators.losses.expression_kinks import Pieces
from privfit.estimators.losses.piecewise import split_resolvents
from privfit.estimators.symbols import Symbol

__all__ = ["AveragedLoss"]

Weights = dict[int, float]
_SAFE, _LARGEST_LOSS = 5, 1e-7


class AveragedLoss(IndexLoss):
    """A function whose second derivative is continuous; averages to about 1e-11 of its size (`expression_average`).

    Parameters
    ----------
    function : Pieces

    Examples
    --------
    >>> import sympy
    >>> from privfit.estimators.losses.expression_kinks import pieces
    >>> u = sympy.Symbol("u", real=True)
    >>> loss = AveragedLoss(pieces(sympy.sqrt(1 + u**2), u))
    >>> loss.zil_correction([0.0], s=0.5, delta0=0.2).round(6)
    array([0.09419])
    """

    def __init__(self, function: Pieces) -> None:
        self.function = function
        self._rounding: dict[int, float] = {}

    def derivative(self, u: ArrayLike, order: int = 1) -> Floats:
        """See `IndexLoss.derivative`."""
        r = np.asarray(u, float)
        return self.function(np.atleast_1d(r), order).reshape(r.shape)

    def compile(self, requests: Sequence[Request]) -> Kernel:
        """See `IndexLoss.compile`: averages are tabulated over the range of the indices, which grows when needed."""
        plans = [self._plan(symbol, order) for symbol, order in requests]
        chains = [chain for _, chain in plans if chain is not None]
        low, high = math.inf, -math.inf
        table: Callable[[Floats], list[Floats]] | None = None

        def kernel(u: Floats) -> list[Floats]:
            nonlocal low, high, table
            if chains and u.size and (table is None or u.min() < low or u.max() > high):
                low, high = min(low, float(u.min())), max(high, float(u.max()))
                margin = 0.25 * (high - low) + 0.1
                low, high = low - margin, high + margin
                table = average(self.function, self.function.places, chains, low, high)
            averages = iter(table(u)) if table is not None else iter(())
            found: dict[int, Floats] = {}
            answers = []
            for direct, chain in plans:
                total = np.zeros_like(u) if chain is None or not u.size else next(averages).copy()
                for order, weight in direct.items():
                    if order not in found:
                        found[order] = self.function(u, order)
                    total += weight * found[order]
                answers.append(total)
            return answers

        return kernel

    def _plan(self, symbol: Symbol, order: int) -> tuple[Weights, Chain | None]:
        """Derivatives with weights, and a chain of averages."""
        if symbol.heat:
            self._require_polynomial(symbol)
        if symbol.degree > _SAFE:
            self._check_rounding(symbol, order)
        poles = tuple(pole for pole in symbol.poles if pole[0] > 0.0)
        if self.function.knots:
            return self._kinked_plan(Symbol(symbol.numerator, poles), order)
        weights = {2 * m + order: c for m, c in enumerate(symbol.numerator) if c != 0.0}
        if not poles or not weights:
            return weights, None
        scales = tuple(math.sqrt(b2) for b2, power in poles for _ in range(power))
        return {}, Chain(scales, (tuple(weights.items()), *[()] * (len(scales) - 1)))

    def _check_rounding(self, symbol: Symbol, order: int) -> None:
        """Refuse high derivatives that jump from one floating-point number to the next: their terms cancel."""
        u = np.linspace(-5.9, 6.1, 25)
        lost = 0.0
        for m, weight in enumerate(symbol.numerator):
            place = 2 * m + order
            if m > _SAFE and weight != 0.0:
                if place not in self._rounding:
                    near = np.stack([self.function(u * (1.0 + k * np.finfo(float).eps), place) for k in range(5)])
                    self._rounding[place] = float(np.ptp(near, axis=0).max())
                lost += abs(weight) * self._rounding[place]
        if not lost <= _LARGEST_LOSS * float(np.abs(self.function(u, order)).max()):
            raise CapabilityError(
                "the exact inverse of this noise needs the loss's derivatives up to order "
                f"{2 * symbol.degree + order}: missing is a formula of them that keeps its accuracy under that much "
                "noise. Use noise of a lower shape, less noise, a built-in loss, or correction='naive'."
            )

    def _kinked_plan(self, symbol: Symbol, order: int) -> tuple[Weights, Chain | None]:
        """Averages of the second derivative only: higher ones would put point masses at the kinks."""
        if len(symbol.poles) > 1:
            raise CapabilityError(
                "this kinked loss has no exact inverse under two zero-inflated laws at once: missing is its average "
                "over two Laplace laws. Release the columns under one joint law, or ask for correction='naive'."
            )
        half, odd = divmod(order, 2)
        moved = Symbol((0.0,) * half + symbol.numerator, symbol.poles)
        constant, b, resolvents = split_resolvents(moved)
        weights: Weights = {odd: constant} if constant else {}
        for power, weight in resolvents.items():
            if power > 0:
                continue
            terms = {-power: 1.0} if b == 0.0 else {m: math.comb(-power, m) * (-b * b) ** m for m in range(1 - power)}
            for m, factor in terms.items():
                place = 2 + 2 * m + odd
                weights[place] = weights.get(place, 0.0) + weight * factor
                if order == 0 and 2 + 2 * m > min(self.function.roughness):
                    raise CapabilityError(
                        f"the exact inverse of this noise needs the loss's derivative of order {2 + 2 * m}, and its "
                        f"derivative of order {min(self.function.roughness)} jumps at a kink: missing is a smoother "
                        "loss. Use ZeroInflatedLaplace noise with correction='exact' or 'dr', or ask for "
                        "correction='naive'."
                    )
        deepest = max(resolvents, default=0)
        if deepest < 1:
            return weights, None
        inputs = [((2 + odd, resolvents[i]),) if i in resolvents else () for i in range(deepest, 0, -1)]
        return weights, Chain((b,) * deepest, tuple(inputs))
