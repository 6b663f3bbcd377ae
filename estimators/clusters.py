r"""Several rows of one person: sums of scores by cluster in the middle of the sandwich.

With s_i the centred scores and S_g their sum over cluster g, the middle of the sandwich is ``(1/n) sum_g S_g S_g'``
times ``G / (G - 1) (n - 1) / n``; with the ``n / (n - p)`` of `inference.sandwich` this is the small-sample factor
``G / (G - 1) (n - 1) / (n - p)`` of Stata and statsmodels. Tests use t with G - 1 degrees of freedom.

What the clusters add, ``sum over pairs i != j of one cluster of s_i s_j'``, is the same with and without noise: the
noise of different rows is independent and a corrected score has the raw one as its mean. The raw-data covariance
that the report of efficiency needs thus gets this term from the release.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.risk import Risk

__all__ = [
    "between_rows",
    "cluster_factor",
    "cluster_sums",
    "mean_covariance",
    "read_clusters",
    "released_clusters",
]

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


def read_clusters(clusters: Any, n: int) -> Codes:
    """Return the number of each row's cluster, 0 to G - 1.

    Parameters
    ----------
    clusters : array_like, shape (n,)
        Labels, of any kind that can be sorted.
    n : int
        Rows of the data.

    Raises
    ------
    ValueError, TypeError
        If the labels are missing, of another shape than the rows, or all equal.

    Examples
    --------
    >>> read_clusters(["b", "a", "b"], 3)
    array([1, 0, 1])
    """
    labels = np.asarray(clusters)
    if labels.shape != (n,):
        raise ValueError(f"clusters must have one label per row, shape ({n},), got shape {labels.shape}.")
    numeric = labels.dtype.kind in "fc"
    missing = np.isnan(labels) if numeric else np.array([label is None or label != label for label in labels.tolist()])
    if missing.any():
        raise ValueError(f"clusters must have no missing labels, got {int(missing.sum())}. Name or drop these rows.")
    try:
        values, codes = np.unique(labels, return_inverse=True)
    except TypeError:
        raise TypeError("clusters must be labels of one kind, which can be sorted. Convert them to text.") from None
    if values.size < 2:
        raise ValueError(
            f"clusters must be at least 2, got {values.size}: a covariance needs independent groups. Leave it out for "
            "independent rows."
        )
    return np.asarray(codes, np.intp)


def released_clusters(release: Any, clusters: Any, target: Any, features: Any) -> tuple[Any, Any]:
    """Return the labels of the clusters, and the features without their column.

    Parameters
    ----------
    release : Release
    clusters : str, int or array_like
        A column that was released as it is, or the labels.
    target, features
        As for `fit_release`.

    Raises
    ------
    ValueError
        If the column was released with noise, is not in the release, or is a feature.

    Examples
    --------
    >>> from privfit.mechanisms import Box, Laplace, release
    >>> out = release(np.zeros((4, 2)), Laplace(1.0), Box({"a": (0, 1), "b": (0, 1)}), rng=0)
    >>> released_clusters(out, [1, 1, 2, 2], "b", None)
    ([1, 1, 2, 2], None)
    """
    if not isinstance(clusters, (str, int, np.integer)):
        return clusters, features
    from privfit.estimators.released import read_release

    names = list(getattr(release, "names", ())) or [*release.columns, *release.public]
    if clusters in names and clusters not in release.public:
        raise ValueError(
            f"clusters: column {clusters!r} was released with noise and names no groups. Pass the labels themselves, "
            "or release that column without noise."
        )
    others = [name for name in names if name not in (clusters, target)]
    labels = read_release(release, clusters, others if features is None else features)[1]
    return labels, others if features is None else features


def cluster_sums(blocks: Any, codes: Codes, groups: int, size: int) -> Floats:
    """Sum columns by cluster.

    Parameters
    ----------
    blocks : iterable of ndarray, shape (size, m)
        Columns in the order of `codes`.
    codes : ndarray, shape (n,)
    groups, size : int

    Returns
    -------
    ndarray, shape (size, groups)

    Examples
    --------
    >>> cluster_sums([np.array([[1.0, 2.0]]), np.array([[4.0]])], np.array([0, 1, 0]), 2, 1)
    array([[5., 2.]])
    """
    total, start = np.zeros((size, groups)), 0
    for block in blocks:
        own = codes[start : start + block.shape[1]]
        start += own.size
        for row, values in zip(total, block, strict=True):
            row += np.bincount(own, values, groups)
    return total


def cluster_factor(groups: int, n: int) -> float:
    """``G / (G - 1) (n - 1) / n``, the part of the small-sample factor that `inference.sandwich` does not have.

    Examples
    --------
    >>> cluster_factor(2, 4)
    1.5
    """
    return groups / (groups - 1) * (n - 1) / n


def between_rows(risk: Risk, theta: Floats, codes: Codes | None) -> Floats:
    """What clusters add to the covariance of the score, small-sample factor included; 0 for independent rows.

    Parameters
    ----------
    risk : Risk
    theta : ndarray, shape (p,)
    codes : ndarray, shape (n,), optional
        From `read_clusters`.

    Returns
    -------
    ndarray, shape (p, p)

    Examples
    --------
    >>> between_rows.__name__
    'between_rows'
    """
    if codes is None:
        return np.zeros((risk.size, risk.size))
    groups = int(codes.max()) + 1
    sums = cluster_sums(risk.score_blocks(theta), codes, groups, risk.size)
    mean = sums.sum(axis=1) / risk.n
    sums -= np.outer(mean, np.bincount(codes, minlength=groups))
    together = cluster_factor(groups, risk.n) * (sums @ sums.T) / risk.n
    return np.asarray(together - risk.score_covariance(theta), float)


def mean_covariance(columns: Floats, codes: Codes | None) -> Floats:
    """Covariance of the mean of each row of a matrix.

    Parameters
    ----------
    columns : ndarray, shape (p, n), n > 1
        Rows with mean 0.
    codes : ndarray, shape (n,), optional
        Clusters of the n.

    Returns
    -------
    ndarray, shape (p, p)

    Examples
    --------
    >>> mean_covariance(np.array([[-1.0, 1.0]]), None)
    array([[1.]])
    """
    n = columns.shape[1]
    if codes is None:
        return np.asarray(columns @ columns.T / (n - 1) / n, float)
    groups = int(codes.max()) + 1
    sums = cluster_sums([columns], codes, groups, len(columns))
    return np.asarray(cluster_factor(groups, n) * (sums @ sums.T) / (n - 1) / n, float)
