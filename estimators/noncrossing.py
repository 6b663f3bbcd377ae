"""Quantiles that never cross: rearrangement, which is sorting (Chernozhukov, Fernandez-Val & Galichon 2010).

A quantile function increases in tau; estimates at several tau, each fitted alone, may not. Sorting them brings them
closer to every increasing function in every L^p norm, and sorting the ends of a band shortens it and loses no
increasing function that it held. Where the estimates do not cross, nothing changes, so that standard errors stay
those of the single fits to first order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.accounting.validation import check_array

__all__ = ["check_quantiles", "rearrange"]

Floats = NDArray[np.float64]


def check_quantiles(quantiles: Any) -> list[float]:
    """Return several tau as a list.

    Parameters
    ----------
    quantiles : sequence of float

    Raises
    ------
    ValueError, TypeError
        If they are not one or more strictly increasing numbers in (0, 1).

    Examples
    --------
    >>> check_quantiles((0.25, 0.75))
    [0.25, 0.75]
    """
    found = check_array("quantiles", quantiles)
    if found.ndim != 1 or not found.size or not ((found > 0.0) & (found < 1.0)).all() or (np.diff(found) <= 0).any():
        raise ValueError(
            f"quantiles must be strictly increasing numbers in (0, 1), got {np.array2string(found, threshold=8)}. Sort "
            "them, without repetitions."
        )
    return [float(tau) for tau in found]


def rearrange(values: Floats) -> Floats:
    """Sort along the last axis, whose places are increasing quantiles.

    Parameters
    ----------
    values : ndarray, shape (..., k)

    Returns
    -------
    ndarray, shape (..., k)

    Examples
    --------
    >>> rearrange(np.array([[1.0, 3.0, 2.0]]))
    array([[1., 2., 3.]])
    """
    return np.sort(values, axis=-1)
