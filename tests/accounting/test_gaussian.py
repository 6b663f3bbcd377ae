"""The Gaussian curve against 400-digit arithmetic."""

import mpmath as mp
import numpy as np
import pytest

import privfit.accounting as pa


def exact_delta(eps, mu):
    with mp.workdps(420):
        eps, mu = mp.mpf(eps), mp.mpf(mu)
        return mp.ncdf(-eps / mu + mu / 2) - mp.exp(eps) * mp.ncdf(-eps / mu - mu / 2)


@pytest.mark.parametrize("mu", [1e-8, 1e-4, 1e-2, 0.1, 0.5, 1.0, 3.0, 10.0, 50.0])
def test_delta_keeps_relative_accuracy(mu):
    curve = pa.gaussian(mu)
    for eps in (-5.0, -1.0, -1e-3, 0.0, 1e-9, 1e-5, 1e-3, 0.1, 1.0, 2.0, 5.0, 20.0, 60.0, 300.0):
        if eps / mu > 36:
            continue
        relative = float(abs(mp.mpf(curve.delta(eps, bound="estimate")) / exact_delta(eps, mu) - 1))
        assert relative < 2e-13


@pytest.mark.parametrize("delta", [1e-10, 1e-100, 1e-300])
def test_tiny_delta_to_twelve_digits(delta):
    eps = pa.gaussian(1.0).epsilon(delta, bound="estimate")
    exact = exact_delta(eps, 1.0)
    assert float(abs(mp.mpf(pa.gaussian(1.0).delta(eps, bound="estimate")) / exact - 1)) < 1e-12
    safe = exact_delta(pa.gaussian(1.0).epsilon(delta), 1.0)
    assert safe <= mp.mpf(delta)
    assert float(1 - safe / mp.mpf(delta)) < 3e-12


def test_log_delta_beyond_underflow():
    with mp.workdps(700):
        exact = mp.log(mp.ncdf(-mp.mpf(50) + 0.5) - mp.exp(50) * mp.ncdf(-mp.mpf(50) - 0.5))
    assert exact < -1200
    assert pa.gaussian(1.0).log_delta(50.0) == pytest.approx(float(exact), rel=1e-14)


def test_curve_against_normal_quantiles():
    for alpha in (1e-12, 0.01, 0.4, 0.9, 1 - 1e-9):
        with mp.workdps(40):
            z = mp.sqrt(2) * mp.erfinv(1 - 2 * mp.mpf(alpha))
            expected = float(mp.ncdf(z - mp.mpf(0.7)))
        assert pa.gaussian(0.7).curve(alpha, bound="estimate") == pytest.approx(expected, rel=1e-11)


def test_analytic_gaussian_mechanism_reference():
    sigma = pa.calibrate(lambda s: pa.gaussian(1 / s), pa.Budget(1.0, 1e-5))
    assert sigma == pytest.approx(3.730631634, rel=2e-9)


def test_privacy_table_of_the_classic_formula():
    # true delta of sigma = sqrt(2 log(1.25/delta))/eps at delta = 1e-5: safe at eps = 1, violated at 10 and 20
    for eps, expected in ((1.0, 4e-8), (5.0, 1.4e-6), (10.0, 2.3e-5), (20.0, 1.5e-3)):
        sigma = np.sqrt(2 * np.log(1.25e5)) / eps
        assert pa.gaussian(1 / sigma).delta(eps) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_mu(bad):
    with pytest.raises(ValueError, match="mu must be a finite number > 0"):
        pa.gaussian(bad)


@pytest.mark.parametrize("bad", ["1", None, True, [1.0], 1j])
def test_wrong_type_of_mu(bad):
    with pytest.raises(TypeError, match="mu"):
        pa.gaussian(bad)
