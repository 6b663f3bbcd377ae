"""Coverage of intervals, and the raw-data standard errors that a release predicts: tables by simulation.

``python benchmarks/inference_tables.py`` writes a page of tables, one for each seed; ``--quick`` runs few replications,
as a test of the tables and not of the library.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from privfit.estimators import LinearRegression, LogisticRegression, QuantileRegression
from privfit.estimators.huber_regression import HuberRegression
from privfit.estimators.poisson_regression import PoissonRegression
from privfit.mechanisms import Gaussian, SymmetricLaplace, ZeroInflatedLaplace

HERE = Path(__file__).parent
FREE = "no assumption"
PAGE = """# Intervals and raw-data errors, by simulation

Made by `python benchmarks/inference_tables.py {command}`

Two columns with noise and an intercept. Each row is a model, a noise law and n:

* a kind of interval ("sandwich": `conf_int()`): share of 95 % intervals that hold the true coefficient, in %, all
  coefficients together, ± one Monte Carlo error;
* raw error: the standard error of the raw data as the release estimates it, over the one that fits to the raw data
  report; mean ± standard deviation over replications, of the coefficient whose mean is worst;
* raw / actual: the standard error that raw fits report, over the spread of these fits;
* free: how often that estimate needed no assumption; lost: fits without finite standard errors, which are in no other
  column.
"""


@dataclass(frozen=True)
class Case:
    """A model, its data and a noise law."""

    name: str
    draw: Callable[[np.random.Generator, int], tuple[Any, Any]]
    estimator: Callable[[Any], Any]
    truth: tuple[float, ...]
    law: Any


def columns(rng: np.random.Generator, n: int) -> Any:
    """Uniform columns on [-1, 1]."""
    return rng.uniform(-1, 1, (n, 2))


def linear(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    x = columns(rng, n)
    return x, 1 + x @ [1.0, -0.5] + 0.7 * rng.normal(size=n)


def uneven(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Errors whose variance grows with the square of the first column."""
    x = columns(rng, n)
    return x, 1 + x @ [1.0, -0.5] + np.sqrt(0.1 + 1.5 * x[:, 0] ** 2) * rng.normal(size=n)


