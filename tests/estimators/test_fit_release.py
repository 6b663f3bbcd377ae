"""Fits straight from a release: laws reach the right columns, whatever the table's kind and order."""

import ast
import dataclasses

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose

import privfit.mechanisms as pm
from privfit.estimators import LinearRegression, LogisticRegression, Mean, Quantile, QuantileRegression

N = 4000
RNG = np.random.default_rng(0)
AGE = RNG.uniform(20, 70, N)
HOURS = RNG.uniform(0, 60, N)
SITE = RNG.integers(0, 2, N).astype(float)
PAY = 3 + 0.1 * AGE + 0.05 * HOURS + SITE + RNG.normal(size=N)
RICH = np.where(RNG.random(N) < 1 / (1 + np.exp(-(PAY - PAY.mean()))), "yes", "no")
TABLE = {"site": SITE, "hours": HOURS, "pay": PAY, "age": AGE, "rich": RICH}
NUMBERS = pm.Box({"age": (20, 70), "hours": (0, 60)})


@pytest.fixture(scope="module", params=["pandas", "polars", "pyarrow"])
def table(request):
    return {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[request.param](TABLE)


@pytest.fixture(scope="module")
def joint(table):
    law = pm.Product(
        {
            ("age", "hours"): pm.ZeroInflatedLaplace((8.0, 10.0), 0.3),
            "pay": pm.Laplace(0.5),
            "rich": pm.RandomizedResponse(2.0),
        }
    )
    domain = (NUMBERS, pm.Box({"pay": (0, 20)}), pm.Categories({"rich": ["no", "yes"]}))
    return pm.release(table, law, domain=domain, public=["site"], rng=1)


def test_least_squares_from_a_release(joint):
    """Same numbers as fit with the law spelled out; truth within 4.5 standard errors; names kept."""
    model = LinearRegression().fit_release(joint, target="pay", features=["age", "site", "hours"])
    assert list(model.feature_names_in_) == ["age", "site", "hours"]
    assert np.abs((model.params_ - [3, 0.1, 1, 0.05]) / model.bse_).max() < 4.5
    assert_allclose(model.noise_.variances, [64, 0, 100, 0.5])
    frame = joint.frame
    x = np.stack([np.asarray(frame[name]) for name in ("age", "site", "hours")], axis=1)
    noise = {(0, 2): pm.ZeroInflatedLaplace((8.0, 10.0), 0.3), "y": pm.Laplace(0.5)}
    assert_allclose(LinearRegression(noise=noise).fit(x, np.asarray(frame["pay"])).params_, model.params_, rtol=1e-9)
    assert "age" in model.summary()


def test_logistic_from_a_release(joint):
    """Randomised string labels and noised columns; the pay column is left out, so its law plays no part."""
    model = LogisticRegression().fit_release(joint, target="rich", features=["age", "site"])
    assert list(model.classes_) == ["no", "yes"]
    assert_allclose(model.noise_.keep, pm.RandomizedResponse(2.0).keep_probability)
    assert_allclose(model.noise_.variances, [64, 0, 0])
    assert model.coef_[0][0] > 3 * model.bse_[1]
    assert model.converged_


def test_quantile_mean_and_default_features(joint):
    fit = QuantileRegression(0.5).fit_release(joint, "pay", ["age", "hours", "site"])
    assert np.abs((fit.params_ - [3, 0.1, 0.05, 1]) / fit.bse_).max() < 4.5
    mean = Mean().fit_release(joint, ["age", "pay"])
    assert np.abs((mean.mean_ - [45, PAY.mean()]) / mean.bse_).max() < 4.5
    assert_allclose(mean.efficiency_.factors[0] ** 2, 1 + 64 * 0.7 / (50**2 / 12), rtol=0.5)
    assert np.isfinite(Quantile(0.5).fit_release(joint, ["age"]).bse_).all()


def test_one_law_takes_its_columns_from_the_domain():
    """A law's scales follow the domain's order, the table has another."""
    frame = pd.DataFrame({"hours": HOURS, "age": AGE, "pay": PAY})
    out = pm.release(frame, pm.SymmetricLaplace((2.0, 7.0)), domain=NUMBERS, public=["pay"], rng=2)
    model = LinearRegression().fit_release(out, "pay")
    assert list(model.feature_names_in_) == ["hours", "age"]
    assert_allclose(model.noise_.variances, [49, 4, 0])


def test_arrays():
    array = np.stack([AGE, HOURS, PAY], axis=1)
    law = pm.Product({(0, 2): pm.SymmetricLaplace((5.0, 1.0)), 1: pm.Laplace(3.0)})
    domain = (pm.Box({0: (20, 70), 2: (0, 20)}), pm.Box({1: (0, 60)}))
    out = pm.release(array, law, domain=domain, rng=3)
    model = LinearRegression().fit_release(out, target=2)
    assert_allclose(model.noise_.variances, [25, 18, 1])
    assert np.abs((model.params_[1:] - [0.1, 0.05]) / model.bse_[1:]).max() < 4.5


def test_bad_requests(joint):
    for options, message in (
        ({"target": "nope"}, "target must name columns"),
        ({"target": "pay", "features": ["age", "nope"]}, "features must name columns"),
        ({"target": "pay", "features": ["pay"]}, "must not contain the target"),
        ({"target": "pay", "features": []}, "one or more"),
        ({"target": "pay", "features": ["age", "age"]}, "one or more different"),
    ):
        with pytest.raises(ValueError, match=message):
            LinearRegression().fit_release(joint, **options)
    with pytest.raises(TypeError, match="release must be a Release"):
        LinearRegression().fit_release(TABLE, "pay")
    with pytest.raises(ValueError, match=r"target: column 'rich' is a released label.* Use LogisticRegression"):
        LinearRegression().fit_release(joint, "rich", ["age"])


@pytest.mark.parametrize("model", [LinearRegression, QuantileRegression])
def test_a_label_among_the_features_is_named_with_the_way_out(joint, model):
    with pytest.raises(ValueError, match="features: column 'rich' is a released label, not a number") as caught:
        model().fit_release(joint, target="pay")
    assert "Encode" not in str(caught.value)
    advice = str(caught.value).split("features=")[1].split("]")[0] + "]"
    assert np.isfinite(model().fit_release(joint, target="pay", features=ast.literal_eval(advice)).coef_).all()
    with pytest.raises(ValueError, match="name a numeric column"):
        model().fit_release(joint, target="pay", features="rich")
    with pytest.raises(ValueError, match="features: column 'rich' is a released label"):
        Quantile().fit_release(joint)


def test_columns_without_noise_are_advised_only_if_numeric():
    import pandas as pd

    table = pd.DataFrame({"age": [20.0, 30.0], "pay": [1.0, 2.0], "rich": ["no", "yes"], "ward": ["u", "v"]})
    laws = {("age", "pay"): pm.Laplace((0.5, 0.5)), "rich": pm.RandomizedResponse(2.0)}
    domain = (pm.Box({"age": (20, 70), "pay": (0, 20)}), pm.Categories({"rich": ["no", "yes"]}))
    released = pm.release(table, laws, domain, public=["ward"], rng=1)
    with pytest.raises(ValueError, match=r"pass features=\['age'\] without it, and 'ward' if numeric\."):
        LinearRegression().fit_release(released, target="pay")


def test_a_noised_number_is_no_label(joint):
    message = "'pay' is a numeric column released with noise, not a label. Use LinearRegression or Quantile"
    with pytest.raises(ValueError, match=message):
        LogisticRegression().fit_release(joint, target="pay", features=["age"])
    with pytest.raises(TypeError, match="use LinearRegression or QuantileRegression"):
        LogisticRegression(noise={"y": pm.Laplace(0.5)}).fit(AGE[:, None], PAY)


def test_one_name_is_one_column(joint):
    one = LinearRegression().fit_release(joint, target="pay", features="age")
    listed = LinearRegression().fit_release(joint, target="pay", features=["age"])
    assert list(one.feature_names_in_) == ["age"]
    assert_allclose(one.params_, listed.params_)
    assert Mean().fit_release(joint, "age").mean_.shape == (1,)
    assert Quantile().fit_release(joint, "age").quantile_.shape == (1,)
    with pytest.raises(ValueError, match="features must name columns of the release, got 'a'"):
        LinearRegression().fit_release(joint, target="pay", features="a")
    for bad in (1.5, True):
        with pytest.raises(TypeError, match="features must be a list of columns"):
            LinearRegression().fit_release(joint, target="pay", features=bad)


@pytest.mark.parametrize("model", [LinearRegression, LogisticRegression, QuantileRegression])
def test_the_target_must_be_given(joint, model):
    with pytest.raises(TypeError, match=rf"{model.__name__}.fit_release needs target=.*'pay'"):
        model().fit_release(joint)


def test_the_summary_says_which_label_is_modelled(joint):
    model = LogisticRegression().fit_release(joint, target="rich", features=["age", "site"])
    lines = model.summary().splitlines()
    assert "Modelled:         P(rich = yes)" in lines
    assert model.coef_[0][0] > 0  # the rich are older: it is indeed the probability of "yes"
    older, younger = model.predict_proba(pd.DataFrame({"age": [60.0, 20.0], "site": [1.0, 1.0]}))[:, 1]
    assert older > younger
    model.fit(np.c_[AGE, SITE], RICH)
    assert "P(y = yes)" in model.summary()
    model.fit(np.c_[AGE, SITE], pd.Series(RICH == "yes", name="wealthy"))
    assert "P(wealthy = True)" in model.summary()
    out = pm.release(
        np.c_[AGE, SITE],
        pm.Product({0: pm.Laplace(1.0), 1: pm.RandomizedResponse(2.0)}),
        domain=(pm.Box({0: (20, 70)}), pm.Categories({1: [0, 1]})),
        rng=1,
    )
    assert "P(column 1 = 1" in LogisticRegression().fit_release(out, target=1).summary()


def test_an_arrow_release_needs_neither_pandas_nor_polars():
    import subprocess
    import sys

    code = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pandas", "polars"):
            raise ModuleNotFoundError(f"No module named {name!r}")

sys.meta_path.insert(0, Absent())
import numpy as np, pyarrow as pa
from privfit.estimators import LinearRegression
from privfit.mechanisms import Box, SymmetricLaplace
table = pa.table({"a": np.linspace(0, 1, 400), "b": np.linspace(0, 2, 400) ** 2})
release = SymmetricLaplace((0.1, 0.4), 2).release(table, domain=Box({"a": (0, 1), "b": (0, 4)}))
fit = LinearRegression().fit_release(release, target="b")
assert list(fit.feature_names_in_) == ["a"] and abs(float(fit.coef_[0]) - 4) < 1
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_text_columns_are_named():
    """By name, whatever kind of table a release holds, and never by their values."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.uniform(size=20), "b": rng.uniform(size=20), "city": ["Oslo", "Rome"] * 10})
    released = pm.release(frame, pm.Laplace(0.01), pm.Box({"a": (0, 1), "b": (0, 1)}), public=["city"], rng=0)
    table = released.frame
    for kind in (table, pl.from_pandas(table), pa.Table.from_pandas(table), table.to_numpy()):
        own = dataclasses.replace(released, frame=kind)
        for fit in (lambda r: LinearRegression().fit_release(r, "b"), lambda r: Mean().fit_release(r)):
            with pytest.raises(ValueError, match=r"text in the column 'city'\. .*features=.*from_formula") as caught:
                fit(own)
            assert "Oslo" not in str(caught.value)
    assert LinearRegression().fit_release(released, "b", features="a").converged_
    with pytest.raises(ValueError, match=r"y must hold numbers, got text\. .*LogisticRegression"):
        LinearRegression().fit_release(released, "city", features="a")
    with pytest.raises(ValueError, match="text in the columns 0, 2"):
        LinearRegression().fit([["u", 1.0, "v"], ["w", 2.0, "u"]], [1.0, 2.0])
