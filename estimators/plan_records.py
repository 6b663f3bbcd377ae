r"""Raw-like records to integrate over: a public or pilot sample, moments, or the domain alone.

Moments mean a normal law truncated to the domain; nothing at all means a uniform one. Pilot records are moved into
the domain, as a release does with its records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.validation import check_array
from privfit.estimators.checks import LARGEST
from privfit.mechanisms import Ball, Box, Categories
from privfit.mechanisms.domains import as_domains

__all__ = ["UNIFORM", "Table", "numbers_of", "records_of"]

Floats = NDArray[np.float64]
Table = dict[Any, Any]
UNIFORM = "uniform on the domain"


def records_of(
    pilot: Any, mean: Any, covariance: Any, domain: Any, rows: int, rng: np.random.Generator
) -> tuple[Table, str]:
    """Return about `rows` records as ``{column: values}`` and a phrase that says where they come from.

    Parameters
    ----------
    pilot : None, mapping, data frame or array
        Columns by name; an array has those of the domain, in its order.
    mean, covariance : None or array, shapes (d,) and (d, d)
        Moments of the numeric columns of the domain.
    domain : Box, Ball, Categories or tuple of them
    rows : int
    rng : Generator

    Raises
    ------
    ValueError, TypeError
        For both a pilot and moments, wrong shapes, a covariance that is none, missing values.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> records_of(None, None, None, Box({"x": (0, 2)}), 100, rng)[1]
    'uniform on the domain'
    """
    numeric = [part for part in as_domains(domain) if not isinstance(part, Categories)]
    if pilot is not None:
        if mean is not None or covariance is not None:
            raise ValueError("pilot must be None where mean and covariance are given: pass one kind of design.")
        return _pilot_records(pilot, domain, numeric, rows)
    if mean is not None or covariance is not None:
        return _moment_records(mean, covariance, numeric, rows, rng), "normal with the given moments, truncated"
    table: Table = {}
    for part in numeric:
        values = _uniform(part, rows, rng)
        table |= {c: values[:, j] for j, c in enumerate(part.columns)}
    return table, UNIFORM


def _uniform(part: Any, rows: int, rng: np.random.Generator) -> Floats:
    if isinstance(part, Box):
        return np.asarray(part.lower + (part.upper - part.lower) * rng.random((rows, part.dim)))
    direction = rng.standard_normal((rows, part.dim))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return np.asarray(part.radius * direction * rng.random((rows, 1)) ** (1 / part.dim))


def _inside(part: Any, x: Floats) -> NDArray[np.bool_]:
    if isinstance(part, Ball):
        return np.asarray(np.linalg.norm(x, axis=1) <= part.radius)
    return np.asarray(((x >= part.lower) & (x <= part.upper)).all(axis=1))


def _moment_records(mean: Any, covariance: Any, numeric: Sequence[Any], rows: int, rng: np.random.Generator) -> Table:
    if mean is None or covariance is None:
        raise ValueError("mean and covariance must be given together: the moments of the domain's numeric columns.")
    columns = [c for part in numeric for c in part.columns]
    centre = np.atleast_1d(check_array("mean", mean))
    spread = np.atleast_2d(check_array("covariance", covariance))
    d = len(columns)
    if centre.shape != (d,) or spread.shape != (d, d):
        raise ValueError(
            f"mean and covariance must have shapes ({d},) and ({d}, {d}), one entry for each of {columns[:8]}; "
            f"got {centre.shape} and {spread.shape}."
        )
    values, vectors = np.linalg.eigh((spread + spread.T) / 2)
    if not np.allclose(spread, spread.T) or values[0] < -1e-10 * max(values[-1], 0.0) or not np.isfinite(values).all():
        raise ValueError("covariance must be symmetric, finite and positive semidefinite.")
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    kept: list[Floats] = []
    found = tried = 0
    while found < rows and tried < 200 * rows:
        x = centre + rng.standard_normal((rows, d)) @ root.T
        good, start = np.ones(rows, bool), 0
        for part in numeric:
            good &= _inside(part, x[:, start : start + part.dim])
            start += part.dim
        kept.append(x[good])
        found, tried = found + int(good.sum()), tried + rows
    if found < rows:
        raise ValueError(
            f"mean and covariance must put records inside the domain, got {found / tried:.2%} of them there. Check "
            "the units and the bounds."
        )
    x = np.concatenate(kept)[:rows]
    return {c: x[:, j] for j, c in enumerate(columns)}


def _pilot_records(pilot: Any, domain: Any, numeric: Sequence[Any], rows: int) -> tuple[Table, str]:
    names = [c for part in as_domains(domain) for c in part.columns]
    table = _table(pilot, names)
    sizes = {len(values) for values in table.values()}
    if len(sizes) != 1 or min(sizes) < 2:
        raise ValueError("pilot must hold at least 2 records, and as many in each column.")
    n = sizes.pop()
    # Few records are repeated and many are thinned evenly, whatever their order.
    chosen = np.arange(rows) % n if n <= rows else np.linspace(0, n - 1, rows).astype(int)
    table = {c: values[chosen] for c, values in table.items()}
    for part in numeric:
        own = [c for c in part.columns if c in table]
        for c in own:
            table[c] = numbers_of(c, table[c])
        if own and (isinstance(part, Box) or len(own) == part.dim):
            x = np.stack([table[c] for c in own])
            (part.select(own) if isinstance(part, Box) else part).project(x)
            table |= dict(zip(own, x, strict=True))
    return table, f"pilot sample of {n:,} records"


def numbers_of(column: Any, values: Any) -> Floats:
    """Return a pilot column as finite numbers, or raise without naming a value.

    Examples
    --------
    >>> numbers_of("age", [1, 2])
    array([1., 2.])
    """
    try:
        if np.asarray(values).dtype.kind in "mM":
            raise TypeError  # their numbers have a unit that is not the release's
        out = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"pilot: column {column!r} must hold numbers (dates: days since 1970-01-01). Encode it, or declare "
            "it as a label."
        ) from None
    if not np.isfinite(out).all() or np.abs(out).max(initial=0.0) > LARGEST:
        raise ValueError(f"pilot: column {column!r} must hold finite numbers of moderate size. Drop missing cells.")
    return out


def _table(pilot: Any, names: Sequence[Any]) -> Table:
    if isinstance(pilot, Mapping):
        return {c: np.asarray(values) for c, values in pilot.items()}
    if isinstance(pilot, (list, tuple, np.ndarray)):
        array = np.asarray(pilot)
        if array.ndim == 1 and len(names) == 1:
            array = array[:, None]
        if array.ndim != 2 or array.shape[1] != len(names):
            raise ValueError(
                f"pilot must have {len(names)} columns, those of the domain in its order, got shape {array.shape}. "
                "Or pass a data frame, or {column: values}."
            )
        return {c: array[:, j] for j, c in enumerate(names)}
    listed = getattr(pilot, "column_names", getattr(pilot, "columns", None))
    if listed is None:
        raise TypeError(f"pilot must be a data frame, an array or {{column: values}}, got {type(pilot).__name__}.")
    return {c: np.asarray(pilot[c]) for c in listed}
