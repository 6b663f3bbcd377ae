"""The problem that a planned fit poses for records of a design, and its coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.problem import Problem, Sample, build_problem

__all__ = ["check_identified", "posed", "standard"]

Floats = NDArray[np.float64]


def posed(task: Any, samples: Sequence[Sample], label: bool) -> Problem:
    """Return the problem that a task poses for samples of a design, without bounds.

    Examples
    --------
    >>> posed.__name__
    'posed'
    """
    return build_problem(
        samples,
        correction=task.correction,
        draws=int(task.draws),
        label=label,
        intercept=bool(task.fit_intercept),
        bound=None,
        default_bound=np.inf,
        random_state=0,
    )


def check_identified(curvature: Floats) -> None:
    """Raise for a design whose raw curvature leaves a coefficient free.

    Examples
    --------
    >>> check_identified(np.eye(2))
    """
    values = np.linalg.eigvalsh(curvature)
    if values[0] <= 1e-10 * values[-1]:
        raise ValueError("the design must identify every coefficient: columns are constant or collinear.")


def standard(theta: Floats, problem: Problem, unit: float = 1.0) -> Floats:
    """Return coefficients in the coordinates of a problem; `unit` is that of a rate (see `PoissonRegression`).

    Examples
    --------
    >>> standard.__name__
    'standard'
    """
    own, c = np.array(theta, np.float64), problem.coordinates
    if c.intercept:
        own[0] -= c.response_centre + np.log(unit)
    return np.asarray(np.linalg.solve(c.matrix, own), np.float64)
