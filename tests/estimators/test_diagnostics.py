"""The n that a fit asks for: a stated rule, the same for every seed, and never below the n at hand."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulations import laplace_noise, logistic_data, zil_noise

from privfit.estimators import (
    HuberRegression,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    Mean,
    PoissonRegression,
    PrincipalComponents,
    Quantile,
    QuantileRegression,
    SmallSampleWarning,
)
from privfit.estimators.advice import KEYS, advice
from privfit.estimators.diagnostics import needed_text, rounded_need
from privfit.estimators.quantile_process import QuantileProcess
from privfit.mechanisms import Box, SymmetricLaplace, ZeroInflatedLaplace

THETA = np.array([1.0, -0.7, 0.5])


def fit_quietly(model, x, y):
    """Diagnostics, and the texts of the warnings about the sample size."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SmallSampleWarning)
        model.fit(x, y)
    return model, [str(w.message) for w in caught]


def logistic_needs(n, scale, seeds):
    """What n_needed says, and whether the fit was interior, for each seed that warns."""
    said, interior = [], []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        x, y = logistic_data(rng, n, THETA, rng.normal(size=(n, 3)) * 0.7)
        law = SymmetricLaplace(scale, shape=2)
        model, texts = fit_quietly(LogisticRegression(noise=law), x + laplace_noise(rng, n, 3, scale, 2), y)
        if texts:
            found = model.diagnostics_
            text = needed_text(found["n_needed"], found["n_needed_is_bound"])
            assert text in texts[0]
            assert text in " ".join(model.summary().split())
            said.append(found["n_needed"])
            interior.append(not found["at_bound"])
    return np.array(said), np.array(interior)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [2.3, 6.0])
def test_the_number_is_stable_over_seeds(scale):
    """20 seeds at two noise levels: within a factor 3, never below n, whether or not at the boundary."""
    n = 8000
    said, interior = logistic_needs(n, scale, range(20))
    assert said.size >= 15
    assert said.min() >= 3 * n
    assert said.max() <= 3.05 * said.min()
    if scale == 2.3:
        assert 2 <= interior.sum() <= said.size - 2  # both kinds are compared


def test_known_curvature_gives_the_known_number():
    """Least squares, x of variance 1, SL noise of variance v: c^2 = Var(x~^2) = 5 v^2 + 4 v + 2.

    (SL: E noise^4 = 6 v^2.) So n = 9 c^2 = 531 at v = 3; at n = 106, a fifth of it, the median of 150
    answers is right to 40 %, and every one is in [3 n, 9 n].
    """
    n, said, bound = 106, [], []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(n, 1))
        released = x + laplace_noise(rng, n, 1, np.sqrt(3.0))
        model, texts = fit_quietly(LinearRegression(noise=SymmetricLaplace(np.sqrt(3.0))), released, x[:, 0])
        if texts:
            said.append(model.diagnostics_["n_needed"])
            bound.append(model.diagnostics_["n_needed_is_bound"])
    assert len(said) > 75
    assert_allclose(np.median(said), 9 * (5 * 9 + 4 * 3 + 2), rtol=0.4)
    assert 3 * n <= min(said)
    assert max(said) <= 9 * n
    assert 0.2 < np.mean(bound) < 0.8  # limits of the rule, and estimates between them


