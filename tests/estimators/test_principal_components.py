"""Principal components of a debiased covariance: scikit-learn's on raw data, calibrated errors on releases."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulations import noise_of

from privfit.estimators import CapabilityError, SmallSampleWarning
from privfit.estimators.principal_components import PrincipalComponents
from privfit.mechanisms import (
    Box,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    SymmetricLaplace,
    ZeroInflatedLaplace,
    release,
)

ROOT = np.array([[2.0, 0.5, 0.0], [1.0, -1.0, 0.3], [0.5, 0.8, 0.6]])
VALUES, VECTORS = np.linalg.eigh(ROOT @ ROOT.T)
VALUES, VECTORS = VALUES[::-1], VECTORS[:, ::-1].T
VECTORS = VECTORS * np.sign(VECTORS[np.arange(3), np.abs(VECTORS).argmax(axis=1)])[:, None]
LAWS = [ZeroInflatedLaplace(0.8, 0.4), SymmetricLaplace(0.8, shape=4), Gaussian(0.8), Laplace(0.5)]


def data(rng, n):
    return rng.normal(size=(n, 3)) @ ROOT.T + [1.0, -2.0, 5.0]


def test_without_noise_it_is_scikit_learns():
    from sklearn.decomposition import PCA

    x = data(np.random.default_rng(0), 300)
    ours, theirs = PrincipalComponents(2).fit(x), PCA(2).fit(x)
    for name in ("components_", "explained_variance_", "explained_variance_ratio_", "mean_"):
        assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-12)
    assert_allclose(ours.transform(x), theirs.transform(x), atol=1e-11)
    assert_allclose(ours.fit_transform(x), theirs.transform(x), atol=1e-11)
    scores = theirs.transform(x)
    assert_allclose(ours.inverse_transform(scores), theirs.inverse_transform(scores), atol=1e-11)
    assert list(ours.get_feature_names_out()) == ["principalcomponents0", "principalcomponents1"]
    assert_allclose(PrincipalComponents().fit(x).covariance_, np.cov(x.T), atol=1e-12)


def test_errors_of_normal_data_are_andersons():
    """Var(l) = 2 l^2/n; Var(v_j) = sum_k l_j l_k / (l_j - l_k)^2 v_k^2 / n (n = 200,000, to 2 %)."""
    n = 200_000
    fit = PrincipalComponents().fit(data(np.random.default_rng(1), n))
    assert_allclose(fit.bse_, VALUES * np.sqrt(2 / n), rtol=0.02)
    for j in range(3):
        others = [k for k in range(3) if k != j]
        weight = VALUES[j] * VALUES[others] / (VALUES[j] - VALUES[others]) ** 2
        assert_allclose(fit.components_bse_[j], np.sqrt(weight @ VECTORS[others] ** 2 / n), rtol=0.02)
    assert fit.efficiency_.overall == 1.0


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_every_law_is_debiased(law):
    """n = 50,000 (seed 2): eigenvalues and components within 4 standard errors; uncorrected ones are not."""
    rng = np.random.default_rng(2)
    x = data(rng, 50_000)
    released = x + noise_of(law, rng, 50_000, 3)
    fit, naive = PrincipalComponents(noise=law).fit(released), PrincipalComponents().fit(released)
    assert np.abs((fit.params_ - VALUES) / fit.bse_).max() < 4
    assert np.abs((fit.components_ - VECTORS) / fit.components_bse_).max() < 4
    assert np.abs((naive.params_ - VALUES) / naive.bse_).max() > 8
    assert (fit.efficiency_.factors > 1).all()
    assert fit.diagnostics_["projected"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("seed", [1, 2])
def test_intervals_cover_and_the_cost_is_the_real_one(seed, law):
    """400 runs of n = 4000: 1200 and 3600 intervals (standard error about .7 %)."""
    errors, spread, oracle, factors, vectors, widths = ([] for _ in range(6))
    for rep in range(400):
        rng = np.random.default_rng([seed, rep])
        x = data(rng, 4000)
        fit = PrincipalComponents(noise=law).fit(x + noise_of(law, rng, 4000, 3))
        errors.append(fit.params_ - VALUES)
        spread.append(fit.bse_)
        oracle.append(PrincipalComponents().fit(x).params_ - VALUES)
        factors.append(fit.efficiency_.factors)
        vectors.append(fit.components_ - VECTORS)
        widths.append(fit.components_bse_)
    errors, oracle = np.array(errors), np.array(oracle)
    assert 0.93 < np.mean(np.abs(errors) < 1.96 * np.array(spread)) < 0.97
    assert 0.93 < np.mean(np.abs(vectors) < 1.96 * np.array(widths)) < 0.97
    assert np.abs(errors.mean(axis=0) / errors.std(axis=0)).max() < 4.2 / np.sqrt(400)
    assert_allclose(np.median(factors, axis=0), errors.std(axis=0) / oracle.std(axis=0), rtol=0.2)


def test_raw_fourth_moments_need_no_normality():
    """Uniform columns, kurtosis 1.8: the raw variance of an eigenvalue is .8 l^2/n, not 2 l^2/n (to 15 %)."""
    rng = np.random.default_rng(3)
    n = 200_000
    x = rng.uniform(-1, 1, size=(n, 2)) * [3.0, 1.0]
    fit = PrincipalComponents(noise=Gaussian(0.3)).fit(x + 0.3 * rng.normal(size=(n, 2)))
    assert_allclose(fit.bse_ / fit.efficiency_.factors, fit.params_ * np.sqrt(0.8 / n), rtol=0.15)


def test_equal_eigenvalues_are_said():
    rng = np.random.default_rng(4)
    with pytest.warns(SmallSampleWarning, match="components 2 and 3: .* one subspace"):
        fit = PrincipalComponents().fit(rng.normal(size=(2000, 3)) * [2.0, 1.0, 1.0])
    assert fit.diagnostics_["gaps"][1] < 1.96 * fit.diagnostics_["gap_bse"][1]
    assert fit.components_bse_[0].max() < 0.1 < fit.components_bse_[1].max()


def test_negative_eigenvalues_are_projected():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(300, 3)) * [2.0, 0.1, 0.1] + rng.normal(size=(300, 3))
    with pytest.warns(SmallSampleWarning, match="2 of the 3 eigenvalues .* negative"):
        fit = PrincipalComponents(noise=Gaussian(1.3)).fit(x)
    assert fit.diagnostics_["projected"] == 2
    assert fit.explained_variance_.min() == 0.0
    assert np.linalg.eigvalsh(fit.covariance_).min() > -1e-12
    assert not np.isfinite(fit.efficiency_.overall)


def test_from_a_release_and_only_some_columns_noised():
    rng = np.random.default_rng(6)
    x = data(rng, 20_000)
    out = release(x, Laplace(0.2), Box({"a": (-9, 11), "b": (-12, 8), "c": (0, 10)}), rng=1)
    fit = PrincipalComponents(2).fit_release(out)
    assert np.abs((fit.params_ - VALUES[:2]) / fit.bse_).max() < 4
    part = x.copy()
    part[:, 1] += rng.laplace(size=20_000)
    fit = PrincipalComponents(noise={1: Laplace(1.0)}).fit(part)
    assert np.abs((fit.params_ - VALUES) / fit.bse_).max() < 4
    assert "component 1" in fit.summary()


def test_discrete_noise_has_a_cost_under_normality():
    rng = np.random.default_rng(7)
    x = np.round(10 * data(rng, 5000))
    fit = PrincipalComponents(noise=DiscreteLaplace(3.0)).fit(x)
    assert fit.efficiency_.assumption == "normal scores"


def test_bad_arguments():
    x = data(np.random.default_rng(8), 20)
    for bad in (0, 4, 1.5, "all"):
        with pytest.raises((ValueError, TypeError), match="n_components"):
            PrincipalComponents(bad).fit(x)
    with pytest.raises(ValueError, match="at least 2 records"):
        PrincipalComponents().fit(x[:1])
    with pytest.raises(ValueError, match="shape"):
        PrincipalComponents(2).fit(x).inverse_transform(x)
    for several in ("people.parquet", [1, 2]):
        with pytest.raises(CapabilityError, match=r"one release in memory, got .*load_release"):
            PrincipalComponents().fit_release(several)


def test_the_summary_shows_loadings_and_tests_no_variance():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 4)) @ np.diag([3.0, 2.0, 1.0, 0.5])
    model = PrincipalComponents().fit(x)
    text = model.summary(0.9)
    assert "P>|" not in text
    lines = [line.split() for line in text.splitlines()]
    row = next(line for line in lines if line[:2] == ["component", "1"])
    wanted = [model.explained_variance_[0], model.bse_[0], *model.conf_int(0.9)[0], model.explained_variance_ratio_[0]]
    assert row[2:] == [f"{value:.4f}" for value in wanted]
    rows = [line for line in text.replace("(", " ").replace(")", " ").splitlines() if line.startswith("2 ")]
    found = [float(cell) for line in rows for cell in line.split()[1:]]
    both = np.stack([model.components_[:, 2], model.components_bse_[:, 2]], axis=1).ravel()
    assert_allclose(found, both, atol=6e-5)
    assert "0.050" in text and "0.950]" in text
