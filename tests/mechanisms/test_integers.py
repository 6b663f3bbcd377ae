"""The exact sampler: goodness of fit, and every decision against exact arithmetic on scripted words."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy import stats

from privfit.mechanisms import integers
from privfit.mechanisms.integers import SCALE_MAX, discrete_laplace, words_per_value
from privfit.mechanisms.keystream import block_words

N = 200_000
RARE = 2**63


def words(key):
    return block_words(bytes([key]) * 32, 0, 0)


class Scripted:
    """Hands out the given words one after the other and remembers what was asked for."""

    def __init__(self, values):
        self.values, self.asked = iter(values), []

    def __call__(self, count):
        self.asked.append(count)
        return np.array(list(itertools.islice(self.values, count)), dtype=np.uint64)


def probability(scale, column):
    """P(decision is 1): the sign, the digits from the lowest, the part above them; 2000 bits."""
    top = words_per_value(scale) - 1
    with mp.workprec(2000):
        power = mp.exp(mpf(2 ** max(column - 1, 0)) / scale)
        return 1 / power if column == top else 1 / (1 + power)


def base_2_64(p, places):
    """The first digits of p in base 2^64."""
    with mp.workprec(2000):
        whole = int(mp.floor(p * mpf(2) ** (64 * places)))
    return [(whole >> (64 * (places - 1 - i))) % 2**64 for i in range(places)]


def never(scale):
    """One value's words with which no decision is 1, hence K = 0, and none ties."""
    return [2**64 - 1] * words_per_value(scale)


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


@pytest.mark.parametrize("scale", [2**20, 2**20 + 12_345, 2**21, SCALE_MAX])
def test_large_scales_fit_in_bins(scale):
    sample = discrete_laplace(words(3), N, scale) / scale
    edges = np.linspace(-4, 4, 81)
    counts, _ = np.histogram(sample, edges)
    # Bins of 1e5 integers: the continuous law's mass is off by one part in 1e5.
    check_fit(
        np.repeat(np.arange(80), counts), np.arange(79), np.diff(stats.laplace.cdf(edges))[:-1] / counts.sum() * N
    )


@pytest.mark.parametrize("scale", [1, 3, 2**20 + 12_345, 2**21])
def test_the_lowest_digits_of_large_noise_are_almost_fair(scale):
    """P(K even) = (1 + q^2)/(1 + q)^2 by summation over k, and the same for K mod 4 = 0."""
    sample, q = discrete_laplace(words(5), N, scale), math.exp(-1 / scale)
    for modulus in (2, 4):
        p = (1 - q) / (1 + q) * (1 + 2 * q**modulus / -math.expm1(-modulus / scale))
        assert abs((sample % modulus == 0).mean() - p) < 5 * math.sqrt(p * (1 - p) / N)


@pytest.mark.parametrize("scale", [1, 3, 20])
def test_independent_decisions_give_the_stated_probabilities(scale):
    """Multiply the decisions' probabilities for K = k and compare with (1 - q)/(1 + q) q^|k| to 45 digits."""
    with mp.workdps(50):
        q = mp.exp(-mpf(1) / scale)
        width = words_per_value(scale) - 2
        for k in [*range(-9, 10), -(2**width) - 3, 2**width + 1, 5 * 2**width]:
            g = k - 1 if k > 0 else -k
            p = probability(scale, 0)
            total = p if k > 0 else 1 - p
            for i in range(width):
                p = probability(scale, i + 1)
                total *= p if g >> i & 1 else 1 - p
            r = probability(scale, width + 1)
            total *= r ** (g >> width) * (1 - r)
            stated = (1 - q) / (1 + q) * q ** abs(k)
            assert abs(total / stated - 1) < mpf(10) ** -45


@pytest.mark.parametrize("scale", [1, 2, 3, 1000, 2**20, 2**20 + 1, 2**21, SCALE_MAX])
def test_the_digits_of_every_probability_are_certain(scale):
    top = words_per_value(scale) - 1
    for column in range(top + 1):
        p = probability(scale, column)
        wanted = base_2_64(p, 3)
        assert [integers._digit(scale, column, place) for place in range(3)] == wanted
    assert probability(scale, top) <= mp.exp(-64) < mpf(2) ** -92
    first = integers._first_digits(scale)
    assert first[:top].tolist() == [base_2_64(probability(scale, column), 1)[0] for column in range(top)]
    assert first[top] == RARE and not first.flags.writeable


