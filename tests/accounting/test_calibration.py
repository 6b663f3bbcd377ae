"""The smallest noise for every target: safe after the fact, and smallest."""

import math

import pytest

import privfit.accounting as pa

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
