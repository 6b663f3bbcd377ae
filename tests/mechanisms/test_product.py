"""Products: columns, composition of records, worst attribute."""

import numpy as np
import pytest

from privfit.mechanisms import (
    Box,
    Categories,
    Gaussian,
    Laplace,
    Product,
    RandomizedResponse,
    SymmetricLaplace,
    ZeroInflatedLaplace,
)

LAW = Product({("a", "b"): Gaussian([2.0, 4.0]), "l": RandomizedResponse(0.5), "c": Laplace(3.0)})
BOX = Box({"a": (0, 1), "b": (0, 1), "c": (0, 1)})
LABELS = Categories({"l": ["x", "y"]})


def test_parts_and_columns():
    assert LAW.columns == ("a", "b", "l", "c")
    assert list(LAW.parts) == [("a", "b"), ("l",), ("c",)]
    LAW.parts.clear()
    assert len(LAW.parts) == 3
    assert repr(LAW) == (
        "Product({('a', 'b'): Gaussian(scale=(2.0, 4.0)), 'l': RandomizedResponse(epsilon=0.5, categories=2), "
        "'c': Laplace(scale=3.0)})"
    )


def test_moments_concatenate_the_parts_with_noise():
    assert LAW.scales(3).tolist() == [2.0, 4.0, 3.0]
    assert LAW.variance.tolist() == [4.0, 16.0, 18.0]
    t = np.array([0.1, 0.2, 0.3])
    wanted = Gaussian([2.0, 4.0]).characteristic_function(t[:2]) * Laplace(3.0).characteristic_function(t[2])
    assert LAW.characteristic_function(t) == pytest.approx(wanted, rel=1e-15)
    assert LAW.characteristic_function(np.zeros((5, 3))).tolist() == [1.0] * 5
    with pytest.raises(ValueError, match="dim must be 3"):
        LAW.scales(4)


def test_gaussian_parts_compose_exactly():
    law = Product({"a": Gaussian(2.0), "b": Gaussian(4.0)})
    both = Gaussian([2.0, 4.0])
    for box in (Box({"a": (0, 1), "b": (0, 3)}), (Box({"a": (0, 1)}), Box({"b": (0, 3)}))):
        for protect in ("record", "attribute"):
            joint = both.tradeoff(Box({"a": (0, 1), "b": (0, 3)}), protect)
            assert law.tradeoff(box, protect).delta(0.7) == pytest.approx(joint.delta(0.7), rel=1e-12)


def test_response_and_gaussian_compose_like_the_textbook():
    law = Product({"a": Gaussian(1.0), "l": RandomizedResponse(0.5)})
    domain = (Box({"a": (0, 1)}), LABELS)
    p = law.parts[("l",)].keep_probability
    gauss = Gaussian(1.0).tradeoff(domain[0])
    for e in (0.0, 0.7, 2.0):
        # Q-mass p has loss +0.5, 1 - p has -0.5; delta(e) = sum_i q_i dG(e - loss_i).
        wanted = p * gauss.delta(e - 0.5) + (1 - p) * gauss.delta(e + 0.5)
        assert law.tradeoff(domain).delta(e) == pytest.approx(wanted, rel=1e-9)


def test_attribute_is_the_worst_part():
    curve = LAW.tradeoff((BOX, LABELS), "attribute")
    parts = [
        Gaussian([2.0, 4.0]).tradeoff(BOX.select(["a", "b"]), "attribute"),
        RandomizedResponse(0.5).tradeoff(LABELS, "attribute"),
        Laplace(3.0).tradeoff(BOX.select(["c"]), "attribute"),
    ]
    for e in (0.0, 0.2, 0.4, 1.0):
        assert curve.delta(e) == pytest.approx(max(p.delta(e) for p in parts), rel=1e-12)


def test_slack_and_exact_fraction_add_up():
    law = Product({("a", "b"): ZeroInflatedLaplace(1.0, 0.1), "c": SymmetricLaplace(1.0)})
    assert law.slack(BOX) == pytest.approx(3 * 2**-36.9)
    assert law.exact_fraction == 0.1
    assert LAW.slack((BOX, LABELS)) == pytest.approx(3 * 2**-36.9)


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ({}, TypeError),
        ([("a", Gaussian(1.0))], TypeError),
        ({"a": 1.0}, TypeError),
        ({"a": LAW}, TypeError),
        ({("a", "b"): RandomizedResponse(1.0)}, ValueError),
        ({("a", "b"): Gaussian([1.0, 2.0, 3.0])}, ValueError),
        ({("a", "a"): Gaussian(1.0)}, ValueError),
        ({"a": Gaussian(1.0), ("a", "b"): Gaussian(1.0)}, ValueError),
        ({1.5: Gaussian(1.0)}, TypeError),
        ({(): Gaussian(1.0)}, ValueError),
    ],
)
def test_products_that_are_refused(parts, error):
    with pytest.raises(error):
        Product(parts)


def test_a_product_is_not_calibrated_as_a_whole():
    with pytest.raises(TypeError, match="calibrate_parts"):
        Product.calibrate(None, BOX)
