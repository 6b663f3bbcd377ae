"""The smoothed corrected loss of Wang, Stefanski and Zhu: the loss, its correction, its bandwidth, its fits."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm

from privfit.estimators import CapabilityError, LinearRegression, LogisticRegression, QuantileRegression
from privfit.estimators.losses.kernel_check import KernelCheckLoss, kernel_bandwidth
from privfit.estimators.noise import resolve_noise
from privfit.estimators.problem import Sample, build_problem
from privfit.mechanisms import Gaussian, Laplace, SymmetricLaplace, ZeroInflatedLaplace


def smoothed(r, tau, h):
    return r * (tau - 1 + norm.cdf(r / h))


def symmetric_laplace(rng, scale, shape):
    return scale * np.sqrt(rng.exponential(size=(shape[0], 1))) * rng.normal(size=shape)


def data(rng, n, scale, delta0=0.0):
    x = rng.uniform(-1, 1, (n, 2))
    y = 0.5 + x @ [1.0, -0.5] + 0.6 * rng.normal(size=n)
    noise = symmetric_laplace(rng, scale, (n, 2)) * (rng.random((n, 1)) >= delta0)
    return x, x + noise, y


def posed(x, y, law, loss):
    model = resolve_noise(law, range(x.shape[1]), "y", label=False)
    problem = build_problem(
        [Sample.of(x, y, model)],
        correction="wsz",
        draws=1,
        label=False,
        intercept=True,
        bound=None,
        default_bound=10.0,
        random_state=0,
    )
    return problem.with_loss(loss)


def test_the_loss_and_its_derivatives():
    loss, r = KernelCheckLoss(0.3, 0.4), np.linspace(-2.5, 2.5, 41)
    assert_allclose(loss.value(r), smoothed(r, 0.3, 0.4), rtol=1e-13)
    step = 1e-5
    for order in range(5):
        slope = (loss.derivative(r + step, order) - loss.derivative(r - step, order)) / (2 * step)
        assert_allclose(loss.derivative(r, order + 1), slope, rtol=1e-6, atol=1e-6 * 0.4**-order)
    assert quad(lambda v: float(loss.derivative(v, 2)), -9, 9)[0] == pytest.approx(1.0)
    assert quad(lambda v: v * v * float(loss.derivative(v, 2)), -9, 9)[0] == pytest.approx(-(0.4**2))


def test_constants_of_the_bandwidth_rule():
    """The variances that the rule balances, by quadrature, give the same minimum and the same width."""
    q, sigma, spread, share, n = 0.08, 1.3, 1.5, 0.6, 4000

    def integral(order, h):
        r = np.linspace(-12 * h, 12 * h, 4001)
        return np.trapezoid(KernelCheckLoss(0.5, h).derivative(r, order) ** 2, r)

    def error(h):
        steepest = norm.pdf(1.0) / sigma**2  # of the normal density, at one standard deviation
        return (0.5 * h * h * steepest) ** 2 + q * q * integral(3, h) / (2.5 * spread * n)

    grid = np.geomspace(0.05, 3, 400)
    best = grid[np.argmin([error(h) for h in grid])]
    noise = [2.4 * math.sqrt(q * q * integral(4, h) / (2.5 * spread * n)) / (0.4 * share / sigma) for h in grid]
    calm = grid[np.argmax(np.array(noise) <= 1 / 3)]
    assert kernel_bandwidth(q, sigma, spread, share, n) == pytest.approx(max(best, calm), rel=0.02)
    assert kernel_bandwidth(q, sigma, spread, 1.0, 10**9) == pytest.approx(
        kernel_bandwidth(q, sigma, spread, 1.0, 10**9 * 2**7) * 2, rel=1e-9
    )


@pytest.mark.parametrize("law", [SymmetricLaplace(0.6), ZeroInflatedLaplace(0.6, 0.3)])
def test_corrected_loss_is_unbiased(law):
    """Mean over the noise of the corrected risk is the smoothed risk of the raw records, at two coefficient vectors."""
    n, rng = 400_000, np.random.default_rng(5)
    x, released, y = data(rng, n, 0.6, getattr(law, "delta0", 0.0))
    problem = posed(released, y, law, KernelCheckLoss(0.3, 0.35))
    for theta in (np.array([0.1, 0.5, -0.3]), np.array([-0.2, 0.3, 0.6])):
        beta = problem.coordinates.original(theta)
        unit = problem.coordinates.response_scale
        raw = smoothed((y - beta[0] - x @ beta[1:]) / unit, 0.3, 0.35)
        assert not math.isclose(problem.naive.value(theta), raw.mean(), rel_tol=0.02)
        spread = 2.0 * math.sqrt(np.var(raw) / n)  # the released loss spreads more; the draws of y and x are shared
        assert abs(problem.risk.value(theta) - raw.mean()) < 4.0 * spread


def test_gradient_and_hessian_by_differences():
    rng = np.random.default_rng(2)
    _, released, y = data(rng, 500, 0.5)
    risk = posed(released, y, SymmetricLaplace(0.5), KernelCheckLoss(0.6, 0.4)).risk
    theta, step = np.array([0.2, 0.4, -0.3]), 1e-5
    _, gradient, hessian = risk.derivatives(theta)
    for j, unit in enumerate(np.eye(3) * step):
        difference = (risk.value(theta + unit) - risk.value(theta - unit)) / (2 * step)
        assert gradient[j] == pytest.approx(difference, rel=1e-6, abs=1e-9)
        bend = (risk.derivatives(theta + unit)[1] - risk.derivatives(theta - unit)[1]) / (2 * step)
        assert_allclose(hessian[j], bend, rtol=1e-5, atol=1e-7)


def test_risk_is_the_published_formula():
    """Mean of ``rho_h(r) - (lambda^2 |beta|^2 / 2) rho_h''(r)``, from the definition, by differences of rho_h."""
    rng = np.random.default_rng(3)
    _, released, y = data(rng, 300, 0.5)
    problem = posed(released, y, SymmetricLaplace(0.5), KernelCheckLoss(0.6, 0.4))
    theta = np.array([0.2, 0.4, -0.3])
    beta, unit = problem.coordinates.original(theta), problem.coordinates.response_scale
    r, step = y - beta[0] - released @ beta[1:], 1e-3 * unit
    h = 0.4 * unit
    bend = (smoothed(r + step, 0.6, h) - 2 * smoothed(r, 0.6, h) + smoothed(r - step, 0.6, h)) / step**2
    wanted = np.mean(smoothed(r, 0.6, h) - 0.5 * 0.25 * (beta[1:] @ beta[1:]) * bend)
    assert problem.risk.value(theta) * unit == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("seed", [1, 2])
def test_fits_are_consistent_and_naive_ones_are_not(seed):
    rng = np.random.default_rng(seed)
    truth = np.array([0.5, 1.0, -0.5])
    _, released, y = data(rng, 60_000, 0.4)
    law = SymmetricLaplace(0.4)
    fit = QuantileRegression(0.5, noise=law, correction="wsz").fit(released, y)
    naive = QuantileRegression(0.5, noise=law, correction="naive").fit(released, y)
    error = np.sqrt(np.diag(fit.cov_params_))
    assert fit.converged_
    assert fit.diagnostics_["bandwidth"] > 0
    assert_allclose(fit.params_, truth, atol=4.0 * error.max())
    assert error.max() < 0.05
    assert abs(naive.params_[1] - 1.0) > 0.2


def test_zero_inflated_release_is_randomised_again():
    rng = np.random.default_rng(4)
    _, released, y = data(rng, 60_000, 0.3, 0.3)
    law = ZeroInflatedLaplace(0.3, 0.3)
    one, same, other = (
        QuantileRegression(0.5, noise=law, correction="wsz", random_state=seed).fit(released, y) for seed in (1, 1, 2)
    )
    assert (one.params_ == same.params_).all()
    assert (one.params_ != other.params_).any()
    assert_allclose(one.params_, [0.5, 1.0, -0.5], atol=4 * np.sqrt(np.diag(one.cov_params_)).max())
    exact = QuantileRegression(0.5, noise=law).fit(released, y)
    assert exact.cov_params_[1, 1] < one.cov_params_[1, 1]


def test_what_it_cannot_do_is_said():
    rng = np.random.default_rng(0)
    _, released, y = data(rng, 300, 0.3)
    for law in (Gaussian(0.3), Laplace(0.3), SymmetricLaplace(0.3, shape=4)):
        with pytest.raises(CapabilityError, match="shape 1"):
            QuantileRegression(0.5, noise=law, correction="wsz").fit(released, y)
    for model in (LinearRegression(correction="wsz"), LogisticRegression(correction="wsz")):
        with pytest.raises(CapabilityError, match="check loss"):
            model.fit(released, (y > 0).astype(float))
    with pytest.raises(ValueError, match="bandwidth must be"):
        QuantileRegression(0.5, noise=SymmetricLaplace(0.3), correction="wsz", bandwidth=-1.0).fit(released, y)


def test_without_noise_it_is_the_ordinary_fit():
    x, _, y = data(np.random.default_rng(0), 200, 0.3)
    assert_allclose(QuantileRegression(correction="wsz").fit(x, y).params_, QuantileRegression().fit(x, y).params_)
