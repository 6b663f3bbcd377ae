"""Exact curves of (generalised) symmetric Laplace noise."""

import json
import math
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import kv

import privfit.accounting as pa
from privfit.accounting.symmetric_laplace import SymmetricLaplaceCurve
from tests.accounting.reference_profile import symmetric_laplace_delta

POINTS = json.loads((Path(__file__).parent / "reference" / "tradeoff.json").read_text())["points"]


@pytest.mark.parametrize("point", POINTS, ids=lambda p: f"d{p['dim']}-c{p['c']}-k{p.get('shape', 1)}")
def test_reference_points(point):
    curve = pa.symmetric_laplace(point["dim"], point["c"], point.get("shape", 1))
    alpha, beta = curve.error_rates(point["log_ratio"])
    assert alpha == pytest.approx(point["alpha"], abs=1e-11)
    assert beta == pytest.approx(point["beta"], abs=1e-11)
    assert curve.delta(point["log_ratio"], bound="estimate") == pytest.approx(point["delta"], abs=1e-11)


@pytest.mark.parametrize("c", [0.05, 0.8, 3.0])
def test_one_dimension_is_the_laplace_curve(c):
    general, closed = SymmetricLaplaceCurve(1, c, 1.0), pa.laplace(math.sqrt(2) * c)
    assert pa.symmetric_laplace(1, c) == closed
    eps = np.linspace(0, 0.98 * closed.a, 9)
    assert np.allclose(general.delta(eps, bound="estimate"), closed.delta(eps), rtol=1e-10)
    alpha = np.linspace(0.001, 0.999, 50)
    # the atoms at +-a are approached, from below, to the last panel's distance from the largest loss
    assert np.allclose(general.curve(alpha), closed.curve(alpha), atol=2e-7)
    assert np.all(general.curve(alpha) <= closed.curve(alpha) + 1e-12)


@pytest.mark.parametrize("dim", [2, 3, 7, 60, 400, 1000])
@pytest.mark.parametrize("c", [0.01, 0.7, 5.0])
def test_total_variation_is_that_of_a_half_space_in_every_dimension(dim, c):
    curve = pa.symmetric_laplace(dim, c)
    assert curve.delta(0.0, bound="estimate") == pytest.approx(-math.expm1(-c / math.sqrt(2)), rel=1e-10)


@pytest.mark.parametrize(("dim", "shape"), [(1, 3), (2, 2), (4, 3), (6, 4), (20, 11), (5, 2.5)])
def test_total_variation_of_other_shapes(dim, shape):
    """The best test at t = 0 looks at one coordinate, whose density is an explicit Bessel function."""
    c = 0.6
    v, rate = shape - 0.5, math.sqrt(2 * shape)

    def density(x):
        return 2 * shape**shape / math.gamma(shape) / math.sqrt(2 * math.pi) * (x / rate) ** v * kv(v, rate * x)

    expected = 2 * quad(density, 1e-14, c / 2, epsabs=1e-14)[0]
    assert pa.symmetric_laplace(dim, c, shape).delta(0.0, bound="estimate") == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("dim", "c", "shape"),
    [(100, 30.0, 51), (1000, 30.0, 501), (6, 1000.0, 1), (3, 0.01, 2), (2, 0.01, 2), (2, 1e-8, 2), (40, 1e-8, 1)],
)
def test_extreme_parameters_keep_the_symmetry(dim, c, shape):
    """delta(0) = 1 - 2 alpha(0); for rare events and tiny shifts the integral lives in unusual places."""
    curve = SymmetricLaplaceCurve(dim, c, float(shape))
    alpha, _ = curve.error_rates(0.0)
    assert curve.delta(0.0, bound="estimate") == pytest.approx(1 - 2 * alpha, abs=2e-9)
    if c >= 30:
        assert curve.delta(0.0) > 1 - 1e-9
    if c <= 0.01 and shape > 1:
        # total variation of a small shift: c times the density of one coordinate at its centre
        v = shape - 0.5
        centre = shape**shape / math.gamma(shape) / math.sqrt(2 * math.pi) * 2**v * math.gamma(v) / (2 * shape) ** v
        assert curve.delta(0.0, bound="estimate") == pytest.approx(c * centre, rel=1e-4)


def test_a_failed_check_is_an_error_not_a_number(monkeypatch):
    import sys

    module = sys.modules["privfit.accounting.symmetric_laplace"]
    monkeypatch.setattr(module, "CHECK", 1e-30)
    with pytest.raises(ArithmeticError, match="miss their own check"):
        pa.symmetric_laplace(5, 0.731).delta(0.5)


