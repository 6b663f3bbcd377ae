"""``privfit curve``: the numbers of the library for every mechanism, and one line for a mistake."""

import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import norm

import privfit.accounting as acc
from privfit.cli import MISTAKE
from privfit.cli_mechanisms import FAMILIES, Description
from privfit.mechanisms import load_release

MECHANISMS = {
    "gaussian": (["--mu", 1], acc.gaussian(1.0)),
    "laplace": (["--epsilon", 1], acc.laplace(1.0)),
    "symmetric-laplace": (["--dim", 3, "--shift", 0.5, "--shape", 2], acc.symmetric_laplace(3, 0.5, 2)),
    "symmetric-laplace-limit": (["--shift", 0.5], acc.symmetric_laplace_limit(0.5)),
    "zil": (["--dim", 2, "--shift", 1, "--delta0", 0.001], acc.zil(2, 1.0, 0.001)),
    "zil-limit": (["--shift", 1, "--delta0", 0.001], acc.zil_limit(1.0, 0.001)),
    "l2-laplace": (["--dim", 3, "--epsilon", 1], acc.l2_laplace(3, 1.0)),
    "generalized-gaussian": (["--shift", 1, "--power", 4], acc.generalized_gaussian(1.0, 4.0)),
    "discrete-laplace": (["--epsilon", 1, "--sensitivity", 2], acc.discrete_laplace(1.0, 2)),
    "discrete-gaussian": (["--sigma", 2], acc.discrete_gaussian(2.0)),
    "randomized-response": (["--epsilon", 1, "--categories", 3], acc.randomized_response(1.0, 3)),
    "unary-encoding": (["--keep", 0.5, "--flip", 0.2], acc.unary_encoding(0.5, 0.2)),
    "symmetric-unary-encoding": (["--epsilon", 1], acc.symmetric_unary_encoding(1.0)),
    "optimized-unary-encoding": (["--epsilon", 1], acc.optimized_unary_encoding(1.0)),
    "exponential-mechanism": (["--epsilon", 1], acc.exponential_mechanism(1.0)),
    "approximate-dp": (["--epsilon", 1, "--delta", 0.01], acc.approximate_dp(1.0, 0.01)),
    "zcdp": (["--rho", 0.1], acc.from_zcdp(0.1)),
}


def value(rows, quantity, **where):
    (found,) = [r for r in rows if r["quantity"] == quantity and all(r[k] == v for k, v in where.items())]
    return found["value"]


def test_every_mechanism_has_a_case():
    assert MECHANISMS.keys() == FAMILIES.keys()


@pytest.mark.parametrize("name", MECHANISMS)
def test_curve_prints_the_profile(privfit, name):
    options, curve = MECHANISMS[name]
    found = privfit.as_json(
        "curve", "--mechanism", name, *options, "--at", "0.5,1", "--deltas", "1e-4", "--no-conversions"
    )
    none_if_infinite = [None if x == math.inf else x for x in (curve.epsilon(1e-4), curve.epsilon(1e-4, bound="lower"))]
    rows = found["rows"]
    assert [row["value"] for row in rows[:4]] == [
        curve.delta(0.5),
        curve.delta(1.0),
        none_if_infinite[0],
        curve.advantage,
    ]
    assert rows[2]["lower"] == none_if_infinite[1]
    assert rows[0]["lower"] == curve.delta(0.5, bound="lower")
    back = acc.TradeOffCurve.from_dict(found["curve"])
    assert back.delta(0.3) == pytest.approx(curve.delta(0.3), rel=1e-12)


@pytest.mark.parametrize("name", [n if n != "zcdp" else pytest.param(n, marks=pytest.mark.slow) for n in MECHANISMS])
def test_curve_prints_a_table(privfit, name):
    options, _ = MECHANISMS[name]
    code, out, err = privfit.call("curve", "--mechanism", name, *options, "--no-conversions")
    assert (code, err) == (0, "") and "delta at epsilon = 1" in out and "members found at 1% false alarms" in out


def test_attack_and_conversions_of_a_gaussian_are_the_closed_forms(privfit):
    rows = privfit.as_json("curve", "--mechanism", "gaussian", "--mu", 1)["rows"]
    hits = norm.cdf(norm.ppf(0.01) + 1)
    assert value(rows, "true_positive_rate", at_fpr=0.01) == pytest.approx(hits, rel=1e-9)
    assert value(rows, "posterior", prior=0.5) == pytest.approx(hits / (hits + 0.01), rel=1e-9)
    assert value(rows, "gdp_mu") == pytest.approx(1.0, rel=1e-6)
    assert value(rows, "zcdp_rho") == pytest.approx(0.5, rel=1e-6)
    plain = privfit.as_json("curve", "--mechanism", "gaussian", "--mu", 1, "--no-conversions")["rows"]
    assert not {"gdp_mu", "zcdp_rho"} & {row["quantity"] for row in plain}


