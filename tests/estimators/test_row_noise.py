"""Laws that differ from row to row."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from privfit.estimators import LinearRegression, LogisticRegression, QuantileRegression
from privfit.estimators.row_noise import RowNoise
from privfit.mechanisms import Laplace, RandomizedResponse, SymmetricLaplace

N = 6000
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
Y = X @ [1.0, -0.5] + 0.5 * RNG.normal(size=N)
GROUP = RNG.choice(["none", "some", "much"], N)
SCALE = np.select([GROUP == "some", GROUP == "much"], [0.3, 0.9], 0.0)
RELEASED = X + SCALE[:, None] * RNG.laplace(size=X.shape)
LAWS = {"none": None, "some": Laplace(0.3), "much": Laplace(0.9)}


def test_least_squares_takes_each_rows_own_noise():
    """Closed form, with the mean of the rows' noise variances."""
    fit = LinearRegression(noise=RowNoise(GROUP, LAWS)).fit(RELEASED, Y)
    w = np.c_[np.ones(N), RELEASED]
    gram = w.T @ w - np.diag([0, 1, 1]) * 2 * (SCALE**2).sum()
    assert_allclose(fit.params_, np.linalg.solve(gram, w.T @ Y), rtol=1e-9)
    assert np.abs((fit.params_ - [0, 1, -0.5]) / fit.bse_).max() < 4.5


def test_one_group_is_the_law_itself():
    for model in (LinearRegression, QuantileRegression):
        law = SymmetricLaplace(0.4)
        whole = model(noise=law).fit(RELEASED, Y)
        fit = model(noise=RowNoise(np.zeros(N), {0.0: law})).fit(RELEASED, Y)
        assert_allclose(fit.params_, whole.params_, rtol=1e-12)
        assert_allclose(fit.cov_params_, whole.cov_params_, rtol=1e-12)


def test_labels_flipped_with_two_probabilities():
    label = RNG.random(N) < 1 / (1 + np.exp(-X.sum(axis=1)))
    often = np.arange(N) % 2 == 0
    flipped = label ^ (RNG.random(N) < np.where(often, 1 / (1 + np.e), 1 / (1 + np.e**3)))
    laws = {True: {"y": RandomizedResponse(1.0)}, False: {"y": RandomizedResponse(3.0)}}
    fit = LogisticRegression(noise=RowNoise(often, laws)).fit(X, flipped)
    assert np.abs((fit.params_ - [0, 1, 1]) / fit.bse_).max() < 4.5
    assert (fit.bse_[1:] < LogisticRegression(noise=laws[True]).fit(X, flipped).bse_[1:]).all()


def test_groups_and_laws_must_fit():
    with pytest.raises(ValueError, match="'much', 'none' has no law"):
        RowNoise(GROUP, {"some": Laplace(1.0)})
    with pytest.raises(ValueError, match="'other' occurs in no row"):
        RowNoise(GROUP, {**LAWS, "other": None})
    with pytest.raises(TypeError, match="laws must be a mapping"):
        RowNoise(GROUP, Laplace(1.0))
    with pytest.raises(ValueError, match="one label per row, got 6000 labels for 10 rows"):
        LinearRegression(noise=RowNoise(GROUP, LAWS)).fit(X[:10], Y[:10])
