"""Raw-data standard errors predicted from the release, against fits to the raw data: bias, spread, two corrections."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulations import laplace_noise, zil_noise

from privfit.estimators import LinearRegression, LogisticRegression, QuantileRegression
from privfit.estimators.efficiency import compare
from privfit.estimators.huber_regression import HuberRegression
from privfit.estimators.poisson_regression import PoissonRegression
from privfit.estimators.raw_scores import curvature_kept, poisson_dispersion
from privfit.mechanisms import Gaussian, SymmetricLaplace, ZeroInflatedLaplace


def even(rng, x):
    return 1 + x @ [1.0, -0.5] + 0.7 * rng.normal(size=len(x))


def uneven(rng, x):
    return 1 + x @ [1.0, -0.5] + np.sqrt(0.1 + 1.5 * x[:, 0] ** 2) * rng.normal(size=len(x))


def label(rng, x):
    return (rng.random(len(x)) < 1 / (1 + np.exp(-0.3 - x @ [1.0, -0.5]))).astype(int)


def count(rng, x):
    """Variance twice the mean."""
    return rng.negative_binomial(np.exp(0.7 + x @ [0.6, -0.3]), 0.5).astype(float)


def ratios(model, draw, law, replications, seed, n=2000):
    """Predicted over mean reported raw standard errors, shape (replications, 3)."""
    rng = np.random.default_rng(seed)
    predicted, raw = [], []
    for _ in range(replications):
        x = rng.uniform(-1, 1, (n, 2))
        y = draw(rng, x)
        if isinstance(law, Gaussian):
            noise = law.scale * rng.normal(size=x.shape)
        elif isinstance(law, ZeroInflatedLaplace):
            noise = zil_noise(rng, n, 2, law.scale, law.delta0)
        else:
            noise = laplace_noise(rng, n, 2, law.scale)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = model(noise=law).fit(x + noise, y)
        predicted.append(fit.bse_ / fit.efficiency_.factors)
        raw.append(model().fit(x, y).bse_)
    return np.array(predicted) / np.mean(raw, axis=0)


SL, ZIL = SymmetricLaplace(0.3), ZeroInflatedLaplace(0.5, 0.2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    "model, draw, law, low, high, spread",
    [
        (LinearRegression, even, Gaussian(0.3), 0.98, 1.02, 0.06),
        (LinearRegression, even, ZIL, 0.97, 1.03, 0.06),
        (LinearRegression, uneven, SL, 0.96, 1.04, 0.075),
        (LinearRegression, uneven, ZIL, 0.7, 1.1, 0.085),  # equal variances are assumed, and it is said
        (LogisticRegression, label, SL, 0.97, 1.03, 0.06),
        (LogisticRegression, label, ZIL, 0.97, 1.03, 0.1),
        (HuberRegression, even, SL, 0.95, 1.06, 0.12),
        (PoissonRegression, count, SL, 0.96, 1.04, 0.08),
        (QuantileRegression, even, ZIL, 0.93, 1.15, 0.3),  # the curvature is known to a sixth
    ],
)
def test_bias_and_spread(model, draw, law, low, high, spread, seed):
    """60 replications at n = 2,000; bounds from the tables of benchmarks/inference_tables.py."""
    found = ratios(model, draw, law, 60, seed)
    mean, sd = found.mean(axis=0), found.std(axis=0)
    print(model.__name__, draw.__name__, law, mean.round(3), sd.round(3))
    assert (low < mean).all() and (mean < high).all()
    assert sd.max() < spread


def test_overdispersed_counts_are_seen():
    """Variance twice the mean: information equality would be 30 % too small."""
    found = ratios(PoissonRegression, count, SL, 8, 3)
    assert_allclose(found.mean(axis=0), 1.0, atol=0.05)


@pytest.mark.parametrize("law", [SL, ZeroInflatedLaplace(0.3, 0.3)], ids=str)
def test_dispersion_of_counts(law):
    """phi is 1 for a Poisson count and 2 for this negative binomial one, noise in the count subtracted."""
    rng = np.random.default_rng(4)
    n = 40_000
    x = rng.uniform(-1, 1, (n, 2))
    noise = laplace_noise(rng, n, 2, 0.3) if law is SL else zil_noise(rng, n, 2, 0.3, 0.3)
    rate = np.exp(0.7 + x @ [0.6, -0.3])
    for y, phi in ((rng.poisson(rate), 1.0), (rng.negative_binomial(rate, 0.5), 2.0)):
        noisy = y + zil_noise(rng, n, 1, 1.0, 0.4)[:, 0]
        model = PoissonRegression(noise={(0, 1): law, "y": ZeroInflatedLaplace(1.0, 0.4)})
        fit = model.fit(x + noise, noisy, keep_records=True)
        found = poisson_dispersion(fit._kept.problem.risk, fit._kept.solution.theta, 0.6 / fit._unit**2)
        assert_allclose(found * fit._unit, phi, rtol=0.06)
        assert "times its mean" in fit.efficiency_.assumption


def test_share_of_the_curvature_by_quadrature():
    """Density of normal errors averaged over the kernel of order 4, at the quantile, by another route."""
    from scipy.integrate import quad
    from scipy.stats import norm

    for tau, h in ((0.5, 0.45), (0.2, 0.3), (0.9, 1.0)):
        z = norm.ppf(tau)

        def kernel(v):
            p = 1 / (1 + np.exp(-abs(v)))
            w = p * (1 - p)
            return w - np.pi**2 / 6 * w * (1 - 6 * w)  # logistic density minus pi^2/6 its second derivative

        smoothed = quad(lambda v, z=z, h=h: kernel(v) * norm.pdf(z + h * v), -40, 40, limit=400)[0]
        assert_allclose(curvature_kept(tau, h), smoothed / norm.pdf(z), rtol=1e-6)
    assert curvature_kept(0.5, 0.0) == pytest.approx(1.0)
    assert curvature_kept(0.5, 50.0) == 0.2


def test_what_cannot_be_compared_says_why():
    """A reason of its own in each case, never "see warnings" where there was none."""
    one, zero = np.eye(2), np.diag([1.0, 0.0])
    assert "infinite" in str(compare(np.diag([np.inf, 1.0]), one, 9, "said"))
    assert "not positive definite" in str(compare(one, -one, 9, "said"))
    assert "singular" in str(compare(zero, one, 9, "said"))
    assert "not estimated: known" in str(compare(one, np.nan * one, 9, "not estimated: known"))
    assert compare(4 * one, one, 8, "said").n_effective == 2.0
    rng = np.random.default_rng(0)
    x = rng.normal(size=(900, 2))
    y, groups = x[:, 0] + rng.normal(size=900), np.arange(900) % 3  # a covariance of rank 2, of 3 coefficients
    z = x + laplace_noise(rng, 900, 2, 0.4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LinearRegression(noise=SymmetricLaplace(0.4)).fit(z, y, clusters=groups)
    assert "see warnings" not in model.summary()
    assert "not estimated: " in str(model.efficiency_) and "clusters" in str(model.efficiency_)


def test_the_report_has_units_and_says_what_the_joint_factor_is():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 2))
    z, y = x + laplace_noise(rng, 2000, 2, 0.5), x[:, 0] + rng.normal(size=2000)
    text = LinearRegression(noise=SymmetricLaplace(0.5)).fit(z, y).efficiency_report()
    assert "worth (raw records each)" in text
    assert "counts those without noise" in " ".join(text.split())
    single = LinearRegression(noise=SymmetricLaplace(0.5), fit_intercept=False).fit(z[:, :1], y)
    assert "joint" not in single.efficiency_report()


def test_a_smoothed_loss_is_called_what_it_is():
    """The check loss and its quantile are named for quantiles only."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 1))
    z, y = x + laplace_noise(rng, 2000, 1, 0.4, 2), x[:, 0] + rng.normal(size=2000)
    law = SymmetricLaplace(0.4, 2)
    for model in (HuberRegression(noise=law), QuantileRegression(noise=law)):
        model.fit(z, y)
        assert model.diagnostics_["bandwidth"] is not None
        quantile = isinstance(model, QuantileRegression)
        assert ("Check loss smoothed" in model.summary()) == quantile
        assert ("quantile" in model.summary()) == quantile
        assert ("] Loss smoothed with bandwidth" in model.summary()) != quantile
