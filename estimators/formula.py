r"""Models by formula, ``from_formula("income ~ age + hours + C(region)", release, model)``, through `formulaic`.

A noised column may enter as it is: a linear term keeps the law of its noise. A transformation of it (``log(age)``,
``age:hours``, ``C(age)``) does not: with ``x~ = x + Z``, ``log(x~)`` is no ``log(x)`` plus noise of known law, and no
operator on the loss undoes that. Such terms are refused; columns without noise may be transformed at will.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from privfit.estimators.errors import CapabilityError
from privfit.mechanisms import Law, Product

__all__ = ["design_columns", "from_formula"]


def from_formula(formula: str, data: Any, model: Any, **options: Any) -> Any:
    """Fit a model given by a formula to a release or to a table.

    Parameters
    ----------
    formula : str
        Wilkinson notation, as in R: ``y ~ a + C(b)``; ``- 1`` or ``0 +`` leaves the intercept out.
    data : Release or data frame
        Of a data frame, the model's ``noise=`` names the noised columns.
    model : estimator
        A regression or classifier of this package; a copy of it is fitted.
    **options
        For ``fit_release``, such as ``keep_records=True``.

    Returns
    -------
    estimator
        The fitted copy, with ``formula_`` and ``model_spec_`` (for `design_columns`).

    Raises
    ------
    ModuleNotFoundError
        If formulaic is not installed.
    CapabilityError
        For a transformation of a noised column.
    ValueError, TypeError
        For a formula without one response, or columns that are not in the data.

    Examples
    --------
    >>> import pandas as pd
    >>> from privfit.estimators import LinearRegression
    >>> frame = pd.DataFrame({"y": [1.0, 3.0, 5.0, 8.0], "a": [0.0, 1.0, 2.0, 3.0]})
    >>> from_formula("y ~ a", frame, LinearRegression()).coef_.round(2)
    array([2.3])
    """
    formulaic = _formulaic()
    if not isinstance(formula, str) or formula.count("~") != 1:
        raise ValueError(f'formula must read "response ~ terms", got {formula!r}.')
    table, law, domain = _table(data, model)
    parsed = formulaic.Formula(formula)
    if not hasattr(parsed, "lhs") or len(list(parsed.lhs)) != 1:
        raise ValueError(f"formula must have one response left of ~, got {formula!r}. Fit one model per response.")
    noised = _noised(law, domain, data)
    for term in [*parsed.lhs, *parsed.rhs]:
        _check_term(term, noised, set(table.columns))
    response = str(next(iter(parsed.lhs)))
    matrix, spec = _materialised(formulaic, parsed.rhs, table)
    intercept = "Intercept" in matrix.columns
    design = matrix.drop(columns="Intercept") if intercept else matrix
    name, answer = _response(formulaic, response, table)
    if name in design.columns:
        raise ValueError(f"formula must not have the response {name!r} among its terms. Leave it out.")
    frame = design.assign(**{name: answer})
    fitted = _copy(model, intercept, law)
    if law is None:
        fitted.fit(design, answer, **options)
    else:
        covered = _listed(domain, data, noised)
        public = [column for column in frame.columns if column not in noised]
        view = SimpleNamespace(
            frame=frame, law=law, columns=covered, public=public, names=list(frame.columns), domain=domain
        )
        fitted.fit_release(view, target=name, features=list(design.columns), **options)
    fitted.formula_, fitted.model_spec_ = formula, spec
    return fitted


def design_columns(model: Any, data: Any) -> Any:
    """Return the columns of a fitted formula for new data, as ``predict`` needs them.

    Parameters
    ----------
    model : estimator
        From `from_formula`.
    data : data frame

    Returns
    -------
    pandas.DataFrame

    Examples
    --------
    >>> import pandas as pd
    >>> from privfit.estimators import LinearRegression
    >>> frame = pd.DataFrame({"y": [1.0, 3.0, 5.0, 8.0], "a": [1.0, 2.0, 3.0, 4.0]})
    >>> model = from_formula("y ~ a + I(a**2)", frame, LinearRegression())
    >>> model.predict(design_columns(model, frame)).round(2)
    array([1.05, 2.85, 5.15, 7.95])
    """
    if not hasattr(model, "model_spec_"):
        raise TypeError(f"model must be fitted by from_formula, got a {type(model).__name__} that is not.")
    matrix = model.model_spec_.get_model_matrix(_pandas(data))
    return matrix.drop(columns="Intercept") if "Intercept" in matrix.columns else matrix


def _formulaic() -> Any:
    try:
        import formulaic
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            'formulas need the package formulaic. Install it: pip install "privfit[formula]". Or pass columns to fit().'
        ) from None
    return formulaic


def _table(data: Any, model: Any) -> tuple[Any, Law | None, Any]:
    """Return data as pandas, with the law of its noise and its domain."""
    if hasattr(data, "law") and hasattr(data, "frame"):
        names = list(getattr(data, "names", ())) or [*data.columns, *data.public]
        return _pandas(data.frame, names), data.law, getattr(data, "domain", None)
    noise = getattr(model, "noise", None)
    if noise is None:
        return _pandas(data), None, None
    if isinstance(noise, Law) and not isinstance(noise, Product):
        raise TypeError(
            "noise must name its columns when a formula chooses them: pass noise={('age', 'hours'): law} to the model."
        )
    return _pandas(data), noise if isinstance(noise, Product) else Product(noise), None


def _pandas(frame: Any, names: Iterable[Any] | None = None) -> Any:
    import pandas as pd

    if isinstance(frame, pd.DataFrame):
        return frame
    if isinstance(frame, np.ndarray):
        raise TypeError("data must be a table with named columns for a formula, got an array. Release a data frame.")
    if isinstance(frame, Mapping):
        return pd.DataFrame(frame)
    listed: list[Any] = list(names) if names is not None else list(getattr(frame, "columns", ()))
    if not listed or not hasattr(frame, "__getitem__"):
        raise TypeError(f"data must be a release or a data frame, got {type(frame).__name__}.")
    return pd.DataFrame({name: np.asarray(frame[name]) for name in listed})


def _noised(law: Law | None, domain: Any, data: Any) -> set[Any]:
    if law is None:
        return set()
    if isinstance(law, Product):
        return {column for columns, _ in law.items for column in columns}
    return set(_listed(domain, data, set()))


def _listed(domain: Any, data: Any, otherwise: set[Any]) -> list[Any]:
    """Columns under a release's law, in its order; those that a model's own noise names."""
    if not hasattr(data, "law"):
        return list(otherwise)
    found: Any = getattr(domain, "columns", None) or data.columns
    return list(found)


def _check_term(term: Any, noised: set[Any], columns: set[Any]) -> None:
    """Refuse a transformation of a noised column."""
    factors = list(term.factors)
    for factor in factors:
        bare = factor.expr in columns
        for name in sorted(_names(factor.expr) & noised, key=str):
            if bare and len(factors) == 1:
                continue
            raise CapabilityError(
                f"formula: {term!s} transforms the noised column {name!r}, and a transformed noise has no exact "
                f"correction: {name} + noise has a known law, {term!s} of it has not. Use {name} itself, or transform "
                "before the release and release the result."
            )


def _names(expression: str) -> set[str]:
    quoted = set(re.findall(r"`([^`]*)`", expression))
    try:
        found = {
            node.id for node in ast.walk(ast.parse(re.sub(r"`[^`]*`", "_", expression))) if isinstance(node, ast.Name)
        }
    except SyntaxError:
        found = set()
    return quoted | found | {expression}


def _materialised(formulaic: Any, terms: Any, table: Any) -> tuple[Any, Any]:
    try:
        matrix = formulaic.Formula(terms).get_model_matrix(table, context={}, na_action="raise")
    except formulaic.errors.FactorEvaluationError as error:
        first = str(error).splitlines()[0]
        raise ValueError(
            f"formula: a term cannot be computed from the columns {list(table.columns)[:12]}: {first}"
        ) from None
    return matrix, matrix.model_spec


def _response(formulaic: Any, response: str, table: Any) -> tuple[str, Any]:
    """Name and values of the response: a column as it is, labels too, or a transformation of one."""
    if response in table.columns:
        return response, table[response].to_numpy()
    matrix, _ = _materialised(formulaic, f"{response} - 1", table)
    if matrix.shape[1] != 1:
        raise ValueError(f"formula: the response {response} has {matrix.shape[1]} columns. Name the column itself.")
    return response, matrix.iloc[:, 0].to_numpy()


def _copy(model: Any, intercept: bool, law: Law | None) -> Any:
    from sklearn.base import clone

    own = clone(model)
    if "fit_intercept" in own.get_params():
        own.set_params(fit_intercept=intercept)
    elif not intercept:
        raise ValueError(f"formula: {type(model).__name__} has no fit_intercept, so that 0 + cannot be said.")
    if law is not None and "noise" in own.get_params():
        own.set_params(noise=None)  # the law comes with the data
    return own
