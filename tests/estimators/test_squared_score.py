"""Raw-data score covariance from a release: exact without noise, unbiased with it, the choice between two estimates."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulations import laplace_noise, zil_noise

from privfit.estimators import LinearRegression, LogisticRegression, QuantileRegression
from privfit.estimators.huber_regression import HuberRegression
from privfit.estimators.linear_svc import LinearSVC
from privfit.estimators.losses import ClippedSquareLoss, LogisticLoss
from privfit.estimators.squared_score import (
    FREE,
    LogisticSquare,
    ShiftedLoss,
    SteppedSquareLoss,
    choose_scores,
    signed_by_labels,
)
from privfit.estimators.symbols import Resolvent, Symbol
from privfit.mechanisms import Gaussian, RandomizedResponse, SymmetricLaplace, ZeroInflatedLaplace


def table(n, seed=0):
    """Errors whose spread grows with the first column; a label that no logistic model describes."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 2))
    y = x @ [1.0, -0.5] + np.sqrt(0.1 + 1.5 * x[:, 0] ** 2) * rng.normal(size=n)
    label = (rng.random(n) < np.where(x[:, 0] ** 2 > 0.4, 0.9, 0.2)).astype(int)
    return x, y, label


MODELS = [
    (LinearRegression, "number"),
    (HuberRegression, "number"),
    (lambda **own: QuantileRegression(0.3, **own), "number"),
    (LogisticRegression, "label"),
    (LinearSVC, "label"),
]


@pytest.mark.parametrize("model, kind", MODELS)
def test_without_noise_it_is_the_mean_of_squared_scores(model, kind):
    x, y, label = table(3000)
    fit = model().fit(x, y if kind == "number" else label, keep_records=True)
    risk, theta = fit._kept.problem.risk, fit._kept.solution.theta
    free = risk.with_(penalty=np.zeros(risk.size))
    scores = free.scores(theta)
    found = fit._squared_scores(risk).hessian(theta)
    wide = isinstance(fit, QuantileRegression)  # smooths the squared score, not the score
    assert_allclose(found, scores @ scores.T / 3000, atol=(0.1 if wide else 1e-4) * np.abs(found).max())


@pytest.mark.parametrize(
    "model, kind, law",
    [
        (LinearRegression, "number", Gaussian(0.3)),
        (LinearRegression, "number", ZeroInflatedLaplace(0.4, 0.3)),
        (LogisticRegression, "label", SymmetricLaplace(0.4, shape=3)),
        pytest.param(LinearRegression, "number", SymmetricLaplace(0.3), marks=pytest.mark.slow),
        pytest.param(LogisticRegression, "label", ZeroInflatedLaplace(0.4, 0.3), marks=pytest.mark.slow),
    ],
)
def test_noise_leaves_it_unbiased(model, kind, law):
    """At fixed parameters, over 30 releases: within 5 standard errors of the raw covariance."""
    x, y, label = table(800)
    target = y if kind == "number" else label
    raw = model().fit(x, target, keep_records=True)
    c = raw._kept.problem.coordinates
    scores = raw._kept.problem.risk.scores(raw._kept.solution.theta)
    back = np.linalg.inv(c.matrix).T  # scores in the units of the data
    wanted = back @ (scores @ scores.T / 800) @ back.T
    rng, found = np.random.default_rng(1), []
    for _ in range(30):
        if isinstance(law, Gaussian):
            noise = law.scale * rng.normal(size=x.shape)
        elif isinstance(law, ZeroInflatedLaplace):
            noise = zil_noise(rng, 800, 2, law.scale, law.delta0)
        else:
            noise = laplace_noise(rng, 800, 2, law.scale, law.shape)
        fit = model(noise=law).fit(x + noise, target, keep_records=True)
        own = fit._kept.problem.coordinates
        theta = np.linalg.inv(own.matrix) @ (raw.params_ - fit._kept.shift)
        back = np.linalg.inv(own.matrix).T
        unit = (own.response_scale / c.response_scale) ** 2
        found.append(unit**2 * back @ fit._squared_scores(fit._kept.problem.risk).hessian(theta) @ back.T)
    error = np.std(found, axis=0, ddof=1) / np.sqrt(30)
    assert (np.abs(np.mean(found, axis=0) - wanted) < 5 * error + 1e-12).all()


