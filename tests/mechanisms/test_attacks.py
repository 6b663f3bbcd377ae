"""Attacks on floating-point noise: they must succeed on the textbook sampler and exclude nothing on ours.

Reachability (Mironov 2012): an output y is excluded for an input x if no state of the generator leads from x
to y. For ours a state is exhibited for every output: the words that give it (`reaching`).
"""

from datetime import date

import numpy as np
import pandas as pd
import pytest
from reaching import source_of, words_between
from scipy import stats

from privfit.mechanisms import (
    Ball,
    Box,
    Categories,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    RandomizedResponse,
    SymmetricLaplace,
    ZeroInflatedLaplace,
    blocks,
    release,
)
from privfit.mechanisms.frames import read_table
from privfit.mechanisms.plan import plan_release

N = 100_000
UNIT = Box({"a": (0, 1)})


def textbook_laplace(k):
    """numpy's Laplace(0, 1) from its uniform k 2^-53."""
    u = k * 2.0**-53
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(u >= 0.5, -np.log(2.0 - u - u), np.log(u + u))


def textbook_reachable(y, x, scale=1.0, reach=4):
    """Whether some uniform near the solution of x + scale Laplace = y gives exactly y."""
    z = (y - x) / scale
    u = np.where(z >= 0, 1 - np.exp(-np.abs(z)) / 2, np.exp(-np.abs(z)) / 2)
    centre = np.rint(u * 2.0**53)
    hit = np.zeros(len(y), dtype=bool)
    for step in range(-reach, reach + 1):
        k = np.clip(centre + step, 0, 2.0**53 - 1)
        hit |= x + scale * textbook_laplace(k) == y
    return hit


def test_reachability_bites_on_the_textbook_laplace():
    rng = np.random.default_rng(0)
    y = 0.0 + rng.laplace(size=N)
    # The model of numpy's sampler is right: every output is reachable from the true input ...
    assert textbook_reachable(y, 0.0).all()
    # ... and most outputs prove that the input was not the neighbour.
    assert 0.80 < (~textbook_reachable(y, 1.0)).mean() < 0.84


def test_reachability_bites_on_textbook_zero_inflation():
    # delta0 = 5 % of rows may be seen through; four fifths are.
    rng, scale = np.random.default_rng(1), 0.5**0.5
    noise = scale * textbook_laplace(np.floor(rng.random(N) * 2.0**53)) * (rng.random(N) >= 0.05)

    def reachable(y, x):
        return textbook_reachable(y, x, scale) | (y == x)

    assert reachable(0.0 + noise, 0.0).all()
    assert (~reachable(0.0 + noise, 1.0)).mean() > 0.75


def finer_than(y, bits):
    return y * 2.0**bits != np.rint(y * 2.0**bits)


@pytest.mark.parametrize(("dim", "share"), [(1, 0.3), (2, 0.5), (6, 0.8), (50, 0.99)])
def test_precision_bites_on_textbook_noise(dim, share):
    # 1 + z is a multiple of 2^-53 where it lies in (-1/2, 1/2), z itself is as fine as a float can be.
    rng, rows = np.random.default_rng(2), N // dim
    z = np.sqrt(rng.exponential(size=(rows, 1))) * rng.standard_normal((rows, dim))
    assert not ((np.abs(1.0 + z) < 0.5) & finer_than(1.0 + z, 53)).any()
    proof = (np.abs(0.0 + z) < 0.5) & finer_than(0.0 + z, 53)
    assert proof.any(axis=1).mean() > share


LAWS = [
    Gaussian(1.0),
    Laplace(1.0),
    DiscreteLaplace(1.0),
    SymmetricLaplace(1.0),
    SymmetricLaplace(1.0, shape=4),
    SymmetricLaplace(1.0, shape=9),
    ZeroInflatedLaplace(1.0, 0.05),
]
both_roundings = pytest.mark.parametrize("rounding", ["nearest", pytest.param("stochastic", marks=pytest.mark.slow)])

NASTY = [np.nan, np.inf, -np.inf, -0.0, 5e-324, 1e308, 2.0**53, 1 / 3, 0.0, 1.0, 0.1, 0.5]


def records(rows, dim, key):
    """Records inside and outside of every domain used here, among them the nasty ones."""
    rng = np.random.default_rng(key)
    return np.where(rng.random((rows, dim)) < 0.5, rng.normal(0.5, 1, (rows, dim)), rng.choice(NASTY, (rows, dim)))


