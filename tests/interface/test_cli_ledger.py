"""``privfit ledger``: what the library's ledger says, exit code 3 for a refusal, one line for a mistake."""

import json

import pytest
from scipy.stats import norm

import privfit.accounting as acc
from privfit.cli import REFUSED

GDP = ["--gdp", "1"]
GAUSSIAN = ["--mechanism", "gaussian"]


@pytest.fixture
def book(privfit, tmp_path):
    path = tmp_path / "study.jsonl"
    assert privfit.call("ledger", "create", path, *GDP)[0] == 0
    return path


def refused(privfit, *arguments):
    code, out, err = privfit.call("ledger", *arguments)
    assert code == REFUSED == 3 and out == "" and err.startswith("privfit: ") and err.count("\n") == 1
    return err


@pytest.mark.parametrize(
    "options, target",
    [
        (["--epsilon", "1", "--delta", "1e-5"], acc.Budget(1.0, 1e-5)),
        (GDP, acc.GDP(1.0)),
        (["--advantage", "0.3"], acc.Advantage(0.3)),
        (["--fpr", "0.05", "--fnr", "0.8"], acc.ErrorRates(0.05, 0.8)),
    ],
)
def test_create_makes_a_ledger_for_the_target(privfit, tmp_path, options, target):
    path = tmp_path / "study.jsonl"
    found = privfit.as_json("ledger", "create", path, *options)
    assert found["target"] == str(target) and found["adaptive"] is False
    ledger = acc.Ledger.open(path)
    assert ledger.target == target and ledger.entries == ()


def test_create_an_adaptive_ledger(privfit, tmp_path):
    path = tmp_path / "study.jsonl"
    assert privfit.as_json("ledger", "create", path, *GDP, "--adaptive")["adaptive"] is True
    header = json.loads(path.read_text().splitlines()[0])
    assert header["adaptive"] is not None


def test_spend_is_written_down_and_adds_up(privfit, book):
    code, out, err = privfit.call("ledger", "spend", book, *GAUSSIAN, "--mu", 0.6, "--label", "mean of age")
    assert (code, err) == (0, "") and "recorded 'mean of age': gaussian, mu 0.6" in out and "0.8" in out
    found = privfit.as_json("ledger", "spend", book, *GAUSSIAN, "--mu", 0.4, "--times", 4, "--part", "A")
    assert found["recorded"]["part"] == "A" and found["recorded"]["curve"]["mu"] == 0.8
    entries = acc.Ledger.open(book).entries
    assert [e.curve for e in entries] == [acc.gaussian(0.6), acc.gaussian(0.8)]
    assert [e.label for e in entries] == ["mean of age", ""]


def test_a_refused_release_leaves_no_trace(privfit, book):
    privfit.call("ledger", "spend", book, *GAUSSIAN, "--mu", 0.8)
    before = book.read_bytes()
    err = refused(privfit, "spend", book, *GAUSSIAN, "--mu", 0.7, "--label", "too much")
    assert "'too much' refused, nothing was recorded" in err and "0.6" in err
    assert book.read_bytes() == before
    # 0.8^2 + 0.6^2 = 1 is just too much for rounding on the safe side, a hair less fits
    assert privfit.call("ledger", "spend", book, *GAUSSIAN, "--mu", 0.599999)[0] == 0


def test_a_refusal_does_not_reach_another_part(privfit, book):
    for part in ("A", "B"):
        assert privfit.call("ledger", "spend", book, *GAUSSIAN, "--mu", 0.9, "--part", part)[0] == 0
    refused(privfit, "spend", book, *GAUSSIAN, "--mu", 0.9, "--part", "A")
    refused(privfit, "spend", book, *GAUSSIAN, "--mu", 0.9)
    assert privfit.call("ledger", "spend", book, *GAUSSIAN, "--mu", 0.9, "--part", "C")[0] == 0


def test_show(privfit, book):
    assert "nothing spent" in privfit.call("ledger", "show", book)[1]
    privfit.call("ledger", "spend", book, *GAUSSIAN, "--mu", 0.3, "--label", "first")
    privfit.call("ledger", "spend", book, *GAUSSIAN, "--mu", 0.4, "--label", "second")
    found = privfit.as_json("ledger", "show", book, "--deltas", "1e-5")
    assert [r["label"] for r in found["releases"]] == ["first", "second"]
    ((row,), eps) = found["guarantee"], found["guarantee"][0]["epsilon"]
    assert row["at_delta"] == 1e-5  # the profile of G_mu at mu = 1/2
    assert norm.cdf(-2 * eps + 0.25) - acc.gaussian(0.5).delta(100) - 2.718281828459045**eps * norm.cdf(
        -2 * eps - 0.25
    ) == pytest.approx(1e-5, rel=1e-6)
    assert found["checksum"] == acc.Ledger.open(book).checksum
    text = privfit.call("ledger", "show", book)[1]
    assert "first" in text and "second" in text and "what would fit" in text and "epsilon at delta = 1e-05" in text


