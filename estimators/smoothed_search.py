r"""Search of a corrected risk with a smoothed kink: pilot, bandwidth, and bandwidths from wide to narrow.

A wide bandwidth makes the risk smooth and nearly quadratic; each minimum starts the next, narrower one. The pilot is
the corrected minimum of a quadratic loss (least squares): its residuals, without and with noise, set the scale.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.bandwidth import auto_bandwidth, narrowest
from privfit.estimators.least_squares import least_squares
from privfit.estimators.losses.base import IndexLoss
from privfit.estimators.problem import Problem
from privfit.estimators.risk import Risk
from privfit.estimators.solver import Solution, minimise, polish, solve
from privfit.estimators.symbols import Identity, Resolvent

__all__ = ["Pilot", "check_width", "continuation", "resolvents_only"]

Floats = NDArray[np.float64]
_WIDEST = 0.5
_WARM = 30_000
_WARM_ON_DISK = 100_000


@dataclass(frozen=True)
class Pilot:
    """A corrected quadratic fit, and what it says of the scale of the residuals.

    Attributes
    ----------
    theta : ndarray, shape (p,)
    sigma, spread : float
        Standard deviation of the residual without noise, and as released.
    share : float
        Smallest share of signal in a direction of the released columns, within [0.05, 1].

    Examples
    --------
    >>> Pilot(np.zeros(1), 1.0, 1.0, 1.0).sigma
    1.0
    """

    theta: Floats
    sigma: float
    spread: float
    share: float

    @classmethod
    def of(cls, problem: Problem) -> Pilot:
        """Fit a problem that has a quadratic loss, half the squared residual."""
        risk, naive, free = problem.risk, problem.naive, np.zeros(problem.risk.size)
        theta = np.clip(least_squares(risk, 1e-2)[0], -problem.bound, problem.bound)
        spread = np.sqrt(max(2.0 * naive.with_(penalty=free).value(theta), 1e-12))
        sigma = np.sqrt(max(2.0 * risk.with_(penalty=free).value(theta), (0.1 * spread) ** 2))
        share = 1.0
        if risk.corrects:
            share = float(np.linalg.eigvalsh(risk.hessian(theta))[0] / np.linalg.eigvalsh(naive.hessian(theta))[-1])
        return cls(theta, float(sigma), float(spread), min(max(share, 0.05), 1.0))

    def bandwidth(self, risk: Risk, jump: int = 1) -> float:
        """Automatic bandwidth for a loss whose derivative of order `jump` jumps."""
        if not risk.corrects:
            return float(self.sigma * risk.n**-0.4)
        return max(
            auto_bandwidth(g, self.sigma, self.spread, self.share, risk.n, jump) for g in risk.symbols(self.theta)
        )


def check_width(bandwidth: float, problem: Problem) -> None:
    """Refuse a given bandwidth, in units of the response, that is too narrow beside the noise of the residual.

    Raises
    ------
    ValueError
        Below half of `bandwidth.narrowest` at the pilot coefficients.

    Examples
    --------
    >>> check_width.__name__
    'check_width'
    """
    risk, unit = problem.risk, problem.coordinates.response_scale
    if not risk.corrects:
        return
    least = 0.5 * unit * max(narrowest(g) for g in risk.symbols(Pilot.of(problem).theta))
    if bandwidth < least:
        raise ValueError(
            f"bandwidth must be at least {least:.3g} under this noise, got {bandwidth:g}: below 1/300 of the noise "
            "of the residual the corrected loss is not computed exactly. Use bandwidth='auto', or a larger one."
        )


def resolvents_only(risk: Risk) -> bool:
    """Whether every term applies at most one resolvent (zero-inflated noise) and no other operator.

    The corrected score of a loss whose second derivative jumps is then a function; a bare D^2 would put point masses
    into it.

    Examples
    --------
    >>> resolvents_only.__name__
    'resolvents_only'
    """
    terms = [term for stratum in risk.strata for term in stratum.noise.terms]
    return all(
        all(isinstance(factor, Identity | Resolvent) for factor in term.factors)
        and sum(isinstance(factor, Resolvent) for factor in term.factors) <= 1
        for term in terms
    )


def continuation(
    problem: Problem, family: Callable[[float], IndexLoss], bandwidth: float, pilot: IndexLoss
) -> tuple[Solution, Floats]:
    """Minimise by continuation in the bandwidth; returns the solution and the naive fit.

    Parameters
    ----------
    problem : Problem
        With the loss ``family(bandwidth)``.
    family : callable
        Loss at a bandwidth.
    bandwidth : float
        Where to end.
    pilot : IndexLoss
        A quadratic loss, whose naive minimum starts the search.

    Examples
    --------
    >>> continuation.__name__
    'continuation'
    """
    warm = _WARM if problem.risk.held else _WARM_ON_DISK
    few, few_naive = problem.risk.thinned(warm), problem.naive.thinned(warm)
    start = least_squares(few_naive.with_(loss=pilot), 0.0)[0]
    start = np.clip(start, -problem.bound, problem.bound)
    widths = [bandwidth]
    while widths[-1] < _WIDEST:
        widths.append(4.0 * widths[-1])
    naive = corrected = start
    for h in reversed(widths):
        smoothed = family(h)
        naive = minimise(few_naive.with_(loss=smoothed), naive, problem.bound, tolerance=1e-7).theta
        if not few.corrects:
            corrected = naive
            continue
        found = solve(few.with_(loss=smoothed), [corrected, naive], problem.bound, tolerance=1e-7)
        corrected = found.theta if found.interior else corrected
    if few is problem.risk:
        return solve(problem.risk, [corrected, naive], problem.bound), naive
    near = polish(problem.risk, corrected, problem.bound)
    return near or minimise(problem.risk, corrected, problem.bound), naive
