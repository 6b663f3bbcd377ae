"""Random parameters: in range, or refused by a ValueError or TypeError that names the parameter; nothing else."""

import math
import warnings
from datetime import date, timedelta

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfit.accounting import GDP, Advantage, Budget, ErrorRates
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
    release,
)

thorough = settings(max_examples=200, deadline=None)

BOX = Box({"a": (-1, 1), "b": (0, 0.1)})
NUMBERS = [0, 0.0, -0.0, 1, 0.05, 1e-300, 1e300, 50, -1, math.inf, -math.inf, math.nan, 5e-324, 1e308, 2**53, 10**400]
OTHERS = [None, "1", b"1", True, 1j, [], [1.0], {}, pd.NA, np.float64("nan"), np.array(1.0), np.array([1.0, 2.0])]
ANYTHING = st.sampled_from([*NUMBERS, *OTHERS]) | st.floats() | st.integers()


def named(call, *names):
    """The result of a call, or None if it refused by naming one of `names`; nothing else may happen, no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return call()
        except (ValueError, TypeError) as error:
            assert any(name in str(error) for name in names), str(error)
            return None


@thorough
@given(st.sampled_from([Gaussian, Laplace, DiscreteLaplace, SymmetricLaplace]), ANYTHING)
def test_scales(kind, scale):
    law = named(lambda: kind(scale), "scale")
    if law is not None:
        assert np.isfinite(law.variance).all() and np.all(np.array(law.scale) > 0)


@pytest.mark.parametrize("kind", [Gaussian, Laplace, DiscreteLaplace, SymmetricLaplace])
@pytest.mark.parametrize("scale", [1e-300, 1e300, 0, math.nan, math.inf])
def test_scales_out_of_range_are_refused(kind, scale):
    with pytest.raises(ValueError, match="scale"):
        kind(scale)


@thorough
@given(ANYTHING, ANYTHING, ANYTHING)
def test_other_parameters_of_laws(first, second, third):
    law = named(lambda: ZeroInflatedLaplace(first, second), "scale", "delta0")
    assert law is None or 0 < law.delta0 < 1
    law = named(lambda: SymmetricLaplace(1.0, shape=third), "shape")
    assert law is None or law.shape == third
    law = named(lambda: RandomizedResponse(first, third), "epsilon", "categories")
    assert law is None or (0 < law.epsilon <= 100 and law.categories >= 2)


@thorough
@given(ANYTHING, ANYTHING, ANYTHING)
def test_bounds(low, high, fill):
    box = named(lambda: Box({"x": (low, high)}, fill={"x": fill}), "bound", "fill")
    if box is not None:
        ((lower, upper),) = box.intervals
        assert -1e150 <= lower < upper <= 1e150 and lower <= box.fill[0] <= upper


@pytest.mark.parametrize("pair", [(1, 0), (1, 1), (0, math.inf), (-math.inf, 0), (math.nan, 1), (0, math.nan)])
def test_bounds_that_are_reversed_equal_infinite_or_nan_are_refused(pair):
    with pytest.raises(ValueError, match="bound"):
        Box({"x": pair})


@pytest.mark.slow
@thorough
@given(ANYTHING, ANYTHING)
def test_radius_and_dimension(radius, dim):
    # Not a dimension whose names alone fill the memory.
    if isinstance(dim, int) and dim > 1000:
        dim = 1000
    ball = named(lambda: Ball(radius, dim), "radius", "dim")
    assert ball is None or (0 < ball.radius <= 1e150 and ball.dim >= 1)


EPSILONS, DELTAS = [0, 1e-300, 50, math.inf, math.nan, None, 1.0], [0, 1, 1e-5, 0.1, math.nan, None]
TARGETS = st.one_of(
    st.tuples(st.just(Budget), st.sampled_from(EPSILONS) | ANYTHING, st.sampled_from(DELTAS) | ANYTHING),
    st.tuples(st.sampled_from([GDP, Advantage]), ANYTHING),
    st.tuples(st.just(ErrorRates), ANYTHING, ANYTHING),
)


def calibrated(kind, target, protect):
    """A law that meets the target, or None if it or the target was refused by name."""
    goal = named(lambda: target[0](*target[1:]), "epsilon", "delta", "mu", "value", "fpr", "fnr", "advantage")
    if goal is None:
        return None
    domain = Categories({"l": ["u", "v", "w"]}) if kind is RandomizedResponse else BOX
    options = {"delta0": 0.01} if kind is ZeroInflatedLaplace else {}
    law = named(
        lambda: kind.calibrate(goal, domain, protect, **options), "epsilon", "delta", "target", "Budget", "GDP",
        "Advantage", "ErrorRates", "scale", "noise",
    )  # fmt: skip
    if law is not None and isinstance(goal, Budget) and goal.delta > 0:
        promise = law.guarantee(domain)
        curve = promise.record if protect == "record" else promise.attribute
        assert curve.delta(goal.epsilon) <= goal.delta * (1 + 1e-12)
    return law


LEVELS = st.sampled_from(["record", "attribute"])


@thorough
@given(st.sampled_from([Gaussian, DiscreteLaplace, RandomizedResponse]), TARGETS, LEVELS)
def test_targets(kind, target, protect):
    calibrated(kind, target, protect)


@pytest.mark.slow
@thorough
@given(st.sampled_from([Laplace, SymmetricLaplace, ZeroInflatedLaplace]), TARGETS, LEVELS)
def test_targets_of_slower_laws(kind, target, protect):
    calibrated(kind, target, protect)


def test_the_smallest_mu():
    named(lambda: DiscreteLaplace.calibrate(GDP(5e-324), BOX), "mu", "target", "epsilon", "GDP")


def test_the_promise_at_a_huge_epsilon():
    law = Gaussian.calibrate(Budget(1e300, 0.1), BOX)
    assert law.guarantee(BOX).record.delta(1e300) <= 0.1


@pytest.mark.parametrize("kind", [Budget, GDP, Advantage, ErrorRates])
def test_a_budget_of_nan_is_refused(kind):
    count = 2 if kind in (Budget, ErrorRates) else 1
    for position in range(count):
        with pytest.raises(ValueError, match=r"epsilon|delta|mu|value|fpr|fnr|advantage"):
            kind(*[math.nan if j == position else 0.1 for j in range(count)])


NAMES = st.one_of(
    st.text(max_size=2), st.integers(-2, 3), st.floats(), st.none(), st.booleans(), st.tuples(st.text(max_size=1)),
    st.just(date(2020, 1, 1)), st.just(b"a"), st.just(timedelta(1)), st.just("a"),
)  # fmt: skip


@pytest.mark.slow
@thorough
@given(NAMES, NAMES)
def test_column_names(first, second):
    declared = named(lambda: Box({first: (0, 1), second: (0, 2)}), "Box", "distinct", "positions")
    frame = pd.DataFrame(np.zeros((3, 2)))
    frame.columns = pd.Index([first, second], dtype=object)
    box = declared if declared is not None and declared.dim == 2 else BOX
    out = named(lambda: release(frame, Gaussian(1.0), box), "column", "distinct", "names")
    assert out is None or list(out.frame.columns) == [first, second]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(np.zeros((2, 2)), columns=["a", "a"]),
        pd.DataFrame(np.zeros((2, 2)), columns=[1.5, "b"]),
        pd.DataFrame(np.zeros((2, 2)), columns=pd.MultiIndex.from_tuples([("a", "x"), ("b", "y")])),
        pa.table([pa.array([0.0]), pa.array([0.0])], names=["a", "a"]),
    ],
    ids=["twice", "float", "levels", "arrow twice"],
)
def test_tables_whose_names_are_no_names_are_refused(frame):
    with pytest.raises((ValueError, TypeError), match=r"column"):
        release(frame, Gaussian(1.0), BOX)


@pytest.mark.slow
@thorough
@given(ANYTHING | st.sampled_from(["nearest", "stochastic", "up"]), ANYTHING, ANYTHING)
def test_the_other_arguments_of_release(rounding, law, domain):
    x = np.zeros((2, 1))
    out = named(lambda: release(x, Gaussian(1.0), Box({"a": (0, 1)}), rounding=rounding), "rounding")
    assert out is None or out.rounding == rounding
    assert named(lambda: release(x, law, Box({"a": (0, 1)})), "law", "parts") is None
    assert named(lambda: release(x, Gaussian(1.0), domain), "domain") is None
