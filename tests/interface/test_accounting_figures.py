"""Figures of the accounting layer: numbers against closed forms; nothing clipped, covered or told by colour alone."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from scipy.stats import norm

from privfit.accounting import Budget, approximate_dp, empirical, gaussian, laplace, zero_inflated, zil
from privfit.figures import plot_composition, plot_curves, plot_profile, plot_region, plot_roc, plot_tradeoff
from privfit.mechanisms import Box, SymmetricLaplace, ZilRegion, zil_region

RNG = np.random.default_rng(3)
SCORES = empirical(RNG.normal(size=800), RNG.normal(1.0, size=700))
EIGHT = {f"Gaussian, μ = {m:g}": gaussian(m) for m in (0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3)}
EXTREME = {
    "nearly perfect": gaussian(1e-4),
    "no privacy": approximate_dp(0.0, 0.99999),
    "zero-inflated": zil(2, 0.5, 0.05),
    "Laplace, ε = 20": laplace(20.0),
}
LONG = {
    f"a label that is long because somebody took all the options of a mechanism, {j}": c
    for j, c in enumerate(EIGHT.values())
}
SETS = {
    "one": {"Gaussian": gaussian(1.0)},
    "eight": EIGHT,
    "extreme": EXTREME,
    "long": LONG,
    "scores": {"attack": SCORES},
}
KINDS = {
    "trade-off": lambda curves, ax=None: plot_tradeoff(curves, ax, epsilons=[0.5, 2.0], title="A title"),
    "logarithmic": lambda curves, ax=None: plot_tradeoff(curves, ax, log=True, title="A title"),
    "roc": lambda curves, ax=None: plot_roc(curves, ax, title="A title that is so long that it must be broken: " * 3),
    "profile": lambda curves, ax=None: plot_profile(curves, ax, title="A title"),
    "composition": lambda curves, ax=None: plot_composition(
        curves, 1e-5, [1, 10, 100], ax, naive=True, title="A title"
    ),
}
CLOSED = {"one": SETS["one"], "eight": EIGHT, "long": LONG}  # composition of these takes no time


def region(epsilon=1.0, delta=0.1, points=(0.02, 0.05, 0.09)):
    return zil_region(Budget(epsilon, delta), Box({"x": (0, 1)}), points)


def drawn(figure):
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return canvas.get_renderer()


def check_layout(figure):
    """All texts inside the figure, no two on each other, the legend on no axes."""
    renderer = drawn(figure)
    width, height = figure.canvas.get_width_height()
    texts = [t for ax in figure.axes for t in (ax.xaxis.label, ax.yaxis.label, ax.title)]
    for ax in figure.axes:
        for axis, (low, high) in ((ax.xaxis, sorted(ax.get_xlim())), (ax.yaxis, sorted(ax.get_ylim()))):
            texts += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    texts += [t for legend in figure.legends for t in legend.get_texts()]
    texts += [figure._suptitle] if figure._suptitle else []
    boxes = [(t.get_text(), t.get_window_extent(renderer)) for t in texts if t.get_text() and t.get_visible()]
    for j, (text, box) in enumerate(boxes):
        assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1, text
        for other, second in boxes[j + 1 :]:
            apart = box.x1 <= second.x0 or second.x1 <= box.x0 or box.y1 <= second.y0 or second.y1 <= box.y0
            assert apart, (text, other)
    for legend in figure.legends:
        top = legend.get_window_extent(renderer).y1
        assert all(top <= ax.get_tightbbox(renderer).y0 + 1 for ax in figure.axes)


QUICK = {
    "trade-off": {"long", "scores"},
    "logarithmic": {"extreme", "eight"},
    "roc": {"long", "one"},
    "profile": {"extreme", "scores"},
    "composition": {"long", "one"},
}


@pytest.mark.parametrize(
    # numerical composition is drawn in a test of its own
    ("kind", "name"),
    [
        pytest.param(kind, name, marks=() if name in QUICK[kind] else pytest.mark.slow)
        for kind in KINDS
        for name in SETS
        if kind != "composition" or name in CLOSED
    ],
)
def test_nothing_is_clipped_or_covered(kind, name):
    check_layout(KINDS[kind](SETS[name]).figure)


@pytest.mark.parametrize(
    "name", ["one", "long", *(pytest.param(n, marks=pytest.mark.slow) for n in ("eight", "extreme", "scores"))]
)
def test_both_panels_have_room(name):
    check_layout(plot_curves(SETS[name], [1.0], "A title"))


def test_regions_have_room():
    check_layout(plot_region({"ε = 1": region(), "ε = 2": region(2.0, 0.05, (1e-6, 0.01, 0.04))}, title="T").figure)
    check_layout(plot_region(region(4.0, 1e-5, np.geomspace(1e-10, 9e-6, 4))).figure)
    check_layout(plot_region(ZilRegion(Budget(1.0, 0.1), np.array([0.01]), np.array([2.0]))).figure)


@pytest.mark.parametrize("kind", KINDS)
def test_series_differ_in_line_and_mark_and_draw_on_given_axes(kind):
    ax = Figure(layout="constrained").add_subplot()
    assert KINDS[kind](EIGHT, ax) is ax
    lines = [line for line in ax.lines if line.get_label() in EIGHT]
    assert len(lines) == 8
    for sign in ("get_color", "get_marker"):
        assert len({str(getattr(line, sign)()) for line in lines}) == 8
    assert len({str(line._dash_pattern) for line in lines}) == 8
    assert ax.get_xlabel() and ax.get_ylabel() and ax.get_legend() is not None
    assert not ax.figure.legends


def test_legend_can_be_left_out_and_stays_inside_without_a_layout():
    ax = Figure().add_subplot()
    plot_tradeoff(gaussian(1.0), ax, legend=False)
    assert ax.get_legend() is None
    plot_profile(gaussian(1.0), ax)
    renderer = drawn(ax.figure)
    box, frame = ax.get_legend().get_window_extent(renderer), ax.get_window_extent(renderer)
    assert frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1


def line_of(ax, label):
    (found,) = [line for line in ax.lines if line.get_label() == label]
    return np.asarray(found.get_xdata()), np.asarray(found.get_ydata())


def test_roc_is_the_closed_form():
    x, y = line_of(plot_roc({"G": gaussian(1.5)}, smallest=1e-6), "G")
    assert x[0] == pytest.approx(1e-6) and x[-1] == 1.0
    assert np.allclose(y, norm.cdf(norm.ppf(x) + 1.5), rtol=1e-9)
    x, y = line_of(plot_roc({"Z": zero_inflated(gaussian(1.5), 0.01)}, smallest=1e-6), "Z")
    assert np.allclose(y, 0.01 + 0.99 * norm.cdf(norm.ppf(np.minimum(x / 0.99, 1.0)) + 1.5), rtol=1e-9)


def test_profile_is_the_closed_form_down_to_the_end_of_the_axis():
    ax = plot_profile({"G": gaussian(1.0), "L": laplace(1.5)}, smallest=1e-40)
    x, y = line_of(ax, "G")
    exact = norm.logcdf(-x + 0.5) + np.log1p(
        -np.exp(np.minimum(x + norm.logcdf(-x - 0.5) - norm.logcdf(-x + 0.5), -1e-300))
    )
    seen = y > 1e-40
    assert np.allclose(np.log(y[seen]), exact[seen], rtol=1e-8)
    assert ax.get_ylim()[0] < 1e-40 and y[seen].min() < 1e-37
    x, y = line_of(ax, "L")
    inside = x < 1.5 - 1e-6
    assert np.allclose(y[inside], -np.expm1((x[inside] - 1.5) / 2), rtol=1e-9)
    assert (y[x >= 1.5] < ax.get_ylim()[0]).all()  # delta = 0 lies below the axis


@pytest.mark.parametrize("curves, scale", [({"a": gaussian(1.0), "b": gaussian(2.0)}, "linear"), (EXTREME, "asinh")])
def test_profile_bends_its_axis_only_for_profiles_of_very_different_length(curves, scale):
    ax = plot_profile(curves)
    assert ax.get_xscale() == scale and ("logarithmic" in ax.get_xlabel()) == (scale == "asinh")


def test_profile_ends_where_it_is_told():
    assert plot_profile(gaussian(1.0), largest_epsilon=2.5).get_xlim()[1] == 2.5


def test_tradeoff_shows_the_bands_of_an_empirical_curve():
    ax = plot_tradeoff({"attack": SCORES})
    (band,) = ax.collections
    corners = band.get_paths()[0].vertices
    for alpha in (0.1, 0.4):
        heights = [np.interp(alpha, *side) for side in _sides(corners)]
        assert heights[0] == pytest.approx(SCORES.curve(alpha), abs=2e-3)
        assert heights[1] == pytest.approx(SCORES.curve(alpha, bound="upper"), abs=2e-3)
    x, y = line_of(ax, "attack")
    assert np.allclose(y, SCORES.curve(x, bound="estimate"))
    assert "attack, lower to upper bound" in [t.get_text() for t in ax.figure.legends[0].get_texts()]
    assert not plot_tradeoff({"attack": SCORES}, bands=False).collections
    assert not plot_tradeoff(gaussian(1.0)).collections


def _sides(corners):
    """Lower and upper border of a filled band."""
    x, y = corners.T
    grid = np.unique(x[(x > 0) & (x < 1)])
    low = np.array([y[x == value].min() for value in grid])
    high = np.array([y[x == value].max() for value in grid])
    return (grid, low), (grid, high)


def test_composition_is_the_closed_form():
    ax = plot_composition({"G": gaussian(0.5)}, 1e-6, [1, 4, 9, 100], naive=True)
    x, y = line_of(ax, "G")
    assert list(x) == [1, 4, 9, 100]
    for k, eps in zip(x, y, strict=True):  # the profile of G_mu at mu = sqrt(k)/2
        mu = 0.5 * k**0.5
        assert norm.cdf(-eps / mu + mu / 2) - np.exp(eps) * norm.cdf(-eps / mu - mu / 2) == pytest.approx(
            1e-6, rel=1e-6
        )
    _, added = line_of(ax, "G: added up, k ε(δ/k)")
    assert added[1] == pytest.approx(4 * gaussian(0.5).epsilon(2.5e-7)) and (added[1:] > y[1:]).all()


def test_composition_says_where_no_epsilon_is_left():
    curve = zero_inflated(gaussian(0.1), 1e-6)
    ax = plot_composition({"Z": curve}, 1e-5, [1, 5, 9, 11, 20])
    x, _ = line_of(ax, "Z (no ε beyond k = 9)")
    assert list(x) == [1, 5, 9]  # 1 - (1 - 1e-6)^11 > 1e-5
    nothing = plot_composition({"Z": curve}, 1e-7, 4)
    assert line_of(nothing, "Z (no ε at any k)")[0].size == 0
    assert any("no ε reaches" in t.get_text() for t in nothing.texts)


def test_composition_shows_the_bounds_of_what_is_known_between_two():
    ax = plot_composition({"attack": SCORES, "G": gaussian(1.0)}, 0.2, [1, 2])
    (band,) = ax.collections
    x, y = band.get_paths()[0].vertices.T
    for k in (1, 2):
        together = SCORES.self_compose(k)
        ends = [together.epsilon(0.2, bound=b) for b in ("lower", "upper")]
        assert [y[x == k].min(), y[x == k].max()] == pytest.approx(ends, rel=1e-9) and ends[0] < 0.9 * ends[1]
    check_layout(ax.figure)
    assert [t.get_text() for t in ax.get_xticklabels()] == ["1", "2"]


def test_composition_counts():
    x, _ = line_of(plot_composition({"G": gaussian(0.1)}, 1e-5, 1000), "G")
    assert x[0] == 1 and x[-1] == 1000 and 8 <= x.size <= 12
    x, _ = line_of(plot_composition({"G": gaussian(0.1)}, 1e-5, 1), "G")
    assert list(x) == [1]


def test_region_border_meets_the_target_and_less_noise_does_not():
    found = region()
    x, y = line_of(plot_region({"r": found}), "smallest noise: r")
    for delta0, scale in zip(x, y, strict=True):
        curve, less = (
            zero_inflated(SymmetricLaplace(s).tradeoff(Box({"x": (0, 1)}), "record"), delta0)
            for s in (scale, 0.999 * scale)
        )
        assert curve.delta(1.0) <= 0.1 < less.delta(1.0)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: plot_tradeoff([gaussian(1.0)]), TypeError, "curves must be a curve or a mapping"),
        (lambda: plot_roc({}), ValueError, "at least one curve"),
        (lambda: plot_profile({"a": 1.0}), TypeError, r"curves\['a'\] must be a TradeOffCurve"),
        (lambda: plot_tradeoff(gaussian(1.0), (1, 2)), TypeError, "ax must be matplotlib axes"),
        (lambda: plot_tradeoff(gaussian(1.0), epsilons=[-1.0]), ValueError, "epsilons"),
        (lambda: plot_roc(gaussian(1.0), smallest=0.5), ValueError, "smallest"),
        (lambda: plot_profile(gaussian(1.0), smallest=float("nan")), ValueError, "smallest"),
        (lambda: plot_profile(gaussian(1.0), largest_epsilon=0.0), ValueError, "largest_epsilon"),
        (lambda: plot_composition(gaussian(1.0), 0.0), ValueError, "delta"),
        (lambda: plot_composition(gaussian(1.0), 1e-5, 0), ValueError, "counts"),
        (lambda: plot_composition(gaussian(1.0), 1e-5, []), ValueError, "counts"),
        (lambda: plot_region({}), ValueError, "at least one region"),
        (lambda: plot_region({"a": 1}), TypeError, "must be a ZilRegion"),
        (lambda: plot_region(3), TypeError, "regions must be"),
    ],
)
def test_mistakes(call, error, words):
    with pytest.raises(error, match=words):
        call()
