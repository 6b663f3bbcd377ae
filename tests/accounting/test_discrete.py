"""Randomised response, (eps, delta) curves, polylines and envelopes."""

import math

import numpy as np
import pytest

import privfit.accounting as pa
from privfit.accounting.discrete import from_distributions, from_losses


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


def brute_profile(p, q, eps):
    return sum(max(b - math.exp(eps) * a, 0.0) for a, b in zip(p, q, strict=True))


def test_curve_of_two_distributions_is_the_neyman_pearson_polyline():
    rng = np.random.default_rng(3)
    p, q = rng.dirichlet(np.full(12, 0.4)), rng.dirichlet(np.full(12, 0.4))
    p[3], q[7] = 0.0, 0.0
    p, q = p / p.sum(), q / q.sum()
    curve, back = from_distributions(p, q), from_distributions(q, p)
    for eps in (-1.3, 0.0, 0.4, 2.0):
        assert curve.delta(eps) == pytest.approx(brute_profile(p, q, eps), rel=1e-12)
        assert curve.reversed().delta(eps) == pytest.approx(brute_profile(q, p, eps), rel=1e-12)
    assert curve.delta(math.inf) == pytest.approx(q[3], rel=1e-12)
    alpha = np.linspace(0, 1, 41)
    # every subset of outcomes is a test: none lies below the curve, and the curve is a hull of some
    subsets = (np.arange(2**12)[:, None] >> np.arange(12)) & 1
    level, error = subsets @ p, 1 - subsets @ q
    assert np.all(curve.curve(np.clip(level, 0, 1)) <= error + 1e-12)
    hull = pa.from_points(np.clip(level, 0, 1), np.clip(error, 0, 1))
    assert np.allclose(curve.curve(alpha), hull.curve(alpha), atol=1e-12)
    assert np.allclose(curve.inverse(alpha), back.curve(alpha), atol=1e-12)


def test_tiny_masses_keep_their_losses():
    p, q = [1 - 1e-300, 1e-300, 0.0], [1 - 3e-300 - 1e-305, 3e-300, 1e-305]
    curve = from_distributions(p, q)
    assert curve.max_loss == pytest.approx(math.log(3.0), rel=1e-15)
    assert curve.delta(1.0, bound="estimate") == pytest.approx(3e-300 - math.e * 1e-300 + 1e-305, rel=1e-13)
    far = from_distributions([1 - 1e-310, 1e-310], [0.5, 0.5])
    assert far.max_loss == pytest.approx(math.log(0.5) + 310 * math.log(10), rel=1e-12)


def test_loss_distribution_gives_back_the_curve_it_came_from():
    whole = pa.randomized_response(1.1, 5)
    again = from_losses(whole.loss, whole.q)
    alpha = np.linspace(0, 1, 21)
    assert np.allclose(again.curve(alpha), whole.curve(alpha), atol=1e-14)
    part = pa.approximate_dp(0.8, 0.1)
    order = [3, 1, 2]  # the loss -inf has no mass under Q: it is found again from what P lacks
    again = from_losses(np.array(part.loss)[order], np.array(part.q)[order])
    assert again.loss[0] == -math.inf
    assert np.allclose(again.curve(alpha), part.curve(alpha), atol=1e-14)
    assert np.allclose(again.inverse(alpha), part.inverse(alpha), atol=1e-14)
    split = from_losses([0.5, 0.5, -0.2], [0.3, 0.4, 0.3])
    assert split.loss == (-math.inf, -0.2, 0.5)
    assert split.delta(0.0) == pytest.approx(0.7 * -math.expm1(-0.5), rel=1e-12)


def test_loss_distribution_of_dp_accounting():
    """Its dense loss distributions are the same object: equal losses, masses and profile."""
    pld_pmf = pytest.importorskip("dp_accounting.pld.pld_pmf")
    rng = np.random.default_rng(4)
    interval, lowest, certain = 0.01, -150, 1e-4
    loss = (lowest + np.arange(400)) * interval
    q = rng.dirichlet(np.full(400, 0.5)) * (1 - certain) * np.where(loss > 0, 1.0, np.exp(loss))
    q[-1] += 1 - certain - q.sum()
    other = pld_pmf.DensePLDPmf(interval, lowest, q, certain, pessimistic_estimate=True)
    curve = from_losses(np.append(loss, np.inf), np.append(q, certain))
    eps = np.linspace(0.0, 3.0, 61)
    assert np.allclose(curve.delta(eps), other.get_delta_for_epsilon(eps), rtol=1e-10)
    assert curve.delta(np.inf) == pytest.approx(certain, rel=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: from_losses([1.0, -1.0], [0.1, 0.9]), "at most 1"),
        (lambda: from_losses([1.0, -1.0], [0.5, 0.4]), "q must sum to 1"),
        (lambda: from_losses([1.0, -math.inf], [0.5, 0.5]), "must be 0 where loss is -inf"),
        (lambda: from_losses([1.0], [0.5, 0.5]), "same length"),
        (lambda: from_losses([math.nan, 0.0], [0.5, 0.5]), "loss must be"),
        (lambda: from_losses([-1e4, 0.0], [0.5, 0.5]), "at most 1"),
        (lambda: from_losses([], []), "q must sum to 1"),
        (lambda: from_distributions([0.5, 0.5], [0.5, 0.5, 0.0]), "same shape"),
        (lambda: from_distributions([1.5, -0.5], [0.5, 0.5]), "p must be"),
        (lambda: from_distributions([0.5, 0.5], [0.5, 0.4]), "q must sum to 1"),
    ],
)
def test_bad_distributions(call, message):
    with pytest.raises(ValueError, match=message):
        call()


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
