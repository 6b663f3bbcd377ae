"""What the demo prints: short sentences, and tables whose statements are computed from the results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

if TYPE_CHECKING:
    from privfit.demo import Chapter, DemoResult
    from privfit.demo_fits import DemoFit

__all__ = ["Story", "statements"]

TITLES = {
    "logistic": "Logistic regression of income over 50K: change of the log-odds over the declared range",
    "median": "Median of hours per week (itself noised): change in hours over the declared range",
}


class Story:
    """Prints the demo; `console` defaults to the terminal.

    Examples
    --------
    >>> Story(Console(quiet=True)).say("nothing is shown")
    """

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(soft_wrap=False)

    def say(self, text: str) -> None:
        """Print one paragraph, without interpreting brackets."""
        self.console.print(escape(text), highlight=False)

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """Show a spinner with the elapsed time while a long step runs."""
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        quiet = not self.console.is_terminal
        with Progress(*columns, console=self.console, transient=True, disable=quiet) as progress:
            progress.add_task(escape(text), total=None)
            yield

    def opening(self, rows: int, bounds: Mapping[str, tuple[float, float]], labels: Sequence[str]) -> None:
        """Say what the data are and what was declared before anybody looked at them."""
        self.console.print(Panel("privfit demo: from a privacy budget to fitted models", expand=False))
        declared = ", ".join(f"{name} in [{low:g}, {high:g}]" for name, (low, high) in bounds.items())
        self.say(
            f"Data: {rows:,} persons of the 1994 US census (Adult, Becker & Kohavi 1996, CC BY 4.0).\n"
            f"Domain, declared without looking at the data: {declared}, income one of {' or '.join(labels)}. "
            "Whatever lies outside is clipped, so the declaration alone bounds what one person can change."
        )

    def chapter(self, chapter: Chapter, number: int, total: int, delta: float, share: float) -> None:
        """Tell one release: the budget, the noise, the guarantee, the fits."""
        self.console.rule(f"Release {number} of {total}: budget (ε, δ) = ({chapter.epsilon:g}, {delta:g})")
        self._noise(chapter, share)
        self._guarantee(chapter, delta)
        self.say(
            f"Saved once to {chapter.path}; the noise law travels in the file. An analyst who has only "
            "the file now fits two models. 'raw data' is what only the data holder could know; 'naive' "
            "ignores the noise; 'exact' corrects for it."
        )
        for model, fits in chapter.fits.items():
            self.console.print(_fit_table(TITLES[model], fits))
            for sentence in statements(model, fits):
                self.say(f"  - {sentence}")
        self.console.print()

    def closing(self, result: DemoResult) -> None:
        """List the files and say how the third figure was made."""
        self.console.rule("Files")
        small = sorted(e for e, fit in result.sweep.items() if not fit.usable)
        fine = sorted(e for e, fit in result.sweep.items() if fit.usable)
        self.say(
            f"cost.png tries {len(result.sweep)} budgets, each with a fresh release of the same table. That "
            "is for the figure only: real releases of the same persons add up to a larger budget."
        )
        if small:
            self.say(f"The library warns that the sample is too small at ε = {_listed(small)}.")
        if fine:
            self.say(f"It vouches for its standard errors at ε = {_listed(fine)}.")
        for path in result.files:
            self.console.print(f"  {path}", highlight=False, soft_wrap=True, markup=False)
        self.say(f"Done in {result.seconds:.0f} s.")

    def _noise(self, chapter: Chapter, share: float) -> None:
        release = chapter.release
        numeric, label = (release.law.items[j][1] for j in (0, 1))
        columns = release.law.items[0][0]
        spread = ", ".join(
            f"{name} {scale:.3g}" for name, scale in zip(columns, numeric.scales(len(columns)), strict=True)
        )
        kind = f"symmetric Laplace of shape {numeric.shape}" if hasattr(numeric, "shape") else "Gaussian"
        self.say(
            f"Budget: {share:.0%} of ε for the label, the rest for the numeric columns together. Smallest "
            f"noise that fits: {kind}, standard deviation {spread}; "
            f"the label is told truthfully with probability {label.keep_probability:.3f}."
        )

    def _guarantee(self, chapter: Chapter, delta: float) -> None:
        promise = chapter.release.guarantee()
        (epsilon,), (best,) = promise.epsilons((delta,)), promise.deltas((0.0,))
        table = Table(title="What the release guarantees", title_justify="left")
        table.add_column("hidden from an attacker who knows all else:")
        table.add_column("whole record", justify="right")
        table.add_column("one attribute", justify="right")
        table.add_row(f"ε at δ = {delta:g}", *(f"{epsilon[k]:.3f}" for k in ("record", "attribute")))
        table.add_row("largest advantage of any attack", *(f"{best[k]:.3f}" for k in ("record", "attribute")))
        rows = chapter.release.n_rows * chapter.release.law.exact_fraction
        table.add_row("numerical slack per row (included)", *[f"{promise.slack:.2g}"] * 2)
        table.add_row("rows expected without noise (n x P)", *[f"{rows:.3g}"] * 2)
        self.console.print(table)
        self.say(
            "Advantage: true-positive rate minus false-positive rate of the best test between two values of "
            "what is hidden; 0 is a coin toss, 1 is certainty."
        )


def _fit_table(title: str, fits: Mapping[str, DemoFit]) -> Table:
    table = Table(title=title, title_justify="left", caption="estimate ± standard error; ratio: exact over raw data")
    table.add_column("column", no_wrap=True)
    for label in fits:
        table.add_column(label, justify="right", no_wrap=True)
    table.add_column("s.e. ratio", justify="right", no_wrap=True)
    exact, raw = fits["exact"], fits["raw data"]
    for j, name in enumerate(exact.names):
        cells = [_cell(fit.estimate[j], fit.error[j]) for fit in fits.values()]
        ratio = exact.error[j] / raw.error[j]
        table.add_row(name, *cells, f"{ratio:.1f}" if np.isfinite(ratio) else "-")
    return table


def _cell(estimate: float, error: float) -> str:
    return f"{estimate:.3g} ± {error:.2g}" if np.isfinite(error) else f"{estimate:.3g} ± none"


def statements(model: str, fits: Mapping[str, DemoFit]) -> list[str]:
    """Sentences about one model's fits, each computed from the results.

    Examples
    --------
    >>> from privfit.demo_fits import DemoFit
    >>> one = np.ones(1)
    >>> fit = DemoFit(("age",), one, 0.1 * one, 0.8 * one, 1.2 * one, (), 2.0, 25.0, None)
    >>> fits = {"raw data": fit, "naive": fit, "exact": fit}
    >>> statements("logistic", fits)[0]
    'Intervals that contain the raw-data estimate: naive 1 of 1, exact 1 of 1.'
    """
    raw, naive, exact = fits["raw data"], fits["naive"], fits["exact"]
    size = len(exact.names)
    found = [
        "Intervals that contain the raw-data estimate: "
        f"naive {naive.covers(raw.estimate)} of {size}, exact {exact.covers(raw.estimate)} of {size}."
    ]
    if np.isfinite(exact.error).all():
        found.append(f"Exact intervals that exclude zero: {', '.join(exact.clear) or 'none'}.")
    else:
        found.append("No standard errors, so no intervals: the library does not vouch for the exact fit.")
    if exact.usable:
        found.append(
            "Cost of privacy, estimated from the release alone: standard errors grew by a factor "
            f"{exact.factor:.2g} (geometric mean over directions); the release is worth {exact.worth:,.0f} raw records."
        )
    found += [f"WARNING: {note}" for note in exact.notes]
    if exact.bandwidth is not None and exact.usable:
        found.append(
            f"Noise this large shows the median only smoothed (bandwidth {exact.bandwidth:.0f} hours); the "
            "raw-data fit shown is smoothed alike."
        )
    return found


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
