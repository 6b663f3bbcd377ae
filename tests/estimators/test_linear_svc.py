"""Linear support vector classification: scikit-learn's on raw data, corrected columns and labels on releases."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulations import flipped, logistic_data, noise_of, replications

from privfit.estimators import CapabilityError
from privfit.estimators.linear_svc import LinearSVC
from privfit.mechanisms import Gaussian, RandomizedResponse, SymmetricLaplace, ZeroInflatedLaplace

BETA = np.array([2.0, -1.0, 1.0])
ZIL = ZeroInflatedLaplace(0.4, 0.3)
COLUMNS = (0, 1, 2)


@pytest.fixture(scope="module")
def targets():
    """Minimisers of the population risks, from 100,000 raw records (errors half of those tested)."""
    x, y = logistic_data(np.random.default_rng(99), 100_000, BETA)
    return {loss: LinearSVC(loss, alpha=0.0).fit(x, y).params_ for loss in ("hinge", "squared_hinge")}


@pytest.mark.parametrize("alpha", [1e-3, 0.1])
def test_squared_hinge_is_scikit_learns(alpha):
    from sklearn.svm import LinearSVC as Theirs

    x, y = logistic_data(np.random.default_rng(0), 400, BETA)
    theirs = Theirs(C=1 / (400 * alpha), fit_intercept=False, dual=False, tol=1e-12, max_iter=100_000).fit(x, y)
    ours = LinearSVC(alpha=alpha, fit_intercept=False).fit(x, y)
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)


@pytest.mark.parametrize("alpha", [1e-3, 0.1])
def test_hinge_is_libsvms_and_satisfies_the_optimality_conditions(alpha):
    """To the precision at which libsvm stops; the optimality conditions hold to rounding."""
    from sklearn.svm import SVC

    x, y = logistic_data(np.random.default_rng(1), 400, BETA)
    theirs = SVC(kernel="linear", C=1 / (400 * alpha), tol=1e-11).fit(x, y)
    ours = LinearSVC("hinge", alpha=alpha).fit(x, y)
    assert_allclose(ours.coef_, theirs.coef_, atol=3e-6)
    assert_allclose(ours.intercept_, theirs.intercept_, atol=3e-6)
    # subgradient: alpha b = mean(z 1[m < 1]) + share of the records at margin 1, each share within [0, 1]
    sign = 2.0 * y - 1
    margin = sign * ours.decision_function(x)
    edge, below = np.abs(margin - 1) < 1e-9, margin < 1 - 1e-9
    z = sign[:, None] * np.c_[np.ones(400), x]
    left = np.r_[0.0, alpha * ours.coef_[0]] - z[below].sum(axis=0) / 400
    share, *_ = np.linalg.lstsq(z[edge].T / 400, left, rcond=None)
    assert_allclose(z[edge].T @ share / 400, left, atol=1e-10)
    assert share.min() > -1e-6
    assert share.max() < 1 + 1e-6


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_randomised_labels_alone(loss, targets):
    rng = np.random.default_rng(2)
    x, y = logistic_data(rng, 25_000, BETA)
    names = np.array(["no", "yes"])[flipped(rng, y, 2, 2.0)]
    fit = LinearSVC(loss, alpha=0.0, noise={"y": RandomizedResponse(2.0)}).fit(x, names)
    assert np.abs((fit.params_ - targets[loss]) / fit.bse_).max() < 4
    assert list(fit.classes_) == ["no", "yes"]
    ignored = LinearSVC(loss, alpha=0.0).fit(x, names)
    assert np.abs((ignored.params_ - targets[loss]) / ignored.bse_).max() > 8


@pytest.mark.parametrize(
    ("loss", "law", "epsilon"),
    [
        ("squared_hinge", ZIL, None),
        ("squared_hinge", ZIL, 2.0),
        ("squared_hinge", SymmetricLaplace(0.3), None),
        ("squared_hinge", SymmetricLaplace(0.25, shape=4), None),
        ("hinge", ZIL, None),
        ("hinge", SymmetricLaplace(0.15), None),
    ],
)
def test_noised_columns(loss, law, epsilon, targets):
    """n = 25,000 (seed 3): within 4 standard errors of the population's minimiser; the naive fit is not."""
    rng = np.random.default_rng(3)
    x, y = logistic_data(rng, 25_000, BETA)
    released = x + noise_of(law, rng, 25_000, 3)
    noise = {COLUMNS: law} | ({} if epsilon is None else {"y": RandomizedResponse(epsilon)})
    labels = y if epsilon is None else flipped(rng, y, 2, epsilon)
    fit = LinearSVC(loss, alpha=0.0, noise=noise).fit(released, labels)
    assert np.abs((fit.params_ - targets[loss]) / fit.bse_).max() < 4
    smoothed = loss == "hinge" or not isinstance(law, ZeroInflatedLaplace)
    assert (fit.diagnostics_["bandwidth"] is not None) == smoothed
    assert 0 <= fit.diagnostics_["smoothing_bias"] < 0.01
    naive = LinearSVC(loss, alpha=0.0, noise=noise, correction="naive").fit(released, labels)
    assert np.abs((naive.params_ - targets[loss]) / naive.bse_).max() > 5


