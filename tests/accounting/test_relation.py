"""Names of neighbouring relations travel with the curves made from a curve."""

import pytest

import privfit.accounting as pa
from privfit.accounting.relation import ADD_OR_REMOVE, REPLACE_ONE, check_relation, relation_of
from privfit.accounting.shuffling import shuffled
from privfit.accounting.subsampling import subsample


def test_a_curve_made_of_another_keeps_its_relation():
    sampled = subsample(pa.gaussian(1.0), 0.1)
    assert relation_of(sampled) == ADD_OR_REMOVE
    assert relation_of(pa.shifted(sampled, 1e-9)) == ADD_OR_REMOVE
    assert relation_of(pa.zero_inflated(shuffled(1.0, 10), 1e-9)) == REPLACE_ONE
    assert relation_of(pa.minimum(pa.gaussian(1.0), sampled)) == ADD_OR_REMOVE
    assert relation_of(shuffled(1.0, 10, delta0=1e-9)) == REPLACE_ONE
    assert relation_of(pa.minimum(pa.gaussian(1.0), pa.laplace(1.0))) == ""


def test_a_relation_that_does_not_fit_is_refused_with_the_next_step():
    check_relation(pa.gaussian(1.0), ADD_OR_REMOVE, "this", "")
    check_relation(shuffled(1.0, 10), REPLACE_ONE, "this", "")
    with pytest.raises(ValueError, match=r"this needs .* add or remove one record.* replace one record\. Do that"):
        check_relation(shuffled(1.0, 10), ADD_OR_REMOVE, "this", "Do that.")
