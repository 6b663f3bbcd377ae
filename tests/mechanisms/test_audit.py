"""The audit catches every broken mechanism of tests/mutants and leaves correct ones in peace, as often as it says."""

import math
from datetime import date

import numpy as np
import pytest
from scipy import stats

from privfit.accounting import gaussian
from privfit.estimators.corrections import Part
from privfit.estimators.symbols import Resolvent
from privfit.mechanisms import (
    Box,
    Categories,
    DiscreteLaplace,
    Gaussian,
    Product,
    RandomizedResponse,
    SymmetricLaplace,
    ZeroInflatedLaplace,
)
from privfit.mechanisms.auditing import audit, audit_noise
from tests.mutants import domains, grid, mixing, response, reuse, scale, second_noise, sensitivity, zero_inflation
from tests.mutants.cases import LAWS, MORE, QUICK, RESPONSES, caught, labels, rare, unit

every_law = pytest.mark.parametrize(("law", "domain"), [*QUICK, *(rare(*own) for own in MORE)], ids=str)


@every_law
@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_mutant_scale_a_tenth_off_is_caught_by_the_fit(law, domain, factor):
    report = audit(scale.other_scale(law, factor), domain)
    assert caught(report, "distribution of coordinate", "characteristic function")


def test_mutant_scale_nine_tenths_is_caught_by_events_too():
    assert caught(audit(scale.other_scale(Gaussian(1.4), 0.9), unit(2)), "event")


@every_law
def test_mutant_half_the_variance_is_caught_by_the_curve_and_by_the_fit(law, domain):
    report = audit(scale.other_scale(law, math.sqrt(0.5)), domain, samples=20_000)
    assert caught(report, "distribution of coordinate")
    # pure epsilon for two columns together is far above what noise at a corner shows
    pure = isinstance(law, DiscreteLaplace) and domain.dim > 1
    assert pure or caught(report, "->")


@every_law
def test_mutant_sensitivity_halved_is_caught_by_the_curve(law, domain):
    report = audit(sensitivity.halved_sensitivity(law), domain)
    assert caught(report, "first input -> second", "second input -> first")
    assert all("->" in test.name for test in report.alarms)


INFLATED = [own for own in LAWS if isinstance(own[0], ZeroInflatedLaplace)]


@pytest.mark.parametrize(("law", "domain"), INFLATED, ids=str)
def test_mutant_zero_inflation_doubled_is_caught_by_atoms_and_curve(law, domain):
    report = audit(zero_inflation.doubled(law), domain, samples=20_000)
    assert caught(report, "rows without noise", "certain disclosure")


def test_mutant_zero_inflation_per_coordinate_is_caught_by_the_size():
    report = audit(zero_inflation.per_coordinate(ZeroInflatedLaplace(1.5, 0.05)), unit(2), samples=20_000)
    assert caught(report, "size of the noise vector", "rows without noise")


@pytest.mark.parametrize(
    ("law", "domain"),
    [
        (SymmetricLaplace(1.5), unit(2)),
        rare(SymmetricLaplace(1.5, shape=3), unit(3)),
        rare(ZeroInflatedLaplace(1.5, 0.05), unit(2)),
    ],
    ids=str,
)
def test_mutant_radius_per_coordinate_is_caught_by_the_size(law, domain):
    assert caught(audit(mixing.per_coordinate(law), domain), "size of the noise vector")


def test_mutant_radius_shared_by_two_rows_is_caught_by_dependence():
    report = audit(mixing.shared_by_two_rows(SymmetricLaplace(1.5)), unit(2))
    assert caught(report, "rows 1 apart, dependent")


@every_law
def test_mutant_same_noise_in_two_rows_is_caught(law, domain):
    report = audit(reuse.same_noise_in_two_rows(law), domain, samples=5_000)
    assert caught(report, "rows 1 apart, equal", "rows 1 apart, dependent", "repeated rows")


@every_law
def test_mutant_constant_seed_is_caught(law, domain):
    report = audit(reuse.constant_seed(law), domain, samples=20_000)
    assert caught(report, "two releases, equal", "two releases, dependent", "rows 8192 apart, equal")


