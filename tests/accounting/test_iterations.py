"""Noise of subsampled iterations: named, on the safe side, and no more than needed."""

import math

import pytest

from privfit.accounting import GDP, Advantage, Budget, ErrorRates, gaussian
from privfit.accounting.iterations import IterationNoise, calibrate_iterations
from privfit.accounting.targets import as_target

TARGET = Budget(1.0, 1e-5)


@pytest.mark.parametrize("iterations", [1, 4, 100])
def test_full_batches_are_one_gaussian_release_each(iterations):
    # Balle & Wang's sigma for (1, 1e-5) at sensitivity 1, and T Gaussian releases exactly.
    found = calibrate_iterations(TARGET, rate=1.0, iterations=iterations)
    assert found.noise_multiplier == pytest.approx(3.730631634 * math.sqrt(iterations), rel=2e-6)
    assert calibrate_iterations(GDP(0.5), rate=1.0, iterations=iterations).sigma == pytest.approx(
        2 * math.sqrt(iterations), rel=2e-6
    )


def test_noise_multiplier_sigma_and_clip_are_told_apart():
    found = calibrate_iterations(TARGET, rate=1.0, iterations=1, clip=3.0)
    assert found.noise_multiplier == pytest.approx(3.730631634, rel=2e-6)
    assert found.sigma == pytest.approx(3 * 3.730631634, rel=2e-6) and found.clip == 3.0
    assert found.curve.delta(1.0) <= 1e-5
    assert IterationNoise(2.0, 0.5, 0.1, 10, "poisson").sensitivity == 0.5


def test_replacing_a_record_moves_the_sum_by_twice_the_clip():
    add = calibrate_iterations(TARGET, rate=1.0, iterations=1)
    swap = calibrate_iterations(TARGET, rate=1.0, iterations=1, scheme="without_replacement")
    assert (add.relation, swap.relation) == ("add or remove one record", "replace one record")
    assert swap.noise_multiplier == pytest.approx(2 * add.noise_multiplier, rel=4e-6)
    assert (add.sensitivity, swap.sensitivity) == (1.0, 2.0)


def one_step_delta(epsilon, sigma, rate):
    """max over directions of the hockey-stick divergence of (1-r) N(0, s^2) + r N(1, s^2), by quadrature."""
    from scipy.integrate import quad

    def p(x):
        return math.exp(-0.5 * (x / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi))

    def q(x):
        return (1 - rate) * p(x) + rate * p(x - 1)

    def divergence(a, b):
        value, _ = quad(lambda x: max(0.0, a(x) - math.exp(epsilon) * b(x)), -12, 13, limit=500, epsabs=1e-13)
        return value

    return max(divergence(q, p), divergence(p, q))


def test_one_poisson_step_against_quadrature():
    found = calibrate_iterations(Budget(0.2, 1e-3), rate=0.1, iterations=1)
    assert one_step_delta(0.2, found.sigma, 0.1) == pytest.approx(1e-3, rel=1e-4)
    assert found.curve.delta(0.2) <= 1e-3


@pytest.mark.slow
def test_a_thousand_poisson_steps_beside_dp_accounting():
    # dp-accounting 0.6.0, PLD with discretisation 1e-4, tol 1e-7: noise multiplier 1.4146309, pessimistic.
    found = calibrate_iterations(TARGET, rate=0.01, iterations=1000)
    assert found.noise_multiplier == pytest.approx(1.4146309, rel=2e-5)
    assert found.noise_multiplier <= 1.4146309 * (1 + 1e-6)
    assert found.curve.delta(1.0) <= 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("target", [Budget(1.0, 1e-4), Advantage(0.2), ErrorRates(0.1, 0.7)], ids=repr)
def test_every_target_is_met_and_barely(target):
    found = calibrate_iterations(target, rate=0.2, iterations=20)
    assert target.met_by(found.curve)
    less = IterationNoise(found.noise_multiplier * (1 - 1e-5), 1.0, 0.2, 20, "poisson")
    assert not target.met_by(less.curve)


def test_more_iterations_and_larger_samples_need_more_noise():
    few, many = (calibrate_iterations(Budget(2.0, 1e-4), rate=0.2, iterations=t, rtol=1e-3) for t in (2, 8))
    large = calibrate_iterations(Budget(2.0, 1e-4), rate=0.4, iterations=2, rtol=1e-3)
    assert few.noise_multiplier < many.noise_multiplier and few.noise_multiplier < large.noise_multiplier


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"rate": 0.0}, "rate must be"),
        ({"rate": 1.5}, "rate must be"),
        ({"iterations": 0}, "iterations must be"),
        ({"clip": 0.0}, "clip must be"),
        ({"scheme": "shuffle"}, "scheme must be one of 'poisson', 'without_replacement'"),
        ({"target": 1.0}, "target must be"),
        ({"target": gaussian(1.0)}, "target must be a Budget, .* for rate < 1, got a curve"),
        ({"target": as_target(gaussian(1.0))}, "target must be a Budget, .* for rate < 1, got a curve"),
    ],
)
def test_mistakes(changes, words):
    arguments = {"target": TARGET, "rate": 0.1, "iterations": 2, **changes}
    with pytest.raises((ValueError, TypeError), match=words):
        calibrate_iterations(arguments.pop("target"), **arguments)


def test_curves_are_targets_too():
    found = calibrate_iterations(gaussian(1.0), rate=1.0, iterations=9)
    assert found.noise_multiplier == pytest.approx(3.0, rel=2e-6)
