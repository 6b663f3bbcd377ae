"""The main job on real data: budget, domain, calibration, one release, and what an analyst learns from it.

Everything is real: the 1994 census extract, fresh keys from the operating system (so numbers differ a little
from run to run), the file in between. The raw-data fits are shown for comparison only; nobody but the data
holder could compute them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from privfit.accounting.validation import check_integer, check_number
from privfit.demo_fits import FEATURES, TARGET, DemoFit, fit_raw, fit_released

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["BOUNDS", "DELTA", "LABEL_SHARE", "Chapter", "DemoResult", "run_demo"]

BOUNDS = {"age": (17, 90), "education_num": (1, 16), "hours_per_week": (1, 99)}
LABELS = ("<=50K", ">50K")
DELTA = 1e-5
"""Below 1/n: a fraction delta of the persons is less than one."""
LABEL_SHARE = 0.15
"""Share of epsilon spent on the income label; the three numeric columns get the rest."""
USEFUL, TIGHT = 12.0, 4.0
SWEEP = (2.0, 6.0, 8.0, 10.0, 11.0)
N_ADULT = 48_842


@dataclass(frozen=True, eq=False)
class Chapter:
    """One release of the demo and the fits to it.

    Attributes
    ----------
    epsilon : float
        Budget of a whole record, at delta = 1e-5.
    release : Release
        As another person loaded it from the file.
    path : Path
    fits : dict
        ``{model: {"raw data", "naive", "exact": DemoFit}}``.

    Examples
    --------
    >>> Chapter.__name__
    'Chapter'
    """

    epsilon: float
    release: Any
    path: Path
    fits: dict[str, dict[str, DemoFit]]


@dataclass(eq=False)
class DemoResult:
    """What the demo made.

    Attributes
    ----------
    chapters : list of Chapter
    sweep : dict
        ``{epsilon: exact logistic fit}`` behind the third figure.
    files : list of Path
        Releases, reports and figures.
    seconds : float

    Examples
    --------
    >>> DemoResult().files
    []
    """

    chapters: list[Chapter] = field(default_factory=list)
    sweep: dict[float, DemoFit] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)
    seconds: float = 0.0


def run_demo(
    directory: str | Path = "privfit-demo",
    *,
    budgets: Sequence[float] = (USEFUL, TIGHT),
    sweep: Sequence[float] = SWEEP,
    rows: int | None = None,
    console: Console | None = None,
) -> DemoResult:
    """Run the main job on the Adult census extract, print what happens, and save three figures.

    Parameters
    ----------
    directory : str or path
        Where releases, their reports and the figures go; made if it is not there.
    budgets : sequence of floats
        Record-level epsilons (at delta = 1e-5) of the releases that are told in full; each in (0, 12.5].
    sweep : sequence of floats
        Further epsilons for the figure of standard error against budget.
    rows : int, optional
        Only the first rows of the table, for a quick look.
    console : rich.console.Console, optional
        Where to print.

    Returns
    -------
    DemoResult

    Raises
    ------
    ValueError, TypeError
        If a budget or `rows` is out of range.

    Examples
    --------
    >>> run_demo(rows=10)
    Traceback (most recent call last):
        ...
    ValueError: rows must be an integer in [1000, 48842], got 10.
    """
    from privfit.datasets import load_adult
    from privfit.demo_figures import save_figures
    from privfit.demo_text import Story

    budgets = [check_number("a budget", e, 0.0, 12.5, low_open=True) for e in budgets]
    sweep = [check_number("a budget of sweep", e, 0.0, 12.5, low_open=True) for e in sweep]
    if not budgets:
        raise ValueError("budgets must hold at least one epsilon, got none.")
    count = N_ADULT if rows is None else check_integer("rows", rows, 1000, N_ADULT)
    start, folder = time.perf_counter(), Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    table = load_adult("pyarrow", columns=[*FEATURES, TARGET]).slice(0, count)
    story, result = Story(console), DemoResult()
    story.opening(count, BOUNDS, LABELS)
    raw = {name: table[name].to_numpy() for name in table.column_names}
    oracle = fit_raw(raw, _ranges(), "logistic")
    for number, epsilon in enumerate(budgets):
        with story.step(f"ε = {epsilon:g}: calibrating, releasing, fitting"):
            chapter = _chapter(table, raw, oracle, epsilon, folder, result)
        result.chapters.append(chapter)
        result.sweep[epsilon] = chapter.fits["logistic"]["exact"]
        story.chapter(chapter, number + 1, len(budgets), DELTA, LABEL_SHARE)
    for epsilon in sweep:
        if epsilon not in result.sweep:
            with story.step(f"ε = {epsilon:g}: one more point of the figure"):
                released = _release(table, _laws(epsilon, shape=2))
                result.sweep[epsilon] = fit_released(released, _ranges(), "logistic", "exact")
    with story.step("drawing"):
        result.files += save_figures(result, oracle, folder)
    result.seconds = time.perf_counter() - start
    story.closing(result)
    return result


def _chapter(
    table: Any,
    raw: dict[str, NDArray[Any]],
    oracle: DemoFit,
    epsilon: float,
    folder: Path,
    result: DemoResult,
) -> Chapter:
    from privfit.mechanisms import load_release

    path = folder / f"adult-epsilon-{epsilon:g}.parquet"
    own = _release(table, _laws(epsilon, shape="best"))
    own.save(path, overwrite=True)
    path.with_suffix(".txt").write_text(own.report() + "\n", encoding="utf-8")
    result.files += [path, path.with_suffix(".txt")]
    # From here on everything comes from the file alone, read without pandas or polars.
    release = load_release(path, kind="numpy")
    fits: dict[str, dict[str, DemoFit]] = {}
    for model in ("logistic", "median"):
        naive, exact = (fit_released(release, _ranges(), model, c) for c in ("naive", "exact"))
        # The median of noisy hours is smoothed; a fair comparison smooths the raw data alike.
        truth = oracle if model == "logistic" else fit_raw(raw, _ranges(), model, exact.bandwidth)
        fits[model] = {"raw data": truth, "naive": naive, "exact": exact}
    return Chapter(epsilon, release, path, fits)


def _laws(epsilon: float, shape: Any) -> dict[Any, Any]:
    """Divide the budget: a share for the label, the rest for the three numeric columns together."""
    from privfit.mechanisms import Box, RandomizedResponse, SymmetricLaplace, remaining_budget

    label, box = round(LABEL_SHARE * epsilon, 12), Box(BOUNDS)
    numeric = SymmetricLaplace.calibrate(remaining_budget(epsilon, DELTA, [label], box), box, shape=shape)
    return {FEATURES: numeric, TARGET: RandomizedResponse(label, len(LABELS))}


def _release(table: Any, laws: dict[Any, Any]) -> Any:
    from privfit.mechanisms import Box, Categories, release

    return release(table, laws, domain=(Box(BOUNDS), Categories({TARGET: LABELS})))


def _ranges() -> dict[str, float]:
    return {name: float(high - low) for name, (low, high) in BOUNDS.items()}
