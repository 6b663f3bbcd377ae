"""Quantile regression: the exact vertex without noise, unbiased medians under noise, stated bandwidths."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulations import laplace_noise, truncated_normal, zil_noise

from privfit.estimators import CapabilityError, QuantileRegression, SmallSampleWarning
from privfit.mechanisms import Gaussian, Laplace, SymmetricLaplace, ZeroInflatedLaplace


def median_data(rng, n, d=6):
    x = truncated_normal(rng, (n, d))
    return x, 1 + x.sum(axis=1) + rng.normal(size=n)


def check_risk(params, x, y, tau):
    r = y - params[0] - x @ params[1:]
    return np.mean(r * (tau - (r < 0)))


@pytest.mark.parametrize("tau", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("n", [9, 200, 3000])
def test_without_noise_the_minimiser_is_exact(tau, n):
    """Never worse than scikit-learn's linear programme."""
    from sklearn.linear_model import QuantileRegressor

    rng = np.random.default_rng(n)
    x, y = median_data(rng, n, 2)
    ours = QuantileRegression(tau).fit(x, y)
    theirs = QuantileRegressor(quantile=tau, alpha=0.0).fit(x, y)
    reference = np.r_[theirs.intercept_, theirs.coef_]
    assert check_risk(ours.params_, x, y, tau) <= check_risk(reference, x, y, tau) + 1e-10


def tied_data(kind, rng, n):
    if kind == "counts":
        x = rng.integers(0, 4, (n, 2)).astype(float)
        return x, rng.poisson(1 + x.sum(axis=1)).astype(float)
    if kind == "two values":
        x = rng.integers(0, 3, (n, 2)).astype(float)
        return x, (rng.random(n) < 0.2 + 0.2 * x[:, 0]).astype(float)
    if kind == "heaped":
        x = rng.integers(18, 70, (n, 1)).astype(float)
        return x, 5 * np.round((x[:, 0] + 10 * rng.normal(size=n)) / 5)
    x = rng.normal(size=(n, 2))  # mostly zero: the fit is zero through many different records
    return x, np.maximum(np.round(x.sum(axis=1) + rng.normal(size=n)), 0.0) * (rng.random(n) < 0.3)


