"""What users of privacy accountants have run into, one test each: none of it happens here."""

import inspect
import itertools
import json
import math
import time
import tracemalloc

import numpy as np
import pytest
from mpmath import mp

import privfit.accounting as pa
from tests.accounting.curves import CURVES


def gaussian_noise(sigma):
    return pa.gaussian(1 / sigma)


def gaussian_delta(epsilon, sigma):
    """delta(eps) of Gaussian noise at sensitivity 1, to 50 digits (Balle & Wang 2018, theorem 8)."""
    with mp.workdps(50):
        e, s = mp.mpf(epsilon), mp.mpf(sigma)
        return mp.ncdf(1 / (2 * s) - e * s) - mp.exp(e) * mp.ncdf(-1 / (2 * s) - e * s)


def renyi_bound(rate, sigma, steps, delta):
    """Epsilon by Renyi divergences of the subsampled Gaussian at whole orders, an upper bound (Mironov et al. 2019)."""
    best = math.inf
    for a in range(2, 300):
        k = np.arange(a + 1)
        log_terms = [math.lgamma(a + 1) - math.lgamma(j + 1) - math.lgamma(a - j + 1) for j in k]
        log_terms = log_terms + (a - k) * math.log1p(-rate) + k * math.log(rate) + k * (k - 1) / (2 * sigma**2)
        moment = float(np.logaddexp.reduce(log_terms))
        best = min(best, (steps * moment - math.log(delta) - math.log(a)) / (a - 1) + math.log1p(-1 / a))
    return best


def test_epsilon_does_not_jump_at_small_delta():
    """Elsewhere from 0.056 to 3.8 between delta = 1.13e-18 and 1.1e-18."""
    steps = pa.subsample(pa.gaussian(1 / 4), 0.00033).self_compose(10_000)
    deltas = np.array([1.2e-18, 1.13e-18, 1.115e-18, 1.1e-18, 1e-18])
    low, high = steps.epsilon(deltas, bound="lower"), steps.epsilon(deltas, bound="upper")
    assert np.all(low <= high) and np.all(high - low < 1e-4)
    assert np.all(np.diff(high) > 0) and np.all(np.diff(high) < 1e-3)
    assert np.all(high < renyi_bound(0.00033, 4.0, 10_000, 1.1e-18))
    assert np.all(high > 0.056)


def test_easy_targets_have_epsilon_zero_and_not_less():
    """Elsewhere epsilon was negative at sigma = 50, delta = 0.1."""
    curve = pa.gaussian(1 / 50)
    assert gaussian_delta(0, 50) < 0.1
    assert curve.epsilon(0.1) == 0.0 and math.copysign(1.0, curve.epsilon(0.1)) == 1.0
    for each in CURVES.values():
        assert np.all(each.epsilon([0.99, 1.0]) >= 0.0)
    steps = pa.subsample(curve, 0.01).self_compose(100)
    assert [steps.epsilon(0.1, bound=side) for side in ("lower", "estimate", "upper")] == [0.0, 0.0, 0.0]


def test_replacing_a_record_has_twice_the_sensitivity_of_adding_one():
    """Elsewhere the sensitivity of replace-one was that of add-or-remove."""
    # a sum of numbers in [-C, C]: adding moves it by C, replacing -C by C moves it by 2 C
    added = pa.calibrate_iterations(pa.Budget(1.0, 1e-5), rate=1.0, iterations=3, clip=0.5)
    replaced = pa.calibrate_iterations(
        pa.Budget(1.0, 1e-5), rate=1.0, iterations=3, clip=0.5, scheme="without_replacement"
    )
    assert (added.sensitivity, replaced.sensitivity) == (0.5, 1.0)
    assert replaced.sigma / added.sigma == pytest.approx(2.0, rel=3e-6)
    for noise in (added, replaced):
        exact = gaussian_delta(1, noise.sigma / (noise.sensitivity * math.sqrt(3)))
        assert 1e-5 * (1 - 1e-4) < exact <= 1e-5
    # a replacement is a removal and an addition: the group of two
    assert pa.gaussian(0.7).group(2) == pa.gaussian(1.4)


@pytest.mark.parametrize("epsilon", [10.0, 20.0])
def test_the_classic_gaussian_formula_is_not_used_above_epsilon_one(epsilon):
    """sigma = sqrt(2 log(1.25/delta))/epsilon is proved below 1 only; at 10 and 20 it is too little noise."""
    classic = math.sqrt(2 * math.log(1.25 / 1e-5)) / epsilon
    assert gaussian_delta(epsilon, classic) > 2e-5
    assert not pa.Budget(epsilon, 1e-5).met_by(gaussian_noise(classic))
    sigma = pa.calibrate(gaussian_noise, pa.Budget(epsilon, 1e-5))
    assert sigma > classic
    assert gaussian_delta(epsilon, sigma) <= 1e-5 < gaussian_delta(epsilon, sigma * (1 - 1e-6))


