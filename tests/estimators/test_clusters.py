"""Cluster-robust covariance: statsmodels without noise, simulation with it, the cost of privacy of clustered rows."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import t as student
from simulations import laplace_noise

from privfit.estimators import LinearRegression, LogisticRegression, Mean, Quantile, QuantileRegression
from privfit.estimators.clusters import between_rows, read_clusters
from privfit.mechanisms import Box, Gaussian, SymmetricLaplace, release


def grouped(rng, groups, each, share=1.0):
    """Rows in groups that share part of their columns and of their error."""
    labels = np.repeat(np.arange(groups), each)
    x = rng.normal(size=(labels.size, 2)) + rng.normal(size=(groups, 2))[labels]
    y = 1 + x @ [1.0, -0.5] + rng.normal(size=labels.size) + share * rng.normal(size=groups)[labels]
    order = rng.permutation(labels.size)
    return x[order], y[order], labels[order]


def test_without_noise_as_statsmodels():
    import statsmodels.api as sm

    x, y, labels = grouped(np.random.default_rng(0), 40, 9)
    kinds = {"cov_type": "cluster", "cov_kwds": {"groups": labels}}
    own = LinearRegression().fit(x, y, clusters=labels)
    peer = sm.OLS(y, sm.add_constant(x)).fit(**kinds)
    assert_allclose(own.cov_params_, peer.cov_params(), rtol=1e-10)
    peer_t = sm.OLS(y, sm.add_constant(x)).fit(use_t=True, **kinds)
    assert_allclose(own.conf_int(), peer_t.conf_int(), rtol=1e-9)
    assert_allclose(own.pvalues_, peer_t.pvalues, rtol=1e-6, atol=1e-15)
    f = peer_t.f_test(np.eye(3)[1:])
    statistic, p = own.wald_test(np.eye(3)[1:])
    assert_allclose([statistic / 2, p], [f.fvalue, f.pvalue], rtol=1e-6)
    own = LogisticRegression().fit(x, y > 0, clusters=labels)
    peer = sm.Logit(y > 0, sm.add_constant(x)).fit(disp=0, **kinds)
    assert_allclose(own.cov_params_, peer.cov_params(), rtol=1e-6)
    mean = Mean().fit(y[:, None], clusters=labels)
    peer = sm.OLS(y, np.ones_like(y)).fit(**kinds)
    assert_allclose(mean.bse_, peer.bse, rtol=1e-12)
    assert "cluster-robust sandwich over 40 clusters" in own.summary()


def test_every_row_its_own_cluster_changes_only_the_factor():
    x, y, _ = grouped(np.random.default_rng(1), 50, 4)
    z = x + laplace_noise(np.random.default_rng(2), 200, 2, 0.3)
    plain = LinearRegression(noise=SymmetricLaplace(0.3)).fit(z, y)
    alone = LinearRegression(noise=SymmetricLaplace(0.3)).fit(z, y, clusters=np.arange(200).astype(str))
    assert_allclose(alone.cov_params_, plain.cov_params_, rtol=1e-12)
    assert_allclose(alone.efficiency_.factors, plain.efficiency_.factors, rtol=1e-10)
    assert alone.conf_int()[0, 1] - alone.params_[0] == pytest.approx(student.ppf(0.975, 199) * alone.bse_[0])


def test_labels_of_any_kind_and_order_give_the_same():
    x, y, labels = grouped(np.random.default_rng(3), 30, 5)
    names = np.array([f"person {label}" for label in labels])
    fits = [
        LinearRegression().fit(x, y, clusters=kind).cov_params_
        for kind in (labels, names, list(names), pd.Series(names), labels.astype(float), pd.Categorical(names))
    ]
    for other in fits[1:]:
        assert_allclose(other, fits[0], rtol=1e-13)


@pytest.mark.parametrize(
    "labels, error, words",
    [
        ([1, 2], ValueError, r"shape \(6,\), got shape \(2,\)"),
        ([1] * 6, ValueError, "at least 2"),
        ([1, 2, None, 1, 2, 3], ValueError, "no missing labels, got 1"),
        ([1, 2, np.nan, 1, 2, np.nan], ValueError, "no missing labels, got 2"),
        (["a", 1, "b", 2, "a", 1.5], None, None),
        ([[1, 2, 3, 1, 2, 3]], ValueError, "shape"),
    ],
)
def test_bad_labels(labels, error, words):
    x = np.arange(6.0)[:, None]
    if error is None:
        assert read_clusters(labels, 6).tolist() == read_clusters([str(label) for label in labels], 6).tolist()
        return
    with pytest.raises(error, match=words):
        LinearRegression().fit(x, x[:, 0] ** 2, clusters=labels)


def test_a_column_of_the_release_names_the_clusters():
    x, y, labels = grouped(np.random.default_rng(4), 40, 10)
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": y, "person": labels})
    box = Box({"a": (-5, 5), "b": (-5, 5)})
    out = release(frame, SymmetricLaplace(0.3), box, public=["y", "person"], rng=1)
    by_name = LinearRegression().fit_release(out, "y", clusters="person")
    by_label = LinearRegression().fit_release(out, "y", ["a", "b"], clusters=labels)
    assert by_name.coef_.shape == (2,)
    assert_allclose(by_name.cov_params_, by_label.cov_params_)
    with pytest.raises(ValueError, match="was released with noise"):
        LinearRegression().fit_release(out, "y", clusters="a")
    with pytest.raises(ValueError, match="must name columns"):
        LinearRegression().fit_release(out, "y", clusters="nobody")


def test_the_raw_cost_of_clusters_comes_from_the_release():
    """Noise leaves the covariance between rows of a cluster unbiased, so the raw clustered errors are predicted."""
    rng = np.random.default_rng(5)
    found = []
    for _ in range(12):
        x, y, labels = grouped(rng, 400, 5)
        z = x + 0.5 * rng.normal(size=x.shape)
        fit = LinearRegression(noise=Gaussian(0.5)).fit(z, y, clusters=labels)
        raw = LinearRegression().fit(x, y, clusters=labels)
        plain = LinearRegression(noise=Gaussian(0.5)).fit(z, y)
        found.append([fit.bse_ / fit.efficiency_.factors / raw.bse_, plain.bse_ / plain.efficiency_.factors / raw.bse_])
    ratio, ignored = np.mean(found, axis=0)
    assert_allclose(ratio, 1.0, atol=0.06)
    assert ignored.max() < 0.8  # without clusters the same numbers are far too small


def test_between_rows_is_the_sum_over_pairs():
    x, y, labels = grouped(np.random.default_rng(6), 12, 3)
    fit = LinearRegression().fit(x, y, keep_records=True)
    risk, theta = fit._kept.problem.risk, fit._kept.solution.theta
    s = risk.scores(theta)
    s = s - s.mean(axis=1, keepdims=True)
    same = labels[:, None] == labels
    whole = s @ same @ s.T / 36 * (12 / 11) * (35 / 36)
    assert_allclose(between_rows(risk, theta, read_clusters(labels, 36)), whole - s @ s.T / 36, atol=1e-12)
    assert not between_rows(risk, theta, None).any()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_coverage_of_clustered_intervals(seed):
    """40 clusters of 25 rows, Laplace noise: 95 % intervals, 400 replications (Monte Carlo error 1.1 points)."""
    rng = np.random.default_rng(seed)
    truth, hits = np.array([1.0, 1.0, -0.5]), []
    naive = []
    for _ in range(400):
        x, y, labels = grouped(rng, 40, 25)
        z = x + laplace_noise(rng, len(x), 2, 0.5)
        fits = [LinearRegression(noise=SymmetricLaplace(0.5)).fit(z, y, clusters=c) for c in (labels, None)]
        for fit, into in zip(fits, (hits, naive), strict=True):
            ends = fit.conf_int()
            into.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
    assert 0.92 < np.mean(hits) < 0.975
    assert np.mean(naive, axis=0)[0] < 0.75  # the intercept of independent rows


def test_quantiles_of_clustered_rows():
    """Whole groups repeated: the clustered covariance of m copies is that of one copy of each row."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=(400, 2))
    labels = np.tile(np.arange(400), 4)
    one, four = Quantile(0.4).fit(x), Quantile(0.4).fit(np.tile(x, (4, 1)), clusters=labels)
    assert_allclose(four.bse_, one.bse_, rtol=0.15)  # bandwidths differ, 1600^-0.4 against 400^-0.4
    y = x[:, 0] + rng.normal(size=400)
    one = QuantileRegression(0.4, bandwidth=0.3).fit(x, y)
    four = QuantileRegression(0.4, bandwidth=0.3).fit(np.tile(x, (4, 1)), np.tile(y, 4), clusters=labels)
    assert_allclose(four.cov_params_, one.cov_params_, rtol=0.01)
