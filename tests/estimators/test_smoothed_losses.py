"""Smoothed kinks and losses of margins: averages over the kernel, and over the noise, give the raw loss back."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad

from privfit.estimators import CapabilityError
from privfit.estimators.losses import (
    AbsoluteLoss,
    CheckLoss,
    ClippedSquareLoss,
    HingeLoss,
    HuberLoss,
    IndicatorLoss,
    LogisticLoss,
    RandomizedLabelLoss,
    ReluLoss,
    SmoothedLoss,
    SquaredHingeLoss,
)
from privfit.estimators.symbols import Heat, Power, Resolvent, Symbol

PIECEWISE = [
    AbsoluteLoss(),
    CheckLoss(0.3),
    ClippedSquareLoss(0.7),
    HingeLoss(),
    HuberLoss(0.8),
    IndicatorLoss(-0.4, 1.1),
    ReluLoss(),
    SquaredHingeLoss(),
]
POINTS = [-1.7, 0.35, 2.4]


def name(loss):
    return type(loss).__name__


def mean_over(density, function, centre, scale, kinks, reach):
    """Integral of function(centre + scale t) density(t), split where the integrand bends."""
    cuts = sorted({0.0, *((k - centre) / scale for k in kinks if abs(k - centre) < reach * scale)})
    edges = [-reach, *cuts, reach]
    return sum(
        quad(lambda t: function(centre + scale * t) * density(t), lo, hi, epsabs=1e-12, limit=200)[0]
        for lo, hi in itertools.pairwise(edges)
    )


def laplace(t):
    return math.exp(-abs(t)) / 2


def logistic(t):
    return 0.25 / math.cosh(t / 2) ** 2


def kernel_of_order_four(t):
    """The logistic density minus pi^2/6 times its second derivative: w'' = w - 6 w^2."""
    w = logistic(t)
    return w - math.pi**2 / 6 * (w - 6 * w * w)


@pytest.mark.parametrize("loss", PIECEWISE, ids=name)
@pytest.mark.parametrize(("order", "kernel"), [(2, logistic), (4, kernel_of_order_four)])
def test_it_is_the_average_over_the_kernel(loss, order, kernel):
    smooth = SmoothedLoss(loss, 0.3, order)
    for u in POINTS:
        mean = mean_over(kernel, lambda v: float(loss.value(v)), u, 0.3, loss.kinks, 60.0)
        assert_allclose(smooth.value(u), mean, atol=1e-9)


@pytest.mark.parametrize("loss", PIECEWISE, ids=name)
def test_kinks_come_back_as_the_bandwidth_vanishes(loss):
    assert_allclose(SmoothedLoss(loss, 1e-3).value(POINTS), loss.value(POINTS), atol=1e-12)


@pytest.mark.parametrize("loss", PIECEWISE, ids=name)
@pytest.mark.parametrize("factor", [Resolvent(0.2), Power(2)], ids=str)
def test_derivatives_of_corrected_losses(loss, factor):
    """In u and in q, every order a Hessian needs, against central differences."""
    smooth, q, step, u = SmoothedLoss(loss, 0.3), 0.2, 1e-4, np.array([-1.13, -0.21, 0.33, 2.4])
    for order in (0, 1):
        sides = [smooth.apply(u + sign * step, factor(q, 0), order) for sign in (1, -1)]
        assert_allclose(smooth.apply(u, factor(q, 0), order + 1), (sides[0] - sides[1]) / 2e-4, rtol=1e-5, atol=1e-5)
    for nu, order in ((0, 0), (0, 1), (1, 0)):
        sides = [smooth.apply(u, factor(q + sign * step, nu), order) for sign in (1, -1)]
        assert_allclose(smooth.apply(u, factor(q, nu + 1), order), (sides[0] - sides[1]) / 2e-4, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "loss",
    [loss if name(loss) == "HingeLoss" else pytest.param(loss, marks=pytest.mark.slow) for loss in PIECEWISE],
    ids=name,
)
def test_inverses_are_unbiased_for_the_smoothed_loss(loss):
    """E over the noise gives the smoothed loss: SL, and zero-inflated noise, by quadrature."""
    smooth, s = SmoothedLoss(loss, 0.3), 0.6
    for u in POINTS[1:]:
        corrected = smooth.compile([(Power(1)(s * s / 2, 0), 0), (Resolvent(0.3)(s * s / 2, 0), 0)])
        for place, share in ((0, 0.0), (1, 0.3)):

            def at(v, place=place, corrected=corrected):
                return float(corrected(np.array([v]))[place][0])

            mean = share * at(u) + (1 - share) * mean_over(laplace, at, u, s / math.sqrt(2), (), 38.0)
            assert_allclose(mean, float(smooth.value(u)), atol=1e-7)


@pytest.mark.parametrize("shape", [2, 4])
@pytest.mark.parametrize("loss", [HuberLoss(0.8), SquaredHingeLoss()], ids=name)
def test_inverses_of_generalised_laplace_noise_are_unbiased(loss, shape):
    """Gamma mixture of normals: Gauss-Hermite inside, adaptive outside."""
    smooth, s = SmoothedLoss(loss, 0.4), 0.5
    symbol = Power(shape)(s * s / 2, 0)
    nodes, weights = np.polynomial.hermite_e.hermegauss(160)
    log_norm = shape * math.log(shape) - math.lgamma(shape)

    def at_w(w, u):
        density = math.exp(log_norm + (shape - 1) * math.log(w) - shape * w)
        return density * float(weights @ smooth.apply(u + s * math.sqrt(w) * nodes, symbol)) / weights.sum()

    for u in POINTS[1:]:
        assert_allclose(quad(at_w, 1e-12, 15, args=(u,), limit=100)[0], float(smooth.value(u)), atol=1e-5)


@pytest.mark.parametrize("loss", [SquaredHingeLoss(), ClippedSquareLoss(0.7)], ids=name)
def test_zero_inflated_inverse_without_smoothing(loss):
    s, share = 0.65, 0.2
    symbol = Resolvent(share)(s * s / 2, 0)

    def corrected(v):
        return float(loss.apply(v, symbol))

    for u in POINTS:
        mean = mean_over(laplace, corrected, u, s / math.sqrt(2), loss.kinks, 38.0)
        assert_allclose(share * corrected(u) + (1 - share) * mean, float(loss.value(u)), atol=1e-8)
        assert_allclose(loss.derivative(u), (loss.value(u + 1e-5) - loss.value(u - 1e-5)) / 2e-5, atol=1e-8)


@pytest.mark.parametrize("loss", [LogisticLoss(), HingeLoss(), SmoothedLoss(SquaredHingeLoss(), 0.3)], ids=name)
def test_randomized_labels_average_to_the_loss_of_the_true_one(loss):
    """p F(m) + (1 - p) F(-m) = f(m), for values, derivatives and corrected losses."""
    keep, symbol = 0.7, Resolvent(0.3)(0.2, 0)
    flipped, m = RandomizedLabelLoss(loss, keep), np.array(POINTS)
    for order in (0, 1):
        sign = (-1.0) ** order  # of the derivative in u at the flipped label
        for one, raw in (
            (lambda v, order=order: flipped.derivative(v, order), loss.derivative(m, order)),
            (lambda v, order=order: flipped.apply(v, symbol, order), loss.apply(m, symbol, order)),
        ):
            assert_allclose(keep * one(m) + (1 - keep) * sign * one(-m), raw, atol=1e-12)
    assert set(flipped.kinks) == {k * s for k in loss.kinks for s in (1, -1)}


def test_bad_arguments():
    with pytest.raises(ValueError, match="bandwidth"):
        SmoothedLoss(HingeLoss(), 0.0)
    with pytest.raises(ValueError, match="order"):
        SmoothedLoss(HingeLoss(), 0.1, 3)
    with pytest.raises(ValueError, match="threshold"):
        ClippedSquareLoss(0.0)
    for keep in (0.5, 0.2, 1.1):
        with pytest.raises(ValueError, match="keep"):
            RandomizedLabelLoss(HingeLoss(), keep)
    with pytest.raises(CapabilityError, match="Gaussian"):
        SmoothedLoss(HuberLoss(1.0), 0.1).apply(0.0, Heat()(0.1, 0))
    with pytest.raises(CapabilityError, match="SmoothedLoss"):
        SquaredHingeLoss().apply(0.0, Symbol((1.0, -0.4, 0.04)))
