"""Randomised response, (eps, delta) curves, polylines and envelopes."""

import math

import numpy as np
import pytest

import privfit.accounting as pa


@pytest.mark.parametrize("k", [2, 3, 10])
def test_randomised_response_by_the_neyman_pearson_lemma(k):
    eps = 0.9
    truth, other = math.exp(eps) / (math.exp(eps) + k - 1), 1 / (math.exp(eps) + k - 1)
    p, q = [truth, other] + [other] * (k - 2), [other, truth] + [other] * (k - 2)
    curve = pa.randomized_response(eps, k)
    order = np.argsort([-b / a for a, b in zip(p, q, strict=True)], kind="stable")
    corners_a = np.concatenate([[0], np.cumsum(np.array(p)[order])])
    corners_b = 1 - np.concatenate([[0], np.cumsum(np.array(q)[order])])
    alpha = np.linspace(0, 1, 97)
    assert np.allclose(curve.curve(alpha), np.interp(alpha, corners_a, corners_b), atol=1e-12)
    assert curve.epsilon(0.0) == eps
    for e in (0.0, 0.3, 0.8999):
        expected = sum(max(b - math.exp(e) * a, 0) for a, b in zip(p, q, strict=True))
        assert curve.delta(e) == pytest.approx(expected, rel=1e-11)


def test_more_categories_are_tighter_than_the_pure_curve():
    alpha = np.linspace(0.05, 0.95, 19)
    pure = pa.approximate_dp(1.0).curve(alpha)
    assert np.allclose(pa.randomized_response(1.0, 2).curve(alpha), pure, atol=1e-12)
    assert np.all(pa.randomized_response(1.0, 6).curve(alpha) >= pure - 1e-12)
    assert pa.randomized_response(1.0, 6).curve(0.3) > pure[5] + 1e-3


def test_epsilon_delta_curve_formula():
    alpha = np.linspace(0, 1, 101)
    expected = np.maximum.reduce([0 * alpha, 1 - 0.1 - math.exp(0.6) * alpha, math.exp(-0.6) * (1 - 0.1 - alpha)])
    assert np.allclose(pa.approximate_dp(0.6, 0.1).curve(alpha), expected, atol=1e-13)
    assert pa.approximate_dp(0.0, 1.0).curve(0.0) == 0.0
    assert pa.approximate_dp(0.0, 0.0).curve(0.25, bound="estimate") == 0.75


def test_polyline_through_points_takes_the_convex_hull():
    curve = pa.from_points([0.2, 0.5, 0.4], [0.5, 0.2, 0.9])
    assert curve.curve(0.2) == pytest.approx(0.5)
    assert curve.curve(0.35) == pytest.approx(0.35)
    assert curve.curve(1.0) == pytest.approx(0.0, abs=1e-15)
    start = pa.from_points([0.0, 0.5], [0.9, 0.2])
    assert start.curve(0.0) == pytest.approx(0.9)
    assert start.infinite_mass == pytest.approx(0.1)


def test_asymmetric_polyline_is_inverted():
    curve = pa.from_points([0.1, 0.3], [0.5, 0.3])
    for alpha in (0.02, 0.2, 0.6):
        beta = curve.curve(alpha)
        assert curve.inverse(beta) == pytest.approx(alpha, abs=1e-12)


def test_profile_is_the_upper_envelope_of_its_lines():
    eps, delta = np.array([0.0, 0.4, 1.0, 2.5]), np.array([0.5, 0.2, 0.19, 0.01])
    curve = pa.from_profile(eps, delta)
    alpha = np.linspace(0, 1, 301)
    lines = [1 - d - math.exp(e) * alpha for e, d in zip(eps, delta, strict=True)]
    mirrored = [math.exp(-e) * (1 - d - alpha) for e, d in zip(eps, delta, strict=True)]
    assert np.allclose(curve.curve(alpha), np.maximum(np.max(lines + mirrored, axis=0), 0), atol=1e-12)


def test_huge_losses_do_not_overflow():
    curve = pa.randomized_response(600.0)
    assert curve.delta(599.0) == pytest.approx(-math.expm1(-1), rel=1e-9)
    assert curve.delta(0.0) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "call",
    [
        lambda: pa.randomized_response(0.0),
        lambda: pa.randomized_response(1.0, 1),
        lambda: pa.approximate_dp(-0.1, 0.1),
        lambda: pa.approximate_dp(0.1, 1.1),
        lambda: pa.from_points([0.1], [0.1, 0.2]),
        lambda: pa.from_points([], []),
        lambda: pa.from_points([1.1], [0.1]),
        lambda: pa.from_profile([-1.0], [0.1]),
        lambda: pa.from_profile([1.0], [float("nan")]),
        lambda: pa.from_profile([], []),
    ],
)
def test_bad_values(call):
    with pytest.raises(ValueError, match="must"):
        call()
