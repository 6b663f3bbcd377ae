"""Pairs (delta0, lambda) of zero-inflated noise: either given the other, the cheapest, and the whole border."""

import math

import numpy as np
import pytest

from privfit.accounting import GDP, Advantage, Budget, ErrorRates, gaussian
from privfit.mechanisms import Ball, Box, SymmetricLaplace, ZeroInflatedLaplace, zil_region

UNIT = Box({"x": (0, 1)})
BOX = Box({"age": (17, 90), "hours": (0, 100)})
ETA = 2**-36.9


def laplace_delta(epsilon, scale):
    """Of symmetric Laplace noise in one dimension: density e^(-sqrt(2)|x|/lambda)."""
    return max(0.0, -math.expm1((epsilon - math.sqrt(2) / scale) / 2))


@pytest.mark.parametrize("scale", [1.3, 1.4, 2.0, 50.0])
def test_largest_delta0_in_closed_form(scale):
    # delta0 + (1 - delta0) delta_noise = delta, with the slack off delta.
    law = ZeroInflatedLaplace.calibrate(Budget(1.0, 0.05), UNIT, scale=scale)
    noise, left = laplace_delta(1.0, scale), 0.05 - (1 + math.e) * ETA
    assert law.scale == scale
    assert law.delta0 == pytest.approx((left - noise) / (1 - noise), rel=1e-7)
    assert law.guarantee(UNIT).record.delta(1.0) <= 0.05


def test_published_pair():
    # (delta0, lambda) = (0.05, 1.41421) on [0, 1] is (1, 0.05): noise of that scale is pure, so delta0 = delta.
    law = ZeroInflatedLaplace.calibrate(Budget(1.0, 0.05), UNIT, scale=math.sqrt(2) * (1 + 1e-12))
    assert law.delta0 == pytest.approx(0.05, rel=1e-6)


@pytest.mark.parametrize("target", [Budget(1.0, 0.05), Advantage(0.3), ErrorRates(0.05, 0.7)], ids=repr)
def test_the_two_directions_agree(target):
    one = ZeroInflatedLaplace.calibrate(target, UNIT, delta0=0.03)
    back = ZeroInflatedLaplace.calibrate(target, UNIT, scale=one.scale)
    assert back.delta0 == pytest.approx(0.03, rel=1e-4)
    more = ZeroInflatedLaplace(one.scale, back.delta0 * (1 + 1e-6)).guarantee(UNIT).record
    if isinstance(target, Budget):
        assert more.delta(target.epsilon) > target.delta
    elif isinstance(target, Advantage):
        assert back.guarantee(UNIT).record.advantage <= target.value < more.advantage
    else:
        assert back.guarantee(UNIT).record.curve(target.fpr) >= target.fnr > more.curve(target.fpr)


def test_scales_per_column():
    law = ZeroInflatedLaplace.calibrate(Budget(1.0, 0.05), BOX, scale=[900.0, 1000.0])
    assert law.scale == (900.0, 1000.0) and law.guarantee(BOX).record.delta(1.0) <= 0.05
    assert ZeroInflatedLaplace(law.scale, law.delta0 * 1.001).guarantee(BOX).record.delta(1.0) > 0.05


def test_too_little_noise_names_the_least():
    least = SymmetricLaplace.calibrate(Budget(1.0, 0.05), UNIT).scale
    with pytest.raises(ValueError, match=rf"scale must be larger, got 1\.2: .* more than {least:.6g}"):
        ZeroInflatedLaplace.calibrate(Budget(1.0, 0.05), UNIT, scale=1.2)


@pytest.mark.parametrize("target", [GDP(1.0), gaussian(1.0)], ids=repr)
def test_targets_without_room_for_exact_rows(target):
    for given in ({"delta0": 0.01}, {"scale": 5.0}, {"criterion": lambda law: law.variance}):
        with pytest.raises(ValueError, match="no room for exact rows"):
            ZeroInflatedLaplace.calibrate(target, UNIT, **given)


