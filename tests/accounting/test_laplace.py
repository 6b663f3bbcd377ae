"""The Laplace curve against direct integration and simulation."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

import privfit.accounting as pa


@pytest.mark.parametrize("a", [0.01, 0.5, 1.7, 8.0])
@pytest.mark.parametrize("share", [-1.5, -0.4, 0.0, 0.3, 0.9, 1.2])
def test_delta_is_the_integral_of_the_positive_part(a, share):
    eps = share * a

    def integrand(x):
        return max(np.exp(-abs(x - a)) - np.exp(eps - abs(x)), 0.0) / 2

    points = sorted({0.0, a, (eps + a) / 2})
    edges = [-60.0, *points, a + 60.0]
    expected = sum(quad(integrand, lo, hi, epsabs=1e-14, limit=400)[0] for lo, hi in pairwise(edges))
    assert pa.laplace(a).delta(eps, bound="estimate") == pytest.approx(expected, abs=2e-12)


def test_curve_pieces_by_the_likelihood_ratio_test():
    a = 1.1
    for x in (-3.0, 0.2, 0.5, 1.0, 4.0):  # reject when the output exceeds x
        alpha = 0.5 * np.exp(-x) if x > 0 else 1 - 0.5 * np.exp(x)
        beta = 0.5 * np.exp(x - a) if x < a else 1 - 0.5 * np.exp(a - x)
        assert pa.laplace(a).curve(alpha, bound="estimate") == pytest.approx(beta, rel=1e-12)


def test_error_rates_against_simulation():
    rng = np.random.default_rng(5)
    a, t, n = 1.3, 0.4, 400_000
    noise = rng.laplace(size=n)
    loss = np.abs(noise) - np.abs(noise - a)
    alpha, beta = pa.laplace(a).error_rates(t)
    assert abs((loss > t).mean() - alpha) < 4 * np.sqrt(alpha / n)
    moved = np.abs(noise + a) - np.abs(noise)
    assert abs((moved <= t).mean() - beta) < 4 * np.sqrt(beta / n)


def test_pure_privacy():
    curve = pa.laplace(0.7)
    assert curve.epsilon(0.0) == 0.7
    assert curve.delta(0.7) == 0.0
    assert curve.delta(float("inf")) == 0.0
    assert curve.max_loss == 0.7


def product_delta(a, b, eps):
    """Profile of Laplace noise on two numbers shifted by a and b: the mean over the first of the second's profile."""

    def integrand(x):  # x: first number measured from the centre of Q
        loss = np.abs(x + a) - np.abs(x)
        return 0.5 * np.exp(-np.abs(x)) * one(b, eps - loss)

    def one(shift, e):
        return -np.expm1(e) if e < -shift else max(-np.expm1((e - shift) / 2), 0.0)

    kinks = [(eps + s * b - a) / 2 for s in (-1, 1)]
    edges = [-50.0, *sorted({-a, 0.0, *(k for k in kinks if -50 < k < 50)}), 50.0]
    return sum(quad(integrand, lo, hi, epsabs=1e-13, limit=200)[0] for lo, hi in pairwise(edges))


@pytest.mark.parametrize(("a", "b"), [(0.6, 0.6), (1.1, 0.1), (0.02, 1.5), (3.0, 2.0)])
def test_shift_of_two_coordinates_is_never_worse_than_its_l1_length(a, b):
    whole = pa.laplace(a + b)
    for share in (-0.6, 0.0, 0.2, 0.7, 0.95):
        eps = share * (a + b)
        assert product_delta(a, b, eps) <= whole.delta(eps) + 1e-12
    # strictly better when both move, and the largest loss is the same
    assert product_delta(a, b, 0.0) < whole.delta(0.0) * 0.999
    assert product_delta(a, b, 0.95 * (a + b)) > 0
    # one coordinate alone attains the bound
    assert product_delta(a + b, 1e-13, 0.3) == pytest.approx(whole.delta(0.3), abs=1e-11)


def test_l1_shifts_of_many_coordinates_by_simulation():
    """Six coordinates, total length 1.5: the best test of the product stays above the curve."""
    rng = np.random.default_rng(2)
    shift = np.array([0.7, 0.3, 0.2, 0.1, 0.1, 0.1])
    n = 200_000
    noise = rng.laplace(size=(n, 6))
    moved = (np.abs(noise + shift) - np.abs(noise)).sum(axis=1)
    for t in (-0.5, 0.0, 0.4, 1.0):
        gain = np.maximum(-np.expm1(t - moved), 0.0)
        assert gain.mean() - 5 * gain.std() / np.sqrt(n) <= pa.laplace(1.5).delta(t)
    assert np.max(np.abs(moved)) <= 1.5 * (1 + 1e-12)


def test_shift_maps_compose():
    """1 - f_{a+b} is the composition of the two maps: the step that carries the proof."""
    alpha = np.linspace(0, 1, 57)
    for a, b in ((0.4, 1.1), (2.0, 0.3)):
        once = 1 - pa.laplace(b).curve(alpha, bound="estimate")
        twice = 1 - pa.laplace(a).curve(np.clip(once, 0, 1), bound="estimate")
        assert np.allclose(twice, 1 - pa.laplace(a + b).curve(alpha, bound="estimate"), atol=1e-14)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_epsilon(bad):
    with pytest.raises(ValueError, match="epsilon must be"):
        pa.laplace(bad)
