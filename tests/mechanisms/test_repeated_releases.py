"""Several releases of the same records meet one target together."""

import math

import numpy as np
import pytest

from privfit.accounting import GDP, Advantage, Budget, ErrorRates, gaussian
from privfit.mechanisms import (
    Box,
    Categories,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Product,
    RandomizedResponse,
    SymmetricLaplace,
    ZeroInflatedLaplace,
)

UNIT = Box({"x": (0, 1)})
BOX = Box({"age": (17, 90), "hours": (0, 100)})
LABELS = Categories({"income": ["low", "high"]})
ETA = 2**-36.9


def test_gaussian_noise_grows_with_the_square_root():
    for target in (GDP(0.7), gaussian(0.7)):
        law = Gaussian.calibrate(target, UNIT, releases=9)
        assert law.scale == pytest.approx(3 / 0.7, rel=1e-8)
    # Balle & Wang's sigma for (1, 1e-5), times 3; the slack of nine samplers is charged.
    law = Gaussian.calibrate(Budget(1.0, 1e-5), UNIT, releases=9)
    assert law.scale == pytest.approx(3 * 3.730631634, rel=1e-5)
    assert law.guarantee(UNIT, releases=9).record.delta(1.0) <= 1e-5


def binomial_delta(epsilon, each, k):
    """Delta of k binary randomised responses, from the binomial distribution of the loss."""
    p = 1 / (1 + math.exp(-each))
    total = 0.0
    for wins in range(k + 1):
        loss = (2 * wins - k) * each
        mass = math.comb(k, wins) * p**wins * (1 - p) ** (k - wins)
        total += mass * max(0.0, -math.expm1(epsilon - loss))
    return total


@pytest.mark.parametrize("epsilon, delta", [(1.0, 1e-5), (0.5, 0.01), (3.0, 1e-9), (0.0, 0.1)])
def test_randomised_response_against_the_binomial_distribution(epsilon, delta):
    law = RandomizedResponse.calibrate(Budget(epsilon, delta), LABELS, releases=7)
    assert binomial_delta(epsilon, law.epsilon, 7) <= delta * (1 + 1e-9)
    assert binomial_delta(epsilon, law.epsilon * (1 + 1e-6), 7) > delta


def test_pure_budgets_are_divided():
    law = RandomizedResponse.calibrate(Budget(1.0, 0.0), LABELS, releases=7)
    assert law.epsilon == pytest.approx(1 / 7, rel=1e-12)
    assert law.guarantee(LABELS, releases=7).record.epsilon(0.0) <= 1.0
    exact = DiscreteLaplace.calibrate(Budget(1.0, 0.0), BOX, releases=7)
    assert 7 * exact.loss(BOX) <= 1 and 7 * exact.loss(BOX) > 0.999
    assert exact.guarantee(BOX, releases=7).record.epsilon(0.0) <= 1.0


def laplace_delta(epsilon, a, draws):
    """Delta of the sum of losses of Laplace mechanisms by Monte Carlo, and its standard error."""
    rng = np.random.default_rng(0)
    loss = np.zeros(draws)
    for _ in range(3):
        x = rng.laplace(1.0, 1 / a, draws)
        loss += a * (np.abs(x) - np.abs(x - 1))
    values = np.maximum(0.0, -np.expm1(epsilon - loss))
    return values.mean(), values.std() / math.sqrt(draws)


def test_laplace_noise_against_a_simulation():
    law = Laplace.calibrate(Budget(1.0, 0.02), UNIT, releases=3)
    mean, error = laplace_delta(1.0, 1 / law.scale, 400_000)
    assert abs(mean - 0.02) < 4 * error
    assert law.guarantee(UNIT, releases=3).record.delta(1.0) <= 0.02


TARGETS = [Budget(2.0, 0.05), Advantage(0.3), ErrorRates(0.05, 0.7), gaussian(1.0)]
CASES = [(make, target) for make in (Gaussian, Laplace, RandomizedResponse) for target in TARGETS]


