"""Corrections averaged over several second noises: on the way from one draw to the exact correction."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulations import logistic_data, zil_noise

from privfit.estimators import LinearRegression, LogisticRegression, Quantile, QuantileRegression
from privfit.mechanisms import ZeroInflatedLaplace

N, SCALE, DELTA0 = 1500, 0.5, 0.3
LAW = ZeroInflatedLaplace(SCALE, DELTA0)
RNG = np.random.default_rng(0)
COLUMNS, LABEL = logistic_data(RNG, N, np.array([1.0, -1.0]))
RELEASED = COLUMNS + zil_noise(RNG, N, 2, SCALE, DELTA0)
RESPONSE = COLUMNS @ [1.0, -1.0] + RNG.normal(size=N)


def gap(model, y, exact, seeds):
    """Mean squared distance from the exact correction on the same release."""
    return np.mean(
        [np.sum((model.set_params(random_state=s).fit(RELEASED, y).params_ - exact) ** 2) for s in range(seeds)]
    )


@pytest.mark.parametrize(
    ("kind", "y", "correction"),
    [
        pytest.param(LinearRegression, RESPONSE, "dr", id="linear-dr"),
        pytest.param(LinearRegression, RESPONSE, "sdr", id="linear-sdr"),
        pytest.param(LinearRegression, RESPONSE, "sl", id="linear-sl", marks=pytest.mark.slow),
        pytest.param(LogisticRegression, LABEL, "dr", id="logistic-dr", marks=pytest.mark.slow),
        pytest.param(LogisticRegression, LABEL, "sdr", id="logistic-sdr", marks=pytest.mark.slow),
        pytest.param(LogisticRegression, LABEL, "sl", id="logistic-sl"),
    ],
)
def test_gap_to_exact_falls_as_one_over_draws(kind, y, correction):
    """M = 20: the mean squared gap is a twentieth; over 30 and 30 seeds the ratio is known to about 40 %."""
    exact = kind(noise=LAW).fit(RELEASED, y).params_
    if kind is LinearRegression and correction == "sdr":  # f'' is constant: the second noise plays no part
        assert gap(kind(noise=LAW, correction=correction, draws=3), y, exact, 3) < 1e-20
        return
    one = gap(kind(noise=LAW, correction=correction), y, exact, 30)
    many = gap(kind(noise=LAW, correction=correction, draws=20), y, exact, 30)
    assert 10 < one / many < 45


def test_reported_errors_fall_towards_those_of_exact():
    """The sandwich sees the average, not one draw: standard errors fall with M, to within 2 % at M = 40."""
    exact = LogisticRegression(noise=LAW).fit(RELEASED, LABEL).bse_
    errors = [
        LogisticRegression(noise=LAW, correction="dr", draws=m, random_state=1).fit(RELEASED, LABEL).bse_
        for m in (1, 4, 40)
    ]
    assert (errors[0] > errors[1]).all()
    assert (errors[1] > errors[2]).all()
    assert_allclose(errors[2], exact, rtol=0.02)


def test_quantiles_take_draws():
    y = RELEASED[:, 0]
    for make, arguments in ((QuantileRegression, (RELEASED, RESPONSE)), (Quantile, (y[:, None],))):
        gaps = []
        for draws in (1, 30):
            model = make(noise=LAW, correction="sl", draws=draws, random_state=2, bandwidth=0.5)
            exact = make(noise=LAW, bandwidth=0.5).fit(*arguments).params_
            gaps.append(np.abs(model.fit(*arguments).params_ - exact).max())
        assert gaps[1] < 0.6 * gaps[0]


def test_draws_are_independent_and_reproducible():
    """The average over two draws is not one draw twice, and a seed fixes it."""
    one = LinearRegression(noise=LAW, correction="dr", random_state=3).fit(RELEASED, RESPONSE).params_
    two = LinearRegression(noise=LAW, correction="dr", draws=2, random_state=3)
    first = two.fit(RELEASED, RESPONSE).params_
    assert np.abs(first - one).max() > 1e-6
    assert_allclose(two.fit(RELEASED, RESPONSE).params_, first, rtol=1e-12)


def test_exact_does_not_draw():
    models = [LinearRegression(noise=LAW, draws=d).fit(RELEASED, RESPONSE).params_ for d in (1, 7)]
    assert_allclose(*models, rtol=1e-14)


@pytest.mark.parametrize("bad", [0, -1, 1.5, 1001, "many", None, True])
def test_bad_draws(bad):
    with pytest.raises((ValueError, TypeError), match="draws"):
        LinearRegression(draws=bad).fit(RELEASED, RESPONSE)
