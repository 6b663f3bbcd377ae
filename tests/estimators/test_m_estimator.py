"""MEstimator: equal to the named regressions, unbiased for losses of records, honest about what it cannot do."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from simulations import laplace_noise, logistic_data, truncated_normal, zil_noise
from sklearn.utils.estimator_checks import check_estimator

from privfit.estimators import CapabilityError, LinearRegression, LogisticRegression, SmallSampleWarning
from privfit.estimators.huber_regression import HuberRegression
from privfit.estimators.losses import CheckLoss, HuberLoss, LogisticLoss, Loss
from privfit.estimators.m_estimator import MEstimator
from privfit.estimators.m_records import RecordRisk
from privfit.estimators.quantile_regression import QuantileRegression
from privfit.mechanisms import Box, Gaussian, RandomizedResponse, SymmetricLaplace, ZeroInflatedLaplace, release

ZIL = ZeroInflatedLaplace(0.5, 0.2)


def data(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    x = truncated_normal(rng, (n, 2))
    y = 1.0 + x @ [1.0, -0.5] + rng.normal(size=n)
    return x + zil_noise(rng, n, 2, 0.5, 0.2), y


def test_the_named_regressions_are_special_cases():
    x, y = data()
    linear = MEstimator("u**2/2", noise=ZIL).fit(x, y)
    assert_allclose(linear.params_, LinearRegression(noise=ZIL).fit(x, y).params_, atol=1e-7)
    huber = HuberRegression(1.2, noise=ZIL).fit(x, y)
    own = MEstimator(HuberLoss(1.2), noise=ZIL).fit(x, y)
    assert_allclose(own.params_, huber.params_, atol=1e-6)
    assert_allclose(own.cov_params_, huber.cov_params_, rtol=1e-4)
    check = QuantileRegression(0.3, noise=ZIL, bandwidth=0.2).fit(x, y)
    kinked = MEstimator(CheckLoss(0.3), noise=ZIL, bandwidth=0.2).fit(x, y)
    assert_allclose(kinked.params_, check.params_, atol=1e-6)
    assert kinked.diagnostics_["bandwidth"] == 0.2


@pytest.mark.slow
@pytest.mark.parametrize("randomised", [False, True])
def test_a_logistic_margin_is_logistic_regression(randomised):
    rng = np.random.default_rng(1)
    x, y = logistic_data(rng, 1500, np.array([1.0, -1.0]))
    x = x + zil_noise(rng, len(x), 2, 0.5, 0.2)
    flipped = np.where(rng.random(len(y)) < 0.1, 1 - y, y)
    law = {(0, 1): ZIL, "y": RandomizedResponse(float(np.log(9.0)))}
    for labels, noise in ((y, ZIL), (flipped, law))[: 1 + randomised]:
        named = LogisticRegression(noise=noise).fit(x, labels)
        margin = MEstimator("log(1 + exp(-u))", response="margin", noise=noise).fit(x, 2 * labels - 1)
        assert_allclose(margin.params_, named.params_, atol=1e-6)
    linear = MEstimator(LogisticLoss(), response="linear", noise=ZIL).fit(x, y)
    assert_allclose(linear.params_, LogisticRegression(noise=ZIL).fit(x, y).params_, atol=1e-6)


def test_a_function_of_the_index_by_second_draws():
    x, y = data()
    f = Loss.from_callable(lambda u: np.sqrt(1 + u * u), [lambda u: u / np.sqrt(1 + u * u)])
    one = MEstimator(f, noise=ZIL, correction="dr", draws=3, random_state=0).fit(x, y)
    two = MEstimator("sqrt(1 + u**2)", noise=ZIL, correction="dr", draws=3, random_state=0).fit(x, y)
    assert_allclose(one.params_, two.params_, atol=1e-6)
    with pytest.raises(CapabilityError, match="correction='dr'"):
        MEstimator(f, noise=ZIL).fit(x, y)


@pytest.mark.slow
def test_an_index_without_response():
    """Against a search on a grid."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(3000, 1)) * 0.5
    model = MEstimator("cosh(u) - u/4", response="none", fit_intercept=False).fit(x + 0.3)
    grid = np.linspace(-2, 2, 4001)
    risk = [float(np.mean(np.cosh((x + 0.3) * t) - (x + 0.3) * t / 4)) for t in grid]
    assert abs(model.params_[0] - grid[int(np.argmin(risk))]) < 2e-3


TRUTHS = {
    "relu": (lambda x: np.maximum(x, 0.0), 0.5),
    "indicator": (lambda x: ((x >= 0.5) & (x <= 1.0)).astype(float), 0.5),
    "sine": (lambda x: np.abs(np.sin(2 * np.pi * x)), 2 / np.pi),
}
SPREADS = {"relu": 12**-0.5, "indicator": 0.5, "sine": (0.5 - 4 / np.pi**2) ** 0.5}  # standard deviations of g(X)


