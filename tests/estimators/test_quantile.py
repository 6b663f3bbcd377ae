"""Quantiles of columns: exact order statistics without noise, unbiased with it, joint covariance."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from simulations import zil_noise

from privfit.estimators import Quantile, SmallSampleWarning
from privfit.mechanisms import Laplace, ZeroInflatedLaplace


@pytest.mark.parametrize("n", [3, 4, 5, 101, 1000])
@pytest.mark.parametrize("tau", [0.25, 0.5, 0.9])
def test_order_statistics_without_noise(n, tau):
    """A minimiser of the check risk: at most tau n records below it, at most (1 - tau) n above."""
    x = np.random.default_rng(n).normal(size=(n, 1))
    found = Quantile(tau).fit(x).quantile_[0]
    assert np.sum(x < found - 1e-9) <= tau * n + 1e-9
    assert np.sum(x > found + 1e-9) <= (1 - tau) * n + 1e-9


@pytest.mark.filterwarnings("ignore:.*lie exactly on the fitted quantile")
@pytest.mark.parametrize("n", [50, 5000, 20_000])
def test_whole_numbers_have_the_quantile_of_their_distribution(n):
    """Ties of thousands: the quantile is the order statistic, not between two of them."""
    x = np.random.default_rng(n).poisson([0.3, 4.0], (n, 2)).astype(float)
    for tau in (0.123, 0.4321, 0.877):
        expected = np.quantile(x, tau, axis=0, method="inverted_cdf")
        assert_allclose(Quantile(tau).fit(x).quantile_, expected, atol=1e-9)


def test_four_records_give_finite_standard_errors():
    model = Quantile(0.5).fit([[1.0], [2.0], [3.0], [10.0]])
    assert np.isfinite(model.bse_).all()
    assert (model.bse_ > 0).all()


def test_joint_covariance_without_noise():
    """Medians of two normal columns of correlation r: n Cov = asin(r), n Var = pi/2 (n = 100,000, to 8 %)."""
    rng = np.random.default_rng(0)
    n, r = 100_000, 0.6
    a = rng.normal(size=n)
    x = np.stack([a, r * a + np.sqrt(1 - r * r) * rng.normal(size=n)], axis=1)
    model = Quantile(0.5).fit(x)
    assert_allclose(n * np.diag(model.cov_params_), np.pi / 2, rtol=0.08)
    assert_allclose(n * model.cov_params_[0, 1], np.arcsin(r), rtol=0.1)


def test_released_columns():
    """tau = .75 of two normal columns released jointly (n = 60,000, seed 1): within 4 standard errors."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(60_000, 2)) * [1.0, 5.0]
    released = x + zil_noise(rng, 60_000, 2, np.array([1.0, 5.0]), 0.2)
    model = Quantile(0.75, noise=ZeroInflatedLaplace((1.0, 5.0), 0.2)).fit(released)
    truth = norm.ppf(0.75) * np.array([1.0, 5.0])
    assert np.abs((model.quantile_ - truth) / model.bse_).max() < 4
    assert 1.2 < model.efficiency_.overall < 6
    naive = Quantile(0.75, noise=ZeroInflatedLaplace((1.0, 5.0), 0.2), correction="naive").fit(released)
    assert np.abs((naive.quantile_ - truth) / naive.bse_).min() > 10


@pytest.mark.slow
def test_coverage():
    """300 runs of n = 5000: intervals for the median cover 93-97 % (standard error 1.3 %)."""
    hits = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(5000, 1)) + zil_noise(rng, 5000, 1, 1.0, 0.2)
        low, high = Quantile(0.5, noise=ZeroInflatedLaplace(1.0, 0.2)).fit(x).conf_int()[0]
        hits.append(low < 0 < high)
    assert 0.92 < np.mean(hits) < 0.98


def test_noise_that_drowns_a_column_is_said():
    rng = np.random.default_rng(4)
    values = rng.normal(size=(300, 1))
    with pytest.warns(SmallSampleWarning, match="varies less than its noise"):
        fit = Quantile(noise=Laplace(10.0)).fit(values)
    assert np.isinf(fit.bse_).all()
    noised = values + rng.laplace(size=values.shape)
    with pytest.warns(SmallSampleWarning, match="exceeds half the standard deviation"):
        Quantile(0.75, noise=Laplace(1.0)).fit(noised)
