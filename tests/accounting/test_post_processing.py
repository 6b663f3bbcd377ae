"""Post-processing: what is done to an output without the data never lowers the curve."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privfit.accounting as pa
from privfit.accounting.discrete import from_atoms

EPS = np.linspace(-2, 3, 51)
ALPHA = np.linspace(0, 1, 51)


def curve_of(p, q):
    with np.errstate(divide="ignore"):
        return from_atoms(np.log(q) - np.log(p), p, q)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), cells=st.integers(2, 9), outputs=st.integers(1, 9))
def test_a_random_kernel_never_lowers_the_curve(seed, cells, outputs):
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(cells)), rng.dirichlet(np.ones(cells))
    kernel = rng.dirichlet(np.full(outputs, 0.3), size=cells) + 1e-12
    kernel /= kernel.sum(1, keepdims=True)
    before, after = curve_of(p, q), curve_of(p @ kernel, q @ kernel)
    assert np.all(after.delta(EPS) <= before.delta(EPS) + 1e-12)
    assert np.all(after.curve(ALPHA) >= before.curve(ALPHA) - 1e-12)


@pytest.mark.parametrize("base", [pa.randomized_response(1.2, 4), pa.approximate_dp(0.8, 0.05)])
def test_merging_two_outcomes(base):
    p, q = np.array(base.p), np.array(base.q)
    for i in range(len(p) - 1):
        merged = [np.append(np.delete(v, [i, i + 1]), v[i] + v[i + 1]) for v in (p, q)]
        after = curve_of(*merged)
        assert np.all(after.delta(EPS) <= base.delta(EPS) + 1e-13)
        assert np.any(after.delta(EPS) < base.delta(EPS) - 1e-3)


def test_rounding_a_gaussian_output():
    """Laws of a Gaussian output cut to a grid, exact cell by cell."""
    from scipy.special import ndtr

    mu = 1.0
    edges = np.arange(-9.0, 10.5, 0.5)
    cells = [np.maximum(np.diff(np.concatenate([[0.0], ndtr(edges - m), [1.0]])), 1e-300) for m in (0.0, mu)]
    rounded = curve_of(*cells)
    eps = np.array([0.0, 0.5, 1.0, 2.0])
    assert np.all(rounded.delta(eps) <= pa.gaussian(mu).delta(eps))
    assert rounded.delta(0.5) == pytest.approx(pa.gaussian(mu).delta(0.5), rel=0.05)
    assert math.isclose(rounded.delta(0.0), pa.gaussian(mu).delta(0.0), rel_tol=1e-9)  # 1/2 is an edge
