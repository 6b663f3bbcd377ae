"""Several fits in one: warnings, reasons and cautions name the level they are about."""

import warnings

import numpy as np
import pytest
from simulations import laplace_noise

from privfit.estimators import LogisticRegression, QuantileRegression, SmallSampleWarning
from privfit.estimators.levels import combined, named_warnings
from privfit.estimators.quantile import Quantile
from privfit.estimators.quantile_process import QuantileProcess
from privfit.mechanisms import SymmetricLaplace


def test_only_warnings_about_the_fit_are_named():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with named_warnings("quantile 0.9"):
            warnings.warn("too few.", SmallSampleWarning, stacklevel=1)
            warnings.warn("old.", DeprecationWarning, stacklevel=1)
    assert [str(one.message) for one in caught] == ["quantile 0.9: too few.", "old."]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(SmallSampleWarning, match="a: few"), named_warnings("a"):
            warnings.warn("few", SmallSampleWarning, stacklevel=1)


def test_what_one_level_found_stands_for_all():
    good = {"n_needed": None, "curvature_error": 0.05, "stabilised": False, "runaway": False, "converged": True}
    bad = good | {"n_needed": 90, "n_needed_is_bound": True, "runaway": True, "reasons": ["flat"], "converged": False}
    mid, ridged = good | {"curvature_error": 0.3}, good | {"stabilised": True}
    found = combined("abcd", [good, bad, mid, ridged])
    assert found["n_needed"] == 90 and found["n_needed_is_bound"] and found["runaway"] and found["stabilised"]
    assert not found["converged"]
    assert found["reasons"] == ["b: flat"]
    assert len(found["cautions"]) == 1 and found["cautions"][0].startswith("c: its curvature is known to 30.0 %")
    wide = combined("a", [good | {"bandwidth_too_wide": True, "bandwidth": 7.0}])
    assert wide["bandwidth_too_wide"] and wide["cautions"][0].startswith("a: the bandwidth 7 exceeds half")


def test_a_wide_bandwidth_is_in_warning_diagnosis_and_summary():
    """Two levels of a column and a clean one: each level that was warned of is named in all three."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(800, 2))
    z = x + np.c_[laplace_noise(rng, 800, 1, 2.0, 2), np.zeros(800)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = Quantile([0.25, 0.5], noise={0: SymmetricLaplace(2.0, 2)}).fit(z)
    texts = [str(one.message) for one in caught]
    found, flat = model.diagnostics_, " ".join(model.summary().split())
    wide = [name for name, own in zip(model._names, found["columns"], strict=True) if own["bandwidth_too_wide"]]
    assert wide and set(wide) <= {"0 @ 0.25", "0 @ 0.5"}
    assert found["bandwidth_too_wide"]
    for name in wide:
        said = f"olumn {name!r}: the bandwidth"
        assert sum(said in text for text in texts) == 1
        assert said in model.diagnose()
        assert said in flat
    assert "nothing stands" not in model.diagnose()
    assert "1 @ 0.5" not in model.diagnose()
    assert "stabilize" not in model.diagnose()


def test_what_a_fit_warned_of_is_in_its_diagnosis_and_summary():
    """4 records beside a median: the warning about so few is a caution; what diagnostics say is not said twice."""
    model = QuantileRegression(0.5)
    with pytest.warns(SmallSampleWarning, match="lie beyond the quantile"):
        model.fit(np.arange(4.0)[:, None], [0.0, 1.0, 4.0, 2.0])
    assert sum("lie beyond" in text for text in model.diagnostics_["cautions"]) == 1
    assert "lie beyond" in model.diagnose() and "lie beyond" in model.summary()
    label = np.array([0, 0, 1, 1])
    with pytest.warns(SmallSampleWarning, match="boundary"):
        logistic = LogisticRegression(bound=3.0).fit(np.arange(4.0)[:, None], label)
    assert "cautions" not in logistic.diagnostics_


def lost_process():
    """A level made lost by hand: what its fit would say if its search had run away."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(600, 1))
    y = x[:, 0] + rng.normal(size=600)
    model = QuantileProcess([0.25, 0.5, 0.75]).fit(x, y)
    model.models_[2].diagnostics_["runaway"] = True
    model.intercept_[2], model.coef_[2] = -600.0, 12.0
    return model, x


def test_a_lost_level_does_not_wreck_the_others():
    model, x = lost_process()
    with pytest.warns(SmallSampleWarning, match="no usable fit at the quantiles 0.75"):
        found = model.predict(x[:50])
    straight = x[:50] @ model.coef_[:2].T + model.intercept_[:2]
    np.testing.assert_allclose(found[:, :2], np.sort(straight, axis=1))
    assert np.isnan(found[:, 2]).all()
    model.cov_params_[4:, 4:] = np.inf
    with pytest.raises(ValueError, match=r"finite standard errors.*0\.75"):
        model.band(x[:5])


def test_a_process_names_its_level_and_gives_the_advice_of_its_warning():
    """Strong noise: every level warns, with its name, and diagnose() names it and offers stabilize= as the warning."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(150, 1))
    z, y = x + laplace_noise(rng, 150, 1, 2.0, 2), x[:, 0] + rng.normal(size=150)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = QuantileProcess([0.3, 0.6], noise=SymmetricLaplace(2.0, 2)).fit(z, y)
    text = model.diagnose()
    few = [one for one in caught if "too few" in str(one.message)]
    wide = [one for one in caught if "exceeds half the observed range" in str(one.message)]
    assert len(few) == len(wide) == 2 and len(caught) == 4
    for tau, one in zip(("0.3", "0.6"), few, strict=True):
        assert str(one.message).startswith(f"quantile {tau}: ")
        assert "stabilize='auto'" in str(one.message)
        assert f"found: quantile {tau}: " in text
    assert "stabilize='auto'" in text
    rows = [line.split() for line in model.summary().splitlines() if line.startswith(("const @", "0 @"))]
    assert len(rows) == 4 and all(row[-4:] == ["-"] * 4 for row in rows)
