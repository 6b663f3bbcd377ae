"""Curvature in the sandwich of kinked losses: the analytic one is the derivative of the mean score at large n."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import chi2, f, norm
from scipy.stats import t as student
from simulations import zil_noise

from privfit.estimators import QuantileRegression
from privfit.estimators.huber_regression import HuberRegression
from privfit.estimators.inference import confidence_intervals, tail_probability
from privfit.estimators.losses import CheckLoss, HuberLoss
from privfit.mechanisms import ZeroInflatedLaplace


def numeric_curvature(risk, theta, step):
    """Central differences of the mean score."""
    unit = np.eye(theta.size)
    rows = [(risk.gradient(theta + step * e) - risk.gradient(theta - step * e)) / (2 * step) for e in unit]
    return np.array(rows)


@pytest.fixture(scope="module")
def released():
    rng = np.random.default_rng(0)
    n = 200_000
    x = rng.uniform(-1, 1, (n, 1))
    y = 0.5 + x[:, 0] + 0.7 * rng.normal(size=n)
    return x + zil_noise(rng, n, 1, 0.4, 0.3), y


@pytest.mark.parametrize("tau", [0.3, 0.5])
def test_check_loss(released, tau):
    """The unsmoothed corrected score jumps at the records; over a step of 0.1 its mean has the smoothed curvature."""
    fit = QuantileRegression(tau, noise=ZeroInflatedLaplace(0.4, 0.3)).fit(*released, keep_records=True)
    risk, theta = fit._kept.problem.risk, fit._kept.solution.theta
    found = numeric_curvature(risk.with_(loss=CheckLoss(tau)), theta, 0.1)
    assert_allclose(found, fit._kept.solution.hessian, rtol=0.08, atol=0.03)
    assert_allclose(numeric_curvature(risk, theta, 1e-4), fit._kept.solution.hessian, rtol=1e-5, atol=1e-7)


def test_huber_loss(released):
    """Exact under zero inflation: the score has corners, the curvature jumps, and both agree at n = 200,000."""
    fit = HuberRegression(0.8, noise=ZeroInflatedLaplace(0.4, 0.3)).fit(*released, keep_records=True)
    risk, theta = fit._kept.problem.risk, fit._kept.solution.theta
    assert isinstance(risk.loss, HuberLoss)
    assert_allclose(numeric_curvature(risk, theta, 1e-3), fit._kept.solution.hessian, rtol=2e-3, atol=1e-3)


def test_tails_and_quantiles():
    assert_allclose(tail_probability(7.3, 2), chi2.sf(7.3, 2), rtol=1e-12)
    assert_allclose(tail_probability(7.3, 2, 9.0), f.sf(3.65, 2, 9), rtol=1e-12)
    assert_allclose(tail_probability(np.array([4.0, 900.0]), 1), 2 * norm.sf([2.0, 30.0]), rtol=1e-9)
    assert_allclose(confidence_intervals(np.zeros(1), np.ones(1), 0.9, 5.0)[0, 1], student.ppf(0.95, 5), rtol=1e-12)
