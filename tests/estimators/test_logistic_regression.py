"""Logistic regression: unbiased under every law, better than its rivals, honest intervals.

Simulations use plain numpy noise. Quick versions run with few repetitions; the slow ones repeat the settings
of Lu, Chen & Qiu (truncated normal columns, delta0 = 0.2, beta = 1) with Monte Carlo errors stated.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulations import ball_data, laplace_noise, logistic_data, truncated_normal, zil_noise

from privfit.estimators import CapabilityError, LogisticRegression
from privfit.mechanisms import (
    Gaussian,
    Laplace,
    RandomizedResponse,
    SymmetricLaplace,
    ZeroInflatedLaplace,
)

ZIL = ZeroInflatedLaplace(1.0, 0.2)


def estimates(reps, n, scale, corrections, seed=1000):
    """Errors and standard errors by correction, on the paper's design."""
    found = {name: ([], []) for name in corrections}
    for rep in range(reps):
        rng = np.random.default_rng(seed + rep)
        x, y = logistic_data(rng, n, np.ones(6))
        released = x + zil_noise(rng, n, 6, scale, 0.2)
        for name in corrections:
            noise = None if name == "oracle" else ZeroInflatedLaplace(scale, 0.2)
            model = LogisticRegression(
                noise=noise, correction="exact" if name == "oracle" else name, random_state=rep
            ).fit(x if name == "oracle" else released, y)
            found[name][0].append(model.params_ - np.r_[0.0, np.ones(6)])
            found[name][1].append(model.bse_)
    return {name: (np.array(e), np.array(s)) for name, (e, s) in found.items()}


def z_scores(errors):
    return errors.mean(axis=0) / (errors.std(axis=0, ddof=1) / np.sqrt(len(errors)))


def test_without_noise_it_is_maximum_likelihood():
    """Against statsmodels: estimates, and the robust (HC0) covariance up to n / (n - p)."""
    import statsmodels.api as sm

    rng = np.random.default_rng(0)
    x, y = logistic_data(rng, 500, np.array([1.0, -2.0, 0.5]))
    ours = LogisticRegression().fit(x, y)
    theirs = sm.Logit(y, sm.add_constant(x)).fit(disp=0, cov_type="HC0")
    assert_allclose(ours.params_, theirs.params, atol=1e-7)
    assert_allclose(ours.cov_params_ * (500 - 4) / 500, theirs.cov_params(), rtol=1e-5)
    assert_allclose(
        ours.conf_int() - ours.params_[:, None],
        (theirs.conf_int() - theirs.params[:, None]) * np.sqrt(500 / 496),
        rtol=1e-5,
    )
    assert ours.converged_
    assert 0.9 < ours.efficiency_.overall < 1.1


@pytest.mark.filterwarnings("ignore::privfit.estimators.SmallSampleWarning")  # for the doubly random rival
def test_exact_is_unbiased_and_beats_doubly_random():
    """12 runs, n = 5000, lambda = 1 (seeds 1000..1011): unbiased, variance at most half of DR's."""
    found = estimates(12, 5000, 1.0, ("exact", "dr", "naive"))
    assert np.abs(z_scores(found["exact"][0])).max() < 3.7  # seven coefficients, 11 degrees of freedom
    assert found["dr"][0][:, 1:].var(axis=0).mean() > 2 * found["exact"][0][:, 1:].var(axis=0).mean()
    assert np.abs(found["naive"][0][:, 1:].mean(axis=0)).min() > 0.5


@pytest.mark.slow
def test_paper_setting_full():
    """200 runs, n = 10,000, lambda = 1: unbiased (3 MC errors), DR variance >= 2x, coverage 93-97 %.

    RMSE (oracle .046, SL .176, SDR .148, DR .264, EXACT .144 in an independent prototype of 40 runs) to 20 %.
    """
    found = estimates(200, 10_000, 1.0, ("oracle", "exact", "dr", "sdr", "sl"))
    rmse = {name: np.sqrt(np.mean(errors[:, 1:] ** 2)) for name, (errors, _) in found.items()}
    for name, expected in {"oracle": 0.046, "sl": 0.176, "sdr": 0.148, "dr": 0.264, "exact": 0.144}.items():
        assert_allclose(rmse[name], expected, rtol=0.2)
    errors, spread = found["exact"]
    assert found["dr"][0][:, 1:].var() > 2 * errors[:, 1:].var()
    assert rmse["exact"] <= min(rmse["sdr"], rmse["sl"]) * 1.01
    coverage = np.mean(np.abs(errors) < 1.96 * spread)  # 1400 intervals: standard error 0.6 %
    assert 0.93 < coverage < 0.97
    assert np.abs(np.mean(errors)) < 3 * np.std(errors.mean(axis=1)) / np.sqrt(200) + 0.01  # O(1/n) bias
    assert_allclose(np.median(spread[:, 1:]), errors[:, 1:].std(), rtol=0.1)


