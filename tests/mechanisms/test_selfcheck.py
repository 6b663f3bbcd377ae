"""The self-check passes here and catches coarse arithmetic."""

import numpy as np
import pytest

from privfit.mechanisms import Box, Gaussian, release, samplers, selfcheck
from privfit.mechanisms.continuous import SLACK_PER_VALUE
from privfit.mechanisms.selfcheck import check_machine, sampling_errors


@pytest.fixture
def fresh_check():
    check_machine.cache_clear()
    yield
    check_machine.cache_clear()


def test_this_machine_is_within_its_bounds():
    errors, bounds = sampling_errors()
    assert len(errors) == len(bounds) == 4000
    assert (errors <= bounds).all()
    # The slack charged per value covers the mean error more than eight times, and even every bound's mean.
    assert errors.mean() < SLACK_PER_VALUE / 8 and bounds.mean() < SLACK_PER_VALUE


def coarse(function, bits):
    """The same function with its result rounded to fewer bits."""

    def rounded(x, out=None):
        value = function(x)
        mantissa, exponent = np.frexp(value)
        value = np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits)
        if out is None:
            return value
        out[:] = value
        return out

    return rounded


@pytest.mark.parametrize("name", ["log", "cos", "sin", "sqrt"])
def test_coarse_functions_are_caught_and_nothing_is_released(name, fresh_check, monkeypatch):
    class Coarse:
        def __getattr__(self, attribute):
            return coarse(np.__dict__[name], 44) if attribute == name else getattr(np, attribute)

    monkeypatch.setattr(samplers, "np", Coarse())
    with pytest.raises(RuntimeError, match="too coarse for a safe release"):
        release(np.zeros((2, 1)), Gaussian(1.0), Box({"x": (0, 1)}))


def test_single_precision_is_caught(fresh_check, monkeypatch):
    monkeypatch.setattr(selfcheck, "gamma_rows", lambda *a: samplers.gamma_rows(*a).astype(np.float32).astype(float))
    with pytest.raises(RuntimeError, match="too coarse"):
        check_machine()


def test_not_a_number_is_caught(fresh_check, monkeypatch):
    monkeypatch.setattr(selfcheck, "sampling_errors", lambda: (np.array([np.nan]), np.array([1.0])))
    with pytest.raises(RuntimeError, match="too coarse"):
        check_machine()


def test_the_check_runs_once_per_process(fresh_check, monkeypatch):
    calls = []
    honest = selfcheck.sampling_errors
    monkeypatch.setattr(selfcheck, "sampling_errors", lambda: calls.append(1) or honest())
    for _ in range(3):
        release(np.zeros((2, 1)), Gaussian(1.0), Box({"x": (0, 1)}))
    assert len(calls) == 1
