"""Both directions of an asymmetric pair."""

import math

import numpy as np
import pytest

import privfit.accounting as pa
from privfit.accounting.discrete import from_atoms
from privfit.accounting.symmetrized import SymmetrizedCurve, symmetrized

ALPHA = np.linspace(0, 1, 2001)


def random_pair(seed, cells=7):
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(cells)), rng.dirichlet(np.ones(cells))
    return p, q, from_atoms(np.log(q / p), p, q)


@pytest.mark.parametrize("seed", range(5))
def test_profile_is_the_larger_hockey_stick_divergence(seed):
    p, q, curve = random_pair(seed)
    both = symmetrized(curve)
    for eps in (-3.0, -0.4, 0.0, 0.3, 1.1, 2.5):
        forward = np.maximum(q - math.exp(eps) * p, 0).sum()
        backward = np.maximum(p - math.exp(eps) * q, 0).sum()
        assert both.delta(eps) == pytest.approx(max(forward, backward), rel=1e-12, abs=1e-15)
    assert both.reversed() is both
    assert symmetrized(both) is both


@pytest.mark.parametrize("seed", range(5))
def test_curve_is_the_hull_of_the_minimum_of_both_directions(seed):
    from scipy.spatial import ConvexHull

    _, _, curve = random_pair(seed)
    both = symmetrized(curve)
    kinks = [
        np.concatenate([c.error_rates(np.array(c.loss) + s)[0] for s in (-1e-9, 1e-9)])
        for c in (curve, curve.reversed())
    ]
    grid = np.unique(np.r_[ALPHA, *kinks])
    lower = np.minimum(curve.curve(grid), curve.reversed().curve(grid))
    hull = ConvexHull(np.column_stack([np.r_[grid, 1.5], np.r_[lower, 1.5]])).vertices
    hull = np.sort(hull[hull < grid.size])
    assert np.allclose(both.curve(grid), np.interp(grid, grid[hull], lower[hull]), atol=1e-9)
    assert np.any(both.curve(grid) < lower - 1e-4)  # the hull is strictly below where the two cross


def test_symmetric_curves_come_back_themselves():
    for curve in (pa.gaussian(1.0), pa.laplace(0.5), pa.randomized_response(1.0), pa.approximate_dp(0.5, 0.01)):
        assert symmetrized(curve) is curve


def test_infinite_atoms_and_largest_loss_of_either_direction():
    one_way = from_atoms(
        np.array([-math.inf, -math.log(2), math.log(7)]), np.array([0.3, 0.6, 0.1]), np.array([0.0, 0.3, 0.7])
    )
    both = symmetrized(one_way)
    assert one_way.infinite_mass == 0.0
    assert both.infinite_mass == pytest.approx(0.3, rel=1e-12)
    assert both.delta(math.inf) == pytest.approx(0.3, rel=1e-12)
    assert both.max_loss == math.log(7)
    assert both.curve(0.0) == pytest.approx(0.7, abs=1e-12)
    assert both.error_rates(math.inf) == (0.0, 1.0)


def test_wrong_type():
    for bad in (None, 1.0, "curve"):
        with pytest.raises(TypeError, match="curve must be"):
            symmetrized(bad)
    assert SymmetrizedCurve(pa.gaussian(1.0)).relation == ""