def smallest_check_risk(x, y, tau):
    """By scipy's linear programme over the different records, every one with its two residuals."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, hstack

    rows, counts = np.unique(np.c_[x, y], axis=0, return_counts=True)
    m, p = len(rows), x.shape[1] + 1
    equality = hstack([csr_array(np.c_[np.ones(m), rows[:, :-1]]), eye_array(m), -eye_array(m)])
    cost = np.r_[np.zeros(p), tau * counts, (1 - tau) * counts]
    found = linprog(cost, A_eq=equality, b_eq=rows[:, -1], bounds=[(None, None)] * p + [(0, None)] * 2 * m)
    assert found.status == 0
    return found.fun / len(y)


@pytest.mark.filterwarnings("ignore:.*lie exactly on the fitted quantile")
@pytest.mark.parametrize("tau", [0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize(("kind", "n"), [("counts", 10_000), ("two values", 10_000), ("heaped", 3000), ("zeros", 500)])
def test_without_noise_ties_do_not_hide_the_minimum(kind, n, tau):
    x, y = tied_data(kind, np.random.default_rng(n), n)
    found = check_risk(QuantileRegression(tau).fit(x, y).params_, x, y, tau)
    assert_allclose(found, smallest_check_risk(x, y, tau), rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore:.*lie exactly on the fitted quantile")
@pytest.mark.parametrize("kind", ["two values", "zeros"])
def test_more_ties_than_fit_a_programme(monkeypatch, kind):
    """Equal records are one; of different ones a part stands for all: here the fit is known, zero (or two values)."""
    monkeypatch.setattr("privfit.estimators.quantile_search._MOST", 300)
    x, y = tied_data(kind, np.random.default_rng(4), 4000)
    model = QuantileRegression(0.5).fit(x, y)
    if kind == "zeros":
        assert_allclose(model.params_, 0.0, atol=1e-9)
    else:
        assert_allclose(check_risk(model.params_, x, y, 0.5), smallest_check_risk(x, y, 0.5), rtol=1e-9)


def test_ties_without_noise_are_said():
    """A density does not exist at a tie; a bandwidth of the rounding step is the way out that the warning names."""
    rng = np.random.default_rng(13)
    x, y = median_data(rng, 3000, 1)
    whole = x.round(), y.round()
    with pytest.warns(SmallSampleWarning, match=r"\d+ % of the records lie exactly on the fitted quantile"):
        tied = QuantileRegression(0.4).fit(*whole)
    r = whole[1] - tied.predict(whole[0])
    assert_allclose(tied.diagnostics_["tied"], (np.sum(np.abs(r) < 1e-9) - 2) / 3000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert QuantileRegression(0.4).fit(x, y).diagnostics_["tied"] == 0.0
        assert "tied" not in QuantileRegression(0.4, bandwidth=1.0).fit(*whole).diagnostics_


def test_a_bound_without_noise_is_kept_by_the_exact_fit():
    rng = np.random.default_rng(12)
    x, y = median_data(rng, 400, 1)
    with pytest.warns(SmallSampleWarning, match="boundary"):
        model = QuantileRegression(0.4, bound=0.5).fit(x, y)
    assert_allclose(model.coef_, 0.5, rtol=1e-9)
    grid = y - 0.5 * x[:, 0]
    assert_allclose(model.intercept_, np.quantile(grid, 0.4), atol=np.diff(np.sort(grid)[155:165]).max())


@pytest.mark.parametrize("tau", [0.3, 0.5])
def test_without_noise_the_sandwich_is_powells(tau):
    """Middle of exact scores, kernel estimate of the density (logistic, the bandwidth of the diagnostics)."""
    rng = np.random.default_rng(11)
    x = rng.uniform(-1, 1, (2000, 2))
    y = 1 + x.sum(axis=1) + (1 + 0.6 * x[:, 0]) * rng.normal(size=2000)
    model = QuantileRegression(tau).fit(x, y, keep_records=True)
    design = np.c_[np.ones(2000), x]
    r, h = y - model.predict(x), model.diagnostics_["bandwidth"]
    scores = design.T * np.where(np.abs(r) < 1e-9, tau - 0.5, tau - (r < 0))
    bells = np.where(np.abs(r) < 1e-9, 0.0, 0.25 / h / np.cosh(r / (2 * h)) ** 2)  # without those it goes through
    v = (design.T * bells) @ design / 2000
    expected = np.linalg.inv(v) @ np.cov(scores, bias=True) @ np.linalg.inv(v) / 1997
    assert_allclose(model.cov_params_, expected, rtol=0.01, atol=0.01 * expected.max())  # v: at the smoothed fit
    drawn = model.bootstrap(50, random_state=0)
    assert_allclose(drawn.errors, model.bse_ * np.sqrt(1997 / 2000), rtol=1e-5)  # scores there: of mean O(p/n)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_without_noise_standard_errors_of_unequal_errors(seed):
    """n = 1000, tau = .3, 600 runs: 1800 intervals; a standard deviation has a relative Monte Carlo error of 2.9 %."""
    from scipy.stats import norm

    rng = np.random.default_rng(seed)
    truth = np.array([1 + norm.ppf(0.3), 1 + 0.6 * norm.ppf(0.3), 1])
    errors, spread = [], []
    for _ in range(600):
        x = rng.uniform(-1, 1, (1000, 2))
        model = QuantileRegression(0.3).fit(x, 1 + x.sum(axis=1) + (1 + 0.6 * x[:, 0]) * rng.normal(size=1000))
        errors.append(model.params_ - truth)
        spread.append(model.bse_)
    errors, spread = np.array(errors), np.array(spread)
    ratio = np.sqrt(np.mean(spread**2, axis=0)) / errors.std(axis=0)
    print(f"seed {seed}: standard error over deviation {ratio}, coverage {np.mean(np.abs(errors) < 1.96 * spread):.3f}")
    assert np.abs(ratio - 1).max() < 3.5 * 0.029
    assert abs(ratio.mean() - 1) < 3 * 0.029 / np.sqrt(3)
    assert 0.93 < np.mean(np.abs(errors) < 1.96 * spread) < 0.97


def test_without_noise_standard_errors():
    """Against sqrt(tau (1 - tau) / f(0)^2 / n) with the true density, in standard units."""
    rng = np.random.default_rng(0)
    x, y = median_data(rng, 20_000, 2)
    model = QuantileRegression(0.5).fit(x, y)
    expected = np.sqrt(np.pi / 2 / 20_000) / x.std(axis=0)
    assert_allclose(model.bse_[1:], expected, rtol=0.06)
    assert 0.9 < model.efficiency_.overall < 1.1


def estimates(reps, n, scale, corrections, tau=0.5, seed=1000):
    found = {name: ([], []) for name in corrections}
    for rep in range(reps):
        rng = np.random.default_rng(seed + rep)
        x, y = median_data(rng, n)
        released = x + zil_noise(rng, n, 6, scale, 0.2)
        for name in corrections:
            noise = None if name == "oracle" else ZeroInflatedLaplace(scale, 0.2)
            model = QuantileRegression(
                tau, noise=noise, correction="exact" if name == "oracle" else name, random_state=rep
            ).fit(x if name == "oracle" else released, y)
            found[name][0].append(model.params_ - 1.0)
            found[name][1].append(model.bse_)
    return {name: (np.array(e), np.array(s)) for name, (e, s) in found.items()}


@pytest.mark.filterwarnings("ignore::privfit.estimators.SmallSampleWarning")  # for the doubly random rival
def test_exact_median_is_unbiased_and_beats_doubly_random():
    """10 runs, n = 10,000, lambda = 1 (seeds 1000..1009)."""
    found = estimates(10, 10_000, 1.0, ("exact", "dr", "naive"))
    errors = found["exact"][0]
    z = errors.mean(axis=0) / (errors.std(axis=0, ddof=1) / np.sqrt(10))
    assert np.abs(z).max() < 4.1  # seven coefficients, 9 degrees of freedom
    assert found["dr"][0][:, 1:].var(axis=0).mean() > 2 * errors[:, 1:].var(axis=0).mean()
    assert np.abs(found["naive"][0][:, 1:].mean(axis=0)).min() > 0.5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::privfit.estimators.SmallSampleWarning")  # for the doubly random rival
def test_median_full():
    """100 runs, n = 20,000, lambda = 1: 700 intervals (standard error .8 %), DR variance >= 2x (20 runs), unbiased."""
    found = estimates(100, 20_000, 1.0, ("oracle", "exact")) | estimates(20, 20_000, 1.0, ("dr",))
    errors, spread = found["exact"]
    assert 0.93 < np.mean(np.abs(errors) < 1.96 * spread) < 0.97
    assert np.abs(errors.mean(axis=0) / errors.std(axis=0, ddof=1) * 10).max() < 3.2
    assert found["dr"][0][:, 1:].var() > 2 * errors[:, 1:].var()
    assert_allclose(np.median(spread[:, 1:]), errors[:, 1:].std(), rtol=0.1)
    rng = np.random.default_rng(0)  # the reported cost of privacy against the real oracle, to 15 %
    x, y = median_data(rng, 20_000)
    report = QuantileRegression(noise=ZeroInflatedLaplace(1.0, 0.2)).fit(x + zil_noise(rng, 20_000, 6, 1.0, 0.2), y)
    real = errors[:, 1:].std() / found["oracle"][0][:, 1:].std()
    assert_allclose(np.median(report.efficiency_.factors[1:]), real, rtol=0.15)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "scale", "expected", "width"), [(2500, 1.0, 0.157, 0.2), (7500, 2.5, 0.186, 0.4)])
def test_paper_table(n, scale, expected, width):
    """RMSE of EXACT in an independent prototype (40 runs).

    At lambda = 2.5 the fits have heavy tails (0.20 to 0.25 in sets of 40 to 60 runs, whatever the bandwidth),
    and the library says that n is too small for its standard errors.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallSampleWarning)
        errors = estimates(60, n, scale, ("exact",))["exact"][0]
    assert_allclose(np.sqrt(np.mean(errors[:, 1:] ** 2)), expected, rtol=width)


