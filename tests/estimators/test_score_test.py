"""Score tests: closed forms and the trinity without noise, size under hard noise, inversion."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import chi2
from simulations import laplace_noise

from privfit.estimators import LinearRegression, LogisticRegression, QuantileRegression, SmallSampleWarning
from privfit.mechanisms import SymmetricLaplace, ZeroInflatedLaplace


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    return x, 0.5 + x @ [1.0, 0.1] + rng.normal(size=n) * (1 + 0.5 * np.abs(x[:, 0]))


def test_closed_form_of_a_linear_model():
    """Robust score test of one slope: residuals r of the restricted fit, e = r (x - fit of x on the others)."""
    x, y = table()
    fit = LinearRegression().fit(x, y, keep_records=True)
    for value in (0.0, 0.3):
        others = np.c_[np.ones(400), x[:, 0]]
        project = others @ np.linalg.solve(others.T @ others, others.T)
        wanted = y - value * x[:, 1]
        e = (wanted - project @ wanted) * (x[:, 1] - project @ x[:, 1])
        statistic, p = fit.score_test([0, 0, 1], value)
        assert_allclose(statistic, e.sum() ** 2 / (e**2).sum(), rtol=1e-9)
        assert_allclose(p, chi2.sf(statistic, 1), rtol=1e-10)
    whole, _ = fit.score_test(np.eye(3), [0.5, 1.0, 0.1])  # nothing is left free: no curvature is needed
    s = np.c_[np.ones(400), x] * (y - 0.5 - x @ [1.0, 0.1])[:, None]
    assert_allclose(whole, s.sum(axis=0) @ np.linalg.solve(s.T @ s, s.sum(axis=0)), rtol=1e-9)


def test_clusters_sum_the_scores():
    x, y = table()
    labels = np.arange(400) % 25
    fit = LinearRegression().fit(x, y, clusters=labels, keep_records=True)
    others = np.c_[np.ones(400), x[:, 0]]
    project = others @ np.linalg.solve(others.T @ others, others.T)
    e = (y - project @ y) * (x[:, 1] - project @ x[:, 1])
    sums = np.bincount(labels, e)
    assert_allclose(fit.score_test([0, 0, 1])[0], sums.sum() ** 2 / (sums**2).sum(), rtol=1e-9)


def test_close_to_wald_where_the_curvature_is_known():
    rng = np.random.default_rng(1)
    n = 40_000
    x = rng.normal(size=(n, 2))
    z = x + laplace_noise(rng, n, 2, 0.3)
    fits = (
        LogisticRegression(noise=SymmetricLaplace(0.3)).fit(
            z, rng.random(n) < 1 / (1 + np.exp(-x @ [1.0, 0.01])), keep_records=True
        ),
        QuantileRegression(0.4, noise=SymmetricLaplace(0.3)).fit(
            z, x @ [1.0, 0.01] + rng.normal(size=n), keep_records=True
        ),
    )
    for fit in fits:
        for rows, values in (([[0, 0, 1]], 0.0), ([[0, 1, 0], [0, 0, 1]], [1.0, 0.0])):
            score, left = fit.score_test(rows, values), fit.diagnostics_.get("bandwidth_bias", np.zeros(3))
            # Wald tests count the bias of a bandwidth as error, score tests are about the smoothed quantile
            own = np.array(rows) @ (fit.cov_params_ - np.outer(left, left)) @ np.array(rows).T
            off = np.array(rows) @ fit.params_ - values
            assert_allclose(score[0], off @ np.linalg.solve(own, off), rtol=0.15, atol=0.1)
            assert fit.wald_test(rows, values)[0] <= off @ np.linalg.solve(own, off) * (1 + 1e-9)


def test_interval_is_the_set_of_values_that_are_not_rejected():
    x, y = table(300, 2)
    z = x + laplace_noise(np.random.default_rng(3), 300, 2, 0.4)
    fit = LinearRegression(noise=SymmetricLaplace(0.4)).fit(z, y, keep_records=True)
    low, high = fit.score_interval("1", 0.9)
    assert low < fit.params_[2] < high
    for value in (low, high):
        assert_allclose(fit.score_test([0, 0, 1], value)[1], 0.1, atol=1e-4)
    for value in np.linspace(low, high, 7)[1:-1]:
        assert fit.score_test([0, 0, 1], value)[1] > 0.1
    assert_allclose(fit.score_interval(2, 0.9), (low, high))
    reach = high - low
    assert_allclose(reach, np.diff(fit.conf_int(0.9)[2])[0], rtol=0.25)


def test_a_fit_on_the_boundary_has_no_interval():
    """(-inf, inf) would say that no value is rejected, while the test rejects some: a clear error instead."""
    x, _ = table(300)
    label = (x[:, 0] > 0).astype(int)  # separated: the slope runs to the bound
    with pytest.warns(SmallSampleWarning, match="boundary"):
        fit = LogisticRegression(bound=5.0).fit(x, label, keep_records=True)
    assert fit.score_test([0, 1, 0])[1] < 1e-6
    with pytest.raises(ValueError, match=r"proper minimum.*score_test takes single values"):
        fit.score_interval("0")


def test_mistakes():
    x, y = table()
    plain = LinearRegression().fit(x, y)
    for call in (lambda m: m.score_test([0, 0, 1]), lambda m: m.score_interval(1), lambda m: m.bootstrap()):
        with pytest.raises(ValueError, match="keep_records=True"):
            call(plain)
    fit = LinearRegression().fit(x, y, keep_records=True)
    for arguments, words in (
        (([0, 1],), "shape"),
        (([[0, 1, 0], [0, 2, 0]],), "independent"),
        (([0, 0, 1], [1.0, 2.0]), "values"),
        (([0, 0, 1], np.inf), "values"),
    ):
        with pytest.raises(ValueError, match=words):
            fit.score_test(*arguments)
        with pytest.raises(ValueError, match=words):
            fit.wald_test(*arguments)
    with pytest.raises(ValueError, match="coefficient must name coefficients of the fit"):
        fit.score_interval("age")
    with pytest.raises(ValueError, match="from 0 to 2"):
        fit.score_interval(3)
    with pytest.raises(TypeError, match="name or a position"):
        fit.score_interval(1.5)
    with pytest.raises(TypeError, match="keep_records"):
        LinearRegression().fit(x, y, keep_records="yes")
    with pytest.warns(UserWarning):
        flat = LinearRegression().fit(np.c_[x, np.ones(400)], y, keep_records=True)
    with pytest.raises(ValueError, match="identified"):
        flat.score_test([0, 0, 0, 1])
    assert flat.score_test([0, 0, 1, 0])[0] == pytest.approx(fit.score_test([0, 0, 1])[0])


def sizes(seed, n=800, scale=1.3, replications=600):
    """Rejections at 5 % of true hypotheses, Wald and score, where the curvature is noisy."""
    import warnings

    rng = np.random.default_rng(seed)
    beta = np.array([1.5, -1.0])
    rejected, lost = [], 0
    for _ in range(replications):
        x = rng.uniform(-1, 1, (n, 2))
        y = (rng.random(n) < 1 / (1 + np.exp(-x @ beta))).astype(int)
        z = x + laplace_noise(rng, n, 2, scale)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = LogisticRegression(noise=SymmetricLaplace(scale), fit_intercept=False).fit(z, y, keep_records=True)
        score = fit.score_test(np.eye(2), beta)[1] < 0.05
        if np.isfinite(fit.bse_).all():
            rejected.append((fit.wald_test(np.eye(2), beta)[1] < 0.05, score))
        else:
            lost += 1
            rejected.append((np.nan, score))
    return np.nanmean(rejected, axis=0), lost


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_size_under_hard_noise(seed):
    """n = 800, noise twice as wide as the columns: the score test keeps 5 % (Monte Carlo error 0.9 points)."""
    (wald, score), lost = sizes(seed)
    print(f"seed {seed}: Wald {wald:.3f}, score {score:.3f}, fits without standard errors {lost}")
    assert 0.025 < score < 0.08
    assert abs(score - 0.05) < abs(wald - 0.05) or lost > 0


def test_size_quickly():
    x = np.random.default_rng(5)
    p = []
    for _ in range(40):
        columns = x.uniform(-1, 1, (150, 1))
        y = columns[:, 0] + x.normal(size=150)
        z = columns + laplace_noise(x, 150, 1, 0.4) * (x.random((150, 1)) > 0.3)
        fit = LinearRegression(noise=ZeroInflatedLaplace(0.4, 0.3)).fit(z, y, keep_records=True)
        p.append(fit.score_test([0, 1], 1.0)[1])
    assert 0.35 < np.mean(p) < 0.65  # 3 standard deviations of a mean of 40 uniform numbers
    assert np.mean(np.array(p) < 0.1) < 0.25
