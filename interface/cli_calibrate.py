"""``privfit calibrate``: how much noise a target needs, mechanism by mechanism."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from privfit.cli_common import (
    AsJson,
    PlotFile,
    check_figure_path,
    emit,
    read_bounds,
    read_target,
    save_figure,
    simple_table,
    working,
)

__all__ = ["calibrate", "calibrate_law"]

ADDITIVE = ("gaussian", "laplace", "symmetric-laplace", "generalized-laplace", "zil", "best")
"""The third and fourth are one: symmetric-laplace of any shape."""
MECHANISMS = (*ADDITIVE, "randomized-response", "all")


def calibrate(
    epsilon: Annotated[float | None, typer.Option(help="Target: epsilon, together with --delta.")] = None,
    delta: Annotated[float | None, typer.Option(help="Target: delta, together with --epsilon.")] = None,
    gdp: Annotated[float | None, typer.Option(metavar="MU", help="Target: Gaussian DP with this mu.")] = None,
    advantage: Annotated[
        float | None, typer.Option(help="Target: no attack has a larger advantage (TPR - FPR).")
    ] = None,
    fpr: Annotated[
        float | None,
        typer.Option(help="Target: an attack with this false-positive rate misses at least --fnr."),
    ] = None,
    fnr: Annotated[float | None, typer.Option(help="Target: see --fpr.")] = None,
    dim: Annotated[int, typer.Option(help="Number of numeric columns, if no --column is given.")] = 1,
    column: Annotated[
        list[str] | None, typer.Option(metavar="NAME:LOWER:UPPER", help="A column and its declared bounds.")
    ] = None,
    mechanism: Annotated[str, typer.Option(help="One of " + ", ".join(MECHANISMS) + ".")] = "all",
    shape: Annotated[
        int | None,
        typer.Option(
            help="Shape of symmetric-laplace (or generalized-laplace, a synonym); the best one by default.",
            show_default=False,
        ),
    ] = None,
    delta0: Annotated[
        float | None,
        typer.Option(
            help="Share of exact rows of zil; a tenth of --delta (over --releases) by default.", show_default=False
        ),
    ] = None,
    categories: Annotated[int, typer.Option(help="Number of labels of randomized-response.")] = 2,
    protect: Annotated[str, typer.Option(help="'record': a whole row; 'attribute': one column of it.")] = "record",
    releases: Annotated[
        int, typer.Option(help="Number of releases of the same records that meet the target together.")
    ] = 1,
    figure: Annotated[
        str,
        typer.Option(
            help="What --plot draws: 'curve' (the trade-off curves) or, for zil, 'region' (which shares of exact rows "
            "with how much noise meet the target; this takes minutes with --releases)."
        ),
    ] = "curve",
    as_json: AsJson = False,
    plot: PlotFile = None,
) -> None:
    """Find the smallest noise that meets a privacy target.

    Without --mechanism, all mechanisms with added noise are compared. Noise is
    shown as its standard deviation over the declared range of the column: 1
    means as large as the range.

    For example:

      privfit calibrate --epsilon 4 --delta 1e-5 --dim 3

      privfit calibrate --epsilon 4 --delta 1e-5 --mechanism best
          --column age:17:90 --column hours:1:99

      privfit calibrate --advantage 0.3 --mechanism gaussian --plot curve.png

      privfit calibrate --epsilon 1 --delta 0 --categories 4
          --mechanism randomized-response

      privfit calibrate --epsilon 4 --delta 1e-5 --dim 2 --releases 10
          --mechanism best

      privfit calibrate --epsilon 4 --delta 1e-3 --dim 2 --mechanism zil
          --figure region --plot region.png
    """
    from privfit.accounting.validation import check_choice, check_integer
    from privfit.mechanisms import Box
    from privfit.mechanisms.calibration import check_releases, repeated

    check_figure_path(plot)
    check_choice("--mechanism", mechanism, MECHANISMS)
    target = read_target(epsilon, delta, gdp, advantage, fpr, fnr)
    check_integer("--dim", dim, 1, 1000)
    check_releases(releases)
    check_choice("--figure", figure, ("curve", "region"))
    if figure == "region" and (mechanism != "zil" or plot is None):
        raise ValueError("--figure region needs --mechanism zil and --plot FILE.")
    bounds = read_bounds(column or []) or {f"x{j}": (0.0, 1.0) for j in range(1, dim + 1)}
    if mechanism == "randomized-response":
        _calibrate_labels(target, categories, protect, releases, as_json, plot)
        return
    box = Box(bounds)
    wanted = _compared(target, shape, delta0) if mechanism == "all" else [(mechanism, shape, delta0)]
    rows: list[dict[str, Any]] = []
    laws: dict[str, Any] = {}
    with working("calibrating") as say:
        for name, own_shape, own_delta0 in wanted:
            say(f"calibrating {name}")
            try:
                law = calibrate_law(name, target, box, protect, own_shape, own_delta0, releases)
            except ValueError as error:
                if mechanism != "all":
                    raise
                rows.append({"mechanism": name, "law": None, "reason": str(error)})
                continue
            label = _label(name, law)
            laws[label] = law
            rows.append(_row(label, law, box, protect, releases))
    if not laws:
        raise ValueError(rows[0]["reason"])
    payload = {
        "target": str(target),
        "protect": protect,
        "releases": releases,
        "columns": list(bounds),
        "mechanisms": rows,
    }
    emit(payload, as_json, lambda console: _show(console, payload, bounds))
    if plot is None:
        return
    with working("drawing"):
        title = f"{target}, {protect}{_together(releases)}"
        if figure == "region":
            save_figure(_region(target, box, protect, releases, title), plot)
            return
        from privfit.figures import plot_curves

        curves = {label: repeated(law.tradeoff(box, protect), releases) for label, law in laws.items()}
        save_figure(plot_curves(curves, title=title), plot)


def _region(target: Any, box: Any, protect: str, releases: int, title: str) -> Any:
    from privfit.figures import plot_region
    from privfit.mechanisms import zil_region
    from privfit.mechanisms.zero_inflated_calibration import limit_of_delta0

    few = None  # a point takes seconds where the curve of several releases is computed numerically
    if releases > 1:
        few = limit_of_delta0(target, releases) * np.sin(np.linspace(0.0, np.pi / 2, 7)[1:-1]) ** 2
    region = zil_region(target, box, few, protect, releases=releases)
    return plot_region({str(target): region}, title=title).figure


def _together(releases: int) -> str:
    return f", {releases} releases together" if releases > 1 else ""


def calibrate_law(
    name: str,
    target: Any,
    box: Any,
    protect: str,
    shape: int | None = None,
    delta0: float | None = None,
    releases: int = 1,
) -> Any:
    """Return the calibrated law of a mechanism by its name on the command line.

    Raises
    ------
    ValueError
        If the target cannot be met.

    Examples
    --------
    >>> from privfit.accounting import Budget
    >>> from privfit.mechanisms import Box
    >>> calibrate_law("gaussian", Budget(1.0, 1e-5), Box({"x": (0, 1)}), "record")
    Gaussian(scale=3.73...)
    """
    from privfit.mechanisms import Gaussian, Laplace, ZeroInflatedLaplace

    if name == "gaussian":
        return Gaussian.calibrate(target, box, protect, releases=releases)
    if name == "laplace":
        return Laplace.calibrate(target, box, protect, releases=releases)
    if name == "zil":
        atom = delta0 if delta0 is not None else getattr(target, "delta", 0.0) / (10 * releases)
        if atom == 0:
            raise ValueError("zil needs --delta0 > 0, or a target with --delta > 0.")
        return ZeroInflatedLaplace.calibrate(target, box, protect, delta0=atom, releases=releases)
    return _symmetric(target, box, protect, shape, releases)


def _symmetric(target: Any, box: Any, protect: str, shape: int | None, releases: int) -> Any:
    from privfit.mechanisms import SymmetricLaplace

    chosen: Any = "best" if shape is None else shape
    return SymmetricLaplace.calibrate(target, box, protect, shape=chosen, releases=releases)


def _compared(target: Any, shape: int | None, delta0: float | None) -> list[tuple[str, int | None, float | None]]:
    found: list[tuple[str, int | None, float | None]] = [
        ("gaussian", None, None),
        ("laplace", None, None),
        ("symmetric-laplace", 1, None),
        ("best" if shape is None else "symmetric-laplace", shape, None),
    ]
    if delta0 is not None or getattr(target, "delta", 0.0) > 0:
        found.append(("zil", None, delta0))
    return found


def _row(label: str, law: Any, box: Any, protect: str, releases: int) -> dict[str, Any]:
    from privfit.mechanisms.calibration import repeated

    spread = np.sqrt(np.broadcast_to(law.variance, box.dim))
    return {
        "mechanism": label,
        "law": law.to_dict(),
        "noise_over_range": float(spread[0] / box.ranges[0]),
        "standard_deviation": dict(zip(map(str, box.columns), spread.tolist(), strict=True)),
        "advantage": float(repeated(law.tradeoff(box, protect), releases).advantage),
        "exact_fraction": law.exact_fraction,
    }


def _show(console: Any, payload: dict[str, Any], bounds: dict[str, Any]) -> None:
    rows = [row for row in payload["mechanisms"] if row["law"] is not None]
    rows.sort(key=lambda row: float(row["noise_over_range"]))
    header = ["mechanism", "noise s.d. / range", "largest advantage"]
    body = [[row["mechanism"], row["noise_over_range"], row["advantage"]] for row in rows]
    title = (
        f"Smallest noise for {payload['target']}, protecting one {payload['protect']}{_together(payload['releases'])}"
    )
    console.print(simple_table(title, header, body))
    if len(rows) == 1 or any(name != f"x{j}" for j, name in enumerate(bounds, 1)):
        first = rows[0]
        text = ", ".join(f"{name} {value:.4g}" for name, value in first["standard_deviation"].items())
        console.print(f"Standard deviations of {first['mechanism']}: {text}", markup=False)
    for row in payload["mechanisms"]:
        if row["law"] is None:
            console.print(f"{row['mechanism']}: not possible; {row['reason']}", markup=False)


def _label(name: str, law: Any) -> str:
    best = "best: " if name == "best" else ""
    if hasattr(law, "shape"):
        return f"{best}symmetric-laplace, shape {law.shape}"
    if best:
        return f"{best}{law.mechanism}"
    return f"zil, {law.delta0:.2g} exact" if hasattr(law, "delta0") else name


def _calibrate_labels(target: Any, categories: int, protect: str, releases: int, as_json: bool, plot: Any) -> None:
    from privfit.accounting.validation import check_integer
    from privfit.mechanisms import Categories, RandomizedResponse

    check_integer("--categories", categories, 2, 1_000_000)
    domain = Categories({"label": list(range(categories))})
    with working("calibrating randomized-response"):
        law = RandomizedResponse.calibrate(target, domain, protect, releases=releases)
    payload = {
        "target": str(target),
        "releases": releases,
        "mechanism": "randomized-response",
        "law": law.to_dict(),
        "keep_probability": law.keep_probability,
    }
    header = ["labels", "epsilon", "told truthfully"]
    row = [categories, law.epsilon, law.keep_probability]
    emit(
        payload,
        as_json,
        lambda console: console.print(
            simple_table(f"Randomised response: {target}{_together(releases)}", header, [row])
        ),
    )
    if plot is not None:
        from privfit.figures import plot_curves

        curve = law.tradeoff(domain).self_compose(releases)
        save_figure(plot_curves({"randomised response": curve}, title=f"{target}{_together(releases)}"), plot)