def test_an_asymptotic_number_is_not_shown_as_a_guarantee():
    """The central limit mu of DP-SGD says epsilon = 3.4 where 7.9 is the truth."""
    rate, mu, steps = 0.01, 2.0, 100
    central_limit = pa.gaussian(rate * math.sqrt(steps * math.expm1(mu * mu)))
    curve = pa.subsample(pa.gaussian(mu), rate).self_compose(steps)
    claimed = central_limit.epsilon(1e-6)
    assert claimed < 3.5 < 7.5 < curve.epsilon(1e-6, bound="lower")
    # a simulation of the loss, which knows no theorem: delta = E_Q (1 - e^(eps - L))+ at the claimed epsilon
    rng = np.random.default_rng(1)
    loss = np.zeros(50_000)
    for _ in range(steps):
        x = rng.normal(size=loss.size) + mu * (rng.random(loss.size) < rate)
        loss += np.log1p(rate * np.expm1(mu * x - mu * mu / 2))
    draws = -np.expm1(np.minimum(claimed - loss, 0.0))
    error = float(draws.std()) / math.sqrt(loss.size)
    assert draws.mean() - 5 * error > 100 * 1e-6
    assert curve.delta(claimed, bound="lower") > draws.mean() - 5 * error


def test_reading_epsilon_does_not_change_the_state():
    def fresh():
        return pa.compose(pa.laplace(0.5), pa.symmetric_laplace(3, 0.3, 2), pa.laplace(0.5))

    def read(curve, delta):
        return [curve.epsilon(delta, bound=side) for side in ("lower", "upper")]

    curve, deltas = fresh(), (1e-3, 1e-9, 0.1, 1e-6)
    stored = json.dumps(curve.to_dict())
    first = {delta: read(curve, delta) for delta in deltas}
    again = {delta: read(curve, delta) for delta in reversed(deltas)}
    alone = fresh()
    assert first == again == {delta: read(alone, delta) for delta in (0.1, 1e-9, 1e-6, 1e-3)}
    assert json.dumps(curve.to_dict()) == stored and curve == fresh()

    ledger = pa.Ledger(pa.Budget(3.0, 1e-5))
    ledger.spend(pa.gaussian(0.3), "first")
    before = ledger.entries
    numbers = [(ledger.epsilon(1e-5), ledger.how_many(pa.gaussian(0.1)), ledger.guarantee()) for _ in range(3)]
    assert numbers[0] == numbers[1] == numbers[2] and ledger.entries == before and "first" in ledger.summary()


def test_nothing_hangs_at_the_edges_of_epsilon_and_delta():
    """Elsewhere eps = 0, delta = 0 and eps = 1000 never came back."""
    start = time.perf_counter()
    for epsilon, delta in ((0.0, 1e-6), (1000.0, 1e-12), (1000.0, 1e-300), (1e-3, 1e-10)):
        sigma = pa.calibrate(gaussian_noise, pa.Budget(epsilon, delta))
        assert gaussian_delta(epsilon, sigma) <= mp.mpf(delta) < gaussian_delta(epsilon, sigma * (1 - 1e-6))
    for epsilon in (0.01, 1.0, 1000.0):
        scale = pa.calibrate(lambda b: pa.laplace(1 / b), pa.Budget(epsilon, 0.0))
        assert scale == pytest.approx(1 / epsilon, rel=1e-8) and pa.laplace(1 / scale).epsilon(0.0) <= epsilon
    for epsilon, delta in itertools.product((0.0, 1.0), (0.0, 1.0)):
        with pytest.raises(ValueError, match="delta"):
            pa.calibrate(gaussian_noise, pa.Budget(epsilon, delta))
    for name, curve in CURVES.items():
        assert 0.0 <= curve.delta(1000.0) <= curve.delta(0.0) <= 1.0, name
        assert curve.epsilon(0.0) >= curve.epsilon(1e-3), name
    assert time.perf_counter() - start < 60  # two seconds of work; a hang has no end


def test_small_epsilon_does_not_need_much_memory():
    """Elsewhere calibrating epsilon = 0.01 ran out of memory."""
    target = pa.Budget(0.01, 1e-5)
    tracemalloc.start()
    try:
        sigma = pa.calibrate(gaussian_noise, target)
        many = pa.calibrate(lambda b: pa.laplace(1 / b).self_compose(20), target, rtol=1e-3)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100e6, peak
    assert gaussian_delta(0.01, sigma) <= 1e-5 < gaussian_delta(0.01, sigma * (1 - 1e-6))
    # pure DP of all twenty would need b = 2000; composition needs less, and more than one release does
    assert 100 < many < 2000 and pa.laplace(1 / many).self_compose(20).delta(0.01) <= 1e-5