def test_uncertain_curvature_is_said():
    """n = 2500 at lambda = 1: intervals cover about 90 %, so the fit warns; at n = 20,000 it does not."""
    for n, warned in ((2500, True), (20_000, False)):
        rng = np.random.default_rng(0)
        x, y = median_data(rng, n)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = QuantileRegression(noise=ZeroInflatedLaplace(1.0, 0.2)).fit(x + zil_noise(rng, n, 6, 1.0, 0.2), y)
        assert any(w.category is SmallSampleWarning for w in caught) == warned
        assert (model.diagnostics_["curvature_error"] > 1 / 3) == warned
        assert np.isfinite(model.bse_).all()


def test_noised_response():
    """Only the response is noised (quantile .75 of normal errors, seed 3)."""
    from scipy.stats import norm

    rng = np.random.default_rng(3)
    x, y = median_data(rng, 30_000, 2)
    law = {"y": ZeroInflatedLaplace(1.5, 0.3)}
    model = QuantileRegression(0.75, noise=law).fit(x, y + zil_noise(rng, 30_000, 1, 1.5, 0.3)[:, 0])
    truth = np.array([1 + norm.ppf(0.75), 1, 1])
    assert np.abs((model.params_ - truth) / model.bse_).max() < 4
    naive = QuantileRegression(0.75, noise=law, correction="naive")
    naive.fit(x, y + zil_noise(rng, 30_000, 1, 1.5, 0.3)[:, 0])
    assert abs(naive.params_[0] - truth[0]) > 5 * naive.bse_[0]


