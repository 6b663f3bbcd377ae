"""Accounting rows: the Gaussian closed forms against dp-accounting, T_{6,0.5} against simulation."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np
from harness import Row, duration, installed, medians, row
from numpy.typing import NDArray

from privfit.accounting import Budget, calibrate, gaussian

Floats = NDArray[np.float64]

SIGMA, EPSILON, DELTA = 4.0, 1.0, 1e-5
PEER = "dp_accounting"


def exact_delta(mu: float, epsilon: float) -> float:
    """Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu) to 40 digits."""
    from mpmath import mp, mpf, ncdf

    with mp.workdps(60):
        m, e = mpf(mu), mpf(epsilon)
        return float(ncdf(m / 2 - e / m) - mp.exp(e) * ncdf(-m / 2 - e / m))


def peer_delta() -> Callable[[float], float]:
    """delta(eps) of dp-accounting: its Gaussian privacy loss, public and closed form."""
    from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

    return GaussianPrivacyLoss(SIGMA).get_delta_for_epsilon


def versus(
    what: str,
    ours: Callable[[], Any],
    peer: Callable[[], Any] | None,
    error: Any,
    quick: bool,
    goal: float | None = None,
) -> Row:
    """One row of times and relative errors; `error` maps a result to its relative error, `goal` is in seconds."""
    times = medians(ours, *([peer] if peer else []), quick=quick)
    cells = [f"{duration(t)} (error {error(f()):.1e})" for t, f in zip(times, (ours, peer), strict=False) if f]
    ratio = times[0] / times[1] if peer else None
    reached = None if goal is None else times[0] <= goal
    return Row(what, cells[0], cells[1] if peer else "not installed", ratio, duration(goal) if goal else "", reached)


@row
def gaussian_delta_of_one_epsilon(quick: bool) -> Row:
    curve, truth = gaussian(1 / SIGMA), exact_delta(1 / SIGMA, EPSILON)
    peer = peer_delta() if installed(PEER) else None
    return versus(
        "Gaussian delta(1), sigma = 4",
        lambda: curve.delta(EPSILON),
        (lambda: peer(EPSILON)) if peer else None,
        lambda value: abs(value / truth - 1),
        quick,
    )


@row
def gaussian_delta_of_many_epsilons(quick: bool) -> Row:
    count = 200 if quick else 10_000
    epsilons, curve = np.linspace(0, 2, count), gaussian(1 / SIGMA)
    where = np.linspace(0, count - 1, 40).astype(int)
    truth = np.array([exact_delta(1 / SIGMA, e) for e in epsilons[where]])
    peer = peer_delta() if installed(PEER) else None
    return versus(
        f"Gaussian delta at {count:,} epsilons up to delta = {truth[-1]:.0e}",
        lambda: curve.delta(epsilons),
        (lambda: np.array(peer(epsilons.tolist()))) if peer else None,
        lambda values: np.abs(np.asarray(values)[where] / truth - 1).max(),
        quick,
    )


@row
def gaussian_calibration(quick: bool) -> Row:
    """Smallest sigma at (1, 1e-5); the truth by bisection of the 40-digit delta."""
    peer = None
    if installed(PEER):
        from dp_accounting import get_sigma_gaussian

        peer = lambda: get_sigma_gaussian(EPSILON, DELTA)  # noqa: E731
    from scipy.optimize import brentq

    truth = brentq(lambda s: exact_delta(1 / s, EPSILON) - DELTA, 3.0, 5.0, xtol=1e-14, rtol=1e-15)
    return versus(
        "Gaussian sigma at (1, 1e-5)",
        lambda: calibrate(lambda sigma: gaussian(1 / sigma), Budget(EPSILON, DELTA)),
        peer,
        lambda sigma: abs(sigma / truth - 1),
        quick,
        goal=2e-4,
    )


DIM, C = 6, 0.5

COLD = """
import time
import numpy as np, scipy.integrate, scipy.interpolate, scipy.optimize, scipy.special
from privfit.accounting import symmetric_laplace
alpha = np.linspace(0, 1, {count})
start = time.process_time()
symmetric_laplace({dim}, {c}).curve(alpha)
print(time.process_time() - start)
"""


def minus_log_density(radius: Floats) -> Floats:
    """-log of the SL_6 density |x|^-2 K_2(sqrt(2) |x|) up to a constant."""
    from scipy.special import kve

    z = np.sqrt(2) * np.asarray(radius)
    return np.asarray(z - np.log(kve(DIM / 2 - 1, z)) + (DIM / 2 - 1) * np.log(radius))


def simulated_curve(samples: int, alpha: Floats, rng: np.random.Generator) -> Floats:
    """T_{6,c} at `alpha` from the sorted log-likelihood ratios of `samples` draws."""
    noise = np.sqrt(rng.exponential(size=(samples, 1))) * rng.standard_normal((samples, DIM))
    shifted = noise.copy()
    shifted[:, 0] -= C
    size, moved = (minus_log_density(np.linalg.norm(x, axis=1)) for x in (noise, shifted))
    null, alternative = np.sort(size - moved), np.sort(moved - size)
    thresholds = np.quantile(null, 1 - alpha)
    return np.searchsorted(alternative, thresholds) / samples


def exact_points(log_ratios: Floats) -> tuple[Floats, Floats]:
    """Error rates of T_{6,c} by a quadrature over the radius |x|: adaptive, with library functions only.

    On a sphere of radius r the log ratio exceeds t where |x - c e_1| < s(r), that is where the cosine with
    e_1 exceeds (r^2 + c^2 - s^2)/(2 r c); the cosine of a uniform direction is a rescaled beta variable.
    """
    from scipy.integrate import quad
    from scipy.optimize import brentq
    from scipy.stats import beta as beta_law

    def alpha(t: float, sign: float) -> float:
        """P[L > t] for sign 1, and by symmetry Q[L <= t] = P[L >= -t] for sign -1."""

        def conditional(r: float) -> float:
            level = float(minus_log_density(np.float64(r))) - sign * t
            low = float(minus_log_density(np.float64(1e-12)))
            if level <= low:
                return 0.0
            s = brentq(lambda v: float(minus_log_density(np.float64(v))) - level, 1e-12, r + 60, xtol=1e-15)
            cosine = np.clip((r * r + C * C - s * s) / (2 * r * C), -1, 1)
            half = (DIM - 1) / 2
            return float(beta_law.sf((1 + cosine) / 2, half, half))

        def integrand(r: float) -> float:
            return float(np.exp(5 * np.log(r) - minus_log_density(np.float64(r)))) * conditional(r)

        def total(r: float) -> float:
            return float(np.exp(5 * np.log(r) - minus_log_density(np.float64(r))))

        pieces = [0.0, 0.5, 1, 2, 3, 5, 8, 14, 40]
        parts = [
            sum(quad(f, a, b, epsabs=1e-13, limit=400)[0] for a, b in pairwise(pieces)) for f in (integrand, total)
        ]
        return parts[0] / parts[1]

    return (
        np.array([alpha(t, 1.0) for t in log_ratios]),
        np.array([alpha(t, -1.0) for t in log_ratios]),
    )


@row
def symmetric_laplace_curve_from_cold(quick: bool) -> Row:
    from privfit.accounting import symmetric_laplace

    count, samples, repeats = (100, 1000, 1) if quick else (10_000, 100_000, 5)
    code = COLD.format(count=count, dim=DIM, c=C)
    cold = median(
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(repeats)
    )
    alphas, rng = np.linspace(0, 1, count), np.random.default_rng(1)
    (peer,) = medians(lambda: simulated_curve(samples, alphas, rng), quick=quick, repeats=repeats)
    alpha, beta = exact_points(np.array([0.0]) if quick else np.array([-0.3, -0.1, 0.0, 0.1, 0.2, 0.3]))
    ours = np.abs(symmetric_laplace(DIM, C).curve(alpha) - beta).max()
    theirs = np.abs(simulated_curve(samples, alpha, rng) - beta).max()
    return Row(
        f"T_(6,0.5) at {count:,} points from cold",
        f"{duration(cold)} (error {ours:.1e})",
        f"simulation, {samples:,} draws: {duration(peer)} (error {theirs:.1e})",
        cold / peer,
        "50 ms",
        cold <= 0.05,
    )
