r"""Sums of ``P(u) e^{c u}``, P a polynomial and c complex: exact under every noise law, Gaussian included.

``D^m G(D^2)`` acts on ``P e^{cu}`` as ``(D + c)^m G((D + c)^2)`` on P: finitely many terms of a Taylor series. Sines
and cosines are exponentials of imaginary rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.polynomial import polynomial as poly
from numpy.typing import ArrayLike, NDArray

from privfit.estimators.losses.base import Floats, IndexLoss, Kernel, Request
from privfit.estimators.symbols import Symbol

__all__ = ["ExponentialPolynomialLoss", "read_term"]

Complex = NDArray[np.complex128]


class ExponentialPolynomialLoss(IndexLoss):
    """Real part of ``sum_c P_c(u) e^{c u}``.

    Parameters
    ----------
    terms : mapping of complex to array_like
        Coefficients of P_c, lowest power first, by rate c.

    Examples
    --------
    >>> ExponentialPolynomialLoss({1j: [0, 1]}).value([np.pi])  # u cos u
    array([-3.14159265])
    """

    def __init__(self, terms: Mapping[complex, ArrayLike]) -> None:
        self.terms = {complex(c): np.atleast_1d(np.asarray(p, complex)) for c, p in terms.items()}
        steepest = max((abs(c.real) for c in self.terms), default=0.0)
        self.max_variance = 0.5 / steepest**2 if steepest else np.inf

    def derivative(self, u: ArrayLike, order: int = 1) -> Floats:
        """See `IndexLoss.derivative`."""
        r = np.asarray(u, float)
        return self.compile([(Symbol(), order)])(np.atleast_1d(r))[0].reshape(r.shape)

    def compile(self, requests: Sequence[Request]) -> Kernel:
        """See `IndexLoss.compile`: one image polynomial per rate and request."""
        images = {c: [_image(c, p, symbol, order) for symbol, order in requests] for c, p in self.terms.items()}

        def kernel(u: Floats) -> list[Floats]:
            answers = [np.zeros_like(u) for _ in requests]
            for c, polynomials in images.items():
                wave = np.exp(c * u) if c else np.ones_like(u)
                for answer, image in zip(answers, polynomials, strict=True):
                    answer += (poly.polyval(u, image) * wave).real
            return answers

        return kernel


def _image(c: complex, p: Complex, symbol: Symbol, order: int) -> Complex:
    series = _taylor(c, symbol, p.size)
    for _ in range(order):
        series = np.convolve(series, [c, 1.0])[: p.size]
    out = np.zeros_like(p)
    for j, weight in enumerate(series):
        term = poly.polyder(p, j)
        out[: term.size] += weight * term
    return out


def _taylor(c: complex, symbol: Symbol, size: int) -> Complex:
    """Taylor coefficients of ``w -> G((w + c)^2)`` at 0."""
    z = np.array([c * c, 2.0 * c, 1.0])
    out = np.zeros(size, complex)
    for coefficient in reversed(symbol.numerator):
        out = np.convolve(out, z)[:size]
        out[0] += coefficient
    for b2, power in symbol.poles:
        if b2 * c.real**2 >= 1.0:
            raise ValueError(f"the noise in the index must have b^2 < {1 / c.real**2:g} for this loss, got {b2:g}.")
        bottom = -b2 * z
        bottom[0] += 1.0
        for _ in range(power):
            out = _divided(out, bottom)
    if symbol.heat:
        flow = np.zeros(size, complex)
        flow[0] = np.exp(-symbol.heat * c * c)
        for j in range(1, size):  # E' = -2 heat (c + w) E
            flow[j] = -2.0 * symbol.heat * (c * flow[j - 1] + (flow[j - 2] if j > 1 else 0.0)) / j
        out = np.convolve(out, flow)[:size]
    return out


def _divided(top: Any, bottom: Any) -> Complex:
    """Quotient of two power series, the second of degree 2."""
    out = np.zeros_like(top)
    for j in range(top.size):
        rest = top[j] - sum(bottom[i] * out[j - i] for i in (1, 2) if j >= i)
        out[j] = rest / bottom[0]
    return out


def read_term(term: Any, symbol: Any) -> dict[complex, list[complex]] | None:
    """Read a formula as a sum of polynomials times exponentials, None if it is none.

    Examples
    --------
    >>> import sympy
    >>> u = sympy.Symbol("u", real=True)
    >>> read_term(u * sympy.exp(-2 * u), u)
    {(-2+0j): [0j, (1+0j)]}
    """
    import sympy

    expanded = sympy.expand(term.rewrite((sympy.sin, sympy.cos, sympy.sinh, sympy.cosh), sympy.exp))
    found: dict[complex, list[complex]] = {}
    for part in sympy.Add.make_args(expanded):
        factor, rest = part.as_independent(symbol, as_Add=False)
        power, rate, shift = 0, sympy.Integer(0), sympy.Integer(0)
        for base in sympy.Mul.make_args(rest):
            if isinstance(base, sympy.exp) and base.args[0].is_polynomial(symbol):
                coefficients = sympy.Poly(base.args[0], symbol).all_coeffs()
                if len(coefficients) > 2:
                    return None
                rate += coefficients[0] if len(coefficients) == 2 else 0
                shift += coefficients[-1]
            elif base == symbol or (isinstance(base, sympy.Pow) and base.base == symbol):
                exponent = base.as_base_exp()[1]
                if not (exponent.is_Integer and exponent >= 0):
                    return None
                power += int(exponent)
            elif base != 1:
                return None
        row = found.setdefault(complex(rate), [])
        row += [0j] * (power + 1 - len(row))
        row[power] += complex(factor * sympy.exp(shift))
    return found
