"""Planning: which law is chosen, from which design, for how many records; mistakes are named."""

import json
import math

import numpy as np
import pytest

from privfit.accounting import GDP, Budget
from privfit.estimators import CapabilityError, LinearRegression, LogisticRegression, Mean, Quantile, QuantileRegression
from privfit.estimators.huber_regression import HuberRegression
from privfit.estimators.linear_svc import LinearSVC
from privfit.estimators.m_estimator import MEstimator
from privfit.estimators.plan_mechanisms import MECHANISMS
from privfit.estimators.plan_report import PlanReport
from privfit.estimators.planning import plan
from privfit.estimators.poisson_regression import PoissonRegression
from privfit.mechanisms import (
    Ball,
    Box,
    Categories,
    Gaussian,
    Laplace,
    Product,
    RandomizedResponse,
    SymmetricLaplace,
    ZeroInflatedLaplace,
)

BOX = Box({"a": (-1, 1), "b": (-1, 1)})
LABEL = Categories({"y": ["no", "yes"]})
THETA = np.array([0.3, 1.0, -0.5])


def test_every_law_meets_the_budget_and_what_cannot_serve_says_why():
    budget, domain, n = Budget(4.0, 1e-4), (Box({"a": (-1, 1)}), LABEL), 5_000_000
    seen = []
    found = plan("logistic", budget, domain, n, target="y", rows=4000, progress=seen.append)
    assert seen == list(MECHANISMS) == sorted({row.mechanism for row in found.rows}, key=MECHANISMS.index)
    for row in found.rows:
        if row.mechanism == "gaussian":
            assert row.law is None and "inverse heat flow" in row.reason
        else:
            assert row.law.guarantee(domain).record.delta(4.0) <= 1e-4
            assert row.factor > 1 and row.n_effective < n
    zil = found.row("zil")
    assert zil.exact_records == pytest.approx(n * zil.law.exact_fraction) and zil.exact_records >= 1
    assert "gaussian: not possible" in str(found) and f"*{found.best.mechanism}" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["best"] == found.best.mechanism


def test_the_split_between_label_and_columns_is_the_best_one():
    budget, domain, more = Budget(4.0, 1e-6), (BOX, LABEL), {"target": "y", "theta": THETA, "rows": 4000}
    found = plan("logistic", budget, domain, 50_000, ["laplace"], **more)
    laws = {}
    for epsilon in np.linspace(0.3, 2.5, 12):
        numeric = Laplace.calibrate(Budget(4.0 - epsilon, 0.999e-6), Box({"a": (-1, 1)}))
        laws[f"{epsilon:g}"] = Product({("a", "b"): Laplace(2 * numeric.scale), "y": RandomizedResponse(epsilon)})
    others = plan("logistic", budget, domain, 50_000, laws, **more)
    assert found.best.wanted <= 1.002 * min(row.wanted for row in others.rows)


def test_the_atom_of_a_quantile_is_the_best_one():
    box, budget = Box({"x": (0, 1)}), Budget(1.0, 0.3)
    found = plan(Quantile(0.5), budget, box, 20_000, ["zil"], rows=4000)
    laws = {
        f"{f}": ZeroInflatedLaplace.calibrate(budget, box, delta0=0.3 * f) for f in (0.02, 0.2, 0.4, 0.6, 0.8, 0.95)
    }
    others = plan(Quantile(0.5), budget, box, 20_000, laws, rows=4000)
    assert found.best.wanted <= 1.01 * others.best.wanted


def test_attribute_level_gives_each_part_the_whole_budget():
    found = plan("linear", Budget(2.0, 1e-6), BOX, 10_000, ["laplace"], target="y", protect="attribute", theta=THETA)
    (law,) = found.best.law.parts.values()
    assert law.scales(2) == pytest.approx([1.0, 1.0], rel=1e-4)
    both = plan("logistic", Budget(2.0, 1e-6), (BOX, LABEL), 10_000, ["laplace"], target="y", protect="attribute")
    assert both.best.law.parts[("y",)].epsilon == pytest.approx(2.0, abs=1e-4)


@pytest.mark.slow
def test_other_targets_split_by_their_curves():
    found = plan("linear", GDP(1.0), (BOX, LABEL), 10_000, ["gaussian"], target="b", rows=2000)
    assert found.best.law.guarantee((BOX, LABEL)).record.delta(1.0) <= 0.127  # that of mu = 1


