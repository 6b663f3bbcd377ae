"""Composition against closed forms, direct sums and published values."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom

import privfit.accounting as pa
from privfit.accounting.composed import ComposedCurve
from privfit.accounting.mixture import MixtureCurve
from privfit.accounting.subsampling import subsample
from privfit.accounting.symmetrized import SymmetrizedCurve


def encloses(curve, eps, truth, width):
    low, high = curve.delta(eps, bound="lower"), curve.delta(eps)
    middle = curve.delta(eps, bound="estimate")
    return low <= truth <= high and low <= middle <= high and high - low <= width * truth


def test_gaussians_add_mu_squared():
    assert pa.gaussian(0.6).compose(pa.gaussian(0.8)) == pa.gaussian(1.0)
    assert pa.gaussian(0.1).self_compose(100).mu == pytest.approx(1.0)


def binomial_delta(eps, k, target):
    truth = 1 / (1 + math.exp(-eps))
    j = np.arange(k + 1)
    q, loss = binom.pmf(j, k, truth), eps * (2 * j - k)
    return float((q * np.maximum(-np.expm1(target - loss), 0)).sum())


@pytest.mark.parametrize("k", [20, 1000])
def test_randomised_response_is_binomial(k):
    eps = 0.3 if k == 20 else 0.02
    curve = pa.randomized_response(eps).self_compose(k)
    assert isinstance(curve, pa.TradeOffCurve)
    assert len(curve.loss) == k + 1
    for target in (0.0, 0.5, 2.0, 5.9):
        expected = binomial_delta(eps, k, target)
        assert curve.delta(target) == pytest.approx(expected, rel=1e-9)
        assert curve.delta(target) >= expected * (1 - 1e-10)


def test_atoms_beyond_the_limit_go_to_a_lattice_that_holds_them():
    """5 categories of response 10,000 times: losses -eps, 0, eps; the sum has 20,001 values."""
    curve = pa.randomized_response(0.01, 5).self_compose(10_000)
    assert isinstance(curve, ComposedCurve)
    truth, other = 1 / (1 + 4 * math.exp(-0.01)), math.exp(-0.01) / (1 + 4 * math.exp(-0.01))
    step = np.array([other, 3 * other, truth])
    q = np.array([1.0])
    square, count = step, 10_000
    while count:
        q = np.convolve(q, square) if count % 2 else q
        square, count = np.convolve(square, square), count // 2
    loss = 0.01 * (np.arange(len(q)) - 10_000)
    for target in (0.0, 1.0, 3.0):
        truth = float((q * np.maximum(-np.expm1(target - loss), 0)).sum())
        assert encloses(curve, target, truth, 1e-6)


def test_gaussian_with_randomised_response_is_a_mixture():
    mu, eps = 0.9, 0.7
    curve = pa.gaussian(mu).compose(pa.randomized_response(eps))
    assert isinstance(curve, MixtureCurve)
    s = 1 / (1 + math.exp(-eps))
    for e in (-1.0, 0.0, 0.4, 2.0):
        g = pa.gaussian(mu)
        expected = s * g.delta(e - eps, bound="estimate") + (1 - s) * g.delta(e + eps, bound="estimate")
        assert curve.delta(e, bound="estimate") == pytest.approx(expected, rel=1e-12)


def test_zero_inflation_and_slack_are_peeled_off():
    curve = pa.shifted(pa.zil(2, 0.5, 0.01), 1e-9).compose(pa.zero_inflated(pa.randomized_response(0.5), 0.02))
    assert curve.delta(math.inf) == pytest.approx(1 - 0.99 * 0.98, abs=1e-7)


def laplace_pair_delta(a, b, eps):
    """E over the loss of the first coordinate (atoms at +-a, density e^((l - a)/2)/4) of the second's profile."""

    def second(e):
        return -math.expm1(e) if e < -b else max(-math.expm1((e - b) / 2), 0.0)

    kinks = sorted({-a, a, *np.clip([eps - b, eps + b], -a, a)})
    smooth = sum(
        quad(lambda x: 0.25 * math.exp((x - a) / 2) * second(eps - x), lo, hi, epsabs=1e-13)[0]
        for lo, hi in pairwise(kinks)
    )
    return 0.5 * second(eps - a) + 0.5 * math.exp(-a) * second(eps + a) + smooth


def test_two_laplace_coordinates():
    curve = pa.laplace(0.8).compose(pa.laplace(1.1))
    for eps in (0.0, 0.5, 1.2, 1.8):
        assert encloses(curve, eps, laplace_pair_delta(0.8, 1.1, eps), 1e-5)
    assert curve.epsilon(0.0) == pytest.approx(1.9, rel=1e-9)
    # one coordinate with all the sensitivity is the worst case of l1 sensitivity
    assert pa.laplace(1.9).delta(0.5) > curve.delta(0.5)


