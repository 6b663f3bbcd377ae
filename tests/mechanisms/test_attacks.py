"""Attacks on floating-point noise: they must succeed on the textbook sampler and exclude nothing on ours.

Reachability (Mironov 2012): an output y is excluded for an input x if no state of the generator leads from x
to y. For ours a state is exhibited for every output: the word that gives it.
"""

import numpy as np
import pytest

from privfit.mechanisms import Box, Gaussian, Laplace, SymmetricLaplace, ZeroInflatedLaplace, blocks, release

N = 100_000


def textbook_laplace(k):
    """numpy's Laplace(0, 1) from its uniform k 2^-53."""
    u = k * 2.0**-53
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(u >= 0.5, -np.log(2.0 - u - u), np.log(u + u))


def textbook_reachable(y, x, reach=4):
    """Whether some uniform near the solution of x + Laplace = y gives exactly y."""
    z = y - x
    u = np.where(z >= 0, 1 - np.exp(-np.abs(z)) / 2, np.exp(-np.abs(z)) / 2)
    centre = np.rint(u * 2.0**53)
    hit = np.zeros(len(y), dtype=bool)
    for step in range(-reach, reach + 1):
        k = np.clip(centre + step, 0, 2.0**53 - 1)
        hit |= x + textbook_laplace(k) == y
    return hit


def test_the_attack_bites_on_the_textbook_sampler():
    rng = np.random.default_rng(0)
    y = 0.0 + rng.laplace(size=N)
    # The model of numpy's sampler is right: every output is reachable from the true input ...
    assert textbook_reachable(y, 0.0).all()
    # ... and most outputs prove that the input was not the neighbour.
    assert (~textbook_reachable(y, 1.0)).mean() > 0.5


@pytest.mark.parametrize("law", [Laplace(1.0), SymmetricLaplace(2**0.5)], ids=repr)
@pytest.mark.parametrize("x", [0.0, 1 / 3])
def test_every_output_is_reached_from_the_neighbour(law, x, monkeypatch):
    box, other, g = Box({"a": (0, 1)}), 1.0, 2.0**-10
    y = release(np.full(N, x), law, box, rng=11).frame
    # Both laws are +-E with E = -log U and U = (word + 1/2) 2^-63: the word that leads from `other` to y.
    move = y - other
    word = np.clip(np.exp(-np.abs(move)) * 2.0**63 - 0.5, 0, 2.0**63 - 1024).astype(np.uint64)
    word = (word << np.uint64(1)) | (move < 0).astype(np.uint64)
    # Blocks are drawn whole, also the last one, whose other rows are made up.
    padded = np.concatenate([word, np.zeros(-N % blocks.block_rows(1), dtype=np.uint64)])
    served = 0

    def words(count):
        nonlocal served
        served += count
        return padded[served - count : served].copy()

    monkeypatch.setattr(blocks, "block_words", lambda *key: words)
    out = np.empty(N)
    blocks.release_part(law, box, [np.full(N, other)], [out], b"", 0)
    assert (out != y).sum() == 0
    assert (y % g == 0).all()


LAWS = [
    Gaussian(1.0),
    Laplace(1.0),
    SymmetricLaplace(1.0),
    SymmetricLaplace(1.0, shape=4),
    ZeroInflatedLaplace(1.0, 0.05),
]


def off_grid(y, g):
    return (y / g != np.rint(y / g)).sum()


@pytest.mark.parametrize("law", LAWS, ids=repr)
@pytest.mark.parametrize("dim", [1, 2, 50])
def test_low_bits_are_the_grids_whatever_the_input(law, dim):
    rows = N // dim
    box = Box(dict.fromkeys(range(dim), (0, 1)))
    for x in (0.0, 1 / 3, 1.0):
        y = release(np.full((rows, dim), x), law, box).frame
        assert off_grid(y, 2.0**-10) == 0
        # The whole grid is used, not a coarser one that would depend on x.
        assert off_grid(y, 2.0**-9) > 0.4 * y.size * (1 - law.exact_fraction)


def test_a_float_output_would_be_off_the_grid():
    y = 1 / 3 + np.random.default_rng(0).laplace(size=N)
    assert off_grid(y, 2.0**-10) > 0.99 * N


def test_exact_rows_land_on_the_grid_point_of_the_input_only():
    law, box = ZeroInflatedLaplace(1.0, 0.5), Box({0: (0, 1), 1: (0, 1)})
    y = release(np.full((N, 2), 1 / 3), law, box).frame
    exact = (np.abs(y - 1 / 3) < 2.0**-11).all(axis=1)
    assert abs(exact.mean() - 0.5) < 5 * 0.5 / np.sqrt(N)
    assert len(np.unique(y[exact], axis=0)) == 1
