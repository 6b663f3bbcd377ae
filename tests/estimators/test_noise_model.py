"""Reading ``noise=``: names, positions, response, parts, and every way to get it wrong."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from privfit.estimators.noise import resolve_noise
from privfit.estimators.operators import additive_parts
from privfit.estimators.symbols import Heat, Identity, Power, Resolvent
from privfit.mechanisms import (
    Gaussian,
    Laplace,
    Law,
    Product,
    RandomizedResponse,
    SymmetricLaplace,
    ZeroInflatedLaplace,
)

LAWS = [
    Gaussian(0.7),
    Laplace(0.4),
    SymmetricLaplace(0.9),
    SymmetricLaplace(0.9, shape=3),
    ZeroInflatedLaplace(0.8, 0.3),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_operators_invert_the_characteristic_function(law):
    """G(-t^2) on the index a'x equals 1 / characteristic function at t a, from the law's own formula."""
    a = np.array([0.5, -1.2])
    for t in (0.3, 1.0, 2.5):
        product = 1.0
        for part in additive_parts(law, 2):
            product *= part.factor(0.5 * part.variances @ a**2, 0).at(-(t**2))
        assert_allclose(product * law.characteristic_function(t * a), 1.0, rtol=1e-12)


def test_factors():
    kinds = [type(additive_parts(law, 1)[0].factor) for law in LAWS]
    assert kinds == [Heat, Power, Power, Power, Resolvent]
    assert Identity()(1.0, 1).at(0.3) == 0.0


def test_columns_by_name_position_and_response():
    law = {("a", 2): SymmetricLaplace((1.0, 3.0)), "y": Laplace(2.0)}
    model = resolve_noise(law, ["a", "b", "c"])
    assert_allclose(model.variances, [1, 0, 9, 8])
    assert len(model.parts) == 2
    named = resolve_noise(Product({("a", "pay"): Gaussian((1.0, 2.0))}), ["a", "b"], "pay")
    assert_allclose(named.variances, [1, 0, 4])
    assert not resolve_noise(None, ["a"]).noisy


def test_label():
    model = resolve_noise({"y": RandomizedResponse(1.0)}, ["a"], label=True)
    assert_allclose(model.keep, np.e / (1 + np.e))
    assert model.noisy
    assert not model.parts


def test_columns_outside_the_fit_are_ignored_for_a_release():
    law = {("a", "z"): SymmetricLaplace((1.0, 3.0)), "q": Laplace(1.0)}
    model = resolve_noise(law, ["a", "b"], "b2", strict=False)
    assert_allclose(model.variances, [1, 0, 0])


@pytest.mark.parametrize(
    ("noise", "options", "error", "message"),
    [
        (3.0, {}, TypeError, "noise must be a law"),
        ("laplace", {}, TypeError, "noise must be a law"),
        ({"nope": Laplace(1.0)}, {}, ValueError, "'nope'"),
        ({7: Laplace(1.0)}, {}, ValueError, "names the column 7"),
        ({("a", "b"): Laplace(1.0), "b": Laplace(1.0)}, {}, ValueError, "once"),
        ({("a", 0): Laplace(1.0)}, {}, ValueError, "once"),
        (SymmetricLaplace((1.0, 2.0, 3.0)), {}, ValueError, "scale"),
        (RandomizedResponse(1.0), {}, TypeError, "RandomizedResponse"),
        ({"y": RandomizedResponse(1.0)}, {}, TypeError, "additive law"),
        ({"a": RandomizedResponse(1.0)}, {}, TypeError, "additive law"),
        ({"y": Laplace(1.0)}, {"label": True}, TypeError, "RandomizedResponse"),
        ({("a", "y"): Laplace(1.0)}, {"label": True}, TypeError, "RandomizedResponse"),
        ({"a": RandomizedResponse(1.0, categories=3)}, {"label": True}, TypeError, "additive law"),
        ({"a": 2.0}, {}, TypeError, "additive law"),
    ],
)
def test_bad_noise(noise, options, error, message):
    with pytest.raises(error, match=message):
        resolve_noise(noise, ["a", "b"], **options)


def test_unknown_law_is_refused():
    class Odd(Law):
        scales = variance = characteristic_function = tradeoff = slack = None

    with pytest.raises(TypeError, match="Odd"):
        resolve_noise(Odd(), ["a"])
