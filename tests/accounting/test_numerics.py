"""The numerical layer below the curves: Bessel functions, radial law, roots, argument checks."""

import math

import mpmath as mp
import numpy as np
import pytest

from privfit.accounting.bessel import log_kv, slope
from privfit.accounting.radial import radial_law
from privfit.accounting.roots import bisect_decreasing
from privfit.accounting.validation import check_array, check_choice, check_integer, check_number


@pytest.mark.parametrize("order", [-400.0, -29.5, -2.0, 0.0, 0.5, 1.0, 7.25, 29.9, 31.0, 499.0])
def test_bessel_functions_at_forty_digits(order):
    for z in (1e-5, 0.02, 0.7, 3.0, 40.0, 900.0) if abs(order) < 100 else (1e-5, 0.7, 40.0):
        with mp.workdps(40):
            exact = mp.log(mp.besselk(order, z))
            ratio = mp.mpf(z) * mp.besselk(order - 1, z) / mp.besselk(order, z)
        assert float(log_kv(order, np.array(z))) == pytest.approx(float(exact), rel=1e-14, abs=1e-14)
        assert float(slope(order, np.array(z))) == pytest.approx(float(ratio), rel=2e-13)


@pytest.mark.parametrize(("dim", "shape"), [(1, 1.0), (2, 1.0), (6, 4.0), (1000, 1.0), (1000, 501.0), (20, 40.0)])
def test_radial_density_integrates_to_one_and_drops_invert(dim, shape):
    law = radial_law(dim, shape)
    u = np.linspace(-60, 9.3, 60_000)
    assert np.trapezoid(np.exp(law.log_radial_density(u)), u) == pytest.approx(1.0, abs=1e-9)
    u = np.linspace(0.5, 4, 50)
    t = np.minimum(0.05, 0.5 * (law.at_zero - law.log_density(u)))
    w = law.solve_drop(u, t)
    exact = law._direct_log_density(u + w) - law._direct_log_density(u)
    assert np.allclose(exact, t, atol=1e-11 * max(1.0, dim / 10))


def test_second_moment_of_the_radial_law():
    law = radial_law(5, 3.0)
    u = np.linspace(-30, 9, 40_000)
    mean = np.trapezoid(np.exp(2 * u + law.log_radial_density(u)), u) / 6.0  # z^2 = 2k r^2, E r^2 = d
    assert mean == pytest.approx(5.0, rel=1e-8)


def test_roots_bracket_and_stop_at_the_ends():
    target = np.array([1e-300, 1.0, 1e300])
    low, high = bisect_decreasing(lambda x, t: t - np.exp(np.minimum(x, 700.0)), target)
    assert np.all(low <= np.log(target))
    assert np.all(np.log(target) <= high + 1e-12)
    low, high = bisect_decreasing(lambda x, t: t - x, np.array([-5.0, 5.0]), lower=-1.0, upper=2.0)
    assert low.tolist() == high.tolist() == [-1.0, 2.0]


def test_checks_name_the_parameter_and_the_range():
    assert check_number("x", np.float32(2), 0) == 2.0
    for bad, text in ((math.nan, "got nan"), (-1, ">= 0"), (10**400, "got inf")):
        with pytest.raises(ValueError, match=text):
            check_number("x", bad, 0)
    for bad in (True, "1", None, 1j, [1]):
        with pytest.raises(TypeError, match="x must be"):
            check_number("x", bad)
    assert check_number("x", np.array(3.0)) == 3.0
    with pytest.raises(TypeError, match="integer"):
        check_integer("n", 1.0, 0)
    with pytest.raises(ValueError, match=r"\[1, 5\]"):
        check_integer("n", 6, 1, 5)
    with pytest.raises(ValueError, match="'a', 'b'"):
        check_choice("mode", 1, ["a", "b"])
    with pytest.raises(ValueError, match="not nan"):
        check_array("v", [math.nan])
    with pytest.raises(TypeError, match="real numbers"):
        check_array("v", ["a"])
    with pytest.raises(ValueError, match="<= 1"):
        check_number("x", 2, high=1)