def test_prediction_and_shapes():
    rng = np.random.default_rng(4)
    x, y = logistic_data(rng, 300, BETA)
    fit = LinearSVC().fit(x, np.array(["a", "b"])[y])
    assert fit.coef_.shape == (1, 3)
    assert np.array_equal(fit.predict(x) == "b", fit.decision_function(x) > 0)
    assert fit.score(x, np.array(["a", "b"])[y]) > 0.6
    assert not hasattr(fit, "predict_proba")


def test_bad_arguments():
    x, y = logistic_data(np.random.default_rng(5), 100, BETA)
    with pytest.raises(ValueError, match="loss must be one of"):
        LinearSVC("logistic").fit(x, y)
    with pytest.raises(ValueError, match="bandwidth"):
        LinearSVC(bandwidth=0.0).fit(x, y)
    with pytest.raises(ValueError, match="2 classes, got 3"):
        LinearSVC().fit(x, np.arange(100) % 3)
    with pytest.raises(ValueError, match="categories must be 2"):
        LinearSVC(noise={"y": RandomizedResponse(1.0, 3)}).fit(x, y)
    with pytest.raises(CapabilityError, match=r"Gaussian.*SymmetricLaplace"):
        LinearSVC(noise=Gaussian(0.1)).fit(x, y)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    ("loss", "law", "epsilon"),
    [
        ("squared_hinge", ZIL, None),
        ("squared_hinge", ZIL, 2.0),
        ("squared_hinge", SymmetricLaplace(0.4), None),
        ("hinge", ZIL, None),
    ],
)
def test_intervals_cover_and_the_cost_is_the_real_one(loss, law, epsilon, seed):
    """150 runs of n = 20,000: 600 intervals (standard error .9 %); factors against real oracles to 25 %."""
    big = logistic_data(np.random.default_rng(98), 3_000_000, BETA)
    truth = LinearSVC(loss, alpha=0.0, bandwidth=0.02).fit(*big).params_ * [0.0, 1, 1, 1]

    def run(rng):
        x, y = logistic_data(rng, 20_000, BETA)
        noise = {COLUMNS: law} | ({} if epsilon is None else {"y": RandomizedResponse(epsilon)})
        labels = y if epsilon is None else flipped(rng, y, 2, epsilon)
        fit = LinearSVC(loss, alpha=0.0, noise=noise).fit(x + noise_of(law, rng, 20_000, 3), labels)
        return fit, LinearSVC(loss, alpha=0.0, bandwidth=0.02).fit(x, y), truth

    errors, spread, oracle, factors = replications(150, seed, run)
    assert 0.93 < np.mean(np.abs(errors) < 1.96 * spread) < 0.97
    assert_allclose(np.median(factors, axis=0), errors.std(axis=0) / oracle.std(axis=0), rtol=0.25)