def agrees_at_many_digits(dim, c, shape, t):
    with mp.workdps(50 + int(t)):  # the region can be a ball of radius e^-t
        alpha, exceed, delta = symmetric_laplace_delta(dim, c, shape, t)
        if not delta > mp.mpf(10) ** -300:  # a relative error is claimed above that only
            assert float(delta) <= SymmetricLaplaceCurve(dim, c, float(shape)).delta(t) <= 1.01e-300
            return
        beta, log_delta = float(1 - exceed), float(mp.log(delta))
        alpha = float(alpha)
    curve = SymmetricLaplaceCurve(dim, c, float(shape))
    assert curve.error_rates(t)[0] == pytest.approx(alpha, rel=1e-9)
    assert curve.error_rates(t)[1] == pytest.approx(beta, rel=1e-9, abs=1e-9 * float(exceed))
    panels = curve.log_delta(np.full(9, t), bound="estimate")[0]
    point = SymmetricLaplaceCurve(dim, c, float(shape)).log_delta(t, bound="estimate")
    assert panels == pytest.approx(log_delta, abs=5e-10)
    assert point == pytest.approx(log_delta, abs=5e-10)
    if alpha > 0:
        assert curve.curve(alpha) <= beta * (1 + 1e-15)
        assert curve.curve(alpha) == pytest.approx(beta, rel=3e-9, abs=1e-9 * float(exceed))


@pytest.mark.parametrize(
    ("dim", "c", "shape", "t"),
    [
        pytest.param(3, 0.5, 1, 1.5, marks=pytest.mark.slow),
        pytest.param(3, 1e-6, 1, 2e-7, marks=pytest.mark.slow),
        pytest.param(3, 0.02, 1, 100.0, marks=pytest.mark.slow),
        (2, 0.4, 1.5, 0.3),
        pytest.param(9, 2.0, 4, 12.0, marks=pytest.mark.slow),
        pytest.param(20, 1e-3, 10.5, 1e-3, marks=pytest.mark.slow),
    ],
)
def test_every_digit_of_the_tail(dim, c, shape, t):
    agrees_at_many_digits(dim, c, shape, t)


def random_cases(count):
    rng = np.random.default_rng(7)
    for _ in range(count):
        dim = int(rng.choice([1, 2, 3, 4, 7, 20, 100, 1000, 10_000]))
        shape = (dim + 1) / 2 if dim == 1 or rng.random() < 0.5 else (dim - 1) / 2
        c = float(10 ** rng.uniform(-6, 1.5 if dim < 100 else 0))
        top = math.sqrt(2 * shape) * c
        t = float(top * rng.uniform(0.05, 0.9)) if rng.random() < 0.6 or shape > dim / 2 else min(3 * top, 12.0)
        yield dim, c, shape, t


@pytest.mark.slow
@pytest.mark.parametrize(("dim", "c", "shape", "t"), list(random_cases(60)))
def test_every_digit_of_the_tail_at_random(dim, c, shape, t):
    agrees_at_many_digits(dim, c, shape, t)


@pytest.mark.parametrize(
    ("dim", "shape"), [(1, 2.0), pytest.param(2, 1.0, marks=pytest.mark.slow), (6, 1.0), (6, 4.0), (12, 1.0)]
)
def test_both_ends_of_the_curve(dim, shape):
    curve = SymmetricLaplaceCurve(dim, 0.3, shape)
    assert curve.curve([0.0, 1.0], bound="estimate").tolist() == [1.0, 0.0]
    # the chord from (0, 1) lies above a convex curve, and the slope at zero is the largest ratio
    assert 1 - 1e-9 >= curve.curve(1e-300) >= 1 - 2e-9
    assert curve.curve(1 - 1e-15) <= 1e-15


@pytest.mark.parametrize("t", [30.0, 45.0])
def test_a_tiny_ball_of_rejection(t):
    """For shape (d-1)/2 and large t the region is a ball of radius R, where P has constant density."""
    dim, c, shape = 9, 2.0, 4
    with mp.workdps(40):
        rate = mp.sqrt(2 * shape)
        level = -rate * c - mp.log(c) + t
        radius = mp.lambertw(rate * mp.exp(-level)).real / rate
        density = 8 * mp.log(rate) - mp.loggamma(8) - rate * c - mp.log(c)
        log_alpha = density + mp.loggamma(4.5) - mp.log(2) - mp.loggamma(5.5) + 9 * mp.log(radius)
    assert pa.symmetric_laplace(dim, c, shape).error_rates(t)[0] == pytest.approx(float(mp.exp(log_alpha)), rel=1e-11)


