"""The border of one order, put back into the divergence of two coins with 50 digits."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfit.accounting.coins import diagonal_loss, log_exprel, log_moment, solve_width


def coin_divergence(order, p, q):
    if order == 1:
        return q * mp.log(q / p) + (1 - q) * mp.log((1 - q) / (1 - p))
    return mp.log(q**order * p ** (1 - order) + (1 - q) ** order * (1 - p) ** (1 - order)) / (order - 1)


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-6, 30.0), st.one_of(st.just(0.0), st.floats(1e-4, 60.0)), st.floats(0.05, 20.0))
def test_border_has_the_divergence(tau, b, beyond):
    loss = max(float(diagonal_loss(np.array([b]), log_moment(np.array([b]), np.array([tau])))[0]), tau) * (1 + beyond)
    log_w = float(solve_width(np.array(b), log_moment(np.array(b), np.array(tau)), np.array(loss)))
    if not -150 < log_w < -1e-9:  # q = 1 to rounding, or more digits than the reference carries
        return
    with mp.workdps(200):
        x, w = mp.exp(mp.mpf(loss)), mp.exp(mp.mpf(log_w))
        p = w / (x - 1 + w)
        value = coin_divergence(mp.mpf(b) + 1, p, x * p)
    assert float(value) == pytest.approx(tau, rel=1e-8)


@pytest.mark.parametrize("tau", [1e-8, 1e-3, 0.5, 5.0, 60.0])
@pytest.mark.parametrize("b", [0.0, 0.3, 1.0, 20.0])
def test_diagonal(tau, b):
    loss = float(diagonal_loss(np.array([b]), log_moment(np.array([b]), np.array([tau])))[0])
    with mp.workdps(60):
        p = 1 / (1 + mp.exp(mp.mpf(loss)))
        assert float(coin_divergence(mp.mpf(b) + 1, p, 1 - p)) == pytest.approx(tau, rel=1e-9)


def test_logarithms_far_out():
    for x in (-1e5, -800.0, -1.0, -1e-12, 1e-12, 5.0, 600.0):
        with mp.workdps(40):
            exact = float(mp.log(mp.expm1(mp.mpf(x)) / mp.mpf(x)))
        assert float(log_exprel(np.array(x))) == pytest.approx(exact, rel=1e-13, abs=1e-16)
    with mp.workdps(40):
        exact = float(mp.log(mp.expm1(mp.mpf(5000)) / 50))
    assert float(log_moment(np.array(50.0), np.array(100.0))) == pytest.approx(exact, rel=1e-14)
    assert float(log_moment(np.array(0.0), np.array(0.25))) == pytest.approx(math.log(0.25), rel=1e-15)
