"""Which loss can be corrected for which noise, and how: every cell works, or says what is missing and what to use.

Columns of the tables are `NOISES`, rows the losses by their kind. + works, - is a CapabilityError. The quick tests
compile the operators of every cell; the slow ones evaluate them: risk, gradient and Hessian agree, and the corrected
loss has the mean f(u) over the density of the noise, by quadrature.
"""

import math
from functools import lru_cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

from privfit.estimators import HuberRegression, LogisticRegression, MEstimator, Quantile
from privfit.estimators.block_sums import make_plan
from privfit.estimators.corrections import correction_terms
from privfit.estimators.errors import CapabilityError
from privfit.estimators.losses import (
    AbsoluteLoss,
    CheckLoss,
    CosineLoss,
    ExponentialLoss,
    HingeLoss,
    HuberLoss,
    IndicatorLoss,
    LogisticLoss,
    Loss,
    PolynomialLoss,
    ReluLoss,
    SineLoss,
    SmoothedCheckLoss,
    SmoothedLoss,
    SquaredHingeLoss,
    SquaredLoss,
)
from privfit.estimators.losses.randomized_label import RandomizedLabelLoss
from privfit.estimators.noise import resolve_noise
from privfit.estimators.risk import Design, Risk
from privfit.estimators.strata import IndexNoise
from privfit.estimators.symbols import Heat, Power, Resolvent
from privfit.mechanisms import Gaussian, Laplace, SymmetricLaplace, ZeroInflatedLaplace

S = 0.3
ZIL, SL = ZeroInflatedLaplace(S, 0.3), SymmetricLaplace(S)
NOISES = {
    "none": None,
    "ZIL": ZIL,
    "SL": SL,
    "GL shape 2": SymmetricLaplace(S, shape=2),
    "GL shape 5": SymmetricLaplace(S, shape=5),
    "GL shape 40": SymmetricLaplace(S, shape=40),
    "product Laplace": Laplace(S),
    "Gaussian": Gaussian(S),
    "ZIL, a clean column": {0: ZIL},
    "SL, a clean column": {1: SL},
    "ZIL and SL columns": {0: ZIL, 1: SL},
    "ZIL and ZIL columns": {0: ZIL, 1: ZeroInflatedLaplace(S, 0.5)},
    "ZIL, response SL": {(0, 1): ZIL, "y": SL},
    "ZIL with the response": {(0, 1, "y"): ZIL},
    "ZIL and Gaussian columns": {0: ZIL, 1: Gaussian(S)},
    "GL 2 and GL 5 columns": {0: SymmetricLaplace(S, shape=2), 1: SymmetricLaplace(S, shape=5)},
}
MOMENTS = {
    "squared": SquaredLoss(),
    "polynomial": PolynomialLoss([1.0, -2.0, 0.5, 0.3, 0.2]),
    "exponential, Poisson": ExponentialLoss(),
    "sine": SineLoss(0.7),
    "cosine": CosineLoss(1.3),
}
SMOOTH = {
    "logistic": LogisticLoss(),
    "logistic, randomised label": RandomizedLabelLoss(LogisticLoss(), 0.8),
    "smoothed check": SmoothedCheckLoss(0.3, 0.4),
    "smoothed hinge": SmoothedLoss(HingeLoss(), 0.3),
}
KINKED = {
    "check": CheckLoss(0.3),
    "hinge": HingeLoss(),
    "hinge, randomised label": RandomizedLabelLoss(HingeLoss(), 0.8),
    "ReLU": ReluLoss(),
    "absolute value": AbsoluteLoss(),
    "indicator": IndicatorLoss(-0.4, 1.1),
}
BENT = {"Huber": HuberLoss(0.8), "squared hinge": SquaredHingeLoss()}
FUNCTIONS = {
    "function": Loss.from_callable(np.cosh),
    "function, 2 derivatives": Loss.from_callable(np.cosh, [np.sinh, np.cosh]),
    "function, 4 derivatives": Loss.from_callable(np.cosh, [np.sinh, np.cosh, np.sinh, np.cosh]),
}
WRITTEN = {  # sympy builds these: when they are first needed
    "moments": {"formula u**3 + cos(u)": "u**3 + cos(u)"},
    "smooth": {"formula sqrt(1 + u**2)": "sqrt(1 + u**2)"},
    "kinked": {"formula max(0, 1 - u)": "max(0, 1 - u)", "formula exp(-abs(u))": "exp(-abs(u))"},
    "bent": {"formula abs(u)**3": "abs(u)**3"},
}
EVERY, NONE = "+" * 16, "+" + "-" * 15
#    none ZIL SL GL2 GL5 GL40 product Gauss | ZIL,clean SL,clean ZIL+SL ZIL+ZIL | ZIL,ySL ZILxy ZIL+Gauss GL2+GL5
KINDS = {
    "moments": {"exact": EVERY, "dr": "++------+-+-+++-", "sdr": "++------+-+-+++-", "sl": "++------+-+-+++-"},
    "smooth": {
        "exact": "+++++++-++++++-+",
        "dr": "++------+-+-++--",
        "sdr": "++------+-+-++--",
        "sl": "++------+-+-++--",
    },
    "bent": {
        "exact": "+++-----+++-++--",
        "dr": "++------+-+-++--",
        "sdr": "++------+----+--",
        "sl": "++------+----+--",
    },
    "kinked": {"exact": "++------+----+--", "dr": "++------+----+--", "sdr": NONE, "sl": NONE},
    "function": {"exact": NONE, "dr": "++------+----+--", "sdr": NONE, "sl": NONE},
    "function, 2 derivatives": {
        "exact": "+-+------+------",
        "dr": "++------+-+-++--",
        "sdr": "++------+----+--",
        "sl": "++------+----+--",
    },
    "function, 4 derivatives": {
        "exact": "+-++--+--+------",
        "dr": "++------+-+-++--",
        "sdr": "++------+-+-++--",
        "sl": "++------+-+-++--",
    },
}
BUILT_IN = {
    **{name: (loss, "moments") for name, loss in MOMENTS.items()},
    **{name: (loss, "smooth") for name, loss in SMOOTH.items()},
    **{name: (loss, "bent") for name, loss in BENT.items()},
    **{name: (loss, "kinked") for name, loss in KINKED.items()},
    **{name: (loss, name) for name, loss in FUNCTIONS.items()},
}
FORMULAS = {name: (text, kind) for kind, own in WRITTEN.items() for name, text in own.items()}
THETA = np.array([0.7, -0.5])


