"""Figures of what privacy costs: the numbers drawn are the numbers given."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from privfit.estimators.regions import ConfidenceRegion
from privfit.figures import plot_efficiency, plot_errors, plot_regions


def drawn(ax):
    return {line.get_label(): line.get_xydata() for line in ax.lines}


def test_errors_are_drawn_with_their_ratio_and_unknown_ones_are_named():
    figure = plot_errors(["const", "age", "flat"], [0.2, 0.3, np.inf], [2.0, 1.5, np.inf])
    ax = figure.axes[0]
    lines = drawn(ax)
    assert_allclose(lines["release"][:, 0], [0.2, 0.3])
    assert_allclose(lines["raw data, estimated from the release"][:, 0], [0.1, 0.2])
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["const", "age", "flat (unknown)"]
    assert [text.get_text() for text in ax.texts] == ["x 2.00", "x 1.50"]
    low, high = ax.get_xlim()
    assert low < 0.1 and high > 0.3
    with pytest.raises(ValueError, match="entries"):
        plot_errors(["a"], [1.0, 2.0], [1.0, 2.0])


def test_release_errors_are_drawn_alone_where_those_of_raw_data_are_unknown():
    ax = plot_errors(["const", "age"], [0.2, 0.3], [np.inf, np.inf]).axes[0]
    lines = drawn(ax)
    assert_allclose(lines["release"][:, 0], [0.2, 0.3])
    assert lines["raw data: unknown from this release"].size == 0 and not ax.texts
    assert ax.get_yticklabels()[0].get_text() == "const (raw data unknown)"
    with pytest.raises(ValueError, match="errors must have a finite one"):
        plot_errors(["age"], [np.inf], [np.inf])


def test_efficiency_against_the_budget():
    ax = plot_efficiency([1, 2, 8], {"SL": [np.inf, 4.0, 1.25], "ZIL": [5.0, 2.0, 1.1]})
    lines = drawn(ax)
    assert_allclose(lines["ZIL"], [[1, 5.0], [2, 2.0], [8, 1.1]])
    assert np.isnan(lines["SL"][0, 1])
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "2", "8"]
    right = ax.child_axes[0]
    ax.figure.draw_without_rendering()
    assert_allclose(sorted(right.get_ylim()), sorted(np.array(ax.get_ylim()) ** -2.0), rtol=1e-6)
    for budgets, factors in (([0.0], [1.0]), ([1.0], [0.0]), ([1.0], [1.0, 2.0])):
        with pytest.raises(ValueError, match="positive"):
            plot_efficiency(budgets, {"x": factors})


def test_regions_have_their_ellipse_and_centre():
    region = ConfidenceRegion.of(np.array([1.0, -2.0]), np.array([[1.0, 0.5], [0.5, 2.0]]), 0.9)
    ax = plot_regions({"90 %": region}, ("age", "hours"))
    edge, centre = (line.get_xydata() for line in ax.lines)
    gap = np.linalg.solve(np.linalg.cholesky(region.covariance), (edge - region.centre).T)
    assert_allclose(np.linalg.norm(gap, axis=0), region.radius)
    assert_allclose(centre, [[1.0, -2.0]])
    with pytest.raises(ValueError, match="2 coefficients"):
        plot_regions({"x": ConfidenceRegion.of(np.zeros(3), np.eye(3), 0.9)}, ("a", "b"))