def l2(g):
    return Loss.from_callable(lambda x, theta: (theta[0] - g(x[:, 0])) ** 2, size=1)


@pytest.mark.parametrize("name", TRUTHS)
def test_the_non_smooth_examples(name):
    g, truth = TRUTHS[name]
    rng = np.random.default_rng(5)
    n, law = 20_000, ZeroInflatedLaplace(0.94, 0.1)
    x = rng.uniform(size=(n, 1)) + zil_noise(rng, n, 1, 0.94, 0.1)
    model = MEstimator(l2(g), noise=law, correction="dr", draws=4, random_state=0).fit(x)
    assert model.converged_
    assert abs(model.params_[0] - truth) < 4 * model.bse_[0]
    naive = MEstimator(l2(g), noise=law, correction="naive").fit(x)
    if name != "sine":  # whose mean over a period no noise changes much
        assert abs(naive.params_[0] - truth) > 5 * naive.bse_[0]
    if np.isfinite(model.efficiency_.overall):  # known within a tenth, four standard errors of it
        raw = model.bse_[0] / model.efficiency_.factors[0] * np.sqrt(n)
        assert abs(raw / SPREADS[name] - 1.0) < 0.4
    else:
        assert "more records or draws" in str(model.efficiency_)
    # the estimate is the corrected mean of g: [g(X1) - (1 - delta0) mean_m g(X2m)] / delta0
    one = MEstimator(l2(g), noise=law, correction="dr", random_state=7).fit(x)
    from privfit.estimators.corrections import draw_second_noise

    second = x[:, 0] + draw_second_noise(one.noise_.parts, n, 7)[0]
    assert_allclose(one.params_[0], (g(x[:, 0]).mean() - 0.9 * g(second).mean()) / 0.1, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_intervals_of_the_non_smooth_examples_cover(seed):
    """400 releases: the share of 95 % intervals that hold the truth is within 4 standard errors of it."""
    rng = np.random.default_rng(seed)
    law, n = ZeroInflatedLaplace(0.94, 0.1), 2000
    for g, truth in TRUTHS.values():
        hits = 0
        for k in range(400):
            x = rng.uniform(size=(n, 1)) + zil_noise(rng, n, 1, 0.94, 0.1)
            low, high = MEstimator(l2(g), noise=law, correction="dr", random_state=k).fit(x).conf_int()[0]
            hits += low <= truth <= high
        assert abs(hits / 400 - 0.95) < 4 * np.sqrt(0.05 * 0.95 / 400)


def test_corrections_by_the_trace_are_unbiased():
    """``(theta - x^2)^2``: E over the noise of the corrected loss, 400,000 draws, four standard errors."""
    loss = Loss.from_callable(
        lambda x, theta: (theta[0] - x[:, 0] ** 2) ** 2,
        size=1,
        gradient=lambda x, theta: 2 * (theta[0] - x[:, :1] ** 2),
        half_trace=lambda x, theta, v: 0.5 * v[0] * (12 * x[:, 0] ** 2 - 4 * theta[0]),
    )
    rng = np.random.default_rng(11)
    n, point, theta = 400_000, 0.6, np.array([0.2])
    from privfit.estimators.corrections import correction_terms, draw_second_noise
    from privfit.estimators.noise import resolve_noise

    law = ZeroInflatedLaplace(0.4, 0.3)
    model = resolve_noise(law, ["x"])
    first = point + zil_noise(rng, n, 1, 0.4, 0.3)
    second = first + draw_second_noise(model.parts, n, rng)[:1].T
    truth = (theta[0] - point**2) ** 2
    for correction in ("dr", "sdr", "sl"):
        terms = correction_terms(correction, model.parts)
        risk = RecordRisk(loss, terms, [first, second], model.variances[:1])
        scores, value = risk.scores(theta)[:, 0], risk.value(theta)
        each = np.array(
            [
                RecordRisk(loss, terms, [f, s], model.variances[:1]).value(theta)
                for f, s in zip(np.split(first, 200), np.split(second, 200), strict=True)
            ]
        )
        assert abs(value - truth) < 4 * each.std() / np.sqrt(200)
        assert abs(scores.mean() - 2 * (theta[0] - point**2)) < 4 * scores.std() / np.sqrt(n)
        step = 1e-5
        slope = (risk.value(theta + step) - risk.value(theta - step)) / (2 * step)
        assert_allclose(scores.mean(), slope, rtol=1e-6, atol=1e-9)


def test_symmetric_laplace_needs_the_trace_or_another_law():
    rng = np.random.default_rng(2)
    x = rng.uniform(size=(500, 1)) + laplace_noise(rng, 500, 1, 0.3)
    g = TRUTHS["relu"][0]
    with pytest.raises(CapabilityError, match="exactly one ZeroInflatedLaplace"):
        MEstimator(l2(g), noise=SymmetricLaplace(0.3), correction="dr").fit(x)
    with pytest.raises(CapabilityError, match="half_trace"):
        MEstimator(l2(g), noise=SymmetricLaplace(0.3)).fit(x)
    with pytest.raises(CapabilityError, match=r"correction='dr'"):
        MEstimator(l2(g), noise=Gaussian(0.3)).fit(x)
    smooth = Loss.from_callable(
        lambda x, theta: (theta[0] - x[:, 0] ** 2) ** 2,
        size=1,
        half_trace=lambda x, theta, v: 0.5 * v[0] * (12 * x[:, 0] ** 2 - 4 * theta[0]),
    )
    model = MEstimator(smooth, noise=SymmetricLaplace(0.3)).fit(x)
    assert_allclose(model.params_[0], np.mean(x**2) - 0.09, atol=1e-6)
    assert "needs correction='dr'" in str(model.efficiency_)


def test_several_parameters_and_a_response():
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, size=(30_000, 1))
    y = np.exp(0.5 + 0.7 * x[:, 0]) + 0.1 * rng.normal(size=len(x))
    law = ZeroInflatedLaplace(0.2, 0.5)
    z = x + zil_noise(rng, len(x), 1, 0.2, 0.5)
    loss = Loss.from_callable(lambda r, t: (r[:, 1] - np.exp(t[0] + t[1] * r[:, 0])) ** 2, size=2)
    model = MEstimator(loss, noise=law, correction="dr", draws=5, bound=3.0, random_state=0).fit(z, y)
    assert np.all(np.abs(model.params_ - [0.5, 0.7]) < 4 * model.bse_)
    assert "theta1" in model.summary()
    with pytest.raises(CapabilityError, match="no index"):
        model.predict(z)


