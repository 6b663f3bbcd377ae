"""Tables of discrete curves: direct sums at 50 digits, far tails, and many atoms."""

import math
import pickle

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfit.accounting.atoms import DiscreteCurve, from_atoms


def exact_delta(curve, eps):
    """Sum of q (1 - e^(eps - t)) over the losses above eps, term by term at 50 digits."""
    with mpmath.workdps(50):
        total = mpmath.mpf(0)
        for t, q in zip(curve.loss, curve.q, strict=True):
            if t > eps:
                total += mpmath.mpf(q) * (1 if math.isinf(t) else -mpmath.expm1(mpmath.mpf(eps) - mpmath.mpf(t)))
        return total


def loss_distribution(loss, log_weight):
    """Atoms with q proportional to e^weight, p = q e^-loss, and the rest on infinite losses."""
    q = np.exp(log_weight - np.max(log_weight))
    p = q * np.exp(-loss)
    scale = 1.25 * max(p.sum(), q.sum())
    p, q = p / scale, q / scale
    return DiscreteCurve((-math.inf, *loss, math.inf), (1 - p.sum(), *p.tolist(), 0.0), (0.0, *q.tolist(), 1 - q.sum()))


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.floats(1e-6, 30.0), st.integers(0, 2**32 - 1))
def test_delta_against_the_direct_sum(n, spread, seed):
    rng = np.random.default_rng(seed)
    loss = np.unique(rng.normal(size=n) * spread)
    curve = loss_distribution(loss, rng.normal(size=loss.size) * 3)
    for eps in (*loss[:3], *(loss[-3:] + 1e-3 * spread), -2 * spread, 0.0, 3 * spread, 1e9):
        exact = min(exact_delta(curve, float(eps)), 1)  # the masses sum to one up to rounding
        assert float(abs(mpmath.mpf(curve.delta(eps, bound="estimate")) - exact)) <= 2e-14 * float(exact)
        assert curve.delta(eps, bound="lower") <= exact <= curve.delta(eps)


def test_tail_keeps_its_relative_accuracy_down_to_1e_300():
    loss = np.arange(0.0, 640.0, 0.5)
    q = np.exp(-1.07 * loss)
    p = q * np.exp(-loss)
    curve = from_atoms(np.r_[-np.inf, loss], np.r_[0.5, p / (2 * p.sum())], np.r_[0.0, q / q.sum()])
    for eps in (0.1, 20.25, 300.7, 639.0, 639.3):
        exact = exact_delta(curve, eps)
        assert curve.delta(eps, bound="estimate") == pytest.approx(float(exact), rel=2e-14)
    assert 0 < curve.delta(639.3) < 1e-295


def test_only_infinite_losses_above():
    # P is the point -2 or nothing: below every loss the profile is 1 - e^eps P[everything] = 1 - e^eps
    q = math.exp(-2.0)
    curve = DiscreteCurve((-2.0, math.inf), (1.0, 0.0), (q, 1 - q))
    assert curve.delta(-1.0, bound="estimate") == pytest.approx(1 - q, rel=1e-15)
    assert curve.delta(-3.0, bound="estimate") == pytest.approx(-math.expm1(-3.0), rel=1e-14)
    apart = DiscreteCurve((-math.inf, math.inf), (1.0, 0.0), (0.0, 1.0))
    assert apart.delta(-5.0) == apart.delta(5.0) == apart.delta(-math.inf) == 1.0
    assert apart.curve(0.0) == 0.0
    assert apart.max_loss == 0.0


def test_sums_of_very_many_atoms_are_exact_to_rounding():
    """A lattice Laplace law cut into 1e5 cells: geometric series in closed form."""
    n, rate = 100_001, 1e-4
    loss = (np.arange(n) - n // 2) * rate
    q = np.exp(loss / 2 - abs(loss))  # symmetric: p is the mirror image
    total = math.fsum(q)
    curve = from_atoms(loss, np.exp(-loss / 2 - abs(loss)), q)
    for j in (n // 2, n // 2 + 12_345, n - 2):
        t = loss[j]
        m = n - 1 - j  # sum_{i=1}^m of e^(-(t + i h)/2) - e^t e^(-3 (t + i h)/2)
        with mpmath.workdps(40):
            t, x = mpmath.mpf(t), mpmath.exp(-mpmath.mpf(rate) / 2)
            series = mpmath.exp(-t / 2) * (x * (1 - x**m) / (1 - x) - x**3 * (1 - x ** (3 * m)) / (1 - x**3))
            expected = float(series / total)
        assert curve.delta(float(t), bound="estimate") == pytest.approx(expected, rel=1e-12)
    alpha, beta = curve.error_rates(0.0)
    assert alpha == pytest.approx(math.fsum(q[: n // 2]) / total, rel=1e-15)
    assert beta == pytest.approx(math.fsum(q[: n // 2 + 1]) / total, rel=1e-15)


def test_pickle_keeps_the_fields_alone_and_the_values():
    curve = loss_distribution(np.array([-1.0, 0.5]), np.zeros(2))
    again = pickle.loads(pickle.dumps(curve))
    assert set(vars(again)) == {"loss", "p", "q"}
    assert again.delta(0.2) == curve.delta(0.2)
    assert hash(again) == hash(curve)


@pytest.mark.parametrize(
    ("loss", "p", "q"),
    [
        ((0.0, 0.0), (0.5, 0.5), (0.5, 0.5)),
        ((0.0, 1.0), (0.5, 0.6), (0.5, 0.5)),
        ((0.0, 1.0), (1.5, -0.5), (0.5, 0.5)),
        ((0.0,), (0.5, 0.5), (0.5, 0.5)),
        ((0.0, math.nan), (0.5, 0.5), (0.5, 0.5)),
        ((), (), ()),
    ],
)
def test_bad_atoms(loss, p, q):
    with pytest.raises(ValueError, match="must"):
        DiscreteCurve(loss, p, q)
