"""Standard coordinates: round trips of estimates and covariances."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from privfit.estimators.standardise import Coordinates

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5000, 3)) * [1.0, 1e-3, 1e4] + [0.0, 5.0, -1e5]
Y = RNG.normal(size=5000) * 20 + 300


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("response", [None, Y], ids=["label", "number"])
def test_fitted_values_agree(intercept, response):
    c = Coordinates.of(X, response, intercept)
    theta = RNG.normal(size=3 + intercept)
    fitted = c.response_centre + c.response_scale * (theta @ c.design(X))
    params = c.original(theta)
    expected = X @ params[int(intercept) :] + (params[0] if intercept else 0.0)
    assert_allclose(fitted, expected, rtol=1e-9)


def test_design_is_standard():
    z = Coordinates.of(X, Y, True).design(X)
    assert_allclose(z[1:].mean(axis=1), 0, atol=1e-10)
    assert_allclose(z[1:].std(axis=1), 1, rtol=1e-10)
    assert_allclose(Coordinates.of(X, Y, True).design(X, -1.0), -z)
    v = Coordinates.of(X, Y, True).response(Y)
    assert_allclose([v.mean(), v.std()], [0, 1], atol=1e-10)


def test_covariance_is_mapped_linearly():
    c = Coordinates.of(X, Y, True)
    root = RNG.normal(size=(4, 4))
    draws = RNG.multivariate_normal(np.zeros(4), root @ root.T, size=20_000)
    mapped = np.array([c.original(t) for t in draws[:4000]])
    assert_allclose(np.cov(mapped.T) / c.covariance(np.cov(draws[:4000].T)), 1, rtol=1e-6)


def test_infinite_variances_stay_and_reach_the_intercept():
    c = Coordinates.of(X + 1.0, Y, True)
    out = c.covariance(np.diag([1.0, np.inf, 1.0, 1.0]))
    assert np.isinf(np.diag(out)).tolist() == [True, True, False, False]
    assert not np.isnan(out).any()


def test_flat_and_extreme_columns():
    x = np.stack([np.full(100, 0.1), np.zeros(100), 1e90 * RNG.normal(size=100), 1e-90 * RNG.normal(size=100)], axis=1)
    c = Coordinates.of(x, None, True)
    assert c.flat.tolist() == [True, True, False, False]
    z = c.design(x)
    assert (z[1:3] == 0).all()
    assert_allclose(z[3:].std(axis=1), 1)
