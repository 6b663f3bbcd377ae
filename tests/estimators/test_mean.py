"""Means of released columns: intervals cover, and the cost of privacy is the variance ratio."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulations import laplace_noise, zil_noise

from privfit.estimators import Mean
from privfit.mechanisms import Laplace, SymmetricLaplace, ZeroInflatedLaplace


def test_mean_and_covariance():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 3))
    model = Mean().fit(x)
    assert_allclose(model.mean_, x.mean(axis=0))
    assert_allclose(model.cov_params_, np.cov(x.T) / 500)
    assert_allclose(model.efficiency_.factors, 1.0)
    assert_allclose(model.wald_test(np.eye(3))[0], model.mean_ @ np.linalg.solve(np.cov(x.T) / 500, model.mean_))


def test_efficiency_is_the_variance_ratio():
    """Uniform column (variance 1/12) plus Laplace(0.5) noise (variance .5): factor sqrt(7) to 3 %."""
    rng = np.random.default_rng(1)
    n = 200_000
    x = rng.uniform(size=(n, 1)) + 0.5 * rng.laplace(size=(n, 1))
    model = Mean(noise=Laplace(0.5)).fit(x)
    assert_allclose(model.efficiency_.factors, np.sqrt(7), rtol=0.03)
    assert_allclose(model.efficiency_.n_effective, n / 7, rtol=0.06)


def test_bernoulli_mean_variance_of_theory():
    """One-dimensional Laplace release of a Bernoulli(theta): n Var = 2/eps^2 + theta (1 - theta)."""
    rng = np.random.default_rng(2)
    n, eps, theta = 100_000, 1.0, 0.3
    x = (rng.random((n, 1)) < theta) + rng.laplace(size=(n, 1)) / eps
    model = Mean(noise=Laplace(1 / eps)).fit(x)
    assert_allclose(n * model.cov_params_[0, 0], 2 / eps**2 + theta * (1 - theta), rtol=0.03)
    assert abs(model.mean_[0] - theta) < 4 * model.bse_[0]


@pytest.mark.parametrize("draw", ["zil", pytest.param("sl", marks=pytest.mark.slow)])
def test_intervals_cover(draw):
    """2000 runs of n = 300 (standard error .5 %)."""
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(2000):
        noise = laplace_noise(rng, 300, 1, 1.0) if draw == "sl" else zil_noise(rng, 300, 1, 1.0, 0.3)
        law = SymmetricLaplace(1.0) if draw == "sl" else ZeroInflatedLaplace(1.0, 0.3)
        low, high = Mean(noise=law).fit(rng.uniform(size=(300, 1)) + noise).conf_int()[0]
        hits += low < 0.5 < high
    assert 0.93 < hits / 2000 < 0.97


def test_one_record_has_no_standard_error():
    assert np.isinf(Mean().fit([[1.0, 2.0]]).bse_).all()