def test_hopeless_noise_says_more_than():
    """Noise 20 times the signal: nothing but a lower bound, and for no seed a number."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(500, 2))
        released = x + zil_noise(rng, 500, 2, 20.0, 0.1)
        law = ZeroInflatedLaplace(20.0, 0.1)
        for model in (LinearRegression(noise=law), QuantileRegression(noise=law)):
            fitted, texts = fit_quietly(model, released, x[:, 0])
            about_n = [text for text in texts if "too few" in text]  # a quantile may also lose its meaning
            assert len(about_n) == 1
            assert "more records than the data at hand can tell" in about_n[0]
            assert "n = " not in about_n[0] + fitted.summary() + fitted.diagnose()
            assert fitted.diagnostics_["n_needed_is_bound"]


def test_the_number_does_not_depend_on_the_corrected_fit():
    """Another box of parameters moves the corrected fit, not the naive one inside both: same answer."""
    rng = np.random.default_rng(3)
    x, y = logistic_data(rng, 4000, THETA, rng.normal(size=(4000, 3)) * 0.7)
    released = x + laplace_noise(rng, 4000, 3, 2.5, 2)
    law, answers = SymmetricLaplace(2.5, shape=2), []
    for bound in (1.0, 3.0, None):
        model, texts = fit_quietly(LogisticRegression(noise=law, bound=bound), released, y)
        assert texts
        answers.append(model.diagnostics_["n_needed"])
    assert len(set(answers)) == 1


def test_no_text_prints_a_limit():
    """Errors at n = 1000: 9 n e^2 = 1102 (below 3 n), 5760, 8820, 8982 (rounds to the limit), not told from zero."""
    found = [rounded_need(1000, error) for error in (0.35, 0.8, 0.9899, 0.999, 2.0, np.inf)]
    assert found[0] == (3000, True)
    assert found[1] == (5800, False)
    assert found[2] == (8900, False)
    assert found[3:] == [(9000, True)] * 3
    for needed, is_bound in found:
        text = needed_text(needed, is_bound)
        assert ("n = " in text) == (not is_bound)
        assert ("privfit plan" in text) == is_bound


def test_too_few_records_show_no_tests():
    """Errors and estimates stay; z, P and the interval of every row are "-", and a good fit shows them all."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(106, 1))
    for scale, bad in ((np.sqrt(3.0), True), (0.1, False)):
        released = x + laplace_noise(rng, 106, 1, scale)
        model, texts = fit_quietly(LinearRegression(noise=SymmetricLaplace(scale)), released, x[:, 0] + released[:, 0])
        rows = [line.split() for line in model.summary().splitlines() if line.startswith(("const ", "0 "))]
        assert len(rows) == 2
        assert bool(texts) == bad
        for row, estimate, error in zip(rows, model.params_, model.bse_, strict=True):
            assert_allclose([float(row[1]), float(row[2])], [estimate, error], rtol=1e-3, atol=6e-5)
            assert (row[3:] == ["-"] * 4) == bad
        assert ("tests and intervals are not shown" in model.summary()) == bad
        assert np.isfinite(model.conf_int()).all()


def test_every_key_has_a_meaning():
    """Whatever model and path: no key of diagnostics_ is missing in the one list."""
    rng = np.random.default_rng(0)
    x, law = rng.normal(size=(300, 2)), SymmetricLaplace(0.3)
    released, y = x + laplace_noise(rng, 300, 2, 0.3), x[:, 0] + rng.normal(size=300)
    counts, labels = rng.poisson(1.0, 300), (y > 0).astype(int)
    zil = ZeroInflatedLaplace(0.3, 0.2)
    models = [
        (Mean(noise=law), None),
        (Quantile(0.5, noise=law), None),
        (PrincipalComponents(1, noise=law), None),
        (LinearRegression(noise=law), y),
        (LinearRegression(), y),
        (HuberRegression(noise=law), y),
        (QuantileRegression(noise=law), y),
        (QuantileProcess([0.3, 0.7], noise=zil), y),
        (LogisticRegression(noise=law), labels),
        (LogisticRegression(noise=law), labels + (x[:, 1] > 0)),
        (LinearSVC(alpha=0.1, noise=law), labels),
        (PoissonRegression(noise=law), counts),
    ]
    for model, response in models:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model.fit(released) if response is None else model.fit(released, response)
        assert set(model.diagnostics_) <= set(KEYS), type(model).__name__
        assert type(model).__name__ in model.diagnose()


