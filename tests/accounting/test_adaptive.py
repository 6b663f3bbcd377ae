"""Filters and odometers: what they let through, and that an adaptive adversary cannot beat them."""

import copy
import math
import multiprocessing
import os
import pickle
import threading

import mpmath
import numpy as np
import pytest

import privfit.accounting as pa
from privfit.accounting.adaptive import BudgetExceeded, PrivacyFilter, PrivacyOdometer
from privfit.accounting.charges import leaky_mu, take_apart
from privfit.accounting.ledger import Ledger
from privfit.accounting.targets import as_target

EPS = np.concatenate([np.linspace(0, 3, 61), [4.0, 6.0, 10.0]])
TAILS = {
    "limit": pa.symmetric_laplace_limit(0.7),
    "bounded loss": pa.laplace(1.5),
    "exact, d = 6": pa.symmetric_laplace(6, 0.8),
    "zero inflated": pa.zil(3, 1.0, 0.05),
    "asymmetric": pa.from_points([0.1, 0.3, 0.6], [0.6, 0.3, 0.1]),
}


# --- limits ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("eps", "delta"), [(1.0, 1e-5), (1e-3, 1e-10), (20.0, 1e-5), (0.0, 1e-5), (1000.0, 1e-12), (1.0, 1e-300)]
)
def test_gdp_limit_is_the_largest_mu_of_the_budget(eps, delta):
    limit = PrivacyFilter(pa.Budget(eps, delta), "gdp", slack=0.0).plan.limit
    with mpmath.workdps(500):

        def true_delta(mu):
            mu = mpmath.mpf(mu)
            return mpmath.ncdf(-eps / mu + mu / 2) - mpmath.exp(eps) * mpmath.ncdf(-eps / mu - mu / 2)

        assert true_delta(limit) <= delta
        assert true_delta(limit * (1 + 1e-10)) > delta


@pytest.mark.parametrize("order", [1.3, 2.0, 17.0, 400.0])
def test_rdp_limit_against_the_worst_loss_of_that_divergence(order):
    """delta is at most the smallest C e^((a-1) rho) with (1 - e^(eps - x))+ <= C e^((a-1) x) for all x."""
    eps, delta = 1.3, 1e-6
    rho = PrivacyFilter(pa.Budget(eps, delta), "rdp", order=order, slack=0.0).plan.limit if order > 10 else None
    x = eps + np.geomspace(1e-9, 60, 2_000_000)
    log_c = np.max(np.log(-np.expm1(eps - x)) - (order - 1) * x)
    expected = (math.log(delta) - log_c) / (order - 1)
    if rho is None:
        assert expected < 0
        with pytest.raises(ValueError, match="no positive total"):
            PrivacyFilter(pa.Budget(eps, delta), "rdp", order=order, slack=0.0)
    else:
        assert rho == pytest.approx(expected, rel=1e-9)


def test_zcdp_limit_is_the_best_over_all_orders_and_below_what_gaussian_noise_really_needs():
    budget = pa.Budget(1.0, 1e-6)
    rho = PrivacyFilter(budget, "zcdp", slack=0.0).plan.limit
    orders = 1 + np.geomspace(0.5, 500, 4000)
    factor = orders * np.log1p(-1 / orders) - np.log(orders - 1)
    brute = np.max((1.0 + (math.log(1e-6) - factor) / (orders - 1)) / orders)
    assert rho == pytest.approx(brute, rel=1e-6)
    assert brute <= rho * (1 + 1e-12)
    # rho-zCDP contains the Gaussian curve with mu^2 / 2 = rho, whose delta must be within the budget
    assert pa.gaussian(math.sqrt(2 * rho)).delta(1.0) <= 1e-6
    default = PrivacyFilter(budget, "rdp", slack=0.0)
    assert default.plan.limit / default.plan.rule.order == pytest.approx(rho, rel=1e-9)


