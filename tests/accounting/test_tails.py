"""Tail bounds lie above the integrals they stand for, and close to them."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

import privfit.accounting as pa
from privfit.accounting.tails import loss_tail


@pytest.mark.parametrize(
    ("dim", "shape", "rates"),
    [
        (3, 1, (-4.0, 0.0, 0.5, 1.5)),
        (6, 1, (0.0, 0.4)),
        (6, 2.5, (0.0, 2.0, 4.5)),
        (10, 3, (0.0, 1.2)),
        (2, 1, (0.0, 1.0)),
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
