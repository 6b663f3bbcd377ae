"""Contract of every index loss: derivatives, and unbiasedness by quadrature over the noise.

The reference never uses the correction's formula: the corrected loss is averaged over the noise's density and
must give the raw loss back, ``E f~(u + Z) = f(u)``.
"""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad

from privfit.estimators.errors import CapabilityError
from privfit.estimators.losses import (
    AbsoluteLoss,
    CheckLoss,
    CosineLoss,
    ExponentialLoss,
    HingeLoss,
    HuberLoss,
    IndexLoss,
    IndicatorLoss,
    LogisticLoss,
    PolynomialLoss,
    ReluLoss,
    SineLoss,
    SmoothedCheckLoss,
    SquaredLoss,
)
from privfit.estimators.symbols import Heat, Power, Resolvent, Symbol

LOSSES = [
    AbsoluteLoss(),
    CheckLoss(0.3),
    CosineLoss(1.3),
    ExponentialLoss(),
    HingeLoss(),
    HuberLoss(0.8),
    IndicatorLoss(-0.4, 1.1),
    LogisticLoss(),
    PolynomialLoss([1.0, -2.0, 0.5, 0.3, 0.2]),
    ReluLoss(),
    SineLoss(0.7),
    SmoothedCheckLoss(0.3, 0.5),
    SquaredLoss(),
]
SMOOTH = [loss for loss in LOSSES if loss.smooth]
POINTS = [-1.7, -0.2, 0.35, 2.4]


def name(loss):
    return type(loss).__name__


def laplace_mean(function, centre, b, kinks=()):
    """Integral of function(centre + b L), L Laplace(1), split where the integrand bends."""
    cuts = sorted({0.0, *[(k - centre) / b for k in kinks if abs(k - centre) < 38 * b]})
    edges = [-38.0, *cuts, 38.0]
    pieces = [
        quad(lambda t: function(centre + b * t) * math.exp(-abs(t)) / 2, lo, hi, epsabs=1e-12, limit=200)[0]
        for lo, hi in itertools.pairwise(edges)
    ]
    return sum(pieces)


def scalar(loss, symbol):
    return lambda u: float(loss.apply(u, symbol))


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_derivatives_match_finite_differences(loss):
    u, step = np.array(POINTS), 1e-5
    for order in (0, 1, 2, 3) if loss.smooth else (0, 1):
        slope = (loss.derivative(u + step, order) - loss.derivative(u - step, order)) / (2 * step)
        assert_allclose(loss.derivative(u, order + 1), slope, atol=2e-8, rtol=2e-8)


@pytest.mark.parametrize(
    ("s", "delta0"),
    [(0.65, 0.2), *(pytest.param(*law, marks=pytest.mark.slow) for law in ((0.65, 0.05), (0.65, 0.9), (0.3, 0.2)))],
)
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_zero_inflated_correction_is_unbiased(loss, s, delta0):
    symbol = Resolvent(delta0)(s * s / 2, 0)
    corrected = scalar(loss, symbol)
    for u in POINTS:
        mean = delta0 * corrected(u) + (1 - delta0) * laplace_mean(corrected, u, s / math.sqrt(2), loss.kinks)
        assert_allclose(mean, float(loss.value(u)), atol=3e-8)


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_table_of_closed_form_terms(loss):
    """The term to subtract, against its defining average (1/delta0 - 1)(E f(u+bL) - f(u))."""
    s, delta0 = 0.6, 0.2
    b, ratio = s * math.sqrt(delta0 / 2), (1 - delta0) / delta0
    for u in POINTS:
        smooth = laplace_mean(lambda v: float(loss.value(v)), u, b, loss.kinks)
        assert_allclose(loss.zil_correction(u, s, delta0), ratio * (smooth - float(loss.value(u))), atol=1e-8)


