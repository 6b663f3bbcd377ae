"""``privfit audit``: laws, release files and functions; exit codes, and one line for a mistake."""

import json
import sys

import pytest

from privfit.accounting import gaussian, subsample, zero_inflated
from privfit.cli import run
from privfit.cli_audit import ALARM, LAWS, read_claim, read_function
from privfit.figures import plot_audit
from privfit.mechanisms import Box, Gaussian, SymmetricLaplace
from privfit.mechanisms.auditing import audit, audit_noise

FEW = ["--samples", 1000]
X = ["--column", "x:0:1"]
OPTIONS = {
    "gaussian": ["--scale", 2, *X],
    "laplace": ["--scale", 2, *X],
    "discrete-laplace": ["--scale", "2,3", *X, "--column", "y:0:4"],
    "symmetric-laplace": ["--scale", 2, "--shape", 2, *X],
    "zil": ["--scale", 2, "--delta0", 0.01, *X, "--rounding", "stochastic"],
    "randomized-response": ["--epsilon", 1, "--label", "l:a,b,c"],
}
FUNCTIONS = """
import numpy as np

def right(x):
    return x + np.random.default_rng().normal()

def wrong(x, n):
    return 3 * x + np.random.default_rng().normal(size=n)

def text(x, n):
    return [x] * n

def broken(x):
    return 1 / 0

number = 3
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "noisy_functions.py").write_text(FUNCTIONS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield "noisy_functions"
    sys.modules.pop("noisy_functions", None)


def test_every_law_has_a_case():
    assert OPTIONS.keys() == LAWS.keys()


@pytest.mark.parametrize("name", OPTIONS)
def test_every_law_passes_and_says_what_was_tested(privfit, name):
    found = privfit.as_json("audit", name, *OPTIONS[name], *FEW)
    assert found["passed"] is True and found["samples"] == 1000 and found["false_alarm"] == 1e-6
    assert sum(test["share"] for test in found["tests"]) == pytest.approx(1e-6)
    assert len(found["points"]) == 24


def test_options_reach_the_law(privfit):
    found = privfit.as_json("audit", "symmetric-laplace", *OPTIONS["symmetric-laplace"], *FEW, "--false-alarm", 0.001)
    law = SymmetricLaplace(2.0, shape=2)
    assert found["subject"] == str(law) and found["false_alarm"] == 0.001
    assert found["claimed"]["base"] == law.tradeoff(Box({"x": (0, 1)})).to_dict()
    two = [*X, "--column", "y:0:5", "--protect", "attribute"]
    found = privfit.as_json("audit", "gaussian", "--scale", "1,2", *two, *FEW)
    assert found["neighbours"] == "attribute: x = 0, y = 0 against x = 0, y = 5"


def test_the_table_is_for_people(privfit):
    code, out, err = privfit.call("audit", "gaussian", *OPTIONS["gaussian"], *FEW)
    assert code == 0 and err == ""
    assert "no alarm" in out and "neighbours: record: x = 0 against x = 1" in out and "looked for" in out
    every = privfit.call("audit", "gaussian", *OPTIONS["gaussian"], *FEW, "--every-test")[1]
    assert "event 1 " in every and "false alarm" in every and "event 1 " not in out


def test_a_release_file_is_audited_by_the_law_it_carries(privfit, released):
    found = privfit.as_json("audit", released, *FEW)
    assert found["passed"] and "RandomizedResponse" in found["subject"] and "age = 17" in found["neighbours"]


def test_functions_pass_or_raise_an_alarm_with_exit_code_4(privfit, module):
    about = ["--claim", "gaussian(1.0)", "--input", "0", "--input", "1", *FEW]
    assert privfit.as_json("audit", f"{module}:right", *about)["passed"]
    code, out, err = privfit.call("audit", f"{module}:wrong", *about)
    assert code == ALARM == 4 and err == "" and "ALARM: the outputs tell the two inputs apart" in out
    code, out, _ = privfit.call("audit", f"{module}:wrong", *about, "--json")
    assert code == ALARM and json.loads(out)["passed"] is False
    # what is no literal is a text
    code, _, _ = privfit.call("audit", f"{module}:text", *about[:2], "--input", "a", "--input", "b b", *FEW)
    assert code == ALARM


def test_figure_is_written_also_with_an_alarm(privfit, module, tmp_path):
    target = tmp_path / "audit.png"
    about = ["--claim", "gaussian(1.0)", "--input", "0", "--input", "1", *FEW, "--plot", target]
    assert privfit.call("audit", f"{module}:wrong", *about)[0] == ALARM
    assert target.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["gauss", *X], "MECHANISM must be one of"),
        (["gaussian", *X], "gaussian needs --scale"),
        (["gaussian", "--scale", 1], "gaussian needs --column"),
        (["gaussian", "--scale", 1, "--shape", 2, *X], "does not take --shape"),
        (["gaussian", "--scale", 1, *X, "--claim", "gaussian(1)"], "does not take --claim"),
        (["gaussian", "--scale", "a", *X], "--scale must be finite numbers"),
        (["gaussian", "--scale", 1, *X, "--samples", 5], "samples must be"),
        (["gaussian", "--scale", 1, *X, "--false-alarm", 1], "false_alarm must be"),
        (["gaussian", "--scale", 1, *X, "--rounding", "up"], "--rounding must be"),
        (["gaussian", "--scale", 1, *X, "--protect", "cell"], "protect must be"),
        (["gaussian", "--scale", 1, *X, "--plot", "a.xls"], "--plot must end in"),
        (["zil", "--scale", 1, *X], "zil needs --delta0"),
        (["randomized-response", "--epsilon", 1], "needs --label"),
        (["randomized-response", "--epsilon", 1, "--label", "l:a,b", *X], "does not take --column"),
        (["nothing.parquet"], "nothing.parquet"),
        (["nothing.parquet", "--scale", 1], "does not take --scale"),
        (["noisy_functions:right", "--input", 1, "--input", 2], "needs --claim"),
        (["noisy_functions:right", "--claim", "gaussian(1)", "--input", 1], "two times --input"),
        (["noisy_functions:right", "--claim", "gaussian(1", "--input", 1, "--input", 2], "--claim must be a curve"),
        (["noisy_functions:right", "--claim", "gaussian(-1)", "--input", 1, "--input", 2], "mu must be"),
        (["noisy_functions:nothing", "--claim", "gaussian(1)", "--input", 1, "--input", 2], "has no function"),
        (["noisy_functions:number", "--claim", "gaussian(1)", "--input", 1, "--input", 2], "has no function"),
        (["no_such_module:f", "--claim", "gaussian(1)", "--input", 1, "--input", 2], "there is no module"),
        (["noisy_functions:right", "--scale", 1], "does not take --scale"),
        (["noisy_functions:right", "--protect", "attribute"], "--protect is for laws"),
        (["noisy_functions:broken", "--claim", "gaussian(1)", "--input", 1, "--input", 2], "raised ZeroDivisionError"),
    ],
)
def test_a_mistake_is_one_line(privfit, module, arguments, words):
    assert words in privfit.mistake("audit", *arguments)


@pytest.mark.parametrize(
    ("text", "curve"),
    [
        ("gaussian(1)", gaussian(1.0)),
        ("zero_inflated(gaussian(mu=1.0), 0.01)", zero_inflated(gaussian(1.0), 0.01)),
        ("subsample(gaussian(0.5), rate=0.1)", subsample(gaussian(0.5), rate=0.1)),
    ],
)
def test_claims_are_curves_of_the_library(text, curve):
    assert read_claim(text) == curve


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "gaussian",
        "os.system('x')",
        "__import__('os')",
        "open('x')",
        "gaussian(x)",
        "Ledger('x')",
        "[gaussian(1)]",
        "gaussian(1) if 1 else 2",
        "calibrate.__globals__",
    ],
)
def test_claims_run_no_other_code(text):
    with pytest.raises(ValueError, match="--claim must be a curve"):
        read_claim(text)


def test_functions_are_found_by_dotted_names():
    assert read_function("os:path.join")("a", "b")
    with pytest.raises(ValueError, match="no function"):
        read_function("os:path.nothing")


# --- the figure ----------------------------------------------------------------------------------------


def test_figure_shows_every_point_and_every_box():
    report = audit(Gaussian(1.0), Box({"x": (0, 1)}), samples=500)
    figure = plot_audit(report)
    assert "no alarm" in figure._suptitle.get_text() and len(figure.axes) == 2
    for ax in figure.axes:
        assert len(ax.patches) == len(report.points) == 24
        shown = {line.get_label(): line for line in ax.lines}
        points = shown["evidence for the second input"], shown["evidence for the first input"]
        assert sum(len(line.get_xdata()) for line in points) == 24
    first = [p for p in report.points if not p.swapped]
    drawn = next(line for line in figure.axes[0].lines if line.get_label() == "evidence for the second input")
    assert list(drawn.get_xdata()) == [p.alpha for p in first] and list(drawn.get_ydata()) == [p.beta for p in first]
    box = figure.axes[0].patches[0]
    assert box.get_x() == first[0].alpha_low and box.get_y() + box.get_height() == pytest.approx(first[0].beta_high)


def test_figure_draws_on_given_axes_and_refuses_other_things():
    from matplotlib.figure import Figure

    report = audit(Gaussian(1.0), Box({"x": (0, 1)}), samples=500)
    ax = Figure(layout="constrained").add_subplot()
    assert plot_audit(report, ax, log=True, title="T") is ax.figure and ax.get_xscale() == "log"
    with pytest.raises(TypeError, match="must be what audit returns"):
        plot_audit(3)
    import numpy as np

    with pytest.raises(ValueError, match="no curve"):
        plot_audit(audit_noise(np.random.default_rng(0).normal(size=200), Gaussian(1.0)))


def test_work_is_shown_on_a_terminal(privfit, monkeypatch):
    import io

    monkeypatch.setenv("TERM", "xterm")
    screen = io.StringIO()
    screen.isatty = lambda: True
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", screen)
        assert run(["audit", "gaussian", "--scale", "2", *X, "--samples", "200"]) == 0
    assert "drawing outputs" in screen.getvalue()
