"""The figures draw the right numbers, and stay readable without colour."""

from functools import cache

import matplotlib.colors as colors
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from privfit.accounting import gaussian, laplace, randomized_response, symmetric_laplace
from privfit.figures import Intervals, plot_coefficients, plot_cost, plot_curves
from privfit.figures_style import COLOURS, DASHES, MARKERS

FITS = {
    "raw data": Intervals([1.0, -2.0], [0.8, -2.2], [1.2, -1.8]),
    "exact": Intervals([1.1, -1.5], [0.1, -np.inf], [2.1, np.inf]),
}


def rendered_texts(figure):
    """Boxes of all visible texts, after drawing."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    axes = figure.axes
    texts = [t for ax in axes for t in (ax.xaxis.label, ax.yaxis.label, ax.title)]
    texts += [t for ax in axes for axis in (ax.xaxis, ax.yaxis) for t in ticks_inside(ax, axis)]
    texts += [t for legend in figure.legends for t in legend.get_texts()]
    texts += figure.texts
    return [(t.get_text(), t.get_window_extent(renderer)) for t in texts if t.get_text() and t.get_visible()]


def ticks_inside(ax, axis):
    low, high = sorted(ax.get_xlim() if axis is ax.xaxis else ax.get_ylim())
    return [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]


def no_interval(label):
    nothing = np.full(2, np.inf)
    return plot_coefficients(
        {"a model": {label: Intervals([1.0, 2.0], -nothing, nothing)}},
        {"a model": ["age", "education_num"]},
        {"a model": "estimate, in the units of the columns"},
    )


def figures():
    curves = {"record": symmetric_laplace(3, 1.0, 2), "attribute": laplace(1.0)}
    names = {"model": ["age", "education_num"]}
    yield plot_curves(curves, [0.5, 1.0, 2.0], "a title that is not short at all")
    yield plot_coefficients({"model": FITS}, names, {"model": "log-odds over the range"})
    two = {"model": FITS, "other": FITS}
    yield plot_coefficients(two, names | {"other": ["x", "y"]}, dict.fromkeys(two, "hours over the range"))
    yield plot_cost(
        [2, 4, 6, 8, 10, 11, 12],
        {"age": [np.inf] * 3 + [0.5, 0.4, 0.3, 0.2], "hours": [np.inf, 3, 2, 1, 1, 1, 1]},
        {"age": 0.05, "hours": 0.1},
        [True] * 4 + [False] * 3,
        "standard error (log-odds)",
        "cost",
    )
    yield no_interval("exact, 95% intervals")
    long = {f"a fit with quite a long name, number {j}": fit for j, fit in enumerate(FITS.values())}
    yield plot_coefficients({"model": long}, names, {"model": "unit"})


@cache
def built():
    """All figures, built once: drawing them changes nothing."""
    return tuple(figures())


@pytest.mark.parametrize("number", range(6))
def test_no_text_overlaps_or_leaves_the_figure(number):
    figure = built()[number]
    boxes = rendered_texts(figure)
    width, height = figure.canvas.get_width_height()
    for j, (name, box) in enumerate(boxes):
        inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1
        assert inside, name
        for other, second in boxes[j + 1 :]:
            apart = box.x1 <= second.x0 or second.x1 <= box.x0 or box.y1 <= second.y0 or second.y1 <= box.y0
            assert apart, (name, other)


@pytest.mark.parametrize("number", range(6))
def test_axes_are_labelled(number):
    for ax in built()[number].axes:
        assert ax.get_xlabel()
        assert ax.get_ylabel() or ax.get_yticklabels()


def test_series_differ_in_more_than_colour():
    for signs in (MARKERS, DASHES):
        assert len(set(map(str, signs))) == len(COLOURS) == 8


def test_first_colours_differ_in_grey():
    # Relative luminance (CIE Y of sRGB); the first three colours are the ones the demo uses.
    def grey(colour):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colors.to_rgb(colour)]
        return float(np.dot([0.2126, 0.7152, 0.0722], linear))

    assert all(grey(colour) < 0.55 for colour in COLOURS)  # dark enough on white


def test_curve_and_polyline_show_the_right_values():
    curve = gaussian(1.0)
    left = plot_curves({"G": curve}, [0.0, 0.5, 1.5]).axes[0]
    _, drawn, polyline = left.lines
    alpha, beta = drawn.get_xdata(), drawn.get_ydata()
    assert np.allclose(beta, curve.curve(alpha), atol=1e-12)
    # every support line 1 - delta - e^eps alpha, and its mirror image, lies below the polyline
    x, y = polyline.get_xdata(), polyline.get_ydata()
    lines = []
    for eps in (0.0, 0.5, 1.5):
        height = 1 - curve.delta(eps)
        lines += [height - np.exp(eps) * x, (height - x) * np.exp(-eps)]
    assert np.allclose(y, np.maximum(np.max(lines, axis=0), 0.0), atol=1e-8)


def test_polyline_of_a_curve_with_an_atom_ends_where_the_curve_does():
    curve = randomized_response(1.0)
    left = plot_curves({"RR": curve}, [1.0]).axes[0]
    _, drawn, polyline = left.lines
    x = np.linspace(0, 1, 50)
    inside = np.interp(x, polyline.get_xdata(), polyline.get_ydata())
    assert np.allclose(inside, np.interp(x, drawn.get_xdata(), drawn.get_ydata()), atol=1e-4)


def test_coefficients_show_open_marks_where_there_is_no_interval():
    ax = plot_coefficients({"m": FITS}, {"m": ["a", "b"]}, {"m": "unit"}).axes[0]
    bars = [c for c in ax.containers if c.has_xerr]
    assert [len(c.lines[0].get_xdata()) for c in bars] == [2, 1]
    open_marks = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
    assert [list(line.get_xdata()) for line in open_marks] == [[-1.5]]
    assert ax.get_xlim()[0] < -2.2 and ax.get_xlim()[1] > 2.1


def test_legend_names_only_what_is_drawn():
    (legend,) = no_interval("exact, 95% intervals").legends
    assert [t.get_text() for t in legend.get_texts()] == ["exact, 95% intervals: no interval"]
    # a mark of the second panel alone has its entry too
    other = Intervals([1.0], [-np.inf], [np.inf])
    panels = {"m": {"raw": Intervals([1.0], [0.5], [1.5])}, "n": {"raw": other}}
    (legend,) = plot_coefficients(panels, {"m": ["a"], "n": ["a"]}, {"m": "u", "n": "u"}).legends
    assert [t.get_text() for t in legend.get_texts()] == ["raw", "raw: no interval"]


def test_bars_are_drawn_over_small_marks():
    ax = plot_coefficients({"m": FITS}, {"m": ["a", "b"]}, {"m": "unit"}).axes[0]
    for mark, caps, bars in (c.lines for c in ax.containers):
        assert min(artist.get_zorder() for artist in (*caps, *bars)) > mark.get_zorder()
        # the caps stand out above and below the mark
        assert 1.5 * mark.get_markersize() < 2 * 5 and {cap.get_markersize() for cap in caps} == {10}


def test_bent_lines_are_explained_where_they_are_drawn():
    texts = [[t.get_text() for t in plot_curves({"G": gaussian(1.0)}, e).texts] for e in ([1.0], [])]
    assert any("straight line" in t for t in texts[0]) and not any("straight line" in t for t in texts[1])


def test_cost_marks_small_samples_and_joins_only_the_others():
    ax = built()[3].axes[0]
    crosses = next(line for line in ax.lines if line.get_marker() == "x")
    assert list(crosses.get_xdata()) == [2, 4, 6, 8]
    joined = next(line for line in ax.lines if line.get_label() == "hours, release")
    assert list(joined.get_xdata()) == [10, 11, 12]
    untrusted = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
    assert [list(line.get_xdata()) for line in untrusted] == [[8], [4, 6, 8]]
    horizontal = sorted(float(line.get_ydata()[0]) for line in ax.lines if list(line.get_xdata()) == [0, 1])
    assert horizontal == [0.05, 0.1]


def test_figures_open_no_window():
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    list(figures())
    assert plt.get_fignums() == before


@pytest.mark.parametrize("bad", [[np.nan], "text", [None]])
def test_intervals_refuse_what_is_no_number(bad):
    with pytest.raises((TypeError, ValueError), match="estimate"):
        Intervals(bad, [0.0], [1.0])


def test_cost_refuses_nan():
    with pytest.raises(ValueError, match=r"errors\['age'\]"):
        plot_cost([1.0], {"age": [np.nan]}, {"age": 0.1})
