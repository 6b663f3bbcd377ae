"""``privfit plan``: a table or JSON, a figure, required numbers of records, and one line for a mistake."""

import shlex

import numpy as np
import pytest

from privfit import mechanisms as laws
from privfit.accounting import Budget
from privfit.cli import MISTAKE
from privfit.estimators.planning import plan
from privfit.figures import plot_plan
from privfit.mechanisms import Box, Categories, load_release

AGE = ["--column", "age:17:90"]
TARGET = ["--epsilon", 1, "--delta", 1e-5]
FEW = ["--mechanism", "laplace", "--mechanism", "gaussian"]


@pytest.fixture
def public(tmp_path):
    rng = np.random.default_rng(3)
    draws = zip(rng.uniform(18, 80, 300), rng.normal(0, 5, 300), rng.random(300), strict=True)
    rows = [f"{a:.2f},{20 + 0.5 * a + e:.2f},{'high' if u < a / 100 else 'low'}" for a, e, u in draws]
    path = tmp_path / "public.csv"
    path.write_text("\n".join(["age,hours,income", *rows, ",40,low", "30,40,other"]) + "\n")
    return path


def test_json_is_what_the_function_says(privfit):
    found = privfit.as_json("plan", *AGE, *TARGET, *FEW, "--n", 5000)
    expected = plan("mean", Budget(1.0, 1e-5), Box({"age": (17, 90)}), 5000, ["laplace", "gaussian"])
    assert found["best"] == "laplace" and found["n"] == 5000
    assert [row["wanted"] for row in found["mechanisms"]] == [row.wanted for row in expected.rows]
    assert found["mechanisms"][0]["law"]["parts"][0]["law"]["mechanism"] == "laplace"


def test_table_says_the_best_and_how_many_records(privfit):
    code, out, err = privfit.call("plan", *AGE, *TARGET, *FEW, "--n", 5000, "--standard-error", 0.5)
    assert code == 0 and err == ""
    assert "Best: laplace, Laplace(scale 73)" in out and "raw data: 0.29" in out
    needed = privfit.as_json("plan", *AGE, *TARGET, *FEW, "--n", 5000, "--standard-error", 0.5)["required_n"]
    assert f"{needed['laplace']:,}" in out and needed["gaussian"] > needed["laplace"] > 5000
    impossible = privfit.as_json("plan", *AGE, *TARGET, *FEW, "--standard-error", 1e-9)["required_n"]
    assert impossible == {"laplace": None, "gaussian": None}


def test_pilot_labels_and_reasons(privfit, public):
    columns = [*AGE, "--column", "hours:1:99", "--label", "income:low,high"]
    options = ["--task", "logistic", "--target", "income", "--pilot", public, "--n", 50_000, "--epsilon", 4]
    found = privfit.as_json("plan", *columns, *options, "--delta", 1e-6, *FEW)
    assert found["pilot_rows_dropped"] == 2 and "pilot sample of 300 records" in found["design"]
    assert found["coefficients"] == ["const", "age", "hours"]
    gaussian = next(row for row in found["mechanisms"] if row["mechanism"] == "gaussian")
    assert gaussian["law"] is None and "inverse heat flow" in gaussian["reason"]
    assert [part["law"]["mechanism"] for part in found["mechanisms"][0]["law"]["parts"]] == [
        "laplace",
        "randomized_response",
    ]
    code, out, _ = privfit.call("plan", *columns, *options, "--delta", 1e-6, *FEW)
    assert code == 0 and "gaussian: not possible" in out and "2 incomplete pilot records left out" in out