def test_no_bracket_is_asked_of_the_user():
    """Elsewhere the user supplies a bracket, and an unlucky one fails or is returned."""
    assert [p.name for p in inspect.signature(pa.calibrate).parameters.values() if p.default is p.empty] == [
        "family",
        "target",
    ]
    for epsilon, delta in ((1.0, 1e-5), (1000.0, 1e-12), (1e-3, 1e-10)):
        found = [pa.calibrate(gaussian_noise, pa.Budget(epsilon, delta), start=s) for s in (1e-4, 1.0, 1e4)]
        assert max(found) <= min(found) * (1 + 2e-9)
        assert all(gaussian_delta(epsilon, sigma) <= delta for sigma in found)


def test_which_sampling_scheme_is_my_loop():
    base = pa.gaussian(1.0)
    poisson, fixed = pa.subsample(base, 0.1), pa.subsample(base, 0.1, scheme="without_replacement")
    assert poisson.relation == "add or remove one record" and "Poisson" in str(poisson)
    assert fixed.relation == "replace one record"
    # one step of a noisy sum clipped to C = 1 with sigma = 1: the fixed size counts 2 C
    assert pa.subsample(pa.gaussian(2.0), 0.1, "without_replacement").delta(0.5) > poisson.delta(0.5)
    with pytest.raises(ValueError, match=r"poisson.*without_replacement"):
        pa.subsample(base, 0.1, scheme="shuffled epochs")
    with pytest.raises(ValueError, match="replace one record"):
        pa.subsample(base, 0.1, relation="replace one record")
    with pytest.raises(ValueError, match="one record"):
        pa.subsample(fixed, 0.5, scheme="poisson")
    for word in ("shuffled", "poisson", "without_replacement"):
        assert word in pa.subsample.__doc__


def test_noise_multiplier_or_sigma_or_clip():
    target = pa.Budget(1.0, 1e-5)
    found = [pa.calibrate_iterations(target, rate=1.0, iterations=4, clip=clip) for clip in (0.1, 1.0, 10.0)]
    for noise, clip in zip(found, (0.1, 1.0, 10.0), strict=True):
        assert noise.clip == clip and noise.sigma == noise.noise_multiplier * clip
        exact = gaussian_delta(1, noise.noise_multiplier / 2)  # four releases: mu = 2 clip / sigma
        assert 1e-5 * (1 - 1e-4) < exact <= 1e-5
        # taking the one for the other would be another guarantee
        assert clip == 1.0 or pa.gaussian(2 / noise.sigma) != noise.curve
    assert found[0].noise_multiplier == found[1].noise_multiplier == found[2].noise_multiplier


def test_save_and_restore_keeps_the_history(tmp_path):
    path = tmp_path / "study.jsonl"
    ledger = pa.Ledger(pa.Budget(2.0, 1e-5), path)
    for n, curve in enumerate([pa.gaussian(0.1), pa.laplace(0.2), pa.subsample(pa.gaussian(1.0), 0.01)]):
        ledger.spend(curve, f"release {n}")
    again = pa.Ledger.open(path)
    assert again.entries == ledger.entries and len(again.entries) == 3
    assert again.epsilon(1e-5) == ledger.epsilon(1e-5)
    again.spend(pa.gaussian(0.1), "after the restart")
    assert again.epsilon(1e-5) > pa.compose(pa.gaussian(0.1), pa.laplace(0.2)).epsilon(1e-5)
    assert [entry.label for entry in ledger.entries] == [f"release {n}" for n in range(3)] + ["after the restart"]
    for name, curve in CURVES.items():
        assert pa.TradeOffCurve.from_dict(json.loads(json.dumps(curve.to_dict()))) == curve, name


def test_curves_and_plots():
    """Asked for elsewhere since 2024: the trade-off curve itself, at any number of points, and its picture."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    alpha = np.linspace(0.0, 1.0, 10_001)
    for curve in (pa.gaussian(1.0), pa.randomized_response(1.0, 4), pa.symmetric_laplace(6, 0.5)):
        beta = curve.curve(alpha)
        assert beta.shape == alpha.shape and np.all(np.diff(beta) <= 1e-9) and np.all(beta <= 1 - alpha + 1e-15)
        axes = curve.plot(label="curve")
        line = next(line for line in axes.get_lines() if line.get_label() == "curve")
        x, y = line.get_data()
        assert len(x) > 50 and np.allclose(y, curve.curve(np.asarray(x)), atol=1e-12)
        pyplot.close(axes.figure)
    # randomised response over k categories is elsewhere off by up to 0.6: here it is the polyline of its atoms
    e, k = math.e, 4
    p = np.array([e, 1.0, 1.0, 1.0]) / (e + k - 1)
    q = p[[1, 0, 2, 3]]
    attacks = [np.array(phi) for phi in itertools.product((0.0, 1.0), repeat=k)]
    curve = pa.randomized_response(1.0, k)
    assert all(q @ (1 - phi) >= curve.curve(float(min(p @ phi, 1.0))) - 1e-12 for phi in attacks)
    assert curve.curve(float(p[1])) == pytest.approx(1 - q[1], rel=1e-12)