def test_required_n_reaches_the_wanted_error():
    found = plan("linear", Budget(4.0, 1e-6), BOX, 10_000, ["laplace", "gaussian"], target="b")
    best, other = found.required_n(found.best.wanted / 3), found.required_n(found.best.wanted / 3, "gaussian")
    assert best == pytest.approx(90_000, rel=0.02) and other > 3 * best
    single = found.required_n(found.best.standard_errors[0] / 2, coefficient="const")
    assert single == pytest.approx(40_000, rel=0.02)
    fewer = plan("linear", Budget(4.0, 1e-6), BOX, best, ["laplace"], target="b")
    assert fewer.best.wanted <= found.best.wanted / 3
    assert found.required_n(1e3) == found.best.records_needed
    with pytest.raises(ValueError, match="would need more than 1e\\+15"):
        found.required_n(1e-12)


def test_too_few_records_are_said_to_be_too_few():
    found = plan("linear", Budget(1.0, 1e-6), BOX, 500, ["laplace", "gaussian"], target="b")
    assert not found.best.usable and found.best.records_needed > 500
    text = str(found)
    least = min(row.records_needed for row in found.rows)
    first = f"NONE OF THESE SUFFICES at n = 500: the best would need about {least:,} records (laplace)."
    assert text.splitlines()[0] == first and not found.suffices
    assert "n = 500 is too few" in text and f" {found.best.mechanism}" in text
    assert "Best:" not in text and "Release with" not in text and "*" not in text
    assert json.loads(json.dumps(found.to_dict()))["best"] == found.best.mechanism


@pytest.mark.parametrize(("coefficient", "places"), [(None, [1, 2]), ("b", [2])])
def test_the_factor_is_the_ratio_of_the_errors_beside_it(coefficient, places):
    more = {"target": "c", "rows": 1000, "coefficient": coefficient}
    found = plan("linear", Budget(4.0, 1e-6), (BOX, Box({"c": (0, 1)})), 20_000, ["laplace"], **more)
    row = found.rows[0]
    ratio = float(np.exp(np.mean(np.log(row.standard_errors[places] / found.raw[places]))))
    assert row.factor == pytest.approx(ratio, rel=1e-12)
    assert row.n_effective == pytest.approx(20_000 / ratio**2, rel=1e-12)
    plain = found.to_dict()
    assert plain["mechanisms"][0]["factor"] == pytest.approx(row.wanted / plain["raw_wanted"], rel=1e-12)


def test_what_is_published_as_it_is_is_said_and_the_code_can_be_pasted():
    import pandas as pd

    import privfit

    found = plan("linear", Budget(8.0, 1e-4), Box({"a": (-1, 1)}), 10**6, ["laplace"], target="wage", rows=1000)
    assert str(found).startswith("NOT PROTECTED: wage is published as it is.\n")
    assert found.public == ("wage",) and found.protected == "protecting one record except wage"
    lines = [line[2:] for line in str(found).splitlines() if line.startswith("  ")]
    names = {"table": pd.DataFrame({"wage": [1.0, 2.0], "a": [0.1, 0.2], "name": ["u", "v"]})}
    exec("\n".join(lines), names)
    released = names["released"]
    assert isinstance(released, privfit.Release) and released.law == found.best.law
    assert released.frame["wage"].tolist() == [1.0, 2.0] and "name" not in released.frame
    inside = plan("linear", Budget(8.0, 1e-4), BOX, 10**6, ["laplace"], target="b", rows=1000)
    assert "NOT PROTECTED" not in str(inside) and inside.public == ()


def test_a_uniform_design_is_said_to_be_optimistic():
    more = (Budget(8.0, 1e-4), BOX, 10**5, ["laplace"])
    uniform = plan("linear", *more, target="b", rows=1000)
    assert any("Real columns spread less" in note and "pilot" in note for note in uniform.notes())
    pilot = {"a": np.linspace(-1, 1, 50), "b": np.linspace(-1, 1, 50) ** 2}
    others = [plan("linear", *more, target="b", pilot=pilot, rows=1000), plan("mean", *more)]
    assert not any("Real columns" in note for other in others for note in other.notes())
    assert any("known to about a factor 1.8" in note for note in uniform.notes())


# designs ---------------------------------------------------------------------------------------------------------


def test_forms_of_a_pilot_agree_and_the_raw_error_is_that_of_the_fit():
    import pandas as pd

    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (1000, 2))
    y = np.where(rng.random(1000) < 1 / (1 + np.exp(-x @ [1.0, 2.0])), "yes", "no")
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": y})
    options = {"target": "y", "rows": 1000}
    more = (Budget(4.0, 1e-6), (BOX, LABEL), 1000, ["laplace"])
    found = plan("logistic", *more, pilot=frame, **options)
    named = plan("logistic", *more, pilot=dict(frame), **options)
    table = plan("logistic", *more, pilot=frame.to_numpy(), **options)
    fit = LogisticRegression().fit(x, y)
    assert found.theta == pytest.approx(fit.params_, rel=1e-6)
    assert found.raw == pytest.approx(fit.bse_, rel=0.02)
    for other in (named, table):
        assert other.best.standard_errors == pytest.approx(found.best.standard_errors, rel=1e-12)


