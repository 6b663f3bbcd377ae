"""What every law must do, run over the registry: a new mechanism adds one line to EXAMPLES."""

import dataclasses
import json
import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

from privfit.mechanisms import (
    REGISTRY,
    Box,
    Categories,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Law,
    Product,
    RandomizedResponse,
    SymmetricLaplace,
    ZeroInflatedLaplace,
    release,
)

BOX = Box({"x": (-1, 1), "y": (-2, 2)})
LABELS = Categories({"label": ["no", "yes", "unknown"]})

EXAMPLES = {
    "gaussian": (Gaussian([0.5, 2.0]), BOX),
    "laplace": (Laplace([0.5, 2.0]), BOX),
    "discrete_laplace": (DiscreteLaplace([0.5, 2.0]), BOX),
    "symmetric_laplace": (SymmetricLaplace([0.5, 2.0], shape=3), BOX),
    "zero_inflated_laplace": (ZeroInflatedLaplace([0.5, 2.0], delta0=0.1), BOX),
    "randomized_response": (RandomizedResponse(1.0, 3), LABELS),
    "product": (
        Product({("x", "y"): SymmetricLaplace(0.5), "label": RandomizedResponse(1.0, 3)}),
        (BOX, LABELS),
    ),
}
ADDITIVE = [name for name, (law, _) in EXAMPLES.items() if law.mechanism not in ("randomized_response", "product")]
CLASSES = [Gaussian, Laplace, DiscreteLaplace, SymmetricLaplace, lambda s: ZeroInflatedLaplace(s, 0.1)]

every_law = pytest.mark.parametrize("name", EXAMPLES)
every_additive = pytest.mark.parametrize("name", ADDITIVE)


def table(domain, rows=4):
    columns = {}
    for part in domain if isinstance(domain, tuple) else (domain,):
        for j, column in enumerate(part.columns):
            cells = part.labels[j][0] if isinstance(part, Categories) else 0.25
            columns[column] = [cells] * rows
    return columns


def test_every_mechanism_has_an_example():
    assert set(EXAMPLES) == set(REGISTRY)


@every_law
def test_dictionary_round_trip_through_json(name):
    law, _ = EXAMPLES[name]
    again = Law.from_dict(json.loads(json.dumps(law.to_dict())))
    assert again == law and hash(again) == hash(law) and type(again) is type(law)
    assert type(law).from_dict(law.to_dict()) == law


@every_law
def test_dictionaries_that_do_not_fit_are_refused(name):
    d = EXAMPLES[name][0].to_dict()
    other = Gaussian if name != "gaussian" else Laplace
    with pytest.raises(ValueError, match="mechanism must be one of"):
        other.from_dict(d)
    with pytest.raises(ValueError, match=r"exactly the parameters|parts"):
        Law.from_dict({"mechanism": name})
    with pytest.raises(ValueError, match="mechanism must be one of"):
        Law.from_dict({**d, "mechanism": "magic"})
    with pytest.raises(TypeError, match="mapping"):
        Law.from_dict([d])


@every_law
def test_immutable_and_picklable(name):
    law, _ = EXAMPLES[name]
    field = dataclasses.fields(law)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(law, field, 3.0)
    assert pickle.loads(pickle.dumps(law)) == law


@every_law
@pytest.mark.parametrize("kind", ["pandas", "polars", "numpy"])
def test_release_returns_the_kind_that_came_in(name, kind):
    law, domain = EXAMPLES[name]
    columns = table(domain)
    if kind == "numpy":
        data = np.column_stack([np.array(c, dtype=object) for c in columns.values()])
        data = data.astype(float) if name in ADDITIVE else data
    else:
        data = {"pandas": pd, "polars": pl}[kind].DataFrame(columns)
    out = law.release(data, domain)
    assert out.kind == kind and out.n_rows == 4 and out.secure
    if kind == "numpy":
        assert isinstance(out.frame, np.ndarray) and out.frame.shape == data.shape and out.frame.base is None
    else:
        assert type(out.frame) is type(data) and list(out.frame.columns) == list(columns)
    assert out.columns == tuple(columns) and out.law == law


@every_additive
def test_variance_matches_released_noise(name, unit_noise):
    law, _ = EXAMPLES[name]
    noise = unit_noise(law, 200_000, 2)
    for column, variance in zip(noise.T, law.variance, strict=True):
        squares = column**2
        assert abs(squares.mean() - variance) < 5 * squares.std() / math.sqrt(len(squares))
        assert abs(column.mean()) < 5 * column.std() / math.sqrt(len(column))


