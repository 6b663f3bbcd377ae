r"""Derivatives of any order of a smooth formula, as numpy functions that do not overflow.

Sums of exponentials are rewritten by ``log(e^a + e^b) = a + s(b - a)``, ``s(x) = log(1 + e^x)``, and their powers by
``exp(-s(x)) = p(-x)``, the logistic function, with exponentials merged: no quotient of two overflowing numbers is left.
``s' = p`` and ``p' = p(x) p(-x)`` keep their relative accuracy in both tails.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.errors import CapabilityError

__all__ = ["Smooth", "plain", "stable"]

Floats = NDArray[np.float64]
_MOST_TERMS = 2000


@lru_cache(maxsize=1)
def _functions() -> SimpleNamespace:
    """Softplus and the logistic function as sympy knows them."""
    import sympy

    class Expit(sympy.Function):  # type: ignore[misc]
        nargs, is_real = 1, True

        def fdiff(self, argindex: int = 1) -> Any:
            return Expit(self.args[0]) * Expit(-self.args[0])

    class Softplus(sympy.Function):  # type: ignore[misc]
        nargs, is_real = 1, True

        def fdiff(self, argindex: int = 1) -> Any:
            return Expit(self.args[0])

    return SimpleNamespace(softplus=Softplus, expit=Expit)


def stable(expression: Any) -> Any:
    """Rewrite sums of exponentials inside logarithms, powers and log cosh.

    Examples
    --------
    >>> import sympy
    >>> u = sympy.Symbol("u", real=True)
    >>> stable(sympy.log(1 + sympy.exp(-u)))
    Softplus(-u)
    """
    import sympy

    if not expression.args:
        return expression
    inner = [stable(argument) for argument in expression.args]
    if isinstance(expression, sympy.log):
        summed = _log_of_sum(inner[0])
        if summed is not None:
            return summed
        if isinstance(inner[0], sympy.cosh):
            x = inner[0].args[0]
            return _functions().softplus(2 * x) - x - sympy.log(2)
    if isinstance(expression, sympy.Pow) and isinstance(inner[0], sympy.Add) and inner[1].is_number:
        summed = _log_of_sum(inner[0])
        if summed is not None and inner[1].is_Integer and inner[1].is_negative:
            return _power_of_sum(summed, -inner[1])
        if summed is not None and not inner[1].is_integer:
            return sympy.exp(sympy.expand_mul(inner[1] * summed))
    if isinstance(expression, sympy.Mul):
        return _product(sympy.Mul(*inner))
    return expression.func(*inner)


def _power_of_sum(log: Any, power: Any) -> Any:
    """``exp(-power log)``, with ``exp(-s(x)) = p(-x)``."""
    import sympy

    made, out, rest = _functions(), sympy.Integer(1), sympy.Integer(0)
    for term in sympy.Add.make_args(log):
        if isinstance(term, made.softplus):
            out *= made.expit(sympy.expand_mul(-term.args[0])) ** power
        else:
            rest -= power * term
    return _product(out * sympy.exp(rest))


def _product(product: Any) -> Any:
    """Merge exponentials with logistic factors, ``e^{-x} p(x) = p(-x)``, so that none overflows alone."""
    import sympy

    made = _functions()
    factors = product.as_powers_dict() if isinstance(product, sympy.Mul) else {product: sympy.Integer(1)}
    logistic = {base: power for base, power in factors.items() if isinstance(base, made.expit)}
    exponent = sympy.Add(*[p * b.args[0] for b, p in _exponentials(factors)])
    rest = sympy.Mul(*[b**p for b, p in factors.items() if b not in logistic and not _is_exponential(b)])
    if not logistic or exponent == 0:
        return product
    done = sympy.Integer(1)
    for base, power in list(logistic.items()):
        times = sympy.cancel(-exponent / base.args[0]) if power.is_Integer else sympy.Integer(0)
        if times.is_Integer and times > 0:
            moved = min(times, power)
            exponent = sympy.expand_mul(exponent + moved * base.args[0])
            logistic[base] = power - moved
            done *= made.expit(-base.args[0]) ** moved
    if exponent == 0:
        return rest * done * sympy.Mul(*[b**p for b, p in logistic.items()])
    for base, power in logistic.items():
        exponent -= power * made.softplus(-base.args[0])
    return rest * done * sympy.exp(exponent)


def _merged(term: Any) -> Any:
    """Write the exponentials of a product as one."""
    import sympy

    factors: dict[Any, Any] = term.as_powers_dict() if isinstance(term, sympy.Mul) else {}
    if sum(_is_exponential(base) for base in factors) < 2:
        return term
    exponent = sympy.Add(*[power * base.args[0] for base, power in _exponentials(factors)])
    return sympy.Mul(sympy.exp(exponent), *[b**p for b, p in factors.items() if not _is_exponential(b)])


def _is_exponential(base: Any) -> bool:
    import sympy

    return isinstance(base, sympy.exp) or base == sympy.E


def _exponentials(factors: Any) -> Iterator[tuple[Any, Any]]:
    """Pairs (exponential, power) among the factors of a product."""
    import sympy

    for base, power in factors.items():
        if isinstance(base, sympy.exp):
            yield base, power
        elif base == sympy.E:
            yield sympy.exp(power, evaluate=False), sympy.Integer(1)


def plain(expression: Any) -> Any:
    """Undo `stable`, for evaluation at high precision.

    Examples
    --------
    >>> import sympy
    >>> u = sympy.Symbol("u", real=True)
    >>> plain(stable(sympy.log(1 + sympy.exp(-u))))
    log(1 + exp(-u))
    """
    import sympy

    made = _functions()
    expression = expression.replace(made.softplus, lambda x: sympy.log(1 + sympy.exp(x)))
    return expression.replace(made.expit, lambda x: 1 / (1 + sympy.exp(-x)))


def _log_of_sum(total: Any) -> Any:
    """Log of a sum of positive numbers times exponentials, None for any other."""
    import sympy

    if not isinstance(total, sympy.Add):
        return None
    logs = []
    for term in total.args:
        free = term.free_symbols
        factor, rest = term.as_independent(*free, as_Add=False) if free else (term, sympy.S.One)
        if not factor.is_positive or not (rest == 1 or isinstance(rest, sympy.exp)):
            return None
        logs.append(sympy.log(factor) + (0 if rest == 1 else rest.args[0]))
    if all(not own.free_symbols for own in logs):
        return None
    logs.sort(key=lambda own: (len(own.free_symbols), sympy.default_sort_key(own)))
    found = logs[0]
    for own in logs[1:]:
        found = found + _functions().softplus(sympy.expand(own - found))
    return found


def _softplus(x: Any) -> Any:
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def _expit(x: Any) -> Any:
    half = np.exp(-np.abs(x))
    return np.where(np.asarray(x) >= 0, 1.0, half) / (1.0 + half)


class Smooth:
    """A formula and its derivatives, compiled when they are first wanted.

    Parameters
    ----------
    expression, symbol : sympy objects

    Examples
    --------
    >>> import sympy
    >>> u = sympy.Symbol("u", real=True)
    >>> Smooth(sympy.log(1 + sympy.exp(-u)), u)(np.array([-1000.0, 1000.0]), 1) + 0.0
    array([-1.,  0.])
    """

    def __init__(self, expression: Any, symbol: Any) -> None:
        self.expression, self.symbol = expression, symbol
        self._formulas = [stable(expression)]
        self._compiled: dict[int, Any] = {}

    def formula(self, order: int) -> Any:
        """Derivative of the given order as a sympy expression."""
        import sympy

        while len(self._formulas) <= order:
            slope = sympy.expand_mul(sympy.diff(self._formulas[-1], self.symbol))
            terms = sympy.Add.make_args(slope)
            if len(terms) > _MOST_TERMS:
                raise CapabilityError(
                    f"the loss's derivative of order {len(self._formulas)} has more than {_MOST_TERMS} terms: missing "
                    "is a shorter formula. Simplify the expression, or use noise of a lower shape."
                )
            self._formulas.append(sympy.Add(*[_merged(term) for term in terms]))
        return self._formulas[order]

    def __call__(self, u: Floats, order: int = 0) -> Floats:
        """Derivative of the given order at u."""
        if order not in self._compiled:
            self._compiled[order] = self._compile(order)
        with np.errstate(all="ignore"):
            found = self._compiled[order](u)
        return np.asarray(found, float) + np.zeros_like(u)

    def _compile(self, order: int) -> Any:
        import sympy
        from scipy.special import erf
        from sympy.codegen.rewriting import expm1_opt, log1p_opt, optimize

        formula = self.formula(order)
        if order == 0:  # log(1 + x) and e^x - 1 keep their accuracy at small x
            formula = optimize(formula, (log1p_opt, expm1_opt))
        own = {"Softplus": _softplus, "Expit": _expit, "erf": erf}
        return sympy.lambdify(self.symbol, formula, modules=[own, "numpy"], cse=True)