def test_rates_are_planned_from_a_pilot():
    """SL noise: score [e^u (1 - s^2/2) - y] x - e^u lambda^2 b, s = lambda b, written out on other draws."""
    m, n, scale, rng = 100_000, 1000, 0.3, np.random.default_rng(2)
    x = rng.uniform(-1, 1, m)
    y = rng.poisson(np.exp(0.4 + 0.8 * x))
    box, law = Box({"a": (-1, 1)}), SymmetricLaplace(scale)
    found = plan(PoissonRegression(), GDP(1.0), box, n, {"sl": law}, target="y", pilot={"a": x, "y": y}, rows=m)
    fit = PoissonRegression().fit(x[:, None], y)
    assert found.theta == pytest.approx(fit.params_)
    assert found.raw == pytest.approx(fit.bse_ * math.sqrt(m / n), rel=0.02)
    noised = x + scale * np.sqrt(rng.exponential(size=m)) * rng.normal(size=m)
    b, rate = found.theta[1], np.exp(found.theta[0] + found.theta[1] * noised)
    slope = rate * (1 - scale**2 * b**2 / 2) - y
    score = np.stack([slope, slope * noised - rate * scale**2 * b])
    design = np.stack([np.ones(m), x])
    inverse = np.linalg.inv((design * np.exp(found.theta @ design)) @ design.T / m)
    errors = np.sqrt(np.diag(inverse @ np.cov(score) @ inverse) / n)
    assert found.best.standard_errors == pytest.approx(errors, rel=0.04)
    with pytest.raises(ValueError, match="theta must be left out"):
        plan(PoissonRegression(), GDP(1.0), box, n, {"sl": law}, target="y", pilot={"a": x, "y": y}, theta=[0, 1])
    wild = plan(
        PoissonRegression(), GDP(1.0), box, n, {"sl": SymmetricLaplace(3.0)}, target="y", pilot={"a": x, "y": y}
    )
    assert wild.rows[0].law is None and "no finite variance" in wild.rows[0].reason


def test_other_regressions_are_refused():
    with pytest.raises(CapabilityError, match="MEstimator cannot be planned"):
        plan(MEstimator("squared"), GDP(1.0), BOX, 100, target="b")
    three = Categories({"y": ["a", "b", "c"]})
    with pytest.raises(CapabilityError, match="has 3 labels: predictions for the several indices"):
        plan("logistic", GDP(1.0), (BOX, three), 100, target="y")
    for task in (HuberRegression(), LinearSVC()):
        options = {"target": "b"} if isinstance(task, HuberRegression) else {"target": "y"}
        found = plan(task, GDP(1.0), (BOX, LABEL), 1000, {"normal": Gaussian(1.0)}, rows=500, **options)
        assert found.rows[0].law is None and "no exact inverse under Gaussian noise" in found.rows[0].reason


def test_counts_follow_from_their_coefficients():
    """Without a pilot they have the Poisson law: the raw covariance is the inverse of E e^u xx'."""
    box, law, theta = Box({"a": (-1, 1)}), SymmetricLaplace(0.2), np.array([0.3, 0.8])
    found = plan(PoissonRegression(), GDP(1.0), box, 1000, {"sl": law}, target="y", theta=theta)
    nodes, weights = np.polynomial.legendre.leggauss(20)
    design = np.stack([np.ones(20), nodes])
    information = (design * np.exp(theta @ design) * weights / 2) @ design.T
    assert found.raw == pytest.approx(np.sqrt(np.diag(np.linalg.inv(information)) / 1000), rel=0.03)
    with pytest.raises(ValueError, match="theta must be given for PoissonRegression"):
        plan(PoissonRegression(), GDP(1.0), box, 1000, {"sl": law}, target="y")


def test_moments_stand_for_a_truncated_normal_law():
    covariance = np.array([[0.04, 0.01], [0.01, 0.09]])
    found = plan("mean", Budget(1.0, 1e-5), BOX, 100, ["laplace"], mean=[0.1, 0.0], covariance=covariance)
    assert found.raw == pytest.approx([0.02, 0.03], rel=0.03)
    narrow = plan("mean", Budget(1.0, 1e-5), BOX, 100, ["laplace"], mean=[0, 0], covariance=9 * np.eye(2))
    assert narrow.raw == pytest.approx([0.1 / math.sqrt(3)] * 2, rel=0.03)  # nearly uniform on [-1, 1]