def test_conversions_that_take_long_wait_for_the_option(privfit):
    composed = ["curve", "--mechanism", "laplace", "--epsilon", 0.1, "--times", 3]
    assert "gdp_mu" not in {row["quantity"] for row in privfit.as_json(*composed)["rows"]}
    assert value(privfit.as_json(*composed, "--conversions")["rows"], "gdp_mu") == pytest.approx(
        acc.laplace(0.1).self_compose(3).gdp()
    )


@pytest.mark.parametrize(
    "options, curve",
    [
        (["gaussian", "--mu", 0.5, "--times", 4], acc.gaussian(1.0)),
        (["gaussian", "--mu", 0.5, "--times", 4, "--group", 3], acc.gaussian(3.0)),
        (["randomized-response", "--epsilon", 0.1, "--times", 3], acc.randomized_response(0.1).self_compose(3)),
        (["gaussian", "--mu", 1, "--rate", 0.1], acc.gaussian(1.0).subsample(0.1)),
        (
            ["laplace", "--epsilon", 1, "--rate", 0.1, "--scheme", "without_replacement"],
            acc.laplace(1.0).subsample(0.1, scheme="without_replacement"),
        ),
        (["laplace", "--epsilon", 1, "--delta0", 0.01], acc.zero_inflated(acc.laplace(1.0), 0.01)),
        (["laplace", "--epsilon", 1, "--shuffle", 1000], acc.shuffled(1.0, 1000)),
        (
            ["randomized-response", "--epsilon", 1, "--shuffle", 1000],
            acc.shuffled(1.0, 1000, randomizer="randomized_response"),
        ),
    ],
)
def test_what_happens_to_a_mechanism(privfit, options, curve):
    rows = privfit.as_json("curve", "--mechanism", *options, "--at", "0.2", "--no-conversions")["rows"]
    assert value(rows, "delta", at_epsilon=0.2) == pytest.approx(curve.delta(0.2), rel=1e-9)


def test_neighbours_are_named(privfit):
    options = ["curve", "--mechanism", "gaussian", "--mu", 1, "--rate", 0.1, "--no-conversions"]
    assert privfit.as_json(*options)["neighbours"] == "add or remove one record"
    assert "for neighbours that add or remove one record" in privfit.call(*options)[1]
    assert privfit.as_json(*options, "--scheme", "without_replacement")["neighbours"] == "replace one record"


def test_two_bounds_are_two_columns_where_they_differ(privfit, tmp_path):
    rng = np.random.default_rng(0)
    scores = acc.empirical(rng.normal(size=500), rng.normal(1.0, size=500))
    path = tmp_path / "audit.json"
    path.write_text(json.dumps(scores.to_dict()))
    _, out, _ = privfit.call("curve", "--curve", path)
    assert "at most" in out and "at least" in out and "audit.json" in out
    rows = privfit.as_json("curve", "--curve", path)["rows"]
    (row,) = [r for r in rows if r["quantity"] == "true_positive_rate"]
    assert row["lower"] < 1 - scores.curve(0.01, bound="estimate") < row["value"]
    assert "at most" not in privfit.call("curve", "--mechanism", "gaussian", "--mu", 1)[1]


def test_what_is_printed_as_json_can_be_read_again(privfit, tmp_path):
    path = tmp_path / "curve.json"
    first = privfit.as_json("curve", "--mechanism", "laplace", "--epsilon", 0.3)
    path.write_text(json.dumps(first))
    second = privfit.as_json("curve", "--curve", path)
    assert second["rows"] == first["rows"]
    twice = privfit.as_json("curve", "--curve", path, "--times", 2, "--at", "0.4")["rows"]
    assert value(twice, "delta", at_epsilon=0.4) == acc.laplace(0.3).self_compose(2).delta(0.4)


@pytest.mark.parametrize("kind", ["curve", "profile", "roc", "composition"])
def test_every_kind_of_figure_is_drawn(privfit, tmp_path, released, kind, monkeypatch):
    import privfit.figures as figures

    name = {"curve": "plot_curves"}.get(kind, f"plot_{kind}")
    original, seen = getattr(figures, name), []
    monkeypatch.setattr(figures, name, lambda curves, *a, **o: seen.append((curves, a)) or original(curves, *a, **o))
    path = tmp_path / "figure.png"
    options = ["--mechanism", "gaussian", "--mu", 0.5, "--times", 16, "--deltas", "1e-6,1e-3"]
    assert privfit.call("curve", *options, "--figure", kind, "--plot", path)[0] == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    ((curves, arguments),) = seen
    (curve,) = curves.values()
    assert curve == (acc.gaussian(0.5) if kind == "composition" else acc.gaussian(2.0))
    if kind == "composition":
        assert arguments == (1e-6, 16)


def test_figure_of_a_release_shows_both_levels(privfit, tmp_path, released):
    path = tmp_path / "figure.pdf"
    assert privfit.call("curve", released, "--figure", "roc", "--plot", path)[0] == 0
    assert path.read_bytes().startswith(b"%PDF")


