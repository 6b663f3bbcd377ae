"""Discrete Laplace: the loss in rational arithmetic, moments by summation, pure guarantees, refusals."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfit.accounting import GDP, Advantage, Budget, ErrorRates
from privfit.estimators import LogisticRegression, Mean
from privfit.mechanisms import Ball, Box, Categories, DiscreteLaplace, Laplace, Product, load_release, release
from privfit.mechanisms import discrete_laplace as module

BOX = Box({"age": (17, 90), "hours": (0, 100)})
BOUNDS = st.tuples(st.floats(-1e4, 1e4), st.floats(1e-3, 1e4)).map(lambda p: (p[0], p[0] + p[1]))


@pytest.fixture
def without_noise(monkeypatch):
    monkeypatch.setattr(module, "discrete_laplace", lambda words, count, scale: np.zeros(count, dtype=np.int64))


@settings(max_examples=100, deadline=None)
@given(st.tuples(BOUNDS, BOUNDS), st.tuples(st.floats(1e-2, 1e5), st.floats(1e-2, 1e5)), st.data())
def test_no_two_records_have_a_larger_likelihood_ratio_than_stated(bounds, scale, data):
    """log pmf(k - X) - log pmf(k - X') is at most sum |X - X'|/t, a rational number."""
    box, law = Box(dict(zip("ab", bounds, strict=True))), DiscreteLaplace(scale)
    grid = [Fraction(g) for g in law.grid(2)]
    t = [Fraction(s) / g for s, g in zip(law.scale, grid, strict=True)]
    assert all(n.denominator == 1 and 2**20 <= n <= 2**21 for n in t)
    cell = st.floats(allow_nan=True) | st.sampled_from([v for pair in bounds for v in pair])
    records = np.array(data.draw(st.lists(st.tuples(cell, cell), min_size=2, max_size=6)))
    rounding = data.draw(st.sampled_from(["nearest", "stochastic"]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "discrete_laplace", lambda words, count, scale: np.zeros(count, dtype=np.int64))
        y = release(records, law, box, rounding=rounding).frame
    steps = [[Fraction(v) / g for v, g in zip(row, grid, strict=True)] for row in y]
    assert all(s.denominator == 1 for row in steps for s in row)
    for one in steps:
        for two in steps:
            moved = [abs(a - b) / n for a, b, n in zip(one, two, t, strict=True)]
            assert sum(moved) <= law.loss(box) <= Fraction(law.tradeoff(box).epsilon(0.0))
            assert max(moved) <= law.loss(box, "attribute")


def test_the_stated_loss_is_reached_by_the_bounds(without_noise):
    law = DiscreteLaplace([50.0, 70.0])
    y = release(np.array([[-np.inf, 0.0], [np.inf, 100.0]]), law, BOX).frame
    assert law.loss(BOX) == sum(Fraction(b - a) / Fraction(s) for a, b, s in zip(*y, law.scale, strict=True))
    assert float(law.loss(BOX)) == pytest.approx(73 / 50 + 10 / 7, rel=1e-6)


def test_bounds_between_grid_points_are_rounded_outward():
    # At scale 2^20 the grid is 1: [0.5, 1.5] reaches the integers 0, 1 and 2, two steps and not one.
    assert DiscreteLaplace(2.0**20).loss(Box({"x": (0.5, 1.5)})) == Fraction(2, 2**20)
    assert DiscreteLaplace(2.0**20).loss(Box({"x": (0, 1)})) == Fraction(1, 2**20)
    assert DiscreteLaplace(2.0**20).loss(Box({"x": (-0.25, 0.25)})) == Fraction(2, 2**20)


def test_guarantee_is_pure_without_slack():
    promise = DiscreteLaplace([73.0, 50.0]).guarantee(BOX)
    assert promise.slack == 0.0
    for curve, epsilon in ((promise.record, 3.0), (promise.attribute, 2.0)):
        assert epsilon <= curve.epsilon(0.0) < epsilon * (1 + 1e-5) and curve.delta(epsilon * (1 + 1e-5)) == 0.0


def test_scales_are_rounded_up_to_whole_grid_steps():
    for scale in (0.1, 1.0, math.pi, 2 - 2**-40, 1e-150, 2.0**500, 2.0**-500):
        law = DiscreteLaplace(scale)
        assert scale <= law.scale <= scale * (1 + 2**-20) and DiscreteLaplace(law.scale) == law
        assert (Fraction(law.scale) / Fraction(law.grid(1)[0])).denominator == 1


def test_variance_and_characteristic_function_by_summation():
    # A law's own t is beyond summation, so its formulas are taken at t = 3 through a coarser grid.
    scale, t = 1.5, 3
    k = np.arange(-200, 201)
    pmf = np.exp(-np.abs(k) / t)
    pmf /= pmf.sum()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "grid_of", lambda scales, bits: scales / t)
        variance = DiscreteLaplace._variances(DiscreteLaplace(1.0), np.array([scale]))
        waves = DiscreteLaplace._characteristic(DiscreteLaplace(1.0), np.array([[0.4], [2.0]]), np.array([scale]))
    step = scale / t
    np.testing.assert_allclose(variance, (pmf * (k * step) ** 2).sum(), rtol=1e-13)
    wanted = [(pmf * np.cos(u * k * step)).sum() for u in (0.4, 2.0)]
    np.testing.assert_allclose(waves, wanted, rtol=1e-12)
    # On the law's own fine grid both are the continuous ones to 1e-12.
    assert DiscreteLaplace(1.0).variance == pytest.approx(2.0, rel=1e-12)
    assert DiscreteLaplace(1.0).characteristic_function(0.7) == pytest.approx(1 / 1.49, rel=1e-12)


TARGETS = [Budget(1.0, 0.0), Budget(3.0, 1e-6), Advantage(0.3), ErrorRates(0.05, 0.8), GDP(1.0)]


@pytest.mark.parametrize("target", TARGETS, ids=repr)
@pytest.mark.parametrize("protect", ["record", "attribute"])
@pytest.mark.parametrize("box", [BOX, Box({"x": (0.1, 0.7)})], ids=["two", "one"])
def test_calibration_meets_the_target_tightly(target, protect, box):
    law = DiscreteLaplace.calibrate(target, box, protect)
    less = DiscreteLaplace([s * (1 - 1e-4) for s in law.scales(box.dim)])
    assert target.met_by(law.tradeoff(box, protect)) and not target.met_by(less.tradeoff(box, protect))


def test_pure_budgets_are_met_exactly():
    for epsilon in (0.01, 0.3, 1.0, 7.0):
        law = DiscreteLaplace.calibrate(Budget(epsilon, 0.0), BOX)
        assert Fraction(epsilon) * Fraction(999, 1000) < law.loss(BOX) <= Fraction(epsilon)
        assert law.tradeoff(BOX).epsilon(0.0) <= epsilon
    with pytest.raises(ValueError, match="never pure epsilon-DP"):
        Laplace.calibrate(Budget(1.0, 0.0), BOX)
    with pytest.raises(ValueError, match="epsilon must be at least"):
        DiscreteLaplace.calibrate(Budget(1e-6, 0.0), BOX)
    uneven = DiscreteLaplace.calibrate(Budget(1.0, 0.0), BOX, relative_scales=[1.0, 3.0])
    assert uneven.scale[1] == pytest.approx(3 * uneven.scale[0], rel=1e-5)


def test_other_domains_are_refused():
    for call in (
        lambda: DiscreteLaplace(1.0).guarantee(Ball(1.0, 2)),
        lambda: DiscreteLaplace.calibrate(Budget(1.0, 0.0), Ball(1.0, 2)),
        lambda: release(np.zeros((1, 2)), DiscreteLaplace(1.0), Ball(1.0, 2)),
        lambda: DiscreteLaplace(1.0).guarantee(Categories({"x": ["a", "b"]})),
    ):
        with pytest.raises(TypeError, match="Box"):
            call()


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e140])
def test_nasty_values_give_finite_grid_values(scale):
    law, box = DiscreteLaplace(scale), Box({"x": (-1, 1)})
    nasty = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324, -5e-324, 1e308, -1e-300, 0.1])[:, None]
    y = release(nasty, law, box).frame
    steps = y / law.grid(1)
    assert np.isfinite(y).all() and (steps == np.rint(steps)).all() and not np.signbit(y[y == 0]).any()


def test_noise_is_new_per_cell_and_files_round_trip(tmp_path):
    out = release(np.zeros((5000, 2)), DiscreteLaplace(1.0), Box({"a": (0, 1), "b": (0, 1)}))
    assert len(np.unique(out.frame)) > 0.98 * out.frame.size
    assert abs(np.corrcoef(out.frame.T)[0, 1]) < 5 / math.sqrt(5000)
    out.save(tmp_path / "r.parquet")
    again = load_release(tmp_path / "r.parquet")
    assert again.law == out.law and (again.frame == out.frame).all()


def test_a_part_of_a_product_adds_its_pure_loss():
    law = Product({"age": DiscreteLaplace(73.0), "hours": DiscreteLaplace(50.0)})
    assert law.guarantee(BOX).record.epsilon(1e-12) == pytest.approx(3.0, rel=1e-5)
    assert law.guarantee(BOX).attribute.epsilon(1e-12) == pytest.approx(2.0, rel=1e-5)


def test_estimators_correct_what_its_variance_corrects_and_refuse_the_rest():
    x = np.random.default_rng(0).normal(size=(50, 1))
    assert Mean(noise=DiscreteLaplace(1.0)).fit(x).mean_[0] == pytest.approx(x.mean())
    with pytest.raises(NotImplementedError, match="Laplace or SymmetricLaplace"):
        LogisticRegression(noise=DiscreteLaplace(1.0)).fit(x, (x[:, 0] > 0).astype(int))
