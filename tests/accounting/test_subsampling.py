"""Amplification by subsampling against direct integration, enumeration and another library."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

import privfit.accounting as pa
from privfit.accounting.discrete import from_atoms
from privfit.accounting.relation import ADD_OR_REMOVE, REPLACE_ONE
from privfit.accounting.subsampling import FixedSizeSubsampledCurve, SubsampledCurve, subsample


def mixture_delta(mu, rate, eps, reverse):
    """Hockey-stick divergence of N(0, 1) and its mixture with N(mu, 1), by quadrature at 50 digits."""
    with mp.workdps(50):
        mu, rate, eps = mp.mpf(mu), mp.mpf(rate), mp.mpf(eps)

        def plain(x):
            return mp.npdf(x)

        def mixed(x):
            return (1 - rate) * mp.npdf(x) + rate * mp.npdf(x - mu)

        def loss(x):
            return mp.log1p(rate * mp.expm1(mu * x - mu * mu / 2))

        target = -eps if reverse else eps
        inside = mp.expm1(target) / rate
        if inside <= -1:
            return mp.mpf(0) if reverse else 1 - mp.e**eps
        cut = mp.log1p(inside) / mu + mu / 2
        assert mp.almosteq(loss(cut), target, abs_eps=mp.mpf(10) ** -45)
        # the integrand decays like exp(-|cut| s): panels on that scale
        steps = [s / (1 + abs(cut)) for s in (0, 0.3, 1, 2, 4, 8, 16, 32, 64, 150)]
        # mpmath stops at an absolute error: the integrand is brought to size one
        size = plain(cut)
        if reverse:
            return size * mp.quad(lambda x: (plain(x) - mp.e**eps * mixed(x)) / size, [cut - s for s in steps][::-1])
        return size * mp.quad(lambda x: (mixed(x) - mp.e**eps * plain(x)) / size, [cut + s for s in steps])


@pytest.mark.parametrize(
    ("mu", "rate", "eps"),
    [
        (1.0, 0.01, 0.1),
        pytest.param(1.0, 0.01, 0.0, marks=pytest.mark.slow),
        (1.0, 0.01, -0.005),
        pytest.param(1.0, 0.01, -2.0, marks=pytest.mark.slow),
        pytest.param(0.25, 0.00033, 0.003, marks=pytest.mark.slow),
        (1.0, 0.2, 32.5),  # delta about 1e-250
        pytest.param(0.05, 1e-6, 2e-6, marks=pytest.mark.slow),
        (2.0, 0.9, 3.0),
        (1.0, 1e-10, 1e-9),
    ],
)
def test_gaussian_forward_against_quadrature(mu, rate, eps):
    curve = SubsampledCurve(pa.gaussian(mu), rate)
    exact = mixture_delta(mu, rate, eps, reverse=False)
    assert abs(mp.mpf(curve.delta(eps, "estimate")) / exact - 1) < 3e-12
    assert curve.delta(eps, "lower") <= exact <= curve.delta(eps)
    assert abs(curve.log_delta(eps, "estimate") - mp.log(exact)) < 3e-12


@pytest.mark.parametrize(
    ("mu", "rate", "eps"),
    [
        (1.0, 0.01, 0.005),
        pytest.param(1.0, 0.01, 0.0, marks=pytest.mark.slow),
        (1.0, 0.01, -0.05),
        pytest.param(1.0, 0.01, -3.0, marks=pytest.mark.slow),
        pytest.param(0.25, 0.00033, 0.0003, marks=pytest.mark.slow),
        pytest.param(1.0, 0.3, 0.35, marks=pytest.mark.slow),
        pytest.param(2.0, 0.9, 2.3, marks=pytest.mark.slow),
        (0.2, 0.3, 0.355),
        pytest.param(0.05, 0.3, 0.27, marks=pytest.mark.slow),
        (0.05, 0.4, 0.36),
        (1.0, 1e-10, 0.99e-10),
    ],
)
def test_gaussian_reverse_against_quadrature(mu, rate, eps):
    curve = SubsampledCurve(pa.gaussian(mu), rate, reverse=True)
    exact = mixture_delta(mu, rate, eps, reverse=True)
    assert abs(mp.mpf(curve.delta(eps, "estimate")) / exact - 1) < 3e-12
    assert curve.delta(eps, "lower") <= exact <= curve.delta(eps)


def test_tails_reach_1e_250_in_both_directions():
    forward = SubsampledCurve(pa.gaussian(1.0), 0.2)
    eps = forward.epsilon(1e-250)
    assert abs(mp.mpf(forward.delta(eps, "estimate")) / mixture_delta(1.0, 0.2, eps, False) - 1) < 3e-12
    # the reverse direction ends at -log(1 - r); a weak base reaches delta 1e-250 before it
    weak = SubsampledCurve(pa.gaussian(0.05), 0.4, reverse=True)
    eps = weak.epsilon(1e-250)
    assert eps < -math.log1p(-0.4)
    assert abs(mp.mpf(weak.delta(eps, "estimate")) / mixture_delta(0.05, 0.4, eps, True) - 1) < 3e-12


def test_reverse_direction_keeps_its_accuracy_at_the_largest_loss():
    rate = 0.3
    curve = SubsampledCurve(pa.gaussian(1.0), rate, reverse=True)
    top = -math.log1p(-rate)
    for step in (1e-3, 1e-9, 1e-14):
        eps = top - step
        assert abs(mp.mpf(curve.delta(eps, "estimate")) / mixture_delta(1.0, rate, eps, True) - 1) < 3e-12
    assert curve.delta(math.nextafter(curve.max_loss, 1)) == 0.0


def enumerated(p, q, rate):
    """Both pairs of a discrete mechanism, built by hand."""
    mixed = (1 - rate) * p + rate * q
    return (p, mixed), (mixed, p)


@pytest.mark.parametrize("rate", [0.05, 0.5, 0.97])
@pytest.mark.parametrize("seed", range(3))
def test_discrete_pairs_by_enumeration(rate, seed):
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6))
    base = from_atoms(np.log(q / p), p, q)
    for reverse, (a, b) in zip((False, True), enumerated(p, q, rate), strict=True):
        curve = SubsampledCurve(base, rate, reverse)
        direct = from_atoms(np.log(b / a), a, b)
        eps = np.linspace(-3, 3, 61)
        assert np.allclose(curve.delta(eps), np.maximum(b - np.exp(eps)[:, None] * a, 0).sum(1), rtol=1e-11, atol=1e-15)
        alpha = np.linspace(0, 1, 101)
        assert np.allclose(curve.curve(alpha), direct.curve(alpha), atol=1e-12)
        assert np.allclose(curve.error_rates(eps), direct.error_rates(eps), atol=1e-12)
        assert curve.max_loss == pytest.approx(direct.max_loss, rel=1e-13) or reverse
        assert curve.max_loss >= direct.max_loss * (1 - 1e-15)


def test_disclosure_in_the_sample():
    base = pa.approximate_dp(1.0, 0.1)
    forward, back = SubsampledCurve(base, 0.2), SubsampledCurve(base, 0.2, True)
    assert forward.delta(math.inf) == pytest.approx(0.02, rel=1e-11)
    assert back.delta(math.inf) == 0.0
    # without the record, "not in the sample" is never ruled out: the loss is at most -log(0.8)
    assert back.epsilon(0.0) == pytest.approx(-math.log(0.8), rel=1e-12)
    assert subsample(base, 0.2).epsilon(0.02 * (1 + 1e-9)) == pytest.approx(math.log1p(0.2 * math.expm1(1.0)), rel=1e-6)


def test_published_amplification_of_pure_dp():
    # epsilon' = log(1 + r (e^eps - 1)) (Balle, Barthe & Gaboardi 2018)
    for scheme in ("poisson", "without_replacement"):
        for eps, rate in ((1.0, 0.1), (0.01, 0.5), (30.0, 1e-8)):
            curve = subsample(pa.randomized_response(eps), rate, scheme)
            assert curve.epsilon(0.0) == pytest.approx(math.log1p(rate * math.expm1(eps)), rel=1e-12)


def test_without_replacement_bounds_every_table_and_is_attained():
    """All samples of 2 out of 4 records, a small random mechanism on unordered samples: exact laws."""
    rng = np.random.default_rng(5)
    n, m, values = 4, 2, 3
    tight = 0.0
    for attempt in range(40):
        if attempt < 39:
            laws = {s: rng.dirichlet(np.ones(3) * 2) for s in itertools.combinations_with_replacement(range(values), m)}
        else:  # answers "is value 0 in my sample" by randomised response
            laws = {s: np.array([0.75, 0.25, 0.0] if 0 in s else [0.25, 0.75, 0.0]) for s in laws}
        pairs = [
            (laws[a], laws[b])
            for a in laws
            for b in laws
            if any(sorted((*a[:i], *a[i + 1 :])) == sorted((*b[:j], *b[j + 1 :])) for i in range(m) for j in range(m))
        ]

        def outcome(table, laws=laws):
            samples = list(itertools.combinations(table, m))
            return sum(laws[tuple(sorted(s))] for s in samples) / len(samples)

        for eps in (0.0, 0.1, 0.3):
            inner = math.log1p(math.expm1(eps) / (m / n))
            delta = max(np.maximum(q - math.exp(inner) * p, 0).sum() for p, q in pairs)
            bound = m / n * delta
            for rest in itertools.combinations_with_replacement(range(values), n - 1):
                for x, y in itertools.permutations(range(values), 2):
                    p, q = outcome((*rest, x)), outcome((*rest, y))
                    exact = np.maximum(q - math.exp(eps) * p, 0).sum()
                    assert exact <= bound + 1e-14
                    if attempt == 39 and bound > 0:
                        tight = max(tight, exact / bound)
    assert tight == pytest.approx(1.0, rel=1e-12)


def test_without_replacement_is_the_symmetric_curve():
    base, rate = pa.gaussian(1.0), 0.1
    curve = subsample(base, rate, "without_replacement")
    assert curve.reversed() is curve
    for eps in (0.0, 0.05, 0.4, 2.0):
        assert curve.delta(eps) == pytest.approx(float(mixture_delta(1.0, rate, eps, False)), rel=1e-11)
        mirrored = 1 - math.exp(-eps) + math.exp(-eps) * curve.delta(eps)
        assert curve.delta(-eps) == pytest.approx(mirrored, rel=1e-11)
    # both schemes agree for one release: the addition decides for eps >= 0 (lemma in the module's opening)
    poisson = subsample(base, rate)
    eps = np.linspace(-2, 2, 81)
    assert np.allclose(curve.delta(eps), poisson.delta(eps), rtol=1e-11, atol=0)
    # C_p of Dong, Roth & Su: min(f_r, f_r^-1) away from the bridge of slope -1
    grid = np.linspace(0, 1, 401)
    f = rate * base.curve(grid) + (1 - rate) * (1 - grid)
    assert np.all(curve.curve(grid) <= f + 1e-12)
    start = base.error_rates(0.0)[0]
    assert np.allclose(curve.curve(grid)[grid <= start], f[grid <= start], atol=1e-11)


def test_dp_accounting_agrees_on_one_step():
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    mu, rate = 1.25, 0.02
    theirs = pld.from_gaussian_mechanism(1 / mu, sampling_prob=rate, value_discretization_interval=1e-4)
    curve = subsample(pa.gaussian(mu), rate)
    for eps in (0.01, 0.1, 0.5, 1.0):
        assert theirs.get_delta_for_epsilon(eps) == pytest.approx(curve.delta(eps), rel=1e-3)


def test_no_jump_of_epsilon_at_small_delta():
    curve = subsample(pa.gaussian(1 / 4), 0.00033)
    low, high = curve.epsilon(1.13e-18), curve.epsilon(1.1e-18)
    assert low < high < low * 1.002
    ladder = curve.epsilon(np.geomspace(1e-300, 1e-4, 120))
    steps = np.diff(ladder)
    assert np.all(steps[ladder[1:] > 0] < 0)
    assert np.all(np.abs(steps[:-1]) < 2.0 * np.abs(steps[1:]) + 1e-3)


def test_no_jump_of_epsilon_after_ten_thousand_steps():
    curve = subsample(pa.gaussian(1 / 4), 0.00033).self_compose(10_000)
    low, high = curve.epsilon(1.13e-18), curve.epsilon(1.1e-18)
    assert low < high < low * 1.001
    assert curve.epsilon(1.1e-18, "lower") > 0.99 * high


@pytest.mark.slow
def test_dp_accounting_agrees_on_a_thousand_steps():
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    sigma, rate = 1.0, 0.01
    theirs = pld.from_gaussian_mechanism(sigma, sampling_prob=rate, value_discretization_interval=1e-4)
    theirs = theirs.self_compose(1000)
    curve = subsample(pa.gaussian(1 / sigma), rate).self_compose(1000)
    for delta in (1e-3, 1e-5, 1e-8):
        assert curve.epsilon(delta) == pytest.approx(theirs.get_epsilon_for_delta(delta), rel=1e-3)


def test_steps_without_replacement_may_attain_their_bound_in_different_directions():
    """Two steps that add, two that remove, and one of each, as products of outcomes: the bound covers all."""
    rate, p = 0.3, np.array([math.e, 1.0]) / (1 + math.e)
    mixed = (1 - rate) * p + rate * p[::-1]
    curve = subsample(pa.randomized_response(1.0), rate, "without_replacement").self_compose(2)
    poisson = subsample(pa.randomized_response(1.0), rate).self_compose(2)
    for eps in (0.0, 0.1, 0.3, 0.5):
        exact = [
            np.maximum(np.outer(*q) - math.exp(eps) * np.outer(*first), 0).sum()
            for first, q in (((p, p), (mixed, mixed)), ((p, mixed), (mixed, p)), ((mixed, mixed), (p, p)))
        ]
        assert max(exact) <= curve.delta(eps)
        # all records of Poisson steps go the same way
        assert poisson.delta(eps) >= max(exact[0], exact[2])
    assert exact[1] < exact[0]
    assert np.maximum(np.outer(mixed, p) - math.exp(0.3) * np.outer(p, mixed), 0).sum() > poisson.delta(0.3)


def test_sampling_twice_multiplies_the_rates():
    for scheme in ("poisson", "without_replacement"):
        twice = subsample(subsample(pa.gaussian(1.0), 0.5, scheme), 0.25, scheme)
        assert twice == subsample(pa.gaussian(1.0), 0.125, scheme)
    assert subsample(pa.gaussian(1.0), 1.0) == pa.gaussian(1.0)


def test_the_neighbours_are_named():
    poisson, fixed = subsample(pa.gaussian(1.0), 0.5), subsample(pa.gaussian(1.0), 0.5, "without_replacement")
    assert poisson.relation == ADD_OR_REMOVE
    assert fixed.relation == REPLACE_ONE
    assert "Poisson, add one record" in str(poisson)
    assert REPLACE_ONE in repr(fixed)
    with pytest.raises(ValueError, match=r"group\(subsample\(curve, rate\), 2\)"):
        subsample(pa.gaussian(1.0), 0.5, relation=REPLACE_ONE)
    with pytest.raises(ValueError, match="scheme='poisson'"):
        subsample(pa.gaussian(1.0), 0.5, "without_replacement", relation=ADD_OR_REMOVE)
    with pytest.raises(ValueError, match="add or remove"):
        subsample(fixed, 0.5, "poisson")
    with pytest.raises(ValueError, match="replace one record"):
        subsample(poisson, 0.5, "without_replacement")
    with pytest.raises(ValueError, match="add or remove"):
        SubsampledCurve(fixed, 0.5)
    with pytest.raises(ValueError, match="relation"):
        subsample(pa.gaussian(1.0), 0.5, relation="swap")


def test_an_asymmetric_base_is_taken_in_both_directions():
    base = pa.from_points([0.1], [0.6])
    curve = subsample(base, 0.5)
    for one in (base, base.reversed()):
        for reverse in (False, True):
            assert SubsampledCurve(one, 0.5, reverse).dominates(curve)


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.1, float("nan"), float("inf")])
def test_rate_outside_its_range(rate):
    with pytest.raises(ValueError, match="rate must be"):
        subsample(pa.gaussian(1.0), rate)


def test_wrong_types():
    with pytest.raises(TypeError, match="rate"):
        subsample(pa.gaussian(1.0), "0.1")
    with pytest.raises(TypeError, match="curve"):
        subsample(0.1, 0.1)
    with pytest.raises(TypeError, match="curve"):
        FixedSizeSubsampledCurve("gaussian", 0.1)
    with pytest.raises(ValueError, match="rate"):
        SubsampledCurve(pa.gaussian(1.0), 1.0)
    with pytest.raises(ValueError, match="scheme"):
        subsample(pa.gaussian(1.0), 0.1, "shuffled batches")
