"""What must hold for every family of curves."""

import json
import math
import pickle

import numpy as np
import pytest

import privfit.accounting as pa
from tests.accounting.curves import ALPHAS, CURVES, SYMMETRIC, THRESHOLDS, at_levels, quick_and_full

every_curve = pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES.keys())
every_name = pytest.mark.parametrize("name", CURVES)
some_or_all_points = pytest.mark.parametrize(("name", "full"), quick_and_full)


@every_name
def test_curve_is_a_trade_off_function(name):
    f = at_levels(name, "lower")
    assert np.all((f >= 0) & (f <= 1 - ALPHAS + 1e-15))
    assert np.all(np.diff(f) <= 1e-12)
    chord = np.interp(ALPHAS[1:-1], ALPHAS[[0, -1]], f[[0, -1]])
    assert np.all(f[1:-1] <= chord + 1e-12)
    slopes = np.diff(f) / np.diff(ALPHAS)
    assert np.all(np.diff(slopes[3:]) >= -1e-6)


@every_curve
def test_error_rates_lie_on_the_curve(curve):
    alpha, beta = curve.error_rates(THRESHOLDS, bound="estimate")
    # the support line of f at slope -e^t passes through (alpha, beta): f is never above beta there
    lower, value, upper = (curve.curve(np.clip(alpha, 0, 1), bound=b) for b in ("lower", "estimate", "upper"))
    assert np.allclose(value, beta, rtol=0, atol=1e-9 + 2 * float((upper - lower).max()))
    assert float((upper - lower).max()) < 1e-6


@some_or_all_points
def test_profile_agrees_with_error_rates_and_with_the_curve(name, full):
    curve = CURVES[name]
    alpha, beta = curve.error_rates(THRESHOLDS, bound="estimate")
    expected = 1 - beta - np.exp(THRESHOLDS) * alpha
    assert np.allclose(curve.delta(THRESHOLDS, bound="estimate"), np.clip(expected, 0, 1), atol=2e-9)
    grid = np.linspace(0, 1, 501) if full else ALPHAS
    power = 1 - (curve.curve(grid, bound="estimate") if full else at_levels(name, "estimate"))
    for eps in (0.0, 0.4, 1.1):
        brute = np.max(power - math.exp(eps) * grid)
        assert brute <= curve.delta(eps) + 1e-9
        assert brute >= curve.delta(eps) - (5e-3 if full else 1e-2)


@every_name
def test_bounds_bracket_the_estimate(name):
    curve = CURVES[name]
    eps = np.array([0.0, 0.5, 1.0, 3.0])
    lower, middle, upper = (curve.delta(eps, bound=b) for b in ("lower", "estimate", "upper"))
    assert np.all(lower <= middle)
    assert np.all(middle <= upper)
    assert np.all(at_levels(name, "lower") <= at_levels(name, "upper"))


@some_or_all_points
def test_epsilon_inverts_delta_on_the_safe_side(name, full):
    curve = CURVES[name]
    for delta in (0.3, 0.1, 0.06, 1e-3, 1e-8) if full else (0.1, 1e-8):
        eps = curve.epsilon(delta)
        if math.isinf(eps):
            assert curve.delta(math.inf) >= delta * (1 - 1e-9)
            continue
        assert curve.delta(eps) <= delta * (1 + 1e-12)
        if eps > 1e-9:
            assert curve.delta(eps * (1 - 1e-6), bound="estimate") >= delta * (1 - 1e-6) - 3 * curve.precision.absolute


@pytest.mark.parametrize("name", SYMMETRIC)
def test_symmetric_curves_are_their_own_inverse(name):
    curve = SYMMETRIC[name]
    f = at_levels(name, "estimate")[3:-2]
    inside = f > curve.curve(1.0 - 1e-9)
    back = curve.curve(f, bound="estimate")
    assert np.all(back[inside] <= ALPHAS[3:-2][inside] + 1e-8)
    assert curve.reversed() is curve or np.allclose(curve.reversed().curve(ALPHAS), at_levels(name, "lower"), atol=1e-9)