@lru_cache(maxsize=32)
def written(text):
    return Loss.from_expression(text)


def noise_of(law, correction, draws=2):
    """Noise of the index ``o + x'theta`` and its model; a response is in the offset o."""
    model = resolve_noise(law, [0, 1])
    terms = correction_terms(correction, model.parts, draws)
    variances = np.array([part.variances[:-1] for part in model.parts]).reshape(-1, 2)
    return IndexNoise(tuple(terms), variances, np.array([part.variances[-1] for part in model.parts]))


def check_cell(loss, law, correction, wanted):
    """The operators compile, or the error says what is missing and what to use instead."""
    if wanted == "+":
        make_plan(loss, noise_of(law, correction), THETA, 2, True)
        return
    with pytest.raises(CapabilityError) as caught:
        make_plan(loss, noise_of(law, correction), THETA, 2, True)
    text = str(caught.value)
    assert any(word in text for word in ("missing is", "draws a second noise", "needs one law"))
    assert any(word in text for word in ("Use ", "use ", "Release ", "Smooth "))
    if correction == "exact":
        assert "correction='exact', which" not in text


@pytest.mark.parametrize("correction", ["exact", "dr", "sdr", "sl", "naive"])
@pytest.mark.parametrize("name", BUILT_IN)
def test_every_combination_works_or_says_why_not(name, correction):
    loss, kind = BUILT_IN[name]
    row = EVERY if correction == "naive" else KINDS[kind][correction]
    for law, wanted in zip(NOISES.values(), row, strict=True):
        check_cell(loss, law, correction, wanted)


@pytest.mark.parametrize("name", [name for name in FORMULAS if "sqrt" not in name and "**3" not in name])
def test_formulas_have_the_corrections_of_their_kind(name):
    text, kind = FORMULAS[name]
    for correction in ("exact", "dr"):
        for law, wanted in zip(NOISES.values(), KINDS[kind][correction], strict=True):
            check_cell(written(text), law, correction, wanted)


