"""Group privacy against closed forms, brute-force iteration and published bounds."""

import math

import numpy as np
import pytest

import privfit.accounting as pa
from privfit.accounting.group import GroupCurve, group
from privfit.accounting.subsampling import subsample
from privfit.accounting.symmetrized import symmetrized

EPS = np.array([-1.0, 0.0, 0.3, 1.0, 2.5])
ALPHA = np.array([1e-200, 1e-9, 1e-3, 0.05, 0.3, 0.5, 0.8, 0.999])


@pytest.mark.parametrize(
    ("mu", "far", "k"), [(1.0, 20.0, 2), pytest.param(1.0, 20.0, 10, marks=pytest.mark.slow), (0.1, 2.0, 3)]
)
def test_the_generic_chain_finds_the_gaussian(mu, far, k):
    exact, curve = pa.gaussian(k * mu), GroupCurve(pa.gaussian(mu), k)
    eps = np.append(EPS, far)
    assert np.allclose(curve.log_delta(eps, "estimate"), exact.log_delta(eps, "estimate"), rtol=0, atol=1e-10)
    assert np.all(curve.delta(eps, "lower") <= exact.delta(eps))
    assert np.all(curve.delta(eps) >= exact.delta(eps, "lower"))
    assert np.allclose(curve.curve(ALPHA, "estimate"), exact.curve(ALPHA, "estimate"), rtol=1e-9, atol=1e-13)
    assert np.allclose(curve.error_rates(EPS), exact.error_rates(EPS), rtol=1e-8, atol=1e-12)


def test_relative_accuracy_at_1e_250():
    for base, k in ((pa.gaussian(0.3), 4), (pa.gaussian(0.5), 2)):
        exact = pa.gaussian(k * base.mu)
        eps = exact.epsilon(1e-250)
        assert GroupCurve(base, k).log_delta(eps, "estimate") == pytest.approx(math.log(1e-250), abs=1e-9)


