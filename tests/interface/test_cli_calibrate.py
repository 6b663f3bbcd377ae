"""``privfit calibrate``: numbers of the library, and one line for a mistake."""

import numpy as np
import pytest

from privfit.accounting import gaussian, symmetric_laplace
from privfit.figures import plot_region as plot

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


TARGETS = {
    "gdp": ["--gdp", "1"],
    "advantage": ["--advantage", "0.3"],
    "error rates": ["--fpr", "0.05", "--fnr", "0.8"],
    "budget": ["--epsilon", "1", "--delta", "1e-5"],
}


@pytest.mark.parametrize(
    ("mechanism", "target"),
    [
        # the best shape for a mu is found by a whole curve for every trial
        pytest.param(m, t, id=f"{m}-{name}", marks=pytest.mark.slow if (m, name) == ("best", "gdp") else ())
        for m in ("gaussian", "best")
        for name, t in TARGETS.items()
    ],
)
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


def test_calibrate_for_several_releases(privfit):
    options = ["calibrate", *BUDGET, "--dim", 1, "--mechanism"]
    single, four = (privfit.as_json(*options, "gaussian", "--releases", k)["mechanisms"][0] for k in (1, 4))
    # four Gaussian releases are one of twice the mu; their slack is charged four times
    ratio = four["noise_over_range"] / single["noise_over_range"]
    assert 2 <= ratio < 2.002
    assert four["advantage"] == pytest.approx(single["advantage"], rel=1e-3)
    assert four["advantage"] <= gaussian(1 / (0.5 * four["noise_over_range"])).advantage * (1 + 1e-9)
    found = privfit.as_json(
        "calibrate", "--epsilon", 2, "--delta", 0, "--mechanism", "randomized-response", "--releases", 4
    )
    assert found["law"]["epsilon"] == pytest.approx(0.5, rel=1e-9) and found["releases"] == 4
    text = privfit.call("calibrate", *BUDGET, "--mechanism", "gaussian", "--releases", 4)[1]
    assert "4 releases together" in " ".join(text.split())


def test_share_of_exact_rows_is_for_all_releases(privfit):
    options = ["calibrate", "--epsilon", 3, "--delta", "1e-3", "--dim", 1, "--mechanism", "zil", "--releases", 2]
    (row,) = privfit.as_json(*options)["mechanisms"]
    assert row["exact_fraction"] == pytest.approx(1e-3 / 20)


def test_region_is_drawn(privfit, tmp_path, monkeypatch):
    import privfit.figures as figures

    seen = []
    monkeypatch.setattr(figures, "plot_region", lambda r, **o: seen.append((r, o)) or plot(r, **o))
    options = ["calibrate", "--epsilon", 1, "--delta", "0.1", "--mechanism", "zil", "--figure", "region"]
    assert privfit.call(*options, "--plot", tmp_path / "r.svg")[0] == 0
    ((regions, _),) = seen
    (region,) = regions.values()
    assert region.delta0.max() < 0.1 and (np.diff(region.scale) > 0).all()
    assert b"<svg" in (tmp_path / "r.svg").read_bytes()


@pytest.mark.parametrize(
    "options, words",
    [
        (["--releases", "0"], "releases must be an integer"),
        (["--figure", "pie"], "--figure must be one of"),
        (["--figure", "region", "--plot", "r.png"], "--figure region needs --mechanism zil"),
        (["--mechanism", "zil", "--figure", "region"], "--figure region needs --mechanism zil and --plot"),
        (["--plot", "no_such_folder/x.png"], "there is no folder no_such_folder"),
    ],
)
def test_calibrate_mistakes_about_figures_and_releases(privfit, tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    assert words in privfit.mistake("calibrate", *BUDGET, *options)


def test_generalized_laplace_is_symmetric_laplace_of_any_shape(privfit):
    budget = ("--epsilon", 4, "--delta", 1e-5, "--column", "age:17:90", "--shape", 2)
    found = [
        privfit.as_json("calibrate", *budget, "--mechanism", name)["mechanisms"]
        for name in ("generalized-laplace", "symmetric-laplace")
    ]
    assert found[0] == found[1] and found[0][0]["law"]["shape"] == 2
