"""Releases as steps of pipelines: scikit-learn's contract, the rules of releasing, and where the two meet."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

from privfit.accounting import GDP, Budget, Ledger
from privfit.accounting.ledger import BudgetExceeded
from privfit.estimators import LogisticRegression
from privfit.estimators.release_transformer import NewReleaseWarning, ReleaseTransformer
from privfit.mechanisms import (
    Ball,
    Box,
    Categories,
    Gaussian,
    RandomizedResponse,
    SymmetricLaplace,
    ZeroInflatedLaplace,
    release,
)

WIDE = (-100, 100)
# what the tag non_deterministic leaves out, and what needs an optional environment variable
SKIPPED = {
    "check_pipeline_consistency",
    "check_transformer_data_not_an_array",
    "check_transformer_general",
    "check_array_api_input",
}
BOX = Box({"a": (0, 9), "b": (0, 9)})
TABLE = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [3.0, 4.0, 5.0]}, index=["ann", "bob", "eve"])
MIXED = {("a", "b"): Gaussian(1.0), "c": RandomizedResponse(1.0, 2)}
LABELS = Categories({"c": ["u", "v"]})


@pytest.fixture(autouse=True)
def nothing_released_before(monkeypatch):
    monkeypatch.setattr("privfit.estimators.release_transformer._released", set())


class Repeatable(ReleaseTransformer):
    """With an integer seed a table gets the same noise again: everything but independence of the rows' company."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = False
        return tags


def run_checks(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NewReleaseWarning)
        return estimator_checks.check_estimator(estimator, on_fail=None, on_skip=None)


@pytest.mark.parametrize("options", [{"random_state": 0}, {}, {"keep_index": True}], ids=str)
def test_check_estimator(options):
    results = run_checks(ReleaseTransformer(Gaussian(1.0), WIDE, **options))
    assert {r["check_name"]: str(r["exception"]) for r in results if r["status"] == "failed"} == {}
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= SKIPPED
    assert sum(r["status"] == "passed" for r in results) > 35


def test_with_a_seed_only_the_company_of_a_row_matters():
    status = {r["check_name"]: r["status"] for r in run_checks(Repeatable(Gaussian(1.0), WIDE, random_state=0))}
    assert {name for name, state in status.items() if state == "failed"} == {
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
    }
    assert all(status[name] == "passed" for name in SKIPPED - {"check_array_api_input"})


NAMES = sorted(
    name
    for name in dir(estimator_checks)
    if name.startswith("check_") and any(word in name for word in ("set_output", "feature_names", "column_names"))
)


@pytest.mark.parametrize("name", NAMES)
def test_containers_and_feature_names(name):
    assert len(NAMES) >= 8
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # fitted with names, called without, on purpose
        model = ReleaseTransformer(SymmetricLaplace(1.0), WIDE, random_state=0, keep_index=True)
        getattr(estimator_checks, name)("ReleaseTransformer", model)


# --- what comes out -------------------------------------------------------------------------------------


@pytest.mark.parametrize("wanted", ["default", "pandas", "polars"])
@pytest.mark.parametrize("kind", ["numpy", "pandas", "polars", "pyarrow"])
def test_every_table_comes_out_in_the_container_asked_for(kind, wanted):
    frame = TABLE.assign(c=["u", "v", "u"])
    law, domain = MIXED, (BOX, LABELS)
    data = {
        "pandas": frame,
        "polars": pl.from_pandas(frame),
        "pyarrow": pa.Table.from_pandas(frame, preserve_index=False),
        "numpy": TABLE.to_numpy(),
    }[kind]
    if kind == "numpy":
        law, domain = Gaussian(1.0), (0, 9)
    model = ReleaseTransformer(law, domain).set_output(transform=wanted)
    out = model.fit_transform(data)
    expected = {"pandas": pd.DataFrame, "polars": pl.DataFrame}.get(wanted, type(data))
    assert type(out) is expected and out.shape == data.shape
    if wanted != "default":
        assert list(out.columns) == (["x0", "x1"] if kind == "numpy" else ["a", "b", "c"])
        noisy = out[out.columns[0]]
        assert str(noisy.dtype).lower() == "float64"
        np.testing.assert_array_equal(noisy, np.asarray(model.release_.frame)[:, 0].astype(float))


