"""Running time says nothing: not the size of the noise, not whether a row was spared, not what the data are.

The noise of a call is independent of all other calls, so if time does not depend on it, every order of the noise
within a window of calls is equally likely given the times: Spearman's correlation of a window of m calls has mean
0 and variance 1/(m - 1) exactly, however the times drift or jump. Summed over windows it is a normal score.

The observer's clock is given a random error of up to a microsecond. Without it some 40,000 calls of one row show that
the system's logarithm, sine and cosine take a nanosecond more or less in parts of their range; a release always draws
whole blocks of thousands of rows, where that is lost.
"""

import gc
import time

import numpy as np
import pytest
from scipy import stats

from privfit.mechanisms import (
    Box,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    SymmetricLaplace,
    ZeroInflatedLaplace,
    discrete_laplace,
)
from privfit.mechanisms.blocks import release_block
from privfit.mechanisms.grid import nearest
from privfit.mechanisms.integers import discrete_laplace as exact_integers
from privfit.mechanisms.keystream import block_words
from privfit.mechanisms.samplers import gamma_rows, keep_rows, normal_coordinates

WINDOW, CLOCK = 100, 1000
# 40 scores at 1e-6 in all.
BAND = stats.norm.isf(0.5e-6 / 40)


def score(times, variable):
    """Standard normal if `variable` is exchangeable within windows given the times."""
    ranks = [stats.rankdata(np.reshape(v, (-1, WINDOW)), axis=1) - (WINDOW + 1) / 2 for v in (times, variable)]
    size = np.sqrt(np.prod([np.square(r).sum(axis=1) for r in ranks], axis=0))
    varied = size > 0
    rho = (ranks[0] * ranks[1]).sum(axis=1)[varied] / size[varied]
    return rho.sum() * np.sqrt((WINDOW - 1) / max(len(rho), 1))


def timed(call, count, prepare=lambda i: None):
    """Nanoseconds and results of `count` calls of call(i), after a warm-up and, untimed, prepare(i)."""
    for i in range(50):
        prepare(i)
        call(i)
    times, results = np.empty(count), []
    gc.disable()
    try:
        for i in range(count):
            prepare(i)
            start = time.perf_counter_ns()
            result = call(i)
            times[i] = time.perf_counter_ns() - start
            results.append(result)
    finally:
        gc.enable()
    return times + np.random.default_rng(0).uniform(0, CLOCK, count), np.array(results)


def one_row(law, dim, key=1):
    """A call that perturbs one record and no others, where nothing else takes time."""
    words, box, x = block_words(bytes([key]) * 32, 0, 0), Box(dict.fromkeys(range(dim), (-1, 1))), np.zeros((dim, 1))
    round_ = nearest(words)

    def call(i):
        x[:] = 0.0
        law._perturb(x, words, box, round_)
        return float(x[0, 0])

    return call


def one_block(law, dim):
    """A call that releases one record as `release` does, in a block of its own."""
    box, columns = Box(dict.fromkeys(range(dim), (-1, 1))), [np.zeros(1) for _ in range(dim)]
    out = [np.empty(1) for _ in range(dim)]

    def call(i):
        release_block(law, box, columns, out, bytes(32), 0, i)
        return float(out[0][0])

    return call


def scores(call, count):
    """Scores of the size of the noise and, if it occurs often enough, of its being zero."""
    times, noise = timed(call, count)
    variables = [np.abs(noise)]
    if 0.02 < (noise == 0).mean() < 0.98:
        variables.append(noise == 0)
    return [score(times, v) for v in variables]


LAWS = [
    (Gaussian(1.0), 1),
    (Gaussian(1.0), 2),
    (Laplace(1.0), 1),
    (SymmetricLaplace(1.0), 1),
    (SymmetricLaplace(1.0), 2),
    (SymmetricLaplace(1.0, shape=4), 6),
    (ZeroInflatedLaplace(1.0, 0.25), 1),
    (ZeroInflatedLaplace(1.0, 0.25), 2),
    (DiscreteLaplace(1.0), 1),
]
QUICK = [LAWS[i] for i in (1, 7, 8)]


