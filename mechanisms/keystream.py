"""64-bit words: the AES-256-CTR keystream under BLAKE2b(master, part, block).

The master key is 32 fresh bytes of the operating system per release call; it is never stored and dies with
the call. No generator outlives the call, so there is none to fork, copy, pickle or resume; and because every
block has its own key, a block that is computed again gets the same noise, whatever the order of the blocks.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["KEY_BYTES", "MasterKey", "Words", "block_words", "fresh_master", "simulation_master"]

KEY_BYTES = 32

Words = Callable[[int], NDArray[np.uint64]]
"""A source of words: called with a count it returns that many, as a fresh array."""

_ZEROS = bytes(1 << 16)


class MasterKey(bytes):
    """Key bytes that no message, log, traceback or task list shows."""

    def __repr__(self) -> str:
        return "<master key>"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)


def fresh_master() -> MasterKey:
    """Return a master key from the operating system's entropy.

    Examples
    --------
    >>> len(fresh_master()), fresh_master()
    (32, <master key>)
    """
    return MasterKey(os.urandom(KEY_BYTES))


def simulation_master(rng: Any) -> MasterKey:
    """Return a reproducible master key for simulations; a release made with it is marked insecure.

    Parameters
    ----------
    rng : int, SeedSequence, BitGenerator or Generator
        Anything `numpy.random.default_rng` takes (SPEC 7).

    Returns
    -------
    MasterKey

    Examples
    --------
    >>> simulation_master(7) == simulation_master(7)
    True
    """
    return MasterKey(np.random.default_rng(rng).bytes(KEY_BYTES))


def block_words(master: bytes, part: int, block: int) -> Words:
    """Return the word source of one block of rows of one part of a release.

    Parameters
    ----------
    master : bytes of length 32
    part, block : int
        Which law of the release, which block of rows.

    Returns
    -------
    callable
        ``words(count)`` returns the next `count` words as a uint64 array.

    Examples
    --------
    >>> first = block_words(bytes(32), 0, 0)(4)
    >>> (first == block_words(bytes(32), 0, 0)(4)).all()
    np.True_
    """
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    label = part.to_bytes(8, "little") + block.to_bytes(8, "little")
    key = hashlib.blake2b(label, key=master, digest_size=KEY_BYTES, person=b"privfit-block").digest()
    encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def words(count: int) -> NDArray[np.uint64]:
        size = 8 * count
        plain = _ZEROS[:size] if size <= len(_ZEROS) else bytes(size)
        # update_into asks for one cipher block of spare room.
        room = np.empty(size + 16, dtype=np.uint8)
        encryptor.update_into(plain, room.data)
        return room[:size].view(np.uint64)

    return words