def test_remaining_counts_and_searches(privfit, book):
    privfit.call("ledger", "spend", book, *GAUSSIAN, "--mu", 0.6)
    assert privfit.as_json("ledger", "remaining", book, *GAUSSIAN, "--mu", 0.1)["how_many"] == 64
    assert "64 more of these fit" in privfit.call("ledger", "remaining", book, *GAUSSIAN, "--mu", 0.1)[1]
    found = privfit.as_json("ledger", "remaining", book, *GAUSSIAN)
    assert found["parameter"] == "mu" and found["value"] == pytest.approx(0.8, rel=1e-6) and found["value"] <= 0.8
    found = privfit.as_json("ledger", "remaining", book, *GAUSSIAN, "--times", 4)
    assert found["value"] == pytest.approx(0.4, rel=1e-6)
    found = privfit.as_json("ledger", "remaining", book, *GAUSSIAN, "--part", "elsewhere")
    assert found["value"] == pytest.approx(0.8, rel=1e-6)


def test_the_number_shown_fits(privfit, tmp_path):
    path = tmp_path / "study.jsonl"
    privfit.call("ledger", "create", path, "--epsilon", 1, "--delta", "1e-6")
    for name, main in (("laplace", "epsilon"), ("discrete-gaussian", "sigma")):
        text = privfit.call("ledger", "remaining", path, "--mechanism", name)[1]
        shown = text.split()[-1]
        curve = acc.laplace(float(shown)) if main == "epsilon" else acc.discrete_gaussian(float(shown))
        assert f"--{main} at" in text and acc.Ledger.open(path).can_spend(curve)
        worse = acc.laplace(float(shown) * 1.001) if main == "epsilon" else acc.discrete_gaussian(float(shown) / 1.001)
        assert not acc.Ledger.open(path).can_spend(worse)


def test_nothing_remains(privfit, book):
    privfit.call("ledger", "spend", book, *GAUSSIAN, "--mu", 0.9)
    assert "no more release of this kind fits" in refused(privfit, "remaining", book, *GAUSSIAN, "--mu", 0.9)
    zil = ["--mechanism", "zil", "--dim", 3, "--delta0", 0.01]  # no such noise is Gaussian DP
    refused(privfit, "remaining", book, *zil)


def test_a_curve_from_a_file_can_be_spent(privfit, book, tmp_path):
    path = tmp_path / "curve.json"
    path.write_text(json.dumps(privfit.as_json("curve", *GAUSSIAN, "--mu", 0.25)))
    assert privfit.as_json("ledger", "remaining", book, "--curve", path)["how_many"] == 16
    assert privfit.call("ledger", "spend", book, "--curve", path)[0] == 0
    assert acc.Ledger.open(book).guarantee() == acc.gaussian(0.25)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["create", "new.jsonl"], "exactly one target"),
        (["create", "new.jsonl", "--epsilon", "1"], "give both"),
        (["create", "new.jsonl", "--gdp", "-1"], "mu must be"),
        (["create", "book.jsonl", *GDP], "book.jsonl exists"),
        (["create", "no_such_folder/new.jsonl", *GDP], "there is no folder no_such_folder"),
        (["spend", "none.jsonl", *GAUSSIAN, "--mu", "1"], "there is no ledger none.jsonl"),
        (["spend", "book.jsonl", "--label", "x"], "say what is released with --mechanism, or with --curve"),
        (["spend", "book.jsonl", *GAUSSIAN], "gaussian needs --mu"),
        (["spend", "book.jsonl", *GAUSSIAN, "--mu", "nan"], "mu must be"),
        (["spend", "book.jsonl", *GAUSSIAN, "--mu", "0.1", "--leak", "2"], "leak must be"),
        (["spend", "book.jsonl", *GAUSSIAN, "--mu", "0.1", "--label", "x" * 201], "label must be printable text"),
        (["spend", "text.jsonl", *GAUSSIAN, "--mu", "0.1"], "text.jsonl"),
        (["show", "none.jsonl"], "there is no ledger none.jsonl"),
        (["show", "book.jsonl", "--deltas", "2"], "--deltas"),
        (["show", "book.jsonl", "--deltas", "x"], "--deltas must be finite numbers"),
        (["remaining", "book.jsonl", "--part", "A"], "--mechanism must be one of"),
        (["remaining", "book.jsonl", "--mechanism", "zil", "--dim", "2"], "zil needs --delta0"),
        (["remaining", "book.jsonl", "--mechanism", "unary-encoding"], "needs --keep and --flip"),
        (["nonsense"], "No such command"),
    ],
)
def test_ledger_mistakes(privfit, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    acc.Ledger(acc.GDP(1.0), "book.jsonl")
    (tmp_path / "text.jsonl").write_text("hello\n")
    assert words in privfit.mistake("ledger", *arguments)
    assert acc.Ledger.open("book.jsonl").entries == () and not (tmp_path / "new.jsonl").exists()


@pytest.mark.parametrize("command", ["create", "spend", "show", "remaining"])
def test_help_has_an_example(privfit, command):
    code, out, _ = privfit.call("ledger", command, "--help")
    assert code == 0 and f"privfit ledger {command} study.jsonl" in out and "--json" in out
