"""Integer noise against 50-digit sums, dp-accounting, the continuous laws and simulation."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import privfit.accounting as pa
from privfit.accounting.discrete_noise import DiscreteGaussianCurve, discrete_gaussian, discrete_laplace


def exact_profile(sigma, s, eps):
    """Sum of P[X = y] - e^eps P[X = y + s] over the integers where it is positive, at 50 digits."""
    with mpmath.workdps(50):
        sigma, eps = mpmath.mpf(sigma), mpmath.mpf(eps)
        start = eps * sigma**2 / s - mpmath.mpf(s) / 2
        y = max(int(mpmath.floor(start)) + 1, -int(16 * sigma) - 2)
        mass, step = mpmath.exp(-(mpmath.mpf(y) ** 2) / (2 * sigma**2)), mpmath.exp(-(2 * y + 1) / (2 * sigma**2))
        ratio, decay = mpmath.exp(-s * (y - start) / sigma**2), mpmath.exp(-s / sigma**2)
        bend, total = mpmath.exp(-1 / sigma**2), mpmath.mpf(0)
        while y <= 0 or mass > total * mpmath.mpf(10) ** -25:
            total += mass * (1 - ratio)
            mass, step, ratio, y = mass * step, step * bend, ratio * decay, y + 1
        if sigma < 0.5:
            return total / mpmath.jtheta(3, 0, mpmath.exp(-1 / (2 * sigma**2)))
        return total / (
            sigma * mpmath.sqrt(2 * mpmath.pi) * mpmath.jtheta(3, 0, mpmath.exp(-2 * (mpmath.pi * sigma) ** 2))
        )


def exact_survival(sigma, n):
    with mpmath.workdps(50):
        sigma = mpmath.mpf(sigma)
        terms = [mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * sigma**2)) for x in range(-int(40 * sigma) - 40, n + 400)]
        return mpmath.fsum(terms[n + int(40 * sigma) + 40 :]) / mpmath.fsum(terms)


def close_logs(found, exact, tolerance=2e-12):
    """Relative error of the number behind a logarithm, which itself is only rounded."""
    exact = float(mpmath.log(exact))
    return abs(found - exact) <= tolerance + 4e-16 * abs(exact)


@settings(max_examples=30, deadline=None)
@given(st.floats(-1.3, 2.3), st.floats(0.0, 2.0), st.floats(0.0, 37.0))
@example(math.log10(11.99), 0.9, 30.0)
@example(math.log10(12.01), 0.9, 30.0)
@example(math.log10(12.01), 2.0, 2.3)
@example(math.log10(30.0), 2.0, 10.0)
def test_gaussian_profile_at_50_digits_down_to_1e_300(log_sigma, log_s, z):
    sigma, s = 10**log_sigma, math.ceil(10**log_s)
    eps = (z * sigma + s / 2) * s / sigma**2
    curve = discrete_gaussian(sigma, s)
    exact = exact_profile(sigma, s, eps)
    assert close_logs(float(curve._log_delta(np.asarray(eps))), exact)
    if exact > 1e-300:
        assert curve.delta(eps, bound="lower") <= exact <= curve.delta(eps)


@pytest.mark.parametrize("sigma", [0.05, 0.4, 3.0, 11.0, 13.0, 45.0])
@pytest.mark.parametrize("s", [1, 6])
def test_gaussian_error_rates_at_50_digits(sigma, s):
    curve = discrete_gaussian(sigma, s)
    for n in sorted({1, 2, s, s + 1, int(2 * sigma) + 1, int(20 * sigma) + 1}):
        t = s * (n - 0.75 - s / 2) / sigma**2  # between the atoms n - 1 and n
        alpha, beta = curve.error_rates(t)
        exact = exact_survival(sigma, n)
        if exact > 1e-300:
            assert alpha == pytest.approx(float(exact), rel=3e-12)
        assert beta == pytest.approx(1 - float(exact_survival(sigma, n - s)), abs=1e-14)
        assert curve.error_rates(-t - 0.5 * s / sigma**2)[1] == pytest.approx(alpha, rel=1e-12)


@pytest.mark.parametrize(("sigma", "s"), [(0.3, 1), (0.9, 2), (2.0, 1), (2.0, 5), (14.0, 9)])
def test_gaussian_curve_is_the_polyline_of_its_atoms(sigma, s):
    x = np.arange(-int(12 * sigma) - 12, s + int(12 * sigma) + 13.0)
    p, q = np.exp(-(x**2) / (2 * sigma**2)), np.exp(-((x - s) ** 2) / (2 * sigma**2))
    alpha = np.r_[0.0, np.cumsum((p / p.sum())[::-1])]
    beta = np.r_[np.cumsum(q / q.sum())[::-1], 0.0]
    grid = np.r_[0.0, np.geomspace(1e-12, 0.02, 30), np.linspace(0.03, 1.0, 60), 1 - 1e-9]
    assert np.allclose(discrete_gaussian(sigma, s).curve(grid), np.interp(grid, alpha, beta), rtol=1e-11, atol=1e-13)
    corners = alpha[(alpha > 1e-10) & (alpha < 1 - 1e-10)]
    assert np.allclose(discrete_gaussian(sigma, s).curve(corners), np.interp(corners, alpha, beta), atol=1e-13)


def test_gaussian_of_dp_accounting():
    mechanism = pytest.importorskip("dp_accounting.pld.privacy_loss_mechanism")
    for sigma, s in ((0.6, 1), (2.5, 2), (20.0, 7)):
        other = mechanism.DiscreteGaussianPrivacyLoss(sigma, sensitivity=s)
        for eps in (0.0, 0.3, 1.0, 2.0):
            expected = other.get_delta_for_epsilon(eps)
            assert discrete_gaussian(sigma, s).delta(eps) == pytest.approx(expected, rel=1e-9, abs=1e-14)


def test_wide_gaussian_tends_to_the_continuous_one():
    """The lattice moves the profile by a relative amount of order (tail decay per step)^2, and by its phase."""
    eps = np.array([0.0, 0.5, 2.0, 10.0])
    gaps = []
    for sigma in (50, 500, 100_000):
        discrete = discrete_gaussian(float(sigma), sigma // 2).delta(eps, bound="estimate")
        gaps.append(np.max(np.abs(discrete / pa.gaussian((sigma // 2) / sigma).delta(eps, bound="estimate") - 1)))
    assert gaps[0] < 0.02
    assert gaps[1] < gaps[0] / 40
    assert gaps[2] < 1e-8


def test_narrow_gaussian_hides_nothing():
    curve = discrete_gaussian(0.05)
    assert curve.delta(0.0) == pytest.approx(1.0, abs=1e-40)
    # two outcomes matter: P = (1, m), Q = (m, 1) with m = e^(-1/(2 sigma^2)) = e^-200
    assert curve.error_rates(0.0)[0] == pytest.approx(math.exp(-200), rel=1e-12)
    assert curve.curve(0.5 * math.exp(-200)) == pytest.approx(0.5, rel=1e-9)
    assert curve.delta(math.inf) == 0.0
    assert math.isfinite(curve.epsilon(1e-300))


@pytest.mark.parametrize(("sigma", "s"), [(5.0, 100_000), (1e5, 10**10), (100.0, 3_000)])
def test_shifts_of_many_sigma(sigma, s):
    curve = discrete_gaussian(sigma, s)
    middle = s * s / (2 * sigma**2)
    assert curve.delta(0.0) == pytest.approx(1.0, abs=1e-15)
    # at the mean loss under Q half the mass remains, plus or minus one step of the lattice
    assert curve.delta(middle) == pytest.approx(pa.gaussian(s / sigma).delta(middle), abs=0.5 / sigma)
    if sigma < 1000:
        z = 20.0
        eps = (z * sigma + s / 2) * s / sigma**2
        assert close_logs(float(curve._log_delta(np.asarray(eps))), exact_profile(sigma, s, eps), 3e-12)


@settings(max_examples=40, deadline=None)
@given(st.floats(0.01, 20.0), st.integers(1, 60), st.floats(-1.2, 1.1))
def test_laplace_profile_is_the_sum_over_the_integers(eps, s, share):
    e = share * eps
    with mpmath.workdps(40):
        a, total = mpmath.mpf(eps) / s, mpmath.mpf(0)
        weight = mpmath.tanh(a / 2)
        for y in range(1, s):
            total += max(mpmath.exp(-a * (s - y)) - mpmath.exp(mpmath.mpf(e) - a * y), 0) * weight
        tail = 1 / (1 + mpmath.exp(-a))  # sum of the geometric tail from s (or 0) onwards
        total += max(1 - mpmath.exp(mpmath.mpf(e) - a * s), 0) * tail
        total += max(mpmath.exp(-a * s) - mpmath.exp(mpmath.mpf(e)), 0) * tail
        total = float(total)
    assert discrete_laplace(eps, s).delta(e) == pytest.approx(total, rel=1e-11, abs=1e-15)


def test_laplace_of_dp_accounting():
    mechanism = pytest.importorskip("dp_accounting.pld.privacy_loss_mechanism")
    for parameter, s in ((0.7, 1), (0.05, 13)):
        other = mechanism.DiscreteLaplacePrivacyLoss(parameter, sensitivity=s)
        for eps in (0.0, 0.2, 0.6):
            expected = other.get_delta_for_epsilon(eps)
            assert discrete_laplace(parameter * s, s).delta(eps) == pytest.approx(expected, rel=1e-10)


def test_laplace_is_pure_and_tends_to_the_continuous_law():
    for s in (1, 7):
        curve = discrete_laplace(1.3, s)
        assert curve.epsilon(0.0) == 1.3
        assert curve.delta(1.3) == 0.0
        assert curve.delta(1.3 * (1 - 1e-9)) > 0
    # one step is randomised response: the lattice gives nothing between the two tails
    alpha = np.linspace(0, 1, 21)
    assert np.allclose(discrete_laplace(1.3).curve(alpha), pa.randomized_response(1.3).curve(alpha), atol=1e-14)
    gap = [np.max(np.abs(discrete_laplace(1.3, s).curve(alpha) - pa.laplace(1.3).curve(alpha))) for s in (10, 1000)]
    assert gap[1] < gap[0] / 50 < 1e-3


def test_simulation():
    rng = np.random.default_rng(8)
    n, a, s, sigma = 300_000, 0.4, 3, 1.7
    noise = rng.geometric(-math.expm1(-a), n) - rng.geometric(-math.expm1(-a), n)
    loss = a * (abs(noise) - abs(noise - s))
    alpha = discrete_laplace(a * s, s).error_rates(0.1)[0]
    assert abs((loss > 0.1).mean() - alpha) < 4 * math.sqrt(alpha / n)
    x = np.arange(-40, 41)
    weight = np.exp(-(x**2) / (2 * sigma**2))
    noise = rng.choice(x, n, p=weight / weight.sum())
    loss = (noise**2 - (noise - s) ** 2) / (2 * sigma**2)
    alpha = discrete_gaussian(sigma, s).error_rates(0.4)[0]
    assert abs((loss > 0.4).mean() - alpha) < 4 * math.sqrt(alpha / n)


@pytest.mark.parametrize("sigma", [1e-3, 0.05, 11.999, 12.0, 1e5, 1e12])
@pytest.mark.parametrize("s", [1, 1000, 10**9])
def test_extreme_parameters_and_arguments_give_ordered_numbers(sigma, s):
    curve = discrete_gaussian(sigma, s)
    eps = np.array([-np.inf, -1e308, -700.0, -1.0, 0.0, 1e-300, 1e-12, 1.0, 700.0, 1e10, 1e308, np.inf])
    delta = curve.delta(eps)
    assert np.all(np.diff(delta) <= 0)
    assert delta[0] == 1.0
    assert delta[-1] == 0.0
    assert np.all(delta >= -np.expm1(np.minimum(eps, 0.0)))
    f = curve.curve(np.array([0.0, 5e-324, 1e-300, 1e-16, 0.1, 0.5, 0.9, 1 - 1e-16, 1.0]))
    assert f[0] == pytest.approx(1.0)
    assert f[-1] == 0.0
    assert np.all(np.diff(f) <= 1e-12)
    for target in (1e-300, 1e-20, 0.1, 0.999):
        assert curve.delta(curve.epsilon(target)) <= target * (1 + 1e-12)


@pytest.mark.parametrize(
    ("call", "error", "name"),
    [
        (lambda: discrete_gaussian(0.0), ValueError, "sigma"),
        (lambda: discrete_gaussian(math.nan), ValueError, "sigma"),
        (lambda: discrete_gaussian(1.0, 0), ValueError, "sensitivity"),
        (lambda: discrete_gaussian(1.0, 1.5), TypeError, "sensitivity"),
        (lambda: DiscreteGaussianCurve("1", 1), TypeError, "sigma"),
        (lambda: discrete_laplace(0.0), ValueError, "epsilon"),
        (lambda: discrete_laplace(1.0, 10**6), ValueError, "coarser lattice"),
        (lambda: discrete_laplace(1.0, True), TypeError, "sensitivity"),
    ],
)
def test_bad_parameters(call, error, name):
    with pytest.raises(error, match=name):
        call()


@pytest.mark.parametrize("sensitivity", [1, 2, 3, 200])
def test_laplace_at_the_largest_floats(sensitivity):
    """Hardly any noise: the inputs are told apart, except by tails below all floats."""
    for epsilon in (1e300, 1e308, 1.7976931348623157e308):
        curve = discrete_laplace(epsilon, sensitivity)
        assert curve.max_loss == epsilon
        assert curve.delta(0.0) == pytest.approx(1.0, abs=1e-15)
        assert curve.epsilon(0.0) == epsilon
