"""Roots inside brackets."""

import numpy as np
import pytest

from privfit.accounting.chords import chord_decreasing, chord_epsilon


def test_smooth_roots_take_few_evaluations():
    target, count = np.array([0.1, 2.0, 900.0]), [0]

    def function(x):
        count[0] += 1
        return target - x**3

    low, high = chord_decreasing(function, np.zeros(3), np.full(3, 20.0), 1e-12)
    assert np.all(low <= high)
    assert low == pytest.approx(target ** (1 / 3), rel=1e-12)
    assert count[0] < 60


def test_jumps_are_bisected_to_neighbouring_floats():
    low, high = chord_decreasing(lambda x: np.where(x < 1 / 3, 1.0, -np.inf), np.zeros(1), np.ones(1))
    assert low[0] < 1 / 3 <= high[0] <= low[0] + 2e-16


def test_brackets_without_a_root_return_the_nearer_end():
    low, high = chord_decreasing(lambda x: -1 - x, np.array([0.0]), np.array([1.0]))
    assert low[0] == high[0] == 0.0
    low, high = chord_decreasing(lambda x: 5 - x, np.array([0.0]), np.array([1.0]))
    assert low[0] == high[0] == 1.0


def test_epsilon_of_a_profile_with_mass_and_with_a_largest_loss():
    delta = np.array([[0.5, 0.1], [0.05, 0.0]])

    def disclosed(e):
        return np.log(0.1 + 0.8 * np.exp(-e))

    low, high = chord_epsilon(disclosed, delta, 0.0, 0.1, np.inf)
    assert high[0, 0] == pytest.approx(np.log(2.0), rel=1e-11)
    assert disclosed(low[0, 0]) >= np.log(0.5) >= disclosed(high[0, 0])
    assert np.all(np.isinf(high.ravel()[1:]))

    def bounded(e):
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(1 - e / 3, 0.0))

    low, high = chord_epsilon(bounded, delta, 0.0, 0.0, 3.0)
    assert np.allclose(high, [[1.5, 2.7], [2.85, 3.0]], rtol=1e-11)
