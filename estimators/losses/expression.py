r"""Losses written as formulas of the index, ``Loss.from_expression("log(1 + exp(-u))")``, with everything derived.

The formula is split into a sum: piecewise quadratics with their jumps (`piecewise`), polynomials times exponentials and
waves (`expression_exponential`), both exact, and the rest, whose operators are derivatives and numerical averages
(`expression_rest`). If the loss grows like ``e^{c|u|}``, its corrected version under noise of shape k has a finite
variance iff ``E e^{2 c Z}`` is finite: ``s^2 < k / (2 c^2)``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from privfit.estimators.errors import CapabilityError
from privfit.estimators.losses.base import Floats, IndexLoss, Kernel, Request
from privfit.estimators.losses.expression_exponential import ExponentialPolynomialLoss, read_term
from privfit.estimators.losses.expression_growth import check_domain, growth_rate
from privfit.estimators.losses.expression_kinks import Pieces, has_kinks, pieces, without_low_jumps
from privfit.estimators.losses.expression_parse import parse
from privfit.estimators.losses.expression_rest import AveragedLoss
from privfit.estimators.losses.piecewise import PiecewiseLoss
from privfit.estimators.losses.polynomial import PolynomialLoss
from privfit.estimators.symbols import Factor, Heat, Power, Resolvent

__all__ = ["ExpressionLoss", "PiecewiseExpressionLoss", "PolynomialExpressionLoss", "from_expression"]

_LARGEST_EXPONENT = 300.0


class _Written:
    """What the losses written as formulas share: text, copies, and what noise they can be corrected for."""

    text: str
    variable: str
    parameters: dict[str, float]
    growth: float

    def _describe(self, text: str, variable: str, parameters: Mapping[str, float], growth: float) -> None:
        self.text, self.variable, self.parameters, self.growth = text, variable, dict(parameters), growth

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.text, self.variable, self.parameters)

    def __deepcopy__(self, memo: Any) -> Self:
        return self  # nothing in it changes

    def __repr__(self) -> str:
        given = "".join(f", {name}={value!r}" for name, value in self.parameters.items())
        return f"Loss.from_expression({self.text!r}{given})"

    def corrections(self) -> dict[str, str]:
        """Say for each noise law whether the exact correction exists, under which condition, or why not.

        Returns
        -------
        dict of str to str

        Examples
        --------
        >>> IndexLoss.from_expression("exp(u)").corrections()["SymmetricLaplace(shape=2)"]
        'exact for index variances below 1 (finite variance)'
        """
        laws: dict[str, tuple[Factor, float]] = {
            "ZeroInflatedLaplace": (Resolvent(0.5), 1),
            "SymmetricLaplace": (Power(1), 1),
            "SymmetricLaplace(shape=2)": (Power(2), 2),
            "SymmetricLaplace(shape=3)": (Power(3), 3),
            "Gaussian": (Heat(), math.inf),
        }
        out = {}
        for name, (factor, shape) in laws.items():
            try:
                self.compile([(factor(1e-6, 0), 0)])  # type: ignore[attr-defined]
                limit = shape / (2.0 * self.growth**2) if self.growth else math.inf
                bounded = f" for index variances below {limit:g} (finite variance)" if limit < math.inf else ""
                out[name] = f"exact{bounded}"
            except CapabilityError as error:
                out[name] = str(error)
        return out

    def check_variance(self, s2: float) -> None:
        """See `IndexLoss.check_variance`."""
        limit = math.inf if self.growth == 0.0 else 0.0 if math.isinf(self.growth) else 0.5 / self.growth**2
        if s2 >= limit:
            raise ValueError(
                f"s^2 must be < {limit:g} for {self.text}: it grows like exp({self.growth:g} |u|), and the corrected "
                f"loss has no finite variance otherwise, got {s2:g}. Bound the coefficients, or add less noise."
            )


class PolynomialExpressionLoss(_Written, PolynomialLoss):
    """A polynomial given as a formula; exact under every noise law.

    Examples
    --------
    >>> IndexLoss.from_expression("(u - 1)**2").coefficients
    array([ 1., -2.,  1.])
    """


class PiecewiseExpressionLoss(_Written, PiecewiseLoss):
    """A piecewise quadratic given as a formula; its operators are those of `PiecewiseLoss`.

    Examples
    --------
    >>> IndexLoss.from_expression("max(0, 1 - u)").jumps
    ((1.0, 1, 1.0),)
    """

    def __init__(self, function: Pieces, left: Sequence[float]) -> None:
        self.function, self.jumps, self.left = function, function.jumps, tuple(left)
        self.kinks = tuple(function.places.tolist())

    def derivative(self, u: ArrayLike, order: int = 1) -> Floats:
        """See `IndexLoss.derivative`."""
        r = np.asarray(u, float)
        return self.function(np.atleast_1d(r), order).reshape(r.shape)


class _Kinked(PiecewiseLoss):
    """One-sided powers ``size (u - k)_+^j / j!``: the low jumps of a formula that is no piecewise quadratic."""

    def __init__(self, jumps: tuple[tuple[float, int, float], ...]) -> None:
        self.jumps, self.kinks = jumps, tuple(sorted({kink for kink, _, _ in jumps}))

    def derivative(self, u: ArrayLike, order: int = 1) -> Floats:
        """See `IndexLoss.derivative`."""
        r = np.asarray(u, float)
        total = np.zeros_like(r)
        for kink, jump, size in self.jumps:
            left = jump - order
            if left >= 0:
                total += size * np.where(r > kink, (r - kink) ** left, 0.0) / math.factorial(left)
        return total


class ExpressionLoss(_Written, IndexLoss):
    """A loss given as a formula, as a sum of parts that each have their operators.

    Examples
    --------
    >>> loss = IndexLoss.from_expression("log(1 + exp(-u))")
    >>> loss.derivative([-1000.0, 0.0, 1000.0]) + 0.0
    array([-1. , -0.5,  0. ])
    """

    def __init__(self, function: Pieces, parts: Sequence[IndexLoss], growth: float) -> None:
        self.function, self.parts, self.growth = function, tuple(parts), growth
        low = sorted(place for place, rough in zip(function.places, function.roughness, strict=True) if rough <= 2)
        self.kinks = tuple(float(place) for place in low)
        self.max_variance = 0.0 if math.isinf(growth) else 0.5 / growth**2 if growth else np.inf

    def derivative(self, u: ArrayLike, order: int = 1) -> Floats:
        """See `IndexLoss.derivative`."""
        r = np.asarray(u, float)
        return self.function(np.atleast_1d(r), order).reshape(r.shape)

    def compile(self, requests: Sequence[Request]) -> Kernel:
        """See `IndexLoss.compile`: derivatives of the formula itself where there is no operator, else part by part."""
        plain = [not (symbol.heat or symbol.degree or any(b2 for b2, _ in symbol.poles)) for symbol, _ in requests]
        places = [place for place, is_plain in enumerate(plain) if not is_plain]
        if places and math.isinf(self.growth):
            raise CapabilityError(
                f"{self.text} grows faster than every exponential: its mean over Laplace noise, of any scale and "
                "shape, is infinite, so that no correction exists (exact, dr, sdr or sl). Bound the loss, as in "
                f"min({self.text}, 100), or use correction='naive'."
            )
        kernels = [self._part(part, [requests[place] for place in places]) for part in self.parts] if places else []
        reach = _LARGEST_EXPONENT / self.growth if self.growth else math.inf

        def kernel(u: Floats) -> list[Floats]:
            u = np.clip(u, -reach, reach) if self.growth else u
            answers: list[Any] = [None] * len(requests)
            for place, (symbol, order) in enumerate(requests):
                if plain[place]:
                    weight = symbol.numerator[0]
                    answers[place] = weight * self.function(u, order) if weight else np.zeros_like(u)
            found = [part_kernel(u) for part_kernel in kernels]
            for i, place in enumerate(places):
                answers[place] = np.sum([own[i] for own in found], axis=0)
            return answers

        return kernel

    def _part(self, part: IndexLoss, requests: Sequence[Request]) -> Kernel:
        try:
            return part.compile(requests)
        except CapabilityError as error:
            text = str(error).replace(part.said, self.text).replace(type(part).__name__, self.text)
            raise CapabilityError(text if self.text in text else f"{self.text}: {text}") from None


def from_expression(expression: Any, variable: str = "u", **parameters: float) -> IndexLoss:
    """Build a loss from a formula of the index; see `IndexLoss.from_expression`.

    Examples
    --------
    >>> from_expression("max(q*u, (q - 1)*u)", q=0.25).value([-2.0, 2.0])
    array([1.5, 0.5])
    """
    found, symbol = parse(expression, variable, parameters)
    text = expression if isinstance(expression, str) else str(expression)
    whole = pieces(found, symbol)
    check_domain(whole, symbol)
    growth = growth_rate(whole, symbol)
    loss = _assembled(found, symbol, whole, growth)
    loss._describe(text, variable, parameters, growth)
    return loss


def _rebuild(text: str, variable: str, parameters: Mapping[str, float]) -> IndexLoss:
    return from_expression(text, variable, **parameters)


def _assembled(found: Any, symbol: Any, whole: Pieces, growth: float) -> Any:
    import sympy

    terms = sympy.Add.make_args(sympy.expand_mul(found))
    kinked = pieces(sympy.Add(*[term for term in terms if has_kinks(term)]), symbol)
    smooth = [term for term in terms if not has_kinks(term)]
    if not kinked.knots:
        smooth += sympy.Add.make_args(sympy.expand_mul(kinked.formulas[0]))
    waves, rest = _sorted_out(smooth, symbol)
    polynomial = [c.real for c in waves.get(0j, [0j])]
    only_polynomial = rest == 0 and not set(waves) - {0j}
    if only_polynomial and not kinked.knots:
        return PolynomialExpressionLoss(polynomial)
    quadratic = all(f.is_polynomial(symbol) and sympy.Poly(f, symbol).degree() <= 2 for f in kinked.formulas)
    if only_polynomial and quadratic and len(polynomial) <= 3:
        first = sympy.Poly(kinked.formulas[0], symbol).all_coeffs()[::-1]
        left = np.polynomial.polynomial.polyadd(polynomial, [float(c) for c in first])
        return PiecewiseExpressionLoss(whole, left.tolist())
    parts: list[IndexLoss] = [ExponentialPolynomialLoss(waves)] if waves else []
    if kinked.knots:
        high = without_low_jumps(kinked, symbol)
        if high.knots or high.formulas[0] != 0:
            parts.append(AveragedLoss(high))
        if kinked.jumps:
            parts.append(_Kinked(kinked.jumps))
    if rest != 0:
        parts.append(AveragedLoss(pieces(rest, symbol)))
    return ExpressionLoss(whole, parts, growth)


def _sorted_out(terms: Sequence[Any], symbol: Any) -> tuple[dict[complex, list[complex]], Any]:
    """Polynomials times exponentials and waves, by rate, and the sum of all other terms."""
    import sympy

    waves: dict[complex, list[complex]] = {}
    rest = sympy.Integer(0)
    for term in terms:
        own = read_term(term, symbol)
        if own is None:
            rest += term
            continue
        for c, p in own.items():
            waves[c] = np.polynomial.polynomial.polyadd(waves.get(c, [0j]), p).tolist()
    return waves, rest
