"""Curves implied by RDP and zCDP: brute force over coins, published conversions, other libraries."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtri

import privfit.accounting as pa
from privfit.accounting.renyi import rdp
from privfit.accounting.renyi_conversion import RdpCurve, from_rdp, from_zcdp

ORDERS = np.array([1.5, 2.0, 4.0, 8.0, 16.0, 32.0])


def canonne(eps, orders, values):
    """Log delta of Canonne, Kamath & Steinke 2020, proposition 12, at the best of the orders."""
    a, tau = np.asarray(orders), np.asarray(values)
    return float(np.min((a - 1) * (tau - eps) - np.log(a - 1) + a * np.log1p(-1 / a)))


def largest_power(p, orders, values):
    """Largest q with all binary divergences (both directions) at most their values, by root finding alone."""

    def excess(q):
        def divergence(a, s, t):
            if a == 1:
                return s * math.log(s / t) + (1 - s) * math.log((1 - s) / (1 - t))
            first = a * math.log(s) + (1 - a) * math.log(t)
            second = a * math.log1p(-s) + (1 - a) * math.log1p(-t)
            return float(np.logaddexp(first, second)) / (a - 1)

        return max(max(divergence(a, q, p), divergence(a, p, q)) - tau for a, tau in zip(orders, values, strict=True))

    return brentq(excess, p * (1 + 1e-9), 1 - 1e-13, xtol=1e-15)


@pytest.mark.parametrize("orders", [(2.0,), (1.0, 3.0), (1.5, 2.0, 4.0, 8.0, 16.0, 32.0)])
def test_exact_region_of_several_orders_by_brute_force(orders):
    values = [0.5 * a for a in orders]
    curve = from_rdp(orders, values)
    for p in (1e-4, 1e-3, 0.01, 0.1, 0.3, 0.5):
        assert curve.curve(p, bound="estimate") == pytest.approx(1 - largest_power(p, orders, values), rel=1e-7)


def test_profile_is_the_best_value_over_the_region():
    curve = from_rdp(ORDERS, ORDERS / 2)
    grid = np.concatenate([np.geomspace(1e-9, 0.01, 3000), np.linspace(0.01, 1, 3000)[1:]])
    power = 1 - curve.curve(grid, bound="estimate")
    for eps in (0.0, 0.3, 1.0, 3.0, 5.0):
        brute = float(np.max(power - math.exp(eps) * grid))
        assert brute <= curve.delta(eps) * (1 + 1e-9)
        assert brute == pytest.approx(curve.delta(eps), rel=1e-4)


def test_zcdp_region_by_brute_force():
    rho = 0.3
    orders = [1.0, *(1 + np.geomspace(0.01, 300, 400))]
    for p in (1e-4, 0.01, 0.2, 0.5):
        brute = 1 - largest_power(p, orders, [rho * a for a in orders])
        ours = from_zcdp(rho).curve(p, bound="estimate")
        assert brute * (1 - 1e-9) <= ours + 1e-12  # more orders say more
        assert ours == pytest.approx(brute, rel=1e-4)


@pytest.mark.parametrize(
    "rho", [1e-6, 0.5, 50.0, *(pytest.param(rho, marks=pytest.mark.slow) for rho in (1e-3, 0.1, 2.0))]
)
def test_between_the_gaussian_and_the_published_bound_down_to_tiny_delta(rho):
    curve, exact = from_zcdp(rho), pa.gaussian(math.sqrt(2 * rho))
    orders = 1 + np.geomspace(1e-3, 1e8, 30_000)
    for delta in (0.1, 1e-5, 1e-20, 1e-100, 1e-300):
        eps = exact.epsilon(delta)
        here = curve.log_delta(eps)
        assert exact.log_delta(eps) <= here <= min(canonne(eps, orders, rho * orders), 0.0)
        implied = curve.epsilon(delta)
        assert eps <= implied
        assert curve.log_delta(implied) <= math.log(delta) + 1e-12 * abs(math.log(delta))
        assert canonne(implied * (1 - 1e-9), orders, rho * orders) >= math.log(delta) - 1e-4 or implied == 0.0


def test_published_gap_of_the_conversion():
    # eps = rho + 2 sqrt(rho log(1/delta)) (Bun & Steinke 2016) is beaten; Gaussian mu = 1 has 4.3772 at 1e-5
    eps = from_zcdp(0.5).epsilon(1e-5)
    assert pa.gaussian(1.0).epsilon(1e-5) < eps < 0.5 + 2 * math.sqrt(0.5 * math.log(1e5)) - 0.4


def test_one_order_beats_or_meets_the_relaxation_and_is_attained_by_a_coin():
    curve = from_rdp([4.0], [1.0])
    for eps in (0.5, 1.0, 2.0, 5.0):
        assert curve.log_delta(eps) <= canonne(eps, [4.0], [1.0]) + 1e-12
        alpha, beta = curve.error_rates(eps)
        coin = pa.from_points([alpha], [beta])
        assert rdp(coin, 4.0) == pytest.approx(1.0, rel=1e-6)


def test_dp_accounting_reports_at_least_as_much_epsilon():
    dp = pytest.importorskip("dp_accounting")
    from dp_accounting.rdp import RdpAccountant

    for sigma in (0.5, 5.0):
        orders = [1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 64.0, 128.0, 256.0]
        accountant = RdpAccountant(orders).compose(dp.GaussianDpEvent(sigma))
        curve = from_rdp(orders, [a / (2 * sigma**2) for a in orders])
        for delta in (1e-2, 1e-5, 1e-10):
            theirs = accountant.get_epsilon(delta)
            ours = curve.epsilon(delta)
            assert pa.gaussian(1 / sigma).epsilon(delta) <= ours <= theirs * (1 + 1e-9)


def test_lies_below_every_mechanism_with_these_divergences():
    for mechanism in (
        pa.laplace(0.7),
        pa.randomized_response(1.1, 4),
        pa.symmetric_laplace(3, 0.4, 2),
    ):
        implied = from_rdp(ORDERS, rdp(mechanism, ORDERS))
        eps = np.linspace(0.0, 3.0, 31)
        assert np.all(mechanism.delta(eps, bound="lower") <= implied.delta(eps))


def test_round_trips_between_curves_and_divergences():
    curve = from_rdp([2.0, 8.0], [0.4, 1.0])
    again = pa.TradeOffCurve.from_dict(curve.to_dict())
    assert again == curve
    assert again.delta(1.0) == curve.delta(1.0)
    shuffled = RdpCurve((8.0, 2.0, 2.0), (1.0, 0.4, 0.9))
    assert shuffled == curve


@pytest.mark.slow
def test_gaussian_parameter_of_implied_curves():
    assert from_rdp([2.0], [0.5]).gdp() == math.inf  # an exponential tail
    # a coin of order 1 on the diagonal decides: l tanh(l/2) = rho, mu = -2 Phi^-1(1 / (1 + e^l))
    loss = brentq(lambda x: x * math.tanh(x / 2) - 0.5, 0.1, 3.0, xtol=1e-15)
    assert from_zcdp(0.5).gdp() == pytest.approx(-2 * ndtri(1 / (1 + math.exp(loss))), rel=1e-7)


@pytest.mark.parametrize(
    ("orders", "values", "message"),
    [
        ([0.5], [1.0], "orders must be"),
        ([2.0], [-1.0], "values must be"),
        ([2.0], [0.0], "values > 0"),
        ([2.0, 3.0], [1.0], "same positive length"),
        ([], [], "same positive length"),
        ([math.inf], [1.0], "finite"),
        ([2.0], [math.inf], "finite"),
        ([math.nan], [1.0], "orders must be"),
    ],
)
def test_bad_rdp(orders, values, message):
    with pytest.raises(ValueError, match=message):
        from_rdp(orders, values)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_bad_zcdp(bad):
    with pytest.raises(ValueError, match="rho must be"):
        from_zcdp(bad)
    with pytest.raises(TypeError, match="rho"):
        from_zcdp("1")
