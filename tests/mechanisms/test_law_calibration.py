"""Calibrated laws meet their target, barely, with the slack included."""

import math

import numpy as np
import pytest

from privfit.accounting import GDP, Advantage, Budget, ErrorRates, gaussian
from privfit.mechanisms import (
    Ball,
    Box,
    Categories,
    Gaussian,
    Laplace,
    RandomizedResponse,
    SymmetricLaplace,
    ZeroInflatedLaplace,
)

UNIT = Box({"x": (0, 1)})
BOX = Box({"age": (17, 90), "hours": (0, 100)})


def meets(law, domain, target, protect="record"):
    """The target, with the slack charged by its definition: a distance eta between sampler and law."""
    curve, eta = law.tradeoff(domain, protect), law.slack(domain)
    if isinstance(target, Budget):
        # The curve is an upper bound by 1e-12; its last digit depends on how it is called.
        charged = curve.delta(target.epsilon) + (1 + math.exp(target.epsilon)) * eta
        return charged <= target.delta * (1 + 1e-15)
    if isinstance(target, Advantage):
        return curve.advantage + 2 * eta <= target.value
    return curve.curve(target.fpr + eta) - eta >= target.fnr


def less_noise(law, factor=1 - 1e-4):
    from dataclasses import replace

    scale = law.scale
    return replace(law, scale=tuple(factor * s for s in scale) if isinstance(scale, tuple) else factor * scale)


TARGETS = [Budget(1.0, 1e-5), Budget(0.5, 0.1), Advantage(0.2), ErrorRates(0.05, 0.8)]


@pytest.mark.parametrize("protect", ["record", "attribute"])
@pytest.mark.parametrize("target", TARGETS, ids=repr)
@pytest.mark.parametrize("make", [Gaussian, Laplace])
def test_the_target_is_met_with_hardly_any_noise_to_spare(make, target, protect):
    check_tight(make.calibrate(target, BOX, protect), BOX, target, protect)


@pytest.mark.parametrize("target", TARGETS, ids=repr)
def test_symmetric_laplace_meets_the_target_tightly(target):
    check_tight(SymmetricLaplace.calibrate(target, UNIT), UNIT, target, "record")


@pytest.mark.slow
@pytest.mark.parametrize("protect", ["record", "attribute"])
@pytest.mark.parametrize("target", TARGETS, ids=repr)
@pytest.mark.parametrize("shape", [1, 2])
def test_symmetric_laplace_meets_the_target_tightly_in_two_columns(shape, target, protect):
    check_tight(SymmetricLaplace.calibrate(target, BOX, protect, shape=shape), BOX, target, protect)


def check_tight(law, domain, target, protect):
    assert meets(law, domain, target, protect)
    assert not meets(less_noise(law), domain, target, protect)
    ratio = np.array(law.scales(domain.dim)) / domain.ranges
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-12)


def test_published_values():
    # Balle & Wang (2018): sigma for (1, 1e-5) at sensitivity 1.
    assert Gaussian.calibrate(Budget(1.0, 1e-5), UNIT).scale == pytest.approx(3.730631634, rel=1e-6)
    # One coordinate on [0, 1], (delta0, lambda) of the paper at full precision.
    for epsilon, delta0, scale in ((1.5, 0.1, math.sqrt(2) / 1.5), (1.0, 0.05, math.sqrt(2))):
        law = ZeroInflatedLaplace.calibrate(Budget(epsilon, delta0 + 1e-9), UNIT, delta0=delta0)
        assert law.scale == pytest.approx(scale, rel=1e-5)
    assert Laplace.calibrate(Budget(1.0, 1e-9), UNIT).scale == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("delta0", [0.001, 0.05])
def test_zero_inflated(delta0):
    target = Budget(1.0, 0.06)
    law = ZeroInflatedLaplace.calibrate(target, UNIT, delta0=delta0)
    assert law.delta0 == delta0
    check_tight(law, UNIT, target, "record")


