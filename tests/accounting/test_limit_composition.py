"""The integral for composed limits: closed forms, mixtures over W by quadrature, and simulation."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import quad

import privfit.accounting as pa
from privfit.accounting.gaussian import gaussian_log_delta
from privfit.accounting.limit_composition import LimitCompositionCurve, limit_composition

EPS = np.array([0.0, 0.1, 1.0, 5.0, 20.0, 60.0, 200.0, 1e3, 1e4, 1e6])


@pytest.mark.parametrize("c", [1e-5, 0.5, 20.0, *(pytest.param(c, marks=pytest.mark.slow) for c in (1e-3, 0.01, 3.0))])
def test_one_limit_is_its_closed_form(c):
    closed = pa.symmetric_laplace_limit(c)
    integral = LimitCompositionCurve((closed,), (1,), 0.0)
    expected = closed.delta(EPS, bound="estimate")
    assert np.allclose(integral.delta(EPS, bound="estimate"), expected, rtol=1e-11, atol=2e-14)
    far = max(integral._far, 1.0) < EPS
    assert np.allclose(integral.delta(EPS[far], bound="estimate"), expected[far], rtol=1e-12, atol=0)
    t = np.array([-30.0, -1.0, 0.0, 0.3, 4.0, 30.0])
    for ours, theirs in zip(integral.error_rates(t), closed.error_rates(t), strict=True):
        assert np.allclose(ours, theirs, rtol=1e-9, atol=5e-14)


def test_many_points_are_read_from_a_table_of_the_same_numbers():
    curve = limit_composition({pa.symmetric_laplace_limit(0.3): 4, pa.symmetric_laplace_limit(0.1, 3): 2}, 0.25)
    eps = np.linspace(0, 90, 800)
    table = curve.delta(eps, bound="estimate")
    for i in (0, 17, 311, 799):
        assert table[i] == pytest.approx(curve.delta(eps[i], bound="estimate"), rel=1e-11, abs=2e-14)


@pytest.mark.parametrize(("c", "k", "mu"), [(0.5, 1, 0.8), (0.3, 2, 0.2), (1.5, 5, 1.0)])
def test_limit_with_gaussian_is_a_mixture_over_w(c, k, mu):
    """delta = E delta_Gauss(eps; sqrt(mu^2 + c^2/W)) with W ~ Gamma(k, rate k)."""
    curve = pa.symmetric_laplace_limit(c, k).compose(pa.gaussian(mu))
    assert isinstance(curve, LimitCompositionCurve)
    log_weight = k * math.log(k) - math.lgamma(k)

    for eps in (0.0, 0.7, 3.0, 12.0):

        def integrand(u, eps=eps):
            w = math.exp(u)
            m = math.sqrt(mu**2 + c * c / w)
            return math.exp(log_weight + k * u - k * w + float(gaussian_log_delta(np.array(eps), np.array(m))))

        truth = sum(
            quad(integrand, a, b, epsabs=0, epsrel=1e-12, limit=200)[0]
            for a, b in ((-60, -8), (-8, -2), (-2, 1), (1, 5))
        )
        assert curve.delta(eps, bound="lower") <= truth * (1 + 1e-9)
        assert curve.delta(eps) >= truth * (1 - 1e-9)
        assert curve.delta(eps) == pytest.approx(truth, rel=1e-8)


def test_moment_on_the_line_by_another_bessel_function():
    """Three limits, c = 0.4: 1 - delta = e^(eps/2)/pi int M cos(u eps)/(u^2 + 1/4) du with mpmath's Bessel function."""
    with mp.workdps(18):
        eps, c, n = mp.mpf("1.3"), mp.mpf("0.4"), 3

        def integrand(u):
            root = 2 * mp.sqrt(c * c * (u * u + mp.mpf(1) / 4) / 2)
            return (root * mp.besselk(1, root)) ** n * mp.cos(u * eps) / (u * u + mp.mpf(1) / 4)

        # the integrand falls like e^(-1.7 u)
        hidden = mp.exp(eps / 2) / mp.pi * mp.quad(integrand, mp.linspace(0, 24, 7))
    curve = pa.symmetric_laplace_limit(0.4).self_compose(3)
    assert curve.delta(1.3, bound="estimate") == pytest.approx(float(1 - hidden), rel=1e-12)


def test_far_tail_of_many_limits_is_the_sum_of_their_tails():
    """delta ~ n c^2 / (2 eps) far out: one large loss."""
    n, c = 5, 0.3
    curve = pa.symmetric_laplace_limit(c).self_compose(n)
    for eps in (1e5, 1e8, 1e12):
        assert curve.delta(eps, bound="estimate") == pytest.approx(n * c * c / (2 * eps), rel=30 / eps**0.5)


def test_far_out_the_bounds_are_close_in_relative_terms():
    curve = pa.symmetric_laplace_limit(0.3, 3).self_compose(2)
    assert 0 < curve.delta(1e5) < 1e-12
    assert curve.delta(1e5) <= curve.delta(1e5, bound="lower") * (1 + 1e-11)
    assert curve.delta(0.1) > curve.delta(0.1, bound="estimate") > curve.delta(0.1, bound="lower")


def test_against_simulation():
    """V = sum c^2/W of five releases and a Gaussian: 4e5 draws, within 4 standard errors."""
    rng, n = np.random.default_rng(11), 400_000
    mu = np.sqrt((0.25 / rng.exponential(size=(n, 5))).sum(axis=1) + 0.64)
    curve = pa.symmetric_laplace_limit(0.5).self_compose(5).compose(pa.gaussian(0.8))
    for eps in (0.0, 1.0, 4.0, 20.0, 100.0):
        draws = np.exp(gaussian_log_delta(np.full(n, eps), mu))
        assert abs(curve.delta(eps) - draws.mean()) < 4 * draws.std() / math.sqrt(n)


def test_compositions_compose_and_zero_inflation_is_peeled():
    once = pa.zil_limit(0.3, 0.01)
    four = once.self_compose(2).compose(once.self_compose(2))
    assert four.delta(2.0) == pytest.approx(once.self_compose(4).delta(2.0), rel=1e-12)
    assert four.delta(math.inf) == pytest.approx(1 - 0.99**4)
    assert four.gdp() == math.inf


def test_wrong_parts_are_refused():
    with pytest.raises(TypeError, match="symmetric_laplace_limit"):
        limit_composition({pa.gaussian(1.0): 1}, 0.0)
