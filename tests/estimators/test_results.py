"""Reports: intervals, tests, summary text, cost of privacy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from privfit.estimators import LinearRegression, LogisticRegression, Mean, Quantile, QuantileRegression
from privfit.estimators.diagnostics import round_up
from privfit.estimators.efficiency import compare
from privfit.estimators.inference import confidence_intervals, sandwich, unidentified
from privfit.mechanisms import SymmetricLaplace, ZeroInflatedLaplace

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3000, 2))
Y = X @ [1.0, 0.0] + RNG.normal(size=3000)
RELEASED = X + 0.3 * np.sqrt(RNG.exponential(size=(3000, 1))) * RNG.normal(size=X.shape)


@pytest.fixture(scope="module")
def model():
    return LinearRegression(noise=SymmetricLaplace(0.3)).fit(RELEASED, Y)


def test_intervals_and_p_values(model):
    for level in (0.5, 0.9, 0.99):
        reach = norm.ppf(0.5 + level / 2) * model.bse_
        assert_allclose(model.conf_int(level), np.stack([model.params_ - reach, model.params_ + reach], axis=1))
    assert_allclose(model.pvalues_, 2 * norm.sf(np.abs(model.params_ / model.bse_)))
    statistic, p = model.wald_test([0, 1, 0])
    assert_allclose(statistic, model.zvalues_[1] ** 2)
    assert_allclose(p, model.pvalues_[1], atol=1e-300)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 95, np.nan, "high"])
def test_bad_levels(model, level):
    with pytest.raises((ValueError, TypeError), match="level"):
        model.conf_int(level)
    with pytest.raises((ValueError, TypeError), match="level"):
        model.summary(level)


def test_bad_contrasts(model):
    for rows, message in (
        ([[1.0, 0.0]], "shape"),
        ([[1.0, 0, 0], [2.0, 0, 0]], "independent"),
        ([[np.inf, 0, 0]], "finite"),
    ):
        with pytest.raises(ValueError, match=message):
            model.wald_test(rows)
    with pytest.warns(UserWarning):
        flat = LinearRegression().fit(np.c_[X, np.ones(3000)], Y)
    with pytest.raises(ValueError, match="identified"):
        flat.wald_test([[0, 0, 0, 1.0]])


def test_summary_is_readable(model):
    text = model.summary()
    lines = text.splitlines()
    assert lines[0].strip() == "LinearRegression on released data"
    rows = {line.split()[0]: line.split() for line in lines if line.startswith(("const", "0 ", "1 "))}
    assert_allclose(float(rows["0"][1]), model.params_[1], atol=5e-5)
    assert_allclose(float(rows["0"][2]), model.bse_[1], atol=5e-5)
    assert_allclose([float(v) for v in rows["1"][5:7]], model.conf_int()[2], atol=5e-5)
    assert "SymmetricLaplace(scale=0.3" in text
    assert "standard errors grew by a factor" in text
    assert "3,000" in text
    assert max(len(line) for line in lines) < 160
    assert "[0.050" in model.summary(0.9)
    naive = LinearRegression(noise=SymmetricLaplace(0.3), correction="naive").fit(RELEASED, Y)
    assert "intervals do not cover" in naive.summary()


def test_unfitted_models_say_so():
    from sklearn.exceptions import NotFittedError

    for call in ("conf_int", "summary"):
        with pytest.raises(NotFittedError):
            getattr(LinearRegression(), call)()


def test_efficiency_limits():
    """Noise to zero: factor 1. More noise: larger. n_effective = n / factor^2."""
    factors = [
        LogisticRegression(noise=ZeroInflatedLaplace(s, 0.2))
        .fit(X + s / 0.3 * (RELEASED - X), Y > 0)
        .efficiency_.overall
        for s in (1e-6, 0.5, 1.0)
    ]
    assert_allclose(factors[0], 1.0, atol=0.06)
    assert factors[0] < factors[1] < factors[2]
    model = QuantileRegression(noise=ZeroInflatedLaplace(0.2, 0.3)).fit(X + (2 / 3) * (RELEASED - X), Y)
    assert_allclose(model.efficiency_.n_effective, 3000 / model.efficiency_.overall**2)
    assert "worth" in str(model.efficiency_)


def test_compare_is_invariant_and_refuses_the_impossible():
    a, b = np.array([[4.0, 1.0], [1.0, 2.0]]), np.array([[1.0, 0.2], [0.2, 1.0]])
    turn = np.array([[2.0, 1.0], [0.0, 3.0]])
    assert_allclose(compare(a, b, 9, "").overall, compare(turn @ a @ turn.T, turn @ b @ turn.T, 9, "").overall)
    for bad in (np.diag([np.inf, 1.0]), np.zeros((2, 2))):
        report = compare(bad, b, 9, "")
        assert np.isinf(report.overall)
        assert report.n_effective == 0
        assert "not available" in str(report)


def test_sandwich_pieces():
    v, a = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([[1.0, 0.3], [0.3, 2.0]])
    inverse = np.linalg.inv(v)
    assert_allclose(sandwich(v, a, 12), inverse @ a @ inverse / 10)
    assert np.isinf(np.diag(sandwich(v, a, 2))).all()
    flat = sandwich(np.diag([1.0, 0.0]), a, 12)
    assert_allclose(flat, [[0.1, 0], [0, np.inf]])
    assert unidentified(np.array([[1.0, 1.0], [1.0, 1.0]])).all()
    assert_allclose(confidence_intervals(np.zeros(1), np.array([np.inf]), 0.9), [[-np.inf, np.inf]])
    assert [round_up(n) for n in (3.2, 123.0, 99_501, np.inf, -1)] == [4, 130, 100_000, 0, 0]


def test_pickle_holds_no_data(model):
    """A fitted model travels without the records."""
    import pickle

    stored = pickle.dumps(model)
    assert len(stored) < 20_000
    assert_allclose(pickle.loads(stored).params_, model.params_)
    assert len(pickle.dumps(Mean().fit(X))) < 20_000


def test_no_noise_has_no_cost_of_privacy():
    """Factor exactly 1 and n effective records, even where a column is not identified; nothing is printed."""
    for model, response in (
        (LinearRegression(), (Y,)),
        (LogisticRegression(), (Y > 0,)),
        (QuantileRegression(0.3), (Y,)),
        (Mean(), ()),
        (Quantile(0.3), ()),
    ):
        model.fit(X, *response)
        assert model.efficiency_.overall == 1.0
        assert (model.efficiency_.factors == 1.0).all()
        assert model.efficiency_.factors.shape == model.params_.shape
        assert model.efficiency_.n_effective == model.efficiency_.n == 3000
        assert "Cost of privacy" not in model.summary()
        assert "Raw-data" not in model.summary()
        assert "no noise" in str(model.efficiency_)
    with pytest.warns(UserWarning, match="not identified"):
        flat = LinearRegression().fit(np.c_[X, np.ones(3000)], Y)
    assert flat.efficiency_.n_effective == 3000
    noised = Mean(noise={1: SymmetricLaplace(0.3)}).fit(RELEASED)
    assert "Cost of privacy" in noised.summary()
    assert "Cost of privacy" in Quantile(0.3, noise={1: SymmetricLaplace(0.3)}).fit(RELEASED).summary()
