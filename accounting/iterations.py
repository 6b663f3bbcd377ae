r"""Noise for subsampled iterations (private gradient descent): the least sigma for a target after T steps.

A step adds N(0, sigma^2 I) to the sum of contributions that are clipped to norm C each, over a random sample. If
neighbouring tables add or remove a record (Poisson sampling) the sum moves by at most C, so a step is the
subsample of the Gaussian mechanism with mu = C/sigma; if they replace one (a sample of fixed size) it moves by at
most 2 C and mu = 2 C/sigma. The noise multiplier z = sigma/C is solved for:

    z = min { z : subsample(G_(s/z), rate) composed T times meets the target },      s = 1 or 2

The search starts where the central limit theorem puts it, rate sqrt(T (e^(mu^2) - 1)) = mu of the target (Bu, Dong,
Long & Su 2020); that number only starts the search, the answer is judged by the certified composition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from privfit.accounting.base import TradeOffCurve
from privfit.accounting.calibration import Target, as_target, calibrate
from privfit.accounting.gaussian import gaussian
from privfit.accounting.relation import ADD_OR_REMOVE, REPLACE_ONE
from privfit.accounting.subsampling import subsample
from privfit.accounting.validation import check_choice, check_integer, check_number

__all__ = ["IterationNoise", "calibrate_iterations"]

SENSITIVITY = {"poisson": (1.0, ADD_OR_REMOVE), "without_replacement": (2.0, REPLACE_ONE)}


@dataclass(frozen=True)
class IterationNoise:
    """Noise of every step, by all the names it goes by (see `calibrate_iterations`).

    Attributes
    ----------
    noise_multiplier : float
        sigma / clip: what DP-SGD libraries call the noise multiplier.
    sigma : float
        Standard deviation of the noise added to each coordinate of the sum (not the mean) of a sample's clipped
        contributions.
    clip : float
        Largest norm C of one record's contribution.
    rate : float
    iterations : int
    scheme : {"poisson", "without_replacement"}
    """

    noise_multiplier: float
    clip: float
    rate: float
    iterations: int
    scheme: str
    relation: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "relation", SENSITIVITY[self.scheme][1])

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise, noise_multiplier * clip."""
        return self.noise_multiplier * self.clip

    @property
    def sensitivity(self) -> float:
        """Largest change of the sum between neighbours: clip to add or remove a record, twice it to replace one."""
        return SENSITIVITY[self.scheme][0] * self.clip

    @property
    def curve(self) -> TradeOffCurve:
        """Trade-off curve of all iterations together."""
        return _after(self.noise_multiplier, self.rate, self.iterations, self.scheme)


def _after(multiplier: float, rate: float, iterations: int, scheme: str) -> TradeOffCurve:
    step = gaussian(SENSITIVITY[scheme][0] / multiplier)
    return subsample(step, rate, scheme).self_compose(iterations)


def calibrate_iterations(
    target: Target | TradeOffCurve,
    *,
    rate: float,
    iterations: int,
    clip: float = 1.0,
    scheme: str = "poisson",
    rtol: float = 1e-6,
) -> IterationNoise:
    """Smallest Gaussian noise for a number of iterations on random samples of the records.

    Parameters
    ----------
    target : Budget, GDP, Advantage, ErrorRates or TradeOffCurve
        What all iterations together must meet; a curve only with ``rate=1``.
    rate : float
        Share of the records in a sample, in (0, 1].
    iterations : int
        Number of steps: epochs / rate.
    clip : float
        Norm to which a record's contribution (its gradient) is clipped.
    scheme : {"poisson", "without_replacement"}
        "poisson": each record enters a sample independently; neighbours add or remove a record.
        "without_replacement": samples of a fixed size; neighbours replace a record, so sensitivity is 2 clip.
        Batches cut from one shuffled pass over the data are neither, and have no guarantee from here.
    rtol : float
        Relative tolerance of the noise.

    Returns
    -------
    IterationNoise
        Its ``noise_multiplier`` is relative to the clipping norm, its ``sigma`` absolute.

    Raises
    ------
    ValueError, TypeError
        If a parameter is outside its range, no noise meets the target, or a curve is the target of subsamples.

    Examples
    --------
    >>> from privfit.accounting.calibration import Budget
    >>> found = calibrate_iterations(Budget(1.0, 1e-5), rate=1.0, iterations=4, clip=0.5)
    >>> round(found.noise_multiplier, 4), round(found.sigma, 4), found.relation
    (7.4613, 3.7306, 'add or remove one record')
    """
    check_choice("scheme", scheme, SENSITIVITY)
    share = check_number("rate", rate, 0.0, 1.0, low_open=True, hint="It is the share of the records in a sample.")
    count = check_integer("iterations", iterations, 1, 10_000_000)
    norm = check_number("clip", clip, 0.0, low_open=True, hint="It is the largest norm of one record's contribution.")
    if share < 1 and isinstance(getattr(as_target(target), "curve", None), TradeOffCurve):
        # their far tails, which nobody asks about, would decide, at seconds for each of dozens of compositions
        raise ValueError(
            "target must be a Budget, GDP, Advantage or ErrorRates for rate < 1, got a curve; ask for a point of it, "
            "such as Budget(1.0, curve.delta(1.0)), or use rate=1."
        )
    # With full batches, exactly; otherwise a guess that saves a few compositions.
    mu = 1 / calibrate(lambda size: gaussian(1 / size), target)
    start = SENSITIVITY[scheme][0] / math.sqrt(math.log1p((mu / share) ** 2 / count))
    multiplier = calibrate(lambda z: _after(z, share, count, scheme), target, rtol=rtol, start=start)
    return IterationNoise(multiplier, norm, share, count, scheme)
