"""Accounting rows beyond the closed forms: noise scale of symmetric Laplace noise, its profile, and import time."""

from __future__ import annotations

import os
import subprocess
import sys
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
from bench_accounting import DELTA, DIM, EPSILON
from harness import Row, duration, installed, medians, row

from privfit.accounting import Budget, calibrate, symmetric_laplace, symmetric_laplace_limit

COLD_CALIBRATION = """
import time
import numpy as np, scipy.integrate, scipy.interpolate, scipy.optimize, scipy.special
from privfit.accounting import Budget, calibrate, symmetric_laplace
start = time.process_time()
calibrate(lambda scale: symmetric_laplace({dim}, 1 / scale), Budget({epsilon}, {delta}))
print(time.process_time() - start)
"""

COLD_IMPORT = """
import time
import {package}
print(time.process_time())
"""


def cold(code: str, repeats: int) -> float:
    """Median of the seconds that a fresh interpreter prints, with compiled bytecode as an installed package has it."""
    command = [sys.executable, "-c", code]
    with TemporaryDirectory() as cache:
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = cache

        def seconds() -> float:
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
            return float(done.stdout)

        seconds()
        return median(seconds() for _ in range(repeats))


def needed_c() -> float:
    """The shift c with delta(1) = 1e-5 for SL_6: Q[L > 1] - e P[L > 1] by nested adaptive quadrature, library only."""
    from scipy.integrate import quad
    from scipy.optimize import brentq
    from scipy.special import kve

    def log_density(radius: float) -> float:
        z = np.sqrt(2) * radius
        return float(np.log(kve(DIM / 2 - 1, z)) - z - (DIM / 2 - 1) * np.log(radius))

    norm = quad(lambda r: np.exp(log_density(r)) * r ** (DIM - 1), 0, 60, limit=400)[0]
    sphere = quad(lambda a: np.sin(a) ** (DIM - 2), 0, np.pi)[0]

    def delta(c: float) -> float:
        def on_sphere(radius: float) -> float:
            here = log_density(radius)

            def excess(angle: float) -> float:
                other = np.sqrt(radius**2 + c**2 + 2 * radius * c * np.cos(angle))
                return max(-np.expm1(EPSILON - here + log_density(other)), 0.0) * np.sin(angle) ** (DIM - 2)

            return quad(excess, 0, np.pi, epsabs=0, epsrel=1e-9, limit=200)[0]

        # the loss reaches 1 only where the sphere comes 1.28 times as close to Q as to P, within 3.6 c
        inner = lambda u: np.exp(log_density(np.exp(u)) + DIM * u) * on_sphere(np.exp(u))  # noqa: E731
        return quad(inner, np.log(c) - 14, np.log(c) + 1.3, epsabs=0, epsrel=1e-8, limit=400)[0] / (norm * sphere)

    return float(brentq(lambda log_c: np.log(delta(np.exp(log_c)) / DELTA), np.log(0.005), np.log(0.008), xtol=1e-8))


@row
def symmetric_laplace_calibration_from_cold(quick: bool) -> Row:
    """No other package knows this noise; at delta = 1e-5 a simulation would need 1e9 draws for two digits."""
    seconds = cold(COLD_CALIBRATION.format(dim=DIM, epsilon=EPSILON, delta=DELTA), 1 if quick else 5)
    scale = calibrate(lambda s: symmetric_laplace(DIM, 1 / s), Budget(EPSILON, DELTA))
    error = "" if quick else f" (error {abs(scale * np.exp(needed_c()) - 1):.1e})"
    peer = "none: no package has this noise"
    what = f"SL_{DIM} scale at ({EPSILON:g}, 1e-5) from cold"
    return Row(what, f"{duration(seconds)}{error}", peer, None, "50 ms", seconds <= 0.05)


@row
def limit_profile_of_many_epsilons(quick: bool) -> Row:
    """The closed profile against its own definition at 40 digits."""
    from mpmath import mp, mpf

    count = 200 if quick else 10_000
    epsilons, curve = np.linspace(0, 20, count), symmetric_laplace_limit(0.5)
    (seconds,) = medians(lambda: curve.delta(epsilons), quick=quick)
    where = np.linspace(0, count - 1, 20).astype(int)
    with mp.workdps(40):
        truth = [1 - mp.exp((mpf(e) - mp.sqrt(mpf(e) ** 2 + mpf(1) / 2)) / 2) for e in epsilons[where]]
        error = max(abs(float(mpf(v) / t - 1)) for v, t in zip(curve.delta(epsilons)[where], truth, strict=True))
    return Row(f"limit profile at {count:,} epsilons", f"{duration(seconds)} (error {error:.1e})", "none")


@row
def import_time(quick: bool) -> Row:
    repeats = 1 if quick else 7
    ours = cold(COLD_IMPORT.format(package="privfit.accounting"), repeats)
    peer = cold(COLD_IMPORT.format(package="dp_accounting"), repeats) if installed("dp_accounting") else None
    cell = "not installed" if peer is None else f"dp_accounting: {duration(peer)}"
    ratio = None if peer is None else ours / peer
    return Row("import of the accounting layer", duration(ours), cell, ratio, "250 ms", ours <= 0.25)
