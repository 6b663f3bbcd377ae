"""More than two classes: likelihood on clean columns, corrected pairs of classes on noised ones."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulations import flipped, noise_of, replications

from privfit.estimators import CapabilityError, LogisticRegression, RankDeficiencyWarning, SmallSampleWarning
from privfit.estimators.corrections import Term
from privfit.estimators.multinomial_risk import PairsRisk, SoftmaxRisk, indicator_weights, split_classes
from privfit.estimators.strata import Chunk, Design, Held, IndexNoise, Stratum
from privfit.estimators.symbols import Resolvent
from privfit.mechanisms import (
    Box,
    Categories,
    Gaussian,
    RandomizedResponse,
    SymmetricLaplace,
    ZeroInflatedLaplace,
    release,
)

V = np.array([[0, 0, 0, 0], [0.3, 1, -1, 0.5], [-0.2, 0.5, 1, -1], [0.1, -1, 0.5, 1]])
TRUTH = V[1:].ravel()
COLUMNS = (0, 1, 2)
ZIL = ZeroInflatedLaplace(0.5, 0.3)


def data(rng, n):
    x = rng.uniform(-1, 1, size=(n, 3))
    return x, (V[:, 0] + x @ V[:, 1:].T + rng.gumbel(size=(n, 4))).argmax(axis=1)


@pytest.mark.parametrize("alpha", [0.0, 0.01])
def test_without_noise_it_is_scikit_learns(alpha):
    from sklearn.linear_model import LogisticRegression as Theirs

    x, y = data(np.random.default_rng(0), 800)
    names = np.array(["d", "a", "c", "b"])[y]
    ours = LogisticRegression(alpha=alpha).fit(x * [1, 100, 0.01], names)
    theirs = Theirs(C=1 / (800 * alpha) if alpha else np.inf, solver="newton-cg", tol=1e-12, max_iter=10_000)
    theirs.fit(x * [1, 100, 0.01], names)
    assert list(ours.classes_) == list(theirs.classes_) == ["a", "b", "c", "d"]
    assert ours.coef_.shape == (4, 3)
    assert ours.intercept_.shape == (4,)
    assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-9)
    assert_allclose(ours.predict_proba(x), theirs.predict_proba(x), atol=1e-6)
    assert np.array_equal(ours.predict(x), theirs.predict(x))
    assert_allclose(ours.coef_.sum(axis=0), 0, atol=1e-10)


def test_parameters_and_robust_errors_are_statsmodels():
    """MNLogit: log odds against the first class; its sandwich from scores and Hessian, up to n / (n - p)."""
    import statsmodels.api as sm

    x, y = data(np.random.default_rng(1), 800)
    ours, model = LogisticRegression().fit(x, y), sm.MNLogit(y, sm.add_constant(x))
    theirs = model.fit(disp=0, method="newton")
    assert_allclose(ours.params_, theirs.params.T.ravel(), atol=1e-7)
    scores = model.score_obs(theirs.params.T.ravel())
    bread = np.linalg.inv(-model.hessian(theirs.params.T.ravel()))
    robust = bread @ (scores.T @ scores) @ bread
    assert_allclose(ours.cov_params_ * (800 - 12) / 800, robust, rtol=1e-4, atol=1e-10)
    assert ours._names[4] == "2: const"
    assert "log odds of 3 classes against 0" in ours.summary()


@pytest.mark.parametrize("keep", [1.0, 0.7])
def test_indicators_are_unbiased(keep):
    """The response matrix times the weights is the identity."""
    response = np.full((4, 4), (1 - keep) / 3) + (keep - (1 - keep) / 3) * np.eye(4)
    assert_allclose(response @ indicator_weights(4, keep), np.eye(4), atol=1e-14)


def risks(keep, noised):
    rng = np.random.default_rng(2)
    matrix, codes = np.concatenate([np.ones((1, 60)), rng.normal(size=(2, 60))]), rng.integers(0, 3, 60)
    term = Term(1.0, 0, (Resolvent(0.3),) if noised else ())
    variances = np.array([[0.0, 0.3, 0.2]]) if noised else np.zeros((0, 3))
    noise = IndexNoise((term,), variances, np.zeros(int(noised)))
    parts = split_classes(Stratum(noise, Held(Chunk((Design(matrix, None),), None))), codes, 3)
    penalty = 0.1 * np.eye(6)
    return [kind(parts, indicator_weights(3, keep), penalty) for kind in (SoftmaxRisk, PairsRisk)], matrix, codes


@pytest.mark.parametrize("keep", [1.0, 0.7])
@pytest.mark.parametrize("noised", [False, True])
def test_gradients_hessians_and_scores(keep, noised):
    theta = np.array([0.2, -0.5, 0.3, -0.4, 0.1, 0.6])
    for risk in risks(keep, noised)[0]:
        _, gradient, hessian = risk.derivatives(theta)
        for j in range(6):
            step = 1e-5 * np.eye(6)[j]
            high, low = risk.derivatives(theta + step), risk.derivatives(theta - step)
            assert_allclose(gradient[j], (high[0] - low[0]) / 2e-5, rtol=1e-6, atol=1e-8)
            assert_allclose(hessian[j], (high[1] - low[1]) / 2e-5, rtol=1e-5, atol=1e-7)
        blocks = np.concatenate(list(risk.score_blocks(theta)), axis=1)
        assert_allclose(blocks.mean(axis=1) + 0.1 * theta, gradient, atol=1e-12)
        assert_allclose(risk.score_covariance(theta), np.cov(blocks, bias=True), atol=1e-12)


def test_pairs_are_the_sum_of_binary_losses():
    """Against a plain loop over pairs and records."""
    theta = np.array([0.2, -0.5, 0.3, -0.4, 0.1, 0.6])
    (_, pairs), matrix, codes = risks(1.0, False)
    u = np.concatenate([np.zeros((1, 3)), theta.reshape(2, 3)]) @ matrix
    total = 0.0
    for i, c in enumerate(codes):
        for j in range(3):
            for k in range(j + 1, 3):
                if c in (j, k):
                    gap = u[k, i] - u[j, i]
                    total += np.log1p(np.exp(gap)) - (c == k) * gap
    assert_allclose(pairs.derivatives(theta)[0], total / 60 + 0.05 * theta @ theta, rtol=1e-12)


@pytest.mark.parametrize(
    ("law", "epsilon"),
    [(ZIL, None), (ZIL, 3.0), (SymmetricLaplace(0.5, shape=4), None), (None, 2.0)],
)
def test_every_kind_of_release_is_corrected(law, epsilon):
    """n = 12,000 (seed 3): within 4 standard errors of the truth, and the naive fit is not."""
    rng = np.random.default_rng(3)
    x, y = data(rng, 12_000)
    noise = {} if law is None else {COLUMNS: law}
    released = x if law is None else x + noise_of(law, rng, 12_000, 3)
    labels = y if epsilon is None else flipped(rng, y, 4, epsilon)
    if epsilon is not None:
        noise["y"] = RandomizedResponse(epsilon, 4)
    fit = LogisticRegression(noise=noise).fit(released, labels)
    assert np.abs((fit.params_ - TRUTH) / fit.bse_).max() < 4
    assert (fit.efficiency_.factors > 1).all()
    naive = LogisticRegression(noise=noise, correction="naive").fit(released, labels)
    assert np.abs((naive.params_ - TRUTH) / naive.bse_).max() > 5


def test_doubly_random_agrees():
    rng = np.random.default_rng(4)
    x, y = data(rng, 12_000)
    fit = LogisticRegression(noise=ZIL, correction="dr", random_state=0).fit(x + noise_of(ZIL, rng, 12_000, 3), y)
    assert np.abs((fit.params_ - TRUTH) / fit.bse_).max() < 4


def test_from_a_release_the_classes_are_the_declared_ones():
    rng = np.random.default_rng(5)
    x, y = data(rng, 3000)
    labels = np.array(["high", "low", "mid", "none"])
    import pandas as pd

    frame = pd.DataFrame(x, columns=list("abc")).assign(t=labels[y])
    law, domain = RandomizedResponse(3.0, 4), Categories({"t": ["none", "low", "mid", "high"]})
    laws = {("a", "b", "c"): SymmetricLaplace(0.1), "t": law}
    out = release(frame, laws, (Box(dict.fromkeys("abc", (-1, 1))), domain), rng=0)
    fit = LogisticRegression().fit_release(out, target="t")
    assert list(fit.classes_) == sorted(labels)
    assert set(fit.predict(frame[list("abc")])) <= set(labels)


def test_bad_requests():
    x, y = data(np.random.default_rng(6), 200)
    with pytest.raises(ValueError, match="4 labels of its law, got 3"):
        LogisticRegression(noise={"y": RandomizedResponse(1.0, 4)}).fit(x, y % 3)
    with pytest.raises(ValueError, match="2 labels of its law, got 4"):
        LogisticRegression(noise={"y": RandomizedResponse(1.0, 2)}).fit(x, y)
    with pytest.raises(CapabilityError, match="stabilize"):
        LogisticRegression(stabilize="auto").fit(x, y)
    with pytest.raises(CapabilityError, match="Gaussian"):
        LogisticRegression(noise=Gaussian(0.1)).fit(x, y)
    with pytest.warns(RankDeficiencyWarning, match="not identified"):
        fit = LogisticRegression().fit(np.c_[x, np.ones(200)], y)
    assert np.isinf(fit.bse_.reshape(3, 5)[:, [0, 4]]).all()
    others = np.delete(fit.params_.reshape(3, 5), 4, axis=1).ravel()
    assert_allclose(others, LogisticRegression().fit(x, y).params_, atol=1e-6)
    with pytest.warns(SmallSampleWarning, match="separated"):
        LogisticRegression().fit(np.c_[y, x], y)
    with pytest.warns(SmallSampleWarning, match="too few for this noise"):
        far = SymmetricLaplace(3.0)
        fit = LogisticRegression(noise=far).fit(x + noise_of(far, np.random.default_rng(0), 200, 3), y)
    assert fit.diagnostics_["n_needed"] >= 600


def test_clusters_give_the_errors_of_independent_rows_when_each_is_one():
    x, y = data(np.random.default_rng(7), 400)
    plain = LogisticRegression().fit(x, y)
    alone = LogisticRegression().fit(x, y, clusters=np.arange(400))
    assert_allclose(alone.bse_, plain.bse_, rtol=0.01)
    twice = LogisticRegression().fit(np.repeat(x, 2, axis=0), np.repeat(y, 2), clusters=np.repeat(np.arange(400), 2))
    assert_allclose(twice.params_, plain.params_, atol=1e-7)
    assert_allclose(twice.bse_, plain.bse_, rtol=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(("law", "epsilon"), [(ZIL, None), (ZIL, 3.0), (SymmetricLaplace(0.5, shape=4), None)])
def test_intervals_cover_and_the_cost_is_the_real_one(law, epsilon, seed):
    """100 runs of n = 10,000: 1200 intervals; factors against real likelihood oracles to 25 %."""

    def run(rng):
        x, y = data(rng, 10_000)
        noise = {COLUMNS: law} | ({} if epsilon is None else {"y": RandomizedResponse(epsilon, 4)})
        labels = y if epsilon is None else flipped(rng, y, 4, epsilon)
        fit = LogisticRegression(noise=noise).fit(x + noise_of(law, rng, 10_000, 3), labels)
        return fit, LogisticRegression().fit(x, y), TRUTH

    errors, spread, oracle, factors = replications(100, seed, run)
    assert 0.93 < np.mean(np.abs(errors) < 1.96 * spread) < 0.97
    assert_allclose(np.median(factors, axis=0), errors.std(axis=0) / oracle.std(axis=0), rtol=0.25)


@pytest.mark.slow
def test_pairs_lose_little_against_the_likelihood():
    """Raw data, 200 runs of n = 1500: standard deviations at most 6 % above those of maximum likelihood."""
    from privfit.estimators.solver import minimise

    errors = []
    for seed in range(200):
        x, y = data(np.random.default_rng(seed), 1500)
        noise = IndexNoise((Term(1.0, 0, ()),), np.zeros((0, 4)), np.zeros(0))
        whole = Stratum(noise, Held(Chunk((Design(np.c_[np.ones(1500), x].T, None),), None)))
        parts = split_classes(whole, y, 4)
        fits = [kind(parts, np.eye(4), np.zeros((12, 12))) for kind in (SoftmaxRisk, PairsRisk)]
        errors.append([minimise(risk, np.zeros(12), np.full(12, 30.0)).theta - TRUTH for risk in fits])
    likelihood, pairs = np.std(errors, axis=0)
    assert (pairs / likelihood).max() < 1.06
    assert (pairs / likelihood).mean() > 0.99
