"""Shares of randomised labels: unbiased, with the variance of the theory, for every kind of table."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose

from privfit.estimators import Mean, Quantile
from privfit.mechanisms import Box, Categories, Laplace, Product, RandomizedResponse, SymmetricLaplace, release


def randomise(rng, codes, k, epsilon):
    """Randomised response by its definition, independent of the library's sampler."""
    keep = np.exp(epsilon) / (np.exp(epsilon) + k - 1)
    lies = (codes + rng.integers(1, k, codes.size)) % k
    return np.where(rng.random(codes.size) < keep, codes, lies)


@pytest.mark.parametrize(("epsilon", "theta"), [(0.5, 0.3), (1.0, 0.05), (3.0, 0.8)])
def test_variance_of_theory(epsilon, theta):
    """n Var = e^eps/(e^eps - 1)^2 + theta (1 - theta), to 2 % at n = 100,000; share within 4 standard errors."""
    rng, n = np.random.default_rng(0), 100_000
    labels = randomise(rng, (rng.random(n) < theta).astype(int), 2, epsilon)
    model = Mean(noise=RandomizedResponse(epsilon)).fit(labels[:, None])
    noise = np.exp(epsilon) / np.expm1(epsilon) ** 2
    assert_allclose(n * model.cov_params_[0, 0], noise + theta * (1 - theta), rtol=0.02)
    assert abs(model.mean_[0] - theta) < 4 * model.bse_[0]
    assert_allclose(model.efficiency_.overall**2, 1 + noise / (theta * (1 - theta)), rtol=0.3)


def test_intervals_cover_and_the_mean_is_unbiased():
    """2000 runs of n = 400 at epsilon 1: coverage known to .5 %, bias to 2.2 % of a standard error."""
    rng, law, hits, means = np.random.default_rng(1), RandomizedResponse(1.0), 0, []
    for _ in range(2000):
        model = Mean(noise=law).fit(randomise(rng, (rng.random(400) < 0.3).astype(int), 2, 1.0)[:, None])
        low, high = model.conf_int()[0]
        hits += low < 0.3 < high
        means.append(model.mean_[0])
    assert 0.93 < hits / 2000 < 0.97
    assert abs(np.mean(means) - 0.3) < 4 * np.std(means) / np.sqrt(2000)
    assert_allclose(np.std(means), np.sqrt((np.e / (np.e - 1) ** 2 + 0.21) / 400), rtol=0.05)


@pytest.mark.parametrize(
    "positive", [["a", "d"], *(pytest.param(p, marks=pytest.mark.slow) for p in (["b"], ["a", "b", "c"]))]
)
def test_several_categories(positive):
    """k = 4: the share of any set of labels; the empirical variance over 1500 runs is the one reported."""
    rng, law, names = np.random.default_rng(2), RandomizedResponse(1.5, categories=4), np.array(list("abcd"))
    p = np.array([0.1, 0.2, 0.3, 0.4])
    truth = p[np.isin(names, positive)].sum()
    means, errors, raw = [], [], []
    for _ in range(1500):
        labels = names[randomise(rng, rng.choice(4, 500, p=p), 4, 1.5)]
        model = Mean(noise=law, positive=positive).fit(labels[:, None])
        means.append(model.mean_[0])
        errors.append(model.cov_params_[0, 0])
        raw.append(model.cov_params_[0, 0] / model.efficiency_.overall**2)
    assert abs(np.mean(means) - truth) < 4 * np.std(means) / np.sqrt(1500)
    assert_allclose(np.mean(errors), np.var(means), rtol=0.15)
    assert_allclose(np.median(raw) * 500, truth * (1 - truth), rtol=0.15)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_from_a_release_beside_numbers(kind):
    rng, n = np.random.default_rng(3), 20_000
    age, rich = rng.uniform(20, 70, n), rng.random(n) < 0.25
    table = {"rich": np.where(rich, "yes", "no"), "age": age, "kind": rng.integers(0, 3, n)}
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[kind](table)
    law = Product({"age": SymmetricLaplace(5.0), "rich": RandomizedResponse(2.0), "kind": RandomizedResponse(2.0, 3)})
    domain = (Box({"age": (20, 70)}), Categories({"rich": ["yes", "no"]}), Categories({"kind": [0, 1, 2]}))
    out = release(frame, law, domain=domain, rng=1)
    model = Mean(positive={"rich": "yes", "kind": [0, 2]}).fit_release(out, ["age", "rich", "kind"])
    assert np.abs((model.mean_ - [45, 0.25, 2 / 3]) / model.bse_).max() < 4.5
    assert list(model.feature_names_in_) == ["age", "rich", "kind"]
    text = model.summary()
    assert "rich = yes" in text
    assert "kind = 0, 2" in text
    assert "RandomizedResponse(epsilon=2.0" in text
    assert "Cost of privacy" in text
    default = Mean().fit_release(out, ["rich"])  # the second declared label: "no"
    assert_allclose(default.mean_[0], 1 - model.mean_[1], rtol=1e-12)
    assert "rich = no" in default.summary()
    assert_allclose(Mean().fit_release(out, ["age"]).mean_, model.mean_[:1])
    same = Mean(noise=law, positive={"rich": "yes", "kind": [0, 2]}).fit(out.frame)
    assert_allclose(sorted(same.mean_), sorted(model.mean_), rtol=1e-12)


