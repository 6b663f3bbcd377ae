"""What users of other packages ran into, each a named test: a clear error, or a documented answer."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from privfit.estimators import (
    LinearRegression,
    LogisticRegression,
    Mean,
    Quantile,
    QuantileRegression,
    RankDeficiencyWarning,
    SmallSampleWarning,
)
from privfit.mechanisms import Laplace, SymmetricLaplace, ZeroInflatedLaplace

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
LABEL = (RNG.random(200) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
NUMBER = X.sum(axis=1) + RNG.normal(size=200)
MODELS = [(LogisticRegression, LABEL), (LinearRegression, NUMBER), (QuantileRegression, NUMBER)]
each_model = pytest.mark.parametrize(("model", "y"), MODELS, ids=lambda v: getattr(v, "__name__", ""))


def no_data_in(message):
    """A value of the data has many digits; a message of ours has few."""
    import re

    return not re.search(r"\d\.\d{5,}", str(message))


@each_model
def test_fewer_records_than_parameters(model, y):
    few = [0, 1, 1] if model is LogisticRegression else y[:3]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallSampleWarning)
        with pytest.warns(RankDeficiencyWarning, match="not identified by 3 records"):
            fit = model().fit(RNG.normal(size=(3, 6)), few)
    assert np.isinf(fit.bse_).all()
    assert np.isfinite(fit.params_).all()


@each_model
@pytest.mark.parametrize("noise", [None, {0: SymmetricLaplace(0.1)}], ids=["plain", "noised"])
def test_constant_column(model, y, noise):
    """Its coefficient is 0 with an infinite standard error; the others are as without it."""
    with pytest.warns(RankDeficiencyWarning, match=r"1 coefficients are not identified .*\(3\)"):
        fit = model(noise=noise).fit(np.c_[X, np.full(200, 3.0)], y)
    plain = model(noise=noise).fit(X, y)
    assert fit.params_[-1] == 0
    assert np.isinf(fit.bse_[[0, -1]]).all()
    assert_allclose(fit.bse_[1:-1], plain.bse_[1:], rtol=0.02)
    assert_allclose(fit.params_[1:-1], plain.params_[1:], atol=0.05)


@each_model
def test_zero_column_is_not_taken_for_the_intercept(model, y):
    with pytest.warns(RankDeficiencyWarning):
        fit = model(fit_intercept=False).fit(np.c_[np.zeros(200), X], y)
    assert fit.params_[0] == 0
    assert_allclose(fit.params_[1:], model(fit_intercept=False).fit(X, y).params_, atol=1e-3)


@each_model
def test_z_scored_column_is_not_taken_for_a_constant(model, y):
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    fit = model().fit(z, y)
    assert np.isfinite(fit.bse_).all()
    assert_allclose(np.ravel(fit.coef_), np.ravel(model().fit(X, y).coef_) * X.std(axis=0), rtol=1e-4)


@each_model
@pytest.mark.parametrize("noise", [None, {0: SymmetricLaplace(0.1)}], ids=["plain", "noised"])
def test_rank_deficient_dummies(model, y, noise):
    with pytest.warns(RankDeficiencyWarning, match="collinear"):
        fit = model(noise=noise).fit(np.c_[X, X[:, 1]], y)
    assert np.isinf(fit.bse_[[2, 4]]).all()
    assert np.isfinite(fit.params_).all()


def test_one_class():
    with pytest.raises(ValueError, match="2 classes, got 1 class"):
        LogisticRegression().fit(X, np.zeros(200))
    with pytest.raises(ValueError, match="2 classes, got 3"):
        LogisticRegression().fit(X, np.arange(200) % 3)


def test_perfect_separation_has_no_standard_errors():
    with pytest.warns(SmallSampleWarning, match="separated"):
        fit = LogisticRegression().fit(X, X[:, 0] > 0)
    assert np.isinf(fit.bse_).all()
    assert fit.diagnostics_["at_bound"]
    assert np.isfinite(LogisticRegression(alpha=0.01).fit(X, X[:, 0] > 0).bse_).all()


@pytest.mark.parametrize("model", [LinearRegression, QuantileRegression])
def test_exact_fit_says_that_its_standard_errors_mean_nothing(model):
    with pytest.warns(RankDeficiencyWarning, match="residuals are all zero"):
        fit = model().fit(X, X.sum(axis=1))
    assert_allclose(fit.coef_, 1.0, rtol=1e-9)


@pytest.mark.parametrize("model", [LinearRegression, QuantileRegression])
def test_constant_response(model):
    with pytest.warns(RankDeficiencyWarning, match="zero"):
        fit = model().fit(X, np.full(200, 7.0))
    assert_allclose(fit.params_, [7, 0, 0, 0], atol=1e-9)


def test_quantile_fit_of_four_records():
    fit = QuantileRegression().fit(X[:4, :1], NUMBER[:4])
    assert np.isfinite(fit.params_).all()
    assert not np.isnan(fit.bse_).any()


@each_model
@pytest.mark.parametrize(
    "convert",
    [
        lambda x: np.asfortranarray(x),
        lambda x: x.tolist(),
        lambda x: np.repeat(x, 2, axis=1)[:, ::2],
        lambda x: np.broadcast_to(x, x.shape),
    ],
    ids=["fortran", "list", "strided", "read-only"],
)
def test_layouts_do_not_matter(model, y, convert):
    before = X.copy()
    fit = model(noise=ZeroInflatedLaplace(0.1, 0.3)).fit(convert(X), y)
    assert_allclose(fit.params_, model(noise=ZeroInflatedLaplace(0.1, 0.3)).fit(X, y).params_, rtol=1e-7)
    assert np.array_equal(X, before)


@each_model
@pytest.mark.parametrize("dtype", [np.int8, np.bool_, np.float32, np.int64, np.uint8])
def test_dtypes(model, y, dtype):
    x = (np.abs(X) * 20).astype(dtype) if dtype is not np.bool_ else X > 0
    fit = model().fit(x, y)
    assert_allclose(fit.params_, model().fit(x.astype(float), y).params_, rtol=1e-12)


@each_model
def test_units_do_not_matter(model, y):
    plain, scaled = model().fit(X, y), model().fit(X * 1e6, y)
    assert_allclose(np.ravel(scaled.coef_) * 1e6, np.ravel(plain.coef_), rtol=1e-6)
    assert_allclose(scaled.bse_[1:] * 1e6, plain.bse_[1:], rtol=1e-5)
    noisy = model(noise=SymmetricLaplace(0.2)).fit(X, y)
    far = model(noise=SymmetricLaplace(0.2e6)).fit(X * 1e6 + 3e8, y)
    assert_allclose(np.ravel(far.coef_) * 1e6, np.ravel(noisy.coef_), rtol=1e-4)


@each_model
def test_complex_input_is_refused(model, y):
    with pytest.raises(ValueError, match="Complex data not supported") as caught:
        model().fit(X + 1j, y)
    assert no_data_in(caught.value)


@each_model
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_missing_and_infinite_values_are_refused(model, y, bad):
    x = X.copy()
    x[3, 1] = bad
    with pytest.raises(ValueError, match=r"X contains (NaN|infinity)") as caught:
        model().fit(x, y)
    assert no_data_in(caught.value)
    assert "Drop these records or impute" in str(caught.value)
    assert "scikit" not in str(caught.value) and "HistGradient" not in str(caught.value)
    fitted = model().fit(X, y)
    with pytest.raises(ValueError, match=r"Input X contains .* Drop these records or impute"):
        fitted.predict(x)
    if model is not LogisticRegression:
        with pytest.raises(ValueError, match=r"Input y contains (NaN|infinity).* Drop these records or impute"):
            model().fit(X, np.where(np.arange(200) == 3, bad, y))


@each_model
def test_shapes_and_text(model, y):
    for x, message in (
        (X[:, 0], "Expected 2D array, got 1D array"),
        (np.empty((0, 3)), "0 sample"),
        (np.empty((200, 0)), "0 feature"),
        (X.astype(str).astype(object) + "a", "must hold numbers, got text"),
        ([[1.0, 2.0], [3.0]], "rows of one length"),
        (X * 1e200, "absolute value"),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            model().fit(x, y)
        assert no_data_in(caught.value)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        model().fit(X, y[:-1])


def test_continuous_labels_are_refused():
    with pytest.raises(ValueError, match="continuous"):
        LogisticRegression().fit(X, NUMBER)


@each_model
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bound": -1.0}, "bound"),
        ({"bound": [1.0, 2.0]}, "bound must be one positive number or 3"),
        ({"bound": 0.0}, "bound"),
        ({"bound": np.nan}, "bound"),
        ({"alpha": -1.0}, "alpha"),
        ({"alpha": np.inf}, "alpha"),
        ({"correction": "best"}, "correction must be one of 'exact'"),
        ({"fit_intercept": "yes"}, "fit_intercept"),
        ({"random_state": "a"}, "random_state"),
        ({"random_state": -1}, "random_state"),
        ({"noise": 0.5}, "noise must be a law"),
        ({"correction": "dr", "noise": Laplace(0.1)}, "exactly one ZeroInflatedLaplace"),
    ],
)
def test_bad_parameters(model, y, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        model(**options).fit(X, y)


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.2, np.nan, "half"])
def test_bad_quantile(bad):
    for fit in (lambda: QuantileRegression(bad).fit(X, NUMBER), lambda: Quantile(bad).fit(X)):
        with pytest.raises((ValueError, TypeError), match="quantile"):
            fit()


def test_bad_bandwidth():
    with pytest.raises(ValueError, match="bandwidth"):
        QuantileRegression(bandwidth=0.0).fit(X, NUMBER)
    with pytest.raises(TypeError, match="bandwidth"):
        QuantileRegression(bandwidth="wide").fit(X, NUMBER)


def test_mean_and_quantile_refuse_what_regressions_refuse():
    for model in (Mean(), Quantile()):
        with pytest.raises(ValueError, match="NaN"):
            model.fit([[np.nan]])
        with pytest.raises(ValueError, match="2D"):
            model.fit([1.0, 2.0])
        with pytest.raises(ValueError, match="names the column"):
            type(model)(noise={"nope": Laplace(1.0)}).fit(X)


@each_model
def test_too_much_noise_is_said_with_the_n_it_needs(model, y):
    rng = np.random.default_rng(3)
    released = X + 20 * np.sqrt(rng.exponential(size=(200, 1))) * rng.normal(size=X.shape)
    with pytest.warns(SmallSampleWarning, match=r"200 released records are too few .* n = (1,[0-8]00|[6-9]\d0)\."):
        fit = model(noise=SymmetricLaplace(20.0)).fit(released, y)
    assert np.isinf(fit.bse_).all()
    assert "TOO FEW RECORDS" in fit.summary()


def test_the_n_that_is_said_is_about_right():
    """Least squares, one column of variance 1, noise variance v: c^2 = Var(x~^2), about n = 9 (5 v^2 + 4 v +
    2).

    The fit says so within a factor 8, and at twice that n it does not warn (SL noise, v = 9).
    """
    law, said = SymmetricLaplace(3.0), []
    for n in (60, 80, 100, 120):
        rng = np.random.default_rng(n)
        x = rng.normal(size=(n, 1))
        released = x + 3 * np.sqrt(rng.exponential(size=(n, 1))) * rng.normal(size=(n, 1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SmallSampleWarning)
            said.append(LinearRegression(noise=law).fit(released, x[:, 0]).diagnostics_["n_needed"])
    expected = 9 * (5 * 81 + 4 * 9 + 2)
    assert expected / 8 < np.median(said) < 8 * expected
    n = 2 * expected
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 1))
    released = x + 3 * np.sqrt(rng.exponential(size=(n, 1))) * rng.normal(size=(n, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error", SmallSampleWarning)
        LinearRegression(noise=law).fit(released, x[:, 0] + rng.normal(size=n))


def test_clone_shares_no_randomness():
    """An integer seed gives the same second noise in every fit, None a fresh one."""
    from sklearn.base import clone

    law = ZeroInflatedLaplace(0.3, 0.3)
    seeded = LinearRegression(noise=law, correction="dr", random_state=1)
    assert_allclose(clone(seeded).fit(X, NUMBER).params_, seeded.fit(X, NUMBER).params_)
    fresh = LinearRegression(noise=law, correction="dr")
    assert np.abs(clone(fresh).fit(X, NUMBER).params_ - fresh.fit(X, NUMBER).params_).max() > 1e-6