def test_pure_mechanisms_stay_pure():
    curve = pa.compose(*[pa.laplace(0.5)] * 3)
    assert curve.infinite_mass == 0.0
    assert curve.max_loss == pytest.approx(1.5, rel=1e-12)
    assert curve.delta(1.5000001) <= 1e-300
    assert curve.epsilon(0.0) == pytest.approx(1.5, rel=1e-12)
    assert 1.499 < curve.epsilon(1e-12) <= 1.5 * (1 + 1e-12)
    assert 0.5 < curve.gdp() < 3.0


def test_many_laplace_releases_between_bounds_of_one_in_ten_million():
    """eps at delta = 1e-6 of 100 releases with a = 0.1 each: 4.692667 by an independent accountant's optimum."""
    curve = pa.laplace(0.1).self_compose(100)
    low, high = curve.epsilon(1e-6, bound="lower"), curve.epsilon(1e-6)
    assert low <= 4.6926675 <= high + 1e-7
    assert high - low < 1e-6
    assert curve.precision.absolute < 1e-7
    for k, exact in ((2, 0.199996), (32, 2.380685)):
        repeated = pa.laplace(0.1).self_compose(k)
        assert repeated.epsilon(1e-6, bound="lower") <= exact * (1 + 1e-6)
        assert repeated.epsilon(1e-6) >= exact * (1 - 1e-6)
        assert repeated.epsilon(1e-6) - repeated.epsilon(1e-6, bound="lower") < 1e-6


def test_lattice_of_gaussians_encloses_the_exact_curve_down_to_1e_300():
    """A thousand Gaussian losses through the lattice, beside the closed form."""
    exact = pa.gaussian(0.05 * math.sqrt(1000))
    lattice = ComposedCurve((pa.gaussian(0.05),), (1000,))
    for eps, width in ((0.0, 1e-6), (4.88655, 2e-6), (30.0, 1e-4), (59.0, 1e-3)):
        assert encloses(lattice, eps, exact.delta(eps, bound="estimate"), width)
    assert exact.delta(59.0) < 1e-290
    for delta in (1e-6, 1e-25, 1e-250):  # eps at 1e-25 is where other accountants say infinity
        low, high = lattice.epsilon(delta, bound="lower"), lattice.epsilon(delta)
        assert low <= exact.epsilon(delta, bound="estimate") <= high
        assert high - low < 1e-5
    alpha = np.array([1e-200, 1e-12, 1e-3, 0.1, 0.5, 0.9, 0.999])
    assert np.all(lattice.curve(alpha) <= exact.curve(alpha, bound="upper"))
    assert np.all(lattice.curve(alpha, bound="upper") >= exact.curve(alpha))
    assert np.allclose(lattice.curve(alpha), exact.curve(alpha), rtol=1e-5)


def test_polynomial_tails_are_not_cut():
    """Ten limits of symmetric Laplace noise on a lattice, beside the closed form, far out in eps."""
    exact = pa.symmetric_laplace_limit(0.2).self_compose(10)
    lattice = ComposedCurve((pa.symmetric_laplace_limit(0.2),), (10,))
    for eps, width in ((0.0, 1e-6), (200.0, 1e-4)):
        assert encloses(lattice, eps, exact.delta(eps, bound="estimate"), width)


def test_finite_dimension_lies_between_its_parts_and_the_limit():
    finite, limit = pa.symmetric_laplace(6, 0.2).self_compose(5), pa.symmetric_laplace_limit(0.2).self_compose(5)
    eps = np.array([0.0, 0.5, 2.0, 10.0])
    assert np.all(finite.delta(eps) <= limit.delta(eps))
    assert np.all(finite.delta(eps, bound="lower") >= pa.symmetric_laplace(6, 0.2).delta(eps, bound="lower"))


def test_finite_dimension_against_simulation():
    """Sum of the losses of 4 releases with d = 3, c = 0.4: 4e5 draws, agreement within 4 standard errors."""
    from privfit.accounting.radial import radial_law

    rng, n, k, dim, c = np.random.default_rng(5), 400_000, 4, 3, 0.4
    law, total = radial_law(dim, 1.0), np.zeros(n)
    for _ in range(k):
        x = np.sqrt(rng.exponential(size=(n, 1))) * rng.standard_normal((n, dim))
        moved = x + np.array([c, 0, 0])  # Q has its centre at c e_1: draw from Q
        here, there = (np.log(math.sqrt(2) * np.linalg.norm(v, axis=1)) for v in (x, moved))
        total += law.log_density(here) - law.log_density(there)
    curve = pa.symmetric_laplace(dim, c).self_compose(k)
    for eps in (0.0, 1.0, 3.0):
        draws = np.maximum(-np.expm1(eps - total), 0.0)
        error = draws.std() / math.sqrt(n)
        assert abs(curve.delta(eps) - draws.mean()) < 4 * error
        assert curve.delta(eps) - curve.delta(eps, bound="lower") < 1e-6


