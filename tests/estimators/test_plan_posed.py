"""Huber regression and linear SVC: predictions beside textbook errors of raw data and the spread of fits."""

import math

import numpy as np
import pytest

from privfit.accounting import GDP
from privfit.estimators.huber_regression import HuberRegression
from privfit.estimators.linear_svc import LinearSVC
from privfit.estimators.planning import plan
from privfit.mechanisms import (
    Box,
    Categories,
    Laplace,
    Product,
    RandomizedResponse,
    SymmetricLaplace,
    ZeroInflatedLaplace,
)
from tests.estimators.simulations import flipped, noise_of, truncated_normal

BOUNDS = {"a": (-1, 1), "b": (-1, 1)}
THETA = np.array([0.3, 1.0, -0.5])
ZIL = ZeroInflatedLaplace(0.5, 0.3)


def data(rng, label, n):
    x = truncated_normal(rng, (n, 2))
    u = THETA[0] + x @ THETA[1:]
    return x, (rng.random(n) < 1 / (1 + np.exp(-2 * u))).astype(int) if label else u + 0.7 * rng.standard_t(3, n)


def planned(make, law, n, epsilon, rng):
    x, y = data(rng, make is not HuberRegression, 20_000)
    laws = {("a", "b"): law} | ({"y": RandomizedResponse(epsilon)} if epsilon else {})
    domain = (Box(BOUNDS), Categories({"y": [0, 1]})) if epsilon else Box(BOUNDS)
    pilot = {"a": x[:, 0], "b": x[:, 1], "y": y}
    return plan(make(), GDP(1.0), domain, n, {"law": Product(laws)}, target="y", pilot=pilot)


def test_raw_errors_are_those_of_the_fit():
    rng = np.random.default_rng(1)
    for make in (HuberRegression, lambda: LinearSVC(alpha=0.0), lambda: LinearSVC("hinge", alpha=0.0)):
        x, y = data(rng, make is not HuberRegression, 20_000)
        found = plan(
            make(), GDP(1.0), Box(BOUNDS), 20_000, {"law": ZIL}, target="y", pilot={"a": x[:, 0], "b": x[:, 1], "y": y}
        )
        fit = make().fit(x, y)
        assert found.theta == pytest.approx(fit.params_, abs=1e-6)
        assert found.raw == pytest.approx(fit.bse_, rel=0.05)
        assert found.rows[0].wanted > found.raw[1:].min() and found.rows[0].monte_carlo > 0


def test_huber_without_a_pilot_has_the_textbook_error():
    """Normal residuals of standard deviation s: variance 1/0.95 s^2 (E xx')^-1 / n at the threshold 1.345 s."""
    found = plan(HuberRegression(), GDP(1.0), Box(BOUNDS), 5000, {"law": ZIL}, target="y", theta=THETA, residual_sd=0.5)
    expected = 0.5 * np.sqrt(np.array([1.0, 3.0, 3.0]) / 0.95 / 5000)
    assert found.raw == pytest.approx(expected, rel=0.03)
    margin = plan(LinearSVC(), GDP(1.0), (Box(BOUNDS), Categories({"y": [0, 1]})), 5000, {"law": ZIL}, target="y")
    assert "labels from a logistic model, coefficients fitted to them" in margin.design
    assert math.isfinite(margin.rows[0].wanted)


CASES = {
    "huber, zero-inflated": (HuberRegression, ZeroInflatedLaplace(0.6, 0.2), 4000, None),
    "huber, generalised Laplace": (HuberRegression, SymmetricLaplace(0.4, 2), 6000, None),
    "squared hinge, zero-inflated": (lambda **k: LinearSVC(alpha=0.0, **k), ZIL, 6000, None),
    "squared hinge, labels": (lambda **k: LinearSVC(alpha=0.0, **k), ZIL, 10_000, 2.0),
    "squared hinge, Laplace": (lambda **k: LinearSVC(alpha=0.0, **k), Laplace(0.25), 10_000, None),
    "hinge, zero-inflated": (
        lambda **k: LinearSVC("hinge", alpha=0.0, **k),
        ZeroInflatedLaplace(0.4, 0.3),
        10_000,
        None,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_predictions_are_within_a_tenth_of_simulation(case, seed):
    """150 fits: the standard deviation of one coefficient is known to 6 %, the geometric mean of three to 4 %."""
    make, law, n, epsilon = CASES[case]
    rng = np.random.default_rng(seed)
    row, estimates = planned(make, law, n, epsilon, rng).rows[0], []
    for _ in range(150):
        x, y = data(rng, make is not HuberRegression, n)
        noise = {(0, 1): law} | ({"y": RandomizedResponse(epsilon)} if epsilon else {})
        y = flipped(rng, y, 2, epsilon) if epsilon else y
        estimates.append(make(noise=noise).fit(x + noise_of(law, rng, n, 2), y).params_)
    ratio = row.standard_errors / np.std(estimates, axis=0, ddof=1)
    print(f"{case} seed {seed}: {np.exp(np.log(ratio).mean()):.3f}, coefficients {ratio.round(3)}")
    assert np.exp(np.log(ratio).mean()) == pytest.approx(1.0, abs=0.1)
    assert ratio == pytest.approx(np.ones(3), abs=0.2)