class Branching(ZeroInflatedLaplace):
    """A wrong law: saves the work of noise that would be multiplied by zero."""

    def _unit_noise(self, words, rows, dim):
        keep = keep_rows(words, rows, self.delta0)
        if keep.any():
            yield from normal_coordinates(words, rows, dim, gamma_rows(words, rows, 1), keep)
        else:
            yield from np.zeros((dim, rows))


def rejection(words, count, scale):
    """A wrong sampler, though of nearly the right law: as many rounds as the noise is large."""
    size = (words(count) % np.uint64(scale)).astype(np.int64)
    while (words(count) < np.uint64(int(np.exp(-1) * 2.0**64))).any():
        size += scale
    return np.where(words(count) & np.uint64(1), size, -size)


def test_the_score_is_standard_normal_under_drift_and_jumps():
    rng = np.random.default_rng(0)
    drift = np.linspace(0, 50, 2000) + 20 * (np.arange(2000) % 700 > 500)
    null = np.array([score(drift + rng.pareto(1, 2000), rng.laplace(size=2000)) for _ in range(400)])
    few = np.array([score(drift + rng.pareto(1, 2000), rng.random(2000) < 0.1) for _ in range(400)])
    for sample in (null, few):
        assert stats.kstest(sample, "norm").pvalue > 1e-4
    assert score(np.arange(2000) % 7, np.zeros(2000)) == 0.0


@pytest.mark.parametrize(("law", "dim"), QUICK, ids=repr)
def test_time_is_independent_of_the_noise_in_a_few_calls(law, dim):
    assert np.abs(scores(one_row(law, dim), 3000)).max() < BAND


def test_a_branch_on_the_atom_is_noticed():
    found = scores(one_row(Branching(1.0, 0.25), 2), 3000)
    assert len(found) == 2 and min(np.abs(found)) > BAND


def test_a_sampler_by_rejection_is_noticed(monkeypatch):
    monkeypatch.setattr(discrete_laplace, "discrete_laplace", rejection)
    assert scores(one_row(DiscreteLaplace(1.0), 1), 3000)[0] > BAND


@pytest.mark.slow
@pytest.mark.parametrize(("law", "dim"), LAWS, ids=repr)
@pytest.mark.parametrize("route", [one_row, one_block])
def test_time_is_independent_of_the_noise_in_12000_calls(law, dim, route):
    found = scores(route(law, dim), 12_000)
    assert len(found) == 1 + (isinstance(law, ZeroInflatedLaplace))
    assert np.abs(found).max() < BAND


@pytest.mark.slow
def test_time_is_independent_of_exact_noise_being_zero():
    words = block_words(bytes([2]) * 32, 0, 0)
    found = scores(lambda i: int(exact_integers(words, 1, 2)[0]), 12_000)
    assert len(found) == 2 and np.abs(found).max() < BAND


CELLS = {
    "ordinary": lambda rng, n: rng.uniform(-1, 1, n),
    "missing": lambda rng, n: np.full(n, np.nan),
    "outside": lambda rng, n: rng.uniform(2, 3, n),
    "infinite": lambda rng, n: np.full(n, -np.inf),
    "zero": lambda rng, n: np.full(n, -0.0),
    "subnormal": lambda rng, n: 5e-324 * rng.integers(1, 2**40, n),
}


@pytest.mark.slow
@pytest.mark.parametrize("law", [Gaussian(1.0), DiscreteLaplace(1.0)], ids=repr)
def test_time_is_independent_of_the_data(law):
    """Blocks full of one kind of value, in random order, from one place: where an array lies changes its time."""
    rng, box, count = np.random.default_rng(4), Box({"x": (-1, 1)}), 3000
    kinds = [cells(rng, 8192) for cells in CELLS.values()]
    order = rng.integers(len(kinds), size=count)
    column, out = np.empty(8192), np.empty(8192)
    times, _ = timed(
        lambda i: release_block(law, box, [column], [out], bytes(32), 0, i),
        count,
        prepare=lambda i: np.copyto(column, kinds[order[i]]),
    )
    found = {name: score(times, order == kind) for kind, name in enumerate(CELLS)}
    assert max(map(abs, found.values())) < BAND, found
