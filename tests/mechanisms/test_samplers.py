"""Goodness of fit of every sampler against laws computed another way, and forced words."""

import math

import numpy as np
import pandas as pd
import pytest
from mpmath import mp, mpf
from scipy import stats

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
    blocks,
    release,
)
from privfit.mechanisms.law import REGISTRY
from privfit.mechanisms.samplers import (
    exponential,
    gamma_rows,
    keep_rows,
    laplace_coordinate,
    normal_coordinates,
    unit_circle,
)

N = 100_000
# Quantiles of W on a fine grid: E h(W) is the mean of h over it, whatever the sampler does.
MIDPOINTS = (np.arange(4000) + 0.5) / 4000


def mixed_cdf(cdf, shape, points):
    """E cdf(x, W) for W ~ Gamma(shape, rate shape), interpolated between 500 points."""
    w = stats.gamma.ppf(MIDPOINTS, shape, scale=1 / shape)
    grid = np.quantile(points, np.linspace(0, 1, 500))
    return np.interp(points, grid, [cdf(x, w).mean() for x in grid])


def ks(sample, cdf):
    """Kolmogorov distance times sqrt(n): above 2.23 once in 10,000 correct samples."""
    sample = np.sort(sample)
    ranks = np.arange(1, len(sample) + 1) / len(sample)
    return math.sqrt(len(sample)) * np.max(np.abs(cdf(sample) - ranks))


@pytest.mark.parametrize("dim", [1, 2, 3, 6])
def test_gaussian_marginals_radius_and_independence(dim, unit_noise):
    z = unit_noise(Gaussian(1.5), N, dim) / 1.5
    for column in z.T:
        assert ks(column, stats.norm.cdf) < 2.23
    assert ks((z**2).sum(axis=1), lambda x: stats.chi2.cdf(x, dim)) < 2.23


@pytest.mark.parametrize("dim", [1, 3])
def test_laplace_marginals_and_sum(dim, unit_noise):
    z = unit_noise(Laplace(1.5), N, dim) / 1.5
    for column in z.T:
        assert ks(column, stats.laplace.cdf) < 2.23
    # Sizes are independent exponentials.
    assert ks(np.abs(z).sum(axis=1), lambda x: stats.gamma.cdf(x, dim)) < 2.23


@pytest.mark.parametrize(("dim", "shape"), [(1, 1), (2, 1), (3, 1), (6, 1), (1, 3), (2, 2), (6, 4)])
def test_symmetric_laplace_marginals_and_radius(dim, shape, unit_noise):
    z = unit_noise(SymmetricLaplace(1.5, shape=shape), N, dim) / 1.5
    for column in z.T:
        assert ks(column, lambda x: mixed_cdf(lambda v, w: stats.norm.cdf(v / np.sqrt(w)), shape, x)) < 2.23
    square = (z**2).sum(axis=1)
    assert ks(square, lambda x: mixed_cdf(lambda v, w: stats.chi2.cdf(v / w, dim), shape, x)) < 2.23


@pytest.mark.parametrize("dim", [2, 5])
def test_angles_are_uniform_and_independent_of_the_radius(dim, unit_noise):
    z = unit_noise(SymmetricLaplace(1.0), N, dim)
    angle = np.arctan2(z[:, 1], z[:, 0])
    radius = np.hypot(z[:, 0], z[:, 1])
    assert ks(angle / (2 * np.pi) + 0.5, lambda x: x) < 2.23
    far = radius > np.median(radius)
    assert ks(angle[far] / (2 * np.pi) + 0.5, lambda x: x) < 2.23


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("delta0", [0.05, 0.5])
def test_zero_inflation_spares_whole_rows(dim, delta0, unit_noise):
    z = unit_noise(ZeroInflatedLaplace(1.0, delta0), N, dim)
    zero = z == 0
    # One noisy coordinate rounds to 0 with probability P(|V| < 1/2) = 1 - exp(-1/(sqrt(2) 1024)).
    rounded = -math.expm1(-1 / (math.sqrt(2) * 1024))
    rows = zero.all(axis=1).sum()
    low, high = stats.binom.ppf([1e-5, 1 - 1e-5], N, delta0)
    assert low <= rows <= high + N * (rounded if dim == 1 else 1e-5)
    assert (zero.any(axis=1) & ~zero.all(axis=1)).sum() <= stats.binom.ppf(1 - 1e-5, N * dim, rounded)
    noisy = z[~zero.all(axis=1)]
    assert ks(noisy[:, 0], lambda x: stats.laplace.cdf(x, scale=math.sqrt(0.5))) < 2.23


