"""``privfit calibrate`` and ``privfit curve``: numbers of the library, and one line for a mistake."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privfit.accounting import gaussian, symmetric_laplace
from privfit.cli import MISTAKE
from privfit.mechanisms import load_release

BUDGET = ["--epsilon", "6", "--delta", "1e-6"]


def test_calibrate_compares_all_mechanisms(privfit):
    rows = privfit.as_json("calibrate", "--epsilon", 4, "--delta", "1e-5", "--dim", 3)["mechanisms"]
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
def test_calibrate_takes_every_target(privfit, target, mechanism):
    code, out, err = privfit.call("calibrate", *target, "--mechanism", mechanism, "--column", "age:17:90")
    assert (code, err) == (0, "") and "Standard deviations" in out and "age" in out


def test_best_is_gaussian_noise_where_no_shape_needs_less(privfit):
    rows = privfit.as_json("calibrate", "--advantage", 0.1, "--dim", 2)["mechanisms"]
    noise = {row["mechanism"]: row["noise_over_range"] for row in rows}
    assert noise["best: gaussian"] == noise["gaussian"] == min(noise.values())


def test_calibrate_randomised_response(privfit):
    found = privfit.as_json(
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


def test_attribute_level_needs_less_noise(privfit):
    options = ["calibrate", *BUDGET, "--dim", 4, "--mechanism", "gaussian"]
    record, attribute = (privfit.as_json(*options, "--protect", p)["mechanisms"][0] for p in ("record", "attribute"))
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
def test_calibrate_mistakes(privfit, options, words):
    assert words in privfit.mistake("calibrate", *options)


@pytest.mark.parametrize(
    "options, curve",
    [
        (["gaussian", "--mu", "1"], gaussian(1.0)),
        (["symmetric-laplace", "--dim", "3", "--shift", "0.5", "--shape", "2"], symmetric_laplace(3, 0.5, 2)),
    ],
)
def test_curve_prints_the_profile(privfit, options, curve):
    rows = privfit.as_json("curve", "--mechanism", *options, "--at", "0.5,1", "--deltas", "1e-4")["rows"]
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
def test_curve_of_the_other_mechanisms(privfit, options):
    code, out, err = privfit.call("curve", "--mechanism", *options)
    assert (code, err) == (0, "") and "delta at epsilon = 1" in out


def test_curve_of_a_release(privfit, released):
    rows = privfit.as_json("curve", released, "--at", "6", "--deltas", "1e-3")["rows"]
    promise = load_release(released).guarantee()
    assert rows[0]["record"] == promise.deltas([6.0])[0]["record"] <= 1e-6
    assert rows[1]["attribute"] < rows[1]["record"] < 6


def test_curve_of_a_file_without_a_law(privfit, tmp_path):
    plain = tmp_path / "plain.parquet"
    pq.write_table(pa.table({"age": [1.0, 2.0]}), plain)
    err = privfit.mistake("curve", plain)
    assert "carries no law, so nothing is known about its guarantee" in err and "correction" not in err


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
def test_curve_mistakes(privfit, tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    if options:
        assert words in privfit.mistake("curve", *options)
    else:
        code, out, _ = privfit.call("curve")
        assert code == MISTAKE and "Usage" in out
