r"""Kinks of a formula: where it bends or jumps, the smooth formula on each side, and the size of every jump.

Absolute values, maxima, minima, signs, steps and cases are resolved from the innermost outwards: the real line is split
at the roots of their arguments, and on each part one branch is left.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.losses.expression_stable import Smooth

__all__ = ["Pieces", "has_kinks", "pieces", "without_low_jumps"]

Floats = NDArray[np.float64]
_ORDERS = 9
_MOST_KNOTS = 50


@dataclass(frozen=True, eq=False)
class Pieces:
    """A function made of smooth formulas between knots.

    Attributes
    ----------
    knots : tuple of sympy numbers, increasing
    formulas : tuple of sympy expressions, one more than knots
    jumps : tuple of (float, int, float)
        Knot, order and size of each jump of a derivative of order <= 2.
    roughness : tuple of int
        Lowest order of a derivative that jumps, per knot.
    at : tuple of float
        Values at the knots themselves.

    Examples
    --------
    >>> import sympy
    >>> u = sympy.Symbol("u", real=True)
    >>> pieces(sympy.Max(0, 1 - u), u).jumps
    ((1.0, 1, 1.0),)
    """

    knots: tuple[Any, ...]
    formulas: tuple[Any, ...]
    jumps: tuple[tuple[float, int, float], ...]
    roughness: tuple[int, ...]
    at: tuple[float, ...]
    smooth: tuple[Smooth, ...]

    @property
    def places(self) -> Floats:
        """The knots as an array."""
        return np.array([float(knot) for knot in self.knots])

    def __call__(self, u: Floats, order: int = 0) -> Floats:
        """Derivative of the given order, almost everywhere; the mean of both sides at a knot."""
        if not self.knots:
            return self.smooth[0](u, order)
        places = self.places
        cell = np.searchsorted(places, u, side="right")
        out = np.empty_like(u)
        for piece, formula in enumerate(self.smooth):
            here = cell == piece
            if here.any():
                out[here] = formula(u[here], order)
        for k, place in enumerate(places):
            here = u == place
            if here.any():
                one = np.array([place])
                both = 0.5 * float(self.smooth[k](one, order)[0] + self.smooth[k + 1](one, order)[0])
                out[here] = self.at[k] if order == 0 else both
        return out


def has_kinks(expression: Any) -> bool:
    """Whether the formula contains an absolute value, a maximum, a minimum, a sign, a step or cases.

    Examples
    --------
    >>> import sympy
    >>> has_kinks(sympy.exp(sympy.Symbol("u", real=True)))
    False
    """
    return bool(expression.has(*_kinked()))


def _kinked() -> tuple[Any, ...]:
    import sympy

    return sympy.Abs, sympy.Max, sympy.Min, sympy.sign, sympy.Heaviside, sympy.Piecewise


def pieces(expression: Any, symbol: Any) -> Pieces:
    """Split a formula at its kinks.

    Raises
    ------
    ValueError
        If a kink has no place that sympy can solve for, there are too many, or the loss is infinite at one.

    Examples
    --------
    >>> import sympy
    >>> u = sympy.Symbol("u", real=True)
    >>> pieces(sympy.Abs(u) * u, u).roughness
    (2,)
    """
    parts: list[tuple[Any, Any]] = [(None, expression)]  # (left end, formula)
    while any(has_kinks(formula) for _, formula in parts):
        refined: list[tuple[Any, Any]] = []
        for place, (low, formula) in enumerate(parts):
            high = parts[place + 1][0] if place + 1 < len(parts) else None
            refined += _split(formula, symbol, low, high) if has_kinks(formula) else [(low, formula)]
        parts = refined
        if len(parts) > _MOST_KNOTS:
            raise ValueError(f"expression must have at most {_MOST_KNOTS} kinks. Use from_callable.")
    knots: list[Any] = []
    formulas, roughness = [parts[0][1]], []
    jumps: list[tuple[float, int, float]] = []
    for knot, formula in parts[1:]:
        sizes = _jumps(formula - formulas[-1], symbol, knot)
        if not sizes:
            continue
        knots.append(knot)
        formulas.append(formula)
        roughness.append(min(sizes))
        jumps += [(float(knot), order, size) for order, size in sizes.items() if order <= 2]
    at = tuple(_number(expression, symbol, knot) for knot in knots)
    smooth = tuple(Smooth(formula, symbol) for formula in formulas)
    return Pieces(tuple(knots), tuple(formulas), tuple(jumps), tuple(roughness), at, smooth)


def without_low_jumps(found: Pieces, symbol: Any) -> Pieces:
    """Subtract one-sided powers ``size (u - k)_+^j / j!`` from a function, so that its second derivative is continuous.

    Examples
    --------
    >>> import sympy
    >>> u = sympy.Symbol("u", real=True)
    >>> without_low_jumps(pieces(sympy.exp(-sympy.Abs(u)), u), u).roughness
    (3,)
    """
    import sympy

    knots, formulas, roughness = [], [found.formulas[0]], []
    added = sympy.Integer(0)
    for knot, formula, before in zip(found.knots, found.formulas[1:], found.formulas, strict=False):
        sizes = _jumps(formula - before, symbol, knot)
        for order in range(3):
            if order in sizes:
                size = (formula - before).diff(symbol, order).subs(symbol, knot)
                size = size if size.is_Rational else sympy.Rational(str(size.evalf(30)))
                added += size * (symbol - knot) ** order / sympy.factorial(order)
        high = [order for order in sizes if order > 2]
        if high:
            knots.append(knot)
            formulas.append(formula - added)
            roughness.append(min(high))
    smooth = tuple(Smooth(formula, symbol) for formula in formulas)
    at = tuple(_number(formula, symbol, knot) for formula, knot in zip(formulas, knots, strict=False))
    return Pieces(tuple(knots), tuple(formulas), (), tuple(roughness), at, smooth)


def _split(formula: Any, symbol: Any, low: Any, high: Any) -> list[tuple[Any, Any]]:
    """Resolve one innermost kinked part on an interval."""
    import sympy

    node = next(n for n in sympy.postorder_traversal(formula) if isinstance(n, _kinked()))
    inside = sorted({root for edge in _edges(node) for root in _roots(edge, symbol)})
    inside = [root for root in inside if (low is None or root > low) and (high is None or root < high)]
    ends = [low, *inside, high]
    out = []
    for left, right in itertools.pairwise(ends):
        point = _between(left, right)
        out.append((left, formula.xreplace({node: _branch(node, symbol, point)})))
    return out


def _edges(node: Any) -> list[Any]:
    """Functions whose roots are the places where a kinked node changes its branch."""
    import sympy

    if isinstance(node, sympy.Piecewise):
        conditions = [relation for _, condition in node.args for relation in condition.atoms(sympy.core.relational.Rel)]
        return [relation.lhs - relation.rhs for relation in conditions]
    if isinstance(node, sympy.Max | sympy.Min):
        return [one - two for i, one in enumerate(node.args) for two in node.args[:i]]
    return [node.args[0]]


def _branch(node: Any, symbol: Any, point: Any) -> Any:
    import sympy

    if isinstance(node, sympy.Piecewise):
        return next(value for value, condition in node.args if condition.subs(symbol, point) == sympy.true)
    if isinstance(node, sympy.Max | sympy.Min):
        values = [float(argument.subs(symbol, point)) for argument in node.args]
        pick = np.argmax if isinstance(node, sympy.Max) else np.argmin
        return node.args[int(pick(values))]
    inner = node.args[0]
    up = bool(float(inner.subs(symbol, point)) > 0)
    if isinstance(node, sympy.Abs):
        return inner if up else -inner
    return sympy.Integer(1 if up else -1 if isinstance(node, sympy.sign) else 0)


def _roots(edge: Any, symbol: Any) -> list[Any]:
    import sympy

    if symbol not in edge.free_symbols:
        return []
    if edge.is_polynomial(symbol):
        found = sympy.Poly(edge, symbol).real_roots()
    else:
        try:
            solved = sympy.solveset(edge, symbol, sympy.S.Reals)
        except (NotImplementedError, ValueError, TypeError):
            solved = None
        if not isinstance(solved, sympy.FiniteSet | type(sympy.S.EmptySet)):
            raise ValueError(f"expression: no place was found where {edge} changes sign. Use Piecewise with numbers.")
        found = list(solved)
    return [root if root.is_Rational else sympy.Rational(str(root.evalf(30))) for root in found]


def _between(left: Any, right: Any) -> Any:
    if left is None:
        return 0 * right - 1 + right if right is not None else _one() / 3
    return left + 1 if right is None else (left + right) / 2


def _one() -> Any:
    import sympy

    return sympy.Integer(1)


def _jumps(difference: Any, symbol: Any, knot: Any) -> dict[int, float]:
    """Jumps of the derivatives at a knot, those of size 0 left out."""
    out, formula = {}, difference
    for order in range(_ORDERS):
        size = _number(formula, symbol, knot)
        if abs(size) > 1e-14:
            out[order] = size
        formula = formula.diff(symbol)
        if formula == 0:
            break
    return out


def _number(formula: Any, symbol: Any, place: Any) -> float:
    value = formula.subs(symbol, place).evalf(30)
    if not value.is_finite or not value.is_real:
        raise ValueError(f"expression must be finite at every index, but is not at {symbol} = {float(place):g}.")
    return float(value)