def test_exponential_and_gamma_variables():
    words = blocks.block_words(bytes(32), 0, 0)
    assert ks(exponential(words(N)), stats.expon.cdf) < 2.23
    for shape in (1, 5, 8, 9, 26):
        assert ks(gamma_rows(words, N, shape), lambda x: stats.gamma.cdf(x, shape, scale=1 / shape)) < 2.23  # noqa: B023


@pytest.mark.parametrize("shape", [2, 8, 9, 17, 100, 1000])
@pytest.mark.parametrize("forced", [None, 0, 2**64 - 1])
def test_gamma_variables_are_the_stated_function_of_their_words(shape, forced):
    """Against one logarithm of the exact product: a few units in the last place, whatever the shape."""
    drawn = []

    def words(count):
        drawn.append(random(count) if forced is None else np.full(count, forced, dtype=np.uint64))
        return drawn[-1].copy()

    random = blocks.block_words(bytes(32), 1, 1)
    w = gamma_rows(words, 20, shape)
    assert len(drawn) == shape
    with mp.workprec(200):
        for i, value in enumerate(w):
            product = math.prod(2 * int(word[i]) + 1 for word in drawn)
            exact = -mp.log(mpf(product) / mpf(2) ** (65 * shape)) / shape
            # Each uniform near 1 has an absolute error 2^-53 in its logarithm; sums round once per level.
            allowed = 2.0**-53 * (2 + (4 + math.log2(shape)) * float(exact))
            assert abs(mpf(float(value)) - exact) <= allowed


@pytest.mark.parametrize("delta0", [1e-300, 2.0**-64, 0.3, 1 - 2.0**-53])
def test_the_atom_is_never_larger_than_delta0(delta0):
    # Exactly the words below floor(delta0 2^64) are spared: that many of 2^64, at most delta0 of them.
    threshold = int(delta0 * 2**64)
    assert threshold / 2**64 <= delta0
    edge = np.array([max(threshold - 1, 0), threshold, 2**64 - 1], dtype=np.uint64)
    assert keep_rows(lambda n: edge[:n], 3, delta0).tolist() == [float(threshold == 0), 1.0, 1.0]


def test_the_circle_uses_its_two_sign_bits():
    word = np.arange(4, dtype=np.uint64)
    cosine, sine = unit_circle(word)
    np.testing.assert_array_equal(np.sign(cosine), [1, -1, 1, -1])
    np.testing.assert_array_equal(np.sign(sine), [1, 1, -1, -1])
    assert unit_circle(word, both=False)[1] is None


def forced(monkeypatch, word):
    """Let every word of every release be `word`."""
    monkeypatch.setattr(blocks, "block_words", lambda *key: lambda count: np.full(count, word, dtype=np.uint64))


LAWS = [
    Gaussian(1.5),
    Laplace(1.5),
    SymmetricLaplace(1.5),
    SymmetricLaplace(1.5, shape=4),
    ZeroInflatedLaplace(1.5, 0.25),
]


@pytest.mark.parametrize("law", LAWS, ids=repr)
@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("word", [0, 1, 2, 3, 2**63, 2**64 - 4, 2**64 - 2, 2**64 - 1])
def test_forced_words_give_finite_grid_values(law, dim, word, monkeypatch):
    forced(monkeypatch, word)
    x = np.array([-0.0, 0.0, 5e-324, -5e-324, 1.0, -1.0])
    out = [np.empty(6) for _ in range(dim)]
    blocks.release_block(law, Box(dict.fromkeys(range(dim), (-1, 1))), [x] * dim, out, b"", 0, 0)
    y = np.array(out)
    assert np.isfinite(y).all() and not np.signbit(y[y == 0]).any()
    assert (y * 1024 == np.rint(y * 1024)).all()


