"""Formulas: the same fits as by columns, and refusals of transformed noise."""

import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from privfit.estimators import CapabilityError, LinearRegression, LogisticRegression
from privfit.estimators.formula import design_columns, from_formula
from privfit.mechanisms import Box, Laplace, SymmetricLaplace, ZeroInflatedLaplace, release

PUBLIC = ["region", "tenure", "income"]
LAW = ZeroInflatedLaplace(0.1, 0.3)


def frame(n=400):
    rng = np.random.default_rng(0)
    out = pd.DataFrame({"age": rng.uniform(0, 1, n), "hours": rng.uniform(0, 1, n)})
    out["region"] = rng.choice(["a", "b", "c"], n)
    out["tenure"] = rng.uniform(1, 5, n)
    out["income"] = 1 + out.age - out.hours + np.log(out.tenure) + (out.region == "b") + 0.1 * rng.normal(size=n)
    return out


def by_hand(table):
    return pd.DataFrame({
        "age": table.age, "hours": table.hours, "C(region)[T.b]": (table.region == "b").astype(float),
        "C(region)[T.c]": (table.region == "c").astype(float), "log(tenure)": np.log(table.tenure),
    })  # fmt: skip


@pytest.mark.parametrize("noise", [None, {("age", "hours"): LAW}, {"age": Laplace(0.1), "income": Laplace(0.2)}])
def test_a_formula_is_the_fit_of_its_columns(noise):
    table = frame()
    model = from_formula("income ~ age + hours + C(region) + log(tenure)", table, LinearRegression(noise=noise))
    own = {("y" if key == "income" else key): law for key, law in (noise or {}).items()} or None
    hand = LinearRegression(noise=own).fit(by_hand(table), table.income)
    assert_allclose(model.params_, hand.params_, rtol=1e-9)
    assert_allclose(model.cov_params_, hand.cov_params_, rtol=1e-8)
    assert_allclose(model.predict(design_columns(model, table)), hand.predict(by_hand(table)), rtol=1e-9)
    assert "log(tenure)" in model.summary()
    assert from_formula("income ~ 0 + age", table, LinearRegression()).intercept_ == 0.0


def test_a_release_brings_its_law():
    table = frame()
    out = release(table, SymmetricLaplace(0.2), Box({"age": (0, 1), "hours": (0, 1)}), public=PUBLIC, rng=0)
    model = from_formula("income ~ age + C(region)", out, LinearRegression())
    hand = LinearRegression(noise={"age": SymmetricLaplace(0.2)})
    columns = by_hand(pd.DataFrame(out.frame))[["age", "C(region)[T.b]", "C(region)[T.c]"]]
    assert_allclose(model.params_, hand.fit(columns, out.frame["income"]).params_, rtol=1e-9)
    assert model.formula_ == "income ~ age + C(region)"
    with pytest.raises(CapabilityError, match="hours"):
        from_formula("income ~ log(hours)", out, LinearRegression())


def test_labels_stay_labels():
    table = frame().assign(rich=lambda t: np.where(t.income > t.income.mean(), "yes", "no"))
    model = from_formula("rich ~ age + hours", table, LogisticRegression())
    assert list(model.classes_) == ["no", "yes"]


@pytest.mark.parametrize(
    "term", ["log(age)", "age:hours", "C(age)", "I(age**2)", "age:tenure", "`age`:C(region)", "{age + 1}"]
)
def test_a_transformed_noise_is_refused(term):
    model = LinearRegression(noise={("age", "hours"): LAW})
    with pytest.raises(CapabilityError, match=r"transforms the noised column '(age|hours)'.*no exact correction"):
        from_formula(f"income ~ {term}", frame(), model)


def test_errors():
    table = frame()
    with pytest.raises(CapabilityError, match="income"):
        from_formula("log(income) ~ age", table, LinearRegression(noise={"income": Laplace(0.1)}))
    for text in ("income", "~ age", "income + age ~ hours", 3):
        with pytest.raises(ValueError, match="formula must"):
            from_formula(text, table, LinearRegression())
    with pytest.raises(ValueError, match="cannot be computed"):
        from_formula("income ~ wage", table, LinearRegression())
    with pytest.raises(TypeError, match="name its columns"):
        from_formula("income ~ age", table, LinearRegression(noise=LAW))
    with pytest.raises(TypeError, match="named columns"):
        from_formula("income ~ age", np.zeros((3, 2)), LinearRegression())
    with pytest.raises(TypeError, match="fitted by from_formula"):
        design_columns(LinearRegression(), table)


def test_without_formulaic_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "formulaic", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "privfit\[formula\]"'):
        from_formula("income ~ age", frame(), LinearRegression())
