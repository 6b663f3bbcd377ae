r"""Reading a loss written as text: Python's grammar, a short list of names, and nothing that is ever executed.

The text is parsed to a syntax tree (`ast`), and every node of it is turned into sympy by hand: a node or a name that is
not on the list is refused. Numbers become exact rationals, so that kinks at 0.3 and 3/10 are one kink.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from privfit.accounting.validation import check_number

__all__ = ["FUNCTIONS", "parse"]

FUNCTIONS = (
    "exp", "log", "sqrt", "sin", "cos", "sinh", "cosh", "tanh", "atan", "asinh", "erf", "expm1", "log1p", "expit",
    "abs", "Abs", "max", "Max", "min", "Min", "sign", "Heaviside", "Piecewise",
)  # fmt: skip
"""Names of functions that an expression may use."""

_LONGEST, _MOST_NODES, _LARGEST_POWER = 2000, 400, 20


def parse(text: Any, variable: str, parameters: Mapping[str, float]) -> tuple[Any, Any]:
    """Return the sympy expression and its symbol.

    Parameters
    ----------
    text : str or sympy expression
        A sympy expression is written out and read again, so that the same list of names applies.
    variable : str
        Name of the index.
    parameters : mapping of str to float
        Values of the other names.

    Returns
    -------
    expression, symbol : sympy objects

    Raises
    ------
    TypeError, ValueError
        For what is no expression in these names, too long, or too high a power.

    Examples
    --------
    >>> parse("max(0, 1 - t*u)", "u", {"t": 0.5})[0]
    Max(0, 1 - u/2)
    """
    import sympy

    if isinstance(text, sympy.Basic):
        text = str(text)
    if not isinstance(text, str):
        raise TypeError(f'expression must be text such as "log(1 + exp(-u))", got {type(text).__name__}.')
    if not isinstance(variable, str) or not variable.isidentifier() or variable in (*FUNCTIONS, "pi", "E"):
        raise ValueError(f"variable must be a free name such as 'u', got {variable!r}.")
    if not text.strip() or len(text) > _LONGEST:
        raise ValueError(f"expression must have 1 to {_LONGEST} characters, got {len(text)}.")
    names = _names(variable, parameters)
    found = _Reader(names)(_tree(text))
    if isinstance(found, bool) or not isinstance(found, sympy.Expr):
        raise ValueError("expression must be a number at every u, got a condition. Use Piecewise((a, condition), ...).")
    if found.has(sympy.zoo, sympy.nan, sympy.oo, sympy.I):
        raise ValueError("expression must be real and finite, got a division by zero or the root of a negative number.")
    return found, names[variable]


def _names(variable: str, parameters: Mapping[str, float]) -> dict[str, Any]:
    import sympy

    names = {variable: sympy.Symbol(variable, real=True), "pi": sympy.pi, "E": sympy.E}
    for name, value in parameters.items():
        if name in names or name in FUNCTIONS:
            raise ValueError(f"parameters must have names of their own, got {name!r}. Rename it.")
        names[name] = sympy.Rational(repr(check_number(name, value)))
    return names


def _tree(text: str) -> ast.expr:
    try:
        tree = ast.parse(text.strip(), mode="eval")
        nodes = sum(1 for _ in ast.walk(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(
            'expression must be one formula in Python\'s notation, such as "log(1 + exp(-u))". Write powers as u**2.'
        ) from None
    if nodes > _MOST_NODES:
        raise ValueError(f"expression must have at most {_MOST_NODES} terms and signs, got {nodes}. Use from_callable.")
    return tree.body


class _Reader:
    """Turns one syntax tree into sympy, node by node."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        import sympy

        self.names, self.sympy = names, sympy

    def __call__(self, node: ast.expr) -> Any:
        method: Callable[[Any], Any] | None = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise ValueError(
                f"expression must be made of numbers, {next(iter(self.names))}, parameters, + - * / ** and the "
                f"functions {', '.join(FUNCTIONS)}, got a {type(node).__name__}."
            )
        return method(node)

    def _constant(self, node: ast.Constant) -> Any:
        value = node.value
        if isinstance(value, bool):
            return self.sympy.true if value else self.sympy.false
        if isinstance(value, int | float):
            return self.sympy.Rational(repr(check_number("expression: a number in it", value, -1e100, 1e100)))
        raise ValueError(f"expression must hold numbers only, got a {type(value).__name__}.")

    def _name(self, node: ast.Name) -> Any:
        if node.id not in self.names:
            raise ValueError(
                f"expression: the name {node.id!r} is unknown. The index is {next(iter(self.names))!r}; give any other "
                f"name a value: from_expression(..., {node.id}=1.0)."
            )
        return self.names[node.id]

    def _unaryop(self, node: ast.UnaryOp) -> Any:
        inner = self(node.operand)
        if isinstance(node.op, ast.USub):
            return -self._number(inner)
        if isinstance(node.op, ast.UAdd):
            return self._number(inner)
        return self.sympy.Not(self._truth(inner))

    def _binop(self, node: ast.BinOp) -> Any:
        left, right = self(node.left), self(node.right)
        if isinstance(node.op, ast.BitAnd | ast.BitOr):
            joined = self.sympy.And if isinstance(node.op, ast.BitAnd) else self.sympy.Or
            return joined(self._truth(left), self._truth(right))
        left, right = self._number(left), self._number(right)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.Div):
            return left / right
        if isinstance(node.op, ast.Pow):
            return self._power(left, right)
        raise ValueError(f"expression must use + - * / and ** only, got {type(node.op).__name__}. Powers are u**2.")

    def _power(self, base: Any, exponent: Any) -> Any:
        sympy = self.sympy
        if exponent.is_number:
            deepest = max((abs(p.exp) for p in base.atoms(sympy.Pow) if p.exp.is_number), default=1)
            if not exponent.is_Rational or abs(exponent) * max(deepest, 1) > _LARGEST_POWER:
                raise ValueError(f"expression: powers must be rational and at most {_LARGEST_POWER} in all.")
            return base**exponent
        if not (base.is_number and base.is_positive):
            raise ValueError("expression: a power with the index in its exponent must have a positive number as base.")
        return sympy.exp(exponent * sympy.log(base))

    def _compare(self, node: ast.Compare) -> Any:
        sympy = self.sympy
        kinds = {ast.Lt: sympy.Lt, ast.LtE: sympy.Le, ast.Gt: sympy.Gt, ast.GtE: sympy.Ge}
        values = [self._number(self(inner)) for inner in (node.left, *node.comparators)]
        for op in node.ops:
            if type(op) not in kinds:
                raise ValueError(f"expression: conditions must use < <= > >=, got {type(op).__name__}.")
        pairs = zip(node.ops, values, values[1:], strict=False)
        return sympy.And(*[kinds[type(op)](one, two) for op, one, two in pairs])

    def _boolop(self, node: ast.BoolOp) -> Any:
        joined = self.sympy.And if isinstance(node.op, ast.And) else self.sympy.Or
        return joined(*[self._truth(self(inner)) for inner in node.values])

    def _ifexp(self, node: ast.IfExp) -> Any:
        condition = self._truth(self(node.test))
        return self.sympy.Piecewise((self._number(self(node.body)), condition), (self._number(self(node.orelse)), True))

    def _call(self, node: ast.Call) -> Any:
        sympy = self.sympy
        name = node.func.id if isinstance(node.func, ast.Name) else None
        if name not in FUNCTIONS or node.keywords:
            raise ValueError(f"expression must call {', '.join(FUNCTIONS)} only, with plain arguments.")
        if name == "Piecewise":
            return self._pieces(node)
        given = [self._number(self(inner)) for inner in node.args]
        if name in ("max", "Max", "min", "Min"):
            if len(given) < 2:
                raise ValueError(f"expression: {name} must have two arguments or more, got {len(given)}.")
            return (sympy.Max if name in ("max", "Max") else sympy.Min)(*given)
        if len(given) != 1:
            raise ValueError(f"expression: {name} must have one argument, got {len(given)}.")
        x = given[0]
        written = {"abs": sympy.Abs, "expm1": lambda x: sympy.exp(x) - 1, "log1p": lambda x: sympy.log(1 + x)}
        if name == "expit":
            return 1 / (1 + sympy.exp(-x))
        return (written.get(name) or getattr(sympy, name))(x)

    def _pieces(self, node: ast.Call) -> Any:
        pairs = []
        for inner in node.args:
            if not isinstance(inner, ast.Tuple) or len(inner.elts) != 2:
                raise ValueError("expression: Piecewise must be given pairs (value, condition).")
            pairs.append((self._number(self(inner.elts[0])), self._truth(self(inner.elts[1]))))
        if not pairs or pairs[-1][1] != self.sympy.true:
            raise ValueError("expression: the last pair of Piecewise must be (value, True), for every other u.")
        return self.sympy.Piecewise(*pairs)

    def _number(self, value: Any) -> Any:
        if not isinstance(value, self.sympy.Expr):
            raise ValueError("expression: a condition stands where a number is needed. Use Piecewise or Heaviside.")
        return value

    def _truth(self, value: Any) -> Any:
        if isinstance(value, self.sympy.Expr):
            raise ValueError("expression: a number stands where a condition such as u < 0 is needed.")
        return value
