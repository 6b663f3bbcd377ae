"""Shared material of the command-line tests: a private table, its release, and one way to call a command."""

import json

import numpy as np
import pytest

from privfit.cli import MISTAKE, run

BUDGET = ["--epsilon", "6", "--delta", "1e-6"]
COLUMNS = ["--column", "age:17:90", "--column", "hours:1:99"]


@pytest.fixture(scope="session")
def table(tmp_path_factory):
    """A private table whose cells can be told from everything else that may be printed."""
    path = tmp_path_factory.mktemp("table") / "private.csv"
    rng = np.random.default_rng(5)
    rows = [
        f"{17.31771 + 60 * u:.5f},{30 + 20 * v:.5f},{'high' if w < 0.2 + 0.5 * u else 'low'},{j % 3},Name{j}"
        for j, (u, v, w) in enumerate(rng.random((3000, 3)))
    ]
    path.write_text("age,hours,income,region,name\n" + "\n".join(rows) + "\n,77777,SECRET2,1,SECRET3\n")
    return path


@pytest.fixture(scope="session")
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


class Command:
    """Calls ``privfit`` in this process and looks at what it prints."""

    def __init__(self, capsys):
        self.capsys = capsys

    def call(self, *arguments):
        """Exit code, stdout and stderr."""
        self.capsys.readouterr()
        code = run([str(a) for a in arguments])
        return code, *self.capsys.readouterr()

    def as_json(self, *arguments):
        """What ``--json`` prints, parsed strictly."""
        code, out, err = self.call(*arguments, "--json")
        assert code == 0 and err == ""
        return json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))

    def mistake(self, *arguments):
        """The one line that answers a mistake."""
        code, out, err = self.call(*arguments)
        assert code == MISTAKE
        assert out == ""
        assert err.startswith("privfit: ") and err.count("\n") == 1 and len(err) < 600
        assert "Traceback" not in err and "SECRET" not in err
        return err


@pytest.fixture
def privfit(capsys):
    return Command(capsys)