def direct_delta(dim, c, shape, eps, n=1200):
    """Integral of (q - e^eps p)+ in polar coordinates about the centre of Q: no error rates involved."""
    v, rate = shape - dim / 2, math.sqrt(2 * shape)

    def log_density(r):
        return v * np.log(r) + np.log(kv(abs(v), rate * r))

    x, w = np.polynomial.legendre.leggauss(n)
    low = -14.0
    log_r = low + 0.5 * (x + 1) * (math.log(90.0) - low)
    r, wr = np.exp(log_r), w * 0.5 * (math.log(90.0) - low)
    angle = 0.5 * math.pi * (x + 1)
    sines = np.sin(angle) ** (dim - 2)
    wa = w * sines / (w * sines).sum()
    # SL: constant of the radial density through its own normalisation
    radial = np.exp(log_density(r) + dim * log_r)
    radial *= wr / (radial * wr).sum()
    other = np.sqrt(r[:, None] ** 2 + c * c + 2 * r[:, None] * c * np.cos(angle))
    loss = log_density(r)[:, None] - log_density(other)
    return float(radial @ (np.maximum(-np.expm1(eps - loss), 0.0) @ wa))


@pytest.mark.parametrize(
    ("dim", "c", "shape", "eps"),
    [
        (3, 0.5, 1, 1.5),
        (4, 0.9, 2.25, 1.0),
        (2, 0.5, 2, 0.9),
        pytest.param(6, 0.02, 1, 4.0, marks=pytest.mark.slow),
        pytest.param(6, 1.5309, 4, 4.0, marks=pytest.mark.slow),
        pytest.param(10, 0.3465, 6, 1.0, marks=pytest.mark.slow),
    ],
)
def test_tail_against_a_two_dimensional_integral(dim, c, shape, eps):
    expected = direct_delta(dim, c, shape, eps)
    assert pa.symmetric_laplace(dim, c, shape).delta(eps, bound="estimate") == pytest.approx(expected, rel=2e-3)


def test_simulation_agrees():
    rng = np.random.default_rng(11)
    dim, c, n = 3, 1.2, 300_000
    noise = np.sqrt(rng.exponential(size=(n, 1))) * rng.standard_normal((n, dim))
    radius, moved = np.linalg.norm(noise, axis=1), np.linalg.norm(noise - c * np.eye(dim)[0], axis=1)
    g = lambda r: 0.5 * np.log(r) * -1 + np.log(kv(0.5, math.sqrt(2) * r))  # noqa: E731
    t = 0.6
    alpha = (g(moved) - g(radius) > t).mean()
    expected = pa.symmetric_laplace(dim, c).error_rates(t)[0]
    assert abs(alpha - expected) < 4 * math.sqrt(expected / n)


def test_monotone_in_c_and_dimension_with_the_limit_below():
    eps = np.array([0.0, 0.5, 2.0])
    by_c = [pa.symmetric_laplace(6, c).delta(eps) for c in (0.1, 0.3, 0.9, 2.7)]
    assert np.all(np.diff(by_c, axis=0) > 0)
    by_dim = [pa.symmetric_laplace(d, 0.9).delta(eps[1:]) for d in (1, 2, 3, 6, 30, 300)]
    assert np.all(np.diff(by_dim, axis=0) > 0)
    limit = pa.symmetric_laplace_limit(0.9).delta(eps[1:])
    assert np.all(limit > by_dim[-1])
    gap = [limit - pa.symmetric_laplace(d, 0.9).delta(eps[1:]) for d in (100, 400)]
    assert np.all(gap[1] < gap[0] / 3)  # the distance falls like 1/d


@pytest.mark.parametrize(("dim", "shape"), [(2, 2), (3, 2), (6, 4), (10, 6), (1, 4)])
def test_integer_shapes_above_half_the_dimension_are_pure(dim, shape):
    c = 0.4
    curve = pa.symmetric_laplace(dim, c, shape)
    top = math.sqrt(2 * shape) * c
    assert curve.max_loss == pytest.approx(top)
    assert curve.epsilon(0.0) <= top
    assert curve.delta(top) == pytest.approx(0.0, abs=1e-299)
    assert 0 < curve.delta(0.999 * top) < 1e-3


