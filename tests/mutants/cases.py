"""Laws, domains and helpers that the audit's tests share."""

import pytest

from privfit.mechanisms import (
    Ball,
    Box,
    Categories,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    RandomizedResponse,
    SymmetricLaplace,
    ZeroInflatedLaplace,
)


def unit(dim):
    return Box(dict.fromkeys(range(dim), (0, 1)))


def labels(count):
    return Categories({"l": [f"label {i}" for i in range(count)]})


def rare(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


QUICK = [
    (Gaussian(1.4), unit(2)),
    (DiscreteLaplace(1.0), unit(1)),
]
MORE = [
    (ZeroInflatedLaplace(1.5, 0.05), unit(2)),
    (Gaussian((1.0, 2.5)), Ball(0.7, 2)),
    (Laplace(1.0), unit(1)),
    (Laplace((1.3, 2.0)), Box({"a": (-0.3123, 1.0), "b": (5.0, 6.7)})),
    (SymmetricLaplace(1.0), unit(1)),
    (SymmetricLaplace(1.5), unit(2)),
    (SymmetricLaplace(1.5, shape=3), unit(3)),
    (ZeroInflatedLaplace(1.0, 0.05), Box({"x": (0.1003, 1.1)})),
    (DiscreteLaplace((1.0, 2.0)), unit(2)),
]
LAWS = [*QUICK, *MORE]
RESPONSES = [(RandomizedResponse(0.5, k), labels(k)) for k in (2, 3, 30)]


def caught(report, *names):
    """Whether the test that is meant to see it, and no luck, raised the alarm."""
    return all(any(name in test.name for test in report.alarms) for name in names)
