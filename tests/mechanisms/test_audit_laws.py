"""Densities, marginals and radii that noise is compared with: against mpmath, each other, and samples."""

import dataclasses

import numpy as np
import pytest

from privfit.mechanisms import Box
from privfit.mechanisms.additive import AdditiveLaw
from privfit.mechanisms.audit_laws import cell_mass, log_density, marginal_cdf, mixed_radius_cdf, radius, radius_cdf
from tests.mutants.cases import LAWS, rare, unit


@pytest.mark.parametrize(("dim", "shape"), [(1, 1), rare(2, 1), (3, 3), rare(20, 2)])
def test_radius_is_the_integral_of_the_bessel_density(dim, shape):
    from mpmath import mp, mpf

    order = shape - mpf(dim) / 2

    def density(r):
        return r ** (dim - 1 + order) * mp.besselk(order, mp.sqrt(2 * shape) * r)

    middle = mp.sqrt(dim)
    whole = mp.quad(density, [0, middle / 3, middle, 3 * middle, mp.inf])
    part = mp.quad(density, [0, middle / 3, middle])
    assert mixed_radius_cdf(np.array([float(middle)]), dim, shape)[0] == pytest.approx(float(part / whole), abs=1e-11)


@pytest.mark.parametrize(("law", "domain"), [own for own in LAWS if isinstance(own[1], Box)], ids=str)
def test_density_fits_the_distribution_functions(law, domain):
    """Densities integrate to the marginal of one coordinate, and the radius follows it for one column."""
    one = dataclasses.replace(law, scale=1.7)
    z = np.linspace(-60, 60, 400_001)[:, None] * one.scale
    weight = np.exp(log_density(one, z))
    share = np.cumsum(weight) / weight.sum()
    atom = one.exact_fraction
    for at in (-1.3, 0.4, 2.0):
        noise = np.interp(at * one.scale, z[:, 0], share)
        assert marginal_cdf(one)(np.array([at]))[0] == pytest.approx(atom * (at > 0) + (1 - atom) * noise, abs=3e-4)
    size = radius_cdf(one, 1)(np.array([0.7]))[0]
    assert size == pytest.approx(np.diff(marginal_cdf(one)(np.array([-0.7, 0.7])))[0], abs=1e-12)


@pytest.mark.parametrize(("law", "domain"), LAWS, ids=str)
def test_no_cell_is_likelier_than_said(law, domain):
    assert isinstance(law, AdditiveLaw)
    z = law.release(np.zeros((50_000, domain.dim)), unit(domain.dim), rng=3).frame
    halves = np.full(domain.dim, 0.25)
    noisy = z[(z != 0).any(axis=1)]
    share = np.mean((np.abs(noisy) / law.scales(domain.dim) <= halves).all(axis=1))
    assert share <= cell_mass(law, halves) + 5e-3
    inside = np.mean(radius(law, noisy) <= 1.0)
    atom = law.exact_fraction
    assert inside == pytest.approx((radius_cdf(law, domain.dim)(np.array([1.0]))[0] - atom) / (1 - atom), abs=0.012)
