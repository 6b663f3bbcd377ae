"""Bandwidths of the smoothed check loss: limits, scaling, and near-optimality in a simulation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from privfit.estimators.bandwidth import _amplification, auto_bandwidth, curvature_bandwidth
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


def test_curvature_bandwidth_is_hall_and_sheathers():
    """Against statsmodels' width in probability, times the density of uniform residuals."""
    from statsmodels.regression.quantile_regression import hall_sheather

    residuals = np.linspace(-1, 1, 100_001)
    for tau, n in ((0.5, 500), (0.2, 5000), (0.05, 2000)):
        expected = 2 * 2 * hall_sheather(n, tau) / (2 * np.pi)
        assert_allclose(curvature_bandwidth(residuals, tau, n), expected, rtol=1e-4)


def test_curvature_bandwidth_ignores_outliers_and_ties():
    rng = np.random.default_rng(0)
    plain = rng.normal(size=2000)
    wild = np.where(rng.random(2000) < 0.01, 1e8, 1.0) * plain
    assert_allclose(curvature_bandwidth(wild, 0.5, 2000), curvature_bandwidth(plain, 0.5, 2000), rtol=0.05)
    tied = np.repeat([0.0, 1.0], [1800, 200])
    assert_allclose(curvature_bandwidth(tied, 0.5, 2000), 1 / (2 * np.pi))
    assert curvature_bandwidth(np.zeros(9), 0.5, 9) == 1.0


def test_automatic_bandwidth_stays_within_the_tables():
    """Of resolvents, which reach to a scale of 300 bandwidths."""
    assert auto_bandwidth(Resolvent(0.9)(50.0, 0), 0.01, 7.0, 1.0, 10**7) >= np.sqrt(0.9 * 50.0) / 150.0
