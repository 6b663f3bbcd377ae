"""The demo: files that exist and load, statements that follow from the numbers, no dependence on pandas."""

import io
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console

from privfit.datasets import load_adult
from privfit.demo import BOUNDS, DELTA, run_demo
from privfit.demo_fits import FEATURES, TARGET, DemoFit
from privfit.demo_text import statements
from privfit.mechanisms import load_release

ROWS = 12_000


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    screen = io.StringIO()
    result = run_demo(folder, budgets=(12.0, 2.0), sweep=(), rows=ROWS, console=Console(file=screen, width=100))
    return result, screen.getvalue(), folder


def test_every_file_is_there(quick):
    result, text, folder = quick
    assert {p.suffix for p in result.files} == {".parquet", ".txt", ".png"}
    assert sorted(p.name for p in folder.iterdir()) == sorted(p.name for p in result.files)
    for path in result.files:
        assert path.stat().st_size > 300
        assert path.name in text
    assert sum(p.read_bytes().startswith(b"\x89PNG") for p in result.files) == 3


def test_files_keep_the_promised_budget(quick):
    result, _, _ = quick
    for chapter in result.chapters:
        loaded = load_release(chapter.path)
        (row,) = loaded.guarantee().deltas([chapter.epsilon])
        assert row["record"] <= DELTA and row["attribute"] <= row["record"]
        assert loaded.secure and loaded.n_rows == ROWS


def test_raw_fit_is_that_of_statsmodels(quick):
    import statsmodels.api as sm

    result, _, _ = quick
    adult = {name: values[:ROWS] for name, values in load_adult("dict").items()}
    columns = sm.add_constant(np.column_stack([adult[name] for name in FEATURES]).astype(float))
    reference = sm.Logit((adult[TARGET] == ">50K").astype(float), columns).fit(disp=0)
    ranges = np.array([BOUNDS[name][1] - BOUNDS[name][0] for name in FEATURES])
    own = result.chapters[0].fits["logistic"]["raw data"]
    assert np.allclose(own.estimate, reference.params[1:] * ranges, rtol=1e-5)
    # sandwich against inverse information: close, not equal
    assert np.allclose(own.error, reference.bse[1:] * ranges, rtol=0.15)


def test_noise_ruins_the_naive_fit_and_the_text_says_so(quick):
    result, text, _ = quick
    fits = result.chapters[0].fits["logistic"]
    assert np.all(np.abs(fits["naive"].estimate) < 0.5 * np.abs(fits["raw data"].estimate))
    assert "naive 0 of 3" in text


def test_tight_budget_is_called_too_small(quick):
    result, text, _ = quick
    exact = result.chapters[1].fits["logistic"]["exact"]
    assert not exact.usable and exact.notes
    flat = " ".join(text.split())
    assert "are too few for this noise" in flat and "WARNING" in text
    assert "Warning:" not in text and "Traceback" not in text


def test_guarantee_is_printed_at_both_levels(quick):
    _, text, _ = quick
    for words in ("whole record", "one attribute", "numerical slack", "n x P", "ε at δ = 1e-05"):
        assert words in text


def fit(estimate, error, notes=(), bandwidth=None):
    estimate, error = np.asarray(estimate, float), np.asarray(error, float)
    low, high = estimate - 1.96 * error, estimate + 1.96 * error
    return DemoFit(("age", "hours"), estimate, error, low, high, notes, 3.0, 1000.0, bandwidth)


def test_statements_count_what_they_claim():
    fits = {
        "raw data": fit([1, 2], [0.1, 0.1]),
        "naive": fit([0, 2.1], [0.1, 0.1]),
        "exact": fit([1.5, 2], [0.5, 2]),
    }
    text = " ".join(statements("logistic", fits))
    assert "naive 1 of 2, exact 2 of 2" in text
    assert "exclude zero: age." in text
    assert "grew by a factor 3 (geometric mean over directions); the release is worth 1,000 raw records" in text
    assert "WARNING" not in text


def test_statements_without_standard_errors_claim_nothing():
    nothing = fit([1, 2], [np.inf, np.inf], notes=("too few.",))
    text = " ".join(statements("median", dict.fromkeys(("raw data", "naive", "exact"), nothing)))
    assert "exact 0 of 2" in text and "does not vouch" in text and "WARNING: too few." in text
    assert "worth" not in text and "exclude zero" not in text


@pytest.mark.parametrize(
    "options, words",
    [
        ({"rows": 10}, "rows must be an integer in"),
        ({"rows": 10**9}, "rows must be an integer in"),
        ({"budgets": ()}, "at least one"),
        ({"budgets": (0.0,)}, "a budget must be"),
        ({"budgets": (40.0,)}, "a budget must be"),
        ({"sweep": (float("nan"),)}, "a budget of sweep must be"),
    ],
)
def test_mistakes_are_found_before_anything_is_written(tmp_path, options, words):
    with pytest.raises(ValueError, match=words):
        run_demo(tmp_path / "never", **options)
    assert not (tmp_path / "never").exists()


@pytest.mark.slow
def test_runs_with_the_hard_dependencies_alone(tmp_path):
    (tmp_path / "absent.py").write_text(
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('pandas', 'polars', 'statsmodels'):\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
    )
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import absent\n"
        "from privfit.demo import run_demo\n"
        f"run_demo({str(tmp_path / 'out')!r}, budgets=(6.0,), sweep=(), rows=5000)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "out").iterdir())) == 5
    assert done.stderr == ""


@pytest.mark.slow
def test_whole_demo_is_useful_at_its_first_budget(tmp_path):
    # 12 intervals of 95 % from four releases: more than three misses have probability 0.002.
    covered = 0
    for _ in range(4):
        result = run_demo(tmp_path, budgets=(12.0,), sweep=(), console=Console(quiet=True))
        fits = result.chapters[0].fits["logistic"]
        covered += fits["exact"].covers(fits["raw data"].estimate)
        assert np.all(np.isfinite(fits["exact"].error))
    assert covered >= 9
