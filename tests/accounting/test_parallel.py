"""Parallel composition over disjoint parts, by enumeration of small mechanisms."""

import itertools
import math

import numpy as np
import pytest

import privfit.accounting as pa
from privfit.accounting.discrete import from_atoms
from privfit.accounting.group import group
from privfit.accounting.parallel import parallel
from privfit.accounting.subsampling import subsample
from privfit.accounting.symmetrized import symmetrized

EPS = np.array([0.0, 0.4, 1.2])


def divergence(p, q, eps):
    return np.maximum(q - np.exp(np.asarray(eps))[:, None] * p, 0).sum(1)


def random_mechanisms(seed, largest):
    """For every part the law of its output for 0, 1, ... records, and the curve for adding or removing one."""
    rng = np.random.default_rng(seed)
    laws = [rng.dirichlet(np.full(3, 3.0), size=largest + 1) for _ in range(2)]
    curves = []
    for law in laws:
        one_way = [from_atoms(np.log(law[i + 1] / law[i]), law[i], law[i + 1]) for i in range(largest)]
        curves.append(pa.minimum(*(symmetrized(c) for c in one_way)))
    return laws, curves


def joint(laws, sizes):
    out = np.ones(1)
    for law, size in zip(laws, sizes, strict=True):
        out = np.outer(out, law[size]).ravel()
    return out


@pytest.mark.parametrize(
    ("seed", "largest", "points"),
    [(0, 1, 2), *(pytest.param(s, n, 3, marks=pytest.mark.slow) for s, n in ((0, 1), (1, 2)))],
)
def test_every_table_of_a_random_mechanism(seed, largest, points):
    eps = EPS[:points]
    laws, curves = random_mechanisms(seed, largest)
    added, moved = parallel(*curves), parallel(*curves, relation="replace_one")
    add_delta, move_delta = added.delta(eps), moved.delta(eps)
    tight = np.zeros(len(eps))
    for sizes in itertools.product(range(largest + 1), repeat=2):
        for i, j in itertools.permutations(range(2), 2):
            more = tuple(s + (part == i) for part, s in enumerate(sizes))
            if more[i] <= largest:
                for p, q in itertools.permutations((joint(laws, sizes), joint(laws, more))):
                    exact = divergence(p, q, eps)
                    tight = np.maximum(tight, exact)
                    assert np.all(exact <= add_delta + 1e-12)
            swapped = tuple(s + (part == i) - (part == j) for part, s in enumerate(sizes))
            if swapped[i] <= largest and swapped[j] >= 0:
                assert np.all(divergence(joint(laws, sizes), joint(laws, swapped), eps) <= move_delta + 1e-9)
    assert np.allclose(add_delta, tight, rtol=1e-9, atol=1e-12)
    assert np.all(move_delta[:2] > add_delta[:2])


def test_additions_touch_one_part_only():
    curve = parallel(pa.gaussian(1.0), pa.laplace(1.2), pa.gaussian(0.3))
    assert np.allclose(curve.delta(EPS), pa.minimum(pa.gaussian(1.0), pa.laplace(1.2)).delta(EPS), rtol=1e-12)
    assert parallel(pa.gaussian(1.0)) == pa.gaussian(1.0)
    assert parallel(pa.gaussian(1.0), pa.gaussian(1.0)) == pa.gaussian(1.0)
    fixed = parallel(pa.gaussian(1.0), pa.gaussian(0.5), relation="replace_one", parts="fixed")
    assert np.allclose(fixed.delta(EPS), pa.gaussian(1.0).delta(EPS), rtol=1e-12)


def test_a_replaced_record_may_change_parts():
    # the worst pair composes, the worst single part is a removal and an addition in a chain
    curve = parallel(pa.gaussian(1.0), pa.gaussian(0.8), pa.gaussian(0.1), relation="replace_one")
    assert curve.delta(0.7) == pytest.approx(pa.gaussian(2.0).delta(0.7), rel=1e-9)
    assert curve.delta(0.7) > pa.gaussian(math.hypot(1.0, 0.8)).delta(0.7)
    # pure DP: both give 2 epsilon, the pair of parts has the larger delta below it
    response = pa.randomized_response(0.5)
    both = parallel(response, response, relation="replace_one")
    assert both.epsilon(0.0) == pytest.approx(1.0, rel=1e-9)
    worst = np.maximum(response.compose(response).delta(EPS), group(response, 2).delta(EPS))
    assert np.allclose(both.delta(EPS), worst, rtol=1e-9, atol=1e-15)


def test_relations_that_do_not_fit_are_refused():
    sampled, fixed = subsample(pa.gaussian(1.0), 0.1), subsample(pa.gaussian(1.0), 0.1, "without_replacement")
    assert parallel(sampled, sampled) == sampled
    assert parallel(fixed, fixed, relation="replace_one", parts="fixed") == fixed
    with pytest.raises(ValueError, match="replace one record"):
        parallel(fixed, sampled)
    with pytest.raises(ValueError, match="parts='fixed'"):
        parallel(fixed, fixed, relation="replace_one")
    with pytest.raises(ValueError, match="add or remove"):
        parallel(sampled, relation="replace_one", parts="fixed")


def test_bad_arguments():
    with pytest.raises(ValueError, match="at least one"):
        parallel()
    with pytest.raises(ValueError, match="relation must"):
        parallel(pa.gaussian(1.0), relation="swap")
    with pytest.raises(ValueError, match="parts must"):
        parallel(pa.gaussian(1.0), parts="random")
    with pytest.raises(TypeError, match="TradeOffCurve"):
        parallel(pa.gaussian(1.0), 1.0)