def test_largest_loss_between_half_the_dimension_and_pure():
    curve = pa.symmetric_laplace(4, 0.5, 2.25)
    v, z = 0.25, math.sqrt(4.5) * 0.5
    at_zero = math.log(2 ** (v - 1) * math.gamma(v))
    assert curve.max_loss == pytest.approx(at_zero - math.log(z**v * kv(v, z)), rel=1e-10)
    assert pa.symmetric_laplace(4, 0.5, 2).max_loss == math.inf


@pytest.mark.parametrize(
    ("dim", "expected"),
    [(2, (0.46193, 0.12042, 1.52007)), (3, (0.30635, 0.01362, 0.22052)), (6, (0.19422, 0.00624, 0.01958))],
)
def test_exact_noise_table(dim, expected):
    for (eps, delta), c in zip([(1, 1e-2), (1, 1e-5), (4, 1e-5)], expected, strict=True):
        found = 1 / pa.calibrate(lambda s: pa.symmetric_laplace(dim, 1 / s), pa.Budget(eps, delta), rtol=1e-6)
        assert found == pytest.approx(c, abs=1.1e-5)


VARIANCES = [
    (1, 1, 1e-5, {1: 2.00, 2: 3.20, 5: 5.54}),
    (2, 1, 1e-5, {1: 68.95, 2: 3.47, 3: 4.38, 8: 7.11}),
    (3, 1, 1e-5, {2: 3.96, 3: 4.66, 6: 6.45}),
    (6, 1, 1e-5, {4: 6.37, 3: 7.85, 5: 6.72, 16: 9.49}),
    (10, 1, 1e-5, {6: 8.33, 5: 8.61, 20: 10.31}),
    (20, 1, 1e-5, {11: 10.64, 16: 10.75, 40: 11.85}),
    (2, 4, 1e-5, {1: 0.43, 2: 0.22}),
    (6, 4, 1e-5, {1: 2609, 4: 0.43, 3: 0.49, 8: 0.56}),
    (20, 4, 1e-5, {11: 0.80, 40: 0.94}),
    (3, 1, 1e-9, {2: 4.00}),
    (10, 1, 1e-9, {6: 10.60}),
    (20, 1, 1e-9, {11: 16.44}),
]
ROWS = [(d, e, delta, k, var) for d, e, delta, row in VARIANCES for k, var in row.items()]


@pytest.mark.parametrize(("dim", "eps", "delta", "shape", "variance"), ROWS)
def test_variance_table(dim, eps, delta, shape, variance):
    """The stated scale meets the budget and a slightly smaller one fails: no solver needed to check it."""
    printed = 0.5 if variance > 1000 else 0.0101  # the last printed digit
    enough = pa.symmetric_laplace(dim, 1 / math.sqrt(variance + printed), shape)
    too_little = pa.symmetric_laplace(dim, 1 / math.sqrt(variance - printed), shape)
    assert enough.delta(eps) <= delta < too_little.delta(eps, bound="lower")


def test_best_shape_needs_less_noise_than_the_gaussian_mechanism():
    gaussian = pa.calibrate(lambda s: pa.gaussian(1 / s), pa.Budget(1, 1e-5)) ** 2
    assert gaussian == pytest.approx(13.92, abs=0.005)
    for dim, shape, ratio in ((1, 1, 6.9), (6, 4, 2.1), (20, 11, 1.3)):
        variance = gaussian / ratio
        assert pa.symmetric_laplace(dim, 1 / math.sqrt(variance), shape).delta(1.0) <= 1e-5


def test_large_shape_approaches_the_gaussian_curve():
    eps = np.array([0.0, 0.5, 1.0])
    gap = [np.abs(pa.symmetric_laplace(2, 0.7, k).delta(eps) - pa.gaussian(0.7).delta(eps)).max() for k in (20, 200)]
    assert gap[1] < gap[0] / 8


def test_figure_of_the_paper():
    """(0.8, 0.17) with delta0 = 0.05 needs c = 0.50252; the paper rounds it to 0.5."""
    c = pa.limit_noise(0.8, (0.17 - 0.05) / 0.95)
    assert c == pytest.approx(0.5025212930547985, rel=1e-12)
    curve = pa.zil_limit(c, 0.05)
    assert curve.delta(0.8, bound="estimate") == pytest.approx(0.17, abs=1e-12)
    lines = curve.envelope([0.0, 0.8])
    alpha = np.linspace(0, 1, 101)
    assert np.all(lines.curve(alpha) <= curve.curve(alpha) + 1e-12)
    line = np.maximum(1 - 0.17 - math.exp(0.8) * alpha, math.exp(-0.8) * (1 - 0.17 - alpha))
    assert np.all(lines.curve(alpha) >= np.maximum(line, 0) - 1e-12)
    assert curve.curve(0.0) == pytest.approx(0.95)


