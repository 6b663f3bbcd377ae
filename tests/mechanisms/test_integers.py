"""Exact samplers: goodness of fit against exact probabilities, and the integer logic by enumeration."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from privfit.mechanisms.integers import bernoulli_exp, discrete_laplace, geometric, uniform_below
from privfit.mechanisms.keystream import block_words

N = 200_000


def words(key):
    return block_words(bytes([key]) * 32, 0, 0)


def scripted(values):
    """A source that hands out the given words one after the other."""
    served = iter(values)
    return lambda count: np.array(list(itertools.islice(served, count)), dtype=np.uint64)


def check_fit(sample, values, probabilities):
    """Chi-square over `values` and "anything else", at a false-alarm rate of 1e-5."""
    counts = np.array([(sample == v).sum() for v in values])
    counts = np.append(counts, len(sample) - counts.sum())
    expected = len(sample) * np.append(probabilities, 1 - np.sum(probabilities))
    assert expected.min() > 5
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert statistic < stats.chi2.ppf(1 - 1e-5, len(counts) - 1)


@pytest.mark.parametrize("scale", [1, 2, 7, 20])
def test_discrete_laplace_fits_its_probabilities(scale):
    q = math.exp(-1 / scale)
    values = np.arange(-4 * scale, 4 * scale + 1)
    sample = discrete_laplace(words(scale), N, scale)
    check_fit(sample, values, (1 - q) / (1 + q) * q ** np.abs(values))


def test_a_fit_with_zero_counted_twice_would_be_noticed():
    q, values = math.exp(-1 / 2), np.arange(-8, 9)
    doubled = (1 - q) / 2 * q ** np.abs(values) * np.where(values == 0, 2, 1)
    with pytest.raises(AssertionError):
        check_fit(discrete_laplace(words(1), N, 2), values, doubled)


def test_large_scales_fit_in_bins():
    scale = 2**20 + 12_345
    sample = discrete_laplace(words(3), N, scale) / scale
    edges = np.linspace(-4, 4, 81)
    counts, _ = np.histogram(sample, edges)
    # Bins of 1e5 integers: the continuous law's mass is off by one part in 1e5.
    check_fit(
        np.repeat(np.arange(80), counts), np.arange(79), np.diff(stats.laplace.cdf(edges))[:-1] / counts.sum() * N
    )


def test_geometric():
    values = np.arange(8)
    check_fit(geometric(words(4), N), values, -math.expm1(-1) * np.exp(-values))


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 5), (1, 5), (5, 5), (1, 1), (2**40 - 1, 2**41)])
def test_bernoulli_exp(numerator, denominator):
    hits = bernoulli_exp(words(6), np.full(N, numerator, dtype=np.uint64), denominator)
    p = math.exp(-numerator / denominator)
    assert abs(hits.mean() - p) <= 5 * math.sqrt(p * (1 - p) / N)


@pytest.mark.parametrize("bound", [1, 2, 3, 1000])
def test_uniform_below(bound):
    sample = uniform_below(words(7), N, bound)
    if bound > 1:
        check_fit(sample, np.arange(bound - 1), np.full(bound - 1, 1 / bound))
    assert sample.min() == 0 and sample.max() == bound - 1


def test_words_of_the_incomplete_top_range_are_rejected():
    # 2^64 = 3 (2^64 - 1)/3 + 1: the word 2^64 - 1 alone is one too many for bound 3.
    assert uniform_below(scripted([2**64 - 1, 2**64 - 2, 2**64 - 1, 5]), 2, 3).tolist() == [2, (2**64 - 2) % 3]
    bound = 2**63 - 1
    assert uniform_below(scripted([2**64 - 1, 2**64 - 2, 7]), 1, bound).tolist() == [7]
    assert uniform_below(scripted([2**64 - 3]), 1, bound).tolist() == [bound - 1]
    assert uniform_below(scripted([2**64 - 1]), 1, 2**63).tolist() == [2**63 - 1]


def test_the_first_failure_decides():
    # numerator/denominator = 1/2: words (uniform below 2, uniform below k > 1) until one of the two fails.
    one = np.ones(1, dtype=np.uint64)
    assert bernoulli_exp(scripted([1]), one, 2).tolist() == [True]  # fails at k = 1
    assert bernoulli_exp(scripted([0, 1, 0]), one, 2).tolist() == [False]  # at k = 2
    assert bernoulli_exp(scripted([0, 0, 1]), one, 2).tolist() == [False]
    assert bernoulli_exp(scripted([0, 0, 0, 0, 2]), one, 2).tolist() == [True]  # at k = 3
