"""Guarantees: known curves, the slack charged, and text that says it."""

import math
import warnings

import numpy as np
import pytest
from scipy.stats import norm

from privfit.mechanisms import (
    Ball,
    Box,
    Categories,
    Gaussian,
    Laplace,
    Product,
    RandomizedResponse,
    SymmetricLaplace,
    ZeroInflatedLaplace,
    release,
)
from privfit.mechanisms.report import expected_exact_rows

BOX = Box({"x": (0, 1), "y": (0, 2)})
ONE = Box({"x": (0, 1)})
ETA = 2 * 2**-36.9


def gaussian_delta(epsilon, mu):
    return norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2)


def test_gaussian_record_and_attribute_levels():
    promise = Gaussian([2.0, 5.0]).guarantee(BOX)
    for curve, mu in ((promise.record, math.hypot(0.5, 0.4)), (promise.attribute, 0.5)):
        for epsilon in (0.0, 0.5, 1.0, 3.0):
            wanted = gaussian_delta(epsilon, mu) + (1 + math.exp(epsilon)) * ETA
            assert curve.delta(epsilon) == pytest.approx(wanted, rel=1e-9)
    assert promise.slack == pytest.approx(ETA)


def test_ball_levels_are_the_diameter():
    promise = Gaussian([2.0, 4.0]).guarantee(Ball(1.5, 2))
    assert promise.record.delta(1.0) == promise.attribute.delta(1.0)
    assert promise.record.delta(1.0) == pytest.approx(gaussian_delta(1.0, 1.5), rel=1e-9)


def test_laplace_attribute_is_the_worst_column():
    law = Laplace([2.0, 2.0])
    assert law.tradeoff(BOX, "attribute").delta(0.4) == pytest.approx(-math.expm1(-0.3), rel=1e-12)
    # One column that moves at a time.
    assert law.guarantee(BOX).attribute.delta(1.0) < 1e-9 < law.guarantee(BOX).attribute.delta(0.9)


def test_laplace_record_composes_its_columns():
    curve = Laplace([2.0, 2.0]).tradeoff(BOX, "record")
    # Pure at eps = 0.5 + 1 and exact at eps = 0: total variation of a product, by direct integration.
    assert curve.delta(1.5) <= 1e-6 and curve.delta(1.2) > 1e-3
    z = np.linspace(-60, 60, 6001)
    step = z[1] - z[0]
    one = [np.exp(-np.abs(z - s) / 2) / 4 for s in (0, 1, 2)]
    p, q = np.outer(one[0], one[0]), np.outer(one[1], one[2])
    distance = 0.5 * np.abs(p - q).sum() * step**2
    assert curve.delta(0.0) == pytest.approx(distance, abs=2e-4)
    assert curve.delta(0.0) >= distance - 2e-5


def test_laplace_on_a_ball_is_pure_at_the_l1_length_of_the_diameter():
    curve = Laplace([1.0, 2.0]).tradeoff(Ball(0.5, 2), "record")
    # sup over |shift|_2 <= 1 of |s1| + |s2|/2, by search over angles.
    angle = np.linspace(0, np.pi / 2, 10_001)
    worst = (np.cos(angle) + np.sin(angle) / 2).max()
    assert curve.epsilon(0.0) == pytest.approx(worst, rel=1e-7)


def test_laplace_attribute_on_a_ball_covers_the_coordinates_that_projection_moves():
    # Raw records that differ in coordinate 0 only; projection onto the ball then moves all coordinates.
    dim, law, ball = 9, Laplace(1.0), Ball(1.0, 9)
    pair = np.ones((dim, 2))
    pair[0] = -4.0, 4.0
    ball.project(pair)
    shift = np.abs(pair[:, 0] - pair[:, 1])
    assert shift[0] < 2 and law.tradeoff(ball, "attribute").epsilon(0.0) >= shift.sum()
    pair = np.ones((dim, 2))
    pair[0] = 0.0, 1e9
    ball.project(pair)
    shift = np.abs(pair[:, 0] - pair[:, 1]).sum()
    # Far more than the diameter 2 that a record inside the ball could move along one axis.
    assert shift > 3.8 and law.tradeoff(ball, "attribute").epsilon(0.0) >= shift
    assert law.tradeoff(Ball(1.0, 1), "attribute").epsilon(0.0) == pytest.approx(2.0, rel=1e-9)


def test_symmetric_laplace_in_one_dimension_is_laplace():
    box = Box({"x": (0, 1)})
    for alpha in (0.01, 0.2, 0.7):
        sl = SymmetricLaplace(math.sqrt(2) * 0.8).tradeoff(box).curve(alpha)
        assert sl == pytest.approx(Laplace(0.8).tradeoff(box).curve(alpha), abs=1e-9)


