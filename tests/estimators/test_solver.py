"""The bounded Newton search on risks with known minima, flat directions, and no minimum at all."""

import numpy as np
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from privfit.estimators.corrections import Term, correction_terms
from privfit.estimators.losses import LogisticLoss, SquaredLoss
from privfit.estimators.noise import resolve_noise
from privfit.estimators.risk import Design, Risk
from privfit.estimators.solver import _trust_step, minimise, one_step, polish, solve
from privfit.mechanisms import SymmetricLaplace

PLAIN = [Term(1.0, 0, ())]
NONE = (np.zeros((0, 3)), np.zeros(0))


def logistic_risk(n=300, noise=None, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(3, n))
    y = (rng.random(n) < 1 / (1 + np.exp(-x.sum(axis=0)))).astype(float)
    if noise is None:
        return Risk.of(LogisticLoss(), PLAIN, [Design(x, None)], *NONE, y)
    model = resolve_noise(SymmetricLaplace(noise), [0, 1, 2])
    x = x + noise * np.sqrt(rng.exponential(size=n)) * rng.normal(size=x.shape)
    return Risk.of(
        LogisticLoss(),
        correction_terms("exact", model.parts),
        [Design(x, None)],
        np.full((1, 3), noise**2),
        np.zeros(1),
        y,
    )


def test_agrees_with_scipy_inside_and_on_the_boundary():
    risk = logistic_risk(noise=0.4)
    for width in (10.0, 0.7):
        bound = np.full(3, width)
        ours = minimise(risk, np.zeros(3), bound)
        theirs = minimize(
            risk.value,
            np.zeros(3),
            jac=risk.gradient,
            bounds=[(-width, width)] * 3,
            method="L-BFGS-B",
            options={"ftol": 1e-15, "gtol": 1e-10},
        )
        assert_allclose(ours.theta, theirs.x, atol=2e-6)
        assert ours.converged
        assert ours.at_bound.any() == (width < 1)


def test_every_iterate_stays_in_the_box():
    risk = logistic_risk(noise=1.5, n=60)
    seen = []
    original = risk.derivatives
    risk.derivatives = lambda theta, *a, **k: (seen.append(theta.copy()), original(theta, *a, **k))[1]
    solution = minimise(risk, np.full(3, 5.0), np.full(3, 4.0))
    assert len(seen) > 3
    assert np.max(np.abs(seen)) <= 4.0
    assert solution.value <= original(np.full(3, 4.0))[0]


def test_a_trust_step_minimises_the_model_in_the_ball():
    """Moré and Sorensen's conditions: (H + s I) step = -g, H + s I >= 0, s (radius - |step|) = 0; others stay put."""
    rng = np.random.default_rng(0)
    for case in range(200):
        size = int(rng.integers(1, 9))
        basis = np.linalg.qr(rng.normal(size=(size, size)))[0]
        values = rng.normal(size=size) * 10.0 ** rng.uniform(-6, 6, size)
        gradient, radius = rng.normal(size=size) * 10.0 ** rng.uniform(-8, 3), 10.0 ** rng.uniform(-3, 3)
        values = np.abs(values) if case % 3 == 0 else values
        hessian = basis * values @ basis.T
        free = np.r_[True, rng.random(size - 1) < 0.8]
        step = _trust_step(np.where(free, gradient, 0.0), hessian, free, radius)
        assert not step[~free].any()
        h, g, s = hessian[np.ix_(free, free)], gradient[free], step[free]
        scale = np.linalg.norm(g) + np.abs(h).max() * np.linalg.norm(s)
        shift = -(s @ (h @ s + g)) / (s @ s)
        assert shift >= -1e-9 * scale / np.linalg.norm(s)
        assert np.linalg.norm(h @ s + shift * s + g) <= 1e-8 * scale
        assert np.linalg.eigvalsh(h)[0] + shift >= -1e-9 * (np.abs(h).max() + scale / np.linalg.norm(s))
        length = np.linalg.norm(s)
        # H + s I is known to a rounding error of H, and in its lowest direction it is |g_0| / radius at least
        rounding = 1e-9 + 4e-15 * np.abs(h).max() * radius / abs(np.linalg.eigh(h)[1][:, 0] @ g)
        assert length <= radius * (1 + rounding)
        # in the hard case, no gradient along the lowest curvature, the step may end inside
        if min(shift, shift + np.linalg.eigvalsh(h)[0]) > 1e-6 * np.abs(h).max():
            assert abs(length / radius - 1.0) < rounding


def test_unbounded_risk_ends_on_the_boundary_and_says_so():
    """Noise far above the signal, 30 records: the corrected risk falls without end."""
    risk = logistic_risk(noise=4.0, n=30, seed=2)
    solution = minimise(risk, np.zeros(3), np.full(3, 10.0))
    assert not solution.interior
    assert solution.at_bound.any()


def test_polish_and_one_step():
    risk = logistic_risk(noise=0.4, n=5000)
    bound = np.full(3, 10.0)
    full = minimise(risk, np.zeros(3), bound)
    quick = polish(risk, full.theta + 0.02, bound)
    assert quick is not None
    assert_allclose(quick.theta, full.theta, atol=1e-8)
    step = one_step(risk, full.theta + 0.02)
    assert np.abs(step - full.theta).max() < 0.002
    assert one_step(logistic_risk(noise=4.0, n=30, seed=2), np.full(3, 1.0)) is None


def test_solve_prefers_the_interior_minimum():
    """The corrected risk is lower on the boundary, but the interior minimum is the estimate."""
    risk = logistic_risk(noise=1.2, n=400, seed=5)
    bound = np.full(3, 30.0)
    best = solve(risk, [np.full(3, 0.5), np.full(3, 25.0)], bound)
    edge = minimise(risk, np.full(3, 25.0), bound)
    assert best.interior
    assert edge.value < best.value
    assert not edge.interior


def test_flat_direction_converges():
    x = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]])
    risk = Risk.of(SquaredLoss(), PLAIN, [Design(-x, np.array([1.0, 2.0, 3.1]))], np.zeros((0, 2)), np.zeros(0))
    solution = minimise(risk, np.zeros(2), np.full(2, np.inf))
    assert solution.converged
    assert not solution.positive