def test_curve_of_a_release(privfit, released):
    rows = privfit.as_json("curve", released, "--at", "6", "--deltas", "1e-3")["rows"]
    promise = load_release(released).guarantee()
    assert rows[0]["record"] == promise.deltas([6.0])[0]["record"] <= 1e-6
    assert rows[1]["attribute"] < rows[1]["record"] < 6
    hits = next(row for row in rows if row["quantity"] == "true_positive_rate")
    assert hits["record"] == pytest.approx(1 - promise.record.curve(0.01), rel=1e-6)


def test_several_releases_together(privfit, tmp_path):
    table, out = tmp_path / "t.csv", tmp_path / "t.parquet"
    table.write_text("age\n" + "\n".join(str(20 + j % 50) for j in range(60)) + "\n")
    options = ["--epsilon", 6, "--delta", "1e-3", "--column", "age:17:90", "--mechanism", "gaussian"]
    assert privfit.call("release", table, out, *options)[0] == 0
    one, four = (privfit.as_json("curve", out, "--times", k, "--deltas", "1e-3")["rows"] for k in (1, 4))
    mu = load_release(out).guarantee().record_law.gdp()
    eps = [next(r["record"] for r in rows if r["quantity"] == "epsilon") for rows in (one, four)]
    for found, k in zip(eps, (1, 4), strict=True):
        stated = acc.gaussian(mu * k**0.5).epsilon(1e-3)
        assert stated < found < 1.02 * stated  # the numerical slack counts e^epsilon times


def test_curve_of_a_file_without_a_law(privfit, tmp_path):
    plain = tmp_path / "plain.parquet"
    pq.write_table(pa.table({"age": [1.0, 2.0]}), plain)
    err = privfit.mistake("curve", plain)
    assert "carries no law, so nothing is known about its guarantee" in err and "correction" not in err


GAUSSIAN = ["--mechanism", "gaussian", "--mu", "1"]


@pytest.mark.parametrize(
    "options, words",
    [
        ([], ""),
        (["--at", "1"], "give either a release file, or --mechanism, or --curve"),
        (["none.parquet"], "there is no file none.parquet"),
        (["none.parquet", *GAUSSIAN], "give either a release file"),
        (["none.parquet", "--rate", "0.1"], "only --times can be given"),
        (["--mechanism", "gaussian"], "gaussian needs --mu"),
        (["--mechanism", "zil", "--shift", "1"], "zil needs --delta0"),
        (["--mechanism", "unary-encoding"], "unary-encoding needs --keep and --flip"),
        (["--mechanism", "magic"], "--mechanism must be one of"),
        (["--mechanism", "gaussian", "--mu", "-1"], "mu must be a finite number > 0"),
        ([*GAUSSIAN, "--epsilon", "1"], "gaussian does not take --epsilon"),
        ([*GAUSSIAN, "--at", "a,b"], "--at must be finite numbers"),
        ([*GAUSSIAN, "--deltas", "2"], "delta must be a number in [0, 1]"),
        ([*GAUSSIAN, "--times", "0"], "k must be an integer"),
        ([*GAUSSIAN, "--group", "0"], "k must be an integer"),
        ([*GAUSSIAN, "--rate", "2"], "rate must be"),
        ([*GAUSSIAN, "--scheme", "without_replacement"], "--scheme needs --rate"),
        ([*GAUSSIAN, "--rate", "0.1", "--scheme", "x"], "scheme must be one of"),
        ([*GAUSSIAN, "--shuffle", "100"], "epsilon"),
        ([*GAUSSIAN, "--group", "2", "--figure", "composition"], "leave out --group"),
        ([*GAUSSIAN, "--figure", "pie"], "--figure must be one of"),
        ([*GAUSSIAN, "--plot", "no_such_folder/x.png"], "there is no folder no_such_folder"),
        ([*GAUSSIAN, "--plot", "x.exe"], "--plot must end in"),
        ([*GAUSSIAN, "--curve", "x.json"], "give either --curve or --mechanism"),
        (["--curve", "none.json"], "none.json: No such file"),
        (["--curve", "text.json"], "no JSON document"),
        (["--curve", "list.json"], "holds no curve"),
        (["--curve", "other.json"], "curve"),
    ],
)
def test_curve_mistakes(privfit, tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.json").write_text("hello")
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "other.json").write_text('{"curve": "NoSuchCurve", "version": 1}')
    if options:
        assert words in privfit.mistake("curve", *options)
    else:
        code, out, _ = privfit.call("curve")
        assert code == MISTAKE and "Usage" in out


def test_a_description_says_what_was_asked():
    described = Description(mechanism="laplace", epsilon=0.1, rate=0.01, times=10)
    assert str(described) == "laplace, epsilon 0.1, rate 0.01, times 10"
    assert described.with_main(0.2).epsilon == 0.2


def test_help_lists_every_option(privfit, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    text = privfit.call("curve", "--help")[1]
    for name in (
        "mechanism",
        "mu",
        "epsilon",
        "rho",
        "dim",
        "shift",
        "keep",
        "flip",
        "shuffle",
        "rate",
        "times",
        "group",
    ):
        assert f"--{name} " in text
    assert "What happens to it" in text and "--figure" in text
    assert all(name in text for name in FAMILIES)