@pytest.mark.parametrize(
    "mechanism",
    ["generalized-laplace", *(pytest.param(name, marks=pytest.mark.slow) for name in ("laplace", "zil"))],
)
def test_the_command_it_prints_makes_the_planned_release(privfit, public, tmp_path, mechanism):
    columns = [*AGE, "--column", "hours:1:99", "--label", "income:low,high"]
    budget = ["--epsilon", 4, "--delta", 1e-6, "--mechanism", mechanism]
    found = privfit.as_json("plan", *columns, *budget, "--theta", 0.3)
    words = shlex.split(found["command"])
    assert words[:4] == ["privfit", "release", "TABLE", "OUT"]
    out = tmp_path / "out.csv"
    assert words[words.index("--mechanism") + 1] == mechanism
    code, _, err = privfit.call("release", public, out, *words[4:])
    assert code == 0, err
    law = load_release(out).law
    text = found["mechanisms"][0]["release_code"].split("]], ")[1].split(", domain=")[0]
    planned = eval(text, {"privfit": laws})
    assert set(law.parts) == {key if isinstance(key, tuple) else (key,) for key in planned}
    for key, own in planned.items():
        same = law.parts[key if isinstance(key, tuple) else (key,)]
        assert type(same) is type(own)
        if hasattr(own, "scale"):
            assert same.scale == pytest.approx(own.scale, rel=2e-3)
            assert getattr(same, "shape", None) == getattr(own, "shape", None)
        else:
            assert same.epsilon == pytest.approx(own.epsilon, rel=1e-4)


def test_attribute_level_and_public_targets_are_in_the_command(privfit, public):
    more = ["--task", "linear", "--target", "hours", "--pilot", public, "--protect", "attribute", "--public", "hours"]
    command = privfit.as_json("plan", *AGE, *TARGET, *FEW, *more)["command"]
    assert command.endswith("--mechanism laplace --public hours --protect attribute")
    assert privfit.as_json("plan", *AGE, "--gdp", 1, *FEW)["command"] is None
    code, out, _ = privfit.call("plan", *AGE, *TARGET, *FEW)
    assert code == 0 and "privfit release TABLE OUT --column age:17:90 --epsilon 1 --delta 1e-05" in out


def test_one_reason_for_several_mechanisms_is_said_once(privfit):
    code, out, _ = privfit.call("plan", *AGE, "--epsilon", 1, "--delta", 0, "--n", 500, *FEW)
    assert code == 0 and out.count("numerical slack") == 1 and "laplace, gaussian: not possible" in out


def test_a_target_that_is_released_as_it_is(privfit, public):
    task = ["--task", "linear", "--target", "hours", "--pilot", public, "--coefficient", "age", "--n", 10**6]
    task += ["--mechanism", "laplace"]
    more = [*task, "--public", "hours"]
    assert "hours is not among the declared columns: add --label hours:<labels>" in privfit.mistake(
        "plan", *AGE, *TARGET, *task
    )
    text = privfit.call("plan", *AGE, *TARGET, *more, "--public", "ward")[1]
    assert text.startswith("NOT PROTECTED: hours, ward are published as they are.\n")
    assert "--public hours --public ward" in text and "Best:" in text
    found = privfit.as_json("plan", *AGE, *TARGET, *more)
    assert found["theta"][1] == pytest.approx(0.5, abs=0.1) and found["coefficient"] == "age"
    public.write_text("\n".join(public.read_text().splitlines()[:-1]))  # without its third label
    labels = ["--task", "logistic", "--target", "income", "--public", "income", "--pilot", public, "--n", 10**6]
    words = privfit.as_json("plan", *AGE, *TARGET, "--mechanism", "laplace", *labels)  # a public label is text
    assert words["public"] == ["income"] and words["pilot_rows_dropped"] == 1
    median = privfit.as_json("plan", *AGE, *TARGET, "--mechanism", "laplace", "--task", "quantile", "--quantile", 0.9)
    assert median["task"] == "Quantile(0.9)" and median["mechanisms"][0]["bandwidth"] > 0


def test_shares_of_labels_need_no_numbers(privfit):
    found = privfit.as_json("plan", "--label", "l:a,b", "--epsilon", 1, "--delta", 0, "--theta", 0.3, "--n", 1000)
    variance = np.e / (np.e - 1) ** 2 + 0.21
    assert found["mechanisms"][0]["wanted"] == pytest.approx((variance / 1000) ** 0.5, rel=1e-9)


def test_where_nothing_suffices_nothing_is_recommended(privfit):
    columns = [*AGE, "--column", "hours:1:99", "--task", "linear", "--target", "hours", "--mechanism", "laplace"]
    text = privfit.call("plan", *columns, *TARGET, "--n", 500)[1]
    assert text.startswith("NONE OF THESE SUFFICES at n = 500: the best would need about ")
    assert "Best:" not in text and "Release with" not in text and "needs n" in text
    wide = privfit.call("plan", *AGE, *TARGET, "--mechanism", "generalized-laplace", "--standard-error", 0.5)[1]
    assert "│ generalized-laplace │" in wide  # whole, in 80 columns


