"""Bias of a bandwidth: against smoothed quantiles by quadrature, its error by repetition, and coverage."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq
from scipy.stats import norm

from privfit import Quantile, QuantileRegression
from privfit.estimators import SmallSampleWarning
from privfit.estimators.bandwidth_bias import Bias
from privfit.estimators.losses import SmoothedCheckLoss
from privfit.mechanisms import SymmetricLaplace, ZeroInflatedLaplace

SHAPES = {
    "exponential": (lambda rng, n: rng.exponential(size=n), lambda tau: -np.log(1 - tau)),
    "lognormal": (lambda rng, n: np.exp(0.7 * rng.normal(size=n)), lambda tau: np.exp(0.7 * norm.ppf(tau))),
    "normal": (lambda rng, n: rng.normal(size=n), norm.ppf),
}
PROBABILITIES = (np.arange(200_000) + 0.5) / 200_000


def laplace(rng, n, scale):
    return scale * np.sqrt(rng.exponential(size=n)) * rng.normal(size=n)


def smoothed_quantile(values, tau, h):
    """Where the expected smoothed score is 0: what a fit at bandwidth h estimates."""
    loss = SmoothedCheckLoss(tau, h, 4)
    place = np.quantile(values, tau)
    return brentq(lambda q: loss.derivative(values - q).mean(), place - 2, place + 2)


@pytest.mark.parametrize(("shape", "tau", "h"), [("exponential", 0.4, 0.25), ("lognormal", 0.5, 0.25)])
def test_the_estimate_is_the_bias_of_the_smoothed_quantile(shape, tau, h):
    """n = 200,000, little noise: what quantiles smoothed by h, 1.5 h and 2.25 h tell, not far below the bias.

    Tolerance: four of its own standard errors, and a tenth for one Newton step in place of a fit.
    """
    draw, truth = SHAPES[shape]
    rng = np.random.default_rng(1)
    x = draw(rng, 200_000) + laplace(rng, 200_000, 0.1)
    found = Quantile(tau, noise=SymmetricLaplace(0.1), bandwidth=h).fit(x[:, None]).diagnostics_["columns"][0]
    near, wide, widest = (smoothed_quantile(truth(PROBABILITIES), tau, h * 1.5**k) for k in range(3))
    expected = (wide - near) / (np.clip((widest - wide) / (wide - near), 1.5**1.5, 1.5**4) - 1)
    assert_allclose(found["bandwidth_bias"], expected, rtol=0.1, atol=4 * found["bandwidth_bias_error"][0])
    assert 0.01 < near - truth(tau) < 1.25 * expected < 2.5 * (near - truth(tau))


def test_a_given_bandwidth_has_intervals_about_the_smoothed_quantile():
    """Nothing is added to them: raw data and release have the same target."""
    rng = np.random.default_rng(2)
    x = (rng.exponential(size=2000) + laplace(rng, 2000, 0.5))[:, None]
    with pytest.warns(SmallSampleWarning, match=r"moves the estimate by about \d\.\d standard errors"):
        automatic = Quantile(0.4, noise=SymmetricLaplace(0.5)).fit(x)
    own = automatic.diagnostics_["columns"][0]
    given = Quantile(0.4, noise=SymmetricLaplace(0.5), bandwidth=own["bandwidth"]).fit(x)
    assert_allclose(given.quantile_, automatic.quantile_, atol=1e-7)
    assert_allclose(automatic.cov_params_ - given.cov_params_, own["bandwidth_bias"][0] ** 2, rtol=1e-4)


@pytest.mark.filterwarnings("ignore:.*moves the estimate of 'const'")
def test_regression_reports_the_bias_in_units_of_the_coefficients():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(4000, 2)) * [1.0, 5.0]
    y = x @ [1.0, 0.2] + rng.exponential(size=4000)
    released = x + laplace(rng, 8000, 0.3).reshape(-1, 2)
    law = {0: SymmetricLaplace(0.3), 1: SymmetricLaplace(0.3)}
    one = QuantileRegression(0.3, noise=law).fit(released, y).diagnostics_
    ten = QuantileRegression(0.3, noise=law).fit(released, 10 * y).diagnostics_
    assert one["bandwidth_bias"].shape == one["bandwidth_bias_error"].shape == (3,)
    assert_allclose(ten["bandwidth_bias"], 10 * one["bandwidth_bias"], rtol=1e-4, atol=1e-6)
    assert_allclose(ten["bandwidth_bias_error"], 10 * one["bandwidth_bias_error"], rtol=1e-4)


def test_a_bias_is_told_from_its_own_noise():
    bias = Bias(np.array([5.0, -5.0, 1.0]), np.array([3.0, 3.0, 2.0]), np.array([4.0, 16.0, 1.0]))
    assert_allclose(bias.beyond_noise, [4.0, -4.0, 0.0])
    assert_allclose(bias.ratio, [2.0, 1.0, 0.0])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("n", [1200, 20_000])
@pytest.mark.parametrize("law", [SymmetricLaplace(0.5), ZeroInflatedLaplace(scale=1.0, delta0=0.5)], ids=["sl", "zil"])
@pytest.mark.parametrize(("shape", "tau"), [("exponential", 0.4), ("lognormal", 0.5), ("normal", 0.3), ("normal", 0.5)])
def test_intervals_contain_the_quantile_of_skewed_columns(shape, tau, law, n, seed):
    """100 runs, standard error 2.2 % at 95 %: with the normal bound alone, 33 % for exponential values, n = 20,000.

    The lower quartile of exponential values under `SymmetricLaplace` is left out: what the kernel reaches of the jump
    at 0 turns the bias at wider bandwidths round, and intervals cover about 80 %.
    """
    draw, truth = SHAPES[shape]
    rng = np.random.default_rng(seed)
    inside = 0
    for _ in range(100):
        kept = np.zeros(n) if isinstance(law, SymmetricLaplace) else rng.random(n) < law.delta0
        x = draw(rng, n) + np.where(kept, 0.0, laplace(rng, n, float(law.scale)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SmallSampleWarning)
            found = Quantile(tau, noise=law).fit(x[:, None])
        inside += abs(found.quantile_[0] - truth(tau)) < 1.96 * found.bse_[0]
    print(f"{shape} {tau} n {n} seed {seed}: coverage {inside / 100}")
    assert inside >= 89  # 95 less 2.7 standard errors
