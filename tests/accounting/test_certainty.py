"""Lower bound <= truth <= upper bound, for random parameters: the truth at 50 digits, from closed forms and sums."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import privfit.accounting as pa
from privfit.accounting.discrete_noise import discrete_gaussian
from privfit.accounting.generalized_gaussian import generalized_gaussian
from tests.accounting.curves import CURVES, quick_and_full
from tests.accounting.reference_profile import gaussian_alpha, gaussian_delta, limit_mixture, symmetric_laplace_delta

LEVELS = [0.0, 1e-300, 1e-100, 1e-16, 1e-9, 1e-4, 0.03, 0.2, 0.5, 0.77, 0.999, 1 - 1e-12, 1.0]
DELTAS = [1e-300, 1e-120, 1e-30, 1e-12, 1e-5, 0.01, 0.3]


def log_uniform(low, high):
    return st.floats(math.log(low), math.log(high)).map(math.exp)


def upper_quantile(tail):
    """The x with 1 - Phi(x) = tail."""
    if tail > 0.5:
        return -upper_quantile(1 - tail)
    x, log_tail = mp.sqrt(-2 * mp.log(tail)), mp.log(tail)
    for _ in range(60):
        value = mp.erfc(x / mp.sqrt(2)) / 2
        step = (mp.log(value) - log_tail) * value * mp.sqrt(2 * mp.pi) * mp.exp(x * x / 2)
        x += step
        if abs(step) < mp.mpf(10) ** (5 - mp.mp.dps) * (abs(x) + 1):
            break
    return x


def gaussian_curve(mu, alpha):
    return mp.erfc((mp.mpf(mu) - upper_quantile(mp.mpf(alpha))) / mp.sqrt(2)) / 2


def laplace_delta(a, eps):
    return max(-mp.expm1((mp.mpf(eps) - mp.mpf(a)) / 2), mp.mpf(0))


def laplace_curve(a, alpha):
    a, alpha = mp.mpf(a), mp.mpf(alpha)
    if alpha <= mp.exp(-a) / 2:
        return 1 - mp.exp(a) * alpha
    return mp.exp(-a) / (4 * alpha) if alpha <= 0.5 else mp.exp(-a) * (1 - alpha)


def response_delta(p, eps):
    top, k = mp.exp(mp.mpf(p[0])), p[1]
    return max((top - mp.exp(mp.mpf(eps))) / (top + k - 1), mp.mpf(0))


def response_curve(p, alpha):
    top, k = mp.exp(mp.mpf(p[0])), p[1]
    low, high, alpha = 1 / (top + k - 1), top / (top + k - 1), mp.mpf(alpha)
    if alpha <= low:
        return 1 - high / low * alpha
    return 1 - high - (alpha - low) if alpha <= 1 - high else low / high * (1 - alpha)


@lru_cache(maxsize=4)
def integer_gaussian(p):
    """P[X = x] for x >= 0, P[X >= x] likewise."""
    sigma, shift = p
    last = int(40 * sigma) + shift + 20
    mass = [mp.exp(-(mp.mpf(x) ** 2) / (2 * mp.mpf(sigma) ** 2)) for x in range(last)]
    z = mp.jtheta(3, 0, mp.exp(-1 / (2 * mp.mpf(sigma) ** 2)))
    tail = [mp.mpf(0)]
    for m in reversed(mass):
        tail.append(tail[-1] + m / z)
    tail.reverse()
    return [m / z for m in mass], lambda n: tail[n] if n > 0 else 1 - tail[1 - n]


def integer_gaussian_delta(p, eps):
    sigma, shift = p
    mass, _ = integer_gaussian(p)
    total = mp.mpf(0)
    for x in range(-int(40 * sigma) - 1, len(mass) - shift):
        loss = shift * (x + mp.mpf(shift) / 2) / mp.mpf(sigma) ** 2  # of shifted noise at x + shift
        if loss > eps and abs(x) < len(mass):
            total -= mass[abs(x)] * mp.expm1(mp.mpf(eps) - loss)
    return total


def integer_gaussian_curve(p, alpha):
    sigma, shift = p
    _, tail = integer_gaussian(p)
    n = next(n for n in range(-int(40 * sigma), int(40 * sigma) + shift + 20) if tail(n) <= alpha)
    low, high = tail(n), tail(n - 1)
    # the left corner (S(n), S(s + 1 - n)) is the lower in alpha and the higher in beta
    right, left = tail(shift + 2 - n), tail(shift + 1 - n)
    return right + (left - right) * (high - mp.mpf(alpha)) / (high - low)


def power_tail(p, x):
    return mp.gammainc(1 / mp.mpf(p), abs(x) ** mp.mpf(p), regularized=True) / 2 if x >= 0 else 1 - power_tail(p, -x)


def power_delta(parameters, eps):
    a, p = map(mp.mpf, parameters)
    low, high = a / 2, a
    while high**p - abs(high - a) ** p < eps:
        high *= 2
    for _ in range(190):
        middle = (low + high) / 2
        low, high = (middle, high) if middle**p - abs(middle - a) ** p < eps else (low, middle)
    return power_tail(p, low - a) - mp.exp(mp.mpf(eps)) * power_tail(p, low)


def sampled_delta(parameters, eps):
    """Balle, Barthe & Gaboardi 2018, theorem 8."""
    mu, q = map(mp.mpf, parameters)
    return q * gaussian_delta(mu, mp.log1p(mp.expm1(mp.mpf(eps)) / q))


def limit_delta(c, eps):
    c, eps = mp.mpf(c), mp.mpf(eps)
    return -mp.expm1(-(c**2) / (eps + mp.sqrt(eps**2 + 2 * c**2)))


def shaped_delta(p, eps):
    return limit_mixture(gaussian_delta, p[0], p[1], eps)


@dataclass(frozen=True)
class Family:
    parameters: st.SearchStrategy
    build: Callable[..., Any]
    delta: Callable[..., Any]
    curve: Callable[..., Any] | None = None
    unit: Callable[..., float] = lambda p: 1.0
    thresholds: int = 5  # so many values of epsilon are compared: integrals at 50 digits are slow
    least: float = 1e-300  # smallest delta asked for
    rounding: float = 0.0  # absolute error of the curve: that of 1 - alpha where it runs along a chord

    def losses(self, p):
        return [x * self.unit(p) for x in (0.0, 0.3, 1.0, 4.0, 30.0)[: self.thresholds]]


FAMILIES = {
    "gaussian": Family(log_uniform(1e-6, 30.0), pa.gaussian, gaussian_delta, gaussian_curve, lambda p: p),
    "laplace": Family(log_uniform(1e-6, 100.0), pa.laplace, laplace_delta, laplace_curve, lambda p: p / 5),
    "randomised response": Family(
        st.tuples(log_uniform(1e-6, 50.0), st.integers(2, 50)),
        lambda p: pa.randomized_response(*p),
        response_delta,
        response_curve,
        lambda p: p[0] / 5,
        rounding=2e-16,
    ),
    "discrete Gaussian": Family(
        st.tuples(log_uniform(0.1, 4.0), st.integers(1, 5)),
        lambda p: discrete_gaussian(*p),
        integer_gaussian_delta,
        integer_gaussian_curve,
        lambda p: p[1] / p[0],
        4,
    ),
    "generalised Gaussian": Family(
        st.tuples(log_uniform(1e-4, 10.0), st.floats(1.05, 8.0).filter(lambda p: p != 2.0)),
        lambda p: generalized_gaussian(*p),
        power_delta,
        None,
        lambda p: p[0],
    ),
    "sampled Gaussian": Family(
        st.tuples(log_uniform(0.01, 10.0), log_uniform(1e-4, 0.99)),
        lambda p: pa.gaussian(p[0]).subsample(p[1]),
        sampled_delta,
        None,
        lambda p: p[0],
    ),
    "limit": Family(log_uniform(1e-6, 1e3), pa.symmetric_laplace_limit, limit_delta, None, lambda p: p, least=1e-30),
    "limit of integer shape": Family(
        st.tuples(log_uniform(1e-4, 1e2), st.sampled_from([2, 3, 5, 20, 21, 60, 500])),
        lambda p: pa.symmetric_laplace_limit(*p),
        shaped_delta,
        None,
        lambda p: p[0],
        2,
    ),
}
HALF_INTEGER = st.tuples(st.integers(1, 8), log_uniform(0.01, 10.0), st.booleans()).map(
    lambda p: (p[0], p[1], (p[0] + 1) / 2 if p[2] or p[0] == 1 else (p[0] - 1) / 2)
)
EVERY_SHAPE = st.one_of(
    st.sampled_from([1.0, 2.0, 3.0]), log_uniform(0.2, 3000.0), st.sampled_from(["above", "below", "pure"])
)
EVERY_NOISE = st.tuples(log_uniform(1.0, 10_000.0).map(int), log_uniform(1e-6, 1e3), EVERY_SHAPE)
examples = pytest.mark.parametrize("examples", [10, pytest.param(250, marks=pytest.mark.slow)])
few_examples = pytest.mark.parametrize("examples", [1, pytest.param(200, marks=pytest.mark.slow)])


def for_random(strategy, examples, check):
    settings(
        max_examples=examples, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )(given(strategy)(check))()


@pytest.mark.parametrize(
    ("name", "examples"),
    [
        # one truth of a shaped limit takes seconds: test_limit has the quick ones
        *((name, 10) for name in FAMILIES if name != "limit of integer shape"),
        *(pytest.param(name, 250, marks=pytest.mark.slow) for name in FAMILIES),
    ],
)
def test_delta_is_between_its_bounds(name, examples):
    family = FAMILIES[name]

    def check(parameters):
        curve = family.build(parameters)
        for eps in family.losses(parameters):
            with mp.workdps(50):
                truth = family.delta(parameters, eps)
                assert curve.delta(eps, bound="lower") <= truth * (1 + mp.mpf(10) ** -40) + mp.mpf(10) ** -323
                assert truth * (1 - mp.mpf(10) ** -40) <= curve.delta(eps) + mp.mpf(10) ** -323
                if truth > 1e-280:
                    wide = 20 * curve.precision.relative * truth + 2 * curve.precision.absolute
                    assert abs(curve.delta(eps, bound="estimate") - truth) <= wide

    for_random(family.parameters, examples, check)


@examples
@pytest.mark.parametrize("name", [name for name, family in FAMILIES.items() if family.curve])
def test_curve_is_between_its_bounds(name, examples):
    family = FAMILIES[name]

    def check(parameters):
        curve = family.build(parameters)
        assert curve.curve(0.0) <= 1.0 <= curve.curve(0.0, bound="upper")
        assert curve.curve(1.0) == curve.curve(1.0, bound="upper") == 0.0
        for alpha in LEVELS[1:-1]:
            with mp.workdps(50):
                truth = family.curve(parameters, alpha)
                lower, upper = curve.curve(alpha), curve.curve(alpha, bound="upper")
                # the largest float below 1 - alpha stands for everything above it
                assert lower <= truth * (1 + mp.mpf(10) ** -40) + mp.mpf(10) ** -323 + family.rounding
                assert truth <= upper * (1 + mp.mpf(2) ** -53) + mp.mpf(10) ** -323 + family.rounding

    for_random(family.parameters, examples, check)


@examples
@pytest.mark.parametrize("name", [name for name, family in FAMILIES.items() if family.thresholds > 2])
def test_epsilon_is_between_its_bounds(name, examples):
    family = FAMILIES[name]

    def check(parameters):
        curve = family.build(parameters)
        for delta in DELTAS:
            if delta < family.least or (name == "discrete Gaussian" and delta < 1e-120):
                continue
            lower, upper = curve.epsilon(delta, bound="lower"), curve.epsilon(delta)
            assert 0 <= lower <= curve.epsilon(delta, bound="estimate") <= upper
            with mp.workdps(50):
                assert family.delta(parameters, upper) <= mp.mpf(delta) * (1 + mp.mpf(10) ** -40)
                assert lower == 0 or family.delta(parameters, lower) >= mp.mpf(delta) * (1 - mp.mpf(10) ** -40)

    for_random(family.parameters, 3 if examples == 10 else examples, check)


@pytest.mark.parametrize(("c", "shape", "t"), [(2.0, 21, 9.0), pytest.param(0.3, 3, 1.0, marks=pytest.mark.slow)])
def test_error_rates_of_the_limits_mixture(c, shape, t):
    with mp.workdps(50):
        alpha = pa.symmetric_laplace_limit(c, shape).error_rates(t)[0]
        assert alpha == pytest.approx(float(limit_mixture(gaussian_alpha, c, shape, t)), rel=1e-9)


@few_examples
def test_symmetric_laplace_at_fifty_digits(examples):
    def check(parameters):
        dim, c, shape = parameters
        curve = pa.symmetric_laplace(dim, c, shape)
        for eps in (0.5 * c, min(0.8 * math.sqrt(2 * shape), 3.0) * c):
            with mp.workdps(50):
                truth = symmetric_laplace_delta(dim, c, shape, eps)[2] if dim > 1 or shape != 1 else 0
            if dim == 1 and shape == 1:
                truth = laplace_delta(mp.sqrt(2) * mp.mpf(c), eps)
            assert curve.delta(eps, bound="lower") <= truth * (1 + mp.mpf(10) ** -12)
            assert truth * (1 - mp.mpf(10) ** -12) <= curve.delta(eps)

    for_random(HALF_INTEGER, examples, check)


@examples
def test_symmetric_laplace_of_every_size(examples):
    """Total variation in closed form for shape 1, the limit of high dimension as a bound, symmetry for all."""

    def check(parameters):
        dim, c, shape = parameters
        # a shape close to half the dimension has a tail of its own
        if isinstance(shape, str):
            shape = {"above": dim / 2 + 0.01, "below": max(dim / 2 - 0.01, 0.2), "pure": (dim + 1) / 2}[shape]
        curve = pa.symmetric_laplace(dim, c, shape)
        low, high = (curve.delta(0.0, bound=b) for b in ("lower", "upper"))
        assert low <= high
        if shape == 1.0:
            truth = -math.expm1(-c / math.sqrt(2))
            assert low <= truth * (1 + 1e-15) <= high * (1 + 2e-15)
        eps = np.array([0.2, 1.0, 2.5]) * c
        if shape in (1.0, 2.0, 3.0):
            limit = pa.symmetric_laplace_limit(c, int(shape))
            assert np.all(curve.delta(eps, bound="lower") <= limit.delta(eps))
        values = curve.delta(np.append(0.0, eps), bound="estimate")
        assert np.all(np.diff(values) <= 1e-9 * values[1:])
        # convex in e^eps
        assert np.all(curve.delta(-eps) >= -np.expm1(-eps) * (1 - 1e-12))

    for_random(EVERY_NOISE, examples, check)


@pytest.mark.parametrize(("name", "full"), quick_and_full)
def test_every_family_is_consistent(name, full):
    """Order of the bounds, monotonicity, convexity, and f(alpha) >= 1 - delta - e^eps alpha, also at the ends."""
    curve = CURVES[name]
    alpha = np.array(LEVELS)
    lower, value, upper = (curve.curve(alpha, bound=b) for b in ("lower", "estimate", "upper"))
    rounding = 1e-15  # of 1 - delta - e^t alpha
    assert np.all((lower <= value + rounding) & (value <= upper + rounding) & (upper <= 1 - alpha))
    assert np.all(np.diff(value) <= 1e-12)
    gap = 2e-9 + float(np.max(upper - lower))
    cut = np.diff(value) / np.diff(alpha)
    wide = np.minimum(np.diff(alpha)[1:], np.diff(alpha)[:-1]) > 1e-6
    assert np.all((np.diff(cut) >= -1e-6 - 2 * gap / 1e-6 * 1e-6)[wide])
    assert lower[-1] == upper[-1] == 0.0
    eps = np.array([-3.0, -0.4, 0.0, 0.1, 0.4, 1.0, 2.0, 5.0, 40.0] if full else [-0.4, 0.0, 1.0, 40.0])
    below, delta, above = (curve.delta(eps, bound=b) for b in ("lower", "estimate", "upper"))
    assert np.all((below <= delta) & (delta <= above))
    assert np.all(np.diff(delta) <= 1e-9 * delta[:-1] + curve.precision.absolute)
    for t, high in zip(eps, above, strict=True):
        assert np.all(1 - high - math.exp(t) * alpha <= upper + 1e-15)
    rate = curve.error_rates(eps, bound="estimate")[0]
    tangent = np.exp(eps) * rate
    assert np.all(1 - curve.curve(rate, bound="upper") - tangent <= above + 1e-9 * (1 + tangent))
    assert np.all(below <= 1 - curve.curve(rate) - tangent + 1e-9 * (1 + tangent) + 2 * gap)
    for d in DELTAS if full else DELTAS[3:5]:
        first, middle, last = (curve.epsilon(d, bound=b) for b in ("lower", "estimate", "upper"))
        assert 0 <= first <= middle * (1 + 1e-11) <= last * (1 + 2e-11)
        assert math.isinf(last) or curve.log_delta(last) <= math.log(d) + 1e-12
