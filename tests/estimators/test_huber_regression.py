"""Huber regression: statsmodels' on raw data, robust and unbiased on releases, intervals that cover."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulations import noise_of, replications

from privfit.estimators import CapabilityError, LinearRegression
from privfit.estimators.huber_regression import HuberRegression
from privfit.mechanisms import Gaussian, Laplace, SymmetricLaplace, ZeroInflatedLaplace

BETA = np.array([0.5, -0.4, 0.3])
TRUTH = np.r_[1.0, BETA]
LAWS = [
    SymmetricLaplace(0.5),
    SymmetricLaplace(0.6, shape=4),
    ZeroInflatedLaplace(0.7, 0.3),
    Laplace(0.3),
]


def data(rng, n):
    x = rng.uniform(-1, 1, size=(n, 3))
    return x, 1 + x @ BETA + rng.standard_t(3, size=n)


def test_without_noise_it_is_statsmodels_rlm_with_proposal_2():
    import statsmodels.api as sm

    x, y = data(np.random.default_rng(0), 500)
    theirs = sm.RLM(y, sm.add_constant(x), M=sm.robust.norms.HuberT(1.345)).fit(
        scale_est=sm.robust.scale.HuberScale(d=1.345, tol=1e-12, maxiter=300), tol=1e-12, maxiter=500
    )
    ours = HuberRegression().fit(x, y)
    assert_allclose(ours.params_, theirs.params, atol=1e-8)
    assert_allclose(ours.diagnostics_["scale"], theirs.scale, rtol=1e-8)
    given = HuberRegression(1.345 * theirs.scale).fit(x, y)
    assert_allclose(given.params_, theirs.params, atol=1e-9)
    assert given.diagnostics_["scale"] is None
    assert_allclose(ours.bse_, theirs.bse, rtol=0.15)  # theirs supposes equal errors


def test_units_of_response_and_columns():
    x, y = data(np.random.default_rng(1), 300)
    one, other = HuberRegression(0.8).fit(x, y), HuberRegression(800.0).fit(x * 1e4, 1e3 * y)
    assert_allclose(other.coef_ * 10, one.coef_, rtol=1e-8)
    auto = HuberRegression().fit(x * 1e4, 1e3 * y)
    assert_allclose(auto.diagnostics_["scale"], 1e3 * HuberRegression().fit(x, y).diagnostics_["scale"], rtol=1e-7)


def test_a_wide_threshold_is_least_squares():
    x, y = data(np.random.default_rng(2), 300)
    assert_allclose(HuberRegression(1e6).fit(x, y).params_, LinearRegression().fit(x, y).params_, rtol=1e-9)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_every_law_is_corrected(law):
    """n = 20,000 (seed 3): within 4 standard errors, naive is not; smoothed unless zero-inflated; raw data's scale."""
    rng = np.random.default_rng(3)
    x, y = data(rng, 20_000)
    released = x + noise_of(law, rng, 20_000, 3)
    fit, raw = HuberRegression(noise=law).fit(released, y), HuberRegression().fit(x, y)
    assert np.abs((fit.params_ - TRUTH) / fit.bse_).max() < 4
    found = fit.diagnostics_
    assert (found["bandwidth"] is None) == isinstance(law, ZeroInflatedLaplace)
    assert (found["smoothing_bias"] == 0) == isinstance(law, ZeroInflatedLaplace)
    assert found["smoothing_bias"] < fit.bse_[0] / 4
    assert_allclose(found["scale"], raw.diagnostics_["scale"], rtol=0.03)
    naive = HuberRegression(noise=law, correction="naive").fit(released, y)
    assert np.abs((naive.params_ - TRUTH) / naive.bse_).max() > 6


@pytest.mark.parametrize("correction", ["dr", "sdr", "sl"])
def test_other_corrections(correction):
    rng = np.random.default_rng(4)
    x, y = data(rng, 20_000)
    law = ZeroInflatedLaplace(0.5, 0.3)
    released = x + noise_of(law, rng, 20_000, 3)
    fit = HuberRegression(noise=law, correction=correction, random_state=0).fit(released, y)
    assert np.abs((fit.params_ - TRUTH) / fit.bse_).max() < 4


def test_noise_joint_with_the_response():
    rng = np.random.default_rng(5)
    x, y = data(rng, 20_000)
    law = ZeroInflatedLaplace(0.5, 0.3)
    noise = noise_of(law, rng, 20_000, 4)
    fit = HuberRegression(noise={(0, 1, 2, "y"): law}).fit(x + noise[:, :3], y + noise[:, 3])
    assert np.abs((fit.params_ - TRUTH) / fit.bse_).max() < 4


def test_it_is_robust_where_least_squares_is_not():
    """3 % of the responses are wrong by 100 at one end of x (seed 6): Huber moves by .25, least squares by 2."""
    rng = np.random.default_rng(6)
    x, y = data(rng, 20_000)
    y = y + 100 * (x[:, 0] > 0.9) * (rng.random(20_000) < 0.6)
    law = ZeroInflatedLaplace(0.4, 0.3)
    released = x + noise_of(law, rng, 20_000, 3)
    huber = HuberRegression(1.6, noise=law).fit(released, y)
    raw = HuberRegression(1.6).fit(x, y)
    squares = LinearRegression(noise=law).fit(released, y)
    assert np.abs(huber.coef_ - BETA).max() < 0.25
    assert np.abs((huber.coef_ - raw.coef_) / huber.bse_[1:]).max() < 4
    assert np.abs(squares.coef_ - BETA).max() > 2


def test_one_absurd_response_does_not_stop_the_search():
    """1e9 beside residuals of 1: the threshold is 1e-7 standard deviations of the response."""
    x, y = data(np.random.default_rng(8), 300)
    far = y.copy()
    far[0] = 1e9
    assert_allclose(HuberRegression().fit(x, far).params_, HuberRegression().fit(x, y).params_, atol=0.05)
    assert HuberRegression().fit(x, far).converged_


def test_bad_arguments_and_gaussian_noise():
    x, y = data(np.random.default_rng(7), 60)
    for options in ({"threshold": 0.0}, {"threshold": "wide"}, {"bandwidth": -1.0}, {"bandwidth": "wide"}):
        with pytest.raises((ValueError, TypeError), match=next(iter(options))):
            HuberRegression(**options).fit(x, y)
    with pytest.raises(CapabilityError, match=r"Gaussian.*SymmetricLaplace"):
        HuberRegression(noise=Gaussian(0.1)).fit(x, y)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("law", LAWS[:3], ids=str)
def test_intervals_cover_and_the_cost_is_the_real_one(law, seed):
    """200 runs of n = 10,000: 800 intervals (standard error .8 %); factors against real oracles to 20 %."""

    def run(rng):
        x, y = data(rng, 10_000)
        return HuberRegression(noise=law).fit(x + noise_of(law, rng, 10_000, 3), y), HuberRegression().fit(x, y), TRUTH

    errors, spread, oracle, factors = replications(200, seed, run)
    assert 0.93 < np.mean(np.abs(errors) < 1.96 * spread) < 0.97
    assert_allclose(np.median(factors, axis=0), errors.std(axis=0) / oracle.std(axis=0), rtol=0.2)
    assert np.abs(errors.mean(axis=0) / errors.std(axis=0)).max() < 4.2 / np.sqrt(200)
