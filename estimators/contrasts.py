"""Linear hypotheses ``R params = c`` as users give them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.validation import check_array

__all__ = ["check_contrasts"]

Floats = NDArray[np.float64]


def check_contrasts(contrasts: Any, values: Any, size: int) -> tuple[Floats, Floats]:
    """Return ``(R, c)`` of the hypothesis ``R params = c``.

    Parameters
    ----------
    contrasts : array_like, shape (m, size) or (size,)
    values : float or array_like, shape (m,)
    size : int

    Raises
    ------
    ValueError
        If a shape is wrong, a value is not finite, or the rows depend on each other.

    Examples
    --------
    >>> check_contrasts([0, 1], 2.0, 2)
    (array([[0., 1.]]), array([2.]))
    """
    rows = np.atleast_2d(check_array("contrasts", contrasts))
    if rows.ndim != 2 or rows.shape[1] != size or not np.isfinite(rows).all():
        raise ValueError(f"contrasts must be a finite array of shape (m, {size}), got shape {rows.shape}.")
    if np.linalg.matrix_rank(rows) < rows.shape[0]:
        raise ValueError(f"contrasts must have independent rows, got {rows.shape[0]} dependent ones. Drop some.")
    wanted = check_array("values", values)
    if wanted.ndim > 1 or (wanted.ndim == 1 and wanted.size != rows.shape[0]) or not np.isfinite(wanted).all():
        raise ValueError(f"values must be finite, one or {rows.shape[0]} of them, got shape {wanted.shape}.")
    return rows, np.broadcast_to(wanted, rows.shape[:1]).astype(float)