TARGETS = [
    pa.Budget(1.0, 1e-5),
    pa.Budget(0.5, 0.0),
    pa.GDP(0.7),
    pa.Advantage(0.2),
    pa.ErrorRates(0.05, 0.8),
    pa.gaussian(0.5),
]


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_the_guarantee_of_a_filter_meets_its_target(target):
    wanted = as_target(target)
    basic = PrivacyFilter(target, "basic")
    if isinstance(target, pa.GDP):
        alpha = np.linspace(0, 1, 2001)
        assert np.all(basic.guarantee().curve(alpha) >= pa.gaussian(target.mu).curve(alpha) - 1e-14)
        corner = 1 / (1 + math.exp(basic.plan.limit))
        assert pa.gaussian(target.mu).curve(corner) == pytest.approx(corner, rel=1e-12)  # and it touches
    elif isinstance(target, pa.Budget):
        assert basic.guarantee().delta(target.epsilon) <= target.delta * (1 + 1e-12)
        assert basic.plan.limit == target.epsilon
    else:
        assert wanted.met_by(basic.guarantee())
    if target != pa.Budget(0.5, 0.0) and not isinstance(target, pa.TradeOffCurve):
        leak = 0.0 if isinstance(target, pa.GDP) else 1e-6
        assert wanted.met_by(PrivacyFilter(target, "gdp", leak=leak).guarantee())


# --- charges -----------------------------------------------------------------------------------------------


def test_sums_are_exact_and_a_refusal_changes_nothing():
    squares = PrivacyFilter(pa.GDP(1.0))
    for _ in range(100):
        squares.ask(pa.gaussian(0.1))
    assert squares.spent == 1.0
    assert squares.left == 0.0
    with pytest.raises(BudgetExceeded, match=r"costs mu = 1e-05, but 0 of 1 is left"):
        squares.ask(pa.gaussian(1e-5))
    assert (squares.spent, squares.releases) == (1.0, 100)
    sums = PrivacyFilter(pa.Budget(1.0, 0.0))
    for _ in range(10):
        sums.ask(pa.laplace(0.1))
    assert not sums.can_ask(pa.laplace(1e-9))
    small = PrivacyFilter(pa.Budget(1.0, 0.0))
    assert not small.can_ask(pa.laplace(1.1))
    assert small.can_ask(pa.laplace(0.9))
    assert small.spent == 0.0


def test_basic_filter_sums_epsilon_and_multiplies_what_is_not_disclosed():
    both = PrivacyFilter(pa.Budget(1.0, 1e-3), "basic", slack=0.0)
    for _ in range(4):
        both.ask(pa.approximate_dp(0.25, 2.5e-4))
    assert both.spent == pytest.approx(1.0, abs=1e-12)
    assert not both.can_ask(pa.approximate_dp(0.0, 1e-6))
    half = PrivacyFilter(pa.Budget(1.0, 1e-3), "basic", slack=0.0)
    half.ask(pa.gaussian(0.1), leak=5e-4)  # its (epsilon, 5e-4) guarantee
    assert half.spent == pytest.approx(pa.gaussian(0.1).epsilon(5e-4), rel=1e-12)
    with pytest.raises(BudgetExceeded, match="no finite epsilon covers this release"):
        half.ask(pa.gaussian(0.1))


def test_leaks_multiply_and_the_guarantee_holds_for_their_composition():
    leaky = PrivacyFilter(pa.Budget(2.0, 0.01), leak=0.004)
    curves = [pa.zero_inflated(pa.gaussian(mu), d) for mu, d in ((0.2, 0.001), (0.3, 0.002), (0.25, 0.0009))]
    for curve in curves:
        leaky.ask(curve)
    assert leaky.spent == pytest.approx(math.sqrt(0.2**2 + 0.3**2 + 0.25**2), rel=1e-15)
    assert np.all(pa.compose(*curves).delta(EPS) <= leaky.guarantee().delta(EPS))
    assert leaky.guarantee().delta(2.0) <= 0.01
    with pytest.raises(BudgetExceeded, match=r"with probability 0\.001 and 0\.0039 of the reserve 0\.004 is spent"):
        leaky.ask(pa.zero_inflated(pa.gaussian(0.01), 0.001))


def test_sampler_slack_has_a_default_reserve_and_a_limit():
    released = pa.shifted(pa.gaussian(0.1), 1e-15)
    budget = PrivacyFilter(pa.Budget(1.0, 1e-5))
    budget.ask(released)
    assert budget.spent == pytest.approx(0.1, rel=1e-15)
    with pytest.raises(BudgetExceeded, match="sampler slack 1e-09"):
        budget.ask(pa.shifted(pa.gaussian(0.1), 1e-9))
    with pytest.raises(BudgetExceeded, match=r"no mu covers the sampler slack .* set a Budget"):
        PrivacyFilter(pa.GDP(1.0)).ask(released)
    assert PrivacyFilter(pa.Budget(1000.0, 1e-12)).plan.slack == 0.0