@pytest.mark.parametrize(
    ("law", "draw"),
    [
        (SymmetricLaplace(0.4), lambda rng, n: laplace_noise(rng, n, 2, 0.4)),
        (SymmetricLaplace(0.4, shape=2), lambda rng, n: laplace_noise(rng, n, 2, 0.4, 2)),
        (Laplace(0.28), lambda rng, n: 0.28 * rng.laplace(size=(n, 2))),
    ],
    ids=["shape 1", "shape 2", "product"],
)
def test_smoothed_loss_under_polynomial_inverses(law, draw):
    """Median of normal errors: smoothing is symmetric, so the estimate is unbiased (n = 40,000, seed 5)."""
    rng = np.random.default_rng(5)
    x, y = median_data(rng, 40_000, 2)
    model = QuantileRegression(0.5, noise=law).fit(x + draw(rng, 40_000), y)
    assert np.abs((model.params_ - 1) / model.bse_).max() < 4
    assert 0.05 < model.diagnostics_["bandwidth"] < 2
    assert "smoothed with bandwidth" in model.summary()


def test_given_bandwidth_is_in_units_of_the_response():
    rng = np.random.default_rng(6)
    x, y = median_data(rng, 4000, 2)
    released = x + zil_noise(rng, 4000, 2, 0.4, 0.3)
    law = ZeroInflatedLaplace(0.4, 0.3)
    one = QuantileRegression(0.5, noise=law, bandwidth=0.4).fit(released, y)
    scaled = QuantileRegression(0.5, noise=law, bandwidth=400.0).fit(released, 1000 * y)
    assert_allclose(one.diagnostics_["bandwidth"], 0.4)
    assert_allclose(scaled.params_, 1000 * one.params_, rtol=1e-6)
    assert_allclose(scaled.bse_, 1000 * one.bse_, rtol=1e-5)


