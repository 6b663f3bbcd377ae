"""One mechanism of a plan: its law and what it costs, or why it cannot serve."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.diagnostics import round_up
from privfit.estimators.plan_code import release_code
from privfit.estimators.plan_errors import Prediction

if TYPE_CHECKING:
    from privfit.mechanisms import Law

__all__ = ["LARGEST_N", "PlanRow", "count_text", "law_text"]

Floats = NDArray[np.float64]
LARGEST_NEED = 10**9
LARGEST_N = 10**15


@dataclass(frozen=True, eq=False)
class PlanRow:
    """One mechanism of a plan.

    Attributes
    ----------
    mechanism : str
    law : Law or None
        What to release with; None if the mechanism cannot serve.
    reason : str
        Why not.
    standard_errors : ndarray, shape (p,)
        At the planned n, in the units of the data.
    wanted : float
        The standard error that decides: of the chosen coefficient, or the geometric mean over the slopes.
    factor : float
        `wanted` over the same of the raw data.
    n_effective : float
        Raw records that would estimate as well: ``n / factor^2``.
    exact_records : float
        Expected number of records that come out without noise.
    n : int
        Records that are planned.
    monte_carlo : float
        Relative standard error of the prediction from its random draws; 0 where it is exact for the design.
    bandwidth : float
        Smoothing of a check loss at this n, in the units of the response (0: none).
    columns, public : tuple
        Columns that are released under the law, and those that are published as they are.

    Examples
    --------
    >>> PlanRow("gaussian", None, "no formula").law is None
    True
    """

    mechanism: str
    law: Law | None
    reason: str = ""
    standard_errors: Floats = field(default_factory=lambda: np.empty(0))
    wanted: float = math.inf
    factor: float = math.inf
    n_effective: float = 0.0
    exact_records: float = 0.0
    n: int = 0
    monte_carlo: float = 0.0
    bandwidth: float = 0.0
    columns: tuple[Any, ...] = ()
    public: tuple[Any, ...] = ()
    predict: Callable[[int], Prediction] | None = field(default=None, repr=False)
    need: Callable[[], float] | None = field(default=None, repr=False)

    @functools.cached_property
    def records_needed(self) -> int:
        """From which n on fits do not warn, but for one in ten (`plan_needed`): predictions are for so many at least.

        Found by trial fits when it is first asked for, which takes seconds.
        """
        return 0 if self.need is None else round_up(min(self.need(), LARGEST_N))

    @property
    def usable(self) -> bool:
        """Whether the planned n is as large."""
        return self.law is not None and self.n >= self.records_needed

    @property
    def release_code(self) -> str:
        """The line of Python that releases a table under this law (`PlanReport.domain`); empty without one."""
        return "" if self.law is None else release_code(self.law, self.columns, self.public)

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain values, ready for JSON (numbers that are not finite as None)."""
        return {
            "mechanism": self.mechanism,
            "law": None if self.law is None else self.law.to_dict(),
            "reason": self.reason,
            "standard_errors": self.standard_errors.tolist(),
            "wanted": _finite(self.wanted),
            "factor": _finite(self.factor),
            "n_effective": self.n_effective,
            "exact_records": self.exact_records,
            "records_needed": self.records_needed,
            "usable": self.usable,
            "monte_carlo": self.monte_carlo,
            "bandwidth": self.bandwidth,
            "release_code": self.release_code,
        }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def count_text(n: int) -> str:
    """Return a number of records, or that it is beyond all tables.

    Examples
    --------
    >>> count_text(12000), count_text(0), count_text(10**14)
    ('12,000', '-', '>1e+09')
    """
    if n == 0:
        return "-"
    return f"{n:,}" if n < LARGEST_NEED else f">{LARGEST_NEED:.0e}"


def law_text(law: Law) -> str:
    """Return a law with short numbers: one scale where it is in proportion, and what decides it.

    Examples
    --------
    >>> from privfit.mechanisms import Product, SymmetricLaplace
    >>> law_text(Product({("a", "b"): SymmetricLaplace((1.0, 2.0), shape=2)}))
    'SymmetricLaplace(scale 1..2, shape 2)'
    """
    texts = []
    for _, own in getattr(law, "items", ((None, law),)):
        facts = []
        if hasattr(own, "scale"):
            scales = np.atleast_1d(own.scale)
            low, high = float(scales.min()), float(scales.max())
            facts.append(f"scale {low:.3g}" if high < 1.001 * low else f"scale {low:.3g}..{high:.3g}")
        facts += [f"{name} {getattr(own, name):.3g}" for name in ("shape", "delta0", "epsilon") if hasattr(own, name)]
        texts.append(f"{type(own).__name__}({', '.join(facts)})")
    return " + ".join(texts)
