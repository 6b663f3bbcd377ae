"""The tight Gaussian parameter against direct maximisation of Phi^-1(1 - alpha) - Phi^-1(f(alpha))."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privfit.accounting as pa
from privfit.accounting.discrete import DiscreteCurve
from privfit.accounting.discrete_noise import discrete_gaussian
from privfit.accounting.gdp import matching_mu, mu_at_infinity, mu_of_rates, tight_mu
from privfit.accounting.generalized_gaussian import generalized_gaussian
from tests.accounting.curves import CURVES


def quantile(p):
    return mp.sqrt(2) * mp.erfinv(2 * p - 1)


def upper_quantile(tail):
    """The x with 1 - Phi(x) = tail <= 1/2, by Newton steps on the logarithm."""
    x, log_tail = mp.sqrt(-2 * mp.log(tail)), mp.log(tail)
    for _ in range(60):
        value = mp.erfc(x / mp.sqrt(2)) / 2
        step = (mp.log(value) - log_tail) * value * mp.sqrt(2 * mp.pi) * mp.exp(x * x / 2)
        x += step
        if abs(step) < mp.mpf(10) ** (5 - mp.mp.dps) * (abs(x) + 1):
            break
    return x


def laplace_mu(a):
    """Maximum along f(alpha) = e^-a/(4 alpha) between its kinks, where it lies by symmetry, with 40 digits."""
    with mp.workdps(40):
        a = mp.mpf(a)

        def mu(alpha):
            return -quantile(alpha) - quantile(mp.exp(-a) / (4 * alpha))

        low, high = mp.log(mp.exp(-a) / 2), mp.log(mp.mpf(1) / 2)
        grid = [low + (high - low) * i / 200 for i in range(1, 200)]
        top = max(grid, key=lambda x: mu(mp.exp(x)))
        left, right = top - (high - low) / 200, top + (high - low) / 200
        for _ in range(80):
            first, second = left + (right - left) / 3, right - (right - left) / 3
            left, right = (first, right) if mu(mp.exp(first)) < mu(mp.exp(second)) else (left, second)
        return float(max(mu(mp.exp(left)), mu(mp.exp(low)), mu(mp.exp(high))))


@pytest.mark.parametrize(
    "a", [1e-4, 0.1, 3.0, *(pytest.param(a, marks=pytest.mark.slow) for a in (1e-3, 1.0, 10.0, 50.0))]
)
def test_laplace(a):
    exact = laplace_mu(a)
    assert exact * (1 - 1e-13) <= tight_mu(pa.laplace(a)) <= exact * (1 + 2e-9)


def test_tiny_laplace_is_a_coin():
    # mu/a -> sqrt(pi/2) as a -> 0: f's middle point is 1/2 e^(-a/2)
    for a in (1e-8, 1e-6):
        with mp.workdps(40):
            exact = float(-2 * quantile(mp.exp(-mp.mpf(a) / 2) / 2))
        assert exact * (1 - 1e-13) <= tight_mu(pa.laplace(a)) <= exact * (1 + 1e-8)


@pytest.mark.parametrize("eps", [1e-6, 0.1, 1.0, 5.0, 30.0])
def test_randomized_response_is_decided_by_its_kink(eps):
    with mp.workdps(40):
        exact = float(-2 * quantile(1 / (1 + mp.exp(eps))))
    assert exact * (1 - 1e-13) <= tight_mu(pa.randomized_response(eps)) <= exact * (1 + 1e-9)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0.02, 1.0), min_size=2, max_size=8), st.lists(st.floats(-4, 4), min_size=8, max_size=8))
def test_discrete_asymmetric_pairs(weights, tilts):
    p = np.array(weights) / np.sum(weights)
    q = p * np.exp(tilts[: p.size])
    q /= q.sum()
    loss = np.log(q / p)
    order = np.argsort(loss)
    if np.any(np.diff(loss[order]) < 1e-6):
        return
    p, q, loss = p[order], q[order], loss[order]
    curve = DiscreteCurve(tuple(loss), tuple(p), tuple(q))
    with mp.workdps(30):
        alphas = [mp.fsum(map(mp.mpf, p[i:])) / mp.fsum(map(mp.mpf, p)) for i in range(1, p.size)]
        betas = [mp.fsum(map(mp.mpf, q[:i])) / mp.fsum(map(mp.mpf, q)) for i in range(1, p.size)]
        exact = max(float(-quantile(a) - quantile(b)) for a, b in zip(alphas, betas, strict=True))
    assert exact * (1 - 1e-9) <= curve.gdp() <= exact * (1 + 1e-8) + 1e-14
    assert curve.reversed().gdp() == pytest.approx(curve.gdp(), rel=1e-8)


@pytest.mark.parametrize(
    "curve",
    [
        pytest.param(pa.symmetric_laplace(2, 0.9, 12), marks=pytest.mark.slow),
        pa.symmetric_laplace(3, 0.6, 2),
        pa.symmetric_laplace(4, 0.6, 2.25),
        pytest.param(pa.symmetric_laplace(2, 0.5), marks=pytest.mark.slow),
        pa.minimum(pa.gaussian(1.0), pa.laplace(1.2)),
        pa.gaussian(0.8).compose(pa.randomized_response(0.5)),
    ],
    ids=str,
)
def test_smallest_over_a_dense_grid_of_levels(curve):
    from scipy.special import ndtri

    t = np.linspace(0.0, min(curve.max_loss, float(curve.epsilon(1e-12))), 3000)[:-1]
    alpha, beta = curve.error_rates(t)
    brute = float(np.max(-ndtri(alpha) - ndtri(beta)))
    mu = curve.gdp()
    assert brute * (1 - 1e-8) <= mu
    assert curve.dominates(pa.gaussian(mu * (1 + 1e-9)))
    assert not curve.dominates(pa.gaussian(mu * (1 - 1e-5)))


def test_a_maximum_between_coarse_thresholds_is_not_missed():
    # a narrow kink: one extra atom whose loss no fixed grid contains
    for loss in (0.123456789, 1.23456789):
        tiny = pa.minimum(pa.laplace(0.1), pa.randomized_response(loss))
        assert tiny.gdp() == pytest.approx(pa.randomized_response(loss).gdp(), rel=1e-8)


def test_composed_curves_and_their_gaussian_limit():
    composed = pa.laplace(0.1).self_compose(100)
    mu = composed.gdp()
    eps = np.linspace(0.0, 6.0, 25)
    assert np.all(pa.gaussian(mu).delta(eps) >= composed.delta(eps, bound="lower"))
    assert mu < 10 * pa.laplace(0.1).gdp()


def test_no_asymptotic_number_is_shown_as_a_guarantee():
    # the central-limit parameter of k runs of an eps-DP coin (Dong, Roth & Su 2022, theorem 3.4) breaks its promise
    eps, k = 2.0, 3
    p = 1 / (1 + math.exp(eps))
    mean, square = (1 - 2 * p) * eps, eps**2
    limit = 2 * math.sqrt(k) * mean / math.sqrt(square - mean**2)
    naive = math.sqrt(2 * k * mean)  # from the mean alone
    coin = pa.randomized_response(eps).self_compose(k)
    for wrong in (naive,):
        assert not coin.dominates(pa.gaussian(wrong))
    assert coin.dominates(pa.gaussian(coin.gdp()))
    assert not math.isclose(coin.gdp(), limit, rel_tol=1e-3)


def test_sampled_gaussian_is_no_better_in_the_far_tail():
    assert pa.gaussian(0.9).subsample(0.05).gdp() == pytest.approx(0.9, rel=1e-12)


def test_infinite_where_there_is_none():
    for curve in (
        pa.symmetric_laplace(3, 0.5),
        pa.symmetric_laplace(6, 0.1),
        pa.symmetric_laplace(6, 0.1, 2.5),
        pa.symmetric_laplace_limit(0.2),
        pa.symmetric_laplace_limit(0.2, 4),
        pa.zil(2, 0.5, 1e-6),
        pa.zil(1, 0.5, 1e-6),
        pa.approximate_dp(0.5, 1e-8),
        pa.shifted(pa.gaussian(1.0), 1e-10),
        pa.symmetric_laplace_limit(0.2).compose(pa.gaussian(1.0)),
    ):
        assert curve.gdp() == math.inf


def test_large_shifts_stay_finite_and_safe():
    curve = pa.symmetric_laplace(3, 50.0, 2)
    assert math.isfinite(curve.gdp())
    assert curve.dominates(pa.gaussian(curve.gdp()))


def test_helpers():
    from scipy.special import ndtri

    p = np.array([1e-200, 1e-9, 0.2, 0.5])
    q = np.array([1e-150, 1e-9 * (1 + 1e-7), 0.2 + 1e-8, 0.9])
    with mp.workdps(250):
        exact = [float(quantile(mp.mpf(b)) - quantile(mp.mpf(a))) for a, b in zip(p, q, strict=True)]
    assert np.allclose(mu_of_rates(np.log(p), np.log(q), 1 - q, q - p), exact, rtol=1e-7)
    assert exact[3] == pytest.approx(float(ndtri(0.9)), rel=1e-12)
    assert np.allclose(matching_mu(pa.gaussian(2.0), np.array([0.0, 1.0, 30.0])), 2.0, rtol=1e-10)


def test_bounded_and_unbounded_losses():
    # randomised response: the kink at alpha = 1/(1 + e^eps) decides; Phi^-1 gives mu exactly
    from scipy.special import ndtri

    eps = 1.3
    kink = 1 / (1 + math.exp(eps))
    assert pa.randomized_response(eps).gdp() == pytest.approx(-2 * ndtri(kink), rel=1e-8)
    for curve in (CURVES["laplace"], CURVES["generalised Laplace, pure DP"], CURVES["worst of two"]):
        mu = curve.gdp()
        assert curve.dominates(pa.gaussian(mu))
        assert not curve.dominates(pa.gaussian(mu * 0.999))
    for name in ("limit", "limit, shape 3", "symmetric Laplace, d = 6", "zero inflated", "(eps, delta)"):
        assert CURVES[name].gdp() == math.inf


@pytest.mark.parametrize(
    ("sigma", "shift"),
    [
        (0.3, 1),
        (0.3, 2),
        (2.0, 1),
        (13.0, 40),
        pytest.param(0.7, 1, marks=pytest.mark.slow),
        pytest.param(12.0, 1, marks=pytest.mark.slow),
    ],
)
def test_discrete_gaussian_over_every_corner(sigma, shift):
    """The curve's corners are (S(n), S(s + 1 - n)): the largest mu among all of them, far into the tail."""
    last = int(48 * sigma + 40 + shift)
    with mp.workdps(30):
        mass = [mp.exp(-(mp.mpf(x) ** 2) / (2 * mp.mpf(sigma) ** 2)) for x in range(last + int(20 * sigma) + 20)]
        z = 2 * mp.fsum(mass) - 1
        survival = [mp.mpf(0)] * (len(mass) + 1)
        for x in range(len(mass) - 1, -1, -1):
            survival[x] = survival[x + 1] + mass[x] / z

        def normal(n):
            return -normal(1 - n) if n <= 0 else upper_quantile(survival[n])

        known = {n: normal(n) for n in range(-shift, last + 1)}
        exact = float(max(known[n] - known[n - shift] for n in range(1, last + 1)))
    mu = discrete_gaussian(sigma, shift).gdp()
    assert exact * (1 - 1e-12) <= mu <= exact * (1 + 4e-4)


