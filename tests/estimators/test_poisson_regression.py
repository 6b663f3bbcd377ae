"""Poisson regression: exact factor, a search that stays where the corrected rate has a variance, noised counts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulations import noise_of, replications

from privfit.estimators import CapabilityError
from privfit.estimators.corrections import Term
from privfit.estimators.losses import ExponentialLoss
from privfit.estimators.poisson_regression import PoissonRegression
from privfit.estimators.risk import Design, Risk
from privfit.estimators.solver import minimise
from privfit.estimators.strata import Chunk, Held, IndexNoise, Stratum
from privfit.estimators.symbols import Power
from privfit.mechanisms import DiscreteLaplace, Gaussian, Laplace, SymmetricLaplace, ZeroInflatedLaplace

BETA = np.array([0.5, -0.4, 0.3])
TRUTH = np.r_[1.0, BETA]
LAWS = [
    SymmetricLaplace(0.5),
    SymmetricLaplace(0.6, shape=4),
    ZeroInflatedLaplace(0.5, 0.3),
    Laplace(0.35),
    Gaussian(0.5),
]


def data(rng, n):
    x = rng.uniform(-1, 1, size=(n, 3))
    return x, rng.poisson(np.exp(1 + x @ BETA))


def test_without_noise_it_is_maximum_likelihood():
    """Against statsmodels: estimates, and the robust covariance up to n / (n - p)."""
    import statsmodels.api as sm

    x, y = data(np.random.default_rng(0), 500)
    ours = PoissonRegression().fit(x, y)
    theirs = sm.GLM(y, sm.add_constant(x), family=sm.families.Poisson()).fit(cov_type="HC0", tol=1e-13)
    assert_allclose(ours.params_, theirs.params, atol=1e-7)
    assert_allclose(ours.cov_params_ * 496 / 500, theirs.cov_params(), rtol=1e-5)
    assert_allclose(ours.predict(x), theirs.predict(), rtol=1e-6)


@pytest.mark.parametrize("unit", [1.0, 1e-3, 1e6])
def test_alpha_is_scikit_learns_and_the_unit_moves_the_intercept_only(unit):
    from sklearn.linear_model import PoissonRegressor

    x, y = data(np.random.default_rng(1), 300)
    ours = PoissonRegression(alpha=0.2 * unit).fit(x, y * unit)
    theirs = PoissonRegressor(alpha=0.2, tol=1e-12, max_iter=10_000).fit(x, y)
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    assert_allclose(ours.intercept_, theirs.intercept_ + np.log(unit), atol=1e-6)
    assert_allclose(ours.diagnostics_["penalty"], 0.2 * unit, rtol=1e-12)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_every_law_is_corrected(law):
    """n = 60,000 (seed 3): within 4 standard errors of the truth, and the naive fit is not."""
    rng = np.random.default_rng(3)
    x, y = data(rng, 60_000)
    released = x + noise_of(law, rng, 60_000, 3)
    fit = PoissonRegression(noise=law).fit(released, y)
    assert np.abs((fit.params_ - TRUTH) / fit.bse_).max() < 4
    naive = PoissonRegression(noise=law, correction="naive").fit(released, y)
    assert np.abs((naive.params_ - TRUTH) / naive.bse_).max() > 10


@pytest.mark.parametrize("joint", [True, False])
def test_noise_in_the_count_needs_no_correction_even_joint_with_the_columns(joint):
    """-y u is bilinear and the coordinates of a law are uncorrelated: no cross term (n = 30,000, seed 4)."""
    rng = np.random.default_rng(4)
    x, y = data(rng, 30_000)
    law = ZeroInflatedLaplace(0.5, 0.3)
    noise = noise_of(law, rng, 30_000, 4)
    if not joint:
        noise[:, 3] = noise_of(law, rng, 30_000, 1)[:, 0]
    laws = {(0, 1, 2, "y"): law} if joint else {(0, 1, 2): law, "y": law}
    fit = PoissonRegression(noise=laws).fit(x + noise[:, :3], y + noise[:, 3])
    assert np.abs((fit.params_ - TRUTH) / fit.bse_).max() < 4
    dr = PoissonRegression(noise=laws, correction="dr", random_state=0, draws=3).fit(x + noise[:, :3], y + noise[:, 3])
    assert np.abs((dr.params_ - TRUTH) / dr.bse_).max() < 4


def test_noise_in_the_count_alone_is_priced():
    rng = np.random.default_rng(5)
    x, y = data(rng, 20_000)
    fit = PoissonRegression(noise={"y": Laplace(2.0)}).fit(x, y + 2 * rng.laplace(size=20_000))
    # variances: e^u of the count, 8 of its noise; e^u is about e
    assert_allclose(fit.efficiency_.factors[0], np.sqrt(1 + 8 / np.e), rtol=0.1)
    assert np.abs((fit.params_ - TRUTH) / fit.bse_).max() < 4


@pytest.mark.parametrize("shape", [1, 3])
def test_moments_of_the_rate_exist_where_stated(shape):
    """E e^{tZ} = (1 - t^2 s^2/(2k))^-k by the Gamma mixture, finite for t^2 s^2 < 2k only: t = 2 gives s^2 < k/2."""
    from scipy.integrate import quad
    from scipy.stats import gamma

    def mean(t, s2, stop):
        log_density = gamma(shape, scale=1 / shape).logpdf
        return quad(lambda w: np.exp(log_density(w) + t * t * s2 * w / 2), 0, stop, limit=200)[0]

    limit = ExponentialLoss().max_variance * Power(shape).reach
    assert limit == shape / 2
    s2 = 0.9 * limit
    assert_allclose(mean(2, s2, 200), (1 - 4 * s2 / (2 * shape)) ** -shape, rtol=1e-6)
    assert mean(2, 1.02 * limit, 400) > 10 * mean(2, 0.9 * limit, 200)  # it grows without bound
    assert_allclose(mean(1, s2, 200), 1 / Power(shape)(s2 / 2, 0).at(1.0), rtol=1e-6)


def test_the_search_never_leaves_the_admissible_set():
    """Every theta at which the risk is evaluated has s^2 < 1/2."""
    rng = np.random.default_rng(6)
    x = rng.normal(size=(2, 400))
    noise = IndexNoise((Term(1.0, 0, (Power(1),)),), np.full((1, 2), 0.3), np.zeros(1), np.ones(1))
    seen = []

    class Watched(Risk):
        def derivatives(self, theta, order=2, value=True):
            seen.append(float(0.3 * theta @ theta))
            return super().derivatives(theta, order, value)

    labels = rng.poisson(np.exp(1.5 * x[0])).astype(float)
    risk = Watched(ExponentialLoss(), [Stratum(noise, Held(Chunk((Design(x, None),), labels)))], 2)
    minimise(risk, np.array([5.0, 5.0]), np.full(2, 30.0))
    assert len(seen) > 3
    assert max(seen) < 0.5


def test_too_much_noise_is_an_error_that_says_what_to_do():
    rng = np.random.default_rng(7)
    x, y = data(rng, 20_000)
    law = SymmetricLaplace(1.2)  # s^2 = .72 at the truth
    released = x + noise_of(law, rng, 20_000, 3)
    with pytest.raises(ValueError, match=r"s\^2 below half its shape .* less noise .* bound="):
        PoissonRegression(noise=law).fit(released, y)
    assert PoissonRegression(noise=law, correction="naive").fit(released, y).converged_
    admitted = SymmetricLaplace(1.0, shape=4)
    fit = PoissonRegression(noise=admitted).fit(x + noise_of(admitted, rng, 20_000, 3), y)
    assert 0 < fit.diagnostics_["index_variance"] < 2.0


def test_bad_counts():
    x, y = data(np.random.default_rng(8), 50)
    with pytest.raises(ValueError, match="negative"):
        PoissonRegression().fit(x, y - 5.0)
    with pytest.raises(ValueError, match="positive mean"):
        PoissonRegression().fit(x, 0.0 * y)
    with pytest.raises(ValueError, match="positive mean"):
        PoissonRegression(noise={"y": Laplace(1.0)}).fit(x, y - 50.0)
    with pytest.raises(CapabilityError, match="DiscreteLaplace"):
        PoissonRegression(noise=DiscreteLaplace(1.0)).fit(x, y)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("law", LAWS[:3], ids=str)
def test_intervals_cover_and_the_cost_is_the_real_one(law, seed):
    """300 runs of n = 10,000: 1200 intervals; reported factors against the spread of real oracles to 20 %."""

    def run(rng):
        x, y = data(rng, 10_000)
        return (
            PoissonRegression(noise=law).fit(x + noise_of(law, rng, 10_000, 3), y),
            PoissonRegression().fit(x, y),
            TRUTH,
        )

    errors, spread, oracle, factors = replications(300, seed, run)
    assert 0.93 < np.mean(np.abs(errors) < 1.96 * spread) < 0.97
    assert_allclose(np.median(factors, axis=0), errors.std(axis=0) / oracle.std(axis=0), rtol=0.2)
    assert np.abs(errors.mean(axis=0) / errors.std(axis=0)).max() < 0.3  # a bias of order 1/n