@pytest.mark.parametrize("curve", TAILS.values(), ids=TAILS.keys())
def test_leaky_mu_is_safe_and_smallest(curve):
    leak = 0.06
    mu = leaky_mu(curve, leak)
    eps = np.concatenate([[0.0], np.geomspace(1e-4, 60.0, 1000)])
    sides = [curve, curve.reversed()]

    def excess(m):
        cover = pa.zero_inflated(pa.gaussian(m), leak).delta(eps, bound="lower")
        return max(float(np.max(side.delta(eps) - cover)) for side in sides)

    assert excess(mu) <= 1e-12
    assert excess(mu * (1 - 3e-3)) > 0


def test_leaky_mu_of_what_the_leak_covers_or_cannot_cover():
    assert leaky_mu(pa.laplace(0.1), 0.5) == 0.0
    assert leaky_mu(pa.zil(3, 1.0, 0.05), 0.01) == math.inf


@pytest.mark.parametrize(
    "curve",
    [
        pa.approximate_dp(0.7, 0.02),
        pa.from_profile([0.2, 1.0], [0.3, 0.1]),
        pa.from_points([0.0, 0.3], [0.8, 0.5]),
        pa.from_points([0.3], [0.0]),
        pa.shifted(pa.zero_inflated(pa.gaussian(1.0), 0.1), 1e-6),
        pa.zero_inflated(pa.shifted(pa.laplace(0.5), 1e-6), 0.1),
    ],
    ids=str,
)
def test_a_curve_is_above_what_it_is_taken_apart_into(curve):
    parts = take_apart(curve)
    assert parts.leak + parts.slack > 0
    again = pa.shifted(pa.zero_inflated(parts.core, parts.leak), parts.slack)
    for side, cover in ((curve, again), (curve.reversed(), again.reversed())):
        assert np.all(side.delta(EPS) <= cover.delta(EPS) * (1 + 1e-9) + 1e-13)
    assert parts.core.infinite_mass == 0.0


# --- why plain composition is not enough -------------------------------------------------------------------


def _laplace(scale):
    return pa.laplace(1 / scale)


def _disclosure(scale):
    return pa.approximate_dp(0.0, 1 / (1 + scale))


def _delta_of_choosing(first, choices, eps):
    """Exact profile when the second mechanism is chosen after the first answer, whatever is worst."""
    return sum(q * max(c.delta(eps - loss) for c in choices) for loss, q in zip(first.loss, first.q, strict=True))


def test_choosing_the_second_mechanism_by_the_first_answer_breaks_plain_composition():
    """Both continuations meet the target; picking one by the first answer does not. Exact, no simulation."""
    budget, first = pa.Budget(1.0, 0.03), pa.randomized_response(0.3)
    choices = []
    for family in (_laplace, _disclosure):
        ledger = Ledger(budget)
        ledger.spend(first, "first")
        choices.append(family(ledger.remaining(family)))
        ledger.spend(choices[-1], "second")  # the plain ledger is right about a choice made in advance
    for choice in choices:
        assert _delta_of_choosing(first, [choice], 1.0) <= budget.delta * (1 + 1e-12)
    assert _delta_of_choosing(first, choices, 1.0) > budget.delta * 1.3
    # the filter does not let both through ...
    filters = PrivacyFilter(budget, leak=0.01)
    filters.ask(first)
    assert not all(filters.can_ask(choice) for choice in choices)
    # ... and with the least noise that it does let through, choosing afterwards stays within the budget
    safe = []
    for family in (_laplace, _disclosure, lambda s: pa.gaussian(1 / s)):
        ledger = Ledger(budget, adaptive=PrivacyFilter(budget, leak=0.01))
        ledger.spend(first, "first")
        safe.append(family(ledger.remaining(family)))
    assert 0.009 < _delta_of_choosing(first, safe, 1.0) <= budget.delta


def _stop_early(filters, rng):
    """Gamble while behind, stop as soon as the input is recognised; every release leaks now and then."""
    loss = 0.0
    while loss < 2.5:
        try:
            filters.ask(LEAKY[0.35 if loss < 0 else 0.2 if loss < 1 else 0.1])
        except BudgetExceeded:
            return loss
        if rng.random() < 0.002:
            return math.inf
        loss += _step(LEAKY_MU[loss < 0, loss < 1], rng)
    return loss