def test_subsampled_gaussian_steps_reference():
    """1,000 Poisson steps, rate 0.01, sigma 1: the interval of eps is below 1e-6 wide.

    dp-accounting 0.6.0 (connect-the-dots, interval 1e-4) gives 1.8282371, 2.1245157 and 3.2904456, from above.
    """
    curve = subsample(pa.gaussian(1.0), 0.01).self_compose(1000)
    assert isinstance(curve, SymmetrizedCurve)
    for delta, published in ((1e-5, 1.8282371), (1e-6, 2.1245157), (1e-10, 3.2904456)):
        low, high = curve.epsilon(delta, bound="lower"), curve.epsilon(delta)
        assert high - low < 1e-6
        assert low <= published
        assert high == pytest.approx(published, abs=1e-5)


def test_both_directions_of_a_pair_are_composed_apart():
    step = subsample(pa.gaussian(1.0), 0.1)
    together = step.self_compose(20)
    one_way = [ComposedCurve((c,), (20,)) for c in (step.base, step.base.reversed())]
    eps = np.array([0.0, 0.3, 1.0])
    assert np.allclose(together.delta(eps), np.max([c.delta(eps) for c in one_way], axis=0), rtol=1e-12)
    # a composition of the symmetrised curve as such would be worse
    assert np.all(ComposedCurve((step,), (20,)).delta(eps) >= together.delta(eps) * (1 - 1e-6))


def test_asymmetric_parts_keep_their_direction():
    pair = pa.from_points([0.1, 0.3, 0.6], [0.6, 0.3, 0.1])
    both = ComposedCurve((pair,), (3,))
    backward = both.reversed()
    t = np.array([-1.0, -0.2, 0.4, 1.5])
    direct = pair.compose(pair, pair)
    assert np.allclose(both.delta(t), direct.delta(t), atol=1e-3)
    assert np.allclose(backward.delta(t), direct.reversed().delta(t), atol=1e-3)
    assert np.all(both.delta(t) >= direct.delta(t) - 1e-12)
    assert np.all(both.delta(t, bound="lower") <= direct.delta(t) + 1e-12)


def test_composing_in_a_loop_costs_nothing_and_forgets_nothing():
    curve = pa.laplace(0.01)
    for _ in range(999):
        curve = curve.compose(pa.laplace(0.01))
    assert curve == pa.laplace(0.01).self_compose(1000)
    assert curve.counts == (1000,)
    mixed = pa.compose(pa.laplace(0.1), pa.symmetric_laplace(2, 0.1), pa.laplace(0.1))
    assert mixed == pa.compose(pa.symmetric_laplace(2, 0.1), pa.laplace(0.1)).compose(pa.laplace(0.1))


def test_reading_does_not_change_anything():
    curve = pa.laplace(0.3).self_compose(5)
    before = curve.to_dict()
    first = curve.epsilon(1e-6)
    curve.delta([0.1, 5.0, 1e6])
    curve.curve([0.0, 1e-300, 1.0])
    assert curve.to_dict() == before
    assert curve.epsilon(1e-6) == first


def test_different_curves_lie_below_each_part():
    parts = pa.symmetric_laplace(2, 0.5, 2), pa.laplace(0.5)
    both = parts[0].compose(parts[1])
    alpha = np.linspace(0, 1, 5)
    for part in parts:
        assert np.all(both.curve(alpha) <= part.curve(alpha) + 1e-9)
    assert both.delta(0.3) <= parts[0].delta(0.0) + parts[1].delta(0.3)


def test_bad_input():
    with pytest.raises(TypeError, match="TradeOffCurve"):
        pa.gaussian(1.0).compose(1.0)
    with pytest.raises(ValueError, match="at least one"):
        pa.compose()
    for bad in (0, -1):
        with pytest.raises(ValueError, match="k must be"):
            pa.gaussian(1.0).self_compose(bad)
    with pytest.raises(TypeError, match="k must be"):
        pa.gaussian(1.0).self_compose(2.0)


def test_neighbours_are_kept_by_composition_and_must_agree():
    from privfit.accounting.relation import ADD_OR_REMOVE, relation_of

    steps = pa.gaussian(1.0).subsample(0.01).self_compose(10)
    assert relation_of(steps) == ADD_OR_REMOVE
    assert relation_of(steps.compose(pa.laplace(0.1))) == ADD_OR_REMOVE
    other = pa.gaussian(1.0).subsample(0.01, "without_replacement")
    with pytest.raises(ValueError, match="same neighbours"):
        steps.compose(other)
    with pytest.raises(ValueError, match="add or remove"):
        pa.parallel(steps, relation="replace_one", parts="fixed")


