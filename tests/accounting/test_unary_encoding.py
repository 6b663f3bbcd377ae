"""Unary encoding against enumeration of whole bit vectors and simulation."""

import itertools
import math

import numpy as np
import pytest

import privfit.accounting as pa
from privfit.accounting.unary_encoding import optimized_unary_encoding, symmetric_unary_encoding, unary_encoding


def report_law(category, categories, keep, flip):
    """Probability of every bit vector, in lexicographic order."""
    ones = np.where(np.arange(categories) == category, keep, flip)
    return np.array([np.prod(np.where(bits, ones, 1 - ones)) for bits in itertools.product([0, 1], repeat=categories)])


@pytest.mark.parametrize(("keep", "flip"), [(0.75, 0.25), (0.5, 0.2), (0.9, 0.4), (0.2, 0.7), (1.0, 0.3), (0.6, 0.0)])
def test_profile_is_the_sum_over_all_bit_vectors(keep, flip):
    p, q = report_law(1, 4, keep, flip), report_law(3, 4, keep, flip)
    curve = unary_encoding(keep, flip)
    for eps in (-0.5, 0.0, 0.3, 1.0, 2.5):
        expected = np.maximum(q - math.exp(eps) * p, 0).sum()
        assert curve.delta(eps) == pytest.approx(expected, rel=1e-12, abs=1e-15)
    order = np.argsort(-(q / np.maximum(p, 1e-300)), kind="stable")
    corners = np.r_[0.0, np.cumsum(p[order])], 1 - np.r_[0.0, np.cumsum(q[order])]
    alpha = np.linspace(0.01, 1, 34)
    assert np.allclose(curve.curve(alpha), np.interp(alpha, *corners), atol=1e-12)


@pytest.mark.parametrize("eps", [0.01, 1.0, 4.0, 600.0])
def test_both_designs_have_the_stated_epsilon(eps):
    for curve in (symmetric_unary_encoding(eps), optimized_unary_encoding(eps)):
        assert curve.epsilon(0.0) == eps
        assert curve.delta(0.999 * eps) > 0
        assert curve.dominates(pa.approximate_dp(eps))
    assert optimized_unary_encoding(eps).dominates(symmetric_unary_encoding(eps))


def test_designs_are_unary_encodings_with_the_published_probabilities():
    eps, alpha = 1.2, np.linspace(0, 1, 23)
    keep = math.exp(eps / 2) / (1 + math.exp(eps / 2))
    pairs = [
        (symmetric_unary_encoding(eps), unary_encoding(keep, 1 - keep)),
        (optimized_unary_encoding(eps), unary_encoding(0.5, 1 / (math.exp(eps) + 1))),
    ]
    for curve, general in pairs:
        assert np.allclose(curve.curve(alpha), general.curve(alpha), atol=1e-14)
        assert general.epsilon(0.0) == pytest.approx(eps, rel=1e-14)


def test_certain_bits_and_no_information():
    assert unary_encoding(1.0, 0.0).delta(100.0) == 1.0
    assert unary_encoding(1.0, 0.3).infinite_mass == pytest.approx(0.7)
    assert unary_encoding(0.3, 0.3).delta(0.0) == 0.0
    assert unary_encoding(0.0, 0.0).curve(0.25, bound="estimate") == 0.75


def test_simulation():
    rng = np.random.default_rng(4)
    n, eps, keep = 400_000, 1.5, 0.5
    flip = 1 / (1 + math.exp(eps))
    own, other = rng.random(n) < keep, rng.random(n) < flip  # P: the first category is true
    alpha = optimized_unary_encoding(eps).error_rates(0.0)[0]
    assert abs((other & ~own).mean() - alpha) < 4 * math.sqrt(alpha / n)


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, math.inf])
def test_bad_probabilities(bad):
    with pytest.raises(ValueError, match="keep must be"):
        unary_encoding(bad, 0.2)
    with pytest.raises(ValueError, match="flip must be"):
        unary_encoding(0.2, bad)
    with pytest.raises(ValueError, match="epsilon must be"):
        symmetric_unary_encoding(-abs(bad))


def test_wrong_types():
    with pytest.raises(TypeError, match="keep"):
        unary_encoding("0.5", 0.2)
    with pytest.raises(TypeError, match="epsilon"):
        optimized_unary_encoding(True)