def _spend_all(filters, rng):
    """Choose noise by what was seen, and use the budget up to the last bit."""
    loss = 0.0
    while True:
        mu = 0.3 if loss < 0.2 else 0.15
        if not filters.can_ask(pa.gaussian(mu)):
            mu = filters.left * (1 - 1e-9)
            filters.ask(pa.gaussian(mu))
            return loss + _step(mu, rng)
        filters.ask(pa.gaussian(mu))
        loss += _step(mu, rng)


def _step(mu, rng):
    """Privacy loss of one Gaussian release under Q."""
    return mu * rng.standard_normal() + mu**2 / 2


LEAKY = {mu: pa.zero_inflated(pa.gaussian(mu), 0.002) for mu in (0.35, 0.2, 0.1)}
LEAKY_MU = {(True, True): 0.35, (False, True): 0.2, (False, False): 0.1}


@pytest.mark.slow
@pytest.mark.parametrize(("adversary", "leak", "least"), [(_stop_early, 0.02, 0.5), (_spend_all, 0.0, 0.93)])
def test_an_adaptive_adversary_cannot_beat_the_filter(adversary, leak, least):
    """15,000 runs against the filter itself: noise and stopping are chosen by looking at the privacy loss."""
    rng = np.random.default_rng(20260101)
    plan = PrivacyFilter(pa.Budget(1.0, 0.05), leak=leak).plan

    def unused():
        fresh = PrivacyFilter(pa.GDP(1.0))  # built in no time, unlike the plan that every run uses
        fresh.plan = plan
        return fresh

    losses = np.array([adversary(unused(), rng) for _ in range(15_000)])
    gains = np.maximum(-np.expm1(1.0 - losses), 0.0)
    error = gains.std() / math.sqrt(gains.size)
    assert gains.mean() <= 0.05 + 4 * error
    # the adversary does use the budget: a filter that grants a tenth more mu would be caught
    assert gains.mean() > least * 0.05


@pytest.mark.slow
def test_optional_stopping_breaks_the_running_curve_but_not_the_odometer():
    """Stop the moment the loss passes what the spent curves would allow at any fixed time."""
    rng = np.random.default_rng(7)
    delta, runs = 0.05, 200_000
    odometer, spent = PrivacyOdometer(delta), 0.0
    loss = np.zeros(runs)
    caught_naive, caught_odometer = np.zeros(runs, bool), np.zeros(runs, bool)
    for step in range(60):
        mu = 1e-3 * 1.2**step
        bound = odometer.add(pa.gaussian(mu))
        spent += mu**2
        loss += mu * rng.standard_normal(runs) + mu**2 / 2
        caught_naive |= loss > spent / 2 + 1.6448536269514722 * math.sqrt(spent)  # the 95 % point at a fixed time
        caught_odometer |= loss > bound
    error = 4 * math.sqrt(delta * (1 - delta) / runs)
    assert caught_naive.mean() > 5 * delta
    assert caught_odometer.mean() <= delta + error
    assert caught_odometer.mean() > 0


# --- odometer ----------------------------------------------------------------------------------------------


def test_odometer_of_pure_releases_is_their_exact_sum():
    odometer = PrivacyOdometer(0.0, "basic")
    for i in range(10):
        assert odometer.add(pa.laplace(0.1)) == pytest.approx(0.1 * (i + 1), rel=1e-15)
    assert odometer.epsilon == 1.0
    assert PrivacyOdometer(0.0).add(pa.laplace(0.25)) == 0.25  # whatever the method: delta = 0
    assert PrivacyOdometer(0.0).add(pa.gaussian(0.25)) == math.inf


def test_odometer_is_the_smallest_line_of_its_grid():
    odometer = PrivacyOdometer(1e-6)
    for _ in range(50):
        value = odometer.add(pa.gaussian(0.07))
    with mpmath.workdps(40):
        v = 50 * mpmath.mpf(0.07) ** 2
        orders = [1 + mpmath.mpf(2) ** j for j in range(-3, 12)]
        lines = [a * v / 2 + mpmath.log(15 / mpmath.mpf(1e-6)) / (a - 1) for a in orders]
        assert value == pytest.approx(float(min(lines)), rel=1e-14)
    # never below what the releases are known to cost at a fixed time
    assert value > pa.gaussian(0.07 * math.sqrt(50)).epsilon(1e-6)


def test_odometer_uses_the_sum_of_epsilons_while_it_is_smaller():
    odometer = PrivacyOdometer(1e-5)
    values = [odometer.add(pa.laplace(0.01)) for _ in range(2000)]
    assert values[0] == 0.01
    assert values[-1] < 20 * 0.4
    assert np.all(np.diff(values) > 0)


