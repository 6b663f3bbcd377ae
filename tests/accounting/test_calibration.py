"""The smallest noise for every target: safe after the fact, and smallest."""

import math
from unittest.mock import Mock

import mpmath as mp
import pytest

import privfit.accounting as pa
from privfit.accounting.guesses import gaussian_mu
from privfit.accounting.ledger import Ledger
from privfit.accounting.targets import as_target
from tests.accounting.reference_profile import gaussian_delta

FAMILIES = {
    "gaussian": lambda s: pa.gaussian(1 / s),
    "laplace": lambda s: pa.laplace(1 / s),
    "generalised Laplace": lambda s: pa.symmetric_laplace(4, 1 / s, 3),
    "limit": lambda s: pa.symmetric_laplace_limit(1 / s),
}
TARGETS = [
    pa.Budget(1.0, 1e-5),
    pa.Budget(0.01, 1e-5),
    pa.Budget(20.0, 1e-5),
    pa.Budget(0.0, 0.1),
    pa.Advantage(0.3),
    pa.ErrorRates(0.05, 0.7),
]


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES.keys())
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_safe_and_smallest(family, target):
    scale = pa.calibrate(family, target, rtol=1e-7)
    assert target.met_by(family(scale))
    assert not target.met_by(family(scale * (1 - 2e-7)))


@pytest.mark.parametrize(("eps", "delta"), [(1e-3, 1e-10), (1000.0, 1e-12), (1.0, 1e-300), (8.0, 1e-9)])
def test_extreme_gaussian_budgets(eps, delta):
    sigma = pa.calibrate(FAMILIES["gaussian"], pa.Budget(eps, delta))
    assert pa.gaussian(1 / sigma).delta(eps) <= delta
    assert pa.gaussian(1 / sigma * (1 + 1e-8)).delta(eps) > delta


BUDGETS = [(1e-3, 1e-10), (20.0, 1e-5), (0.01, 1e-5), (1000.0, 1e-12), (1.0, 1e-300), (0.0, 1e-6)]
ALL_FAMILIES = {
    "gaussian": lambda s, delta: pa.gaussian(1 / s),
    "laplace": lambda s, delta: pa.laplace(1 / s),
    "symmetric Laplace": lambda s, delta: pa.symmetric_laplace(6, 1 / s),
    "symmetric Laplace, shape 4": lambda s, delta: pa.symmetric_laplace(6, 1 / s, 4),
    "limit": lambda s, delta: pa.symmetric_laplace_limit(1 / s),
    "zil": lambda s, delta: pa.zil(6, 1 / s, delta / 2),
}
OUT_OF_REACH = {("symmetric Laplace", 1e-300), ("zil", 1e-300)}


def quick(name, place):
    """Closed forms take every budget, laws by integrals two of the six, another two for each."""
    costly = [name for name in ALL_FAMILIES if name not in ("gaussian", "laplace", "limit")]
    return name not in costly or (place - costly.index(name)) % 3 == 0 or (name, BUDGETS[place][1]) in OUT_OF_REACH


@pytest.mark.parametrize(
    ("name", "eps", "delta"),
    [
        pytest.param(name, *budget, marks=() if quick(name, place) else pytest.mark.slow)
        for name in ALL_FAMILIES
        for place, budget in enumerate(BUDGETS)
    ],
)
def test_every_budget_is_met_and_a_millionth_less_noise_fails(name, eps, delta):
    target = pa.Budget(eps, delta)

    def family(scale):
        return ALL_FAMILIES[name](scale, delta)

    if (name, delta) in OUT_OF_REACH:  # the tail is polynomial in c, and c is at least 1e-8
        with pytest.raises(ValueError, match=r"no noise scale up to .* meets .*c must be .*loosen the target"):
            pa.calibrate(family, target)
        return
    scale = pa.calibrate(family, target)
    assert family(scale).delta(eps) <= delta
    assert family(scale * (1 - 1e-6)).delta(eps) > delta or delta < 1e-299
    assert family(scale * (1 - 1e-6)).log_delta(eps) > math.log(delta)


