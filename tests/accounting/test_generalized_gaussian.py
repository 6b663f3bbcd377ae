"""Exponential power noise against 30-digit integrals, its two special cases and simulation."""

import math

import mpmath
import numpy as np
import pytest

import privfit.accounting as pa
from privfit.accounting.generalized_gaussian import GeneralizedGaussianCurve, generalized_gaussian


def exact_log_profile(shift, power, eps):
    """Log of the integral of (q - e^eps p)+, split where the densities bend."""
    with mpmath.workdps(30):
        a, p, eps = (mpmath.mpf(v) for v in (shift, power, eps))
        low, high = -a / 2, mpmath.mpf(1)
        while abs(high + a) ** p - abs(high) ** p < eps:
            high *= 2
        for _ in range(110):  # the loss increases with y
            middle = (low + high) / 2
            low, high = (middle, high) if abs(middle + a) ** p - abs(middle) ** p < eps else (low, middle)
        peak = max(low, 0) ** p
        end = (peak + 75) ** (1 / p)
        cuts = [mpmath.mpf(-1), mpmath.mpf(0), 1 - a, mpmath.mpf(1)]
        if low > 0:
            cuts += [low + k / (p * low ** (p - 1)) for k in (1, 4, 16)]
        points = sorted({low, end, *(c for c in cuts if low < c < end)})

        def integrand(y):
            return mpmath.exp(peak - abs(y) ** p) * -mpmath.expm1(eps - abs(y + a) ** p + abs(y) ** p)

        return mpmath.log(mpmath.quad(integrand, points) * p / (2 * mpmath.gamma(1 / p))) - peak


CASES = [
    (shift, power, y)
    for power in (1.02, 1.5, 2.5, 4.0, 20.0)
    for shift in ((1e-3, 0.8) if power == 1.5 else (5.0,) if 2 < power < 5 else (0.8,))
    for y in (-0.3 * shift, 0.4, 600.0 ** (1 / power))
]


@pytest.mark.parametrize(("shift", "power", "y"), CASES)
def test_profile_at_30_digits_down_to_1e_260(shift, power, y):
    eps = float((y + shift) ** power - abs(y) ** power)
    curve = GeneralizedGaussianCurve(shift, power)
    exact = exact_log_profile(shift, power, eps)
    found = float(curve._log_delta(np.asarray(eps)))
    assert found == pytest.approx(float(exact), abs=1e-12 + abs(float(exact)) * (1e-14 + 4e-16 / (power - 1)))
    if exact > -690:
        assert mpmath.log(curve.delta(eps, bound="lower")) <= exact <= mpmath.log(curve.delta(eps))


@pytest.mark.parametrize("shift", [1e-4, 0.5, 3.0])
def test_power_two_is_the_gaussian_curve(shift):
    general, closed = GeneralizedGaussianCurve(shift, 2.0), pa.gaussian(math.sqrt(2) * shift)
    assert generalized_gaussian(shift, 2.0) == closed
    eps = np.array([-1.0, -1e-3, 0.0, 0.3, 2.0, 20.0]) * shift
    assert np.allclose(general.delta(eps), closed.delta(eps), rtol=1e-10, atol=0)
    alpha = np.r_[0.0, 1e-300, 1e-12, np.linspace(0.001, 0.999, 31), 1.0]
    assert np.allclose(general.curve(alpha), closed.curve(alpha), rtol=1e-10, atol=1e-15)
    for found, expected in zip(general.error_rates(eps), closed.error_rates(eps), strict=True):
        assert np.allclose(found, expected, rtol=1e-10, atol=0)
    for delta in (1e-300, 1e-9, 0.01 * shift):
        assert general.epsilon(delta) == pytest.approx(closed.epsilon(delta), rel=1e-9)


def test_powers_near_one_tend_to_laplace():
    assert generalized_gaussian(0.9, 1.0) == pa.laplace(0.9)
    alpha, eps = np.linspace(0, 1, 21), np.array([0.0, 0.4, 0.8])
    gaps = []
    for excess in (1e-2, 1e-4):
        curve = generalized_gaussian(0.9, 1 + excess)
        gaps.append(np.max(np.abs(curve.curve(alpha) - pa.laplace(0.9).curve(alpha))))
        gaps.append(np.max(np.abs(curve.delta(eps) - pa.laplace(0.9).delta(eps))))
    assert max(gaps[2:]) < 1e-3
    assert gaps[2] < gaps[0] / 50
    assert gaps[3] < gaps[1] / 50


