"""Attacks on one of several secrets: exact for randomised response, above every simulated attacker."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import ndtr, ndtri

import privfit.accounting as pa
from privfit.accounting.attacks import attack_success, reconstruction_robustness
from privfit.accounting.risk import bayes_risk

PRIORS = [[1 / 3] * 3, [0.7, 0.2, 0.1], [0.5, 0.4, 0.1], [0.9, 0.05, 0.05], [0.4, 0.3, 0.2, 0.1]]


@pytest.mark.parametrize("eps", [0.1, 1.0, 5.0, 40.0])
@pytest.mark.parametrize("m", [2, 3, 10, 1000])
def test_randomized_response_is_guessed_exactly_as_often_as_the_bound(eps, m):
    exact = 1 / (1 + (m - 1) * math.exp(-eps))
    curve = pa.randomized_response(eps, m)
    value = attack_success(curve, categories=m)
    assert exact * (1 - 1e-14) <= value <= exact * (1 + 1e-11)
    assert attack_success(curve, np.full(m, 1 / m)) == pytest.approx(exact, rel=1e-9)
    assert attack_success(curve, categories=m, relation="add_remove") >= value * (1 - 1e-14)


@pytest.mark.parametrize("eps", [0.5, 2.0])
@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_randomized_response_under_any_prior(eps, prior):
    # best guess for every answer: success = sum over answers of the largest pi_z M(answer | z)
    m = len(prior)
    truth = 1 / (1 + (m - 1) * math.exp(-eps))
    channel = np.where(np.eye(m) > 0, truth, (1 - truth) / (m - 1))
    exact = float(np.max(np.asarray(prior)[:, None] * channel, axis=0).sum())
    for relation in ("replace", "add_remove"):
        assert attack_success(pa.randomized_response(eps, m), prior, relation=relation) >= exact * (1 - 1e-12)


@pytest.mark.parametrize("prior", [0.5, 0.6, 0.9, 0.999])
def test_two_secrets_are_the_bayes_risk(prior):
    for curve in (pa.gaussian(1.0), pa.laplace(1.5), pa.zil(1, 1.0, 0.05)):
        exact = 1 - bayes_risk(curve, prior)
        value = attack_success(curve, [prior, 1 - prior])
        assert exact * (1 - 1e-12) <= value <= exact * (1 + 2e-4)


@pytest.mark.parametrize("mu", [0.3, 3.0, pytest.param(1.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_optimal_simulated_attacker_on_gaussian_noise(mu, prior):
    # secrets at the corners of a simplex with edge mu: every pair has the curve G_mu
    rng = np.random.default_rng(7)
    n, m = 30_000, len(prior)
    z = rng.choice(m, p=prior, size=n)
    y = np.eye(m)[z] * mu / math.sqrt(2) + rng.normal(size=(n, m))
    guess = np.argmax(np.log(prior) + y * mu / math.sqrt(2), axis=1)
    success, error = float(np.mean(guess == z)), 4 / math.sqrt(4 * n)
    bound = attack_success(pa.gaussian(mu), prior)
    assert max(prior) <= bound <= 1
    assert success - error <= bound <= success + 0.06
    weaker = attack_success(pa.gaussian(mu), prior, relation="add_remove")
    assert bound <= weaker + 1e-12
    assert weaker <= reconstruction_robustness(pa.gaussian(mu), max(prior)) + 1e-12


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_weak_duality_bound_against_the_linear_programme(prior):
    # f's tangents make the primal a linear programme: maximise sum pi s over s_z <= 1 - f(r_z'z), sum_z r_z'z <= 1
    curve, m = pa.gaussian(1.0), len(prior)
    t = np.linspace(-6, 6, 121)
    delta = curve.delta(t)
    n = m + m * m  # successes, then the answer probabilities r[z', z]
    rows, right = [], []
    for z in range(m):
        for other in range(m):
            row = np.zeros(n)
            if other == z:
                row[z], row[m + other * m + z] = 1.0, -1.0  # under its own law the answer has probability s_z
                rows.append(row)
                right.append(0.0)
                continue
            for e, d in zip(t, delta, strict=True):
                row = np.zeros(n)
                row[z], row[m + other * m + z] = 1.0, -math.exp(e)
                rows.append(row)
                right.append(d)
    for other in range(m):
        row = np.zeros(n)
        row[m + other * m : m + (other + 1) * m] = 1.0
        rows.append(row)
        right.append(1.0)
    best = -linprog(-np.append(prior, np.zeros(m * m)), A_ub=np.array(rows), b_ub=right, bounds=(0, 1)).fun
    bound = attack_success(curve, prior)
    assert best * (1 - 1e-3) <= bound <= best + 0.01


def test_reconstruction_is_one_minus_f():
    kappa = np.array([1e-12, 1e-4, 0.1, 0.5, 1.0])
    assert np.allclose(reconstruction_robustness(pa.gaussian(1.5), kappa), ndtr(ndtri(kappa) + 1.5), rtol=1e-9)
    assert reconstruction_robustness(pa.gaussian(1.5), 0.0) == 0.0
    # without noise in a share delta0 of the releases nothing protects there
    assert reconstruction_robustness(pa.zil(2, 0.5, 0.03), 0.0) == pytest.approx(0.03, rel=1e-6)
    laplace = pa.laplace(2.0)
    assert reconstruction_robustness(laplace, 1e-200) == pytest.approx(math.exp(2.0) * 1e-200, rel=1e-12)


def test_re_identification_among_many_people():
    values = attack_success(pa.gaussian(0.5), categories=np.array([1, 2, 100, 10_000]))
    assert values[0] == 1.0
    assert values[1] == pytest.approx(ndtr(0.25), rel=1e-9)
    assert np.all(np.diff(values) < 0)
    assert np.all(values >= 1 / np.array([1, 2, 100, 10_000]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either prior or categories"),
        ({"prior": [0.5, 0.5], "categories": 2}, "either prior or categories"),
        ({"prior": [0.5, 0.6]}, "sum to 1"),
        ({"prior": [[0.5, 0.5]]}, "vector"),
        ({"prior": [1.2, -0.2]}, "prior must be"),
        ({"categories": 2.5}, "integers"),
        ({"categories": 0}, "categories must be"),
        ({"categories": 3, "relation": "swap"}, "relation must be"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        attack_success(pa.gaussian(1.0), **arguments)


def test_bad_types():
    with pytest.raises(TypeError, match="curve must be"):
        attack_success(1.0, categories=2)
    with pytest.raises(TypeError, match="categories"):
        attack_success(pa.gaussian(1.0), categories="2")
    with pytest.raises(ValueError, match="baseline must be"):
        reconstruction_robustness(pa.gaussian(1.0), 1.2)
