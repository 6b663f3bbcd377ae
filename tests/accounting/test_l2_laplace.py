"""The density exp(-|x|/b) in R^d: pure privacy, direct integrals and simulation."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betainc, gammaincc, gammaln

import privfit.accounting as pa
from privfit.accounting.l2_laplace import l2_laplace


def direct_delta(dim, eps, level):
    """delta by polar coordinates about the centre of Q, from the density alone (b = 1, shift eps).

    The loss at radius r and angle to the line is |x| - r with |x|^2 = r^2 + eps^2 + 2 r eps cos.
    """
    nodes, weights = np.polynomial.legendre.leggauss(400)

    def over_angles(r):
        # loss > level  <=>  |x| > r + level; the integrand has a kink there, so integrate up to it
        limit = ((r + level) ** 2 - r * r - eps * eps) / (2 * r * eps)
        widest = math.acos(np.clip(limit, -1, 1))
        angle = 0.5 * widest * (nodes + 1)
        x = np.sqrt(r * r + eps * eps + 2 * r * eps * np.cos(angle))
        gain = -np.expm1(level - (x - r)) * np.sin(angle) ** (dim - 2)
        return 0.5 * widest * (gain @ weights)

    sphere = math.exp(gammaln(dim / 2) - gammaln((dim - 1) / 2)) / math.sqrt(math.pi)
    radial = lambda r: math.exp((dim - 1) * math.log(r) - r - gammaln(dim))  # noqa: E731
    first = max((eps - level) / 2, 1e-12)  # the region reaches the axis behind, or everything, until here
    cuts = [1e-12, first, first + 5, dim + 10.0, dim + 60.0]
    return sphere * sum(
        quad(lambda r: radial(r) * over_angles(r), lo, hi, epsabs=1e-14, epsrel=1e-11, limit=200)[0]
        for lo, hi in pairwise(cuts)
    )


@pytest.mark.parametrize(("dim", "eps"), [(2, 1.0), (3, 1.0), (3, 4.0), (7, 0.5), (20, 2.0)])
@pytest.mark.parametrize("share", [0.0, 0.4, 0.9])
def test_profile_is_the_integral_of_its_density(dim, eps, share):
    expected = direct_delta(dim, eps, share * eps)
    curve = l2_laplace(dim, eps)
    assert curve.delta(share * eps, bound="estimate") == pytest.approx(expected, rel=1e-9)
    lower, upper = (curve.delta(share * eps, bound=b) for b in ("lower", "upper"))
    assert lower <= expected * (1 + 1e-11)
    assert upper >= expected * (1 - 1e-11)


@pytest.mark.parametrize("dim", [2, 4, 9])
def test_total_variation_is_that_of_a_half_space(dim):
    """By reflection the best test at level 0 asks which centre is nearer: one coordinate decides."""
    eps = 1.3
    density = lambda r: math.exp((dim - 1) * math.log(r) - r - gammaln(dim))  # noqa: E731
    inside = quad(lambda r: density(r) * betainc((dim - 1) / 2, 0.5, 1 - (eps / 2 / r) ** 2), eps / 2, 80, epsabs=1e-13)
    expected = 1 - inside[0]  # P[|first coordinate| < eps / 2]
    assert l2_laplace(dim, eps).delta(0.0, bound="estimate") == pytest.approx(expected, rel=1e-8)
    assert expected > 1 - gammaincc(dim, eps / 2)


@pytest.mark.parametrize("dim", [1, 2, 5, 40, 300])
def test_pure_at_exactly_epsilon(dim):
    curve = l2_laplace(dim, 0.8)
    assert curve.max_loss == pytest.approx(0.8, rel=1e-15)
    assert curve.epsilon(0.0) <= 0.8 * (1 + 1e-15)
    assert curve.delta(0.8 * (1 + 1e-15)) == pytest.approx(0.0, abs=1e-299)
    eps = np.array([0.0, 0.2, 0.5, 0.7])
    assert np.all(curve.delta(eps) > 0)  # nothing smaller than epsilon is enough
    assert np.all(curve.delta(eps) <= pa.laplace(0.8).delta(eps))


@pytest.mark.parametrize(("dim", "shape"), [(1, 1.0), (2, 1.5), (2, 1.8), (3, 2.0), (3, 2.7), (6, 3.5), (6, 5.2)])
def test_every_shape_from_half_of_dim_plus_one_is_pure(dim, shape):
    """Losses of simulated noise never pass sqrt(2k) c, and come close to it."""
    from scipy.special import kve

    rng = np.random.default_rng(17)
    c, n, order = 0.7, 100_000, shape - dim / 2
    top = math.sqrt(2 * shape) * c
    noise = np.sqrt(rng.gamma(shape, 1 / shape, size=(n, 1))) * rng.standard_normal((n, dim))
    shift = c * np.eye(dim)[0]
    z, moved = (math.sqrt(2 * shape) * np.linalg.norm(v, axis=1) for v in (noise, noise - shift))
    log_density = lambda r: order * np.log(r) + np.log(kve(order, r)) - r  # noqa: E731
    loss = log_density(moved) - log_density(z)
    assert np.all(np.abs(loss) <= top * (1 + 1e-12))
    assert np.max(loss) > 0.75 * top
    curve = pa.symmetric_laplace(dim, c, shape)
    assert curve.max_loss == pytest.approx(top, rel=1e-15)
    assert curve.delta(top * (1 + 1e-15)) == pytest.approx(0.0, abs=1e-299)
    t = 0.5 * top
    alpha = curve.error_rates(t)[0]
    assert abs((loss > t).mean() - alpha) < 4 * math.sqrt(alpha / n)


@pytest.mark.parametrize(("dim", "shape"), [(2, 1.4), (3, 1.9), (6, 3.2)])
def test_smaller_shapes_are_not_pure_at_that_level(dim, shape):
    c = 0.7
    curve = pa.symmetric_laplace(dim, c, shape)
    assert curve.max_loss > math.sqrt(2 * shape) * c
    assert curve.delta(math.sqrt(2 * shape) * c) > 0


def test_simulation_from_radius_and_direction():
    rng = np.random.default_rng(23)
    n, dim, eps, t = 300_000, 5, 2.0, 0.6
    direction = rng.standard_normal((n, dim))
    noise = rng.gamma(dim, size=(n, 1)) * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    shift = eps * np.eye(dim)[1]
    under_p = np.linalg.norm(noise, axis=1) - np.linalg.norm(noise - shift, axis=1)
    under_q = np.linalg.norm(noise + shift, axis=1) - np.linalg.norm(noise, axis=1)
    curve = l2_laplace(dim, eps)
    alpha, beta = curve.error_rates(t)
    assert abs((under_p > t).mean() - alpha) < 4 * math.sqrt(alpha / n)
    assert abs((under_q <= t).mean() - beta) < 4 * math.sqrt(beta / n)
    # the standard deviation of a coordinate is b sqrt(dim + 1)
    assert noise.std() == pytest.approx(math.sqrt(dim + 1), rel=0.01)


@pytest.mark.parametrize(
    ("dim", "epsilon", "error", "name"),
    [
        (0, 1.0, ValueError, "dim"),
        (20_000, 1.0, ValueError, "dim"),
        (2.0, 1.0, TypeError, "dim"),
        (2, 0.0, ValueError, "epsilon"),
        (2, math.nan, ValueError, "epsilon"),
        (2, "1", TypeError, "epsilon"),
    ],
)
def test_bad_parameters(dim, epsilon, error, name):
    with pytest.raises(error, match=name):
        l2_laplace(dim, epsilon)