def test_an_unidentified_parameter_is_reported():
    loss = Loss.from_callable(lambda x, theta: (theta[0] + theta[1] - x[:, 0]) ** 2, size=2)
    with pytest.warns(SmallSampleWarning, match="no interior minimum"):
        model = MEstimator(loss).fit(np.arange(10.0)[:, None])
    assert not model.converged_
    assert np.isinf(model.bse_).all()


def test_a_release_under_a_loss_of_records():
    """The same estimate as from the columns and their law; what needs pieces or clusters says so."""
    x, y = data(600)
    box = Box({"a": (-1, 1), "b": (-1, 1)})
    out = release(pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": y}), ZIL, box, public=["y"], rng=1)
    loss = Loss.from_callable(lambda z, t: (z[:, -1] - t[0] - t[1] * np.maximum(z[:, 0], 0.0)) ** 2, size=2)
    model = MEstimator(loss, correction="dr", random_state=3)
    whole = model.fit_release(out, "y", ["a", "b"]).params_
    assert_allclose(model.set_params(noise=ZIL).fit(out.frame[["a", "b"]], out.frame["y"]).params_, whole)
    with pytest.raises(CapabilityError, match="one release in memory"):
        model.fit_release([out], "y", ["a", "b"])
    with pytest.raises(CapabilityError, match="clusters and keep_records"):
        model.fit_release(out, "y", ["a", "b"], keep_records=True)


def test_errors():
    x, y = data(50)
    with pytest.raises(CapabilityError, match="no correction exists"):
        MEstimator("exp(u**2)", noise=ZIL).fit(x, y)
    with pytest.raises(ValueError, match="-1 and 1"):
        MEstimator("log(1 + exp(-u))", response="margin").fit(x, y)
    with pytest.raises(ValueError, match="response"):
        MEstimator(response="label").fit(x, y)
    with pytest.raises(TypeError, match="loss must be a Loss"):
        MEstimator(3).fit(x, y)
    with pytest.raises(ValueError, match="bandwidth must be a number"):
        MEstimator("abs(u)", response="none").fit(x)
    with pytest.raises(ValueError, match="start"):
        MEstimator(l2(TRUTHS["relu"][0]), start=[1.0, 2.0]).fit(x)
    with pytest.raises(CapabilityError, match="jumps"):
        MEstimator("Heaviside(u)").fit(x, y)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["u**2/2", "sqrt(1 + u**2)"])
def test_check_estimator(loss):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        results = check_estimator(MEstimator(loss), on_fail=None, on_skip=None)
    failed = {r["check_name"]: str(r["exception"]) for r in results if r["status"] == "failed"}
    assert not failed
