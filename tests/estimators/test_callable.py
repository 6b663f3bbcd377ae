"""Losses given as numpy functions: derivatives by differences, corrections as far as derivatives are known."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from privfit.estimators.errors import CapabilityError
from privfit.estimators.losses import LogisticLoss, Loss
from privfit.estimators.symbols import Heat, Power, Resolvent

U = np.array([-30.0, -1.2, 0.3, 4.0])


def softplus(u):
    return np.logaddexp(0.0, u)


def expit(u):
    return 1 / (1 + np.exp(-u))


def bell(u):
    return expit(u) * expit(-u)


def test_differences_have_the_stated_error():
    plain, built = Loss.from_callable(softplus), LogisticLoss()
    assert_allclose(plain.derivative(U, 1), built.derivative(U, 1), atol=1e-9)
    assert_allclose(plain.derivative(U, 2), built.derivative(U, 2), atol=1e-6)
    known = Loss.from_callable(softplus, [expit, bell])
    assert_allclose(known.derivative(U, 2), built.derivative(U, 2), rtol=1e-12)
    assert_allclose(known.derivative(U, 3), built.derivative(U, 3), atol=1e-9)


def test_known_derivatives_give_the_symmetric_laplace_correction():
    symbol = Power(1)(0.2, 0)
    known, built = Loss.from_callable(softplus, [expit, bell]), LogisticLoss()
    for order in (0, 1, 2):
        assert_allclose(known.apply(U, symbol, order), built.apply(U, symbol, order), atol=1e-7)


@pytest.mark.parametrize(
    ("symbol", "match"),
    [
        (Power(1)(0.2, 0), r"up to order 2, 0 are given.*correction='dr'"),
        (Resolvent(0.2)(0.2, 0), "Use correction='dr'"),
        (Heat()(0.2, 0), "Gaussian"),
    ],
)
def test_what_is_impossible_is_said(symbol, match):
    with pytest.raises(CapabilityError, match=match):
        Loss.from_callable(softplus).apply(U, symbol)


def test_bad_functions_are_refused():
    with pytest.raises(TypeError, match="derivatives must be functions"):
        Loss.from_callable(softplus, [3])
    with pytest.raises(ValueError, match="of that shape"):
        Loss.from_callable(lambda u: 1.0)
    with pytest.raises(TypeError, match="give size="):
        Loss.from_callable(softplus, gradient=softplus)
    with pytest.raises(TypeError, match="gradient="):
        Loss.from_callable(softplus, [expit], size=2)
    with pytest.raises(ValueError, match="size"):
        Loss.from_callable(softplus, size=0)
    with pytest.raises(TypeError, match="half_trace"):
        Loss.from_callable(softplus, size=1, half_trace=3)
    loss = Loss.from_callable(lambda x, theta: x, size=1)
    with pytest.raises(ValueError, match=r"shape \(3,\), got \(3, 2\)"):
        loss.values(np.zeros((3, 2)), np.zeros(1))
    broken = Loss.from_callable(lambda x, theta: np.full(len(x), np.nan), size=1)
    with pytest.raises(ValueError, match="finite numbers"):
        broken.values(np.zeros((3, 2)), np.zeros(1))
    with pytest.raises(CapabilityError, match="derivative of order 3"):
        Loss.from_callable(softplus).derivative(U, 3)


def test_scores_by_differences():
    loss = Loss.from_callable(lambda x, theta: np.exp(theta[0] * x[:, 0]) * theta[1] ** 2, size=2)
    x, theta = np.array([[0.3], [-1.0]]), np.array([0.7, -2.0])
    exact = np.stack([4 * x[:, 0] * np.exp(0.7 * x[:, 0]), -4 * np.exp(0.7 * x[:, 0])], axis=1)
    assert_allclose(loss.scores(x, theta), exact, rtol=1e-8)
