r"""Where a formula is finite, and how fast it grows: ``c = limsup log|f(u)| / |u|`` at both ends of the line."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from privfit.estimators.losses.expression_kinks import Pieces
from privfit.estimators.losses.expression_stable import plain

__all__ = ["check_domain", "growth_rate"]


def check_domain(whole: Pieces, symbol: Any) -> None:
    """Refuse a formula that is not real and finite at every index, as noise may take the index anywhere.

    Raises
    ------
    ValueError
        Naming a place where it is not.

    Examples
    --------
    >>> import sympy
    >>> from privfit.estimators.losses.expression_kinks import pieces
    >>> u = sympy.Symbol("u", real=True)
    >>> check_domain(pieces(sympy.log(u), u), u)
    Traceback (most recent call last):
        ...
    ValueError: expression must be real and finite at every index, but log(u) is not at u = 0...
    """
    import sympy

    for piece, formula in enumerate(whole.formulas):
        low = float(whole.places[piece - 1]) if piece else -math.inf
        high = float(whole.places[piece]) if piece < len(whole.knots) else math.inf
        for part in formula.atoms(sympy.Pow, sympy.log):
            base = part.args[0]
            risky = isinstance(part, sympy.log) or part.exp.is_negative or not part.exp.is_integer
            if risky and base.is_polynomial(symbol) and symbol in base.free_symbols:
                for root in sympy.Poly(base, symbol).real_roots():
                    if low <= float(root) <= high:
                        _refuse(part, symbol, float(root))
        half = np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 400)])
        grid = np.unique(np.concatenate([-half, half]))
        grid = grid[(grid > low) & (grid < high)]
        for order in range(3):
            values = whole.smooth[piece](grid, order)
            for place in grid[~np.isfinite(values)][:: max(1, int((~np.isfinite(values)).sum()) // 4)]:
                if order == 0 and not _finite(formula, symbol, place):
                    _refuse(formula, symbol, place)
                if np.isnan(values[grid == place]).any() and _finite(
                    formula.diff(symbol, order), symbol, place, small=True
                ):
                    raise ValueError(
                        f"expression: {formula} (derivative {order}) cannot be computed at {symbol} = {place:g} "
                        "without overflow. Write it with log(1 + exp(...)), expit or tanh."
                    )


def _refuse(part: Any, symbol: Any, place: float) -> None:
    raise ValueError(
        f"expression must be real and finite at every index, but {part} is not at {symbol} = {place:g}; a noised index "
        "may be any number. Extend it, for instance log(1 + u**2), max(u, 0.1), or Piecewise."
    )


def _finite(formula: Any, symbol: Any, place: float, small: bool = False) -> bool:
    import sympy

    value = plain(formula).subs(symbol, sympy.Rational(str(place))).evalf(20)
    if not (value.is_real and value.is_finite):
        return False
    return not small or abs(value) < sympy.Float("1e300")


def growth_rate(whole: Pieces, symbol: Any) -> float:
    """Return c >= 0 of ``e^{c|u|}``, inf for faster growth, 0 for slower.

    Examples
    --------
    >>> import sympy
    >>> from privfit.estimators.losses.expression_kinks import pieces
    >>> u = sympy.Symbol("u", real=True)
    >>> growth_rate(pieces(u**2 * sympy.exp(-3 * u), u), u)
    3.0
    """
    return max(_rate(whole.formulas[0], symbol, -1), _rate(whole.formulas[-1], symbol, 1))


def _rate(formula: Any, symbol: Any, sign: int) -> float:
    """Difference quotients of log|f| at ever larger indices: constants cancel, powers of u vanish."""
    import sympy

    if not formula.has(sympy.exp, sympy.sinh, sympy.cosh):
        return 0.0

    def size(u: int) -> float | None:
        # a wave may vanish at one point: the largest of three
        values = [plain(formula).subs(symbol, sign * (u + shift)).evalf(15) for shift in (0, 1, 2)]
        logs = [sympy.log(abs(v)).evalf(15) for v in values if v.is_number and v != 0]
        return max((float(v) for v in logs if v.is_real), default=None)

    slopes = []
    for u in (10**4, 10**6):
        one, two = size(u), size(2 * u)
        if one is None or two is None:
            return 0.0
        slopes.append((two - one) / u)
    near, far = slopes
    if far > 1.2 * near + 1.0:
        return math.inf
    return round(far, 4) if far > 2e-3 else 0.0