@pytest.mark.parametrize(("eps", "delta"), [*BUDGETS[:4], (1.0, 1e-5), (0.0, 0.1), (3.0, 0.4)])
def test_gaussian_scale_at_fifty_digits_and_by_dp_accounting(eps, delta):
    sigma = pa.calibrate(FAMILIES["gaussian"], pa.Budget(eps, delta))
    with mp.workdps(50):
        exact = mp.findroot(lambda s: mp.log(gaussian_delta(1 / s, eps) / delta), sigma)
        assert float(abs(sigma / exact - 1)) < 3e-9
        assert sigma >= exact
    if delta >= 1e-8:  # dp-accounting works with the difference of the two tails
        common = pytest.importorskip("dp_accounting")
        assert common.get_sigma_gaussian(eps, delta) == pytest.approx(sigma, rel=1e-6)


def test_few_curves_are_built():
    """Every curve of symmetric Laplace noise costs milliseconds: the search must not waste them."""
    for family, target, most in (
        (FAMILIES["gaussian"], pa.Budget(1, 1e-5), 3),
        (FAMILIES["laplace"], pa.Budget(0.01, 1e-5), 3),
        (lambda s: pa.zero_inflated(pa.laplace(1 / s), 1e-6), pa.Budget(1, 1e-5), 3),
        (lambda s: pa.symmetric_laplace(6, 1 / s), pa.Budget(1, 1e-5), 8),
    ):
        counted = Mock(side_effect=family)
        pa.calibrate(counted, target)
        assert counted.call_count <= most


def test_a_family_that_is_not_in_the_inverse_scale():
    """The guess assumes noise proportional to the scale; a family that is not costs evaluations, not the answer."""
    scale = pa.calibrate(lambda s: pa.gaussian(1 / s**2), pa.Budget(1, 1e-5))
    assert scale**2 == pytest.approx(3.730631635, rel=1e-8)


@pytest.mark.parametrize(("eps", "delta"), [(0.0, 1e-300), (1e-3, 1e-10), (700.0, 1e-30), (2.0, 0.999), (0.0, 0.5)])
def test_guessed_mu(eps, delta):
    with mp.workdps(350 if delta < 1e-100 else 50):
        mu = gaussian_mu(eps, delta)
        assert float(mp.log(gaussian_delta(mu, eps) / delta)) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("start", [1e-6, 1.0, 1e6])
def test_the_starting_point_does_not_matter(start):
    assert pa.calibrate(FAMILIES["gaussian"], pa.Budget(1, 1e-5), start=start) == pytest.approx(3.7306316, rel=1e-7)


def test_pure_privacy_and_gdp_and_curves():
    assert pa.calibrate(FAMILIES["laplace"], pa.Budget(0.5, 0.0)) == pytest.approx(2.0, rel=1e-8)
    assert pa.calibrate(FAMILIES["gaussian"], pa.GDP(0.25)) == pytest.approx(4.0, rel=1e-8)
    scale = pa.calibrate(FAMILIES["laplace"], pa.GDP(1.0), rtol=1e-6)
    assert pa.laplace(1 / scale).dominates(pa.gaussian(1.0))
    assert not pa.laplace(1 / (scale * 0.999)).dominates(pa.gaussian(1.0))
    scale = pa.calibrate(FAMILIES["gaussian"], pa.approximate_dp(1.0, 1e-5))
    assert scale == pytest.approx(3.730631634, rel=1e-6)


def test_a_curve_as_target_counts_its_largest_loss_and_its_disclosures():
    bounded, heavy = as_target(pa.laplace(1.0)), as_target(pa.gaussian(1.0))
    assert bounded.met_by(pa.laplace(1.0 - 1e-9))
    assert bounded.met_by(pa.randomized_response(0.4))
    assert not bounded.met_by(pa.laplace(1.0 + 1e-9))
    assert not bounded.met_by(pa.gaussian(1 / 36.8))  # its delta at 1 is below 1e-300, but not zero
    assert not bounded.met_by(pa.zero_inflated(pa.laplace(0.5), 1e-305))
    assert not heavy.met_by(pa.zero_inflated(pa.gaussian(0.5), 1e-300))
    assert not heavy.met_by(pa.shifted(pa.gaussian(0.1), 1e-30))
    assert as_target(pa.zil(6, 0.5, 1e-6)).met_by(pa.zil(6, 0.4, 1e-6))
    assert not as_target(pa.zil(6, 0.5, 1e-6)).met_by(pa.zil(6, 0.4, 1.1e-6))
    assert as_target(pa.approximate_dp(1.0, 1e-5)).met_by(pa.gaussian(0.2))


