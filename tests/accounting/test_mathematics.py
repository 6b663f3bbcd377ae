"""Numbers and formulas that docs/mathematics.md and docs/accounting-mathematics.md state, as printed there."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import kv

import privfit.accounting as pa


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dim", "c", "orders", "implied"),
    [
        (3, 0.01362, [1.2, 1.5, 2.0, 2.3, 2.6, 2.8, 2.9, 2.95], 2.29),
        (6, 0.00624, [1.1, 1.3, 1.4, 1.45, 1.47, 1.48, 1.485, 1.49, 1.495], 4.65),
    ],
)
def test_what_the_finite_renyi_orders_of_symmetric_laplace_noise_are_worth(dim, c, orders, implied):
    curve = pa.symmetric_laplace(dim, c)
    assert curve.epsilon(1e-5) == pytest.approx(1.0, abs=1e-3)
    assert curve.rdp(dim / (dim - 2)) == math.inf
    back = pa.from_rdp(orders, [curve.rdp(a) for a in orders])
    assert round(back.epsilon(1e-5), 2) == implied


@pytest.mark.parametrize(("dim", "c", "ratio"), [(2, 0.12042, 725), (3, 0.01362, 9.3), (6, 0.00624, 1.9)])
def test_variance_the_limit_asks_for(dim, c, ratio):
    assert pa.symmetric_laplace(dim, c).epsilon(1e-5) == pytest.approx(1.0, abs=1e-3)
    limit = pa.limit_noise(1.0, 1e-5)
    assert (c / limit) ** 2 == pytest.approx(ratio, rel=0.03)


def moment(y, c, shape):
    """M(y) of one limit: E exp(-c^2 y / W), W ~ Gamma(k, k)."""
    s = shape * c * c * y
    return 2 * s ** (shape / 2) * kv(shape, 2 * np.sqrt(s)) / math.gamma(shape)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
def test_the_integral_of_limits_is_the_closed_form_for_one(epsilon):
    c = 0.5

    def integrand(u):
        return moment((u * u + 0.25) / 2, c, 1) * math.cos(u * epsilon) / (u * u + 0.25)

    hidden = math.exp(epsilon / 2) / math.pi * sum(quad(integrand, a, a + 2)[0] for a in range(0, 60, 2))
    assert 1 - hidden == pytest.approx(-math.expm1((epsilon - math.sqrt(epsilon**2 + 2 * c * c)) / 2), rel=1e-11)


@pytest.mark.parametrize(("shape", "n"), [(1, 3), (2, 2), (3, 2)])
def test_limits_around_the_cut_and_their_polynomial_tail(shape, n):
    c, epsilon = 0.3, 40.0
    curve = pa.symmetric_laplace_limit(c, shape).self_compose(n)

    def integrand(x):
        below_the_cut = np.conj(-(x * x + x) / 2 + 0j)
        assert np.all(np.signbit(below_the_cut.imag))
        return (moment(below_the_cut, c, shape) ** n).imag * np.exp(-x * epsilon) / (x * (1 + x))

    node, weight = np.polynomial.legendre.leggauss(30)
    edges = np.geomspace(10 ** (-13 / shape), 1.0, 40)
    half = np.diff(edges) / 2
    x = edges[:-1, None] + half[:, None] * (1 + node)
    value = float(half @ integrand(x) @ weight) / math.pi
    assert curve.delta(epsilon, bound="estimate") == pytest.approx(value, rel=1e-8)
    tail = n / math.factorial(shape) * (shape * c * c / 2e4) ** shape
    assert curve.delta(1e4, bound="estimate") == pytest.approx(tail, rel=2e-3)


def hockey_stick(p, q, epsilon):
    return float(np.maximum(q - math.exp(epsilon) * p, 0.0).sum())


@pytest.mark.parametrize("seed", range(3))
def test_identities_of_profiles_on_random_pairs(seed):
    """The mirror image, the Renyi moment by profiles, and both directions of Poisson sampling."""
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5))
    a, r, e = 2.7, 0.3, 0.25
    assert hockey_stick(p, q, -e) == pytest.approx(1 - math.exp(-e) * (1 - hockey_stick(q, p, e)), rel=1e-12)
    top = float(np.abs(np.log(q / p)).max())
    kinks = sorted(float(x) for x in np.abs(np.log(q / p)))

    def integrand(t):
        return math.exp((a - 1) * t) * hockey_stick(p, q, t) + math.exp(-a * t) * hockey_stick(q, p, t)

    integral = quad(integrand, 0.0, top, points=kinks, limit=200)[0]
    assert 1 + a * (a - 1) * integral == pytest.approx(float((q**a * p ** (1 - a)).sum()), rel=1e-9)
    sampled, m = (1 - r) * p + r * q, -math.log1p(-r)
    assert hockey_stick(p, sampled, e) == pytest.approx(r * hockey_stick(p, q, math.log1p(math.expm1(e) / r)), rel=1e-9)
    inner = math.log(r * math.exp(e) / (1 - (1 - r) * math.exp(e)))
    assert hockey_stick(sampled, p, e) == pytest.approx((1 - math.exp(e - m)) * hockey_stick(q, p, inner), rel=1e-9)


@pytest.mark.parametrize("theta", [0.0, 0.2, 0.5, 1.0])
def test_tilting_tames_every_tail(theta):
    """Both tails of the tilted law fall at least like exp(-theta x) and exp(-(1 - theta) x), whatever the pair."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        p, q = (np.exp(8 * rng.normal(size=40)) for _ in range(2))
        p, q = p / p.sum(), q / q.sum()
        loss, tilted = np.log(q / p), q ** (1 - theta) * p**theta
        assert tilted.sum() <= 1 + 1e-12
        for x in (0.5, 3.0, 12.0):
            assert tilted[loss > x].sum() <= math.exp(-theta * x) * (1 + 1e-12)
            assert tilted[loss < -x].sum() <= math.exp(-(1 - theta) * x) * (1 + 1e-12)


@pytest.mark.parametrize("order", [1.5, 3.0, 20.0])
def test_ratio_of_renyi_divergence_beyond_an_order(order):
    """A curve below G_mu beyond T has D_a / a <= max(T/a, mu^2/2) + log(a + 1)/(a (a - 1))."""
    for curve, mu, start in ((pa.laplace(3.0), 1e-9, 3.0), (pa.gaussian(0.8), 0.8, 0.0), (pa.gaussian(0.8), 0.8, 5.0)):
        bound = max(start / order, mu * mu / 2) + math.log(order + 1) / (order * (order - 1))
        assert curve.rdp(order) / order <= bound
