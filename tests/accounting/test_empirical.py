"""Empirical curves: counting, convexity, and coverage of the bands by simulation."""

import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta as beta_law

import privfit.accounting as pa
from privfit.accounting.empirical import EmpiricalCurve, empirical

GRID = np.linspace(0, 1, 301)


def brute_points(p, q):
    """Error rates of "score > s" at every threshold that matters, by counting."""
    thresholds = [-math.inf, *np.unique(np.r_[p, q])]
    return np.array([((p > s).mean(), (q <= s).mean()) for s in thresholds])


def brute_hull(points, alpha):
    """Value at alpha of the lower hull, as the least chord over all pairs of points."""
    best = math.inf
    for a, b in points:
        for c, d in points:
            if a <= alpha <= c:
                best = min(
                    best, max(b, d) if a == c and a < alpha else b if a == c else b + (d - b) * (alpha - a) / (c - a)
                )
    return best


def even_radius(n, confidence):
    """Half-width that 2 exp(-2 n r^2) = (1 - confidence) / 4 asks for."""
    return math.sqrt(math.log(8 / (1 - confidence)) / (2 * n))


def limits(frequency, n, confidence):
    """Both bands of one sample at its counts: Dvoretzky-Kiefer-Wolfowitz and Clopper-Pearson with a union bound."""
    count, level, r = np.rint(frequency * n), (1 - confidence) / (8 * n), even_radius(n, confidence)
    low = np.where(count > 0, beta_law.ppf(level, np.maximum(count, 1), n - count + 1), 0.0)
    high = np.where(count < n, beta_law.isf(level, count + 1, np.maximum(n - count, 1)), 1.0)
    return np.maximum(frequency - r, low), np.minimum(frequency + r, high)


scores = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=12)


@settings(max_examples=40, deadline=None)
@given(scores, scores)
def test_estimate_is_the_hull_of_the_counted_error_rates(p, q):
    curve = empirical(np.array(p), np.array(q))
    points = np.vstack([brute_points(np.array(p), np.array(q)), [[0.0, 1.0], [1.0, 0.0]]])
    for alpha in (0.0, 0.07, 0.3, 0.5, 0.81, 1.0):
        assert curve.curve(alpha, bound="estimate") == pytest.approx(brute_hull(points, alpha), abs=1e-12)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(scores, scores, st.sampled_from([0.5, 0.95]), st.sampled_from([1, 30, 1000]))
def test_bands_are_the_shifted_hull_and_valid_trade_off_functions(p, q, confidence, copies):
    p, q = np.repeat(p, copies), np.repeat(q, copies)
    curve = empirical(p, q, confidence)
    lower, estimate, upper = (curve.curve(GRID, bound=b) for b in ("lower", "estimate", "upper"))
    points = brute_points(p, q)
    low, high = (
        np.column_stack([limits(points[:, i], len(v), confidence)[j] for i, v in enumerate((p, q))]) for j in (0, 1)
    )
    # every threshold's point is above the lower band; the upper band is the hull of the upper points, or above it
    assert np.all(curve.curve(low[:, 0], bound="lower") <= low[:, 1] + 1e-12)
    ends = [[0.0, 1.0], [1.0, 0.0]]
    assert upper[60] >= brute_hull(np.vstack([high, ends]), GRID[60]) - 1e-12
    # and neither is further away than the even band alone
    wide = even_radius(len(p), confidence), even_radius(len(q), confidence)
    shifted = np.interp(np.minimum(GRID + wide[0], 1.0), curve.alpha, curve.beta) - wide[1]
    assert np.all(lower >= shifted - 2 * (1 / len(p) + 1 / len(q)))
    assert np.all(lower <= estimate + 1e-12)
    assert np.all(estimate <= upper + 1e-12)
    for f in (lower, upper):
        assert np.all((f >= 0) & (f <= 1 - GRID + 1e-12))
        assert np.all(np.diff(f) <= 1e-12)
        assert np.all(np.diff(f, 2) >= -1e-12)


def violations(replications, n, m, shrink=1):
    """How often a band misses G_1 somewhere; the score is the output, which increases with dQ/dP."""
    rng = np.random.default_rng(77)
    truth, missed = pa.gaussian(1.0).curve(GRID, bound="estimate"), 0
    for _ in range(replications):
        curve = empirical(rng.normal(size=n), rng.normal(1.0, size=m), 0.8)
        curve = EmpiricalCurve(curve.alpha, curve.beta, n * shrink, m * shrink, 0.8)
        low, high = curve.curve(GRID, bound="lower"), curve.curve(GRID, bound="upper")
        missed += bool(np.any(low > truth) or np.any(high < truth))
    return missed


def test_coverage_by_simulation():
    """At most 20 % of 200 runs may miss (binomial standard deviation 5.7); a third of the width misses often."""
    assert violations(200, 400, 300) <= 40
    assert violations(60, 400, 300, shrink=9) > 30


@pytest.mark.slow
def test_coverage_by_simulation_of_more_runs():
    assert violations(4000, 150, 600) <= 800


def test_coverage_holds_for_discrete_scores():
    """Ties: the loss of randomised response with 4 categories takes three values."""
    law, rng, missed = pa.randomized_response(1.0, 4), np.random.default_rng(5), 0
    truth = law.curve(GRID, bound="estimate")
    for _ in range(200):
        curve = empirical(rng.choice(law.loss, 300, p=law.p), rng.choice(law.loss, 300, p=law.q), 0.8)
        missed += bool(
            np.any(curve.curve(GRID, bound="lower") > truth + 1e-12)
            or np.any(curve.curve(GRID, bound="upper") < truth - 1e-12)
        )
    assert missed <= 40