def test_wide_discrete_gaussian_is_as_good_as_its_continuous_limit():
    for sigma, shift in ((200.0, 100), (1e6, 1000), (1e12, 10**12)):
        assert shift / sigma <= discrete_gaussian(sigma, shift).gdp() <= shift / sigma * (1 + 3e-5)


@pytest.mark.parametrize(
    ("shift", "power"),
    [
        (0.9, 1.4),
        (30.0, 1.1),
        pytest.param(1.0, 1.99, marks=pytest.mark.slow),
        pytest.param(1e-6, 1.5, marks=pytest.mark.slow),
        pytest.param(1.0, 1.001, marks=pytest.mark.slow),
    ],
)
def test_generalised_gaussian_with_a_heavy_tail(shift, power):
    with mp.workdps(40):
        s, p = mp.mpf(shift), mp.mpf(power)
        middle = float(2 * upper_quantile(mp.gammainc(1 / p, (s / 2) ** p, regularized=True) / 2))
    curve = generalized_gaussian(shift, power)
    mu = curve.gdp()
    assert middle * (1 - 1e-10) <= mu
    assert curve.dominates(pa.gaussian(mu))
    # in doubles delta(0) of large shifts is 1 for both: there the middle alone is compared
    assert shift > 10 or not curve.dominates(pa.gaussian(mu * (1 - 1e-3)))
    # beyond the table the bound lies above, and close to, what the rates there give
    beyond = mu_at_infinity(curve)
    start = curve.epsilon(1e-260)
    alpha, delta = curve.error_rates(start)[0], curve.delta(start)
    from scipy.special import ndtri

    near = ndtri(delta + math.exp(start + math.log(alpha))) - ndtri(alpha) if alpha > 0 else 0.0
    assert beyond < mu * (1 + 1e-3)
    assert near == 0.0 or beyond == pytest.approx(near, rel=0.3)


def test_generalised_gaussian_with_a_light_tail_has_no_mu():
    # the curve at alpha falls below G_mu's for every mu, far enough out
    curve = generalized_gaussian(0.5, 2.5)
    assert curve.gdp() == math.inf
    assert not curve.dominates(pa.gaussian(1.5))