@pytest.mark.slow
def test_zero_inflated_in_two_columns():
    target = Budget(1.0, 0.06)
    check_tight(ZeroInflatedLaplace.calibrate(target, BOX, delta0=0.05), BOX, target, "record")


def test_zero_inflation_needs_delta_left():
    for delta0 in (0.1, 0.2):
        with pytest.raises(ValueError, match=r"delta0 must be smaller than the target's delta = 0\.1"):
            ZeroInflatedLaplace.calibrate(Budget(1.0, 0.1), UNIT, delta0=delta0)
    with pytest.raises(TypeError, match="delta0"):
        ZeroInflatedLaplace.calibrate(Budget(1.0, 0.1), UNIT)


def test_gdp_targets_hold_for_the_stated_law():
    law = Gaussian.calibrate(GDP(0.5), BOX)
    assert np.hypot(*(BOX.ranges / law.scale)) == pytest.approx(0.5, rel=1e-8)
    curve = Gaussian.calibrate(gaussian(0.5), BOX)
    assert curve.scale == pytest.approx(law.scale, rel=1e-6)


def test_slack_cannot_be_calibrated_away():
    for target in (Advantage(1e-12), ErrorRates(0.5, 0.5 - 1e-12), Budget(30.0, 1e-11)):
        with pytest.raises(ValueError, match="numerical slack"):
            Gaussian.calibrate(target, BOX)
    for make in (Gaussian, Laplace):
        with pytest.raises(ValueError, match=r"delta must be > .* numerical slack"):
            make.calibrate(Budget(1.0, 0.0), BOX)


def test_ball_scales_are_one_number():
    law = Gaussian.calibrate(Budget(1.0, 1e-5), Ball(0.5, 6))
    assert isinstance(law.scale, float) and law.scale == pytest.approx(3.730631634, rel=1e-5)
    assert isinstance(Gaussian.calibrate(Budget(1.0, 1e-5), UNIT).scale, float)


def test_relative_scales():
    law = Gaussian.calibrate(Budget(1.0, 1e-5), BOX, relative_scales=[1, 4])
    assert law.scale[1] / law.scale[0] == pytest.approx(4.0) and meets(law, BOX, Budget(1.0, 1e-5))
    for bad in ([1.0], [1.0, 0.0], [1.0, math.inf], [1.0, -1.0], [[1.0, 1.0]]):
        with pytest.raises(ValueError, match="relative_scales"):
            Gaussian.calibrate(Budget(1.0, 1e-5), BOX, relative_scales=bad)


def test_shape_is_checked():
    with pytest.raises(ValueError, match="shape must be one of 'best'"):
        SymmetricLaplace.calibrate(Budget(1.0, 1e-5), UNIT, shape="worst")
    with pytest.raises(ValueError, match="shape"):
        SymmetricLaplace.calibrate(Budget(1.0, 1e-5), UNIT, shape=0)


@pytest.mark.parametrize("categories", [2, 3, 10])
def test_response(categories):
    domain = Categories({"l": [str(i) for i in range(categories)]})
    assert RandomizedResponse.calibrate(Budget(1.2, 0), domain).epsilon == 1.2
    for target in (Budget(1.0, 0.05), Advantage(0.3), ErrorRates(0.05, 0.8)):
        law = RandomizedResponse.calibrate(target, domain)
        assert law.categories == categories and meets(law, domain, target)
        assert not meets(RandomizedResponse(law.epsilon * (1 + 1e-4), categories), domain, target)
    with pytest.raises(TypeError, match="Categories"):
        RandomizedResponse.calibrate(Budget(1.0, 0), UNIT)


@pytest.mark.parametrize("make", [Gaussian, Laplace, SymmetricLaplace])
def test_arguments_that_are_refused(make):
    with pytest.raises(TypeError, match="Box or a Ball"):
        make.calibrate(Budget(1.0, 1e-5), Categories({"l": ["a", "b"]}))
    with pytest.raises(ValueError, match="protect"):
        make.calibrate(Budget(1.0, 1e-5), BOX, protect="row")
    with pytest.raises(TypeError):
        make.calibrate((1.0, 1e-5), BOX)
