"""The bundled census extract: complete, the same in every kind of table, with its attribution."""

from importlib.resources import files

import numpy as np
import pytest

from privfit.datasets import ADULT_COLUMNS, load_adult


def test_counts_published_for_the_data_set():
    # 48,842 persons, 11,687 of them over 50K and 16,192 women (adult.names of the UCI repository).
    adult = load_adult("dict")
    assert tuple(adult) == ADULT_COLUMNS
    assert {len(values) for values in adult.values()} == {48_842}
    assert (adult["income"] == ">50K").sum() == 11_687
    assert (adult["sex"] == "Female").sum() == 16_192


def test_values_lie_in_the_documented_ranges():
    adult = load_adult("dict")
    for name, low, high in [("age", 17, 90), ("education_num", 1, 16), ("hours_per_week", 1, 99)]:
        assert (adult[name].min(), adult[name].max()) == (low, high)
    assert set(adult["income"]) == {"<=50K", ">50K"}


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_kinds_agree(kind):
    table, plain = load_adult(kind), load_adult("dict")
    for name in ADULT_COLUMNS:
        assert np.array_equal(np.asarray(table[name]), plain[name])


def test_default_is_pandas_where_it_is_installed():
    import pandas as pd

    assert isinstance(load_adult(), pd.DataFrame)


@pytest.mark.parametrize("missing, kind", [({"pandas"}, "polars"), ({"pandas", "polars"}, "pyarrow")])
def test_default_without_pandas(monkeypatch, missing, kind):
    import privfit.datasets as datasets

    monkeypatch.setattr(datasets, "_installed", lambda name: name not in missing)
    assert type(load_adult(columns=["age"])).__module__.startswith(kind)


def test_columns_in_the_order_asked_for():
    assert list(load_adult("dict", columns=["income", "age"])) == ["income", "age"]


@pytest.mark.parametrize(
    "options, error, words",
    [
        ({"kind": "excel"}, ValueError, "kind must be one of 'pandas'"),
        ({"columns": ["age", "wage"]}, ValueError, "'wage'"),
        ({"columns": []}, ValueError, "one or more"),
        ({"columns": ["age", "age"]}, ValueError, "different"),
        ({"columns": "age"}, TypeError, "sequence"),
    ],
)
def test_mistakes(options, error, words):
    with pytest.raises(error, match=words):
        load_adult(**options)


def test_attribution_ships_with_the_data():
    text = (files("privfit.data") / "README.md").read_text(encoding="utf-8")
    for words in ("Becker", "Kohavi", "10.24432/C5XW20", "CC BY 4.0"):
        assert words in text
