"""Amplification by shuffling: enumeration of small groups, direct sums, simulation, published bounds."""

import itertools
import math
from collections import defaultdict

import numpy as np
import pytest
from scipy.special import gammaln

import privfit.accounting as pa
from privfit.accounting.discrete import from_atoms
from privfit.accounting.relation import REPLACE_ONE
from privfit.accounting.shuffling import ShuffledCurve, shuffled

RR = "randomized_response"
EPS = np.array([-1.5, -0.3, 0.0, 0.05, 0.3, 0.7, 1.1])


def clone_pair(eps0, n):
    """The two laws of theorem 3.2 of Feldman, McMillan & Talwar, outcome by outcome."""
    keep, own = math.exp(-eps0), math.exp(eps0) / (1 + math.exp(eps0))
    laws = defaultdict(float), defaultdict(float)
    for c in range(n):
        for a in range(c + 1):
            mass = math.comb(n - 1, c) * keep**c * (1 - keep) ** (n - 1 - c) * math.comb(c, a) / 2**c
            for side, share in ((1, own), (0, 1 - own)):
                laws[0][a + side, c - a + 1 - side] += mass * share
                laws[1][a + 1 - side, c - a + side] += mass * share
    return laws


def histograms(eps0, categories, table):
    """Exact law of the histogram of randomised responses."""
    other = 1 / (math.exp(eps0) + categories - 1)
    law = {(0,) * categories: 1.0}
    for value in table:
        new = defaultdict(float)
        for counts, mass in law.items():
            for told in range(categories):
                share = math.exp(eps0) * other if told == value else other
                new[(*counts[:told], counts[told] + 1, *counts[told + 1 :])] += mass * share
        law = new
    return law


def divergence(p, q, eps):
    return sum(max(q[o] - math.exp(eps) * p[o], 0.0) for o in set(p) | set(q))


@pytest.mark.parametrize(
    ("eps0", "n"),
    [
        (1.2, 1),
        (0.1, 2),
        (4.0, 3),
        (1.2, 8),
        *(pytest.param(eps0, n, marks=pytest.mark.slow) for eps0 in (0.1, 4.0) for n in (1, 8, 25)),
        *(pytest.param(1.2, n, marks=pytest.mark.slow) for n in (2, 3, 25)),
    ],
)
def test_clones_by_enumeration(eps0, n):
    p, q = clone_pair(eps0, n)
    curve = shuffled(eps0, n)
    for eps in EPS:
        assert curve.delta(eps, "estimate") == pytest.approx(divergence(p, q, eps), rel=1e-11, abs=1e-300)
    keys = [k for k in p if p[k] > 0]
    a, b = np.array([p[k] for k in keys]), np.array([q[k] for k in keys])
    exact = from_atoms(np.round(np.log(b / a), 12), a, b)
    t = EPS + 1e-7  # off the atoms
    assert np.allclose(curve.error_rates(t), exact.error_rates(t), rtol=0, atol=1e-12)
    alpha = np.linspace(0, 1, 9)
    assert np.allclose(curve.curve(alpha, "estimate"), exact.curve(alpha, "estimate"), atol=1e-9)


@pytest.mark.parametrize(("categories", "n"), [(2, 1), (2, 2), (2, 6), (2, 30), (3, 1), (3, 2), (3, 5), (4, 3), (6, 2)])
@pytest.mark.parametrize("eps0", [0.3, 1.3])
def test_randomised_response_is_bounded_for_every_table(categories, n, eps0):
    bound, general = shuffled(eps0, n, randomizer=RR), shuffled(eps0, n)
    eps = eps0 * np.array([0.0, 0.2, 0.5, 0.8, 0.95])
    worst = np.zeros(5)
    for rest in itertools.combinations_with_replacement(range(categories), n - 1):
        p, q = histograms(eps0, categories, (*rest, 0)), histograms(eps0, categories, (*rest, 1))
        worst = np.maximum(worst, [divergence(p, q, e) for e in eps])
    assert np.all(worst <= bound.delta(eps))
    assert np.all(worst[:3] > 0.3 * bound.delta(eps[:3]) / categories)
    assert np.all(bound.delta(eps) <= general.delta(eps))


