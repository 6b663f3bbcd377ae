"""Zero inflation, sampler slack and the worst of several curves."""

import math

import mpmath as mp
import numpy as np
import pytest

import privfit.accounting as pa
from privfit.accounting.wrappers import SlackCurve

ALPHA = np.linspace(0, 1, 201)


def test_zero_inflation_formulas():
    base, d0 = pa.gaussian(1.3), 0.1
    curve = pa.zero_inflated(base, d0)
    expected = np.where(1 - d0 >= ALPHA, (1 - d0) * base.curve(np.minimum(ALPHA / (1 - d0), 1)), 0.0)
    assert np.allclose(curve.curve(ALPHA), expected, atol=1e-12)
    assert curve.delta(0.7) == pytest.approx(d0 + (1 - d0) * base.delta(0.7), rel=1e-11)
    assert pa.zero_inflated(base, 0.0) is base
    assert curve.epsilon(d0 * 0.99) == math.inf


def test_zero_inflation_by_simulation():
    rng = np.random.default_rng(3)
    n, d0, mu, t = 400_000, 0.2, 1.1, 0.3
    loss = mu * rng.standard_normal(n) - mu * mu / 2
    loss[rng.random(n) < d0] = -np.inf  # an unchanged record rules the other hypothesis out
    alpha, _ = pa.zero_inflated(pa.gaussian(mu), d0).error_rates(t)
    assert abs((loss > t).mean() - alpha) < 4 * math.sqrt(alpha / n)


@pytest.mark.parametrize("base", [pa.gaussian(1.0), pa.laplace(0.8), pa.approximate_dp(0.5, 0.01)])
def test_slack_is_the_shifted_function(base):
    eta = 0.03
    curve = pa.shifted(base, eta)
    expected = np.maximum(base.curve(np.minimum(ALPHA + eta, 1)) - eta, 0)
    assert np.allclose(curve.curve(ALPHA), expected, atol=1e-12)
    fine = np.linspace(0, 1, 200_001)
    f = np.maximum(base.curve(np.minimum(fine + eta, 1)) - eta, 0)
    for eps in (-6.0, -1.0, 0.0, 0.5, 3.0, 9.0):
        brute = float(np.max(1 - f - math.exp(eps) * fine))
        assert curve.delta(eps) >= brute - 1e-12
        assert curve.delta(eps) <= brute + 2e-5 * math.exp(max(eps, 0)) + 1e-9
    assert pa.shifted(base, 0.0) is base


def test_slack_of_a_tiny_error_keeps_the_profile():
    curve = pa.shifted(pa.gaussian(0.5), 1e-11)
    assert curve.delta(1.0) == pytest.approx(pa.gaussian(0.5).delta(1.0) + (1 + math.e) * 1e-11, rel=1e-9)


@pytest.mark.parametrize(
    ("base", "eta"), [(pa.gaussian(0.1), 1e-30), (pa.gaussian(1.0), 1e-18), (pa.laplace(0.5), 1e-25)]
)
def test_slack_says_what_it_costs_far_below_rounding(base, eta):
    """1 - f(0) = 1 - base(eta) + eta: here by the closed form of 1 - base(eta), at 60 digits."""
    with mp.workdps(60):
        eta_ = mp.mpf(eta)
        if isinstance(base, type(pa.laplace(1.0))):
            exact = eta_ * (1 + mp.exp(mp.mpf(base.a)))  # below the first kink the curve is 1 - e^a alpha
        else:
            x = mp.sqrt(-2 * mp.log(eta_))
            for _ in range(200):
                tail = mp.erfc(x / mp.sqrt(2)) / 2
                x += (mp.log(tail) - mp.log(eta_)) * tail * mp.sqrt(2 * mp.pi) * mp.exp(x * x / 2)
            exact = mp.erfc((x - mp.mpf(base.mu)) / mp.sqrt(2)) / 2 + eta_
        exact = float(exact)
    curve = pa.shifted(base, eta)
    assert exact * (1 - 1e-13) <= curve.infinite_mass <= exact * (1 + 1e-10)
    assert curve.delta(math.inf) >= exact * (1 - 1e-13)
    assert SlackCurve(base, 0.0).infinite_mass == 0.0


def test_worst_of_several_is_the_convex_hull_of_the_minimum():
    a, b = pa.gaussian(1.0), pa.laplace(1.2)
    worst = pa.minimum(a, b)
    fine = np.linspace(0, 1, 20_001)
    lower = np.minimum(a.curve(fine), b.curve(fine))
    assert np.all(worst.curve(fine) <= lower + 1e-12)
    from scipy.spatial import ConvexHull

    hull = ConvexHull(np.column_stack([np.r_[fine, 1.5], np.r_[lower, 1.5]])).vertices
    hull = np.sort(hull[hull < fine.size])
    assert np.allclose(worst.curve(fine), np.interp(fine, fine[hull], lower[hull]), atol=1e-7)
    assert pa.minimum(a) is a
    assert pa.minimum(a, a) is a


@pytest.mark.parametrize(
    "make", [lambda: pa.zero_inflated(1, 0.1), lambda: pa.shifted(None, 0.1), lambda: pa.minimum("a")]
)
def test_wrong_types(make):
    with pytest.raises(TypeError, match="curve"):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: pa.zero_inflated(pa.gaussian(1), 1.0),
        lambda: pa.zero_inflated(pa.gaussian(1), -0.1),
        lambda: pa.shifted(pa.gaussian(1), 0.6),
        lambda: pa.shifted(pa.gaussian(1), float("nan")),
        lambda: pa.minimum(),
    ],
)
def test_bad_values(make):
    with pytest.raises(ValueError, match="must"):
        make()
