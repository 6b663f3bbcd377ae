"""A false minimum is told: by a rival that the noise does not tell from it, and by predictions that vary too much."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulations import laplace_noise

from privfit.estimators import LinearRegression, QuantileRegression, SmallSampleWarning
from privfit.estimators.huber_regression import HuberRegression
from privfit.estimators.m_estimator import MEstimator
from privfit.estimators.runaway import prediction_spread, record_losses, rivals, settled
from privfit.mechanisms import SymmetricLaplace


class Noted(HuberRegression):
    def _finish(self, solution, problem):
        self.problem_, self.solution_ = problem, solution


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 2)) * [1.0, 5.0] + [0.0, 9.0]
    y = 1.0 + x @ [2.0, -0.5] + rng.normal(size=2000)
    noise = laplace_noise(rng, 2000, 2, 1.0, 2) * [0.4, 1.0]
    model = Noted(noise=SymmetricLaplace((0.4, 1.0), 2)).fit(x + noise, y)
    return model, x, y


@pytest.fixture(scope="module")
def lost():
    """Noise far above the scale of a bounded loss, in column and response; slope 1."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(200, 1))
    y = x[:, 0] + rng.normal(size=200) + 2 * laplace_noise(rng, 200, 1, 2.0, 2)[:, 0]
    laws = {0: SymmetricLaplace(2.0, 2), "y": SymmetricLaplace(4.0, 2)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = MEstimator("min(u**2/4, 2)", noise=laws).fit(x + laplace_noise(rng, 200, 1, 2.0, 2), y)
    return model, [str(one.message) for one in caught if one.category is SmallSampleWarning]


def test_the_losses_of_records_have_the_risk_as_their_mean(fitted):
    model = fitted[0]
    risk = model.problem_.risk
    for theta in (model.solution_.theta, np.array([0.3, -1.0, 0.5])):
        assert_allclose(record_losses(risk, theta).mean(), risk.value(theta), rtol=1e-10)


def test_rivals_are_counted_by_the_error_of_the_difference(fitted):
    """Points on a ray: those within 2 standard errors (from the losses, in numpy) are rivals, those beyond are not."""
    model = fitted[0]
    risk, own = model.problem_.risk, model.solution_
    at_own, told, close = record_losses(risk, own.theta), [], 0
    for step in (0.01, 0.02, 0.1, 0.5):
        theta = own.theta + step
        gap = record_losses(risk, theta) - at_own
        told.append(theta)
        close += gap.mean() < 2.0 * gap.std() / np.sqrt(gap.size)
    assert 0 < close < 4
    assert rivals(risk, replace(own, others=tuple(told))) == close
    assert rivals(risk, own) == 0


def test_the_spread_of_predictions_is_that_without_noise(fitted):
    """Against the clean columns: sd(x'b) over that of the released response; 2000 records, 5 %."""
    model, x, y = fitted
    found = prediction_spread(model.problem_, model.solution_.theta)
    assert abs(found / (np.std(x @ model.coef_) / np.std(y)) - 1.0) < 0.05
    assert prediction_spread(model.problem_, 10 * model.solution_.theta) == pytest.approx(10 * found)
    assert settled(model.solution_, model.problem_)
    assert not settled(replace(model.solution_, theta=10 * model.solution_.theta), model.problem_)


def test_a_fit_that_ran_away_says_so_everywhere(lost):
    model, texts = lost
    assert abs(model.coef_[0]) > 10
    assert len(texts) == 1
    for words in ("implausible", "minima", "below the noise in its index", "they are infinite"):
        assert words in texts[0]
    assert model.diagnostics_["runaway"]
    assert np.isinf(model.bse_).all() and np.isinf(model.conf_int()).all()
    assert (model.pvalues_ == 1.0).all()
    assert "implausible" in model.diagnose()
    with pytest.raises(ValueError, match="infinite"):
        model.wald_test([0, 1])


def test_ordinary_fits_are_left_alone(fitted):
    model = fitted[0]
    assert model.diagnostics_["runaway"] is False
    assert model.diagnostics_["n_needed"] is None
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1500, 1))
    z, y = x + laplace_noise(rng, 1500, 1, 0.5), 3 * x[:, 0] + 0.1 * rng.normal(size=1500)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in (QuantileRegression, LinearRegression):
            assert np.isfinite(kind(noise=SymmetricLaplace(0.5)).fit(z, y).bse_).all()
