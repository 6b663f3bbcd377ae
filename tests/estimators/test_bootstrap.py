"""One-step bootstrap: exact steps against direct ones, the sandwich as its limit, kinds of intervals."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulations import laplace_noise

from privfit.estimators import LinearRegression, LogisticRegression
from privfit.estimators.bootstrap import Bootstrap
from privfit.mechanisms import SymmetricLaplace


def fitted(n=1500, seed=0, **options):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    y = rng.random(n) < 1 / (1 + np.exp(-0.3 - x @ [1.0, -0.5]))
    z = x + laplace_noise(rng, n, 2, 0.4)
    return LogisticRegression(noise=SymmetricLaplace(0.4)).fit(z, y, keep_records=True, **options)


@pytest.mark.parametrize("weights", ["exponential", "mammen", "resample"])
@pytest.mark.parametrize("curvature", ["fixed", "estimated"])
def test_standard_errors_are_those_of_the_sandwich(weights, curvature):
    """800 replications: a standard deviation has a relative Monte Carlo error of 2.5 %."""
    fit = fitted()
    found = fit.bootstrap(800, weights=weights, curvature=curvature, random_state=1)
    assert_allclose(found.errors, fit.bse_ * np.sqrt((1500 - 3) / 1500), rtol=1e-10)
    assert_allclose(found.standard_errors, fit.bse_, rtol=0.1)
    assert_allclose(np.median(found.draw_errors, axis=0), fit.bse_, rtol=0.05)
    assert_allclose(found.draws.mean(axis=0), fit.params_, atol=0.15 * fit.bse_.max())
    assert found.lost == 0.0
    same = fit.bootstrap(800, weights=weights, curvature=curvature, random_state=1)
    assert_allclose(same.draws, found.draws)
    other = fit.bootstrap(800, weights=weights, curvature=curvature, random_state=2)
    assert not np.allclose(other.draws, found.draws)


def test_resampled_least_squares_step_is_the_resampled_fit():
    """Least squares without noise: one Newton step with the weights' own curvature IS the weighted fit."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(60, 1))
    y = 1 + x[:, 0] + rng.normal(size=60)
    fit = LinearRegression().fit(x, y, keep_records=True)
    found = fit.bootstrap(200, weights="resample", curvature="estimated", random_state=4)
    replay = np.random.default_rng(4)
    hits = replay.binomial(np.full(200, 60), 1.0)
    design = np.c_[np.ones(60), x]
    for b in range(200):
        w = np.bincount(replay.integers(0, 60, hits[b]), minlength=60)
        exact = np.linalg.solve(design.T @ (w[:, None] * design), design.T @ (w * y))
        assert_allclose(found.draws[b], exact, rtol=1e-6, atol=1e-8)


def test_weighted_errors_are_those_of_the_weighted_scores():
    """Fixed curvature, three records in all: se* of a mean is the weighted standard deviation over sqrt n."""
    y = np.array([0.0, 1.0, 5.0] * 20)
    fit = LinearRegression().fit(np.tile([[-1.0], [0.0], [1.0]], (20, 1)), y, keep_records=True)
    found = fit.bootstrap(50, random_state=5)
    replay = np.random.default_rng(5).standard_exponential((50, 60))
    w = replay / replay.mean(axis=1, keepdims=True)
    residual = y - fit.params_[0] - fit.params_[1] * np.tile([-1.0, 0.0, 1.0], 20)
    mean = (w * residual).mean(axis=1)
    spread = np.sqrt((w * residual**2).mean(axis=1) - mean**2)
    assert_allclose(found.draws[:, 0], fit.params_[0] + mean)
    assert_allclose(found.draw_errors[:, 0], spread / np.sqrt(60))


def test_clusters_are_drawn_whole():
    labels = np.arange(1500) // 30
    fit = fitted(clusters=labels)
    for curvature in ("fixed", "estimated"):
        found = fit.bootstrap(800, curvature=curvature, random_state=6)
        assert_allclose(found.standard_errors, fit.bse_, rtol=0.1)
        assert_allclose(found.errors, fit.bse_ / np.sqrt(50 / 49 * 1499 / 1497), rtol=1e-8)


