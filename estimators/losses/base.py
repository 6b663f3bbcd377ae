r"""Index losses: functions ``f(u)`` of one index ``u = a'x``, and inverse noise operators on them.

``apply(u, G, order)`` returns ``G(D^2) D^order f`` at u. The default handles polynomial operators by
derivatives; a loss with a better formula overrides `compile`. Exact corrections are unbiased:
``E[(G f)(u + noise)] = f(u)``.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.accounting.validation import check_array, check_number
from privfit.estimators.errors import CapabilityError
from privfit.estimators.symbols import Identity, Power, Resolvent, Symbol

__all__ = ["Floats", "IndexLoss", "Kernel", "Request"]

Floats = NDArray[np.float64]
Request = tuple[Symbol, int]
Kernel = Callable[[Floats], list[Floats]]


class IndexLoss(ABC):
    """A loss that sees the data only through an index u.

    Attributes
    ----------
    kinks : tuple of float
        Points where a derivative of order <= 2 jumps; empty for a smooth loss.
    max_variance : float
        Largest index variance s^2 under which the corrected loss has a finite variance; k times as much under
        generalised Laplace noise of shape k.

    Examples
    --------
    >>> from privfit.estimators.losses import SquaredLoss
    >>> SquaredLoss().zil_correction([3.0], s=2.0, delta0=0.25)
    array([1.5])
    """

    kinks: tuple[float, ...] = ()
    max_variance: float = np.inf

    @property
    def smooth(self) -> bool:
        """Whether derivatives of every order exist everywhere."""
        return not self.kinks

    @staticmethod
    def from_expression(expression: Any, variable: str = "u", **parameters: float) -> IndexLoss:
        """Build a loss from a formula of the index; derivatives, kinks, corrections and conditions are derived.

        Parameters
        ----------
        expression : str or sympy expression
            With + - * / **, numbers, the index, parameters and exp, log, sqrt, sin, cos, sinh, cosh, tanh, atan, asinh,
            erf, expit, abs, max, min, sign, Heaviside, Piecewise. It is read, never executed.
        variable : str
            Name of the index.
        **parameters : float
            Values of other names in the expression.

        Returns
        -------
        IndexLoss
            Its ``corrections()`` says which noise laws it can be corrected for, and why not the others.

        Raises
        ------
        TypeError, ValueError
            If the expression is not such a formula, or not real and finite at every index.

        Examples
        --------
        >>> IndexLoss.from_expression("max(0, 1 - u)").kinks
        (1.0,)
        """
        from privfit.estimators.losses.expression import from_expression

        return from_expression(expression, variable, **parameters)

    @staticmethod
    def from_callable(
        function: Callable[..., Any],
        derivatives: Sequence[Callable[..., Any]] = (),
        *,
        size: int | None = None,
        gradient: Callable[..., Any] | None = None,
        half_trace: Callable[..., Any] | None = None,
    ) -> Any:
        """Build a loss from a vectorised numpy function of the index, or of records and parameters.

        Parameters
        ----------
        function : callable
            ``f(u)``; with `size`, ``l(records, theta)``.
        derivatives : sequence of callables
            ``f', f'', ...`` of the index, as far as known.
        size : int, optional
            Number of parameters: the function is one of records, shape (n, d), and theta, shape (size,).
        gradient, half_trace : callable, optional
            Of a function of records: see `RecordLoss`.

        Returns
        -------
        CallableLoss or RecordLoss
            Correction "dr" (zero-inflated noise) and "naive" need values only; others need derivatives.

        Examples
        --------
        >>> IndexLoss.from_callable(np.arctan).value([0.0])
        array([0.])
        """
        from privfit.estimators.losses.callable import CallableLoss, RecordLoss

        if size is None:
            if gradient is not None or half_trace is not None:
                raise TypeError("gradient and half_trace belong to a function of records: give size= too.")
            return CallableLoss(function, derivatives)
        if derivatives:
            raise TypeError("derivatives belong to a function of the index: give gradient= for one of records.")
        return RecordLoss(function, size, gradient, half_trace)

    @abstractmethod
    def derivative(self, u: ArrayLike, order: int = 1) -> Floats:
        """Derivative of the given order at u (almost everywhere for a kinked loss); order 0 is the loss.

        Parameters
        ----------
        u : array_like
            The index.
        order : int
            Order of the derivative, >= 0.

        Returns
        -------
        ndarray
            Same shape as u.
        """

    def value(self, u: ArrayLike) -> Floats:
        """Loss at u."""
        return self.derivative(u, 0)

    def compile(self, requests: Sequence[Request]) -> Kernel:
        """Prepare several operators once; the returned function maps u to one array per request."""
        for symbol, _ in requests:
            self._require_polynomial(symbol)

        def kernel(u: Floats) -> list[Floats]:
            found: dict[int, Floats] = {}
            answers = []
            for symbol, order in requests:
                total = np.zeros_like(u)
                for m, c in enumerate(symbol.numerator):
                    if c != 0.0:
                        wanted = 2 * m + order
                        if wanted not in found:
                            found[wanted] = self.derivative(u, wanted)
                        total += c * found[wanted]
                answers.append(total)
            return answers

        return kernel

    def apply(self, u: ArrayLike, symbol: Symbol, order: int = 0) -> Floats:
        """Return ``G(D^2) D^order f`` at u.

        Raises
        ------
        CapabilityError
            If the loss has no formula for this operator.
        """
        index = check_array("u", u)
        return self.compile([(symbol, order)])(np.atleast_1d(index))[0].reshape(index.shape)

    def zil_correction(self, u: ArrayLike, s: float, delta0: float) -> Floats:
        """Term to subtract from f(u) under zero-inflated Laplace noise of index standard deviation s.

        Parameters
        ----------
        u : array_like
            Noised index.
        s : float
            Standard deviation of the Laplace part of the noise in the index, >= 0.
        delta0 : float
            Zero inflation in [0, 1]; 0 is symmetric Laplace noise.

        Returns
        -------
        ndarray
            ``((1 - delta0) / 2) s^2 E f''(u + b Lap(1))`` with ``b = s sqrt(delta0 / 2)``.
        """
        scale = check_number("s", s, 0.0)
        inflation = check_number("delta0", delta0, 0.0, 1.0)
        self.check_variance(scale**2)
        index = check_array("u", u)
        if scale == 0.0 or inflation == 1.0:
            return np.zeros_like(index)
        factor = Resolvent(inflation) if inflation > 0 else Power(1)
        shift = factor(scale**2 / 2.0, 0)
        return self.apply(index, Identity()(0.0, 0)) - self.apply(index, shift)

    def check_variance(self, s2: float) -> None:
        """Refuse an index variance under which the corrected loss has no finite variance.

        Raises
        ------
        ValueError
            If ``s2 >= max_variance``.
        """
        if s2 >= self.max_variance:
            raise ValueError(
                f"s^2 must be < {self.max_variance:g} for {type(self).__name__} (the corrected loss "
                f"has no finite variance otherwise), got {s2:g}. Bound the coefficients, or add less noise."
            )

    @property
    def said(self) -> str:
        """What messages call this loss."""
        kind = type(self).__name__
        words = " ".join(re.findall("[A-Z][a-z]*", kind.removesuffix("Loss"))).lower().replace("huber", "Huber")
        return str(getattr(self, "text", f"the {words} loss" if kind.endswith("Loss") else kind))

    def _require_polynomial(self, symbol: Symbol) -> None:
        name = self.said
        if symbol.heat:
            instead = (
                "SymmetricLaplace(scale, shape=...) (exact, and less noise at small delta)"
                if self.smooth
                else "ZeroInflatedLaplace (exact), or smooth the loss and release with SymmetricLaplace"
            )
            raise CapabilityError(
                f"{name} has no exact correction under Gaussian noise. Release with {instead}, or ask for "
                "correction='naive', which ignores the noise. (There is no exact inverse under Gaussian noise: missing "
                "is the inverse heat flow exp(-q D^2), which polynomials, exponentials and waves have.)"
            )
        if len(symbol.poles) > 1 and not self.smooth:
            raise CapabilityError(
                f"{name} has no exact inverse under two zero-inflated laws at once: missing is its average over two "
                "Laplace laws. Smooth its kinks (SmoothedLoss), release the columns under one joint law, or ask for "
                "correction='naive'."
            )
        if symbol.poles:
            raise CapabilityError(
                f"{name} has no exact inverse under zero-inflated Laplace noise: missing is its Laplace average "
                "(1 - b^2 D^2)^-1 f''. Use correction='dr' (one zero-inflated law), write the loss as a formula "
                "(Loss.from_expression), or release with SymmetricLaplace."
            )
