"""Days since 1970-01-01T00:00 UTC, as float64: what dates and times are released as, and the way back.

A count of 1/m-ths of a day is exact as float64 for whole days as long as the days are below 2^53 (86400 * 10^9 is
2^16 times an odd number, so the count of nanoseconds loses nothing), and one correctly rounded division follows.
"""

from __future__ import annotations

import sys
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfit.accounting.validation import check_array, check_choice

__all__ = ["array_days", "cell_days", "days_to_datetimes", "parameter_days"]

Floats = NDArray[np.float64]

_EPOCH = datetime(1970, 1, 1)
_DAY = timedelta(days=1)
_PER_DAY = {"D": 1, "h": 24, "m": 1440, "s": 86400} | {
    unit: 86400 * 1000**power for power, unit in enumerate(("ms", "us", "ns", "ps", "fs", "as"), start=1)
}
_FARTHEST = 10**6
"""Calendar units (years, months) beyond this many are clipped to it: as days they would overflow."""


def array_days(values: NDArray[Any]) -> Floats:
    """Return the days of an array of datetime64 of any unit, NaT as nan; total.

    Parameters
    ----------
    values : ndarray of datetime64

    Returns
    -------
    ndarray of float64, same shape

    Examples
    --------
    >>> array_days(np.array(["1970-01-01T12", "2000-03-01T00"], dtype="datetime64[h]"))
    array([5.0000e-01, 1.1017e+04])
    """
    unit, count = np.datetime_data(values.dtype)
    counts = values.astype(values.dtype.newbyteorder("=")).view(np.int64)
    missing = counts == np.iinfo(np.int64).min
    if unit in ("Y", "M"):
        far = _FARTHEST // count
        whole = np.clip(counts, -far, far) * count
        days = whole.view(f"datetime64[{unit}]").astype("datetime64[D]").view(np.int64).astype(np.float64)
    elif unit == "generic":
        days = np.full(counts.shape, np.nan)
    else:
        share = Fraction(7 * count) if unit == "W" else Fraction(count, _PER_DAY[unit])
        days = counts.astype(np.float64) * float(share.numerator) / float(share.denominator)
    return np.where(missing, np.nan, days)


def parameter_days(name: str, value: Any) -> float:
    """Return the days of a declared date, or raise ValueError for NaT.

    Parameters
    ----------
    name : str
        For the message.
    value : date, datetime, numpy.datetime64 or pandas.Timestamp
        With a time zone, the moment; without one, UTC.

    Examples
    --------
    >>> parameter_days("lower", date(1970, 1, 11))
    10.0
    """
    days = float(array_days(np.array([value]))[0]) if isinstance(value, np.datetime64) else _days(value)
    if not np.isfinite(days):
        raise ValueError(f"{name} must be a date, got {value}.")
    return days


def cell_days(value: Any) -> float:
    """Return the days of a cell that holds a date or a time; total, nan for anything else.

    Examples
    --------
    >>> cell_days(datetime(1970, 1, 2, 6)), cell_days("1970-01-02")
    (1.25, nan)
    """
    kind = type(value)
    if kind is np.datetime64:
        return float(array_days(np.array([value]))[0])
    pandas = sys.modules.get("pandas")
    # Only these types, not what derives from them: a cell must run no code of its own.
    if kind is not date and kind is not datetime and (pandas is None or kind is not pandas.Timestamp):
        return np.nan
    try:
        return _days(value)
    except Exception:  # a time zone is an object, too
        return np.nan


def _days(value: Any) -> float:
    if not isinstance(value, datetime):
        return float(value.toordinal() - _EPOCH.toordinal())
    if value != value:  # NaT is a datetime
        return np.nan
    offset = value.utcoffset()
    # By differences: the moment itself may lie outside the years that a datetime can hold.
    return float((value.replace(tzinfo=None) - _EPOCH - (offset or timedelta(0))) / _DAY)


def days_to_datetimes(days: ArrayLike, unit: str = "D") -> NDArray[np.datetime64]:
    """Turn released days into dates: for the analyst, after the release, at no cost of privacy.

    Parameters
    ----------
    days : array_like
        Days since 1970-01-01T00:00 UTC, as a date column is released.
    unit : {"D", "h", "m", "s", "ms", "us", "ns"}
        Unit of the result; each value goes to the nearest one.

    Returns
    -------
    ndarray of datetime64[unit], same shape

    Raises
    ------
    ValueError
        If a value is nan or beyond what the unit can hold (with "ns", the years 1678 to 2261).

    Examples
    --------
    >>> days_to_datetimes([0.4, 11017.0])
    array(['1970-01-01', '2000-03-01'], dtype='datetime64[D]')
    >>> days_to_datetimes([0.75], unit="h")
    array(['1970-01-01T18'], dtype='datetime64[h]')
    """
    per_day = _PER_DAY[check_choice("unit", unit, ("D", "h", "m", "s", "ms", "us", "ns"))]
    # as int64 with room for the rounding, and short of the years that numpy cannot print
    most = min((2.0**63 - 2.0**50) / per_day, 1e9)
    values = check_array("days", days, -most, most, hint="Take a coarser unit, or clip the values.")
    whole = np.floor(values)
    parts = np.rint((values - whole) * per_day).astype(np.int64)
    counts = whole.astype(np.int64) * per_day + parts
    return np.asarray(counts.view(f"datetime64[{unit}]"))