def test_delta0_that_uses_up_the_target():
    for target, delta0 in ((Advantage(0.2), 0.2), (ErrorRates(0.1, 0.6), 0.31)):
        with pytest.raises(ValueError, match="delta0 must be smaller"):
            ZeroInflatedLaplace.calibrate(target, UNIT, delta0=delta0)


def test_cheapest_pair_against_a_fine_search():
    # In one dimension lambda(delta0) has a closed form; the cost of an atom falls, that of noise grows.
    def cost(law):
        return law.variance / law.delta0**0.2

    left = 0.05 - (1 + math.e) * ETA
    delta0 = np.linspace(1e-5, left * (1 - 1e-6), 200_001)
    base = (left - delta0) / (1 - delta0)
    scale = math.sqrt(2) / (1 - 2 * np.log1p(-base))
    least = ((1 - delta0) * scale**2 / delta0**0.2).min()
    law = ZeroInflatedLaplace.calibrate(Budget(1.0, 0.05), UNIT, criterion=cost)
    assert cost(law) == pytest.approx(least, rel=1e-3) and cost(law) >= least * (1 - 1e-6)
    assert law.guarantee(UNIT).record.delta(1.0) <= 0.05
    # Noise alone is cheapest without an atom.
    assert ZeroInflatedLaplace.calibrate(Budget(1.0, 0.05), UNIT, criterion=lambda w: w.variance).delta0 < 1e-6
    with pytest.raises(ValueError, match="criterion must be finite"):
        ZeroInflatedLaplace.calibrate(Budget(1.0, 0.05), UNIT, criterion=lambda w: math.nan)


def test_exactly_one_parameter_is_given():
    for given in ({}, {"delta0": 0.01, "scale": 1.0}, {"delta0": 0.01, "criterion": abs}):
        with pytest.raises(TypeError, match="exactly one of delta0, scale and criterion"):
            ZeroInflatedLaplace.calibrate(Budget(1.0, 0.05), UNIT, **given)
    with pytest.raises(TypeError, match="relative_scales"):
        ZeroInflatedLaplace.calibrate(Budget(1.0, 0.05), BOX, relative_scales=[1.0, 2.0], scale=1.0)


def test_region_in_closed_form():
    delta0 = np.array([1e-4, 0.01, 0.05, 0.09])
    region = zil_region(Budget(1.0, 0.1), Box({"x": (0, 10)}), delta0)
    base = (0.1 - (1 + math.e) * ETA - delta0) / (1 - delta0)
    np.testing.assert_allclose(region.scale, math.sqrt(2) / (1 - 2 * np.log1p(-base)), rtol=2e-6)
    assert region.target == Budget(1.0, 0.1) and (region.delta0 == delta0).all()


def test_region_of_a_ball_and_its_default_grid():
    region = zil_region(Advantage(0.3), Ball(2.0, 1))
    assert len(region.delta0) == 25 and (np.diff(region.delta0) > 0).all() and (np.diff(region.scale) > 0).all()
    assert 0 < region.delta0[0] < region.delta0[-1] < 0.3
    for delta0, scale in zip(region.delta0[::6], region.scale[::6], strict=True):
        assert ZeroInflatedLaplace(4.0 * scale, delta0).guarantee(Ball(2.0, 1)).record.advantage <= 0.3
        assert ZeroInflatedLaplace(3.999 * scale, delta0).guarantee(Ball(2.0, 1)).record.advantage > 0.3
    with pytest.raises(ValueError, match="delta0 must be smaller"):
        zil_region(Budget(1.0, 0.1), UNIT, [0.05, 0.1])


def test_several_releases_share_the_region():
    one, three = (zil_region(Budget(1.0, 0.1), UNIT, [0.01], releases=m).scale[0] for m in (1, 3))
    assert three > 2 * one
