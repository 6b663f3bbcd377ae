"""Linear hypotheses ``R params = c`` as users give them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.validation import check_array

__all__ = ["check_contrasts", "contrast_rows", "place_of"]

Floats = NDArray[np.float64]


def contrast_rows(contrasts: Any, names: Sequence[str]) -> Floats:
    """Return linear functions of coefficients as rows, shape (m, p).

    Parameters
    ----------
    contrasts : str, sequence of str, or array_like of shape (m, p) or (p,)
        Names of coefficients, or the rows.
    names : sequence of str
        Names of all p coefficients.

    Raises
    ------
    ValueError
        If a name is unknown, the shape is wrong, or an entry is not finite.

    Examples
    --------
    >>> contrast_rows("b", ["a", "b"])
    array([[0., 1.]])
    """
    known = list(names)
    listed = [contrasts] if isinstance(contrasts, str) else contrasts
    if isinstance(listed, np.ndarray) or hasattr(listed, "tolist"):
        listed = listed.tolist()
    if isinstance(listed, Sequence) and listed and all(isinstance(name, str) for name in listed):
        for name in listed:
            place_of(name, known)
        return np.eye(len(known))[[known.index(name) for name in listed]]
    rows = np.atleast_2d(check_array("contrasts", contrasts, hint="Or give names of coefficients."))
    if rows.ndim != 2 or rows.shape[1] != len(known) or not np.isfinite(rows).all():
        raise ValueError(f"contrasts must be a finite array of shape (m, {len(known)}), got shape {rows.shape}.")
    return rows


def place_of(name: str, names: Sequence[str], parameter: str = "contrasts") -> int:
    """Return the position of a coefficient.

    Raises
    ------
    ValueError
        If the fit has no coefficient of that name, or two.

    Examples
    --------
    >>> place_of("b", ["a", "b"])
    1
    """
    known = list(names)
    if name not in known:
        raise ValueError(f"{parameter} must name coefficients of the fit, {known[:12]}, got {name!r}.")
    if known.count(name) > 1:
        raise ValueError(
            f"{parameter} must name one coefficient, but {name!r} is the name of {known.count(name)}: give rows or a "
            "position instead, or rename the column."
        )
    return known.index(name)


def check_contrasts(contrasts: Any, values: Any, names: Sequence[str]) -> tuple[Floats, Floats]:
    """Return ``(R, c)`` of the hypothesis ``R params = c``.

    Parameters
    ----------
    contrasts, names
        See `contrast_rows`.
    values : float or array_like, shape (m,)

    Raises
    ------
    ValueError
        As `contrast_rows`, and if a value is not finite, or the rows depend on each other.

    Examples
    --------
    >>> check_contrasts([0, 1], 2.0, ["a", "b"])
    (array([[0., 1.]]), array([2.]))
    """
    rows = contrast_rows(contrasts, names)
    if np.linalg.matrix_rank(rows) < rows.shape[0]:
        raise ValueError(f"contrasts must have independent rows, got {rows.shape[0]} dependent ones. Drop some.")
    wanted = check_array("values", values)
    if wanted.ndim > 1 or (wanted.ndim == 1 and wanted.size != rows.shape[0]) or not np.isfinite(wanted).all():
        raise ValueError(f"values must be finite, one or {rows.shape[0]} of them, got shape {wanted.shape}.")
    return rows, np.broadcast_to(wanted, rows.shape[:1]).astype(float)