def test_curvature_and_sandwich_at_large_n():
    """V against the known f(0) E x^2, A against the variance of the unsmoothed score.

    n = 400,000 (seed 7). The unsmoothed corrected score is the closed form tau - 1[r<0] + (k/2) sign(r)
    e^{-|r|/b} in the index plus the part through b; its mean's difference quotient of step .1 has a standard
    error of about 3 %.
    """
    rng = np.random.default_rng(7)
    n, scale, d0 = 400_000, 0.7, 0.3
    x = rng.uniform(-1, 1, size=n)
    y = x + rng.normal(size=n)
    released = x + zil_noise(rng, n, 1, scale, d0)[:, 0]
    k = (1 - d0) / d0

    def score(beta):
        r, b = y - beta * released, abs(beta) * scale * np.sqrt(d0 / 2)
        bell = np.exp(-np.abs(r) / b)
        slope = 0.5 - (r < 0) + 0.5 * k * np.sign(r) * bell
        return -released * slope - 0.5 * k * (1 + np.abs(r) / b) * bell * b / beta

    law = ZeroInflatedLaplace(scale, d0)
    model = QuantileRegression(0.5, noise=law, fit_intercept=False).fit(released[:, None], y)
    true_v = np.exp(0) / np.sqrt(2 * np.pi) / 3
    slope = (score(1.1).mean() - score(0.9).mean()) / 0.2
    assert_allclose(slope, true_v, rtol=0.08)
    # standard units of the search: columns and response over their root mean squares
    v = model.diagnostics_["smallest_curvature"] * np.mean(released**2) / np.sqrt(np.mean(y**2))
    assert_allclose(v, true_v, rtol=0.08)
    assert_allclose(model.bse_[0], np.sqrt(score(1.0).var() / n) / true_v, rtol=0.08)
    assert model.diagnostics_["positive_curvature"]


def test_raw_data_at_the_same_bandwidth_is_the_target():
    """Heaped response (whole hours): release and raw fit agree at one bandwidth within 4 standard errors."""
    rng = np.random.default_rng(10)
    x = rng.uniform(-1, 1, size=(40_000, 1))
    y = np.round(3 * x[:, 0] + 2 * rng.normal(size=40_000))
    noise = zil_noise(rng, 40_000, 2, np.array([0.4, 2.0]), 0.2)
    law = {(0, "y"): ZeroInflatedLaplace((0.4, 2.0), 0.2)}
    raw = QuantileRegression(0.6, bandwidth=1.0).fit(x, y)
    fit = QuantileRegression(0.6, noise=law, bandwidth=1.0).fit(x + noise[:, :1], y + noise[:, 1])
    assert np.abs((fit.params_ - raw.params_) / fit.bse_).max() < 4
    assert raw.diagnostics_["bandwidth"] == pytest.approx(1.0)


def test_gaussian_noise_is_refused_with_a_way_out():
    rng = np.random.default_rng(8)
    x, y = median_data(rng, 200, 2)
    with pytest.raises(CapabilityError, match="SymmetricLaplace"):
        QuantileRegression(noise=Gaussian(0.3)).fit(x, y)


def test_large_table_without_noise():
    """n = 300,000: no dense programme is ever built; the minimiser is still a vertex."""
    rng = np.random.default_rng(9)
    x, y = median_data(rng, 300_000, 2)
    model = QuantileRegression(0.3).fit(x, y)
    r = y - model.predict(x)
    assert np.sum(np.abs(r) < 1e-9) == 3
    assert abs(np.mean(r < 0) - 0.3) < 1e-4


