"""Real data that comes with the package, for the demo, the examples and the tests.

Adult: six columns of 48,842 records of the 1994 US census; Becker & Kohavi (1996), UCI Machine Learning
Repository, doi 10.24432/C5XW20, licence CC BY 4.0 (see data/README.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from importlib.resources import files
from typing import Any

from privfit.accounting.validation import check_choice

__all__ = ["ADULT_COLUMNS", "load_adult"]

ADULT_COLUMNS = ("age", "education_num", "hours_per_week", "capital_gain", "sex", "income")
KINDS = ("pandas", "polars", "pyarrow", "dict")


def load_adult(kind: str | None = None, columns: Iterable[str] | None = None) -> Any:
    """Return the Adult census extract (Becker & Kohavi 1996, CC BY 4.0).

    Parameters
    ----------
    kind : {"pandas", "polars", "pyarrow", "dict"}, optional
        What to return; "dict" is ``{column: numpy array of shape (48842,)}``. By default a pandas frame if
        pandas is installed, else a polars frame, else a pyarrow table.
    columns : iterable of str, optional
        Some of "age" (years), "education_num" (1 to 16), "hours_per_week" (hours), "capital_gain" (US
        dollars), "sex" and "income" (labels), in the order wanted; all six by default.

    Returns
    -------
    table
        48,842 rows, none of them missing.

    Raises
    ------
    ValueError
        If `kind` or a column is unknown, or no column is asked for.
    ModuleNotFoundError
        If the library of `kind` is not installed.

    References
    ----------
    Becker, B. and Kohavi, R. (1996). Adult. UCI Machine Learning Repository. doi 10.24432/C5XW20.

    Examples
    --------
    >>> adult = load_adult("dict", columns=["age", "income"])
    >>> adult["age"].shape, round(float((adult["income"] == ">50K").mean()), 3)
    ((48842,), 0.239)
    """
    if kind is not None:
        check_choice("kind", kind, KINDS)
    table = _read(_selection(columns))
    chosen = kind or next((k for k in ("pandas", "polars") if _installed(k)), "pyarrow")
    if chosen == "pandas":
        return table.to_pandas()
    if chosen == "polars":
        import polars

        return polars.from_arrow(table)
    if chosen == "dict":
        return {name: table[name].to_numpy() for name in table.column_names}
    return table


def _selection(columns: Iterable[str] | None) -> list[str]:
    if columns is None:
        return list(ADULT_COLUMNS)
    if isinstance(columns, (str, bytes)):
        raise TypeError(f"columns must be a sequence of names, got {type(columns).__name__}.")
    wanted = list(columns)
    for name in wanted:
        check_choice("a column", name, ADULT_COLUMNS)
    if not wanted or len(set(wanted)) < len(wanted):
        raise ValueError(f"columns must be one or more different names, got {wanted!r}.")
    return wanted


def _installed(name: str) -> bool:
    try:
        import_module(name)
    except ImportError:
        return False
    return True


def _read(columns: list[str]) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    path = files("privfit.data") / "adult.csv.gz"
    with path.open("rb") as packed, pa.CompressedInputStream(packed, "gzip") as plain:
        return csv.read_csv(plain, convert_options=csv.ConvertOptions(include_columns=columns))
