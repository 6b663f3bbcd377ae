"""What a fit says of itself: cautions where no warning was due, and no test of a shrunken fit."""

import warnings

import numpy as np
import pytest
from simulations import laplace_noise, logistic_data

from privfit.estimators import LinearRegression, LogisticRegression
from privfit.estimators.advice import CAUTIOUS, cautions, diagnosis, trusted
from privfit.mechanisms import SymmetricLaplace


@pytest.mark.parametrize(("error", "cautious"), [(0.19, 0), (0.21, 1), (1 / 3, 1), (0.34, 0), (None, 0)])
def test_a_curvature_known_to_a_fifth_is_a_caution(error, cautious):
    found = {"n_needed": None, "curvature_error": error}
    text = diagnosis("Model", found, 100)
    assert ("nothing stands" in text) != cautious
    assert ("biased towards zero" in text) == cautious
    assert ("plan()" in text) == cautious
    assert trusted(found)
    assert not any("towards zero" in said for said in cautions(found | {"penalty": np.zeros(0)}))
    assert CAUTIOUS == 0.2


def test_an_uncertain_fit_that_escaped_the_warning_is_read_with_care():
    """Logistic regression in the band between a fifth and a third: no warning, but a caution."""
    rng = np.random.default_rng(4)
    x, y = logistic_data(rng, 600, np.array([1.0]), rng.normal(size=(600, 1)))
    z = x + laplace_noise(rng, 600, 1, 2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LogisticRegression(noise=SymmetricLaplace(2.0)).fit(z, y)
    assert CAUTIOUS < model.diagnostics_["curvature_error"] < 1 / 3
    assert "read with care" in model.diagnose()


def test_a_stabilised_fit_is_not_tested():
    """The ridge hides tests and the worth, says so everywhere, and leaves conf_int with its condition."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 1))
    z, y = x + laplace_noise(rng, 300, 1, 2.0, 2), x[:, 0] + rng.normal(size=300)
    law = SymmetricLaplace(2.0, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = LinearRegression(noise=law, stabilize=3.0).fit(z, y)
        plain = LinearRegression(noise=SymmetricLaplace(0.1)).fit(x, y)
    assert model.diagnostics_["stabilised"] and not plain.diagnostics_["stabilised"]
    text = model.diagnose()
    assert "shrunken by the stabilising ridge: a point estimate; its intervals are conditional on the ridge" in text
    assert "nothing stands" not in text
    row = next(line for line in model.summary().splitlines() if line.startswith("0 "))
    assert row.split()[-4:] == ["-"] * 4
    assert "worth" not in model.summary()
    assert "ridge" in str(model.efficiency_) and np.isinf(model.efficiency_.overall)
    assert np.isfinite(model.conf_int()).all()
    assert "worth" in plain.summary()


def test_few_clusters_are_a_caution():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 1))
    y = x[:, 0] + rng.normal(size=400)
    few = LinearRegression().fit(x, y, clusters=np.arange(400) % 6)
    many = LinearRegression().fit(x, y, clusters=np.arange(400) % 12)
    assert "only 6 clusters" in few.diagnose()
    assert "nothing stands" in many.diagnose()
    for model in (few, many):
        assert "P>|t|" in model.summary() and "P>|z|" not in model.summary()
    assert "P>|z|" in LinearRegression().fit(x, y).summary()
