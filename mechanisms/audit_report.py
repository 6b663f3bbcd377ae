"""What an audit found: every test with its share of the false-alarm probability, and what the samples prove."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privfit.accounting.validation import check_number
from privfit.mechanisms.audit_statistics import Finding

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privfit.accounting import TradeOffCurve

__all__ = ["AuditPoint", "AuditReport", "AuditTest", "Planned", "run_tests"]


@dataclass(frozen=True)
class AuditTest:
    """One test of an audit.

    Attributes
    ----------
    name : str
    statistic, bound : float
        What was seen, and the largest value that raises no alarm.
    share : float
        Probability, at most, that this test raises an alarm about a correct mechanism; 0 where that cannot be.
    alarm : bool
    meaning : str
        What an alarm would say.
    """

    name: str
    statistic: float
    bound: float
    share: float
    alarm: bool
    meaning: str


@dataclass(frozen=True)
class Planned:
    """A test to be run at a level that is known once all tests are; level 0 if it cannot be wrong."""

    name: str
    meaning: str
    run: Callable[[float], Finding]
    certain: bool = False


def run_tests(planned: Sequence[Planned], share: float) -> list[AuditTest]:
    """Run tests that divide `share` of the false-alarm probability evenly.

    Examples
    --------
    >>> run_tests([Planned("never", "nothing", lambda level: Finding(0.0, level, False))], 0.5)[0].share
    0.5
    """
    uncertain = sum(not test.certain for test in planned)
    done = []
    for test in planned:
        level = 0.0 if test.certain else share / uncertain
        found = test.run(level)
        done.append(AuditTest(test.name, found.statistic, found.bound, level, found.alarm, test.meaning))
    return done


@dataclass(frozen=True)
class AuditPoint:
    """The errors of one event as a test of the first input against the second, with their confidence box.

    Attributes
    ----------
    alpha, beta : float
        Share of outputs of the first input inside the event (false alarms of the attack), and of outputs of the
        second outside it (misses).
    alpha_low, alpha_high, beta_low, beta_high : float
        Limits; the two that speak against the mechanism hold for all points at once, with the probability that
        the report states.
    swapped : bool
        Whether the event was chosen as evidence for the first input: its complement is what is counted here.
    """

    alpha: float
    beta: float
    alpha_low: float
    alpha_high: float
    beta_low: float
    beta_high: float
    swapped: bool


@dataclass(frozen=True)
class AuditReport:
    """Result of `privfit.mechanisms.audit`.

    Attributes
    ----------
    subject, neighbours : str
        What was audited, on which pair of inputs.
    claimed : TradeOffCurve or None
        The curve that the mechanism has to keep; None where only noise was compared with its law.
    samples : int
        Outputs of each of the two inputs.
    false_alarm : float
        Probability, at most, that a correct mechanism does not pass.
    tests : tuple of AuditTest
    points : tuple of AuditPoint

    Examples
    --------
    >>> from privfit.mechanisms import Box, Gaussian
    >>> from privfit.mechanisms.auditing import audit
    >>> report = audit(Gaussian(1.0), Box({"x": (0, 1)}), samples=2000)
    >>> report.passed, report.epsilon_lower(1e-5) < report.claimed.epsilon(1e-5)
    (True, True)
    """

    subject: str
    neighbours: str
    claimed: TradeOffCurve | None
    samples: int
    false_alarm: float
    tests: tuple[AuditTest, ...]
    points: tuple[AuditPoint, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether no test raised an alarm."""
        return not self.alarms

    @property
    def alarms(self) -> tuple[AuditTest, ...]:
        """The tests that raised an alarm."""
        return tuple(test for test in self.tests if test.alarm)

    @property
    def confidence(self) -> float:
        """Probability with which the limits of all points hold together, and with them `epsilon_lower`."""
        return 1.0 - self.false_alarm

    def epsilon_lower(self, delta: float) -> float:
        """Return the epsilon that the samples prove: with `confidence`, the mechanism has no smaller one.

        Parameters
        ----------
        delta : float
            In [0, 1].

        Returns
        -------
        float
            Largest log((power - delta) / alpha) over all events, in both directions, at their confidence limits;
            0 if they prove nothing. Privacy may be worse than this: samples see only what their events show.
        """
        delta = check_number("delta", delta, 0.0, 1.0)
        best = 0.0
        for p in self.points:
            alpha, miss = (p.beta_high, p.alpha_high) if p.swapped else (p.alpha_high, p.beta_high)
            power = 1.0 - miss - delta
            if power > 0 and alpha > 0:
                best = max(best, math.log(power) - math.log(alpha))
        return best

    def __str__(self) -> str:
        lines = [f"audit of {self.subject}: {self._verdict()}", f"neighbours: {self.neighbours}"]
        lines.append(
            f"{len(self.tests)} tests on {self.samples} outputs of each input; a correct mechanism raises an alarm "
            f"with probability at most {self.false_alarm:g}"
        )
        if self.points:
            proved = ", ".join(f"epsilon >= {self.epsilon_lower(d):.3g} at delta = {d:g}" for d in (0.0, 1e-5))
            lines.append(f"the samples prove {proved}")
        lines.append("")
        groups: dict[str, list[AuditTest]] = {}
        for test in self.tests:
            groups.setdefault(test.meaning, []).append(test)
        wide = max(map(len, ["looked for", *groups]))
        lines.append(f"{'looked for':<{wide}}{'tests':>7}  result")
        for meaning, tests in groups.items():
            alarms = sum(test.alarm for test in tests)
            lines.append(f"{meaning:<{wide}}{len(tests):>7}  {f'{alarms} ALARM' if alarms else 'not found'}")
        for tests in groups.values():
            alarmed = [test for test in tests if test.alarm]
            if alarmed:
                worst = max(alarmed, key=lambda test: test.statistic - test.bound)
                lines += ["", f"ALARM: {worst.meaning}"]
                lines.append(f"clearest in {worst.name}: {worst.statistic:.4g}, where {worst.bound:.4g} is allowed")
        if self.alarms:
            lines += ["", "AuditReport.table(), or --every-test, lists every test."]
        return "\n".join(lines)

    def _verdict(self) -> str:
        count = len(self.alarms)
        return "no alarm" if not count else f"{count} ALARM{'S' if count > 1 else ''}"

    def table(self) -> str:
        """Return every test as a line of text: what was seen, what is allowed, and its share of false alarms.

        A statistic is a distance or a difference of probabilities, and raises an alarm above what is allowed. For an
        event of the trade-off curve it is how far the error rates that the samples prove lie below the claimed
        curve: negative where they lie above it.
        """
        wide = max([len(test.name) for test in self.tests], default=4)
        lines = [f"{'test':<{wide}}{'seen':>12}{'allowed':>12}{'false alarm':>13}  result"]
        for test in self.tests:
            share = f"{test.share:.1e}" if test.share else "never"
            result = f"ALARM: {test.meaning}" if test.alarm else "passed"
            lines.append(f"{test.name:<{wide}}{test.statistic:>12.4g}{test.bound:>12.4g}{share:>13}  {result}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain numbers, strings and lists, ready for JSON."""
        from dataclasses import asdict

        return {
            "subject": self.subject,
            "neighbours": self.neighbours,
            "claimed": None if self.claimed is None else self.claimed.to_dict(),
            "samples": self.samples,
            "false_alarm": self.false_alarm,
            "passed": self.passed,
            "tests": [asdict(test) for test in self.tests],
            "points": [asdict(point) for point in self.points],
            "epsilon_lower": [{"delta": d, "epsilon": self.epsilon_lower(d)} for d in (0.0, 1e-5, 1e-3)],
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the claimed curve and the points with their confidence boxes; return the axes.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default. `privfit.figures.plot_audit` draws both kinds of axes.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            If no curve was claimed.
        """
        if self.claimed is None:
            raise ValueError("this audit compared noise with its law; there is no curve to draw.")
        drawn = self.claimed.plot(ax, label="claimed curve")
        low, high = self.errors()
        x, y = [p.alpha for p in self.points], [p.beta for p in self.points]
        bars: dict[str, Any] = {"xerr": [low[0], high[0]], "yerr": [low[1], high[1]]}
        drawn.errorbar(x, y, **bars, fmt="o", markersize=3, label="seen, with limits")
        drawn.set_title(f"{self.subject}: {self._verdict()}", fontsize="medium")
        drawn.legend()
        return drawn

    def errors(self) -> tuple[list[list[float]], list[list[float]]]:
        """Return how far the boxes reach below and above the points, for alpha and beta."""
        low = [[p.alpha - p.alpha_low for p in self.points], [p.beta - p.beta_low for p in self.points]]
        high = [[p.alpha_high - p.alpha for p in self.points], [p.beta_high - p.beta for p in self.points]]
        return low, high
