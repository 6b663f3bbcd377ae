"""``privfit curve``: what a noise law, or a release file, guarantees."""

from __future__ import annotations

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
)

__all__ = ["curve"]

MECHANISMS = ("gaussian", "laplace", "symmetric-laplace", "zil", "randomized-response")


def curve(
    file: Annotated[
        Path | None, typer.Argument(help="A release written by 'privfit release'.", show_default=False)
    ] = None,
    mechanism: Annotated[
        str | None, typer.Option(help="Instead of a file: " + ", ".join(MECHANISMS) + ".", show_default=False)
    ] = None,
    mu: Annotated[float | None, typer.Option(help="gaussian: sensitivity over the noise s.d.")] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="laplace: sensitivity over the scale; randomized-response: epsilon.")
    ] = None,
    dim: Annotated[int, typer.Option(help="symmetric-laplace, zil: number of columns.")] = 1,
    shift: Annotated[
        float | None, typer.Option(help="symmetric-laplace, zil: distance of two records in noise s.d.")
    ] = None,
    shape: Annotated[int, typer.Option(help="symmetric-laplace: shape of the noise.")] = 1,
    delta0: Annotated[float | None, typer.Option(help="zil: share of exact rows.")] = None,
    categories: Annotated[int, typer.Option(help="randomized-response: number of labels.")] = 2,
    at: Annotated[str, typer.Option(help="Epsilons at which delta is printed.")] = "0.5,1,2,4,8",
    deltas: Annotated[str, typer.Option(help="Deltas at which epsilon is printed.")] = "1e-3,1e-5,1e-7",
    as_json: AsJson = False,
    plot: PlotFile = None,
) -> None:
    """Print what a noise law or a release file guarantees: delta, epsilon, advantage.

    For example:

      privfit curve --mechanism gaussian --mu 1

      privfit curve --mechanism symmetric-laplace --dim 3 --shift 0.5
          --plot curve.png

      privfit curve release.parquet --at 1,4,8
    """
    check_figure_path(plot)
    epsilons = sorted(set(read_numbers("--at", at)))
    wanted = sorted(set(read_numbers("--deltas", deltas)), reverse=True)
    if (file is None) == (mechanism is None):
        raise ValueError("give either a release file or --mechanism.")
    if file is not None:
        title, curves, rows = _of_release(file, epsilons, wanted)
    else:
        only = _of_mechanism(str(mechanism), mu, epsilon, dim, shift, shape, delta0, categories)
        title, curves, rows = str(only), {"value": only}, _of_curve(only, epsilons, wanted)
    payload = {"of": title, "rows": rows}
    header = ["", *curves]
    body = [[_label(row), *(row[name] for name in curves)] for row in rows]
    emit(payload, as_json, lambda console: console.print(simple_table(title, header, body)))
    if plot is not None:
        from privfit.figures import plot_curves

        save_figure(plot_curves(curves, [e for e in epsilons if e >= 0], title), plot)


def _label(row: dict[str, Any]) -> str:
    if "at_epsilon" in row:
        return f"delta at epsilon = {row['at_epsilon']:g}"
    return f"epsilon at delta = {row['at_delta']:g}" if "at_delta" in row else "largest advantage of any attack"


def _of_mechanism(
    name: str,
    mu: float | None,
    epsilon: float | None,
    dim: int,
    shift: float | None,
    shape: int,
    delta0: float | None,
    categories: int,
) -> Any:
    from privfit import accounting
    from privfit.accounting.validation import check_choice

    check_choice("--mechanism", name, MECHANISMS)

    def need(option: str, value: float | None) -> float:
        if value is None:
            raise ValueError(f"{name} needs {option}.")
        return value

    if name == "gaussian":
        return accounting.gaussian(need("--mu", mu))
    if name == "laplace":
        return accounting.laplace(need("--epsilon", epsilon))
    if name == "randomized-response":
        return accounting.randomized_response(need("--epsilon", epsilon), categories)
    if name == "zil":
        return accounting.zil(dim, need("--shift", shift), need("--delta0", delta0))
    return accounting.symmetric_laplace(dim, need("--shift", shift), shape)


def _of_curve(only: Any, epsilons: list[float], deltas: list[float]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{"at_epsilon": e, "value": only.delta(e)} for e in epsilons]
    rows += [{"at_delta": d, "value": only.epsilon(d)} for d in deltas]
    return [*rows, {"value": only.advantage}]


def _of_release(
    file: Path, epsilons: list[float], deltas: list[float]
) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
    from privfit.accounting.validation import check_number
    from privfit.mechanisms import load_release

    for e in epsilons:
        check_number("--at", e, 0.0)
    for d in deltas:
        check_number("--deltas", d, 0.0, 1.0, low_open=True, high_open=True)
    if _without_law(file):
        raise ValueError(
            f"{file} carries no law, so nothing is known about its guarantee; pass a file that 'privfit release' "
            "wrote, or describe a law with --mechanism."
        )
    promise = load_release(file, kind="pyarrow").guarantee()
    both = ("record", "attribute")
    rows: list[dict[str, Any]] = [
        {"at_epsilon": row["epsilon"], **{k: row[k] for k in both}} for row in promise.deltas(epsilons)
    ]
    rows += [{"at_delta": row["delta"], **{k: row[k] for k in both}} for row in promise.epsilons(deltas)]
    (best,) = promise.deltas((0.0,))
    rows.append({k: best[k] for k in both})
    return f"{file.name}, numerical slack included", dict(zip(both, _curves(promise), strict=True)), rows


def _without_law(file: Path) -> bool:
    """Whether this is a Parquet file that is no release; what is no Parquet file is for `load_release` to name."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from privfit.mechanisms.files import KEY

    try:
        return KEY not in (pq.read_schema(file).metadata or {})
    except (pa.ArrowException, OSError):
        return False


def _curves(promise: Any) -> tuple[Any, Any]:
    """Curves of the stated law for the figure, where the slack cannot be seen."""
    return promise.record_law, promise.attribute_law
