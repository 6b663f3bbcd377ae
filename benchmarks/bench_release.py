"""Release rows: values per second against numpy's Laplace noise, which is fast and not private."""

from __future__ import annotations

import numpy as np
from harness import Row, medians, row

from privfit.mechanisms import (
    Box,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Law,
    SymmetricLaplace,
    ZeroInflatedLaplace,
    release,
)

GOAL = 10e6


def laws(dim: int) -> list[Law]:
    """The laws of the table; shape dim/2 + 1 has the smallest variance at a small delta."""
    shapes = [SymmetricLaplace(1.0), SymmetricLaplace(1.0, shape=dim // 2 + 1)]
    return [Gaussian(1.0), Laplace(1.0), *shapes[: 1 if dim == 1 else 2], ZeroInflatedLaplace(1.0, 0.05)]


def rows_of_one_dimension(dim: int, quick: bool) -> list[Row]:
    """All laws and numpy on a table of `dim` columns."""
    size = (2_000 if quick else 2_000_000) // dim
    generator = np.random.default_rng(0)
    table, domain = generator.random((size, dim)), Box(dict.fromkeys(range(dim), (0, 1)))
    calls = [lambda law=law: release(table, law, domain) for law in laws(dim)]
    *ours, unsafe = medians(*calls, lambda: table + generator.laplace(size=table.shape), quick=quick)
    peer = f"numpy Laplace (unsafe): {table.size / unsafe / 1e6:.1f} M values/s"
    rows = []
    for law, seconds in zip(laws(dim), ours, strict=True):
        speed = table.size / seconds
        what, own = f"release, d = {dim}, {law!r}", f"{speed / 1e6:.1f} M values/s"
        rows.append(Row(what, own, peer, seconds / unsafe, "10 M values/s", speed >= GOAL))
    return rows


@row
def exact_noise(quick: bool) -> Row:
    """Discrete Laplace noise, whose exact sampler is meant for small tables and has no goal."""
    size = 2_000 if quick else 1_000_000
    generator, domain = np.random.default_rng(0), Box({0: (0, 1)})
    table, law = generator.random((size, 1)), DiscreteLaplace(1.0)
    ours, unsafe = medians(
        lambda: release(table, law, domain),
        lambda: table + generator.laplace(size=table.shape),
        quick=quick,
        repeats=5,
    )
    return Row(
        f"release, d = 1, {law!r}, pure epsilon",
        f"{size / ours / 1e6:.2f} M values/s",
        f"numpy Laplace (unsafe): {size / unsafe / 1e6:.1f} M values/s",
        ours / unsafe,
    )


@row
def released_values_per_second(quick: bool) -> list[Row]:
    return [r for dim in (1, 6, 50) for r in rows_of_one_dimension(dim, quick)]
