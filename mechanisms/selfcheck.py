r"""Does this machine's arithmetic sample the stated law? Checked against mpmath once per process.

The stated slack assumes logarithm, square root, sine and cosine good to about one unit in the last place.
A build of numpy with faster, coarser functions would break it silently, so the first release computes 4000
values both ways, at several array lengths (vector bodies and scalar tails are different code), and refuses
if any value is off by more than the arithmetic allows, or if the mean error exceeds an eighth of the slack.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.continuous import SLACK_PER_VALUE
from privfit.mechanisms.keystream import block_words
from privfit.mechanisms.samplers import FACTORS, gamma_rows, laplace_coordinate, normal_coordinates

__all__ = ["check_machine", "sampling_errors"]

Floats = NDArray[np.float64]

STEPS = 2047.0
"""Largest scale in grid steps, where an error of the unit noise moves the grid point most."""

_LENGTHS = (1, 2, 3, 5, 7, 61, 433, 488)
_SHAPES = (1, 2, 8, 9, 26, 40, 1, 4)


def sampling_errors() -> tuple[Floats, Floats]:
    """Return |error| of 4000 noise values in grid steps, and the bound of each.

    Returns
    -------
    errors, bounds : ndarray of shape (4000,)

    Examples
    --------
    >>> errors, bounds = sampling_errors()
    >>> len(errors), bool((errors <= bounds).all())
    (4000, True)
    """
    errors: list[float] = []
    bounds: list[float] = []
    for block, (length, shape) in enumerate(zip(_LENGTHS, _SHAPES, strict=True)):
        _compare_pairs(block, length, shape, errors, bounds)
        _compare_laplace(block, length, errors, bounds)
        _compare_laplace(block + 100, length, errors, bounds)
    return np.array(errors), np.array(bounds)


def _compare_pairs(block: int, length: int, shape: int, errors: list[float], bounds: list[float]) -> None:
    """Compare sqrt(W) N(0, I_2): W of a shape, radius sqrt(2 W E) and an angle of 62 + 2 bits."""
    from mpmath import mp, mpf

    words = block_words(b"privfit self-check, not a secret", 0, block)
    mixing = gamma_rows(words, length, shape)
    pair = [c.copy() for c in normal_coordinates(words, length, 2, mixing)]
    words = block_words(b"privfit self-check, not a secret", 0, block)
    factors = [words(length) for _ in range(shape)]
    r_words, a_words = words(length), words(length)
    groups = -(-shape // FACTORS)
    with mp.workprec(120):
        for i in range(length):
            sizes = math.prod(2 * int(word[i]) + 1 for word in factors)
            w = -mp.log(mpf(sizes) / mpf(2) ** (65 * shape)) / shape
            e = -mp.log((mpf(int(r_words[i])) + 0.5) / 2**64)
            word = int(a_words[i])
            angle = (mpf(word >> 2) + 0.5) / 2**62 * mp.pi / 2
            radius = mp.sqrt(2 * w * e) * STEPS
            exact = (
                radius * mp.cos(angle) * (-1 if word & 1 else 1),
                radius * mp.sin(angle) * (-1 if word & 2 else 1),
            )
            # U has relative error 2^-53, so -log U has absolute error 2^-53 (1 + E), and a product of m uniforms
            # 2m - 1 times the first term; sums of logarithms add a rounding per level; the square root halves the
            # relative errors; four roundings and one unit in the last place of the angle follow.
            spread = (2 * shape - groups) / (shape * float(w)) + math.log2(groups) + 1
            relative = 2.0**-53 * (0.5 / float(e) + 0.5 * spread + 10)
            for value, truth in zip(pair, exact, strict=True):
                errors.append(float(abs(mpf(float(value[i])) * STEPS - truth)))
                bounds.append(relative * float(radius))


def _compare_laplace(block: int, length: int, errors: list[float], bounds: list[float]) -> None:
    """Compare +-E from 63 + 1 bits."""
    from mpmath import mp, mpf

    drawn = laplace_coordinate(block_words(b"privfit self-check, not a secret", 1, block), length)
    words = block_words(b"privfit self-check, not a secret", 1, block)(length)
    with mp.workprec(120):
        for i in range(length):
            word = int(words[i])
            size = -mp.log((mpf(word >> 1) + 0.5) / 2**63)
            exact = size * (-1 if word & 1 else 1)
            errors.append(float(abs(mpf(float(drawn[i])) - exact)) * STEPS)
            bounds.append(2.0**-53 * (1 + 4 * float(size)) * STEPS)


@lru_cache(maxsize=1)
def check_machine() -> None:
    """Raise RuntimeError unless this machine's arithmetic is within the stated slack; runs once.

    Examples
    --------
    >>> check_machine()
    """
    errors, bounds = sampling_errors()
    worst = float(np.max(errors / bounds))
    mean = float(errors.mean())
    if not (worst <= 1.0 and mean <= SLACK_PER_VALUE / 8):
        raise RuntimeError(
            f"this machine's logarithm or trigonometric functions are too coarse for a safe release: "
            f"error up to {worst:.3g} of what is allowed, mean {mean:.3g} grid steps. Nothing was "
            "released. Install another numpy build."
        )
