"""The command line as a whole: help, figures, JSON of the demo, and errors nobody foresaw."""

import io
import subprocess
import sys

import pytest

from privfit.cli import BUG, MISTAKE, run

COMMANDS = ("audit", "calibrate", "curve", "release", "fit", "demo")
BUDGET = ["--epsilon", "6", "--delta", "1e-6"]
QUICK = ["--mechanism", "gaussian"]
COLUMNS = ["--column", "age:17:90", "--column", "hours:1:99"]


def test_help_names_every_command(privfit):
    code, out, _ = privfit.call("--help")
    assert code == 0
    for command in (*COMMANDS, "ledger"):
        assert command in out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_has_an_example(privfit, command):
    code, out, _ = privfit.call(command, "--help")
    assert code == 0 and f"privfit {command}" in out.split("Options")[0].split("Usage")[1].split("\n", 1)[1]
    assert "--json" in out


@pytest.mark.parametrize("terminal", [True, False])
def test_work_is_shown_on_a_terminal_only(privfit, table, tmp_path, monkeypatch, terminal):
    monkeypatch.setenv("TERM", "xterm")
    calls = {
        "calibrating gaussian": ["calibrate", *BUDGET, *QUICK],
        "adding the noise": ["release", table, tmp_path / "o.parquet", *COLUMNS, *BUDGET, *QUICK],
    }
    # the last step shown before the line vanishes is drawn however quick the work is
    for words, arguments in calls.items():
        screen = io.StringIO()
        screen.isatty = lambda: terminal
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", screen)
            assert run([str(a) for a in arguments]) == 0
        assert (words in screen.getvalue()) == terminal == bool(screen.getvalue())


def test_nothing_shows_the_help(privfit):
    assert "Commands" in privfit.call()[1]


def test_module_and_console_script_are_the_same_command():
    for start in (
        [sys.executable, "-m", "privfit"],
        [sys.executable, "-c", "from privfit.cli import main; main()"],
    ):
        done = subprocess.run([*start, "--version"], capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, "privfit 0.1.0\n", "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["calibrate", *BUDGET, "--dim", 2, "--mechanism", "gaussian"],
        ["calibrate", "--epsilon", 1, "--delta", 0, "--mechanism", "randomized-response"],
        ["curve", "--mechanism", "gaussian", "--mu", 1],
        pytest.param(["curve", "RELEASED"], marks=pytest.mark.slow),  # a figure of a release is in test_cli_curve
        ["release", "TABLE", "o.parquet", *COLUMNS, *BUDGET, *QUICK],
        ["fit", "RELEASED", "--target", "hours", "--features", "age"],
    ],
    ids=lambda arguments: "-".join(map(str, arguments[:2])),
)
def test_every_figure_is_written(privfit, table, request, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    files = {"TABLE": table} | ({"RELEASED": request.getfixturevalue("released")} if "RELEASED" in arguments else {})
    assert privfit.call(*(files.get(a, a) for a in arguments), "--plot", "figure.png")[0] == 0
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_demo_as_json(privfit, tmp_path, monkeypatch):
    import privfit.demo as demo

    monkeypatch.setattr(demo, "SWEEP", ())
    monkeypatch.setitem(demo.run_demo.__kwdefaults__, "sweep", ())
    monkeypatch.setitem(demo.run_demo.__kwdefaults__, "budgets", (2.0,))
    found = privfit.as_json("demo", tmp_path / "out", "--rows", 2000)
    assert len(found["files"]) == 5 and set(found["releases"][0]["fits"]) == {"logistic", "median"}
    assert "rows must be an integer" in privfit.mistake("demo", tmp_path / "never", "--rows", 3)


def test_an_unforeseen_error_shows_no_message(privfit, monkeypatch):
    import privfit.cli_common as common

    def broken(*_):
        raise KeyError("SECRET cell")

    monkeypatch.setattr("privfit.cli_curve.emit", broken)
    code, out, err = privfit.call("curve", "--mechanism", "gaussian", "--mu", 1)
    assert code == BUG and out == "" and "SECRET" not in err and "KeyError" in err and err.count("\n") == 1
    monkeypatch.setenv("PRIVFIT_DEBUG", "1")
    with pytest.raises(KeyError):
        run(["curve", "--mechanism", "gaussian", "--mu", "1"])
    assert common.emit is not broken


MISTAKES = [["nonsense"], ["fit", "none.parquet", "--model", "mean"], ["calibrate", "--epsilon", "x"]]


@pytest.mark.parametrize(("arguments", "word"), zip(MISTAKES, ("nonsense", "none.parquet", "--epsilon"), strict=True))
def test_mistakes_are_one_line_that_names_them(privfit, tmp_path, monkeypatch, arguments, word):
    monkeypatch.chdir(tmp_path)
    assert word in privfit.mistake(*arguments)


@pytest.mark.parametrize(
    "arguments", [*(pytest.param(a, marks=pytest.mark.slow) for a in MISTAKES[:2]), MISTAKES[2]]
)
def test_mistakes_in_a_real_process(tmp_path, arguments):
    done = subprocess.run([sys.executable, "-m", "privfit", *arguments], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == MISTAKE and done.stdout == ""
    assert done.stderr.startswith("privfit: ") and done.stderr.count("\n") == 1
