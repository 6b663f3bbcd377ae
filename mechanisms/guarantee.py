"""What a release promises: the trade-off curve between neighbours, at record and at attribute level.

The curves are those of the stated law, lowered by the slack eta of the floating-point sampler:
f(alpha + eta) - eta, delta(eps) + (1 + e^eps) eta.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privfit.mechanisms.calibration import check_releases, repeated
from privfit.mechanisms.domains import as_domains
from privfit.mechanisms.slack import charged_delta, charged_epsilon, charged_miss

if TYPE_CHECKING:
    from privfit.accounting import TradeOffCurve
    from privfit.mechanisms.law import Law

__all__ = ["Guarantee"]

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
DELTAS = (1e-3, 1e-5, 1e-7)
ALPHAS = (0.001, 0.01, 0.1)


@dataclass(frozen=True)
class Guarantee:
    """Trade-off curves of a release, slack included.

    Attributes
    ----------
    record_law, attribute_law : TradeOffCurve
        Curves of the stated law for neighbours that differ in a whole row, or in one column of one row.
    slack : float
        eta, the total variation per row between the sampler and the stated law.
    exact_fraction : float
        Probability that a row, or one of its parts, comes out without noise.
    releases : int
        Number of releases of the same records that the curves cover together.

    Examples
    --------
    >>> from privfit.mechanisms import Box, Gaussian
    >>> promise = Gaussian(4.0).guarantee(Box({"x": (0, 1), "y": (0, 1)}))
    >>> round(promise.record.epsilon(1e-5), 3), round(promise.attribute.epsilon(1e-5), 3)
    (1.356, 0.926)
    """

    record_law: TradeOffCurve
    attribute_law: TradeOffCurve
    slack: float
    exact_fraction: float
    releases: int = 1

    @classmethod
    def of(cls, law: Law, domain: Any, releases: int = 1) -> Guarantee:
        """Return the guarantee of a law on a domain.

        Parameters
        ----------
        law : Law
        domain : Box, Ball, Categories or tuple of them
        releases : int
            Releases of the same records under this law, each with new noise.
        """
        parts, count = as_domains(domain), check_releases(releases)
        where = parts[0] if len(parts) == 1 else parts
        record, attribute = (repeated(law.tradeoff(where, level), count) for level in ("record", "attribute"))
        exact = law.exact_fraction if count == 1 else 1.0 - (1.0 - law.exact_fraction) ** count
        return cls(record, attribute, count * law.slack(where), exact, count)

    @property
    def record(self) -> TradeOffCurve:
        """Curve between neighbours that differ in a whole row, slack included."""
        from privfit.accounting import shifted

        return shifted(self.record_law, self.slack)

    @property
    def attribute(self) -> TradeOffCurve:
        """Curve between neighbours that differ in one column of one row, slack included."""
        from privfit.accounting import shifted

        return shifted(self.attribute_law, self.slack)

    def deltas(self, epsilons: Sequence[float] = EPSILONS) -> list[dict[str, float]]:
        """Return [{"epsilon", "record", "attribute"}]: the smallest delta at each epsilon, safe side.

        Parameters
        ----------
        epsilons : increasing sequence of floats
        """
        columns = [charged_delta(c, epsilons, self.slack) for c in (self.record_law, self.attribute_law)]
        return [{"epsilon": float(e), "record": r, "attribute": a} for e, r, a in zip(epsilons, *columns, strict=True)]

    def epsilons(self, deltas: Sequence[float] = DELTAS) -> list[dict[str, float]]:
        """Return [{"delta", "record", "attribute"}]: the smallest epsilon at each delta, or inf.

        Parameters
        ----------
        deltas : sequence of floats in (0, 1)
        """
        return [
            {
                "delta": float(d),
                "record": charged_epsilon(self.record_law, d, self.slack),
                "attribute": charged_epsilon(self.attribute_law, d, self.slack),
            }
            for d in deltas
        ]

    def __str__(self) -> str:
        together = f"{self.releases} releases together" if self.releases > 1 else ""
        lines = [f"{together:34}{'record':>12}{'attribute':>12}"]
        for row in self.deltas():
            lines.append(_line(f"delta at epsilon = {row['epsilon']:g}", row["record"], row["attribute"]))
        for row in self.epsilons():
            lines.append(_line(f"epsilon at delta = {row['delta']:g}", row["record"], row["attribute"]))
        for alpha in ALPHAS:
            label = f"attack's misses at {alpha:.1%} false alarms"
            misses = [charged_miss(c, alpha, self.slack) for c in (self.record_law, self.attribute_law)]
            lines.append(_line(label, *misses))
        (best,) = self.deltas((0.0,))
        lines.append(_line("largest advantage of an attack", best["record"], best["attribute"]))
        lines.append(f"{'numerical slack per row (included)':<34}{self.slack:>12.3g}{self.slack:>12.3g}")
        return "\n".join(lines)


def _line(label: str, record: float, attribute: float) -> str:
    cells = ("none" if value == float("inf") else f"{value:.6g}" for value in (record, attribute))
    return f"{label:<34}" + "".join(f"{cell:>12}" for cell in cells)