def test_published_closed_forms():
    s, d0 = 0.6, 0.2
    b, k = s * math.sqrt(d0 / 2), (1 - d0) / d0
    u = np.array([-0.4, 0.01, 1.2])
    bell = k * b / 2 * np.exp(-np.abs(u) / b)
    assert_allclose(CheckLoss(0.3).zil_correction(u, s, d0), bell, atol=1e-15)
    assert_allclose(AbsoluteLoss().zil_correction(u, s, d0), 2 * bell, atol=1e-15)
    assert_allclose(HingeLoss().zil_correction(1 - u, s, d0), bell, atol=1e-15)
    assert_allclose(PolynomialLoss([0, 0, 1]).zil_correction(u, s, d0), (1 - d0) * s**2, rtol=1e-14)
    factor = (1 - s**2 / 2) / (1 - d0 * s**2 / 2)
    assert_allclose(ExponentialLoss().zil_correction(u, s, d0), (1 - factor) * np.exp(u), rtol=1e-13)
    wave = (1 + 1.3**2 * s**2 / 2) / (1 + d0 * 1.3**2 * s**2 / 2)
    assert_allclose(SineLoss(1.3).zil_correction(u, s, d0), (1 - wave) * np.sin(1.3 * u), rtol=1e-13)


@pytest.mark.parametrize("shape", [1, 2, 4])
@pytest.mark.parametrize("loss", SMOOTH, ids=name)
def test_generalised_laplace_correction_is_unbiased(loss, shape):
    s = 0.6
    corrected = scalar(loss, Power(shape)(s * s / 2, 0))
    if shape == 1:
        averages = [laplace_mean(corrected, u, s / math.sqrt(2)) for u in POINTS]
    else:  # Gamma mixture of normals: Gauss-Hermite inside, adaptive outside
        nodes, weights = np.polynomial.hermite_e.hermegauss(80)
        weights = weights / weights.sum()
        log_norm = shape * math.log(shape) - math.lgamma(shape)

        def at_w(w, u):
            density = math.exp(log_norm + (shape - 1) * math.log(w) - shape * w)
            return density * float(weights @ loss.apply(u + s * math.sqrt(w) * nodes, Power(shape)(s * s / 2, 0)))

        averages = [quad(at_w, 1e-12, 25, args=(u,), limit=200)[0] for u in POINTS]
    assert_allclose(averages, loss.value(POINTS), atol=2e-6)


@pytest.mark.parametrize("loss", [ExponentialLoss(), SineLoss(0.7), SquaredLoss(), LOSSES[8]], ids=name)
def test_gaussian_correction_is_unbiased(loss):
    s = 0.6
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    for u in POINTS:
        mean = weights @ loss.apply(u + s * nodes, Heat()(s * s / 2, 0))
        assert_allclose(mean, float(loss.value(u)), rtol=1e-11)


FACTORS = [Power(1), Power(3), Resolvent(0.2), Heat()]


@pytest.mark.parametrize("factor", FACTORS, ids=str)
def test_symbol_derivatives_in_q(factor):
    q, step = 0.4, 1e-4
    for z in (-3.0, -0.1, 0.5):
        for nu in (0, 1):
            slope = (factor(q + step, nu).at(z) - factor(q - step, nu).at(z)) / (2 * step)
            assert_allclose(factor(q, nu + 1).at(z), slope, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=name)
