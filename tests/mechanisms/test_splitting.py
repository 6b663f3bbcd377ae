"""One budget for the parts of a record: the product meets the target, uses all of it, and is split best."""

import functools
import math

import numpy as np
import pytest

from privfit.accounting import GDP, Advantage, Budget, ErrorRates
from privfit.mechanisms import (
    Ball,
    Box,
    Categories,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Product,
    RandomizedResponse,
    SymmetricLaplace,
    ZeroInflatedLaplace,
    calibrate_parts,
    remaining_budget,
    variance_inflation,
)

BOX = Box({"age": (17, 90), "hours": (1, 99)})
LABELS = Categories({"income": ["low", "high"]})
DOMAIN = (BOX, LABELS)
AB = ("age", "hours")
BOTH = {AB: Gaussian, "income": RandomizedResponse}


def scaled(law, factor):
    """The product with all noise multiplied by a factor."""
    out = {}
    for columns, own in law.items:
        if isinstance(own, RandomizedResponse):
            out[columns] = RandomizedResponse(own.epsilon / factor, own.categories)
        else:
            out[columns] = type(own)(**{**vars(own), "scale": tuple(factor * own.scales(len(columns)))})
    return Product(out)


def meets(law, target, domain=DOMAIN, releases=1):
    curve = law.guarantee(domain, releases=releases).record
    if isinstance(target, Budget):
        return curve.delta(target.epsilon) <= target.delta
    if isinstance(target, Advantage):
        return curve.advantage <= target.value
    if isinstance(target, ErrorRates):
        return curve.curve(target.fpr) >= target.fnr
    return target.met_by(law.guarantee(domain, releases=releases).record_law)


@pytest.mark.parametrize("target", [Budget(4.0, 1e-6), Advantage(0.3), ErrorRates(0.05, 0.5)], ids=repr)
def test_the_product_meets_the_target_and_uses_all_of_it(target):
    law = calibrate_parts(target, BOTH, DOMAIN)
    assert meets(law, target) and not meets(scaled(law, 1 - 2e-6), target)
    ratio = np.array(law.parts[AB].scale) / BOX.ranges
    assert ratio[0] == pytest.approx(ratio[1], rel=1e-12)


@pytest.mark.slow
def test_other_targets_and_laws():
    law = calibrate_parts(GDP(1.0), BOTH, DOMAIN, share={AB: 1, "income": 1})
    assert meets(law, GDP(1.0)) and not meets(scaled(law, 1 - 1e-4), GDP(1.0))
    parts = {AB: functools.partial(ZeroInflatedLaplace, delta0=1e-3), "income": RandomizedResponse}
    law = calibrate_parts(Budget(4.0, 0.01), parts, DOMAIN)
    assert law.parts[AB].delta0 == 1e-3
    assert meets(law, Budget(4.0, 0.01)) and not meets(scaled(law, 1 - 2e-6), Budget(4.0, 0.01))


def joint_delta(epsilon, mu, own):
    """Delta of Gaussian noise and binary randomised response: the mixture over the answer."""
    from scipy.stats import norm

    def one(e):
        return norm.cdf(-e / mu + mu / 2) - math.exp(e) * norm.cdf(-e / mu - mu / 2)

    p = 1 / (1 + math.exp(-own))
    return p * one(epsilon - own) + (1 - p) * one(epsilon + own)


@pytest.mark.parametrize("criterion", ["product", "sum", "worst"])
def test_the_split_is_the_best_of_a_grid_of_all_splits(criterion):
    from scipy.optimize import brentq

    target = Budget(2.0, 1e-3)
    combine = {"product": np.prod, "sum": np.sum, "worst": np.max}[criterion]

    def cost(mu, own):
        p = 1 / (1 + math.exp(-own))
        # mu^2 = sum (r/sigma)^2 over two columns with equal ratios.
        return combine([1 + 12 * 2 / mu**2, (2 * p - 1) ** -2.0])

    def cheapest(grid):
        mus = [brentq(lambda m, e=own: joint_delta(2.0, m, e) - 1e-3, 1e-3, 5.0) for own in grid]
        costs = [cost(mu, own) for mu, own in zip(mus, grid, strict=True)]
        return grid[int(np.argmin(costs))], min(costs)

    near, _ = cheapest(np.linspace(0.02, 1.98, 50))
    _, best = cheapest(np.linspace(near - 0.04, near + 0.018, 50))
    law = calibrate_parts(target, BOTH, DOMAIN, criterion=criterion)
    gauss, response = law.parts[AB], law.parts["income",]
    mu = math.sqrt(2) * BOX.ranges[0] / gauss.scale[0]
    assert joint_delta(2.0, mu, response.epsilon) == pytest.approx(1e-3, rel=1e-5)
    assert cost(mu, response.epsilon) == pytest.approx(best, rel=2e-3)


