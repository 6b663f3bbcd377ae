"""Tail bounds lie above the integrals they stand for, and close to them."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import quad

import privfit.accounting as pa
from privfit.accounting.discrete_noise import discrete_gaussian
from privfit.accounting.generalized_gaussian import generalized_gaussian
from privfit.accounting.renyi import rdp
from privfit.accounting.tails import loss_tail


@pytest.mark.parametrize(
    ("dim", "shape", "rates"),
    [
        (3, 1, (-4.0, 0.0, 0.5, 1.5)),
        (6, 1, (0.0, 0.4)),
        (6, 2.5, (0.0, 2.0, 4.5)),
        (10, 3, (0.0, 1.2)),
        pytest.param(2, 1, (0.0, 1.0), marks=pytest.mark.slow),
    ],
)
def test_generalised_laplace_tails(dim, shape, rates):
    curve = pa.symmetric_laplace(dim, 0.7, shape)
    tail = loss_tail(curve)
    for rate in rates:
        # the bound may begin at its start or later
        for start in (tail.start, tail.start * 1.05):
            peak = rate * start + curve.log_delta(start, bound="estimate")
            value = quad(
                lambda t, rate=rate, peak=peak: math.exp(
                    min(rate * t + curve.log_delta(t, bound="estimate") - peak, 700.0)
                ),
                start,
                start + (0.1 if dim == 2 * shape else 60.0 / shape),
                limit=100,
                epsrel=1e-6,
            )[0]
            bound = float(tail.log_integral(np.array([rate]), start)[0])
            exact = math.log(value) + peak if value > 0 else -math.inf
            assert bound >= exact - 1e-6
            if dim > 2 * shape and shape == 1:
                assert bound == pytest.approx(exact, abs=1e-3 if rate < 0.4 else 0.2)


def test_gaussian_tail():
    curve = pa.gaussian(1.3)
    tail = loss_tail(curve)
    for rate, start in ((0.0, 2.0), (3.0, 8.0), (3.0, 30.0), (-2.0, 5.0)):
        exact = quad(lambda t, rate=rate: math.exp(rate * t + curve.log_delta(t)), start, start + 60, limit=200)[0]
        bound = math.exp(tail.log_integral(np.array([rate]), start)[0])
        assert exact <= bound <= 1000 * exact


def test_orders():
    assert loss_tail(pa.laplace(2.0)).order == math.inf
    assert loss_tail(pa.symmetric_laplace(6, 1.0, 2)).order == pytest.approx(3.0)
    assert loss_tail(pa.symmetric_laplace(4, 1.0, 2)).order == math.inf
    for curve in (pa.symmetric_laplace_limit(1.0), pa.symmetric_laplace_limit(1.0, 3), pa.zil(2, 1.0, 0.1)):
        assert loss_tail(curve).order == 1.0


def test_a_family_without_a_rule_is_read_off_its_values():
    # the far tail of the worst of two is the Gaussian's; that of a heavy member is recognised
    light = loss_tail(pa.minimum(pa.gaussian(1.0), pa.laplace(1.2)))
    assert light.order > 100
    heavy = loss_tail(pa.minimum(pa.gaussian(1.0), pa.symmetric_laplace(6, 0.5)))
    assert heavy.order == 1.0


@pytest.mark.parametrize(("sigma", "shift"), [(0.3, 2), (0.8, 1), (2.0, 3), (50.0, 20)])
def test_divergences_of_discrete_gaussian_noise_are_sums(sigma, shift):
    orders = np.array([1.5, 2.0, 8.0, 64.0])
    with mp.workdps(30):
        square = 2 * mp.mpf(sigma) ** 2
        z = mp.jtheta(3, 0, mp.exp(-1 / square))
        exact = []
        for a in map(mp.mpf, orders):
            middle, wide = int(a * shift), int(16 * sigma + 16)
            reach = range(middle - wide, middle + wide + 1)
            terms = (mp.exp(-(a * mp.mpf(x - shift) ** 2 + (1 - a) * mp.mpf(x) ** 2) / square) for x in reach)
            exact.append(float(mp.log(mp.fsum(terms) / z) / (a - 1)))
    found = rdp(discrete_gaussian(sigma, shift), orders)
    assert np.all(found >= np.array(exact) * (1 - 1e-13))
    assert np.all(found <= np.array(exact) * (1 + 2e-6))
    # Canonne, Kamath & Steinke 2020, theorem 4: never more than for continuous noise
    assert np.all(found <= orders * (shift / sigma) ** 2 / 2 * (1 + 2e-6))


@pytest.mark.parametrize(
    ("shift", "power"),
    [
        (0.9, 1.4),
        pytest.param(1.0, 1.02, marks=pytest.mark.slow),
        pytest.param(1.0, 3.0, marks=pytest.mark.slow),
    ],
)
def test_divergences_of_generalised_gaussian_noise_are_integrals(shift, power):
    orders = [2.0, 8.0]
    found = rdp(generalized_gaussian(shift, power), orders)
    for a, value in zip(orders, found, strict=True):

        def exponent(x, a=a):
            return -a * abs(x - shift) ** power + (a - 1) * abs(x) ** power

        grid = np.linspace(-20, 60, 4001)
        peak = float(max(exponent(x) for x in grid))
        cuts = [0.0, shift, float(grid[np.argmax([exponent(x) for x in grid])])]
        total = quad(lambda x, a=a, peak=peak: math.exp(exponent(x, a) - peak), -60, 400, points=cuts, limit=400)[0]
        exact = (math.log(total / (2 * math.gamma(1 + 1 / power))) + peak) / (a - 1)
        assert exact * (1 - 1e-9) <= value <= exact * (1 + 2e-6)


@pytest.mark.parametrize(
    ("shift", "power", "rate", "start"),
    [
        (0.9, 1.4, 3.0, 30.0),
        (0.5, 3.0, -1.0, 5.0),
        *(
            pytest.param(*noise, *place, marks=pytest.mark.slow)
            for noise in ((0.9, 1.4), (0.5, 3.0))
            for place in ((0.0, 3.0), (3.0, 3.0))
        ),
        pytest.param(0.9, 1.4, -1.0, 5.0, marks=pytest.mark.slow),
        pytest.param(0.5, 3.0, 3.0, 30.0, marks=pytest.mark.slow),
    ],
)
def test_generalised_gaussian_tail(shift, power, rate, start):
    curve = generalized_gaussian(shift, power)
    exact = quad(lambda t: math.exp(rate * t + curve.log_delta(t)), start, start + 30, limit=200)[0]
    assert exact <= math.exp(loss_tail(curve).log_integral(np.array([rate]), start)[0]) <= 1000 * exact
