"""The trade-off curve: what a noise law guarantees.

For neighbouring inputs with output laws P and Q, let ``L = log(dQ/dP)`` be the privacy loss. A test of P
against Q that rejects when ``L > t`` has type I error ``alpha(t) = P[L > t]`` and type II error
``beta(t) = Q[L <= t]``; the trade-off function ``f(alpha)`` is the smallest type II error at level alpha
(Dong, Roth & Su, "Gaussian differential privacy", 2022). Everything else follows without loss:

    delta(eps) = 1 - beta(eps) - e^eps alpha(eps)                          privacy profile, any real eps
    f(alpha)   = sup_t  beta(t) + e^t (alpha(t) - alpha)                   every t gives a valid lower bound
    advantage  = delta(0)                                                  total variation distance

A family of curves states ``error_rates`` and overrides only what it computes better than the base class.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, ClassVar, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.accounting.operations import Operations
from privfit.accounting.roots import bisect_decreasing
from privfit.accounting.validation import check_array, check_choice, check_number

__all__ = ["Bound", "Precision", "TradeOffCurve"]

Floats = NDArray[np.float64]
Bound = Literal["upper", "lower", "estimate"]
BOUNDS = ("upper", "lower", "estimate")
SIGN = {"upper": 1.0, "lower": -1.0, "estimate": 0.0}
# delta from above is the trade-off curve from below
MIRROR: dict[Bound, Bound] = {"upper": "lower", "lower": "upper", "estimate": "estimate"}


@dataclass(frozen=True)
class Precision:
    """Numerical error of a curve: |computed - true| <= relative * true + absolute.

    Applies to ``alpha``, ``beta`` and ``delta``. A bound moves the estimate by this much to the named side.

    Examples
    --------
    >>> Precision(relative=1e-13, absolute=0.0).relative
    1e-13
    """

    relative: float
    absolute: float


@dataclass(frozen=True)
class TradeOffCurve(Operations, ABC):
    """A trade-off function f, stored as a family with parameters and evaluated exactly.

    Curves are immutable. Methods take scalars or arrays and return a float or an array of the same shape.
    Where a number has a numerical error, ``bound`` says on which side of the truth it lies; the default is
    the side that never overstates privacy.
    """

    registry: ClassVar[dict[str, type[TradeOffCurve]]] = {}
    precision: ClassVar[Any] = Precision(relative=1e-13, absolute=0.0)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        TradeOffCurve.registry[cls.__name__] = cls

    # --- what a family states -------------------------------------------------------------------------

    @abstractmethod
    def _error_rates(self, log_ratio: Floats) -> tuple[Floats, Floats]:
        """(P[L > t], Q[L <= t]) at every threshold t; t may be infinite."""

    @property
    def max_loss(self) -> float:
        """Supremum of the privacy loss apart from infinite atoms: above it delta is constant."""
        return math.inf

    @property
    def infinite_mass(self) -> float:
        """Q[L = inf]: the limit of delta(eps) as eps grows."""
        return 0.0

    def _delta(self, epsilon: Floats) -> Floats:
        alpha, beta = self._error_rates(epsilon)
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.where(alpha > 0, np.exp(epsilon + np.log(np.maximum(alpha, 1e-320))), 0.0)
        return np.clip(1.0 - beta - scaled, 0.0, 1.0)

    def _log_delta(self, epsilon: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(self._delta(epsilon))

    def _curve(self, alpha: Floats) -> Floats:
        value = np.where(alpha == 0.0, 1.0 - self.infinite_mass, 0.0)
        inside = (alpha > 0.0) & (alpha < 1.0)
        a = alpha[inside]
        with np.errstate(over="ignore"):
            low, high = bisect_decreasing(
                lambda t, at: self._error_rates(t)[0] - at, a, -self.reversed().max_loss, self.max_loss
            )
        value[inside] = np.maximum(self._support_line(low, a), self._support_line(high, a))
        return value

    def _support_line(self, t: Floats, alpha: Floats) -> Floats:
        """Value at alpha of the tangent with slope -e^t: a lower bound of f for every t."""
        at, bt = self._error_rates(t)
        gap = at - alpha
        with np.errstate(divide="ignore", over="ignore"):
            move = np.sign(gap) * np.exp(t + np.log(np.abs(gap)))
        return np.clip(np.nan_to_num(bt + move, nan=0.0), 0.0, 1.0 - alpha)

    # --- what every curve offers ----------------------------------------------------------------------

    @overload
    def error_rates(self, log_ratio: float, bound: Bound = "lower") -> tuple[float, float]: ...
    @overload
    def error_rates(self, log_ratio: ArrayLike, bound: Bound = "lower") -> tuple[Any, Any]: ...
    def error_rates(self, log_ratio: Any, bound: Bound = "lower") -> tuple[Any, Any]:
        """Type I and type II error of the test that rejects P when the privacy loss exceeds `log_ratio`.

        Parameters
        ----------
        log_ratio : float or array
            Threshold t of ``L = log(dQ/dP)``, in nats; infinite values are allowed.
        bound : {"lower", "upper", "estimate"}
            Which curve the point (alpha, beta) lies on, where a curve is known only between two bounds;
            "lower" never overstates privacy. Each rate is within `precision`.

        Returns
        -------
        alpha, beta : float or array
            ``P[L > t]`` and ``Q[L <= t]``.

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> alpha, beta = pa.gaussian(1.0).error_rates(0.0)
        >>> round(alpha, 6), round(beta, 6)
        (0.308538, 0.308538)
        """
        check_choice("bound", bound, BOUNDS)
        t = check_array("log_ratio", log_ratio)
        alpha, beta = self._on(bound)._error_rates(t)
        return _like(log_ratio, alpha), _like(log_ratio, beta)

    @overload
    def curve(self, alpha: float, bound: Bound = "lower") -> float: ...
    @overload
    def curve(self, alpha: ArrayLike, bound: Bound = "lower") -> Any: ...
    def curve(self, alpha: Any, bound: Bound = "lower") -> Any:
        """Trade-off function: the least type II error of any test with type I error `alpha`.

        Parameters
        ----------
        alpha : float or array
            Type I error (false-positive rate), in [0, 1].
        bound : {"lower", "upper", "estimate"}
            Side of the truth; "lower" never overstates privacy.

        Returns
        -------
        float or array
            ``f(alpha)`` in [0, 1 - alpha].

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> round(pa.laplace(1.0).curve(0.1), 6)
        0.728172
        """
        check_choice("bound", bound, BOUNDS)
        a = check_array("alpha", alpha, 0.0, 1.0)
        side = self._on(bound)
        value = side._shift(side._curve(a), bound)
        return _like(alpha, np.clip(value, 0.0, 1.0 - a))

    @overload
    def inverse(self, beta: float, bound: Bound = "lower") -> float: ...
    @overload
    def inverse(self, beta: ArrayLike, bound: Bound = "lower") -> Any: ...
    def inverse(self, beta: Any, bound: Bound = "lower") -> Any:
        """Least type I error of any test with type II error `beta` (equals `curve` for symmetric curves).

        Parameters
        ----------
        beta : float or array
            Type II error (false-negative rate), in [0, 1].
        bound : {"lower", "upper", "estimate"}
            Side of the truth; "lower" never overstates privacy.

        Returns
        -------
        float or array

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> round(pa.laplace(1.0).inverse(0.1), 6)
        0.728172
        """
        check_array("beta", beta, 0.0, 1.0)
        return self.reversed().curve(beta, bound)

    def reversed(self) -> TradeOffCurve:
        """Curve of the test of Q against P: the inverse function. Symmetric curves return themselves.

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> curve = pa.gaussian(1.0)
        >>> curve.reversed() is curve
        True
        """
        return self

    @overload
    def delta(self, epsilon: float, bound: Bound = "upper") -> float: ...
    @overload
    def delta(self, epsilon: ArrayLike, bound: Bound = "upper") -> Any: ...
    def delta(self, epsilon: Any, bound: Bound = "upper") -> Any:
        """Privacy profile: the smallest delta for which the mechanism is (epsilon, delta)-DP.

        Parameters
        ----------
        epsilon : float or array
            Any real number, in nats; ``inf`` gives the mass of certain disclosure.
        bound : {"upper", "lower", "estimate"}
            Side of the truth; "upper" never overstates privacy.

        Returns
        -------
        float or array

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> round(pa.gaussian(1.0).delta(0.0), 9)
        0.382924923
        """
        check_choice("bound", bound, BOUNDS)
        e = check_array("epsilon", epsilon)
        side = self._on(MIRROR[bound])
        return _like(epsilon, np.clip(side._shift(side._delta(e), bound), 0.0, 1.0))

    @overload
    def log_delta(self, epsilon: float, bound: Bound = "upper") -> float: ...
    @overload
    def log_delta(self, epsilon: ArrayLike, bound: Bound = "upper") -> Any: ...
    def log_delta(self, epsilon: Any, bound: Bound = "upper") -> Any:
        """Natural logarithm of delta(epsilon), accurate where delta itself would underflow; -inf for zero.

        Parameters
        ----------
        epsilon : float or array
            Any real number, in nats.
        bound : {"upper", "lower", "estimate"}
            Side of the truth; "upper" never overstates privacy.

        Returns
        -------
        float or array

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> round(pa.gaussian(1.0).log_delta(60.0), 4)
        -1779.2334
        """
        check_choice("bound", bound, BOUNDS)
        side = self._on(MIRROR[bound])
        return _like(epsilon, side._log_shift(side._log_delta(check_array("epsilon", epsilon)), bound))

    @overload
    def epsilon(self, delta: float, bound: Bound = "upper") -> float: ...
    @overload
    def epsilon(self, delta: ArrayLike, bound: Bound = "upper") -> Any: ...
    def epsilon(self, delta: Any, bound: Bound = "upper") -> Any:
        """Smallest epsilon >= 0 for which the mechanism is (epsilon, delta)-DP.

        Parameters
        ----------
        delta : float or array
            In [0, 1]; zero asks for pure DP.
        bound : {"upper", "lower", "estimate"}
            Side of the truth; "upper" never overstates privacy.

        Returns
        -------
        float or array
            ``inf`` where no epsilon suffices.

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> round(pa.gaussian(1.0).epsilon(1e-5), 6)
        4.377178
        """
        check_choice("bound", bound, BOUNDS)
        d = check_array("delta", delta, 0.0, 1.0)
        return _like(delta, self._on(MIRROR[bound])._epsilon(d, bound))

    def _epsilon(self, delta: Floats, bound: Bound) -> Floats:
        def excess(e: Floats, target: Floats) -> Floats:
            return self._log_shift(self._log_delta(e), bound) - target

        result = np.empty_like(delta)
        certain = self.infinite_mass
        mass = float(np.clip(self._shift(np.float64(certain), bound), 0.0, 1.0)) if certain > 0 else 0.0
        hopeless = delta < mass if mass > 0 else np.zeros_like(delta, dtype=bool)
        result[hopeless] = np.inf
        at_limit = ~hopeless & (delta <= mass)
        result[at_limit] = self.max_loss
        rest = ~(hopeless | at_limit)
        if rest.any():
            low, high = bisect_decreasing(excess, np.log(delta[rest]), lower=0.0, upper=self.max_loss)
            result[rest] = low if bound == "lower" else high
        return result

    def envelope(self, epsilons: ArrayLike) -> TradeOffCurve:
        """Polyline that the guarantees (eps_i, delta(eps_i)) imply, and nothing more.

        Parameters
        ----------
        epsilons : array
            The values of epsilon at which the profile is quoted, each >= 0.

        Returns
        -------
        TradeOffCurve
            A piecewise linear curve below this one, touching it at slopes ``-exp(+-eps_i)``.

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> curve = pa.gaussian(1.0)
        >>> curve.envelope([0.5, 1.0]).curve(0.2) <= curve.curve(0.2)
        True
        """
        from privfit.accounting.discrete import from_profile

        eps = np.atleast_1d(check_array("epsilons", epsilons, 0.0))
        return from_profile(eps, np.asarray(self.delta(eps)))

    @cached_property
    def advantage(self) -> float:
        """Total variation distance delta(0): the largest advantage of any membership test, safe side."""
        return self.delta(0.0)

    def __getstate__(self) -> dict[str, Any]:
        """The parameters alone: tables are rebuilt when they are needed."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    # --- sides ----------------------------------------------------------------------------------------

    def _on(self, side: Bound) -> TradeOffCurve:
        """The curve whose hooks give the named side of this trade-off curve: itself, or built on that side.

        A curve known only between two others overrides this; what is built from it follows by itself.
        """
        names = _curve_fields(type(self))
        if not names:
            return self
        sides = self.__dict__.setdefault("_sides", {})
        if side not in sides:
            new = {name: _on_side(getattr(self, name), side) for name in names}
            same = all(new[name] is getattr(self, name) for name in names)
            sides[side] = self if same else dataclasses.replace(self, **new)
        return sides[side]

    def _shift(self, value: Any, bound: Bound) -> Any:
        precision = self.precision
        return value + SIGN[bound] * (precision.relative * value + precision.absolute)

    def _log_shift(self, value: Floats, bound: Bound) -> Floats:
        """The logarithm of `_shift`, also where the number itself underflows."""
        precision = self.precision
        moved = value + math.log1p(SIGN[bound] * precision.relative)
        if precision.absolute == 0.0 or bound == "estimate":
            return moved
        gap = math.log(precision.absolute) - moved
        if bound == "upper":
            return np.logaddexp(moved, math.log(precision.absolute))
        with np.errstate(divide="ignore"):
            return np.where(gap < 0, moved + np.log1p(-np.exp(np.minimum(gap, 0.0))), -np.inf)