def test_messages_name_the_formula_and_fit_the_correction():
    with pytest.raises(CapabilityError, match=r"max\(0, 1 - u\) has a kink.*correction='exact' or 'dr'"):
        check_cell(written("max(0, 1 - u)"), ZIL, "sdr", "+")
    with pytest.raises(CapabilityError, match=r"two zero-inflated laws at once.*Smooth"):
        check_cell(CheckLoss(), NOISES["ZIL and ZIL columns"], "exact", "+")
    with pytest.raises(CapabilityError, match="got Laplace of shape 2"):
        correction_terms("wsz", resolve_noise(NOISES["GL shape 2"], [0, 1]).parts)
    with pytest.raises(CapabilityError, match="2 of them among 2 x ZeroInflatedLaplace"):
        correction_terms("dr", resolve_noise(NOISES["ZIL and ZIL columns"], [0, 1]).parts)
    with pytest.raises(CapabilityError, match="up to order 10, 2 are given"):
        check_cell(FUNCTIONS["function, 2 derivatives"], NOISES["GL shape 5"], "exact", "+")


# the slow grid ------------------------------------------------------------------------------------------


def components(factors, q, second):
    """The index noise as a mixture: weights, and the Laplace scales and normal variance of each component."""
    mixture = [(1.0, (), 0.0)]
    for factor, half in zip(factors, q, strict=True):
        own = [(1.0, (), 0.0)]
        if half > 0.0 and isinstance(factor, Resolvent):  # a second draw fills the atom
            own = [(1.0, (math.sqrt(half),), 0.0)]
            if not second:
                own = [(factor.delta0, (), 0.0), (1.0 - factor.delta0, (math.sqrt(half),), 0.0)]
        elif half > 0.0 and isinstance(factor, Power):
            own = [(1.0, (math.sqrt(half / factor.shape),) * factor.shape, 0.0)]
        elif half > 0.0 and isinstance(factor, Heat):
            own = [(1.0, (), 2.0 * half)]
        mixture = [(w * v, a + b, s + t) for w, a, s in mixture for v, b, t in own]
    return mixture


def density(z, scales, variance):
    """Density of a sum of Laplace variables and a normal one."""
    if len(scales) == 1 and not variance:
        return np.exp(-np.abs(z) / scales[0]) / (2.0 * scales[0])
    if len(scales) == 2 and not variance:
        a, b = scales
        if a == b:
            return (1.0 + np.abs(z) / a) * np.exp(-np.abs(z) / a) / (4.0 * a)
        return (a * np.exp(-np.abs(z) / a) - b * np.exp(-np.abs(z) / b)) / (2.0 * (a * a - b * b))
    return by_fourier(z.tobytes(), scales, variance)


