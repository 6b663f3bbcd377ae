"""Confidence regions: membership against the Wald test, volume against Monte Carlo, the boundary."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import chi2, f

from privfit.estimators import LinearRegression
from privfit.estimators.regions import ConfidenceRegion

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = X @ [1.0, 0.5, 0.0] + RNG.normal(size=300)


def test_membership_is_what_the_wald_test_does_not_reject():
    fit = LinearRegression().fit(X, Y)
    for contrasts in (None, np.eye(4)[1:3], [[0, 1, -1, 0]]):
        region = fit.confidence_region(contrasts, 0.9)
        rows = np.eye(4) if contrasts is None else np.atleast_2d(contrasts)
        points = rows @ fit.params_ + 0.15 * RNG.normal(size=(60, len(rows)))
        accepted = np.array([fit.wald_test(rows, point)[1] >= 0.1 for point in points])
        assert (region.contains(points) == accepted).all()
        assert accepted.any() and not accepted.all()
        assert region.contains(points[0]).shape == ()


def test_volume_is_that_of_the_points_inside():
    region = ConfidenceRegion.of(np.array([1.0, 2.0, 3.0]), np.array([[1, 0.5, 0], [0.5, 2, 0.3], [0, 0.3, 0.5]]), 0.8)
    half = region.radius * np.sqrt(np.diag(region.covariance))
    points = region.centre + half * np.random.default_rng(1).uniform(-1, 1, (200_000, 3))
    share = region.contains(points).mean()
    assert_allclose(region.volume, share * np.prod(2 * half), rtol=5 * np.sqrt((1 - share) / share / 200_000))
    assert_allclose(region.radius**2, chi2.ppf(0.8, 3))
    few = ConfidenceRegion.of(np.zeros(3), np.eye(3), 0.8, 11.0)
    assert_allclose(few.radius**2, 3 * f.ppf(0.8, 3, 11))


def test_boundary_lies_on_the_ellipse():
    region = LinearRegression().fit(X, Y).confidence_region(np.eye(4)[1:3])
    edge = region.boundary(101)
    inverse = np.linalg.inv(region.covariance)
    gap = edge - region.centre
    assert_allclose(np.einsum("ij,jk,ik->i", gap, inverse, gap), region.radius**2)
    assert_allclose(edge[0], edge[-1])
    turned = np.unwrap(np.arctan2(*(gap @ np.linalg.cholesky(inverse)).T))
    assert_allclose(abs(turned[-1] - turned[0]), 2 * np.pi)


def test_what_has_no_region():
    fit = LinearRegression().fit(X, Y)
    with pytest.raises(ValueError, match="contrasts must be a finite array of shape"):
        fit.confidence_region([[1.0, 0.0]])
    with pytest.raises(ValueError, match="independent rows"):
        fit.confidence_region([[1.0, 0, 0, 0], [2.0, 0, 0, 0]])
    with pytest.raises(ValueError, match="level"):
        fit.confidence_region(level=1.0)
    with pytest.raises(ValueError, match="2 coefficients, got 4"):
        fit.confidence_region().boundary()
    with pytest.raises(ValueError, match="coordinates"):
        fit.confidence_region().contains([1.0, 2.0])
    with pytest.warns(UserWarning):
        flat = LinearRegression().fit(np.c_[X, np.ones(300)], Y)
    with pytest.raises(ValueError, match="infinite"):
        flat.confidence_region()
    assert flat.confidence_region(np.eye(5)[1:3]).volume > 0
