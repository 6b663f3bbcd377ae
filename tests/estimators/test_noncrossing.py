"""Rearrangement: sorting, its two theorems, and several quantiles of a column."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from simulations import zil_noise

from privfit.estimators import Quantile
from privfit.estimators.noncrossing import check_quantiles, rearrange
from privfit.mechanisms import ZeroInflatedLaplace


def test_sorting_comes_closer_to_every_increasing_function_and_loses_none_in_a_band():
    rng = np.random.default_rng(0)
    truth = np.sort(rng.normal(size=(500, 6)), axis=1)
    estimate = truth + rng.normal(size=truth.shape)
    better = rearrange(estimate)
    for p in (1, 2, 4):
        gap, sorted_gap = (np.sum(np.abs(e - truth) ** p, axis=1) for e in (estimate, better))
        assert (sorted_gap <= gap + 1e-12).all() and (sorted_gap < gap - 1e-6).any()
    low, high = estimate - 1.5, estimate + rng.uniform(0.5, 2.0, truth.shape)
    held = ((low <= truth) & (truth <= high)).all(axis=1)
    still = ((rearrange(low) <= truth) & (truth <= rearrange(high))).all(axis=1)
    assert (still >= held).all() and still.sum() > held.sum()


@pytest.mark.parametrize("bad", [[0.5, 0.5], [0.5, 0.2], [0.0, 0.5], [], [[0.1, 0.2]], [0.5, np.nan], [0.3, 1.0]])
def test_bad_quantiles(bad):
    with pytest.raises(ValueError, match="quantiles"):
        check_quantiles(bad)
    with pytest.raises(ValueError, match="quantiles"):
        Quantile(bad).fit([[1.0], [2.0], [3.0]])


def test_several_quantiles_of_columns():
    rng = np.random.default_rng(1)
    n, taus = 20_000, [0.25, 0.5, 0.9]
    x = rng.normal(size=(n, 2)) * [1.0, 2.0]
    model = Quantile(taus).fit(x)
    z = norm.ppf(taus)
    assert model.quantile_.shape == (2, 3)
    assert_allclose(model.quantile_, [z, 2 * z], atol=0.06)
    for j in range(2):
        for k, tau in enumerate(taus):
            alone = Quantile(tau).fit(x[:, [j]])
            assert model.quantile_[j, k] == alone.quantile_[0]
            assert_allclose(model.bse_[3 * j + k], alone.bse_[0], rtol=1e-10)
    # n Cov(q_s, q_t) = s (1 - t) / (f_s f_t)
    f = norm.pdf(z)
    s = np.minimum.outer(taus, taus) - np.outer(taus, taus)
    assert_allclose(n * model.cov_params_[:3, :3], s / np.outer(f, f), rtol=0.2)
    assert_allclose(n * model.cov_params_[:3, 3:], 0.0, atol=0.2)
    assert "1 @ 0.9" in model.summary()
    released = x + zil_noise(rng, n, 2, 0.5, 0.3)
    noisy = Quantile(taus, noise=ZeroInflatedLaplace(0.5, 0.3)).fit(released)
    assert (np.abs(noisy.quantile_ - model.quantile_) < 4.5 * noisy.bse_.reshape(2, 3)).all()
    assert noisy.efficiency_.factors.shape == (6,) and (np.diff(noisy.quantile_) > 0).all()
    band = noisy.simultaneous_intervals()
    assert (band[:, 0] < noisy.conf_int()[:, 0]).all()