@pytest.mark.parametrize("k", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_the_generic_chain_finds_laplace_with_its_atoms(k):
    a = 0.7
    exact, curve = pa.laplace(k * a), GroupCurve(pa.laplace(a), k)
    assert curve.max_loss == pytest.approx(k * a, rel=1e-15)
    eps = k * a * np.array([0.0, 0.2, 0.5, 0.9, 0.999, 1.1])
    assert np.allclose(curve.delta(eps), exact.delta(eps), rtol=1e-9, atol=0)
    assert np.allclose(curve.curve(ALPHA, "estimate"), exact.curve(ALPHA, "estimate"), rtol=1e-9, atol=1e-13)


def test_exact_families_take_their_closed_form():
    assert group(pa.gaussian(0.4), 3) == pa.gaussian(0.4 * 3)
    assert group(pa.laplace(0.4), 3) == pa.laplace(0.4 * 3)
    assert group(pa.gaussian(0.4), 1) == pa.gaussian(0.4)
    assert group(group(pa.symmetric_laplace_limit(0.4), 2), 3) == group(pa.symmetric_laplace_limit(0.4), 6)


def iterated(curve, k, alpha):
    value = np.asarray(alpha, float)
    for _ in range(k):
        value = 1 - curve.curve(value, "estimate")
    return 1 - value


POLYLINES = {
    "(eps, 0)": pa.approximate_dp(0.6),
    "(eps, delta)": pa.approximate_dp(0.6, 0.03),
    "randomised response": pa.randomized_response(1.0, 4),
    "profile": pa.from_profile([0.2, 1.0, 2.0], [0.3, 0.1, 0.05]),
}


@pytest.mark.parametrize("k", [2, 3, 7, 20])
@pytest.mark.parametrize("curve", POLYLINES.values(), ids=POLYLINES.keys())
def test_polylines_by_iteration(curve, k):
    both = group(curve, k)
    alpha = np.linspace(0, 1, 1001)
    assert type(both) is type(curve)
    assert np.allclose(both.curve(alpha), iterated(curve, k, alpha), atol=1e-12)


@pytest.mark.parametrize(
    "name",
    ["profile", *(pytest.param(name, marks=pytest.mark.slow) for name in POLYLINES if name != "profile")],
)
def test_the_generic_chain_finds_polylines_kinks_and_all(name):
    eps = np.array([0.0, 0.4, 1.0, 1.7, 3.0])
    chain = GroupCurve(POLYLINES[name], 3).delta(eps, "estimate")
    assert np.allclose(chain, group(POLYLINES[name], 3).delta(eps, "estimate"), rtol=1e-9, atol=1e-14)


def test_tiny_masses_of_a_polyline_keep_their_digits():
    delta = 1e-280
    curve = group(pa.approximate_dp(1.0, delta), 3)
    assert curve.delta(3.0) == pytest.approx(delta * (1 + math.e + math.e**2), rel=1e-12)


@pytest.mark.parametrize(
    ("eps", "delta", "k"), [(0.5, 1e-3, 2), pytest.param(0.1, 1e-6, 10, marks=pytest.mark.slow), (1.0, 1e-9, 4)]
)
def test_no_worse_than_the_published_bound(eps, delta, k):
    published = delta * math.expm1(k * eps) / math.expm1(eps)
    exact = group(pa.approximate_dp(eps, delta), k).delta(k * eps, "estimate")
    assert exact == pytest.approx(published, rel=1e-9)
    for base in (pa.gaussian(0.3), pa.symmetric_laplace_limit(0.2), pa.zil_limit(0.2, 1e-5)):
        share = base.delta(eps) * math.expm1(k * eps) / math.expm1(eps)
        assert group(base, k).delta(k * eps) <= share * (1 + 1e-9)


def test_zero_inflation_by_iteration():
    """F(x) = d + (1 - d) F0(x / (1 - d)) iterated, then the largest vertical gap over alpha."""
    from scipy.optimize import minimize_scalar
    from scipy.special import ndtr, ndtri

    mu, d, k = 0.8, 1e-4, 3
    curve = group(pa.zero_inflated(pa.gaussian(mu), d), k)

    def chained(x, steps):
        for _ in range(steps):
            x = d + (1 - d) * ndtr(ndtri(min(x / (1 - d), 1.0)) + mu)
        return x

    for eps in (0.0, 1.0, 4.0):
        best = minimize_scalar(
            lambda v, eps=eps: math.exp(eps + v) - chained(math.exp(v), k),
            bounds=(-30, -0.5),
            method="bounded",
            options={"xatol": 1e-9},
        )
        assert curve.delta(eps, "estimate") == pytest.approx(-best.fun, rel=1e-10)
    assert curve.infinite_mass == pytest.approx(chained(d, k - 1), rel=1e-10)
    assert curve.delta(60.0) == pytest.approx(curve.infinite_mass, rel=1e-6)
    assert curve.curve(0.0, "estimate") == pytest.approx(1 - chained(d, k - 1), rel=1e-10)


@pytest.mark.parametrize(
    "base",
    [
        pytest.param(pa.symmetric_laplace_limit(0.7), id="limit"),
        pytest.param(pa.symmetric_laplace(3, 0.5), id="d = 3", marks=pytest.mark.slow),
        pytest.param(pa.minimum(pa.gaussian(0.8), pa.laplace(1.0)), id="worst of two"),
    ],
)
def test_other_families_by_iteration(base):
    curve = group(base, 2)
    alpha = np.array([1e-6, 1e-3, 0.05, 0.2, 0.5, 0.9])
    assert np.allclose(curve.curve(alpha, "estimate"), iterated(base, 2, alpha), atol=1e-9)
    fine = np.concatenate([np.geomspace(1e-7, 0.01, 400), np.linspace(0.01, 0.6, 1200)])
    power = 1 - iterated(base, 2, fine)
    for eps in (0.0, 0.5, 1.5):
        brute = np.max(power - math.exp(eps) * fine)
        assert brute - 1e-9 <= curve.delta(eps) <= brute + 2e-4


def test_one_noise_vector_for_all_records_is_more_private_than_the_chain():
    eps = np.array([0.0, 0.1, 0.5, 2.0, 10.0, 100.0])
    shared, chain = pa.symmetric_laplace_limit(1.0), group(pa.symmetric_laplace_limit(0.5), 2)
    assert np.all(shared.delta(eps) < 0.999 * chain.delta(eps))


def test_absolute_errors_of_the_base_widen_with_the_slope():
    base = pa.symmetric_laplace(3, 0.5)
    error = base.precision.absolute
    curve = group(base, 3)
    for eps in (1.0,):
        low, middle, high = (curve.delta(eps, side) for side in ("lower", "estimate", "upper"))
        if error > 0:
            # three steps, each with the error of one, carried up by the later slopes
            assert low < middle < high
            assert high - middle >= error * (1 + math.exp(eps / 3))
        assert low <= middle <= high


def test_chains_of_an_asymmetric_curve_may_go_both_ways():
    one_way = pa.from_points([0.1], [0.6])
    curve = group(one_way, 2)
    alpha = np.linspace(0, 1, 101)
    for first in (one_way, one_way.reversed()):
        for second in (one_way, one_way.reversed()):
            mixed = second.curve(1 - first.curve(alpha))
            assert np.all(curve.curve(alpha) <= mixed + 1e-9)
    assert curve == GroupCurve(symmetrized(one_way), 2)


@pytest.mark.parametrize("eps", [0.3, pytest.param(0.0, marks=pytest.mark.slow)])
def test_replacing_is_removing_and_adding(eps):
    sampled = subsample(pa.gaussian(1.0), 0.1)
    replaced = group(sampled, 2)
    assert replaced.relation == "differ in 2 records"
    # a pair of neighbours that replace one record, by quadrature of the two mixtures
    x = np.linspace(-12, 12, 240_001)

    def phi(m):
        return np.exp(-((x - m) ** 2) / 2) / math.sqrt(2 * math.pi)

    p, q = 0.9 * phi(0) + 0.1 * phi(-1), 0.9 * phi(0) + 0.1 * phi(1)
    exact = np.maximum(q - math.exp(eps) * p, 0).sum() * (x[1] - x[0])
    assert exact <= replaced.delta(eps) < 4 * exact
    with pytest.raises(ValueError, match="differ in 2 records"):
        subsample(replaced, 0.5)


@pytest.mark.parametrize("bad", [0, -1])
def test_bad_counts(bad):
    with pytest.raises(ValueError, match="k must be"):
        group(pa.gaussian(1.0), bad)


def test_wrong_types():
    with pytest.raises(TypeError, match="k must be"):
        group(pa.gaussian(1.0), 2.0)
    with pytest.raises(TypeError, match="curve"):
        group(1.0, 2)
    with pytest.raises(ValueError, match="symmetric"):
        GroupCurve(pa.from_points([0.1], [0.6]), 2)
