"""Membership risk against brute force over tests, exact normal formulas and simulated attackers."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import privfit.accounting as pa
from privfit.accounting.risk import (
    bayes_risk,
    log_likelihood_ratio,
    posterior_odds,
    posterior_probability,
    predictive_values,
)

CURVES = [
    pa.gaussian(1.0),
    pa.laplace(1.5),
    pa.zil(1, 1.0, 0.05),
    pa.symmetric_laplace_limit(0.7),
    pa.from_points([0.1, 0.4], [0.6, 0.2]),
    pa.randomized_response(1.0, 5),
]
every_curve = pytest.mark.parametrize("curve", CURVES, ids=str)
LEVELS = np.concatenate([[0.0], np.geomspace(1e-9, 1e-2, 300), np.linspace(0.01, 1, 4001)])


@every_curve
@pytest.mark.parametrize("prior", [0.0, 1e-6, 0.1, 0.5, 0.9, 1 - 1e-6, 1.0])
def test_bayes_risk_by_trying_all_levels(curve, prior):
    brute = float(np.min((1 - prior) * LEVELS + prior * curve.curve(LEVELS, bound="estimate")))
    risk = bayes_risk(curve, prior)
    assert risk <= brute * (1 + 1e-12) + 1e-16
    assert risk == pytest.approx(brute, rel=1e-4, abs=1e-9)
    assert risk <= min(prior, 1 - prior) + 1e-16


def test_bayes_risk_of_a_gaussian_mechanism():
    # threshold mu/2 + log((1 - pi)/pi)/mu
    mu, pi = 1.3, np.array([0.02, 0.3, 0.5, 0.8])
    cut = mu / 2 + np.log((1 - pi) / pi) / mu
    assert np.allclose(bayes_risk(pa.gaussian(mu), pi), (1 - pi) * ndtr(-cut) + pi * ndtr(cut - mu), rtol=1e-11)


def test_posterior_of_a_gaussian_mechanism_down_to_tiny_levels():
    for alpha in (1e-300, 1e-50, 1e-6, 0.3, 1.0):
        with mp.workdps(340):
            z = -mp.sqrt(2) * mp.erfinv(1 - 2 * mp.mpf(alpha)) if alpha < 1 else mp.inf
            power = mp.ncdf(z + 2) if alpha < 1 else mp.mpf(1)
            exact = float(mp.log(power / mp.mpf(alpha)))
        value = float(log_likelihood_ratio(pa.gaussian(2.0), np.array([alpha]))[0])
        assert value == pytest.approx(exact, rel=1e-9, abs=1e-12)
        odds = posterior_odds(pa.gaussian(2.0), 0.2, alpha)
        assert odds == pytest.approx(0.25 * math.exp(exact), rel=1e-8)


@every_curve
def test_largest_posterior_is_reached_by_the_largest_loss(curve):
    sup = posterior_probability(curve, 0.1)
    certain = curve.delta(math.inf) > 0 or math.isinf(curve.max_loss)
    expected = 1.0 if certain else 0.1 * math.exp(curve.max_loss) / (0.9 + 0.1 * math.exp(curve.max_loss))
    assert sup == pytest.approx(expected, rel=1e-12)
    levels = np.array([1e-300, 1e-12, 1e-3, 0.1, 0.5, 1.0])
    values = posterior_probability(curve, 0.1, levels)
    assert np.all(np.diff(values) <= 1e-12)
    assert np.all(values <= sup)
    assert values[-1] == pytest.approx(0.1, rel=1e-9)
    assert posterior_odds(curve, 0.1) == (
        math.inf if certain else pytest.approx(math.exp(curve.max_loss) / 9, rel=1e-12)
    )


@every_curve
def test_predictive_values_from_error_rates(curve):
    levels, pi = np.array([1e-3, 0.05, 0.3, 0.7]), 0.2
    miss = curve.curve(levels, bound="estimate")
    positive, negative = predictive_values(curve, pi, levels)
    assert np.allclose(positive, pi * (1 - miss) / (pi * (1 - miss) + (1 - pi) * levels), rtol=1e-9)
    assert np.allclose(negative, (1 - pi) * (1 - levels) / ((1 - pi) * (1 - levels) + pi * miss), rtol=1e-9)
    first, last = predictive_values(curve, pi, np.array([0.0, 1.0]))
    assert first[0] == pytest.approx(posterior_probability(curve, pi), rel=1e-12)
    assert 1 - pi <= last[0] <= last[1] <= 1.0
    assert first[1] == pytest.approx(pi, rel=1e-9)


def test_simulated_membership_attack():
    rng = np.random.default_rng(20240501)
    n, mu, pi, alpha = 400_000, 1.2, 0.3, 0.1
    member = rng.random(n) < pi
    answer = mu * member + rng.normal(size=n) > -ndtri(alpha)
    positive, negative = predictive_values(pa.gaussian(mu), pi, alpha)
    share = member[answer].mean()
    assert abs(share - positive) < 5 * math.sqrt(0.25 / answer.sum())
    assert abs((~member[~answer]).mean() - negative) < 5 * math.sqrt(0.25 / (~answer).sum())


def test_shapes_and_bad_input():
    curve = pa.gaussian(1.0)
    assert type(bayes_risk(curve, 0.5)) is float
    assert bayes_risk(curve, np.full((2, 2), 0.5)).shape == (2, 2)
    assert posterior_odds(curve, np.full((2, 1), 0.5), np.full(3, 0.1)).shape == (2, 3)
    assert predictive_values(curve, 0.5, np.full(3, 0.1))[1].shape == (3,)
    assert type(posterior_probability(curve, 0.5)) is float
    assert posterior_probability(curve, [0.0, 1.0]).tolist() == [0.0, 1.0]
    for function in (bayes_risk, posterior_odds, posterior_probability):
        with pytest.raises(ValueError, match="prior must be"):
            function(curve, 1.5)
        with pytest.raises(TypeError, match="curve must be"):
            function(0.3, 0.5)
    with pytest.raises(ValueError, match="fpr must be"):
        posterior_odds(curve, 0.5, -0.1)
    with pytest.raises(ValueError, match="alpha must be"):
        predictive_values(curve, 0.5, float("nan"))
