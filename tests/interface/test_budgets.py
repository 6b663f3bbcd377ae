"""Dividing a record's budget: the composed release meets the total, slack included."""

import math

import pytest

from privfit.accounting import Budget
from privfit.budgets import numeric_budget
from privfit.mechanisms import Box, Categories, Gaussian, Product, RandomizedResponse

BOX = Box({"age": (17, 90), "hours": (1, 99)})


@pytest.mark.parametrize("epsilon, delta", [(1.0, 1e-6), (6.0, 1e-6), (12.0, 1e-5)])
@pytest.mark.parametrize("labels", [[], [0.4], [0.2, 0.3]])
def test_composed_release_meets_the_total_budget(epsilon, delta, labels):
    law = Gaussian.calibrate(numeric_budget(epsilon, delta, labels, BOX), BOX)
    names = [f"l{j}" for j in range(len(labels))]
    product = Product({BOX.columns: law, **{n: RandomizedResponse(e) for n, e in zip(names, labels, strict=True)}})
    domain = (BOX, *(Categories({n: [0, 1]}) for n in names))
    (row,) = product.guarantee(domain).deltas([epsilon])
    assert row["record"] <= delta * (1 + 1e-9)
    # and not by giving the budget away: with as good as no label it is used up
    if not labels:
        assert row["record"] >= delta * (1 - 1e-3)


def test_slack_is_charged_at_the_epsilon_of_the_row():
    eta = Gaussian(1.0).slack(BOX)
    left = numeric_budget(10.0, 1e-5, [4.0], BOX)
    assert left.epsilon == 6.0
    assert math.isclose(left.delta, 1e-5 - eta * (math.exp(10) - math.exp(6)), rel_tol=1e-12)
    assert numeric_budget(10.0, 1e-5, [], BOX) == Budget(10.0, 1e-5)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ((2.0, 1e-6, [1.0, 1.0]), "labels must leave some of epsilon = 2"),
        ((2.0, 1e-6, [math.nan]), "epsilon of a label must be a finite number"),
        ((2.0, 1e-6, [-1.0]), "epsilon of a label must be a finite number > 0"),
        ((15.0, 1e-6, [1.0]), "delta must be > .* numerical slack"),
        ((2.0, 0.0, [1.0]), "delta must be > .* numerical slack"),
        ((2.0, 1.5, [1.0]), "delta must be a number"),
        ((1e9, 1e-6, [1.0]), "delta must be >"),
    ],
)
def test_mistakes(arguments, words):
    with pytest.raises(ValueError, match=words):
        numeric_budget(*arguments, BOX)