def test_odometer_by_divergences_is_tighter_for_pure_privacy():
    by_mu, by_divergence = PrivacyOdometer(1e-5), PrivacyOdometer(1e-5, "rdp")
    for _ in range(1000):
        a, b = by_mu.add(pa.randomized_response(0.05)), by_divergence.add(pa.randomized_response(0.05))
    assert b < a
    assert PrivacyOdometer(1e-5, "rdp").add(pa.gaussian(0.5)) == pytest.approx(
        PrivacyOdometer(1e-5, "gdp").add(pa.gaussian(0.5)), rel=1e-12
    )


def test_odometer_leaks_and_reading():
    odometer = PrivacyOdometer(1e-5, leak=0.01)
    first = odometer.add(pa.zero_inflated(pa.gaussian(0.1), 0.004))
    assert first == PrivacyOdometer(1e-5).add(pa.gaussian(0.1))
    assert odometer.epsilon == odometer.epsilon == first
    assert odometer.add(pa.symmetric_laplace(6, 0.01), leak=0.004) < math.inf
    assert odometer.add(pa.zero_inflated(pa.gaussian(0.1), 0.004)) == math.inf
    slack = PrivacyOdometer(1e-5, leak=1e-3)
    assert slack.add(pa.shifted(pa.gaussian(0.1), 1e-12), leak=1e-4) < 1.0
    assert slack.add(pa.shifted(pa.gaussian(0.1), 1e-12)) == math.inf


# --- other theorems ----------------------------------------------------------------------------------------


def test_rdp_and_zcdp_filters_charge_the_closed_forms():
    budget = pa.Budget(2.0, 1e-5)
    fixed = PrivacyFilter(budget, "rdp", order=12.0)
    fixed.ask(pa.gaussian(0.2))
    assert fixed.spent == pytest.approx(12 * 0.2**2 / 2, rel=1e-12)
    concentrated = PrivacyFilter(budget, "zcdp")
    concentrated.ask(pa.gaussian(0.2))
    assert concentrated.spent == pytest.approx(0.02, rel=1e-9)
    assert not concentrated.can_ask(pa.symmetric_laplace(6, 0.01))
    assert concentrated.can_ask(pa.laplace(0.05))
    with_leak = PrivacyFilter(budget, "rdp", leak=1e-6, order=12.0)
    assert with_leak.can_ask(pa.symmetric_laplace(6, 0.001), leak=1e-6)


# --- one budget, one holder --------------------------------------------------------------------------------

COPIES = (copy.copy, copy.deepcopy, pickle.dumps)


@pytest.mark.parametrize("make", COPIES)
def test_a_filter_cannot_be_duplicated(make):
    budget = PrivacyFilter(pa.GDP(1.0))
    for _ in range(2):  # unused, and in the middle of its life
        with pytest.raises(TypeError, match=r"PrivacyFilter cannot be copied or pickled: .* spend the budget twice"):
            make(budget)
        budget.ask(pa.gaussian(0.6))
    with pytest.raises(TypeError, match=r"PrivacyOdometer cannot be copied or pickled: neither copy would count"):
        make(PrivacyOdometer(1e-5))


def _use_in_child(call, answer):
    try:
        answer.put(f"allowed: {call()}")
    except RuntimeError as error:
        answer.put(str(error))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_cannot_spend_what_the_parent_has():
    budget, odometer = PrivacyFilter(pa.GDP(1.0)), PrivacyOdometer(1e-5)
    calls = {
        "ask": (budget, lambda: budget.ask(pa.gaussian(0.6))),
        "can_ask": (budget, lambda: budget.can_ask(pa.gaussian(0.6))),
        "ledger": (budget, lambda: Ledger(pa.GDP(1.0), adaptive=budget)),
        "add": (odometer, lambda: odometer.add(pa.gaussian(0.6))),
    }
    context = multiprocessing.get_context("fork")
    for name, (owner, call) in calls.items():
        answer = context.Queue()
        with owner._mutex:  # held during the fork: the child must not wait for it
            child = context.Process(target=_use_in_child, args=(call, answer))
            child.start()
        text = answer.get(timeout=30)
        child.join(30)
        assert "lives in the memory of the process that made it, not in a forked child" in text, name
    assert (budget.releases, odometer.epsilon) == (0, 0.0)
    budget.ask(pa.gaussian(1.0))  # the parent still can