def logistic(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    x = columns(rng, n)
    return x, (rng.random(n) < 1 / (1 + np.exp(-0.3 - x @ [1.0, -0.5]))).astype(int)


def counts(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Counts whose variance is twice their mean at the mean rate (a gamma mixture)."""
    x = columns(rng, n)
    rate = np.exp(0.7 + x @ [0.6, -0.3])
    return x, rng.poisson(rate * rng.gamma(2.0, 0.5, n)).astype(float)


def noised(rng: np.random.Generator, x: Any, law: Any) -> Any:
    """Add the noise, by its definition and not by the library's sampler."""
    n, d = x.shape
    scale = float(law.scale)
    if isinstance(law, Gaussian):
        return x + scale * rng.normal(size=(n, d))
    noise = scale * np.sqrt(rng.exponential(size=(n, 1))) * rng.normal(size=(n, d))
    if isinstance(law, ZeroInflatedLaplace):
        noise *= rng.random((n, 1)) >= law.delta0
    return x + noise


def cases() -> list[Case]:
    """Models by laws."""
    sl, zil, strong = SymmetricLaplace(0.3), ZeroInflatedLaplace(0.5, 0.2), SymmetricLaplace(0.6)
    models: list[tuple[str, Any, Any, tuple[float, ...], tuple[Any, ...]]] = [
        ("linear", linear, lambda law: LinearRegression(noise=law), (1.0, 1.0, -0.5), (Gaussian(0.3), sl, zil, strong)),
        ("linear, uneven", uneven, lambda law: LinearRegression(noise=law), (1.0, 1.0, -0.5), (Gaussian(0.3), sl, zil)),
        ("logistic", logistic, lambda law: LogisticRegression(noise=law), (0.3, 1.0, -0.5), (sl, zil, strong)),
        ("Huber", linear, lambda law: HuberRegression(noise=law), (1.0, 1.0, -0.5), (sl, zil)),
        ("Poisson", counts, lambda law: PoissonRegression(noise=law), (0.7, 0.6, -0.3), (sl, zil)),
        ("median", linear, lambda law: QuantileRegression(0.5, noise=law), (1.0, 1.0, -0.5), (sl, zil)),
        ("median, uneven", uneven, lambda law: QuantileRegression(0.5, noise=law), (1.0, 1.0, -0.5), (zil,)),
    ]
    return [Case(name, draw, build, truth, law) for name, draw, build, truth, laws in models for law in laws]


@dataclass(frozen=True)
class Found:
    """What the replications of a case gave."""

    covered: dict[str, Any]
    predicted: Any
    reported: Any
    actual: Any
    free: float
    lost: int


def simulate(case: Case, n: int, replications: int, seed: int, bootstrap: int = 0) -> Found:
    """Fit release and raw data again and again; intervals that do not exist count as lost, not as covering."""
    rng = np.random.default_rng([seed, n])
    truth = np.array(case.truth)
    covered: dict[str, list[Any]] = {}
    predicted, reported, estimates, free, lost = [], [], [], 0, 0
    for _ in range(replications):
        x, y = case.draw(rng, n)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = case.estimator(case.law).fit(noised(rng, x, case.law), y, keep_records=bootstrap > 0)
            if not np.isfinite(fit.bse_).all():
                lost += 1
                continue
            raw = case.estimator(None).fit(x, y)
            intervals = {"sandwich": fit.conf_int()}
            if bootstrap:
                for curvature in ("fixed", "estimated"):
                    drawn = fit.bootstrap(bootstrap, curvature=curvature, random_state=rng)
                    for kind in ("studentised", "percentile"):
                        intervals[f"{kind[:7]}. {curvature}"] = drawn.conf_int(kind=kind)
        for kind, ends in intervals.items():
            covered.setdefault(kind, []).append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
        reported.append(raw.bse_)
        estimates.append(raw.params_)
        if np.isfinite(fit.efficiency_.overall):
            predicted.append(fit.bse_ / fit.efficiency_.factors)
            free += FREE in fit.efficiency_.assumption
    done = {kind: np.array(hits) for kind, hits in covered.items()}
    actual = np.std(estimates, axis=0, ddof=1)
    return Found(done, np.array(predicted), np.array(reported), actual, free / max(len(predicted), 1), lost)


def _share(hits: Any) -> str:
    """Mean coverage in %, with a Monte Carlo error that keeps the coefficients of a fit together."""
    each = hits.mean(axis=1)
    return f"{100 * each.mean():.1f} ± {100 * each.std() / np.sqrt(len(each)):.1f}"


def _cells(case: Case, n: int, found: Found) -> list[str]:
    ratio = found.predicted / found.reported.mean(axis=0)
    worst = np.abs(ratio.mean(axis=0) - 1).argmax()
    raw = found.reported.mean(axis=0)[worst] / found.actual[worst]
    kinds = [_share(hits) for hits in found.covered.values()]
    predicted = f"{ratio.mean(axis=0)[worst]:.2f} ± {ratio.std(axis=0)[worst]:.2f}"
    return [case.name, str(case.law), f"{n:,}", *kinds, predicted, f"{raw:.2f}", f"{found.free:.0%}", f"{found.lost}"]


def main(arguments: list[str] | None = None) -> str:
    """Write the tables as a page and return it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few replications: checks that the tables run")
    parser.add_argument("--replications", type=int, default=400)
    parser.add_argument("--bootstrap", type=int, default=399, help="replications of the bootstrap, 0 for none")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 4000])
    parser.add_argument("--output", type=Path, default=HERE / "inference_results.md", help="where the page goes")
    options = parser.parse_args(arguments)
    replications = 5 if options.quick else options.replications
    sizes = " ".join(map(str, options.sizes))
    command = f"--replications {replications} --bootstrap {options.bootstrap} --sizes {sizes}"
    lines = [PAGE.format(command=command)]
    with threadpool_limits(1):
        for seed in options.seeds:
            lines.append(f"\n## Seed {seed}, {replications} replications\n")
            for place, (case, n) in enumerate((case, n) for case in cases() for n in options.sizes):
                found = simulate(case, n, replications, seed, options.bootstrap)
                if not place:
                    head = ["model", "noise", "n", *found.covered, "raw error", "raw / actual", "free", "lost"]
                    lines += [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
                lines.append(f"| {' | '.join(_cells(case, n, found))} |")
                print(lines[-1], flush=True)
    page = "\n".join(lines) + "\n"
    options.output.write_text(page, encoding="utf-8")
    return page


if __name__ == "__main__":
    main()
