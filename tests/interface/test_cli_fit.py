"""``privfit fit``: the numbers of the library from the file alone."""

import pytest

from privfit.mechanisms import load_release


@pytest.mark.parametrize(
    "options, names",
    [
        (["--model", "logistic", "--target", "income", "--features", "age"], ["const", "age"]),
        (["--model", "linear", "--target", "hours", "--features", "age,region"], ["const", "age", "region"]),
        (["--model", "quantile", "--target", "hours", "--features", "age"], ["const", "age"]),
        (["--model", "mean"], ["age", "hours"]),
        (["--model", "mean", "--features", "hours"], ["hours"]),
    ],
)
def test_fit_agrees_with_the_library(privfit, released, options, names):
    found = privfit.as_json("fit", released, *options)
    assert [row["name"] for row in found["coefficients"]] == names
    code, text, _ = privfit.call("fit", released, *options)
    assert code == 0 and "Cost of privacy" in text
    assert bool(found["warnings"]) == ("WARNING: " in text)
    for row in found["coefficients"]:
        if row["standard_error"] is not None:
            assert row["lower"] < row["estimate"] < row["upper"]


def test_fit_numbers_are_those_of_the_estimator(privfit, released):
    from privfit.estimators import LinearRegression

    found = privfit.as_json("fit", released, "--target", "hours", "--features", "age", "--correction", "naive")
    model = LinearRegression(correction="naive").fit_release(load_release(released), "hours", ["age"])
    assert [row["estimate"] for row in found["coefficients"]] == pytest.approx(model.params_.tolist())
    assert [row["standard_error"] for row in found["coefficients"]] == pytest.approx(model.bse_.tolist())


@pytest.mark.parametrize(
    "options, words",
    [
        (["--model", "tree"], "--model must be one of"),
        (["--model", "linear"], "needs --target"),
        (["--target", "wage"], "target must name columns of the release"),
        (["--target", "hours", "--features", "wage"], "features must name columns"),
        (["--target", "hours", "--features", "hours"], "must not contain the target"),
        (["--target", "hours", "--features", "age", "--correction", "magic"], "correction must be one of"),
        (["--target", "hours", "--features", "age", "--correction", "dr"], "ZeroInflatedLaplace"),
        (["--target", "hours", "--features", "income"], "is a released label, not a number"),
        (
            ["--model", "quantile", "--target", "hours", "--features", "age", "--quantile", "1"],
            "quantile must be",
        ),
        (["--target", "hours", "--features", "age", "--level", "2"], "--level must be"),
        (["--model", "mean", "--target", "hours"], "takes no --target"),
    ],
)
def test_fit_mistakes(privfit, released, options, words):
    assert words in privfit.mistake("fit", released, *options)


def test_fit_refuses_files_without_a_law(privfit, tmp_path, table):
    import pyarrow as pa
    import pyarrow.parquet as pq

    plain = tmp_path / "plain.parquet"
    pq.write_table(pa.table({"age": [1.0, 2.0]}), plain)
    assert "carries no law" in privfit.mistake("fit", plain, "--model", "mean")
    assert "private.csv.law.json must lie beside it" in privfit.mistake("fit", table, "--model", "mean")
    assert "there is no file" in privfit.mistake("fit", tmp_path / "none.parquet", "--model", "mean")


def test_report_prints_and_draws_the_cost_of_each_coefficient(privfit, table, tmp_path):
    from privfit.estimators import LinearRegression

    released = tmp_path / "much_budget.parquet"  # every draw of its noise leaves a regular fit
    columns = ("--column", "age:17:90", "--column", "hours:1:99")
    assert privfit.call("release", table, released, *columns, "--epsilon", 14, "--delta", "1e-4")[0] == 0
    options = ("--target", "hours", "--features", "age")
    found = privfit.as_json("fit", released, *options, "--report")["efficiency"]
    model = LinearRegression().fit_release(load_release(released), "hours", ["age"])
    assert [row["factor"] for row in found["coefficients"]] == pytest.approx(model.efficiency_.factors.tolist())
    raw = model.bse_ / model.efficiency_.factors
    assert [row["raw_standard_error"] for row in found["coefficients"]] == pytest.approx(raw.tolist())
    assert found["assumption"] == model.efficiency_.assumption
    figure = tmp_path / "cost.png"
    code, text, _ = privfit.call("fit", released, *options, "--report", "--plot", figure)
    assert code == 0 and figure.stat().st_size > 5000
    assert model.efficiency_report() in text
    plain = privfit.call("fit", released, *options)[1]
    assert "raw data     factor" in text and "raw data     factor" not in plain


def test_clusters_are_a_column_released_as_it_is(privfit, released):
    from privfit.estimators import LinearRegression

    options = ("--target", "hours", "--features", "age")
    found = privfit.as_json("fit", released, *options, "--clusters", "region")
    model = LinearRegression()
    model.fit_release(load_release(released), "hours", ["age"], clusters="region")
    assert [row["standard_error"] for row in found["coefficients"]] == pytest.approx(model.bse_.tolist())
    assert "was released with noise" in privfit.mistake("fit", released, *options, "--clusters", "income")
    assert "takes no --clusters" in privfit.mistake("fit", released, "--model", "mean", "--clusters", "region")