@pytest.mark.parametrize("outliers", ["contaminated", "cauchy"])
def test_without_noise_outliers_leave_standard_errors(outliers):
    """n = 4000: sqrt(tau (1 - tau) / n) / f(0), within 12 % (the kernel estimate of f varies by about 4 %)."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(4000, 1))
    errors = rng.standard_cauchy(4000)
    density = 1 / np.pi
    if outliers == "contaminated":
        errors, density = np.where(rng.random(4000) < 0.01, 1e6, 1.0) * rng.normal(size=4000), 0.99 / np.sqrt(2 * np.pi)
    model = QuantileRegression(0.5).fit(x, 1 + 2 * x[:, 0] + errors)
    assert_allclose(model.bse_, 0.5 / np.sqrt(4000) / density, rtol=0.12)
    assert model.diagnostics_["tied"] == 0.0


def test_far_outliers_are_no_ties():
    """Cubed Cauchy errors: residuals near 0 are tiny beside the spread of the response, and the fit is still exact."""
    rng = np.random.default_rng(6)
    x = rng.normal(size=(800, 1))
    y = 2 * x[:, 0] + rng.standard_cauchy(800) ** 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = QuantileRegression(0.5).fit(x, y)
    assert_allclose(check_risk(model.params_, x, y, 0.5), smallest_check_risk(x, y, 0.5), rtol=1e-12)
    assert abs(model.coef_[0] - 2) < 0.1


def test_few_records_beyond_the_quantile_are_said():
    x = np.random.default_rng(7).normal(size=(180, 1))
    with pytest.warns(SmallSampleWarning, match="about 9 of 180 records lie beyond the quantile 0.95"):
        QuantileRegression(0.95, fit_intercept=False).fit(x, x[:, 0] ** 2)


@pytest.mark.parametrize("alpha", [1e-8, 1e-2, 1.0])
@pytest.mark.parametrize("tau", [0.05, 0.5])
def test_penalised_without_noise_meets_the_exact_conditions(alpha, tau):
    """0 is a subgradient: records on the fit have multipliers in [tau - 1, tau] that balance the others."""
    from scipy.optimize import lsq_linear

    rng = np.random.default_rng(8)
    x, n = rng.normal(size=(600, 2)), 600
    y = x @ [1.0, -2.0] + rng.exponential(size=n)
    model = QuantileRegression(tau, alpha=alpha).fit(x, y)
    design, r = np.c_[np.ones(n), x], y - model.predict(x)
    on = np.abs(r) < 1e-4
    rest = design[~on].T @ (tau - (r[~on] < 0)) / n - alpha * np.r_[0.0, model.coef_]
    found = lsq_linear(design[on].T / n, -rest, (tau - 1, tau))
    assert on.sum() <= 6
    assert_allclose(found.fun, 0.0, atol=1e-6)  # beside 1 / n for a record on the wrong side


@pytest.mark.filterwarnings("ignore:.*too few for this noise")
def test_a_bandwidth_too_narrow_for_the_noise_is_refused():
    rng = np.random.default_rng(9)
    law = ZeroInflatedLaplace(scale=1.5, delta0=0.8)
    x = rng.normal(size=(3000, 1))
    y = 2 * x[:, 0] + rng.normal(size=3000)
    moved = (rng.random(3000) > 0.8) * 1.5 * np.sqrt(rng.exponential(size=3000)) * rng.normal(size=3000)
    with pytest.raises(ValueError, match=r"bandwidth must be at least 0\.006\d* under this noise, got 0\.002"):
        QuantileRegression(0.5, noise={0: law}, bandwidth=0.002).fit(x + moved[:, None], y)
    narrow = QuantileRegression(0.5, noise={0: law}, bandwidth=0.01).fit(x + moved[:, None], y)
    assert narrow.converged_


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("errors", ["normal", "cauchy", "contaminated", "unequal", "normal .05"])
def test_without_noise_intervals_under_outliers(errors, seed):
    """n = 1000, 500 runs: coverage of the slope has a standard error of 1 %."""
    rng = np.random.default_rng(seed)
    inside, tau = 0, 0.05 if errors.endswith(".05") else 0.5
    for _ in range(500):
        x, e = rng.normal(size=(1000, 1)), rng.normal(size=1000)
        if errors == "cauchy":
            e = rng.standard_cauchy(1000)
        elif errors == "contaminated":
            e = np.where(rng.random(1000) < 0.01, 1e4, 1.0) * e
        elif errors == "unequal":
            e = e * (1 + np.abs(x[:, 0]))
        model = QuantileRegression(tau).fit(x, 1 + 2 * x[:, 0] + e)
        inside += abs(model.coef_[0] - 2) < 1.96 * model.bse_[1]
    print(f"{errors}, seed {seed}: coverage {inside / 500}")
    assert 0.92 <= inside / 500 <= 0.98
