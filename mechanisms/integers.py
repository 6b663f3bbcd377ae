r"""Exact discrete Laplace integers, P(K = k) proportional to q^|k| with q = e^{-1/t}, in one shape of work.

Let P(G >= g) = q^g. Since q^G is the product of q^{2^i} over the binary digits of G that are 1, the digits are
independent, digit i is 1 with probability 1/(1 + e^{2^i/t}), and the part above the first j digits is geometric
with ratio r = e^{-2^j/t}. And K is 1 + G with probability q/(1 + q) = 1/(1 + e^{1/t}), else -G: both give the
stated probabilities for every k. So one value takes j + 2 decisions "U < p" for independent uniform U.

Each decision is exact. U is an endless string of 64-bit words, compared with the digits of p in base 2^64: the
first word decides unless it equals the first digit, which has probability 2^-64; only then are more words drawn.
No p is rational (e^x is not, for rational x other than 0), so the comparison ends. With 2^j >= 64 t the top part
is positive with probability r < 2^-92, decided as (a word equals a constant) and (U < 2^64 r): nothing is cut off.
Every value takes j + 2 words and the same array operations, except with probability (j + 2) 2^-64 (2^-59 for t up
to 2^21), whatever the data. The digits of p come from interval arithmetic, widened until they are certain.
Exact means: given uniform words. Independent digits: Dwork, Kenthapadi, McSherry, Mironov & Naor (2006).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.keystream import Words

__all__ = ["SCALE_MAX", "discrete_laplace", "words_per_value"]

WordArray = NDArray[np.uint64]
Integers = NDArray[np.int64]

SCALE_MAX = 2**40
"""Largest t."""

_REACH = 64
"""The digits reach 64 t: the part above them is positive with probability at most e^-64 < 2^-92."""

_RARE = 1 << 63
"""The word that lets the top part be positive: neither 0 nor 2^64 - 1, where a broken source is stuck."""

_CHUNK_WORDS = 15_000


def words_per_value(scale: int) -> int:
    """Return the number of words one value takes: a sign, j digits and the part above them.

    Parameters
    ----------
    scale : int
        t, in 1..2^40.

    Examples
    --------
    >>> words_per_value(2**20), words_per_value(2**21)
    (28, 29)
    """
    return (_REACH * scale - 1).bit_length() + 2


def discrete_laplace(words: Words, count: int, scale: int) -> Integers:
    """Return `count` integers with P(K = k) proportional to exp(-|k|/scale), cut off at +-2^60 and exact inside.

    Parameters
    ----------
    words : callable
        Source of uniform words.
    count : int
    scale : int
        t, in 1..2^40.

    Returns
    -------
    ndarray of shape (count,), int64

    Examples
    --------
    >>> from privfit.mechanisms.keystream import block_words
    >>> bool(abs(discrete_laplace(block_words(bytes(32), 0, 0), 10_000, 8).mean()) < 0.5)
    True
    """
    out = np.empty(count, dtype=np.int64)
    rows = _CHUNK_WORDS // words_per_value(scale)
    for start in range(0, count, rows):
        part = out[start : start + rows]
        part[:] = _chunk(words, len(part), scale)
    return out


def _chunk(words: Words, rows: int, scale: int) -> Integers:
    """One matrix of decisions, a row per value: sign, digits from the lowest, top part."""
    first = _first_digits(scale)
    top = first.size - 1
    word = words(rows * first.size).reshape(rows, first.size)
    packed = np.zeros((rows, 8), dtype=np.uint8)
    bits = np.packbits(word < first, axis=1, bitorder="little")
    packed[:, : bits.shape[1]] = bits
    number = packed.view("<i8")[:, 0].astype(np.int64)
    number &= (1 << top) - 1
    tied = word == first
    if tied.any():
        for row, column in np.argwhere(tied).tolist():
            decided = _below(words, scale, column) if column < top else _top_part(words, scale)
            number[row] += min(decided, 2 ** (61 - column)) << column
    # 1 + G where the sign is 1, else 1 + ~G = -G.
    return np.asarray(1 + ((number >> 1) ^ ((number & 1) - 1)))


def _below(words: Words, scale: int, column: int) -> int:
    """Return U < p as 0 or 1, given that the first words agree."""
    place = 1
    while True:
        word, digit = int(words(1)[0]), _digit(scale, column, place)
        if word != digit:
            return int(word < digit)
        place += 1


def _top_part(words: Words, scale: int) -> int:
    """Return the part above the digits, given that its first word was the rare one: trials until one fails."""
    top = 0
    while _below(words, scale, words_per_value(scale) - 1):
        top += 1
        if int(words(1)[0]) != _RARE:
            break
    return top


@lru_cache(maxsize=64)
def _first_digits(scale: int) -> WordArray:
    """Return what the first word of each decision is compared with."""
    top = words_per_value(scale) - 1
    first = np.array([*(_digit(scale, column, 0) for column in range(top)), _RARE], dtype=np.uint64)
    first.flags.writeable = False
    return first


@lru_cache(maxsize=4096)
def _digit(scale: int, column: int, place: int) -> int:
    """Return digit `place` (from 0) in base 2^64 of the probability of a decision."""
    from mpmath import MPIntervalContext

    # A context of its own: the precision of the shared one is any thread's to change.
    interval = MPIntervalContext()
    shift = 64 * (place + 1)
    interval.prec = shift
    while True:
        interval.prec += 64
        rate = interval.exp(interval.mpf(1 << max(column - 1, 0)) / scale)
        p = 1 / rate if column == words_per_value(scale) - 1 else 1 / (1 + rate)
        scaled = p * interval.mpf(1 << shift)
        low, high = int(scaled.a), int(scaled.b)
        if low == high:
            return low % 2**64
