"""The documents stay true: their code runs, their output is what they show, their links and names exist.

Blocks of one document run in order, in one namespace and an empty folder. Where a block is followed by a
```text block, what it prints is compared with it: words exactly, numbers exactly too unless the block is marked
``noisy`` (releases draw fresh noise), where each coefficient must lie within six standard errors of the one shown.
"""

import contextlib
import importlib
import io
import math
import re
import shlex
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
DOCUMENTS += sorted((ROOT / "docs").glob("*.md"))
GUIDES = ("guide.md", "learning.md", "accounting.md", "releasing.md")
RUNNABLE = [ROOT / "README.md", *(ROOT / "docs" / name for name in GUIDES)]

FENCE = re.compile(r"^```(\S*)[ ]?(.*?)\n(.*?)^```$", re.M | re.S)
NUMBER = re.compile(r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
pytestmark = pytest.mark.skipif(not RUNNABLE[0].is_file(), reason="the documents are not part of the installation")


def relative(path):
    return str(path.relative_to(ROOT))


def blocks(path):
    """(language, info, text) of every fenced block, in order."""
    return [match.groups() for match in FENCE.finditer(path.read_text(encoding="utf-8"))]


def skeleton(text):
    """Words of a text, numbers replaced: rules and column widths do not matter."""
    return NUMBER.sub("#", re.sub(r"[-=]{3,}", "", text)).split()


def coefficients(text):
    """{name: (estimate, standard error)} of the lines of a summary that hold six numbers."""
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 7 and all(NUMBER.fullmatch(word) for word in words[1:]):
            found[words[0]] = (float(words[1]), float(words[2]))
    return found


def compare(shown, printed, noisy):
    assert skeleton(shown) == skeleton(printed)
    if not noisy:
        # the last bits of a number may differ between machines
        said, found = ([float(x) for x in NUMBER.findall(text.replace(",", " "))] for text in (shown, printed))
        assert said == pytest.approx(found, rel=1e-9)
        return
    said, found = coefficients(shown), coefficients(printed)
    assert said.keys() == found.keys()
    for name, (estimate, error) in said.items():
        assert abs(estimate - found[name][0]) < 6 * math.hypot(error, found[name][1]), name
        assert 0.4 < error / found[name][1] < 2.5, name


@pytest.mark.parametrize("path", RUNNABLE, ids=relative)
def test_python_blocks_run_and_print_what_is_shown(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    listed, names = blocks(path), {}
    assert sum(language == "python" for language, _, _ in listed) >= 2
    for place, (language, _, code) in enumerate(listed):
        if language != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            exec(compile(code, f"{relative(path)}, block {place}", "exec"), names)
        following = listed[place + 1] if place + 1 < len(listed) else ("", "", "")
        if following[0] == "text":
            compare(following[2], printed.getvalue(), "noisy" in following[1])
        else:
            assert not printed.getvalue(), "a block prints what the document does not show"


def command_lines():
    """Every ``privfit`` line of a shell block of the README, continued lines joined."""
    shell = [text.replace("\\\n", " ") for language, _, text in blocks(ROOT / "README.md") if language == "sh"]
    return [line.split("#")[0].strip() for text in shell for line in text.splitlines()]


def test_command_lines_parse():
    import typer

    from privfit.cli import app

    commands = typer.main.get_command(app).commands
    seen = set()
    for words in (shlex.split(line) for line in command_lines() if line.startswith("privfit ")):
        seen.add(words[1])
        commands[words[1]].make_context(words[1], words[2:])  # an unknown option or a bad value raises
    assert seen == set(commands)


@pytest.mark.slow
def test_command_lines_run(tmp_path, monkeypatch, capsys):
    from privfit.cli import run

    monkeypatch.chdir(tmp_path)
    for words in map(shlex.split, command_lines()):
        if words[:2] == ["python", "-c"]:
            exec(words[2], {})
        elif words[:1] == ["privfit"]:
            assert run(words[1:]) == 0, words
    assert "LogisticRegression" in capsys.readouterr().out


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative)
def test_links_paths_and_names_exist(path):
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" not in target:
            assert (path.parent / target).exists(), target
    for name in re.findall(r"`((?:accounting|mechanisms|estimators|interface|tests|docs)/[\w./-]*)`", text):
        assert (ROOT / name).exists(), name
    for dotted in set(re.findall(r"`(privfit(?:\.\w+)+)", text)):
        module, attribute = dotted.rsplit(".", 1)
        if not hasattr(importlib.import_module(module), attribute):
            importlib.import_module(dotted)