def excluded(plan, data, other, monkeypatch):
    """How many rows released from `data` are not released from `other` under any words."""
    y = release(data, plan.law, plan.domain, rounding=plan.rounding).frame
    table = read_table(other, plan.columns)
    scripts = [
        words_between(own, part, table.cells(part), [y[c].to_numpy() for c in columns], plan.rounding)
        for columns, own, part in plan.parts
    ]
    with monkeypatch.context() as patch:
        patch.setattr(blocks, "block_words", source_of(scripts, [part.dim for _, _, part in plan.parts]))
        again = pd.DataFrame(plan.release_rows(table, b""))
    return int((again != y).any(axis=1).sum())


@pytest.mark.parametrize("law", LAWS, ids=repr)
@pytest.mark.parametrize("dim", [1, 2, 6])
@both_roundings
def test_every_output_is_reached_from_any_other_record(law, dim, rounding, monkeypatch):
    names = [f"x{j}" for j in range(dim)]
    plan = plan_release(law, Box(dict.fromkeys(names, (0, 1))), rounding=rounding)
    data, other = (pd.DataFrame(records(N, dim, key), columns=names) for key in (3, 4))
    assert excluded(plan, data, other, monkeypatch) == 0


@pytest.mark.parametrize("law", [w for w in LAWS if not isinstance(w, DiscreteLaplace)], ids=repr)
def test_every_output_is_reached_from_records_outside_a_ball(law, monkeypatch):
    plan = plan_release(law, Ball(1.0, 3, ["x", "y", "z"]))
    data, other = (pd.DataFrame(records(N // 3, 3, key), columns=["x", "y", "z"]) for key in (5, 6))
    assert excluded(plan, data, other, monkeypatch) == 0


@pytest.mark.parametrize("categories", [2, 3, 7])
def test_every_answer_is_reached_from_any_other_label(categories, monkeypatch):
    labels = list("abcdefg"[:categories])
    plan = plan_release(RandomizedResponse(1.0, categories), Categories({"l": labels}))
    data, other = (pd.DataFrame({"l": np.random.default_rng(key).choice(labels, N)}) for key in (7, 8))
    assert excluded(plan, data, other, monkeypatch) == 0


def test_every_output_of_several_parts_is_reached_from_any_other_record(monkeypatch):
    laws = {
        ("a", "b"): ZeroInflatedLaplace([1.0, 20.0], 0.05),
        "c": DiscreteLaplace(0.7),
        # 64-bit words end at 9.4 standard deviations, so the ball is not wide against the noise.
        ("d", "e", "f"): Gaussian(2.0),
        "l": RandomizedResponse(0.5, 3),
        ("born", "grade"): Laplace([10_000.0, 1.0]),
    }
    dates = (date(1900, 1, 1), date(2020, 12, 31))
    domain = (
        Box({"a": (-1, 1), "b": (0, 100), "c": (0, 1)}),
        Box({"born": dates, "grade": (0, 2)}, encoding={"grade": {"u": 0, "v": 0.7, "w": 2}}),
        Ball(2.0, 3, ["d", "e", "f"]),
        Categories({"l": ["u", "v", "w"]}),
    )
    plan = plan_release(laws, domain)

    def people(key):
        rng = np.random.default_rng(key)
        labels = rng.choice(["u", "v", "w", "undeclared"], (2, N))
        born = np.datetime64("1850-01-01", "s") + rng.integers(0, 7 * 10**9, N)
        frame = pd.DataFrame(records(N, 6, key), columns=list("abcdef"))
        return frame.assign(l=labels[0], grade=labels[1], born=born)

    assert excluded(plan, people(9), people(10), monkeypatch) == 0


def test_the_inverse_would_notice_an_output_off_the_grid(monkeypatch):
    # 1 % of the outputs moved by a quarter of a grid step: exactly these have no words.
    law, real = Gaussian(1.0), release(np.zeros((N, 1)), Gaussian(1.0), UNIT).frame[:, 0]
    y = real + np.where(np.arange(N) % 100 == 0, 2.0**-12, 0.0)
    words = words_between(law, UNIT, [np.ones(N)], [y], "nearest")
    monkeypatch.setattr(blocks, "block_words", source_of([words], [1]))
    out = np.empty(N)
    blocks.release_part(law, UNIT, [np.ones(N)], [out], b"", 0)
    np.testing.assert_array_equal(out != y, np.arange(N) % 100 == 0)


@pytest.mark.parametrize("law", LAWS, ids=repr)
@pytest.mark.parametrize("dim", [1, 2, 50])
@both_roundings
def test_low_bits_are_the_grids_whatever_the_input(law, dim, rounding):
    rows, g = N // dim, law.grid(1)[0]
    box = Box(dict.fromkeys(range(dim), (0, 1)))
    for x in (0.0, 1 / 3, 1.0):
        y = release(np.full((rows, dim), x), law, box, rounding=rounding).frame
        assert (y / g != np.rint(y / g)).sum() == 0
        # The whole grid is used, not a coarser one that would depend on x.
        coarse = y / (2 * g)
        assert (coarse != np.rint(coarse)).mean() > 0.4 * (1 - law.exact_fraction)


@pytest.mark.parametrize("law", [law for law in LAWS if law.exact_fraction == 0], ids=repr)
def test_the_number_of_trailing_zero_bits_does_not_tell_the_input(law):
    box, counts = Box(dict.fromkeys(range(50), (0, 1))), []
    for x in (0.0, 1 / 3, 1.0):
        steps = np.rint(release(np.full((N // 50, 50), x), law, box).frame / law.grid(1)[0]).astype(np.int64)
        zeros = np.bitwise_count((steps & -steps) - 1)
        counts.append(np.bincount(np.minimum(zeros, 6).ravel(), minlength=7))
    assert stats.chi2_contingency(counts).pvalue > 1e-6


def test_exact_rows_land_on_the_grid_point_of_the_input_only():
    law, box = ZeroInflatedLaplace(1.0, 0.5), Box({0: (0, 1), 1: (0, 1)})
    y = release(np.full((N, 2), 1 / 3), law, box).frame
    exact = (np.abs(y - 1 / 3) < 2.0**-11).all(axis=1)
    assert abs(exact.mean() - 0.5) < 5 * 0.5 / np.sqrt(N)
    assert len(np.unique(y[exact], axis=0)) == 1


@pytest.mark.parametrize("law", [law for law in LAWS if not isinstance(law, DiscreteLaplace)], ids=repr)
@both_roundings
def test_equal_rows_and_equal_cells_show_in_exact_rows_only(law, rounding):
    # Without an atom a row of three coordinates agrees with another, or with its input, about once in a million.
    box, d0 = Box(dict.fromkeys(range(3), (0, 1))), law.exact_fraction
    y = release(np.full((N, 3), 0.25), law, box, rounding=rounding).frame
    twins = (y[::2] == y[1::2]).all(axis=1).sum()
    assert abs(twins - d0**2 * N / 2) <= 5 * np.sqrt(d0**2 * N / 2) + 8
    stays = (y == 0.25).all(axis=1).sum()
    assert abs(stays - d0 * N) <= 5 * np.sqrt(d0 * N) + 8
    cells = (y[:, 0] == y[:, 1]).mean()
    apart = release(np.full((N, 3), [0.25, 0.26, 0.25]), law, box, rounding=rounding).frame
    unlike = (apart[:, 0] == apart[:, 1]).mean()
    assert abs(cells - d0 - unlike) < 5 * np.sqrt(d0 / N + 2 * 1e-3 / N)


AGES = np.random.default_rng(3).integers(17, 91, 60).astype(float)
AGE = Box({"age": (17, 90)})
SEEDS = range(300)


def recovered(y, noise_of):
    """The whole numbers that remain when some seed's noise is taken off, or None."""
    for seed in SEEDS:
        x = y - noise_of(seed)
        if (np.abs(x - np.rint(x)) < 1e-9).all():
            return np.rint(x)
    return None


def test_a_guessable_seed_gives_every_record_away():
    def noise(seed):
        return np.random.default_rng(seed).laplace(scale=1000.0, size=len(AGES))

    assert (recovered(AGES + noise(217), noise) == AGES).all()


def test_a_seed_for_simulations_does_so_too_and_a_release_has_none():
    law = Laplace(1000.0)

    def noise(seed):
        return release(np.full((len(AGES), 1), 17.0), law, AGE, rng=seed).frame[:, 0] - 17.0

    made = release(AGES[:, None], law, AGE, rng=217)
    assert (recovered(made.frame[:, 0], noise) == AGES).all() and not made.secure
    assert recovered(release(AGES[:, None], law, AGE).frame[:, 0], noise) is None