def test_kinds_of_intervals():
    draws = np.arange(1.0, 1000.0)[:, None]
    t = Bootstrap(np.array([500.0]), np.array([2.0]), draws, np.full((999, 1), 4.0))
    assert_allclose(t.conf_int(0.9, "percentile"), [[50.0, 950.0]], atol=1.0)
    low, high = t.conf_int(0.9, "percentile")[0]
    assert_allclose(t.conf_int(0.9), [[500 - (high - 500) / 4 * 2, 500 - (low - 500) / 4 * 2]])
    assert_allclose(t.conf_int(0.9, "normal")[0], 500 + np.array([-1, 1]) * 1.6448536 * draws.std(ddof=1), rtol=1e-5)
    broken = draws.copy()
    broken[::5] = np.nan  # a fifth was lost: more than a tail of 5 %
    lost = Bootstrap(np.array([500.0]), np.array([2.0]), broken, np.full((999, 1), 4.0))
    assert lost.lost == pytest.approx(0.2, abs=0.002)
    for kind in ("percentile", "studentised"):
        assert_allclose(lost.conf_int(0.9, kind), [[-np.inf, np.inf]])
    assert np.isfinite(lost.conf_int(0.5, "percentile")).all()


def test_mistakes():
    fit = fitted()
    for arguments, words in (
        ({"replications": 10}, "replications"),
        ({"weights": "normal"}, "weights"),
        ({"curvature": "none"}, "curvature"),
        ({"random_state": -1}, "random_state"),
    ):
        with pytest.raises((ValueError, TypeError), match=words):
            fit.bootstrap(**arguments)
    few = fit.bootstrap(60, random_state=0)
    with pytest.raises(ValueError, match="needs at least 80 replications, got 60"):
        few.conf_int(0.95)
    with pytest.raises(ValueError, match="kind"):
        few.conf_int(0.5, "bca")
    with pytest.raises(ValueError, match="level"):
        few.conf_int(1.5)
    with pytest.warns(UserWarning):
        x = np.random.default_rng(0).normal(size=(50, 1))
        flat = LinearRegression().fit(np.c_[x, np.ones(50)], x[:, 0] ** 2, keep_records=True)
    with pytest.raises(ValueError, match="positive curvature in every direction"):
        flat.bootstrap()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_coverage(seed):
    """n = 400, noise as wide as the columns: 95 % intervals, 400 replications (Monte Carlo error about 1 point)."""
    rng = np.random.default_rng(seed)
    truth, hits = np.array([0.0, 1.0]), {}
    for _ in range(400):
        x = rng.uniform(-1, 1, (400, 1))
        y = x[:, 0] + rng.standard_t(4, size=400)
        z = x + laplace_noise(rng, 400, 1, 0.5)
        fit = LinearRegression(noise=SymmetricLaplace(0.5)).fit(z, y, keep_records=True)
        for curvature in ("fixed", "estimated"):
            drawn = fit.bootstrap(399, curvature=curvature, random_state=rng)
            for kind in ("studentised", "percentile"):
                ends = drawn.conf_int(kind=kind)
                hits.setdefault((curvature, kind), []).append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
    shares = {key: np.mean(own) for key, own in hits.items()}
    print(seed, shares)
    assert all(0.92 < share < 0.98 for share in shares.values())


def test_the_text_is_short_and_counts_what_was_lost():
    draws = np.arange(8.0).reshape(4, 2)
    found = Bootstrap(np.ones(2), np.ones(2), draws, np.ones((4, 2)))
    assert repr(found) == str(found) == "<Bootstrap: 4 replications of 2 parameters; see standard_errors, conf_int()>"
    draws[0] = np.nan
    assert "4 replications of 2 parameters, 25.0 % of them lost;" in repr(found)
