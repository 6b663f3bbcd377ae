"""Several fits in one, of quantiles or columns: whose warning it is, what they found together, joint covariance."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.estimators.advice import cautions
from privfit.estimators.clusters import cluster_factor, cluster_sums
from privfit.estimators.errors import RankDeficiencyWarning, SmallSampleWarning
from privfit.estimators.kept import Kept

__all__ = ["combined", "joint_covariance", "named_warnings"]

Floats = NDArray[np.float64]


@contextmanager
def named_warnings(name: str) -> Iterator[None]:
    """Put a name before the warnings of a fit.

    Parameters
    ----------
    name : str

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     with named_warnings("quantile 0.9"):
    ...         warnings.warn("too few records.", SmallSampleWarning)
    >>> str(caught[0].message)
    'quantile 0.9: too few records.'
    """
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        yield
    for one in said:
        if issubclass(one.category, SmallSampleWarning | RankDeficiencyWarning):
            warnings.warn(f"{name}: {one.message}", one.category, stacklevel=5)
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def combined(names: Sequence[str], found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the diagnostics of several fits as those of one: reasons and cautions name the fit.

    Parameters
    ----------
    names : sequence of str
    found : sequence of mapping
        `diagnostics_` of each.

    Examples
    --------
    >>> good, bad = {"n_needed": None}, {"n_needed": 900, "n_needed_is_bound": True, "reasons": ["flat"]}
    >>> combined(["a", "b"], [good, bad])["reasons"]
    ['b: flat']
    """
    worst = max(found, key=lambda own: own.get("n_needed") or 0)
    out: dict[str, Any] = {
        "n_needed": worst.get("n_needed"),
        "n_needed_is_bound": bool(worst.get("n_needed_is_bound", False)),
        "reasons": [f"{name}: {why}" for name, own in zip(names, found, strict=True) for why in own.get("reasons", ())],
        "cautions": [
            f"{name}: {text}"
            for name, own in zip(names, found, strict=True)
            for text in _wide(own) + cautions({**own, "stabilised": False})
        ],
    }
    for key in ("runaway", "at_bound", "bandwidth_too_wide"):
        out[key] = any(own.get(key, False) for own in found)
    out["converged"] = all(own.get("converged", True) for own in found)
    if any("stabilised" in own for own in found):
        out["stabilised"] = any(own.get("stabilised", False) for own in found)
    return out


def _wide(own: Mapping[str, Any]) -> list[str]:
    """Say so where a fit of one quantile was smoothed over half the response's range."""
    if not own.get("bandwidth_too_wide") or any("exceeds half" in text for text in own.get("cautions", ())):
        return []
    return [f"the bandwidth {own['bandwidth']:.3g} exceeds half the response's range: not about that quantile"]


def joint_covariance(kept: list[Kept], single: list[Floats], left: list[Floats | None] | None = None) -> Floats:
    """Joint covariance of all parameters; a fit without standard errors keeps its infinite ones and no covariances.

    Parameters
    ----------
    kept : list of Kept
        Fits to the same records.
    single : list of ndarray, shape (p, p)
        Their own covariances.
    left : list of (ndarray, shape (p,), or None), optional
        Bias in solver coordinates whose square is part of these (`bandwidth_bias`).

    Examples
    --------
    >>> joint_covariance([], [np.eye(1)]).shape
    (1, 1)
    """
    size, count = len(single[0]), len(single)
    lost = [not np.isfinite(own).all() for own in single]
    out = np.zeros((count, size, count, size))
    for a, own in enumerate(single):
        out[a, :, a, :] = own
    good = [a for a in range(count) if not lost[a]]
    if len(good) > 1:
        scores = _score_covariance([kept[a] for a in good], size)
        maps = [kept[a].matrix @ np.linalg.inv(kept[a].solution.hessian) for a in good]
        n = kept[0].problem.risk.n
        for i, a in enumerate(good):
            for j, b in enumerate(good):
                if a != b:
                    out[a, :, b, :] = maps[i] @ scores[i, :, j, :] @ maps[j].T / (n - size)
                    one, other = (None, None) if left is None else (left[a], left[b])
                    if one is not None and other is not None:
                        out[a, :, b, :] += np.outer(kept[a].matrix @ one, kept[b].matrix @ other)
    return out.reshape(count * size, count * size)


def _score_covariance(kept: list[Kept], size: int) -> Floats:
    """Joint covariance of the scores of several fits to the same records, shape (k, p, k, p)."""
    count, codes, n = len(kept), kept[0].codes, kept[0].problem.risk.n

    def blocks() -> Iterator[Floats]:
        own = [one.scored.score_blocks(one.solution.theta) for one in kept]
        for parts in zip(*own, strict=True):
            yield np.concatenate(parts)

    total, outer = np.zeros(count * size), np.zeros((count * size, count * size))
    for block in blocks():
        total += block.sum(axis=1)
        if codes is None:
            outer += block @ block.T
    mean = total / n
    if codes is None:
        return np.asarray(outer / n - np.outer(mean, mean), float).reshape(count, size, count, size)
    groups = int(codes.max()) + 1
    sums = cluster_sums(blocks(), codes, groups, count * size) - np.outer(mean, np.bincount(codes, minlength=groups))
    clustered = cluster_factor(groups, n) * (sums @ sums.T) / n
    return np.asarray(clustered, float).reshape(count, size, count, size)