def test_paper_settings_in_one_dimension():
    for delta0, scale, eps in ((0.1, 0.94, 1.5045), (0.05, 1.4, 1.0102)):
        assert pa.zil(1, 1 / scale, delta0).epsilon(delta0 * (1 + 1e-12)) == pytest.approx(eps, abs=6e-5)
        exact = pa.calibrate(lambda s, d=delta0: pa.zil(1, 1 / s, d), pa.Budget(round(eps, 1), delta0 + 1e-13))
        assert exact == pytest.approx({0.1: 0.94281, 0.05: 1.41421}[delta0], abs=1e-5)


@pytest.mark.parametrize(
    "bad",
    [{"dim": 0}, {"dim": 20_000}, {"c": 0.0}, {"c": float("nan")}, {"shape": 0.0}, {"shape": float("inf")}],
)
def test_bad_parameters(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        pa.symmetric_laplace(**({"dim": 2, "c": 1.0} | bad))


@pytest.mark.parametrize("bad", [{"dim": 2.0}, {"dim": True}, {"c": "1"}, {"shape": None}])
def test_wrong_types(bad):
    with pytest.raises(TypeError, match=next(iter(bad))):
        pa.symmetric_laplace(**({"dim": 2, "c": 1.0} | bad))


@pytest.mark.parametrize(
    ("dim", "c", "shape"),
    [
        pytest.param(7704, 9.4, 2.0, marks=pytest.mark.slow),
        (1931, 1e-3, 1.0),
        pytest.param(3677, 1.5e-4, 0.489, marks=pytest.mark.slow),
        (3, 1.0, 0.3),
    ],
)
def test_far_tail_in_high_dimension_is_a_power(dim, c, shape):
    """P[L > t] is below every float there, delta is not: it falls like e^(-2k t / (d - 2k))."""
    curve = SymmetricLaplaceCurve(dim, c, shape)
    kappa, unit = 2 * shape / (dim - 2 * shape), dim - 2 * shape
    t = np.array([60.0, 150.0, 250.0, 340.0, 349.0, 351.0, 400.0]) * unit
    t = t[kappa * t < 680]
    assert np.allclose(np.diff(curve.log_delta(t, bound="estimate")), -kappa * np.diff(t), rtol=1e-8)
    far = 600.0 / kappa
    assert math.log(curve.delta(far)) == pytest.approx(curve.log_delta(t[0]) - kappa * (far - t[0]), abs=1e-6)
    eps = curve.epsilon(1e-300)
    assert curve.log_delta(eps) == pytest.approx(math.log(1e-300), abs=1e-6)
    if shape in (1.0, 2.0):  # the curve in the limit of the dimension bounds it
        assert eps <= pa.symmetric_laplace_limit(c, int(shape)).epsilon(1e-300)


@pytest.mark.parametrize(("dim", "c"), [(963, 1.4e-5), pytest.param(5056, 1e-6, marks=pytest.mark.slow), (40, 7e-5)])
def test_shapes_just_above_half_the_dimension_keep_the_bulk(dim, c):
    """The largest loss is ten thousand times the usual one: many thresholds at once agree with one at a time."""
    curve = SymmetricLaplaceCurve(dim, c, dim / 2 + 1e-3)
    eps = curve._separation * np.array([0.0, 0.01, 0.02, 0.05, 0.1, 0.2])
    one = [SymmetricLaplaceCurve(dim, c, dim / 2 + 1e-3).delta(float(e)) for e in eps]
    assert np.allclose(curve.delta(eps), one, rtol=1e-7)
    assert curve.curve(0.5) == pytest.approx(0.5 - curve.delta(0.0), rel=1e-3)


@pytest.mark.parametrize(
    ("dim", "c", "shape"), [(2, 5.137984756947667, 2), (4, 5.0656, 3), (6, 5.2054, 4), (3, 0.05, 2)]
)
def test_whole_profile_up_to_the_largest_loss(dim, c, shape):
    """Close to the end two routes to delta agree only to 1e-8 where the laws are far apart: it is said, not raised."""
    curve = pa.symmetric_laplace(dim, c, shape)
    delta = curve.delta(np.linspace(0.0, curve.max_loss, 300))
    assert np.all(np.diff(delta) <= 0)
    assert delta[-1] <= 1e-300
    assert curve.precision.relative == (1e-8 if c > 5 else 1e-9)