@pytest.mark.parametrize("wanted", ["default", "pandas"])
def test_row_labels_stay_behind_unless_they_are_kept(wanted):
    model = ReleaseTransformer(Gaussian(1.0), BOX).set_output(transform=wanted)
    assert list(model.fit_transform(TABLE).index) == [0, 1, 2]
    assert b"ann" not in pickle.dumps(model)
    kept = ReleaseTransformer(Gaussian(1.0), BOX, keep_index=True, random_state=0).set_output(transform=wanted)
    assert list(kept.fit_transform(TABLE).index) == ["ann", "bob", "eve"]


def test_column_transformer_joins_by_row_labels():
    frame = TABLE.assign(note=["x", "y", "z"])
    release_step = ReleaseTransformer(Gaussian(0.01), BOX, keep_index=True)
    joined = make_column_transformer(
        (release_step, ["a", "b"]), remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform="pandas")
    out = joined.fit_transform(frame)
    assert list(out.columns) == ["a", "b", "note"] and list(out["note"]) == ["x", "y", "z"]
    np.testing.assert_allclose(out["a"], TABLE["a"], atol=0.1)


def test_it_is_the_release_and_nothing_else():
    x = np.random.default_rng(0).uniform(0, 9, (500, 2))
    law = ZeroInflatedLaplace(2.0, 0.1)
    out = ReleaseTransformer(law, (0, 9), random_state=np.random.default_rng(5)).fit_transform(x)
    plain = release(x, law, Box({0: (0, 9), 1: (0, 9)}), rng=np.random.default_rng(5)).frame
    np.testing.assert_array_equal(out, plain)


def test_noise_has_the_stated_variance_and_is_new_at_every_call():
    x, sigma, n = np.zeros((40_000, 1)), 3.0, 40_000
    model = ReleaseTransformer(Gaussian(sigma), (-1, 1)).fit(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NewReleaseWarning)
        first, second = model.transform(x)[:, 0], model.transform(x)[:, 0]
    assert model.release_.secure
    for noise in (first, second):  # five standard errors each: false alarm below 1e-6
        assert abs(noise.mean()) < 5 * sigma / np.sqrt(n)
        assert abs(noise.var() / sigma**2 - 1) < 5 * np.sqrt(2 / n)
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(n)


def test_a_seed_gives_one_table_one_noise_and_another_table_an_independent_one():
    x = np.random.default_rng(1).uniform(-1, 1, (20_000, 1))
    model = ReleaseTransformer(Gaussian(1.0), (-1, 1), random_state=3).fit(x)
    noise = model.transform(x) - x
    np.testing.assert_array_equal(model.transform(x.copy()) - x, noise)
    np.testing.assert_array_equal(clone(model).fit_transform(x) - x, noise)
    assert not model.release_.secure
    other = x.copy()
    other[0, 0] = 0.5
    for again in (
        model.transform(other) - other,
        ReleaseTransformer(Gaussian(1.0), (-1, 1), random_state=4).fit_transform(x) - x,
    ):
        assert abs(np.corrcoef(noise[1:, 0], again[1:, 0])[0, 1]) < 5 / np.sqrt(20_000)


def test_a_seed_works_for_labels():
    frame = pd.DataFrame({"c": ["u", "v"] * 200})
    model = ReleaseTransformer(RandomizedResponse(1.0, 2), LABELS, random_state=0)
    first = model.fit_transform(frame)
    pd.testing.assert_frame_equal(first, model.transform(frame))
    flipped = frame[::-1].reset_index(drop=True)
    assert ((model.transform(flipped)["c"] == flipped["c"]) != (first["c"] == frame["c"])).any()


