"""``privfit fit``: the numbers of the library from the file alone."""

import numpy as np
import pytest

from privfit.mechanisms import load_release


@pytest.mark.parametrize(
    "options, names",
    [
        (["--model", "logistic", "--target", "income", "--features", "age"], ["const", "age"]),
        (["--model", "linear", "--target", "hours", "--features", "age,region"], ["const", "age", "region"]),
        (["--model", "quantile", "--target", "hours", "--features", "age"], ["const", "age"]),
        (["--model", "quantile", "--quantile", "0.4"], ["age", "hours"]),
        (["--model", "huber", "--target", "hours", "--features", "age"], ["const", "age"]),
        (["--model", "poisson", "--target", "region", "--features", "age"], ["const", "age"]),
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
        (["--model", "quantile", "--clusters", "region"], "takes no --clusters without a target"),
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


@pytest.fixture(scope="module")
def three_classes(tmp_path_factory):
    """A release with little noise and a label of three classes, and groups of rows."""
    import pandas as pd

    from privfit.mechanisms import Box, Categories, Laplace, RandomizedResponse, release

    rng = np.random.default_rng(2)
    age = rng.uniform(0, 1, 4000)
    index = np.stack([np.zeros(4000), age - 0.5, 2 * age - 1]) + rng.gumbel(size=(3, 4000))
    frame = pd.DataFrame(
        {"age": age, "grade": np.array(["a", "b", "c"])[index.argmax(axis=0)], "ward": np.arange(4000) % 9}
    )
    laws = {"age": Laplace(0.05), "grade": RandomizedResponse(4.0, categories=3)}
    domain = (Box({"age": (0, 1)}), Categories({"grade": ["a", "b", "c"]}))
    path = tmp_path_factory.mktemp("classes") / "three.parquet"
    release(frame, laws, domain, public=["ward"], rng=3).save(path, allow_insecure=True)
    return path


@pytest.mark.parametrize("clusters", [None, "ward"])
def test_three_classes_have_rows_for_each_against_the_first(privfit, three_classes, tmp_path, clusters):
    from privfit.estimators import LogisticRegression

    options = ["--model", "logistic", "--target", "grade", "--features", "age", "--report"]
    options += [] if clusters is None else ["--clusters", clusters]
    found = privfit.as_json("fit", three_classes, *options)
    model = LogisticRegression().fit_release(load_release(three_classes), "grade", ["age"], clusters=clusters)
    names = ["b: const", "b: age", "c: const", "c: age"]
    assert [row["name"] for row in found["coefficients"]] == names
    assert [row["estimate"] for row in found["coefficients"]] == pytest.approx(model.params_.tolist())
    assert [row["standard_error"] for row in found["coefficients"]] == pytest.approx(model.bse_.tolist())
    assert [row["name"] for row in found["efficiency"]["coefficients"]] == names
    figure = tmp_path / "cost.svg"
    code, text, err = privfit.call("fit", three_classes, *options, "--plot", figure)
    assert code == 0 and err == "" and figure.stat().st_size > 5000
    assert all(name in text for name in names)
    assert privfit.call("fit", three_classes, *options[:6], "--plot", figure)[0] == 0


def test_a_figure_of_unknown_raw_errors_costs_no_exit_code(privfit, tmp_path):
    from privfit.mechanisms import Box, Laplace, release

    path, figure = tmp_path / "noisy.csv", tmp_path / "cost.svg"
    x = np.random.default_rng(1).uniform(0, 1, (300, 2))
    release(x, Laplace((1.0, 1.0)), Box({0: (0, 1), 1: (0, 1)}), rng=1).save(path, allow_insecure=True)
    options = ("--model", "quantile", "--quantile", 0.9, "--target", 1, "--features", 0, "--report")
    cost = privfit.as_json("fit", path, *options)["efficiency"]["coefficients"]
    assert all(row["factor"] is None for row in cost)  # too few records: the case is the one meant
    code, text, err = privfit.call("fit", path, *options, "--plot", figure)
    assert code == 0 and err == "" and ("no figure" in text) != figure.exists()
