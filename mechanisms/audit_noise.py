r"""Is this noise that law? Fit of marginals, radius, characteristic function and atom; rows that share noise.

Observed rows z_i lie within h_j of independent draws Z_i of the law, coordinate by coordinate: half a grid step for
rounding to the nearest point. Then with F the law's distribution function

    F(x - h) <= P(z <= x) <= F(x + h),    |cos t'z - cos t'Z| <= sum_j |t_j| h_j,
    Var cos t'Z = (1 + phi(2t))/2 - phi(t)^2,    Var sin t'Z = (1 - phi(2t))/2,

so every null below holds exactly, grid and all. Two independent rows agree with probability at most
m = delta0^2 + (1 - delta0^2) c, c the mass of the likeliest cell; differences of rows i and i + lag have the
characteristic function phi^2 unless noise is shared. Of a sample without repeats by design, row i repeats an earlier
one with probability at most (i - 1) c given the past: the count is at most a sum of independent trials, whose upper
tail lies below that of the binomial law with the same mean (Hoeffding 1956).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.additive import AdditiveLaw
from privfit.mechanisms.audit_laws import cell_mass, is_known, marginal_cdf, radius, radius_cdf
from privfit.mechanisms.audit_report import Planned
from privfit.mechanisms.audit_statistics import Finding, band_test, count_test, excess_test, mean_test

__all__ = ["Sample", "atom_test", "fit_tests", "joint_tests", "sharing_tests"]

Floats = NDArray[np.float64]

NUMERICAL = 1e-9
SIZES = (0.5, 0.7, 1.0, 1.5, 2.0, 3.0)
SHARED = "rows share noise, or are not independent"


@dataclass(frozen=True)
class Sample:
    """Rows of noise, and how precisely they are known.

    Attributes
    ----------
    law : AdditiveLaw
    z : ndarray of shape (n, dim)
    blur : ndarray of shape (dim,)
        Bound of |z - Z|.
    slack : float
        Total variation between the sampler and the law, per row.
    name : str
        Of the columns, for the report.
    """

    law: AdditiveLaw
    z: Floats
    blur: Floats
    slack: float
    name: str

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return int(self.z.shape[1])

    @property
    def cell(self) -> float:
        """Bound of the mass of the likeliest cell, given that there is noise; 2^-40 for floats off any grid."""
        return max(cell_mass(self.law, self.blur / self.law.scales(self.dim)), 2.0**-40)

    @property
    def match(self) -> float:
        """Bound of the probability that two independent rows agree."""
        return self.law.exact_fraction**2 + (1 - self.law.exact_fraction**2) * self.cell + 2 * self.slack


def fit_tests(sample: Sample) -> list[Planned]:
    """Return tests of every marginal and of the radius.

    Examples
    --------
    >>> from privfit.mechanisms import Gaussian
    >>> z = np.random.default_rng(0).normal(size=(5000, 2))
    >>> [t.run(1e-6).alarm for t in fit_tests(Sample(Gaussian(1.0), z, np.zeros(2), 0.0, "x"))]
    [False, False, False]
    """
    if not is_known(sample.law):
        return []
    meaning = "the noise is not that of the law: another scale or shape"
    planned = [
        Planned(f"{sample.name}: distribution of coordinate {j + 1}", meaning, partial(_marginal, sample, j))
        for j in range(sample.dim)
    ]
    if sample.dim > 1:
        meaning = "coordinates do not belong together as the law says"
        planned.append(Planned(f"{sample.name}: size of the noise vector", meaning, partial(_size, sample)))
    return planned


def _marginal(sample: Sample, j: int, level: float) -> Finding:
    scale = sample.law.scales(sample.dim)[j]
    cdf = marginal_cdf(sample.law)
    return band_test(sample.z[:, j] / scale, cdf, sample.blur[j] / scale, sample.slack + NUMERICAL, level)


def _size(sample: Sample, level: float) -> Finding:
    blur = float(radius(sample.law, sample.blur[None])[0])
    cdf = radius_cdf(sample.law, sample.dim)
    return band_test(radius(sample.law, sample.z), cdf, blur, sample.slack + NUMERICAL, level)


def atom_test(sample: Sample, exact: int, low: float, high: float) -> Planned:
    """Return the test of the number of rows that came out on the grid point of their input.

    Parameters
    ----------
    sample : Sample
    exact : int
        Their number.
    low, high : float
        Bounds of P(noise rounds to nothing), given that there is noise.

    Examples
    --------
    >>> from privfit.mechanisms import ZeroInflatedLaplace
    >>> sample = Sample(ZeroInflatedLaplace(1.0, 0.1), np.zeros((1000, 1)), np.zeros(1), 0.0, "x")
    >>> [atom_test(sample, n, 0.0, 0.0).run(1e-6).alarm for n in (100, 200)]
    [False, True]
    """
    share = sample.law.exact_fraction
    least, most = share + (1 - share) * low - sample.slack, share + (1 - share) * high + sample.slack
    meaning = "more, or fewer, rows come out exactly than the law says"
    return Planned(
        f"{sample.name}: rows without noise", meaning, partial(count_test, exact, len(sample.z), least, most)
    )


def joint_tests(law: Any, scales: Floats, z: Floats, blur: Floats, slack: float) -> list[Planned]:
    """Return tests of E cos(t'Z) and E sin(t'Z) = 0 at six t, drawn independently of the sample.

    Parameters
    ----------
    law : Law
        With a characteristic function; a Product is looked at as a whole, so parts that share noise are seen.
    scales, blur : ndarray of shape (dim,)
    z : ndarray of shape (n, dim)
    slack : float

    Examples
    --------
    >>> from privfit.mechanisms import Gaussian
    >>> z = np.random.default_rng(0).normal(size=(5000, 1))
    >>> any(t.run(1e-6).alarm for t in joint_tests(Gaussian(1.0), np.ones(1), z, np.zeros(1), 0.0))
    False
    """
    return list(_joint(law, scales, z, blur, slack))


def _joint(law: Any, scales: Floats, z: Floats, blur: Floats, slack: float) -> Iterator[Planned]:
    dim = z.shape[1]
    directions = np.random.default_rng().normal(size=(len(SIZES), dim))
    directions[0] = 1.0
    meaning = "the joint law of the coordinates is not the stated one"
    for size, direction in zip(SIZES, directions, strict=True):
        t = size * direction / np.linalg.norm(direction) / scales
        once, twice = float(law.characteristic_function(t)), float(law.characteristic_function(2 * t))
        bias = float(np.abs(t) @ blur)
        waves = (np.cos, "cos", once, (1 + twice) / 2 - once**2), (np.sin, "sin", 0.0, (1 - twice) / 2)
        for wave, name, mean, variance in waves:
            run = partial(_wave, wave, z, t, mean, variance, bias, slack)
            yield Planned(f"characteristic function, {name}, |t| = {size:g}", meaning, run)


def _wave(
    wave: Any, z: Floats, t: Floats, mean: float, variance: float, bias: float, slack: float, level: float
) -> Finding:
    return mean_test(wave(z @ t), mean, variance, bias, slack, level)


def sharing_tests(sample: Sample, rows: Floats, again: Floats | None, lags: tuple[int, ...]) -> list[Planned]:
    """Return tests that no two rows, and no two releases, share noise.

    Parameters
    ----------
    sample : Sample
        Its law and precision.
    rows : ndarray of shape (n, dim)
        Noise of one release of equal inputs.
    again : ndarray of shape (n, dim), optional
        Noise of a second release of the same inputs.
    lags : tuple of int
        Distances of rows to look at: neighbours, and rows of different blocks.

    Examples
    --------
    >>> from privfit.mechanisms import Gaussian
    >>> z = np.random.default_rng(0).normal(size=(2000, 2))
    >>> sample = Sample(Gaussian(1.0), z, np.zeros(2), 0.0, "x")
    >>> [any(t.run(1e-6).alarm for t in sharing_tests(sample, z, a, (1,))) for a in (z[::-1], z)]
    [False, True]
    """
    name = sample.name
    pairs = [
        (f"{name}: rows {lag} apart{', from row ' + str(start) if start else ''}", *_apart(rows, lag, start))
        for lag in lags
        for start in (0, lag)
        if len(rows) >= 2 * lag + start
    ]
    if again is not None:
        pairs.append((f"{name}: two releases", rows, again))
    planned: list[Planned] = []
    for label, a, b in pairs:
        if is_known(sample.law):
            planned.append(Planned(f"{label}, equal", SHARED, partial(_equal, sample, a, b)))
        planned.append(Planned(f"{label}, dependent", SHARED, partial(_dependent, sample, a, b)))
    if is_known(sample.law):
        planned.append(Planned(f"{name}: repeated rows", SHARED, partial(_repeats, sample, rows)))
    return planned


def _apart(rows: Floats, lag: int, start: int) -> tuple[Floats, Floats]:
    """Disjoint pairs of rows `lag` apart, which are independent of each other."""
    first = np.arange(start, len(rows) - lag)
    first = first[(first - start) % (2 * lag) < lag]
    return rows[first], rows[first + lag]


def _equal(sample: Sample, a: Floats, b: Floats, level: float) -> Finding:
    return excess_test(int((a == b).all(axis=1).sum()), len(a), sample.match, level)


def _dependent(sample: Sample, a: Floats, b: Floats, level: float) -> Finding:
    scales, law = sample.law.scales(sample.dim), sample.law
    t = np.full(sample.dim, 1.5 / np.sqrt(sample.dim)) / scales
    once, twice = float(law.characteristic_function(t)) ** 2, float(law.characteristic_function(2 * t)) ** 2
    wave = np.cos((a - b) @ t)
    bias = 2 * float(np.abs(t) @ sample.blur)
    return mean_test(wave, once, (1 + twice) / 2 - once**2, bias, 2 * sample.slack, level)


def _repeats(sample: Sample, rows: Floats, level: float) -> Finding:
    """Count repeats among the first rows that have noise, as many as the grid has room for."""
    noisy = rows
    if sample.law.exact_fraction:
        noisy = rows[(np.abs(rows) > sample.blur).any(axis=1)]
    left_out = cell_mass(sample.law, 2 * sample.blur / sample.law.scales(sample.dim))
    chance = sample.cell / (1 - left_out)
    few = noisy[: max(2, min(len(noisy), int(0.25 / chance)))]
    count = len(few)
    repeats = count - len(np.unique(few, axis=0))
    mean = min(1.0, (count - 1) * chance / 2 + sample.slack)
    found = excess_test(repeats, count, mean, level)
    return Finding(found.statistic, found.bound, found.alarm and repeats >= count * mean + 1)
