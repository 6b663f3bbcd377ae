"""Laws that differ from row to row."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from privfit.estimators import (
    CapabilityError,
    LinearRegression,
    LogisticRegression,
    Mean,
    PrincipalComponents,
    Quantile,
    QuantileRegression,
)
from privfit.estimators.row_noise import RowNoise
from privfit.mechanisms import Laplace, RandomizedResponse, SymmetricLaplace

N = 6000
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
Y = X @ [1.0, -0.5] + 0.5 * RNG.normal(size=N)
GROUP = RNG.choice(["none", "some", "much"], N)
SCALE = np.select([GROUP == "some", GROUP == "much"], [0.3, 0.9], 0.0)
RELEASED = X + SCALE[:, None] * RNG.laplace(size=X.shape)
LAWS = {"none": None, "some": Laplace(0.3), "much": Laplace(0.9)}


def test_least_squares_takes_each_rows_own_noise():
    """Closed form, with the mean of the rows' noise variances."""
    fit = LinearRegression(noise=RowNoise(GROUP, LAWS)).fit(RELEASED, Y)
    w = np.c_[np.ones(N), RELEASED]
    gram = w.T @ w - np.diag([0, 1, 1]) * 2 * (SCALE**2).sum()
    assert_allclose(fit.params_, np.linalg.solve(gram, w.T @ Y), rtol=1e-9)
    assert np.abs((fit.params_ - [0, 1, -0.5]) / fit.bse_).max() < 4.5


def test_one_group_is_the_law_itself():
    for model in (LinearRegression, QuantileRegression):
        law = SymmetricLaplace(0.4)
        whole = model(noise=law).fit(RELEASED, Y)
        fit = model(noise=RowNoise(np.zeros(N), {0.0: law})).fit(RELEASED, Y)
        assert_allclose(fit.params_, whole.params_, rtol=1e-12)
        assert_allclose(fit.cov_params_, whole.cov_params_, rtol=1e-12)


def test_labels_flipped_with_two_probabilities():
    label = RNG.random(N) < 1 / (1 + np.exp(-X.sum(axis=1)))
    often = np.arange(N) % 2 == 0
    flipped = label ^ (RNG.random(N) < np.where(often, 1 / (1 + np.e), 1 / (1 + np.e**3)))
    laws = {True: {"y": RandomizedResponse(1.0)}, False: {"y": RandomizedResponse(3.0)}}
    fit = LogisticRegression(noise=RowNoise(often, laws)).fit(X, flipped)
    assert np.abs((fit.params_ - [0, 1, 1]) / fit.bse_).max() < 4.5
    assert (fit.bse_[1:] < LogisticRegression(noise=laws[True]).fit(X, flipped).bse_[1:]).all()


def test_means_under_known_noise_of_each_row():
    """Closed form: the released covariance over n, and for the raw data that minus the mean of the rows' variances."""
    fit = Mean(noise=RowNoise(GROUP, LAWS)).fit(RELEASED)
    cov = np.cov(RELEASED.T) / N
    assert_allclose(fit.mean_, RELEASED.mean(axis=0), atol=1e-14)
    assert_allclose(fit.cov_params_, cov, rtol=1e-12, atol=1e-18)
    raw = np.diag(cov) - 2 * (SCALE**2).mean() / N
    assert_allclose(fit.efficiency_.factors, np.sqrt(np.diag(cov) / raw), rtol=1e-9)
    # the raw standard error that this factor tells is that of the raw data, up to its sampling error
    assert_allclose(fit.bse_ / fit.efficiency_.factors, X.std(axis=0) / np.sqrt(N), rtol=0.05)


def test_quantiles_under_known_noise_of_each_row():
    """One group is the law itself; three groups find the normal quantiles, and better than if all had the worst law."""
    law = Laplace(0.3)
    own = X + 0.3 * np.random.default_rng(1).laplace(size=X.shape)
    whole = Quantile([0.3, 0.5], noise=law).fit(own)
    fit = Quantile([0.3, 0.5], noise=RowNoise(np.zeros(N), {0.0: law})).fit(own)
    assert_allclose(fit.params_, whole.params_, rtol=1e-12)
    assert_allclose(fit.cov_params_, whole.cov_params_, rtol=1e-10)
    fit = Quantile([0.3, 0.5], noise=RowNoise(GROUP, LAWS)).fit(RELEASED)
    assert np.abs((fit.quantile_ - norm.ppf([0.3, 0.5])) / fit.bse_.reshape(2, 2)).max() < 4.5
    worst = Quantile([0.3, 0.5], noise=Laplace(0.9)).fit(X + 0.9 * np.random.default_rng(2).laplace(size=X.shape))
    # of all four together: a bandwidth's bias, part of each, is an estimate
    assert np.mean(fit.bse_**2) < 0.6 * np.mean(worst.bse_**2)


def test_what_takes_no_laws_by_row_says_so():
    noise = RowNoise(GROUP, LAWS)
    for fit in (Mean(noise=noise).partial_fit, PrincipalComponents(noise=noise).fit):
        with pytest.raises(CapabilityError, match=r"RowNoise is for .* fit_release"):
            fit(RELEASED)
    for model in (Quantile, LinearRegression):
        with pytest.raises(CapabilityError, match="clusters are not available with RowNoise"):
            model(noise=noise).fit(RELEASED, Y, clusters=np.arange(N))
    with pytest.raises(ValueError, match="positive must be None"):
        Mean(noise=noise, positive="yes").fit(RELEASED)


def test_groups_and_laws_must_fit():
    with pytest.raises(ValueError, match="'much', 'none' has no law"):
        RowNoise(GROUP, {"some": Laplace(1.0)})
    with pytest.raises(ValueError, match="'other' occurs in no row"):
        RowNoise(GROUP, {**LAWS, "other": None})
    with pytest.raises(TypeError, match="laws must be a mapping"):
        RowNoise(GROUP, Laplace(1.0))
    with pytest.raises(ValueError, match="one label per row, got 6000 labels for 10 rows"):
        LinearRegression(noise=RowNoise(GROUP, LAWS)).fit(X[:10], Y[:10])