def test_randomised_labels():
    """Labels flipped with known probability and noised columns, over 20 releases."""
    x, _, label = table(3000, 2)
    raw = LogisticRegression().fit(x, label)
    rng, ratios = np.random.default_rng(3), []
    law = {(0, 1): SymmetricLaplace(0.3), "y": RandomizedResponse(2.0)}
    for _ in range(20):
        flip = rng.random(3000) < 1 / (1 + np.exp(2.0))
        z = x + laplace_noise(rng, 3000, 2, 0.3)
        fit = LogisticRegression(noise=law).fit(z, label ^ flip)
        assert fit.efficiency_.assumption == FREE
        ratios.append(fit.bse_ / fit.efficiency_.factors / raw.bse_)
    assert_allclose(np.mean(ratios, axis=0), 1.0, atol=0.05)


def test_uneven_errors_are_seen_and_what_was_used_is_said():
    """The equal-variance estimate is 23 % too small for the first slope here; the one used is not."""
    ratios, said = [], set()
    rng = np.random.default_rng(4)
    for seed in range(8):
        x, y, _ = table(4000, seed)
        fit = LinearRegression(noise=SymmetricLaplace(0.3)).fit(
            x + laplace_noise(rng, 4000, 2, 0.3), y, keep_records=True
        )
        risk, theta = fit._kept.problem.risk, fit._kept.solution.theta
        assumed = fit._oracle_scores(risk, theta, fit._kept.solution.hessian)[0]
        raw = LinearRegression().fit(x, y).bse_[1]
        free = fit.bse_[1] / fit.efficiency_.factors[1]
        v = np.linalg.inv(fit._kept.solution.hessian)
        by_assumption = np.sqrt(fit._kept.problem.coordinates.covariance(v @ assumed @ v / 3997)[1, 1])
        ratios.append([free / raw, by_assumption / raw])
        said.add(fit.efficiency_.assumption)
    assert_allclose(np.mean(ratios, axis=0), [1.0, 0.77], atol=0.03)
    assert said == {FREE}
    hard = LinearRegression(noise=SymmetricLaplace(0.9)).fit(x + laplace_noise(rng, 4000, 2, 0.9), y)
    assert "equal error variances" in hard.efficiency_.assumption
    assert "equal error variances" in hard.summary().replace("\n    ", " ")
    naive = LinearRegression(noise=SymmetricLaplace(0.3), correction="naive").fit(x, y)
    assert "equal error variances" in naive.efficiency_.assumption


def test_shifted_losses():
    """``z R(z)`` on an integral is ``R(z)`` two derivatives up; what has no formula is nan, never a number."""
    u = np.linspace(-3, 3, 13)
    square = ClippedSquareLoss(1.3)
    whole = ShiftedLoss([(2.0, square, -2)])
    assert_allclose(whole.derivative(u, 2), 2 * square.value(u))
    assert_allclose(whole.derivative(u, 3), 2 * square.derivative(u, 1))
    assert np.isnan(whole.derivative(u, 1)).all() and np.isnan(whole.value(u)).all()
    factor = Resolvent(0.3)
    assert_allclose(whole.apply(u, factor(0.4, 1), 0), 2 * square.apply(u, Symbol((-0.7,), ((0.12, 2),)), 0))
    p = 1 / (1 + np.exp(-u))
    assert_allclose(LogisticSquare().derivative(u, 2), p * p, rtol=1e-12)
    assert_allclose(LogisticSquare().derivative(u, 1), LogisticLoss().value(u) - p, rtol=1e-12)
    step = SteppedSquareLoss(0.3)
    assert_allclose(step.derivative(u, 2), np.where(u < 0, 0.49, 0.09))
    for order in (0, 1):
        numeric = (step.derivative(u + 0.1 + 1e-6, order) - step.derivative(u + 0.1 - 1e-6, order)) / 2e-6
        assert_allclose(step.derivative(u + 0.1, order + 1), numeric, atol=1e-6)


def test_nothing_better_than_the_assumption():
    assumed = (np.eye(2), "example")
    assert choose_scores(None, np.zeros(2), np.eye(2), assumed, 50) == assumed
    x, y, label = table(40)
    fit = LogisticRegression().fit(x, label, keep_records=True)
    assert signed_by_labels(LinearRegression().fit(x, y, keep_records=True)._kept.problem.risk.strata) is None
    assert len(signed_by_labels(fit._kept.problem.risk.strata)) == 1
