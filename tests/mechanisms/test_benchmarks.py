"""The benchmarks run, from the command to the table, on small inputs."""

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def run(monkeypatch):
    """The module behind ``python benchmarks/run.py``, as if the peer of the extra were not installed."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import bench_accounting
    import bench_calibration
    import bench_composition
    import run

    for module in (bench_accounting, bench_calibration, bench_composition):
        monkeypatch.setattr(module, "installed", lambda package: False)
    yield run
    for name in [n for n in sys.modules if n in ("run", "harness") or n.startswith("bench_")]:
        del sys.modules[name]


def test_quick_run_fills_the_table(run, tmp_path, capsys):
    page = run.main(["--quick", "--output", str(tmp_path / "results.md")])
    assert (tmp_path / "results.md").read_text() == page and page in capsys.readouterr().out
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]
    assert all(len(row) == 6 for row in rows) and len(rows) > 20
    accounting = "Gaussian delta(1)", "Gaussian sigma", "T_(6,0.5)", "100 Laplace releases", "compose calls"
    for what in (*accounting, "exact logistic fit", "release, d = 50"):
        assert any(what in row[0] for row in rows)
    assert sum("not installed" in row[2] for row in rows) == 7


def test_medians_see_which_function_is_slower(run):
    import harness

    fast, slow = harness.medians(lambda: sum(range(100)), lambda: sum(range(10_000)), quick=False, repeats=5)
    assert 0 < 10 * fast < slow


def test_table_cells(run):
    import harness

    text = harness.table([harness.Row("a", "1 s", "2 s", 0.5, "goal", False), harness.Row("b", "1", "2")])
    assert "| a    | 1 s  | 2 s  | 0.5         | goal | NO      |" in text
    assert [harness.duration(s) for s in (2.0, 0.05, 3.21e-6)] == ["2 s", "50 ms", "3.21 us"]
