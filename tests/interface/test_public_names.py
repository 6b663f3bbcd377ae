"""Every public name resolves and is documented with an example; importing privfit loads nothing heavy."""

import inspect
import re
import subprocess
import sys

import pytest

import privfit

NAMES = [name for name in privfit.__all__ if name != "__version__"]
HEAVY = (
    "sklearn",
    "pandas",
    "polars",
    "pyarrow",
    "sympy",
    "scipy.stats",
    "scipy.optimize",
    "matplotlib",
    "typer",
)


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", NAMES)
def test_name_resolves_and_says_what_it_is(name):
    value = getattr(privfit, name)
    text = inspect.getdoc(value)
    assert text and len(text.splitlines()[0]) > 15
    if name not in ("TradeOffCurve", "Release"):  # never built by hand: their methods carry the examples
        assert ">>>" in text, f"{name} has no example"


def test_all_is_sorted_unique_and_listed_by_dir():
    assert sorted(NAMES) == sorted(set(NAMES))
    assert set(privfit.__all__) <= set(dir(privfit))


def test_names_are_the_objects_of_the_layers():
    import privfit.accounting as accounting
    import privfit.estimators as estimators
    import privfit.mechanisms as mechanisms

    assert privfit.Budget is accounting.Budget
    assert privfit.SymmetricLaplace is mechanisms.SymmetricLaplace
    assert privfit.LogisticRegression is estimators.LogisticRegression
    from privfit.datasets import load_adult

    assert privfit.load_adult is load_adult


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = privfit.no_such_name


@pytest.mark.parametrize("module", ["privfit", "privfit.cli"])
def test_import_is_light(module):
    allowed = {"privfit.cli": ("typer",)}.get(module, ())
    code = f"import {module}, sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    assert eval(run_python(code)) == [m for m in HEAVY if m in allowed]


def test_import_loads_no_layer_until_a_name_is_used():
    code = (
        "import sys, privfit; a = 'privfit.accounting' in sys.modules; privfit.gaussian;"
        "print(a, 'privfit.accounting' in sys.modules, 'sklearn' in sys.modules)"
    )
    assert run_python(code).split() == ["False", "True", "False"]


def test_version_is_that_of_the_distribution():
    from importlib.metadata import version

    assert privfit.__version__ == version("privfit")
    assert re.fullmatch(r"\d+\.\d+\.\d+", privfit.__version__)