@lru_cache(maxsize=64)
def by_fourier(points, scales, variance):
    z = np.frombuffer(points)
    t = np.arange(0.0, 700.0, 0.1)  # the characteristic function falls like t^-10 at least
    wave = np.exp(-0.5 * variance * t * t)
    for b in scales:
        wave = wave / (1.0 + b * b * t * t)
    wave[0] *= 0.5
    out = np.zeros_like(z)
    for chosen in np.array_split(np.arange(z.size), max(1, z.size // 200)):
        out[chosen] = np.cos(np.outer(z[chosen], t)) @ wave * 0.1 / np.pi
    return out


def mean_over_noise(function, u, factors, q, second, cuts):
    """E function(u + noise), panels of 24 Gauss points that end at the kinks."""
    points, weights = np.polynomial.legendre.leggauss(24)
    total = 0.0
    for weight, scales, variance in components(factors, q, second):
        if not scales and not variance:
            total += weight * float(function(np.array([u]))[0])
            continue
        reach = min(14.0, 38.0 * max(scales, default=0.0) + 9.0 * math.sqrt(variance))
        reach = reach if len(scales) < 3 else 10.0 * math.sqrt(2.0 * sum(b * b for b in scales)) + 2.0
        edges = np.unique([*np.linspace(-reach, reach, 81), 0.0, *[c - u for c in cuts if abs(c - u) < reach]])
        half = np.diff(edges) / 2.0
        z = ((edges[1:] + edges[:-1])[:, None] / 2.0 + half[:, None] * points).ravel()
        w = (half[:, None] * weights).ravel()
        total += weight * float((w * density(z, scales, variance)) @ function(u + z))
    return total


def works(name):
    loss, kind = BUILT_IN[name] if name in BUILT_IN else FORMULAS[name]
    loss = written(loss) if isinstance(loss, str) else loss
    for correction, row in KINDS[kind].items():
        for (label, law), wanted in zip(NOISES.items(), row, strict=True):
            if wanted == "+" and law is not None:
                yield loss, label, law, correction


@pytest.mark.slow
@pytest.mark.parametrize("name", [*BUILT_IN, *FORMULAS])
def test_every_correction_that_works_is_unbiased(name):
    for loss, label, law, correction in works(name):
        model = resolve_noise(law, [0, 1])
        q = noise_of(law, correction).half_variance(np.array([-0.7, 0.5]))
        factors = [part.factor for part in model.parts]
        for u in (-0.85, 0.37, 1.6):
            found = 0.0
            for term in correction_terms(correction, model.parts, 1):
                kernel = loss.compile([(term.symbol(q, [0] * q.size), 0)])
                found += mean_over_noise(lambda v, k=kernel: k(v)[0], u, factors, q, term.design > 0, loss.kinks)
            assert_allclose(found, loss.value([u])[0], rtol=2e-6, atol=2e-6, err_msg=f"{label}, {correction}, u = {u}")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*BUILT_IN, *FORMULAS])
def test_gradients_and_hessians_of_every_cell(name):
    """Against central differences. Kinks are kept 1e-3 away from every index."""
    rng = np.random.default_rng(0)
    x, offset = rng.normal(size=(2, 40)), rng.normal(size=40)
    for loss, label, law, correction in works(name):
        noise = noise_of(law, correction)
        designs = [Design(x + 0.1 * k, offset) for k in range(1 + max(term.design for term in noise.terms))]
        indices = np.concatenate([design.index(THETA) for design in designs])
        away = all(np.abs(indices - kink).min() > 1e-3 for kink in loss.kinks)
        assert away, "choose another seed"
        risk = Risk.of(loss, noise.terms, designs, noise.variances, noise.constants)
        value, gradient, hessian = risk.derivatives(THETA)
        assert np.isfinite([value, *gradient, *hessian.ravel()]).all()
        for j, step in enumerate(2e-5 * np.eye(2)):
            slope = (risk.value(THETA + step) - risk.value(THETA - step)) / 4e-5
            bend = (risk.gradient(THETA + step) - risk.gradient(THETA - step)) / 4e-5
            known = max(1.0, abs(value))
            assert_allclose(gradient[j], slope, rtol=1e-5, atol=2e-6 * known, err_msg=f"{label}, {correction}")
            assert_allclose(hessian[j], bend, rtol=1e-4, atol=1e-5 * known, err_msg=f"{label}, {correction}")


def test_gaussian_noise_is_refused_in_the_user_s_words():
    """First what cannot be done and what to do, the mathematics last; no class of a loss is named."""
    rng = np.random.default_rng(0)
    x, law = rng.normal(size=(50, 1)), Gaussian(1.0)
    label = (x[:, 0] > 0).astype(int)
    for model, arguments, name in (
        (Quantile(0.3, noise=law), (x,), "the check loss of the quantile 0.3"),
        (LogisticRegression(noise=law), (x, label), "the logistic loss"),
        (HuberRegression(noise=law), (x, x[:, 0]), "the Huber loss"),
        (MEstimator("log(cosh(u))", noise=law), (x, x[:, 0]), "log(cosh(u))"),
    ):
        with pytest.raises(CapabilityError) as caught:
            model.fit(*arguments)
        text = str(caught.value)
        assert text.startswith(f"{name} has no exact correction under Gaussian noise. Release with SymmetricLaplace")
        assert text.index("correction='naive'") < text.index("inverse heat flow")
        assert "Loss" not in text.replace("SymmetricLaplace", "")