def test_large_powers_tend_to_uniform_noise():
    """On [-1, 1] a shift by a is seen with probability a/2 and is never wrong."""
    curve = generalized_gaussian(0.6, 100.0)
    assert curve.delta(0.0) == pytest.approx(0.3, abs=0.01)
    assert curve.delta(5.0) == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize("power", [1.1, 3.0, 17.0])
def test_curve_at_30_digits(power):
    shift = 0.7
    curve = GeneralizedGaussianCurve(shift, power)
    with mpmath.workdps(30):
        p = mpmath.mpf(power)

        def tail(x):  # P[X > x]
            upper = mpmath.gammainc(1 / p, abs(x) ** p) / (2 * mpmath.gamma(1 / p))
            return upper if x >= 0 else 1 - upper

        for z in (-3.0, -0.4, 0.0, 0.5, 1.0, 300.0, 650.0):  # x^p with its sign
            x = mpmath.sign(z) * mpmath.mpf(abs(z)) ** (1 / p)
            alpha = float(tail(x))
            expected = tail(mpmath.mpf(shift) - x)
            slope = mpmath.exp(abs(x) ** p - abs(x - shift) ** p)
            # the conversion of alpha to a float moves the value by as much as the slope makes of it
            slack = 3e-12 * float(expected) + 1e-15 * float(slope) * max(alpha, 1e-300)
            assert abs(curve.curve(alpha, bound="estimate") - float(expected)) <= slack


@pytest.mark.parametrize("power", [1.3, 6.0])
def test_error_rates_and_profile_by_simulation(power):
    rng = np.random.default_rng(31)
    n, shift, t = 400_000, 1.2, 0.5
    noise = rng.gamma(1 / power, size=n) ** (1 / power) * rng.choice([-1, 1], size=n)
    curve = generalized_gaussian(shift, power)
    loss = np.abs(noise) ** power - np.abs(noise - shift) ** power
    moved = np.abs(noise + shift) ** power - np.abs(noise) ** power
    alpha, beta = curve.error_rates(t)
    assert abs((loss > t).mean() - alpha) < 4 * math.sqrt(alpha / n)
    assert abs((moved <= t).mean() - beta) < 4 * math.sqrt(beta / n)
    gain = np.maximum(-np.expm1(t - moved), 0.0)
    assert abs(gain.mean() - curve.delta(t)) < 4 * gain.std() / math.sqrt(n)


def test_epsilon_is_solved_on_the_safe_side():
    curve = generalized_gaussian(0.6, 1.5)
    for delta in (0.2, 1e-5, 1e-100, 1e-300):
        eps = curve.epsilon(delta)
        assert curve.delta(eps) <= delta * (1 + 1e-12)
        assert curve.delta(eps * (1 - 1e-9)) > delta
        assert curve.epsilon(delta, bound="lower") <= curve.epsilon(delta, bound="estimate") <= eps
    assert curve.epsilon(0.0) == math.inf
    assert curve.epsilon(1.0) == 0.0
    assert curve.delta(math.inf) == 0.0


@pytest.mark.parametrize("shift", [1e-8, 50.0, 1e4])
@pytest.mark.parametrize("power", [1.0001, 3.0, 100.0])
def test_extreme_parameters_and_arguments_give_ordered_numbers(shift, power):
    curve = generalized_gaussian(shift, power)
    eps = np.array([-np.inf, -1e308, -700.0, -1.0, 0.0, 1e-300, 1e-12, 1.0, 700.0, 1e10, 1e308, np.inf])
    delta = curve.delta(eps)
    assert np.all(np.diff(delta) <= 1e-12)
    assert delta[-1] == 0.0
    assert np.all(delta >= -np.expm1(np.minimum(eps, 0.0)))
    f = curve.curve(np.array([0.0, 5e-324, 1e-300, 1e-16, 0.1, 0.5, 0.9, 1 - 1e-16, 1.0]))
    assert f[-1] == 0.0
    assert np.all(np.diff(f) <= 1e-12)
    for target in (1e-300, 1e-20, 0.1, 0.999):
        found = curve.epsilon(target)
        assert found == math.inf or curve.delta(found) <= target * (1 + 1e-12)


@pytest.mark.parametrize(
    ("bad", "error", "name"),
    [
        ((0.0, 1.5), ValueError, "shift"),
        ((math.nan, 1.5), ValueError, "shift"),
        ((1.0, 0.9), ValueError, "power"),
        ((1.0, 1000.0), ValueError, "power"),
        (("1", 1.5), TypeError, "shift"),
        ((1.0, None), TypeError, "power"),
    ],
)
def test_bad_parameters(bad, error, name):
    with pytest.raises(error, match=name):
        generalized_gaussian(*bad)
