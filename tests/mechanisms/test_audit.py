"""The audit catches every broken mechanism of tests/mutants and leaves correct ones in peace, as often as it says."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from privfit.accounting import approximate_dp, gaussian, laplace, randomized_response
from privfit.estimators.corrections import Part
from privfit.estimators.symbols import Resolvent
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
)
from privfit.mechanisms.additive import AdditiveLaw
from privfit.mechanisms.audit_laws import cell_mass, log_density, marginal_cdf, mixed_radius_cdf, radius, radius_cdf
from privfit.mechanisms.audit_statistics import band_test, count_test, excess_test, lower_limit, mean_test, upper_limit
from privfit.mechanisms.auditing import audit, audit_noise
from tests.mutants import domains, grid, mixing, response, reuse, scale, second_noise, sensitivity, zero_inflation


def unit(dim):
    return Box(dict.fromkeys(range(dim), (0, 1)))


def labels(count):
    return Categories({"l": [f"label {i}" for i in range(count)]})


def rare(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


QUICK = [
    (Gaussian(1.4), unit(2)),
    (DiscreteLaplace(1.0), unit(1)),
    (ZeroInflatedLaplace(1.5, 0.05), unit(2)),
]
MORE = [
    (Gaussian((1.0, 2.5)), Ball(0.7, 2)),
    (Laplace(1.0), unit(1)),
    (Laplace((1.3, 2.0)), Box({"a": (-0.3123, 1.0), "b": (5.0, 6.7)})),
    (SymmetricLaplace(1.0), unit(1)),
    (SymmetricLaplace(1.5), unit(2)),
    (SymmetricLaplace(1.5, shape=3), unit(3)),
    (ZeroInflatedLaplace(1.0, 0.05), Box({"x": (0.1003, 1.1)})),
    (DiscreteLaplace((1.0, 2.0)), unit(2)),
]
LAWS = [*QUICK, *MORE]
EASY = [QUICK[0], QUICK[1]]
RESPONSES = [(RandomizedResponse(0.5, k), labels(k)) for k in (2, 3, 30)]
every_law = pytest.mark.parametrize(("law", "domain"), [*QUICK, *(rare(*own) for own in MORE)], ids=str)


def caught(report, *names):
    """Whether the test that is meant to see it, and no luck, raised the alarm."""
    return all(any(name in test.name for test in report.alarms) for name in names)


# --- mutants -------------------------------------------------------------------------------------------


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
    # what a ball claims for Laplace noise, and pure epsilon for two columns, is far above what noise at a corner shows
    pure = isinstance(law, DiscreteLaplace) and domain.dim > 1
    assert pure or caught(report, "event") or "certain disclosure" in str(report.alarms)


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
    ("law", "domain"), [RESPONSES[1], rare(*RESPONSES[0]), rare(*RESPONSES[2])], ids=("three", "two", "thirty")
)
def test_mutants_of_randomised_response_are_caught(law, domain):
    assert caught(audit(response.twice_epsilon(law), domain, samples=20_000), "kept labels", "->")
    report = audit(response.lie_may_be_the_truth(law), domain)
    # among 30 labels a lie is the truth so rarely that n = 50,000 does not see it
    assert caught(report, "kept labels") or (law.categories == 30 and report.passed)
    assert caught(audit(reuse.same_answer_in_two_rows(law), domain, samples=5_000), "rows 1 apart, equal")
    assert caught(audit(reuse.constant_seed(law), domain, samples=5_000), "two releases, equal")
    if law.categories > 2:
        assert caught(audit(response.next_label_as_lie(law), domain, samples=5_000), "lies")


@pytest.mark.parametrize(("law", "domain"), [*QUICK[::2], *(rare(*own) for own in MORE[:-1])], ids=str)
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
    [*QUICK, RESPONSES[1], SOME, *(rare(*own) for own in (*MORE, RESPONSES[0], RESPONSES[2], MIXED, CORRECT[-1]))],
    ids=lambda own: type(own).__name__,
)
@pytest.mark.parametrize(("protect", "rounding"), [("record", "nearest"), ("attribute", "stochastic")])
def test_correct_mechanisms_pass(law, domain, protect, rounding):
    report = audit(law, domain, protect=protect, rounding=rounding, samples=2_000)
    assert report.passed, str(report)


@pytest.mark.slow
def test_correct_mechanisms_raise_no_alarm_in_more_than_200_runs():
    runs = [
        audit(law, domain, protect=protect, rounding=rounding, samples=10_000)
        for law, domain in CORRECT
        for protect in ("record", "attribute")
        for rounding in ("nearest", "stochastic")
        for _ in range(4)
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


# --- statistics ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "size"), [(0, 50), (1, 50), (17, 50), (50, 50)])
def test_limits_invert_the_binomial(count, size):
    level = 1e-4
    low, high = lower_limit(count, size, level), upper_limit(count, size, level)
    assert (low == 0.0) if count == 0 else stats.binom.sf(count - 1, size, low) == pytest.approx(level, rel=1e-6)
    assert (high == 1.0) if count == size else stats.binom.cdf(count, size, high) == pytest.approx(level, rel=1e-6)


@pytest.mark.parametrize("p", [0.001, 0.3, 0.97])
@pytest.mark.parametrize("level", [0.05, 1e-3, 1e-7])
def test_count_tests_have_their_level_exactly(p, level):
    size, k = 400, np.arange(401)
    weights = stats.binom.pmf(k, size, p)
    over = np.array([excess_test(int(c), size, p, level).alarm for c in k])
    both = np.array([count_test(int(c), size, p, p, level).alarm for c in k])
    assert weights @ over <= level and weights @ both <= level
    # one count more would be too many
    first = int(np.argmax(over)) if over.any() else size + 1
    assert stats.binom.sf(first - 2, size, p) > level
    for c in (0, 100, 400):
        found = excess_test(c, size, p, level)
        assert found.alarm == (found.statistic > found.bound + 1e-12)


def test_band_test_is_the_kolmogorov_distance_and_keeps_its_level():
    rng = np.random.default_rng(4)
    sample = rng.normal(size=250)  # fewer values than edges: the supremum from above is exact
    found = band_test(sample, stats.norm.cdf, 0.0, 0.0, 0.05)
    assert found.statistic == pytest.approx(
        max(
            stats.ks_1samp(sample, stats.norm.cdf, alternative="greater").statistic,
            np.max(stats.norm.cdf(np.sort(sample)) - np.arange(1, 251) / 250),
        )
    )
    alarms = sum(band_test(rng.normal(size=250), stats.norm.cdf, 0.0, 0.0, 0.2).alarm for _ in range(400))
    assert 5 < alarms <= stats.binom.isf(1e-4, 400, 0.2)
    # a shift by less than the blur is allowed, a larger one is not
    many = rng.normal(size=20_000)
    assert not band_test(many + 0.1, stats.norm.cdf, 0.1, 0.0, 1e-6).alarm
    assert band_test(many + 0.2, stats.norm.cdf, 0.1, 0.0, 1e-6).alarm
    assert band_test(np.full(9, np.nan), stats.norm.cdf, 0.0, 0.0, 1e-6).alarm


def test_mean_test_keeps_its_level_for_rare_and_frequent_values():
    rng = np.random.default_rng(5)
    for p in (0.05, 0.5):
        values = (rng.random((2000, 1000)) < p).astype(float)
        alarms = sum(mean_test(row, p, p * (1 - p), 0.0, 0.0, 0.2).alarm for row in values)
        assert 10 < alarms <= stats.binom.isf(1e-4, 2000, 0.2)


# --- formulas of the laws ------------------------------------------------------------------------------


@pytest.mark.parametrize(("dim", "shape"), [(1, 1), rare(2, 1), (3, 3), rare(20, 2)])
def test_radius_is_the_integral_of_the_bessel_density(dim, shape):
    from mpmath import mp, mpf

    order = shape - mpf(dim) / 2

    def density(r):
        return r ** (dim - 1 + order) * mp.besselk(order, mp.sqrt(2 * shape) * r)

    middle = mp.sqrt(dim)
    whole = mp.quad(density, [0, middle / 3, middle, 3 * middle, mp.inf])
    part = mp.quad(density, [0, middle / 3, middle])
    assert mixed_radius_cdf(np.array([float(middle)]), dim, shape)[0] == pytest.approx(float(part / whole), abs=1e-11)


@pytest.mark.parametrize(("law", "domain"), [own for own in LAWS if isinstance(own[1], Box)], ids=str)
def test_density_fits_the_distribution_functions(law, domain):
    """Densities integrate to the marginal of one coordinate, and the radius follows it for one column."""
    one = dataclasses.replace(law, scale=1.7)
    z = np.linspace(-60, 60, 400_001)[:, None] * one.scale
    weight = np.exp(log_density(one, z))
    share = np.cumsum(weight) / weight.sum()
    atom = one.exact_fraction
    for at in (-1.3, 0.4, 2.0):
        noise = np.interp(at * one.scale, z[:, 0], share)
        assert marginal_cdf(one)(np.array([at]))[0] == pytest.approx(atom * (at > 0) + (1 - atom) * noise, abs=3e-4)
    size = radius_cdf(one, 1)(np.array([0.7]))[0]
    assert size == pytest.approx(np.diff(marginal_cdf(one)(np.array([-0.7, 0.7])))[0], abs=1e-12)


@pytest.mark.parametrize(("law", "domain"), LAWS, ids=str)
def test_no_cell_is_likelier_than_said(law, domain):
    assert isinstance(law, AdditiveLaw)
    z = law.release(np.zeros((50_000, domain.dim)), unit(domain.dim), rng=3).frame
    halves = np.full(domain.dim, 0.25)
    noisy = z[(z != 0).any(axis=1)]
    share = np.mean((np.abs(noisy) / law.scales(domain.dim) <= halves).all(axis=1))
    assert share <= cell_mass(law, halves) + 5e-3
    inside = np.mean(radius(law, noisy) <= 1.0)
    atom = law.exact_fraction
    assert inside == pytest.approx((radius_cdf(law, domain.dim)(np.array([1.0]))[0] - atom) / (1 - atom), abs=0.012)


# --- a user's mechanism --------------------------------------------------------------------------------


def noisy(x, n):
    return x + np.random.default_rng().laplace(size=n)


def one_noisy(x):
    return float(x + np.random.default_rng().laplace())


def audited(mechanism, claimed=None, inputs=(0.0, 1.0), samples=10_000, **options):
    return audit(mechanism, claimed=claimed or laplace(1.0), inputs=inputs, samples=samples, **options)


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


def nan_for_the_second(x, n):
    out = noisy(0.0, n)
    out[: n // 20 if x else 0] = np.nan
    return np.random.default_rng().permutation(out)


def answer(x, n):
    """Randomised response whose epsilon is 2."""
    rng = np.random.default_rng()
    keep = rng.random(n) < 1 / (1 + math.exp(-2.0))
    return ["yes" if own == bool(x) else "no" for own in keep]


def length_tells(x):
    rng = np.random.default_rng()
    return rng.normal(size=2 + (rng.random() < (0.7 if x else 0.3)))


def none_sometimes(x):
    rng = np.random.default_rng()
    return None if x and rng.random() < 0.2 else rng.normal()


def infinite_sometimes(x, n):
    return np.where(np.random.default_rng().random(n) < 0.01, np.inf if x else -np.inf, 0.0)


def atoms_of_zil(x, n):
    rng = np.random.default_rng()
    return x + (rng.random((n, 1)) > 0.1) * rng.normal(size=(n, 2)) * 20


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
    exact = audited(noisy, laplace(1.0), score=lambda y: (np.abs(y) - np.abs(y - 1)).round(9), samples=20_000)
    blind = audited(noisy, laplace(1.0), score=lambda y: np.zeros(len(y)), samples=20_000)
    assert exact.passed and blind.passed
    assert 0.85 < exact.epsilon_lower(0.0) < 1.0 and blind.epsilon_lower(0.0) == 0.0
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
    assert 0.8 < learnt < 1.0


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


# --- report and bad input ------------------------------------------------------------------------------


def test_report_says_what_was_tested():
    report = audit(scale.other_scale(Gaussian(1.0), 0.5), unit(1), samples=5_000)
    text, data = str(report), report.to_dict()
    assert "ALARM" in text and "record: 0 = 0 against 0 = 1" in text and "1e-06" in text
    assert data["passed"] is False and len(data["tests"]) == len(report.tests) and data["claimed"]
    import json

    assert json.loads(json.dumps(data)) == data
    assert "no alarm" in str(audit(Gaussian(1.0), unit(1), samples=500))


def test_report_draws_the_curve_and_the_points():
    from matplotlib.figure import Figure

    report = audit(Gaussian(1.0), unit(1), samples=500)
    ax = Figure().add_subplot()
    assert report.plot(ax) is ax
    seen = ax.containers[0].lines[0]
    assert np.array_equal(seen.get_xdata(), [p.alpha for p in report.points])
    with pytest.raises(ValueError, match="no curve to draw"):
        audit_noise(np.random.default_rng(0).normal(size=200), Gaussian(1.0)).plot()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: audit(3.0), TypeError, "mechanism must be a law"),
        (lambda: audit(Gaussian(1.0)), TypeError, "domain must be"),
        (lambda: audit(Gaussian(1.0), unit(1), samples=10), ValueError, "samples must be"),
        (lambda: audit(Gaussian(1.0), unit(1), false_alarm=0.9), ValueError, "false_alarm must be"),
        (lambda: audit(Gaussian(1.0), unit(1), false_alarm=math.nan), ValueError, "false_alarm must be"),
        (lambda: audit(Gaussian(1.0), unit(1), protect="column"), ValueError, "protect must be"),
        (lambda: audit(Gaussian(1.0), unit(1), rounding="up"), ValueError, "rounding must be"),
        (lambda: audit(Gaussian(1.0), unit(1), claimed=gaussian(1.0)), TypeError, "are for callables"),
        (lambda: audit(noisy), TypeError, "needs claimed="),
        (lambda: audit(noisy, unit(1), claimed=gaussian(1.0), inputs=(0, 1)), TypeError, "are for laws"),
        (lambda: audited(noisy, inputs=(1.0, 2.0, 3.0)), TypeError, "inputs must be a pair"),
        (lambda: audited(noisy, claimed=0.3), TypeError, "must be a TradeOffCurve"),
        (lambda: audited(noisy, score=3), TypeError, "score must be a callable"),
        (lambda: audited(noisy, vectorized=5), TypeError, "vectorized must be"),
        (lambda: audited(lambda x, n: np.zeros(n + 1)), ValueError, "must return n outputs"),
        (lambda: audited(lambda x, n: 3.0), TypeError, "must return n outputs"),
        (lambda: audited(lambda x: 1 / x), RuntimeError, r"raised ZeroDivisionError for inputs\[0\]"),
        (lambda: audited(noisy, score=lambda y: "a"), RuntimeError, "score raised"),
        (lambda: audited(noisy, score=lambda y: y[:5]), ValueError, "one number per output"),
        (lambda: audit_noise(np.zeros(5), Gaussian(1.0)), ValueError, "noise must be finite"),
        (lambda: audit_noise(np.full(500, np.inf), Gaussian(1.0)), ValueError, "noise must be finite"),
        (lambda: audit_noise(np.zeros((500, 2)), Gaussian((1.0, 1.0, 1.0))), ValueError, "3"),
        (lambda: audit_noise(np.zeros(500), RandomizedResponse(1.0)), TypeError, "law must add noise"),
        (lambda: audit_noise(lambda n, sizes=[200, 201]: np.zeros(sizes.pop()), Gaussian(1.0)), ValueError, "as many"),
    ],
)
def test_bad_input_is_refused_with_the_reason(call, error, words):
    with pytest.raises(error, match=words):
        call()


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
