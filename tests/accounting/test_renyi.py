"""Renyi divergences against closed forms, 50-digit sums and direct integrals of the densities."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import k0

import privfit.accounting as pa
from privfit.accounting.base import TradeOffCurve
from privfit.accounting.discrete import DiscreteCurve
from privfit.accounting.renyi import generator, rdp, rdp_family, second_remainder

ORDERS = np.array([1.0, 1 + 1e-9, 1.5, 2.0, 10.0, 100.0, 1e4])
by_integral = rdp_family.registry[object] if object in rdp_family.registry else rdp_family.registry[TradeOffCurve]
EXCESS = 1e-6


def laplace_exact(order, eps):
    """Mironov 2017, table II, with 60 digits."""
    with mp.workdps(60):
        a, e = mp.mpf(order), mp.mpf(eps)
        if a == 1:
            return float(e + mp.expm1(-e))
        total = a / (2 * a - 1) * mp.exp((a - 1) * e) + (a - 1) / (2 * a - 1) * mp.exp(-a * e)
        return float(mp.log(total) / (a - 1))


def atoms_exact(order, loss, q):
    with mp.workdps(60):
        a, pairs = mp.mpf(order), [(mp.mpf(t), mp.mpf(m)) for t, m in zip(loss, q, strict=True)]
        if a == 1:
            return float(mp.fsum(m * t for t, m in pairs))
        return float(mp.log(mp.fsum(m * mp.exp((a - 1) * t) for t, m in pairs)) / (a - 1))


@pytest.mark.parametrize("eps", [1e-6, 0.01, 1.0, 20.0, 200.0])
def test_laplace_in_closed_form_and_by_the_integral_of_the_profile(eps):
    exact = np.array([laplace_exact(a, eps) for a in ORDERS])
    assert np.allclose(rdp(pa.laplace(eps), ORDERS), exact, rtol=3e-12, atol=0)
    value = by_integral(pa.laplace(eps), ORDERS)
    assert np.all(value >= exact * (1 - 1e-13))
    assert np.all(value <= exact * (1 + EXCESS))


@pytest.mark.parametrize("mu", [0.01, 1.0, 5.0])
def test_gaussian_is_a_mu_squared_over_two_by_the_integral_too(mu):
    orders = np.array([1.0, 1.5, 2.0, 10.0, 50.0])
    exact = orders * mu**2 / 2
    assert np.allclose(rdp(pa.gaussian(mu), orders), exact, rtol=1e-15)
    value = by_integral(pa.gaussian(mu), orders)
    assert np.all(value >= exact * (1 - 1e-13))
    assert np.all(value <= exact * (1 + EXCESS))


@pytest.mark.parametrize("eps", [1e-6, 0.1, 1.0, 20.0])
def test_randomized_response_with_fifty_digits(eps):
    with mp.workdps(60):
        z = mp.exp(mp.mpf(eps)) + 2
        q = [1 / z, 1 / z, mp.exp(mp.mpf(eps)) / z]
    exact = np.array([atoms_exact(a, [-eps, 0.0, eps], q) for a in ORDERS])
    assert np.allclose(rdp(pa.randomized_response(eps, 3), ORDERS), exact, rtol=1e-10, atol=0)


masses = st.lists(st.floats(0.01, 1.0), min_size=2, max_size=5)


@settings(max_examples=25, deadline=None)
@given(masses, st.lists(st.floats(-3.0, 3.0), min_size=5, max_size=5), st.floats(1.01, 40.0))
def test_any_pair_of_pmfs_both_directions(weights, tilts, order):
    p = np.array(weights) / np.sum(weights)
    q = p * np.exp(tilts[: p.size])
    q /= q.sum()
    loss = np.log(q / p)
    order_by_loss = np.argsort(loss)
    p, q, loss = p[order_by_loss], q[order_by_loss], loss[order_by_loss]
    if np.any(np.diff(loss) < 1e-9):
        return
    curve = DiscreteCurve(tuple(loss), tuple(p), tuple(q))
    exact = max(atoms_exact(order, np.log(q / p), q), atoms_exact(order, np.log(p / q), p))
    # p and q are rounded, so their totals miss one by some 1e-16, which the sum divides by order - 1
    conditioning = 1e-14 + 1e-15 / (order - 1)
    assert rdp(curve, order) == pytest.approx(exact, rel=1e-9, abs=conditioning)
    value = by_integral(curve, np.array([order]))[0]
    assert exact * (1 - 1e-9) - conditioning <= value <= exact * (1 + EXCESS) + conditioning


@pytest.mark.parametrize("order", [6.0, pytest.param(1.5, marks=pytest.mark.slow)])
def test_symmetric_laplace_in_the_plane_by_integrating_the_densities(order):
    c, theta = 0.8, (np.arange(200) + 0.5) * np.pi / 200

    def radial(u):
        r = math.exp(u)
        z = np.sqrt(r * r + c * c + 2 * r * c * np.cos(theta))
        near, far = k0(math.sqrt(2) * r), k0(math.sqrt(2) * z)
        return 2 * r * r * near * np.mean((near / far) ** (order - 1))

    moment = quad(radial, -25, math.log(20.0), points=[math.log(c)], limit=100, epsrel=1e-7)[0]
    exact = math.log(moment) / (order - 1)
    assert rdp(pa.symmetric_laplace(2, c), order) == pytest.approx(exact, rel=2e-6)


def test_symmetric_laplace_in_space_up_to_its_last_finite_order():
    # d = 3: f = exp(-sqrt(2) r) / (2 pi r); distances to both centres are bipolar coordinates, dx = 2 pi r1 r2 / c
    c, nodes = 0.5, np.polynomial.legendre.leggauss(40)
    curve = pa.symmetric_laplace(3, c)
    for order in (1.2, 2.9, 2.99):
        near = c**order * math.exp(-math.sqrt(2) * (1 - order) * c)

        def outer(v, order=order, near=near):
            r2 = v ** (1 / (3 - order))
            half = min(r2, c)  # r1 runs over max(r2, c) +- half
            r1 = max(r2, c) + half * nodes[0]
            decay = np.exp(-math.sqrt(2) * ((1 - order) * r1 + order * r2))
            return half / r2 * np.sum(nodes[1] * r1**order * decay) / (3 - order) if r2 > 0 else 2 * near / (3 - order)

        ends = [0.0, *(x ** (3 - order) for x in (c / 2, c, 2 * c, 8.0, 40.0))]
        moment = sum(quad(outer, a, b, epsrel=1e-11)[0] for a, b in itertools.pairwise(ends)) / c
        exact = math.log(moment) / (order - 1)
        value = rdp(curve, order)
        assert value >= exact * (1 - 1e-8)
        assert value == pytest.approx(exact, rel=1e-5)
    assert rdp(curve, 3.0) == math.inf


@pytest.mark.parametrize(("dim", "shape"), [(3, 1), (6, 1), (6, 2), (5, 2.25)])
def test_generalised_laplace_is_infinite_from_order_d_over_d_minus_2k(dim, shape):
    curve, last = pa.symmetric_laplace(dim, 0.4, shape), dim / (dim - 2 * shape)
    assert rdp(curve, [last, 2 * last, math.inf]).tolist() == [math.inf] * 3
    below = rdp(curve, [0.9 * last + 0.1, last * (1 - 1e-6)])
    assert np.all(np.isfinite(below))
    # the divergence of the last order grows like a logarithm of the distance
    assert below[1] > 2 * below[0]


def test_bounded_loss_approaches_the_largest_loss():
    curve = pa.symmetric_laplace(3, 0.6, 2)
    assert rdp(curve, math.inf) == pytest.approx(1.2, rel=1e-15)
    far = rdp(curve, [100.0, 1000.0])
    assert 1.1 < far[0] < far[1] < 1.2


def test_no_renyi_accountant_can_serve_zero_inflated_laplace_in_three_dimensions():
    orders = [1.0, 1.0001, 2.0, 64.0]
    for curve in (
        pa.zil(3, 1.0, 0.05),
        pa.zil_limit(1.0, 0.05),
        pa.approximate_dp(1.0, 1e-9),
        pa.symmetric_laplace_limit(0.5),
    ):
        assert np.all(np.isinf(rdp(curve, orders)))
    assert np.all(np.isinf(rdp(pa.symmetric_laplace(3, 1.0), [3.0, 64.0])))
    # while the trade-off curve gives an ordinary number
    assert 0 < pa.zil(3, 1.0, 0.05).epsilon(0.1) < 10


def test_divergence_of_order_one_of_shaped_limits():
    # E c^2/(2W) with W ~ Gamma(k, rate k)
    for k in (2, 5):
        exact = 0.5 * 0.49 * quad(lambda w, k=k: w ** (k - 2) * math.exp(-k * w), 0, np.inf)[0] * k**k / math.gamma(k)
        assert rdp(pa.symmetric_laplace_limit(0.7, k), 1.0) == pytest.approx(exact, rel=1e-9)


def test_divergences_of_products_add():
    parts = [pa.laplace(1.0), pa.laplace(1.0), pa.gaussian(0.5), pa.randomized_response(0.7)]
    together = pa.compose(*parts)
    assert np.allclose(rdp(together, [1.0, 3.0, 20.0]), sum(rdp(p, [1.0, 3.0, 20.0]) for p in parts), rtol=1e-10)
    mixed = pa.gaussian(0.8).compose(pa.randomized_response(0.5))
    moment = quad(lambda t: (math.exp(2 * t) + math.exp(-3 * t)) * mixed.delta(t), 0, 30, limit=200, epsrel=1e-10)[0]
    assert rdp(mixed, 3.0) == pytest.approx(math.log1p(6 * moment) / 2, rel=1e-8)


@pytest.mark.parametrize("order", [2, 8, 32])
def test_poisson_subsampled_gaussian_against_the_binomial_sum(order):
    # Mironov, Talwar & Zhang 2019: the moment of integer order is a binomial sum
    rate, sigma = 0.01, 1.0
    moment = math.fsum(
        math.comb(order, k) * (1 - rate) ** (order - k) * rate**k * math.exp((k * k - k) / (2 * sigma**2))
        for k in range(order + 1)
    )
    exact = math.log(moment) / (order - 1)
    value = rdp(pa.gaussian(1 / sigma).subsample(rate), order)
    assert exact * (1 - 1e-12) <= value <= exact * (1 + EXCESS)


@settings(deadline=None)
@given(st.one_of(st.floats(-700, -1e-9), st.floats(1e-9, 30)), st.one_of(st.just(0.0), st.floats(1e-9, 20.0)))
def test_the_generator_is_stable(loss, b):
    with mp.workdps(60):
        x, a = mp.mpf(loss), mp.mpf(b) + 1
        exact = x * mp.exp(x) - mp.expm1(x) if b == 0 else (mp.expm1(a * x) - a * mp.expm1(x)) / (a - 1)
        remainder = (mp.expm1(x) - x) / x**2
    assert float(generator(np.array(b), np.array(loss))) == pytest.approx(float(exact), rel=1e-11, abs=1e-320)
    assert float(second_remainder(np.array(loss))) == pytest.approx(float(remainder), rel=1e-13)


def test_shapes_and_bad_input():
    curve = pa.laplace(1.0)
    assert type(rdp(curve, 2)) is float
    assert rdp(curve, np.full((2, 3), 2.0)).shape == (2, 3)
    assert rdp(curve, []).shape == (0,)
    for bad in (0.5, -1.0, float("nan")):
        with pytest.raises(ValueError, match="order must be"):
            rdp(curve, bad)
    with pytest.raises(TypeError, match="order"):
        rdp(curve, "2")
    with pytest.raises(TypeError, match="curve must be a TradeOffCurve"):
        rdp(1.0, 2.0)


HUGE = [1e150, 1e199, 1e201, 1e250, 1e308, 1.7976931348623157e308]
BOUNDED = {
    "laplace": (pa.laplace(0.5), 0.5),
    "laplace of large loss": (pa.laplace(500.0), 500.0),
    "randomised response": (pa.randomized_response(0.5), 0.5),
    "atoms of large loss": (pa.from_distributions([0.5, 0.5], [0.5 + (0.5 - 1e-9), 1e-9]), math.log(0.5 / 1e-9)),
    "composition": (pa.compose(pa.laplace(0.3), pa.randomized_response(0.5)), 0.8),
    "minimum": (pa.minimum(pa.laplace(0.3), pa.randomized_response(0.2)), 0.3),
}


@pytest.mark.parametrize(("curve", "loss"), BOUNDED.values(), ids=BOUNDED.keys())
def test_huge_orders_give_the_largest_loss(curve, loss):
    """(a - 1) (loss - D_a) is bounded, by minus the log of the mass of the largest loss."""
    found = rdp(curve, HUGE)
    assert np.allclose(found, loss, rtol=1e-9, atol=0)
    assert np.all(found >= loss * (1 - 1e-15))


def test_huge_orders_of_unbounded_losses():
    assert np.allclose(rdp(pa.gaussian(0.5), HUGE), 0.125 * np.array(HUGE), rtol=1e-12, atol=0)
    assert rdp(pa.gaussian(5.0), 1e308) == math.inf  # 1.25e309
    both = pa.compose(pa.laplace(0.3), pa.gaussian(0.2))
    assert rdp(both, 1e308) == pytest.approx(0.02 * 1e308, rel=1e-12)
    for curve, mu in ((pa.subsample(pa.gaussian(1.0), 0.1), 1.0), (pa.discrete_gaussian(2.0), 0.5)):
        # both have Gaussian tails, so that D_a / a tends to mu^2 / 2
        assert np.all(rdp(curve, HUGE) >= 0.5 * mu**2 * np.array(HUGE) * (1 - 1e-12))
