"""The cheap forms of the slack against the curve that carries it."""

import math

import pytest

from privfit.accounting import GDP, Advantage, Budget, ErrorRates, gaussian, laplace, shifted
from privfit.mechanisms.slack import charged_delta, charged_epsilon, charged_miss, tighten

EPSILONS = [0.0, 0.3, 1.0, 2.5]
CURVES = [gaussian(0.8), laplace(1.2)]


@pytest.mark.parametrize("curve", CURVES, ids=repr)
@pytest.mark.parametrize("eta", [0.0, 1e-11, 1e-6, 1e-3])
def test_forms_agree_with_the_lowered_curve(curve, eta):
    lowered = shifted(curve, eta)
    for mine, exact in zip(charged_delta(curve, EPSILONS, eta), lowered.delta(EPSILONS), strict=True):
        # Never below; equal while the supporting line does not meet an axis.
        assert mine >= exact * (1 - 1e-9)
    assert charged_delta(curve, [0.3], eta)[0] == pytest.approx(lowered.delta(0.3), rel=1e-9)
    assert charged_miss(curve, 0.05, eta) == pytest.approx(lowered.curve(0.05), abs=1e-12)
    for delta in (1e-2, 0.1):
        mine, exact = charged_epsilon(curve, delta, eta), lowered.epsilon(delta)
        assert exact * (1 - 1e-9) <= mine <= exact * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("curve", CURVES, ids=repr)
def test_epsilon_is_where_delta_is_met(curve):
    for delta in (1e-7, 1e-3, 0.2):
        epsilon = charged_epsilon(curve, delta, 1e-10)
        assert charged_delta(curve, [epsilon], 1e-10)[0] <= delta * (1 + 1e-9)
    assert charged_epsilon(curve, 1e-12, 1e-10) == math.inf
    assert charged_epsilon(curve, 0.9, 1e-10) == 0.0


def test_delta_never_grows():
    # Beyond the largest loss the law itself gives 0, and the charge of a smaller epsilon is enough.
    values = charged_delta(laplace(1.0), [0.5, 1.0, 5.0, 900.0], 1e-9)
    assert values == sorted(values, reverse=True)
    assert values[-1] == pytest.approx((1 + math.e) * 1e-9)


def test_tightened_targets():
    eta = 1e-6
    assert tighten(Budget(1.0, 1e-3), eta) == Budget(1.0, 1e-3 - (1 + math.e) * eta)
    assert tighten(Advantage(0.5), eta) == Advantage(0.5 - 2 * eta)
    assert tighten(ErrorRates(0.1, 0.5), eta) == ErrorRates(0.1 + eta, 0.5 + eta)
    for target in (GDP(1.0), gaussian(1.0)):
        assert tighten(target, eta) is target
    for target in (Budget(1.0, 1e-6), Advantage(1e-6), ErrorRates(0.5, 0.499999)):
        with pytest.raises(ValueError, match="numerical slack"):
            tighten(target, eta)