def test_arrays_keep_their_positions():
    """A release of an array: the label is column 2, and asked for alone it is still column 2."""
    rng, n = np.random.default_rng(4), 20_000
    array = np.stack([rng.uniform(size=n), rng.uniform(size=n), (rng.random(n) < 0.3).astype(float)], axis=1)
    law = Product({(0, 1): SymmetricLaplace(0.5), 2: RandomizedResponse(1.0)})
    out = release(array, law, domain=(Box({0: (0, 1), 1: (0, 1)}), Categories({2: [0, 1]})), rng=1)
    for features in ([2], [1, 2], [2, 0]):
        model = Mean().fit_release(out, features)
        assert np.abs((model.mean_ - [0.3 if j == 2 else 0.5 for j in features]) / model.bse_).max() < 4.5


def test_covariance_of_label_and_number():
    """The joint covariance is that of the indicators and the numbers: raw covariance stays, noise adds none."""
    rng, n = np.random.default_rng(5), 100_000
    x = rng.uniform(size=n)
    label = (rng.random(n) < x).astype(int)
    table = np.stack([x + rng.laplace(size=n) * 0.3, randomise(rng, label, 2, 1.0)], axis=1)
    model = Mean(noise={0: Laplace(0.3), 1: RandomizedResponse(1.0)}).fit(table)
    assert_allclose(n * model.cov_params_[0, 1], 1 / 12, atol=0.012)


LABELS = np.array([["a"], ["b"], ["a"], ["c"]], dtype=object)


@pytest.mark.parametrize(
    ("options", "table", "error", "message"),
    [
        ({"noise": RandomizedResponse(1.0)}, LABELS, ValueError, "must hold the 2 labels"),
        ({"noise": RandomizedResponse(1.0, 3)}, LABELS, ValueError, "positive must say which"),
        ({"noise": RandomizedResponse(1.0)}, LABELS[:1], ValueError, "positive must say which"),
        ({"noise": RandomizedResponse(1.0, 3), "positive": "z"}, LABELS, ValueError, "1 unknown"),
        ({"noise": RandomizedResponse(1.0, 3), "positive": []}, LABELS, ValueError, "between 1 and 2"),
        ({"noise": RandomizedResponse(1.0, 3), "positive": list("abc")}, LABELS, ValueError, "between 1 and 2"),
        ({"noise": RandomizedResponse(1.0), "positive": {5: "a"}}, LABELS[:2], ValueError, "names the column 5"),
        ({"noise": RandomizedResponse(1.0)}, [["a"], [None]], ValueError, "none missing"),
        ({"noise": RandomizedResponse(1.0)}, [[1.0], [np.nan]], ValueError, "none missing"),
        ({"noise": RandomizedResponse(1.0)}, [["a"], [3]], ValueError, "one kind"),
        ({"noise": RandomizedResponse(1.0)}, [[0, 1], [1, 0]], TypeError, "must name the column"),
        ({"noise": {(0, 1): RandomizedResponse(1.0)}}, [[0, 1], [1, 0]], TypeError, "of its own"),
        ({"noise": {"q": RandomizedResponse(1.0)}}, [[0, 1], [1, 0]], ValueError, "'q'"),
        ({"noise": Laplace(1.0), "positive": 1}, [[0.0], [1.0]], ValueError, "positive must be None"),
        ({"noise": RandomizedResponse(1.0)}, [0, 1], ValueError, "2D"),
        (
            {"noise": {0: RandomizedResponse(1.0), 1: RandomizedResponse(1.0)}, "positive": 1},
            [[0, 1], [1, 0]],
            ValueError,
            "mapping",
        ),
    ],
)
def test_bad_labels(options, table, error, message):
    with pytest.raises(error, match=message):
        Mean(**options).fit(table)


def test_quantiles_of_labels_are_refused():
    with pytest.raises(TypeError, match="RandomizedResponse"):
        Quantile(noise={0: RandomizedResponse(1.0)}).fit([[0.0], [1.0], [1.0]])