def column_of_ones(scale, column):
    """K when only this decision is 1: the sign gives 1 + 0, digit i gives -2^i."""
    return 1 if column == 0 else -(2 ** (column - 1))


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([1, 3, 2**20 + 12_345]), st.data())
def test_each_decision_is_an_exact_comparison(scale, data):
    """U from words next to the digits of p: the decision is U < p as rational numbers, for any later words."""
    column = data.draw(st.integers(0, words_per_value(scale) - 2))
    digits = base_2_64(probability(scale, column), 4)
    ties, step = data.draw(st.integers(0, 3)), data.draw(st.sampled_from([-1, 1]))
    own = [*digits[:ties], min(max(digits[ties] + step, 0), 2**64 - 1)]
    if own[-1] == digits[ties]:  # the digit itself was 0 or 2^64 - 1
        own.append(digits[ties + 1] + 1 if ties < 3 else 2**64 - 1)
    uniform = sum(Fraction(word, 2 ** (64 * (i + 1))) for i, word in enumerate(own))
    with mp.workprec(2000):
        exact = Fraction(int(probability(scale, column) * mpf(2) ** 1500), 2**1500)
    row = never(scale)
    row[column] = own[0]
    source = Scripted(row + own[1:])
    drawn = discrete_laplace(source, 1, scale)
    assert drawn.tolist() == [column_of_ones(scale, column) if uniform < exact else 0]
    assert source.asked == [words_per_value(scale)] + [1] * (len(own) - 1)


@pytest.mark.parametrize(("scale", "column"), [(1, 0), (3, 1), (2**20, 5)])
def test_ties_are_decided_by_the_rest_of_the_probability(scale, column):
    """Given that the first words agree, the decision is 1 with probability 2^64 p mod 1."""
    with mp.workprec(2000):
        scaled = probability(scale, column) * mpf(2) ** 64
        first, rest = int(mp.floor(scaled)), float(scaled - mp.floor(scaled))
    count = 600
    row = never(scale)
    row[column] = first
    random = words(8)
    matrix = lambda n: np.array(row * (n // len(row)), dtype=np.uint64)  # noqa: E731
    hits = (discrete_laplace(lambda n: random(1) if n == 1 else matrix(n), count, scale) != 0).sum()
    assert stats.binom.ppf(1e-6, count, rest) <= hits <= stats.binom.ppf(1 - 1e-6, count, rest)


def test_the_part_above_the_digits_counts_trials_of_its_own():
    scale = 1
    top = words_per_value(scale) - 1
    low, second, _ = base_2_64(probability(scale, top), 3)
    assert low == 0  # less than 2^-64: the rare word, then U < 2^64 r
    row = never(scale)
    row[top] = RARE
    for rest, above in [
        ([second + 1], 0),
        ([second - 1, RARE + 1], 1),
        ([second - 1, 0], 1),
        ([0, RARE, second + 1], 1),
        ([0, RARE, second - 1, RARE, 0, RARE - 1], 3),
    ]:
        source = Scripted([*row, *rest])
        assert discrete_laplace(source, 1, scale).tolist() == [-above * 2 ** (top - 1)]
        assert next(source.values, None) is None
    row[0] = 0
    assert discrete_laplace(Scripted([*row, 0, 0]), 1, scale).tolist() == [1 + 2 ** (top - 1)]


def test_a_part_too_large_for_an_integer_is_cut_off_without_wrapping(monkeypatch):
    monkeypatch.setattr(integers, "_top_part", lambda words, scale: 10**9)
    for sign, wanted in ((0, 1 + 2**60), (2**64 - 1, -(2**60))):
        row = never(SCALE_MAX)
        row[-1], row[0] = RARE, sign
        assert discrete_laplace(Scripted(row), 1, SCALE_MAX).tolist() == [wanted]


@pytest.mark.parametrize("scale", [1, 2**20, 2**20 + 1, 2**21, SCALE_MAX])
@pytest.mark.parametrize("word", [0, 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1])
def test_a_stuck_source_ends_with_finite_integers(scale, word):
    calls = []

    def stuck(count):
        calls.append(count)
        assert len(calls) < 5000
        return np.full(count, word, dtype=np.uint64)

    drawn = discrete_laplace(stuck, 3, scale)
    width = words_per_value(scale) - 2
    assert len(set(drawn.tolist())) == 1 and abs(drawn[0]) <= 2**width
    if word == 0:
        assert drawn[0] == 2**width  # every digit is 1, and the sign
    if word == 2**64 - 1:
        assert drawn[0] == 0


@pytest.mark.parametrize("scale", [1, 2**20 + 12_345])
@pytest.mark.parametrize("count", [0, 1, 517, 10_000])
def test_the_number_of_words_does_not_depend_on_the_noise(scale, count):
    width = words_per_value(scale)
    asked = []
    for key in range(3):
        source, calls = words(key), []

        def counted(n, source=source, calls=calls):
            calls.append(n)
            return source(n)

        discrete_laplace(counted, count, scale)
        asked.append(calls)
    # Many values are drawn in chunks, so memory beyond the result is bounded.
    assert asked[0] == asked[1] == asked[2]
    assert sum(asked[0]) == count * width and max(asked[0], default=0) <= 15_000
