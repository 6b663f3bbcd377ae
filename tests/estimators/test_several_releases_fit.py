"""Several releases in one fit: disjoint records under their own laws, and the same records with new noise each."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import privfit.mechanisms as pm
from privfit.estimators import CapabilityError, LinearRegression, LogisticRegression, Mean, Quantile, QuantileRegression
from privfit.estimators.linear_svc import LinearSVC

N = 4000
BOX = pm.Box({"a": (-3, 3), "b": (-3, 3), "y": (-9, 9)})
NAMES = ["a", "b"]


def people(n=N, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    y = x @ [1.0, -0.5] + rng.normal(size=n)
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": y})


def released(frame, law, seed, **options):
    return pm.release(frame, law, BOX, rng=seed, **options)


def test_disjoint_records_under_two_laws_solve_the_stacked_normal_equations():
    """Least squares in closed form: pooled moments, less each stratum's own noise."""
    laws = [pm.SymmetricLaplace(0.8), pm.Laplace(0.3)]
    outs = [released(people(N, 1), laws[0], 1), released(people(2 * N, 2), laws[1], 2)]
    fit = LinearRegression().fit_release(outs, "y")
    w = [np.c_[np.ones(out.n_rows), out.frame[["a", "b", "y"]].to_numpy()] for out in outs]
    moments = sum(own.T @ own for own in w) - np.diag([0, 1, 1, 1]) * (N * 0.8**2 + 2 * N * 2 * 0.3**2)
    assert_allclose(fit.params_, np.linalg.solve(moments[:3, :3], moments[:3, 3]), rtol=1e-9)
    assert "(4,000 records)" in fit.summary() and "(8,000 records)" in fit.summary()


def test_one_law_in_two_releases_is_one_release():
    out = released(people(), pm.SymmetricLaplace(0.5), 3)
    halves = [pm.Release(**{**vars(out), "frame": f, "n_rows": len(f)}) for f in (out.frame[:999], out.frame[999:])]
    for model in (LinearRegression(), QuantileRegression(0.4)):
        whole = model.fit_release(out, "y")
        params, cov = whole.params_, whole.cov_params_
        both = model.fit_release(halves, "y")
        assert_allclose(both.params_, params, rtol=1e-9, atol=1e-12)
        assert_allclose(both.cov_params_, cov, rtol=1e-6, atol=1e-12)
    mean = Mean().fit_release(out).mean_
    assert_allclose(Mean().fit_release(halves).mean_, mean, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_the_variance_of_repeated_releases_is_that_of_the_averaged_loss(seed):
    """300 replications of 3 releases of 1,000 records: spread, standard errors and coverage agree.

    The scores of a record's releases share its raw score, so a sandwich that took them for independent records would
    give standard errors too small; the ratio of standard error to spread is known to 1 / sqrt(2 * 300) = 4 %.
    """
    law, estimates, errors, covered = pm.SymmetricLaplace(0.7), [], [], 0
    for replication in range(300):
        frame = people(1000, [seed, replication])
        outs = [released(frame, law, 10_000 * (seed + 1) + 3 * replication + k) for k in range(3)]
        fit = LinearRegression().fit_release(outs, "y", same_rows=True)
        estimates.append(fit.params_[1])
        errors.append(fit.bse_[1])
        covered += abs(fit.params_[1] - 1.0) < 1.96 * fit.bse_[1]
    assert abs(np.mean(estimates) - 1.0) < 4 * np.std(estimates) / np.sqrt(300) + 0.005  # clipping moves it by less
    assert_allclose(np.mean(errors), np.std(estimates), rtol=0.16)
    assert abs(covered / 300 - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 300)


def test_repeated_releases_average_their_gradients_and_gain():
    """The estimating equation is the mean of the single ones; three releases beat one, but not 3 n records."""
    frame, law = people(), pm.SymmetricLaplace(0.7)
    outs = [released(frame, law, k) for k in (5, 6, 7)]
    one = LinearRegression().fit_release(outs[0], "y").bse_
    fit = LinearRegression().fit_release(outs, "y", same_rows=True)
    moments = sum(
        np.c_[np.ones(N), o.frame[["a", "b", "y"]]].T @ np.c_[np.ones(N), o.frame[["a", "b", "y"]]] for o in outs
    )
    moments = moments / 3 - np.diag([0, 1, 1, 1]) * N * 0.7**2
    assert_allclose(fit.params_, np.linalg.solve(moments[:3, :3], moments[:3, 3]), rtol=1e-9)
    assert ((fit.bse_ < 0.95 * one) & (fit.bse_ > one / np.sqrt(3))).all()
    assert fit._n_records == N
    mean = Mean().fit_release(outs, same_rows=True)
    assert_allclose(mean.mean_, np.mean([o.frame.to_numpy().mean(axis=0) for o in outs], axis=0), rtol=1e-12)
    raw = np.sqrt(1 + 0.7**2 / 3)  # of a standard normal column
    assert_allclose(mean.efficiency_.factors[:2], raw, rtol=0.05)


def test_repeated_releases_from_disk_and_with_labels(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (N, 2))
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1]})
    frame["l"] = np.where(rng.random(N) < 1 / (1 + np.exp(-2 * x[:, 0])), "yes", "no")
    law = {("a", "b"): pm.SymmetricLaplace(0.3), "l": pm.RandomizedResponse(2.0)}
    domain = (pm.Box({"a": (-1, 1), "b": (-1, 1)}), pm.Categories({"l": ["no", "yes"]}))
    outs = [pm.release(frame, law, domain, rng=k) for k in (1, 2)]
    for k, out in enumerate(outs):
        out.save(tmp_path / f"{k}.parquet", allow_insecure=True)
    fit = LogisticRegression().fit_release(outs, "l", same_rows=True)
    params, one = fit.params_, LogisticRegression().fit_release(outs[0], "l").bse_
    assert np.abs((params - [0, 2, 0]) / fit.bse_).max() < 4.5 and (fit.bse_ < one).all()
    fit = LogisticRegression().fit_release([tmp_path / "0.parquet", outs[1]], "l", same_rows=True)
    assert_allclose(fit.params_, params, rtol=1e-9, atol=1e-11)
    with pytest.raises(CapabilityError, match="one release of each row"):
        LinearSVC().fit_release(outs, "l", same_rows=True)


