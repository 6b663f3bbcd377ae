"""Argument checks shared by every layer.

One sentence names the parameter, the value, the allowed range and the next step. Scalars given by the
caller may appear in a message; values of a data set never do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["check_array", "check_choice", "check_integer", "check_number", "describe_range"]

Floats = NDArray[np.float64]
LARGEST = 2**63 - 1  # what an array of integers can hold, and far below the largest float


def describe_range(low: float, high: float, low_open: bool, high_open: bool) -> str:
    """Write an interval the way people read it, for error messages."""
    if low == -math.inf and high == math.inf:
        return "a finite number"
    if high == math.inf:
        return f"a finite number {'>' if low_open else '>='} {low:g}"
    if low == -math.inf:
        return f"a finite number {'<' if high_open else '<='} {high:g}"
    return f"a number in {'(' if low_open else '['}{low:g}, {high:g}{')' if high_open else ']'}"


def check_number(
    name: str,
    value: Any,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    low_open: bool = False,
    high_open: bool = False,
    hint: str = "",
) -> float:
    """Return `value` as a finite float inside the interval, or raise.

    Parameters
    ----------
    name : str
        Name of the parameter, for the message.
    value : object
        What the caller passed.
    low, high : float
        The allowed interval; infinite ends are never allowed as values.
    low_open, high_open : bool
        Whether the ends themselves are excluded.
    hint : str
        One sentence that says what to do instead.

    Returns
    -------
    float

    Raises
    ------
    TypeError
        If `value` is not a real number (booleans and strings are not).
    ValueError
        If `value` is nan, infinite or outside the interval.

    Examples
    --------
    >>> check_number("delta", 1e-5, 0, 1)
    1e-05
    """
    wanted = describe_range(low, high, low_open, high_open)
    tail = f" {hint}" if hint else ""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} must be {wanted}, got {type(value).__name__}.{tail}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    below = number <= low if low_open else number < low
    above = number >= high if high_open else number > high
    if not math.isfinite(number) or below or above:
        raise ValueError(f"{name} must be {wanted}, got {number!r}.{tail}")
    return number


def check_integer(name: str, value: Any, low: int, high: int | None = None, *, hint: str = "") -> int:
    """Return `value` as an int inside [low, high], or raise (see `check_number`); below 2^63 if `high` is None.

    Examples
    --------
    >>> check_integer("dim", 3, 1)
    3
    """
    wanted = f"an integer >= {low}" if high is None else f"an integer in [{low}, {high}]"
    tail = f" {hint}" if hint else ""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be {wanted}, got {type(value).__name__}.{tail}")
    number = int(value)
    if high is None and number > LARGEST:
        wanted += " and below 2^63"
    if not low <= number <= (LARGEST if high is None else high):
        sign, size = "-" if number < 0 else "", number.bit_length()
        # Python refuses to write out integers of thousands of digits, and nobody would read them
        shown = str(number) if size <= 64 else f"one of size {sign}2^{size - 1}"
        raise ValueError(f"{name} must be {wanted}, got {shown}.{tail}")
    return number


def check_choice(name: str, value: Any, choices: Iterable[Any], *, hint: str = "") -> Any:
    """Return `value` if it is one of `choices`, or raise ValueError naming them.

    Examples
    --------
    >>> check_choice("bound", "upper", ("upper", "lower", "estimate"))
    'upper'
    """
    allowed = list(choices)
    if not any(type(value) is type(choice) and value == choice for choice in allowed):
        listed = ", ".join(repr(choice) for choice in allowed)
        raise ValueError(f"{name} must be one of {listed}, got {value!r}.{f' {hint}' if hint else ''}")
    return value


def check_array(
    name: str, value: ArrayLike, low: float = -math.inf, high: float = math.inf, *, hint: str = ""
) -> Floats:
    """Return `value` as a float64 array with every entry in [low, high] and none nan, or raise.

    Infinite entries are allowed where the interval includes them (the default does); masked ones never are.

    Examples
    --------
    >>> check_array("alpha", [0, 0.5, 1], 0, 1)
    array([0. , 0.5, 1. ])
    """
    tail = f" {hint}" if hint else ""
    if np.ma.is_masked(value):
        raise ValueError(f"{name} must have no masked entries; drop them or fill them in.{tail}")
    try:
        raw = np.asarray(value)
    except ValueError as error:
        raise ValueError(
            f"{name} must be a rectangular array, got rows that differ in length; pad them.{tail}"
        ) from error
    if raw.dtype.kind not in "iuf":
        raise TypeError(f"{name} must hold real numbers, got dtype {raw.dtype}.{tail}")
    array = raw.astype(np.float64)
    bad = np.isnan(array) | (array < low) | (array > high)
    if bad.any():
        first = array[bad].flat[0]
        wanted = "not nan" if (low, high) == (-math.inf, math.inf) else describe_range(low, high, False, False)
        raise ValueError(f"{name} must be {wanted}, got {first!r}.{tail}")
    return array