@every_additive
@pytest.mark.parametrize("t", [(1.0, 0.0), (0.0, 0.7), (1.5, 0.5), (-2.0, 0.3)])
def test_characteristic_function_matches_released_noise(name, t, unit_noise):
    law, _ = EXAMPLES[name]
    waves = np.cos(unit_noise(law, 200_000, 2) @ np.array(t))
    # The grid's own share, at most t^2 g^2/24, is far below the Monte Carlo error.
    assert abs(waves.mean() - law.characteristic_function(t)) < 5 * waves.std() / math.sqrt(len(waves)) + 1e-6


@every_additive
def test_characteristic_function_shapes(name):
    law, _ = EXAMPLES[name]
    assert law.characteristic_function(np.zeros((4, 3, 2))).shape == (4, 3)
    assert law.characteristic_function([0.0, 0.0]) == 1.0
    assert isinstance(dataclasses.replace(law, scale=1.0).characteristic_function(0.5), float)
    with pytest.raises(ValueError, match="scale must be one number or 3 numbers"):
        law.characteristic_function(np.zeros(3))
    with pytest.raises(ValueError, match="t must be"):
        law.characteristic_function([np.nan, 0.0])
    with pytest.raises(ValueError, match="t must be finite"):
        law.characteristic_function([np.inf, 0.0])


@every_additive
def test_scales(name):
    law, _ = EXAMPLES[name]
    assert law.scales(2).tolist() == [0.5, 2.0]
    assert dataclasses.replace(law, scale=3).scales(4).tolist() == [3.0] * 4
    with pytest.raises(ValueError, match="scale"):
        law.scales(3)
    with pytest.raises((ValueError, TypeError), match="dim"):
        law.scales(0)


@pytest.mark.parametrize("make", CLASSES)
@pytest.mark.parametrize(
    "bad", [math.nan, math.inf, -math.inf, 0, 0.0, -1, 1e-300, 1e300, [1.0, math.nan], [1, 0], [], [[1.0]]]
)
def test_scale_values_that_are_refused(make, bad):
    with pytest.raises(ValueError, match="scale"):
        make(bad)


@pytest.mark.parametrize("make", CLASSES)
@pytest.mark.parametrize("bad", ["1", None, True, [True, 1.0], ["a"], {1.0}, {"x": 1.0}, 1j, b"1"])
def test_scale_types_that_are_refused(make, bad):
    with pytest.raises(TypeError, match="scale"):
        make(bad)


@pytest.mark.parametrize("make", CLASSES)
def test_any_sequence_of_numbers_is_a_scale(make):
    given = ([1, 2], (1.0, 2.0), np.array([1, 2]), np.array([1, 2], np.float32), pd.Series([1.0, 2.0]))
    assert {make(s).scale for s in given} == {(1.0, 2.0)}
    assert {make(s).scale for s in (2, 2.0, np.float32(2), np.int8(2), np.array(2.0))} == {2.0}


@pytest.mark.parametrize("bad", [0, 1, -0.1, math.nan, 1.5])
def test_delta0_values_that_are_refused(bad):
    with pytest.raises(ValueError, match="delta0"):
        ZeroInflatedLaplace(1.0, bad)


@pytest.mark.parametrize(("bad", "error"), [(0, ValueError), (2.0, TypeError), (True, TypeError), (1001, ValueError)])
def test_shapes_that_are_refused(bad, error):
    with pytest.raises(error, match="shape"):
        SymmetricLaplace(1.0, shape=bad)


@every_law
@pytest.mark.parametrize("protect", ["record", "attribute"])
def test_tradeoff_refuses_other_notions(name, protect):
    law, domain = EXAMPLES[name]
    with pytest.raises(ValueError, match="protect must be one of"):
        law.tradeoff(domain, protect + "s")


@every_law
def test_one_law_for_another_laws_domain_is_refused(name):
    law, _ = EXAMPLES[name]
    wrong = Categories({"z": ["a", "b"]}) if name in ADDITIVE else Box({"z": (0, 1)})
    with pytest.raises((TypeError, ValueError)):
        release(np.zeros((2, 1)), law, wrong)


def test_closed_forms_at_special_points():
    # Shape 1 in one coordinate is Laplace noise with b = sd/sqrt(2).
    t = np.linspace(-3, 3, 7)[:, None]
    one = SymmetricLaplace(1.3).characteristic_function(t)
    np.testing.assert_allclose(one, Laplace(1.3 / math.sqrt(2)).characteristic_function(t), rtol=1e-14)
    # A large shape approaches the Gaussian at rate 1/shape; zero inflation mixes with a point mass at 0.
    many = SymmetricLaplace(1.3, shape=1000).characteristic_function(t)
    np.testing.assert_allclose(many, Gaussian(1.3).characteristic_function(t), atol=1e-3)
    mixed = ZeroInflatedLaplace(1.3, 0.2).characteristic_function(t)
    np.testing.assert_allclose(mixed, 0.2 + 0.8 * np.asarray(one), rtol=1e-14)
