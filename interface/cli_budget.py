"""How ``privfit release`` divides a budget between columns."""

from __future__ import annotations

from typing import Any

__all__ = ["column_domain", "column_laws", "split_text"]

LABEL_SHARE = 0.15


def column_laws(
    bounds: dict[str, tuple[float, float]],
    labels: dict[str, list[str]],
    epsilon: float,
    delta: float,
    label_epsilon: float | None,
    mechanism: str,
    shape: int | None,
    delta0: float | None,
    protect: str,
) -> dict[Any, Any]:
    """Divide the budget and calibrate: laws by columns.

    Parameters
    ----------
    bounds, labels : dict
        Numeric columns and their bounds, columns of labels and what they may hold.
    epsilon, delta : float
        For a whole record, or for each column at attribute level.
    label_epsilon : float, optional
        Of each column of labels.
    mechanism, shape, delta0, protect
        Options of ``privfit release``.

    Returns
    -------
    dict

    Examples
    --------
    >>> column_laws({}, {"income": ["low", "high"]}, 2.0, 0.0, None, "best", None, None, "record")
    {'income': RandomizedResponse(epsilon=2.0, categories=2)}
    """
    from privfit.accounting import Budget
    from privfit.accounting.validation import check_number
    from privfit.cli_calibrate import calibrate_law
    from privfit.mechanisms import Box, RandomizedResponse, remaining_budget

    check_number("--epsilon", epsilon, 0.0, low_open=True)
    Budget(epsilon, delta)
    if label_epsilon is None:
        whole = epsilon / len(labels) if labels and not bounds else round(LABEL_SHARE * epsilon, 12)
        share = epsilon if protect == "attribute" else whole
    else:
        share = check_number("--label-epsilon", label_epsilon, 0.0, epsilon, low_open=True)
    spent = [share] * len(labels) if protect == "record" else []
    laws: dict[Any, Any] = {name: RandomizedResponse(share, len(values)) for name, values in labels.items()}
    if bounds:
        box = Box(bounds)
        target = remaining_budget(epsilon, delta, spent, box)
        laws = {tuple(bounds): calibrate_law(mechanism, target, box, protect, shape, delta0), **laws}
    elif sum(spent) > epsilon * (1 + 1e-12):
        raise ValueError(f"the labels take epsilon = {sum(spent):g} together, more than {epsilon:g}; lower it.")
    return laws


def split_text(numbers: list[str], labels: dict[str, float], epsilon: float, delta: float, protect: str) -> str:
    """Say in one sentence how the budget is divided between the columns.

    Examples
    --------
    >>> split_text(["age"], {}, 2.0, 1e-6, "record")
    'Split of epsilon = 2: the number age takes all of it, with delta = 1e-06.'
    """
    taken = [f"label {name} takes epsilon = {own:.6g}" for name, own in labels.items()]
    if protect == "attribute":
        taken += [f"number {name} takes epsilon = {epsilon:.6g} with delta = {delta:g}" for name in numbers]
        return f"Budget of each single column: {', '.join(taken)}."
    if numbers:
        left = f"the remaining epsilon = {epsilon - sum(labels.values()):.6g}" if labels else "all of it"
        who = "the numbers {} together take" if len(numbers) > 1 else "the number {} takes"
        taken.append(f"{who.format(', '.join(numbers))} {left}, with delta = {delta:g}")
    return f"Split of epsilon = {epsilon:g}: {', '.join(taken)}."


def column_domain(bounds: dict[str, tuple[float, float]], labels: dict[str, list[Any]]) -> Any:
    """Return the declared domain of all columns.

    Examples
    --------
    >>> len(column_domain({"age": (17.0, 90.0)}, {"income": ["low", "high"]}))
    2
    """
    from privfit.mechanisms import Box, Categories

    parts = ([Box(bounds)] if bounds else []) + ([Categories(labels)] if labels else [])
    return tuple(parts)