def test_a_poor_attack_bounds_the_mechanism_from_one_side_only():
    rng = np.random.default_rng(6)
    n = 20_000
    p, q = rng.normal(size=n), rng.normal(1.0, size=n)
    blurred = empirical(p + rng.normal(size=n) * 2, q + rng.normal(size=n) * 2)
    truth = pa.gaussian(1.0)
    assert blurred.curve(0.2, bound="lower") > truth.curve(0.2) + 0.1  # no guarantee for the mechanism
    assert np.all(blurred.curve(GRID, bound="upper") >= truth.curve(GRID))  # but a valid audit
    assert blurred.epsilon(0.05, bound="lower") < truth.epsilon(0.05)
    noisy = pa.gaussian(1 / math.sqrt(5))  # what the blurred outputs themselves guarantee
    assert np.all(blurred.curve(GRID) <= noisy.curve(GRID))


def test_default_numbers_are_on_the_safe_side():
    rng = np.random.default_rng(9)
    curve, truth = empirical(rng.normal(size=5000), rng.normal(0.7, size=8000)), pa.gaussian(0.7)
    eps = np.array([0.0, 0.3, 1.0])
    assert np.all(curve.delta(eps) >= truth.delta(eps))
    assert np.all(curve.delta(eps, bound="lower") <= truth.delta(eps))
    assert np.all(curve.delta(eps, bound="lower") <= curve.delta(eps, bound="estimate"))
    assert np.all(curve.delta(eps, bound="estimate") <= curve.delta(eps))
    assert curve.advantage == curve.delta(0.0)
    for delta in (0.1, 0.2):
        assert curve.epsilon(delta, bound="lower") <= truth.epsilon(delta) <= curve.epsilon(delta)
        assert curve.delta(curve.epsilon(delta)) <= delta * (1 + 1e-9)
    # n samples cannot exclude that a few outputs, about log(n)/n of all, are disclosed with certainty
    assert curve.epsilon(1e-4) == math.inf
    assert 1e-4 < curve.delta(math.inf) < 0.01


def test_bands_shrink_with_the_square_root_of_the_sample():
    rng = np.random.default_rng(10)
    widths = []
    for n in (1000, 100_000):
        curve = empirical(rng.normal(size=n), rng.normal(1.0, size=n))
        widths.append(np.max(curve.curve(GRID, bound="upper") - curve.curve(GRID, bound="lower")))
    assert widths[1] < widths[0] / 7


def test_reversed_swaps_the_samples():
    rng = np.random.default_rng(11)
    p, q = rng.normal(size=300), rng.normal(1.0, 2.0, size=500)
    back, direct = empirical(p, q).reversed(), empirical(-q, -p)
    for bound in ("lower", "estimate", "upper"):
        assert np.allclose(back.curve(GRID, bound=bound), direct.curve(GRID, bound=bound), atol=1e-9)
    assert empirical(p, q).inverse(0.3) == back.curve(0.3)
    apart = empirical([0.0], [1.0]).reversed()
    assert apart.curve(0.5, bound="estimate") == 0.0


def test_extreme_samples():
    apart = empirical(np.zeros(10_000), np.ones(10_000))
    assert apart.curve(0.0, bound="estimate") == 0.0
    assert apart.curve(0.0) == 0.0
    assert 0 < apart.curve(0.01, bound="upper") < 0.01
    same = empirical(np.zeros(10_000), np.zeros(10_000))
    assert same.curve(0.25, bound="estimate") == 0.75
    assert 0.7 < same.curve(0.25) < 0.75
    wrong = empirical(np.ones(50), np.zeros(50))  # a score that points the wrong way is as good as chance
    assert wrong.curve(0.25, bound="estimate") == 0.75
    single = empirical([1.0], [2.0])
    assert single.curve(0.5) == 0.0
    assert single.curve(0.5, bound="upper") == 0.5
    assert empirical([-math.inf, 0.0], [math.inf, 0.0]).curve(0.0, bound="estimate") == 0.5


def test_round_trip():
    rng = np.random.default_rng(13)
    curve = empirical(rng.normal(size=200), rng.normal(1.0, size=300), 0.9)
    again = pa.TradeOffCurve.from_dict(json.loads(json.dumps(curve.to_dict(), allow_nan=False)))
    assert again == curve
    assert again.delta(0.4) == curve.delta(0.4)
    assert pickle.loads(pickle.dumps(curve)).curve(0.3, bound="upper") == curve.curve(0.3, bound="upper")


@pytest.mark.parametrize(
    ("call", "error", "name"),
    [
        (lambda: empirical([], [1.0]), ValueError, "p_scores"),
        (lambda: empirical([1.0], [math.nan]), ValueError, "q_scores"),
        (lambda: empirical(["a"], [1.0]), TypeError, "p_scores"),
        (lambda: empirical([1.0], [1.0], 1.0), ValueError, "confidence"),
        (lambda: empirical([1.0], [1.0], 0.0), ValueError, "confidence"),
        (lambda: empirical([1.0], [1.0], "0.95"), TypeError, "confidence"),
        (lambda: EmpiricalCurve((0.0, 0.0), (1.0, 0.0), 1, 1, 0.9), ValueError, "alpha must increase"),
        (lambda: EmpiricalCurve((0.0, 1.0), (1.0,), 1, 1, 0.9), ValueError, "same positive length"),
        (lambda: EmpiricalCurve((0.0, 1.0), (1.0, 0.0), 0, 1, 0.9), ValueError, "p_size"),
    ],
)
def test_bad_arguments(call, error, name):
    with pytest.raises(error, match=name):
        call()
