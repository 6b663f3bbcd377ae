r"""Unit noise from uniform 64-bit words.

U = (word + 1/2) 2^-64 is uniform, E = -log U exponential, R = sqrt(2E) with a uniform angle gives two normal
coordinates (Box & Muller 1958), W = (E_1 + ... + E_k)/k is Gamma(k, rate k), and sqrt(W) N(0, I) is
generalised Laplace noise; for one coordinate and k = 1 that is +-E/sqrt(2). With logarithm, sine and
cosine good to one unit in the last place the chance that a value rounds to another grid point than the
stated law's is at most 2^-36.9 (docs/mathematics.md); `selfcheck` tests it on this machine.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.keystream import Words

__all__ = [
    "FACTORS",
    "exponential",
    "gamma_rows",
    "keep_rows",
    "laplace_coordinate",
    "normal_coordinates",
    "unit_circle",
]

Floats = NDArray[np.float64]
WordArray = NDArray[np.uint64]

_TOP = np.uint64(1 << 63)
_ONE, _TWO, _SIGN_SHIFT = np.uint64(1), np.uint64(2), np.uint64(63)
_ANGLE_SHIFT = np.uint64(62)

FACTORS = 8
"""Uniforms that are multiplied before a logarithm is taken."""


def exponential(word: WordArray, bits: int = 64) -> Floats:
    """Return -log((word + 1/2) 2^-bits), a standard exponential for a uniform `bits`-bit word.

    Examples
    --------
    >>> import numpy as np
    >>> exponential(np.array([0, 2**64 - 1], dtype=np.uint64)).round(4)
    array([45.0546,  0.    ])
    """
    u = word.astype(np.float64)
    u += 0.5
    u *= 0.5**bits
    np.log(u, out=u)
    np.abs(u, out=u)
    return u


def unit_circle(word: WordArray, both: bool = True) -> tuple[Floats, Floats | None]:
    """Return cosine and sine of a uniform angle: 62 bits inside a quadrant and two sign bits.

    Examples
    --------
    >>> import numpy as np
    >>> cosine, sine = unit_circle(np.array([0, 1, 2, 3], dtype=np.uint64))
    >>> cosine
    array([ 1., -1.,  1., -1.])
    """
    angle = (word >> _TWO).astype(np.float64)
    angle += 0.5
    angle *= np.pi * 0.5**63
    cosine = np.cos(angle)
    cosine.view(np.uint64)[:] |= word << _SIGN_SHIFT
    if not both:
        return cosine, None
    sine = np.sin(angle, out=angle)
    sine.view(np.uint64)[:] |= (word << _ANGLE_SHIFT) & _TOP
    return cosine, sine


def laplace_coordinate(words: Words, rows: int) -> Floats:
    """Return `rows` standard Laplace values (scale b = 1): 63 bits of size, one sign bit.

    Examples
    --------
    >>> from privfit.mechanisms.keystream import block_words
    >>> laplace_coordinate(block_words(bytes(32), 0, 0), 3).shape
    (3,)
    """
    word = words(rows)
    noise = exponential(word >> _ONE, bits=63)
    noise.view(np.uint64)[:] ^= word << _SIGN_SHIFT
    return noise


def gamma_rows(words: Words, rows: int, shape: int) -> Floats:
    """Return `rows` values of W ~ Gamma(shape, rate shape), from `shape` words each.

    Examples
    --------
    >>> from privfit.mechanisms.keystream import block_words
    >>> bool(abs(gamma_rows(block_words(bytes(32), 0, 0), 10_000, 4).mean() - 1) < 0.03)
    True
    """
    total = _exponential_sum(words, rows, shape)
    if shape > 1:
        total /= shape
    return total


def _exponential_sum(words: Words, rows: int, count: int) -> Floats:
    """Return the sum of `count` exponentials, the logarithm of a product of uniforms for up to 8 of them.

    A product of 8 lies above 2^-520 and has relative error 15 * 2^-53, so one logarithm does the work of
    eight; more than 8 are added in halves, which keeps the rounding errors of 1000 terms to seven.
    """
    if count > FACTORS:
        half = FACTORS * -(-count // (2 * FACTORS))
        total = _exponential_sum(words, rows, half)
        total += _exponential_sum(words, rows, count - half)
        return total
    product = words(rows).astype(np.float64)
    product += 0.5
    for _ in range(count - 1):
        factor = words(rows).astype(np.float64)
        factor += 0.5
        product *= factor
    product *= 0.5 ** (64 * count)
    np.log(product, out=product)
    np.abs(product, out=product)
    return product


def keep_rows(words: Words, rows: int, delta0: float) -> Floats:
    """Return 0.0 with probability at most `delta0` and 1.0 otherwise, by an integer comparison.

    Examples
    --------
    >>> from privfit.mechanisms.keystream import block_words
    >>> sorted(set(keep_rows(block_words(bytes(32), 0, 0), 100, 0.5).tolist()))
    [0.0, 1.0]
    """
    # float * 2^64 is exact, int() rounds down; delta0 < 1 keeps it below 2^64.
    threshold = np.uint64(int(delta0 * 2.0**64))
    return (words(rows) >= threshold).astype(np.float64)


def normal_coordinates(
    words: Words, rows: int, dim: int, mixing: Floats | None, keep: Floats | None = None
) -> Iterator[Floats]:
    """Yield `dim` coordinates of sqrt(W) N(0, I) times `keep`, two from each pair of words.

    Parameters
    ----------
    words : callable
    rows, dim : int
    mixing : ndarray of shape (rows,), optional
        W, shared by the coordinates of a row; None for normal noise.
    keep : ndarray of shape (rows,), optional
        Factor 0 or 1 per row: a multiplication, because a branch would show in the timing.

    Yields
    ------
    ndarray of shape (rows,)
        Buffers of the caller.

    Examples
    --------
    >>> from privfit.mechanisms.keystream import block_words
    >>> len(list(normal_coordinates(block_words(bytes(32), 0, 0), 8, 3, None)))
    3
    """
    twice = 2.0 * mixing if mixing is not None else None
    for j in range(0, dim, 2):
        radius = exponential(words(rows))
        radius *= 2.0 if twice is None else twice
        np.sqrt(radius, out=radius)
        if keep is not None:
            radius *= keep
        cosine, sine = unit_circle(words(rows), both=j + 1 < dim)
        cosine *= radius
        yield cosine
        if sine is not None:
            sine *= radius
            yield sine
