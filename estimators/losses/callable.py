r"""Losses given as numpy functions, of the index u or of a whole record and the parameters.

Nothing is derived from a function: the doubly random correction (zero-inflated noise) needs its values alone, the
smoothed and symmetric Laplace corrections the derivatives a user gives. For the solver, derivatives that are not
given come from central differences: relative error about 1e-10 (first), 1e-8 (second).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privfit.accounting.validation import check_integer
from privfit.estimators.errors import CapabilityError
from privfit.estimators.losses.base import Floats, IndexLoss, Kernel, Request
from privfit.estimators.symbols import Symbol

__all__ = ["CallableLoss", "RecordLoss"]

_EPS = float(np.finfo(float).eps)


class CallableLoss(IndexLoss):
    """A loss ``f(u)`` of the index, given as a vectorised numpy function.

    Parameters
    ----------
    function : callable
        Maps an array of indices to an array of losses.
    derivatives : sequence of callables
        ``f', f'', ...`` as far as they are known; each pair more allows one more power of a Laplace operator.

    Examples
    --------
    >>> CallableLoss(np.cosh).derivative([0.5], 1).round(6)
    array([0.521095])
    """

    def __init__(self, function: Callable[[Any], Any], derivatives: Sequence[Callable[[Any], Any]] = ()) -> None:
        self.functions = (function, *derivatives)
        for place, own in enumerate(self.functions):
            if not callable(own):
                raise TypeError(f"derivatives must be functions of the index, got {type(own).__name__} at {place}.")
        self._call(0, np.array([-1.0, 0.5]))

    def _call(self, order: int, u: Floats) -> Floats:
        found = np.asarray(self.functions[order](u))
        if found.shape != u.shape or found.dtype.kind not in "fiub":
            raise ValueError(
                f"function (derivative {order}) must map an array of shape {u.shape} to real numbers of that shape, "
                f"got shape {found.shape} of {found.dtype}."
            )
        return found.astype(float)

    def derivative(self, u: ArrayLike, order: int = 1) -> Floats:
        """See `IndexLoss.derivative`; up to two orders beyond the given ones, by central differences."""
        r = np.asarray(u, float)
        known = len(self.functions) - 1
        if order <= known:
            return self._call(order, np.atleast_1d(r)).reshape(r.shape)
        if order > known + 2:
            raise CapabilityError(
                f"a function with {known} known derivatives has no derivative of order {order}: missing are "
                "derivatives=(f', f'', ...). Give them, or write the loss as a formula with Loss.from_expression."
            )
        flat = np.atleast_1d(r)
        step = _EPS ** (1.0 / 3.0 if order == known + 1 else 0.25) * np.maximum(1.0, np.abs(flat))
        high, low = (self._call(known, flat + sign * step) for sign in (1.0, -1.0))
        if order == known + 1:
            return ((high - low) / (2.0 * step)).reshape(r.shape)
        return ((high - 2.0 * self._call(known, flat) + low) / step**2).reshape(r.shape)

    def compile(self, requests: Sequence[Request]) -> Kernel:
        """See `IndexLoss.compile`: powers of D^2 as far as the derivatives are given, never by differences."""
        for symbol, _ in requests:
            if symbol.heat or symbol.poles or 2 * symbol.degree > len(self.functions) - 1:
                self._refuse(symbol)
        return super().compile(requests)

    def _refuse(self, symbol: Symbol) -> None:
        if symbol.heat:
            missing = "its inverse heat flow (Gaussian noise)"
        elif symbol.poles:
            missing = "its average over zero-inflated Laplace noise"
        else:
            missing = f"derivatives=(f', f'', ...) up to order {2 * symbol.degree}, {len(self.functions) - 1} are given"
        raise CapabilityError(
            f"a loss given as a function has no such correction: missing is {missing}. Use correction='dr' (one "
            "ZeroInflatedLaplace law), which needs its values only, or write it with Loss.from_expression."
        )


@dataclass(frozen=True, eq=False)
class RecordLoss:
    """A loss ``l(x, theta)`` of a record and a parameter vector, given as vectorised numpy functions.

    Attributes
    ----------
    function : callable
        ``function(records, theta)``: losses of shape (n,) for records of shape (n, d) (the response, if any, last).
    size : int
        Number of parameters.
    gradient : callable, optional
        Gradient in theta, shape (n, p); central differences if left out.
    half_trace : callable, optional
        ``half_trace(records, theta, variances)``: ``(1/2) sum_j variances_j d^2 l / dx_j^2``, shape (n,), which the
        corrections "sl" and "sdr" need.

    Examples
    --------
    >>> loss = RecordLoss(lambda x, theta: (theta[0] - np.maximum(x[:, 0], 0.0)) ** 2, 1)
    >>> loss.scores(np.array([[2.0]]), np.array([0.5])).round(6)
    array([[-3.]])
    """

    function: Callable[[Floats, Floats], Floats]
    size: int
    gradient: Callable[[Floats, Floats], Floats] | None = None
    half_trace: Callable[[Floats, Floats, Floats], Floats] | None = None

    def __post_init__(self) -> None:
        check_integer("size", self.size, 1, 10_000)
        for name in ("function", "gradient", "half_trace"):
            given = getattr(self, name)
            if not (callable(given) or (given is None and name != "function")):
                raise TypeError(f"{name} must be a function of (records, theta), got {type(given).__name__}.")

    def values(self, records: Floats, theta: Floats) -> Floats:
        """Losses of the records."""
        return self._checked("function", self.function(records, theta), (len(records),))

    def scores(self, records: Floats, theta: Floats) -> Floats:
        """Gradients in theta, shape (n, p)."""
        if self.gradient is not None:
            return self._checked("gradient", self.gradient(records, theta), (len(records), self.size))
        out = np.empty((len(records), self.size))
        for j in range(self.size):
            step = np.zeros(self.size)
            step[j] = _EPS ** (1.0 / 3.0) * max(1.0, abs(float(theta[j])))
            high, low = self.values(records, theta + step), self.values(records, theta - step)
            out[:, j] = (high - low) / (2.0 * step[j])
        return out

    def traces(self, records: Floats, theta: Floats, variances: Floats) -> Floats:
        """Half the traces of Sigma times the Hessian in x."""
        if self.half_trace is None:
            raise CapabilityError(
                "the corrections 'sl' and 'sdr' need the loss's second derivatives in x: missing is half_trace=. Give "
                "it, or use correction='dr', which needs none."
            )
        return self._checked("half_trace", self.half_trace(records, theta, variances), (len(records),))

    def _checked(self, name: str, found: Any, shape: tuple[int, ...]) -> Floats:
        array = np.asarray(found, float)
        if array.shape != shape:
            raise ValueError(f"{name} must return an array of shape {shape}, got {array.shape}.")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} must return finite numbers for every record. Bound the parameters by bound=.")
        return array
