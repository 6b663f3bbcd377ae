"""Gradient and Hessian of corrected risks against finite differences, for every correction and noise law."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from privfit.estimators.corrections import correction_terms, draw_second_noise
from privfit.estimators.errors import CapabilityError
from privfit.estimators.losses import LogisticLoss, SmoothedCheckLoss, SquaredLoss
from privfit.estimators.noise import resolve_noise
from privfit.estimators.risk import Design, Risk
from privfit.mechanisms import Gaussian, Laplace, SymmetricLaplace, ZeroInflatedLaplace

NAMES = ["a", "b", "c"]
LAWS = {
    "none": None,
    "sl": SymmetricLaplace((0.6, 0.3, 0.8)),
    "shape4": SymmetricLaplace(0.6, shape=4),
    "laplace": {("a", "b"): Laplace(0.4), "c": SymmetricLaplace(0.5, shape=2)},
    "zil": ZeroInflatedLaplace((0.9, 0.7, 1.1), 0.2),
    "zil and response": {("a", "b", "y"): ZeroInflatedLaplace(0.7, 0.3)},
    "two parts": {("a", "b"): ZeroInflatedLaplace(0.7, 0.3), "c": ZeroInflatedLaplace(0.5, 0.2)},
    "mixed": {("a", "b"): ZeroInflatedLaplace(0.7, 0.3), "y": Laplace(0.5)},
}


def make_risk(law, correction, kind, penalty=0.0, n=400):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(3, n))
    y = x.sum(axis=0) + rng.normal(size=n)
    model = resolve_noise(law, NAMES)
    terms = correction_terms(correction, model.parts)
    variances = np.array([part.variances[:3] for part in model.parts]).reshape(-1, 3)
    constants = np.array([part.variances[3] for part in model.parts])
    shifts = [np.zeros((4, n))]
    if any(term.design for term in terms):
        shifts.append(draw_second_noise(model.parts, n, 0))
    if kind == "logistic":
        labels = (y > 0).astype(float) * 1.4 - 0.2  # an unbiased label need not lie in [0, 1]
        designs = [Design(x + s[:3], None) for s in shifts]
        return Risk.of(LogisticLoss(), terms, designs, variances, 0 * constants, labels, np.full(3, penalty))
    loss = SquaredLoss() if kind == "squared" else SmoothedCheckLoss(0.3, 0.7)
    designs = [Design(-(x + s[:3]), y + s[3]) for s in shifts]
    return Risk.of(loss, terms, designs, variances, constants, None, np.full(3, penalty))


CASES = [(name, "exact", kind) for name in LAWS for kind in ("logistic", "squared", "check")]
CASES += [("zil", correction, kind) for correction in ("dr", "sdr", "sl", "naive") for kind in ("logistic", "check")]
CASES += [("mixed", "dr", "check"), ("zil and response", "sdr", "squared")]


@pytest.mark.parametrize(("law", "correction", "kind"), CASES)
def test_gradient_and_hessian(law, correction, kind):
    risk = make_risk(LAWS[law], correction, kind, penalty=0.3)
    theta, step = np.array([0.7, -0.4, 0.5]), 1e-4
    gradient, hessian = risk.gradient(theta), risk.hessian(theta)
    for j in range(3):
        e = np.zeros(3)
        e[j] = step
        slope = (risk.value(theta + e) - risk.value(theta - e)) / (2 * step)
        assert_allclose(gradient[j], slope, rtol=2e-7, atol=2e-7)
        bend = (risk.gradient(theta + e) - risk.gradient(theta - e)) / (2 * step)
        assert_allclose(hessian[j], bend, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("law", "correction", "kind"), CASES)
def test_scores_average_to_the_gradient(law, correction, kind):
    risk = make_risk(LAWS[law], correction, kind)
    theta = np.array([0.7, -0.4, 0.5])
    scores = risk.scores(theta)
    assert_allclose(scores.mean(axis=1), risk.gradient(theta), atol=1e-12)
    assert_allclose(risk.score_covariance(theta), np.cov(scores, bias=True), rtol=1e-9, atol=1e-12)


def test_blocks_do_not_change_the_answer():
    """More than one block, two designs."""
    risk = make_risk(LAWS["zil"], "dr", "logistic", n=20_000)
    theta = np.array([0.7, -0.4, 0.5])
    (chunk,) = risk.strata[0].records.chunks()
    u = [theta @ d.matrix for d in chunk.designs]
    parts = [np.logaddexp(0, v) - chunk.labels * v for v in u]
    assert_allclose(risk.value(theta), np.mean(parts[0] / 0.2 - 4.0 * parts[1]), rtol=1e-12)
    assert_allclose(risk.scores(theta).mean(axis=1), risk.gradient(theta), atol=1e-12)


def test_gaussian_noise_is_exact_for_the_squared_loss_only():
    risk = make_risk(Gaussian(0.5), "exact", "squared")
    gram = risk.gram()
    assert_allclose(risk.hessian(np.zeros(3)), gram - 0.25 * np.eye(3), rtol=1e-12)
    for kind in ("logistic", "check"):
        with pytest.raises(CapabilityError, match="SymmetricLaplace"):
            make_risk(Gaussian(0.5), "exact", kind).value(np.ones(3))


@pytest.mark.parametrize(("law", "correction"), [("zil", "exact"), ("zil", "dr"), ("zil", "sdr"), ("zil", "sl")])
def test_corrections_agree_with_the_raw_risk_on_average(law, correction):
    """40 records x 20,000 noise draws: the corrected score averages to the raw score (4 standard errors)."""
    rng = np.random.default_rng(3)
    n, copies, theta = 40, 20_000, np.array([0.7, -0.4, 0.5])
    x = np.repeat(rng.normal(size=(3, n)), copies, axis=1)
    labels = np.repeat(rng.integers(0, 2, n).astype(float), copies)
    scale = np.array([0.9, 0.7, 1.1])
    size = x.shape[1]
    noise = scale[:, None] * rng.normal(size=(3, size)) * np.sqrt(rng.exponential(size=size))
    noise *= rng.random(size) >= 0.2
    model = resolve_noise(LAWS[law], NAMES)
    terms = correction_terms(correction, model.parts)
    designs = [Design(x + noise, None)]
    if any(term.design for term in terms):
        designs.append(Design(x + noise + draw_second_noise(model.parts, size, 1)[:3], None))
    risk = Risk.of(LogisticLoss(), terms, designs, scale[None] ** 2, np.zeros(1), labels)
    raw = Risk.of(
        LogisticLoss(),
        correction_terms("naive", ()),
        [Design(x, None)],
        np.zeros((0, 3)),
        np.zeros(0),
        labels,
    )
    corrected, exact = risk.scores(theta), raw.scores(theta)
    error = np.std(corrected - exact, axis=1) / np.sqrt(size)
    assert np.all(np.abs(np.mean(corrected - exact, axis=1)) < 4 * error)
    naive = risk.naive().scores(theta)
    assert np.any(np.abs(np.mean(naive - exact, axis=1)) > 10 * error)