RELEASED = [*LAWS, SymmetricLaplace(1.5, shape=40), ZeroInflatedLaplace(1.5, 1 - 2**-53), DiscreteLaplace(1.5)]
NASTY = [np.nan, np.inf, -np.inf, -0.0, 0.0, 5e-324, -5e-324, 1e308, -1e-300, 1.0, -1.0, 0.3]


@pytest.mark.parametrize("law", RELEASED, ids=repr)
@pytest.mark.parametrize("rounding", ["nearest", "stochastic"])
@pytest.mark.parametrize("word", [0, 2**63, 2**64 - 1])
def test_forced_words_on_the_whole_release_path(law, rounding, word, monkeypatch):
    forced(monkeypatch, word)
    x = np.array([np.roll(NASTY, j) for j in range(3)]).T
    domains = [Box(dict.fromkeys(range(3), (-1, 1)))]
    if not isinstance(law, DiscreteLaplace):
        domains.append(Ball(1.0, 3))
    for domain in domains:
        y = release(x, law, domain, rounding=rounding).frame
        steps = y / law.grid(3)
        assert np.isfinite(y).all() and not np.signbit(y[y == 0]).any() and (steps == np.rint(steps)).all()


@pytest.mark.parametrize("word", [0, 2**64 - 1])
def test_forced_words_for_every_law_of_a_product(word, monkeypatch):
    forced(monkeypatch, word)
    laws = dict(enumerate(RELEASED)) | {"label": RandomizedResponse(1.0, 3)}
    frame = pd.DataFrame(dict.fromkeys(range(len(RELEASED)), NASTY) | {"label": ["a", "b", "c", None] * 3})
    domains = (Box(dict.fromkeys(range(len(RELEASED)), (-1, 1))), Categories({"label": ["a", "b", "c"]}))
    out = release(frame, laws, domains).frame
    assert {type(law) for law in laws.values()} | {Product} == set(REGISTRY.values())
    assert set(out["label"]) <= {"a", "b", "c"}
    numbers = out.drop(columns="label").to_numpy(dtype=float)
    assert np.isfinite(numbers).all() and not np.signbit(numbers[numbers == 0]).any()


@pytest.mark.parametrize("word", [0, 1, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1])
@pytest.mark.parametrize("rows", [1, 7])
def test_forced_words_give_finite_unit_noise(word, rows):
    """The largest values are those of the last uniform, 2^-65 or 2^-64: no sampler needs a limit."""

    def words(count):
        return np.full(count, word, dtype=np.uint64)

    one, keep = words(rows), keep_rows(words, rows, 0.3)
    sizes = [exponential(one), exponential(one >> np.uint64(1), bits=63), np.abs(laplace_coordinate(words, rows))]
    sizes += [shape * gamma_rows(words, rows, shape) / shape for shape in (1, 8, 9, 1000)]
    for size in sizes:
        assert ((size >= 0) & (size <= 65 * math.log(2) * (1 + 1e-15))).all() and not np.signbit(size).any()
    for mixing in (None, sizes[0]):
        for noise in normal_coordinates(words, rows, 3, mixing, keep):
            assert (np.abs(noise) <= math.sqrt(2) * 65 * math.log(2)).all()
    assert all((np.abs(part) <= 1).all() for part in unit_circle(one))
    assert set(keep.tolist()) <= {0.0, 1.0}


@pytest.mark.parametrize("word", [0, 2**64 - 1])
@pytest.mark.parametrize("categories", [2, 3, 7])
def test_forced_words_give_declared_labels(word, categories):
    law = RandomizedResponse(1.0, categories)
    codes = np.arange(categories)
    out = law.randomize(codes, lambda count: np.full(count, word, dtype=np.uint64))
    assert set(out) <= set(range(categories))
    assert (out == codes).all() == (word == 0) and (word == 0 or (out != codes).all())
