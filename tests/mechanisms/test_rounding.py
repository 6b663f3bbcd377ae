"""Rounding to the grid: the default is pinned, the stochastic option keeps every mean and is recorded."""

import math

import numpy as np
import pandas as pd
import pytest

from privfit.mechanisms import (
    Box,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    RandomizedResponse,
    SymmetricLaplace,
    ZeroInflatedLaplace,
    blocks,
    load_release,
    release,
)
from privfit.mechanisms.categories import Categories
from privfit.mechanisms.grid import stochastic

UNIT = Box({"x": (-1, 1)})
G = 2.0**-10

# Grid values times 1024 of the records (0.3, -0.7), (1/3, 5), (nan, 0.5) under rng=5: simulations stay what they were.
NEAREST = {
    Gaussian(1.0): [-454, -1266, -1725, -1234, -779, 1545],
    Laplace(1.0): [738, -1660, -4232, 370, -818, -31],
    ZeroInflatedLaplace(1.0, 0.5): [-63, -3016, 341, 1024, 0, 512],
}


@pytest.mark.parametrize("law", NEAREST, ids=repr)
def test_nearest_is_the_default_and_has_not_changed(law):
    x, box = np.array([[0.3, -0.7], [1 / 3, 5.0], [np.nan, 0.5]]), Box({0: (-1, 1), 1: (-1, 1)})
    for options in ({}, {"rounding": "nearest"}):
        out = release(x, law, box, rng=5, **options)
        assert (out.frame / G).ravel().tolist() == NEAREST[law] and out.rounding == "nearest"


@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.25, 0.5, 0.9])
def test_the_atom_branch_keeps_its_mean(fraction):
    x, rows = (300 + fraction) * G, 200_000
    law = ZeroInflatedLaplace(1.0, 0.9)
    steps = release(np.full((rows, 1), x), law, UNIT, rounding="stochastic").frame / G
    # A noisy row lands on the same two grid points hardly ever: once in 1000.
    exact = steps[np.abs(steps - 300.5) < 1]
    up = (exact == 301).mean()
    assert abs(up - fraction) < 5 * math.sqrt(0.25 / len(exact)) + 5e-4 and len(exact) > 0.89 * rows
    nearest = release(np.full((rows, 1), x), law, UNIT).frame / G
    assert np.median(nearest) == np.rint(300 + fraction)
    if fraction == 0.0:
        assert np.median(steps) == 300 and up < 5e-4


def test_rounding_alone_is_unbiased_between_any_two_grid_points():
    rng = np.random.default_rng(0)
    values = rng.uniform(-50, 50, 400_000)
    out = values.copy()
    stochastic(blocks.block_words(bytes(32), 0, 0))(out)
    error = out - values
    assert (np.abs(error) <= 1).all() and (out == np.rint(out)).all()
    assert abs(error.mean()) < 5 * error.std() / math.sqrt(len(error))
    # Variance f (1 - f) of a uniform fraction is 1/6, not the 1/12 of rounding to the nearest.
    assert error.var() == pytest.approx(1 / 6, rel=0.02)
    fraction = values - np.floor(values)
    assert abs(np.corrcoef(error, fraction)[0, 1]) < 5 / math.sqrt(len(error))


@pytest.mark.parametrize("word", [0, 2**63, 2**64 - 1])
def test_forced_words_round_to_a_neighbour(word):
    values = np.array([-1.5, -0.0, 0.0, 0.25, 0.999, 7.0])
    out = values.copy()
    stochastic(lambda count: np.full(count, word, dtype=np.uint64))(out)
    assert (np.abs(out - values) <= 1).all() and (out == np.rint(out)).all()


@pytest.mark.parametrize("law", [Gaussian(1.0), Laplace(1.0), SymmetricLaplace(1.0, 2), DiscreteLaplace(1.0)], ids=repr)
def test_values_stay_on_the_grid_and_keep_law_and_guarantee(law, tmp_path):
    box = Box({"a": (0, 1), "b": (0, 1)})
    frame = pd.DataFrame({"a": np.full(500, 1 / 3), "b": np.nan})
    out = law.release(frame, box, rounding="stochastic")
    steps = out.frame.to_numpy() / law.grid(2)
    assert (steps == np.rint(steps)).all() and np.isfinite(steps).all()
    assert out.law == law and str(out.guarantee()) == str(law.guarantee(box))
    out.save(tmp_path / "r.parquet")
    assert load_release(tmp_path / "r.parquet").rounding == "stochastic"
    law.release(frame, box).save(tmp_path / "n.parquet")
    assert load_release(tmp_path / "n.parquet").rounding == "nearest"


def test_labels_take_no_part():
    out = release(np.array([["a"]]), RandomizedResponse(9.0), Categories({0: ["a", "b"]}), rounding="stochastic")
    assert out.frame[0, 0] in ("a", "b")


@pytest.mark.parametrize("bad", ["up", "Nearest", "", None, 1])
def test_other_roundings_are_refused(bad):
    with pytest.raises((ValueError, TypeError), match="rounding"):
        release(np.zeros((2, 1)), Gaussian(1.0), UNIT, rounding=bad)
