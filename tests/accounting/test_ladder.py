"""Plans of tables: rungs, and answers that agree wherever two tables meet."""

import math

import numpy as np
import pytest

import privfit.accounting as pa
from privfit.accounting.ladder import Ladder
from privfit.accounting.subsampling import SubsampledCurve


def test_light_and_heavy_tails_are_told_apart():
    assert Ladder((pa.gaussian(30.0), pa.laplace(0.1)), (1, 3)).light
    assert Ladder((pa.symmetric_laplace(2, 0.5, 1),), (3,)).light  # exp(-e^t)
    assert not Ladder((pa.symmetric_laplace(6, 0.01),), (3,)).light
    assert not Ladder((pa.gaussian(1.0), pa.symmetric_laplace_limit(0.2, 12)), (1, 2)).light


def test_rungs_follow_the_saddle_point():
    """The best tilt of a Gaussian sum at eps is (mu^2/2 - eps) / mu^2, up to half a rung."""
    ladder = Ladder((pa.gaussian(0.1),), (100,))
    tilts, constants = ladder.rungs
    assert np.all(np.diff(tilts) < 0)
    assert constants == pytest.approx(0.5 * tilts * (tilts - 1), rel=1e-2, abs=2e-2)
    for eps in (0.5, 5.0, 20.0):
        best = 0.5 - eps
        rung = int(ladder.rung(np.array([eps]))[0])
        assert abs(tilts[rung] - best) < 4.0
    assert ladder.rung(np.array([math.inf]))[0] == len(tilts) - 1


@pytest.mark.parametrize(
    ("parts", "counts"),
    [
        pytest.param((pa.laplace(0.3),), (40,), id="laplace"),
        pytest.param(
            (pa.laplace(0.3), pa.gaussian(0.2), pa.symmetric_laplace(3, 0.05, 2)),
            (10, 5, 3),
            id="mixed",
            marks=pytest.mark.slow,
        ),
        pytest.param((SubsampledCurve(pa.gaussian(1.0), 0.05, False),), (100,), id="subsampled"),
        pytest.param((pa.symmetric_laplace(6, 0.1),), (6,), id="heavy"),
    ],
)
def test_bounds_are_ordered_and_fall_from_table_to_table(parts, counts):
    ladder = Ladder(parts, counts)
    top = ladder.epsilon(1e-30, "upper") if ladder.light else 40.0
    eps = np.linspace(0.0, min(top, 40.0), 400)
    low, high = ladder.delta(eps, "lower"), ladder.delta(eps, "upper")
    assert np.all(low <= high)
    middle = 0.5 * (low + high)
    assert np.all(np.diff(middle) <= 2e-6 * middle[:-1])
    for delta in (1e-2, 1e-5, 1e-9):
        ends = [ladder.epsilon(delta, side) for side in ("lower", "upper")]
        assert ends[0] <= ends[1]
        if math.isfinite(ends[1]):
            assert ladder.delta(np.array([ends[1]]), "upper")[0] <= delta * (1 + 1e-9)
            assert ladder.delta(np.array([ends[0] * (1 - 1e-12)]), "lower")[0] >= delta * (1 - 1e-9) or ends[0] == 0


def test_no_answer_is_infinite_and_not_a_guess():
    ladder = Ladder((pa.zero_inflated(pa.laplace(0.1), 0.01),), (2,))
    assert ladder.epsilon(1e-3, "upper") == math.inf
    assert ladder.epsilon(1e-3, "lower") > 0.15
