"""Releasing columns block by block: one key per part and block, chunks that stay in the processor's cache."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.additive import AdditiveLaw
from privfit.mechanisms.grid import ROUNDINGS, check_grid
from privfit.mechanisms.keystream import block_words
from privfit.mechanisms.law import Law
from privfit.mechanisms.randomized_response import RandomizedResponse

__all__ = ["BLOCK_ROWS", "check_part", "release_block", "release_part"]

BLOCK_ROWS = 65_536
_CHUNK_VALUES = 131_072

Arrays = list[NDArray[Any]]


def check_part(law: Law, domain: Any) -> None:
    """Raise unless `law` can release the columns of `domain`; looks at parameters only.

    Parameters
    ----------
    law : Law
        One law, no Product.
    domain : Box, Ball or Categories

    Examples
    --------
    >>> from privfit.mechanisms import Box, Gaussian
    >>> check_part(Gaussian(1.0), Box({"age": (17, 90)}))
    """
    if not isinstance(law, (AdditiveLaw, RandomizedResponse)):
        raise TypeError(f"law must be an additive law or RandomizedResponse, got {type(law).__name__}.")
    law.check_domain(domain)
    if isinstance(law, AdditiveLaw):
        check_grid(law.scales(domain.dim), law.grid(domain.dim), domain)


def release_part(
    law: Law,
    domain: Any,
    columns: Arrays,
    out: Arrays,
    master: bytes,
    part: int,
    rounding: str = "nearest",
) -> None:
    """Write the released columns of one part of a table.

    Parameters
    ----------
    law : Law
    domain : Box, Ball or Categories
        Passed `check_part`.
    columns : list of ndarray of shape (n,)
        The private columns, in the domain's order: real numbers, or labels for Categories.
    out : list of ndarray of shape (n,)
        Where the grid values, or label codes, go.
    master : bytes
        The release's master key.
    part : int
        Position of the part in the release.
    rounding : {"nearest", "stochastic"}
        How added noise goes to the grid.
    """
    rows = len(columns[0])
    for block, start in enumerate(range(0, rows, BLOCK_ROWS)):
        stop = min(start + BLOCK_ROWS, rows)
        cut, target = [c[start:stop] for c in columns], [o[start:stop] for o in out]
        release_block(law, domain, cut, target, master, part, block, rounding)


def release_block(
    law: Law,
    domain: Any,
    columns: Arrays,
    out: Arrays,
    master: bytes,
    part: int,
    block: int,
    rounding: str = "nearest",
) -> None:
    """Write one block; the same block under the same master key gives the same bytes (see `release_part`)."""
    words = block_words(master, part, block)
    rows = len(columns[0])
    if isinstance(law, RandomizedResponse):
        out[0][:] = law.randomize(domain.encode(columns[0]), words)
        return
    assert isinstance(law, AdditiveLaw)
    dim, round_ = domain.dim, ROUNDINGS[rounding](words)
    size = max(1024, min(8192, _CHUNK_VALUES // dim))
    buffer = np.empty((dim, size))
    for start in range(0, rows, size):
        stop = min(start + size, rows)
        x = buffer[:, : stop - start]
        # Nothing a cell can hold may warn or raise: overflow to inf is clipped, nan is filled.
        with np.errstate(all="ignore"):
            for j, column in enumerate(columns):
                x[j] = column[start:stop]
            domain.project(x)
            law._perturb(x, words, domain, round_)
        for j, target in enumerate(out):
            target[start:stop] = x[j]
