"""The audit's tests have the level that they state: exact binomial tails, Kolmogorov's distance, simulation."""

import numpy as np
import pytest
from scipy import stats

from privfit.mechanisms.audit_statistics import band_test, count_test, excess_test, lower_limit, mean_test, upper_limit


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
