"""Boxes, balls, categories: declarations, total projections, and the declarations that are refused."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from privfit.mechanisms import Ball, Box, Categories
from privfit.mechanisms.domains import as_domains, domain_from_dict, find_domain

ANY_FLOAT = st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=True)
DOMAINS = [
    Box({"age": (17, 90), "hours": (0, 100)}, fill={"age": 40}),
    Ball(2.5, 3),
    Ball(1.0, 2, ["u", "v"]),
    Categories({"income": ["<=50K", ">50K"], "n": [3, 1, 2]}, fill={"n": 1}),
]


def test_box_properties():
    box = DOMAINS[0]
    assert box.columns == ("age", "hours") and box.dim == 2
    assert box.lower.tolist() == [17, 0] and box.upper.tolist() == [90, 100] and box.fill == (40.0, 50.0)
    assert box.select(["hours"]) == Box({"hours": (0, 100)})
    assert box.select(["hours", "age"]).fill == (50.0, 40.0)


def test_ranges_are_rounded_up():
    # 0.1 + 0.2 in exact arithmetic lies between two floats; the larger one bounds the sensitivity.
    (length,) = Box({"x": (-0.1, 0.2)}).ranges
    from fractions import Fraction

    exact = Fraction(0.2) + Fraction(0.1)
    assert Fraction(length) >= exact > Fraction(math.nextafter(length, 0))


def test_shifts_are_the_largest_distances_between_corners():
    box, scales = Box({"x": (-1, 1), "y": (0, 3)}), np.array([0.5, 2.0])
    corners = np.array([[-1, 0], [-1, 3], [1, 0], [1, 3]]) / scales
    pairs = np.linalg.norm(corners[:, None] - corners[None], axis=2)
    assert box.shift(scales, "record") == pytest.approx(pairs.max(), rel=1e-15)
    assert box.shift(scales, "attribute") == 4.0
    # On a ball the widest chord in scaled units lies along the smallest scale.
    angle = np.linspace(0, np.pi, 1001)
    chords = np.hypot(2 * np.cos(angle) / 0.5, 2 * np.sin(angle) / 2.0)
    ball = Ball(1.0, 2)
    assert ball.shift(scales, "record") == ball.shift(scales, "attribute") == pytest.approx(chords.max())


@given(arrays(np.float64, (2, 5), elements=ANY_FLOAT))
def test_box_projection_is_total(x):
    box = DOMAINS[0]
    given_x = x.copy()
    with np.errstate(all="ignore"):
        box.project(x)
    assert (x >= box.lower[:, None]).all() and (x <= box.upper[:, None]).all()
    inside = (given_x >= box.lower[:, None]) & (given_x <= box.upper[:, None])
    assert (x[inside] == given_x[inside]).all()
    assert (x[np.isnan(given_x)] == np.repeat(box.fill, 5).reshape(2, 5)[np.isnan(given_x)]).all()


@given(arrays(np.float64, (3, 5), elements=ANY_FLOAT), st.sampled_from([1e-100, 0.5, 2.5, 1e100]))
def test_ball_projection_is_total_and_never_ends_outside(x, radius):
    from fractions import Fraction

    given_x = x.copy()
    with np.errstate(all="ignore"):
        Ball(radius, 3).project(x)
    assert np.isfinite(x).all()
    for row in x.T:
        assert sum(Fraction(v) ** 2 for v in row) <= Fraction(radius) ** 2
    with np.errstate(all="ignore"):
        inside = np.linalg.norm(given_x, axis=0) < radius * (1 - 1e-12)
    # Entries sixty decades below the radius count as 0; the rest stays as it is.
    np.testing.assert_allclose(x[:, inside], given_x[:, inside], rtol=1e-15, atol=radius * 2.0**-198)


def test_ball_projection_keeps_the_direction():
    x = np.array([[3.0], [-4.0], [12.0]])
    Ball(1.3, 3).project(x)
    np.testing.assert_allclose(x[:, 0], np.array([3, -4, 12]) / 10, rtol=1e-14)


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_dictionary_round_trip(domain):
    import json

    assert domain_from_dict(json.loads(json.dumps(domain.to_dict()))) == domain
    assert pickle.loads(pickle.dumps(domain)) == domain


@pytest.mark.parametrize(
    ("bounds", "error"),
    [
        ({"x": (1, 0)}, ValueError),
        ({"x": (1, 1)}, ValueError),
        ({"x": (0, math.inf)}, ValueError),
        ({"x": (-math.inf, 0)}, ValueError),
        ({"x": (math.nan, 1)}, ValueError),
        ({"x": (0, 1e200)}, ValueError),
        ({"x": (0, 1, 2)}, TypeError),
        ({"x": "01"}, TypeError),
        ({"x": 1.0}, TypeError),
        ({"x": ("0", "1")}, TypeError),
        ({"x": (False, True)}, TypeError),
        ({}, ValueError),
        ({1.5: (0, 1)}, TypeError),
        ({True: (0, 1)}, TypeError),
        ({-1: (0, 1)}, ValueError),
        ([(0, 1)], TypeError),
        (None, TypeError),
    ],
)
def test_boxes_that_are_refused(bounds, error):
    with pytest.raises(error):
        Box(bounds)


def from_data():
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    frame = pd.DataFrame({"x": [0.0, 1.0]})
    yield from (frame, frame["x"], frame["x"].agg(["min", "max"]), pl.DataFrame({"x": [0.0, 1.0]}))
    yield pa.table({"x": [0.0, 1.0]})
    yield from (frame.to_numpy(), np.array([0.0, 1.0]), None, "auto", "data", "minmax", min, lambda x: (0, 1), 1.0)
    yield from ({0.0, 1.0}, frame["x"].to_list, slice(0, 1))


@pytest.mark.parametrize("source", list(from_data()), ids=lambda source: type(source).__name__)
def test_bounds_from_data_are_refused_with_the_reason(source):
    reason = "two people's values, and bounds that reveal them void the guarantee. Write down the widest values"
    with pytest.raises(TypeError, match=f"bounds must be a mapping .*, got {type(source).__name__}.*{reason}"):
        Box(source)
    with pytest.raises(TypeError, match=f"bounds of 'x' must be a pair .*, got {type(source).__name__}.*{reason}"):
        Box({"x": source})
    if isinstance(source, float):
        return
    for pair in ((source, 1.0), (0.0, source), [source, source]):
        with pytest.raises(TypeError, match=f"bound of 'x' must be .*{reason}"):
            Box({"x": pair})
    with pytest.raises(TypeError, match=f"radius must be .*{reason}"):
        Ball(source, 2)


def test_bounds_that_are_arrays_of_no_dimension_are_refused():
    for made in (lambda v: Box({"x": (0, v)}), lambda v: Ball(v, 2)):
        with pytest.raises(TypeError, match=r"got an array.*must be declared"):
            made(np.array(1.0))


def test_bounds_in_the_wrong_order_say_so_and_nothing_else():
    with pytest.raises(ValueError, match=r"lower < upper, got \(5, 1\): declare the widest values") as caught:
        Box({"x": (5, 1)})
    assert "two people" not in str(caught.value)
    for pair in ((1, 1), (0, math.inf), (-math.inf, 0), (math.nan, 1)):
        with pytest.raises(ValueError, match="of 'x' must"):
            Box({"x": pair})
    for pair in ((False, 1), (0, True), (np.False_, 1)):
        with pytest.raises(TypeError, match=r"bound of 'x' must be .*, got bool"):
            Box({"x": pair})


def test_fills_that_are_refused():
    with pytest.raises(ValueError, match=r"fill\['x'\] must be a number in \[0, 1\]"):
        Box({"x": (0, 1)}, fill={"x": 2})
    with pytest.raises(ValueError, match="fill names columns that the box has not: 'y'"):
        Box({"x": (0, 1)}, fill={"y": 0})
    with pytest.raises(ValueError, match="declared labels"):
        Categories({"x": ["a", "b"]}, fill={"x": "c"})
    with pytest.raises(ValueError, match="not declared: 'y'"):
        Categories({"x": ["a", "b"]}, fill={"y": "a"})


@pytest.mark.parametrize(
    ("radius", "dim", "columns", "error"),
    [
        (0, 2, None, ValueError),
        (math.nan, 2, None, ValueError),
        (math.inf, 2, None, ValueError),
        (1, 0, None, ValueError),
        (1, 2.0, None, TypeError),
        ("1", 2, None, TypeError),
        (1, 2, ["x"], ValueError),
        (1, 2, ["x", "x"], ValueError),
        (1, 2, "xy", TypeError),
    ],
)
def test_balls_that_are_refused(radius, dim, columns, error):
    with pytest.raises(error):
        Ball(radius, dim, columns)


@pytest.mark.parametrize(
    ("labels", "error"),
    [
        ({"x": ["a"]}, TypeError),
        ({"x": []}, TypeError),
        ({"x": "ab"}, TypeError),
        ({"x": ["a", 1]}, TypeError),
        ({"x": [0.5, 1.5]}, TypeError),
        ({"x": ["a", None]}, TypeError),
        ({"x": ["a", "a"]}, ValueError),
        ({"x": [0, 2**60]}, ValueError),
        ({}, ValueError),
        (["a", "b"], TypeError),
    ],
)
def test_categories_that_are_refused(labels, error):
    with pytest.raises(error):
        Categories(labels)


def test_encoding_is_total():
    strings = Categories({"x": ["a", "b", "c"]}, fill={"x": "b"})
    cells = np.array(["a", "c", None, math.nan, "z", b"a", ["a"], {"a": 1}, 3, object()], dtype=object)
    assert strings.encode(cells).tolist() == [0, 2, 1, 1, 1, 1, 1, 1, 1, 1]
    assert strings.encode(np.array(["c", "q"])).tolist() == [2, 1]
    assert strings.encode(np.array([1.0, 2.0])).tolist() == [1, 1]
    numbers = Categories({"x": [0, 1]}, fill={"x": 1})
    assert numbers.encode(np.array([0.0, 1.0, math.nan, math.inf, 0.5])).tolist() == [0, 1, 1, 1, 1]
    assert numbers.encode(np.array([False, True])).tolist() == [0, 1]
    assert numbers.encode(np.array([0, "0", None, 1.0, 1j], dtype=object)).tolist() == [0, 1, 1, 1, 1]
    assert numbers.encode(np.array([], dtype=object)).shape == (0,)


def test_decoding_returns_the_declared_type():
    assert Categories({"x": ["a", "b"]}).decode(np.array([1, 0])).tolist() == ["b", "a"]
    assert Categories({"x": [5, 7]}).decode(np.array([1, 0])).tolist() == [7, 5]
    assert Categories({"x": [True, False]}).decode(np.array([1, 0])).dtype == bool


def test_parts_of_a_domain():
    box, ball, labels = (
        Box({"a": (0, 1), "b": (0, 2)}),
        Ball(1.0, 2, ["u", "v"]),
        Categories({"l": ["x", "y"]}),
    )
    domain = (box, ball, labels)
    assert find_domain(domain, ("b",)) == Box({"b": (0, 2)})
    assert find_domain(domain, ("v", "u")) == Ball(1.0, 2, ["v", "u"])
    assert find_domain(domain, ("l",)) == labels
    assert find_domain((box, Box({"c": (0, 3)}, {"c": 1})), ("c", "a")) == Box({"c": (0, 3), "a": (0, 1)}, {"c": 1})
    for wrong in (("u",), ("a", "l"), ("z",)):
        with pytest.raises(ValueError, match="the domain declares"):
            find_domain(domain, wrong)
    with pytest.raises(ValueError, match="distinct"):
        as_domains((box, Box({"a": (0, 1)})))
    with pytest.raises(TypeError, match="domain must be"):
        as_domains({"a": (0, 1)})
    with pytest.raises(ValueError, match="not in the box"):
        box.select(["z"])
    with pytest.raises(ValueError, match="not declared"):
        labels.select(["z"])


@pytest.mark.parametrize("bad", [None, {}, {"domain": "cube"}, {"domain": "box"}, {"domain": "ball", "radius": 1}])
def test_saved_domains_that_are_refused(bad):
    with pytest.raises(ValueError, match="domain"):
        domain_from_dict(bad)