@pytest.mark.parametrize("factor", [Resolvent(0.2), Power(2)], ids=str)
def test_derivatives_of_corrected_losses(loss, factor):
    """In u and in q, every order a Hessian needs."""
    if isinstance(factor, Power) and not loss.smooth:
        with pytest.raises(CapabilityError, match="kink"):
            loss.apply(0.1, factor(0.2, 0))
        return
    q, step, u = 0.2, 1e-4, np.array([-1.13, -0.21, 0.33, 2.4])
    for order in (0, 1):
        slope = (loss.apply(u + step, factor(q, 0), order) - loss.apply(u - step, factor(q, 0), order)) / 2e-4
        assert_allclose(loss.apply(u, factor(q, 0), order + 1), slope, rtol=1e-5, atol=1e-6)
    for nu, order in ((0, 0), (0, 1), (1, 0)):
        slope = (loss.apply(u, factor(q + step, nu), order) - loss.apply(u, factor(q - step, nu), order)) / 2e-4
        assert_allclose(loss.apply(u, factor(q, nu + 1), order), slope, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("b2", [0.01, 0.5, 30.0, 4000.0])
@pytest.mark.parametrize("power", [1, 2, 3])
def test_logistic_resolvent_against_laplace_averages(b2, power):
    """R^j f'' is the average of p(1-p) over a sum of j Laplace(b): composite Gauss-Legendre."""
    from scipy.special import expit

    b = math.sqrt(b2)
    nodes, weights = np.polynomial.legendre.leggauss(20)
    edges = np.linspace(-45.0, 45.0, 361)
    half = np.diff(edges)[:, None] / 2
    v = (half * nodes + (edges[:-1] + edges[1:])[:, None] / 2).ravel()
    w = (half * weights).ravel() * expit(v) * expit(-v)
    loss = LogisticLoss()
    for u in (-3.0, 0.0, 0.75, 12.25):  # the density bends on an edge of the grid
        t = np.abs(u - v) / b
        density = {1: 1 / 2, 2: (1 + t) / 4, 3: (3 + 3 * t + t * t) / 16}[power] * np.exp(-t) / b
        if b < 1:  # the density is the narrow factor: integrate over it instead
            t = np.abs(v)
            narrow = {1: 1 / 2, 2: (1 + t) / 4, 3: (3 + 3 * t + t * t) / 16}[power] * np.exp(-t)
            expected = np.sum((half * weights).ravel() * narrow * expit(u + b * v) * expit(-u - b * v))
        else:
            expected = np.sum(w * density)
        found = loss.apply(u, Symbol((1.0,), ((b2, power),)), 2)
        assert_allclose(found, expected, atol=2e-9)


def test_logistic_tails_are_finite_and_exact():
    u = np.array([-800.0, -40.0, 40.0, 800.0])
    loss = LogisticLoss()
    assert_allclose(loss.value(u), [0.0, math.exp(-40), 40.0, 800.0], rtol=1e-12)
    assert_allclose(loss.derivative(u), [0.0, math.exp(-40), 1.0, 1.0], rtol=1e-12, atol=1e-300)
    assert np.isfinite(loss.apply(u, Power(4)(3.0, 0), 1)).all()


def test_smoothed_check_is_the_average_over_logistic_noise():
    loss, raw = SmoothedCheckLoss(0.3, 0.5), CheckLoss(0.3)
    for r in POINTS:
        mean = sum(
            quad(lambda t, r=r: float(raw.value(r + 0.5 * t)) / (4 * math.cosh(t / 2) ** 2), lo, hi)[0]
            for lo, hi in ((-60, -2 * r), (-2 * r, 60))
        )
        assert_allclose(loss.value(r), mean, rtol=1e-8)


def test_capability_errors_name_the_way_out():
    for loss in (LogisticLoss(), SmoothedCheckLoss(0.5, 0.1)):
        with pytest.raises(CapabilityError, match=r"Gaussian.*SymmetricLaplace"):
            loss.apply(0.0, Heat()(0.1, 0))
    with pytest.raises(CapabilityError, match="ZeroInflatedLaplace"):
        CheckLoss().apply(0.0, Power(1)(0.1, 0))


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match=r"< 0\.5 for ExponentialLoss"):
        ExponentialLoss().zil_correction(0.0, 0.8, 0.2)
    for bad in (0.0, 1.0, -0.1, math.nan):
        with pytest.raises(ValueError, match="quantile"):
            CheckLoss(bad)
    with pytest.raises(ValueError, match="bandwidth"):
        SmoothedCheckLoss(0.5, 0.0)
    with pytest.raises(ValueError, match="upper"):
        IndicatorLoss(1.0, 1.0)
    with pytest.raises(ValueError, match="threshold"):
        HuberLoss(-1.0)
    with pytest.raises(ValueError, match="coefficients"):
        PolynomialLoss([])
    with pytest.raises(ValueError, match="delta0"):
        SquaredLoss().zil_correction(0.0, 1.0, 1.5)
    with pytest.raises(ValueError, match="frequency"):
        SineLoss(0.0)


def test_no_noise_means_no_correction():
    for loss in LOSSES:
        assert_allclose(loss.zil_correction(POINTS, 0.0, 0.2), 0.0)
        assert_allclose(loss.zil_correction(POINTS, 0.5, 1.0), 0.0)


class LogCosh(IndexLoss):
    """A user's loss with nothing but derivatives: log cosh u, by those of the logistic loss at 2u."""

    def derivative(self, u, order=1):
        u = np.asarray(u, float)
        line = (-u - math.log(2.0), -np.ones_like(u))[order] if order < 2 else 0.0
        return 2.0**order * LogisticLoss().derivative(2 * u, order) + line


