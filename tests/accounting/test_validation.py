"""Argument checks: what is refused is refused in words, whatever its size or shape."""

import numpy as np
import pytest

import privfit.accounting as pa
from privfit.accounting.validation import check_array, check_integer


def test_integers_of_any_size_are_refused_in_words():
    assert check_integer("n", 2**63 - 1, 0) == 2**63 - 1
    assert check_integer("n", 10**30, 0, 10**30) == 10**30
    for bad, text in (
        (2**63, r"n must be an integer >= 0 and below 2\^63, got 9223372036854775808"),
        (10**400, r"below 2\^63, got one of size 2\^1328"),
        (10**5000, r"below 2\^63, got one of size 2\^16609"),  # too long for str
        (-(10**5000), r"n must be an integer >= 0, got one of size -2\^16609"),
        (-1, r"n must be an integer >= 0, got -1"),
    ):
        with pytest.raises(ValueError, match=text):
            check_integer("n", bad, 0)
    with pytest.raises(ValueError, match=r"n must be an integer in \[1, 5\], got one of size 2\^1328"):
        check_integer("n", 10**400, 1, 5)


@pytest.mark.parametrize(
    "make",
    [
        lambda n: pa.randomized_response(1.0, n),
        lambda n: pa.gaussian(1.0).self_compose(n),
        lambda n: pa.group(pa.gaussian(1.0), n),
        lambda n: pa.discrete_laplace(1.0, n),
    ],
)
@pytest.mark.parametrize("n", [10**400, -(10**5000)], ids=["large", "small"])
def test_counts_beyond_all_floats(make, n):
    with pytest.raises(ValueError, match="must be an integer"):
        make(n)


def test_randomised_response_over_as_many_categories_as_are_allowed():
    # delta(0) = (e^eps - 1) / (e^eps + k - 1)
    curve = pa.randomized_response(1.0, 10**18)
    assert curve.delta(0.0) == pytest.approx(np.expm1(1.0) / 1e18, rel=1e-9)


def test_ragged_lists_are_named():
    for ragged in ([[1.0], [1.0, 2.0]], [0.5, [0.5]]):
        with pytest.raises(ValueError, match="alpha must be a rectangular array"):
            check_array("alpha", ragged)
        with pytest.raises(ValueError, match="alpha must be a rectangular array"):
            pa.gaussian(1.0).curve(ragged)


def test_masked_entries_are_not_numbers():
    masked = np.ma.array([0.1, 0.5], mask=[False, True])
    with pytest.raises(ValueError, match="alpha must have no masked entries; drop them"):
        check_array("alpha", masked)
    with pytest.raises(ValueError, match="p must have no masked entries"):
        pa.from_distributions(masked, masked)
    whole = np.ma.array([0.1, 0.5], mask=False)
    assert check_array("alpha", whole).tolist() == [0.1, 0.5]
    assert type(check_array("alpha", whole)) is np.ndarray
