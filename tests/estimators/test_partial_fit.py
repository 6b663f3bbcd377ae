"""Growing data: after every call the fit is that of all records so far."""

import itertools
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import privfit.mechanisms as pm
from privfit.estimators import CapabilityError, LinearRegression, LogisticRegression, Mean, Quantile, QuantileRegression

N = 3000
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2)) * [1.0, 30.0] + [5.0, -100.0]
Y = (X - [5.0, -100.0]) @ [1.0, -0.05] + RNG.normal(size=N)
LABEL = np.where(Y > 0, "yes", "no")
LAW = pm.SymmetricLaplace((0.3, 9.0))
CUTS = [0, 40, 41, 1500, N]


def grow(model, x, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the first records are few
        for a, b in itertools.pairwise(CUTS):
            model.partial_fit(x[a:b], *(() if y is None else (y[a:b],)))
    return model


@pytest.mark.parametrize("noise", [None, LAW, {(0, 1, "y"): pm.ZeroInflatedLaplace((0.3, 9.0, 0.2), 0.3)}])
@pytest.mark.parametrize("intercept", [True, False])
def test_least_squares_from_moments_up_to_order_four(noise, intercept):
    whole = LinearRegression(noise=noise, fit_intercept=intercept).fit(X, Y)
    fit = grow(LinearRegression(noise=noise, fit_intercept=intercept), X, Y)
    assert_allclose(fit.params_, whole.params_, rtol=1e-9, atol=1e-11)
    assert_allclose(fit.cov_params_, whole.cov_params_, rtol=1e-9, atol=1e-14)
    assert_allclose(fit.efficiency_.factors, whole.efficiency_.factors, rtol=1e-9)


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (LogisticRegression(noise=LAW), LABEL),
        (QuantileRegression(0.3, noise=LAW), Y),
        (Mean(noise=LAW), None),
        (Quantile(0.4, noise=LAW), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_models(model, y):
    whole = model.fit(X, y)
    params, cov = whole.params_, whole.cov_params_
    fit = grow(model, X, y)
    assert_allclose(fit.params_, params, rtol=1e-10)
    assert_allclose(fit.cov_params_, cov, rtol=1e-8)
    again = grow(model.fit(X[:2000], None if y is None else y[:2000]), X, y)  # a fit in between starts anew
    assert_allclose(again.params_, params, rtol=1e-10)


def test_laws_may_change_as_data_grow():
    laws = [LAW, pm.Laplace((0.1, 3.0))]
    model = LinearRegression()
    for law, rows in zip(laws, (slice(0, 1000), slice(1000, N)), strict=True):
        model.set_params(noise=law).partial_fit(X[rows], Y[rows])
    w = np.c_[np.ones(N), X]
    gram = w.T @ w - np.diag([0, 1000 * 0.09 + 2000 * 2 * 0.01, 1000 * 81 + 2000 * 2 * 9])
    assert_allclose(model.params_, np.linalg.solve(gram, w.T @ Y), rtol=1e-8)


def test_releases_are_added_with_their_law():
    box = pm.Box({0: (0, 10), 1: (-250, 50), 2: (-20, 20)})
    table = np.c_[X, Y]
    outs = [pm.release(table[a:b], pm.Laplace((0.2, 6.0, 0.1)), box, rng=a) for a, b in ((0, 2000), (2000, N))]
    for model in (LinearRegression(), QuantileRegression(0.6)):
        whole = model.fit_release(outs, 2).params_
        for out in outs:
            model.partial_fit_release(out, 2)
        assert_allclose(model.params_, whole, rtol=1e-9)
    mean = Mean()
    for out in outs:
        mean.partial_fit_release(out)
    assert_allclose(mean.mean_, np.concatenate([out.frame for out in outs]).mean(axis=0), rtol=1e-12)


def test_the_sample_for_diagnostics_stays_small(monkeypatch):
    from privfit.estimators import quartics

    monkeypatch.setattr(quartics, "_SAMPLE", 64)
    model = grow(LinearRegression(noise=LAW), X, Y)
    (sums,) = model._grown.parts
    kept = np.concatenate([x for x, _ in sums.sample])
    assert 32 <= len(kept) <= 64 and (kept == X[:: sums.step]).all()
    assert_allclose(model.params_, LinearRegression(noise=LAW).fit(X, Y).params_, rtol=1e-9)


def test_errors():
    with pytest.raises(ValueError, match="X has 1 features, but LinearRegression is expecting 2"):
        LinearRegression().partial_fit(X, Y).partial_fit(X[:, :1], Y)


def test_more_than_two_classes_grow_in_memory():
    labels = np.digitize(X[:, 0] - 5.0 + Y, [-0.5, 0.5])
    half = len(X) // 2
    grown = LogisticRegression().partial_fit(X[:half], labels[:half]).partial_fit(X[half:], labels[half:])
    assert_allclose(grown.coef_, LogisticRegression().fit(X, labels).coef_, atol=1e-8)
    assert grown.classes_.tolist() == [0, 1, 2]


def test_corrections_that_draw_noise_do_not_grow():
    with pytest.raises(CapabilityError, match="draws a second noise"):
        LinearRegression(correction="dr", noise=pm.ZeroInflatedLaplace(1.0, 0.5)).partial_fit(X, Y)
    with pytest.raises(ValueError, match="positive must be given for partial_fit"):
        Mean(noise=pm.RandomizedResponse(1.0)).partial_fit(LABEL[:, None])
