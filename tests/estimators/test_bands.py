"""Simultaneous intervals: closed forms of independent and equal estimates, coverage of all at once."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import chi2, norm, t

from privfit.estimators import LinearRegression, Mean
from privfit.estimators.bands import simultaneous_intervals, sup_t


@pytest.mark.parametrize("m", [2, 5, 20])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_independent_estimates(m, level):
    """P(max <= c) = (2 Phi(c) - 1)^m; the Monte Carlo error of a quantile is sqrt(l (1 - l) / draws) / density."""
    exact = norm.ppf((1 + level ** (1 / m)) / 2)
    density = 2 * m * norm.pdf(exact) * (2 * norm.cdf(exact) - 1) ** (m - 1)
    error = np.sqrt(level * (1 - level) / 100_000) / density
    found = sup_t(np.diag(np.arange(1.0, m + 1)), level, 100_000, 3)
    assert abs(found - exact) < 4.5 * error


def test_equal_and_opposite_estimates_are_one():
    ones = np.ones((3, 3))
    signs = np.outer([1, -1, 1], [1, -1, 1]) * 4.0
    assert_allclose([sup_t(ones, 0.9, 200_000), sup_t(signs, 0.9, 200_000)], norm.ppf(0.95), atol=0.02)
    assert sup_t(np.array([[7.0]]), 0.9) == norm.ppf(0.95)


def test_infinite_errors_stay_and_do_not_widen_the_others():
    covariance = np.diag([1.0, np.inf, 4.0])
    found = simultaneous_intervals(np.array([1.0, 2.0, 3.0]), covariance, 0.9)
    assert np.isinf(found[1]).all()
    alone = simultaneous_intervals(np.array([1.0, 3.0]), np.diag([1.0, 4.0]), 0.9)
    assert_allclose(found[[0, 2]], alone)
    with pytest.raises(ValueError, match="the fit has none"):
        simultaneous_intervals(np.zeros(1), np.array([[np.inf]]), 0.9)


def test_methods_of_a_fit():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 4))
    fit = LinearRegression().fit(x, x.sum(axis=1) + rng.normal(size=200))
    wide, single = fit.simultaneous_intervals(0.9), fit.conf_int(0.9)
    assert (wide[:, 0] < single[:, 0]).all() and (wide[:, 1] > single[:, 1]).all()
    assert_allclose(
        fit.simultaneous_intervals(0.9, contrasts=[[0, 1, -1, 0, 0]]).mean(), fit.params_[1] - fit.params_[2]
    )
    assert_allclose(fit.simultaneous_intervals(0.9), wide)  # a fixed seed
    for bad in ({"level": 2.0}, {"draws": 10}, {"random_state": -1}, {"contrasts": [[1.0]]}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            fit.simultaneous_intervals(**bad)


def test_coverage_of_all_means_at_once():
    """6 correlated means, 90 %: 300 replications, Monte Carlo error 1.7 points; single intervals cover less."""
    rng = np.random.default_rng(1)
    root = np.linalg.cholesky(0.4 * np.ones((6, 6)) + 0.6 * np.eye(6))
    joint, single = [], []
    for _ in range(300):
        fit = Mean().fit(rng.normal(size=(80, 6)) @ root.T)
        for ends, into in ((fit.simultaneous_intervals(0.9, draws=2000), joint), (fit.conf_int(0.9), single)):
            into.append(bool(((ends[:, 0] <= 0) & (ends[:, 1] >= 0)).all()))
    assert 0.85 < np.mean(joint) < 0.94
    assert np.mean(single) < 0.75


def test_few_clusters_widen_the_band_as_they_widen_each_interval():
    """One statistic: Student's t. Equal ones: the same. Independent ones share their scale: chi-squared mixture."""
    assert_allclose(sup_t(np.array([[2.0]]), 0.9, freedom=4.0), t.ppf(0.95, 4))
    assert_allclose(sup_t(np.ones((3, 3)), 0.9, 200_000, freedom=4.0), t.ppf(0.95, 4), rtol=0.02)
    found = sup_t(np.eye(2), 0.9, 200_000, 1, 4.0)
    inside = quad(lambda v: (2 * norm.cdf(found * np.sqrt(v / 4)) - 1) ** 2 * chi2.pdf(v, 4), 0, 60)[0]
    assert_allclose(inside, 0.9, atol=0.005)
    x = np.random.default_rng(0).normal(size=(400, 1))
    fit = LinearRegression().fit(x, x[:, 0] + np.random.default_rng(1).normal(size=400), clusters=np.arange(400) % 5)
    assert (np.diff(fit.simultaneous_intervals()) >= np.diff(fit.conf_int())).all()