@every_name
def test_envelope_touches_the_profile_and_lies_below(name):
    curve = CURVES[name]
    eps = [0.1, 0.6, 1.3]
    envelope = curve.envelope(eps)
    assert np.allclose(envelope.delta(eps), curve.delta(eps), atol=1e-9) or curve is CURVES["points"]
    assert np.all(envelope.curve(ALPHAS) <= at_levels(name, "lower") + 3e-9) or curve is CURVES["points"]


@every_curve
def test_round_trip_through_json_and_pickle(curve):
    text = json.dumps(curve.to_dict(), allow_nan=False)
    again = pa.TradeOffCurve.from_dict(json.loads(text))
    assert again == curve
    assert again.delta(0.3) == pytest.approx(curve.delta(0.3), rel=1e-14)
    assert pickle.loads(pickle.dumps(curve)) == curve


@every_curve
def test_scalars_give_floats_and_arrays_keep_their_shape(curve):
    assert type(curve.delta(0.5)) is float
    assert type(curve.curve(0.5)) is float
    assert type(curve.error_rates(0.5)[0]) is float
    for method in (curve.delta, curve.curve):
        assert method([]).shape == (0,)
        readonly = np.asfortranarray(np.full((2, 3), 0.25))
        readonly.setflags(write=False)
        again = method(readonly)
        assert again.shape == (2, 3)
        assert np.allclose(again, method(0.25), rtol=1e-12, atol=0)
    assert np.allclose(curve.delta(np.array([1, 0])), [curve.delta(1.0), curve.delta(0.0)], rtol=1e-12, atol=0)


@every_curve
def test_immutable(curve):
    name = next(iter(type(curve).__dataclass_fields__))
    with pytest.raises(AttributeError):
        setattr(curve, name, 2.0)


@every_curve
@pytest.mark.parametrize(
    ("method", "bad"),
    [
        ("curve", float("nan")),
        ("curve", -0.1),
        ("curve", 1.1),
        ("delta", float("nan")),
        ("epsilon", -1e-9),
        ("epsilon", 1.5),
        ("inverse", float("nan")),
        ("error_rates", float("nan")),
        ("envelope", [-1.0]),
    ],
)
def test_bad_values_raise(curve, method, bad):
    with pytest.raises(ValueError, match="must be"):
        getattr(curve, method)(bad)


@every_curve
def test_wrong_types_raise(curve):
    with pytest.raises(TypeError, match="epsilon"):
        curve.delta("1")
    with pytest.raises(TypeError, match="alpha"):
        curve.curve(None)
    with pytest.raises(TypeError, match="alpha"):
        curve.curve(np.array([True]))
    with pytest.raises(TypeError, match="alpha"):
        curve.curve(1j)
    with pytest.raises(ValueError, match="bound"):
        curve.delta(0.1, bound="best")
    with pytest.raises(TypeError, match="other"):
        curve.dominates(3)


def test_dominance_is_a_partial_order():
    weak, strong = pa.symmetric_laplace(6, 0.4), pa.symmetric_laplace(6, 0.8)
    assert weak.dominates(strong)
    assert not strong.dominates(weak)
    assert weak.dominates(weak)
    crossing = pa.laplace(1.0), pa.gaussian(1.0)
    assert not crossing[0].dominates(crossing[1])
    assert not crossing[1].dominates(crossing[0])


def test_from_dict_refuses_what_it_cannot_read():
    good = pa.gaussian(1.0).to_dict()
    for change in ({"version": 99}, {"curve": "Nothing"}, {"extra": 1}, {"mu": -1.0}):
        with pytest.raises(ValueError, match=r"must be|needs the keys"):
            pa.TradeOffCurve.from_dict(good | change)
    with pytest.raises(ValueError, match="to_dict"):
        pa.TradeOffCurve.from_dict([])


@every_curve
def test_plot_draws_the_curve(curve):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    ax = curve.plot()
    assert len(ax.lines) == 2
    plt.close(ax.figure)


def test_curves_share_a_plot():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    ax = CURVES["gaussian"].plot()
    CURVES["points"].plot(ax=ax)
    assert len(ax.lines) == 3  # the line of perfect privacy is drawn once
    plt.close(ax.figure)
