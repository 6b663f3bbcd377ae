"""The two models of the demo, each fitted to raw data and to a release, reduced to what the demo shows.

Coefficients are multiplied by the declared range of their column: the change from its lower to its upper
bound, which is free of the column's unit and can be drawn on one axis.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.figures import Intervals

__all__ = ["FEATURES", "QUANTILE_FEATURES", "RESPONSE", "TARGET", "DemoFit", "fit_raw", "fit_released"]

Floats = NDArray[np.float64]

FEATURES = ("age", "education_num", "hours_per_week")
QUANTILE_FEATURES = ("age", "education_num")
RESPONSE, TARGET = "hours_per_week", "income"
MODELS = ("logistic", "median")


@dataclass(frozen=True, eq=False)
class DemoFit:
    """One fit of the demo.

    Attributes
    ----------
    names : tuple of str
        Columns, without the intercept.
    estimate, error, lower, upper : ndarray, shape (p,)
        Over the declared ranges; the interval is the 95 % one.
    notes : tuple of str
        What the library warned about.
    factor, worth : float
        Growth of the standard errors, and the number of raw records the release is worth.
    bandwidth : float or None
        Of the smoothed median, in hours.

    Examples
    --------
    >>> one = np.ones(1)
    >>> fit = DemoFit(("age",), 2 * one, 0.5 * one, one, 3 * one, (), 1.0, 10.0, None)
    >>> fit.covers(one + 1), fit.clear
    (1, ['age'])
    """

    names: tuple[str, ...]
    estimate: Floats
    error: Floats
    lower: Floats
    upper: Floats
    notes: tuple[str, ...]
    factor: float
    worth: float
    bandwidth: float | None

    @property
    def usable(self) -> bool:
        """Whether the library gave standard errors and no warning."""
        return bool(np.isfinite(self.error).all()) and not self.notes

    @property
    def intervals(self) -> Intervals:
        """What the figure draws."""
        return Intervals(self.estimate, self.lower, self.upper)

    @property
    def clear(self) -> list[str]:
        """Columns whose interval is finite and excludes zero."""
        apart = (self.lower > 0) | (self.upper < 0)
        return [name for name, clear in zip(self.names, apart, strict=True) if clear]

    def covers(self, truth: Floats) -> int:
        """Return how many finite intervals contain the given values."""
        inside = np.isfinite(self.error) & (self.lower <= truth) & (truth <= self.upper)
        return int(inside.sum())


def fit_raw(
    data: Mapping[str, NDArray[Any]], ranges: Mapping[str, float], model: str, bandwidth: Any = "auto"
) -> DemoFit:
    """Fit one model to the raw data: the oracle that only the data holder could compute.

    Examples
    --------
    >>> fit_raw.__name__
    'fit_raw'
    """
    names = FEATURES if model == "logistic" else QUANTILE_FEATURES
    matrix = np.column_stack([np.asarray(data[name], float) for name in names])
    response = data[TARGET] if model == "logistic" else np.asarray(data[RESPONSE], float)
    fit = _model(model, "exact", bandwidth)
    return _reduce(fit, lambda: fit.fit(matrix, response), names, ranges)


def fit_released(release: Any, ranges: Mapping[str, float], model: str, correction: str) -> DemoFit:
    """Fit one model to a release, corrected or naively.

    Examples
    --------
    >>> fit_released.__name__
    'fit_released'
    """
    names = FEATURES if model == "logistic" else QUANTILE_FEATURES
    target = TARGET if model == "logistic" else RESPONSE
    fit = _model(model, correction, "auto")
    return _reduce(fit, lambda: fit.fit_release(release, target=target, features=list(names)), names, ranges)


def _model(model: str, correction: str, bandwidth: Any) -> Any:
    from privfit.estimators import LogisticRegression, QuantileRegression

    if model == "logistic":
        return LogisticRegression(correction=correction)
    return QuantileRegression(0.5, correction=correction, bandwidth=bandwidth)


def _reduce(fit: Any, run: Callable[[], Any], names: Sequence[str], ranges: Mapping[str, float]) -> DemoFit:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        run()
    notes = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
    unit = np.array([ranges[name] for name in names])
    interval = fit.conf_int(0.95)[1:] * unit[:, None]
    bandwidth = fit.diagnostics_.get("bandwidth")
    if fit.correction == "exact" and fit.noise_.noisy and bandwidth and bandwidth > ranges[RESPONSE] / 2:
        notes.append(
            f"the noise forces a smoothing bandwidth of {bandwidth:.0f} hours, more than half of the "
            "declared range of the response: this is no longer a statement about its median."
        )
    cost = fit.efficiency_
    return DemoFit(
        names=tuple(names),
        estimate=np.asarray(fit.params_[1:] * unit),
        error=np.asarray(fit.bse_[1:] * unit),
        lower=interval[:, 0],
        upper=interval[:, 1],
        notes=tuple(notes),
        factor=float(cost.overall),
        worth=float(cost.n_effective),
        bandwidth=None if bandwidth is None else float(bandwidth),
    )
