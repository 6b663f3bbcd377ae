"""Bandwidths of the smoothed check loss: limits, scaling, and near-optimality in a simulation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from privfit.estimators.bandwidth import _amplification, auto_bandwidth
from privfit.estimators.losses import SmoothedCheckLoss
from privfit.estimators.symbols import Power, Resolvent, Symbol


def test_scale_equivariance():
    for factor in (Power(2), Resolvent(0.2)):
        one = auto_bandwidth(factor(0.4, 0), 1.0, 1.5, 0.5, 5000)
        ten = auto_bandwidth(factor(40.0, 0), 10.0, 15.0, 0.5, 5000)
        assert_allclose(ten, 10 * one, rtol=1e-9)


def test_vanishes_with_n_and_grows_with_noise():
    widths = [auto_bandwidth(Resolvent(0.2)(0.4, 0), 1.0, 1.5, 0.5, n) for n in (10**3, 10**5, 10**7)]
    assert widths[0] > widths[1] > widths[2]
    assert widths[2] < 0.1
    noisy = [auto_bandwidth(Power(1)(q, 0), 1.0, 1.5, 0.5, 10**4) for q in (0.01, 0.1, 1.0)]
    assert noisy[0] < noisy[1] < noisy[2]


@pytest.mark.parametrize("symbol", [Power(1)(0.3, 0), Resolvent(0.2)(0.3, 0)], ids=["sl", "zil"])
def test_integrals_by_parseval(symbol):
    """I0 and I2 against integrals over the line of the squared corrected score and curvature."""
    h = 0.4
    u = np.linspace(-60, 60, 600_001)
    loss = SmoothedCheckLoss(0.5, h, order=4)
    step = u[1] - u[0]
    extra = loss.apply(u, symbol, 1) - loss.apply(u, Symbol(), 1)
    bend = loss.apply(u, symbol, 2)
    assert_allclose(_amplification(symbol, h), [np.sum(extra**2) * step, np.sum(bend**2) * step], rtol=2e-3)


def test_fourth_order_kernel_has_a_bias_of_order_four():
    """Integral of the smoothed score against polynomials: moments 0..3 of the kernel are those of a point."""
    u = np.linspace(-40, 40, 400_001)
    kernel = SmoothedCheckLoss(0.5, 1.0, order=4).derivative(u, 2)
    step = u[1] - u[0]
    assert_allclose([np.sum(kernel * u**m) * step for m in range(4)], [1, 0, 0, 0], atol=1e-9)


def test_bad_arguments():
    with pytest.raises(ValueError, match="sigma"):
        auto_bandwidth(Symbol(), 0.0, 1.0, 1.0, 10)
    with pytest.raises(ValueError, match="share"):
        auto_bandwidth(Symbol(), 1.0, 1.0, 0.0, 10)