@pytest.mark.parametrize(
    ("break_keys", "names"),
    [
        (reuse.one_master_key, ("two releases, equal", "two releases, dependent")),
        (reuse.one_key_for_all_blocks, ("rows 8192 apart, equal", "repeated rows")),
        (reuse.one_key_for_all_parts, ("characteristic function",)),
    ],
)
def test_mutants_of_the_keys_are_caught(monkeypatch, break_keys, names):
    law = Product({(0, 1): Gaussian(2.0), (2, 3): Gaussian(3.0)})
    assert audit(law, unit(4), samples=20_000).passed
    break_keys(monkeypatch)
    report = audit(law, unit(4), samples=20_000)
    assert all(caught(report, name) for name in names)
    assert not caught(report, "distribution of coordinate")


@pytest.mark.parametrize(
    ("law", "domain"), [RESPONSES[1], rare(*RESPONSES[0]), rare(*RESPONSES[2])], ids=("three", "two", "thirty")
)
def test_mutants_of_randomised_response_are_caught(law, domain):
    assert caught(audit(response.twice_epsilon(law), domain, samples=20_000), "kept labels", "->")
    assert caught(audit(response.lie_may_be_the_truth(law), domain, samples=20_000), "kept labels")
    assert caught(audit(reuse.same_answer_in_two_rows(law), domain, samples=5_000), "rows 1 apart, equal")
    assert caught(audit(reuse.constant_seed(law), domain, samples=5_000), "two releases, equal")
    if law.categories > 2:
        assert caught(audit(response.next_label_as_lie(law), domain, samples=5_000), "lies")


@pytest.mark.parametrize(("law", "domain"), [QUICK[0], *(rare(*own) for own in MORE[:-1])], ids=str)
def test_mutant_float_output_off_the_grid_is_caught(law, domain):
    assert caught(audit(grid.float_output(law), domain, samples=500), "values off the grid")


@pytest.mark.parametrize("law", [Gaussian(1.0), ZeroInflatedLaplace(1.0, 0.05)])
def test_mutants_negative_zero_and_low_bits_are_caught(law):
    assert caught(audit(grid.negative_zero(law), unit(1), samples=20_000), "values off the grid")
    assert caught(audit(grid.low_bits_of_the_input(law), unit(1), samples=500), "values off the grid")


@pytest.mark.parametrize("box", [domains.UnclippedBox, domains.WiderBox])
def test_mutant_domain_that_does_not_clip_is_caught(box):
    broken = box({"x": (0, 1), "y": (0, 1)})
    report = audit(Gaussian(0.5), broken)
    assert not report.passed and caught(report, "distribution of coordinate")
    assert not audit(Gaussian(0.5), domains.UnclippedBall(1.0, 2), samples=2_000).passed


PARTS, DELTA0 = [Part(Resolvent(0.2), np.array([1.0, 4.0, 0.0]))], 0.2
RIGHT = SymmetricLaplace((math.sqrt(0.2), math.sqrt(0.2) * 2))


def test_second_noise_of_the_estimators_is_right():
    rng = np.random.default_rng(1)
    assert audit_noise(lambda n: second_noise.drawn(PARTS, n, rng), RIGHT).passed


@pytest.mark.parametrize("wrong", second_noise.MUTANTS, ids=lambda f: f.__name__)
def test_mutants_of_the_second_noise_are_caught(wrong):
    rng = np.random.default_rng(2)
    report = audit_noise(lambda n: wrong(PARTS, n, rng, DELTA0), RIGHT)
    where = {
        second_noise.radius_per_coordinate: "size of the noise vector",
        second_noise.one_draw_for_all: "two releases, equal",
    }
    assert caught(report, where.get(wrong, "distribution of coordinate"))


# --- correct mechanisms --------------------------------------------------------------------------------

MIXED = (
    {("a", "b"): SymmetricLaplace(2.0), "l": RandomizedResponse(0.5, 3), "z": Gaussian(3.0)},
    (Box({"a": (0, 1), "b": (0, 2), "z": (-4, 4)}), labels(3)),
)
SOME = (Product({1: Gaussian(1.0), (3, 0): Gaussian((2.0, 1.0))}), unit(4))
CORRECT = [*LAWS, *RESPONSES, MIXED, SOME, (SymmetricLaplace(3.0, shape=26), unit(50))]


@pytest.mark.parametrize(
    ("law", "domain"),
    [*QUICK, MORE[0], RESPONSES[1], SOME, *(rare(*own) for own in (*MORE[1:], *RESPONSES[::2], MIXED, CORRECT[-1]))],
    ids=lambda own: type(own).__name__,
)
@pytest.mark.parametrize(("protect", "rounding"), [("record", "nearest"), ("attribute", "stochastic")])
def test_correct_mechanisms_pass(law, domain, protect, rounding):
    report = audit(law, domain, protect=protect, rounding=rounding, samples=2_000)
    assert report.passed, str(report)


