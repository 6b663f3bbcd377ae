"""Linear hypotheses by names are those by rows."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from privfit.estimators import LinearRegression, LogisticRegression
from privfit.estimators.contrasts import check_contrasts, contrast_rows

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(300, 2)), columns=["age", "dose"])
Y = X.to_numpy() @ [1.0, 0.2] + RNG.normal(size=300)


def test_names_stand_for_rows():
    fit = LinearRegression().fit(X, Y, keep_records=True)
    assert fit.wald_test("dose") == fit.wald_test([0, 0, 1])
    assert fit.wald_test(["age", "dose"], [1.0, 0.2]) == fit.wald_test(np.eye(3)[1:], [1.0, 0.2])
    assert fit.score_test("const", 0.1) == fit.score_test([1, 0, 0], 0.1)
    both = fit.simultaneous_intervals(contrasts=["dose", "age"])
    assert_array_equal(both, fit.simultaneous_intervals(contrasts=np.eye(3)[[2, 1]]))
    region = fit.confidence_region(["age", "dose"])
    assert region.contains(fit.coef_) and not region.contains(fit.coef_ + 10 * fit.bse_[1:])


def test_names_of_several_classes():
    label = np.array(["a", "b", "c"])[RNG.integers(0, 3, 300)]
    fit = LogisticRegression().fit(X, label)
    name = fit.summary().split("[0.025     0.975]")[1].split("\n")[2].split("  ")[0].strip()
    assert fit.wald_test(name) == fit.wald_test(np.eye(6)[0])


@pytest.mark.parametrize(
    "contrasts, error, words",
    [
        ("weight", ValueError, r"must name coefficients of the fit, \['const', 'age', 'dose'\], got 'weight'"),
        (["age", "age"], ValueError, "independent rows"),
        (["age", 1.0], TypeError, "Or give names of coefficients"),
        ([[0, 1]], ValueError, r"shape \(m, 3\)"),
    ],
)
def test_what_is_no_contrast(contrasts, error, words):
    with pytest.raises(error, match=words):
        check_contrasts(contrasts, 0.0, ["const", "age", "dose"])
    assert_array_equal(contrast_rows(["dose"], ["const", "age", "dose"]), [[0, 0, 1]])


def test_arrays_of_names_and_names_that_are_two():
    fit = LinearRegression().fit(X, Y, keep_records=True)
    for names in (np.array(["age", "dose"]), pd.Index(["age", "dose"])):
        assert fit.wald_test(names) == fit.wald_test(np.eye(3)[1:])
    twice = LinearRegression().fit(X.rename(columns={"dose": "const"}), Y, keep_records=True)
    for asked in (twice.wald_test, twice.score_test, twice.score_interval):
        with pytest.raises(ValueError, match="'const' is the name of 2"):
            asked("const")


def test_units_do_not_matter():
    """A column times 1e9: the same tests."""
    fit = LinearRegression().fit(X, Y)
    scaled = LinearRegression().fit(X * [1.0, 1e9], Y)
    assert scaled.wald_test(["age", "dose"]) == pytest.approx(fit.wald_test(["age", "dose"]), rel=1e-8)
    assert scaled.confidence_region(["age", "dose"]).contains(scaled.coef_)
