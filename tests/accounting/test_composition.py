"""Composition against closed forms and against direct convolution."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom

import privfit.accounting as pa
from privfit.accounting.composition import discretise


def test_gaussians_add_mu_squared():
    assert pa.gaussian(0.6).compose(pa.gaussian(0.8)) == pa.gaussian(1.0)
    assert pa.gaussian(0.1).self_compose(100).mu == pytest.approx(1.0)


def test_randomised_response_is_binomial():
    eps, k = 0.3, 20
    curve = pa.randomized_response(eps).self_compose(k)
    truth = 1 / (1 + math.exp(-eps))
    j = np.arange(k + 1)
    q, loss = binom.pmf(j, k, truth), eps * (2 * j - k)
    for target in (0.0, 0.5, 2.0, 5.9):
        expected = float((q * np.maximum(-np.expm1(target - loss), 0)).sum())
        assert curve.delta(target) == pytest.approx(expected, rel=1e-9)
        assert curve.delta(target) >= expected * (1 - 1e-12)


def test_gaussian_with_randomised_response_is_a_mixture():
    mu, eps = 0.9, 0.7
    curve = pa.gaussian(mu).compose(pa.randomized_response(eps))
    s = 1 / (1 + math.exp(-eps))
    for e in (-1.0, 0.0, 0.4, 2.0):
        g = pa.gaussian(mu)
        expected = s * g.delta(e - eps, bound="estimate") + (1 - s) * g.delta(e + eps, bound="estimate")
        assert curve.delta(e, bound="estimate") == pytest.approx(expected, rel=1e-12)


def test_zero_inflation_and_slack_are_peeled_off():
    curve = pa.shifted(pa.zil(2, 0.5, 0.01), 1e-9).compose(pa.zero_inflated(pa.randomized_response(0.5), 0.02))
    assert curve.delta(math.inf) == pytest.approx(1 - 0.99 * 0.98, abs=1e-7)


def laplace_pair_delta(a, b, eps):
    """E over the loss of the first coordinate (atoms at +-a, density e^((l - a)/2)/4) of the second's profile."""

    def second(e):
        return -math.expm1(e) if e < -b else max(-math.expm1((e - b) / 2), 0.0)

    kinks = sorted({-a, a, *np.clip([eps - b, eps + b], -a, a)})
    smooth = sum(
        quad(lambda x: 0.25 * math.exp((x - a) / 2) * second(eps - x), lo, hi, epsabs=1e-13)[0]
        for lo, hi in pairwise(kinks)
    )
    return 0.5 * second(eps - a) + 0.5 * math.exp(-a) * second(eps + a) + smooth


def test_two_laplace_coordinates():
    curve = pa.laplace(0.8).compose(pa.laplace(1.1))
    for eps in (0.0, 0.5, 1.2, 1.8):
        expected = laplace_pair_delta(0.8, 1.1, eps)
        assert curve.delta(eps) == pytest.approx(expected, abs=1e-7)
        assert curve.delta(eps) >= expected - 1e-12
    assert curve.epsilon(0.0) == pytest.approx(1.9, rel=1e-9)
    # one coordinate with all the sensitivity is the worst case of l1 sensitivity
    assert pa.laplace(1.9).delta(0.5) > curve.delta(0.5)


def test_pure_mechanisms_stay_pure():
    curve = pa.compose(*[pa.laplace(0.5)] * 3)
    assert curve.infinite_mass < 1e-290
    assert curve.max_loss == pytest.approx(1.5, rel=1e-12)
    assert curve.delta(1.5000001) < 1e-290
    assert curve.epsilon(1e-12) <= 1.5 * (1 + 1e-12)
    assert 0.5 < curve.gdp() < 3.0
    many = pa.laplace(0.05).self_compose(40)
    assert many.delta(2.0000001) < 1e-290


def test_many_laplace_releases_reference():
    """eps at delta = 1e-6 of 100 releases with a = 0.1 each: 4.692667 by an independent accountant's optimum."""
    curve = pa.laplace(0.1).self_compose(100)
    eps = curve.epsilon(1e-6)
    assert 4.692667 <= eps <= 4.692667 * 1.0002
    for k, exact in ((2, 0.199996), (4, 0.39998400), (32, 2.380685)):
        assert exact * (1 - 1e-6) <= pa.laplace(0.1).self_compose(k).epsilon(1e-6) <= exact * (1 + 2e-4)


def test_discretisation_is_pessimistic_and_close():
    for curve in (pa.gaussian(0.7), pa.laplace(1.0), pa.symmetric_laplace(3, 0.5, 2)):
        rough = discretise(curve, 400)
        eps = np.linspace(0, 2.5, 101)
        gap = rough.delta(eps) - curve.delta(eps, bound="estimate")
        assert np.all(gap >= -1e-12)
        assert gap.max() < 2e-3


def test_different_curves_lie_below_each_part():
    parts = pa.symmetric_laplace(2, 0.5, 2), pa.laplace(0.5)
    both = parts[0].compose(parts[1])
    alpha = np.linspace(0, 1, 5)
    for part in parts:
        assert np.all(both.curve(alpha) <= part.curve(alpha) + 1e-9)
    assert both.delta(0.3) <= parts[0].delta(0.0) + parts[1].delta(0.3)


def test_bad_input():
    with pytest.raises(TypeError, match="TradeOffCurve"):
        pa.gaussian(1.0).compose(1.0)
    with pytest.raises(ValueError, match="at least one"):
        pa.compose()
    for bad in (0, -1):
        with pytest.raises(ValueError, match="k must be"):
            pa.gaussian(1.0).self_compose(bad)
    with pytest.raises(TypeError, match="k must be"):
        pa.gaussian(1.0).self_compose(2.0)
