"""Functions of a user: plain Laplace noise, and functions whose outputs tell more than they claim."""

import math

import numpy as np

from privfit.accounting import laplace
from privfit.mechanisms.auditing import audit


def noisy(x, n):
    return x + np.random.default_rng().laplace(size=n)


def one_noisy(x):
    return float(x + np.random.default_rng().laplace())


def audited(mechanism, claimed=None, inputs=(0.0, 1.0), samples=5_000, **options):
    return audit(mechanism, claimed=claimed or laplace(1.0), inputs=inputs, samples=samples, **options)


def nan_for_the_second(x, n):
    out = noisy(0.0, n)
    out[: n // 20 if x else 0] = np.nan
    return np.random.default_rng().permutation(out)


def answer(x, n):
    """Randomised response whose epsilon is 2."""
    rng = np.random.default_rng()
    keep = rng.random(n) < 1 / (1 + math.exp(-2.0))
    return ["yes" if own == bool(x) else "no" for own in keep]


def length_tells(x):
    rng = np.random.default_rng()
    return rng.normal(size=2 + (rng.random() < (0.7 if x else 0.3)))


def none_sometimes(x):
    rng = np.random.default_rng()
    return None if x and rng.random() < 0.2 else rng.normal()


def infinite_sometimes(x, n):
    return np.where(np.random.default_rng().random(n) < 0.03, np.inf if x else -np.inf, 0.0)


def atoms_of_zil(x, n):
    rng = np.random.default_rng()
    return x + (rng.random((n, 1)) > 0.1) * rng.normal(size=(n, 2)) * 20
