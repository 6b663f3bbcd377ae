"""Ridge regression: scikit-learn's on raw data, the penalised population fit on a release."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulations import noise_of, replications
from sklearn.base import clone

from privfit.estimators import LinearRegression
from privfit.estimators.ridge import Ridge
from privfit.mechanisms import Gaussian, SymmetricLaplace, ZeroInflatedLaplace

BETA = np.array([0.5, -0.4, 0.3])


def data(rng, n):
    x = rng.uniform(-1, 1, size=(n, 3))
    return x, 1 + x @ BETA + rng.normal(size=n)


@pytest.mark.parametrize("intercept", [True, False])
def test_without_noise_it_is_scikit_learns_with_n_times_alpha(intercept):
    from sklearn.linear_model import Ridge as Theirs

    x, y = data(np.random.default_rng(0), 300)
    ours = Ridge(0.3, fit_intercept=intercept).fit(x * [1.0, 100.0, 0.01], y)
    theirs = Theirs(300 * 0.3, fit_intercept=intercept).fit(x * [1.0, 100.0, 0.01], y)
    assert_allclose(ours.coef_, theirs.coef_, rtol=1e-9)
    assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-9)


def test_alpha_is_the_first_parameter_and_survives_a_clone():
    assert clone(Ridge(0.7)).get_params()["alpha"] == 0.7
    x, y = data(np.random.default_rng(1), 100)
    assert_allclose(Ridge(0.0).fit(x, y).params_, LinearRegression().fit(x, y).params_)
    with pytest.raises(ValueError, match="alpha"):
        Ridge(-1.0).fit(x, y)


@pytest.mark.parametrize("law", [ZeroInflatedLaplace(0.7, 0.3), SymmetricLaplace(0.7, shape=2), Gaussian(0.5)], ids=str)
def test_a_release_gets_the_penalised_fit_of_the_raw_data(law):
    """n = 100,000 (seed 2): E xx' = I/3, so the target is beta / (1 + 3 alpha), within 4 standard errors."""
    rng = np.random.default_rng(2)
    x, y = data(rng, 100_000)
    fit = Ridge(0.1, noise=law).fit(x + noise_of(law, rng, 100_000, 3), y)
    assert np.abs((fit.coef_ - BETA / 1.3) / fit.bse_[1:]).max() < 4
    assert np.abs((fit.coef_ - BETA) / fit.bse_[1:]).max() > 8
    assert fit.diagnostics_["penalised"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_intervals_cover_the_penalised_target(seed):
    """400 runs of n = 5000: 1600 intervals, standard error .6 %."""
    law = SymmetricLaplace(0.7)

    def run(rng):
        x, y = data(rng, 5000)
        return Ridge(0.05, noise=law).fit(x + noise_of(law, rng, 5000, 3), y), Ridge(0.05).fit(x, y), truth

    truth = np.r_[1.0, BETA / 1.15]
    errors, spread, _, _ = replications(400, seed, run)
    assert 0.93 < np.mean(np.abs(errors) < 1.96 * spread) < 0.97