@pytest.mark.parametrize("against", ["n", "epsilon"])
def test_figures_are_written(privfit, tmp_path, against):
    path = tmp_path / "plan.svg"
    code, _, err = privfit.call("plan", *AGE, *TARGET, "--mechanism", "laplace", "--figure", against, "--plot", path)
    assert code == 0 and err == "" and path.stat().st_size > 1000


def test_figure_against_epsilon_falls_and_skips_what_cannot_serve():
    domain = (Box({"x": (0, 1)}), Categories({"y": [0, 1]}))
    more = {"target": "y", "rows": 1000}
    plans = {e: plan("logistic", Budget(e, 1e-6), domain, 10_000, ["laplace", "gaussian"], **more) for e in (4.0, 2.0)}
    ax = plot_plan(plans, title="cost", planned=4.0)
    lines = {line.get_label(): line for line in ax.lines}
    assert list(lines) == ["raw data", "laplace", "planned epsilon = 4"] and ax.get_title() == "cost"
    assert lines["laplace"].get_xdata().tolist() == [2.0, 4.0]
    assert np.diff(lines["laplace"].get_ydata())[0] < 0
    for wrong in ({}, 3, {1.0: "plan"}):
        with pytest.raises((ValueError, TypeError), match="plans"):
            plot_plan(wrong)


def test_figure_against_n_is_faint_below_what_a_mechanism_needs():
    """Two equal laws coincide; a line is whole from its needed n on, where the faint part joins it."""
    law, box = laws.Laplace(0.5), Box({"x": (0, 1)})
    twice = {"one": law, "two": law}
    found = plan("linear", Budget(4.0, 1e-5), box, 2000, twice, target="y", rows=1000)
    needed = found.row("one").records_needed
    ax = plot_plan(found, sizes=[needed // 10, needed * 10])
    lines = {line.get_label(): line for line in ax.lines}
    assert "two (coincides with one)" in lines and "too few records: optimistic" in lines
    whole = lines["one"].get_xydata()
    assert whole[0, 0] == needed and whole[-1, 0] == needed * 10
    n, errors = found.lines([needed // 10, needed * 10])[1][1:]
    share = np.log(needed / n[0]) / np.log(n[1] / n[0])
    assert whole[0, 1] == pytest.approx(errors[0] ** (1 - share) * errors[1] ** share)
    faint = next(line for line in ax.lines if line.get_color() == "0.65")
    assert faint.get_xdata().tolist() == [needed // 10, needed]
    own = {line.get_label() for line in found.plot(sizes=[needed // 10, needed * 10]).lines}
    assert {name for name in own if not name.startswith("_")} == {name for name in lines if not name.startswith("_")}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*AGE], "exactly one target"),
        ([*TARGET], "--column or --label"),
        ([*AGE, *TARGET, "--task", "svm"], "--task must be one of"),
        ([*AGE, *TARGET, "--task", "linear"], "target must be given"),
        ([*AGE, *TARGET, "--mechanism", "magic"], "mechanisms must be one of"),
        ([*AGE, *TARGET, "--figure", "epsilon"], "--figure epsilon needs"),
        ([*AGE, *TARGET, "--task", "logistic", "--target", "ill"], "--public ill if it may be published as it is"),
        ([*AGE, *TARGET, "--features", "age,wage"], "wage is not among the declared columns"),
        ([*AGE, *TARGET, "--public", "age"], "--public age: the column is declared"),
        ([*AGE, *TARGET, "--figure", "x"], "--figure must be one of"),
        ([*AGE, *TARGET, "--theta", "a"], "--theta must be finite numbers"),
        ([*AGE, *TARGET, "--standard-error", -1, *FEW], "standard_error must"),
        ([*AGE, *TARGET, "--pilot", "missing.csv"], "missing.csv"),
        ([*AGE, *TARGET, "--plot", "plan.txt"], "--plot must end in"),
    ],
)
def test_mistakes_are_one_line(privfit, arguments, message):
    code, out, err = privfit.call("plan", *arguments)
    assert code == MISTAKE and out == "" and message in err and err.count("\n") == 1
