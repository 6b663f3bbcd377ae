"""Closed forms of the high-dimensional limit against the Gaussian mixture that defines it."""

import math

import mpmath as mp
import numpy as np
import pytest

import privfit.accounting as pa
from tests.accounting.reference_profile import gaussian_alpha, gaussian_delta, limit_mixture


def mixture(function, shape):
    """E function(W) for W ~ Gamma(shape, rate shape), at 30 digits."""
    with mp.workdps(30):
        k = mp.mpf(shape)
        weight = lambda w: k**k / mp.gamma(k) * w ** (k - 1) * mp.exp(-k * w)  # noqa: E731
        return float(mp.quad(lambda w: weight(w) * function(w), [0, 1e-4, 1e-2, 0.1, 0.5, 1, 3, 10, 40, mp.inf]))


@pytest.mark.parametrize(
    ("shape", "c", "t"),
    [
        (1, 0.5, 0.0),
        (1, 1.7, -0.8),
        (2, 0.5, 0.4),
        (5, 1.7, 2.0),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in ((1, 0.5, 0.4), (1, 1.7, 2.0), (2, 0.5, 0.0), (2, 1.7, 2.0), (5, 0.5, 0.0), (5, 1.7, -0.8))
        ),
    ],
)
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


CASES = [
    (3e-4, 40, 0.25),
    *(pytest.param(*case, marks=pytest.mark.slow) for case in ((0.41, 2, 273.0), (0.02, 3, 0.009), (0.687, 500, 15.0))),
]


def random_cases(count):
    rng = np.random.default_rng(3)
    for _ in range(count):
        c, shape = float(10 ** rng.uniform(-6, 3)), int(rng.choice([1, 2, 3, 5, 12, 19, 21, 40, 200, 500]))
        yield c, shape, float(rng.choice([c, 1.0]) * 10 ** rng.uniform(-3, 3))


def agrees_with_the_mixture(c, shape, t):
    from privfit.accounting.limit import ShapedLimitCurve

    curve = ShapedLimitCurve(c, shape)
    with mp.workdps(30):
        delta = limit_mixture(gaussian_delta, c, shape, t)
        alpha = limit_mixture(gaussian_alpha, c, shape, t)
        assert curve.log_delta(t, bound="estimate") == pytest.approx(float(mp.log(delta)), rel=1e-12, abs=1e-9)
        if alpha > 1e-300:
            assert curve.error_rates(t)[0] == pytest.approx(float(alpha), rel=1e-9)
        if delta > 1e-290:
            assert curve.delta(t, bound="lower") <= float(delta) * (1 + 1e-15)
            assert curve.delta(t) >= float(delta) * (1 - 1e-15)


@pytest.mark.parametrize(("c", "shape", "t"), CASES)
def test_every_digit_of_the_tail(c, shape, t):
    agrees_with_the_mixture(c, shape, t)


@pytest.mark.slow
@pytest.mark.parametrize(("c", "shape", "t"), list(random_cases(60)))
def test_every_digit_of_the_tail_at_random(c, shape, t):
    agrees_with_the_mixture(c, shape, t)


@pytest.mark.parametrize("c", [1e-6, 0.3, 40.0])
def test_integral_against_the_closed_profile(c):
    from privfit.accounting.limit import ShapedLimitCurve

    eps = np.concatenate([[-3.0, 0.0], np.geomspace(1e-6, 1e8, 30)])
    closed = pa.symmetric_laplace_limit(c).log_delta(eps, bound="estimate")
    assert np.allclose(ShapedLimitCurve(c, 1).log_delta(eps, bound="estimate"), closed, rtol=0, atol=1e-9)
    assert ShapedLimitCurve(c, 4).delta(math.inf) == 0.0
    assert ShapedLimitCurve(c, 4).delta(-math.inf) == 1.0
    assert ShapedLimitCurve(c, 4).curve([0.0, 1.0], bound="estimate").tolist() == [1.0, 0.0]


@pytest.mark.parametrize("bad", [{"c": 0.0}, {"c": math.inf}, {"shape": 0}, {"shape": 501}])
def test_bad_values(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        pa.symmetric_laplace_limit(**({"c": 1.0} | bad))
    with pytest.raises(ValueError, match="delta"):
        pa.limit_noise(1.0, 0.0)
