"""The cheap forms of the slack against the curve that carries it."""

import math

import pytest
from mpmath import mp

from privfit.accounting import GDP, Advantage, Budget, ErrorRates, gaussian, laplace, shifted
from privfit.mechanisms.slack import (
    ChargedBudget,
    calibrate_charged,
    charged_delta,
    charged_epsilon,
    charged_miss,
    tighten,
)

EPSILONS = [0.0, 0.3, 1.0, 2.5]
CURVES = [gaussian(0.8), laplace(1.2)]


@pytest.mark.parametrize("curve", CURVES, ids=repr)
@pytest.mark.parametrize("eta", [0.0, 1e-11, 1e-6, 1e-3])
def test_forms_agree_with_the_lowered_curve(curve, eta):
    lowered = shifted(curve, eta)
    for mine, exact in zip(charged_delta(curve, EPSILONS, eta), lowered.delta(EPSILONS), strict=True):
        # Never below; equal while the supporting line does not meet an axis.
        # The curve's own 1 - f(0), which it needs beyond the largest loss, has rounding errors of 1e-16.
        assert mine >= exact * (1 - 1e-9) - 1e-15
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


@pytest.mark.parametrize("mu, eta", [(1.0, 1e-9), (0.3, 1e-11), (3.0, 1e-6)])
def test_at_a_large_epsilon_the_best_smaller_one_is_charged(mu, eta):
    # 1 - f(eta) + eta of the Gaussian curve at 50 digits: what a test without false alarms can still see.
    with mp.workdps(50):
        quantile = mp.sqrt(2) * mp.erfinv(1 - 2 * mp.mpf(eta))
        exact = float(1 - mp.ncdf(quantile - mp.mpf(mu)) + mp.mpf(eta))
    assert charged_delta(gaussian(mu), [500.0], eta)[0] == pytest.approx(exact, rel=1e-9)


def test_tightened_targets():
    eta = 1e-6
    budget = tighten(Budget(1.0, 1e-3), eta)
    assert budget.epsilon == 1.0 and budget.delta == pytest.approx(1e-3 - (1 + math.e) * eta, rel=1e-9)
    assert tighten(Budget(9.0, 1e-3), eta) == ChargedBudget(9.0, 1e-3, eta)
    assert tighten(Advantage(0.5), eta).value == pytest.approx(0.5 - 2 * eta, rel=1e-12)
    rates = tighten(ErrorRates(0.1, 0.5), eta)
    assert (rates.fpr, rates.fnr) == (pytest.approx(0.1 + eta, rel=1e-12), pytest.approx(0.5 + eta, rel=1e-12))
    for target in (GDP(1.0), gaussian(1.0)):
        assert tighten(target, eta) is target
    for target in (Budget(1.0, 1e-6), Advantage(1e-6), ErrorRates(0.5, 0.499999)):
        with pytest.raises(ValueError, match="numerical slack"):
            tighten(target, eta)
        assert tighten(target, 0.0) is target


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 6.0, 9.0, 200.0])
def test_charged_calibration_is_tight(epsilon):
    delta, eta = 1e-4, 1e-6
    size = calibrate_charged(lambda s: gaussian(1 / s), Budget(epsilon, delta), eta)
    lowered = [shifted(gaussian(1 / s), eta).delta(epsilon) for s in (size, size * (1 - 1e-6))]
    assert lowered[0] <= delta * (1 + 1e-9) and lowered[1] > delta
    # No epsilon allows less noise than a test without false alarms does.
    assert calibrate_charged(lambda s: gaussian(1 / s), Budget(900.0, delta), eta) <= size * (1 + 1e-9)