@pytest.mark.parametrize(
    ("law", "domain"),
    [
        (Gaussian(2.0**-480), Box({"x": (0, 2.0**-480)})),
        (SymmetricLaplace(2.0**490), Box({"x": (-(2.0**490), 2.0**491)})),
        (Gaussian(1.0), Box({"x": (1e12, 1e12 + 1)})),
        (Gaussian(1e-3), Box({"x": (0, 1)})),
        (ZeroInflatedLaplace(1.0, 1e-9), Box({"x": (0, 1)})),
        (RandomizedResponse(100.0, 3), Categories({"l": [1, 2, 3]})),
        (RandomizedResponse(1e-6, 2), Categories({"l": [True, False]})),
        rare(ZeroInflatedLaplace(1.0, 0.95), Box({"x": (0, 1), "y": (0, 0.3)})),
        rare(SymmetricLaplace(1.0, shape=1000), Box({"x": (0, 1)})),
        rare(Gaussian(20.0), unit(200)),
    ],
    ids=lambda own: type(own).__name__,
)
@pytest.mark.parametrize("rounding", ["nearest", "stochastic"])
def test_extreme_parameters_pass_with_numbers_in_every_row(law, domain, rounding):
    report = audit(law, domain, samples=100, rounding=rounding)
    assert report.passed
    assert all(math.isfinite(test.statistic) and math.isfinite(test.bound) for test in report.tests)


def test_dates_and_encoded_labels_are_audited_as_the_numbers_they_stand_for():
    box = Box(
        {"born": (date(1990, 1, 1), date(2000, 1, 1)), "grade": (0, 2)},
        encoding={"grade": {"low": 0, "mid": 1, "high": 2}},
    )
    report = audit(Gaussian((4000.0, 2.0)), box, samples=500)
    assert report.passed and "grade = 0 against" in report.neighbours


@pytest.mark.slow
def test_correct_mechanisms_raise_no_alarm_in_more_than_200_runs():
    runs = [
        audit(law, domain, protect=protect, rounding=rounding, samples=10_000)
        for law, domain in CORRECT
        for protect in ("record", "attribute")
        for rounding in ("nearest", "stochastic")
        for _ in range(3)
    ]
    assert len(runs) >= 200
    assert [str(report) for report in runs if not report.passed] == []


@pytest.mark.slow
def test_alarms_about_correct_mechanisms_are_as_rare_as_stated_and_not_absent():
    """At 20 % the battery must not exceed 20 %, and it must be alive."""
    cases = [(Gaussian(1.4), unit(2)), (ZeroInflatedLaplace(1.0, 0.05), Box({"x": (0.1003, 1.1)})), RESPONSES[1]]
    runs = 300
    alarms = 0
    for law, domain in cases:
        for _ in range(runs // len(cases)):
            alarms += not audit(law, domain, samples=2_000, false_alarm=0.2).passed
    # three standard errors above the stated rate would be chance 1e-3; none at all would be a test that cannot fail
    assert alarms <= stats.binom.isf(1e-3, runs, 0.2)
    assert alarms >= 2


def test_shares_of_all_tests_add_up_to_the_false_alarm_probability():
    for law, domain in (SOME, RESPONSES[1]):
        report = audit(law, domain, samples=500, false_alarm=0.01)
        assert sum(test.share for test in report.tests) == pytest.approx(0.01)
        assert all(test.share > 0 or "grid" in test.name or "undeclared" in test.name for test in report.tests)


def test_laws_that_the_audit_has_no_formulas_for_are_audited_by_a_learnt_score():
    from dataclasses import dataclass

    from privfit.mechanisms.continuous import ContinuousLaw
    from privfit.mechanisms.samplers import normal_coordinates

    @dataclass(frozen=True)
    class Foreign(ContinuousLaw):
        def tradeoff(self, domain, protect="record"):
            return gaussian(self.shift(domain, protect))

        _unit_variance = 1.0

        def _unit_characteristic(self, t):
            return np.exp(-0.5 * np.square(t).sum(axis=-1))

        def _unit_noise(self, words, rows, dim):
            return normal_coordinates(words, rows, dim, None)

    assert audit(Foreign(1.0), unit(2), samples=20_000).passed
    assert caught(audit(scale.other_scale(Foreign(1.0), 0.7), unit(2)), "event", "characteristic function")
