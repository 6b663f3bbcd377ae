"""Input that no fit can use: a clear error that names the parameter and shows no data, or a documented answer."""

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
from privfit.mechanisms import Laplace, SymmetricLaplace

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


@pytest.mark.parametrize("model", [LinearRegression, QuantileRegression])
def test_constant_response(model):
    with pytest.warns(RankDeficiencyWarning, match="zero"):
        fit = model().fit(X, np.full(200, 7.0))
    assert_allclose(fit.params_, [7, 0, 0, 0], atol=1e-9)


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
def test_too_much_noise_is_said_with_the_next_step(model, y):
    rng = np.random.default_rng(3)
    released = X + 20 * np.sqrt(rng.exponential(size=(200, 1))) * rng.normal(size=X.shape)
    with pytest.warns(SmallSampleWarning, match=r"200 released records are too few .* more records than the data"):
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
