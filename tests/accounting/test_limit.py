"""Closed forms of the high-dimensional limit against the Gaussian mixture that defines it."""

import math

import mpmath as mp
import numpy as np
import pytest

import privfit.accounting as pa


def mixture(function, shape):
    """E function(W) for W ~ Gamma(shape, rate shape), at 30 digits."""
    with mp.workdps(30):
        k = mp.mpf(shape)
        weight = lambda w: k**k / mp.gamma(k) * w ** (k - 1) * mp.exp(-k * w)  # noqa: E731
        return float(mp.quad(lambda w: weight(w) * function(w), [0, 1e-4, 1e-2, 0.1, 0.5, 1, 3, 10, 40, mp.inf]))


@pytest.mark.parametrize("shape", [1, 2, 5])
@pytest.mark.parametrize(("c", "t"), [(0.5, 0.0), (0.5, 0.4), (1.7, -0.8), (1.7, 2.0)])
def test_error_rates_are_the_mixture(shape, c, t):
    alpha, beta = pa.symmetric_laplace_limit(c, shape).error_rates(t)
    expected = mixture(lambda w: mp.ncdf(-t * mp.sqrt(w) / c - c / (2 * mp.sqrt(w))), shape)
    assert alpha == pytest.approx(expected, abs=1e-12)
    expected = mixture(lambda w: mp.ncdf(t * mp.sqrt(w) / c - c / (2 * mp.sqrt(w))), shape)
    assert beta == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("c", [1e-6, 0.3, 5.0, 1e3])
@pytest.mark.parametrize("eps", [-2.0, 0.0, 1e-3, 1.0, 50.0, 1e6])
def test_closed_profile_at_fifty_digits(c, eps):
    with mp.workdps(60):
        e, cc = mp.mpf(eps), mp.mpf(c)
        expected = 1 - mp.exp((e - mp.sqrt(e * e + 2 * cc * cc)) / 2)
        got = mp.mpf(pa.symmetric_laplace_limit(c).delta(eps, bound="estimate"))
        assert float(abs(got / expected - 1)) < 1e-13


def test_calibration_without_a_solver():
    for eps, delta in ((0.0, 0.1), (1.0, 1e-5), (4.0, 1e-9), (0.8, 0.3)):
        c = pa.limit_noise(eps, delta)
        assert pa.symmetric_laplace_limit(c).delta(eps, bound="estimate") == pytest.approx(delta, rel=1e-10)
        assert pa.symmetric_laplace_limit(c).epsilon(delta) == pytest.approx(eps, rel=1e-9, abs=1e-9)


def test_tail_is_polynomial():
    c = 0.7
    eps = np.array([1e3, 1e5])
    assert np.allclose(pa.symmetric_laplace_limit(c).delta(eps), c * c / (2 * eps), rtol=2e-3)


def test_shape_one_by_both_routes():
    from privfit.accounting.limit import ShapedLimitCurve

    t = np.linspace(-4, 4, 41)
    for got, wanted in zip(
        ShapedLimitCurve(0.6, 1).error_rates(t), pa.symmetric_laplace_limit(0.6).error_rates(t), strict=True
    ):
        assert np.allclose(got, wanted, rtol=1e-11)


@pytest.mark.parametrize("bad", [{"c": 0.0}, {"c": math.inf}, {"shape": 0}, {"shape": 501}])
def test_bad_values(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        pa.symmetric_laplace_limit(**({"c": 1.0} | bad))
    with pytest.raises(ValueError, match="delta"):
        pa.limit_noise(1.0, 0.0)