def test_a_users_loss_gets_polynomial_corrections_from_its_derivatives():
    s, loss = 0.6, LogCosh()
    assert_allclose(loss.value(POINTS), np.log(np.cosh(POINTS)), rtol=1e-12)
    corrected = scalar(loss, Power(1)(s * s / 2, 0))
    for u in POINTS:
        assert_allclose(laplace_mean(corrected, u, s / math.sqrt(2)), float(loss.value(u)), atol=1e-9)
    with pytest.raises(CapabilityError, match=r"LogCosh .* Gaussian"):
        loss.apply(0.0, Heat()(0.1, 0))
    with pytest.raises(CapabilityError, match=r"LogCosh .* zero-inflated.*'dr'"):
        loss.apply(0.0, Resolvent(0.2)(0.1, 0))


def test_huber_under_plain_laplace_noise():
    """Its second derivative is bounded, so one Hessian is enough: exact for shape 1, refused for shape 2."""
    s, loss = 0.6, HuberLoss(0.8)
    corrected = scalar(loss, Power(1)(s * s / 2, 0))
    for u in POINTS:
        mean = laplace_mean(corrected, u, s / math.sqrt(2), loss.kinks)
        assert_allclose(mean, float(loss.value(u)), atol=1e-8)
    with pytest.raises(CapabilityError, match="kink"):
        loss.apply(0.0, Power(2)(0.1, 0))
    with pytest.raises(CapabilityError, match="Gaussian"):
        loss.apply(0.0, Heat()(0.1, 0))


@pytest.mark.parametrize(("shape", "s"), [(40, 1.0), (100, 0.3)])
def test_high_shapes_keep_their_accuracy(shape, s):
    """The polynomial in w would have lost all digits. Mean over s sqrt(W) N, by its Fourier transform."""
    q, t, step = s * s / 2.0, np.arange(0.0, 40.0, 0.05), 0.02
    z = np.arange(-9.0, 9.0 + step / 2, step)
    wave = (1.0 + q * t * t / shape) ** -shape
    wave[0] /= 2.0
    density = np.cos(np.outer(z, t)) @ wave * 0.05 / np.pi
    for u in (0.3, 2.0):
        corrected = LogisticLoss().apply(u + z, Power(shape)(q, 0))
        assert_allclose(density @ corrected * step, float(LogisticLoss().value(u)), rtol=1e-6)


def test_wide_resolvents_agree_on_both_sides_of_the_change_of_method():
    """Cells of `expression_average` beyond b = 40, Fourier below: one smooth function of b."""
    u, delta0 = np.linspace(-60.0, 60.0, 41), 0.2
    for order, nu in ((0, 0), (1, 0), (2, 0), (1, 1), (0, 2)):
        below, above = (
            LogisticLoss().apply(u, Resolvent(delta0)(b * b / delta0, nu), order) for b in (40.0 - 1e-9, 40.0 + 1e-9)
        )
        assert_allclose(below, above, atol=1e-8 * np.abs(below).max())
    wide = LogisticLoss().apply(u, Symbol((1.0,), ((300.0**2, 1),)), 2)
    assert_allclose(wide, np.exp(-np.abs(u) / 300.0) / 600.0, rtol=2e-2)  # the bell is a point beside b


def test_beside_an_extreme_resolvent_the_bell_is_a_point():
    b, u = 1e6, np.array([-2e6, -3e5, 4e4, 1e6])
    found = LogisticLoss().apply(u, Symbol((1.0,), ((b * b, 1),)), 2)
    assert_allclose(found, np.exp(-np.abs(u) / b) / (2 * b), rtol=5e-5)
    slope = LogisticLoss().apply(u, Symbol((1.0,), ((b * b, 1),)), 3)
    assert_allclose(slope, -np.sign(u) * np.exp(-np.abs(u) / b) / (2 * b * b), rtol=5e-5)


@pytest.mark.parametrize("b", [250.0, 700.0, 40_000.0])
def test_loss_and_derivatives_agree_beside_a_wide_resolvent(b):
    """Central differences: a loss that is widened is so as a whole, or a search for its minimum does not end."""
    symbol = Resolvent(0.8)(b**2 / 0.8, 0)
    h = max(b / 2000.0, 1.0)
    u, step = np.linspace(-8.0, 8.0, 41) * h, 0.02 * h
    kernel = LogisticLoss().compile([(symbol, order) for order in range(3)])
    below, at, above = (np.array(kernel(u + shift)) for shift in (-step, 0.0, step))
    slopes = (above - below)[:2] / (2.0 * step)
    assert_allclose(slopes[0], at[1], atol=1e-3)
    assert_allclose(slopes[1], at[2], atol=1e-3 / h)
