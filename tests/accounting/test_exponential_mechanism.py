"""The bounded-range curve against its two-atom pairs, real exponential mechanisms and 50 digits."""

import math

import mpmath
import numpy as np
import pytest

import privfit.accounting as pa
from privfit.accounting.discrete import from_distributions
from privfit.accounting.exponential_mechanism import exponential_mechanism


def two_atoms(eta, t):
    """Probabilities with losses t and t - eta, from p1 + p2 = 1 and q1 + q2 = 1."""
    p1 = (1 - math.exp(t - eta)) / (math.exp(t) - math.exp(t - eta))
    p, q = np.array([p1, 1 - p1]), np.array([p1 * math.exp(t), (1 - p1) * math.exp(t - eta)])
    return p, q / q.sum()


@pytest.mark.parametrize("eta", [0.05, 1.0, 6.0])
def test_profile_and_curve_are_the_worst_over_the_position(eta):
    curve = exponential_mechanism(eta)
    pairs = [two_atoms(eta, t) for t in np.linspace(0, eta, 2001)[1:-1]]
    for eps in np.array([-0.9, -0.3, 0.0, 0.2, 0.7, 0.99]) * eta:
        worst = max(np.maximum(q - math.exp(eps) * p, 0).sum() for p, q in pairs)
        # the grid misses the maximum by a squared step
        assert worst <= curve.delta(eps) * (1 + 1e-12)
        assert worst == pytest.approx(curve.delta(eps), rel=1e-3, abs=1e-12)
        assert worst == pytest.approx(curve.delta(eps), abs=1e-6)
    alpha = np.linspace(0, 1, 41)
    lowest = np.min([np.interp(alpha, [0, p[0], 1], [1, q[1], 0]) for p, q in pairs], axis=0)
    assert np.all(lowest >= curve.curve(alpha) - 1e-14)
    assert np.allclose(lowest, curve.curve(alpha), atol=3e-4 * eta)


def test_every_exponential_mechanism_lies_above():
    rng = np.random.default_rng(12)
    closest = math.inf
    for _ in range(200):
        outputs = int(rng.integers(2, 9))
        rate, score = rng.uniform(0.2, 2.0), rng.normal(size=outputs) * 2
        moved = score + rng.choice([-1.0, 1.0], size=outputs) * rng.choice([1.0, rng.random()], size=outputs)
        p, q = np.exp(rate * score), np.exp(rate * moved)
        pair = from_distributions(p / p.sum(), q / q.sum())
        alpha = np.linspace(0, 1, 31)
        gap = pair.curve(alpha) - exponential_mechanism(2 * rate).curve(alpha)
        assert np.all(gap >= -1e-12)
        closest = min(closest, gap[1:-1].min())
    assert closest < 5e-3  # and some come close: the bound is not loose


def test_monotonic_scores_have_half_the_range():
    rng = np.random.default_rng(13)
    for _ in range(50):
        score = rng.normal(size=6) * 2
        moved = score + rng.random(6).round()
        p, q = np.exp(1.3 * score), np.exp(1.3 * moved)
        pair = from_distributions(p / p.sum(), q / q.sum())
        assert pair.dominates(exponential_mechanism(1.3), tolerance=1e-9)


def test_formulas_at_50_digits():
    alphas = [1e-300, 1e-12, 0.2, 0.999]
    for eta in (1e-6, 0.8, 30.0, 1000.0):
        curve = exponential_mechanism(eta)
        with mpmath.workdps(60):
            one, e = mpmath.mpf(1), mpmath.exp(-mpmath.mpf(eta))
            for share in (-0.7, 0.0, 0.5, 1 - 2**-40):
                eps = share * eta
                u = mpmath.sqrt(e * mpmath.exp(-mpmath.mpf(eps)))  # e^-t of the worst position
                exact = (1 - e / u) * (1 - mpmath.exp(mpmath.mpf(eps)) * u) / (1 - e)
                assert curve.delta(eps, bound="lower") <= exact <= curve.delta(eps)
                assert float(curve.log_delta(eps)) == pytest.approx(float(mpmath.log(exact)), abs=1e-13)
            for a in alphas:
                exact = e * (one - mpmath.mpf(a)) / (e + (1 - e) * mpmath.mpf(a))
                tolerance = 1e-14 + 4e-16 * eta
                assert curve.curve(a, bound="estimate") == pytest.approx(float(exact), rel=tolerance)


def test_pure_and_composable():
    curve = exponential_mechanism(0.9)
    assert curve.epsilon(0.0) == curve.max_loss == 0.9
    assert curve.delta(0.9) == curve.delta(math.inf) == 0.0
    assert curve.advantage == pytest.approx(math.tanh(0.9 / 4), rel=1e-13)
    assert curve.dominates(pa.approximate_dp(0.9))
    assert curve.reversed() is curve
    for delta in (1e-12, 1e-3, 0.2):
        assert curve.delta(curve.epsilon(delta)) == pytest.approx(delta, rel=1e-9)


def test_simulation_of_gumbel_noisy_max():
    """Report-noisy-max with Gumbel noise is the exponential mechanism: its best test stays above the curve."""
    rng = np.random.default_rng(21)
    n, rate = 200_000, 0.8
    score = np.array([0.0, 0.3, -0.2])
    noise = rng.gumbel(size=(2, n, 3)) / rate
    under_p = np.argmax(score + noise[0], axis=1) == 1
    under_q = np.argmax(score + np.array([-1.0, 1.0, -1.0]) + noise[1], axis=1) == 1
    alpha, beta = under_p.mean(), 1 - under_q.mean()
    assert beta > exponential_mechanism(2 * rate).curve(alpha) - 4 / math.sqrt(n)
    assert beta < pa.gaussian(0.01).curve(alpha)  # the attack does work


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_bad_epsilon(bad):
    with pytest.raises(ValueError, match="epsilon must be"):
        exponential_mechanism(bad)
    with pytest.raises(TypeError, match="epsilon must be"):
        exponential_mechanism(str(bad))