def test_a_curve_as_target_is_met_in_both_directions():
    steep = pa.from_points([0.1, 0.4], [0.6, 0.2])
    wide = steep.reversed()
    assert as_target(steep).met_by(pa.from_points([0.1, 0.4], [0.61, 0.21]))
    assert not as_target(steep).met_by(wide)
    assert not as_target(wide).met_by(steep)


def test_random_response_from_a_budget():
    noise = pa.calibrate(lambda s: pa.randomized_response(1 / s), pa.Budget(1.7, 0.0))
    assert 1 / noise == pytest.approx(1.7, rel=1e-8)


@pytest.mark.parametrize(
    ("family", "target", "text"),
    [
        (FAMILIES["gaussian"], pa.Budget(1.0, 0.0), "loosen the target"),
        (lambda s: pa.zero_inflated(pa.gaussian(1 / s), 0.1), pa.Budget(1.0, 0.05), "delta0"),
        (FAMILIES["limit"], pa.GDP(1.0), "loosen the target"),
        (lambda s: pa.randomized_response(0.1), pa.Budget(1.0, 0.0), "no noise is needed"),
    ],
)
def test_impossible_targets_say_what_to_change(family, target, text):
    with pytest.raises(ValueError, match=text):
        pa.calibrate(family, target)


@pytest.mark.parametrize(
    "make",
    [
        lambda: pa.Budget(-1.0, 1e-5),
        lambda: pa.Budget(1.0, 1.0),
        lambda: pa.Budget(0.0, 0.0),
        lambda: pa.Budget(math.nan, 0.1),
        lambda: pa.GDP(0.0),
        lambda: pa.Advantage(1.0),
        lambda: pa.ErrorRates(0.6, 0.5),
        lambda: pa.ErrorRates(0.0, 0.5),
    ],
)
def test_bad_targets(make):
    with pytest.raises(ValueError, match="must"):
        make()


def test_wrong_types():
    with pytest.raises(TypeError, match="epsilon"):
        pa.Budget("1", 1e-5)
    with pytest.raises(TypeError, match="Budget"):
        pa.calibrate(FAMILIES["gaussian"], (1.0, 1e-5))
    with pytest.raises(ValueError, match="rtol"):
        pa.calibrate(FAMILIES["gaussian"], pa.Budget(1, 1e-5), rtol=0.0)


def test_targets_hold_in_both_directions_of_an_asymmetric_pair():
    """Outcome 2 certifies P with probability 0.5, which delta of P against Q alone does not show."""
    pair = pa.from_distributions([0.5, 0.5], [1.0, 0.0])
    assert pair.delta(1.0) < 1e-5
    for target in (pa.Budget(1.0, 1e-5), pa.ErrorRates(0.01, 0.6)):
        assert not target.met_by(pair)
        assert not target.met_by(pair.reversed())

    def family(scale):
        share = math.exp(-scale) / 2
        return pa.from_distributions([1 - share, share], [1.0, 0.0])

    scale = pa.calibrate(family, pa.Budget(1.0, 1e-5))
    assert family(scale).reversed().delta(1.0) <= 1e-5
    assert family(scale * (1 - 1e-6)).reversed().delta(1.0) > 1e-5


@pytest.mark.parametrize("target", [pa.Budget(1.0, 1e-5), pa.GDP(1.0), pa.gaussian(1.0)], ids=repr)
def test_a_family_that_makes_no_curves_is_named(target):
    with pytest.raises(TypeError, match="family must be callable, got int; for example lambda sigma"):
        pa.calibrate(3, target)
    with pytest.raises(TypeError, match="family must be callable, got GaussianCurve"):
        pa.calibrate(pa.gaussian(1.0), target)
    for value, name in ((0.5, "float"), (None, "NoneType")):
        with pytest.raises(TypeError, match=f"family must return a TradeOffCurve, got {name}; for example"):
            pa.calibrate(lambda sigma, value=value: value, target)


def test_a_ledger_names_the_family_too():
    for adaptive in (False, True):
        ledger = Ledger(pa.Budget(1.0, 1e-5), adaptive=adaptive)
        with pytest.raises(TypeError, match="family must be callable, got int"):
            ledger.remaining(3)
        with pytest.raises(TypeError, match="family must return a TradeOffCurve, got float"):
            ledger.remaining(lambda sigma: 1 / sigma)