@pytest.mark.parametrize("dim", [1, 2, 6])
def test_symmetric_laplace_total_variation(dim):
    # The best test at eps = 0 is a half-space in every dimension: 1 - exp(-c/sqrt 2).
    box = Box(dict.fromkeys(range(dim), (0, 1)))
    law = SymmetricLaplace(2.0)
    for protect, c in (("record", math.sqrt(dim) / 2), ("attribute", 0.5)):
        assert law.tradeoff(box, protect).delta(0.0) == pytest.approx(-math.expm1(-c / math.sqrt(2)), abs=1e-9)


def test_zero_inflation_shows_in_the_limit_of_delta():
    promise = ZeroInflatedLaplace(2.0, 0.05).guarantee(Box({"x": (0, 1)}))
    assert promise.record.delta(50.0) == pytest.approx(0.05, abs=1e-6) and promise.exact_fraction == 0.05
    assert promise.record.epsilon(0.04) == math.inf


def test_text_names_both_levels_and_the_slack():
    text = str(Gaussian([2.0, 5.0]).guarantee(BOX))
    assert "record" in text and "attribute" in text and "slack" in text and f"{ETA:.3g}" in text
    assert f"{Gaussian([2.0, 5.0]).guarantee(BOX).record.delta(1.0):.6g}" in text
    none = str(ZeroInflatedLaplace(2.0, 0.05).guarantee(ONE))
    assert "none" in none


def test_response_has_no_slack():
    promise = RandomizedResponse(1.0).guarantee(Categories({"l": ["a", "b"]}))
    assert promise.slack == 0.0 and promise.record.epsilon(0.0) == pytest.approx(1.0, rel=1e-9)


def test_report_counts_exact_rows_and_warns():
    x = np.zeros((50, 1))
    many = release(x, ZeroInflatedLaplace(1.0, 0.1), ONE)
    with pytest.warns(UserWarning, match="about 5 of 50 rows are released without noise"):
        text = many.report()
    assert "WARNING" in text and "rows expected to be exact (to the grid) in x: 5" in text
    few = release(x, ZeroInflatedLaplace(1.0, 0.01), ONE)
    none = release(x, SymmetricLaplace(1.0), ONE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "rows expected to be exact (to the grid) in x: 0.5" in few.report()
        assert "expected to be exact" not in none.report()
    assert expected_exact_rows(none) == {}


def test_report_explains_deltas_that_no_epsilon_reaches():
    x = np.zeros((50, 1))
    atom = release(x, ZeroInflatedLaplace(1.0, 0.002), ONE).report()
    line = next(line for line in atom.splitlines() if line.startswith("none: "))
    assert "is 0.002 (record), 0.002 (attribute): a share of 0.002 of the rows has no noise" in line
    law = Laplace(0.05)  # 20-DP: from there on the slack alone remains, times 1 + e^20
    line = next(line for line in release(x, law, ONE).report().splitlines() if line.startswith("none: "))
    smallest = float(line.split(" is ")[1].split(" (record)")[0])
    slack = law.slack(ONE)
    assert smallest == pytest.approx(
        min(-math.expm1((e - 20) / 2) + slack * (1 + math.exp(e)) for e in np.linspace(0, 20, 20001)), rel=0.01
    )
    assert f"the numerical slack of {slack:.3g} is charged" in line
    assert not any(line.startswith("none: ") for line in release(x, Laplace(1.0), ONE).report().splitlines())


def test_report_names_what_is_not_protected():
    x = np.zeros((3, 3))
    law = Product({0: ZeroInflatedLaplace(1.0, 0.001), 2: Gaussian(1.0)})
    out = release(x, law, Box({0: (0, 1), 2: (0, 1)}), public=[1], rng=2)
    text = out.report()
    assert "NOT PROTECTED: 1" in text and "NOT SECURE" in text and expected_exact_rows(out) == {"0": 0.003}
    secure = release(x, law, Box({0: (0, 1), 2: (0, 1)}), public=[1]).report()
    assert "NOT SECURE" not in secure


def test_laws_refuse_domains_of_another_kind():
    for law in (Gaussian(1.0), Laplace(1.0), SymmetricLaplace(1.0), ZeroInflatedLaplace(1.0, 0.1)):
        with pytest.raises(TypeError, match="needs a Box or a Ball"):
            law.guarantee(Categories({"l": ["a", "b"]}))
        with pytest.raises(TypeError, match="domain must be"):
            law.guarantee({"x": (0, 1)})
        with pytest.raises(TypeError, match="needs a Box or a Ball, got dict"):
            law.tradeoff({"x": (0, 1)})
