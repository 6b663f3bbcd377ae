"""What a plan says: predicted standard errors of every mechanism, the best one, and how many records it needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.validation import check_choice, check_number
from privfit.estimators.diagnostics import round_up
from privfit.estimators.plan_needed import CLOSE
from privfit.estimators.plan_records import UNIFORM
from privfit.estimators.plan_row import LARGEST_N, PlanRow, count_text, law_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PlanReport"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PlanReport:
    """Mechanisms compared for one task at one budget.

    Attributes
    ----------
    task : str
    budget : str
    protect : str
    n : int
    names : list of str
        Coefficients, in the order of the standard errors.
    coefficient : str or None
        The one that decides; None: all slopes together.
    theta : ndarray
        Plausible coefficients.
    design : str
        What the errors were integrated over.
    public : tuple
        Columns of the task that are published as they are.
    domain : str
        The domain as an expression of Python; empty where that would not say all of it.
    raw : ndarray, shape (p,)
        Standard errors of a fit to the raw data.
    rows : tuple of PlanRow
        Smallest wanted standard error first, mechanisms that cannot serve last.

    Examples
    --------
    >>> from privfit.accounting import Budget
    >>> from privfit.estimators.planning import plan
    >>> from privfit.mechanisms import Box
    >>> found = plan("mean", Budget(1.0, 1e-5), Box({"x": (0, 1)}), 10_000, ["laplace", "gaussian"])
    >>> found.best.mechanism, found.required_n(0.001) > 10_000
    ('laplace', True)
    """

    task: str
    budget: str
    protect: str
    n: int
    names: list[str]
    coefficient: str | None
    theta: Floats
    design: str
    public: tuple[Any, ...]
    domain: str
    raw: Floats
    rows: tuple[PlanRow, ...]
    size: Callable[[Floats], float] = field(repr=False)
    again: Callable[[Any], PlanReport] = field(repr=False)

    @property
    def best(self) -> PlanRow:
        """The mechanism of the smallest wanted standard error, among those that n suffices for if there are any.

        Of mechanisms within 0.1 % the one that publishes fewest records without noise.

        Raises
        ------
        ValueError
            If no mechanism can serve.
        """
        served = [row for row in self.rows if row.law is not None and math.isfinite(row.wanted)]
        if not served:
            reasons = " ".join(dict.fromkeys(row.reason for row in self.rows))
            raise ValueError(f"no mechanism can serve this task at {self.budget}. {reasons}")
        if len(served) == 1:
            return served[0]
        served.sort(key=lambda row: row.wanted)
        first = next((row for row in served if row.usable), None)
        near = [row for row in served if row.wanted <= 1.001 * (first or served[0]).wanted]
        if first is not None:  # trial fits take time: only those that may be the best are tried
            near = [row for row in near if row.wanted >= first.wanted and row.usable]
        return min(near, key=lambda row: (row.exact_records, row.wanted))

    def row(self, mechanism: str) -> PlanRow:
        """Return the row of a mechanism."""
        check_choice("mechanism", mechanism, tuple(row.mechanism for row in self.rows))
        return next(row for row in self.rows if row.mechanism == mechanism)

    def required_n(self, standard_error: float, mechanism: str | None = None, coefficient: str | None = None) -> int:
        """Return how many records bring a standard error down to a wanted one.

        Parameters
        ----------
        standard_error : float
            In the units of the coefficient.
        mechanism : str, optional
            The best one if left out.
        coefficient : str, optional
            That of the plan (all slopes, as a geometric mean) if left out.

        Returns
        -------
        int
            To two digits, rounded up; at least what the mechanism needs for a fit without a warning.

        Raises
        ------
        ValueError
            If the mechanism cannot serve, or more than 1e15 records were needed.
        """
        wanted = check_number("standard_error", standard_error, 0.0, low_open=True)
        row = self.best if mechanism is None else self.row(mechanism)
        if row.predict is None:
            raise ValueError(f"{row.mechanism} cannot serve this task: {row.reason}")
        size = self.size
        if coefficient is not None:
            check_choice("coefficient", coefficient, tuple(self.names))
            place = self.names.index(coefficient)
            size = lambda errors: float(errors[place])  # noqa: E731
        n, found = float(self.n), size(row.standard_errors)
        # Errors fall like n^-1/2, or a little slower where a bandwidth shrinks with n: a few steps settle it.
        for _ in range(30):
            if abs(math.log(found / wanted)) < 0.005:
                break
            n *= (found / wanted) ** 2
            if n > LARGEST_N:
                raise ValueError(f"standard_error = {wanted:g} would need more than {LARGEST_N:.0e} records.")
            found = size(row.predict(max(round(n), 2)).standard_errors)
        return max(round_up(n), row.records_needed)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values, ready for JSON."""
        keys = ("task", "budget", "protect", "n", "coefficient", "design", "domain")
        plain = {key: getattr(self, key) for key in keys} | {"public": list(self.public)}
        return plain | {
            "coefficients": self.names,
            "theta": self.theta.tolist(),
            "raw_standard_errors": self.raw.tolist(),
            "raw_wanted": self.size(self.raw),
            "best": self.best.mechanism if any(row.law is not None for row in self.rows) else None,
            "suffices": self.suffices,
            "mechanisms": [row.to_dict() for row in self.rows],
        }

    @property
    def suffices(self) -> bool:
        """Whether n is enough for a fit under at least one mechanism."""
        return any(row.usable for row in self.rows)

    @property
    def protected(self) -> str:
        """What is protected, in words."""
        without = f" except {', '.join(map(str, self.public))}" if self.public else ""
        return f"protecting one {self.protect}{without}"

    def warnings(self) -> list[str]:
        """Return what has to be read before the table: columns without protection, and that nothing suffices."""
        out = []
        if self.public:
            one = len(self.public) == 1
            listed = ", ".join(map(str, self.public))
            out.append(f"NOT PROTECTED: {listed} {'is published as it is' if one else 'are published as they are'}.")
        served = [row for row in self.rows if row.law is not None]
        if served and not self.suffices:
            least = min(served, key=lambda row: row.records_needed)
            out.append(
                f"NONE OF THESE SUFFICES at n = {self.n:,}: the best would need about "
                f"{count_text(least.records_needed)} records ({least.mechanism})."
            )
        return out

    def notes(self) -> list[str]:
        """Return what a reader of the table has to know, one sentence each."""
        out = [f"Design: {self.design}."]
        if self.design.startswith(UNIFORM) and self.theta.size:
            out.append(
                "Real columns spread less than a uniform design, so expect larger errors and a larger n: pass a pilot "
                "(pilot=, --pilot FILE) or covariance=."
            )
        if any(row.records_needed for row in self.rows):
            out.append(
                f"needs n: from so many records on fewer than one fit in ten warns; known to about a factor {CLOSE}."
            )
        for row in self.rows:
            if row.exact_records >= 1:
                out.append(
                    f"WARNING: {row.mechanism} publishes about {row.exact_records:,.3g} of the records without noise."
                )
            if row.law is not None and not row.usable:
                out.append(
                    f"{row.mechanism}: n = {self.n:,} is too few for this noise, a fit needs about "
                    f"{count_text(row.records_needed)}; its prediction is optimistic."
                )
        drawn = max((row.monte_carlo for row in self.rows if row.law is not None), default=0.0)
        if drawn > 0:
            out.append(f"Predictions have a Monte Carlo error of up to {100 * drawn:.1f} % (one standard error).")
        smoothed = [f"{row.mechanism} {row.bandwidth:.3g}" for row in self.rows if row.bandwidth > 0]
        if smoothed:
            out.append(
                f"The check loss is smoothed, at bandwidths {', '.join(smoothed)}: standard errors hold no bias."
            )
        reasons: dict[str, list[str]] = {}
        for row in self.rows:
            if row.law is None:
                reasons.setdefault(row.reason, []).append(row.mechanism)
        return out + [f"{', '.join(names)}: not possible; {reason}" for reason, names in reasons.items()]

    def __str__(self) -> str:
        lines = [
            *self.warnings(),
            f"{self.task}, n = {self.n:,}, {self.budget}, {self.protected}",
            f"Standard errors ({self.deciding}); raw data: {self.size(self.raw):.4g}",
            "",
        ]
        if not any(row.law is not None for row in self.rows):
            return "\n".join([*lines, *self.notes()])
        title = self.error_title
        lines.append(
            f"{'mechanism':<22}{title:>16}{'factor':>9}{'worth raw n':>14}{'needs n':>13}  law",
        )
        best = self.best
        for row in self.rows:
            if row.law is None:
                continue
            needed = count_text(row.records_needed)
            star = "*" if row is best and row.usable else " "
            lines.append(
                f"{star}{row.mechanism:<21}{row.wanted:>16.4g}{row.factor:>9.4g}{row.n_effective:>14,.0f}"
                f"{needed:>13}  {law_text(row.law)}"
            )
        if not best.usable:
            return "\n".join([*lines, "", *self.notes()])
        each = ", ".join(f"{name} {error:.4g}" for name, error in zip(self.names, best.standard_errors, strict=True))
        domain = self.domain or "...  # the domain of this plan"
        lines += ["", f"Best: {best.mechanism}, with standard errors {each}.", "Release with:"]
        lines += ["  import privfit", f"  domain = {domain}", f"  released = {best.release_code}"]
        return "\n".join([*lines, "", *self.notes()])

    @property
    def deciding(self) -> str:
        """Whose standard error decides, in words."""
        own = [name for name in self.names if name != "const"]
        return self.coefficient or (f"geometric mean of {', '.join(own)}" if len(own) > 1 else self.names[-1])

    @property
    def error_title(self) -> str:
        """Title of the column of standard errors."""
        return "geom. mean s.e." if self.deciding.startswith("geometric mean of ") else "std. error"

    def plot(self, ax: Axes | None = None, sizes: Sequence[int] | None = None) -> Axes:
        """Draw the wanted standard error against n, one line per mechanism and one for raw data.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.
        sizes : sequence of int, optional
            Numbers of records; by default from a tenth of n to ten times n.

        Returns
        -------
        matplotlib.axes.Axes
            As of `privfit.figures.plot_plan`, which also draws errors against epsilon.
        """
        # Figures lie a layer above the estimators, which know them by name alone.
        drawn: Axes = import_module("privfit.figures").plot_plan(self, ax, sizes=sizes)
        return drawn

    def lines(self, sizes: Sequence[int] | None = None) -> list[tuple[str, Floats, Floats]]:
        """Return ``(label, n, standard errors)`` of raw data and of each mechanism, for a picture."""
        grid = np.geomspace(max(self.n / 10, 2), self.n * 10, 5) if sizes is None else np.asarray(sizes, float)
        found = [("raw data", grid, self.size(self.raw) * np.sqrt(self.n / grid))]
        for row in self.rows:
            if row.predict is not None:
                errors = [self.size(row.predict(round(n)).standard_errors) for n in grid]
                found.append((row.mechanism, grid, np.array(errors)))
        return found
