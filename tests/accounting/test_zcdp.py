"""Zero-concentrated differential privacy: exact values, and dominance over a dense grid of orders."""

import math

import numpy as np
import pytest

import privfit.accounting as pa
from privfit.accounting.renyi import rdp
from privfit.accounting.zcdp import zcdp


def test_gaussian():
    assert zcdp(pa.gaussian(0.6)) == pytest.approx(0.18, rel=1e-15)


@pytest.mark.parametrize("eps", [1e-6, 1e-3, 0.1, 1.0, 5.0, 30.0])
def test_randomized_response_is_eps_tanh_half_eps(eps):
    # its ratio D_a / a falls from the Kullback-Leibler divergence
    exact = eps * math.tanh(eps / 2)
    assert exact * (1 - 1e-9) <= zcdp(pa.randomized_response(eps)) <= exact * (1 + 4e-6)
    assert exact < eps**2 / 2


@pytest.mark.parametrize(
    "curve",
    [pa.laplace(0.5), pa.laplace(3.0), pa.from_points([0.1, 0.3], [0.5, 0.2]), pa.randomized_response(2.0, 7)],
    ids=str,
)
def test_smallest_rho_over_a_dense_grid(curve):
    orders = 1 + np.geomspace(1e-6, 1e4, 4000)
    largest = float(np.max(rdp(curve, orders) / orders))
    assert largest * (1 - 1e-9) <= zcdp(curve) <= largest * (1 + 1e-5)
    assert zcdp(curve) <= max(curve.max_loss, curve.reversed().max_loss) ** 2 / 2


def test_pure_generalised_laplace():
    curve = pa.symmetric_laplace(3, 0.6, 2)
    orders = np.array([1.0, 1.001, 1.1, 2.0, 4.0, 20.0])
    rho = zcdp(curve)
    assert np.all(rdp(curve, orders) <= rho * orders * (1 + 1e-6))
    assert rho <= float(np.max(rdp(curve, orders) / orders)) * (1 + 1e-3)
    assert rho < 1.2**2 / 2


@pytest.mark.slow
def test_unbounded_light_tails_stay_below_the_gaussian_bound():
    plane = pa.symmetric_laplace(2, 0.8)
    assert rdp(plane, 1.0) <= zcdp(plane) <= rdp(plane, 1.0) * 1.001
    assert zcdp(plane) < plane.gdp() ** 2 / 2
    worst = pa.minimum(pa.gaussian(1.0), pa.laplace(0.5))  # the Gaussian lies below
    assert zcdp(worst) == pytest.approx(0.5, rel=1e-5)
    assert zcdp(worst) >= 0.5


def test_composition_and_sampling():
    both = pa.laplace(1.0).compose(pa.gaussian(0.5))
    orders = 1 + np.geomspace(1e-4, 1e3, 300)
    largest = float(np.max(rdp(both, orders) / orders))
    assert largest * (1 - 1e-9) <= zcdp(both) <= largest * (1 + 1e-4)
    # the far tail of a sampled Gaussian is Gaussian: D_a / a grows to mu^2 / 2
    assert zcdp(pa.gaussian(1.0).subsample(0.1)) == pytest.approx(0.5, rel=1e-9)


def test_infinite_where_no_rho_exists():
    for curve in (
        pa.symmetric_laplace(6, 0.1),
        pa.symmetric_laplace(3, 0.1),
        pa.symmetric_laplace_limit(0.1),
        pa.symmetric_laplace_limit(0.1, 3),
        pa.zil(2, 0.5, 1e-9),
        pa.shifted(pa.gaussian(1.0), 1e-12),
        pa.approximate_dp(1.0, 1e-6),
        pa.symmetric_laplace_limit(0.3).self_compose(2),
    ):
        assert zcdp(curve) == math.inf


def test_bad_input():
    with pytest.raises(TypeError, match="curve must be a TradeOffCurve"):
        zcdp(0.5)
