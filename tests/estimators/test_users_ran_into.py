"""What users of other packages ran into, each a named test: a clear error, or a documented answer."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulations import flipped, laplace_noise, zil_noise
from sklearn.base import clone

from privfit.estimators import (
    LinearRegression,
    LogisticRegression,
    QuantileRegression,
    RankDeficiencyWarning,
    SmallSampleWarning,
)
from privfit.estimators.huber_regression import HuberRegression
from privfit.estimators.linear_svc import LinearSVC
from privfit.estimators.losses import HingeLoss, RandomizedLabelLoss
from privfit.estimators.poisson_regression import PoissonRegression
from privfit.estimators.principal_components import PrincipalComponents
from privfit.estimators.ridge import Ridge
from privfit.mechanisms import RandomizedResponse, SymmetricLaplace, ZeroInflatedLaplace

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
LABEL = (RNG.random(200) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
CLASS = (X @ RNG.normal(size=(3, 3)) + RNG.gumbel(size=(200, 3))).argmax(axis=1)
NUMBER = X.sum(axis=1) + RNG.normal(size=200)
COUNT = RNG.poisson(np.exp(0.5 * X[:, 0]))
SVC, HINGE = partial(LinearSVC, alpha=0.0), partial(LinearSVC, "hinge", alpha=0.0)
MODELS = {
    "logistic": (LogisticRegression, LABEL),
    "multinomial": (LogisticRegression, CLASS),
    "linear": (LinearRegression, NUMBER),
    "ridge": (partial(Ridge, 0.0), NUMBER),
    "quantile": (QuantileRegression, NUMBER),
    "huber": (HuberRegression, NUMBER),
    "poisson": (PoissonRegression, COUNT),
    "svc": (SVC, LABEL),
    "hinge": (HINGE, LABEL),
}
each_model = pytest.mark.parametrize(("model", "y"), MODELS.values(), ids=MODELS)


def slopes(fit):
    return np.ravel(fit.coef_)


def slope_errors(fit):
    """Standard errors without those of intercepts."""
    return np.array([e for e, name in zip(fit.bse_, fit._names, strict=True) if "const" not in name])


def test_quantile_fit_of_four_records_has_no_nan():
    fit = QuantileRegression().fit(X[:4, :1], NUMBER[:4])
    assert np.isfinite(fit.params_).all()
    assert not np.isnan(fit.bse_).any()


@pytest.mark.parametrize("model", [LinearRegression, partial(Ridge, 0.0), QuantileRegression, HuberRegression])
def test_exact_fit_says_that_its_standard_errors_mean_nothing(model):
    with pytest.warns(RankDeficiencyWarning, match="residuals are all zero"):
        fit = model().fit(X, X.sum(axis=1))
    assert_allclose(fit.coef_, 1.0, rtol=1e-9)


@pytest.mark.parametrize("model", [LogisticRegression, LinearSVC, partial(LinearSVC, "hinge")])
def test_perfectly_separated_labels_have_no_finite_standard_errors(model):
    y = X[:, 0] > 0
    with pytest.warns(SmallSampleWarning, match="separated"):
        fit = model(alpha=0.0).fit(X, y)
    assert np.isinf(fit.bse_).all()
    assert np.isfinite(fit.params_).all()
    assert np.isfinite(model(alpha=0.01).fit(X, y).bse_).all()


@each_model
@pytest.mark.parametrize("noise", [None, {0: ZeroInflatedLaplace(0.1, 0.3)}], ids=["plain", "noised"])
def test_rank_deficient_dummies_have_infinite_standard_errors(model, y, noise):
    with pytest.warns(RankDeficiencyWarning, match="collinear"):
        fit = model(noise=noise).fit(np.c_[X, X[:, 1]], y)
    assert np.isinf(slope_errors(fit).reshape(-1, 4)[:, [1, 3]]).all()
    assert np.isfinite(fit.params_).all()


@each_model
def test_zero_column_is_not_taken_for_the_intercept(model, y):
    with pytest.warns(RankDeficiencyWarning):
        fit = model(fit_intercept=False).fit(np.c_[np.zeros(200), X], y)
    without = model(fit_intercept=False).fit(X, y)
    assert (fit.coef_.reshape(-1, 4)[:, 0] == 0).all()
    assert_allclose(fit.coef_.reshape(-1, 4)[:, 1:], without.coef_.reshape(-1, 3), atol=1e-3)


@each_model
def test_z_scored_column_is_not_taken_for_a_constant(model, y):
    fit = model().fit((X - X.mean(axis=0)) / X.std(axis=0), y)
    assert np.isfinite(fit.bse_).all()
    assert_allclose(fit.coef_, model().fit(X, y).coef_ * X.std(axis=0), rtol=2e-4, atol=1e-7)


@each_model
@pytest.mark.parametrize("dtype", [np.int8, np.bool_, np.float32, np.int64, np.uint8])
def test_int8_and_bool_columns(model, y, dtype):
    x = (np.abs(X) * 20).astype(dtype) if dtype is not np.bool_ else X > 0
    assert_allclose(model().fit(x, y).params_, model().fit(x.astype(float), y).params_, rtol=1e-12)


def memory_mapped(x, folder):
    path = folder / "x.npy"
    np.save(path, x)
    return np.load(path, mmap_mode="r")


@each_model
@pytest.mark.parametrize(
    "convert",
    [
        lambda x, _: np.asfortranarray(x),
        lambda x, _: x.tolist(),
        lambda x, _: np.repeat(x, 2, axis=1)[:, ::2],
        lambda x, _: np.broadcast_to(x, x.shape),
        memory_mapped,
    ],
    ids=["fortran", "list", "strided", "read-only", "memmap"],
)
def test_layouts_do_not_matter_and_are_left_alone(model, y, convert, tmp_path):
    before, law = X.copy(), ZeroInflatedLaplace(0.1, 0.3)
    fit = model(noise=law).fit(convert(X, tmp_path), y)
    assert_allclose(fit.params_, model(noise=law).fit(X, y).params_, rtol=1e-7)
    assert np.array_equal(X, before)


@pytest.mark.parametrize(("model", "y"), [MODELS[k] for k in ("logistic", "multinomial", "svc")])
def test_string_labels(model, y):
    names = np.array(["<=50K", ">50K", "?"])[y]
    for labels in (names, names.astype(object)):
        fit = model().fit(X, labels)
        assert list(fit.classes_) == sorted(set(names))
        assert_allclose(fit.params_, model().fit(X, y).params_, atol=1e-9)
        assert set(fit.predict(X)) <= set(names)


@pytest.mark.parametrize("model", [LogisticRegression, SVC, HINGE])
def test_one_class_only(model):
    with pytest.raises(ValueError, match="2 classes, got 1 class"):
        model().fit(X, np.zeros(200))


@each_model
def test_columns_times_a_million(model, y):
    plain, scaled = model().fit(X, y), model().fit(X * 1e6, y)
    assert_allclose(slopes(scaled) * 1e6, slopes(plain), rtol=1e-5)
    assert_allclose(slope_errors(scaled) * 1e6, slope_errors(plain), rtol=1e-4)
    noisy = model(noise=ZeroInflatedLaplace(0.2, 0.3)).fit(X, y)
    far = model(noise=ZeroInflatedLaplace(0.2e6, 0.3)).fit(X * 1e6 + 3e8, y)
    assert_allclose(slopes(far) * 1e6, slopes(noisy), rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("law", [None, ZeroInflatedLaplace(0.5, 0.3)], ids=str)
def test_quantile_regression_of_three_million_records_fits_in_memory(law):
    """n = 2.9e6, d = 3: a peak of fifteen copies of the table (a dense programme would take 61 TiB)."""
    import tracemalloc

    rng = np.random.default_rng(1)
    x = rng.normal(size=(2_900_000, 3))
    y = x.sum(axis=1) + rng.normal(size=2_900_000)
    if law is not None:
        x += zil_noise(rng, 2_900_000, 3, 0.5, 0.3)
    tracemalloc.start()
    try:
        fit = QuantileRegression(0.5, noise=law).fit(x, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 15 * x.nbytes
    assert np.abs((fit.params_ - [0, 1, 1, 1]) / fit.bse_).max() < 4.5


@each_model
def test_complex_input_is_refused(model, y):
    with pytest.raises(ValueError, match="Complex data not supported") as caught:
        model().fit(X + 1j, y)
    assert not any(str(value)[:8] in str(caught.value) for value in X[:, 0])


CLOSE = {
    "logistic": (LogisticRegression, LABEL),
    "linear": (LinearRegression, NUMBER),
    "ridge": (partial(Ridge, 0.1), NUMBER),
    "quantile at one bandwidth": (partial(QuantileRegression, bandwidth=0.3), NUMBER),
    "huber": (partial(HuberRegression, 1.0), NUMBER),
    "poisson": (PoissonRegression, COUNT),
    "svc": (partial(LinearSVC, alpha=0.01), LABEL),
    "hinge at one bandwidth": (partial(LinearSVC, "hinge", alpha=0.01, bandwidth=0.3), LABEL),
}


@pytest.mark.parametrize(("model", "y"), CLOSE.values(), ids=CLOSE)
def test_accuracy_approaches_the_clean_fit_as_epsilon_grows(model, y):
    """Noise of scale 1/epsilon, epsilon = 1e2, 1e4, 1e8: the distance falls in proportion.

    A smoothed loss has another kernel with noise than without: there the limit is the fit with next to no noise.
    """
    rng = np.random.default_rng(2)
    unit = zil_noise(rng, 200, 3, 1.0, 0.3)
    smoothed = model().get_params().get("bandwidth", "auto") != "auto"
    clean = model(noise=ZeroInflatedLaplace(1e-12, 0.3) if smoothed else None).fit(X, y).params_
    gaps = []
    for epsilon in (1e2, 1e4, 1e8):
        fit = model(noise=ZeroInflatedLaplace(1 / epsilon, 0.3)).fit(X + unit / epsilon, y)
        gaps.append(np.abs(fit.params_ - clean).max())
    assert gaps[0] < 0.2
    assert gaps[1] < 0.05 * gaps[0]
    assert gaps[2] < 2e-6


@pytest.mark.parametrize(("model", "y"), [MODELS[k] for k in ("logistic", "multinomial", "svc")])
def test_label_noise_vanishes_as_epsilon_grows(model, y):
    law = RandomizedResponse(30.0, int(y.max()) + 1)
    assert_allclose(model(noise={"y": law}).fit(X, y).params_, model().fit(X, y).params_, atol=1e-8)


def test_clones_share_no_randomness():
    """An integer seed gives the same second noise in every fit, None a fresh one."""
    law = ZeroInflatedLaplace(0.3, 0.3)
    for model, y in (MODELS["linear"], MODELS["logistic"], MODELS["huber"]):
        seeded = model(noise=law, correction="dr", random_state=1)
        assert_allclose(clone(seeded).fit(X, y).params_, seeded.fit(X, y).params_)
        fresh = model(noise=law, correction="dr")
        assert np.abs(clone(fresh).fit(X, y).params_ - fresh.fit(X, y).params_).max() > 1e-6


def test_noise_free_columns_are_not_biased_by_noisy_neighbours():
    """Correlated columns, only the first noised: naive moves the second coefficient, exact does not."""
    rng = np.random.default_rng(7)
    n = 60_000
    first = rng.uniform(-1, 1, n)
    x = np.stack([first, 0.7 * first + 0.5 * rng.uniform(-1, 1, n)], axis=1)
    y = (rng.random(n) < 1 / (1 + np.exp(-(2 * x[:, 0] - x[:, 1])))).astype(int)
    released = x.copy()
    released[:, :1] += laplace_noise(rng, n, 1, 0.7)
    exact = LogisticRegression(noise={0: SymmetricLaplace(0.7)}).fit(released, y)
    assert np.abs((exact.coef_[0] - [2, -1]) / exact.bse_[1:]).max() < 4
    naive = LogisticRegression(noise={0: SymmetricLaplace(0.7)}, correction="naive").fit(released, y)
    assert abs(naive.coef_[0][1] + 1) > 20 * naive.bse_[2]
    components = PrincipalComponents(noise={0: SymmetricLaplace(0.7)}).fit(released)
    assert_allclose(components.covariance_, np.cov(x.T), atol=0.02)


@pytest.mark.parametrize("categories", [2, 5])
def test_a_coin_toss_is_no_release_of_a_label(categories):
    """Truth probability 1/K leaves nothing to invert: refused where the law, or its correction, is made."""
    with pytest.raises(ValueError, match="epsilon must be"):
        RandomizedResponse(0.0, categories)
    with pytest.raises(ValueError, match=r"keep must be .*0\.5"):
        RandomizedLabelLoss(HingeLoss(), 0.5)


def test_labels_near_a_coin_toss_cost_what_theory_says():
    """epsilon = .2: not an error, but standard errors grow by about 1 / (2p - 1)."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(100_000, 1))
    y = (rng.random(100_000) < 1 / (1 + np.exp(-0.5 * x[:, 0]))).astype(int)
    law = RandomizedResponse(0.2)
    fit = LogisticRegression(noise={"y": law}).fit(x, flipped(rng, y, 2, 0.2))
    assert_allclose(fit.efficiency_.factors, 1 / (2 * law.keep_probability - 1), rtol=0.15)
