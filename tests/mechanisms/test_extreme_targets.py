"""Targets at the edges: met, barely, on the safe side; or refused with the least that can be asked for."""

import math
from dataclasses import replace

import pytest
from mpmath import mp

from privfit.accounting import Advantage, Budget, ErrorRates
from privfit.mechanisms import (
    Ball,
    Box,
    Categories,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    RandomizedResponse,
    SymmetricLaplace,
    ZeroInflatedLaplace,
)

UNIT = Box({"x": (0, 1)})
TWO = Box({"x": (0, 1), "y": (0, 3)})
LABELS = Categories({"l": ["a", "b", "c"]})
ETA = 2**-36.9
BUDGETS = [Budget(1e-3, 1e-10), Budget(20.0, 1e-5), Budget(0.01, 1e-5), Budget(1000.0, 1e-9), Budget(0.0, 1e-3)]
ADDITIVE = {
    "gaussian": (Gaussian, {}),
    "laplace": (Laplace, {}),
    "shape 1": (SymmetricLaplace, {}),
    "shape 3": (SymmetricLaplace, {"shape": 3}),
    "zil": (ZeroInflatedLaplace, None),
}


def calibrated(name, target, domain):
    make, options = ADDITIVE[name]
    return make.calibrate(target, domain, **({"delta0": target.delta / 3} if options is None else options))


def check(law, target, domain):
    # The table of the guarantee charges the slack at the best epsilon below the target's.
    assert law.guarantee(domain).deltas([target.epsilon])[0]["record"] <= target.delta
    # The curve itself says the same up to rounding of its 1 - f(0), of the order of 1e-16.
    assert law.guarantee(domain).record.delta(target.epsilon) <= target.delta * (1 + 1e-12) + 2e-15
    scale = law.scale
    less = tuple(s * (1 - 1.1e-6) for s in scale) if isinstance(scale, tuple) else scale * (1 - 1.1e-6)
    assert replace(law, scale=less).guarantee(domain).deltas([target.epsilon])[0]["record"] > target.delta


@pytest.mark.parametrize("name", ADDITIVE)
@pytest.mark.parametrize("target", BUDGETS, ids=repr)
def test_one_column(name, target):
    check(calibrated(name, target, UNIT), target, UNIT)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gaussian", "shape 1", "shape 3", "zil"])
@pytest.mark.parametrize("target", BUDGETS, ids=repr)
def test_two_columns(name, target):
    check(calibrated(name, target, TWO), target, TWO)


@pytest.mark.parametrize("epsilon, delta", [(20.0, 1e-5), (1000.0, 1e-9), (12.0, 1e-4)])
def test_gaussian_noise_at_a_large_epsilon_against_fifty_digits(epsilon, delta):
    def charged(sigma):
        with mp.workdps(50):
            mu, eta = 1 / mp.mpf(sigma), mp.mpf(ETA)

            def total(e):
                profile = mp.ncdf(-e / mu + mu / 2) - mp.exp(e) * mp.ncdf(-e / mu - mu / 2)
                return profile + (1 + mp.exp(e)) * eta

            # alpha(e) = eta at the minimum, unless epsilon comes first.
            quantile = mp.sqrt(2) * mp.erfinv(1 - 2 * eta)
            return total(min(mu * (quantile - mu / 2), mp.mpf(epsilon)))

    sigma = Gaussian.calibrate(Budget(epsilon, delta), UNIT).scale
    assert charged(sigma) <= delta < charged(sigma * (1 - 1e-6))


@pytest.mark.parametrize("target", [*BUDGETS, Budget(1.0, 1e-300), Budget(1000.0, 1e-12), Budget(0.01, 0.0)], ids=repr)
def test_laws_without_slack(target):
    law = RandomizedResponse.calibrate(target, LABELS)
    assert law.guarantee(LABELS).record.delta(target.epsilon) <= target.delta
    if law.epsilon < 100:
        more = RandomizedResponse(law.epsilon * (1 + 1e-6), 3).guarantee(LABELS).record
        assert more.delta(target.epsilon) > target.delta
    exact = DiscreteLaplace.calibrate(target, TWO)
    assert exact.guarantee(TWO).record.delta(target.epsilon) <= target.delta
    steps = DiscreteLaplace([s * (1 - 1e-4) for s in exact.scales(2)]).guarantee(TWO).record
    assert steps.delta(target.epsilon) > target.delta or float(exact.loss(TWO)) > 99.9


@pytest.mark.parametrize("name", ADDITIVE)
@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("target", [Budget(1.0, 1e-300), Budget(1000.0, 1e-12), Budget(0.0, 1e-12)], ids=repr)
def test_a_delta_below_the_slack_is_refused_with_the_least_that_is_possible(name, dim, target):
    least = 2 * dim * ETA
    with pytest.raises(ValueError, match=rf"delta must be > {least:.4g}, got .*DiscreteLaplace"):
        calibrated(name, target, Ball(0.5, dim))
    # And a little more than the least is possible.
    law = Gaussian.calibrate(Budget(0.5, least * 1.01), Ball(0.5, dim))
    assert law.guarantee(Ball(0.5, dim)).deltas([0.5])[0]["record"] <= least * 1.01


