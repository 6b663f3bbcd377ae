"""Least squares: equal to statsmodels without noise, to the moment formula with it; intervals cover."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulations import laplace_noise, truncated_normal, zil_noise

from privfit.estimators import LinearRegression, SmallSampleWarning
from privfit.mechanisms import Gaussian, Laplace, SymmetricLaplace, ZeroInflatedLaplace


def linear_data(rng, n, beta, sd=1.0):
    x = truncated_normal(rng, (n, len(beta)))
    return x, 1 + x @ beta + sd * rng.normal(size=n)


def test_without_noise_against_statsmodels():
    import statsmodels.api as sm

    rng = np.random.default_rng(0)
    x, y = linear_data(rng, 300, np.array([1.0, -2.0, 0.5]))
    ours = LinearRegression().fit(x, y)
    theirs = sm.OLS(y, sm.add_constant(x)).fit(cov_type="HC1")
    assert_allclose(ours.params_, theirs.params, rtol=1e-10)
    assert_allclose(ours.cov_params_, theirs.cov_params(), rtol=1e-6)
    assert_allclose(ours.zvalues_, theirs.tvalues, rtol=1e-6)
    assert_allclose(ours.pvalues_, theirs.pvalues, rtol=1e-5, atol=1e-300)
    statistic, p = ours.wald_test([[0, 1, 0, 0], [0, 0, 1, 1]])
    reference = theirs.wald_test(np.array([[0, 1, 0, 0], [0, 0, 1, 1]]), use_f=False, scalar=True)
    assert_allclose(statistic, float(reference.statistic), rtol=1e-6)
    assert_allclose(p, float(reference.pvalue), rtol=1e-4, atol=1e-300)


@pytest.mark.parametrize("law", [Gaussian(0.6), Laplace(0.6 / np.sqrt(2)), SymmetricLaplace(0.6, shape=3)], ids=str)
def test_closed_form(law):
    """Every law of the same variance gives the same moment estimate (Gram - Sigma)^-1 X'y."""
    rng = np.random.default_rng(1)
    x, y = linear_data(rng, 2000, np.array([1.0, -1.0]))
    released = x + 0.6 * rng.normal(size=x.shape)
    ours = LinearRegression(noise=law).fit(released, y)
    centred = released - released.mean(axis=0)
    slopes = np.linalg.solve(centred.T @ centred / 2000 - 0.36 * np.eye(2), centred.T @ (y - y.mean()) / 2000)
    assert_allclose(ours.coef_, slopes, rtol=1e-10)
    assert_allclose(ours.intercept_, y.mean() - released.mean(axis=0) @ slopes, rtol=1e-9)


def test_noise_joint_with_the_response():
    """Columns and response share one zero-inflated row noise; estimate within 4 standard errors."""
    rng = np.random.default_rng(2)
    x, y = linear_data(rng, 20_000, np.array([1.0, -1.0]))
    noise = zil_noise(rng, 20_000, 3, np.array([0.5, 0.5, 2.0]), 0.2)
    law = {(0, 1, "y"): ZeroInflatedLaplace((0.5, 0.5, 2.0), 0.2)}
    model = LinearRegression(noise=law).fit(x + noise[:, :2], y + noise[:, 2])
    assert np.abs((model.params_ - [1, 1, -1]) / model.bse_).max() < 4


@pytest.mark.parametrize("correction", ["exact", "dr", "sdr", "sl"])
def test_corrections_agree(correction):
    rng = np.random.default_rng(3)
    x, y = linear_data(rng, 40_000, np.array([1.0, -1.0]))
    released = x + zil_noise(rng, 40_000, 2, 0.6, 0.2)
    model = LinearRegression(noise=ZeroInflatedLaplace(0.6, 0.2), correction=correction, random_state=0)
    model.fit(released, y)
    assert np.abs((model.params_ - [1, 1, -1]) / model.bse_).max() < 4


def coverage(reps, n, seed):
    hits, factors, errors, raw = [], [], [], []
    truth = np.array([1.0, 1.0, -1.0, 0.5])
    for rep in range(reps):
        rng = np.random.default_rng(seed + rep)
        x, y = linear_data(rng, n, truth[1:])
        model = LinearRegression(noise=SymmetricLaplace(0.6)).fit(x + laplace_noise(rng, n, 3, 0.6), y)
        interval = model.conf_int()
        hits.append((interval[:, 0] < truth) & (truth < interval[:, 1]))
        factors.append(model.efficiency_.factors)
        errors.append(model.params_ - truth)
        raw.append(LinearRegression().fit(x, y).params_ - truth)
    return np.array(hits), np.array(factors), np.array(errors), np.array(raw)


def test_intervals_cover():
    """150 runs of n = 4000 (seeds 50..199): 600 intervals, standard error .9 %; efficiency to 15 %."""
    hits, factors, errors, raw = coverage(150, 4000, 50)
    assert 0.925 < hits.mean() < 0.975
    assert_allclose(np.median(factors[:, 1:]), errors[:, 1:].std() / raw[:, 1:].std(), rtol=0.15)


@pytest.mark.slow
def test_intervals_cover_full():
    """1000 runs: 4000 intervals, standard error .35 %."""
    hits, _, errors, _ = coverage(1000, 4000, 5000)
    assert 0.935 < hits.mean() < 0.965
    assert np.abs(errors.mean(axis=0) / errors.std(axis=0) * np.sqrt(1000)).max() < 3.5


def test_indefinite_gram_is_reported():
    """n = 30 records under noise ten times the signal: how many are needed, these data cannot tell."""
    rng = np.random.default_rng(5)
    x, y = linear_data(rng, 30, np.array([1.0, -1.0]))
    released = x + laplace_noise(rng, 30, 2, 5.0)
    with pytest.warns(SmallSampleWarning, match="needs more records than the data at hand can tell"):
        model = LinearRegression(noise=SymmetricLaplace(5.0)).fit(released, y)
    assert np.isfinite(model.params_).all()
    assert np.isinf(model.bse_).all()
    assert model.diagnostics_["n_needed_is_bound"]
    assert np.isinf(model.efficiency_.overall)


def test_ridge_and_bound():
    rng = np.random.default_rng(6)
    x, y = linear_data(rng, 400, np.array([1.0, -1.0]))
    alpha = 0.3
    ridge = LinearRegression(alpha=alpha).fit(x, y)
    centred = x - x.mean(axis=0)
    expected = np.linalg.solve(centred.T @ centred / 400 + alpha * np.eye(2), centred.T @ (y - y.mean()) / 400)
    assert_allclose(ridge.coef_, expected, rtol=1e-10)
    assert_allclose(ridge.diagnostics_["penalty"], alpha)
    with pytest.warns(UserWarning, match="boundary"):
        boxed = LinearRegression(bound=0.5).fit(x, y)
    assert_allclose(np.abs(boxed.coef_), 0.5)


def test_no_intercept():
    rng = np.random.default_rng(7)
    x, y = linear_data(rng, 100, np.array([1.0, -1.0]))
    model = LinearRegression(fit_intercept=False).fit(x, y)
    assert_allclose(model.coef_, np.linalg.lstsq(x, y, rcond=None)[0], rtol=1e-10)
    assert model.intercept_ == 0.0