def shape4_error(seed, n, **options):
    """One run of the ball design: |theta| = 2.5, ball of diameter 1, shape-4 noise of variance .43."""
    rng = np.random.default_rng(seed)
    theta = 2.5 / np.sqrt(6) * np.array([1, -1, 1, -1, 1, -1])
    x, y = logistic_data(rng, n, theta, ball_data(rng, n, 6, 0.5))
    released = x + laplace_noise(rng, n, 6, np.sqrt(0.43), shape=4)
    model = LogisticRegression(noise=SymmetricLaplace(np.sqrt(0.43), shape=4), **options).fit(released, y)
    return model.coef_[0] - theta, model


def test_generalised_laplace_release():
    """3 runs at n = 200,000 (seeds 100..102): RMSE of the vector <= .35, where naive has about 2.3."""
    errors = [shape4_error(seed, 200_000)[0] for seed in (100, 101, 102)]
    assert np.sqrt(np.mean(np.sum(np.square(errors), axis=1))) <= 0.35
    naive = shape4_error(100, 200_000, correction="naive")[0]
    assert 2.2 < np.linalg.norm(naive) < 2.5


@pytest.mark.slow
def test_generalised_laplace_release_full():
    """24 runs (seeds 100..123): RMSE .303 (MC error .02); coverage of 144 intervals 93-99.5 %."""
    runs = [shape4_error(seed, 200_000) for seed in range(100, 124)]
    errors = np.array([error for error, _ in runs])
    assert np.sqrt(np.mean(np.sum(errors**2, axis=1))) <= 0.35
    spread = np.array([model.bse_[1:] for _, model in runs])
    assert 0.93 < np.mean(np.abs(errors) < 1.96 * spread) < 0.995