def test_rows_of_another_order_are_found_by_a_public_response(tmp_path):
    frame, box = people(500), pm.Box({"a": (-3, 3), "b": (-3, 3)})
    outs = [pm.release(frame, pm.SymmetricLaplace(0.5), box, public=["y"], rng=seed) for seed in (1, 2)]
    LinearRegression().fit_release(outs, "y", same_rows=True)
    turned = pm.Release(**{**vars(outs[1]), "frame": outs[1].frame.iloc[::-1]})
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for out, path in zip((outs[0], turned), paths, strict=True):
        out.save(path, allow_insecure=True)
    for pair in ([outs[0], turned], paths):
        with pytest.raises(ValueError, match="the column 'y' must be the same in all releases with same_rows=True"):
            LinearRegression().fit_release(pair, "y", same_rows=True)


def test_releases_that_look_like_the_same_rows_are_pointed_out():
    """Public columns that agree row by row: a warning in a list; none with same_rows=True, or for other rows."""
    box, law = pm.Box({"a": (-3, 3), "b": (-3, 3)}), pm.SymmetricLaplace(0.5)
    twins = [pm.release(people(300), law, box, public=["y"], rng=seed) for seed in (1, 2)]
    others = [pm.release(people(300, seed), law, box, public=["y"], rng=seed) for seed in (1, 2)]
    for model, target in ((LinearRegression(), ("y",)), (Mean(), ("a",))):
        with pytest.warns(UserWarning, match=r"300 rows agree in their public columns \['y'\].*same_rows=True"):
            model.fit_release(twins, *target)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.fit_release(others, *target)
            model.fit_release(twins, *target, same_rows=True)


def test_the_releases_of_a_group_are_numbered():
    """Each has two laws, of columns and of labels; each is one release."""
    frame = people(400).drop(columns="y")
    frame["l"] = np.where(frame["a"] + np.random.default_rng(1).normal(size=400) > 0, "yes", "no")
    law = {("a", "b"): pm.SymmetricLaplace(0.3), "l": pm.RandomizedResponse(2.0)}
    domain = (pm.Box({"a": (-3, 3), "b": (-3, 3)}), pm.Categories({"l": ["no", "yes"]}))
    outs = [pm.release(frame, law, domain, rng=k) for k in (1, 2)]
    text = LogisticRegression().fit_release(outs, "l", same_rows=True).summary()
    assert text.count("(release 1 of 2)") == text.count("(release 2 of 2)") == 2
    assert "release 3" not in text


def test_releases_that_do_not_fit_together():
    frame = people()
    outs = [released(frame, pm.Laplace(0.3), 1), released(frame[:-1], pm.Laplace(0.3), 2)]
    for options, message in (
        (([outs[0], outs[0]], "y"), "one of them twice"),
        (([], "y"), "at least one release"),
        (([outs[0], released(frame[["b", "a", "y"]], pm.Laplace(0.3), 3)], "y"), "features must be the same"),
    ):
        with pytest.raises(ValueError, match=message):
            LinearRegression().fit_release(*options)
    with pytest.raises(ValueError, match="same rows with same_rows=True, got 4000 and 3999"):
        LinearRegression().fit_release(outs, "y", same_rows=True)
    wide = pm.release(frame, pm.Laplace(0.3), pm.Box({"a": (-4, 4), "b": (-3, 3), "y": (-9, 9)}), rng=4)
    with pytest.raises(ValueError, match="column 'a' must have one domain"):
        LinearRegression().fit_release([outs[0], wide], "y", same_rows=True)
    box = pm.Box({"a": (-3, 3), "y": (-9, 9)})
    ones = [pm.release(f, pm.Laplace(0.3), box, public=["b"], rng=k) for k, f in enumerate((frame, frame[::-1]))]
    with pytest.raises(ValueError, match="column 'b' must be the same in all releases"):
        LinearRegression().fit_release(ones, "y", same_rows=True)
    with pytest.raises(TypeError, match="without 'law'"):
        LinearRegression().fit_release([outs[0], 3], "y")
    assert Quantile().fit_release(outs, "a").params_.shape == (1,)
