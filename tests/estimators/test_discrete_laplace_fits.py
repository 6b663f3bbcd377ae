"""Discrete Laplace noise: squared losses are exact by its variance, other losses say what to use instead."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from privfit.estimators import (
    CapabilityError,
    LinearRegression,
    LogisticRegression,
    Mean,
    Quantile,
    QuantileRegression,
)
from privfit.estimators.noise import resolve_noise
from privfit.mechanisms import Box, DiscreteLaplace, Laplace, Product, RandomizedResponse, SymmetricLaplace, release

N = 6000
RNG = np.random.default_rng(0)
X = RNG.uniform(0, 1, (N, 2))
Y = X @ [1.0, -1.0] + 0.3 * RNG.normal(size=N)
LAW = DiscreteLaplace((0.2, 0.3))


def discrete_laplace(rng, n, scale, grid):
    """Difference of two geometric variables (Inusah & Kozubowski 2006), times the grid."""
    q = np.exp(-grid / scale)
    return grid * (rng.geometric(1 - q, n) - rng.geometric(1 - q, n))


RELEASED = X + np.stack(
    [discrete_laplace(RNG, N, s, g) for s, g in zip(LAW.scales(2), LAW.grid(2), strict=True)], axis=1
)


def test_variance_is_the_series():
    """Sum over k of k^2 P(k): 2 q / (1 - q)^2 squared grid steps."""
    grid, scale = LAW.grid(2), LAW.scales(2)
    q = np.exp(-grid / scale)
    expected = grid**2 * 2 * q / np.expm1(-grid / scale) ** 2
    assert_allclose(resolve_noise(LAW, ["a", "b"]).variances, [*expected, 0], rtol=1e-12)
    assert resolve_noise(DiscreteLaplace(0.2), ["a", "b"]).variances.shape == (3,)


def test_least_squares_is_exact():
    """The normal equations with the noise's variance subtracted, and truth within 4.5 standard errors."""
    model = LinearRegression(noise=LAW).fit(RELEASED, Y)
    centred = RELEASED - RELEASED.mean(axis=0)
    gram = centred.T @ centred / N - np.diag(LAW.variance)
    assert_allclose(model.coef_, np.linalg.solve(gram, centred.T @ (Y - Y.mean()) / N), rtol=1e-9)
    assert np.abs((model.params_ - [0, 1, -1]) / model.bse_).max() < 4.5
    naive = LinearRegression(noise=LAW, correction="naive").fit(RELEASED, Y)
    assert np.abs((naive.coef_ - [1, -1]) / naive.bse_[1:]).min() > 10


def test_from_a_release_and_means():
    out = release(X, DiscreteLaplace(0.1), domain=Box({"a": (0, 1), "b": (0, 1)}), rng=1)
    mean = Mean().fit_release(out)
    assert np.abs((mean.mean_ - 0.5) / mean.bse_).max() < 4.5
    assert_allclose(mean.efficiency_.factors**2, 1 + 2 * 0.1**2 * 12, rtol=0.05)
    with pytest.raises(CapabilityError, match="SymmetricLaplace"):
        Quantile().fit_release(out)


@pytest.mark.parametrize("noise", [LAW, {0: DiscreteLaplace(0.2)}, Product({0: Laplace(0.1), 1: DiscreteLaplace(0.2)})])
def test_other_losses_name_an_alternative(noise):
    for model, y in ((LogisticRegression(noise=noise), Y > 0), (QuantileRegression(noise=noise), Y)):
        message = rf"{type(model).__name__} has no exact inverse under DiscreteLaplace.* Laplace or SymmetricLaplace"
        with pytest.raises(CapabilityError, match=message):
            model.fit(RELEASED, y)
        fitted = model.set_params(correction="naive").fit(RELEASED, y)
        assert np.isfinite(fitted.params_).all()
    with pytest.raises(CapabilityError, match=r"^Quantile has no exact"):
        Quantile(noise=noise).fit(RELEASED)


def test_response_and_other_columns():
    """On the response the loss is squared, too; laws without this limit are not affected."""
    noised = Y + discrete_laplace(RNG, N, 0.2, DiscreteLaplace(0.2).grid(1)[0])
    model = LinearRegression(noise={"y": DiscreteLaplace(0.2)}).fit(X, noised)
    assert np.abs((model.params_ - [0, 1, -1]) / model.bse_).max() < 4.5
    assert_allclose(model.efficiency_.overall, np.sqrt(1 + 2 * 0.2**2 / 0.09), rtol=0.1)
    with pytest.raises(CapabilityError, match="DiscreteLaplace"):
        QuantileRegression(noise={"y": DiscreteLaplace(0.2)}).fit(X, noised)
    law = {(0, 1): SymmetricLaplace(0.1), "y": RandomizedResponse(3.0)}
    assert np.isfinite(LogisticRegression(noise=law).fit(RELEASED, Y > 0).params_).all()
