r"""Does this machine sample the stated law? Arithmetic against mpmath, ciphers against published answers.

The stated slack assumes logarithm, square root, sine and cosine good to about one unit in the last place.
A build of numpy with faster, coarser functions would break it silently, so the first release computes 4000
values both ways, at array lengths of every remainder modulo 16 (vector bodies and scalar tails are different
code), and refuses if any value is off by more than the arithmetic allows, or if the mean error exceeds an eighth
of the slack. A pass is noted on disk for this interpreter and processor (`machine`); a failure never is. AES-256
and BLAKE2b answer known questions in every process (NIST SP 800-38A, F.5.5; RFC 7693, appendix A).
"""

from __future__ import annotations

import hashlib
import math
import sys
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms import keystream, samplers
from privfit.mechanisms.continuous import SLACK_PER_VALUE
from privfit.mechanisms.keystream import block_words
from privfit.mechanisms.machine import fingerprint, note_pass, passed_before
from privfit.mechanisms.samplers import FACTORS, gamma_rows, laplace_coordinate, normal_coordinates

__all__ = ["check_ciphers", "check_machine", "sampling_errors"]

Floats = NDArray[np.float64]

STEPS = 2047.0
"""Largest scale in grid steps, where an error of the unit noise moves the grid point most."""

_LENGTHS = (*range(1, 17), 100, 255, 509)
_SHAPES = (1, 2, 8, 9, 26, 40, 1, 3, 7, 8, 9, 17, 1, 2, 40, 26, 9, 4, 1)

_AES_KEY = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4"
_AES_COUNTER = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"
_AES_PLAIN = (
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
    "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
)
_AES_ANSWER = (
    "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"
    "2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6"
)
_BLAKE_ANSWER = (
    "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1"
    "7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923"
)


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
    words = block_words(b"privfit self-check, not a secret", 0, block)
    mixing = gamma_rows(words, length, shape)
    pair = [c.copy() for c in normal_coordinates(words, length, 2, mixing)]
    words = block_words(b"privfit self-check, not a secret", 0, block)
    factors = [words(length) for _ in range(shape)]
    r_words, a_words = words(length), words(length)
    groups = -(-shape // FACTORS)
    mp = _exact()
    for i in range(length):
        sizes = math.prod(2 * int(word[i]) + 1 for word in factors)
        w = -mp.log(mp.mpf(sizes) / mp.mpf(2) ** (65 * shape)) / shape
        e = -mp.log((mp.mpf(int(r_words[i])) + 0.5) / 2**64)
        word = int(a_words[i])
        angle = (mp.mpf(word >> 2) + 0.5) / 2**62 * mp.pi / 2
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
            errors.append(float(abs(mp.mpf(float(value[i])) * STEPS - truth)))
            bounds.append(relative * float(radius))


def _compare_laplace(block: int, length: int, errors: list[float], bounds: list[float]) -> None:
    """Compare +-E from 63 + 1 bits."""
    drawn = laplace_coordinate(block_words(b"privfit self-check, not a secret", 1, block), length)
    words = block_words(b"privfit self-check, not a secret", 1, block)(length)
    mp = _exact()
    for i in range(length):
        word = int(words[i])
        size = -mp.log((mp.mpf(word >> 1) + 0.5) / 2**63)
        exact = size * (-1 if word & 1 else 1)
        errors.append(float(abs(mp.mpf(float(drawn[i])) - exact)) * STEPS)
        bounds.append(2.0**-53 * (1 + 4 * float(size)) * STEPS)


def _exact() -> Any:
    """Arithmetic of 120 bits, whose precision no other thread can change."""
    from mpmath import MPContext

    context = MPContext()
    context.prec = 120
    return context


def check_ciphers() -> None:
    """Raise RuntimeError unless AES-256-CTR and BLAKE2b give their published answers, in long draws as in short.

    Examples
    --------
    >>> check_ciphers()
    """
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    cipher = Cipher(algorithms.AES(bytes.fromhex(_AES_KEY)), modes.CTR(bytes.fromhex(_AES_COUNTER)))
    plain, room = bytes.fromhex(_AES_PLAIN), bytearray(len(_AES_PLAIN) // 2 + 16)
    size = cipher.encryptor().update_into(plain, room)
    # Long draws go through code for many blocks at a time: they must continue what short ones give.
    long, short = (block_words(bytes(range(32)), 1, 2) for _ in range(2))
    sound = {
        "AES-256-CTR": room[:size].hex() == _AES_ANSWER,
        "BLAKE2b": hashlib.blake2b(b"abc").hexdigest() == _BLAKE_ANSWER,
        "AES-256-CTR of many blocks": (long(515) == np.concatenate([short(n) for n in (1, 1, 3, *[2] * 255)])).all(),
    }
    broken = [name for name, right in sound.items() if not right]
    if broken:
        raise RuntimeError(
            f"this machine's {' and '.join(broken)} does not give the published answers, so noise would not be "
            "secret. Nothing was released. Reinstall the cryptography package and Python."
        )


@lru_cache(maxsize=1)
def check_machine() -> None:
    """Raise RuntimeError unless this machine's ciphers are right and its arithmetic is within the stated slack.

    Runs once per process; the arithmetic once per interpreter and processor, if its pass could be noted in the
    user's cache folder (see `privfit.mechanisms.machine.cache_folder`).

    Examples
    --------
    >>> check_machine()
    """
    check_ciphers()
    key = fingerprint(samplers, keystream, sys.modules[__name__])
    if passed_before(key):
        return
    errors, bounds = sampling_errors()
    worst = float(np.max(errors / bounds))
    mean = float(errors.mean())
    if not (worst <= 1.0 and mean <= SLACK_PER_VALUE / 8):
        raise RuntimeError(
            f"this machine's logarithm or trigonometric functions are too coarse for a safe release: "
            f"error up to {worst:.3g} of what is allowed, mean {mean:.3g} grid steps. Nothing was "
            "released. Install another numpy build."
        )
    note_pass(key)