def test_inflation_is_that_of_a_mean():
    rng = np.random.default_rng(0)
    n = 200_000
    x, noise = rng.uniform(0, 1, n), rng.normal(0, 2, n)
    assert variance_inflation(Gaussian(2.0), Box({"x": (0, 1)})) == pytest.approx(
        np.var(x + noise) / np.var(x), rel=0.02
    )
    # Debiased frequency of one label of three, uniform labels.
    law, labels = RandomizedResponse(1.0, 3), rng.integers(0, 3, n)
    lie = rng.random(n) >= law.keep_probability
    answer = np.where(lie, (labels + rng.integers(1, 3, n)) % 3, labels)
    q = (1 - law.keep_probability) / 2
    debiased = ((answer == 0) - q) / (law.keep_probability - q)
    raw = (labels == 0).astype(float)
    assert debiased.mean() == pytest.approx(raw.mean(), abs=0.02)
    found = variance_inflation(law, Categories({"l": ["a", "b", "c"]}))
    assert found == pytest.approx(np.var(debiased) / np.var(raw), rel=0.02)
    # A point uniform in the unit disc has variance 1/4 per coordinate.
    assert variance_inflation(Gaussian(1.0), Ball(1.0, 2)) == pytest.approx(5.0)
    with pytest.raises(TypeError, match="Box or a Ball"):
        variance_inflation(Gaussian(1.0), LABELS)


def test_shares_and_finished_laws():
    target = Budget(4.0, 1e-6)
    laws = [calibrate_parts(target, BOTH, DOMAIN, share={AB: w, "income": 1.0}) for w in (0.5, 2.0)]
    assert all(meets(law, target) for law in laws)
    assert laws[0].parts[AB].scale > laws[1].parts[AB].scale
    assert laws[0].parts["income",].epsilon > laws[1].parts["income",].epsilon
    kept = calibrate_parts(target, {AB: Gaussian, "income": RandomizedResponse(1.0)}, DOMAIN)
    assert kept.parts["income",] == RandomizedResponse(1.0) and meets(kept, target)
    # The exact curve of the pair needs less noise than adding up epsilons.
    added = Gaussian.calibrate(remaining_budget(4.0, 1e-6, [1.0], BOX), BOX)
    assert kept.parts[AB].scale < added.scale


def test_own_criterion():
    def label_first(law):
        return -law.parts["income",].epsilon

    law = calibrate_parts(Budget(4.0, 1e-6), BOTH, DOMAIN, criterion=label_first)
    usual = calibrate_parts(Budget(4.0, 1e-6), BOTH, DOMAIN)
    assert law.parts["income",].epsilon > usual.parts["income",].epsilon and meets(law, Budget(4.0, 1e-6))


def test_three_parts():
    target = Advantage(0.4)
    law = calibrate_parts(target, {"age": Gaussian, "hours": Gaussian, "income": RandomizedResponse}, DOMAIN)
    assert meets(law, target) and not meets(scaled(law, 1 - 2e-6), target)
    # Two alike numeric parts get alike shares.
    assert law.parts["age",].scale / 73 == pytest.approx(law.parts["hours",].scale / 98, rel=0.05)


def test_pure_budgets():
    law = calibrate_parts(Budget(2.0, 0.0), {AB: DiscreteLaplace, "income": RandomizedResponse}, DOMAIN)
    total = float(law.parts[AB].loss(BOX)) + law.parts["income",].epsilon
    assert 2.0 * (1 - 1e-5) < total <= 2.0 * (1 + 1e-15)
    with pytest.raises(ValueError, match="numerical slack"):
        calibrate_parts(Budget(2.0, 0.0), BOTH, DOMAIN)


def test_attributes_are_not_divided():
    law = calibrate_parts(Budget(2.0, 1e-5), BOTH, DOMAIN, protect="attribute")
    assert law.guarantee(DOMAIN).attribute.delta(2.0) <= 1e-5
    assert law.parts["income",].epsilon == pytest.approx(2.0, rel=1e-4)
    alone = Gaussian.calibrate(Budget(2.0, 1e-5), BOX, "attribute")
    assert law.parts[AB].scale[0] == pytest.approx(alone.scale[0], rel=1e-5)


def test_releases_of_parts():
    law = calibrate_parts(Budget(2.0, 1e-5), BOTH, DOMAIN, releases=3)
    assert meets(law, Budget(2.0, 1e-5), releases=3)
    assert not meets(scaled(law, 1 - 1e-5), Budget(2.0, 1e-5), releases=3)


