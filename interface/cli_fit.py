"""``privfit fit``: fit a model to a release file, corrected for its noise."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from privfit.cli_common import AsJson, PlotFile, check_figure_path, emit, save_figure

__all__ = ["fit"]

MODELS = ("logistic", "linear", "quantile", "poisson", "huber", "mean")
DESCRIPTIONS = ("mean", "quantile")
"""Models that also describe columns one by one, without a target."""


def fit(
    file: Annotated[Path, typer.Argument(metavar="RELEASE", help="A release written by 'privfit release'.")],
    model: Annotated[str, typer.Option(help="One of " + ", ".join(MODELS) + ".")] = "linear",
    target: Annotated[
        str | None, typer.Option(metavar="NAME", help="Column to explain; none for mean.", show_default=False)
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(metavar="NAME,NAME", help="Columns that explain; all others by default.", show_default=False),
    ] = None,
    quantile: Annotated[
        float, typer.Option(help="Which quantile, of the target given the features or, without a target, of columns.")
    ] = 0.5,
    correction: Annotated[str, typer.Option(help="exact, dr, sdr, sl, or naive (ignores the noise).")] = "exact",
    stabilize: Annotated[bool, typer.Option("--stabilize", help="Shrink where the sample is small.")] = False,
    clusters: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Column, released as it is, of rows that depend.", show_default=False),
    ] = None,
    level: Annotated[float, typer.Option(help="Coverage of the intervals.")] = 0.95,
    report: Annotated[
        bool, typer.Option("--report", help="Print (and plot) standard errors beside those of the raw data.")
    ] = False,
    as_json: AsJson = False,
    plot: PlotFile = None,
) -> None:
    """Fit a model to a release file: estimates, standard errors, cost of privacy.

    The file carries the law of its noise, so nothing else is needed. With --report also what privacy cost each
    coefficient, estimated from the release alone.

    For example:

      privfit fit adult.parquet --model logistic --target income
          --features age,hours

      privfit fit adult.parquet --model quantile --quantile 0.9
          --target hours --features age --json

      privfit fit adult.parquet --model quantile --features age,hours

      privfit fit adult.parquet --model mean --report --plot cost.png
    """
    from privfit.accounting.validation import check_choice, check_number
    from privfit.mechanisms import load_release

    check_figure_path(plot)
    check_choice("--model", model, MODELS)
    check_number("--level", level, 0.0, 1.0, low_open=True, high_open=True)
    describes = model in DESCRIPTIONS and (model == "mean" or target is None)
    estimator = _estimator(model, quantile, correction, stabilize, describes)
    # Arrays need neither pandas nor polars.
    release = load_release(file, kind="numpy")
    columns = _features(features, describes, release)
    response = None if target is None else _column(target, release)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        if describes:
            if response is not None:
                raise ValueError("--model mean takes no --target; name the columns with --features.")
            if clusters is not None:
                raise ValueError(
                    f"--model {model} takes no --clusters without a target; use a regression, or "
                    f"{model.capitalize()} in Python."
                )
            estimator.fit_release(release, features=columns)
        else:
            if response is None:
                raise ValueError(f"--model {model} needs --target; the release has {list(release.names)}.")
            groups = None if clusters is None else _column(clusters, release)
            estimator.fit_release(release, target=response, features=columns, clusters=groups)
    notes = [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]
    left_out = [response] if clusters is None else [response, _column(clusters, release)]
    names = [str(name) for name in columns or release.names if name not in left_out]
    names = _coefficients(estimator, names if describes else ["const", *names])
    payload = _payload(estimator, names, model, response, level, notes)

    def show(console: Any) -> None:
        console.print(estimator.summary(level), markup=False, soft_wrap=True)
        if report:
            console.print(f"\n{estimator.efficiency_report()}\n", markup=False, soft_wrap=True)
        for note in notes:
            console.print(f"WARNING: {note}", markup=False, soft_wrap=True)

    emit(payload, as_json, show)
    if plot is not None and report:
        _plot_report(payload, model, plot, as_json)
    elif plot is not None:
        _plot(payload, model, level, plot)


def _estimator(model: str, quantile: float, correction: str, stabilize: bool, describes: bool) -> Any:
    from privfit import estimators

    if describes:
        return estimators.Mean() if model == "mean" else estimators.Quantile(quantile)
    options: dict[str, Any] = {"correction": correction, "stabilize": "auto" if stabilize else None}
    if model == "logistic":
        return estimators.LogisticRegression(**options)
    if model == "quantile":
        return estimators.QuantileRegression(quantile, **options)
    kinds = {
        "linear": estimators.LinearRegression,
        "poisson": estimators.PoissonRegression,
        "huber": estimators.HuberRegression,
    }
    return kinds[model](**options)


def _coefficients(estimator: Any, names: list[str]) -> list[str]:
    """Names of the parameters, as `summary` has them: of several classes, those of each against the first."""
    classes = getattr(estimator, "classes_", ())
    return names if len(classes) <= 2 else [f"{label}: {name}" for label in classes[1:] for name in names]


def _features(text: str | None, describes: bool, release: Any) -> list[Any] | None:
    if text is not None:
        return [_column(name.strip(), release) for name in text.split(",")]
    if not describes:
        return None
    labels = {name for names, law in release.parts.items() if law.mechanism == "randomized_response" for name in names}
    numeric = [name for name in release.columns if name not in labels]
    if not numeric:
        raise ValueError("the release has no numeric column with noise; name columns with --features.")
    return numeric


def _column(name: str, release: Any) -> Any:
    """The columns of a released array are called by their positions."""
    return int(name) if name.isdigit() and name not in release.names else name


def _payload(
    estimator: Any, names: list[str], model: str, target: Any, level: float, notes: list[str]
) -> dict[str, Any]:
    interval, errors = estimator.conf_int(level), estimator.bse_
    cost, found = estimator.efficiency_, estimator.diagnostics_
    return {
        "model": model,
        "target": target,
        "correction": getattr(estimator, "correction", "exact"),
        "rows": cost.n,
        "converged": bool(estimator.converged_),
        "level": level,
        "coefficients": [
            {
                "name": name,
                "estimate": float(estimator.params_[j]),
                "standard_error": float(errors[j]),
                "lower": float(interval[j, 0]),
                "upper": float(interval[j, 1]),
                "p_value": float(estimator.pvalues_[j]),
            }
            for j, name in enumerate(names)
        ],
        "efficiency": {
            "standard_error_factor": float(cost.overall),
            "raw_records_worth": float(cost.n_effective),
            "coefficients": [
                {
                    "name": name,
                    "factor": float(factor),
                    "raw_standard_error": float(error / factor) if np.isfinite(factor) else np.inf,
                }
                for name, error, factor in zip(names, errors, cost.factors, strict=True)
            ],
            "assumption": cost.assumption,
        },
        "records_needed": None if found.get("n_needed_is_bound") else found.get("n_needed"),
        "too_few_records": bool(found.get("n_needed")),
        "warnings": notes,
    }


def _plot(payload: dict[str, Any], model: str, level: float, path: Path) -> None:
    from privfit.figures import Intervals, plot_coefficients

    slopes = [row for row in payload["coefficients"] if row["name"].rsplit(": ")[-1] != "const"]
    rows = slopes or payload["coefficients"]
    columns = {key: np.array([row[key] for row in rows]) for key in ("estimate", "lower", "upper")}
    title = f"{model}, {payload['rows']:,} records"
    figure = plot_coefficients(
        {title: {f"{payload['correction']}, {level:.0%} intervals": Intervals(**columns)}},
        {title: [row["name"] for row in rows]},
        {title: "estimate, in the units of the columns"},
    )
    save_figure(figure, path)


def _plot_report(payload: dict[str, Any], model: str, path: Path, as_json: bool) -> None:
    from privfit.figures import plot_errors

    errors = [row["standard_error"] for row in payload["coefficients"]]
    if not np.isfinite(errors).any():
        typer.echo("no figure: the release tells none of these standard errors (see the warnings).", err=as_json)
        return
    cost = payload["efficiency"]["coefficients"]
    title = f"{model}, {payload['rows']:,} records: what privacy cost"
    figure = plot_errors([row["name"] for row in cost], errors, [row["factor"] for row in cost], title)
    save_figure(figure, path)
