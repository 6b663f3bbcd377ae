"""The command line: every command works, JSON parses, and a mistake is one line, never a traceback."""

import json
import subprocess
import sys

import numpy as np
import pytest

from privfit.accounting import gaussian, symmetric_laplace
from privfit.cli import BUG, MISTAKE, run
from privfit.mechanisms import load_release

COMMANDS = ("calibrate", "curve", "release", "fit", "demo")
BUDGET = ["--epsilon", "6", "--delta", "1e-6"]
QUICK = ["--mechanism", "gaussian"]
COLUMNS = ["--column", "age:17:90", "--column", "hours:1:99"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A private table whose cells can be told from everything else that may be printed."""
    path = tmp_path_factory.mktemp("table") / "private.csv"
    rng = np.random.default_rng(5)
    rows = [
        f"{17.31771 + 60 * u:.5f},{30 + 20 * v:.5f},{'high' if w < 0.2 + 0.5 * u else 'low'},{j % 3},Name{j}"
        for j, (u, v, w) in enumerate(rng.random((3000, 3)))
    ]
    path.write_text("age,hours,income,region,name\n" + "\n".join(rows) + "\nSECRET1,77777,SECRET2,1,SECRET3\n")
    return path


@pytest.fixture(scope="module")
def released(table, tmp_path_factory):
    out = tmp_path_factory.mktemp("released") / "out.parquet"
    code = run(
        [
            "release",
            str(table),
            str(out),
            *COLUMNS,
            "--label",
            "income:low,high",
            "--public",
            "region",
            *BUDGET,
        ]
    )
    assert code == 0
    return out


def call(capsys, *arguments):
    capsys.readouterr()
    code = run([str(a) for a in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def as_json(capsys, *arguments):
    code, out, err = call(capsys, *arguments, "--json")
    assert code == 0 and err == ""
    return json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def mistake(capsys, *arguments):
    code, out, err = call(capsys, *arguments)
    assert code == MISTAKE
    assert out == ""
    assert err.startswith("privfit: ") and err.count("\n") == 1 and len(err) < 600
    assert "Traceback" not in err and "SECRET" not in err
    return err


# --- help ---------------------------------------------------------------------------------------------------


def test_help_names_every_command(capsys):
    code, out, _ = call(capsys, "--help")
    assert code == 0
    for command in COMMANDS:
        assert command in out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_has_an_example(capsys, command):
    code, out, _ = call(capsys, command, "--help")
    assert code == 0 and f"privfit {command}" in out.split("Options")[0].split("Usage")[1].split("\n", 1)[1]
    assert "--json" in out


def test_nothing_shows_the_help(capsys):
    assert "Commands" in call(capsys)[1]


def test_module_and_console_script_are_the_same_command():
    for start in (
        [sys.executable, "-m", "privfit"],
        [sys.executable, "-c", "from privfit.cli import main; main()"],
    ):
        done = subprocess.run([*start, "--version"], capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, "privfit 0.1.0\n", "")


# --- calibrate ----------------------------------------------------------------------------------------------


def test_calibrate_compares_all_mechanisms(capsys):
    rows = as_json(capsys, "calibrate", "--epsilon", 4, "--delta", "1e-5", "--dim", 3)["mechanisms"]
    noise = {row["mechanism"]: row["noise_over_range"] for row in rows}
    # the Gaussian mechanism: delta of G_mu at mu = sqrt(3)/sigma is the target
    assert gaussian(3**0.5 / noise["gaussian"]).delta(4.0) == pytest.approx(1e-5, rel=1e-3)
    best = next(name for name in noise if name.startswith("best"))
    shape = int(best.rsplit(maxsplit=1)[1])
    assert symmetric_laplace(3, 3**0.5 / noise[best], shape).delta(4.0) == pytest.approx(1e-5, rel=1e-2)
    assert min(noise, key=noise.get) == best
    assert any(name.startswith("zil") for name in noise) and "laplace" in noise


@pytest.mark.parametrize(
    "target",
    [
        ["--gdp", "1"],
        ["--advantage", "0.3"],
        ["--fpr", "0.05", "--fnr", "0.8"],
        ["--epsilon", "1", "--delta", "1e-5"],
    ],
)
@pytest.mark.parametrize("mechanism", ["gaussian", "best"])
def test_calibrate_takes_every_target(capsys, target, mechanism):
    code, out, err = call(capsys, "calibrate", *target, "--mechanism", mechanism, "--column", "age:17:90")
    assert (code, err) == (0, "") and "Standard deviations" in out and "age" in out


def test_calibrate_randomised_response(capsys):
    found = as_json(
        capsys,
        "calibrate",
        "--epsilon",
        1,
        "--delta",
        0,
        "--mechanism",
        "randomized-response",
        "--categories",
        4,
    )
    assert found["keep_probability"] == pytest.approx(np.e / (np.e + 3))


def test_attribute_level_needs_less_noise(capsys):
    options = ["calibrate", *BUDGET, "--dim", 4, "--mechanism", "gaussian"]
    record, attribute = (as_json(capsys, *options, "--protect", p)["mechanisms"][0] for p in ("record", "attribute"))
    # four equal ranges: the record moves twice as far
    assert record["noise_over_range"] == pytest.approx(2 * attribute["noise_over_range"], rel=1e-4)


@pytest.mark.parametrize(
    "options, words",
    [
        ([*BUDGET, "--gdp", "1"], "exactly one target"),
        (["--epsilon", "1"], "give both"),
        (["--fpr", "0.1"], "give both"),
        (["--dim", "2"], "exactly one target"),
        (["--epsilon", "nan", "--delta", "1e-6"], "epsilon must be a finite number"),
        (["--epsilon", "-1", "--delta", "1e-6"], "epsilon must be a finite number >= 0"),
        (["--epsilon", "1", "--delta", "2"], "delta must be a number in [0, 1)"),
        (["--advantage", "1.5"], "must be a number in (0, 1)"),
        (["--fpr", "0.6", "--fnr", "0.6"], "fpr + fnr must be < 1"),
        ([*BUDGET, "--mechanism", "magic"], "--mechanism must be one of"),
        ([*BUDGET, "--dim", "0"], "--dim must be an integer in [1, 1000]"),
        ([*BUDGET, "--column", "age:17"], "--column must be NAME:LOWER:UPPER"),
        ([*BUDGET, "--column", "age:a:b"], "--column must be NAME:LOWER:UPPER"),
        ([*BUDGET, "--column", "age:90:17"], "lower < upper"),
        ([*BUDGET, "--column", "a:0:1", "--column", "a:0:2"], "each column once"),
        ([*BUDGET, "--protect", "row"], "protect must be one of"),
        ([*BUDGET, "--plot", "x.exe"], "--plot must end in"),
        (["--epsilon", "1", "--delta", "0", "--mechanism", "gaussian"], "numerical slack"),
        ([*BUDGET, "--mechanism", "zil", "--delta0", "0.5"], "delta0 must be smaller"),
        (["--epsilon", "abc", "--delta", "1e-6"], "Invalid value for '--epsilon'"),
        (["--nonsense"], "No such option"),
    ],
)
def test_calibrate_mistakes(capsys, options, words):
    assert words in mistake(capsys, "calibrate", *options)


# --- curve --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, curve",
    [
        (["gaussian", "--mu", "1"], gaussian(1.0)),
        (["symmetric-laplace", "--dim", "3", "--shift", "0.5", "--shape", "2"], symmetric_laplace(3, 0.5, 2)),
    ],
)
def test_curve_prints_the_profile(capsys, options, curve):
    rows = as_json(capsys, "curve", "--mechanism", *options, "--at", "0.5,1", "--deltas", "1e-4")["rows"]
    assert [row["value"] for row in rows] == [
        curve.delta(0.5),
        curve.delta(1.0),
        curve.epsilon(1e-4),
        curve.advantage,
    ]


@pytest.mark.parametrize(
    "options",
    [
        ["laplace", "--epsilon", "1"],
        ["randomized-response", "--epsilon", "1", "--categories", "3"],
        ["zil", "--dim", "2", "--shift", "1", "--delta0", "0.001"],
    ],
)
def test_curve_of_the_other_mechanisms(capsys, options):
    code, out, err = call(capsys, "curve", "--mechanism", *options)
    assert (code, err) == (0, "") and "delta at epsilon = 1" in out


def test_curve_of_a_release(capsys, released):
    rows = as_json(capsys, "curve", released, "--at", "6", "--deltas", "1e-3")["rows"]
    promise = load_release(released).guarantee()
    assert rows[0]["record"] == promise.deltas([6.0])[0]["record"] <= 1e-6
    assert rows[1]["attribute"] < rows[1]["record"] < 6


@pytest.mark.parametrize(
    "options, words",
    [
        ([], ""),
        (["--at", "1"], "either a release file or --mechanism"),
        (["none.parquet"], "there is no file none.parquet"),
        (["none.parquet", "--mechanism", "gaussian"], "either a release file or --mechanism"),
        (["--mechanism", "gaussian"], "gaussian needs --mu"),
        (["--mechanism", "zil", "--shift", "1"], "zil needs --delta0"),
        (["--mechanism", "gaussian", "--mu", "-1"], "mu must be a finite number > 0"),
        (["--mechanism", "gaussian", "--mu", "1", "--at", "a,b"], "--at must be finite numbers"),
        (["--mechanism", "gaussian", "--mu", "1", "--deltas", "2"], "delta must be a number in [0, 1]"),
    ],
)
def test_curve_mistakes(capsys, tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    if options:
        assert words in mistake(capsys, "curve", *options)
    else:
        code, out, _ = call(capsys, "curve")
        assert code == MISTAKE and "Usage" in out


# --- release ------------------------------------------------------------------------------------------------


def test_release_prints_its_guarantee_and_no_cell(capsys, table, tmp_path):
    out = tmp_path / "out.parquet"
    options = [*COLUMNS, "--label", "income:low,high", *BUDGET, *QUICK]
    code, text, err = call(capsys, "release", table, out, *options)
    assert (code, err) == (0, "")
    for words in ("record", "attribute", "numerical slack", "left out: region, name"):
        assert words in text
    for cell in ("SECRET", "Name1", "77777", "17.3"):
        assert cell not in text
    released = load_release(out)
    assert released.columns == ("age", "hours", "income") and released.n_rows == 3001
    (row,) = released.guarantee().deltas([6.0])
    assert row["record"] <= 1e-6


def test_release_as_json(capsys, table, tmp_path):
    found = as_json(capsys, "release", table, tmp_path / "o.parquet", *COLUMNS, "--public", "region", *BUDGET)
    assert found["rows"] == 3001 and found["public"] == ["region"] and found["left_out"] == ["income", "name"]
    assert found["epsilon"][0]["record"] <= 6.0 and found["numerical_slack"] > 0


def test_release_of_labels_alone_and_at_attribute_level(capsys, table, tmp_path):
    options = ["release", table, tmp_path / "a.parquet", "--label", "income:low,high"]
    alone = as_json(capsys, *options, "--epsilon", 2, "--delta", 0)
    assert alone["law"]["parts"][0]["law"]["epsilon"] == 2
    each = as_json(capsys, *options, *COLUMNS, *BUDGET, *QUICK, "--protect", "attribute", "--force")
    assert each["epsilon"][0]["attribute"] <= 6.0 + 1e-9
    # beyond epsilon = 12 the slack of floating-point noise exceeds delta: no record-level statement
    assert each["epsilon"][0]["record"] is None
    assert each["law"]["parts"][1]["law"]["epsilon"] == 6


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "zil", "symmetric-laplace"])
def test_release_with_every_mechanism(capsys, table, tmp_path, mechanism):
    found = as_json(capsys, "release", table, tmp_path / "m.parquet", *COLUMNS, *BUDGET, "--mechanism", mechanism)
    assert found["epsilon"][0]["record"] <= 6.0
    assert bool(found["rows_expected_exact"]) == (mechanism == "zil")


def test_release_warns_where_the_numbers_are_careless(capsys, table, tmp_path):
    options = ["release", table, tmp_path / "w.parquet", *COLUMNS, "--epsilon", 6, "--delta", "0.01"]
    found = as_json(capsys, *options, "--mechanism", "zil")
    # delta0 = delta/10 of 3,001 rows is three exact rows
    assert len(found["warnings"]) == 2 and "without noise" in found["warnings"][0]
    assert found["warnings"][1] == "delta times rows is 30: choose delta well below 1 / rows."
    code, out, err = call(capsys, *options, *QUICK, "--force")
    assert (code, err) == (0, "") and "WARNING: delta times rows is 30" in out


def test_release_does_not_overwrite(capsys, table, tmp_path):
    out = tmp_path / "out.parquet"
    out.write_text("precious")
    options = ["release", table, out, *COLUMNS, *BUDGET, *QUICK]
    assert "--force" in mistake(capsys, *options)
    assert out.read_text() == "precious"
    assert call(capsys, *options, "--force")[0] == 0
    assert load_release(out).n_rows == 3001


@pytest.mark.parametrize(
    "options, words",
    [
        ([*BUDGET], "name at least one column"),
        ([*BUDGET, "--column", "wage:0:1"], "no column 'wage'; its columns are"),
        ([*BUDGET, *COLUMNS, "--label", "income:low"], "--label must be NAME:LABEL"),
        (
            [*BUDGET, *COLUMNS, "--label", "income:low,high", "--label-epsilon", "6"],
            "must leave some of epsilon",
        ),
        (
            [*BUDGET, *COLUMNS, "--label", "income:low,high", "--label-epsilon", "-1"],
            "--label-epsilon must be",
        ),
        ([*BUDGET, "--column", "age:17:90", "--public", "age"], "got age more than once"),
        ([*BUDGET, "--column", "age:17:90", "--label", "age:a,b"], "more than once"),
        (["--epsilon", "40", "--delta", "1e-6", *COLUMNS], "numerical slack"),
        (["--epsilon", "6", "--delta", "0", *COLUMNS], "numerical slack"),
        (["--epsilon", "inf", "--delta", "1e-6", *COLUMNS], "--epsilon must be"),
        ([*COLUMNS], "Missing option"),
        ([*BUDGET, *COLUMNS, "--mechanism", "none"], "--mechanism must be one of"),
    ],
)
def test_release_mistakes_write_nothing(capsys, table, tmp_path, options, words):
    assert words in mistake(capsys, "release", table, tmp_path / "o.parquet", *options)
    assert not list(tmp_path.iterdir())


def test_release_mistakes_about_files(capsys, table, tmp_path):
    options = [*COLUMNS, *BUDGET]
    assert "no file" in mistake(capsys, "release", tmp_path / "none.csv", tmp_path / "o.parquet", *options)
    assert ".parquet" in mistake(capsys, "release", table, tmp_path / "o.csv", *options)
    assert "no folder" in mistake(capsys, "release", table, tmp_path / "no" / "o.parquet", *options)
    bad = tmp_path / "bad.csv"
    bad.write_text("age,hours\n1,2\nSECRET,3,4\n")
    assert "rows of equal length" in mistake(capsys, "release", bad, tmp_path / "o.parquet", *options)


# --- fit ----------------------------------------------------------------------------------------------------


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
def test_fit_agrees_with_the_library(capsys, released, options, names):
    found = as_json(capsys, "fit", released, *options)
    assert [row["name"] for row in found["coefficients"]] == names
    code, text, _ = call(capsys, "fit", released, *options)
    assert code == 0 and "Cost of privacy" in text
    assert bool(found["warnings"]) == ("WARNING: " in text)
    for row in found["coefficients"]:
        if row["standard_error"] is not None:
            assert row["lower"] < row["estimate"] < row["upper"]


def test_fit_numbers_are_those_of_the_estimator(capsys, released):
    from privfit.estimators import LinearRegression

    found = as_json(capsys, "fit", released, "--target", "hours", "--features", "age", "--correction", "naive")
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
        (["--target", "hours", "--features", "income"], "must hold numbers"),
        (
            ["--model", "quantile", "--target", "hours", "--features", "age", "--quantile", "1"],
            "quantile must be",
        ),
        (["--target", "hours", "--features", "age", "--level", "2"], "--level must be"),
        (["--model", "mean", "--target", "hours"], "takes no --target"),
    ],
)
def test_fit_mistakes(capsys, released, options, words):
    assert words in mistake(capsys, "fit", released, *options)


def test_fit_refuses_files_without_a_law(capsys, tmp_path, table):
    import pyarrow as pa
    import pyarrow.parquet as pq

    plain = tmp_path / "plain.parquet"
    pq.write_table(pa.table({"age": [1.0, 2.0]}), plain)
    assert "carries no law" in mistake(capsys, "fit", plain, "--model", "mean")
    assert "no Parquet file" in mistake(capsys, "fit", table, "--model", "mean")
    assert "there is no file" in mistake(capsys, "fit", tmp_path / "none.parquet", "--model", "mean")


# --- figures, demo, the unforeseen --------------------------------------------------------------------------


def test_every_figure_is_written(capsys, table, released, tmp_path):
    calls = [
        ["calibrate", *BUDGET, "--dim", 2, "--mechanism", "gaussian"],
        ["calibrate", "--epsilon", 1, "--delta", 0, "--mechanism", "randomized-response"],
        ["curve", "--mechanism", "gaussian", "--mu", 1],
        ["curve", released],
        ["release", table, tmp_path / "o.parquet", *COLUMNS, *BUDGET, *QUICK],
        ["fit", released, "--target", "hours", "--features", "age"],
    ]
    for j, arguments in enumerate(calls):
        figure = tmp_path / f"{j}.png"
        assert call(capsys, *arguments, "--plot", figure)[0] == 0
        assert figure.read_bytes().startswith(b"\x89PNG")


def test_demo_as_json(capsys, tmp_path, monkeypatch):
    import privfit.demo as demo

    monkeypatch.setattr(demo, "SWEEP", ())
    monkeypatch.setitem(demo.run_demo.__kwdefaults__, "sweep", ())
    monkeypatch.setitem(demo.run_demo.__kwdefaults__, "budgets", (2.0,))
    found = as_json(capsys, "demo", tmp_path / "out", "--rows", 2000)
    assert len(found["files"]) == 5 and set(found["releases"][0]["fits"]) == {"logistic", "median"}
    assert "rows must be an integer" in mistake(capsys, "demo", tmp_path / "never", "--rows", 3)


def test_an_unforeseen_error_shows_no_message(capsys, monkeypatch):
    import privfit.cli_common as common

    def broken(*_):
        raise KeyError("SECRET cell")

    monkeypatch.setattr("privfit.cli_curve.emit", broken)
    code, out, err = call(capsys, "curve", "--mechanism", "gaussian", "--mu", 1)
    assert code == BUG and out == "" and "SECRET" not in err and "KeyError" in err and err.count("\n") == 1
    monkeypatch.setenv("PRIVFIT_DEBUG", "1")
    with pytest.raises(KeyError):
        run(["curve", "--mechanism", "gaussian", "--mu", "1"])
    assert common.emit is not broken


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["fit", "none.parquet", "--model", "mean"], ["calibrate", "--epsilon", "x"]]
)
def test_mistakes_in_a_real_process(tmp_path, arguments):
    done = subprocess.run([sys.executable, "-m", "privfit", *arguments], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == MISTAKE and done.stdout == ""
    assert done.stderr.startswith("privfit: ") and done.stderr.count("\n") == 1
