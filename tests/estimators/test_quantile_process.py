"""Several regression quantiles: joint covariance, sorted predictions, a simultaneous band."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulations import zil_noise

from privfit.estimators import QuantileRegression
from privfit.estimators.quantile_process import QuantileProcess
from privfit.mechanisms import Box, ZeroInflatedLaplace, release

TAUS = (0.25, 0.5, 0.75)


def table(rng, n):
    x = rng.uniform(-1, 1, (n, 1))
    return x, 1 + x[:, 0] + (1 + 0.5 * x[:, 0]) * rng.normal(size=n)


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    x, y = table(rng, 3000)
    law = ZeroInflatedLaplace(0.3, 0.2)
    z = x + zil_noise(rng, 3000, 1, 0.3, 0.2)
    return QuantileProcess(TAUS, noise=law).fit(z, y), z, y, law


def test_each_quantile_is_fitted_as_alone(fitted):
    model, z, y, law = fitted
    for k, tau in enumerate(TAUS):
        alone = QuantileRegression(tau, noise=law).fit(z, y, keep_records=True)
        own = slice(2 * k, 2 * k + 2)
        assert_allclose(model.params_[own], alone.params_)
        assert_allclose(model.cov_params_[own, own], alone.cov_params_)
        assert_allclose(model.efficiency_.factors[own], alone.efficiency_.factors)
        assert model._names[own] == [f"const @ {tau:g}", f"0 @ {tau:g}"]
    assert model.coef_.shape == (3, 1) and model.intercept_.shape == (3,)


def test_joint_covariance_is_that_of_the_influences(fitted):
    model, z, y, law = fitted
    influences, biases = [], []
    for tau in TAUS:
        own = QuantileRegression(tau, noise=law).fit(z, y, keep_records=True)
        kept = own._kept
        biases.append(own.diagnostics_["bandwidth_bias"])
        s = kept.problem.risk.scores(kept.solution.theta)
        influences.append(-kept.matrix @ np.linalg.solve(kept.solution.hessian, s - s.mean(axis=1, keepdims=True)))
    whole = np.concatenate(influences)
    left = np.concatenate(biases)
    assert_allclose(model.cov_params_, whole @ whole.T / 3000 / 2998 + np.outer(left, left), rtol=1e-8, atol=1e-12)
    assert np.linalg.eigvalsh(model.cov_params_)[0] > 0


def test_predictions_do_not_cross_and_the_band_holds_them(fitted):
    model = fitted[0]
    far = np.linspace(-30, 30, 41)[:, None]
    plain = far @ model.coef_.T + model.intercept_
    assert (np.diff(plain, axis=1) < 0).any()  # lines of different slopes cross somewhere
    assert (np.diff(model.predict(far), axis=1) >= 0).all()
    near = np.linspace(-1, 1, 9)[:, None]
    low, high = model.band(near, 0.9)
    assert low.shape == (9, 3) and (low < model.predict(near)).all() and (model.predict(near) < high).all()
    wider = model.band(near, 0.99)
    assert (wider[0] < low).all() and (wider[1] > high).all()
    one = model.band(near[:1], 0.9)
    assert (one[1] - one[0] < (high - low)[:1]).all()  # fewer statements, a smaller critical value


def test_release_clusters_pickle_and_draws():
    rng = np.random.default_rng(1)
    x, y = table(rng, 800)
    out = release(np.c_[x, y], ZeroInflatedLaplace(0.3, 0.2), Box({0: (-1, 1)}), public=[1], rng=2)
    model = QuantileProcess(TAUS).fit_release(out, 1, clusters=np.arange(800) // 4)
    assert_allclose(
        model.bse_[:2], QuantileRegression(0.25).fit_release(out, 1, clusters=np.arange(800) // 4).bse_, rtol=1e-10
    )
    assert model._freedom == 199 and np.isfinite(model.summary().count("@"))
    assert len(pickle.dumps(model)) < 20_000
    drawn = QuantileProcess(TAUS, correction="dr", bandwidth=0.4, noise=ZeroInflatedLaplace(0.3, 0.5), random_state=3)
    z = x + zil_noise(rng, 800, 1, 0.3, 0.5)
    first, second = drawn.fit(z, y).params_, drawn.fit(z, y).params_
    assert_allclose(first, second)


def test_from_disk_and_dask_as_in_memory(tmp_path):
    x, y = table(np.random.default_rng(2), 800)
    out = release(np.c_[x, y], ZeroInflatedLaplace(0.3, 0.2), Box({0: (-1, 1)}), public=[1], rng=2)
    out.save(tmp_path / "x.parquet", allow_insecure=True)
    model = QuantileProcess(TAUS)
    inside = model.fit_release(out, 1)
    params, cov = inside.params_, inside.cov_params_
    for fit in (model.fit_release, model.fit_dask):
        fit(tmp_path / "x.parquet", 1)
        assert_allclose(model.params_, params, rtol=1e-10)
        assert_allclose(model.cov_params_, cov, rtol=1e-8, atol=1e-10 * cov.max())


def test_mistakes(fitted):
    model = fitted[0]
    with pytest.raises(ValueError, match="quantiles"):
        QuantileProcess([0.5, 0.4]).fit([[1.0], [2.0]], [1.0, 2.0])
    with pytest.raises(ValueError, match="level"):
        model.band([[0.0]], 1.0)
    with pytest.raises(ValueError, match="features"):
        model.predict([[0.0, 1.0]])
    with pytest.raises((TypeError, ValueError), match="quantile"):
        QuantileRegression([0.25, 0.75]).fit([[1.0], [2.0]], [1.0, 2.0])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_the_band_holds_everywhere_at_once(seed):
    """90 % band of 3 quantiles at 9 points, 300 replications (Monte Carlo error 1.7 points)."""
    from scipy.stats import norm

    rng = np.random.default_rng(seed)
    near = np.linspace(-0.9, 0.9, 9)[:, None]
    truth = 1 + near + (1 + 0.5 * near) * norm.ppf(TAUS)
    held, single = [], []
    for _ in range(300):
        x, y = table(rng, 3000)
        z = x + zil_noise(rng, 3000, 1, 0.3, 0.3)
        model = QuantileProcess(TAUS, noise=ZeroInflatedLaplace(0.3, 0.3)).fit(z, y)
        low, high = model.band(near, 0.9, draws=2000)
        held.append(bool(((low <= truth) & (truth <= high)).all()))
        ends = model.conf_int(0.9)
        own = np.array([c for tau in TAUS for c in (1 + norm.ppf(tau), 1 + 0.5 * norm.ppf(tau))])
        single.append(bool(((ends[:, 0] <= own) & (own <= ends[:, 1])).all()))
    print(f"seed {seed}: band {np.mean(held):.3f}, single intervals all at once {np.mean(single):.3f}")
    assert 0.85 < np.mean(held) < 0.96
    assert np.mean(single) < 0.8