def test_advice_follows_what_was_found():
    """Each problem has its own step; what is in use already is not advised."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(500, 2))
    released, law = x + laplace_noise(rng, 500, 2, 20.0), SymmetricLaplace(20.0)
    plain, _ = fit_quietly(LinearRegression(noise=law), released, x[:, 0])
    text = plain.diagnose()
    assert "TOO FEW RECORDS" in text.splitlines()[0]
    for reason in plain.diagnostics_["reasons"]:
        assert f"found: {reason}" in text
    assert plain.diagnostics_["reasons"]
    assert "1. stabilize='auto'" in text
    assert "privfit plan" in text
    ridged, _ = fit_quietly(LinearRegression(noise=law, stabilize="auto"), released, x[:, 0])
    assert ridged.diagnostics_["stabilised"]
    assert "stabilize='auto'" not in ridged.diagnose()
    assert "only fewer columns in the release do" in text
    good, _ = fit_quietly(LinearRegression(noise=SymmetricLaplace(0.1)), x, x[:, 0] + rng.normal(size=500))
    assert "nothing stands against this fit" in good.diagnose()
    assert advice({"n_needed": None, "at_bound": True})[0].startswith("Give a larger bound=")
    assert advice({"n_needed": None, "bandwidth_too_wide": True})[0].startswith("LinearRegression")
    assert advice({"n_needed": None, "converged": False})[0].startswith("Rescale")


def test_an_untrusted_standard_error_has_no_efficiency():
    """The curvature is known too badly: finite standard errors, but nothing about raw records."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(106, 1))
    released = x + laplace_noise(rng, 106, 1, np.sqrt(3.0))
    model, texts = fit_quietly(LinearRegression(noise=SymmetricLaplace(np.sqrt(3.0))), released, x[:, 0])
    assert "Standard errors are not to be trusted" in texts[0]
    assert "not available" in str(model.efficiency_)
    assert np.isinf(model.efficiency_.overall)
    assert "worth" not in model.summary()
    assert "Raw-data" not in model.summary()


@pytest.mark.parametrize("scale", [0.1, 8.0])
def test_a_bandwidth_of_half_the_range_is_no_quantile(scale):
    """Response in [0, 1]: noise of 0.1 keeps the bandwidth below half of it, noise of 8 does not."""
    rng = np.random.default_rng(1)
    y = rng.uniform(size=(3000, 1))
    out = SymmetricLaplace(scale, 2).release(y, domain=Box({0: (0, 1)}), rng=1)
    for fit in (Quantile(0.3), QuantileRegression(0.3)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if isinstance(fit, Quantile):
                found = fit.fit_release(out).diagnostics_["columns"][0]
            else:
                both = SymmetricLaplace(scale, 2).release(
                    np.c_[y, rng.normal(size=3000)],
                    domain=Box({0: (0, 1), 1: (-9, 9)}),
                    rng=1,
                )
                found = fit.fit_release(both, target=0).diagnostics_
        said = [str(w.message) for w in caught if "no longer about the quantile 0.3" in str(w.message)]
        assert found["bandwidth_too_wide"] == (found["bandwidth"] > 0.5) == (scale > 1)
        assert len(said) == (scale > 1)
        assert ("declared range" in "".join(said)) == (scale > 1)
        assert ("worth" in str(fit.efficiency_)) == (scale < 1)


def test_a_given_bandwidth_is_held_against_the_observed_range():
    x = np.linspace(0, 1, 200)[:, None]
    y = x[:, 0] + np.cos(40 * x[:, 0])
    with pytest.warns(SmallSampleWarning, match="observed range"):
        model = QuantileRegression(bandwidth=0.51 * np.ptp(y)).fit(x, y)
    assert "no longer about that quantile" in model.summary()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        QuantileRegression(bandwidth=0.49 * np.ptp(y)).fit(x, y)
        QuantileRegression().fit(x, y)


def test_no_warning_no_number():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(5000, 1))
    released = x + laplace_noise(rng, 5000, 1, 0.5)
    model, texts = fit_quietly(LinearRegression(noise=SymmetricLaplace(0.5)), released, x[:, 0])
    assert not texts
    assert model.diagnostics_["n_needed"] is None
    assert "TOO FEW" not in model.summary()
