"""Audits of functions: outputs of every kind, learnt and given scores, calls that repeat each other."""

import math

import numpy as np
import pytest

from privfit.accounting import approximate_dp, gaussian, laplace, randomized_response
from privfit.mechanisms import Box, Gaussian, Laplace
from privfit.mechanisms.auditing import audit
from tests.mutants import domains, reuse
from tests.mutants.cases import caught, unit
from tests.mutants.functions import (
    answer,
    atoms_of_zil,
    audited,
    infinite_sometimes,
    length_tells,
    nan_for_the_second,
    noisy,
    none_sometimes,
    one_noisy,
)


@pytest.mark.parametrize(
    ("mechanism", "claimed", "inputs", "samples"),
    [
        (noisy, laplace(1.0), (0.0, 1.0), 10_000),
        (one_noisy, laplace(1.0), (0.0, 1.0), 2_000),
        # more private than claimed: no alarm
        (noisy, laplace(2.0), (0.0, 1.0), 10_000),
        (domains.declared_bounds, gaussian(1.0), ([0.1, 0.5, 0.0], [0.1, 0.5, 1.0]), 10_000),
        (lambda x, n: np.random.default_rng().normal(size=(n, 3)) + x, gaussian(math.sqrt(3)), (0.0, 1.0), 10_000),
        (lambda x, n: np.random.default_rng().integers(0, 3, n), approximate_dp(0.0, 0.0), (0, 1), 10_000),
        (lambda x, n: ["same"] * n, approximate_dp(0.0, 0.0), (0, 1), 500),
        (lambda x, n: np.full(n, np.nan), approximate_dp(0.0, 0.0), (0, 1), 500),
    ],
)
def test_correct_functions_pass(mechanism, claimed, inputs, samples):
    report = audited(mechanism, claimed, inputs, samples)
    assert report.passed, str(report)


@pytest.mark.parametrize(
    ("mechanism", "claimed", "samples"),
    [
        (lambda x, n: noisy(2 * x, n), laplace(1.0), 10_000),
        (lambda x: one_noisy(4 * x), laplace(1.0), 1_000),
        (nan_for_the_second, laplace(1.0), 10_000),
        (answer, randomized_response(1.0), 5_000),
        (length_tells, gaussian(0.1), 1_000),
        (none_sometimes, gaussian(0.1), 2_000),
        (atoms_of_zil, gaussian(0.5), 10_000),
        (lambda x, n: np.random.default_rng().normal(size=(n, 4)) * (1 + x), gaussian(1.0), 10_000),
        (infinite_sometimes, gaussian(0.1), 10_000),
        (lambda x, n: np.full(n, x), gaussian(2.0), 500),
    ],
)
def test_broken_functions_are_caught_by_the_curve(mechanism, claimed, samples):
    report = audited(mechanism, claimed, samples=samples)
    assert caught(report, "->"), str(report)


def test_mutant_bound_from_the_data_is_caught():
    tables = [0.1, 0.2, 0.15, 0.12, 0.18, 0.2], [0.1, 0.2, 0.15, 0.12, 0.18, 1.0]
    assert caught(audited(domains.data_dependent_bounds, gaussian(1.0), tables), "->")
    assert audited(domains.declared_bounds, gaussian(1.0), tables).passed


def test_calls_that_replay_their_noise_are_caught():
    report = audited(reuse.ReplayedCalls(), gaussian(1.0), samples=2_000)
    assert caught(report, "equal outputs of two calls")
    again = audited(lambda x, n: x + np.repeat(np.random.default_rng().normal(size=n), 2)[:n], gaussian(1.0))
    assert caught(again, "equal outputs in a row")


def test_a_score_of_the_user_is_used_and_its_nan_counts():
    exact = audited(noisy, laplace(1.0), score=lambda y: (np.abs(y) - np.abs(y - 1)).round(9), samples=30_000)
    blind = audited(noisy, laplace(1.0), score=lambda y: np.zeros(len(y)), samples=20_000)
    assert exact.passed and blind.passed
    assert 0.75 < exact.epsilon_lower(0.0) < 1.0 and blind.epsilon_lower(0.0) == 0.0
    missing = audited(nan_for_the_second, laplace(1.0), score=lambda y: y)
    assert caught(missing, "certain disclosure")
    single = audited(one_noisy, laplace(0.2), score=lambda y: round(abs(y) - abs(y - 1), 9), samples=3_000)
    assert caught(single, "->")


def test_low_bits_of_plain_float_noise_are_caught_and_ours_are_not():
    """1 + noise lies on a coarser grid of floats than noise near 0: the score's rounding error tells (Mironov 2012)."""

    def low_bits(y):
        return np.abs(y) - np.abs(y - 1)

    def ours(x, n):
        return Laplace(1.0).release(np.full(n, x), Box({"x": (0, 1)})).frame

    assert caught(audited(noisy, laplace(1.0), score=low_bits), "->")
    assert audited(ours, laplace(1.0), score=low_bits).passed


def test_the_score_that_is_learnt_is_nearly_as_good_as_the_exact_one():
    learnt = audited(noisy, laplace(1.0), samples=30_000).epsilon_lower(0.0)
    assert 0.75 < learnt < 1.0


def test_what_the_samples_prove_is_true_and_close():
    """epsilon_lower stays below the true epsilon and comes near it with many samples."""
    report = audit(Gaussian(1.0), unit(1), false_alarm=1e-3)
    true = gaussian(1.0)
    for delta in (0.0, 1e-3, 0.01, 0.1):
        assert report.epsilon_lower(delta) <= true.epsilon(delta)
    assert report.epsilon_lower(0.1) > 0.8 * true.epsilon(0.1)
    assert report.epsilon_lower(1.0) == 0.0
    for point in report.points:
        assert point.alpha_low <= point.alpha <= point.alpha_high and point.beta_low <= point.beta <= point.beta_high
        assert point.beta_high >= true.curve(point.alpha_high) and point.alpha_high >= true.curve(point.beta_high)


@pytest.mark.parametrize("far", [2**53 + 2, -(2**60), 2**62])
def test_whole_numbers_beyond_the_digits_of_floats_are_told_apart(far):
    def several(x, n):
        return np.full(n, far, dtype=np.int64) + np.int64(x)

    for mechanism in (several, lambda x: far + x, lambda x: [0, far + x]):
        assert not audit(mechanism, claimed=laplace(1.0), inputs=(0, 1), samples=2000).passed
