"""A domain as numeric columns and labels, and the smallest noise of one kind for a target.

Scales are calibrated to a stated tolerance, on the safe side.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from privfit.mechanisms import Ball, Box, Categories, Laplace, Law, Product, RandomizedResponse
from privfit.mechanisms.calibration import calibrate_scale, laws_by_size
from privfit.mechanisms.domains import as_domains

__all__ = ["COARSE", "FINE", "Parts", "as_box", "calibrated"]

COARSE, FINE = 1e-3, 1e-6
"""Relative tolerances of scales: while laws are compared (without the sampler's slack), and of the chosen one."""
_SMALL = 1e-4
"""Below this delta, composing the coordinates of Laplace noise exactly gains less than adding their epsilons loses
(0.03 % at delta = 1e-5 and six columns)."""


@dataclass(frozen=True)
class Parts:
    """A domain as one set of numeric columns (or none) and label columns.

    Examples
    --------
    >>> Parts.of(Box({"x": (0, 1)})).labels
    {}
    """

    numeric: Box | Ball | None
    labels: dict[Any, Categories]

    @classmethod
    def of(cls, domain: Any) -> Parts:
        """Read a domain.

        Raises
        ------
        ValueError
            If it has a Ball beside other numeric columns.
        """
        parts = as_domains(domain)
        numbers = [part for part in parts if not isinstance(part, Categories)]
        labels = {c: part.select((c,)) for part in parts if isinstance(part, Categories) for c in part.columns}
        if len(numbers) > 1 and any(isinstance(part, Ball) for part in numbers):
            raise ValueError("domain must be one Box or one Ball, beside Categories: plan the others separately.")
        if not numbers:
            return cls(None, labels)
        if isinstance(numbers[0], Ball):
            return cls(numbers[0], labels)
        # Bounds alone: how cells are encoded as numbers does not matter to a scale.
        return cls(Box({c: pair for part in numbers for c, pair in _bounds(part)}), labels)

    def law(self, numeric: Law | None, epsilon: float | None) -> Law:
        """Return the law of the record: `numeric` for the numbers, randomised response for each label."""
        laws: dict[Any, Law] = {}
        if numeric is not None and self.numeric is not None:
            laws[tuple(self.numeric.columns)] = numeric
        for column, own in self.labels.items():
            assert epsilon is not None
            laws[column] = RandomizedResponse(epsilon, len(own.labels[0]))
        return Product(laws)


def _bounds(part: Any) -> Iterable[tuple[Any, tuple[float, float]]]:
    return zip(part.columns, part.intervals, strict=True)


def as_box(where: Any) -> Box:
    """Return the box around a ball, or the box itself.

    Examples
    --------
    >>> as_box(Ball(2.0, 1)).intervals
    ((-2.0, 2.0),)
    """
    return where if isinstance(where, Box) else Box(dict.fromkeys(where.columns, (-where.radius, where.radius)))


def calibrated(
    cls: Any, parameters: tuple[tuple[str, Any], ...], target: Any, where: Any, protect: str, rtol: float
) -> Any:
    """Return the law of smallest noise that meets a target; found laws are kept, they are asked for again and again.

    Parameters
    ----------
    cls : class of laws
    parameters : tuple of (str, value)
        Sorted; for instance the shape.
    target : Budget, GDP, Advantage, ErrorRates or TradeOffCurve
    where : Box or Ball
    protect : {"record", "attribute"}
    rtol : float
        `COARSE` or `FINE`.

    Examples
    --------
    >>> from privfit.accounting import Budget
    >>> calibrated(Laplace, (), Budget(2.0, 1e-6), Box({"x": (0, 1), "y": (0, 4)}), "record", FINE)
    Laplace(scale=(1.0, 4.0))
    """
    try:
        hash(target)
    except TypeError:  # a curve that holds arrays
        return _anew(cls, parameters, target, where, protect, rtol)
    return _once(cls, parameters, target, where, protect, rtol)


def _anew(cls: Any, parameters: tuple[tuple[str, Any], ...], target: Any, where: Any, protect: str, rtol: float) -> Any:
    from privfit.accounting import Budget, calibrate

    added = cls is Laplace and isinstance(target, Budget) and target.delta > 0 and protect == "record"
    if added and (target.delta <= _SMALL or (rtol == COARSE and where.dim > 1)):
        law = _by_adding(target.epsilon, where)
        if law.slack(where) * (1.0 + math.exp(min(target.epsilon, 700.0))) < target.delta:
            return law
    if rtol == FINE:
        return calibrate_scale(cls, target, where, protect, None, dict(parameters), rtol=rtol)
    # Laws that are only compared need not be charged the sampler's slack, which takes most of the time.
    make = laws_by_size(cls, where, None, dict(parameters))
    start = make(1.0).shift(where, protect)
    return make(calibrate(lambda size: make(size).tradeoff(where, protect), target, rtol=rtol, start=start))


_once = functools.lru_cache(maxsize=512)(_anew)


def _by_adding(epsilon: float, where: Any) -> Laplace:
    """Laplace noise whose coordinates share epsilon equally: pure epsilon-DP of the record.

    A coordinate of scale b loses |x_j - x_j'| / b_j: r_j / b_j on a box, and all together at most
    ``sqrt(d) 2R / b`` on a ball.
    """
    if isinstance(where, Box):
        scales = where.ranges * (where.dim / epsilon)
        return Laplace(tuple(scales.tolist()) if where.dim > 1 else float(scales[0]))
    return Laplace(math.sqrt(where.dim) * 2.0 * where.radius / epsilon)
