"""Losses on a lattice: on their side of the truth, O(h^2) away, and masses of a pair."""

import numpy as np
import pytest

import privfit.accounting as pa
from privfit.accounting.lattice import aligned, rounded, side_masses
from privfit.accounting.subsampling import SubsampledCurve

CURVES = {
    "laplace": pa.laplace(1.0),
    "laplace, odd width": pa.laplace(1.0301),
    "gaussian": pa.gaussian(0.7),
    "symmetric Laplace": pa.symmetric_laplace(6, 0.5),
    "bounded": pa.symmetric_laplace(3, 0.5, 2),
    "one direction": SubsampledCurve(pa.gaussian(1.0), 0.2, False),
    "one direction, atoms": SubsampledCurve(pa.randomized_response(1.0), 0.3, False),
    "zero inflated": pa.zil(2, 0.4, 0.01),
    "one-sided disclosure": pa.from_distributions([1.0, 0.0], [0.4, 0.6]),
    "disclosure either way": pa.from_distributions([0.3, 0.4, 0.3, 0.0], [0.0, 0.15, 0.25, 0.6]),
    "polyline": pa.from_points([0.1, 0.3, 0.6], [0.6, 0.3, 0.1]),
}
every = pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES.keys())
EPS = np.linspace(-1.2, 3.0, 43)


def profile(atoms, h, eps):
    loss = h * (atoms.first + np.arange(len(atoms.q)))
    return atoms.disclosed + np.maximum(-np.expm1(eps[:, None] - loss), 0.0) @ atoms.q


def both(curve, h):
    right, left = (min(c.max_loss, 12.0) for c in (curve, curve.reversed()))
    return [rounded(curve, h, right, left, pessimistic) for pessimistic in (True, False)]


@every
@pytest.mark.parametrize("h", [0.1, pytest.param(0.0123, marks=pytest.mark.slow)])
def test_rounded_losses_enclose_the_profile(curve, h):
    upper, lower = (profile(atoms, h, EPS) for atoms in both(curve, h))
    assert np.all(upper >= curve.delta(EPS, bound="lower") - 1e-12)
    assert np.all(lower <= curve.delta(EPS) + 1e-12)


@pytest.mark.parametrize("name", ["gaussian", "symmetric Laplace", "one direction", "laplace"])
def test_the_gap_is_of_second_order(name):
    curve = CURVES[name]
    eps = np.linspace(0.0, 0.9, 10)
    gaps = []
    for n in (32, 128):
        h = aligned(1.0 / n, curve.max_loss) if np.isfinite(curve.max_loss) else 1.0 / n
        upper, lower = (profile(atoms, h, eps) for atoms in both(curve, h))
        gaps.append(float((upper - lower).max()))
    assert gaps[1] < gaps[0] / 10  # 16 for a gap of exactly second order


@every
def test_masses_sum_to_one_and_the_pair_has_no_negative_mass(curve):
    for atoms in both(curve, 0.0371):
        assert np.all(atoms.q >= 0)
        assert atoms.q.sum() + atoms.disclosed + atoms.left_out == pytest.approx(1.0, abs=1e-9)


def test_atoms_closely_above_a_lattice_point_cost_nothing():
    curve = pa.randomized_response(0.7)
    h = aligned(0.01, 0.7)
    assert h < 0.01
    upper, lower = (profile(atoms, h, EPS) for atoms in both(curve, h))
    assert np.allclose(upper, lower, atol=1e-9)
    # an atom between two points costs O(h) on the optimistic side
    upper, lower = (profile(atoms, 0.0099, EPS) for atoms in both(curve, 0.0099))
    assert (upper - lower).max() > 1e-4


def test_side_masses_of_a_convex_polyline():
    """Three atoms by hand: delta(e) = sum q (1 - e^(e - t))_+."""
    q, t = np.array([0.2, 0.1]), np.array([0.5, 1.2])
    points = np.array([0.0, 0.5, 1.2])
    y = np.maximum(-np.expm1(points[:, None] - t), 0) @ q
    masses, slope = side_masses(np.diff(points), y)
    assert masses == pytest.approx(q, rel=1e-12)
    assert slope == pytest.approx((q * np.exp(-t)).sum(), rel=1e-12)


def test_side_masses_take_the_minorant_of_a_polyline_that_is_not_convex():
    y = np.array([0.5, 0.49, 0.2, 0.0])
    masses, _ = side_masses(0.5, y)
    loss = 0.5 * np.arange(1, 4)
    values = np.maximum(-np.expm1(np.array([0.0, 0.5, 1.0])[:, None] - loss), 0) @ masses
    assert np.all(values <= y[:3] + 1e-12)
    assert values[0] == pytest.approx(0.5)
