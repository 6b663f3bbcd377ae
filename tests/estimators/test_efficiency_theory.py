"""Theory of the cost of corrections: second moments against simulation and quadrature, limits, the Bernoulli mean."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad

from privfit.estimators import CapabilityError
from privfit.estimators.efficiency_theory import (
    bernoulli_variance,
    large_noise_growth,
    slope_moment,
    small_noise_coefficient,
)
from privfit.estimators.losses import CheckLoss, HuberLoss, LogisticLoss, SineLoss, SquaredLoss
from privfit.estimators.symbols import Symbol

NAMES = ("exact", "dr", "sdr", "sl")


def simulated(loss, u, s, d0, correction, n=400_000, seed=0):
    """Second moment of a corrected slope and its Monte Carlo error, from the definitions of the corrections."""
    rng = np.random.default_rng(seed)
    first = u + rng.laplace(scale=s / math.sqrt(2), size=n) * (rng.random(n) >= d0)
    second = first + rng.laplace(scale=s * math.sqrt(d0 / 2), size=n)
    one, three, q = Symbol(), Symbol(), s * s / 2

    def slope(v):
        return loss.apply(v, one, 1)

    def bend(v):
        return loss.apply(v, three, 3)

    if correction == "exact":
        found = loss.apply(first, Symbol((1.0, -q), ((d0 * q, 1),)), 1)
    elif correction == "dr":
        found = (slope(first) - (1 - d0) * slope(second)) / d0
    elif correction == "sdr":
        found = slope(first) - (1 - d0) * q * bend(second)
    else:
        found = slope(second) - q * bend(second)
    return np.mean(found**2), np.std(found**2) / math.sqrt(n), np.mean(found)


@pytest.mark.parametrize("correction", NAMES)
@pytest.mark.parametrize("loss", [LogisticLoss(), SineLoss(1.5)], ids=lambda loss: type(loss).__name__)
def test_moments_against_simulation(loss, correction):
    for u, s, d0 in ((0.3, 0.5, 0.2), (-1.0, 2.0, 0.5)):
        moment, error, mean = simulated(loss, u, s, d0, correction)
        assert abs(slope_moment(loss, [u], s, d0, correction)[0] - moment) < 4.5 * error
        assert abs(mean - loss.derivative([u], 1)[0]) < 4.5 * math.sqrt(moment / 400_000)  # unbiased


@pytest.mark.parametrize("loss", [CheckLoss(0.3), HuberLoss(0.8)], ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("correction", ["exact", "dr"])
def test_kinked_losses_against_simulation(loss, correction):
    for u, s, d0 in ((0.2, 0.7, 0.3), (-0.5, 3.0, 0.1)):
        moment, error, _ = simulated(loss, u, s, d0, correction)
        assert abs(slope_moment(loss, [u], s, d0, correction)[0] - moment) < 4.5 * error


def test_moments_against_quadrature():
    """Exact correction of a sine, whose corrected slope is a factor times a cosine."""
    w, s, d0, u = 1.2, 1.7, 0.25, 0.4
    factor = (1 + w * w * s * s / 2) / (1 + d0 * w * w * s * s / 2)
    b = s / math.sqrt(2)

    def integrand(z):
        return (factor * w * math.cos(w * (u + z))) ** 2 * math.exp(-abs(z) / b) / (2 * b)

    smeared = 2 * quad(lambda z: (integrand(z) + integrand(-z)) / 2, 0, 60 * b, limit=500, epsabs=1e-12)[0]
    wanted = d0 * (factor * w * math.cos(w * u)) ** 2 + (1 - d0) * smeared
    assert_allclose(slope_moment(SineLoss(w), [u], s, d0), [wanted], rtol=1e-8)
    assert_allclose(slope_moment(SquaredLoss(), [0.7], 3.0, 0.4, "sl"), [0.49 + 9.0])


@pytest.mark.parametrize("correction", NAMES)
def test_small_noise(correction):
    """(A - E f'^2) / s^2 tends to c f''^2 (Proposition 5.1)."""
    loss, u, d0 = LogisticLoss(), np.array([0.4, -1.1]), 0.3
    start, bend = loss.derivative(u, 1) ** 2, loss.derivative(u, 2) ** 2
    s = 0.01
    found = (slope_moment(loss, u, s, d0, correction) - start) / s**2
    assert_allclose(found, small_noise_coefficient(correction, d0) * bend, rtol=2e-3)
    assert_allclose(slope_moment(loss, u, 0.0, d0, correction), start)


@pytest.mark.parametrize("correction", ["exact", "dr"])
def test_large_noise_of_a_slope_that_vanishes_far_out(correction):
    """A tends to f'^2 / delta0 (Proposition 6.1); f' a logistic bell, so that f is the logistic slope."""
    from privfit.estimators.squared_score import ShiftedLoss

    bell = ShiftedLoss([(1.0, LogisticLoss(), 1)])
    u, d0 = np.array([0.3, 1.0]), 0.25
    for s, room in ((100.0, 0.2), (2000.0, 0.012)):
        found = slope_moment(bell, u, s, d0, correction)
        wanted = [large_noise_growth(correction, 1, s, d0, float(e)) for e in bell.derivative(u, 1) ** 2]
        assert_allclose(found, wanted, rtol=room)


def bump_moment(dim, scale, correction, d0):
    """E of the squared sl or sdr term at x = 0 for g = exp(-|x|^2/2): integrals over the noise's mixing variable.

    Laplacian g = (r^2 - d) g. For N(0, v I): E exp(-r^2) = (1 + 2v)^(-d/2), and polynomials in r^2 against it.
    """

    def gaussian(v):
        c = v / (1 + 2 * v)  # variance under the tilted law
        weight = (1 + 2 * v) ** (-dim / 2)
        r2, r4 = dim * c, dim * (dim + 2) * c * c
        return weight, weight * (r2 - dim), weight * (r4 - 2 * dim * r2 + dim * dim)

    q = scale**2 / 2

    def over_noise(part):
        return quad(lambda t: math.exp(t - math.exp(t)) * part(scale**2 * math.exp(t)), -60, 5, limit=800, epsabs=0)[0]

    square, cross, bend = (over_noise(lambda v, k=k: gaussian(v)[k]) for k in range(3))
    if correction == "sl":
        return square - 2 * q * cross + q * q * bend
    return ((1 - d0) * q) ** 2 * bend  # the dominating term of sdr


@pytest.mark.parametrize("dim, scale, room", [(1, 1e3, 0.02), (2, 1e9, 0.15), (3, 1e3, 0.02), (5, 1e3, 0.001)])
@pytest.mark.parametrize("correction", ["sl", "sdr"])
def test_large_noise_growth_by_dimension(dim, scale, room, correction):
    """J by radial integrals, A by the mixing variable: their ratio tends to 1 (slowly, 1/log, in the plane)."""

    def sphere(r):
        return 2 * math.pi ** (dim / 2) / math.gamma(dim / 2) * r ** (dim - 1)

    def kernel(r):
        return 1.0 if dim <= 2 else math.gamma(dim / 2 - 1) / (4 * math.pi ** (dim / 2)) * r ** (2 - dim)

    energy = quad(lambda r: sphere(r) * kernel(r) * ((r * r - dim) * math.exp(-r * r / 2)) ** 2, 0, 12)[0]
    found = bump_moment(dim, scale, correction, 0.3)
    assert_allclose(found, large_noise_growth(correction, dim, scale, 0.3, energy), rtol=room)


def test_sdr_over_sl_and_growth_of_a_slope():
    """d = 1, Proposition 6.1: A_sl / s^3 tends to J / (4 sqrt 2), and sdr / sl to (1 - delta0)^2."""
    from privfit.estimators.squared_score import ShiftedLoss

    bell = ShiftedLoss([(1.0, LogisticLoss(), 1)])
    energy = quad(lambda v: float(bell.derivative([v], 3)[0]) ** 2, -40, 40, limit=200)[0]
    sl, sdr = (slope_moment(bell, [0.3], 400.0, 0.2, name)[0] for name in ("sl", "sdr"))
    assert_allclose(sl, large_noise_growth("sl", 1, 400.0, 0.2, energy), rtol=0.01)
    assert_allclose(sdr / sl, 0.64, rtol=0.01)


def test_bernoulli_mean():
    """Laplace noise and randomised response simulated; the optimum is below both at every budget."""
    rng = np.random.default_rng(0)
    theta, eps, n = 0.3, 1.2, 400_000
    x = (rng.random(n) < theta).astype(float)
    laplace = x + rng.laplace(scale=1 / eps, size=n)
    inflated = np.where(rng.random(n) < 0.25, x, laplace)
    keep = math.exp(eps) / (1 + math.exp(eps))
    answer = np.where(rng.random(n) < keep, x, 1 - x)
    share = (answer - (1 - keep)) / (2 * keep - 1)
    released = ((laplace, "sl", 0.0), (inflated, "sdr", 0.25), (inflated, "exact", 0.25), (share, "optimal", 0.0))
    for values, name, d0 in released:
        assert_allclose(bernoulli_variance(theta, eps, name, d0), values.var(), rtol=0.02)
    for budget in (1e-4, 0.1, 1.0, 30.0, 700.0):
        best = bernoulli_variance(0.5, budget, "optimal")
        assert 0.25 <= best <= bernoulli_variance(0.5, budget, "sl")
    assert_allclose(bernoulli_variance(0.0, 1e-4, "optimal") * 1e-8, 1.0, rtol=1e-6)  # half the Laplace variance


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: slope_moment(SquaredLoss(), [0.0], 1.0, 0.0, "dr"), "delta0"),
        (lambda: slope_moment(SquaredLoss(), [0.0], 1.0, 1.0), "delta0"),
        (lambda: slope_moment(SquaredLoss(), [0.0], -1.0, 0.5), "scale"),
        (lambda: slope_moment(SquaredLoss(), [0.0], 1.0, 0.5, "naive"), "correction"),
        (lambda: small_noise_coefficient("dr", 0.0), "delta0"),
        (lambda: large_noise_growth("sl", 0, 5.0, 0.1, 1.0), "dim"),
        (lambda: large_noise_growth("sl", 1, 0.5, 0.1, 1.0), "scale"),
        (lambda: large_noise_growth("sl", 1, 5.0, 0.1, -1.0), "energy"),
        (lambda: bernoulli_variance(1.5, 1.0, "sl"), "theta"),
        (lambda: bernoulli_variance(0.5, 0.0, "sl"), "epsilon"),
        (lambda: bernoulli_variance(0.5, 1.0, "gauss"), "mechanism"),
    ],
)
def test_mistakes(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_what_has_no_formula():
    for loss in (CheckLoss(0.5), HuberLoss(1.0)):
        for correction, d0 in (("sl", 0.2), ("sdr", 0.2), ("exact", 0.0)):
            with pytest.raises(CapabilityError, match="point mass"):
                slope_moment(loss, [0.0], 1.0, d0, correction)