@cache
def _curve_fields(family: type[TradeOffCurve]) -> tuple[str, ...]:
    """Names of the fields that hold curves."""
    return tuple(f.name for f in dataclasses.fields(family) if "Curve" in str(f.type))


def _on_side(value: Any, side: Bound) -> Any:
    if isinstance(value, tuple):
        new = tuple(_on_side(v, side) for v in value)
        return value if all(a is b for a, b in zip(new, value, strict=True)) else new
    return value._on(side)


def _like(given: Any, values: Floats) -> Any:
    """A float for a scalar argument, an array otherwise."""
    return float(values) if np.ndim(given) == 0 else values


def check_curve(value: Any, name: str = "curve") -> TradeOffCurve:
    """Return a curve, or raise TypeError naming the parameter.

    Examples
    --------
    >>> from privfit.accounting.laplace import laplace
    >>> check_curve(laplace(1.0))
    LaplaceCurve(a=1.0)
    """
    if not isinstance(value, TradeOffCurve):
        raise TypeError(f"{name} must be a TradeOffCurve, got {type(value).__name__}; build one first.")
    return value


def check_scale(name: str, value: Any, hint: str = "") -> float:
    """Return a strictly positive finite float, or raise (every curve parameter goes through here).

    Examples
    --------
    >>> check_scale("mu", 2)
    2.0
    """
    return check_number(name, value, 0.0, low_open=True, hint=hint)
