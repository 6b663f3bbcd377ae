"""Releasing columns block by block: a row's noise depends on the master key, the part and the row's number alone.

Every part and block of rows has its own key, and a block is always drawn whole, also where a piece of a table
begins or ends inside it. Hence a table gives the same bytes however it is cut: in one call, row group by row group,
by several processes, or by a task that is repeated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.additive import AdditiveLaw
from privfit.mechanisms.grid import ROUNDINGS, check_grid, flush
from privfit.mechanisms.keystream import block_words
from privfit.mechanisms.law import Law
from privfit.mechanisms.randomized_response import RandomizedResponse

__all__ = ["block_rows", "check_part", "release_block", "release_part"]

_LEAST_ROWS, _MOST_ROWS, _BLOCK_VALUES = 1024, 8192, 131_072

Arrays = list[NDArray[Any]]


def block_rows(dim: int) -> int:
    """Return the number of rows of a block of `dim` columns: a power of two that stays in the processor's cache.

    Examples
    --------
    >>> block_rows(1), block_rows(50)
    (8192, 2048)
    """
    fitting = max(_BLOCK_VALUES // dim, 1)
    return min(max(1 << (fitting.bit_length() - 1), _LEAST_ROWS), _MOST_ROWS)


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
    first: int = 0,
) -> None:
    """Write the released columns of one part of a table, or of some consecutive rows of it.

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
    first : int
        Number of the first of these rows in the whole table.

    Examples
    --------
    >>> from privfit.mechanisms import Box, Gaussian
    >>> x, key, box = np.zeros(20_000), bytes(32), Box({"x": (0, 1)})
    >>> whole, tail = np.empty(20_000), np.empty(7_000)
    >>> release_part(Gaussian(1.0), box, [x], [whole], key, 0)
    >>> release_part(Gaussian(1.0), box, [x[13_000:]], [tail], key, 0, first=13_000)
    >>> bool((whole[13_000:] == tail).all())
    True
    """
    rows, size = len(columns[0]), block_rows(domain.dim)
    start = 0
    while start < rows:
        block, offset = divmod(first + start, size)
        stop = min(start + size - offset, rows)
        cut, target = [c[start:stop] for c in columns], [o[start:stop] for o in out]
        release_block(law, domain, cut, target, master, part, block, rounding, offset)
        start = stop


def release_block(
    law: Law,
    domain: Any,
    columns: Arrays,
    out: Arrays,
    master: bytes,
    part: int,
    block: int,
    rounding: str = "nearest",
    offset: int = 0,
) -> None:
    """Write rows `offset`, `offset` + 1, ... of one block (see `release_part`); its other rows are made up."""
    words = block_words(master, part, block)
    rows = slice(offset, offset + len(columns[0]))
    if isinstance(law, RandomizedResponse):
        codes = np.zeros(block_rows(1), dtype=np.int64)
        codes[rows] = domain.encode(columns[0])
        out[0][:] = law.randomize(codes, words)[rows]
        return
    assert isinstance(law, AdditiveLaw)
    x = np.zeros((domain.dim, block_rows(domain.dim)))
    # Nothing a cell can hold may warn or raise: overflow to inf is clipped, nan is filled.
    with np.errstate(all="ignore"):
        for j, column in enumerate(columns):
            x[j, rows] = column
        domain.project(x)
        for row, step in zip(x, law.grid(domain.dim), strict=True):
            # Less than 2^-1021 of a grid step: it cannot move the sum with the noise.
            flush(row, max(1.0, float(step)) * 2.0**-1021)
        law._perturb(x, words, domain, ROUNDINGS[rounding](words))
    for j, target in enumerate(out):
        target[:] = x[j, rows]