def test_threads_share_one_budget():
    budget, counts = PrivacyFilter(pa.GDP(1.0)), []

    def work():
        for count in range(1000):
            try:
                budget.ask(pa.gaussian(0.06))
            except BudgetExceeded:
                counts.append(count)
                return

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(counts) == budget.releases == int(1 / 0.06**2)


def test_a_filter_that_was_handed_to_a_ledger_is_spent_there_only(tmp_path):
    budget = PrivacyFilter(pa.Budget(1.0, 1e-5))
    with pytest.raises(ValueError, match="adaptive must be an unused PrivacyFilter for the ledger's own target"):
        Ledger(pa.GDP(1.0), adaptive=budget)
    plain = tmp_path / "plain.jsonl"
    Ledger(pa.Budget(1.0, 1e-5), plain)
    with pytest.raises(ValueError, match="adaptive of the ledger"):
        Ledger(pa.Budget(1.0, 1e-5), plain, adaptive=budget)
    assert budget.can_ask(pa.gaussian(0.1))  # two ledgers that were never made took nothing
    ledger = Ledger(pa.Budget(1.0, 1e-5), adaptive=budget)
    for use in (budget.ask, budget.can_ask):
        with pytest.raises(RuntimeError, match=r"was handed to a Ledger, which spends its budget; ask ledger\.spend"):
            use(pa.gaussian(0.01))
    with pytest.raises(ValueError, match="got one that is spent from"):
        Ledger(pa.Budget(1.0, 1e-5), adaptive=budget)
    assert budget.left == 0.0
    assert repr(budget) == "PrivacyFilter(Budget(epsilon=1.0, delta=1e-05), spent in a ledger)"
    assert ledger.spend(pa.gaussian(0.1), "first").label == "first"
    used = PrivacyFilter(pa.GDP(1.0))
    used.ask(pa.gaussian(0.5))
    with pytest.raises(ValueError, match="got one that is spent from"):
        Ledger(pa.GDP(1.0), adaptive=used)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: PrivacyFilter(pa.Budget(1, 1e-5), "moments"), ValueError, "method must be one of"),
        (lambda: PrivacyFilter(pa.Budget(1, 1e-5), leak=1e-5), ValueError, "reserve less"),
        (lambda: PrivacyFilter(pa.Budget(1, 1e-5), slack=math.nan), ValueError, "slack"),
        (lambda: PrivacyFilter(pa.Budget(1, 1e-5), order=3.0), ValueError, "order must be None"),
        (lambda: PrivacyFilter(pa.Budget(1, 1e-5), "rdp", order=1.0), ValueError, "order"),
        (lambda: PrivacyFilter(pa.Budget(1, 0.0), "gdp"), ValueError, "choose another method"),
        (lambda: PrivacyFilter(pa.GDP(1.0), "zcdp"), ValueError, "method='gdp'"),
        (lambda: PrivacyFilter(1.0), TypeError, "target"),
        (lambda: PrivacyFilter(pa.GDP(1.0), leak=0.1), ValueError, "set a Budget"),
        (lambda: PrivacyFilter(pa.GDP(1.0), "basic", slack=1e-9), ValueError, "set a Budget"),
        (lambda: PrivacyFilter(pa.Advantage(0.1), leak=0.2), ValueError, "reserve less"),
        (lambda: PrivacyFilter(pa.Budget(1000.0, 1e-5), slack=1e-9), ValueError, "reserve less"),
        (lambda: PrivacyFilter(pa.GDP(1.0)).ask(0.5), TypeError, "curve must be a TradeOffCurve"),
        (lambda: PrivacyFilter(pa.GDP(1.0)).ask([0.5]), TypeError, "curve must be a TradeOffCurve"),
        (lambda: PrivacyFilter(pa.GDP(1.0)).ask(pa.gaussian(0.1), leak=1.0), ValueError, "leak"),
        (lambda: PrivacyFilter(pa.GDP(1.0)).ask(pa.approximate_dp(0.1, 1.0)), BudgetExceeded, "no finite mu"),
        (lambda: PrivacyOdometer(1.0), ValueError, "delta"),
        (lambda: PrivacyOdometer(0.5, leak=0.5), ValueError, "delta \\+ leak"),
        (lambda: PrivacyOdometer(0.1, "zcdp"), ValueError, "method"),
        (lambda: PrivacyOdometer(0.1).add(3), TypeError, "curve"),
    ],
)
def test_bad_input_says_what_to_do(make, error, text):
    with pytest.raises(error, match=text):
        make()
