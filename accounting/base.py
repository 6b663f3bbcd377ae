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
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.accounting.roots import bisect_decreasing
from privfit.accounting.validation import check_array, check_choice, check_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Bound", "Precision", "TradeOffCurve"]

Floats = NDArray[np.float64]
Bound = Literal["upper", "lower", "estimate"]
FORMAT_VERSION = 1


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
class TradeOffCurve(ABC):
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
        limit = self.max_loss
        with np.errstate(over="ignore"):
            low, high = bisect_decreasing(lambda t, a: self._error_rates(t)[0] - a, alpha, lower=-limit, upper=limit)
        value = np.maximum(self._support_line(low, alpha), self._support_line(high, alpha))
        return np.where(alpha == 0.0, 1.0 - self.infinite_mass, value)

    def _support_line(self, t: Floats, alpha: Floats) -> Floats:
        """Value at alpha of the tangent with slope -e^t: a lower bound of f for every t."""
        at, bt = self._error_rates(t)
        gap = at - alpha
        with np.errstate(divide="ignore", over="ignore"):
            move = np.sign(gap) * np.exp(t + np.log(np.abs(gap)))
        return np.clip(np.nan_to_num(bt + move, nan=0.0), 0.0, 1.0 - alpha)

    # --- what every curve offers ----------------------------------------------------------------------

    @overload
    def error_rates(self, log_ratio: float) -> tuple[float, float]: ...
    @overload
    def error_rates(self, log_ratio: ArrayLike) -> tuple[Any, Any]: ...
    def error_rates(self, log_ratio: Any) -> tuple[Any, Any]:
        """Type I and type II error of the test that rejects P when the privacy loss exceeds `log_ratio`.

        Parameters
        ----------
        log_ratio : float or array
            Threshold t of ``L = log(dQ/dP)``, in nats; infinite values are allowed.

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
        t = check_array("log_ratio", log_ratio)
        alpha, beta = self._error_rates(t)
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
        check_choice("bound", bound, ("upper", "lower", "estimate"))
        a = check_array("alpha", alpha, 0.0, 1.0)
        value = self._shift(self._curve(a), bound)
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
        check_choice("bound", bound, ("upper", "lower", "estimate"))
        e = check_array("epsilon", epsilon)
        return _like(epsilon, np.clip(self._shift(self._delta(e), bound), 0.0, 1.0))

    @overload
    def log_delta(self, epsilon: float) -> float: ...
    @overload
    def log_delta(self, epsilon: ArrayLike) -> Any: ...
    def log_delta(self, epsilon: Any) -> Any:
        """Natural logarithm of delta(epsilon), accurate where delta itself would underflow; -inf for zero.

        Parameters
        ----------
        epsilon : float or array
            Any real number, in nats.

        Returns
        -------
        float or array

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> round(pa.gaussian(1.0).log_delta(60.0), 4)
        -1779.2334
        """
        return _like(epsilon, self._log_delta(check_array("epsilon", epsilon)))

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
        check_choice("bound", bound, ("upper", "lower", "estimate"))
        d = check_array("delta", delta, 0.0, 1.0)
        return _like(delta, self._epsilon(d, bound))

    def _epsilon(self, delta: Floats, bound: Bound) -> Floats:
        def excess(e: Floats, target: Floats) -> Floats:
            if bound == "estimate" or self.precision.absolute == 0.0:
                slack = math.log1p(self.precision.relative) * {"upper": 1, "lower": -1, "estimate": 0}[bound]
                return self._log_delta(e) + slack - target
            value = np.clip(self._shift(self._delta(e), bound), 0.0, 1.0)
            with np.errstate(divide="ignore"):
                return np.log(value) - target

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

    def _comparison_grid(self) -> Floats:
        """Thresholds at which two curves are compared: dense where the profile moves, out to its far tail."""
        top = min(float(self._epsilon(np.asarray(1e-120), "estimate")), 1e6)
        top = max(top if math.isfinite(top) else 1e6, 1e-6)
        return np.unique(np.concatenate([np.linspace(0, top, 600), np.geomspace(top * 1e-6, top, 600)]))

    def dominates(self, other: TradeOffCurve, tolerance: float = 1e-9) -> bool:
        """Whether this curve lies above `other` everywhere, so that it is at least as private.

        Two curves are compared through their profiles: f1 >= f2 everywhere if and only if delta1 <= delta2
        everywhere. Both directions of an asymmetric pair are compared.

        Parameters
        ----------
        other : TradeOffCurve
        tolerance : float
            Relative difference of delta that still counts as equal.

        Returns
        -------
        bool

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> pa.gaussian(0.5).dominates(pa.gaussian(1.0))
        True
        >>> pa.laplace(1.0).dominates(pa.gaussian(1.0)), pa.gaussian(1.0).dominates(pa.laplace(1.0))
        (False, False)
        """
        if not isinstance(other, TradeOffCurve):
            raise TypeError(f"other must be a TradeOffCurve, got {type(other).__name__}.")
        grid = np.union1d(self._comparison_grid(), other._comparison_grid())
        pairs = [(self, other), (self.reversed(), other.reversed())]
        absolute = self.precision.absolute + other.precision.absolute
        return all(bool(np.all(a._delta(grid) <= b._delta(grid) * (1 + tolerance) + absolute)) for a, b in pairs)

    def gdp(self) -> float:
        """Smallest mu for which the mechanism is mu-GDP, on the safe side; inf where there is none.

        For every eps the Gaussian curve that meets ``delta(eps)`` is found; mu is the largest of them.

        Returns
        -------
        float

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> round(pa.gaussian(0.7).gdp(), 6)
        0.7
        >>> pa.zero_inflated(pa.gaussian(0.7), 0.01).gdp()
        inf
        """
        from privfit.accounting.gaussian import tight_mu

        return max(tight_mu(self), tight_mu(self.reversed()) if self.reversed() is not self else 0.0)

    def compose(self, *others: TradeOffCurve) -> TradeOffCurve:
        """Curve of this mechanism and the others run independently on the same record.

        Exact for Gaussian curves and for any curve with discrete ones (randomised response); otherwise a
        pessimistic discretisation of the privacy loss, which never overstates privacy.

        Parameters
        ----------
        *others : TradeOffCurve

        Returns
        -------
        TradeOffCurve

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> pa.gaussian(0.3).compose(pa.gaussian(0.4))
        GaussianCurve(mu=0.5)
        """
        from privfit.accounting.composition import compose

        return compose(self, *others)

    def self_compose(self, k: int) -> TradeOffCurve:
        """Curve of `k` independent runs of this mechanism on the same record.

        Parameters
        ----------
        k : int
            Number of runs, at least 1.

        Returns
        -------
        TradeOffCurve

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> pa.gaussian(0.5).self_compose(4)
        GaussianCurve(mu=1.0)
        """
        from privfit.accounting.composition import self_compose

        return self_compose(self, k)

    def plot(self, ax: Axes | None = None, **line: Any) -> Axes:
        """Draw the trade-off curve, with the line of perfect privacy, and return the axes.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.
        **line
            Passed to ``Axes.plot``.

        Returns
        -------
        matplotlib.axes.Axes

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("Agg")
        >>> import privfit.accounting as pa
        >>> pa.gaussian(1.0).plot().get_xlabel()
        'type I error (false-positive rate)'
        """
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(figsize=(4.5, 4.5))
        alpha = np.concatenate([[0.0], np.geomspace(1e-6, 0.02, 60), np.linspace(0.021, 1.0, 300)])
        ax.plot(alpha, self.curve(alpha), **({"label": str(self)} | line))
        if not any(drawn.get_gid() == "perfect privacy" for drawn in ax.lines):
            ax.plot([0, 1], [1, 0], color="0.6", linewidth=0.8, linestyle=":", gid="perfect privacy")
        ax.set(
            xlim=(0, 1),
            ylim=(0, 1),
            aspect="equal",
            xlabel="type I error (false-positive rate)",
            ylabel="type II error (false-negative rate)",
        )
        return ax

    def __getstate__(self) -> dict[str, Any]:
        """The parameters alone: tables are rebuilt when they are needed."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    # --- serialisation --------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain data (JSON-ready) from which `from_dict` rebuilds the curve to the last bit.

        Returns
        -------
        dict

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> pa.gaussian(1.0).to_dict()
        {'curve': 'GaussianCurve', 'version': 1, 'mu': 1.0}
        """
        fields = {f.name: _encode(getattr(self, f.name)) for f in dataclasses.fields(self)}
        return {"curve": type(self).__name__, "version": FORMAT_VERSION, **fields}

    @staticmethod
    def from_dict(data: dict[str, Any]) -> TradeOffCurve:
        """Rebuild a curve from `to_dict`.

        Parameters
        ----------
        data : dict

        Returns
        -------
        TradeOffCurve

        Raises
        ------
        ValueError
            If the data do not describe a curve of a known family and version.

        Examples
        --------
        >>> import privfit.accounting as pa
        >>> pa.TradeOffCurve.from_dict(pa.laplace(0.3).to_dict())
        LaplaceCurve(a=0.3)
        """
        if not isinstance(data, dict) or "curve" not in data:
            raise ValueError("data must be a dictionary written by to_dict, with the key 'curve'.")
        if data.get("version") != FORMAT_VERSION:
            raise ValueError(
                f"version must be {FORMAT_VERSION}, got {data.get('version')!r}; "
                "read the curve with the privfit release that wrote it."
            )
        family = TradeOffCurve.registry.get(data["curve"])
        if family is None:
            raise ValueError(
                f"curve must be one of {', '.join(sorted(TradeOffCurve.registry))}, got {data['curve']!r}."
            )
        names = {f.name for f in dataclasses.fields(family)}
        given = {k: _decode(v) for k, v in data.items() if k not in ("curve", "version")}
        if set(given) != names:
            raise ValueError(f"{data['curve']} needs the keys {sorted(names)}, got {sorted(given)}.")
        return family(**given)

    # --- helpers --------------------------------------------------------------------------------------

    def _shift(self, value: Any, bound: Bound) -> Any:
        error = self.precision.relative * value + self.precision.absolute
        return value + {"upper": 1.0, "lower": -1.0, "estimate": 0.0}[bound] * error


def _like(given: Any, values: Floats) -> Any:
    """A float for a scalar argument, an array otherwise."""
    return float(values) if np.ndim(given) == 0 else values


def _encode(value: Any) -> Any:
    if isinstance(value, TradeOffCurve):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_encode(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        return TradeOffCurve.from_dict(value)
    if isinstance(value, list):
        return tuple(_decode(v) for v in value)
    if value in ("inf", "-inf"):
        return float(value)
    return value


def check_scale(name: str, value: Any, hint: str = "") -> float:
    """Return a strictly positive finite float, or raise (every curve parameter goes through here).

    Examples
    --------
    >>> check_scale("mu", 2)
    2.0
    """
    return check_number(name, value, 0.0, low_open=True, hint=hint)
