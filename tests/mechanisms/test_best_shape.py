"""Shape "best": never more noise than the Gaussian mechanism, nor than any other integer shape."""

import functools

import pytest

from privfit.accounting import GDP, Advantage, Budget, ErrorRates, gaussian
from privfit.mechanisms import Ball, Box, Gaussian, SymmetricLaplace

UNIT = Box({"x": (0, 1)})
TARGETS = [
    Budget(1.0, 1e-5),
    Budget(0.0, 0.01),
    Budget(4.0, 0.05),
    Budget(20.0, 1e-5),
    Budget(1e-3, 1e-8),
    Advantage(0.2),
    Advantage(0.99),
    ErrorRates(0.05, 0.5),
    ErrorRates(0.3, 0.01),
]
HARD = [GDP(0.5), GDP(5.0), gaussian(1.0)]


@functools.cache
def best(target, dim):
    return SymmetricLaplace.calibrate(target, Ball(0.5, dim), shape="best")


def check_against_gaussian(target, dim):
    law, plain = best(target, dim), Gaussian.calibrate(target, Ball(0.5, dim))
    assert law.variance <= plain.variance
    # If it is Gaussian noise it is exactly that law; else its own curve meets the target.
    if isinstance(law, Gaussian):
        assert law == plain
    if isinstance(target, Budget):
        assert law.guarantee(Ball(0.5, dim)).deltas([target.epsilon])[0]["record"] <= target.delta
    else:
        assert target.met_by(law.tradeoff(Ball(0.5, dim))) if isinstance(target, GDP | Advantage) else True


@pytest.mark.parametrize("dim", [1, 6])
@pytest.mark.parametrize("target", TARGETS, ids=repr)
def test_never_more_noise_than_the_gaussian_mechanism(target, dim):
    check_against_gaussian(target, dim)


@pytest.mark.slow
@pytest.mark.parametrize("dim", [2, 50])
@pytest.mark.parametrize("target", TARGETS, ids=repr)
def test_never_more_noise_than_the_gaussian_mechanism_in_other_dimensions(target, dim):
    check_against_gaussian(target, dim)


@pytest.mark.slow
@pytest.mark.parametrize("dim", [1, 2, 6, 50])
@pytest.mark.parametrize("target", HARD, ids=repr)
def test_never_more_noise_than_the_gaussian_mechanism_for_whole_curves(target, dim):
    check_against_gaussian(target, dim)


# Variances at diameter 1 and (1, 1e-5): docs/mathematics.md, table of generalised Laplace noise.
@pytest.mark.parametrize(("dim", "shape", "variance"), [(1, 1, 2.00), (2, 2, 3.47), (3, 2, 3.96), (6, 4, 6.37)])
def test_shapes_of_the_table(dim, shape, variance):
    law = best(Budget(1.0, 1e-5), dim)
    assert law.shape == shape and law.variance == pytest.approx(variance, abs=0.006)


@pytest.mark.slow
@pytest.mark.parametrize("dim", [1, 2, 6])
@pytest.mark.parametrize(
    "target", [Budget(1.0, 1e-5), Budget(4.0, 0.05), Advantage(0.99), ErrorRates(0.3, 0.01)], ids=repr
)
def test_no_integer_shape_saves_a_thousandth(target, dim):
    law = best(target, dim)
    for shape in (1, 2, 3, 4, 5, 7, 9, 14, 30):
        other = SymmetricLaplace.calibrate(target, Ball(0.5, dim), shape=shape)
        assert law.variance <= other.variance * (1 + 1.5e-3)


def test_small_advantages_are_best_hidden_by_gaussian_noise():
    # Of half-spaces alone, P(|Z| < c/2): normal noise has the least mass in the middle at a given variance.
    law = SymmetricLaplace.calibrate(Advantage(0.1), Ball(0.5, 6), shape="best")
    assert law == Gaussian.calibrate(Advantage(0.1), Ball(0.5, 6))


def test_scales_follow_the_box():
    box = Box({"age": (17, 90), "hours": (0, 100)})
    law = SymmetricLaplace.calibrate(Budget(1.0, 1e-5), box, "attribute", [1.0, 3.0], shape="best")
    assert law.scale[1] == pytest.approx(3 * law.scale[0], rel=1e-12)
    assert law.variance[0] < Gaussian.calibrate(Budget(1.0, 1e-5), box, "attribute", [1.0, 3.0]).variance[0]


def test_best_shape_of_one_column_is_laplace_noise():
    law = SymmetricLaplace.calibrate(Budget(1.0, 1e-2), UNIT, shape="best")
    assert law.shape == 1
    assert law.scale == pytest.approx(SymmetricLaplace.calibrate(Budget(1.0, 1e-2), UNIT).scale, rel=1e-6)