def test_counting_two_categories_only_would_understate_the_loss():
    """Counts of the two categories against uninformative others: exceeded when another user shares one."""
    eps0, eps = 1.3, 1.0
    third = divergence(histograms(eps0, 3, (2, 0)), histograms(eps0, 3, (2, 1)), eps)
    shared = divergence(histograms(eps0, 3, (1, 0)), histograms(eps0, 3, (1, 1)), eps)
    assert third < shared < shuffled(eps0, 2, randomizer=RR).delta(eps)


@pytest.mark.parametrize(
    ("randomizer", "eps"),
    [
        ("any", 0.02),
        (RR, 0.45),
        pytest.param(RR, 0.1, marks=pytest.mark.slow),
        pytest.param("any", 0.0, marks=pytest.mark.slow),
    ],
)
def test_a_window_of_large_n_against_the_full_double_sum(randomizer, eps):
    """Every pair (a, b) of 4500 reports in logarithms; delta down to 1e-200."""
    eps0, n = 1.0, 4500
    curve = ShuffledCurve(eps0, n, randomizer)
    e = math.exp(eps0)
    share = 1 / e if randomizer == "any" else 2 / (e + 1)
    total = -math.inf
    for c in range(1, n + 1):
        b = np.arange(c // 2, c + 1)
        a = c - b
        # multinomial law of the other n - 1 reports, shifted by the user's own
        log_m = gammaln(n) - gammaln(a + 1) - gammaln(b + 1) - gammaln(n - c + 1) + (c - 1) * math.log(share / 2)
        log_m = log_m + (n - c) * math.log(1 - share)
        gap = (a + e * b - math.exp(eps) * (e * a + b)) / (e + 1)
        use = gap > 0
        if use.any():
            terms = log_m[use] + np.log(gap[use])
            total = np.logaddexp(total, terms.max() + math.log(np.exp(terms - terms.max()).sum()))
    assert len(curve._window(eps)) < n
    assert curve.log_delta(eps, "estimate") == pytest.approx(total, abs=2e-9 + 1e-11 * abs(total))


def test_simulated_clones():
    eps0, n, draws, eps = 1.5, 2000, 400_000, 0.12
    rng = np.random.default_rng(11)
    c = rng.binomial(n - 1, math.exp(-eps0), draws)
    own = rng.random(draws) < math.exp(eps0) / (1 + math.exp(eps0))
    a = rng.binomial(c, 0.5) + ~own
    b = c + 1 - a
    loss = np.log((math.exp(eps0) * b + a) / (math.exp(eps0) * a + b))
    values = np.maximum(-np.expm1(eps - loss), 0.0)
    error = values.std() / math.sqrt(draws)
    assert abs(values.mean() - shuffled(eps0, n).delta(eps)) < 4 * error
    assert error < 0.02 * values.mean()


@pytest.mark.parametrize(("eps0", "n"), [(0.5, 10**4), (3.0, 10**4), pytest.param(1.0, 10**5, marks=pytest.mark.slow)])
def test_below_the_published_closed_form(eps0, n):
    # Feldman, McMillan & Talwar 2021, theorem 3.1, valid for eps0 <= log(n / (16 log(2 / delta)))
    delta = 1e-6
    assert eps0 <= math.log(n / (16 * math.log(2 / delta)))
    e = math.exp(eps0)
    published = math.log1p((e - 1) / (e + 1) * (8 * math.sqrt(e * math.log(4 / delta)) / math.sqrt(n) + 8 * e / n))
    assert shuffled(eps0, n).epsilon(delta) < published
    assert shuffled(eps0, n, randomizer=RR).epsilon(delta) < shuffled(eps0, n).epsilon(delta)


def test_a_hundred_million_reports():
    curve = shuffled(1.0, 10**8)
    # a sum of n independent parts: (eps sqrt(n), delta sqrt(n)) settle; the Gaussian limit to first order
    r, mu = math.exp(-1.0), 2 * math.tanh(0.5) / math.sqrt(10**8 * math.exp(-1.0))
    for eps in (4 * mu, 10 * mu):
        assert curve.delta(eps) == pytest.approx(pa.gaussian(mu).delta(eps), rel=2e-2)
    assert 0 < r < 1


def test_approximate_local_privacy_by_enumeration():
    """Random 3-ary randomisers that are only (eps0, delta0): exact law of 3 shuffled reports."""
    rng = np.random.default_rng(4)
    for _ in range(6):
        eps0, spill = 0.8, 0.02
        core = np.array([rng.permutation([math.exp(0.8), 1.0, 1.3]) for _ in range(3)])
        laws = core / core.sum(1, keepdims=True)
        laws = (1 - spill) * laws + spill * np.eye(3)
        delta0 = max(np.maximum(a - math.exp(eps0) * b, 0).sum() for a in laws for b in laws)
        assert delta0 > 0
        bound = shuffled(eps0, 3, delta0=delta0)

        def reports(table, laws=laws):
            law = defaultdict(float)
            for told in itertools.product(range(3), repeat=3):
                law[tuple(sorted(told))] += math.prod(laws[x][t] for x, t in zip(table, told, strict=True))
            return law

        for rest in itertools.product(range(3), repeat=2):
            p, q = reports((*rest, 0)), reports((*rest, 1))
            for eps in (0.0, 0.2, 0.5):
                assert divergence(p, q, eps) <= bound.delta(eps)
    assert bound.delta(0.5) < 0.5


def test_local_curves():
    assert shuffled(pa.laplace(0.7), 100) == shuffled(0.7, 100)
    gauss = pa.gaussian(0.5)
    curve = shuffled(gauss, 10_000, delta0=1e-12)
    assert curve.base == ShuffledCurve(gauss.epsilon(1e-12), 10_000)
    e0 = curve.base.epsilon0
    user = 1e-12 / (1 + math.exp(e0))
    assert curve.eta == pytest.approx(user + 9999 * math.exp(-e0) * (1e-12 + user), rel=1e-12)
    with pytest.raises(ValueError, match="positive delta0"):
        shuffled(gauss, 100)
    with pytest.raises(ValueError, match="far below 1 / n"):
        shuffled(0.1, 1000, delta0=0.01)
    with pytest.raises(ValueError, match="smaller delta0"):
        shuffled(gauss, 100, delta0=0.9)


def test_one_report_is_not_amplified():
    for eps0 in (0.3, 2.0):
        assert np.allclose(shuffled(eps0, 1).delta(EPS), pa.randomized_response(eps0).delta(EPS), rtol=2e-9, atol=0)
        assert np.allclose(shuffled(eps0, 1, randomizer=RR).delta(EPS), shuffled(eps0, 1).delta(EPS), rtol=1e-12)


def test_more_reports_and_less_local_loss_are_more_private():
    eps = np.array([0.0, 0.1, 0.5])
    table = [shuffled(1.0, n).delta(eps) for n in (1, 2, 5, 30, 4000, 4001, 5000)]
    assert np.all(np.diff(table, axis=0) < 0)
    assert np.all(shuffled(0.9, 50).delta(eps) < shuffled(1.0, 50).delta(eps))
    # a local loss of 700 is no protection unless all others happen to be copies
    assert shuffled(700.0, 1000).delta(0.0) == pytest.approx(1.0, abs=1e-12)


def test_epsilon_is_safe_and_tight():
    curve = shuffled(1.0, 5000, randomizer=RR)
    for delta in (1e-3, 1e-9, 1e-100, 1e-290):
        eps = curve.epsilon(delta)
        assert curve.delta(eps) <= delta
        assert curve.delta(eps * (1 - 1e-9)) > delta * (1 - 1e-4)
    assert curve.epsilon(0.0) == pytest.approx(1.0, rel=1e-12)
    assert curve.epsilon(1.0) == 0.0


def test_the_neighbours_are_named():
    assert shuffled(1.0, 10).relation == REPLACE_ONE
    assert REPLACE_ONE in str(shuffled(1.0, 10))
    assert RR in str(shuffled(1.0, 10, randomizer=RR))


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"local": 0.0, "n": 5}, "epsilon0"),
        ({"local": float("nan"), "n": 5}, "epsilon0"),
        ({"local": 1.0, "n": 0}, "n must"),
        ({"local": 1.0, "n": 10**11}, "n must"),
        ({"local": 1.0, "n": 5, "randomizer": "laplace"}, "randomizer"),
        ({"local": 1.0, "n": 5, "delta0": 1.0}, "delta0"),
        ({"local": 1.0, "n": 5, "delta0": 1e-9, "randomizer": RR}, "delta0"),
    ],
)
def test_bad_values(arguments, name):
    with pytest.raises(ValueError, match=name):
        shuffled(**arguments)


def test_wrong_types():
    with pytest.raises(TypeError, match="n must"):
        shuffled(1.0, 10.0)
    with pytest.raises(TypeError, match="epsilon0"):
        shuffled("1", 10)
