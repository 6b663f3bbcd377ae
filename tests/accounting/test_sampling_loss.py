"""The map between losses of a mechanism and of its subsample, at 50 digits."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfit.accounting.sampling_loss import LossMap


@settings(max_examples=200, deadline=None)
@given(rate=st.floats(1e-12, 1 - 1e-12), t=st.floats(-5, 50), scale=st.floats(-12, 0))
def test_inner_loss(rate, t, scale):
    t = t * 10**scale
    value = float(LossMap(rate).inner(np.array(t)))
    with mp.workdps(60):
        inside = 1 + mp.expm1(mp.mpf(t)) / mp.mpf(rate)
        if inside <= 0:
            assert value == -math.inf
        else:
            exact = mp.log(inside)
            assert abs(value - exact) <= 4e-16 * (4 + abs(exact))


@pytest.mark.parametrize("rate", [1e-9, 0.3, 0.999])
def test_next_to_the_smallest_loss(rate):
    losses = LossMap(rate)
    t = -losses.top
    for _ in range(3):
        t = math.nextafter(t, 0.0)
        with mp.workdps(60):
            exact = mp.log(1 + mp.expm1(mp.mpf(t)) / mp.mpf(rate))
        assert float(losses.inner(np.array(t))) == pytest.approx(float(exact), rel=1e-13)
    assert losses.top >= -mp.log1p(-mp.mpf(rate))
    assert float(losses.inner(np.array(math.nextafter(-losses.top, -10.0)))) == -math.inf


def test_outer_loss_rounds_up():
    for rate, loss in ((0.01, 1e-9), (0.3, 0.7), (1e-8, 30.0), (0.5, 800.0)):
        with mp.workdps(60):
            exact = mp.log(1 + mp.mpf(rate) * mp.expm1(mp.mpf(loss)))
            value = LossMap(rate).outer(loss)
            assert 0 <= value / exact - 1 < 3e-15
    assert LossMap(0.5).outer(math.inf) == math.inf