CASES = {
    "product laplace": (Laplace(0.3), lambda rng, n: 0.3 * rng.laplace(size=(n, 3))),
    "shape 2": (
        SymmetricLaplace((0.7, 0.4, 0.2), shape=2),
        lambda rng, n: laplace_noise(rng, n, 3, (0.7, 0.4, 0.2), 2),
    ),
    "one column": (
        {1: SymmetricLaplace(0.6)},
        lambda rng, n: laplace_noise(rng, n, 1, 0.6) * np.array([0, 1, 0]),
    ),
    "two parts": (
        {(0, 1): ZeroInflatedLaplace(0.8, 0.3), 2: Laplace(0.3)},
        lambda rng, n: np.hstack([zil_noise(rng, n, 2, 0.8, 0.3), 0.3 * rng.laplace(size=(n, 1))]),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_other_laws(case):
    """One large sample each (n = 60,000, seed 4): within 4.5 standard errors of the truth; naive is not."""
    noise, draw = CASES[case]
    rng = np.random.default_rng(4)
    beta = np.array([1.5, -1.0, 2.0])
    x, y = logistic_data(rng, 60_000, beta)
    released = x + draw(rng, 60_000)
    model = LogisticRegression(noise=noise).fit(released, y)
    assert np.abs((model.params_ - np.r_[0, beta]) / model.bse_).max() < 4.5
    naive = LogisticRegression(noise=noise, correction="naive").fit(released, y)
    assert np.abs((naive.params_ - np.r_[0, beta]) / naive.bse_).max() > 8
    assert 1 < model.efficiency_.overall < 10


def test_randomised_labels():
    """Labels kept with probability .73 (seed 8), columns noised too; strings as classes."""
    rng = np.random.default_rng(8)
    n, beta, keep = 60_000, np.array([1.5, -1.0]), RandomizedResponse(1.0).keep_probability
    x, y = logistic_data(rng, n, beta)
    flipped = np.where(rng.random(n) < keep, y, 1 - y)
    names = np.array(["<=50K", ">50K"])[flipped]
    noise = {(0, 1): ZeroInflatedLaplace(0.5, 0.2), "y": RandomizedResponse(1.0)}
    model = LogisticRegression(noise=noise).fit(x + zil_noise(rng, n, 2, 0.5, 0.2), names)
    assert list(model.classes_) == ["<=50K", ">50K"]
    assert np.abs((model.params_ - np.r_[0, beta]) / model.bse_).max() < 4
    ignored = LogisticRegression().fit(x, flipped)
    assert np.abs(ignored.coef_[0] - beta).min() > 0.3
    assert set(model.predict(x)) <= {"<=50K", ">50K"}


def test_label_noise_alone_inflates_the_information_as_theory_says():
    """No covariate noise: A = E (p - y*)^2 xx' with known variance of y*, so the factor is known."""
    rng = np.random.default_rng(9)
    n, keep = 40_000, 0.8
    x, y = logistic_data(rng, n, np.array([1.0]))
    flipped = np.where(rng.random(n) < keep, y, 1 - y)
    model = LogisticRegression(noise={"y": RandomizedResponse(np.log(4.0))}).fit(x, flipped)
    p = 1 / (1 + np.exp(-x[:, 0]))
    q = keep * p + (1 - keep) * (1 - p)
    design = np.stack([np.ones(n), x[:, 0]])
    bread = np.linalg.inv(design * (p * (1 - p)) @ design.T / n)
    meat = design * (q * (1 - q)) @ design.T / n / (2 * keep - 1) ** 2
    assert_allclose(np.sqrt(np.diag(bread @ meat @ bread) / n), model.bse_, rtol=0.03)
    assert_allclose(model.efficiency_.factors, np.sqrt(np.diag(bread @ meat @ bread) / np.diag(bread)), rtol=0.03)


@pytest.mark.slow
def test_efficiency_matches_the_real_oracle():
    """Reported growth of standard errors against the spread of real oracle fits (100 runs, to 10 %)."""
    found = estimates(100, 10_000, 1.0, ("oracle", "exact"))
    real = found["exact"][0][:, 1:].std() / found["oracle"][0][:, 1:].std()
    rng = np.random.default_rng(5)
    x, y = logistic_data(rng, 10_000, np.ones(6))
    reported = LogisticRegression(noise=ZIL).fit(x + zil_noise(rng, 10_000, 6, 1.0, 0.2), y).efficiency_
    assert_allclose(np.median(reported.factors[1:]), real, rtol=0.15)
    assert_allclose(reported.n_effective, 10_000 / reported.overall**2)


def test_gaussian_release_says_what_to_use_instead():
    rng = np.random.default_rng(0)
    x, y = logistic_data(rng, 200, np.ones(2))
    with pytest.raises(CapabilityError, match=r"Gaussian.*SymmetricLaplace.*naive"):
        LogisticRegression(noise=Gaussian(0.5)).fit(x, y)
    assert LogisticRegression(noise=Gaussian(0.5), correction="naive").fit(x, y).converged_


def test_large_samples_use_a_warm_start_and_agree():
    """The subsample route (n > 60,000) ends where the direct search ends."""
    from privfit.estimators import regression

    rng = np.random.default_rng(3)
    x, y = logistic_data(rng, 70_000, np.array([1.0, -1.0]))
    released = x + zil_noise(rng, 70_000, 2, 0.7, 0.3)
    noise = ZeroInflatedLaplace(0.7, 0.3)
    quick = LogisticRegression(noise=noise).fit(released, y)
    saved = regression._WARM
    regression._WARM = 10**9
    try:
        direct = LogisticRegression(noise=noise).fit(released, y)
    finally:
        regression._WARM = saved
    assert_allclose(quick.params_, direct.params_, atol=1e-8)
    assert_allclose(quick.cov_params_, direct.cov_params_, rtol=1e-6)


def test_prediction_and_scores():
    rng = np.random.default_rng(1)
    x, y = logistic_data(rng, 400, np.array([3.0, -2.0]), truncated_normal(rng, (400, 2)))
    model = LogisticRegression(fit_intercept=False).fit(x, y)
    assert model.intercept_ == [0.0]
    probability = model.predict_proba(x)
    assert_allclose(probability.sum(axis=1), 1.0)
    assert_allclose(np.log(probability[:, 1] / probability[:, 0]), model.decision_function(x))
    assert np.array_equal(model.predict(x), (probability[:, 1] > 0.5).astype(int))
    assert model.params_.size == 2