def brute_force(parts, eps):
    """delta by the full product space: parts are (p, q, count)."""
    p, q = np.ones(1), np.ones(1)
    for a, b, count in parts:
        for _ in range(count):
            p, q = np.outer(p, a).ravel(), np.outer(q, b).ravel()
    return np.array([np.maximum(q - math.exp(e) * p, 0).sum() for e in eps])


def normal(*masses):
    return np.array(masses) / np.sum(masses)


@pytest.mark.parametrize(
    "parts",
    [
        [(normal(0.195, 0.664, 0.141), normal(0.022, 0.205, 0.773), 2), (normal(1, 0), normal(0.41, 0.59), 2)],
        [(normal(0.33, 0.38, 0.29, 0), normal(0, 0.13, 0.26, 0.61), 3), (normal(0.2, 0.8), normal(0.5, 0.5), 2)],
        [(normal(0.3, 0.35, 0.35), normal(0, 0.4, 0.6), 2), (normal(0.88, 0.12), normal(0.12, 0.88), 2)],
        [(normal(0.7, 0.3), normal(0.4, 0.6), 6)],
    ],
    ids=["disclosed by Q", "disclosed either way", "disclosed by P", "plain"],
)
def test_random_discrete_pairs_by_brute_force(parts):
    """Through the lattice and as mixtures with a symmetric response, in both directions."""
    eps = np.array([-1.5, -0.3, 0.0, 0.2, 0.9, 1.9, 3.0])
    curves = tuple(pa.from_distributions(p, q) for p, q, _ in parts)
    lattice = ComposedCurve(curves, tuple(count for *_, count in parts))
    response = pa.randomized_response(1.1)
    mixed = MixtureCurve(lattice, response)
    rr = (normal(1, math.exp(1.1)), normal(math.exp(1.1), 1))
    for curve, more in ((lattice, []), (mixed, [(*rr, 1)])):
        forward = brute_force(parts + more, eps)
        backward = brute_force([(q, p, n) for p, q, n in parts + more], eps)
        for side, truth in ((curve, forward), (curve.reversed(), backward)):
            assert np.all(side.delta(eps, bound="lower") <= truth + 1e-12)
            assert np.all(side.delta(eps) >= truth - 1e-12)
            assert np.all(side.delta(eps) - side.delta(eps, bound="lower") < 2e-3)


def test_bounds_of_the_curve_enclose_the_exact_test_of_small_pairs():
    """Neyman-Pearson on 3^4 outcomes, and the largest slope e^2 of two Laplace releases."""
    p, q = normal(0.2, 0.5, 0.3), normal(0.1, 0.3, 0.6)
    exact = pa.from_distributions(p, q).self_compose(4)
    lattice = ComposedCurve((pa.from_distributions(p, q),), (4,))
    alpha = np.concatenate([[1e-9, 1e-6, 1e-3], np.linspace(0.01, 0.99, 50), [0.999, 1 - 1e-6]])
    assert np.all(lattice.curve(alpha) <= exact.curve(alpha, bound="upper"))
    assert np.all(lattice.curve(alpha, bound="upper") >= exact.curve(alpha))
    pair = pa.laplace(1.0).self_compose(2)
    assert 1 - math.exp(2) * 1e-6 <= pair.curve(1e-6, bound="upper") <= 1 - math.exp(2) * 1e-6 + 1e-9


def test_replacing_a_record_may_have_another_direction_in_every_part():
    """Two columns answered by one asymmetric response: (0, 1) against (1, 0) is the pair P x Q against Q x P."""
    pair = pa.from_distributions([0.03, 0.97], [0.69, 0.31])
    turned = pa.symmetrized(pair.reversed())
    once = pa.symmetrized(pair)
    truth = float(brute_force([([0.03, 0.97], [0.69, 0.31], 1), ([0.69, 0.31], [0.03, 0.97], 1)], [2.0])[0])
    assert truth == pytest.approx(0.60058, abs=1e-5)
    assert once.compose(once).delta(2.0) >= truth
    assert once.compose(turned).delta(2.0) >= truth


def test_extreme_parts_neither_fail_nor_linger():
    assert pa.approximate_dp(0, 1e-6).subsample(0.3).self_compose(10).delta(1.0) == pytest.approx(3e-6, rel=1e-3)
    tiny = pa.laplace(1e-6).compose(pa.gaussian(1))
    assert tiny.delta(1.0) == pytest.approx(pa.gaussian(1).delta(1.0), rel=1e-5)
    wide = ComposedCurve((pa.gaussian(30),), (1,))
    assert wide.epsilon(1e-12, bound="lower") <= pa.gaussian(30).epsilon(1e-12) <= wide.epsilon(1e-12)