@pytest.mark.parametrize(
    ("make", "target"),
    [
        # Composed Laplace curves are evaluated numerically, at many points for a point of f or a whole curve.
        pytest.param(*case, marks=pytest.mark.slow if case[0] is Laplace and case[1] in TARGETS[2:] else ())
        for case in CASES
    ],
    ids=repr,
)
def test_every_target(make, target):
    domain = LABELS if make is RandomizedResponse else UNIT
    one, two = (make.calibrate(target, domain, releases=m) for m in (1, 2))
    curve = two.guarantee(domain, releases=2).record_law
    if isinstance(target, Budget):
        assert two.guarantee(domain, releases=2).record.delta(target.epsilon) <= target.delta
    elif isinstance(target, Advantage):
        assert two.guarantee(domain, releases=2).record.advantage <= target.value
    elif isinstance(target, ErrorRates):
        assert two.guarantee(domain, releases=2).record.curve(target.fpr) >= target.fnr
    else:
        assert curve.dominates(target)
    assert two.tradeoff(domain).dominates(one.tradeoff(domain))


def test_slack_is_charged_once_per_release():
    promise = Gaussian(1.0).guarantee(BOX, releases=5)
    assert promise.slack == pytest.approx(5 * 2 * ETA, rel=1e-12)
    assert "5 releases together" in str(promise) and "together" not in str(Gaussian(1.0).guarantee(BOX))
    with pytest.raises(ValueError, match="numerical slack"):
        Gaussian.calibrate(Budget(1.0, 1e-10), UNIT, releases=10)
    assert Gaussian.calibrate(Budget(1.0, 1e-10), UNIT, releases=2).scale > 0


def test_exact_rows_add_up():
    law = ZeroInflatedLaplace(5.0, 0.1)
    assert law.guarantee(UNIT, releases=3).exact_fraction == pytest.approx(1 - 0.9**3)
    assert law.guarantee(UNIT, releases=3).record_law.infinite_mass == pytest.approx(1 - 0.9**3)
    with pytest.raises(ValueError, match="delta0 must be smaller"):
        ZeroInflatedLaplace.calibrate(Budget(1.0, 0.25), UNIT, delta0=0.1, releases=3)
    found = ZeroInflatedLaplace.calibrate(Budget(1.0, 0.25), UNIT, delta0=0.05, releases=3)
    assert found.guarantee(UNIT, releases=3).record.delta(1.0) <= 0.25


def test_attributes_and_products():
    law = Gaussian.calibrate(Budget(1.0, 1e-5), BOX, "attribute", releases=4)
    assert law.scale[0] == pytest.approx(2 * 73 * 3.730631634, rel=1e-5)
    both = Product({("age", "hours"): Gaussian(300.0), "income": RandomizedResponse(0.1)})
    promise = both.guarantee((BOX, LABELS), releases=2)
    again = both.guarantee((BOX, LABELS)).record_law.self_compose(2)
    assert promise.record_law.delta(0.3) == pytest.approx(again.delta(0.3), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("releases", [2, 16])
def test_best_shape_is_never_worse_than_gaussian_noise(releases):
    target = Budget(1.0, 1e-5)
    law, plain = (
        SymmetricLaplace.calibrate(target, UNIT, shape="best", releases=releases),
        Gaussian.calibrate(target, UNIT, releases=releases),
    )
    assert law.variance <= plain.variance
    assert law.guarantee(UNIT, releases=releases).record.delta(1.0) <= 1e-5


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "2"])
def test_mistakes(bad):
    for call in (
        lambda: Gaussian.calibrate(Budget(1.0, 1e-5), UNIT, releases=bad),
        lambda: RandomizedResponse.calibrate(Budget(1.0, 0.0), LABELS, releases=bad),
        lambda: DiscreteLaplace.calibrate(Budget(1.0, 0.0), BOX, releases=bad),
        lambda: Gaussian(1.0).guarantee(UNIT, releases=bad),
    ):
        with pytest.raises((ValueError, TypeError), match="releases"):
            call()