def test_plans_repeat_and_draw_their_lines():
    budget = Budget(4.0, 1e-2)
    task = QuantileRegression(0.7)
    found, same = (plan(task, budget, BOX, 5000, ["laplace"], target="y", theta=THETA, rows=2000) for _ in range(2))
    assert found.rows[0].standard_errors.tolist() == same.rows[0].standard_errors.tolist()
    lines = {label: errors for label, _, errors in found.lines([500, 5000])}
    assert lines["laplace"][1] == found.best.wanted and lines["raw data"][0] > lines["raw data"][1]
    drawn = {line.get_label(): line.get_ydata() for line in found.plot(sizes=[500, 5000]).lines}
    assert drawn["raw data"].tolist() == lines["raw data"].tolist() and "planned n = 5,000" in drawn
    looser = found.again(Budget(8.0, 1e-2))
    assert isinstance(looser, PlanReport) and looser.best.wanted < found.best.wanted


PLAIN = {"task": "linear", "budget": Budget(4.0, 1e-6), "domain": BOX, "n": 100, "target": "b"}
WRONG = [
    ({"task": "svm"}, "task must be one of"),
    ({"task": 3}, "task must be one of"),
    ({"target": None}, "target must be given"),
    ({"task": "mean"}, "target must be None"),
    ({"task": "logistic"}, "must be a label"),
    ({"domain": (BOX, LABEL), "target": "y"}, "must be a number"),
    ({"features": "a"}, "must be a list"),
    ({"features": ["b"]}, "other than the target"),
    ({"features": []}, "at least one column"),
    ({"features": ["q"]}, "pilot must have the columns"),
    ({"n": 1}, "n must"),
    ({"rows": 3}, "rows must"),
    ({"protect": "all"}, "protect"),
    ({"theta": [1.0]}, "theta must be 2 finite numbers, intercept first"),
    ({"theta": [1.0, np.nan]}, "theta must"),
    ({"residual_sd": -1.0, "theta": [0.0, 1.0]}, "residual_sd must"),
    ({"theta": [0.0, 0.0]}, "residual_sd must be given"),
    ({"mechanisms": ["magic"]}, "mechanisms must be one of"),
    ({"mechanisms": []}, "mechanisms must name"),
    ({"coefficient": "q"}, "coefficient must be one of"),
    ({"pilot": [[0.0, 1.0]]}, "at least 2 records"),
    ({"pilot": [[0.0], [1.0]]}, "pilot must have 2 columns"),
    ({"pilot": {"a": ["u", "v"], "b": [1.0, 2.0]}}, "must hold numbers"),
    ({"pilot": {"a": [0.1, np.nan], "b": [1.0, 2.0]}}, "must hold finite numbers"),
    ({"pilot": {"a": np.array(["2020-01-01"] * 2, "M8[D]"), "b": [1, 2]}}, "dates: days"),
    ({"pilot": {"a": [0.5, 0.5, 0.5], "b": [0.1, 0.2, 0.3]}, "theta": [0.0, 1.0]}, "identify"),
    ({"pilot": {"a": [0.5, 0.5, 0.5], "b": [0.1, 0.2, 0.3]}}, "identify the coefficients"),
    ({"pilot": 3}, "pilot must be a data frame"),
    ({"pilot": [[0.0, 1.0]], "mean": [0, 0]}, "pass one kind of design"),
    ({"mean": [0.0, 0.0]}, "given together"),
    ({"mean": [0.0], "covariance": np.eye(2)}, "must have shapes"),
    ({"mean": [0.0, 0.0], "covariance": -np.eye(2)}, "positive semidefinite"),
    ({"mean": [50.0, 0.0], "covariance": np.eye(2)}, "inside the domain"),
    ({"domain": (Ball(1.0, 2, ("c", "d")), BOX)}, "one Box or one Ball"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_mistakes_are_named(change, message):
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        plan(**(PLAIN | change))
    assert "0.1, 0.2" not in str(caught.value)


def test_nothing_can_serve():
    found = plan("mean", Budget(1.0, 0.0), Box({"x": (0, 1)}), 100, ["gaussian", "zil"])
    with pytest.raises(ValueError, match="no mechanism can serve"):
        _ = found.best
    with pytest.raises(ValueError, match="zil cannot serve"):
        found.required_n(0.1, "zil")
    assert found.to_dict()["best"] is None and "not possible" in str(found)
    labelled = plan(Mean(), Budget(1.0, 0.0), LABEL, 100, theta=[0.2])
    assert labelled.best.mechanism == "randomized-response"
    assert LinearRegression().get_params() == LinearRegression(noise=None).get_params()
