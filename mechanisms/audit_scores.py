r"""A score learnt on a pilot: an estimate of log dQ/dP for numbers, vectors, and values that come again.

    values seen often, and outcomes that are no finite numbers    log of the ratio of their counts (+ 1/2)
    other numbers                                                 the same for bins between quantiles
    other vectors                                                 logistic regression on z, |z|, z^2 and products

All of it is fixed before the outputs that are judged are drawn, so that no choice here can cause a false alarm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["learn_keys", "learn_score"]

Floats = NDArray[np.float64]
OFTEN = 20
FINEST = 30


def learn_keys(p: Sequence[Hashable], q: Sequence[Hashable]) -> Callable[[Sequence[Hashable]], Floats]:
    """Return a score of outcomes by how often a pilot saw them; 0 for those that it did not see.

    Examples
    --------
    >>> learn_keys(["a", "a", "b"], ["a", "b", "b"])(["b", "c"]).round(3)
    array([0.511, 0.   ])
    """
    seen_p, seen_q = Counter(p), Counter(q)
    base = np.log((len(p) + 1) / (len(q) + 1))
    ratios = {key: float(np.log((seen_q[key] + 0.5) / (seen_p[key] + 0.5)) + base) for key in seen_p | seen_q}

    def score(keys: Sequence[Hashable]) -> Floats:
        return np.array([ratios.get(key, 0.0) for key in keys])

    return score


def learn_score(p: Floats, q: Floats) -> Callable[[Floats], Floats]:
    """Return a score of rows of finite numbers.

    Parameters
    ----------
    p, q : ndarray of shape (n, dim)
        Outputs of the two inputs.

    Returns
    -------
    callable
        Maps (n, dim) to (n,).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> score = learn_score(rng.normal(size=(2000, 2)), rng.normal(1.0, size=(2000, 2)))
    >>> bool(score(np.array([[2.0, 2.0]])) > score(np.array([[-1.0, -1.0]])))
    True
    """
    both = np.concatenate([p, q])
    values, counts = np.unique(both, axis=0, return_counts=True)
    often = {row.tobytes() for row in values[counts >= OFTEN]}
    atoms = learn_keys(_keys(p, often), _keys(q, often))
    rest = [own[np.array([key is None for key in _keys(own, often)], dtype=bool)] for own in (p, q)]
    if min(map(len, rest)) < OFTEN:
        return lambda rows: atoms(_keys(rows, often))
    smooth = _binned(rest[0][:, 0], rest[1][:, 0]) if both.shape[1] == 1 else _logistic(*rest)

    def score(rows: Floats) -> Floats:
        keys = _keys(rows, often)
        return atoms(keys) + np.where([key is None for key in keys], smooth(rows), 0.0)

    return score


def _keys(rows: Floats, often: set[bytes]) -> list[bytes | None]:
    if not often:
        return [None] * len(rows)
    found = (row.tobytes() for row in np.ascontiguousarray(rows))
    return [key if key in often else None for key in found]


def _binned(p: Floats, q: Floats) -> Callable[[Floats], Floats]:
    """Ratio of counts in bins between quantiles, smaller ones towards both tails."""
    both = np.concatenate([p, q])
    tail = 2.0 ** -np.arange(1.0, max(2.0, np.log2(len(both) / FINEST)))
    levels = np.unique(np.concatenate([np.linspace(0.025, 0.975, 39), tail, 1 - tail]))
    ends = np.unique(np.quantile(both, levels))
    seen = [np.bincount(np.searchsorted(ends, own), minlength=len(ends) + 1) + 0.5 for own in (p, q)]
    ratio = np.log(seen[1] / seen[1].sum()) - np.log(seen[0] / seen[0].sum())
    return lambda rows: np.asarray(ratio[np.searchsorted(ends, rows[:, 0])])


def _logistic(p: Floats, q: Floats) -> Callable[[Floats], Floats]:
    """Logistic regression of the input on features of the output, slightly penalised, by Newton's method."""
    both = np.concatenate([p, q])
    centre = np.median(both, axis=0)
    spread = np.maximum(np.median(np.abs(both - centre), axis=0), 1e-300)
    pairs = np.triu_indices(p.shape[1]) if p.shape[1] <= 6 else (np.arange(p.shape[1]),) * 2

    def features(rows: Floats) -> Floats:
        z = np.clip((rows - centre) / spread, -20.0, 20.0)
        return np.column_stack([np.ones(len(z)), z, np.abs(z), z[:, pairs[0]] * z[:, pairs[1]] / 10])

    x, y = features(both), np.repeat([0.0, 1.0], [len(p), len(q)])
    beta = np.zeros(x.shape[1])
    penalty = np.eye(x.shape[1])
    for _ in range(20):
        chance = 1 / (1 + np.exp(-np.clip(x @ beta, -30, 30)))
        weight = np.maximum(chance * (1 - chance), 1e-6)
        step = np.linalg.solve((x * weight[:, None]).T @ x + penalty, x.T @ (y - chance) - beta)
        beta += step
        if np.abs(step).max() < 1e-6:
            break
    return lambda rows: np.asarray(features(rows) @ beta)
