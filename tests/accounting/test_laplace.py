"""The Laplace curve against direct integration and simulation."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

import privfit.accounting as pa


@pytest.mark.parametrize("a", [0.01, 0.5, 1.7, 8.0])
@pytest.mark.parametrize("share", [-1.5, -0.4, 0.0, 0.3, 0.9, 1.2])
def test_delta_is_the_integral_of_the_positive_part(a, share):
    eps = share * a

    def integrand(x):
        return max(np.exp(-abs(x - a)) - np.exp(eps - abs(x)), 0.0) / 2

    points = sorted({0.0, a, (eps + a) / 2})
    edges = [-60.0, *points, a + 60.0]
    expected = sum(quad(integrand, lo, hi, epsabs=1e-14, limit=400)[0] for lo, hi in pairwise(edges))
    assert pa.laplace(a).delta(eps, bound="estimate") == pytest.approx(expected, abs=2e-12)


def test_curve_pieces_by_the_likelihood_ratio_test():
    a = 1.1
    for x in (-3.0, 0.2, 0.5, 1.0, 4.0):  # reject when the output exceeds x
        alpha = 0.5 * np.exp(-x) if x > 0 else 1 - 0.5 * np.exp(x)
        beta = 0.5 * np.exp(x - a) if x < a else 1 - 0.5 * np.exp(a - x)
        assert pa.laplace(a).curve(alpha, bound="estimate") == pytest.approx(beta, rel=1e-12)


def test_error_rates_against_simulation():
    rng = np.random.default_rng(5)
    a, t, n = 1.3, 0.4, 400_000
    noise = rng.laplace(size=n)
    loss = np.abs(noise) - np.abs(noise - a)
    alpha, beta = pa.laplace(a).error_rates(t)
    assert abs((loss > t).mean() - alpha) < 4 * np.sqrt(alpha / n)
    moved = np.abs(noise + a) - np.abs(noise)
    assert abs((moved <= t).mean() - beta) < 4 * np.sqrt(beta / n)


def test_pure_privacy():
    curve = pa.laplace(0.7)
    assert curve.epsilon(0.0) == 0.7
    assert curve.delta(0.7) == 0.0
    assert curve.delta(float("inf")) == 0.0
    assert curve.max_loss == 0.7


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_epsilon(bad):
    with pytest.raises(ValueError, match="epsilon must be"):
        pa.laplace(bad)
