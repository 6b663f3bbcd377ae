"""The simulations of the publication: closed forms against independent integrals, and a run from command to page."""

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad

from privfit.estimators import LogisticRegression, QuantileRegression
from privfit.estimators.losses import IndicatorLoss, ReluLoss
from privfit.estimators.symbols import Symbol

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def paper(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import paper_averages
    import paper_fits
    import paper_zil

    yield paper_zil, paper_averages, paper_fits
    for name in [n for n in sys.modules if n.startswith("paper_")]:
        del sys.modules[name]


def test_means_over_the_second_noise(paper):
    _, averages, _ = paper
    points, b = np.array([-0.7, -0.1, 0.13, 0.4, 0.62, 1.3]), 0.21
    average = Symbol((1.0,), ((b * b, 1),))
    relu, box, wave = averages.TARGETS
    assert_allclose(relu.smeared(points, b), ReluLoss().apply(points, average), atol=1e-12)
    assert_allclose(box.smeared(points, b), IndicatorLoss(0.5, 1.0).apply(points, average), atol=1e-12)
    for x in points:
        kinks = [k / 2 - x for k in range(-20, 22)]
        ends = [-40 * b, *[k for k in kinks if abs(k) < 40 * b], 40 * b]
        ends = sorted([*ends, 0.0])
        pieces = [
            quad(lambda z, x=x: abs(np.sin(2 * np.pi * (x + z))) * np.exp(-abs(z) / b) / (2 * b), low, high)[0]
            for low, high in pairwise(ends)
        ]
        assert wave.smeared(np.array([x]), b)[0] == pytest.approx(sum(pieces), abs=1e-9)


@pytest.mark.parametrize("seed", [1, 2])
def test_averages_follow_their_theory(paper, seed):
    _, averages, _ = paper
    for delta0, scale in averages.LAWS:
        found = averages.simulate(delta0, scale, 400, 400, seed)
        for target in averages.TARGETS:
            for method in averages.METHODS:
                mean, deviation = averages.theory(target, method, delta0, scale)
                errors = found[target.name, method]
                assert abs(errors.mean() - (mean - target.truth)) < 4.5 * deviation / 20 / 20, (target.name, method)
                assert errors.std() * 20 == pytest.approx(deviation, rel=0.25)
                if method in ("dr", "exact"):
                    assert mean == pytest.approx(target.truth, abs=1e-9)


def test_warm_fits_are_the_estimators_own(paper):
    """With little noise the risk has one minimum, which a warm start and the public estimator both find."""
    _, _, fits = paper
    for cell in (fits.Cell("logistic", 0.5, 3000), fits.Cell("median", 0.5, 6000)):
        _, released, y = data = fits.draw(cell, np.random.default_rng(3), cell.n)
        for method in ("exact", "dr"):
            warm, proper, _ = fits.fit(cell, method, data, 1, [])
            options = {"noise": cell.law, "correction": method, "random_state": 1}
            if cell.median:
                model = QuantileRegression(0.5, **options)
            else:
                model = LogisticRegression(fit_intercept=False, **options)
            assert proper
            assert_allclose(warm, model.fit(released, y).params_[-warm.size :], atol=1e-5)


def test_quick_run_fills_the_page(paper, tmp_path):
    zil = paper[0]
    page = zil.main(["--quick", "--output", str(tmp_path / "page.md"), "--figures", str(tmp_path / "figures")])
    assert (tmp_path / "page.md").read_text() == page
    assert {p.name for p in (tmp_path / "figures").iterdir()} == {
        "paper_1_averages.png",
        "paper_2_averages.png",
        "paper_3_logistic.png",
        "paper_4_median.png",
    }
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ") and " ± " in line]
    assert len(rows) == 6 * 6 + 6 + 8
    assert not any(word in cell for row in rows for cell in row for word in ("nan", "inf"))


def test_ratio_and_its_error(paper):
    """Against the spread of the ratio over many repetitions of the whole simulation."""
    zil, rng, found, stated = paper[0], np.random.default_rng(0), [], []
    for _ in range(400):
        shared = rng.normal(size=(100, 3))
        a = zil.Row("s", "c", 1, "a", shared + rng.normal(size=(100, 3)), 0.0)
        b = zil.Row("s", "c", 1, "b", shared, 0.0)
        value, error = zil.ratio(a, b)
        found.append(value)
        stated.append(error)
    assert np.mean(found) == pytest.approx(np.sqrt(2), rel=0.02)
    assert np.std(found) == pytest.approx(np.mean(stated), rel=0.15)
