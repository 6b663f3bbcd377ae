"""Sums with atoms: enumerated by hand."""

import itertools
import math

import numpy as np
import pytest

import privfit.accounting as pa
from privfit.accounting.mixture import MixtureCurve, power, product


def test_product_enumerates_the_atoms():
    a, b = pa.from_distributions([0.5, 0.3, 0.2], [0.1, 0.3, 0.6]), pa.from_distributions([0.4, 0.6], [0.7, 0.3])
    joint = product(a, b, 100)
    direct = pa.from_distributions(
        np.outer([0.5, 0.3, 0.2], [0.4, 0.6]).ravel(), np.outer([0.1, 0.3, 0.6], [0.7, 0.3]).ravel()
    )
    eps = np.linspace(-3, 3, 61)
    assert np.allclose(joint.delta(eps), direct.delta(eps), rtol=1e-12, atol=1e-15)


def test_infinite_losses_of_either_law_multiply():
    a = pa.approximate_dp(0.5, 0.1)
    joint = product(a, a, 100)
    assert joint.infinite_mass == pytest.approx(1 - 0.9**2)
    assert joint.reversed().infinite_mass == pytest.approx(1 - 0.9**2)


def test_power_is_repeated_product_and_merges_equal_losses():
    curve = pa.randomized_response(0.3, 4)
    third = power(curve, 3, 100)
    assert third is not None
    assert len(third.loss) == 7
    step = dict(zip(curve.loss, curve.q, strict=True))
    direct: dict[float, float] = {}
    for losses in itertools.product(step, repeat=3):
        key = round(sum(losses), 9)
        direct[key] = direct.get(key, 0.0) + math.prod(step[x] for x in losses)
    assert dict(zip(np.round(third.loss, 9), third.q, strict=True)) == pytest.approx(direct)


def test_too_many_atoms_are_refused_not_rounded():
    wide = pa.from_distributions(np.arange(1, 101) / 5050, np.arange(100, 0, -1) / 5050)
    assert power(wide, 2, 50) is None
    assert product(wide, wide, 99) is None


def test_mixture_of_an_asymmetric_pair_has_both_directions():
    pair = pa.from_distributions([0.7, 0.3], [0.4, 0.6])
    mixed = pa.gaussian(0.5).compose(pair)
    assert isinstance(mixed, MixtureCurve)
    g, eps = pa.gaussian(0.5), 0.2
    forward = sum(q * g.delta(eps - math.log(q / p), bound="estimate") for p, q in ((0.7, 0.4), (0.3, 0.6)))
    backward = sum(p * g.delta(eps - math.log(p / q), bound="estimate") for p, q in ((0.7, 0.4), (0.3, 0.6)))
    assert mixed.delta(eps, bound="estimate") == pytest.approx(forward, rel=1e-12)
    assert mixed.reversed().delta(eps, bound="estimate") == pytest.approx(backward, rel=1e-12)
    assert forward != pytest.approx(backward, rel=1e-3)


def test_full_disclosure_stays_full_disclosure():
    assert pa.approximate_dp(0.0, 1.0).self_compose(2).delta(5.0) == 1.0