def test_answers_that_would_say_nothing_are_refused():
    with pytest.raises(ValueError, match=r"needs epsilon = 3e-07 of randomised response, .* Loosen the target"):
        RandomizedResponse.calibrate(Budget(0.0, 1e-7), LABELS)
    for make, domain in ((RandomizedResponse, LABELS), (DiscreteLaplace, UNIT)):
        with pytest.raises(ValueError, match=r"no noise scale up to .* loosen the target"):
            make.calibrate(Budget(0.0, 1e-300), domain)


def test_the_units_of_the_domain_do_not_matter():
    for unit in (1e-12, 1e12):
        for make, options in ((Gaussian, {}), (Laplace, {}), (SymmetricLaplace, {"shape": 3})):
            box = Box({"x": (0, unit)})
            law = make.calibrate(Budget(0.5, 1e-4), box, **options)
            assert law.scale / unit == pytest.approx(make.calibrate(Budget(0.5, 1e-4), UNIT, **options).scale, rel=3e-6)
        ball = SymmetricLaplace.calibrate(Budget(0.5, 1e-4), Ball(unit / 2, 1), shape=3)
        assert ball.scale / unit == pytest.approx(
            SymmetricLaplace.calibrate(Budget(0.5, 1e-4), UNIT, shape=3).scale, rel=3e-6
        )


def test_noise_beyond_what_can_be_certified_names_another_law():
    # delta(0) = 1 - exp(-c/sqrt(2)) for shape 1: c = 1.4e-9, and curves are certified down to 1e-8.
    with pytest.raises(ValueError, match=r'SymmetricLaplace noise has curves .* shape="best"'):
        SymmetricLaplace.calibrate(Budget(0.0, 1e-9), Ball(0.5, 2))


# --- what users of other libraries ran into ------------------------------------------------------------------


def test_easy_targets_never_give_a_negative_epsilon():
    # sigma 50, delta 0.1: the answer is 0, not a negative number.
    promise = Gaussian(50.0).guarantee(UNIT)
    assert promise.record.epsilon(0.1) == 0.0
    assert promise.epsilons([0.1])[0] == {"delta": 0.1, "record": 0.0, "attribute": 0.0}
    # And a target that easy needs little noise, not none and not a crash.
    law = Gaussian.calibrate(Budget(0.0, 0.1), UNIT)
    assert law.guarantee(UNIT).record.delta(0.0) <= 0.1 and law.scale < 50.0


def test_no_hang_at_epsilon_zero_at_delta_zero_or_at_epsilon_1000():
    assert Gaussian.calibrate(Budget(0.0, 1e-5), UNIT).scale == pytest.approx(
        1 / (1e-5 * math.sqrt(2 * math.pi)), rel=1e-4
    )
    with pytest.raises(ValueError, match="never pure epsilon-DP"):
        Gaussian.calibrate(Budget(1.0, 0.0), UNIT)
    assert 0 < Gaussian.calibrate(Budget(1000.0, 1e-5), UNIT).scale < 1
    assert RandomizedResponse.calibrate(Budget(1000.0, 0.0), LABELS).epsilon == 100.0


def test_a_small_epsilon_needs_no_memory():
    import tracemalloc

    tracemalloc.start()
    law = Gaussian.calibrate(Budget(0.01, 1e-5), UNIT)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6 and law.guarantee(UNIT).record.delta(0.01) <= 1e-5


def test_no_bracket_has_to_be_given():
    # Answers from 0.15 to 4e5 times the range, from one and the same call.
    scales = [Gaussian.calibrate(t, UNIT).scale for t in (Budget(1000.0, 0.5), Budget(1e-9, 1e-6), Advantage(1e-6))]
    assert scales[0] < 0.2 and min(scales[1:]) > 3e5


def test_replacing_a_record_moves_it_by_the_whole_range():
    # A record in [-1, 1] can move by 2 (a ball: by the diameter), not by its largest absolute value 1.
    for domain in (Box({"x": (-1, 1)}), Ball(1.0, 4)):
        law = Gaussian.calibrate(Budget(1.0, 1e-5), domain)
        assert law.scale == pytest.approx(2 * 3.730631634, rel=1e-5)
        assert law.shift(domain) == pytest.approx(2 / law.scale, rel=1e-12)


@pytest.mark.parametrize("epsilon", [2.0, 8.0, 10.0])
def test_the_classic_gaussian_formula_is_not_used_beyond_epsilon_one(epsilon):
    # sigma = sqrt(2 log(1.25/delta))/epsilon is too little noise at a large epsilon; the exact curve says so.
    delta = 1e-2 if epsilon > 8.0 else 1e-5
    classic = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    law = Gaussian.calibrate(Budget(epsilon, delta), UNIT)
    assert law.guarantee(UNIT).record.delta(epsilon) <= delta
    exceeds = Gaussian(classic).tradeoff(UNIT).delta(epsilon) > delta
    assert (law.scale > classic) == exceeds


def test_other_targets_at_their_edges():
    for target in (Advantage(1e-6), Advantage(1 - 1e-6), ErrorRates(1e-6, 0.999), ErrorRates(0.5, 1e-6)):
        law = Gaussian.calibrate(target, UNIT)
        curve = law.guarantee(UNIT).record
        if isinstance(target, Advantage):
            assert curve.advantage <= target.value
        else:
            assert curve.curve(target.fpr) >= target.fnr
