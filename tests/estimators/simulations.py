"""Plain-numpy simulations of released data, independent of the library's own samplers."""

import numpy as np


def truncated_normal(rng, shape):
    """Standard normal conditioned on [-1, 1], by rejection."""
    out = rng.normal(size=shape)
    while (bad := np.abs(out) > 1).any():
        out[bad] = rng.normal(size=bad.sum())
    return out


def laplace_noise(rng, n, d, scale, shape=1):
    """Symmetric (generalised) Laplace rows: one Gamma(shape)/shape variable a row."""
    w = rng.gamma(shape, 1.0 / shape, size=(n, 1))
    return np.asarray(scale) * np.sqrt(w) * rng.normal(size=(n, d))


def zil_noise(rng, n, d, scale, delta0):
    """Zero-inflated rows."""
    return laplace_noise(rng, n, d, scale) * (rng.random((n, 1)) >= delta0)


def logistic_data(rng, n, beta, x=None):
    """Columns and 0/1 labels of a logistic model without intercept."""
    x = truncated_normal(rng, (n, len(beta))) if x is None else x
    return x, (rng.random(n) < 1 / (1 + np.exp(-x @ beta))).astype(int)


def ball_data(rng, n, d, radius):
    """Uniform points of a ball."""
    g = rng.normal(size=(n, d))
    return radius * g / np.linalg.norm(g, axis=1, keepdims=True) * rng.random((n, 1)) ** (1 / d)


def noise_of(law, rng, n, d):
    """Rows of noise of a law from privfit.mechanisms, drawn with plain numpy."""
    kind = type(law).__name__
    if kind == "ZeroInflatedLaplace":
        return zil_noise(rng, n, d, law.scale, law.delta0)
    if kind == "Laplace":
        return law.scale * rng.laplace(size=(n, d))
    if kind == "Gaussian":
        return law.scale * rng.normal(size=(n, d))
    return laplace_noise(rng, n, d, law.scale, law.shape)


def flipped(rng, codes, classes, epsilon):
    """Labels 0, 1, ... released by randomised response."""
    keep = 1.0 / (1.0 + (classes - 1) * np.exp(-epsilon))
    lies = (codes + rng.integers(1, classes, codes.size)) % classes
    return np.where(rng.random(codes.size) < keep, codes, lies)


def replications(reps, seed, run):
    """Errors, standard errors, oracle errors and reported factors of `run(rng) -> (fit, oracle, truth)`."""
    found = []
    for rep in range(reps):
        fit, oracle, truth = run(np.random.default_rng([seed, rep]))
        found.append((fit.params_ - truth, fit.bse_, oracle.params_ - truth, fit.efficiency_.factors))
    return tuple(np.array(part) for part in zip(*found, strict=True))
