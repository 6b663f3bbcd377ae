r"""Means of non-smooth functions of one noised column: ``argmin_theta E (theta - f(X))^2`` from a release.

X is uniform on (0, 1); f is ReLU(x), 1[0.5, 1](x) or |sin 2 pi x|; the noise is zero-inflated Laplace. The squared loss
makes every estimate an average of one function of each record (k = 1 - delta0, q = lambda^2/2, R the mean over S):

    naive  f(X1)       dr  (f(X1) - k f(X2)) / delta0        exact  (f - k R f)(X1) / delta0
    sdr    f(X1) - k q f''(X2)                                sl    f(X2) - q f''(X2)

f'' is taken almost everywhere, as the two smooth corrections would (0, 0 and -4 pi^2 f): they lose the kinks and are
inconsistent. Bias and standard deviation follow exactly, by quadrature over the density of X1 and X2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

METHODS = ("oracle", "naive", "dr", "sdr", "sl", "exact")
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_W = 2.0 * math.pi


@dataclass(frozen=True)
class Target:
    """A function f, its mean over S (of Laplace scale b), c with ``f'' = c f`` almost everywhere, and its mean."""

    name: str
    f: Callable[[Any], Any]
    smeared: Callable[[Any, float], Any]
    curvature: float
    truth: float


def relu_mean(x: Any, b: float) -> Any:
    return np.maximum(x, 0.0) + 0.5 * b * np.exp(-np.abs(x) / b)


def laplace_cdf(x: Any, b: float) -> Any:
    tail = 0.5 * np.exp(-np.abs(x) / b)
    return np.where(x < 0, tail, 1.0 - tail)


def box_mean(x: Any, b: float) -> Any:
    return laplace_cdf(1.0 - x, b) - laplace_cdf(0.5 - x, b)


def wave_mean(x: Any, b: float) -> Any:
    """Periodic solution of ``h - b^2 h'' = |sin 2 pi x|``."""
    v = np.mod(x, 0.5)
    # cosh((v - 1/4) / b) / sinh(1 / (4 b)) without overflow
    bell = (np.exp(-v / b) + np.exp((v - 0.5) / b)) / -math.expm1(-0.5 / b)
    return (np.sin(_W * v) + _W * b * bell) / (1.0 + (_W * b) ** 2)


TARGETS = (
    Target("ReLU(x)", lambda x: np.maximum(x, 0.0), relu_mean, 0.0, 0.5),
    Target("1[0.5, 1](x)", lambda x: ((x >= 0.5) & (x <= 1.0)).astype(float), box_mean, 0.0, 0.5),
    Target("abs sin(2 pi x)", lambda x: np.abs(np.sin(_W * x)), wave_mean, -(_W**2), 2.0 / math.pi),
)
LAWS = ((0.1, 0.94), (0.05, 1.4))


def weights(target: Target, method: str, delta0: float, scale: float) -> tuple[float, float, float]:
    """Coefficients of f(X1), (R f)(X1) and f(X2) in what a record contributes; for the oracle X1 is X."""
    k, bend = 1.0 - delta0, 0.5 * scale**2 * target.curvature
    return {
        "oracle": (1.0, 0.0, 0.0),
        "naive": (1.0, 0.0, 0.0),
        "dr": (1.0 / delta0, 0.0, -k / delta0),
        "sdr": (1.0, 0.0, -k * bend),
        "sl": (0.0, 0.0, 1.0 - bend),
        "exact": (1.0 / delta0, -k / delta0, 0.0),
    }[method]


def theory(target: Target, method: str, delta0: float, scale: float) -> tuple[float, float]:
    """Mean of what a record contributes, and its standard deviation."""
    f, k = target.f, 1.0 - delta0
    plain, smeared, again = weights(target, method, delta0, scale)
    wide, narrow = scale / math.sqrt(2.0), scale * math.sqrt(delta0 / 2.0)

    def integral(g: Callable[[Any], Any], reach: float, density: Callable[[Any], Any]) -> float:
        # every kink is a multiple of 1/4
        ends = np.arange(math.floor(-4.0 * reach), math.ceil(4.0 * (1.0 + reach)) + 1) / 4.0
        x = (ends[:-1, None] + (_NODES + 1.0) / 8.0).ravel()
        return float(np.sum(np.tile(_WEIGHTS / 8.0, ends.size - 1) * g(x) * density(x)))

    def second(g: Callable[[Any], Any]) -> float:
        return integral(g, 45.0 * wide, lambda x: laplace_cdf(x, wide) - laplace_cdf(x - 1.0, wide))

    def first(g: Callable[[Any], Any]) -> float:
        raw = integral(g, 0.0, np.ones_like)
        return raw if method == "oracle" else delta0 * raw + k * second(g)

    def on_first(x: Any) -> Any:
        return plain * f(x) + smeared * target.smeared(x, narrow)

    mean = first(on_first) + again * second(f)
    crossed = first(lambda x: on_first(x) * target.smeared(x, narrow))  # X2 given X1 is X1 + S
    moment = first(lambda x: on_first(x) ** 2) + 2.0 * again * crossed + again**2 * second(lambda x: f(x) ** 2)
    return mean, math.sqrt(moment - mean**2)


def simulate(delta0: float, scale: float, n: int, replications: int, seed: int) -> dict[tuple[str, str], Any]:
    """Errors of the estimates, shape (replications,), by function and method."""
    rng = np.random.default_rng([seed, n, round(1000 * delta0)])
    errors: dict[tuple[str, str], list[Any]] = {(t.name, m): [] for t in TARGETS for m in METHODS}
    for begun in range(0, replications, 50):
        size = (min(50, replications - begun), n)
        raw = rng.random(size)
        first = raw + rng.laplace(scale=scale / math.sqrt(2.0), size=size) * (rng.random(size) >= delta0)
        second = first + rng.laplace(scale=scale * math.sqrt(delta0 / 2.0), size=size)
        for target in TARGETS:
            at_raw, at_first, at_second = (target.f(x).mean(axis=1) for x in (raw, first, second))
            smeared = target.smeared(first, scale * math.sqrt(delta0 / 2.0)).mean(axis=1)
            for method in METHODS:
                one, two, three = weights(target, method, delta0, scale)
                means = one * (at_raw if method == "oracle" else at_first) + two * smeared + three * at_second
                errors[target.name, method].append(means - target.truth)
    return {key: np.concatenate(found) for key, found in errors.items()}
