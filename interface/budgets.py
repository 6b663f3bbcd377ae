r"""Dividing a record's budget between a table's labels and its numeric columns.

Labels by randomised response with epsilon_j each, numbers by one additive law: if the numbers are
(e, d)-private, the row is (e + sum epsilon_j, d)-private. The numeric sampler's slack eta is charged at the
row's epsilon, so the law must meet d = delta - (1 + e^epsilon) eta.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from privfit.accounting.validation import check_number

if TYPE_CHECKING:
    from privfit.accounting import Budget
    from privfit.mechanisms import Box

__all__ = ["numeric_budget"]


def numeric_budget(epsilon: float, delta: float, labels: Sequence[float], box: Box) -> Budget:
    """Return what is left of a record's budget for the numeric columns.

    Parameters
    ----------
    epsilon, delta : float
        Budget of the whole record.
    labels : sequence of floats
        Epsilon of every label of the record.
    box : Box
        The numeric columns.

    Returns
    -------
    Budget
        To be handed to ``calibrate`` of an additive law on `box`.

    Raises
    ------
    ValueError
        If the labels use up epsilon, or the slack of floating-point noise uses up delta.

    Examples
    --------
    >>> from privfit.mechanisms import Box
    >>> numeric_budget(8.0, 1e-5, [2.0], Box({"age": (17, 90)})).epsilon
    6.0
    """
    from privfit.accounting import Budget
    from privfit.mechanisms import Gaussian

    total = Budget(epsilon, delta)
    spent = sum(check_number("the epsilon of a label", e, 0.0, low_open=True) for e in labels)
    if spent >= total.epsilon:
        raise ValueError(
            f"the labels must leave some of epsilon = {epsilon:g} for the numeric columns, "
            f"they take {spent:g}. Lower the labels' epsilon or raise the total."
        )
    rest = total.epsilon - spent
    eta = Gaussian(1.0).slack(box)
    # `calibrate` itself charges the slack at the numeric epsilon; the rest is charged here.
    left = total.delta - eta * (math.exp(min(total.epsilon, 700.0)) - math.exp(min(rest, 700.0)))
    if left <= eta * (1.0 + math.exp(min(rest, 700.0))):
        needed = eta * (1.0 + math.exp(min(total.epsilon, 700.0)))
        raise ValueError(
            f"delta must be > {needed:.2g} at epsilon = {epsilon:g}, got {delta:g}: that much is the "
            "numerical slack of floating-point noise. Raise delta, or lower epsilon."
        )
    return Budget(rest, left)