def test_cells_never_raise_and_bounds_are_enforced():
    x = np.array([[np.nan, np.inf], [-np.inf, 5e-324], ["secret", None]], dtype=object)
    model = ReleaseTransformer(Gaussian(1e-3), (0, 8), random_state=0)
    out = model.fit_transform(x)
    np.testing.assert_allclose(out, [[4, 8], [0, 0], [4, 4]], atol=0.01)
    ball = ReleaseTransformer(Gaussian(1e-3), Ball(1.0, 2), random_state=0).fit_transform([[3.0, 4.0]])
    np.testing.assert_allclose(ball, [[0.6, 0.8]], atol=0.01)


def test_public_columns_pass_unchanged():
    model = ReleaseTransformer(Gaussian(1.0), (0, 9), public=["b"], random_state=0)
    out = model.fit_transform(TABLE)
    assert list(out["b"]) == [3.0, 4.0, 5.0] and not np.allclose(out["a"], TABLE["a"])
    assert model.domain_ == Box({"a": (0, 9)})


# --- every call is a new release ------------------------------------------------------------------------


def test_a_second_release_warns_and_so_does_one_by_a_clone():
    model = ReleaseTransformer(Gaussian(1.0), BOX)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit_transform(TABLE)
        # other columns, and simulations, are no second release
        ReleaseTransformer(Gaussian(1.0), (0, 9)).fit_transform(TABLE[["a"]])
        for _ in range(2):
            ReleaseTransformer(Gaussian(1.0), BOX, random_state=0).fit_transform(TABLE)
    with pytest.warns(NewReleaseWarning, match="new release") as caught:
        model.transform(TABLE)
    assert caught[0].filename == __file__
    with pytest.warns(NewReleaseWarning):
        clone(model).fit_transform(TABLE)


def test_every_call_spends_and_the_one_too_many_draws_nothing(monkeypatch):
    ledger = Ledger(Budget(1.0, 1e-5))
    law = Gaussian.calibrate(Budget(1.0, 1e-5), BOX, releases=2)
    model = ReleaseTransformer(law, BOX, ledger=ledger, label="wave", part="ward 1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(TABLE)
        assert ledger.entries == ()
        model.transform(TABLE)
        last = model.transform(TABLE)
    assert [(entry.label, entry.part) for entry in ledger.entries] == [("wave", "ward 1")] * 2
    assert ledger.entries[0].curve.delta(1.0) == law.guarantee(BOX).record.delta(1.0)

    def no_noise(*args):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr("privfit.mechanisms.releasing.fresh_master", no_noise)
    with pytest.raises(BudgetExceeded):
        model.transform(TABLE)
    assert len(ledger.entries) == 2
    np.testing.assert_array_equal(model.release_.frame, last)


def test_clones_share_a_ledger_on_disk_and_cannot_copy_one_in_memory(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (90, 2))
    y = rng.random(90) < 0.5
    law = Gaussian(4.0)

    def steps(ledger):
        return make_pipeline(ReleaseTransformer(law, (-1, 1), ledger=ledger), LogisticRegression())

    ledger = Ledger(GDP(100.0), tmp_path / "study.jsonl")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cross_val_score(steps(ledger), x, y, cv=3)
    assert len(ledger.entries) == 6  # training and test rows of three folds
    with pytest.raises(TypeError, match="give it a path"):
        clone(steps(Ledger(GDP(100.0))))


def test_a_simulation_over_laws():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (4000, 2))
    y = rng.random(4000) < 1 / (1 + np.exp(-4 * x.sum(axis=1)))
    box = Box({0: (-1, 1), 1: (-1, 1)})
    laws = [SymmetricLaplace(scale) for scale in (0.125, 0.375)]
    steps = make_pipeline(ReleaseTransformer(laws[0], box, random_state=0), LogisticRegression())
    grid = [{"releasetransformer__law": [law], "logisticregression__noise": [law]} for law in laws]
    search = GridSearchCV(steps, grid, cv=2, error_score="raise").fit(x, y)
    scores = dict(zip(laws, search.cv_results_["mean_test_score"], strict=True))
    assert scores[laws[0]] > scores[laws[1]] + 0.02 and scores[laws[1]] > 0.6
    best = search.best_estimator_
    assert best[0].release_.n_rows == 4000 and not best[0].release_.secure


