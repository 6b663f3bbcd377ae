"""``privfit curve``: what a noise law, a composition of it, or a release file, guarantees."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

from privfit.cli_common import (
    AsJson,
    PlotFile,
    check_figure_path,
    emit,
    read_numbers,
    save_figure,
    simple_table,
    working,
)
from privfit.cli_mechanisms import Description, describes_mechanism

__all__ = ["curve"]

FIGURES = ("curve", "profile", "roc", "composition")
FPR, PRIOR, RUNS = 0.01, 0.5, 100


@describes_mechanism
def curve(
    described: Description,
    file: Annotated[
        Path | None, typer.Argument(help="A release written by 'privfit release'.", show_default=False)
    ] = None,
    at: Annotated[str, typer.Option(help="Epsilons at which delta is printed.")] = "0.5,1,2,4,8",
    deltas: Annotated[str, typer.Option(help="Deltas at which epsilon is printed.")] = "1e-3,1e-5,1e-7",
    conversions: Annotated[
        bool | None,
        typer.Option(
            "--conversions/--no-conversions",
            help="Print the mu of Gaussian DP and the rho of zCDP; by default where this is quick.",
            show_default=False,
        ),
    ] = None,
    figure: Annotated[
        str,
        typer.Option(
            help="What --plot draws: 'curve' (trade-off curve with what the epsilons of --at imply), 'profile' "
            "(delta over epsilon), 'roc' (true over false positives of a membership test), 'composition' (epsilon, "
            f"at the first of --deltas, over the number of runs up to --times, or up to {RUNS}; not with --group)."
        ),
    ] = "curve",
    as_json: AsJson = False,
    plot: PlotFile = None,
) -> None:
    """Print what a noise law or a release file guarantees.

    The table shows delta at some epsilons, epsilon at some deltas, the largest
    advantage of an attack, how often an attack with 1 % false alarms finds a
    member and how likely it is then right (members and others being equally
    likely), mu of Gaussian DP and rho of zCDP. Every number is on the safe
    side; where a number is known only between two bounds, both are shown.

    The mechanism may be zero-inflated (--delta0), shuffled (--shuffle),
    subsampled (--rate, --scheme), run several times on the same records
    (--times) and seen by a group (--group), in this order.

    For example:

      privfit curve --mechanism gaussian --mu 1

      privfit curve --mechanism symmetric-laplace --dim 3 --shift 0.5
          --plot curve.png

      privfit curve --mechanism gaussian --mu 1 --rate 0.01 --times 1000

      privfit curve --mechanism laplace --epsilon 0.1 --times 100
          --figure composition --plot composition.pdf

      privfit curve release.parquet --at 1,4,8
    """
    from privfit.accounting.validation import check_choice

    check_figure_path(plot)
    check_choice("--figure", figure, FIGURES)
    epsilons = sorted(set(read_numbers("--at", at)))
    listed = read_numbers("--deltas", deltas)
    wanted = sorted(set(listed), reverse=True)
    if (file is None) == (described.mechanism is None and described.curve_file is None):
        raise ValueError("give either a release file, or --mechanism, or --curve.")
    if figure == "composition" and described.group != 1:
        raise ValueError("--figure composition shows neighbours that differ in one record; leave out --group.")
    with working("computing the guarantee"):
        if file is not None:
            title, curves, singles, payload = _of_release(file, described, epsilons, wanted)
        else:
            title, curves, singles, payload = _of_mechanism(described, epsilons, wanted, conversions)
    emit(payload, as_json, lambda console: _show(console, payload, list(curves) if file is not None else []))
    if plot is not None:
        with working("drawing"):
            save_figure(_figure(figure, title, curves, singles, epsilons, listed[0], described.times), plot)


def _figure(
    kind: str,
    title: str,
    curves: dict[str, Any],
    singles: dict[str, Any],
    epsilons: list[float],
    delta: float,
    times: int,
) -> Any:
    from privfit import figures

    if kind == "composition":
        return figures.plot_composition(singles, delta, times if times > 1 else RUNS, naive=True, title=title).figure
    if kind == "profile":
        return figures.plot_profile(curves, title=title).figure
    if kind == "roc":
        return figures.plot_roc(curves, title=title).figure
    return figures.plot_curves(curves, [e for e in epsilons if 0 <= e <= 700], title)


def _show(console: Any, payload: dict[str, Any], columns: list[str]) -> None:
    """The table: one column for one number, two where the bounds differ in the digits shown."""
    rows = payload["rows"]
    if columns:
        header, body = ["", *columns], [[_label(row), *(row[name] for name in columns)] for row in rows]
    elif any(_apart(row) for row in rows):
        header = ["", "at most", "at least"]
        body = [[_label(row), row["value"], row.get("lower", "")] for row in rows]
    else:
        header, body = ["", "value"], [[_label(row), row["value"]] for row in rows]
    console.print(simple_table(payload["of"], header, body))
    if payload.get("neighbours"):
        console.print(f"for neighbours that {payload['neighbours']}", markup=False)


def _apart(row: dict[str, Any]) -> bool:
    low, high = row.get("lower", row["value"]), row["value"]
    return bool(high > low * (1 + 5e-4) and high > 1e-300)


LABELS = {
    "delta": "delta at epsilon = {at_epsilon:g}",
    "epsilon": "epsilon at delta = {at_delta:g}",
    "advantage": "largest advantage of any attack",
    "true_positive_rate": "members found at {at_fpr:.0%} false alarms",
    "posterior": "certainty after that, prior {prior:g}",
    "gdp_mu": "mu of Gaussian DP",
    "zcdp_rho": "rho of zCDP",
}


def _label(row: dict[str, Any]) -> str:
    return LABELS[row["quantity"]].format(**row)


def _of_mechanism(
    described: Description, epsilons: list[float], deltas: list[float], conversions: bool | None
) -> tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]:
    from privfit.accounting.relation import relation_of

    single, only = described.single(), described.curve()
    title = str(described)
    rows = _of_curve(only, epsilons, deltas, _quick(only) if conversions is None else conversions)
    neighbours = relation_of(single)
    payload = {"of": title, "neighbours": neighbours, "rows": rows, "curve": only.to_dict()}
    return title, {title: only}, {str(dataclasses.replace(described, times=1)): single}, payload


def _quick(curve: Any) -> bool:
    """Whether mu and rho of a curve take no more than a moment."""
    from privfit.accounting.composition import ComposedCurve
    from privfit.accounting.renyi_conversion import RenyiRegionCurve

    if isinstance(curve, (ComposedCurve, RenyiRegionCurve)):
        return False
    inner = getattr(curve, "base", None)
    return inner is None or _quick(inner)


def _of_curve(only: Any, epsilons: list[float], deltas: list[float], conversions: bool) -> list[dict[str, Any]]:
    def both(quantity: str, number: Any, **where: float) -> dict[str, Any]:
        return {"quantity": quantity, **where, "value": number("upper"), "lower": number("lower")}

    def found(bound: str) -> float:
        return 1.0 - float(only.curve(FPR, bound="lower" if bound == "upper" else "upper"))

    def certain(bound: str) -> float:
        hits = PRIOR * found(bound)
        return hits / (hits + (1 - PRIOR) * FPR)

    rows = [both("delta", lambda b, e=e: only.delta(e, bound=b), at_epsilon=e) for e in epsilons]
    rows += [both("epsilon", lambda b, d=d: only.epsilon(d, bound=b), at_delta=d) for d in deltas]
    rows.append(both("advantage", lambda b: only.delta(0.0, bound=b)))
    rows.append(both("true_positive_rate", found, at_fpr=FPR))
    rows.append(both("posterior", certain, at_fpr=FPR, prior=PRIOR))
    if conversions:
        rows.append({"quantity": "gdp_mu", "value": only.gdp()})
        rows.append({"quantity": "zcdp_rho", "value": only.zcdp()})
    return rows


def _of_release(
    file: Path, described: Description, epsilons: list[float], deltas: list[float]
) -> tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]:
    from privfit.accounting.validation import check_number
    from privfit.mechanisms import load_release
    from privfit.mechanisms.slack import charged_miss

    if described != Description(times=described.times):
        raise ValueError("a release file says what its mechanism is: with it, only --times can be given.")
    for e in epsilons:
        check_number("--at", e, 0.0)
    for d in deltas:
        check_number("--deltas", d, 0.0, 1.0, low_open=True, high_open=True)
    if _without_law(file):
        raise ValueError(
            f"{file} carries no law, so nothing is known about its guarantee; pass a file that 'privfit release' "
            "wrote, or describe a law with --mechanism."
        )
    loaded = load_release(file, kind="pyarrow")
    one, promise = loaded.guarantee(), loaded.law.guarantee(loaded.domain, described.times)
    both = ("record", "attribute")
    rows: list[dict[str, Any]] = [
        {"quantity": "delta", "at_epsilon": row["epsilon"], **{k: row[k] for k in both}}
        for row in promise.deltas(epsilons)
    ]
    rows += [
        {"quantity": "epsilon", "at_delta": row["delta"], **{k: row[k] for k in both}}
        for row in promise.epsilons(deltas)
    ]
    (best,) = promise.deltas((0.0,))
    rows.append({"quantity": "advantage", **{k: best[k] for k in both}})
    # curves of the stated law for the figure, where the slack cannot be seen
    curves = dict(zip(both, (promise.record_law, promise.attribute_law), strict=True))
    hits = {k: 1.0 - charged_miss(c, FPR, promise.slack) for k, c in curves.items()}
    rows.append({"quantity": "true_positive_rate", "at_fpr": FPR, **hits})
    right = {k: v * PRIOR / (v * PRIOR + FPR * (1 - PRIOR)) for k, v in hits.items()}
    rows.append({"quantity": "posterior", "at_fpr": FPR, "prior": PRIOR, **right})
    runs = f", {described.times} such releases together" if described.times > 1 else ""
    title = f"{file.name}{runs}, numerical slack included"
    singles = dict(zip(both, (one.record_law, one.attribute_law), strict=True))
    return title, curves, singles, {"of": title, "rows": rows}


def _without_law(file: Path) -> bool:
    """Whether this is a Parquet file that is no release; what is no Parquet file is for `load_release` to name."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from privfit.mechanisms.files import KEY

    try:
        return KEY not in (pq.read_schema(file).metadata or {})
    except (pa.ArrowException, OSError):
        return False
