r"""Exact integer randomness from uniform 64-bit words: no floating point, no rounding, no slack.

Uniform integers by rejection; Bernoulli(exp(-p/q)) as the parity of the first failure among
Bernoulli(p/(q k)), k = 1, 2, ...; and discrete Laplace integers, P(K = k) proportional to exp(-|k|/t), as
+-(U + t V) with U uniform below t, kept with probability exp(-U/t), and V geometric with ratio 1/e
(Canonne, Kamath & Steinke 2020, algorithms 1 and 2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.keystream import Words

__all__ = ["bernoulli_exp", "discrete_laplace", "geometric", "uniform_below"]

WordArray = NDArray[np.uint64]
Bools = NDArray[np.bool_]
Integers = NDArray[np.int64]

_ONE = np.uint64(1)


def uniform_below(words: Words, count: int, bound: int) -> WordArray:
    """Return `count` integers, uniform on 0, ..., bound - 1, by rejecting the incomplete top range.

    Parameters
    ----------
    words : callable
    count : int
    bound : int
        In 1..2^63; a bound of 1 draws no words.

    Examples
    --------
    >>> from privfit.mechanisms.keystream import block_words
    >>> sorted(set(uniform_below(block_words(bytes(32), 0, 0), 100, 3).tolist()))
    [0, 1, 2]
    """
    if bound == 1:
        return np.zeros(count, dtype=np.uint64)
    out = words(count)
    if extra := 2**64 % bound:
        last = np.uint64(2**64 - 1 - extra)
        while (out > last).any():
            over = np.flatnonzero(out > last)
            out[over] = words(over.size)
    out %= np.uint64(bound)
    return out


def bernoulli_exp(words: Words, numerator: WordArray, denominator: int) -> Bools:
    """Return independent booleans that are true with probability exp(-numerator/denominator).

    Parameters
    ----------
    words : callable
    numerator : ndarray of shape (n,)
        In 0..denominator.
    denominator : int

    Examples
    --------
    >>> from privfit.mechanisms.keystream import block_words
    >>> hits = bernoulli_exp(block_words(bytes(32), 0, 0), np.ones(10_000, dtype=np.uint64), 1)
    >>> bool(abs(hits.mean() - np.exp(-1)) < 0.02)
    True
    """
    odd = np.empty(len(numerator), dtype=np.bool_)
    going, k = np.arange(len(numerator)), 1
    while going.size:
        goes_on = uniform_below(words, going.size, denominator) < numerator[going]
        goes_on &= uniform_below(words, going.size, k) == 0
        odd[going[~goes_on]] = k % 2 == 1
        going, k = going[goes_on], k + 1
    return odd


def geometric(words: Words, count: int) -> Integers:
    """Return `count` integers V >= 0 with P(V >= v) = exp(-v).

    Examples
    --------
    >>> from privfit.mechanisms.keystream import block_words
    >>> bool(abs((geometric(block_words(bytes(32), 0, 0), 10_000) >= 1).mean() - np.exp(-1)) < 0.02)
    True
    """
    out = np.zeros(count, dtype=np.int64)
    going = np.arange(count)
    while going.size:
        going = going[bernoulli_exp(words, np.ones(going.size, dtype=np.uint64), 1)]
        out[going] += 1
    return out


def discrete_laplace(words: Words, count: int, scale: int) -> Integers:
    """Return `count` integers with P(K = k) proportional to exp(-|k|/scale).

    Parameters
    ----------
    words : callable
    count : int
    scale : int
        t, in 1..2^40.

    Examples
    --------
    >>> from privfit.mechanisms.keystream import block_words
    >>> bool(abs(discrete_laplace(block_words(bytes(32), 0, 0), 10_000, 8).mean()) < 0.5)
    True
    """
    out = np.empty(count, dtype=np.int64)
    going = np.arange(count)
    while going.size:
        low = uniform_below(words, going.size, scale)
        kept = bernoulli_exp(words, low, scale)
        size = low.astype(np.int64) + scale * geometric(words, going.size)
        negative = (words(going.size) & _ONE) == _ONE
        # Zero has one sign only, or it would come twice as often as it should.
        kept &= ~(negative & (size == 0))
        out[going[kept]] = np.where(negative, -size, size)[kept]
        going = going[~kept]
    return out
