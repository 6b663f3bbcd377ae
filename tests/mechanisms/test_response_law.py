"""Randomised response: the ratio bound in exact arithmetic, and the frequencies."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from mpmath import iv, mp

from privfit.mechanisms import Box, Categories, RandomizedResponse, release


def probabilities(law):
    """Exact P(output | input) over 128 random bits, from the definition of the sampler."""
    keep = Fraction(law.threshold(), 2**64)
    others = law.categories - 1
    # Lie j is the words w with floor(w others / 2^64) = j.
    edges = [-(-j * 2**64 // others) for j in range(others + 1)]
    return keep, [(1 - keep) * Fraction(b - a, 2**64) for a, b in pairwise(edges)]


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, math.log(3), 5.0, 30.0, 44.0, 50.0, 100.0])
@pytest.mark.parametrize("categories", [2, 3, 5, 7, 1000])
def test_no_ratio_exceeds_e_to_the_epsilon(epsilon, categories):
    law = RandomizedResponse(epsilon, categories)
    keep, lies = probabilities(law)
    assert keep + sum(lies) == 1
    every = [keep, *lies]
    worst = max(every) / min(every)
    iv.prec = 300
    with mp.workprec(300):
        # The lower end of an interval that holds e^epsilon.
        assert mp.mpf(worst.numerator) / worst.denominator <= mp.mpf(iv.exp(epsilon).a)


@pytest.mark.parametrize(("epsilon", "categories"), [(0.1, 2), (1.0, 3), (5.0, 7), (30.0, 1000)])
def test_hardly_anything_is_lost_to_rounding(epsilon, categories):
    law = RandomizedResponse(epsilon, categories)
    keep, lies = probabilities(law)
    exact = math.exp(epsilon) / (math.exp(epsilon) + categories - 1)
    assert law.keep_probability == pytest.approx(exact, rel=1e-14)
    assert float(keep) == pytest.approx(exact, rel=1e-12)
    assert float(max(lies) / min(lies)) == pytest.approx(1.0, rel=1e-12)


def test_the_sampler_takes_the_words_it_says():
    law = RandomizedResponse(1.0, 4)
    t = law.threshold()
    lies = [0, 2**64 // 3, 2**64 // 3 + 1, 2 * (2**64) // 3, 2 * (2**64) // 3 + 1, 2**64 - 1]
    keep_words, lie_words = np.array([t - 1, t] * 3, dtype=np.uint64), np.array(lies, dtype=np.uint64)
    served = iter([keep_words, lie_words])
    codes = law.randomize(np.full(6, 1), lambda n: next(served))
    steps = [0 if k < t else 1 + w * 3 // 2**64 for k, w in zip(keep_words.tolist(), lies, strict=True)]
    assert codes.tolist() == [(1 + s) % 4 for s in steps]


@pytest.mark.parametrize("categories", [2, 3, 6])
@pytest.mark.parametrize("truth", [0, 1])
def test_frequencies(categories, truth):
    n, law = 200_000, RandomizedResponse(1.2, categories)
    labels = [f"label {i}" for i in range(categories)]
    x = np.full((n, 1), labels[truth], dtype=object)
    out = release(x, law, Categories({"l": labels}), rng=4).frame.ravel()
    p = law.keep_probability
    for code, label in enumerate(labels):
        wanted = p if code == truth else (1 - p) / (categories - 1)
        assert abs((out == label).mean() - wanted) < 5 * math.sqrt(wanted * (1 - wanted) / n)


@pytest.mark.parametrize(
    ("epsilon", "categories", "error"),
    [
        (0, 2, ValueError),
        (1e-300, 2, ValueError),
        (math.inf, 2, ValueError),
        (math.nan, 2, ValueError),
        (-1, 2, ValueError),
        (None, 2, TypeError),
        ("1", 2, TypeError),
        (True, 2, TypeError),
        (1.0, 1, ValueError),
        (1.0, 2.0, TypeError),
        (1.0, True, TypeError),
        (1.0, 2_000_000, ValueError),
    ],
)
def test_parameters_that_are_refused(epsilon, categories, error):
    with pytest.raises(error, match=r"epsilon|categories"):
        RandomizedResponse(epsilon, categories)


def test_domains_that_are_refused():
    law = RandomizedResponse(1.0, 2)
    with pytest.raises(TypeError, match="needs a domain Categories"):
        law.tradeoff(Box({"l": (0, 1)}))
    with pytest.raises(ValueError, match="categories must be the number of declared labels, 3"):
        law.tradeoff(Categories({"l": ["a", "b", "c"]}))
    with pytest.raises(ValueError, match="one column, got 2"):
        law.tradeoff(Categories({"l": ["a", "b"], "m": ["a", "b"]}))


def test_it_has_no_noise_formulas():
    law = RandomizedResponse(1.0)
    for call in (lambda: law.scales(1), lambda: law.characteristic_function(1.0)):
        with pytest.raises(TypeError, match="adds no noise"):
            call()
    assert law.variance == pytest.approx(law.keep_probability * (1 - law.keep_probability))
    assert law.slack(None) == 0.0 and law.exact_fraction == 0.0


def test_curve_is_pure():
    curve = RandomizedResponse(1.0, 3).tradeoff(Categories({"l": ["a", "b", "c"]}))
    assert curve.delta(1.0) <= 1e-12 < curve.delta(0.99)


def test_threads_that_set_the_shared_precision_of_mpmath_do_not_change_a_threshold():
    import threading

    import mpmath

    stop = threading.Event()

    def disturb():
        while not stop.is_set():
            with mpmath.mp.workprec(20):
                mpmath.mp.exp(1)

    other = threading.Thread(target=disturb)
    other.start()
    try:
        epsilons = np.linspace(0.1, 8.0, 300)
        found = [RandomizedResponse(float(e), 3).threshold() for e in epsilons]
    finally:
        stop.set()
        other.join()
    for e, threshold in zip(epsilons, found, strict=True):
        with mpmath.workdps(60):
            exact = 1 / (1 + 2 * mpmath.exp(-mpmath.mpf(float(e))))
            assert abs(threshold / mpmath.mpf(2) ** 64 - exact) < mpmath.mpf(2) ** -62
