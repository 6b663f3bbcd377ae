"""Randomness: fresh keys, blocks that can be recomputed, forks, and nothing to seed."""

import itertools
import pickle
import subprocess
import sys

import numpy as np
import pytest

from privfit.mechanisms import (
    Box,
    Categories,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    RandomizedResponse,
    SymmetricLaplace,
    ZeroInflatedLaplace,
    release,
    releasing,
)
from privfit.mechanisms.blocks import block_rows, release_block, release_part

BLOCK_ROWS = block_rows(1)


def test_two_releases_differ_and_two_equal_rows_get_different_noise():
    x = np.zeros((100_000, 2))
    box = Box({"a": (0, 1), "b": (0, 1)})
    for law in (Gaussian(1.0), Laplace(1.0), SymmetricLaplace(1.0, shape=2)):
        first, second = (release(x, law, box).frame for _ in range(2))
        assert (first == second).mean() < 0.01
        # Values repeat on the grid, pairs hardly ever: at 1e5 rows of ~1e7 cells.
        assert len(np.unique(first, axis=0)) > 0.98 * len(first)


def test_blocks_differ_from_each_other():
    x = np.zeros((3 * BLOCK_ROWS, 1))
    out = release(x, Gaussian(1.0), Box({"a": (0, 1)})).frame.reshape(3, BLOCK_ROWS)
    assert all((out[i] == out[j]).mean() < 0.01 for i in range(3) for j in range(i))


@pytest.mark.parametrize("law", [ZeroInflatedLaplace([1.0, 2.0], 0.1), Laplace(1.0), DiscreteLaplace(1.0)], ids=repr)
@pytest.mark.parametrize("rounding", ["nearest", "stochastic"])
def test_recomputed_blocks_and_pieces_of_them_are_byte_identical_in_any_order(law, rounding):
    rows, size = 2 * BLOCK_ROWS + 17, block_rows(2)
    columns = [np.linspace(0, 1, rows), np.linspace(1, 0, rows)]
    box, master = Box({"a": (0, 1), "b": (0, 1)}), bytes(range(32))
    whole = np.empty((2, rows))
    release_part(law, box, columns, list(whole), master, 4, rounding)
    pieces = np.empty((2, rows))
    for block in (2, 0, 1, 0, 2):
        cut = slice(block * size, min((block + 1) * size, rows))
        release_block(law, box, [c[cut] for c in columns], [p[cut] for p in pieces], master, 4, block, rounding)
    assert whole.tobytes() == pieces.tobytes()
    for cuts in ([0, 1, 5, size - 1, size + 1, rows], [0, rows - 1, rows], [0, 2 * size, rows]):
        pieces = np.empty((2, rows))
        for start, stop in itertools.pairwise(cuts):
            cut = slice(start, stop)
            one = [c[cut] for c in columns], [p[cut] for p in pieces]
            release_part(law, box, *one, master, 4, rounding, first=start)
        assert whole.tobytes() == pieces.tobytes()


def test_labels_are_the_same_however_the_table_is_cut():
    rows, law, domain = 20_000, RandomizedResponse(1.0, 3), Categories({"l": ["a", "b", "c"]})
    labels = np.array(["a", "b", "c", "a"] * (rows // 4))
    whole, pieces = np.empty((2, rows), dtype=np.int64)
    release_part(law, domain, [labels], [whole], bytes(32), 1)
    for start, stop in itertools.pairwise([0, 3, 8191, 8192, 16_385, rows]):
        release_part(law, domain, [labels[start:stop]], [pieces[start:stop]], bytes(32), 1, first=start)
    assert (whole == pieces).all() and len(np.unique(whole)) == 3


def test_parts_of_a_product_have_independent_noise():
    x = np.zeros((20_000, 2))
    law = {0: Gaussian(1.0), 1: Gaussian(1.0)}
    out = release(x, law, Box({0: (0, 1), 1: (0, 1)}), rng=5).frame
    assert abs(np.corrcoef(out.T)[0, 1]) < 5 / np.sqrt(20_000)


def test_rng_reproduces_and_marks_the_release():
    x, box = np.zeros((100, 1)), Box({"a": (0, 1)})
    one, two, three = (release(x, Gaussian(1.0), box, rng=seed) for seed in (1, 1, 2))
    assert (one.frame == two.frame).all() and (one.frame != three.frame).any()
    assert not one.secure and "secure=False" in repr(one)
    assert release(x, Gaussian(1.0), box).secure


def test_numpys_global_generator_has_no_influence():
    x, box = np.zeros((100, 1)), Box({"a": (0, 1)})
    outs = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        outs.append(release(x, Gaussian(1.0), box).frame)
    assert (outs[0] != outs[1]).any()


FORK = """
import os
import numpy as np
from privfit.mechanisms import Box, ZeroInflatedLaplace
law, box, x = ZeroInflatedLaplace(1.0, 0.01), Box({"a": (0, 1), "b": (0, 1)}), np.zeros((4, 2))
law.release(x, box)                                   # a draw before the fork
for _ in range(3):
    if os.fork() == 0:
        os.write(1, law.release(x, box).frame.tobytes().hex().encode() + b" ")
        os._exit(0)
for _ in range(3):
    os.wait()
os.write(1, law.release(x, box).frame.tobytes().hex().encode() + b" ")
"""


def test_forked_workers_draw_different_noise():
    out = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True)
    lines = out.stdout.split()
    assert len(lines) == 4 and len(set(lines)) == 4


def test_the_master_key_does_not_outlive_the_call(monkeypatch):
    key = np.random.default_rng(9).bytes(32)
    monkeypatch.setattr(releasing, "fresh_master", lambda: key)
    before = sys.getrefcount(key)
    out = release(np.zeros((5, 1)), Gaussian(1.0), Box({"a": (0, 1)}))
    assert sys.getrefcount(key) == before and key not in pickle.dumps(out)