def test_parameters_of_a_part():
    parts = {"age": functools.partial(SymmetricLaplace, shape="best"), "income": RandomizedResponse(0.5)}
    law = calibrate_parts(Budget(2.0, 1e-5), parts, DOMAIN)
    assert law.parts["age",].shape == 1 and meets(law, Budget(2.0, 1e-5))
    parts = {AB: functools.partial(Gaussian, relative_scales=[1.0, 5.0]), "income": RandomizedResponse(0.5)}
    law = calibrate_parts(Budget(2.0, 1e-5), parts, DOMAIN)
    assert law.parts[AB].scale[1] == pytest.approx(5 * law.parts[AB].scale[0], rel=1e-12)


@pytest.mark.parametrize(
    "changes, error, words",
    [
        ({"parts": {}}, TypeError, "parts must be a non-empty mapping"),
        ({"parts": {AB: "gaussian"}}, TypeError, "must be a class of laws"),
        ({"parts": {AB: Product}}, TypeError, "must be a class of laws"),
        ({"parts": {AB: Gaussian(1.0)}}, ValueError, "at least one class"),
        ({"parts": {AB: Gaussian, "income": RandomizedResponse(9.0)}}, ValueError, "already use up"),
        ({"share": {AB: 1.0}}, ValueError, "share must be a mapping with exactly the keys"),
        ({"share": {AB: 1.0, "income": 0.0}}, ValueError, r"share\['income'\] must be"),
        ({"criterion": "cheap"}, ValueError, "criterion must be one of 'product'"),
        ({"protect": "row"}, ValueError, "protect must be"),
        ({"protect": "attribute", "share": {AB: 1.0, "income": 1.0}}, ValueError, "share must not be given"),
        ({"releases": 0}, ValueError, "releases"),
        ({"parts": {"name": Gaussian}}, ValueError, "the domain declares"),
    ],
)
def test_mistakes(changes, error, words):
    arguments = {"parts": BOTH, "domain": DOMAIN, **changes}
    with pytest.raises(error, match=words):
        calibrate_parts(Budget(4.0, 1e-6), **arguments)


@pytest.mark.parametrize("epsilon, delta", [(1.0, 1e-6), (6.0, 1e-6), (12.0, 1e-5)])
@pytest.mark.parametrize("labels", [[], [0.4], [0.2, 0.3]])
def test_composed_release_meets_the_remaining_budget(epsilon, delta, labels):
    law = Gaussian.calibrate(remaining_budget(epsilon, delta, labels, BOX), BOX)
    names = [f"l{j}" for j in range(len(labels))]
    product = Product({BOX.columns: law, **{n: RandomizedResponse(e) for n, e in zip(names, labels, strict=True)}})
    domain = (BOX, *(Categories({n: [0, 1]}) for n in names))
    (row,) = product.guarantee(domain).deltas([epsilon])
    assert row["record"] <= delta * (1 + 1e-9)
    # and not by giving the budget away: with as good as no label it is used up
    if not labels:
        assert row["record"] >= delta * (1 - 1e-3)


def test_slack_is_charged_at_the_epsilon_of_the_row():
    eta = Gaussian(1.0).slack(BOX)
    left = remaining_budget(10.0, 1e-5, [4.0], BOX)
    assert left.epsilon == 6.0
    assert math.isclose(left.delta, 1e-5 - eta * (math.exp(10) - math.exp(6)), rel_tol=1e-12)
    assert remaining_budget(10.0, 1e-5, [], BOX) == Budget(10.0, 1e-5)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ((2.0, 1e-6, [1.0, 1.0]), "labels must leave some of epsilon = 2"),
        ((2.0, 1e-6, [math.nan]), "epsilon of a label must be a finite number"),
        ((2.0, 1e-6, [-1.0]), "epsilon of a label must be a finite number > 0"),
        ((15.0, 1e-6, [1.0]), "delta must be > .* numerical slack"),
        ((2.0, 0.0, [1.0]), "delta must be > .* numerical slack"),
        ((2.0, 1.5, [1.0]), "delta must be a number"),
        ((1e9, 1e-6, [1.0]), "delta must be >"),
    ],
)
def test_budgets_that_leave_nothing(arguments, words):
    with pytest.raises(ValueError, match=words):
        remaining_budget(*arguments, BOX)


def test_laplace_parts_compose_too():
    law = calibrate_parts(Budget(2.0, 1e-4), {"age": Laplace, "income": RandomizedResponse}, DOMAIN)
    assert meets(law, Budget(2.0, 1e-4))
    assert 73 / law.parts["age",].scale + law.parts["income",].epsilon == pytest.approx(2.0, rel=0.01)