def test_estimators_fit_with_the_law_of_the_last_release():
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, (4000, 2))
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": rng.random(4000) < 1 / (1 + np.exp(-2 * x.sum(axis=1)))})
    model = ReleaseTransformer(SymmetricLaplace(0.5), (-1, 1), public=["y"], random_state=0).fit(frame)
    out = model.transform(frame)
    fitted = LogisticRegression().fit_release(model.release_, target="y")
    same = LogisticRegression(noise=model.law_).fit(out[["a", "b"]], out["y"])
    np.testing.assert_allclose(fitted.coef_, same.coef_, rtol=1e-9)
    assert np.all(np.abs(fitted.coef_[0] - 2) < 5 * fitted.bse_[1:])


# --- mistakes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"domain": None}, ValueError, "domain must be declared.*never computed from the data"),
        ({"domain": "auto"}, TypeError, "domain must be a Box"),
        ({"domain": (9, 0)}, ValueError, "lower < upper"),
        ({"domain": (0, np.nan)}, ValueError, "upper bound"),
        ({"domain": Box({"a": (0, 9)})}, ValueError, "no law releases: 'b'"),
        ({"domain": Box({"a": (0, 9), "b": (0, 9), "age": (0, 9)})}, ValueError, "no column 'age'"),
        ({"law": 3.0}, TypeError, "law must be a law"),
        ({"public": ["b", "x"], "domain": (0, 9)}, ValueError, "no column 'x'"),
        ({"rounding": "up"}, ValueError, "rounding must be one of"),
        ({"keep_index": "yes"}, TypeError, "keep_index must be True or False"),
        ({"random_state": -1}, ValueError, "random_state"),
        ({"random_state": "a"}, TypeError, "random_state"),
        ({"ledger": "study.jsonl"}, TypeError, "ledger must be"),
        ({"ledger": Ledger(GDP(1.0)), "random_state": 0}, ValueError, "drop rng or ledger"),
        ({"label": "wave"}, ValueError, "pass ledger"),
        ({"protect": "rows"}, ValueError, "protect must be one of"),
    ],
)
def test_mistakes_are_found_in_fit(options, error, match):
    model = ReleaseTransformer(**{"law": Gaussian(1.0), "domain": BOX, **options})
    with pytest.raises(error, match=match):
        model.fit(TABLE)


@pytest.mark.parametrize(
    ("data", "error", "match"),
    [
        ([[1.0, 2.0], [3.0]], ValueError, "rows of one length"),
        ([["8675309", "b"]], TypeError, "must hold real numbers"),
        ([8675309.0], ValueError, "Reshape your data"),
        (np.array([[8675309.0 + 1j, 0]]), ValueError, "Complex data not supported"),
        (np.ma.masked_array([[8675309.0, 0]], [[True, False]]), TypeError, "masked"),
        (TABLE.astype(str), TypeError, "must hold real numbers"),
    ],
)
def test_messages_hold_no_cell(data, error, match):
    with pytest.raises(error, match=match) as caught:
        ReleaseTransformer(Gaussian(1.0), WIDE).fit(data)
    assert "8675309" not in str(caught.value)


def test_order_of_calls_and_other_columns():
    model = ReleaseTransformer(Gaussian(1.0), BOX, random_state=0)
    with pytest.raises(NotFittedError):
        model.transform(TABLE)
    with pytest.raises(AttributeError, match="after the first"):
        _ = model.fit(TABLE).release_
    with pytest.raises(ValueError, match="feature names"):
        model.transform(TABLE.rename(columns={"a": "z"}))
    with pytest.raises(ValueError, match="feature names"):
        model.transform(TABLE.assign(z=0.0))
    arrays = ReleaseTransformer(Gaussian(1.0), (0, 9), random_state=0).fit(TABLE.to_numpy())
    with pytest.raises(ValueError, match="3 features"):
        arrays.transform(np.zeros((2, 3)))
