"""The declared columns of ``privfit release``: their domain, and how a budget is divided between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import Any

__all__ = ["column_domain", "column_laws", "number_box", "read_fills", "split_text"]

LABEL_SHARE = 0.15


def column_laws(
    box: Any,
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
    box : Box or None
        Of the columns of numbers.
    labels : dict
        Columns of labels and what they may hold.
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
    >>> column_laws(None, {"income": ["low", "high"]}, 2.0, 0.0, None, "best", None, None, "record")
    {'income': RandomizedResponse(epsilon=2.0, categories=2)}
    """
    from privfit.accounting import Budget
    from privfit.accounting.validation import check_number
    from privfit.cli_calibrate import calibrate_law
    from privfit.mechanisms import RandomizedResponse, remaining_budget

    check_number("--epsilon", epsilon, 0.0, low_open=True)
    Budget(epsilon, delta)
    if label_epsilon is None:
        whole = epsilon / len(labels) if labels and box is None else round(LABEL_SHARE * epsilon, 12)
        share = epsilon if protect == "attribute" else whole
    else:
        share = check_number("--label-epsilon", label_epsilon, 0.0, epsilon, low_open=True)
    spent = [share] * len(labels) if protect == "record" else []
    laws: dict[Any, Any] = {name: RandomizedResponse(share, len(values)) for name, values in labels.items()}
    if box is not None:
        target = remaining_budget(epsilon, delta, spent, box)
        laws = {box.columns: calibrate_law(mechanism, target, box, protect, shape, delta0), **laws}
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


def read_fills(
    fills: Iterable[str], bounds: Mapping[str, tuple[Any, Any]], labels: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Read NAME:VALUE, what a missing cell of a declared column counts as.

    Parameters
    ----------
    fills : iterable of str
    bounds, labels : mapping
        What `read_bounds` and `read_labels` read.

    Returns
    -------
    dict
        A number or a date; of a label its position.

    Raises
    ------
    ValueError
        For a column that is not declared or comes twice, or a value outside its bounds or labels.

    Examples
    --------
    >>> read_fills(["age:40", "school:some"], {"age": (17.0, 90.0)}, {"school": ["none", "some"]})
    {'age': 40.0, 'school': 1}
    """
    found: dict[str, Any] = {}
    names = sorted((*bounds, *labels), key=len, reverse=True)
    for text in fills:
        name = next((own for own in names if text.startswith(f"{own}:")), None)
        if name is None or name in found:
            raise ValueError(
                "--fill must be NAME:VALUE, once for each column that --column, --ordered or --label names, "
                f"got {text!r}."
            )
        value = text[len(name) + 1 :].strip()
        if name in bounds:
            found[name] = _between(text, value, *bounds[name])
        elif value in labels[name]:
            found[name] = labels[name].index(value)
        else:
            raise ValueError(f"--fill must be one of the labels {', '.join(labels[name])} of its column, got {text!r}.")
    return found


def _between(text: str, value: str, low: Any, high: Any) -> Any:
    number: Any = None
    with suppress(ValueError):
        number = float(value) if isinstance(low, float) else date.fromisoformat(value)
    if number is None or not low <= number <= high:
        kind = "number" if isinstance(low, float) else "date"
        raise ValueError(f"--fill must be a {kind} between the bounds of its column, {low} and {high}, got {text!r}.")
    return number


def number_box(
    bounds: Mapping[str, tuple[Any, Any]], ordered: Mapping[str, Sequence[Any]], fills: Mapping[str, Any]
) -> Any:
    """Return the box of columns of numbers, and of labels that become the numbers 0, 1, ...; None of no columns.

    Parameters
    ----------
    bounds : mapping
    ordered : mapping
        Columns of labels with an order, in the types of their columns.
    fills : mapping
        What `read_fills` returned.

    Examples
    --------
    >>> number_box({"age": (17.0, 90.0)}, {"school": ["none", "some", "degree"]}, {"age": 40.0}).fill
    (40.0, 1.0)
    """
    from privfit.mechanisms import Box

    if not bounds and not ordered:
        return None
    for name, values in ordered.items():
        if len(set(values)) < len(values):
            raise ValueError(f"the labels of --ordered {name} must be distinct.")
    whole = {**bounds, **{name: (0, len(values) - 1) for name, values in ordered.items()}}
    encoding = {name: {label: code for code, label in enumerate(values)} for name, values in ordered.items()}
    # as a label: where labels are whole numbers, a position could be taken for another label
    chosen = {name: ordered[name][own] if name in ordered else own for name, own in fills.items() if name in whole}
    return Box(whole, chosen, encoding)


def column_domain(box: Any, labels: Mapping[str, Sequence[Any]], fills: Mapping[str, Any]) -> Any:
    """Return the declared domain of all columns.

    Examples
    --------
    >>> box = number_box({"age": (17.0, 90.0)}, {}, {})
    >>> column_domain(box, {"income": ["low", "high"]}, {"income": 1})[1].fill
    ('high',)
    """
    from privfit.mechanisms import Categories

    chosen = {name: values[fills[name]] for name, values in labels.items() if name in fills}
    return (*([] if box is None else [box]), *([Categories(labels, chosen)] if labels else []))
